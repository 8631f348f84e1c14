"""Of which kind an edit is: one of `KINDS`, decided by rules in a fixed order.

The kinds follow van der Goot, van Noord and van Noord (2018), "A taxonomy for in-depth evaluation
of normalization for user generated content", for what happens inside words, and Sanguinetti et al.
(2020), "Treebanking user-generated content", for marks, boundaries and media; docs/realism.md has
the table. Case is ignored from the rule `casing` on, marks on letters from `diacritics` on.
"""

import re
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from noisegen.realism import respelling
from noisegen.realism.alignment import Edit, token_spans

_CONTEXTS = 1 << 10  # texts whose tokens and emoticons are kept at hand
_CHANGES = 1 << 16  # changes of words whose kind is kept at hand
_APOSTROPHES = re.compile(r"\s*['\u2018\u2019\u02bc`\u00b4]+\s*")
_EMOJI = "\u2600-\u27bf\u2b50-\u2b55\ufe0f\u200d\U0001f000-\U0001faff"
_EMOTICON = re.compile(
    rf"[{_EMOJI}]+"
    r"|(?:[:;=]|(?<!\w)[8xX]) ?['\u2019]?[-^o~]?(?: ?[)(\]\[])+(?!\w)"  # :) ;-( =)))
    r"|(?<!\w)[:;=][-^]?(?:[DPpOoSsVv3*/|\\](?!\w)|[DPp]{2,}(?!\w))"  # :D :P :v :3
    r"|(?<!\w)[xX]D+(?!\w)|<3+|\^[_.-]*\^|[-TtoO>][_.][-TtoO<](?!\w)"  # xD <3 ^_^ -_- T_T
    r"|\)(?: ?\))+"  # )))
)


class Change(NamedTuple):
    """An edit in its texts: what stood there, what stands there now."""

    before: str
    after: str
    clean: str
    noisy: str
    edit: Edit


def kind_of(clean: str, noisy: str, edit: Edit, lang: str = "") -> str:
    """Return the kind of an edit of `clean`, one of `KINDS`.

    `lang` matters where spelling does not show the sound: with "zh" (which needs the extra zh) a
    character replaced by one of the same reading is `phonetic`. Raises MissingExtra.
    """
    before = clean[edit.clean_start : edit.clean_stop]
    after = noisy[edit.noisy_start : edit.noisy_stop]
    change = Change(before, after, clean, noisy, edit)
    for kind, applies in _IN_CONTEXT:
        if applies(change):
            return kind
    return _kind_of_words(before, after, lang)


@lru_cache(_CHANGES)
def _kind_of_words(before: str, after: str, lang: str) -> str:
    return next(kind for kind, applies in _BY_ITSELF if applies(before, after, lang))


# Marks: signs that are neither letters nor digits.


def _is_marks(change: Change) -> bool:
    return not any(character.isalnum() for character in change.before + change.after)


def _of_emoticon(change: Change) -> bool:
    clean_start, clean_stop, noisy_start, noisy_stop = change.edit
    return _in_emoticon(change.clean, clean_start, clean_stop) or _in_emoticon(
        change.noisy, noisy_start, noisy_stop
    )


def _in_emoticon(text: str, start: int, stop: int) -> bool:
    inside = (first <= start < stop <= last for first, last in _emoticons(text))
    return start < stop and any(inside)


@lru_cache(_CONTEXTS)
def _emoticons(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(match.span() for match in _EMOTICON.finditer(text))


def _mark_repeated(change: Change) -> bool:
    """Tell whether more of the mark that stands there, or beside it, was written."""
    if not _is_marks(change) or len(change.after) <= len(change.before):
        return False
    around = change.noisy[max(0, change.edit.noisy_start - 1) : change.edit.noisy_stop + 1]
    return len(set(change.after)) == 1 and (
        set(change.before) == set(change.after)
        or (not change.before and around.count(change.after[0]) > len(change.after))
    )


# Words that stand elsewhere.


def _word_moved(change: Change) -> bool:
    """Tell whether what is missing here stands elsewhere, and what is here is missing there."""
    if _is_marks(change) or change.before == change.after:
        return False
    had, has = _words(change.clean), _words(change.noisy)
    gone = all(has[word] >= had[word] for word in _words(change.before))
    come = all(had[word] >= has[word] for word in _words(change.after))
    return gone and come and change.before.casefold() != change.after.casefold()


@lru_cache(_CONTEXTS)
def _words(text: str) -> Counter[str]:
    folded = text.casefold()
    return Counter(folded[slice(*span)] for span in token_spans(folded))


# The order of the rules decides; the last one takes what is left.

_IN_CONTEXT: tuple[tuple[str, Callable[[Change], bool]], ...] = (
    ("blanks", lambda change: not (change.before + change.after).strip()),
    ("emoticon", _of_emoticon),
    ("apostrophe", lambda change: _is_marks(change) and _drops_out(change, _APOSTROPHES)),
    ("mark repeated", _mark_repeated),
    ("mark dropped", lambda change: _is_marks(change) and not change.after),
    ("mark added", lambda change: _is_marks(change) and not change.before),
    ("mark changed", _is_marks),
    ("word moved", _word_moved),
    ("word dropped", lambda change: not change.after),
    ("word added", lambda change: not change.before),
)


def _drops_out(change: Change, pattern: re.Pattern[str]) -> bool:
    return not pattern.sub("", change.before) and not pattern.sub("", change.after)


def _same_but_case(before: str, after: str, lang: str) -> bool:
    return before.lower() == after.lower()


def _same_but_diacritics(before: str, after: str, lang: str) -> bool:
    plain = respelling.plain(after)
    return plain in (respelling.plain(before), respelling.spelled_out(before))


def _same_but_apostrophes(before: str, after: str, lang: str) -> bool:
    ours, theirs = (_APOSTROPHES.sub("", side).casefold() for side in (before, after))
    return ours == theirs


def _split(before: str, after: str, lang: str) -> bool:
    return len(after.split()) > len(before.split()) and _like_without_blanks(before, after)


def _merged(before: str, after: str, lang: str) -> bool:
    return len(after.split()) < len(before.split()) and _like_without_blanks(before, after)


def _like_without_blanks(before: str, after: str) -> bool:
    return respelling.alike("".join(before.split()), "".join(after.split()))


def _plain_rule(applies: Callable[[str, str], bool]) -> Callable[[str, str, str], bool]:
    return lambda before, after, lang: applies(respelling.plain(before), respelling.plain(after))


_BY_ITSELF: tuple[tuple[str, Callable[[str, str, str], bool]], ...] = (
    ("casing", _same_but_case),
    ("diacritics", _same_but_diacritics),
    ("apostrophe", _same_but_apostrophes),
    ("script", lambda before, after, lang: respelling.other_script(before, after)),
    ("initialism", lambda before, after, lang: respelling.is_initialism(before.split(), after)),
    ("digits", lambda before, after, lang: respelling.digits_for_letters(before, after)),
    ("split", _split),
    ("merge", _merged),
    ("lengthening", _plain_rule(respelling.is_lengthened)),
    ("vowels dropped", _plain_rule(respelling.drops_vowels)),
    ("shortening", _plain_rule(respelling.is_shortened)),
    ("transposition", _plain_rule(respelling.transposed)),
    ("phonetic", respelling.sounds_alike),
    ("ending", _plain_rule(respelling.other_ending)),
    ("insertion", _plain_rule(respelling.inserted)),
    ("deletion", _plain_rule(lambda before, after: respelling.inserted(after, before))),
    ("substitution", _plain_rule(respelling.substituted)),
    ("spelling", _plain_rule(respelling.alike)),
    ("word replaced", lambda before, after, lang: len(before.split()) == len(after.split()) == 1),
    ("other", lambda before, after, lang: True),
)
KINDS: tuple[str, ...] = tuple(dict.fromkeys(kind for kind, _ in (*_IN_CONTEXT, *_BY_ITSELF)))
