"""Files that noisegen did not write stay as they are, whatever their names and the command."""

import shutil
from contextlib import suppress
from importlib import import_module

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from runs import DEMO, augment

from noisegen.cli import run
from noisegen.errors import OutputError
from noisegen.runs.folder import RunFolder, read_config
from noisegen.runs.lock import STATE
from noisegen.runs.manifest import Manifest

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n"
ABOUT = b"# My thesis\nThe data are made with noisegen 0.1.\n"
MINED = pa.table({name: ["a"] for name in ("lang", "clean", "noisy", "count")})
OWN = pa.table({name: ["a"] for name in ("id", "lang", "clean", "noisy", "more")})
HOW = {"force": ["--force"], "resume": ["--resume"], "part": ["--part", "1/1"], "": []}
COMMANDS = {
    "augment": ["-t", "spac", "--limit", "5", "--workers", "1"],
    "prepare": ["--identify", "no", "--workers", "1"],
    "mine-pairs": ["--workers", "1"],
    "learn": [],
}
CASES = [
    ("augment", "resume", "README.md", ABOUT),
    ("augment", "part", "README.md", ABOUT),
    ("augment", "force", "README.md", ABOUT),
    ("augment", "force", "part-00000.parquet", POINTER),  # no name of a run
    ("augment", "part", "part-00000.parquet", POINTER),
    ("augment", "resume", "data/part-00000.parquet", POINTER),
    ("augment", "force", "data/part-00001.parquet", b"PAR1 not really PAR1"),
    ("augment", "force", "manifest.json.orig", b"{}\n"),
    ("augment", "force", "README.md.final.tmp", b"mine\n"),
    ("prepare", "force", "README.md", ABOUT),
    ("prepare", "force", "README.md.bak", b"old\n"),
    ("prepare", "force", "work/notes.txt", b"mine\n"),
    ("prepare", "resume", "work/notes.txt", b"mine\n"),
    ("mine-pairs", "force", "pairs/part-00000.parquet", POINTER),
    ("mine-pairs", "part", "words/part-00000.parquet", POINTER),
    ("mine-pairs", "force", "dictionary.parquet", POINTER),
    ("mine-pairs", "force", "dictionary.parquet", MINED),
    ("mine-pairs", "resume", "words/part-00000.parquet", MINED),
    ("learn", "force", "profile.json", b'{"user": "me"}\n'),
    ("learn", "force", "words.parquet", POINTER),
]


def files_in(out):
    """Return the bytes of all files of a folder, with its records."""
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    noisy = "They will definately close the old bridge near the harbour ."
    path.write_text(f"noisy\tclean\n{noisy}\t{noisy.replace('definately', 'definitely')}\n")
    return path


@pytest.fixture
def try_(pairs, tmp_path):
    """Run a command into the folder `out`, and return what became of its files."""

    def run_into(command, how):
        source = pairs if command in ("mine-pairs", "learn") else DEMO
        out = tmp_path / "out"
        code = run([command, str(source), "-o", str(out), *COMMANDS[command], *HOW[how], "--quiet"])
        return code, out

    return run_into


@pytest.mark.parametrize(("command", "how", "name", "content"), CASES)
def test_a_foreign_file_is_neither_overwritten_nor_removed(
    try_, tmp_path, capfd, command, how, name, content
):
    path = tmp_path / "out" / name
    path.parent.mkdir(parents=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        pq.write_table(content, path)
    before = path.read_bytes()

    code, out = try_(command, how)

    assert path.read_bytes() == before
    if code:
        assert not (out / STATE).exists()
        [line] = capfd.readouterr().err.splitlines()
        assert line.startswith("error: ")
        assert str(out) in line


@pytest.mark.parametrize("how", ["force", "resume"])
@pytest.mark.parametrize(("name", "code"), [("data/part-00007.parquet", 1), ("part-0.parquet", 0)])
def test_beside_a_run_too(try_, tmp_path, how, name, code):
    augment(DEMO, tmp_path / "out", transforms=["spac"], limit=5, seed=0)
    (tmp_path / "out" / name).write_bytes(POINTER)

    assert try_("augment", how)[0] == code

    assert (tmp_path / "out" / name).read_bytes() == POINTER


@pytest.mark.parametrize("how", ["force", "resume"])
@pytest.mark.parametrize("name", ["README.md", "manifest.json"])
@pytest.mark.parametrize("command", ["augment", "prepare", "mine-pairs"])
def test_a_card_or_manifest_that_was_replaced_is_not_ours(try_, command, name, how, capfd):
    _, out = try_(command, "")
    (out / name).write_bytes(ABOUT)
    before = files_in(out)

    assert try_(command, how)[0] == 1

    assert str(out / name) in capfd.readouterr().err
    assert files_in(out) == before


@pytest.mark.parametrize(
    "content", [b'{"user": "me"}\n', b"{}\n", b"[]\n", b"a: 1\ndata: 2\n", ABOUT]
)
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("realism.learn", "profile.json"),
        ("evaluation.evaluate", "results.json"),
        ("evaluation.evaluate", "metrics.json"),
        ("evaluation.tasks.evaluate_task", "results.json"),
        ("evaluation.tasks.evaluate_task", "metrics.json"),
        ("training.train", "config.yaml"),
        ("training.train", "metrics.json"),
    ],
)
def test_another_text_at_the_place_of_one_that_is_written_once_is_not_ours(
    tmp_path, module, name, content
):
    """Tests of each command show that its own files are overwritten."""
    pytest.importorskip("torch")
    layout = import_module(f"noisegen.{module}").LAYOUT
    with RunFolder(tmp_path, layout, {}).claimed(force=False):
        pass
    (tmp_path / name).write_bytes(content)
    before = files_in(tmp_path)

    with (
        pytest.raises(OutputError, match=f"noisegen did not .*{name}"),
        RunFolder(tmp_path, layout, {}).claimed(force=True),
    ):
        pass

    assert files_in(tmp_path) == before


def test_results_of_another_command_are_not_ours(tmp_path):
    pytest.importorskip("torch")
    names = ("evaluation.evaluate", "evaluation.tasks.evaluate_task")
    evaluation, task = (import_module(f"noisegen.{name}").LAYOUT for name in names)
    with RunFolder(tmp_path, task, {}).claimed(force=False):
        (tmp_path / "results.json").write_text('{\n "figures": []\n}\n')

    with RunFolder(tmp_path, task, {}).claimed(force=True):
        pass
    with (
        pytest.raises(OutputError, match="noisegen did not write"),
        RunFolder(tmp_path, evaluation, {}).claimed(force=True),
    ):
        pass


@pytest.mark.parametrize("how", ["force", "resume"])
@pytest.mark.parametrize("table", [MINED.drop(["clean", "noisy"]), OWN])
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("augment", "data/part-00000.parquet"),
        ("mine-pairs", "pairs/part-00000.parquet"),
        ("mine-pairs", "words/part-00000.parquet"),
    ],
)
def test_a_shard_that_was_replaced_by_a_whole_table_is_not_ours(
    try_, command, name, table, how, capfd
):
    """The table has the columns of no run, or those of the run but another size."""
    _, out = try_(command, "")
    pq.write_table(table, out / name)
    before = files_in(out)

    assert try_(command, how)[0] == 1

    assert str(out / name) in capfd.readouterr().err
    assert files_in(out) == before


@pytest.mark.parametrize("how", ["force", "resume"])
def test_other_tables_that_were_replaced_are_not_ours(try_, how):
    foreign = pa.table({"mine": [1]})
    for command, name in [
        ("prepare", "data/part-00000.parquet"),
        ("mine-pairs", "dictionary.parquet"),
        ("learn", "words.parquet"),
    ]:
        if (command, how) == ("learn", "resume"):
            continue
        _, out = try_(command, "")
        pq.write_table(foreign, out / name)
        assert try_(command, how)[0] == 1
        assert pq.read_table(out / name).equals(foreign)
        shutil.rmtree(out)


@pytest.mark.parametrize("how", ["force", "resume"])
def test_a_foreign_table_in_a_run_that_was_interrupted_stays(try_, tmp_path, how, monkeypatch):
    def fail(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(Manifest, "save", fail)
        augment(DEMO, tmp_path / "out", transforms=["spac"], limit=5, seed=0)
    foreign = tmp_path / "out" / "data" / "part-00007.parquet"
    pq.write_table(pa.table({"mine": [1]}), foreign)
    before = files_in(tmp_path / "out")

    assert try_("augment", how)[0] == 1

    assert files_in(tmp_path / "out") == before


def test_a_card_with_another_licence_is_still_ours(try_):
    _, out = try_("augment", "")
    card = (out / "README.md").read_text()
    (out / "README.md").write_text(card.replace("---\n", "---\nlicense: cc0-1.0\n", 1))
    before = files_in(out)

    assert try_("augment", "resume")[0] == 0

    assert files_in(out) == before


def test_a_foreign_card_is_read_within_bounds(try_):
    _, out = try_("augment", "")
    with (out / "README.md").open("wb") as file:
        file.truncate(4 << 30)
    assert try_("augment", "force")[0] == 1


@pytest.mark.parametrize("command", ["prepare", "augment"])
def test_a_run_without_its_records_is_not_ours(try_, tmp_path, command, capfd):
    assert try_(command, "force")[0] == 0
    shutil.rmtree(tmp_path / "out" / STATE)

    assert try_(command, "force")[0] == 1
    assert "move it, or use another folder" in capfd.readouterr().err


def test_a_run_of_another_kind_is_not_ours(try_):
    assert try_("augment", "force")[0] == 0
    assert try_("prepare", "force")[0] == 1


def test_beside_intermediate_files_too(try_, tmp_path):
    assert try_("prepare", "force")[0] == 0
    foreign = tmp_path / "out" / "work" / "notes.txt"
    foreign.parent.mkdir()
    foreign.write_text("mine\n")
    (tmp_path / "out" / "data" / "part-00000.parquet").unlink()

    assert try_("prepare", "resume")[0] == 0

    assert [*foreign.parent.iterdir()] == [foreign]


def test_a_run_fetched_without_its_data_is_made_again(try_, tmp_path):
    augment(DEMO, tmp_path / "out", transforms=["spac"], limit=5, seed=0)
    shard = tmp_path / "out" / "data" / "part-00000.parquet"
    content = shard.read_bytes()
    shard.write_bytes(POINTER)  # as git leaves it: the manifest says that it is ours

    assert try_("augment", "resume")[0] == 0

    assert shard.read_bytes() == content


def test_a_folder_that_only_began_is_gone_on_with(try_, tmp_path):
    (tmp_path / "out" / STATE).mkdir(parents=True)
    shutil.copy(DEMO, tmp_path / "out" / "mine.tsv")

    assert try_("augment", "")[0] == 1
    assert try_("augment", "resume")[0] == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        STATE,
        "README.md",
        "data",
        "manifest.json",
        "mine.tsv",
    ]


def test_a_foreign_configuration_nested_without_end_is_none_of_ours(tmp_path):
    (tmp_path / "config.yaml").write_bytes(b"[" * 100_000)
    assert read_config(tmp_path) is None


def test_a_foreign_manifest_nested_without_end_is_one_line(tmp_path):
    (tmp_path / "manifest.json").write_bytes(b"[" * 100_000)
    with pytest.raises(OutputError, match="is not the manifest of a run: "):
        Manifest.load(tmp_path)


PAIRS = "lang\tclean\tnoisy\tcount\tpages\treverse_count\tprob\nen\tthe\tteh\t1\t1\t0\t1\n"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("dictionary export d.tsv -o", "mine.json"),
        ("dictionary filter d.tsv -o", "mine.tsv"),
        ("dictionary merge d.tsv d.tsv -o", "mine.parquet"),
        ("calibrate --recipe fing --target-cer 0.05 -o", "mine.yaml"),
        ("augment t.txt -t spac --workers 1 -o", "mine.txt"),
    ],
)
def test_a_file_that_is_there_is_overwritten_with_force_alone(
    words, name, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.tsv").write_text(PAIRS)
    (tmp_path / "t.txt").write_text("one text\n" * 3)
    (tmp_path / name).write_bytes(ABOUT)

    assert run([*words.split(), name]) == 1
    error = f"error: {name} exists; add --force to overwrite it\n"
    assert (capfd.readouterr().err, (tmp_path / name).read_bytes()) == (error, ABOUT)
    if words.startswith("calibrate"):
        return  # takes seconds
    assert run([*words.split(), name, "--force"]) == 0
    assert (tmp_path / name).read_bytes() != ABOUT


def test_a_dictionary_is_never_written_over_its_source(tmp_path, capfd):
    (tmp_path / "d.tsv").write_text(PAIRS)
    place = str(tmp_path / "d.tsv")

    assert run(["dictionary", "filter", place, "-o", place, "--min-count", "9", "--force"]) == 2
    assert "is one of the sources" in capfd.readouterr().err
    assert (tmp_path / "d.tsv").read_text() == PAIRS


@pytest.mark.parametrize("name", ["mine.html", "mine.PNG"])
def test_a_page_or_picture_takes_the_place_of_none_but_ours(name, tmp_path, capfd):
    if name.endswith("PNG"):
        pytest.importorskip("matplotlib")
    augment(DEMO, tmp_path / "out", limit=5, workers=1)
    words, page = ["stats", str(tmp_path / "out"), "--plot"], tmp_path / name

    page.write_bytes(ABOUT)
    assert run([*words, str(page)]) == 1
    assert f"{page} exists, and not by noisegen" in capfd.readouterr().err
    assert page.read_bytes() == ABOUT
    page.unlink()
    for _ in range(2):
        assert run([*words, str(page)]) == 0


@pytest.mark.parametrize(
    "words", ["realism --pairs d.tsv --recipe fing -o", "review report r.sqlite -o"]
)
def test_pages_are_refused_before_anything_is_measured(words, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.html").write_bytes(ABOUT)

    assert run([*words.split(), "mine.html"]) == 1
    assert "mine.html exists, and not by noisegen" in capfd.readouterr().err
    assert (tmp_path / "mine.html").read_bytes() == ABOUT
