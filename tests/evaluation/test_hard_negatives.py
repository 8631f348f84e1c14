"""Hard negatives: each says something else than its source, in its words, and nothing twice."""

import re
from collections import Counter

import numpy as np
import pytest

from noisegen.errors import UsageError
from noisegen.evaluation import negatives
from noisegen.evaluation.alterations import DATA, Alteration, apply
from noisegen.evaluation.altered_names import Names
from noisegen.evaluation.altered_numbers import number_changes
from noisegen.evaluation.altered_statements import (
    opposites,
    plain_statement_changes,
    statement_changes,
)
from noisegen.evaluation.negatives import CHARS_MAX, KINDS, hard_negatives
from noisegen.noising.rng import Draws
from noisegen.noising.tagging import installed_model

needs_spacy = pytest.mark.skipif(installed_model("en") is None, reason="no English model of spaCy")

NEWS = [
    "Anna Berg moved to Lisbon in May 2014 with 3 friends.",
    "Paul Marsh never liked the cold water of Norway.",
    "The first train leaves at 7:45 and costs $12.50.",
    "Maria Costa has seen twenty-two films this year.",
    "On Tuesday the mayor of Prague opened a new school.",
    "He does not want to sell the old house in Madrid.",
    "Sales rose by 40% to 1,300 units, the company said.",
    "It may rain on Friday, but the roads are safe.",
]


@pytest.fixture(scope="module")
def english(demo) -> list[str]:
    texts = [row["text"] for row in demo if row["lang"] == "en"][:40]
    return [*texts, *NEWS, *(f"{text} {NEWS[n % len(NEWS)]}" for n, text in enumerate(texts))]


def altered(text: str, lang: str = "en", tries: int = 40) -> set[str]:
    """Return what the numbers of a text become, over many draws."""
    return {change.new for key in range(tries) for change in number_changes(text, Draws(key), lang)}


# Numbers.


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("It was founded in 1935.", r"19\d\d"),
        ("It cost $1,200.50 then.", r"[1-9],[1-9]\d\d\.\d0"),
        ("We need 300 chairs.", r"[1-9]00"),
        ("He waited 0.05 seconds.", r"0\.0[1-9]"),
        ("She came 2nd.", r"(1st|3rd|[4-9]th)"),
        ("the 21st of them", r"[1-3]\d(st|nd|rd|th)"),
        ("About 75% agreed.", r"[1-9][1-9]"),
        ("All 100% agreed.", r"[1-9]0"),
        ("They have three cats.", "two|four|five|six|seven|eight|nine"),
        ("Forty people came.", "Twenty|Thirty|Fifty|Sixty|Seventy|Eighty|Ninety"),
        ("the first time", "second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"),
        ("See you on Monday.", "(Tues|Wednes|Thurs|Fri|Satur|Sun)day"),
        ("in the 1980s", r"19\d0"),
        ("It starts at 7:45.", r"[1-9]"),
        ("It starts at 19:45.", r"1[3-9]|2[0-3]"),
    ],
)
def test_a_number_keeps_magnitude_and_format(text, pattern):
    found = altered(text)
    assert len(found) > 2
    assert all(re.fullmatch(pattern, new) for new in found), found


@pytest.mark.parametrize(
    "text",
    [
        "I have 1 dog.",
        "One of them left.",
        "a COVID-19 test",
        "Call me at http://x.org/2019",
        "two thirds of it",
        "in a second",
        "may I go",
        "It was Good Friday",
        "version 1.2.3",
        "MP3",
    ],
)
def test_what_is_no_plain_number_stays(text):
    assert not altered(text)


def test_ordinals_take_their_endings():
    endings = {"1": "st", "2": "nd", "3": "rd"}
    made = altered("the 15th of them", tries=300)
    assert len(made) > 15
    for new in made:
        digits, ending = new[:-2], new[-2:]
        teen = digits in ("11", "12", "13")
        assert ending == ("th" if teen else endings.get(digits[-1], "th")), new


def test_a_number_the_text_has_already_is_no_change():
    assert "7" not in altered("from 5 to 7 metres", tries=300)


def test_numbers_of_other_languages_change_in_their_script():
    assert altered("यहाँ ४२ लोग हैं", lang="hi")
    for new in altered("यहाँ ४२ लोग हैं", lang="hi"):
        assert re.fullmatch("[१-९]{2}", new)
    assert not altered("Am Montag kamen zwei", lang="de")
    assert all(re.fullmatch(r"[1-9],\d", new) for new in altered("Es waren 3,5 km", lang="de"))


def test_a_number_of_thousands_of_digits_costs_nothing():
    assert altered("9" * 1_900, tries=2)


# Articles.


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("a good idea", "good", "awful", "an awful idea"),
        ("an old man", "old", "young", "a young man"),
        ("A 15-year term", "15", "80", "An 80-year term"),
        ("an hour", "hour", "union", "a union"),
        ("the old man", "old", "young", "the young man"),
    ],
)
def test_the_article_agrees_with_what_follows(text, old, new, expected):
    start = text.index(old)
    assert Alteration(start, start + len(old), new).applied(text) == expected


# Statements.


def turned(text: str) -> set[str]:
    [document] = negatives.parsed([text], "en")
    return {apply(text, made) for made in statement_changes(document)}


@needs_spacy
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He likes tea.", "He does not like tea."),
        ("They came home.", "They did not come home."),
        ("She is a doctor.", "She is not a doctor."),
        ("We can see it.", "We cannot see it."),
        ("I'll call you.", "I will not call you."),
        ("You should go.", "You should not go."),
        ("Open the door.", "Do not open the door."),
        ("He isn't here.", "He is here."),
        ("I can't swim.", "I can swim."),
        ("They won't come.", "They will come."),
        ("I don't like it.", "I like it."),
        ("She did not say anything.", "She did say something."),
        ("It may rain tomorrow.", "It will rain tomorrow."),
        ("He always wins.", "He never wins."),
        ("This is a good plan.", "This is a bad plan."),
        ("This is a good plan.", "This is not a good plan."),
    ],
)
def test_a_statement_is_turned_round(text, expected):
    assert expected in turned(text)


@needs_spacy
@pytest.mark.parametrize(
    "text",
    [
        "Is he here?",
        "He is only a child.",
        "He has no money.",
        "Nobody came.",
        "Thank you very much.",
        "Why don't you come?",
        "Good morning!",
    ],
)
def test_where_not_would_not_turn_it_round_there_is_none(text):
    assert not any(re.search(r"\bnot\b", new) for new in turned(text))


@needs_spacy
def test_no_sentence_becomes_negative_twice():
    assert "He does not know nothing." not in turned("He does not know everything.")


def test_without_a_parser_plain_sentences_are_turned_round():
    found = {
        apply("The water is cold today.", made)
        for made in plain_statement_changes("The water is cold today.")
    }
    assert found == {"The water is not cold today.", "The water is hot today."}
    assert not plain_statement_changes("Is it far?")


def test_every_opposite_is_another_word_and_the_lists_say_where_they_come_from():
    for word, known in opposites().items():
        assert all(one.word != word for one in known)
    for path in DATA.glob("*.tsv"):
        head = [line for line in path.read_text("utf-8").splitlines() if line.startswith("# ")]
        for key in ("# name: ", "# lang: ", "# source: ", "# license: "):
            assert any(line.startswith(key) for line in head), (path, key)


# Names.


@needs_spacy
def test_a_name_gives_way_to_one_of_its_kind_wherever_it_stands():
    texts = ["Anna Berg says Anna Berg won.", "Paul Marsh lives in Lisbon.", "We love Madrid."]
    names = Names.of(texts, negatives.parsed(texts, "en"))
    assert names.altered(0, Draws(0)) == "Paul Marsh says Paul Marsh won."
    assert {names.altered(2, Draws(key)) for key in range(20)} == {"We love Lisbon."}


@needs_spacy
def test_two_names_of_one_thing_are_not_swapped():
    texts = ["They flew to America.", "He works in Britain.", "She lives in England."]
    names = Names.of(texts, negatives.parsed(texts, "en"))
    found = {names.altered(1, Draws(key)) for key in range(30)}
    assert found == {"He works in America."}


def test_a_lone_name_has_no_negative():
    texts = ["We met Zora in town.", "It rained all day."]
    assert Names.of(texts, None).altered(0, Draws(0)) is None


# The generator.


def check(texts: list[str], **options) -> negatives.HardNegatives:
    found = hard_negatives(texts, **options)
    assert len(found.texts) == len(found.sources) == len(found.kinds) == len(found)
    assert not set(found.texts) & set(texts)
    assert len(set(found.texts)) == len(found)
    assert found.sources.dtype == np.int64
    assert set(found.kinds) <= set(KINDS)
    return found


@pytest.fixture(scope="module")
def made(english) -> negatives.HardNegatives:
    return check(english)


@pytest.fixture(scope="module")
def made_in_reverse(english) -> negatives.HardNegatives:
    return check(english[::-1])


def test_negatives_differ_from_all_texts_and_from_each_other(english, made):
    assert set(made.kinds) == set(KINDS)
    assert len(set(made.sources.tolist())) > 0.9 * len(set(english))


def test_a_negative_shares_most_of_its_words_with_its_source(english, made):
    for new, source in zip(made.texts, made.sources, strict=True):
        ours, theirs = Counter(new.split()), Counter(english[source].split())
        assert sum((ours - theirs).values()) <= 5 + sum(theirs.values()) // 3, (
            english[source],
            new,
        )


@pytest.mark.nightly
def test_the_same_texts_give_the_same_negatives_and_a_seed_gives_others(english, made):
    assert check(english).texts == made.texts
    assert check(english, seed=1).texts != made.texts


@pytest.mark.parametrize("kind", ["number", "causality"])
def test_negatives_of_a_text_do_not_depend_on_its_place(english, made, made_in_reverse, kind):
    def of_kind(texts, found):
        return {
            (texts[source], new)
            for new, source, one in zip(found.texts, found.sources, found.kinds, strict=True)
            if one == kind
        }

    assert of_kind(english, made) == of_kind(english[::-1], made_in_reverse)


def test_of_equal_texts_the_first_has_the_negatives():
    found = check([NEWS[0], NEWS[2], NEWS[0]])
    assert set(found.sources.tolist()) <= {0, 1}


@pytest.mark.parametrize("most", [0, 1, 2])
def test_no_family_has_more_than_asked_for(english, most):
    found = check(english, per_kind=most)
    counts = Counter(zip(found.sources.tolist(), found.kinds, strict=True))
    assert max(counts.values(), default=0) == most


def test_without_spacy_all_three_families_are_there_still():
    assert negatives.parsed(NEWS, "xx") is None, "there is no model of that language"
    found = check([*NEWS, "We met Anna Berg again in Lisbon."], parse=False)
    assert set(found.kinds) == set(KINDS)
    assert "without spaCy" in found.note


def test_other_languages_have_numbers_alone_and_it_is_said():
    found = check(["Es kamen 20 Leute nach Berlin.", "Er ist nicht hier."], lang="de")
    assert set(found.kinds) == {"number"}
    assert "only in English" in found.note


def test_odd_and_overlong_texts_have_no_negatives_or_sound_ones(odd_texts):
    check([*odd_texts, "It is " + "very " * CHARS_MAX + "cold."])
    assert len(check([])) == 0
    with pytest.raises(UsageError, match="per_kind"):
        hard_negatives(["a"], per_kind=-1)
