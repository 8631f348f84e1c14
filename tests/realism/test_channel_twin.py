"""The kernel of a learned channel against a slow twin: one row, Python strings, one draw at a time.

They share the channel_of chances, the scalar draws and what scripts forbid, nothing else.
"""

from bisect import bisect_left, bisect_right
from dataclasses import replace
from fractions import Fraction
from itertools import accumulate, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from learned import learned_profile, noisy_pairs

from noisegen.noising.channel import ChannelKernel
from noisegen.noising.channel_model import (
    AS_WRITTEN,
    COARSER,
    FORM,
    WORD_GONE,
    channel_of,
    letter_pairs,
)
from noisegen.noising.edits import rewritten
from noisegen.noising.profile import ROW_HABITS, SAME
from noisegen.noising.rng import GOLDEN, MASK, fork, row_key, row_keys, splitmix, stream_key
from noisegen.text.alignment import token_spans
from noisegen.text.buffers import Texts, is_word, joins
from noisegen.text.case import case_of, cased, lower, shape_of
from noisegen.text.sequences import forbidden_sequences

SHIFT = 8 + 16 + 32 - 48


def draw(key, number):
    return splitmix((key + (number + 1) * GOLDEN) & MASK)


def option(group, bits):
    return group.options[bisect_right(group.bounds, bits)]


def place(before, after):
    return "^" if before == "^" else "$" if after == "$" else ""


class Twin:
    """One row."""

    def __init__(self, text, channel, profile, key, rate):
        self.text, self.channel = text, channel
        self.words = [span for span in token_spans(text) if is_word(text[span[0]])]
        edges = [0, *(edge for span in self.words for edge in span), len(text)]
        self.gaps = list(zip(edges[::2], edges[1::2], strict=True))
        names = ("words", "gaps", "phrases", "forms", "row")
        self.keys = {name: fork(key, name) for name in names}
        self.strength = int(rate * 65536)
        self.factors = profile.factors
        self.known = sorted({word for word, _ in channel.words})
        self.words_alike = draw(self.keys["row"], 3) >> 16 < profile.consistency << 40

    def edits(self):
        row = [draw(self.keys["row"], number) for number in range(3)]
        sums = list(accumulate(factor.weight for factor in self.factors))
        bounds = [part * 2**48 // sums[-1] for part in sums]
        of_words, of_gaps, _, must = self.factors[bisect_right(bounds, row[0] >> 16)]
        self.phrases = self.hit_phrases(of_words)
        taken = {
            unit
            for first, (last, _) in self.phrases.items()
            for unit in [
                *(("words", n) for n in range(first, last + 1)),
                *(("gaps", n) for n in range(first + 1, last + 1)),
            ]
        }
        scores, hits = {}, {("words", first) for first in self.phrases}
        for kind, group, factor in [
            *((("words", n), self.word_group(n), of_words) for n in range(len(self.words))),
            *((("gaps", n), self.gap_group(n), of_gaps) for n in range(len(self.gaps))),
        ]:
            if kind in taken:
                continue
            limit = (group.chance if group else 0) * factor * self.strength
            decided = self.draw(kind, 0) >> 16
            if decided << SHIFT < limit:
                hits.add(kind)
            if limit:
                scores[kind] = (decided << 14) // max(limit >> 34, 1)
        if must and not hits and scores and row[1] >> 48 < self.strength:
            hits.add(min(scores, key=scores.get))  # the first of equals: words come before gaps
        return self.legal(self.habitual(self.written(hits), row[2]))

    def hit_phrases(self, factor):
        """The phrases that are hit, by their first word: the last word, the group."""
        found = {}
        for first in range(len(self.words)):
            for last in range(first + 1, min(first + 3, len(self.words))):
                phrase = lower(self.text[self.words[first][0] : self.words[last][1]])
                case = case_of(self.word(first), not first)
                number = self.channel.words.get((phrase, case))
                if number is None or len(phrase.encode()) > 64:
                    continue
                limit = self.channel.groups[number].chance * factor * self.strength
                if self.draw(("phrases", first), last - first) >> 16 << SHIFT < limit:
                    found[first] = last, self.channel.groups[number]
        free = {}
        for first, (last, group) in found.items():
            if all(first > before for before, _ in free.values()):
                free[first] = last, group
        return free

    def draw(self, unit, which):
        kind, number = unit
        if kind == "words" and self.words_alike and len(self.word(number).encode()) <= 64:
            form = lower(self.word(number))
            at = bisect_left(self.known, form)
            if self.known[at : at + 1] == [form]:
                kind, number = "forms", at
        return draw(self.keys[kind], number * 8 + which)

    def word(self, number):
        return self.text[slice(*self.words[number])]

    def word_group(self, number):
        word = self.word(number)
        case = case_of(word, not number)
        known = self.channel.words.get((lower(word), case)) if len(word.encode()) <= 64 else None
        return self.channel.groups[self.shape(number) if known is None else known]

    def shape(self, number):
        word = self.word(number)
        return self.channel.shapes[shape_of(word, case_of(word, not number))]

    def gap_group(self, number):
        gap, initial = self.text[slice(*self.gaps[number])], number == 0
        if 0 < number < len(self.words) and {self.word(number - 1)[-1], self.word(number)[0]} <= {
            *"0123456789"
        }:
            return None
        right = "$" if number == len(self.words) else lower(self.word(number))
        if len(right.encode()) > 64:
            right = ""
        if len(gap.encode()) > 64:
            return None
        for known in (right, ""):
            if (known, initial, gap) in self.channel.gaps:
                return self.channel.groups[self.channel.gaps[known, initial, gap]]
        return None

    def written(self, hits):
        """Edits by their place in the order of gaps and words."""
        found, recased = [], {}
        for unit in hits:
            kind, number = unit
            group = self.gap_group(number) if kind == "gaps" else self.word_group(number)
            if kind == "words" and number in self.phrases:
                group = self.phrases[number][1]
            drawn = option(group, self.draw(unit, 1) >> 32)
            if drawn.kind == COARSER:
                coarse = self.shape(number) if kind == "words" else drawn.detail
                drawn = option(self.channel.groups[coarse], self.draw(unit, 2) >> 32)
            if kind == "gaps":
                found.append((number * 2, *self.gaps[number], drawn.noisy))
                recased.setdefault(number, []).append((0, drawn.detail))
            else:
                found += [(number * 2 + 1, *edit) for edit in self.of_word(number, drawn, hits)]
                if drawn.kind == WORD_GONE:
                    recased.setdefault(number + 1, []).append((1, drawn.detail))
        for number, asked in recased.items():
            hows = [how for _, how in sorted(asked) if how != SAME]
            if hows and number < len(self.words) and ("words", number) not in hits:
                found += [(number * 2 + 1, *edit) for edit in self.rewritten(number, hows[0])]
        return [edit for _, *edit in sorted(found, key=lambda one: one[:2])]

    def of_word(self, number, drawn, hits):
        start, stop = self.words[number]
        if number in self.phrases:
            stop = self.words[self.phrases[number][0]][1]
        case = case_of(self.word(number), not number)
        if drawn.kind == FORM:
            how = (0, 1, 2, 1)[case] if drawn.detail == SAME else drawn.detail - 1
            return [(start, stop, cased(drawn.noisy, how))]
        if drawn.kind == AS_WRITTEN:
            return self.rewritten(number, drawn.detail)
        if drawn.kind == WORD_GONE:
            return self.gone(number, hits)
        return self.spelled(number, drawn.detail, case)

    def rewritten(self, number, how):
        word = self.word(number)
        form = cased(lower(word), (0, 0, 1, 2)[how])
        return [(*self.words[number], form)] if form != word else []

    def gone(self, number, hits):
        start, stop = self.words[number]
        if number == 0 and all(
            ("words", n) in hits and self.is_gone(n) for n in range(len(self.words))
        ):
            return []  # the last word of a row stays
        moved, size = ("gaps", number) in hits, start - self.gaps[number][0]
        if size and self.text[start - 1] == " " and not moved:
            return [(start - 1, stop, "")]
        following = number + 1
        next_gone = ("words", following) in hits and self.is_gone(following)
        wants = moved or (number == 0 and not size)
        behind = self.text[stop : stop + 1] == " " and ("gaps", number + 1) not in hits
        return [(start, stop + (wants and behind and not next_gone), "")]

    def is_gone(self, number):
        if number in self.phrases:
            return False
        unit = "words", number
        drawn = option(self.word_group(number), self.draw(unit, 1) >> 32)
        if drawn.kind == COARSER:
            drawn = option(self.channel.groups[self.shape(number)], self.draw(unit, 2) >> 32)
        return drawn.kind == WORD_GONE

    def spelled(self, number, places, case):
        start, word = self.words[number][0], lower(self.word(number))
        framed, sites = f"^{word}$", []
        for at in range(1, len(framed)):
            for size in range(min(4, len(framed) - at)):
                group, weight = self.letters(
                    framed[at - 1], framed[at : at + size], framed[at + size]
                )
                sites.append((at - 1, size, group, weight))
        total = sum(weight for *_, weight in sites)
        if not total:
            return []
        for attempt in range(4):
            edits = self.changed_letters(number, places, sites, attempt)
            made, at = "", 0
            for first, last, form in edits:
                made += word[at:first] + form
                at = last
            framed = f"^{made}{word[at:]}$", f"^{word}$"
            new, old = (set(pairwise(text)) for text in framed)
            if all(a + b in self.channel.pairs or not letter_pairs(a + b) for a, b in new - old):
                how = 2 if case == 2 else 0
                return [
                    (start + first, start + last, cased(form, how or int(case > 0 and first == 0)))
                    for first, last, form in edits
                ]
        return []

    def changed_letters(self, number, places, sites, attempt):
        """Where in a word letters change, first and last, and what comes there in small letters."""
        total, chosen = sum(weight for *_, weight in sites), []
        for turn in range(places):
            drawn = self.draw(("words", number), 3 + turn)
            drawn = draw(drawn, attempt) if attempt else drawn
            target = (drawn >> 32) * total >> 32
            index = bisect_right(list(accumulate(weight for *_, weight in sites)), target)
            chosen.append((index, turn, drawn))
        edits, before = [], []
        for index, _, drawn in sorted(chosen):
            at, size, number_of_group, _ = sites[index]
            free = all(at >= a + s and at > a for a, s in before)
            before.append((at, size))
            if free:
                made = option(self.channel.groups[number_of_group], drawn & 0xFFFFFFFF)
                if made.kind == COARSER:
                    made = option(self.channel.groups[made.detail], draw(drawn, 0) >> 32)
                edits.append((at, at + size, made.noisy))
        return edits

    def letters(self, before, part, after):
        known = self.channel.letters.get((before, part, after))
        return known or self.channel.letters.get(("", part, place(before, after)), (-1, 0))

    def habitual(self, edits, drawn):
        bounds = [bound * self.strength for bound in self.channel.habits]
        habit = sum(drawn >> 16 >= bound for bound in bounds)
        if habit == len(bounds):
            return edits
        change = list(ROW_HABITS.values())[habit]
        edits = [(start, stop, change(noisy)) for start, stop, noisy in edits]
        covered = {at for start, stop, _ in edits for at in range(start, stop)}
        for at, character in enumerate(self.text):
            if at not in covered and change(character) != character:
                edits.append((at, at + 1, change(character)))
        return sorted(edits, key=lambda edit: edit[:2])

    def legal(self, edits):
        """The edits, or where these break a script, each that with those before it does not."""
        has_signs = any("\u0800" <= character <= "\u0fff" for character in self.text)
        if not has_signs or not self.broken(edits):
            return edits
        kept = []
        for edit in edits:
            if not self.broken([*kept, edit]):
                kept.append(edit)
        return kept

    def broken(self, edits):
        noisy = forbidden_sequences(applied(self.text, edits))
        return noisy.total() > forbidden_sequences(self.text).total()


def applied(text, edits):
    for start, stop, noisy in reversed(edits):
        text = text[:start] + noisy + text[stop:]
    return text


def is_inside(text, border):
    """Tell whether a border is inside of a character, before a mark that no key writes."""
    mark = ord(text[border]) if 0 < border < len(text) else 0
    has_key = 0x590 <= mark < 0x1D00 and not 0x1100 <= mark < 0x1200
    return joins(mark) and not has_key


def twin_rows(texts, profile, rate, seed=0):
    channel, stream = channel_of(profile), stream_key(seed, "channel")
    made = [
        [
            edit
            for edit in Twin(text, channel, profile, row_key(stream, n), rate).edits()
            if not any(is_inside(text, border) for border in edit[:2])
        ]
        for n, text in enumerate(texts)
    ]
    return made, [applied(text, edits) for text, edits in zip(texts, made, strict=True)]


def kernel_rows(texts, profile, rate, seed=0):
    kernel = ChannelKernel(channel_of(profile), profile.factors, [rate], profile.consistency)
    rows = Texts.from_strings(list(texts))
    keys = row_keys(stream_key(seed, "channel"), np.arange(len(texts), dtype=np.uint64))
    edits = kernel.propose(rows, keys, {"rate": np.zeros(len(texts), np.int64)})
    written = rewritten(rows, [edits])[0].to_strings()
    origin = rows.offsets.take(edits.rows)
    spans = [[] for _ in texts]
    pool = edits.pool.to_pylist()
    for row, start, stop, chosen in zip(
        edits.rows.tolist(),
        (edits.starts - origin).tolist(),
        (edits.stops - origin).tolist(),
        edits.replacements.tolist(),
        strict=True,
    ):
        encoded = texts[row].encode()
        span = (len(encoded[:start].decode()), len(encoded[:stop].decode()))
        spans[row].append((*span, pool[chosen].decode()))
    return spans, written


def assert_twins(texts, profile, rate=Fraction(1), seed=0):
    ours, written = kernel_rows(texts, profile, rate, seed)
    theirs, expected = twin_rows(texts, profile, rate, seed)
    for text, a, b, c, d in zip(texts, written, expected, ours, theirs, strict=True):
        assert (text, a) == (text, b)
        assert [tuple(edit) for edit in c] == [tuple(edit) for edit in d]
    return written


@pytest.mark.parametrize(
    ("rate", "copies"),
    [
        (Fraction(1), 1),
        (Fraction(3, 10), 2),
        (Fraction(4), 1),
        pytest.param(Fraction(1), 5, marks=pytest.mark.nightly),
        pytest.param(Fraction(3, 10), 5, marks=pytest.mark.nightly),
    ],
)
def test_the_kernel_does_what_the_twin_does(rate, copies, demo_texts):
    profile = replace(learned_profile(noisy_pairs(demo_texts)), consistency=100)
    assert any(" " in key.clean and key.noisy != key.clean for key in profile.words)
    assert {factor.must for factor in profile.factors} == {False, True}
    written = assert_twins(demo_texts * copies, profile, rate, seed=3)
    assert written != demo_texts * copies


def test_odd_texts_are_no_exception(odd_texts, demo_texts):
    assert_twins(odd_texts[:-1] * 10, learned_profile(noisy_pairs(demo_texts)))


WORDS = "the The THE . ’ ' 好 的 e é \u0301 İ ß naïve Москва мы - 👍🏽 1st 14 0 ไทย 東京 \ufeff"
PIECES = st.sampled_from([*WORDS.split(), " ", "  ", ", ", "\n", "a" * 70])


@given(st.lists(PIECES, max_size=12), st.integers(0, 1000))
def test_any_row_is_no_exception(pieces, seed):
    assert_twins(["".join(pieces)] * 3, _odd_profile(), seed=seed)


def _odd_profile():
    clean = [
        "The naïve e 好的 Москва 1st the end.",
        "the мы 東京 ไทย, é",
        "THE end of the a. 好的",
        "мы the e",
        "The 1st the",
        "a e the a",
    ]
    noisy = [
        "Teh naive  好得 москва the end",
        "мы the 东京 ไท e",
        "the end off a the 好",
        "мыта e",
        "thist the",
        "ahe a",
    ]
    return learned_profile(list(zip(noisy, clean, strict=True)), min_count=1)
