"""`punc`: marks left out, repeated, set apart and glued; both forms agree."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine import ANY_TEXT, LIVELY_TEXT, both, compare, single
from test_transforms import noised, outcomes

import noisegen
from noisegen.noising.registry import examples_in, get
from noisegen.testing import check_transform
from noisegen.transforms.punctuation import COMMAS, ENDS, OTHERS, SPACES_MAX

RATES = ("drop_rate", "comma_rate", "repeat_rate", "blank_rate", "glue_rate")
WIDE, BLANKS = "。！？｡，、；：", " \t\n\r\v\f"
MIXED = {"!": "!?", "?": "?!", "！": "！？", "？": "？！"}
MARKS = st.lists(
    st.sampled_from([*ENDS, *COMMAS, *OTHERS, *" \t\n", "a", "Mr", "é", "東", "…", "\u2028", ")"]),
    max_size=25,
).map("".join)


def only(name, rate=1):
    return dict.fromkeys(RATES, 0) | {name: rate}


@pytest.mark.parametrize("lang", ["en", "fr", "hi", "ar", "zh", "ja"])
def test_it_keeps_the_promises(lang):
    check_transform(
        "punc", lang, ("Really? Yes, I know.", "你好，世界。", "वह घर गया।", "نعم، هل؟")
    )


@pytest.mark.parametrize("rates", [{}, dict.fromkeys(RATES, 0.5), dict.fromkeys(RATES, 1)])
def test_it_agrees_with_the_oracle(demo_texts, odd_texts, real_sentences, rates):
    rows = demo_texts + odd_texts + real_sentences[:1_500]
    assert compare(single("punc", **rates), rows) > 1_000


@given(st.lists(MARKS | ANY_TEXT | LIVELY_TEXT, min_size=1, max_size=20), st.integers(0, 2**63))
@settings(max_examples=150)
def test_any_text_agrees_with_the_oracle(rows, seed):
    ours, expected = both(single("punc", **dict.fromkeys(RATES, 0.5)), rows, seed)
    assert ours == expected


@given(st.lists(MARKS, min_size=1, max_size=20), st.sampled_from(RATES))
@settings(max_examples=100)
def test_each_way_alone_agrees_with_the_oracle(rows, name):
    ours, expected = both(single("punc", **only(name)), rows)
    assert ours == expected


@pytest.mark.parametrize(
    ("name", "text", "noisy"),
    [
        ("drop_rate", "Yes. I know.", "Yes. I know"),
        ("drop_rate", "Really? \n", "Really \n"),
        ("drop_rate", "Ça va ?", "Ça va"),
        ("drop_rate", " .", " ."),
        ("drop_rate", "No." + " " * SPACES_MAX, "No" + " " * SPACES_MAX),
        ("drop_rate", "No." + " " * (SPACES_MAX + 1), "No." + " " * (SPACES_MAX + 1)),
        ("drop_rate", "wait... what?!", "wait... what?!"),
        ("drop_rate", "他走了。", "他走了"),
        ("drop_rate", "वह गया।", "वह गया"),
        ("drop_rate", "هل؟", "هل"),
        ("drop_rate", "no mark", "no mark"),
        ("drop_rate", ".", "."),
        ("drop_rate", ") ?", ")"),
        ("comma_rate", "well, 1,000 of them, yes,", "well 1,000 of them yes"),
        ("comma_rate", "well , yes", "well yes"),
        ("comma_rate", "  ,", "  ,"),
        ("comma_rate", "你好，世界，", "你好 世界"),
        ("comma_rate", "نعم، أنا", "نعم أنا"),
        ("blank_rate", "hi! you: 10:30, ok; :) e.", "hi ! you : 10:30 , ok ; :) e."),
        ("blank_rate", "Mrs. Hill left. Late.", "Mrs. Hill left . Late ."),
        ("blank_rate", "already ! here", "already ! here"),
        ("blank_rate", "वह गया। हाँ", "वह गया । हाँ"),
        ("glue_rate", "yes, but, \n no,  two", "yes,but, \n no,  two"),
        ("glue_rate", "Mr. Hill left. He was late! Why? I", "Mr. Hill left.He was late!Why? I"),
        ("glue_rate", "one,\ntwo, ", "one,\ntwo, "),
        ("glue_rate", "one, ! two", "one, ! two"),
        ("repeat_rate", "Mr. Smith left", "Mr. Smith left"),
        ("repeat_rate", "a.b?c !important", "a.b?c !important"),
        ("repeat_rate", "so... what?!", "so... what?!"),
    ],
)
def test_what_it_does(name, text, noisy):
    assert outcomes("punc", text, 50, **only(name)) == {noisy}


@pytest.mark.parametrize(
    ("text", "all_of"),
    [
        ("No.", {"No..", "No...", "No....", "No....."}),
        ("No! Go", {"No!! Go", "No!!! Go", "No!!!! Go", "No!!!!! Go", "No!? Go"}),
        ("走？吧", {"走？？吧", "走？？？吧", "走？？？？吧", "走？？？？？吧", "走？！吧"}),
    ],
)
def test_marks_are_repeated_in_several_ways(text, all_of):
    assert outcomes("punc", text, 1_000, **only("repeat_rate")) == all_of


def test_what_is_left_out_is_neither_set_apart_nor_repeated():
    values = dict.fromkeys(RATES, 1)
    assert outcomes("punc", "Yes, it is; is it?", 50, **values) == {"Yes it is ; is it"}


def test_the_example_is_reachable():
    for clean, noisy in examples_in(get("punc").summary):
        assert noisy in outcomes(
            "punc",
            clean,
            20_000,
            **{name: p.default for name, p in get("punc").parameters.items()},
        )


@pytest.mark.parametrize(
    ("name", "text", "noisy"),
    [
        ("drop_rate", "Yes.", "Yes"),
        ("comma_rate", "Yes, no", "Yes no"),
        ("blank_rate", "Yes!", "Yes !"),
        ("glue_rate", "Yes, no", "Yes,no"),
    ],
)
def test_each_way_has_its_rate(name, text, noisy):
    counts = Counter()
    for seed in range(10):
        counts.update(noised("punc", [text] * 4_000, seed=seed, **only(name, 0.3)))
    assert set(counts) == {text, noisy}
    assert abs(counts[noisy] - 12_000) < 4 * (40_000 * 0.3 * 0.7) ** 0.5


def test_marks_are_repeated_at_their_rate():
    noisy = noised("punc", ["No! No?"] * 20_000, **only("repeat_rate", 0.1))
    hit = sum((not row.startswith("No! ")) + (not row.endswith(" No?")) for row in noisy)
    assert abs(hit - 4_000) < 4 * (40_000 * 0.1 * 0.9) ** 0.5


def test_spans_and_line_breaks_stay():
    text = "Yes, no.\r\nhttps://a.org/?b=c,d! @you, #tag. me@x.org."
    for number in range(20):
        noisy = noisegen.noise(text, f"punc:{','.join(f'{name}=1' for name in RATES)}", id=number)
        assert "\r\nhttps://a.org/?b=c,d! @you" in noisy
        assert "#tag" in noisy
        assert "me@x.org" in noisy
