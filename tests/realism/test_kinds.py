"""Every edit has exactly one kind, the one that the documentation says."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen import noise
from noisegen.noising import registry
from noisegen.realism.advice import KIND_TRANSFORMS
from noisegen.realism.kinds import KINDS, kind_of
from noisegen.text.alignment import edits, is_initialism
from noisegen.text.resources import DEMO, rows_of

DOCS = Path(__file__).parents[2] / "docs" / "guides" / "realism.md"


def documented() -> list[tuple[str, str, str]]:
    lines = DOCS.read_text("utf-8").split("| kind |")[1].split("\n\n")[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [(kind, clean, noisy) for kind, clean, noisy, _ in rows]


def kinds(clean: str, noisy: str, lang: str = "en") -> list[str]:
    return [kind_of(clean, noisy, edit, lang) for edit in edits(clean, noisy)]


def test_the_documentation_lists_the_kinds_in_the_order_of_the_rules() -> None:
    assert tuple(kind for kind, _, _ in documented()) == KINDS


@pytest.mark.parametrize(("kind", "clean", "noisy"), [row for row in documented() if row[1]])
def test_a_documented_example_is_of_its_kind(kind: str, clean: str, noisy: str) -> None:
    assert set(kinds(clean, noisy)) == {kind}


@pytest.mark.parametrize(
    ("clean", "noisy", "lang", "kind"),
    [
        ("người ta", "ngta", "vi", "initialism"),
        ("như vậy", "nv", "vi", "initialism"),
        ("được", "đc", "vi", "vowels dropped"),
        ("không", "k", "vi", "shortening"),
        ("nổi", "nỗi", "vi", "diacritics"),
        ("не знаю", "незнаю", "ru", "merge"),
        ("want to", "wanna", "en", "merge"),
        ("очень", "ооочень", "ru", "lengthening"),
        ("извините", "извените", "ru", "phonetic"),
        ("учиться", "учится", "ru", "phonetic"),
        ("четыре", "4тыре", "ru", "digits"),
        ("аборигенку", "абоpигенку", "ru", "script"),
        ("schön", "schoen", "de", "diacritics"),
        ("Straße", "strasse", "de", "diacritics"),
        ("Hauptschulabschluss", "Hauptschul abschluss", "de", "split"),
        ("eigene", "eigenes", "de", "ending"),
        ("también", "tambien", "es", "diacritics"),
        ("hola", "ola", "es", "phonetic"),
        ("नमस्ते", "namaste", "hi", "script"),
        ("like", "liek", "en", "transposition"),
        ("you", "u", "en", "phonetic"),
        ("good", "gud", "en", "phonetic"),
        ("what", "wut", "en", "phonetic"),
        ("their", "there", "en", "phonetic"),
        ("haha", "hahahaha", "en", "lengthening"),
        ("information", "info", "en", "shortening"),
        ("moment 's", "moments", "en", "apostrophe"),
        ("six", "6", "en", "digits"),
        ("the", "a", "en", "word replaced"),
        ("🙂", "🙁", "en", "emoticon"),
    ],
)
def test_an_edit_of_a_word_is_of_its_kind(clean: str, noisy: str, lang: str, kind: str) -> None:
    assert kinds(clean, noisy, lang) == [kind]


@pytest.mark.parametrize(
    ("clean", "noisy", "expected"),
    [
        ("ok", "ok : ) ) )", {"emoticon"}),
        ("ok", "ok xD", {"emoticon"}),
        ("ok (see below)", "ok see below", {"punctuation dropped"}),
        ("no.", "no...", {"punctuation repeated"}),
        ("ich habe das Buch gelesen", "ich habe gelesen das Buch", {"word moved"}),
    ],
)
def test_the_context_of_an_edit_counts(clean: str, noisy: str, expected: set[str]) -> None:
    assert set(kinds(clean, noisy)) == expected


def test_chinese_characters_with_a_common_reading_are_phonetic_in_chinese_only() -> None:
    pytest.importorskip("pypinyin")
    assert kinds("他很高興", "她很高興", "zh") == ["phonetic"]
    assert kinds("他很高興", "我很高興", "zh") == ["word replaced"]
    assert kinds("他很高興", "她很高興", "") == ["word replaced"]


@given(
    st.text("aeiou bcnt'’.,!:)8ßäо中й\u0301A", max_size=24), st.text("aeio bnt.!)8中A", max_size=24)
)
def test_any_edit_has_a_kind(clean: str, noisy: str) -> None:
    assert set(kinds(clean, noisy)) <= set(KINDS)
    assert (clean == noisy) <= (kinds(clean, noisy) == [])


@given(
    st.lists(st.text("ab", min_size=1, max_size=4), min_size=2, max_size=4),
    st.text("ab", max_size=9),
)
def test_an_initialism_is_made_of_a_beginning_of_every_word(words: list[str], short: str) -> None:
    made = {""}
    for word in words:
        made = {head + word[:size] for head in made for size in range(1, len(word) + 1)}
    initials = "".join(word[0] for word in words)
    is_short = len(short) < 0.6 * sum(map(len, words))
    expected = short == initials or (short in made and is_short)
    assert is_initialism(words, short) == expected


def test_transforms_make_their_kind_of_edit():
    rows = [line.split("\t") for line in DEMO.read_text("utf-8").splitlines()[1:]]
    texts = {lang: [row[0] for row in rows if row[-1] == lang] for lang in ("en", "fr", "hi")}
    made = {}
    for kind, transforms in rows_of(KIND_TRANSFORMS):
        for name in transforms.split():
            if name not in made:
                made[name] = kinds_of(name, texts)
            assert made[name][kind], name


def kinds_of(transform, texts):
    """How often a transform makes each kind of edit in texts of its languages."""
    found = Counter()
    for lang, clean in texts.items():
        if registry.get(transform).has_language(lang):
            noisy = noise(clean, transform, lang=lang)
            for before, after in zip(clean, noisy, strict=True):
                found.update(kind_of(before, after, one, lang) for one in edits(before, after))
    return found


def test_every_kind_has_a_line_of_transforms():
    assert [kind for kind, _ in rows_of(KIND_TRANSFORMS)] == list(KINDS)
