"""Where the command line writes: a pipe that closes, a full disk, a closed output."""

import os
import subprocess
from pathlib import Path

import pytest
from runs import DEMO, PROGRAM

COMMANDS = {
    "table": ["transforms"],
    "json": ["transforms", "--json"],
    "rows": ["preview", str(DEMO), "-n", "200", "-t", "leet", "--lang", "en"],
}
FULL = Path("/dev/full")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_goes_away_is_no_error(name):
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, *COMMANDS[name]], stdout=writing, stderr=subprocess.PIPE, check=False, text=True
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_full_disk_is_one_line(name):
    with FULL.open("w") as full:
        words = [*PROGRAM, *COMMANDS[name]]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False, text=True)
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_closed_output_takes_nothing(name):
    words = ["sh", "-c", '"$0" "$@" >&-', *PROGRAM, *COMMANDS[name]]
    done = subprocess.run(words, stderr=subprocess.PIPE, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")
