"""The first trials of every campaign, all trials that were once broken, and how they are saved."""

import io
import json
import re
import shutil
import subprocess
import sys
import zipfile
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from campaigns.__main__ import CAMPAIGNS
from campaigns.campaign import Campaign, Replays, Table, Trial, run
from campaigns.mutations import TARGETS
from campaigns.page import update

REPLAYS = sorted((Path(__file__).parent / "campaigns" / "replays").glob("*.zip"))
TRIALS = {"annotations": 4, "mutations": 100, "rows": 30}


@pytest.fixture(scope="module")
def replays():
    with Replays(CAMPAIGNS) as replays:
        yield replays


@pytest.mark.nightly
@pytest.mark.parametrize("name", TRIALS)
def test_the_first_trials_hold(tmp_path, replays, name):
    table = run(replays.campaign(name), 1, 600, tmp_path, print, range(TRIALS[name]))
    assert table.broken == []
    assert table.tried.total() == TRIALS[name]


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["disk", "kills", "equality"])
def test_a_short_campaign_of_processes_holds(tmp_path, replays, name):
    pytest.importorskip("distributed")
    table = run(replays.campaign(name), 1, 6, tmp_path, print, count())
    assert table.broken == []


@pytest.mark.nightly
def test_campaigns_run_from_the_command_line(tmp_path):
    words = [sys.executable, "-m", "tests.campaigns", "rows", "--minutes", "0.01", "--seed", "1"]
    words += ["--jobs", "1", "--saved", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stdout + done.stderr
    assert "none broke a promise" in done.stdout


@pytest.mark.nightly
@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_what_was_broken_holds(path, replays):
    assert replays.replay(path) == ""


def replay(campaigns: dict[str, Campaign], path: Path) -> str:
    """Run one saved trial again, and return what it broke."""
    with Replays(campaigns) as replays:
        return replays.replay(path)


def unpacked(name: str, content: bytes) -> bytes:
    """Return a file with what its compressed columns hold."""
    if not name.endswith(".parquet"):
        return content
    table = pq.read_table(io.BytesIO(content))
    return content + repr((table.schema.metadata, table.to_pylist())).encode()


@pytest.mark.parametrize("path", REPLAYS, ids=lambda path: path.stem)
def test_a_replay_names_no_machine(path):
    with zipfile.ZipFile(path) as archive:
        contents = {name: unpacked(name, archive.read(name)) for name in archive.namelist()}
    places = re.compile(rb"/(?:tmp/(?!noisegen-campaigns/)|work/|root/|builds/)[^\s\"]*")
    assert {name: found for name, text in contents.items() if (found := places.findall(text))} == {}


@pytest.mark.nightly
def test_what_mutants_are_made_of_names_no_machine(replays):
    bench = replays.shared("mutations")
    contents = {
        str(path): unpacked(path.name, path.read_bytes())
        for path in bench.targets.rglob("*")
        if path.is_file() and path.name not in ("stdout", "stderr")
    }
    places = (str(bench.targets).encode(), str(Path(__file__).parents[1]).encode())
    assert len(contents) > 100
    assert [name for name, text in contents.items() if any(place in text for place in places)] == []


@pytest.mark.nightly
def test_what_is_whole_has_a_result(tmp_path):
    ended = {}
    with CAMPAIGNS["mutations"].begin() as bench:
        shutil.copytree(bench.targets, tmp_path / "in", ignore=shutil.ignore_patterns("bert"))
        for name, target in TARGETS.items():
            shutil.rmtree(tmp_path / "out", ignore_errors=True)
            ended[name] = bench.run(target.words.split(), tmp_path)
    assert {name: end for name, end in ended.items() if end.complaint() or end.code % 3} == {}
    assert [
        name for name, end in ended.items() if re.search(r"(?<![\d,])0 pairs", end.stderr)
    ] == []


def test_a_saved_trial_names_no_path_of_the_machine(tmp_path):
    trial = Trial("thrower", 1, 1, tmp_path)
    seen = f"in {tmp_path}/out: {__file__}: {sys.base_prefix}/lib/json.py"
    with zipfile.ZipFile(trial.save(tmp_path / "saved", seen)) as archive:
        case = json.loads(archive.read("case.json"))
    assert case["seen"] == f"in out: tests/{Path(__file__).name}: lib/json.py"


def thrower(limit: int) -> Campaign:
    """A campaign that throws a die, writes what it shows, and expects it to be small."""

    def make(_: None, trial: Trial) -> None:
        trial.label, trial.fault, trial.counts = "die", "thrown", {"throws": 1}
        (trial.folder / "in" / "die").write_text(str(trial.random().randint(1, 6)))

    def check(_: None, trial: Trial) -> None:
        shown = (trial.folder / "in" / "die").read_text()
        (trial.folder / "in" / "die").write_text("eaten")
        trial.expect(int(shown) <= limit, f"it shows {shown}")

    return Campaign("thrower", nullcontext, make, check)


def test_a_broken_promise_is_saved_with_its_inputs_and_replays(tmp_path):
    shown: list[str] = []
    table = run(thrower(5), 1, 60, tmp_path, shown.append, range(40))

    assert table.tried == {("die", "thrown"): 40}
    assert table.counts == {"throws": 40}
    assert {what for _, what, _ in table.broken} == {"it shows 6"}
    assert [line.partition(":")[0] for line in shown] == [str(path) for _, _, path in table.broken]
    assert list(table.lines())[2:] == [f"| die | **{len(table.broken)} of 40 broken** |"]
    assert table.summary() == f"40 trials, 40 throws: {len(table.broken)} broke a promise"
    path = table.broken[0][2]
    assert replay({"thrower": thrower(5)}, path) == "it shows 6"
    assert replay({"thrower": thrower(6)}, path) == ""


def test_a_trial_that_fails_itself_is_a_finding_and_the_next_one_runs(tmp_path):
    def check(_: None, trial: Trial) -> None:
        (trial.folder / "gone").read_text()

    campaign = Campaign("failing", nullcontext, lambda _, trial: None, check)
    table = run(campaign, 1, 60, tmp_path, str, range(3))

    assert len(table.broken) == 3
    assert "in the trial: FileNotFoundError" in table.broken[0][1]


def test_a_trial_without_input_files_replays(tmp_path):
    def check(_: None, trial: Trial) -> None:
        trial.expect(False, f"{trial.notes['rows']} rows")

    campaign = Campaign("no-files", nullcontext, lambda _, trial: trial.notes.update(rows=3), check)
    table = run(campaign, 1, 60, tmp_path, str, range(1))

    assert replay({"no-files": campaign}, table.broken[0][2]) == "3 rows"


def test_trials_are_the_same_for_a_seed(tmp_path):
    twice = [run(thrower(3), 7, 60, tmp_path / str(n), str, range(20)) for n in (0, 1)]

    assert [path.name for _, _, path in twice[0].broken] == [p.name for _, _, p in twice[1].broken]


def test_processes_share_the_trials_and_add_up_what_they_tried(tmp_path):
    half = [run(thrower(5), 1, 60, tmp_path, str, range(first, 40, 2)) for first in (0, 1)]
    half[0].add(half[1])

    assert half[0].summary() == run(thrower(5), 1, 60, tmp_path, str, range(40)).summary()


def test_figures_replace_those_in_the_page(tmp_path):
    page, table = tmp_path / "page.md", Table()
    page.write_text("# Kills\n<!-- figures of kills -->\nold\n<!-- end of kills -->\nText.\n")
    for command in ("train", "augment"):
        table.tried[command, "SIGKILL"] += 3
        update(page, "kills", "seed 1, 2 minutes", table)

    lines = page.read_text().splitlines()
    assert lines[2].startswith("6 trials: none broke a promise (seed 1, 2 minutes; 2")
    assert lines[4:] == [
        "| | SIGKILL |",
        "|---|---:|",
        "| augment | 3 |",
        "| train | 3 |",
        "<!-- end of kills -->",
        "Text.",
    ]
    with pytest.raises(SystemExit, match="no place for the figures of rows"):
        update(page, "rows", "seed 1", table)


def test_every_finding_of_the_page_has_its_tests():
    tests = Path(__file__).parent
    page = (tests.parent / "docs" / "development" / "reliability.md").read_text("utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    source = "".join(path.read_text("utf-8") for path in tests.rglob("test_*.py"))
    assert named
    assert named - set(re.findall(r"^def (test_\w+)\(", source, re.MULTILINE)) == set()
