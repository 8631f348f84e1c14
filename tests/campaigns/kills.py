"""Kills: a command ended at a random moment by a signal, and run again until it is done.

What it wrote is then, byte for byte, what an undisturbed run wrote.
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

from cli.mining_inputs import CLEAN, NOISY, dump
from runs import members

from campaigns.campaign import Campaign, Trial

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")
GIVEN_UP = 60.0  # seconds after which a process that was told to end has hung
STARTING = 0.25  # seconds in which Python only imports
_AUGMENT = "augment INPUTS/text.txt -o out --recipe ugc --rows-per-shard 400 --edits"
COMMANDS = {  # by their names, with what `--resume` needs to go on
    "augment, 1 worker": f"{_AUGMENT} --workers 1",
    "augment, 2 workers": f"{_AUGMENT} --workers 2",
    "augment --part": f"{_AUGMENT} --workers 1 --part 1/2",
    "augment, one file": "augment INPUTS/text.txt -o out/noisy.jsonl --recipe ugc",
    "prepare": "prepare INPUTS/text.txt -o out --workers 1 --identify no "
               "--rows-per-shard 300 --duplicates near",
    "mine-wiki": "mine-wiki INPUTS/wiki -o out --workers 1 --profile all",
    "mine-pairs": "mine-pairs INPUTS/pairs.tsv -o out --workers 1 --profile all",
}  # fmt: skip


@dataclass(frozen=True)
class Whole:
    """What undisturbed runs wrote, and how long they took."""

    inputs: Path
    outputs: dict[str, dict[str, bytes]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@contextmanager
def begin() -> Iterator[Whole]:
    with TemporaryDirectory(prefix="whole-") as name:
        whole = Whole(Path(name) / "in")
        (whole.inputs / "wiki").mkdir(parents=True)
        lines = [
            f"{NOISY} {number} we don't know because people say so." for number in range(4_000)
        ]
        (whole.inputs / "text.txt").write_text("\n".join(lines) + "\n")
        pairs = [f"{NOISY} {number}\t{CLEAN} {number}" for number in range(4_000)]
        (whole.inputs / "pairs.tsv").write_text("noisy\tclean\n" + "\n".join(pairs) + "\n")
        for number in range(8):
            texts = [f"{text} {n}" for n in range(40) for text in (NOISY, CLEAN)]
            (whole.inputs / "wiki" / f"enwiki-{number}.xml").write_text(dump(*texts))
        for command, words in COMMANDS.items():
            folder = Path(name) / command
            (folder / "out").mkdir(parents=True)
            began = time.monotonic()
            process = start(words.replace("INPUTS", str(whole.inputs)).split(), folder)
            assert process.wait() == 0, (folder / "stderr").read_text()
            whole.seconds[command] = time.monotonic() - began
            whole.outputs[command] = files_of(folder / "out")
        yield whole


def make(whole: Whole, trial: Trial) -> None:
    """Draw a command, and the moments and signals of up to three kills."""
    dice = trial.random()
    command = dice.choice(list(COMMANDS))
    until = max(whole.seconds[command] * 1.05, STARTING + 0.1)
    kills = [[dice.choice(SIGNALS), dice.uniform(STARTING, until), dice.random() < 0.5]
             for _ in range(dice.choice((1, 1, 1, 2, 3)))]  # fmt: skip
    trial.words, trial.label = COMMANDS[command].split(), f"{command}, {kills[0][0]}"
    trial.notes = {"command": command, "kills": kills}


def check(whole: Whole, trial: Trial) -> None:
    """Kill and resume, then expect the files of the undisturbed run."""
    (trial.folder / "out").mkdir()
    words = [word.replace("INPUTS", str(whole.inputs)) for word in trial.words]
    is_run = trial.notes["command"] != "augment, one file"
    has_begun = False
    for name, moment, whole_group in trial.notes["kills"]:
        code = _killed(
            [*words, *_again(trial, is_run, has_begun)], trial, name, moment, whole_group
        )
        has_begun = any((trial.folder / "out").iterdir())
        if code == 0:
            break
    else:
        process = start([*words, *_again(trial, is_run, has_begun)], trial.folder)
        code = process.wait(GIVEN_UP)
        trial.expect(code == 0, f"resumed: exit {code}: {error_of(trial)}")
    made, wanted = files_of(trial.folder / "out"), whole.outputs[trial.notes["command"]]
    trial.expect(made.keys() == wanted.keys(), f"files {sorted(made.keys() ^ wanted.keys())}")
    other = [file for file in wanted if made[file] != wanted[file]]
    trial.expect(not other, f"other bytes in {other}")


def _again(trial: Trial, is_run: bool, has_begun: bool) -> list[str]:
    """Return the option that goes on with what a killed run left."""
    if not has_begun or "--part" in trial.words:
        return []
    return ["--resume"] if is_run else ["--force"]


def _killed(words: list[str], trial: Trial, name: str, moment: float, whole_group: bool) -> int:
    """Run, send a signal at a moment, to all processes or the first, and return the exit code."""
    process = start(words, trial.folder)
    with suppress(subprocess.TimeoutExpired):
        return process.wait(moment)
    number = signal.Signals[name]
    with suppress(ProcessLookupError):
        (os.killpg if whole_group else os.kill)(process.pid, number)
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


def start(
    words: list[str], folder: Path, first: Callable[[], None] | None = None
) -> subprocess.Popen[bytes]:
    """Start the program in a folder and in a group of its own, after `first` in its process."""
    with (folder / "stderr").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "noisegen", *words], cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
            preexec_fn=first,
        )  # fmt: skip


def error_of(trial: Trial) -> str:
    return (trial.folder / "stderr").read_text("utf-8", "replace").strip()[-600:]


def files_of(out: Path) -> dict[str, bytes]:
    """Return what a run wrote, by the names of its files; its last command may say --resume."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {
        str(path.relative_to(out)): path.read_bytes().replace(b" --resume", b"") for path in files
    }


KILLS = Campaign("kills", begin, make, check)
