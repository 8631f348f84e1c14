"""Disk: it is full, the input changes under the run, the folder is somebody else's or vanishes.

The command ends with one line and leaves nothing half-written; what is not its own stays as it is;
run again, it makes what an undisturbed run made.
"""

import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from campaigns.campaign import Campaign, Trial
from campaigns.kills import COMMANDS, STARTING, Whole, error_of, files_of, start
from campaigns.kills import begin as whole_runs

FOREIGN = {  # names that noisegen writes, held by something else
    "README.md": b"# My thesis\n", "README.md.bak": b"old\n", "manifest.json": b'{"name": "app"}\n',
    "manifest.json.orig": b"{}\n", "profile.json": b'{"user": "me"}\n', "config.yaml": b"a: 1\n",
    "dictionary.parquet": b"version https://git-lfs.github.com/spec/v1\n",
    "part-00000.parquet": b"version https://git-lfs.github.com/spec/v1\n",
    "data/part-00000.parquet": b"version https://git-lfs.github.com/spec/v1\n",
    "data/part-00001.parquet": b"PAR1 not really PAR1", "pairs/part-00000.parquet": b"mine\n",
    "notes.tmp": b"a note\n", "data/README.md.1.tmp": b"x", "words.0.npy": b"numbers",
    "student/model.safetensors": b"weights", "log.jsonl": b"{}\n",
}  # fmt: skip
SECONDS = 60.0


def make(whole: Whole, trial: Trial) -> None:
    """Draw a fault and a command."""
    dice = trial.random()
    fault, command = dice.choice(list(FAULTS)), dice.choice(list(COMMANDS))
    names = dice.sample(list(FOREIGN), dice.randint(1, 4))
    trial.words, trial.label = COMMANDS[command].split(), f"{fault}: {command}"
    trial.notes = {
        "command": command,
        "fault": fault,
        "names": names,
        "bytes": dice.choice((1_000, 4_000, 10_000, 20_000, 60_000)),
        "moment": dice.uniform(STARTING, whole.seconds[command]),
        "more": dice.choice((["--force"], ["--resume"], [])),
        "change": dice.choice(list(CHANGES)),
    }


def check(whole: Whole, trial: Trial) -> None:
    """Run into the fault."""
    (trial.folder / "out").mkdir()
    FAULTS[trial.notes["fault"]](whole, trial)


def _words(whole: Whole, trial: Trial, inputs: Path | None = None) -> list[str]:
    return [word.replace("INPUTS", str(inputs or whole.inputs)) for word in trial.words]


def _ended(trial: Trial, process: subprocess.Popen[bytes]) -> int:
    """Wait for a run, which may end with a result or one line."""
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        trial.expect(False, f"did not end within {SECONDS:g} s")
    error = error_of(trial)
    trial.expect("Traceback" not in error and "Exception ignored" not in error, error)
    trial.expect(code in (0, 1, 2, 3), f"exit {code}: {error}")
    lines = [line for line in error.splitlines() if line.lower().startswith("error:")]
    trial.expect(code in (0, 3) or len(lines) == 1, f"exit {code} without one line: {error}")
    return code


def _full_disk(whole: Whole, trial: Trial) -> None:
    limit = trial.notes["bytes"]

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    words = _words(whole, trial)
    code = _ended(trial, start(words, trial.folder, limited))
    left = [str(path) for path in (trial.folder / "out").rglob("*.tmp")]
    trial.expect(not left or code == 0, f"left {left}")
    if code == 0:
        return
    begun = any((trial.folder / "out").iterdir())
    again = ["--resume"] if begun and "--part" not in words else []
    _ended(trial, start([*words, *again], trial.folder))
    _expect_whole(whole, trial)


def _expect_whole(whole: Whole, trial: Trial) -> None:
    made, wanted = files_of(trial.folder / "out"), whole.outputs[trial.notes["command"]]
    trial.expect(made.keys() == wanted.keys(), f"files {sorted(made.keys() ^ wanted.keys())}")
    other = [file for file in wanted if made[file] != wanted[file]]
    trial.expect(not other, f"other bytes in {other}: {error_of(trial)}")


def _truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _grown(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes()[:10_000])


def _replaced(path: Path) -> None:
    (new := path.with_name("new")).write_bytes(path.read_bytes()[::-1])
    new.rename(path)


CHANGES: dict[str, Callable[[Path], None]] = {
    "removed": Path.unlink, "truncated": _truncated, "grown": _grown, "replaced": _replaced,
}  # fmt: skip


def _changing_input(whole: Whole, trial: Trial) -> None:
    inputs = trial.folder / "changing"
    shutil.copytree(whole.inputs, inputs)
    process = start(_words(whole, trial, inputs), trial.folder)
    time.sleep(trial.notes["moment"])
    for path in sorted(path for path in inputs.rglob("*") if path.is_file()):
        CHANGES[trial.notes["change"]](path)
    _ended(trial, process)
    left = [path.name for path in (trial.folder / "out").rglob("*.tmp")]
    trial.expect(not left, f"left {left}")


def _foreign_files(whole: Whole, trial: Trial) -> None:
    out = trial.folder / "out"
    theirs = {name: FOREIGN[name] for name in trial.notes["names"]}
    for name, content in theirs.items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(content)
    more = [] if "--part" in trial.words else trial.notes["more"]
    if trial.notes["command"] == "augment, one file" and more == ["--resume"]:
        more = []
    _ended(trial, start([*_words(whole, trial), *more], trial.folder))
    for name, content in theirs.items():
        now = (out / name).read_bytes() if (out / name).exists() else None
        trial.expect(now == content, f"{name} was {'removed' if now is None else 'overwritten'} "
                                     f"by {trial.notes['command']} {more}")  # fmt: skip


def _vanishing_folder(whole: Whole, trial: Trial) -> None:
    process = start(_words(whole, trial), trial.folder)
    time.sleep(trial.notes["moment"])
    with suppress(OSError):
        shutil.rmtree(trial.folder / "out")
    _ended(trial, process)


def _two_at_once(whole: Whole, trial: Trial) -> None:
    other = trial.folder / "other"
    other.mkdir()
    processes = [start(_words(whole, trial), trial.folder)]
    time.sleep(trial.notes["moment"] / 4)
    (other / "out").symlink_to(trial.folder / "out")
    processes.append(start(_words(whole, trial), other))
    codes = [process.wait(SECONDS) for process in processes]
    errors = [error_of(trial), (other / "stderr").read_text("utf-8", "replace")]
    trial.expect("Traceback" not in "".join(errors), "\n".join(errors)[-600:])
    trial.expect(0 in codes, f"neither run ended: {codes}, {errors}")
    _expect_whole(whole, trial)


FAULTS: dict[str, Callable[[Whole, Trial], Any]] = {
    "full disk": _full_disk, "changing input": _changing_input, "foreign files": _foreign_files,
    "vanishing folder": _vanishing_folder, "two runs at once": _two_at_once,
}  # fmt: skip
DISK = Campaign("disk", whole_runs, make, check)
