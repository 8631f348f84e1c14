import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.errors import UsageError
from noisegen.mining.filters import PROFILES, Delta, deltas, judge
from noisegen.mining.miner import WordPair
from noisegen.mining.miner_options import MiningOptions
from noisegen.text.segmentation import Language, language

RCP, STRICT, ALL = PROFILES["rcp"], PROFILES["strict"], PROFILES["all"]
EN = Language("en")


def words(count: int, wrong: int = 0) -> str:
    return " ".join(["wrong"] * wrong + ["word"] * (count - wrong))


def judged(noisy, clean, spoken=EN, rules=RCP):
    """Return the words of a pair, None if it is dropped, and all reasons."""
    dropped = Counter()
    return judge(noisy, clean, spoken, rules, dropped), dropped


def reason(noisy: str, clean: str, rules=RCP, spoken=EN) -> str | None:
    words, dropped = judged(noisy, clean, spoken, rules)
    return next(iter(dropped)) if words is None else None


@pytest.mark.parametrize(
    ("noisy", "clean", "expected"),
    [
        ("word word", "word word", "equal"),
        ("caf\u00e9 x y z", "cafe\u0301 x y z", "equal"),
        ("a word  here", "a word here", "equal"),  # blanks are no tokens
        ("word", "world", "too_short"),
        ("", "word", "too_short"),
        (words(120, wrong=1), words(120), None),
        (words(121, wrong=1), words(121), "too_long"),
        (words(120), words(121), "too_long"),
        (words(40), words(44), None),
        (words(40), words(45), "length_differs"),
        (words(10, wrong=3), words(10), None),  # 30 % of the shorter, exactly
        (words(10, wrong=4), words(10), "too_different"),
        (words(9, wrong=3), words(9), "too_different"),
        (words(12, wrong=1), words(10), None),  # 3 edits, the shorter has 10
        (words(12, wrong=3), words(9), "too_different"),
    ],
)
def test_rcp_sentences(noisy, clean, expected):
    assert reason(noisy, clean) == expected
    assert reason(clean, noisy) == expected


@pytest.mark.parametrize(
    ("noisy", "clean", "expected"),
    [
        (words(400, wrong=1), words(400), None),
        (words(5, wrong=1), words(5), None),
        ("word", "world", "too_different"),
        (words(40), words(45), "length_differs"),
        (words(10, wrong=4), words(10), "too_different"),
    ],
)
def test_all_asks_for_length_difference_and_distance_only(noisy, clean, expected):
    assert reason(noisy, clean, ALL) == expected


@pytest.mark.parametrize(
    ("noisy", "clean", "expected"),
    [
        ("It was [[the best of all they had", "It was the best of all they had", "markup"),
        ("See http://a.org for it all", "See https://a.org for it all", "markup"),
        ("It was sooooo good to us", "It was so good to us", "held_key"),
        ("It was so g00d for all of us", "It was so good for all of us", None),
        ("It was soooo good to us", "It was so good to us", None),
        ("He died in 1987 in Rome then", "He died in 1978 in Rome then", "numbers_differ"),
        ("He had 3 hats on his head", "He had three hats on his head", "numbers_differ"),
        ("He died in 1987 in Roma", "He died in 1987 in Rome", None),
    ],
)
def test_strict_also_asks_for_quality(noisy, clean, expected):
    assert reason(noisy, clean, STRICT) == expected
    assert reason(noisy, clean, RCP) is None


LONG = " and so they went on for a while"


@pytest.mark.parametrize(
    ("noisy", "clean", "expected", "dropped"),
    [
        ("teh cat", "the cat", [("the", "teh")], {}),
        ("The cat", "the cat", [("the", "The")], {}),
        ("teh caat", "the cat", [("the", "teh"), ("cat", "caat")], {}),
        ("alot of it", "a lot of it", [], {}),  # two for one: no word for a word
        ("a of it", "a lot of it", [], {}),
        ("a big cat", "a large cat", [], {"word_too_far": 1}),
        ("a cat in", "a cat on", [("on", "in")], {}),
        ("it is cat", "is it cat", [], {}),
        ("he or me", "me of he", [("of", "or")], {"word_moved": 2}),
        ("in 1987", "in 1988", [], {"word_no_letter": 1}),
        ("a cat ,", "a cat .", [], {"word_no_letter": 1}),
        ("a1 cat", "a2 cat", [("a2", "a1")], {}),
        ("dont go", "don't go", [("don't", "dont")], {}),
        ("the recieved", "the received", [("received", "recieved")], {}),
        ("the abcd", "the abxyz", [], {"word_too_far": 1}),
    ],
)
def test_words_replaced_one_by_one(noisy, clean, expected, dropped):
    words, reasons = judged(noisy + LONG, clean + LONG)

    assert [pair[:2] for pair in words] == expected
    assert reasons == dropped


def test_strict_takes_no_change_of_case_alone():
    words, dropped = judged("teh Cat" + LONG, "the cat" + LONG, rules=STRICT)

    assert [pair[:2] for pair in words] == [("the", "teh")]
    assert dropped == {"word_case": 1}


def test_a_kind_comes_with_the_words():
    [pair] = judged("the Cat" + LONG, "the cat" + LONG)[0]

    assert pair == WordPair("cat", "Cat", "case")


@pytest.mark.parametrize(
    ("distance", "expected"), [(None, 1), ("none", 1), ("1", 0), ("2", 0), ("3", 1)]
)
def test_the_distance_between_words_is_an_option(distance, expected):
    rules = MiningOptions(max_char_distance=distance).pair_profile()
    noisy = "the abcd" if distance else "the abxd"

    assert len(judged(noisy + LONG, "the abxyz" + LONG, rules=rules)[0]) == expected


@pytest.mark.parametrize("distance", ["0", "-1", "two", ""])
def test_what_is_no_distance_is_wrong_usage(distance):
    with pytest.raises(UsageError, match=f"--max-char-distance '{distance}': write"):
        MiningOptions(max_char_distance=distance).pair_profile()


# The slow twin: whole sentences tokenised, the whole table of distances, every rule spelt out.


def table(ours, theirs):
    rows = [list(range(len(theirs) + 1))]
    for i, one in enumerate(ours, 1):
        rows.append([i])
        for j, other in enumerate(theirs, 1):
            best = rows[i - 1][j - 1] + (one != other)
            rows[i].append(min(best, rows[i - 1][j] + 1, rows[i][j - 1] + 1))
    return rows


def slow_reason(noisy, clean, spoken):
    ours, theirs = spoken.tokens(noisy), spoken.tokens(clean)
    sizes = sorted([len(ours), len(theirs)])
    if noisy == clean:
        return "equal"
    if sizes[0] < 2:
        return "too_short"
    if sizes[1] > 120:
        return "too_long"
    if sizes[1] - sizes[0] >= 5:
        return "length_differs"
    distance = table(ours, theirs)[-1][-1]
    if 10 * distance > 3 * sizes[0]:
        return "too_different"
    return None if distance else "equal"


def slow_words(noisy, clean, spoken):
    """All pairs of the deltas of the whole sentences that pass, in order."""
    pairs = []
    for delta in deltas(spoken.tokens(noisy), spoken.tokens(clean)):
        if len(delta.noisy) != len(delta.clean):
            continue
        for one, other in zip(*delta, strict=True):
            moved = len(delta.clean) > 1 and (one in delta.clean or other in delta.noisy)
            letters = any(c.isalpha() for c in one) and any(c.isalpha() for c in other)
            if not moved and letters and 1 <= table(one, other)[-1][-1] <= 2:
                pairs.append((other, one))
    return pairs


def disturbed(rng, text):
    tokens = text.split(" ")
    for _ in range(rng.randrange(1, 5)):
        place = rng.randrange(len(tokens))
        word = tokens[place]
        cut = rng.randrange(len(word) + 1)
        tokens[place] = rng.choice(
            [word[:cut] + rng.choice("aeé-, 'X3") + word[cut:], word[:cut] + word[cut + 1 :], ""]
        )
    return " ".join(tokens)


def test_verdicts_on_real_sentences_are_those_of_the_slow_twin(real_sentences):
    rng = random.Random(5)
    reasons = set()
    for clean in real_sentences[:1_000]:
        noisy = disturbed(rng, clean)
        words, dropped = judged(noisy, clean)
        expected = slow_reason(noisy, clean, EN)
        reasons.add(expected)
        if expected is None:
            assert [pair[:2] for pair in words] == slow_words(noisy, clean, EN)
        else:
            assert (words, dropped) == (None, {expected: 1})
    assert len(reasons) > 1


TEXTS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "a,b", "3", "é", ","]), max_size=12)


@given(TEXTS, TEXTS)
def test_verdicts_on_few_words_are_those_of_the_slow_twin(ours, theirs):
    noisy, clean = " ".join(ours), " ".join(theirs)

    assert reason(noisy, clean) == slow_reason(noisy, clean, EN)


@given(st.text("我们你在再，。 a", max_size=14), st.text("我们你在再，。 a", max_size=14))
def test_chinese_cut_at_commas_is_judged_as_a_whole(noisy, clean):
    zh = language("zh")

    assert reason(noisy, clean, RCP, zh) == slow_reason(noisy, clean, zh)


@given(st.text("abcd", max_size=10), st.text("abcd", max_size=10))
def test_deltas_turn_one_list_into_the_other_at_the_least_cost(noisy, clean):
    found = deltas(list(noisy), list(clean))
    left = "".join(noisy)
    for delta in found:
        old, new = "".join(delta.noisy), "".join(delta.clean)
        assert old or new
        assert old != new
    cost = sum(max(len(delta.noisy), len(delta.clean)) for delta in found)
    assert cost == table(noisy, clean)[-1][-1]
    assert len(clean) - len(left) == sum(len(d.clean) - len(d.noisy) for d in found)


def test_deltas_of_one_token():
    assert deltas(["a"], ["b"]) == [Delta(["a"], ["b"])]
    assert deltas(["a"], ["a"]) == deltas([], []) == []


@pytest.mark.parametrize(
    ("clean", "noisy", "kept"),
    [
        ("für", "fuer", True),
        ("Straße", "Strasse", True),
        ("Mädchen", "Madchen", True),
        ("Übung", "Uebung", True),
        ("Übergänge", "Uebergaenge", False),
    ],
)
@pytest.mark.parametrize("profile", ["rcp", "spelling"])
def test_german_without_umlauts_is_within_two_edits(clean, noisy, kept, profile):
    """The paper's bound: one letter written as two passes, two of them in a word do not."""
    german = language("de")
    sides = (f"Das ist heute nicht {word} und nicht mehr." for word in (noisy, clean))
    words = judge(*sides, german, PROFILES[profile], Counter())
    assert [(word.noisy, word.clean) for word in words] == ([(noisy, clean)] if kept else [])
