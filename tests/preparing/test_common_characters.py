"""The share of common characters tells text of a language from other scripts and from mark-up."""

import gzip
import unicodedata

import pytest
from conftest import SHARED

from noisegen.mining.languages import _scripts
from noisegen.preparing.characters import (
    _alphabets,
    common_characters,
    common_share,
    letter_share,
)

SAMPLES = {
    "en": "The harbour lay quiet, and nobody spoke of the 3 boats.",
    "de": "Die Straße führt über die Brücke zum größten Gebäude.",
    "tr": "Işıklı çarşıda İpek'in ağabeyi öğüt verdi.",
    "pl": "Zażółć gęślą jaźń, powiedział chłopiec.",
    "vi": "Tôi đã đọc quyển sách ấy hôm qua, thật là hay.",
    "ru": "Ёжик вышел из тумана и увидел 2 звезды.",
    "el": "Το πλοίο έφυγε χθες από τον Πειραιά.",
    "hi": "वह कल दिल्ली से १२ बजे लौटेगा।",
    "ar": "وصل القطار في الساعة ٥، أليس كذلك؟",
    "he": "הרכבת הגיעה בזמן, אמרה המורה.",
    "zh": "他说：“我们明天去《故宫》，好吗？”",
    "ja": "「コーヒーは、いかがですか。」と彼は言った。",
    "ko": "어제 도서관에서 책을 3권 빌렸다.",
    "th": "เมื่อวานนี้ฝนตกหนักมาก",
}


@pytest.mark.parametrize("lang", SAMPLES)
def test_text_of_a_language_has_its_common_characters_only(lang):
    assert common_share(SAMPLES[lang], lang) == 1


@pytest.mark.parametrize("lang", SAMPLES)
def test_text_of_another_script_has_few(lang):
    scripts = _scripts()
    for other, text in SAMPLES.items():
        if not set(scripts[other]) & set(scripts[lang]):
            assert common_share(text, lang) < 0.6, other


@pytest.mark.parametrize("lang", ["en", "de", "ja"])
def test_the_share_is_that_of_single_characters(lang, odd_texts):
    known = common_characters(lang)
    for text in [*odd_texts, *SAMPLES.values()]:
        composed = unicodedata.normalize("NFC", text)
        slow = sum(sign in known for sign in composed) / max(1, len(composed))
        assert common_share(text, lang) == pytest.approx(slow)


def test_an_accent_counts_the_same_in_two_characters():
    text = "größer als Köln"
    assert common_share(unicodedata.normalize("NFD", text), "de") == 1


def test_markup_and_code_are_not_common():
    assert common_share("{{Infobox|name=[[x]]|<ref>{a_b}</ref>}}", "en") < 0.9


def test_an_unknown_language_may_use_any_letter():
    assert common_share("Ñuqa ƛaʔuuk кыргыз", "qu") == 1


def test_the_table_names_known_languages_and_source_and_licence():
    from importlib.resources import files

    head = files("noisegen.preparing").joinpath("alphabets.tsv").read_text("utf-8").split("\n")[0]
    assert "source:" in head
    assert "license:" in head
    assert set(_alphabets()) <= set(_scripts())


@pytest.mark.parametrize("lang", ["de", "en", "es", "fr", "hi", "ja", "tr", "zh"])
def test_real_sentences_pass(lang):
    names = list((SHARED / "ud-text").glob(f"{lang}_*.gz"))
    if not names:
        pytest.skip("no development data")
    with gzip.open(names[0], "rt", encoding="utf-8") as file:
        texts = [line[9:].strip() for line in file if line.startswith("# text = ")]
    passed = sum(common_share(text, lang) >= 0.9 for text in texts)
    # Chinese and Japanese text has Latin names, and in the web many a table.
    assert passed / len(texts) > (0.9 if lang in ("zh", "ja") else 0.98)


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("abc", 1),
        ("ab 12", 0.5),
        ("वही है", 1),
        ("12:30", 0),
        ("@ann https://example.org/abc", 0),
        ("", 0),
    ],
)
def test_letter_share(text, share):
    assert letter_share(text) == share
