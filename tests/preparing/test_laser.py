"""LASER's preparation on odd strings, written by hand from the Moses script's rules."""

import sys
import unicodedata

import pytest

from noisegen.errors import MissingExtra
from noisegen.preparing import laser, laser_text


@pytest.fixture(autouse=True)
def _needs_sacremoses():
    pytest.importorskip("sacremoses")


@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("Hello, \tWorld! ABC\x1f123", "hello, world! abc 123"),  # published for laser2.spm
        ("Hello!!! How are you??? I'm doing great.", "hello!!! how are you??? i'm doing great."),
        ("a\x00b\x9fc\u200bd\ufeffe\ue000f", "a b c d e f"),  # Cc, Cf, Co
        ("5 000 men", "5 000 men"),  # a plain blank is no thousands separator
        ("5\u00a0000 men", "5.000 men"),
        ("5\u2009000 men", "5\u2009000 men"),
        ("‘Yes’", '"yes"'),
        ("‚no‘", '"no"'),
        ("don’t, o‘clock", "don't, o'clock"),
        ("“Well”, he said", '"well," he said'),
        ("„so“", '"so"'),
        ("«\u00a0oui\u00a0»", '"oui"'),
        ("word( in brackets )!", "word (in brackets)!"),
        ("(a) : b ; 50 %", "(a): b; 50%"),
        ("a–b—c…", "a-b - c..."),
        ("``quoted''", '" quoted "'),
        ("  two   blanks  ", "two blanks"),
        ("", ""),
        ("&amp;", "&amp;"),
    ],
)
def test_odd_strings(text, prepared):
    assert laser_text(text) == prepared


def test_entities_and_case_by_choice():
    assert laser_text("A &amp;lt; B", unescape=True) == "a &lt; b"
    assert laser_text("Big Ben", lower=False) == "Big Ben"


def test_every_character_of_category_c_becomes_one_blank():
    signs = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code))[0] == "C"]
    assert len(signs) > 100
    for sign in signs:
        assert laser_text(f"a{sign}b") == "a b"


def test_it_is_the_official_package_but_for_two_quotes(wiki_sentences):
    from sacremoses import MosesPunctNormalizer

    official = MosesPunctNormalizer("en", perl_parity=True)
    for text in wiki_sentences[:500]:
        if not set(text) & {"‘", "‚"} and text.isprintable():
            assert laser_text(text) == official.normalize(text).lower()


def test_without_the_package(monkeypatch):
    laser._substitutions.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[laser\]"):
        laser_text("a")
