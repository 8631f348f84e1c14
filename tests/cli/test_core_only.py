"""An environment with the core alone: a command that needs more names the extra in one line."""

import json
import subprocess
import sys

import mining_inputs
import pytest
from runs import DEMO

from noisegen import cli
from noisegen.errors import EXTRAS

FING = ("-t", "fing:rate=0.1")
RUNS = {  # the extra that a command asks for, '' for none, and its arguments
    "augment": ("", [str(DEMO), "-o", "OUT/pairs", *FING, "--workers", "1"]),
    "preview": ("", ["See you tomorrow.", *FING]),
    "transforms": ("", []),
    "stats": ("", ["OUT/pairs"]),
    "prepare": ("", ["RAW", "-o", "OUT/prepared", "--workers", "1"]),
    "mine-wiki": ("", ["DUMP", "-o", "OUT/wiki", "--workers", "1"]),
    "mine-lang8": ("", ["FILE", "-o", "OUT/lang8", "--workers", "1"]),
    "mine-pairs": ("", ["PAIRS", "-o", "OUT/mined", "--workers", "1"]),
    "dictionary": ("", ["show", "OUT/mined"]),
    "learn": ("", ["PAIRS", "-o", "OUT/profile"]),
    "calibrate": ("", [str(DEMO), "--recipe", "fing", "--target-cer", "0.02"]),
    "realism": ("realism", ["--real", "PAIRS", "--recipe", "fing"]),
    "review": ("", ["make", str(DEMO), "-o", "OUT/review.sqlite", *FING, "--strengths", "0.1",
                    "--rows", "5"]),
    "review serve": ("review", ["OUT/review.sqlite"]),
    "train": ("train", ["OUT/pairs", "-o", "OUT/run", "--steps", "1"]),
    "evaluate": ("train", ["minilm", "-o", "OUT/report", "--pairs", "PAIRS"]),
    "evaluate-task": ("train", ["minilm", "-o", "OUT/task", "--train", "PAIRS", "--test",
                                "en=PAIRS"]),
    "quickstart": ("train", ["-o", "OUT/first"]),
}  # fmt: skip
FUNCTIONS = {
    "evaluate": {"models": ["minilm"], "out": "report", "pairs": ["pairs.tsv"]},
    "evaluate_task": {"models": ["minilm"], "out": "task", "train": "a.tsv", "test": ["en=a.tsv"]},
    "quickstart": {"out": "first"},
    "train": {"data": ["pairs.tsv"], "out": "run"},
}  # fmt: skip
SCRIPT = """
import contextlib, io, json, sys

BLOCKED = set(json.loads(sys.argv[1]))

class Without:
    '''A finder that finds none of the blocked modules.'''
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            return None
        return self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
from noisegen.cli import run
results = {}
for name, words in json.loads(sys.argv[2]).items():
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        code = run(words)
    results[name] = code, error.getvalue()
import noisegen
for name, given in json.loads(sys.argv[3]).items():
    try:
        getattr(noisegen, name)(**given)
    except noisegen.NoisegenError as error:
        results["noisegen." + name] = 1, str(error)
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Exit code and standard error of every command, in a process that has no extra."""
    folder = tmp_path_factory.mktemp("core")
    paths = mining_inputs.write(folder)

    def place(word):
        for name, path in {**paths, "OUT": str(folder)}.items():
            word = word.replace(name, path) if word.startswith((name, f"en={name}")) else word
        return word

    commands = {name: [*name.split(), *map(place, words)] for name, (_, words) in RUNS.items()}
    blocked = [*EXTRAS, "pandas", "joblib"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(json.dumps, (blocked, commands, FUNCTIONS))],
        capture_output=True, text=True, cwd=folder,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_command_is_run_here():
    assert sorted({name.split()[0] for name in RUNS}) == sorted(cli.noisegen.commands)


@pytest.mark.parametrize("name", RUNS)
def test_a_command_works_or_names_the_extra(results, name):
    extra, _ = RUNS[name]
    code, error = results[name]
    if not extra:
        assert code in (0, 3), error
        return
    assert code == 1, error
    *progress, line = error.splitlines()
    assert line.startswith("error: "), error
    assert f"is not installed; run: pip install 'noisegen[{extra}]'" in line
    assert f"(in a clone: pip install -e '.[{extra}]')" in line
    assert not any(line.startswith((" ", "Traceback")) for line in progress)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_names_the_extra(results, name):
    assert "pip install 'noisegen[train]'" in results[f"noisegen.{name}"][1]
