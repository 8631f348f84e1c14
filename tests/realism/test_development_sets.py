"""The development sets, how real noise is on them, and the habits of people and of recipes."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import noisegen
from benchmarks import real_pairs, realism
from noisegen.data.pairs import Pairs
from noisegen.realism.compare import compare_pairs
from tools import habits

Write = Callable[[str, str], None]


@pytest.fixture
def posts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """A repository as MultiLexNorm2's, and what adds a file to it."""
    clone = tmp_path / "clone"
    subprocess.run(["git", "init", "-q", clone], check=True)
    monkeypatch.setenv("NOISEGEN_MULTILEXNORM2", str(clone))

    def write(path: str, text: str) -> None:
        file = clone / "data" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
        for command in (["add", "."], [*author, "commit", "-qm", "data"]):
            subprocess.run(["git", "-C", clone, *command], check=True)

    return write


@pytest.fixture
def tweets(posts: Write, demo: list[dict[str, str]]) -> list[tuple[str, str]]:
    """English pairs that are in the repository."""
    clean = [row["text"] for row in demo if row["lang"] == "en"]
    noisy = [noisegen.noise(text, "fing:rate=0.05", id=row) for row, text in enumerate(clean)]
    pairs = [
        pair
        for pair in zip(noisy, clean, strict=True)
        if len(pair[0].split()) == len(pair[1].split())
    ]
    rows = (
        "".join(f"{a}\t{b}\n" for a, b in zip(*map(str.split, pair), strict=True)) for pair in pairs
    )
    posts("train/original_languages/en/train.norm", "\n".join(rows))
    return pairs


def test_multilexnorm2_is_read_from_a_clone_or_a_bare_repository(
    posts: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part, word in (("train", "u"), ("dev", "ur"), ("test", "unseen")):
        posts(f"{part}/original_languages/en/{part}.norm", f"{word}\t{word} long\nrt\t\n\n")
    posts("dev/new_languages/th/dev.norm", "ก\tก\nข\tข ง\n_\t_\nค\tค\n\n")
    bare = tmp_path / "bare"
    subprocess.run(["git", "clone", "-q", "--bare", tmp_path / "clone", bare], check=True)
    for folder in (tmp_path / "clone", bare):
        monkeypatch.setenv("NOISEGEN_MULTILEXNORM2", str(folder))
        assert "multilexnorm2:en" in real_pairs.available()
        pairs = real_pairs.load("multilexnorm2:en")
        assert sorted(pairs) == [("u rt", "u long"), ("ur rt", "ur long")]
        assert real_pairs.load("multilexnorm2:th") == [("กข ค", "กขง ค")]
    monkeypatch.setenv("NOISEGEN_MULTILEXNORM2", str(tmp_path / "absent"))
    assert "multilexnorm2:en" not in real_pairs.available()


def test_the_benchmark_has_the_figures_of_the_command(
    tweets: list[tuple[str, str]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = tmp_path / "figures.json"
    options = ["--set", "multilexnorm2:en", "--noise", "spel", "--seeds", "1", "--json", str(out)]
    realism.main(options)
    ours, theirs = json.loads(out.read_text())
    _, held = Pairs(*map(list, zip(*tweets, strict=True))).split(0.5)
    made = noisegen.noise(held.clean, "spel", id=list(range(len(held))), seed=0)
    expected = compare_pairs(held, Pairs(made, held.clean), lang="en")
    assert (ours["noise"], theirs["noise"]) == (realism.REAL, "spel")
    assert theirs["auc"] == expected.two_sample.all_rows.value
    assert theirs["auc_changed"] == expected.two_sample.changed_rows.value
    assert theirs["kinds"] == expected.divergences["kinds"].value
    assert ours["kinds"] == expected.divergences["kinds"].floor
    assert ours["auc"] == pytest.approx(expected.two_sample.real_against_clean.value, abs=0.02)
    assert ours["cer"] == expected.real.cer
    assert capsys.readouterr().out.count("| multilexnorm2:en (en) | *real* |") == 1


def test_slight_rows_have_only_punctuation_spaces_or_capitals_changed() -> None:
    clean = ["Yes, it is.", "You are so late", "Stay here", "Go on"]
    held = Pairs(["yes it is", "u are so late", "stay here!", "Go on"], clean)
    counts = realism.measure(held.clean, held.noisy, "en")[1]
    assert realism.figures(held, held, counts, "en").slight == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("clean", "noisy", "expected"),
    [
        (
            "I know Tom. You do.",
            "i know tom, you do",
            ["i for I", "name in lower case", "run-on", "start in lower case", "last stop dropped"],
        ),
        ("You want to sing", "u wanna singin", ["u, ur, r", "wanna, ima, nvm", "ending"]),
        ("I'm going to see", "ima see", ["wanna, ima, nvm"]),
        ("they are going home", "r goin home", ["subject dropped", "u, ur, r", "-in for -ing"]),
        ("so late", "so late lol", ["laugh added"]),
        (
            "he sent “it” home",
            'he swnt "it" home',
            ["substitution, near key", "sign typed plain", "sign typed plain"],
        ),
    ],
)
def test_an_edit_has_its_habit(clean: str, noisy: str, expected: list[str]) -> None:
    assert [habit for habit, *_ in habits.Row(clean, noisy, "en").habits()] == expected


def test_habits_are_counted_by_the_places_that_could_show_them() -> None:
    rows = [habits.Row("I think I can", "i think i can", "en"), habits.Row("I do", "I do", "en")]
    counts = habits.Habits.of(rows).take(["i for I", "merge"])
    assert counts.shown.tolist() == [[2, 0], [0, 0]]
    assert counts.places.tolist() == [[2, 0], [1, 0]]
    assert counts.rows.tolist() == [0.5, 0]
    assert counts.rates.tolist() == [2 / 3, 0]
    assert counts.again.tolist() == [1, 0]


def test_two_planted_writers_are_found() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(2, 6, (600, 2))
    chances = np.where(rng.random((600, 1)) < 0.25, [[0.9, 0.1]], [[0.05, 0.5]])
    counts = habits.Habits(["a", "b"], rng.binomial(places, chances), places)
    fits = habits.writers_of(counts)
    best = min(fits, key=lambda fit: habits.bic(fit, 600))
    assert best.shares == pytest.approx([0.75, 0.25], abs=0.05)
    assert best.chances == pytest.approx(np.array([[0.05, 0.5], [0.9, 0.1]]), abs=0.06)


def test_forms_that_a_recipe_writes_too_often_are_named(
    tweets: list[tuple[str, str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    command = ["multilexnorm2:en", "--noise", "slng:rate=1", "--forms", "3"]
    habits.main(command)
    often = capsys.readouterr().out.partition("Too often in slng:rate=1")[2].splitlines()[4]
    word, form, _, real, chance, ours, excess = map(str.strip, often.strip("|").split("|"))
    assert word != form
    assert (real, chance) == ("0", "0.00%")
    assert float(ours.rstrip("%")) > 20
    assert float(excess) > 0


@pytest.mark.nightly
@pytest.mark.skipif("ud-corrected:ga" not in real_pairs.available(), reason="no development data")
def test_the_programs_run_on_a_real_set(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    options = ["--set", "ga", "--noise", "ugc", "--noise", "channel", "--json", str(out)]
    subprocess.run([sys.executable, "-m", "benchmarks.realism", *options], check=True)
    found = {record["noise"]: record for record in json.loads(out.read_text())}
    assert found["channel"]["auc_changed"] < found["ugc"]["auc_changed"]
    command = [sys.executable, "-m", "tools.habits", "ud-corrected:ga", "--noise", "ugc"]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "BIC by number of writers" in page
