"""Raw text becomes lines, and nothing but what is named changes."""

import pytest

from noisegen.preparing.cleaning import clean_lines


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one<br>two", ["one", "two"]),
        ("one<br/>two<BR />three< br >four", ["one", "two", "three", "four"]),
        ("one&lt;br&gt;two&LT;br/&gt;three", ["one", "two", "three"]),
        ('<p class="x">one</p><p>two</p>', ["one", "two"]),
        ("one\r\ntwo\x0bthree\u2028four\x85five", ["one", "two", "three", "four", "five"]),
        ("a\tb \xa0 c\u3000d", ["a b c d"]),
        ("fish &amp; chips &eacute;", ["fish & chips é"]),
        ("a\x00b\x1bc\x7fd\x9fe", ["a b c d e"]),
        ("soft\xadhyphen\ufeff, zero\u200bwidth", ["softhyphen, zerowidth"]),
        ("", []),
        (" \n\t<br> ", []),
    ],
)
def test_lines(text, lines):
    assert clean_lines(text) == lines


def test_entities_are_decoded_once():
    assert clean_lines("&amp;lt;br&amp;gt; &amp;amp;") == ["&lt;br&gt; &amp;"]


def test_other_tags_and_words_that_begin_like_one_stay():
    for text in ("<b>bold</b> text", "a <brown> fox", "<pre> 1 < 2 > 0", "p < br"):
        assert clean_lines(text) == [text]


def test_joiners_stay_for_they_shape_letters_and_emoji():
    for text in ("नमस्ते क\u200dष", "می\u200cخواهم", "👩\u200d🚀"):
        assert clean_lines(text) == [text]


def test_an_unclosed_tag_takes_no_time():
    text = "<br " * 100_000
    assert "".join(clean_lines(text)) == text.strip()


def test_clean_prose_stays_as_it_is(wiki_sentences):
    for text in wiki_sentences[:2_000]:
        if text.isascii() and "&" not in text and "<" not in text:
            assert clean_lines(text) == [" ".join(text.split())]
