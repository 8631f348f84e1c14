"""`codeswitch`: words replaced by translations, at least one; both forms agree."""

import gzip
import math
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from conftest import SHARED
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, KINDS, LIVELY_TEXT, both, compare, single

import noisegen
from noisegen.augmentation.shards import carry
from noisegen.data.dictionaries import COMMON, load_translations, packaged_languages
from noisegen.errors import UsageError
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings, examples_in, get
from noisegen.testing import check_transform

SAMPLES = {
    "en": ("See you tomorrow, my friend.", "I think it is good. The HOUSE is new!"),
    "de": ("Mein Haus ist neu. Ich sehe dich morgen.", "DAS IST GUT, sagte die Frau."),
    "fr": ("C'est une belle journée, mon ami.", "La maison est petite et l’eau est froide."),
    "ro": ("Și casa este nouă. Șase prieteni.", "ȘI MÂINE, la școală."),
    "ar": ("هذا بيت كبير جدا.", "من هو صديق الولد؟ لا أعرف"),
}


def real(name: str, column: int) -> list[str]:
    path = SHARED / "tatoeba-opus" / f"{name}.tsv.gz"
    if not path.exists():
        pytest.skip("no development data")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n").split("\t")[column] for line in file]


def treebank(name: str) -> list[str]:
    path = SHARED / "ud-text" / f"{name}-ud-dev.conllu.gz"
    if not path.exists():
        pytest.skip("no development data")
    mark = "# text = "
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line[len(mark) :].rstrip("\n") for line in file if line.startswith(mark)]


def noised(texts, lang="en", kinds=(), seed=0, **values):
    engine = Engine(Recipe.of([Step("codeswitch", values)]), Settings(lang))
    dice = Streams(np.arange(len(texts), dtype=np.uint64), seed)
    return engine.noise(pa.array(texts, pa.string()), dice, kinds).noisy.to_pylist()


@pytest.mark.parametrize("lang", SAMPLES)
def test_it_keeps_the_promises(lang):
    check_transform("codeswitch", lang, SAMPLES[lang])


@pytest.mark.parametrize("lang", SAMPLES)
@pytest.mark.parametrize("rate", [0.02, 0.3, 1])
def test_both_forms_agree(lang, rate, demo, odd_texts):
    rows = list(SAMPLES[lang]) * 20 + [row["text"] for row in demo if row["lang"] == lang]
    assert compare(single("codeswitch", rate=rate), rows + odd_texts[:-1], lang=lang) >= 40


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "column", "lang", "into"),
    [
        ("deu-eng", 0, "de", "en"),
        ("deu-eng", 1, "en", "de"),
        ("eng-fra", 1, "fr", "it"),
        ("ara-eng", 0, "ar", "en"),
        ("eng-nld", 0, "en", "ro"),
    ],
)
def test_both_forms_agree_on_real_sentences(name, column, lang, into):
    rows = real(name, column)[:1_000]
    assert compare(single("codeswitch", into=into), rows, lang=lang) > 700


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "lang", "into"),
    [("en_ewt", "en", "ar"), ("fr_gsd", "fr", "ro"), ("de_gsd", "de", "pt")],
)
def test_both_forms_agree_on_news_and_posts(name, lang, into):
    rows = treebank(name)[:500]
    assert compare(single("codeswitch", into=into, rate=0.1), rows, seed=5, lang=lang) > 350


@pytest.fixture(scope="module")
def odd_dictionary(tmp_path_factory):
    """Phrases, cases, apostrophes, scripts and weights in one dictionary."""
    rows = [
        ("see", "SIEHE", 3),
        ("see you", "bis dann", 1),
        ("see you tomorrow", "bis morgen", 1),
        ("See", "der See", 2),
        ("Monday", "Montag", 1),
        ("monday", "montags", 5),
        ("I", "ich", 1),
        ("don't", "nicht doch", 1),
        ("é", "ß", 2),
        ("é", "ı", 1),
        ("дом", "дача", 1),
        ("Дом", "Dom", 2),
        ("straße", "ulica", 1),
        ("şimdi", "ახლა", 1),
        ("İ", "i", 1),
        ("東京", "Tokyo", 1),
        ("हिन्दी", "Hindi", 7),
        ("money", "ǆep", 1),
        ("as soon", "σαν", 1),
        ("good as", "так", 1),
        ("a", "ʼn", 1),
    ]
    path = tmp_path_factory.mktemp("dictionary") / "odd.tsv"
    lines = ["clean\tnoisy\tweight", *("\t".join(map(str, row)) for row in rows)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


ODD = (
    "see SEE See you You tomorrow monday MONDAY дом Дом ДОМ дОМ straße STRASSE Şimdi ŞİMDİ é É İ i "
    "a I Monday the as soon as good as don't DON’T 東京 हिन्दी Money"
)
ODD_TEXT = st.lists(st.sampled_from([*ODD.split(), ".", "? ", "!\n"]), max_size=12).map(" ".join)


@given(
    st.lists(ANY_TEXT | LIVELY_TEXT | ODD_TEXT, min_size=1, max_size=12),
    st.integers(0, 2**64 - 1),
    st.sampled_from([0, 0.01, 0.4, 1]),
)
@settings(max_examples=60)
def test_both_forms_agree_on_any_text(odd_dictionary, rows, seed, rate):
    ours, expected = both(single("codeswitch", dictionary=odd_dictionary, rate=rate), rows, seed)
    assert ours == expected


@pytest.mark.parametrize("rate", [0.001, 0.3])
def test_at_least_one_word_is_replaced_where_one_has_a_translation(rate):
    rows = ["the house", "zzz house zzz", "zzz", "", "the cat and the dog are here"] * 200
    for row, noisy in zip(rows, noised(rows, rate=rate), strict=True):
        assert (row != noisy) == (row not in ("zzz", ""))


def test_words_are_replaced_at_the_rate_or_else_one():
    words, rate, rows = 6, 0.2, 4_000
    text = " ".join(["house"] * words)
    counts = [row.split().count("casa") for row in noised([text] * rows, rate=rate)]
    none = (1 - rate) ** words
    mean = words * rate + none
    spread = words * rate * (1 - rate) + none * (1 - none) - 2 * words * rate * none
    assert min(counts) == 1
    assert abs(sum(counts) - rows * mean) < 4 * math.sqrt(rows * spread)


def test_the_one_word_replaced_is_any_of_them():
    text = "house dog milk bread"
    places = [
        next(at for at, (a, b) in enumerate(zip(text.split(), row.split(), strict=True)) if a != b)
        for row in noised([text] * 4_000, rate=0.0001)
    ]
    assert all(abs(places.count(at) - 1_000) < 4 * math.sqrt(750) for at in range(4))


def test_translations_are_drawn_by_weight(tmp_path):
    (tmp_path / "d.tsv").write_text(
        "clean\tnoisy\tweight\nbank\tBank\t1\nbank\tbanco\t3\nbank\torilla\t1\n"
    )
    rows = noised(["bank"] * 4_000, dictionary=str(tmp_path / "d.tsv"))
    assert set(rows) == {"banco", "orilla"}, "what differs in case only is no translation"
    assert abs(rows.count("banco") - 3_000) < 4 * math.sqrt(750)


@pytest.mark.parametrize(
    ("text", "noisy"),
    [
        ("Milk, milk, MILK", "Leche, leche, LECHE"),
        ("I", "Yo"),
        ("Then I", "Entonces|Luego yo"),
        ("zzz. I", "zzz. Yo"),
        ("on Monday", "en|sobre lunes"),
        ("MONDAY", "LUNES"),
        ("Monday", "Lunes"),
        ("next to", "al lado de"),
        ("NEXT TO zzz", "AL LADO DE zzz"),
        ("milk-bread", "leche-pan"),
        ("(milk)", "(leche)"),
    ],
)
def test_case_and_signs_are_carried_over(text, noisy):
    words = [part.split("|") for part in noisy.split(" ")]
    for row in noised([text] * 50, rate=1):
        parts = row.split(" ")
        assert all(part in options for part, options in zip(parts, words, strict=True)), row


def test_the_longest_phrase_counts(odd_dictionary):
    rows = ["see you tomorrow", "see you", "see me"]
    made = noised(rows * 9, dictionary=odd_dictionary, rate=1)
    assert made[:2] == ["bis morgen", "bis dann"]
    assert {row.removesuffix(" me") for row in made[2::3]} == {"SIEHE", "der See"}


def test_protected_words_stay_and_another_is_replaced():
    rows = ["@milk #milk https://milk.org/milk milk@milk.org bread"] * 200
    assert set(noised(rows, kinds=KINDS, rate=0.01)) == {rows[0].replace(" bread", " pan")}
    assert noised(["#milk @milk zzz"], kinds=KINDS, rate=1) == ["#milk @milk zzz"]


def test_protected_spans_that_other_steps_moved_stay():
    text = "thank you for the milk @milk #bread see you tomorrow people"
    recipe = Recipe.of([Step("abr2", {}), Step("codeswitch", {"rate": 0.01}), Step("fing", {})])
    table = pa.table({"clean": [text] * 300})
    for row in recipe.noise_batch(table, seed=1, edits=True).to_pylist():
        assert " @milk #bread " in row["noisy"]
        assert any("codeswitch" in edit["transform"] for edit in row["edits"])


def test_a_translation_of_several_words_continues_its_label(tmp_path):
    (tmp_path / "d.tsv").write_text("clean\tnoisy\nparis\tla ville lumière\n")
    step = Step("codeswitch", {"dictionary": str(tmp_path / "d.tsv")})
    table = pa.table({"clean": ["fly to Paris now"]})
    (row,) = Recipe.of([step]).noise_batch(table, edits=True).to_pylist()
    tokens, labels = ["fly", "to", "Paris", "now"], ["O", "O", "B-city", "B-time"]
    assert carry(tokens, labels, row["noisy"], row["edits"]) == (
        ["fly", "to", "La", "ville", "lumière", "now"],
        ["O", "O", "B-city", "I-city", "I-city", "B-time"],
    )


def test_languages_of_the_packaged_dictionary_go_into_each_other():
    ring = packaged_languages()
    for lang, into in [*pairwise(ring), *pairwise(ring[::-1]), (ring[0], ring[-1])]:
        assert len(load_translations(COMMON, lang, into).entries) > 1_300


@pytest.mark.parametrize(
    ("lang", "into", "message"),
    [("tr", None, "nothing for 'tr'"), ("en", "xx", "nothing for 'xx'"), ("en", "en", "no 'en'")],
)
def test_languages_without_a_dictionary_are_named(lang, into, message):
    with pytest.raises(UsageError, match=f"codeswitch has {message}.*any two of: en, de, es"):
        noised(["x"], lang, **({"into": into} if into else {}))


def test_its_example_is_reachable():
    ((clean, noisy),) = examples_in(get("codeswitch").summary)
    made = (noisegen.noise(clean, "codeswitch:rate=0.5", id=number) for number in range(500))
    assert noisy in made


def test_a_dictionary_that_changed_is_read_again(tmp_path):
    path = tmp_path / "d.txt"
    path.write_text("milk leche\n")
    assert noised(["milk"], dictionary=str(path)) == ["leche"]
    path.write_text("milk lait\nbread pain\n")
    assert noised(["milk bread"], dictionary=str(path), rate=1) == ["lait pain"]
