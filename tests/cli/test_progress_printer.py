"""The printer of progress: lines now and then, or a bar on a terminal."""

import os
import pty
import subprocess
import sys
import time

import pytest
from runs import wait_for

from noisegen.cli import progress as module
from noisegen.cli.progress import progress_on_stderr
from noisegen.runs.progress import Progress


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(module, "SECONDS_BETWEEN_LINES", 0.02)


def test_without_a_terminal_the_newest_event_is_a_line_now_and_then(capfd):
    with progress_on_stderr() as show:
        show(Progress("noising", 0, 10, "rows"))
        show(Progress("noising", 5, 10, "rows"))
        wait_for(lambda: "5 of" in capfd.readouterr().err)
        time.sleep(0.1)
        assert capfd.readouterr().err == ""  # nothing new
        show(Progress("writing"))
        wait_for(lambda: capfd.readouterr().err == "writing\n")
    assert capfd.readouterr().err == ""


def test_a_quiet_command_shows_nothing(capfd):
    with progress_on_stderr(quiet=True) as show:
        show(Progress("noising", 5, 10, "rows"))
    assert capfd.readouterr().err == ""


SHOWN = """
import time
from noisegen.cli.progress import progress_on_stderr
from noisegen.runs.progress import Progress
counts = {"shards": 12, "sentences": 4_321_000}
with progress_on_stderr() as show:
    for done in (0, 300_000, 1_200_000):
        show(Progress("noising", done, unit="rows", counts=counts, share=done / 2_800_000))
        time.sleep(1.02 if done == 300_000 else 0.2)
    for number in range(3):
        show(Progress("reading /a/very/long/path/that/fits/no/line/of/a/terminal/news.txt"))
        time.sleep(0.12)
"""


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_gets_a_line_that_fits(width):
    shown = on_terminal(SHOWN, width)
    lines = [line for line in shown if "noising" in line]
    assert all(len(line) <= width for line in shown)
    assert "42%" in lines[-1]
    assert "1,200,000 rows, " in lines[-1]
    assert "rows/s" in lines[-1]
    assert " left" in lines[-1]
    assert ("12 shards" in lines[-1]) == (width == 120)
    assert any("…" in line and "news.txt" in line for line in shown)


def test_what_is_told_meanwhile_stands_on_lines_of_its_own():
    script = """
import time
from noisegen.cli import common
with common.progress("measuring"):
    time.sleep(0.2)
    common.tell("a hint")
    time.sleep(0.2)
"""
    shown = on_terminal(script, 80)
    assert "a hint" in shown
    assert any("measuring" in line for line in shown)


def on_terminal(script, width):
    """Run a script on a terminal of so many columns; return what its lines were."""
    parent, child = pty.openpty()
    env = {**os.environ, "COLUMNS": str(width), "TERM": "xterm-256color"}
    with subprocess.Popen([sys.executable, "-c", script], stderr=child, env=env):
        os.close(child)
        shown = b""
        try:
            while part := os.read(parent, 100_000):
                shown += part
        except OSError:  # the terminal is closed
            pass
    os.close(parent)
    from rich.text import Text

    plain = Text.from_ansi(shown.decode().replace("\r", "\n")).plain
    return [line.rstrip() for line in plain.splitlines() if line.strip()]
