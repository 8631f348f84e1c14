"""Kills: a command ended at a random moment by a signal, and run again until it is done.

What it wrote is then, byte for byte, what an undisturbed run wrote; a review has every answer that
its server acknowledged. On Dask, workers are killed too.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.mining_inputs import CLEAN, M2, NOISY, dump
from runs import members

from campaigns import forks
from campaigns.answers import REVIEW, check_answers, review_file
from campaigns.campaign import Campaign, Trial
from campaigns.cluster import Cluster, running
from noisegen.runs.lock import STATE

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
WORKER = "a worker"  # of a Dask cluster is killed
GIVEN_UP = 60.0  # seconds after which a process that was told to end has hung
STARTING = 0.25  # seconds in which Python only imports
ROWS = 4_000
_AUGMENT = "augment INPUTS/text.txt -o out --recipe ugc --rows-per-shard 400 --edits"
COMMANDS = {  # that `--resume` continues, and what goes on without it
    "augment, 1 worker": f"{_AUGMENT} --workers 1",
    "augment, 2 workers": f"{_AUGMENT} --workers 2",
    "augment --part": f"{_AUGMENT} --workers 1 --part 1/2",
    "augment, one file": "augment INPUTS/text.txt -o out/noisy.jsonl --recipe ugc",
    "prepare": "prepare INPUTS/text.txt -o out --workers 1 --identify no "
    "--rows-per-shard 300 --duplicates near",
    "mine-wiki": "mine-wiki INPUTS/wiki -o out --workers 1 --profile all",
    "mine-lang8": "mine-lang8 INPUTS/essays.m2 -o out --workers 1 --profile all",
    "mine-pairs": "mine-pairs INPUTS/pairs.tsv -o out --workers 1 --profile all",
}
ALL = COMMANDS | {
    "augment, Dask": f"{_AUGMENT} --executor CLUSTER",
    "learn": "learn INPUTS/pairs.tsv -o out/profile",
    "train": "train INPUTS/few.tsv -o out -q --teacher INPUTS/bert --recipe stored --steps 12 "
    "--force-small --set validate_every=2",
    REVIEW: "review serve out/review.sqlite --port 0",
}
AT_ONCE = ("augment, one file", "learn")  # has no --resume
SLOW = ("augment, 2 workers", "augment, Dask", "train")  # drawn a third as often


@dataclass(frozen=True)
class Whole:
    """What undisturbed runs wrote, their records, and how long they took."""

    inputs: Path
    outputs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    records: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    cluster: Cluster | None = None

    def words(self, command: str) -> list[str]:
        """Return a command line with the paths of these inputs."""
        executor = self.cluster.executor if self.cluster else ""
        return command.replace("INPUTS", str(self.inputs)).replace("CLUSTER", executor).split()


@contextmanager
def begin() -> Iterator[Whole]:
    """Run what disk tries too, in processes that import the program."""
    with TemporaryDirectory(prefix="whole-") as name:
        whole = Whole(_inputs(Path(name) / "in"))
        for command, words in COMMANDS.items():
            folder = _folder(Path(name) / command)
            process = start(whole.words(words), folder)
            _undisturbed(whole, command, process, folder)
        yield whole


@contextmanager
def begin_forks() -> Iterator[Whole]:
    """Run all commands, forked from this process, on a Dask cluster too."""
    forks.load()
    with TemporaryDirectory(prefix="whole-") as name, running() as cluster:
        whole = Whole(_inputs(Path(name) / "in"), cluster=cluster)
        review_file(whole.inputs)
        _bert(whole.inputs / "bert")
        for command, words in ALL.items():
            folder = _folder(Path(name) / command)
            if command == REVIEW:
                whole.seconds[command] = 1.0
            else:
                _undisturbed(whole, command, forks.fork(whole.words(words), folder), folder)
        yield whole


def _folder(path: Path) -> Path:
    (path / "out").mkdir(parents=True)
    return path


def _inputs(folder: Path) -> Path:
    (folder / "wiki").mkdir(parents=True)
    lines = [f"{NOISY} {number} we don't know because people say so." for number in range(ROWS)]
    (folder / "text.txt").write_text("\n".join(lines) + "\n")
    pairs = ["noisy\tclean", *(f"{NOISY} {number}\t{CLEAN} {number}" for number in range(ROWS))]
    (folder / "pairs.tsv").write_text("\n".join(pairs) + "\n")
    (folder / "few.tsv").write_text("\n".join(pairs[:40]) + "\n")
    (folder / "essays.m2").write_text(f"{M2}\n" * (ROWS // 2))
    for number in range(8):
        texts = [f"{text} {n}" for n in range(40) for text in (NOISY, CLEAN)]
        (folder / "wiki" / f"enwiki-{number}.xml").write_text(dump(*texts))
    return folder


def _bert(folder: Path) -> None:
    """Write the model that trains, in a process of its own: one that computed cannot be forked."""
    code = "import sys; from pathlib import Path; from models import bert_folder; "
    code += "bert_folder(Path(sys.argv[1]))"
    folder.mkdir()
    subprocess.run([sys.executable, "-c", code, folder], check=True, env=forks.environment())


def _undisturbed(
    whole: Whole, command: str, process: "subprocess.Popen[bytes] | forks.Forked", folder: Path
) -> None:
    began = time.monotonic()
    assert process.wait() == 0, (folder / "stderr").read_text()
    whole.seconds[command] = time.monotonic() - began
    whole.outputs[command] = files_of(folder / "out")
    whole.records[command] = records_of(folder / "out")


def make(whole: Whole, trial: Trial) -> None:
    """Draw a command, and the moments and signals of up to three kills."""
    dice = trial.random()
    command = dice.choices(list(ALL), [1 if name in SLOW else 3 for name in ALL])[0]
    names = (*SIGNALS, WORKER) if "CLUSTER" in ALL[command] else SIGNALS
    until = max(whole.seconds[command] * 1.05, forks.BEGINNING + 0.1)
    kills = [
        [dice.choice(names), dice.uniform(forks.BEGINNING, until), dice.random() < 0.5]
        for _ in range(dice.choice((1, 1, 1, 2, 3)))
    ]
    trial.words, trial.label, trial.fault = ALL[command].split(), command, kills[0][0]
    trial.notes = {"kills": kills}


def check(whole: Whole, trial: Trial) -> None:
    """Kill and resume, then expect the files of the undisturbed run."""
    (trial.folder / "out").mkdir()
    if trial.label == REVIEW:
        check_answers(trial, whole.inputs, killed)
        return
    words, has_begun = whole.words(" ".join(trial.words)), False
    for name, moment, whole_group in trial.notes["kills"]:
        process = forks.fork([*words, *_again(trial, has_begun)], trial.folder)
        if name == WORKER:
            code = _without_worker(whole, trial, process, moment)
        else:
            code = killed(trial, process, name, moment, whole_group)
        has_begun = any((trial.folder / "out").glob("*"))  # or it is about to be replaced
        if code == 0:
            break
    else:
        code = forks.fork([*words, *_again(trial, has_begun)], trial.folder).wait(GIVEN_UP)
        trial.expect(code == 0, f"resumed: exit {code}: {error_of(trial)}")
    made, wanted = files_of(trial.folder / "out"), whole.outputs[trial.label]
    if trial.label == "train":
        made, wanted = _weights(made), _weights(wanted)
    trial.expect(made.keys() == wanted.keys(), f"files {sorted(made.keys() ^ wanted.keys())}")
    other = [file for file in wanted if made[file] != wanted[file]]
    trial.expect(not other, f"other bytes in {other}")


def _weights(files: dict[str, bytes]) -> dict[str, bytes]:
    """Return the last weights: the log tells times, an interrupt keeps a checkpoint of its own."""
    last = max((file for file in files if "step-" in file), default="").rpartition("/")[0]
    return {
        file: content
        for file, content in files.items()
        if file.endswith(".safetensors") and ("step-" not in file or file.startswith(last))
    }


def _again(trial: Trial, has_begun: bool) -> list[str]:
    """Return the option that goes on with what a killed run left."""
    if not has_begun or "--part" in trial.words:
        return []
    has_checkpoint = any((trial.folder / "out").glob("checkpoints/step-*"))
    is_resumed = has_checkpoint if trial.label == "train" else trial.label not in AT_ONCE
    return ["--resume"] if is_resumed else ["--force"]


def killed(trial: Trial, process: forks.Forked, name: str, moment: float, whole_group: bool) -> int:
    """Send a signal at a moment, to all processes or the first; return the exit code."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(moment)
    number = signal.Signals[name]
    (os.killpg if whole_group else os.kill)(process.pid, number)
    trial.counts["kills"] = trial.counts.get("kills", 0) + 1
    try:
        code = process.wait(GIVEN_UP)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        trial.expect(False, f"{name}: did not end within {GIVEN_UP:g} s")
    end = time.monotonic() + GIVEN_UP
    while left := members(process.pid):
        trial.expect(time.monotonic() < end, f"{name}: processes {left} live on")
        time.sleep(0.01)
    allowed = (0, -signal.SIGKILL) if name == "SIGKILL" else (0, 130, -number)
    trial.expect(code in allowed, f"{name}: exit {code}: {error_of(trial)}")
    trial.expect("Traceback" not in (error := error_of(trial)), f"{name}: {error}")
    return code


def _without_worker(whole: Whole, trial: Trial, process: forks.Forked, moment: float) -> int:
    """Kill a busy worker of the cluster at a moment; the command is to end as if it had not."""
    with suppress(subprocess.TimeoutExpired):
        return process.wait(moment)
    assert whole.cluster
    trial.counts["kills"] = trial.counts.get("kills", 0) + whole.cluster.kill_a_worker()
    code = process.wait(GIVEN_UP)
    trial.expect(code == 0, f"a worker died: exit {code}: {error_of(trial)}")
    return code


def start(
    words: list[str], folder: Path, first: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start the program in a folder and in a group of its own, after `first` in its process."""
    with (folder / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "noisegen", *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            start_new_session=True,
            preexec_fn=first,
        )


def error_of(trial: Trial) -> str:
    return (trial.folder / "stderr").read_text("utf-8", "replace").strip()[-600:]


def files_of(out: Path) -> dict[str, bytes]:
    """Return what a run wrote, by the names of its files; its last command may say --resume.

    The records of the run are left out: they name the processes and times of writing.
    """
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file()}
    return {
        name: files[name].read_bytes().replace(b" --resume", b"")
        for name in sorted(files)
        if STATE not in Path(name).parts
    }


def records_of(out: Path) -> dict[str, bytes]:
    """Return the records of a run, by the names of their files."""
    return {str(path.relative_to(out)): path.read_bytes() for path in (out / STATE).glob("*")}


KILLS = Campaign("kills", begin_forks, make, check)
