"""Edits, null edits, reverts, and the window of lines that changed."""

import random
from copy import deepcopy

import pytest

from noisegen.mining import changes
from noisegen.mining.changes import (
    EDIT,
    FIRST,
    LINES_MAX,
    REVERT,
    SAME,
    WITHHELD,
    History,
    changed_lines,
)
from noisegen.mining.miner import SentencePair, WordPair
from noisegen.mining.revisions import Page, Revision

PAGE = Page(1, 0, "Page")


def rev(text):
    raw = None if text is None else text.encode()
    return Revision(PAGE, b"", b"", raw, b"")


def kinds(texts, **options):
    history = History(**options)
    return [history.add(rev(text))[0] for text in texts]


def pair(noisy, clean, *words):
    return SentencePair(noisy, clean, "en", 1, tuple(WordPair(*word) for word in words))


def mined(texts):
    """Return the pairs (old, new) of whole texts that are left at the end of a page."""
    history, left = History(), []
    for text in texts:
        _, previous = history.add(rev(text))
        if previous is not None:
            old = previous.raw.decode()
            history.follow({old}, [(old, text)], str.split)
            history.store(pair(old, text))
        left += history.final_pairs()
    left += history.final_pairs(ended=True)
    return [(one.noisy, one.clean, survived) for one, survived in left]


def test_first_edit_null_edit_and_withheld_text():
    assert kinds(["a", "b", "b", None, "c", "d"]) == [FIRST, EDIT, SAME, WITHHELD, FIRST, EDIT]


def test_a_text_that_comes_back_is_a_revert():
    assert kinds(["a", "b", "a", "c"]) == [FIRST, EDIT, REVERT, EDIT]
    assert kinds(["a", "b", None, "a"]) == [FIRST, EDIT, WITHHELD, REVERT]


@pytest.mark.parametrize(("between", "kind"), [(14, REVERT), (15, EDIT)])
def test_a_revert_reaches_back_fifteen_edits(between, kind):
    assert kinds(["a", *map(str, range(between)), "a"])[-1] == kind


def test_pairs_are_withdrawn_when_they_are_reverted():
    assert mined(["a", "b", "vandal", "b", "c"]) == [("a", "b", False), ("b", "c", True)]


def test_a_reverted_revision_is_no_revert_target():
    # Else the second 'vandal' would be taken for a revert to the first, and withdraw a -> b.
    texts = ["a", "vandal", "a", "b", "vandal", "b", "c"]

    assert kinds(texts) == [FIRST, EDIT, REVERT, EDIT, EDIT, REVERT, EDIT]
    assert mined(texts) == [("a", "b", False), ("b", "c", True)]


def test_an_edit_war_leaves_nothing():
    assert mined(["anomy", "anomie"] * 6 + ["anomy"]) == []


def test_declared_hashes_are_trusted_only_if_asked_for():
    one, other = (rev(text)._replace(attributes=b' sha1="x1"') for text in "ab")

    assert History().add(one)[0] == FIRST
    trusting, checking = History(), History(trusts_hashes=False)
    assert [trusting.add(one)[0], trusting.add(other)[0]] == [FIRST, SAME]
    assert [checking.add(one)[0], checking.add(other)[0]] == [FIRST, EDIT]


def test_pairs_wait_as_long_as_they_can_be_reverted():
    history = History()
    history.add(rev("a"))
    history.add(rev("b"))
    history.store(pair("a", "b"))
    for number in range(changes.RADIUS - 1):
        history.add(rev(str(number)))
        assert list(history.final_pairs()) == []
    history.add(rev("last"))

    assert [one.clean for one, _ in history.final_pairs()] == ["b"]


def test_a_pair_of_words_outlives_its_sentence_while_its_clean_words_are_there():
    history = History()
    for text in ("A teh b.", "A the b."):
        history.add(rev(text))
    history.store(pair("A teh b.", "A the b.", ("the", "teh")))
    history.store(pair("X.", "A the b."))
    history.add(rev("A the bee."))
    history.follow({"A the b."}, [("A the b.", "A the bee.")], str.split)

    assert [survived for _, survived in history.final_pairs(ended=True)] == [True, False]


def test_a_revert_brings_a_sentence_back():
    history = History()
    for text in ("A teh b.", "A the b."):
        history.add(rev(text))
    history.store(pair("A teh b.", "A the b.", ("the", "teh")))
    history.add(rev("HAHA"))
    history.follow({"A the b."}, [], str.split)
    assert history.add(rev("A the b."))[0] == REVERT

    assert [survived for _, survived in history.final_pairs(ended=True)] == [True]


def random_edits(dice, count):
    """Yield texts of short and long lines and what a few edits make of them."""
    for _ in range(count):
        lines = [dice.choice("abcdef") * dice.choice((0, 1, 1, 3, 300)) for _ in range(40)]
        old = lines[: dice.randrange(41)]
        new = list(old)
        for _ in range(dice.randrange(4)):
            at = dice.randrange(len(new) + 1)
            action = dice.randrange(3)
            if action == 0:
                new.insert(at, dice.choice("abcdefgh") * dice.randrange(3))
            elif new[at:] and action == 1:
                del new[at]
            elif new[at:]:
                new[at] += "x"
        yield "\n".join(old).encode(), "\n".join(new).encode()


def test_changed_lines_hold_all_that_only_one_text_has():
    for old, new in random_edits(random.Random(2), 3_000):
        mine, theirs = old.split(b"\n"), new.split(b"\n")
        ours, other = changed_lines(old, new)
        # the slow twin: every line of both pages
        assert set(mine) - set(theirs) <= set(ours) <= set(mine)
        assert set(theirs) - set(mine) <= set(other) <= set(theirs)
        assert not set(ours) & set(other)
        assert (ours, other) == ([], []) or old != new


def test_lines_that_only_move_are_no_change():
    assert changed_lines(b"a\nb\nc\nd", b"a\nc\nb\nd") == ([], [])
    assert changed_lines(b"a\nb\nc", b"a\nB\nc") == ([b"b"], [b"B"])


def test_a_page_that_is_blanked_takes_its_pairs_along_until_it_is_restored():
    history = History()
    for text in ("A teh b.", "A the b."):
        history.add(rev(text))
    history.store(pair("A teh b.", "A the b.", ("the", "teh")))
    history.add(rev(""))
    history.rewritten(b"")
    assert [survived for _, survived in deepcopy(history).final_pairs(ended=True)] == [False]
    history.add(rev("A the b, and more."))  # no revert: it is another text
    history.rewritten(b"A the b, and more.")
    assert [survived for _, survived in history.final_pairs(ended=True)] == [True]


def test_a_pair_that_was_undone_does_not_come_back_with_the_page():
    history = History()
    for text in ("A teh b.", "A the b."):
        history.add(rev(text))
    history.store(pair("A teh b.", "A the b.", ("the", "teh")))
    history.add(rev("A th b."))
    history.follow({"A the b."}, [("A the b.", "A th b.")], str.split)
    history.add(rev("All the new."))
    history.rewritten(b"All the new.")
    assert [survived for _, survived in history.final_pairs(ended=True)] == [False]


def test_a_clean_word_lives_on_as_a_word_not_as_letters():
    history = History()
    history.add(rev("x"))
    history.add(rev("y"))
    history.store(pair("An cat.", "A cat.", ("A", "An")))
    history.add(rev("z"))
    history.follow({"A cat."}, [("A cat.", "AN cat.")], str.split)
    assert [survived for _, survived in history.final_pairs(ended=True)] == [False]


def test_a_window_of_endless_lines_is_not_taken_apart():
    assert changed_lines(b"a", b"\n" * (LINES_MAX + 2)) is None
