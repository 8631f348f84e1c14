"""Completion of the shell, which click answers."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("noisegen mine-", ["mine-lang8", "mine-pairs", "mine-wiki"]),
        ("noisegen preview --rec", ["--recipe"]),
        ("noisegen preview --tagger s", ["spacy"]),
    ],
)
def test_the_last_word_of_a_line_is_completed(words, completed):
    asked = {
        "_NOISEGEN_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-m", "noisegen"], env=os.environ | asked, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.partition(",")[2] for line in done.stdout.split()] == completed
