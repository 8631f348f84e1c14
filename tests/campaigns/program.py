"""The program as a process that runs command after command, watched from outside.

It is imported once, since that takes longer than most of the commands; a process forked from there
runs them. One that hangs or takes too much memory is killed, and another forked.
"""

import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns import forks

SECONDS = 60.0
MEMORY = 2 << 30
COMMANDS = 300  # of a process: no trial is the sum of all before it


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

    def __enter__(self) -> "Program":
        self._process = subprocess.Popen(
            [sys.executable, "-m", "campaigns.program"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=forks.environment(),
        )
        self._next()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()  # whose end the process that runs commands sees

    def _next(self) -> None:
        """Learn which process runs the commands from now on."""
        self._runs_in(self._answer())

    def _runs_in(self, process: dict[str, Any]) -> None:
        self._pid, self._left = process["pid"], COMMANDS

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout
        line: dict[str, Any] = json.loads(self._process.stdout.readline())
        return line

    def run(self, words: list[str], folder: Path) -> Outcome:
        """Run `noisegen WORDS` in a folder."""
        if self._left == 0:
            self._next()
        self._left -= 1
        streams = [folder / name for name in ("stdout", "stderr")]
        request = {"words": words, "folder": str(folder), "streams": list(map(str, streams))}
        assert self._process.stdin
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        began, fault = time.monotonic(), self._fault()
        answer: dict[str, Any] = {"code": None, "peak": 0}
        if fault:
            os.kill(self._pid, signal.SIGKILL)
            self._next()
        elif "pid" in (line := self._answer()):
            fault = "the process died"
            self._runs_in(line)
        else:
            answer = line
        texts = [path.read_text("utf-8", "replace") if path.exists() else "" for path in streams]
        return Outcome(answer["code"], *texts, time.monotonic() - began, answer["peak"], fault)

    def _fault(self) -> str:
        """Wait for an answer; return why the command must be killed first, '' if it need not."""
        began, base = time.monotonic(), _memory(self._pid)
        while not select.select([self._process.stdout], [], [], 0.1)[0]:
            if time.monotonic() - began > self.seconds:
                return f"did not end within {self.seconds:g} s"
            if (used := _memory(self._pid)) - base > self.memory:
                return f"took {used >> 20:,} MB"
        return ""


def _memory(process: int) -> int:
    with suppress(OSError, IndexError):
        pages = Path(f"/proc/{process}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGESIZE")
    return 0


def _main() -> None:
    """Keep a process running that serves, until there is nobody to serve."""
    forks.load()
    answers, requests = os.dup(1), os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # commands find an empty one
    while True:
        if (pid := os.fork()) == 0:
            _serve(requests, answers)
        if os.waitpid(pid, 0)[1] == 0:
            return


def _serve(requests: int, answers: int) -> None:
    """Say who serves, run what is asked for, a line each, and end: with 0 if nobody asks."""
    os.write(answers, json.dumps({"pid": os.getpid()}).encode() + b"\n")
    with open(requests, closefd=False) as lines:
        for _ in range(COMMANDS):
            if not (line := lines.readline()):
                os._exit(0)
            answer = _run(json.loads(line))
            os.write(answers, json.dumps(answer).encode() + b"\n")
    os._exit(1)


def _run(request: dict[str, Any]) -> dict[str, Any]:
    from noisegen.cli import run

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
    return {"code": code, "peak": _status("VmHWM") - before}


def _status(name: str) -> int:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) << 10
    return 0


if __name__ == "__main__":
    _main()
