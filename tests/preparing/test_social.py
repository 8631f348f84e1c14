"""Posts are prepared as for CrisisTransformers, step by step in its order."""

import sys

import pytest

from noisegen.errors import MissingExtra
from noisegen.preparing import social_text
from noisegen.preparing.social import without_addresses


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
