"""The program as a process that runs command after command, watched from outside.

It starts once, since importing it takes longer than most of the commands. One that hangs or takes
too much memory is killed, and the next command starts another.
"""

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SECONDS = 60.0
MEMORY = 2 << 30
COMMANDS = 300  # after which the process is started anew: no trial is the sum of all before it


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code, or None and the fault for which it was killed."""

    code: int | None
    stdout: str
    stderr: str
    seconds: float
    peak: int  # bytes of memory above what the process had before
    fault: str = ""

    def complaint(self) -> str:
        """Return what no command may do: fault, traceback, no error line or several; else ''."""
        lines = [line for line in self.stderr.splitlines() if line.startswith(("error:", "Error:"))]
        if self.fault:
            return self.fault
        if "Traceback" in self.stderr or self.code not in (0, 1, 2, 3):
            return f"exit {self.code}: {self.stderr.strip()[-400:]}"
        if self.code in (1, 2) and len(lines) != 1:
            return f"exit {self.code} without one line: {self.stderr.strip()[-400:]!r}"
        if any(len(line) > 2_000 for line in lines):
            return f"a line of {max(map(len, lines)):,} characters"
        if any(sign in self.stderr + self.stdout for sign in "\x1b\x07\x00"):
            return "control characters reach the terminal"
        return ""


class Program:
    """Runs command lines; a context."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY) -> None:
        self.seconds, self.memory = seconds, memory
        self._process: subprocess.Popen[bytes] | None = None
        self._left = 0

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def run(self, words: list[str], folder: Path) -> Outcome:
        """Run `noisegen WORDS` in a folder."""
        process = self._started()
        streams = [folder / name for name in ("stdout", "stderr")]
        request = {"words": words, "folder": str(folder), "streams": list(map(str, streams))}
        assert process.stdin
        assert process.stdout
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()
        began, base = time.monotonic(), _memory(process.pid)
        fault = ""
        while not fault and not select.select([process.stdout], [], [], 0.1)[0]:
            if time.monotonic() - began > self.seconds:
                fault = f"did not end within {self.seconds:g} s"
            elif (used := _memory(process.pid)) - base > self.memory:
                fault = f"took {used >> 20:,} MB"
        answer: dict[str, Any] = {"code": None, "peak": 0}
        if not fault and (line := process.stdout.readline()):
            answer = json.loads(line)
        elif not fault:
            fault = f"the process died with {process.wait()}"
        if fault:
            self._end()
        texts = [path.read_text("utf-8", "replace") if path.exists() else "" for path in streams]
        return Outcome(answer["code"], *texts, time.monotonic() - began, answer["peak"], fault)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._left == 0:
            self._end()
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
            self._left = COMMANDS
        self._left -= 1
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _memory(process: int) -> int:
    with suppress(OSError, IndexError):
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")
    return 0


def _serve() -> None:
    """Run what standard input asks for, a line each."""
    import traceback

    from noisegen.cli import run

    answers = os.fdopen(os.dup(1), "w")
    requests = os.fdopen(os.dup(0))  # commands find an empty one
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    for line in requests:
        request = json.loads(line)
        os.chdir(request["folder"])
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # the peak is that of this command
        before = _status("VmHWM")
        for number, path in enumerate(request["streams"], 1):
            file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(file, number)
            os.close(file)
        sys.stdin = open(0, closefd=False)  # noqa: SIM115
        try:
            code: int | None = run(request["words"])
        except BaseException:
            traceback.print_exc()
            code = None
        sys.stdout.flush()
        sys.stderr.flush()
        answers.write(json.dumps({"code": code, "peak": _status("VmHWM") - before}) + "\n")
        answers.flush()


def _status(name: str) -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    _serve()
