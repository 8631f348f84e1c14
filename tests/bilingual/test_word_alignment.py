"""Words aligned by model 1: against plain loops, on bitext whose translations are known."""

import math
import random
from collections import Counter, defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from conftest import SHARED

from noisegen import cli
from noisegen.bilingual import bitext_words, building
from noisegen.bilingual.bitext_words import Cells, Side
from noisegen.bilingual.building import Thresholds, build, silent, write
from noisegen.bilingual.packaged import COMMON
from noisegen.bilingual.reading import load
from noisegen.bilingual.word_alignment import EMPTY, ROUNDS, TENSION, translations
from noisegen.errors import SourceError, UsageError
from noisegen.lexicon import Lexicon

# The slow twin: dictionaries of words, one cell after the other.


def near(at, size, other, others):
    return math.exp(-TENSION * abs((at + 0.5) / size - (other + 0.5) / others))


def one_direction(pairs):
    """Return for each pair the chances of its cells {(giver place, taker place): chance}."""
    takers = Counter(word for _, side in pairs for word in side)
    total = sum(takers.values())
    empty = {word: count / total for word, count in takers.items()}
    chance = defaultdict(lambda: 1.0)
    for _ in range(ROUNDS):
        counts, lone, found = Counter(), Counter(), []
        for givers, side in pairs:
            shares = {}
            for j, taker in enumerate(side):
                places = [near(i, len(givers), j, len(side)) for i in range(len(givers))]
                weights = [
                    (1 - EMPTY) * place / sum(places) * chance[giver, taker]
                    for giver, place in zip(givers, places, strict=True)
                ]
                whole = sum(weights) + EMPTY * empty[taker]
                for i, giver in enumerate(givers):
                    shares[i, j] = weights[i] / whole
                    counts[giver, taker] += shares[i, j]
                lone[taker] += EMPTY * empty[taker] / whole
            found.append(shares)
        totals = Counter()
        for (giver, _), count in counts.items():
            totals[giver] += count
        chance = {pair: count / totals[pair[0]] for pair, count in counts.items()}
        left = sum(lone.values())
        empty = {word: count / left for word, count in lone.items()}
    return found


def twin(pairs):
    there = one_direction(pairs)
    back = one_direction([(second, first) for first, second in pairs])
    counts = Counter()
    for (first, second), ours, theirs in zip(pairs, there, back, strict=True):
        for i, one in enumerate(first):
            for j, two in enumerate(second):
                counts[one, two] += ours[i, j] * theirs[j, i]
    return counts


def aligned(pairs):
    sides = [Side.of([" ".join(pair[at]) for pair in pairs], 1) for at in (0, 1)]
    cells = Cells.of(*sides, len(pairs))
    counts = translations(cells, *sides, silent)
    first, second = (side.spellings for side in sides)
    return {
        (first[key // len(second)], second[key % len(second)]): count
        for key, count in zip(cells.pairs.tolist(), counts.tolist(), strict=True)
    }


@pytest.mark.parametrize("seed", range(40))
def test_the_model_is_its_slow_twin(seed):
    draw = random.Random(seed)
    words = [f"w{letter}" for letter in "abcdefgh"[: draw.randint(1, 8)]]
    others = [f"ü{letter}" for letter in "abcdefgh"[: draw.randint(1, 8)]]
    pairs = [
        (draw.choices(words, k=draw.randint(1, 6)), draw.choices(others, k=draw.randint(1, 6)))
        for _ in range(draw.randint(1, 12))
    ]
    # Distances are held in 32 bits: 2^-24 of each, times the tension, in every round.
    assert aligned(pairs) == pytest.approx(twin(pairs), rel=2e-6, abs=1e-9)


@pytest.mark.parametrize("block", [1, 7, 50])
def test_cells_are_the_same_in_blocks_of_any_size(monkeypatch, block):
    _, pairs = invented(30)
    sides = [Side.of([pair[at] for pair in pairs], 1) for at in (0, 1)]
    whole = Cells.of(*sides, len(pairs))
    monkeypatch.setattr(bitext_words, "BLOCK", block)
    parts = Cells.of(*sides, len(pairs))
    for name, column in vars(whole).items():
        assert np.array_equal(column, getattr(parts, name)), name


def invented(rows=600, seed=0):
    """Sentences of 60 words and their translations in reversed halves, with words of no meaning."""
    draw = random.Random(seed)
    words = [a + b for a in "bdfglmnprstv" for b in ("a", "e", "i", "o", "u")]
    pairs = []
    for _ in range(rows):
        chosen = draw.sample(words, draw.randint(3, 8))
        told = [word.upper()[::-1] + "x" for word in chosen]
        half = len(told) // 2
        pairs.append((" ".join(chosen), " ".join([*told[half:], "de", *told[:half]])))
    return words, pairs


def bitext(folder, pairs, header="en\tde", name="bitext.tsv"):
    lines = ([header] if header else []) + ["\t".join(pair) for pair in pairs]
    (folder / name).write_text("\n".join(lines) + "\n", "utf-8")
    return str(folder / name)


def test_every_word_of_a_regular_bitext_is_found(tmp_path):
    words, pairs = invented()
    built = build([bitext(tmp_path, pairs)], ("en", "de"), Thresholds(top=1), silent)
    assert {one.clean: one.noisy.upper() for one in built.entries} == {
        word: word.upper()[::-1] + "X" for word in words
    }
    assert all(one.prob > 0.5 for one in built.entries)


def test_the_same_bitext_gives_the_same_bytes(tmp_path):
    _, pairs = invented(200)
    head = {"name": "n", "lang": "en", "into": "de", "source": "s", "license": "l"}
    for name in ("a.tsv", "b.tsv"):
        built = build([bitext(tmp_path, pairs)], ("en", "de"), Thresholds(), silent)
        write(built, tmp_path / name, head)
    assert (tmp_path / "a.tsv").read_bytes() == (tmp_path / "b.tsv").read_bytes()


def test_words_keep_the_spelling_they_have_within_sentences(tmp_path):
    pairs = [("The dog sees Paris", "Der Hund sieht Paris!"), ("A dog", "Ein Hund")] * 5
    pairs += [("Dogs bark", "Hunde bellen"), ("BERLIN sees", "berlin sieht"), ("12 !", "12 !")] * 5
    sides = [Side.of([pair[at] for pair in pairs], 2) for at in (0, 1)]
    assert {"dog", "Paris", "Dogs", "sees"} <= set(sides[0].spellings)
    assert {"Hund", "sieht", "Hunde"} <= set(sides[1].spellings)
    assert not {"12", "dogs"} & set(sides[0].spellings)


def test_a_dictionary_that_was_built_is_read_back(tmp_path):
    _, pairs = invented()
    built = build([bitext(tmp_path, pairs)], ("en", "de"), Thresholds(min_prob=0.02), silent)
    head = {"name": "n", "lang": "en", "into": "de", "source": "two\nlines", "license": "CC0-1.0"}
    for name in ("d.tsv", "d.parquet"):
        write(built, tmp_path / name, head)
        found = load(tmp_path / name, "en", "de")
        rows = [(one.clean, one.noisy, one.expected) for one in built.entries]
        assert [one[:3] for one in found.entries] == rows
    assert Lexicon.load(tmp_path / "d.tsv").head["source"] == "two lines"
    table = pq.read_table(tmp_path / "d.parquet")
    assert table.column_names == ["lang", "into", "clean", "noisy", "count", "prob"]


def test_rows_that_cannot_be_aligned_are_counted(tmp_path, monkeypatch):
    _, pairs = invented(100)
    pairs += [("a", ""), ("12", "34"), (" ".join(["ba"] * 90), "ABx")]
    built = build([bitext(tmp_path, pairs)], ("en", "de"), Thresholds(), silent)
    assert built.pairs == 100
    assert built.dropped == {"empty_side": 1, "no_frequent_word": 1, "too_long": 1}
    monkeypatch.setattr(building, "CELLS_MAX", 1_000)
    some = build([bitext(tmp_path, pairs)], ("en", "de"), Thresholds(), silent)
    assert 0 < some.pairs < 50
    assert some.pairs + some.dropped["sampled_out"] == 100


def test_several_files_count_as_one(tmp_path):
    _, pairs = invented(200)
    parts = [bitext(tmp_path, pairs[at::2], "", f"{at}.tsv") for at in (0, 1)]
    built = build(parts, ("en", "de"), Thresholds(), silent, columns=("1", "2"))
    whole = build([bitext(tmp_path, pairs[::2] + pairs[1::2])], ("en", "de"), Thresholds(), silent)
    assert built == whole


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        (("en", "fr"), SourceError, "no column 'fr' among: en, de; bitext needs the columns"),
        (("en", "en"), UsageError, "must name two columns"),
        (("en", ""), UsageError, "must name two columns"),
    ],
)
def test_columns_that_are_none_are_named(tmp_path, columns, kind, message):
    with pytest.raises(kind, match=message):
        build([bitext(tmp_path, [("a", "b")])], ("en", "de"), Thresholds(), silent, columns=columns)


def test_a_bitext_of_rare_words_says_so(tmp_path):
    with pytest.raises(SourceError, match="no sentence pair to align"):
        build(
            [bitext(tmp_path, [("a b", "c d"), ("e f", "g h")])], ("en", "de"), Thresholds(), silent
        )


@pytest.mark.parametrize("given", [{"min_count": 0}, {"top": 0}, {"min_prob": 1.5}])
def test_thresholds_out_of_range_are_refused(given):
    with pytest.raises(UsageError, match=r"--(min-count|min-prob)"):
        Thresholds(**given)


def run(*arguments):
    return CliRunner().invoke(cli.noisegen, ["dictionary", *map(str, arguments)])


def test_the_command_builds_what_the_other_shows(tmp_path):
    _, pairs = invented(300)
    source, out = bitext(tmp_path, pairs), tmp_path / "en-de.tsv"
    done = run("build", source, "-o", out, "--lang", "en", "--into", "de")
    assert done.exit_code == 0, done.output
    assert "translations of 60 words from 300 sentence pairs" in done.output
    shown = run("translations", out, "--lang", "en", "-w", "ba")
    assert shown.exit_code == 0
    assert "ABX" in shown.output.upper()
    packaged = run("translations", "--lang", "en", "--into", "de", "-w", "house", "--json")
    assert '"noisy": "Haus"' in packaged.output


def test_the_command_refuses_before_it_reads(tmp_path):
    done = run("build", tmp_path / "none.tsv", "-o", "x.csv", "--lang", "en", "--into", "de")
    assert done.exit_code != 0
    assert "write a dictionary as .tsv or .parquet" in str(done.output) + str(done.exception)


@pytest.mark.parametrize(("name", "lang"), [("deu-eng", "de"), ("eng-spa", "es")])
def test_frequent_words_of_real_bitext_have_the_packaged_translations(name, lang):
    """Measured: 0.955 and 0.97 of the 200 most frequent words in both languages."""
    path = SHARED / "tatoeba-opus" / f"{name}.tsv.gz"
    if not path.exists():
        pytest.skip("no development data")
    built = build([str(path)], (lang, "en"), Thresholds(top=1), silent)
    known = defaultdict(set)
    for entry in load(COMMON, lang, "en").entries:
        known[entry.clean.lower()].add(entry.noisy.lower())
    met = [one for one in built.entries if one.clean.lower() in known]
    met = sorted(met, key=lambda one: -one.expected)[:200]
    right = np.mean([one.noisy.lower() in known[one.clean.lower()] for one in met])
    assert right > 0.93
