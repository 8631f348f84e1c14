import pickle
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.errors import MissingExtra, UsageError
from noisegen.testing import ODD_TEXTS
from noisegen.text import segmentation
from noisegen.text.segmentation import (
    PIECE_CHARS,
    SPLITTERS,
    UNSEGMENTED,
    Language,
    language,
)

TOKENS = [
    (
        "en",
        "I don't know 1,234.5 of them, do you?",
        ["I", "don't", "know", "1,234.5", "of", "them", ",", "do", "you", "?"],
    ),
    (
        "en",
        "'quoted' well-known 3rd a.m. v.2",
        ["'", "quoted", "'", "well", "-", "known", "3rd", "a", ".", "m", ".", "v", ".", "2"],
    ),
    (
        "fr",
        "L'homme qu’on aime, aujourd'hui c'est l’été.",
        ["L'", "homme", "qu’", "on", "aime", ",", "aujourd'hui", "c'", "est", "l’", "été", "."],
    ),
    (
        "it",
        "dell'arte, cinquant'anni e un po' d'acqua",
        ["dell'", "arte", ",", "cinquant'", "anni", "e", "un", "po", "'", "d'", "acqua"],
    ),
    ("ca", "l'aigua, col·legi", ["l'", "aigua", ",", "col·legi"]),
    (
        "de",
        "Donaudampfschifffahrtsgesellschaft heißt's.",
        ["Donaudampfschifffahrtsgesellschaft", "heißt's", "."],
    ),
    ("hi", "हिन्दी में किताब।", ["हिन्दी", "में", "किताब", "।"]),
    ("fa", "می\u200cخواهم بروم", ["می\u200cخواهم", "بروم"]),
    ("tr", "İstanbul'da ılık", ["İstanbul'da", "ılık"]),
    ("uk", "п'ять об’єктів", ["п'ять", "об’єктів"]),
    ("he", "צה״ל כאן", ["צה״ל", "כאן"]),
    ("en", "cafe\u0301 x\u0308", ["cafe\u0301", "x\u0308"]),
    ("th", "ที่นี่ abc", ["ที่", "นี่", "abc"]),
    ("xx", "tab\tand\nline\x1fend", ["tab", "and", "line", "end"]),
]


@pytest.mark.parametrize(("code", "text", "expected"), TOKENS)
def test_tokens(code, text, expected):
    assert Language(code).tokens(text) == expected


@pytest.mark.parametrize("code", ["en", "fr", "it", "th", "zh", "ja"])
@pytest.mark.parametrize("text", ODD_TEXTS)
def test_tokens_leave_out_nothing_but_blanks(code, text):
    kept = "".join(Language(code).tokens(text))

    assert "".join(kept.split()) == "".join(text.split())


@given(st.text(st.characters(codec="ascii"), max_size=40), st.sampled_from(["en", "fr", "it"]))
def test_the_fast_pattern_for_ascii_finds_the_same_tokens(text, code):
    one = Language(code)

    assert one.tokens(text) == one.tokens(f"{text} é")[:-1]


@given(st.text("ab1,.'’- \u0301é", max_size=30), st.text("ab1,.'’- \u0301é", max_size=30))
def test_a_text_can_be_cut_at_a_blank(left, right):
    tokens = Language("fr").tokens

    assert tokens(f"{left} {right}") == tokens(f"{left} ") + tokens(f" {right}")


def test_every_combining_mark_belongs_to_its_word():
    marks = [chr(code) for code in range(0x20000) if unicodedata.category(chr(code))[0] == "M"]
    tokens = Language("en").tokens

    assert len(marks) > 2_000
    assert [mark for mark in marks if tokens(f"x{mark}y") != [f"x{mark}y"]] == []


SENTENCES = [
    ("en", "Dr. Smith slept. Did he?  Yes!", ["Dr. Smith slept.", "Did he?", "Yes!"]),
    ("hi", "यह है। वह था।", ["यह है।", "वह था।"]),
    ("zh", "我们来了。你们呢？", ["我们来了。", "你们呢？"]),
    ("ja", "雨が降った。晴れた。", ["雨が降った。", "晴れた。"]),
    ("nia", "One thing here. Another one.", ["One thing here.", "Another one."]),
]


@pytest.mark.parametrize(("code", "text", "expected"), SENTENCES)
def test_sentences(code, text, expected):
    assert language(code).sentences(text) == expected


@pytest.mark.parametrize("splitter", SPLITTERS)
def test_every_splitter_splits_and_leaves_no_blanks(splitter):
    sentences = language("de", splitter=splitter).sentences(" Es regnet heute.  Sie geht heim.\n")

    assert sentences == ["Es regnet heute.", "Sie geht heim."]
    assert language("de", splitter=splitter).sentences(" \n ") == []


def test_spacy_splits_a_language_it_has_no_rules_for():
    assert language("ceb", splitter="spacy").sentences("Oo. Dili.") == ["Oo.", "Dili."]


@pytest.mark.parametrize(
    "text", ["“a" * 150_000, "word " * 200_000, "He ran. " * 10_000, "x" * 10_001]
)
def test_long_texts_are_split_in_pieces_and_little_time(text):
    began = time.process_time()

    sentences = language("en").sentences(text)

    assert time.process_time() - began < 20
    assert max(map(len, sentences)) <= PIECE_CHARS
    assert "".join("".join(sentences).split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("code", "splitter", "message"),
    [
        ("en", "nltk", "no splitter 'nltk'; write sentencex, punkt, spacy"),
        ("ja", "punkt", "punkt has no model for 'ja', only for cs, da"),
        ("zh", "spacy", "spacy splits no sentences of 'zh'"),
        ("th", "spacy", "spacy splits no sentences of 'th'"),
    ],
)
def test_a_splitter_that_cannot_is_wrong_usage(code, splitter, message):
    with pytest.raises(UsageError, match=message):
        language(code, splitter=splitter)


@pytest.mark.parametrize(
    ("code", "splitter", "package", "extra"),
    [
        ("zh", "sentencex", "jieba", "zh"),
        ("zh", "sentencex", "pypinyin", "zh"),
        ("zh", "sentencex", "opencc", "zh"),
        ("ja", "sentencex", "fugashi", "ja"),
        ("ja", "sentencex", "ipadic", "ja"),
        ("en", "punkt", "punkt", "punkt"),
        ("en", "spacy", "spacy", "en"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(code, splitter, package, extra, monkeypatch):
    monkeypatch.setattr(segmentation, "find_spec", lambda name: None if name == package else 1)

    with pytest.raises(MissingExtra, match=rf"'{package}' .*noisegen\[{extra}\]"):
        language(code, splitter=splitter)


def test_a_language_pickles():
    one = language("zh", fuzzy_pinyin=True)

    assert pickle.loads(pickle.dumps(one)) == one


KINDS = [
    ("en", "Paris", "paris", None, "case"),
    ("de", "Straße", "straße", None, "case"),
    ("tr", "ISPARTA", "ısparta", None, "case"),
    ("tr", "İzmir", "izmir", None, "case"),
    ("tr", "ISPARTA", "isparta", None, "accent"),
    ("en", "ISPARTA", "ısparta", None, "accent"),
    ("fr", "été", "ete", None, "accent"),
    ("hi", "हिन्दी", "हिंदी", None, ""),
    ("en", "their", "there", None, ""),
    ("en", "H2O", "H20", None, ""),
    ("en", "12", "13", "word_no_letter", ""),
    ("en", "a", "1", "word_no_letter", ""),
    ("en", ",", "a", "word_no_letter", ""),
    ("fr", "é", "e\u0301", "word_equal", ""),
    ("th", "ที่", "นี่", "word_unsegmented", ""),
]


@pytest.mark.parametrize(("code", "clean", "noisy", "reason", "kind"), KINDS)
def test_kinds_of_word_pairs(code, clean, noisy, reason, kind):
    assert Language(code).word_kind(clean, noisy) == (reason, kind)


@pytest.mark.parametrize(
    ("code", "text", "expected"),
    [
        ("en", "I went to 東京 today", True),
        ("en", "今日は東京へ行った", False),
        ("fr", "Où êtes-vous ?", True),
        ("ja", "今日は東京へ行った", True),
        ("ja", "I went home", False),
        ("zh", "今天去了东京", True),
        ("zh", "今日は映画を見ました", False),
        ("ru", "Привет", True),
        ("ru", "Hello", False),
        ("ceb", "Привет", True),  # nothing is known of it
        ("ja", "123 !?", True),  # no letters speak against it
    ],
)
def test_the_script_of_a_text(code, text, expected):
    assert Language(code).is_written_in(text) is expected


def test_languages_without_blanks_have_no_boundary_or_a_safe_one():
    assert {code: Language(code).boundary for code in ("en", "zh", "ja", "th")} == {
        "en": " ",
        "zh": "，",
        "ja": "",
        "th": "",
    }
    assert not any(Language(code).is_spaced for code in (*UNSEGMENTED, "zh", "ja"))
