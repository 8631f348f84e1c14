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
from noisegen.augmentation.catalog import demo_texts
from noisegen.cli import run
from noisegen.data.pairs import read_pairs
from noisegen.noising.recipe import recipe_names

COMMANDS = sorted(cli.noisegen.commands)
QUICK = [name for name in COMMANDS if name != "quickstart"]  # tested elsewhere
FING = ("-t", "fing:rate=0.1")
RUNS = {
    "augment": [str(DEMO), "-o", "OUT", *FING, "--lang", "en", "--workers", "1"],
    "preview": ["See you tomorrow.", *FING],
    "recipes": ["rolaser"],
    "transforms": [],
    "stats": ["MADE"],
    "normalize": ["NOISY", "-o", "OUT"],
    "example": ["pairs"],
    "mine-wiki": ["DUMP", "-o", "OUT", "--workers", "1"],
    "mine-lang8": ["FILE", "-o", "OUT", "--workers", "1"],
    "mine-pairs": ["PAIRS", "-o", "OUT", "--workers", "1"],
    "dictionary": ["show", "MINED"],
    "prepare": ["RAW", "-o", "OUT", "--workers", "1"],
    "learn": ["PAIRS", "-o", "OUT"],
    "fit": ["NOISY", "-o", "OUT.yaml"],
    "calibrate": [str(DEMO), *("--recipe", "fing", "--target-cer", "0.02", "-o", "OUT.yaml")],
    "realism": ["--pairs", "PAIRS", "--recipe", "fing"],
    "review": ["make", str(DEMO), "-o", "OUT", *FING, "--strengths", "0.1,0.2", "--rows", "5"],
    "train": ["MADE", "-o", "OUT", "--teacher", "TINY", "--steps", "1", "--force-small"],
    "export": ["TINY", "-o", "OUT"],
    "evaluate": ["TINY", "-o", "OUT", "--pairs", "POSTS", "--no-hard"],
    "evaluate-task": [
        "TINY",
        "-o",
        "OUT",
        "--train",
        "SNIPS",
        "--test",
        "ES",
        "--seeds",
        "1",
        "--epochs",
        "1",
    ],
}
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


def noisy_demo(folder):
    """Write noise on the demo text, and return the file."""
    path = folder / "posts.txt"
    path.write_text("\n".join(noisegen.noise(demo_texts()["en"], "ugc", seed=1)), "utf-8")
    return path


@pytest.fixture
def arguments(tmp_path, made, mined, tiny_bert):
    """Return the arguments of a short run of a command."""

    def of(name):
        places = {"OUT": str(tmp_path / "out"), "MADE": str(made), "MINED": str(mined)}
        places["TINY"] = str(tiny_bert)
        places["OUT.yaml"] = str(tmp_path / "out.yaml")
        places["POSTS"] = str(tmp_path / "posts.tsv")
        Path(places["POSTS"]).write_text(POSTS)
        places["NOISY"] = str(noisy_demo(tmp_path))
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
    assert re.search(r"Examples?:.*noisegen " + (name or "augment"), " ".join(stdout.split()))


def commands_below(command, path=()):
    below = command.commands if isinstance(command, click.Group) else {}
    for name in below:
        yield from commands_below(below[name], (*path, name))
    yield path, command


@pytest.mark.parametrize("path", [path for path, _ in commands_below(cli.noisegen)], ids=" ".join)
def test_every_help_fits_80_columns_and_cuts_no_summary(path, capfd):
    run([*path, "--help"])
    shown = capfd.readouterr().out

    assert max(map(len, shown.splitlines())) <= 80
    assert not re.search(r"\w\.\.\.$", shown.partition("Commands:")[2], re.MULTILINE)
    assert set(re.findall(r"--(\w+) TEXT ", shown)) <= {"license", "origin"}


def test_the_help_of_the_program_has_a_line_for_every_command(capfd):
    run(["--help"])
    lines = capfd.readouterr().out.splitlines()

    starts = [line.split()[0] for line in lines if re.match(r"  [a-z]", line)]
    assert [name for name in starts if name in COMMANDS] == list(cli.noisegen.commands)
    assert [line for line in lines if re.match("[A-Z][a-z]+:$", line)] == [
        "Options:",
        "Noise:",
        "Mine:",
        "Measure:",
        "Train:",
    ]
    for name, known in cli.noisegen.commands.items():
        assert f"  {name:<13}  {known.help.splitlines()[0]}" in lines


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
    noisy_demo(tmp_path)
    (tmp_path / "crawl.jsonl.gz").write_bytes(gzip.compress(mining_inputs.RAW.encode()))
    mining_inputs.write(tmp_path)
    if name in ("stats", "dictionary", "train"):
        (tmp_path / "out").symlink_to(mined if name == "dictionary" else made)
    if name in ("evaluate", "export"):
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "student").symlink_to(tiny_bert)
        (tmp_path / "pairs.tsv").write_text(POSTS)
    if name == "evaluate-task":
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "student").symlink_to(tiny_bert)
        for lang in ("en", "es"):
            made_tasks.slots_file(tmp_path).rename(tmp_path / f"{lang}.tsv")
    example = next(
        line for line in cli.noisegen.commands[name].epilog.splitlines() if "noisegen" in line
    )
    words = shlex.split(example)[1:]

    assert run([*words, *SHORTER.get(name, [])]) == 0, capfd.readouterr().err


def test_the_version():
    result = command("--version")

    assert (result.returncode, result.stderr) == (0, "")
    assert noisegen.__version__ in result.stdout


def test_the_module_is_the_program(capfd):
    run(["--help"])

    assert command("--help").stdout == capfd.readouterr().out


@pytest.mark.parametrize("group", [[], ["learn"], ["review"], ["dictionary"]])
def test_a_group_without_a_command_shows_its_help(group, capfd):
    assert run(group) == 2
    assert capfd.readouterr().err.startswith(" ".join(["Usage: noisegen", *group]))


def test_an_unknown_command_is_wrong_usage(capfd):
    assert run(["agument"]) == 2
    assert capfd.readouterr().err == "error: no such command 'agument'; did you mean augment?\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("stats", "missing argument 'OUT'; see: noisegen stats --help"),
        ("realism", "give --pairs, or --posts and --clean"),
        ("learn show", "missing argument 'PROFILE'; see: noisegen learn show --help"),
        ("augment news.txt", "name the output: -o FOLDER, -o FILE or -o -"),
        ("prepare news.txt", "name the output: -o FOLDER"),
        ("preview -n", "option '-n' requires an argument"),
        ("preview --recipes ugc", "no such option '--recipes'; did you mean --recipe"),
        (
            "augment a.txt --severity 1",
            "no such option '--severity'; did you mean --strength x0.5,x1,x2?",
        ),
        ("stats out -o x.html", "no such option '-o'; did you mean --plot FILE?"),
        (
            "calibrate --profile p",
            "no such option '--profile'; did you mean -t channel:profile=PROFILE?",
        ),
    ],
)
def test_wrong_usage_is_one_line_whoever_finds_it(words, said, capfd):
    assert run(words.split()) == 2
    written = capfd.readouterr()
    assert (written.out, written.err.count("\n")) == ("", 1)
    assert written.err.startswith(f"error: {said}")


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


@pytest.fixture
def interrupting(tmp_path):
    """Options that interrupt a command when it loads code."""
    (tmp_path / "stop.py").write_text("raise KeyboardInterrupt\n")
    return ["--code", str(tmp_path / "stop.py")]


def test_an_interruption_is_code_130(arguments, tmp_path, interrupting, capfd):
    words = [*arguments("augment"), *interrupting]
    assert run(words) == 130
    assert capfd.readouterr().err.strip() == "interrupted"
    (tmp_path / "out").mkdir()
    assert run(words) == 130
    assert (
        "interrupted; what is finished is kept: run again with --resume" in capfd.readouterr().err
    )


def test_an_interruption_of_a_destructor_is_heard():
    code = """
import os, signal, time
import noisegen.cli
from noisegen.cli.catalog import recipes

class Busy:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1)

def work(**_):
    Busy()
    time.sleep(20)

recipes.callback = work
noisegen.cli.main()
"""
    found = subprocess.run(
        [sys.executable, "-c", code, "recipes"],
        capture_output=True,
        text=True,
        timeout=15,
        check=False,
    )
    assert (found.returncode, found.stderr.strip()) == (130, "interrupted")


def test_an_interruption_names_no_option_that_is_not_there(interrupting, capfd):
    assert run(["recipes", *interrupting]) == 130
    assert capfd.readouterr().err.strip() == "interrupted"


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
    note = "ugc leaves out 14 of its 24 transforms in 'sw' (no data): init, "
    assert hint.startswith(f"hint: {note}")
    for words in (["preview", "See you."], ["augment", str(DEMO), "--dry-run"]):
        run([*words, "--lang", "sw"])
        assert capfd.readouterr().err == f"{hint}\n"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("preview", "stats") else pytest.mark.nightly)
        for name in QUICK
    ],
)
def test_what_is_piped_has_no_colour(name, arguments, capfd):
    assert run(arguments(name)) == 0

    assert ESCAPE not in "".join(capfd.readouterr())


@pytest.mark.parametrize("words", [["preview"], ["transforms", "punc"], ["recipes", "ugc"]])
def test_no_line_that_is_piped_ends_in_a_space(words, capfd):
    assert run(words) == 0

    lines = capfd.readouterr().out.splitlines()
    assert len(lines) > 9
    assert [line for line in lines if line != line.rstrip()] == []


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


def test_a_dry_run_writes_nothing(arguments, tmp_path, capfd):
    code = run([*arguments("augment"), "--dry-run"])
    stdout, stderr = capfd.readouterr()

    assert (code, stderr) == (0, "")
    assert "nothing is written" in stdout
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["augment", str(DEMO), *FING], "Harwick"),
        (["prepare", str(DEMO)], "nothing is written"),
        (
            ["mine-pairs", "--noisy-column", "text", "--clean-column", "lang", str(DEMO)],
            "nothing is written",
        ),
    ],
)
def test_a_dry_run_needs_no_out(words, said, capfd):
    assert run([*words, "--dry-run"]) == 0
    assert said in capfd.readouterr().out


def test_a_dry_run_names_each_transform_once(capfd):
    assert run(["augment", str(DEMO), "--recipe", "ugc", "--dry-run"]) == 0
    plan, _, _ = capfd.readouterr().out.partition("nothing is written")
    assert "apos, diac, caps, mark, runs, punc)" in plan  # caps has six steps


def test_a_dry_run_names_columns_and_versions_in_words(tmp_path, capfd):
    source = tmp_path / "rows.jsonl"
    row = {"key": 1, "text": "See you.", "title": "You", "spans": [[0, 3]], "by": "me"}
    source.write_text(json.dumps(row) + "\n")
    paths = [word for name in ("text", "title") for word in ("--text-column", name)]
    columns = [*paths, "--id-column", "key", "--spans", "spans=text", "--group-by", "by"]
    versions = ["--copies", "2", "--with-clean", "--strength", "x0.5,x1"]
    assert run(["augment", str(source), *columns, *versions, "--dry-run"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert "columns   text text, title; id key; spans spans=text; group by" in lines
    expected = "copies 2 and the clean row at strength x0.5, x1, language en"
    assert f"seed      0, {expected}" in lines


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


@pytest.mark.parametrize("name", QUICK)
def test_every_command_can_be_quiet(name):
    for path, known in commands_below(cli.noisegen.commands[name], (name,)):
        flags = {flag for parameter in known.params for flag in parameter.opts}
        assert isinstance(known, click.Group) or {"-q", "--quiet"} <= flags, path


@pytest.mark.parametrize("name", ["preview", "stats", "recipes", "transforms", "dictionary"])
def test_a_quiet_command_prints_its_result_and_nothing_else(name, arguments, capfd):
    run(arguments(name))
    loud = capfd.readouterr()
    assert run([*arguments(name), "-q"]) == 0
    assert capfd.readouterr() == (loud.out, "")


def test_a_quiet_review_tells_which_rows_it_dropped(tmp_path, capfd):
    source = tmp_path / "some.txt"
    source.write_bytes(b"See you tomorrow, my friend.\n\xff\xfe\n")
    out = str(tmp_path / "out.sqlite")
    assert run(["review", "make", str(source), "--strengths", "x1", "-o", out, "-q"]) == 3
    assert f"{out}: dropped or damaged: not_utf8 1;" in capfd.readouterr().err


def test_the_default_tagger_needs_nothing_installed():
    taggers = {
        parameter.default
        for command in ("augment", "preview", "calibrate")
        for parameter in cli.noisegen.commands[command].params
        if parameter.name == "tagger"
    }
    assert taggers == {"rule"}


def test_recipes_are_listed_with_what_they_do_to_text(capfd):
    assert run(["recipes", "--json"]) == 0
    listed = json.loads(capfd.readouterr().out)["recipes"]

    rates = {recipe["name"]: recipe["rates"]["en"] for recipe in listed}
    assert sorted(rates) == sorted(recipe_names())
    assert all(recipe["summary"].endswith(".") for recipe in listed)
    assert rates["ugc-light"]["cer"] < rates["ugc"]["cer"] < rates["ugc-heavy"]["cer"]
    assert run(["recipes"]) == 0
    assert all(name in capfd.readouterr().out for name in ["mix_all"])


def test_the_error_rate_of_a_recipe_is_that_of_a_run_on_the_same_text(tmp_path, capfd):
    run(["recipes", "ugc", "--json"])
    measured = json.loads(capfd.readouterr().out)["rates"]["en"]
    english = [line.split("\t") for line in DEMO.read_text("utf-8").splitlines()]
    path = tmp_path / "en.txt"
    path.write_text("\n".join(text for text, _, lang in english if lang == "en"))

    totals = noisegen.augment(path, tmp_path / "out", recipe="ugc", copies=14).totals
    assert measured["texts"] == 300
    assert measured["cer"] == pytest.approx(totals["cer"], rel=0.1)
    assert measured["wer"] == pytest.approx(totals["wer"], rel=0.1)
    assert measured["changed"] == pytest.approx(totals["changed"] / totals["rows"], abs=0.05)


def test_one_recipe_is_described_by_steps_and_languages(tmp_path, capfd):
    path = tmp_path / "chat.yaml"
    path.write_text(
        "# As in chats.\n# Two kinds.\nsteps:\n- one_of:\n  - abr1: {rate: 0.5}\n  - fing\n"
    )

    assert run(["recipes", str(path)]) == 0
    shown = capfd.readouterr().out
    assert "As in chats. Two kinds." in shown
    for part in (
        r"\none_of\n",
        r"  abr1 +rate=0.5 +\w+",
        r"\nen +2 of 2 ",
        r"\nde +1 of 2 ",
    ):
        assert re.search(part, shown), part
    assert run(["recipes", "ucg"]) == 2
    assert "did you mean 'ugc'?" in capfd.readouterr().err


def test_a_preview_without_text_shows_the_demo_text_of_the_language(capfd):
    for lang, begun in (("en", "The city council"), ("de", "Der Stadtrat")):
        assert run(["preview", "--lang", lang, "-n", "1", "-t", "fing:rate=0", "-q"]) == 0
        assert begun in capfd.readouterr().out


def test_the_packaged_examples_are_what_they_say(tmp_path, capsys):
    assert run(["example"]) == 0
    listed = capsys.readouterr().out
    assert "written for noisegen, Apache-2.0" in listed
    for name, rows in (("text", 300), ("posts", 123), ("pairs", 124)):
        assert name in listed
        assert run(["example", name]) == 0
        path = tmp_path / f"{name}.tsv"
        path.write_text(capsys.readouterr().out, "utf-8")
        lines = path.read_text("utf-8").splitlines()
        assert (len(lines), len(set(lines))) == (rows, rows)
    pairs = read_pairs([str(tmp_path / "pairs.tsv")])
    assert pairs.noisy == (tmp_path / "posts.tsv").read_text("utf-8").splitlines()
    assert all(noisy != clean for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True))
    assert run(["example", "pair"]) == 2
    assert "did you mean 'pairs'" in capsys.readouterr().err
