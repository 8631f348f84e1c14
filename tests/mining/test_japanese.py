import pytest

from noisegen.mining import japanese
from noisegen.mining.filters import PROFILES, judge
from noisegen.mining.languages import language
from noisegen.mining.pairs import WordPair


def test_words():
    assert japanese.tokens("私は東京に住む。") == ["私", "は", "東京", "に", "住む", "。"]
    assert japanese.tokens("") == []


def test_a_null_byte_ends_nothing_and_no_blank_is_a_word():
    assert japanese.tokens("私\0は　東京\n。") == ["私", "は", "東京", "。"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("以前", "イゼン"), ("依然", "イゼン"), ("こんにちは", "コンニチハ"), ("ABC", "ABC")],
)
def test_readings(text, expected):
    assert japanese.reading(text) == expected


@pytest.mark.parametrize(
    ("clean", "noisy", "expected"),
    [
        ("以前", "依然", (None, "kanji")),  # RCP's example
        ("意外", "以外", (None, "kanji")),
        ("早い", "速い", (None, "kanji")),
        ("速かった", "早かった", (None, "kanji")),
        ("東京", "京都", ("word_unrelated", "")),
        ("私", "わたし", ("word_variant", "")),
        ("行う", "行なう", ("word_variant", "")),
        ("こんにちは", "こんにちわ", (None, "kana")),
        ("つづく", "つずく", (None, "kana")),
        ("っ", "つ", (None, "kana")),
        ("ページ", "ぺージ", (None, "kana")),  # the first sign is hiragana
        ("は", "が", ("word_unrelated", "")),  # one particle for another
        ("です", "ます", ("word_unrelated", "")),
        ("ヷ", "ヸ", ("word_unrelated", "")),
        ("サーバ", "サイバ", ("word_unrelated", "")),
        ("サーバー", "サーバ", ("word_unrelated", "")),
        ("1", "2", ("word_no_letter", "")),
        ("か", "?", ("word_no_letter", "")),
        ("、", "。", ("word_no_letter", "")),
    ],
)
def test_kinds_of_word_pairs(clean, noisy, expected):
    assert japanese.word_kind(clean, noisy) == expected


def test_word_pairs_of_a_sentence():
    noisy, clean = "私は依然、東京に住んでいました。", "私は以前、東京に住んでいました。"

    verdict = judge(noisy, clean, language("ja"), PROFILES["rcp"])

    assert verdict == (None, (WordPair("以前", "依然", "kanji"),), {})
