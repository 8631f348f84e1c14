"""Disk: it is full, read-only, damaged; the folder is somebody else's, another run's, or vanishes.

The command ends with a result or one line, and leaves nothing half-written; what is not its own
stays as it is; run again, it makes what an undisturbed run made.
"""

import os
import resource
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from campaigns import forks
from campaigns.answers import REVIEW
from campaigns.campaign import Campaign, Trial
from campaigns.kills import ALL, AT_ONCE, Whole, error_of, files_of
from campaigns.kills import _bert as write_bert
from campaigns.kills import _inputs as write_inputs
from campaigns.kills import _undisturbed as run_undisturbed

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
FOREIGN = {  # names that noisegen writes, held by something else
    "README.md": b"# My thesis, made with noisegen 0.1\n",
    "README.md.bak": b"old\n",
    "manifest.json": b'{"name": "app"}\n',
    "manifest.json.orig": b"{}\n",
    "profile.json": b'{"user": "me"}\n',
    "config.yaml": b"a: 1\n",
    "words.parquet": POINTER,
    "dictionary.parquet": POINTER,
    "dictionary.tsv": b"lang\tword\n",
    "part-00000.parquet": POINTER,
    "data/part-00000.parquet": POINTER,
    "data/part-00031.parquet": POINTER,
    "data/part-00001.parquet": b"PAR1 not really PAR1",
    "pairs/part-00000.parquet": b"mine\n",
    "words/part-00000.parquet": POINTER,
    "notes.tmp": b"a note\n",
    "data/README.md.1.tmp": b"x",
    "README.md.final.tmp": b"x",
    "words.0.npy": b"numbers",
    "work/notes.txt": b"mine\n",
    "log.jsonl": b"{}\n",
    "student/model.safetensors": b"weights",
    "metrics.json": b"{}\n",
    "report.html": b"<p>mine</p>",
    "results.json": b"[]\n",
    "metrics.csv": b"a,b\n",
}
COMMANDS = {name: words for name, words in ALL.items() if name not in ("augment, Dask", REVIEW)}
COMMANDS |= {
    "learn": "learn INPUTS/pairs.tsv -o out",
    "evaluate": "evaluate INPUTS/bert -o out --pairs INPUTS/few.tsv -q",
}
SLOW = ("augment, 2 workers", "train", "evaluate")  # drawn less often
SECONDS = 60.0


@contextmanager
def begin() -> Iterator[Whole]:
    """Run all commands, forked from this process, as they are without a fault."""
    forks.load()
    with TemporaryDirectory(prefix="whole-") as name:
        whole = Whole(write_inputs(Path(name) / "in"))
        write_bert(whole.inputs / "bert")
        for command, words in COMMANDS.items():
            (folder := Path(name) / command / "out").mkdir(parents=True)
            process = forks.fork(whole.words(words), folder.parent)
            run_undisturbed(whole, command, process, folder.parent)
        yield whole


def make(whole: Whole, trial: Trial) -> None:
    """Draw a fault and a command."""
    dice = trial.random()
    trial.fault = dice.choice(list(FAULTS))
    names = [name for name in COMMANDS if trial.fault != "rot" or name not in (*AT_ONCE, *SLOW)]
    trial.label = dice.choices(names, [1 if name in SLOW else 5 for name in names])[0]
    trial.words = COMMANDS[trial.label].split()
    trial.notes = {
        "names": dice.sample(list(FOREIGN), dice.randint(1, 4)),
        "bytes": dice.choice((1_000, 4_000, 10_000, 20_000, 60_000)),
        "moment": dice.uniform(forks.BEGINNING, whole.seconds[trial.label]),
        "more": dice.choice((["--force"], ["--resume"], [])),
        "change": dice.choice(list(CHANGES)),
        "place": dice.random(),
    }


def check(whole: Whole, trial: Trial) -> None:
    """Run into the fault."""
    (trial.folder / "out").mkdir()
    FAULTS[trial.fault](whole, trial)


def _words(whole: Whole, trial: Trial, *more: str) -> list[str]:
    return [*whole.words(" ".join(trial.words)), *more]


def _again(trial: Trial) -> list[str]:
    """Return the option that goes on with what is in the folder, if it is still there."""
    out = trial.folder / "out"
    if "--part" in trial.words or not (out.is_dir() and any(out.iterdir())):
        return []
    has_checkpoint = any(out.glob("checkpoints/step-*"))
    is_resumed = has_checkpoint if trial.label == "train" else trial.label not in AT_ONCE
    return ["--resume"] if is_resumed and trial.label != "evaluate" else ["--force"]


def _ended(trial: Trial, process: forks.Forked) -> int:
    """Wait for a run, which may end with a result or one line, and leaves no lock."""
    try:
        code = process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        trial.expect(False, f"did not end within {SECONDS:g} s")
    error = error_of(trial)
    trial.expect("Traceback" not in error and "Exception ignored" not in error, error)
    trial.expect(code in (0, 1, 2, 3), f"exit {code}: {error}")
    lines = [line for line in error.splitlines() if line.lower().startswith("error:")]
    trial.expect(code in (0, 3) or len(lines) == 1, f"exit {code} without one line: {error}")
    return code


def _expect_nothing_left(trial: Trial) -> None:
    out = trial.folder / "out"
    left = [str(path) for path in out.rglob("*") if path.suffix in (".tmp", ".lock")]
    trial.expect(not left, f"left {left}")


def _expect_whole(whole: Whole, trial: Trial) -> None:
    """Run again, if need be, and expect the files of an undisturbed run."""
    code = _ended(trial, forks.fork(_words(whole, trial, *_again(trial)), trial.folder))
    trial.expect(code == 0, f"run again: exit {code}: {error_of(trial)}")
    wanted, out = whole.outputs[trial.label], trial.folder / "out"
    made = {name: content.replace(b" --force", b"") for name, content in files_of(out).items()}
    trial.expect(made.keys() == wanted.keys(), f"files {sorted(made.keys() ^ wanted.keys())}")
    is_timed = trial.label in ("train", "evaluate")  # what they write says how long they took
    other = [
        name
        for name in wanted
        if made[name] != wanted[name] and (not is_timed or name.endswith((".safetensors", ".csv")))
    ]
    trial.expect(not other, f"other bytes in {other}: {error_of(trial)}")


def _full_disk(whole: Whole, trial: Trial) -> None:
    limit = trial.notes["bytes"]

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    code = _ended(trial, forks.fork(_words(whole, trial), trial.folder, limited))
    _expect_nothing_left(trial)
    if code:
        _expect_whole(whole, trial)


@contextmanager
def _mounted(folder: Path, options: str) -> Iterator[bool]:
    """Mount a disk at a folder; tell whether that is allowed here."""
    words = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    is_mounted = os.geteuid() == 0 and not subprocess.run(words, capture_output=True).returncode
    try:
        yield is_mounted
    finally:
        if is_mounted:
            subprocess.run(["umount", "-l", str(folder)], check=True)


def _small_disk(whole: Whole, trial: Trial) -> None:
    out = trial.folder / "out"
    with _mounted(out, f"size={trial.notes['bytes'] * 4}") as is_mounted:
        if not is_mounted:
            return
        code = _ended(trial, forks.fork(_words(whole, trial), trial.folder))
        _expect_nothing_left(trial)
        if code:
            subprocess.run(["mount", "-o", "remount,size=100m", str(out)], check=True)
            _expect_whole(whole, trial)


def _read_only(whole: Whole, trial: Trial) -> None:
    with _mounted(trial.folder / "out", "ro,size=1m") as is_mounted:
        if is_mounted:
            code = _ended(trial, forks.fork(_words(whole, trial), trial.folder))
            trial.expect("Read-only file system" in error_of(trial), f"{code}: {error_of(trial)}")


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
    "removed": Path.unlink,
    "truncated": _truncated,
    "grown": _grown,
    "replaced": _replaced,
}


def _changing_input(whole: Whole, trial: Trial) -> None:
    inputs = trial.folder / "changing"
    shutil.copytree(whole.inputs, inputs)
    words = [word.replace(str(whole.inputs), str(inputs)) for word in _words(whole, trial)]
    process = forks.fork(words, trial.folder)
    time.sleep(trial.notes["moment"])
    for path in sorted(path for path in inputs.rglob("*") if path.is_file()):
        CHANGES[trial.notes["change"]](path)
    _ended(trial, process)
    _expect_nothing_left(trial)


def _foreign_files(whole: Whole, trial: Trial) -> None:
    _among(whole, trial, {})


def _foreign_beside(whole: Whole, trial: Trial) -> None:
    """Put foreign files beside a run that ended, or one that lacks its last files."""
    outputs = whole.outputs[trial.label]
    folders = ("data", "student") if trial.label == "train" else ()  # its own with all in them
    trial.notes["names"] = [
        name
        for name in trial.notes["names"]
        if name not in outputs and not name.startswith(folders)
    ]
    kept = len(outputs) if trial.notes["place"] < 0.5 else len(outputs) * trial.notes["place"]
    run = dict(sorted(outputs.items(), reverse=True)[: round(kept)])
    _among(whole, trial, run | whole.records[trial.label])


def _among(whole: Whole, trial: Trial, run: dict[str, bytes]) -> None:
    out, theirs = trial.folder / "out", {name: FOREIGN[name] for name in trial.notes["names"]}
    for name, content in (run | theirs).items():
        (out / name).parent.mkdir(exist_ok=True, parents=True)
        (out / name).write_bytes(content)
    takes_resume = trial.label not in (*AT_ONCE, "evaluate")
    more = [] if "--part" in trial.words else trial.notes["more"]
    more = more if takes_resume or more != ["--resume"] else []
    _ended(trial, forks.fork(_words(whole, trial, *more), trial.folder))
    for name, content in theirs.items():
        now = (out / name).read_bytes() if (out / name).exists() else None
        trial.expect(
            now == content,
            f"{name} was {'removed' if now is None else 'overwritten'} by {trial.label} {more}",
        )


def _vanishing_folder(whole: Whole, trial: Trial) -> None:
    process = forks.fork(_words(whole, trial), trial.folder)
    time.sleep(trial.notes["moment"])
    with suppress(OSError):
        shutil.rmtree(trial.folder / "out")
    _ended(trial, process)


def _vanishing_shard(whole: Whole, trial: Trial) -> None:
    process = forks.fork(_words(whole, trial), trial.folder)
    time.sleep(trial.notes["moment"])
    for path in [*(trial.folder / "out").glob("*/part-*.parquet")][:1]:
        path.unlink(missing_ok=True)
    if _ended(trial, process):
        _expect_whole(whole, trial)


def _rot(whole: Whole, trial: Trial) -> None:
    """Change a byte of a finished run that was copied."""
    out, outputs = trial.folder / "out", whole.outputs[trial.label]
    for name, content in (outputs | whole.records[trial.label]).items():
        (out / name).parent.mkdir(exist_ok=True)
        (out / name).write_bytes(content)
    names = [name for name in sorted(outputs) if name.endswith((".parquet", ".tsv"))]
    path = out / names[int(trial.notes["place"] * len(names))]
    content = bytearray(path.read_bytes())
    content[int(trial.notes["place"] * len(content))] ^= 1
    time.sleep(0.02)
    path.write_bytes(content)
    _expect_whole(whole, trial)


def _two_at_once(whole: Whole, trial: Trial) -> None:
    other = trial.folder / "other"
    other.mkdir()
    processes = [forks.fork(_words(whole, trial), trial.folder)]
    time.sleep(trial.notes["moment"] / 4)
    (other / "out").symlink_to(trial.folder / "out")
    more = trial.notes["more"] if trial.label not in (*AT_ONCE, "evaluate") else []
    more = [] if "--part" in trial.words else more
    processes.append(forks.fork(_words(whole, trial, *more), other))
    codes = [process.wait(SECONDS) for process in processes]
    errors = [error_of(trial), (other / "stderr").read_text("utf-8", "replace")]
    trial.expect("Traceback" not in "".join(errors), "\n".join(errors)[-600:])
    trial.expect(0 in codes, f"neither run ended: {codes}, {errors}")
    _expect_nothing_left(trial)
    _expect_whole(whole, trial)


FAULTS: dict[str, Callable[[Whole, Trial], Any]] = {
    "full disk": _full_disk,
    "small disk": _small_disk,
    "read-only": _read_only,
    "changing input": _changing_input,
    "foreign files": _foreign_files,
    "foreign beside a run": _foreign_beside,
    "vanishing folder": _vanishing_folder,
    "vanishing shard": _vanishing_shard,
    "rot": _rot,
    "two runs at once": _two_at_once,
}
DISK = Campaign("disk", begin, make, check)
