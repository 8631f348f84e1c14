"""Words of Chinese and Japanese, and the kinds of noise between them."""

import gzip
import os
import re
import subprocess
import sys
from collections import Counter

import pytest
from conftest import SHARED

from noisegen.mining.filters import PROFILES, judge
from noisegen.mining.miner import WordPair
from noisegen.text.east_asian import (
    _simplified,
    chinese_tokens,
    chinese_word_kind,
    japanese_tokens,
    japanese_word_kind,
    reading,
)
from noisegen.text.segmentation import language


def test_words_of_simplified_and_traditional_text_are_cut_alike():
    assert chinese_tokens("我们昨天去了学校。") == ["我们", "昨天", "去", "了", "学校", "。"]
    assert chinese_tokens("我們昨天去了學校。") == ["我們", "昨天", "去", "了", "學校", "。"]
    assert chinese_tokens("我聽說他總是吃晚飯") == ["我", "聽說", "他", "總是", "吃晚飯"]
    assert chinese_tokens("用 Python 3 写 的") == ["用", "Python", "3", "写", "的"]


def test_simplified_text_is_as_long_as_traditional_text():
    assert {len(sign) for sign in _simplified().values()} == {1}


@pytest.mark.parametrize(
    ("clean", "noisy", "expected"),
    [
        ("再", "在", (None, "homophone")),
        ("收到", "受到", (None, "homophone")),  # same sounds, other tones
        ("裡", "理", (None, "homophone")),
        ("的", "地", (None, "synonym")),
        ("和", "与", (None, "synonym")),
        ("因为", "由于", (None, "synonym")),
        ("学校", "医院", ("word_unrelated", "")),  # nouns
        ("去", "来", ("word_unrelated", "")),  # verbs
        ("都", "只", ("word_unrelated", "")),  # adverbs
        ("应该", "因该", ("word_unrelated", "")),  # ying, yin
        ("和", "㗲㗿", ("word_unrelated", "")),  # no word
        ("学校", "學校", ("word_variant", "")),  # the other script is no noise
        ("三", "四", ("word_number", "")),
        ("三百", "五百", ("word_number", "")),
        ("他", "her", ("word_no_letter", "")),
        ("，", "。", ("word_no_letter", "")),
    ],
)
def test_kinds_of_word_pairs(clean, noisy, expected):
    assert chinese_word_kind(clean, noisy) == expected


@pytest.mark.parametrize(
    ("clean", "noisy"),
    [("终", "宗"), ("说", "所"), ("吃", "次"), ("你", "里"), ("应该", "因该"), ("更", "跟")],
)  # zh/z, sh/s, ch/c, n/l, ing/in, eng/en
def test_fuzzy_pinyin_joins_sounds_that_many_do_not_tell_apart(clean, noisy):
    assert chinese_word_kind(clean, noisy, fuzzy=True) == (None, "fuzzy")
    assert chinese_word_kind(noisy, clean, fuzzy=True) == (None, "fuzzy")
    assert chinese_word_kind(clean, noisy)[1] != "homophone"


def test_fuzzy_pinyin_joins_no_other_sounds():
    assert chinese_word_kind("班", "帮", fuzzy=True) == ("word_unrelated", "")  # an, ang


def test_the_paper_example_is_fuzzy_at_best():
    """RCP's own example, lie chu -> li chu, is no homophone: it is dropped."""
    assert chinese_word_kind("列出", "例出", fuzzy=True) == ("word_unrelated", "")


def test_a_misspelt_word_that_falls_apart_is_one_word_pair():
    sides = "我们昨天在学校说在见了。", "我们昨天在学校说再见了。"
    words = judge(*sides, language("zh"), PROFILES["rcp"], Counter())

    assert chinese_tokens("说在见了") == ["说", "在", "见", "了"]
    assert words == (WordPair("再见", "在见", "homophone"),)


def test_a_sentence_pair_of_two_scripts_has_no_word_pairs():
    dropped = Counter()
    sides = "我們去學校吃飯。", "我們去学校吃飯。"

    assert judge(*sides, language("zh"), PROFILES["rcp"], dropped) == ()
    assert dropped == {"word_variant": 1}


@pytest.mark.nightly
def test_the_word_list_is_cached_in_our_folder_and_nothing_is_printed(tmp_path):
    code = (
        "from noisegen.text.east_asian import chinese_tokens, chinese_word_kind\n"
        "chinese_tokens('我们'); chinese_word_kind('和', '与')"
    )
    environment = os.environ | {"NOISEGEN_CACHE": str(tmp_path / "new"), "TMPDIR": str(tmp_path)}

    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], env=environment, capture_output=True
    )

    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["jieba.cache"]
    assert [path.name for path in tmp_path.iterdir()] == ["new"]


@pytest.mark.nightly
def test_half_of_the_spelling_errors_of_real_learners_are_homophones():
    path = SHARED / "sighan" / "SIGHAN15_CSC_A2_Training.sgml.gz"
    if not path.exists():
        pytest.skip("no development data")
    content = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    passages = dict(re.findall(r'<PASSAGE id="(.+?)">(.*?)</PASSAGE>', content))
    mistake = r'<MISTAKE id="(.+?)" .*?>\s*<WRONG>(.*?)</WRONG>\s*<CORRECTION>(.*?)</CORRECTION>'
    mistakes = re.findall(mistake, content)
    sides = [
        (passages[key], passages[key].replace(wrong, right))
        for key, wrong, right in mistakes
        if wrong in passages.get(key, "")
    ]
    verdicts = [judge(*pair, language("zh"), PROFILES["rcp"], Counter()) for pair in sides]
    kinds = [pair.kind for words in verdicts for pair in words or ()]

    assert len(verdicts) > 700
    assert kinds.count("homophone") > 0.4 * len(verdicts)


def test_words():
    assert japanese_tokens("私は東京に住む。") == ["私", "は", "東京", "に", "住む", "。"]
    assert japanese_tokens("") == []


def test_a_null_byte_ends_nothing_and_no_blank_is_a_word():
    assert japanese_tokens("私\0は　東京\n。") == ["私", "は", "東京", "。"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("以前", "イゼン"), ("依然", "イゼン"), ("こんにちは", "コンニチハ"), ("ABC", "ABC")],
)
def test_readings(text, expected):
    assert reading(text) == expected


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
def test_kinds_of_japanese_word_pairs(clean, noisy, expected):
    assert japanese_word_kind(clean, noisy) == expected


def test_word_pairs_of_a_sentence():
    noisy, clean = "私は依然、東京に住んでいました。", "私は以前、東京に住んでいました。"

    dropped = Counter()
    words = judge(noisy, clean, language("ja"), PROFILES["rcp"], dropped)

    assert (words, dropped) == ((WordPair("以前", "依然", "kanji"),), {})
