"""`noisegen learn`: learns, shows, merges, and says in one line what is wrong."""

import json

import pytest
from learned import noisy_pairs
from runs import begin, visible, wait_for

from noisegen import cli
from noisegen.realism import learn


@pytest.fixture(scope="module")
def pairs(tmp_path_factory, demo_texts):
    path = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    rows = [f"{noisy}\t{clean}" for noisy, clean in noisy_pairs(demo_texts[:100])]
    path.write_text("\n".join(["noisy\tclean", *rows]) + "\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def profile(pairs, tmp_path_factory):
    """A profile that no test changes."""
    path = tmp_path_factory.mktemp("learned") / "profile"
    assert cli.run(["learn", str(pairs), "-o", str(path), "-q"]) == 0
    return path


def test_pairs_become_a_profile(pairs, tmp_path, capsys):
    assert cli.run(["learn", str(pairs), "-o", str(tmp_path / "out"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["pairs"] > 100
    assert (tmp_path / "out" / "words.parquet").is_file()


def test_workers_learn_the_same_profile(pairs, profile, tmp_path, monkeypatch):
    monkeypatch.setattr(learn, "PAIRS_AT_ONCE", 40)  # so that there is work for two
    learn.learn(pairs, tmp_path / "two", workers=2)
    files = visible(profile)
    assert len(files) == 7
    for name in files:
        assert (tmp_path / "two" / name).read_bytes() == (profile / name).read_bytes()


def test_show_prints_tables(profile, capsys):
    assert cli.run(["learn", "show", str(profile), "-n", "3"]) == 0
    out = capsys.readouterr().out
    for title in ("edits per row", "between words", "letters between their neighbours", "the"):
        assert title in out


def test_show_prints_json(profile, capsys):
    assert cli.run(["learn", "show", str(profile), "-n", "3", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["words"]) == len(found["gaps"]) == 3
    assert found["totals"]["pairs"] > 100


def test_merge_adds_up(profile, tmp_path, capsys):
    both = ["learn", "merge", str(profile), str(profile), "-o", str(tmp_path / "both"), "--json"]
    assert cli.run(both) == 0
    merged = json.loads(capsys.readouterr().out)
    cli.run(["learn", "show", str(profile), "--json"])
    assert merged["pairs"] == 2 * json.loads(capsys.readouterr().out)["totals"]["pairs"]


def test_a_path_named_as_a_command_is_within_reach(pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [line.split("\t") for line in pairs.read_text("utf-8").splitlines()[1:]]
    (tmp_path / "show").write_text("\n".join(noisy for noisy, _ in rows), "utf-8")
    (tmp_path / "clean").write_text("\n".join(clean for _, clean in rows), "utf-8")
    assert cli.run(["learn", "./show", "--clean-file", "clean", "-o", "out", "-q"]) == 0
    assert cli.run(["learn", "from", "show", "--clean-file", "clean", "-o", "more", "-q"]) == 0


def test_aligned_files_are_pairs_too(tmp_path):
    (tmp_path / "noisy.txt").write_text("teh end\n" * 5)
    (tmp_path / "clean.txt").write_text("the end\n" * 5)
    files = [str(tmp_path / "noisy.txt"), "--clean-file", str(tmp_path / "clean.txt")]
    assert cli.run(["learn", *files, "-o", str(tmp_path / "out")]) == 0


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (["teh end\tthe end"] * 3, "warning: only 3 pairs: the share of changed rows is 100%"),
        (["the end\tthe end"] * 3, "warning: no pair differs: the profile makes no noise"),
        (["teh end\tthe end", "\tso"], "dropped: empty_side 1"),
    ],
)
def test_doubtful_pairs_are_told(tmp_path, capsys, rows, message):
    (tmp_path / "few.tsv").write_text("\n".join(["noisy\tclean", *rows]) + "\n")
    assert cli.run(["learn", str(tmp_path / "few.tsv"), "-o", str(tmp_path / "out")]) == 0
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "nowhere"], "error: nowhere is no profile, it has no profile.json"),
        (["nowhere.tsv", "-o", "out"], "nowhere.tsv"),
        (["merge", "nowhere", "-o", "out"], "error: nowhere is no profile"),
    ],
)
def test_what_is_missing_is_said_in_one_line(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    assert cli.run(["learn", *arguments]) == 1
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_a_profile_is_not_written_over_unasked(profile, pairs, capsys):
    assert cli.run(["learn", str(pairs), "-o", str(profile)]) == 1
    assert "is not empty; choose another folder or use --force" in capsys.readouterr().err
    assert cli.run(["learn", str(pairs), "-o", str(profile), "--force", "-q"]) == 0


def test_what_a_killed_command_left_is_written_over_by_force(pairs, tmp_path):
    process = begin("learn", pairs, "-o", tmp_path / "killed")
    wait_for(lambda: list(tmp_path.glob("killed/.noisegen/*")))
    process.kill()
    process.communicate()
    assert not (tmp_path / "killed" / "profile.json").exists()
    assert cli.run(["learn", str(pairs), "-o", str(tmp_path / "killed"), "--force", "-q"]) == 0
