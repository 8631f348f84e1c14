"""Sets are compared text by text where they can be, doubts are said, and the command shows all."""

import gzip
import html
import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from rich.console import Console
from test_two_sample import TEXTS, noised

from noisegen import augment
from noisegen.augmentation.on_the_fly import Noising
from noisegen.cli import run
from noisegen.data.pairs import Pairs, read_pairs
from noisegen.errors import MissingExtra, UsageError
from noisegen.noising.recipe import Recipe
from noisegen.realism.advice import TRIAL_ROWS
from noisegen.realism.compare import (
    EXAMPLES,
    Realism,
    alongside,
    compare,
    compare_pairs,
)
from noisegen.realism.doubts import languages_differ
from noisegen.realism.figures import HISTOGRAMS, jensen_shannon, measure
from noisegen.realism.report_blocks import comparison_page, comparison_sections, verdict_word
from noisegen.realism.two_sample import Auc
from noisegen.report.terminal import show

pytest.importorskip("sklearn")

GERMAN = [
    f"Das {noun} steht seit {year} am Ufer des Flusses und gehört der Gemeinde."
    for noun in ("Haus", "Boot", "Denkmal", "Lager", "Schild")
    for year in range(1900, 1940)
]


@pytest.fixture(scope="module")
def real() -> Pairs:
    return noised("fing:rate=0.05", 1)


@pytest.fixture(scope="module")
def found(real: Pairs) -> Realism:
    return compare_pairs(real, noised("spac:add_rate=0.05", 1), lang="en")


@pytest.fixture(scope="module")
def source(tmp_path_factory, real: Pairs) -> Path:
    return written(tmp_path_factory.mktemp("real") / "pairs.tsv", real)


def written(path: Path, pairs: Pairs) -> Path:
    rows = zip(pairs.noisy, pairs.clean, strict=True)
    path.write_text("noisy\tclean\n" + "".join(f"{a}\t{b}\n" for a, b in rows), "utf-8")
    return path


def test_equal_sets_do_not_diverge(real: Pairs) -> None:
    same = compare_pairs(real, real)
    assert {one.value for one in same.divergences.values()} == {0}
    assert same.two_sample.all_rows.value == 0.5
    assert same.real == same.synthetic
    assert same.warnings == ()


def test_other_noise_diverges_beyond_what_halves_differ_by(found: Realism) -> None:
    kinds = found.divergences["kinds"]
    assert kinds.value > 0.5 > 10 * kinds.floor
    assert kinds.low <= kinds.value <= kinds.high
    assert found.two_sample.all_rows.value > 0.7


def test_the_same_noise_diverges_by_about_what_halves_do(real: Pairs) -> None:
    again = compare_pairs(real, noised("fing:rate=0.05", 2))
    for one in again.divergences.values():
        assert one.low <= one.value <= max(one.high, 3 * one.floor)
        assert one.value < 3 * one.floor


def test_the_floor_is_that_of_halves_of_the_real_set(real: Pairs, found: Realism) -> None:
    lines = measure(real.clean, real.noisy)[1]["kinds"]
    draws, values = np.random.default_rng(7), []
    for _ in range(200):
        order = draws.permutation(len(lines))
        halves = lines[order[::2]].sum(0), lines[order[1::2]].sum(0)
        values.append(jensen_shannon(*(half[None] for half in halves))[0])
    assert found.divergences["kinds"].floor == pytest.approx(np.mean(values), rel=0.2)


def test_equal_input_gives_equal_figures(real: Pairs, found: Realism) -> None:
    assert compare_pairs(real, noised("spac:add_rate=0.05", 1), lang="en") == found


def test_texts_are_paired_whatever_the_order_and_copies(real: Pairs) -> None:
    order = [number * 7 % len(real) for number in range(len(real))] * 2
    shuffled = noised("spac", 1).take(order)
    ours, theirs, is_paired = alongside(real, shuffled, 10_000)
    assert is_paired
    assert ours.clean == theirs.clean == real.clean


def test_only_shared_texts_are_compared_and_that_is_said(real: Pairs) -> None:
    found = compare_pairs(real, noised("spac", 1, TEXTS[:200]))
    assert found.is_paired
    assert found.real.rows == found.synthetic.rows == 200
    assert "compared on the 200 of 500 real pairs" in " ".join(found.warnings)


def test_no_more_rows_than_wanted_are_compared(real: Pairs) -> None:
    ours, theirs, _ = alongside(real, noised("spac", 1), 120)
    assert (len(ours), len(theirs)) == (120, 120)
    assert ours.clean == theirs.clean
    assert compare_pairs(real, noised("spac", 1), limit=120).warnings == ()


def test_sets_without_a_text_in_common_are_compared_with_a_warning(real: Pairs) -> None:
    other = [text.replace("The", "Each") for text in TEXTS[:300]]
    found = compare_pairs(real, noised("spac", 1, other))
    assert not found.is_paired
    assert found.real.rows == found.synthetic.rows == 300
    assert "share too few clean texts" in " ".join(found.warnings)
    assert "languages" not in " ".join(found.warnings)
    assert found.two_sample.clean_sides is not None


def test_sets_in_different_languages_are_noticed(real: Pairs) -> None:
    found = compare_pairs(real, noised("spac", 1, GERMAN))
    assert "different languages" in found.warnings[-1]


def test_a_small_set_is_said_to_be_small_with_an_interval() -> None:
    pairs = noised("fing:rate=0.1", 1, TEXTS[:40])
    found = compare_pairs(pairs, noised("spac:add_rate=0.1", 1, TEXTS[:40]))
    assert "only 40 pairs" in found.warnings[0]
    assert "95% interval" in found.warnings[0]


def test_an_empty_side_is_an_error(real: Pairs) -> None:
    with pytest.raises(UsageError, match="the synthetic set has no pairs"):
        compare_pairs(real, Pairs([], []))


def test_a_set_without_changes_is_compared() -> None:
    pairs = Pairs(TEXTS, TEXTS)
    found = compare_pairs(pairs, noised("spac:add_rate=0.1", 1))
    assert found.real.edits == 0
    assert found.divergences["kinds"].value == 1
    assert found.two_sample.changed_rows is None
    assert any("real set: no row differs" in line for line in found.warnings)


def test_scikit_learn_missing_is_said(monkeypatch, real: Pairs) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[realism\]"):
        compare_pairs(real, real)


# Tables, page, command.


def printed(found: Realism, width: int = 80) -> str:
    file = io.StringIO()
    show(comparison_sections(found), Console(file=file, width=width))
    return file.getvalue()


def test_tables_fit_a_narrow_terminal_and_show_every_figure(found: Realism) -> None:
    text = printed(found)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    assert f"{found.two_sample.all_rows.value:.3f}" in text
    for name in HISTOGRAMS:
        assert HISTOGRAMS[name].title in text
        assert f"{found.divergences[name].value:.3f}" in text
    shown = [kind for kind, often in found.real.kinds.items() if often]
    assert all(kind in text for kind in shown)


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(found: Realism) -> None:
    text = comparison_page(found)
    assert text.count("<svg") == len(HISTOGRAMS) * 3  # with a sample of each side's style
    assert "<script" not in text
    assert "src=" not in text
    hosts = {word.split("/")[2] for word in text.split('"') if word.startswith("http")}
    assert hosts <= {"www.w3.org", "purl.org", "creativecommons.org"}  # names of vocabularies
    assert comparison_page(found) == text


def test_the_page_names_recipe_and_data_and_shows_whole_rows(source: Path, tmp_path) -> None:
    found = compare(source, recipe="fing:rate=0.1", seed=3)
    assert found.names == (str(source), "recipe fing:rate=0.1 (seed 3)")
    page = comparison_page(found)
    assert f"realism of recipe fing:rate=0.1 (seed 3) against {source.name}</p>" in page
    assert page.index("<h1>") < page.index('class="facts"')  # the verdict before what was compared
    assert page.index('id="ngrams"') < page.index('class="facts"')
    cards = re.findall(r'<li class="card".*?</li>', page, re.DOTALL)
    assert len(cards) == len(found.examples) == EXAMPLES
    real = {text: noisy for noisy, text in pairs_of(source)}
    for card, row in zip(cards, found.examples, strict=True):
        assert row["real"] == real[row["clean"]] != row["clean"] != row["synthetic"]
        sides = dict(re.findall(r"<dt>(\w+)</dt><dd><bdi>(.*?)</bdi></dd>", card, re.DOTALL))
        texts = {name: html.unescape(re.sub("<[^>]*>|‸", "", side)) for name, side in sides.items()}
        assert texts == row


def test_what_a_recipe_leaves_out_in_the_language_is_said(source: Path) -> None:
    found = compare(source, recipe="mix_all", lang="de", limit=40)
    assert found.warnings[0].startswith("mix_all leaves out 8 of its 12 transforms in 'de'")


def pairs_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()[1:]]


def test_a_folder_of_augment_is_named_with_its_recipe_and_seed(source: Path, tmp_path) -> None:
    clean = tmp_path / "clean.txt"
    clean.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    augment(clean, tmp_path / "out", transforms=["fing:rate=0.1"], seed=5)
    found = compare(source, synthetic=tmp_path / "out")
    name = json.loads((tmp_path / "out" / "manifest.json").read_text())["recipe"]["name"]
    assert found.names[1] == f"{tmp_path / 'out'} (recipe {name}, seed 5)"


def test_a_run_of_a_plug_in_is_compared_without_its_code(source: Path, tmp_path: Path) -> None:
    clean, code = tmp_path / "clean.txt", tmp_path / "mine.py"
    clean.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    code.write_text(
        "import noisegen\n"
        '@noisegen.transform("shorn")\n'
        "def shorn(text, draws):\n"
        '    """Drop the last character: "hello" -> "hell"."""\n'
        "    return text[:-1]\n"
    )
    made = ["augment", str(clean), "-t", "shorn", "--code", str(code), "-o", str(tmp_path / "out")]
    subprocess.run([sys.executable, "-m", "noisegen", *made], check=True)
    found = compare(source, synthetic=tmp_path / "out")
    assert found.transforms == ()
    assert found.synthetic.changed_share == 1


def test_the_first_line_is_the_verdict_in_words(found: Realism) -> None:
    auc = found.two_sample.all_rows
    text = printed(found)
    said = f"Obvious: a classifier picks the synthetic text in {auc.value:.0%} of pairs (50%"
    assert text.startswith(said)
    assert "noisegen learn PAIRS" in " ".join(text.split())
    rows = {kind: others for kind, *others in kind_rows(found)}
    share = found.real.kinds["split"] / found.real.edits
    assert rows["split"][1:] == [f"{share:.0%}", "less spac or join"]  # spac splits
    assert rows["substitution"][2] == "more fing"


def test_changes_of_a_recipe_are_tried(source: Path, tmp_path: Path) -> None:
    found = compare(source, recipe="learner", limit=200)
    first, *others = found.advice
    assert (first.kind, first.change.transform) == ("substitution", "fing")  # the real noise
    assert first.change.is_added
    change = first.change
    assert kind_rows(found)[0][3] == f"add fing with p {change.amount:g}: then {change.share:.0%}"
    assert found.changes.after.value < found.changes.before.value
    assert found.changes.before == found.two_sample.all_rows
    (shown,) = re.findall(
        r"The factors, without fing, in a recipe file: ({extends: learner, .*?}})",
        " ".join(printed(found).split()),
    )
    recipe = tmp_path / "mine.yaml"
    recipe.write_text(shown)
    factors = Recipe.named("learner").with_factors(
        {one.transform: one.amount for one in found.changes.changes if not one.is_added}
    )
    mix = Recipe.from_yaml(recipe).mix_of("en")
    assert mix == replace(factors.mix_of("en"), name=mix.name)
    tried = next(one for one in others if one.change)
    alone = Recipe.named("learner").with_factors({tried.change.transform: tried.change.amount})
    recipe.write_text(alone.to_yaml())
    changed = compare(source, recipe=str(recipe), limit=200).synthetic
    assert changed.kinds[tried.kind] / changed.edits == tried.change.share
    assert abs(tried.change.share - tried.real) < abs(tried.synthetic - tried.real)


def test_a_transform_is_changed_once(tmp_path: Path) -> None:
    """`spac` makes both splits and mergers, and both are too rare."""
    recipe, pairs = tmp_path / "mine.yaml", tmp_path / "pairs.tsv"
    steps = "[fing: {rate: 0.03}, spac: {p: 0.3, add_rate: 0.01, drop_rate: 0.05}]"
    recipe.write_text(f"steps: {steps}")
    noisy = Noising("en").noise(Recipe.named("spac:add_rate=0.02,drop_rate=0.1"), TEXTS, 9)
    rows = zip(["noisy", *noisy], ["clean", *TEXTS], strict=True)
    pairs.write_text("".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
    found = compare(pairs, recipe=str(recipe))
    advised = [one.change.transform for one in found.advice if one.change]
    assert advised.count("spac") == 2
    changed = [one.transform for one in found.changes.changes]
    assert len(changed) == len(set(changed)) == len(set(advised))
    assert " ".join(printed(found).split()).count("{fing: 0.25, spac: 4.0}") == 1


def test_a_trial_without_effect_is_no_advice(tmp_path: Path) -> None:
    """More rows than a trial has; no factor changes a step that no row gets."""
    texts = [f"{text} {number}" for number in range(3) for text in TEXTS]
    assert len(texts) > TRIAL_ROWS
    recipe, pairs = tmp_path / "mine.yaml", tmp_path / "pairs.tsv"
    recipe.write_text("steps: [fing: {rate: 0.03}, spac: {p: 0}, join: {p: 0}]")
    noisy = Noising("en").noise(Recipe.named("spac:add_rate=0.03"), texts, 9)
    rows = zip(["noisy", *noisy], ["clean", *texts], strict=True)
    pairs.write_text("".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
    found = compare(pairs, recipe=str(recipe))
    rows = {kind: others for kind, *others in kind_rows(found)}
    assert rows["split"][2] == "no change helps"
    assert "spac" not in [one.transform for one in found.changes.changes]


def kind_rows(found: Realism) -> list[list[str]]:
    """The rows of the table in the verdict, as texts."""
    table = comparison_sections(found)[0].blocks[0]
    return [[getattr(cell, "text", cell) for cell in row] for row in table.rows]


@pytest.mark.parametrize(
    ("value", "word"),
    [(0.4, "indistinguishable"), (0.6, "close"), (0.8, "visible"), (0.81, "obvious")],
)
def test_an_auc_has_a_word(value, word) -> None:
    assert verdict_word(Auc(value, value, value, 99, 99)) == word
    assert verdict_word(Auc(0.6, 0.5, 0.9, 99, 99)) == "close to obvious"  # a wide interval
    assert verdict_word(Auc(0.6, 0.5, 0.7, 99, 99)) == "close or visible"


def test_examples_of_different_texts_are_of_each_set(real: Pairs) -> None:
    other = noised("fing:rate=0.1", 1, [text.replace("The", "Each") for text in TEXTS[:300]])
    examples = compare_pairs(real, other).examples
    assert [sorted(one) for one in examples] == [
        *[["clean", "real"]] * (EXAMPLES // 2),
        *[["clean", "synthetic"]] * (EXAMPLES // 2),
    ]


def test_text_of_the_sets_cannot_break_the_page(real: Pairs) -> None:
    evil = Pairs([f"{text}<script>alert(1)</script>" for text in real.clean], real.clean)
    text = comparison_page(compare_pairs(real, evil))
    assert "<script" not in text
    assert "&lt;" in text


def test_the_command_compares_with_a_recipe(source: Path, tmp_path, capsys) -> None:
    out = tmp_path / "report.html"
    code = run(
        ["realism", "--pairs", str(source), "--recipe", "spac:add_rate=0.05", "-o", str(out)]
    )
    printed = capsys.readouterr()
    assert code == 0
    assert "Can a classifier tell them apart?" in printed.out
    assert out.read_text("utf-8").startswith("<!doctype html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


def test_the_command_compares_with_a_folder_of_augment(source: Path, tmp_path, capsys) -> None:
    clean = tmp_path / "clean.txt"
    clean.write_text("".join(f"{text}\n" for text in TEXTS), "utf-8")
    augment(clean, tmp_path / "out", transforms=["spac:add_rate=0.05"])
    arguments = ["realism", "--pairs", str(source), "--synthetic", str(tmp_path / "out"), "--json"]
    assert run([*arguments, "--quiet"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert found["is_paired"] is True
    assert found["pairs_read"] == [500, 500]
    assert found["two_sample"]["all_rows"]["value"] > 0.7
    assert set(found["divergences"]) == set(HISTOGRAMS)
    assert printed.err == ""


@pytest.mark.parametrize("extra", [[], ["--recipe", "spac", "--synthetic", "x"]])
def test_one_kind_of_synthetic_noise_must_be_chosen(source: Path, extra, capsys) -> None:
    assert run(["realism", "--pairs", str(source), *extra]) == 2
    assert "give either --synthetic or a recipe, with --recipe or -t" in capsys.readouterr().err


def test_transforms_are_a_recipe_too(source: Path, capsys) -> None:
    steps = ["spac:drop_rate=0.3", "fing"]
    noise = ["-t", steps[0], "-t", steps[1]]
    assert run(["realism", "--pairs", str(source), *noise, "-n", "150", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["names"][1] == "recipe spac+fing (seed 0)"
    clean = read_pairs([str(source)]).sample(150).clean
    made = Noising("en").noise(Recipe.of(steps), clean, 0)
    noise_of = dict(zip(clean, made, strict=True))
    assert all(row["synthetic"] == noise_of[row["clean"]] for row in found["examples"])
    assert run(["realism", "--pairs", str(source), *noise, "--recipe", "ugc"]) == 2
    assert "--recipe and -t exclude each other" in capsys.readouterr().err


def test_a_recipe_is_compared_at_each_strength(source: Path) -> None:
    levels = ["x0", "x1", "x3"]
    found = compare(source, recipe="ugc", seed=3, strength="x0,x1,x3", limit=120)
    assert list(found.levels) == levels
    alone = compare(source, recipe="ugc", seed=3, limit=120)
    same = replace(found.levels["x1"], names=alone.names, transforms=alone.transforms)
    untried = tuple(replace(one, change=None) for one in alone.advice)
    assert same == replace(alone, advice=untried, changes=None)
    rates = [found.levels[strength].synthetic.cer for strength in levels]
    assert 0 == rates[0] < rates[1] < rates[2]
    assert found.synthetic == found.levels["x0"].synthetic
    assert found.names[1] == "recipe ugc (seed 3) at x0, x1, x3"
    assert found.levels["x3"].names[1] == "recipe ugc (seed 3) at x3"
    nothing = "synthetic set: no row differs from its clean version: there is no noise to compare"
    assert [line for line in found.warnings if "no row differs" in line] == [f"at x0: {nothing}"]
    for row in found.examples:
        assert list(row) == ["clean", "real", *levels]
        assert row["x0"] == row["clean"] != row["x3"]


def test_the_command_shows_a_column_for_each_strength(source: Path, tmp_path, capsys) -> None:
    out = tmp_path / "report.html"
    words = ["realism", "--pairs", str(source), "--recipe", "ugc", "--strength", "x0.5,x1,x2"]
    assert run([*words, "--limit", "60", "-o", str(out), "-q"]) == 0
    text = capsys.readouterr().out
    rates = text.partition("\nRates of both sets\n")[2].splitlines()
    assert rates[0].split() == ["rate", "real", "x0.5", "x1", "x2"]
    assert [len(line.split()) for line in rates[2:6]] == [5, 5, 5, 5]
    assert re.search(r"^AUC( +0\.\d{3} ±0\.\d{3}){3}$", text, re.MULTILINE)
    assert re.match(r"[\w ]+: at x0.5 a classifier picks the synthetic text in \d+%", text)
    assert re.search(r"It picks \d+% at x0.5, \d+% at x1, \d+% at x2\.", text)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    page = out.read_text("utf-8")
    for strength in ("x0.5", "x1", "x2"):
        assert f"n-grams at {strength}" in page
    assert run([*words, "--limit", "60", "--json", "-q"]) == 0
    assert list(json.loads(capsys.readouterr().out)["levels"]) == ["x0.5", "x1", "x2"]


@pytest.mark.parametrize(
    ("noise", "strength", "said"),
    [
        (["--synthetic", "x"], "x2", "--strength scales a recipe: name one with --recipe"),
        (["--recipe", "ugc"], "two", "is no factor: write x0.5"),
        (["--recipe", "ugc"], "x1,x1", "write each factor once"),
    ],
)
def test_a_wrong_strength_is_wrong_usage(source: Path, noise, strength, said, capsys) -> None:
    words = ["realism", "--pairs", str(source), *noise, "--strength", strength, "-q"]
    assert run(words) == 2
    assert said in capsys.readouterr().err


def test_the_page_never_replaces_a_source(source: Path, tmp_path, capsys) -> None:
    path = tmp_path / "pairs.tsv"
    before = source.read_bytes()
    path.write_bytes(before)
    words = ["realism", "--quiet", "-o", str(path)]
    for given in (
        ["--pairs", str(path), "--recipe", "spac"],
        ["--pairs", str(source), "--synthetic", str(path)],
    ):
        assert run([*words, *given]) == 2
        assert "is one of the sources" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_fewer_rows_are_compared_of_all_that_were_read(source: Path, capsys) -> None:
    words = ["--pairs", str(source), "--recipe", "spac:add_rate=0.05", "--limit", "60"]
    assert run(["realism", *words, "--json", "--quiet"]) == 0
    printed = capsys.readouterr()
    found = json.loads(printed.out)
    assert (found["pairs_read"], found["real"]["rows"], found["is_paired"]) == ([500, 60], 60, True)
    assert printed.err == ""


def test_a_missing_source_is_one_line(tmp_path, capsys) -> None:
    assert run(["realism", "--pairs", str(tmp_path / "no.tsv"), "--recipe", "spac", "--quiet"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1


def test_an_unknown_recipe_is_wrong_usage(source: Path, capsys) -> None:
    assert run(["realism", "--pairs", str(source), "--recipe", "spca", "--quiet"]) == 2
    assert "did you mean 'spac'" in capsys.readouterr().err


def test_pairs_without_a_side_are_counted(source: Path, tmp_path, capsys) -> None:
    path = tmp_path / "gaps.tsv"
    path.write_text(source.read_text("utf-8") + "\tnothing here\nno clean text\t\n", "utf-8")
    assert run(["realism", "--pairs", str(path), "--recipe", "spac", "--quiet", "--json"]) == 0
    assert "warning: real set: dropped 2 pairs: empty_side" in capsys.readouterr().err


def test_damaged_input_is_said_and_exits_with_3(source: Path, tmp_path, capsys) -> None:
    path = tmp_path / "cut.m2.gz"
    blocks = "".join(
        f"S {text}\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n\n" for text in TEXTS
    )
    path.write_bytes(gzip.compress(blocks.encode())[:-40])
    code = run(["realism", "--pairs", str(path), "--recipe", "spac", "--quiet", "--json"])
    assert code == 3
    assert "damaged: " in capsys.readouterr().err


def test_letter_pairs_tell_languages_and_not_samples() -> None:
    assert languages_differ(TEXTS, GERMAN)
    assert not languages_differ(TEXTS[::2], TEXTS[1::2])
    assert not languages_differ(["天氣很好"] * 999, ["下雨了嗎"] * 999)
    assert not languages_differ(["Hi"], ["Ja"])
