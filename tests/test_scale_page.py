"""The commands shown in docs/guides/scale.md; loops stand for the schedulers of clusters."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml
from runs import DEMO, command, contents

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guides" / "scale.md").read_text("utf-8")
BLOCKS = dict(re.findall(r'^```\w+ title="([^"]+)"\n(.*?)^```$', PAGE, re.M | re.S))
PATH = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
pytestmark = pytest.mark.nightly


@pytest.fixture
def shared(tmp_path):
    """A shared folder with the input, and the run that all others must equal."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    table = csv.read_csv(DEMO, parse_options=csv.ParseOptions(delimiter="\t", quote_char=False))
    pq.write_table(table, tmp_path / "clean.parquet")
    done = command(
        "augment",
        tmp_path / "clean.parquet",
        "-o",
        tmp_path / "whole",
        "--seed",
        7,
        "--rows-per-shard",
        300,
        "--quiet",
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def adapted(text, shared, parts=2):
    """Return commands for a small input in that folder, in so many parts."""
    text = re.sub(r"/(shared|data)/", f"{shared}/", text).replace("/16", f"/{parts}")
    return text.replace("noisegen augment", "noisegen augment --rows-per-shard 300")


def run(script, **environment):
    environment = {name: str(value) for name, value in environment.items()}
    return subprocess.run(
        ["bash", "-ec", script],
        env={**os.environ, "PATH": PATH, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_slurm_array(shared):
    script = adapted(BLOCKS["noise.sbatch"], shared)
    for number in (1, 2):
        done = run(script, SLURM_ARRAY_TASK_ID=number, SLURM_CPUS_PER_TASK=2)
        assert done.returncode == 0, done.stderr

    assert contents(shared / "noisy") == contents(shared / "whole")


def test_kubernetes_job(shared):
    job = yaml.safe_load(adapted(BLOCKS["job.yaml"], shared))
    (container,) = job["spec"]["template"]["spec"]["containers"]
    for index in range(2):
        words = [*container["command"], *container["args"]]
        done = subprocess.run(
            words, env={**os.environ, "PATH": PATH, "JOB_COMPLETION_INDEX": str(index)}, timeout=60
        )
        assert done.returncode == 0

    assert contents(shared / "noisy") == contents(shared / "whole")


@pytest.mark.skipif(shutil.which("dask", path=PATH) is None, reason="needs the extra dask")
def test_dask_cluster(shared):
    port = 18_786
    cluster = BLOCKS["cluster.sh"].replace("8786", str(port)).replace("4", "2", 1)
    driver = adapted(BLOCKS["driver.sh"], shared).replace("8786", str(port))
    processes = subprocess.Popen(
        ["bash", "-c", f"{cluster}\nwait"],
        env={**os.environ, "PATH": PATH},
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        time.sleep(2)
        done = run(driver)
        assert done.returncode == 0, done.stderr
    finally:
        os.killpg(processes.pid, 15)
        processes.wait(20)

    assert contents(shared / "noisy") == contents(shared / "whole")


def test_other_commands_parse():
    """What mines dumps and prepares a crawl: their options are there."""
    for line in BLOCKS["others.sbatch"].replace("\\\n", "").splitlines():
        _, name, *words = line.split()
        usage = command(name, "--help").stdout
        assert all(word in usage for word in words if word.startswith("--"))


def test_the_simulation_runs():
    """All that `python -m benchmarks.scale` does, on few files."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--rows", "300"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "300 files on 1,000 workers" in done.stdout
    assert "resume of as many finished tasks" in done.stdout
