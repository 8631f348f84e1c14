"""Languages in the names of files."""

import pytest

from noisegen.language_codes import language_code, language_pair


@pytest.mark.parametrize(("text", "code"), [
    ("de", "de"), ("deu", "de"), ("ger", "de"), ("arb", "ar"), ("cmn_Hans", "zh"), ("zh-CN", "zh"),
    ("zh_cn", "zh"), ("aze-Latn", "az"), ("pt_BR", "pt"), ("ckb-Arab", "ckb"), ("yue", "yue"),
    ("swh_Latn", "sw"), ("text", None), ("xx", None), ("txt", None), ("de-en", None), ("", None),
    ("DE", None), ("d", None),
])  # fmt: skip
def test_one_language_has_one_code(text, code):
    assert language_code(text) == code


@pytest.mark.parametrize(("name", "pair"), [
    ("eng-cmn_Hans.tsv.gz", ("eng", "cmn_Hans")), ("TED2020-en-de-train.tsv", ("en", "de")),
    ("news-commentary-v15.de-en.de", ("de", "en")), ("OpenSubtitles.en-zh_CN", ("en", "zh_CN")),
    ("corpus.pt_BR-en", ("pt_BR", "en")), ("CCAligned.en-ckb", ("en", "ckb")),
    ("aze-Latn", None), ("europarl", None), ("pt-BR", None), ("all-new", None), ("a-b", None),
])  # fmt: skip
def test_the_last_two_languages_of_a_name_are_its_pair(name, pair):
    assert language_pair(name) == pair
