"""Texts prepared for LASER, by hand from the Moses script's rules, and as posts."""

import sys
import unicodedata

import pytest

from noisegen.errors import MissingExtra
from noisegen.text import normalize
from noisegen.text.normalize import laser_text, social_text, without_addresses


@pytest.fixture
def _sacremoses():
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
@pytest.mark.usefixtures("_sacremoses")
def test_odd_strings(text, prepared):
    assert laser_text(text) == prepared


@pytest.mark.usefixtures("_sacremoses")
def test_entities_and_case_by_choice():
    assert laser_text("A &amp;lt; B", unescape=True) == "a &lt; b"
    assert laser_text("Big Ben", lower=False) == "Big Ben"


@pytest.mark.usefixtures("_sacremoses")
def test_every_character_of_category_c_becomes_one_blank():
    signs = [chr(code) for code in range(0x3000) if unicodedata.category(chr(code))[0] == "C"]
    assert len(signs) > 100
    for sign in signs:
        assert laser_text(f"a{sign}b") == "a b"


@pytest.mark.usefixtures("_sacremoses")
def test_it_is_the_official_package_but_for_two_quotes(real_sentences):
    from sacremoses import MosesPunctNormalizer

    official = MosesPunctNormalizer("en", perl_parity=True)
    for text in real_sentences[:500]:
        if not set(text) & {"‘", "‚"} and text.isprintable():
            assert laser_text(text) == official.normalize(text).lower()


def test_without_the_package(monkeypatch):
    normalize._moses_substitutions.cache_clear()
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(MissingExtra, match=r"noisegen\[laser\]"):
        laser_text("a")


@pytest.fixture
def _packages():
    pytest.importorskip("ftfy")
    pytest.importorskip("emoji")


@pytest.mark.usefixtures("_packages")
@pytest.mark.parametrize(
    ("text", "prepared"),
    [
        ("see https://t.co/abc now", "see HTTPURL now"),
        ("see WWW.example.org/a?b=c now", "see HTTPURL now"),
        ("@ann_b and @bob: hi", "@MENTION and @MENTION: hi"),
        ("write to ann@example.org", "write to ann@example.org"),
        ("fish &amp; chips &lt;3", "fish & chips <3"),
        ("two\n\n lines\t of   text ", "two lines of text"),
        ("cafÃ© is open", "café is open"),
        ("fire 🔥 now", "fire :fire: now"),
        ("“curly” quotes stay", "“curly” quotes stay"),
        ("#tag stays", "#tag stays"),
        ("", ""),
    ],
)
def test_each_step(text, prepared):
    assert social_text(text) == prepared


@pytest.mark.usefixtures("_packages")
def test_the_order_of_the_steps_shows():
    # Addresses and mentions come before entities, so those written with entities stay.
    assert social_text("https&#58;//t.co/x &#64;ann") == "https://t.co/x @ann"


@pytest.mark.usefixtures("_packages")
def test_mentions_as_another_model_wants_them():
    assert social_text("@ann hi", mention="@USER") == "@USER hi"
    assert social_text("@ann hi", mention=r"\1") == r"\1 hi"


@pytest.mark.parametrize("package", ["ftfy", "emoji"])
@pytest.mark.usefixtures("_packages")
def test_without_a_package(monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"'{package}'.*noisegen\[social\]"):
        social_text("a")


def test_addresses_leave_a_blank():
    assert without_addresses("a@b.c @ann: https://x.y/z,w end").split() == ["a@b.c", ":", "end"]
