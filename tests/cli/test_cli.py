"""The command line as a whole: help, streams, quiet, JSON, colour, what is imported."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import click
import made_tasks
import mining_inputs
import pyarrow.parquet as pq
import pytest
from runs import DEMO, PROGRAM, command, shards, table

import noisegen
from noisegen import cli
from noisegen.cli import run
from noisegen.runs import progress
from noisegen.runs.progress import Progress

COMMANDS = sorted(cli.noisegen.commands)
QUICK = [name for name in COMMANDS if name != "quickstart"]  # which has its own tests
FING = ("-t", "fing:rate=0.1")
RUNS = {
    "augment": [str(DEMO), "-o", "OUT", *FING, "--workers", "1"],
    "preview": ["See you tomorrow.", *FING],
    "transforms": [],
    "stats": ["MADE"],
    "mine-wiki": ["DUMP", "-o", "OUT", "--workers", "1"],
    "mine-lang8": ["FILE", "-o", "OUT", "--workers", "1"],
    "mine-pairs": ["PAIRS", "-o", "OUT", "--workers", "1"],
    "dictionary": ["show", "MINED"],
    "prepare": ["RAW", "-o", "OUT", "--workers", "1"],
    "learn": ["PAIRS", "-o", "OUT"],
    "calibrate": [str(DEMO), *("--recipe", "fing", "--target-cer", "0.02", "-o", "OUT.yaml")],
    "realism": ["--real", "PAIRS", "--recipe", "fing"],
    "review": ["make", str(DEMO), "-o", "OUT", *FING, "--strengths", "0.1,0.2", "--rows", "5"],
    "train": ["MADE", "-o", "OUT", "--teacher", "TINY", "--steps", "1"],
    "evaluate": ["TINY", "-o", "OUT", "--pairs", "POSTS", "--no-hard"],
    "evaluate-task": ["TINY", "-o", "OUT", "--train", "SNIPS", "--test", "ES", "--seeds", "1",
                      "--epochs", "1"],
}  # fmt: skip
SHORTER = {
    "evaluate-task": ["--fast", "--seeds", "1"],
    "train": ["--dry-run"],
    "evaluate": ["--transforms", "fing", "--seeds", "1", "--limit", "9", "--no-hard"],
}  # what the example of the help gets here
POSTS = "noisy\tclean\nc u\tSee you.\nok\tOkay.\n"
ESCAPE = "\x1b["


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder to look at."""
    out = tmp_path_factory.mktemp("made") / "out"
    noisegen.augment(DEMO, out, transforms=["fing:rate=0.1"], limit=50)
    return out


@pytest.fixture(scope="module")
def mined(tmp_path_factory):
    """The folder of a mining run."""
    folder = tmp_path_factory.mktemp("mined")
    assert (
        run(["mine-pairs", mining_inputs.write(folder)["PAIRS"], "-o", str(folder / "out"), "-q"])
        == 0
    )
    return folder / "out"


@pytest.fixture
def arguments(tmp_path, made, mined, tiny_bert):
    """Return the arguments of a short run of a command."""

    def of(name):
        places = {"OUT": str(tmp_path / "out"), "MADE": str(made), "MINED": str(mined)}
        places["TINY"] = str(tiny_bert)
        places["OUT.yaml"] = str(tmp_path / "out.yaml")
        places["POSTS"] = str(tmp_path / "posts.tsv")
        Path(places["POSTS"]).write_text(POSTS)
        if name == "evaluate-task":
            places["SNIPS"] = str(made_tasks.snips_file(tmp_path))
            places["ES"] = f"es={made_tasks.slots_file(tmp_path)}"
        places |= mining_inputs.write(tmp_path)
        return [name, *(places.get(word, word) for word in RUNS[name])]

    return of


def test_every_command_has_a_short_run_here():
    assert sorted(RUNS) == QUICK


@pytest.mark.parametrize("option", ["-h", "--help"])
@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_says_what_it_does_and_gives_an_example(name, option, capfd):
    code = run([name, option] if name else [option])
    stdout, stderr = capfd.readouterr()

    assert (code, stderr) == (0, "")
    assert re.search(r"Example:\s+noisegen " + (name or "augment"), " ".join(stdout.split()))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name):
    for parameter in cli.noisegen.commands[name].params:
        if isinstance(parameter, click.Option):
            shown = parameter.help or parameter.show_default or parameter.metavar
            assert shown, f"{name} {parameter.opts[0]}"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.nightly if name == "calibrate" else ())
        for name in QUICK
    ],
)
def test_the_example_of_the_help_can_be_run(
    name, tmp_path, made, mined, tiny_bert, monkeypatch, capfd
):
    import shlex

    monkeypatch.chdir(tmp_path)
    (tmp_path / "news.txt").write_text("The government condemned it.\n" * 50)
    (tmp_path / "lang-8.dat").write_text(mining_inputs.M2)
    (tmp_path / "crawl.jsonl.gz").write_bytes(gzip.compress(mining_inputs.RAW.encode()))
    mining_inputs.write(tmp_path)
    if name in ("stats", "dictionary", "train"):
        (tmp_path / "out").symlink_to(mined if name == "dictionary" else made)
    if name == "evaluate":
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "student").symlink_to(tiny_bert)
        (tmp_path / "pairs.tsv").write_text(POSTS)
    if name == "evaluate-task":
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "student").symlink_to(tiny_bert)
        for lang in ("en", "es"):
            made_tasks.slots_file(tmp_path).rename(tmp_path / f"{lang}.tsv")
    text = " ".join((cli.noisegen.commands[name].help or "").split())
    words = shlex.split(text.partition("Example: noisegen ")[2])

    assert run([*words, *SHORTER.get(name, [])]) == 0, capfd.readouterr().err


def test_the_version():
    result = command("--version")

    assert (result.returncode, result.stderr) == (0, "")
    assert noisegen.__version__ in result.stdout


def test_the_module_is_the_program(capfd):
    run(["--help"])

    assert command("--help").stdout == capfd.readouterr().out


def test_an_unknown_command_is_wrong_usage(capfd):
    assert run(["agument"]) == 2
    assert "No such command 'agument'" in capfd.readouterr().err


@pytest.mark.parametrize("name", QUICK)
def test_json_is_one_object_on_stdout(name, arguments, capfd):
    code = run([*arguments(name), "--json"])
    stdout, stderr = capfd.readouterr()

    assert code == 0
    assert isinstance(json.loads(stdout), dict)
    assert stdout.count("\n") == 1
    assert "{" not in stderr


def test_the_json_of_a_run_is_its_totals(arguments, tmp_path, capfd):
    run([*arguments("augment"), "--json"])
    found = json.loads(capfd.readouterr().out)

    made = noisegen.Manifest.load(tmp_path / "out")
    assert found == {"out": str(tmp_path / "out"), "shards": 1, **made.totals}


def test_the_command_is_in_the_manifest(arguments, tmp_path):
    import shlex

    words = arguments("augment")
    run(words)

    made = noisegen.Manifest.load(tmp_path / "out")
    assert made.command == shlex.join(["noisegen", *words])


def test_an_interruption_is_code_130(arguments, monkeypatch, capfd):
    from noisegen.augment import augment

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(augment, "make_shards", interrupted)

    assert run(arguments("augment")) == 130
    assert "interrupted; what is finished is kept" in capfd.readouterr().err


def test_one_transform_is_described(capfd):
    assert run(["transforms", "fing"]) == 0
    assert "fing" in capfd.readouterr().out
    assert run(["transforms", "fing", "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["name"] == "fing"
    assert run(["transforms", "fign"]) == 2
    assert "did you mean 'fing'?" in capfd.readouterr().err


def test_transforms_of_a_file_are_listed(tmp_path, capfd):
    code = tmp_path / "mine.py"
    code.write_text(
        "import noisegen\n@noisegen.transform('mine_only')\n"
        "def f(text, draws, *, rate: float = 1.0):\n    return text\n"
    )
    run(["transforms", "--code", str(code), "--json"])

    listed = json.loads(capfd.readouterr().out)["transforms"]
    assert "mine_only" in [one["name"] for one in listed]


def test_the_summary_of_a_run_goes_to_stderr(arguments, capfd):
    run(arguments("augment"))
    stdout, stderr = capfd.readouterr()

    assert stdout == ""
    assert re.fullmatch(r".*/out: 420 rows in 1 shard; \S+% changed, CER \S+%, WER \S+%\n", stderr)


def test_quiet_prints_nothing(arguments, tmp_path, capfd):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.pdf").touch()
    (tmp_path / "data" / "b.txt").write_text("hello there\n")
    words = arguments("augment")
    words[1] = str(tmp_path / "data")

    assert run([*words, "--quiet", "--lang", "sw"]) == 0
    assert capfd.readouterr() == ("", "")


def test_a_language_without_some_data_is_hinted_at(tmp_path, capfd):
    run(["augment", str(DEMO), "-o", str(tmp_path / "out"), "--lang", "sw", "--workers", "1"])

    [hint, _] = capfd.readouterr().err.splitlines()
    assert hint.startswith("hint: no data for language 'sw': left out abr1, ")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("preview", "stats") else pytest.mark.nightly)
        for name in QUICK
    ],
)
def test_what_is_piped_has_no_colour(name, arguments):
    result = command(*arguments(name))

    assert result.returncode == 0
    assert ESCAPE not in result.stdout + result.stderr


def test_colour_can_be_forced_and_forbidden(arguments, monkeypatch):
    words = arguments("preview")
    assert ESCAPE in _with(words, FORCE_COLOR="1")
    assert "\x1b[3" not in _with(words, FORCE_COLOR="1", NO_COLOR="1")


def _with(words, **variables):
    import os

    variables = {**os.environ, **variables}
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, text=True, env=variables, timeout=60
    ).stdout


def test_progress_is_a_plain_line_now_and_then(monkeypatch, capfd):
    times = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(times))
    with progress.progress_on_stderr() as show:
        for number in range(1, 5):
            show(Progress(done=1_500 * number, unit="rows"))

    assert capfd.readouterr().err == "3,000 rows, 500/s\n6,000 rows, 500/s\n"


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Progress("minilm: encoding", 300, 1_200, "texts"), "minilm: encoding, 300 of 1,200 texts"),
        (Progress("opening minilm"), "opening minilm"),
        (Progress(done=50, unit="rows", counts={"shards": 2}), "50 rows, 2 shards, 25/s"),
        (Progress(done=1, total=4, unit="files", counts={"bytes": 6_000_000}),
         "1 of 4 files, 3 MB/s"),
    ],
)  # fmt: skip
def test_an_event_is_one_line(event, text):
    assert event.text(seconds=2.0) == text


def test_a_run_shows_progress_where_there_is_no_terminal(arguments, monkeypatch, capfd):
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0)
    run([*arguments("augment"), "--rows-per-shard", "200"])

    lines = capfd.readouterr().err.splitlines()
    assert [line.split(",")[0] for line in lines[:3]] == ["200 rows", "400 rows", "420 rows"]


@pytest.mark.parametrize("total", [0, 4_000])
def test_a_terminal_gets_a_bar(monkeypatch, total):
    import os
    import pty

    parent, child = pty.openpty()
    with os.fdopen(child, "w") as terminal:
        monkeypatch.setattr(sys, "stderr", terminal)
        with progress.progress_on_stderr() as show:
            show(Progress(done=1_500, total=total, unit="rows", counts={"shards": 1}))
            show(Progress(done=2_000, total=total, unit="rows", counts={"shards": 2}))
        monkeypatch.undo()
        os.set_blocking(parent, False)
        shown = ""
        while "2 shards" not in shown:
            shown += os.read(parent, 100_000).decode()  # raises when there is no more
    os.close(parent)

    assert ("2,000 of 4,000 rows, 2 shards" if total else "2,000 rows, 2 shards, ") in shown


def test_a_dry_run_writes_nothing(arguments, tmp_path, capfd):
    code = run([*arguments("augment"), "--dry-run"])
    stdout, stderr = capfd.readouterr()

    assert (code, stderr) == (0, "")
    assert "nothing is written" in stdout
    assert not (tmp_path / "out").exists()


def test_a_dry_run_needs_no_out(capfd):
    assert run(["augment", str(DEMO), *FING, "--dry-run"]) == 0
    assert "Harwick" in capfd.readouterr().out


def test_a_dry_run_as_json_is_one_object(capfd):
    run(["augment", str(DEMO), *FING, "--dry-run", "--json"])

    found = json.loads(capfd.readouterr().out)
    assert len(found["rows"]) == 10
    assert {"id", "clean", "noisy", "transforms", "edits"} == set(found["rows"][0])


def test_a_dry_run_shows_the_rows_of_the_run(arguments, tmp_path, capfd):
    run([*arguments("augment"), "--dry-run", "--json"])
    shown = json.loads(capfd.readouterr().out)["rows"]
    run(arguments("augment"))

    assert [row["noisy"] for row in shown] == table(tmp_path / "out")["noisy"][:10].to_pylist()


def test_rows_can_come_from_stdin(tmp_path):
    text = "see you tomorrow\nat the station\n"
    result = command("augment", "-", "-o", tmp_path / "out", *FING, input=text)
    (tmp_path / "in.txt").write_text(text)
    noisegen.augment(tmp_path / "in.txt", tmp_path / "other", transforms=FING[1:])

    assert result.returncode == 0, result.stderr
    assert table(tmp_path / "out").equals(table(tmp_path / "other"))


def test_workers_share_what_comes_from_stdin(tmp_path):
    text = "".join(f"see you tomorrow at station {number}\n" for number in range(100))
    words = ["augment", "-", *FING, "--rows-per-shard", "30"]
    for workers in ("1", "2"):
        out = tmp_path / workers
        assert command(*words, "-o", out, "--workers", workers, input=text).returncode == 0

    assert [pq.read_metadata(path).num_rows for path in shards(tmp_path / "2")] == [30, 30, 30, 10]
    assert table(tmp_path / "1").equals(table(tmp_path / "2"))


def test_a_reader_that_has_seen_enough_is_no_error():
    words = " ".join([*PROGRAM, "transforms", "--json", "|", "head", "-c", "1"])
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", words], capture_output=True, text=True, timeout=60
    )

    assert (result.returncode, result.stderr) == (0, "")


def _imported(code):
    code = f"import sys; {code}; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(result.stdout.split())


def test_augment_imports_neither_torch_nor_datasets(tmp_path):
    out = str(tmp_path / "out")
    words = ["augment", str(DEMO), "-o", out, *FING, "--workers", "1", "--limit", "5"]
    found = _imported(f"from noisegen.cli import run; run({words!r})")

    assert not found & {"torch", "datasets", "distributed", "spacy", "matplotlib"}


def test_a_recipe_beside_transforms_is_wrong_usage(capfd):
    assert run(["preview", "See you.", "--recipe", "rolaser", *FING]) == 2
    assert "--recipe and -t exclude each other" in capfd.readouterr().err
