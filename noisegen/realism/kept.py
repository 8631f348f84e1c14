"""Choose which words, phrases and gaps of real pairs a noise profile stores as text.

A word is stored if it occurs in at least `min_count` different pairs. Its replacement is stored if
it occurs in at least `min_count` pairs too, or if it is a slip: at most two letters of the word
changed. A gap is the text between two words. A gap, like its replacement, is stored if it occurs in
at least `min_count` pairs and has at most two words. A phrase of two or three words is stored if it
has the same replacement in at least `min_count` pairs. So a profile contains no text of
more than three words from the pairs.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from rapidfuzz.distance import OSA, Levenshtein

from noisegen.noising import profile as profiles
from noisegen.noising.profile import END, PHRASE_MAX, SAME, GapKey, LetterKey, Profile, WordKey
from noisegen.realism.pair_counts import Form, PairCounts
from noisegen.realism.row_factors import RowEdits, consistency
from noisegen.text.alignment import token_spans
from noisegen.text.buffers import is_word
from noisegen.text.case import SMALL, case_of, lower, shape_of

# Maximum letter edits (Damerau-Levenshtein) of a slip: a misspelling stored even if seen only once
SLIP_MAX = 2
GAP_WORDS_MAX = 2  # maximum words in a stored gap (text between words)
FORM_MAX = 60  # maximum characters in a stored replacement or gap
# Letters that no slip changes are counted too if at least this many words have them between the
# same neighbours
CONTEXT_MIN = 5
WRITTEN_MAX = 4  # maximum new letters in one letter change of a slip
UNLIKE_MAX = 0.5  # a slip changes at most this share of a word's letters

Slips = dict[tuple[str, str], list[LetterKey]]  # (word, replacement) -> letter changes


# Choice of words, phrases and gaps.


def kept_profile(found: PairCounts, min_count: int) -> Profile:
    """Return the noise profile of counted pairs, still without row factors.

    A word or a replacement counts as frequent if at least `min_count` different pairs have it.
    """
    often = {form for form, number in found.seen.items() if number >= min_count}
    every = _without_rare_phrases(found.counts.words, often)
    changed_forms = sorted({(key.clean, key.noisy) for key in every if key.noisy})
    # (word, replacement) -> letter changes; [] if the replacement is not a slip
    slips = {form: letter_changes(*form) for form in changed_forms}
    words, shapes = _kept_words(every, often, slips)
    return replace(
        found.counts,
        words=words + _phrases_that_stayed(found.rows, words),
        shapes=shapes,
        gaps=_kept_gaps(found.counts.gaps, often),
        letters=_letters(slips, {key.clean for key in every if " " not in key.clean}),
        consistency=consistency(found.repeats, every),
    )


def _without_rare_phrases(words: Counter[WordKey], often: set[Form]) -> Counter[WordKey]:
    """Return the counts of words and phrases, with rare phrases split into words.

    A phrase is rare unless the set `often` has it with the same replacement. The words of a rare
    phrase are counted with the replacement None (unknown).
    """
    counts: Counter[WordKey] = Counter()
    for key, count in words.items():
        is_frequent = (key.clean, key.noisy) in often and not _breaks(key.noisy or "")
        if " " not in key.clean or is_frequent:
            counts[key] += count
            continue
        for number, word in enumerate(key.clean.split(" ")):
            counts[WordKey(word, SMALL if number else key.case, None, SAME)] += count
    return counts


def _phrases_that_stayed(rows: Iterable[RowEdits], words: Counter[WordKey]) -> Counter[WordKey]:
    """Count how often each phrase in `words` stayed unchanged: its occurrences minus its changes.

    Occurrences are counted in the clean texts of `rows`; changes are taken from `words`.
    """
    changed = Counter[WordKey]()
    for key, count in words.items():
        if " " in key.clean:
            changed[WordKey(key.clean, key.case, key.clean, SAME)] += count
    phrases = {key.clean for key in changed}
    heads = {phrase.partition(" ")[0] for phrase in phrases}
    found = Counter[WordKey]()
    if not phrases:
        return found
    for clean, _, _, times in rows:
        for key in _phrases_in(clean, phrases, heads):
            found[key] += times
    return found - changed


def _phrases_in(clean: str, phrases: set[str], heads: set[str]) -> Iterator[WordKey]:
    """Yield a key for each occurrence of one of `phrases` in a clean text.

    `heads` are the first words of all phrases: a phrase can begin only there, which saves time.
    """
    small = lower(clean)
    spans = [span for span in token_spans(clean) if is_word(clean[span[0]])]
    for number, (start, stop) in enumerate(spans):
        if small[start:stop] not in heads:
            continue
        for _, end in spans[number + 1 : number + PHRASE_MAX]:
            if (phrase := small[start:end]) in phrases:
                case = case_of(clean[start:stop], not number)
                yield WordKey(phrase, case, phrase, SAME)


def _kept_words(
    words: Counter[WordKey], often: set[Form], slips: Slips
) -> tuple[Counter[WordKey], Counter[profiles.ShapeKey]]:
    """Return the counts of frequent words, and the counts of rare words without their text.

    A rare word is counted by its shape (see `shape_of`) and kind of change. `often` has the
    frequent words and replacements; `slips` maps each (word, replacement) to its letter changes.
    """
    kept: Counter[WordKey] = Counter()
    shapes: Counter[profiles.ShapeKey] = Counter()
    for key, count in words.items():
        if (key.clean, None) not in often:
            shape = shape_of(key.clean, key.case)
            shapes[profiles.ShapeKey(shape, _change(key, slips))] += count
        elif key.noisy is None or _is_kept(key.clean, key.noisy, often):
            kept[key] += count
        else:
            kept[key._replace(noisy=None, written=SAME)] += count
    return kept, shapes


def _change(key: WordKey, slips: Slips) -> str:
    """Return the kind of a word's change, one of `profile.CHANGES`."""
    if key.noisy == key.clean:
        return profiles.WRITTEN[key.written]
    if key.noisy == "":
        return profiles.GONE
    places = len(slips.get((key.clean, key.noisy or ""), ()))
    return profiles.LETTERS[min(places, len(profiles.LETTERS) - 1)] or profiles.OTHER


def _is_kept(clean: str, noisy: str, often: set[Form]) -> bool:
    """Tell whether the replacement of a word is stored: it is short, and frequent or a slip."""
    if clean == noisy:
        return True
    words = sum(is_word(noisy[start]) for start, _ in token_spans(noisy))  # 'w/o' has two
    if len(noisy) > FORM_MAX or words > GAP_WORDS_MAX or _breaks(noisy):
        return False
    is_slip = OSA.distance(clean, noisy) <= min(SLIP_MAX, len(clean) - 1)
    return is_slip or (clean, noisy) in often


def _kept_gaps(gaps: Counter[GapKey], often: set[Form]) -> Counter[GapKey]:
    """Return the counts of frequent gaps (texts between two words).

    A gap is counted with the word after it and with its replacement; a rare one is left out.
    """
    kept: Counter[GapKey] = Counter()
    for key, count in gaps.items():
        if (key.gap, None) not in often or not _fits(key.gap):
            continue
        right = key.right if key.right == END or (key.right, None) in often else ""
        noisy, written = key.noisy, key.written
        if noisy != key.gap and not ((key.gap, noisy) in often and _fits(noisy or "")):
            noisy, written = None, SAME
        kept[GapKey(right, key.initial, key.gap, noisy, written)] += count
    return kept


def _fits(gap: str) -> bool:
    """Tell whether a gap is short enough to be stored and has no line break."""
    words = sum(gap[start].isalnum() for start, _ in token_spans(gap))
    return len(gap) <= FORM_MAX and words <= GAP_WORDS_MAX and not _breaks(gap)


def _breaks(text: str) -> bool:
    """Tell whether a text has a line break."""
    return text != "".join(text.splitlines())


# Letter changes of slips.


def letter_changes(clean: str, noisy: str) -> list[LetterKey]:
    """Return the letter changes between two words; [] if there are too many for a misspelling.

    The letters are aligned with the fewest changes; two swapped letters are one change.

    >>> letter_changes("receive", "recieve")
    [LetterKey(before='c', clean='ei', after='v', noisy='ie')]
    """
    framed = profiles.START + clean + END
    changes = [
        LetterKey(
            framed[edit.start],
            clean[edit.start : edit.stop],
            framed[edit.stop + 1],
            noisy[edit.noisy_start : edit.noisy_stop],
        )
        for edit in _letter_edits(clean, noisy)
    ]
    sizes = [(len(change.clean), len(change.noisy)) for change in changes]
    is_slip = sum(map(max, sizes)) <= max(1, UNLIKE_MAX * max(len(clean), len(noisy)))
    fit = all(ours <= profiles.LETTERS_MAX and theirs <= WRITTEN_MAX for ours, theirs in sizes)
    return changes if is_slip and fit else []


class _LetterEdit(NamedTuple):
    """Letters that differ between two words: their offsets in the clean and in the noisy word."""

    start: int
    stop: int
    noisy_start: int
    noisy_stop: int


def _letter_edits(clean: str, noisy: str) -> list[_LetterEdit]:
    """Return the letter edits between two words; two swapped letters are one edit."""
    found: list[_LetterEdit] = []
    for step in Levenshtein.opcodes(clean, noisy):
        if step.tag == "equal":
            continue
        edit = _LetterEdit(step.src_start, step.src_end, step.dest_start, step.dest_end)
        if found:
            both = found[-1]._replace(stop=edit.stop, noisy_stop=edit.noisy_stop)
            ours = clean[both.start : both.stop]
            theirs = noisy[both.noisy_start : both.noisy_stop]
            if edit.start == found[-1].stop or (len(ours) == 2 and ours == theirs[::-1]):
                found.pop()
                edit = both
        found.append(edit)
    return found


def _sites(word: str, parts: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield each letter sequence in `parts` that a word has: (letter before, it, letter after)."""
    framed = profiles.START + word + END
    for start in range(1, len(framed)):
        for size in range(min(profiles.LETTERS_MAX, len(framed) - 1 - start) + 1):
            part = framed[start : start + size]
            if part in parts:
                yield framed[start - 1], part, framed[start + size]


def _letters(slips: Slips, words: Iterable[str]) -> Counter[LetterKey]:
    """Count the letter changes of all slips (misspellings), and the words that each may change.

    A key has the letters `clean`, their replacement `noisy` and their two neighbours. If `noisy`
    equals `clean`, the key counts all words with this sequence of letters, changed or not.
    """
    counts = Counter(change for changes in slips.values() for change in changes)
    parts = frozenset(key.clean for key in counts)
    contexts = {key[:3] for key in counts}
    contexts_seen = Counter(site for word in words for site in set(_sites(word, parts)))
    for (before, part, after), count in contexts_seen.items():
        if count >= CONTEXT_MIN or (before, part, after) in contexts:
            counts[LetterKey(before, part, after, part)] = count
    return counts
