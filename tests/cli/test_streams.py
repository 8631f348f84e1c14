"""Where the command line writes: a pipe that closes, a full disk, a closed output."""

import os
import shutil
import subprocess
from pathlib import Path

import mining_inputs
import pytest
from runs import DEMO, PROGRAM

import noisegen
from noisegen import review

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


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A table of 40 pairs, its run of `augment`, and a review of it."""
    folder = tmp_path_factory.mktemp("written")
    clean = [f"see you tomorrow because the people of station {number}" for number in range(40)]
    noisy = [noisegen.noise(text, "leet", id=number) for number, text in enumerate(clean)]
    lines = [f"{one}\t{other}" for one, other in zip(clean, noisy, strict=True)]
    (folder / "pairs.tsv").write_text("\n".join(["clean\tnoisy", *lines]) + "\n")
    (folder / "clean.txt").write_text("\n".join(clean) + "\n")
    posts = [
        noisegen.noise(f"see you tomorrow at the station, people of town {n}", "ugc-heavy", id=n)
        for n in range(200)
    ]
    (folder / "posts.txt").write_text("\n".join(posts) + "\n")
    noisegen.augment(DEMO, folder / "run", transforms=["leet"])
    review.make(folder / "run", folder / "r.sqlite", rows=5)
    (folder / "inputs").mkdir()
    mining_inputs.write(folder / "inputs")
    return folder


@pytest.mark.parametrize("kind", ["", "--json"])
@pytest.mark.parametrize(
    "words",
    [
        "realism --pairs pairs.tsv --recipe mix_all -o page.html",
        pytest.param("fit posts.txt --report page.html", marks=pytest.mark.nightly),
        "stats run --plot page.html",
        "stats run --plot page.png",
        "review report r.sqlite -o page.html",
        "calibrate --recipe fing --target-cer 0.05 -o page.yaml",
        "learn pairs.tsv -o page",
        "mine-pairs pairs.tsv -o page",
        "mine-wiki inputs/enwiki-1.xml.bz2 -o page",
        "mine-lang8 inputs/lang-8.m2 -o page",
        "normalize posts.txt -o page.txt",
        "prepare pairs.tsv --text-column clean -o page",
        "augment clean.txt -t leet -o page",
        "augment clean.txt -t leet -o page.tsv",
    ],
)
def test_a_file_is_written_whoever_reads_the_terminal(pairs, words, kind):
    given = [*words.split(), *([kind] if kind else [])]
    done = unread(given, pairs, subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    remove(pairs / words.split()[-1])


def unread(words, folder, errors):
    """Run a command whose standard output nobody reads, and return the process.

    `errors`: where standard error goes; STDOUT for the same place.
    """
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run([*PROGRAM, *words], stdout=writing, stderr=errors, cwd=folder)
    os.close(writing)
    return done


def remove(written):
    """Remove a file or folder, which must be there."""
    shutil.rmtree(written) if written.is_dir() else written.unlink()


@pytest.mark.parametrize(
    "words",
    [
        "calibrate --recipe fing --target-cer 0.05 -o page.yaml",
        pytest.param("fit posts.txt -o page.yaml --report page.html", marks=pytest.mark.nightly),
    ],
)
def test_messages_that_nobody_reads_cost_no_file(pairs, words):
    """As in `COMMAND 2>&1 | head -1`: these print a message before they write."""
    assert unread(words.split(), pairs, subprocess.STDOUT).returncode == 0
    for name in words.split():
        if name.startswith("page."):
            remove(pairs / name)


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
