"""An environment with the core alone: a command that needs more names the extra in one line."""

import json
import re
import subprocess
import sys

import click
import mining_inputs
import pytest
from runs import DEMO

from noisegen import cli
from noisegen.errors import EXTRAS

RUNS = {  # command lines, and the extra that each asks for
    "augment DEMO -o OUT/pairs -t fing:rate=0.1 --workers 1": "",
    "augment hf:glue -o OUT/hf": "hf",
    "augment s3://bucket/news.txt -o OUT/s3": "s3",
    "augment RAW -o gs://bucket/out": "gcs",
    "augment RAW -o OUT/dask --text-column text --executor dask:127.0.0.1:1": "dask",
    "preview": "",
    "example": "",
    "example pairs": "",
    "preview slang --tagger spacy -t slng": "en",
    "recipes rolaser": "",
    "transforms": "",
    "transforms fing": "",
    "calibrate DEMO --recipe fing --target-cer 0.02": "",
    "prepare RAW -o OUT/prepared --workers 1": "",
    "prepare RAW -o OUT/identified --workers 1 --identify yes": "lid",
    "mine-wiki DUMP -o OUT/wiki --workers 1": "",
    "mine-lang8 FILE -o OUT/lang8 --workers 1": "",
    "mine-pairs PAIRS -o OUT/mined --workers 1": "",
    "dictionary show OUT/mined": "",
    "dictionary merge OUT/mined OUT/mined -o OUT/both.tsv": "",
    "dictionary filter OUT/mined -o OUT/sure.tsv": "",
    "dictionary export OUT/mined -o OUT/rcp.json": "",
    "dictionary translations --lang en --into de": "",
    "augment DEMO -o OUT/posts.jsonl --limit 300 --workers 1": "",
    "normalize OUT/posts.jsonl -o OUT/normal": "",
    "fit OUT/posts.jsonl -o OUT/mine.yaml": "",
    "learn PAIRS -o OUT/profile": "",
    "learn from PAIRS -o OUT/profile --force": "",
    "learn show OUT/profile": "",
    "learn merge OUT/profile OUT/profile -o OUT/merged": "",
    "stats OUT/pairs --plot OUT/pairs.html": "",
    "stats OUT/pairs --plot OUT/pairs.png": "plot",
    "realism --pairs PAIRS --recipe fing": "realism",
    "review make DEMO -o OUT/review.sqlite -t fing:rate=0.1 --strengths 0.1 --rows 5": "",
    "review report OUT/review.sqlite -o OUT/review.html": "",
    "review serve OUT/review.sqlite": "review",
    "evaluate minilm -o OUT/report --pairs PAIRS": "train",
    "evaluate --list": "",
    "evaluate-task minilm -o OUT/task --train PAIRS --test en=PAIRS": "train",
    "train OUT/pairs -o OUT/run --steps 1": "train",
    "train --list": "",
    "export minilm -o OUT/exported": "train,onnx",
    "quickstart -o OUT/first": "train,demo",
}
FUNCTIONS = {
    "evaluate": {"models": ["minilm"], "out": "report", "pairs": ["pairs.tsv"]},
    "evaluate_task": {"models": ["minilm"], "out": "task", "train": "a.tsv", "test": ["en=a.tsv"]},
    "export": {"student": "minilm", "out": "exported"},
    "quickstart": {"out": "first"},
    "train": {"data": ["pairs.tsv"], "out": "run"},
}
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
    error, output = io.StringIO(), io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(output):
        code = run(words)
    results[name] = code, error.getvalue(), output.getvalue()
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
    places = {**mining_inputs.write(folder), "OUT": str(folder), "DEMO": str(DEMO)}

    def placed(word):
        return re.sub(
            "^(en=)?([A-Z]+[0-9]?)", lambda m: (m[1] or "") + places.get(m[2], m[2]), word
        )

    commands = {line: [placed(word) for word in line.split()] for line in RUNS}
    blocked = [*EXTRAS, "pandas", "joblib"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(json.dumps, (blocked, commands, FUNCTIONS))],
        capture_output=True,
        text=True,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_every_command_is_run_here():
    def names(command, path):
        below = command.commands if isinstance(command, click.Group) else {}
        return [name for sub in below for name in names(below[sub], [*path, sub])] or [path]

    wanted = [" ".join(path) for path in names(cli.noisegen, [])]
    assert [
        name for name in wanted if not any(f"{line} ".startswith(f"{name} ") for line in RUNS)
    ] == []


@pytest.mark.parametrize("name", RUNS)
def test_a_command_works_or_names_the_extra(results, name):
    extra = RUNS[name]
    code, error, output = results[name]
    if not extra:
        assert code in (0, 3), error
        return
    assert code == 1, error
    assert output == ""
    *progress, line = error.splitlines()
    assert line.startswith("error: "), error
    assert f"is not installed; run: pip install 'noisegen[{extra}]'" in line
    assert f"(in a clone: pip install -e '.[{extra}]')" in line
    assert not any(line.startswith((" ", "Traceback")) for line in progress)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_names_the_extra(results, name):
    extras = {"quickstart": "train,demo", "export": "train,onnx"}.get(name, "train")
    assert f"pip install 'noisegen[{extras}]'" in results[f"noisegen.{name}"][1]
