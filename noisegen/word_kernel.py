"""The kernel of word rules: each word that is hit becomes one of what a function makes of it.

The function sees a word and nothing else, so it is asked once for each distinct word.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from noisegen.characters import Variants
from noisegen.draws import CHOICE_BITS, I64, U64, choices, decisions, draw_array
from noisegen.edits import Edits
from noisegen.text import U8, Bool, Texts, ordinals
from noisegen.words import word_hashes

# A word -> what may stand in its place, with whole-number weights; nothing if it stays. The word
# itself among them is the chance that it stays though it is hit.
WordRule = Callable[[str], Sequence[tuple[str, int]]]
WORDS_MAX = 1 << 18  # distinct words remembered; then all are forgotten and asked for anew
FORMS_MAX = 1 << 21  # and so for what the rule made of them: about 50 MB


class WordForms:
    """What a rule makes of the words met so far.

    `hashes` are ascending; `groups` (-1: none) say which alternatives each has: those in `uppers`,
    which holds group * 2^17 + cumulative weight out of 2^16, and at the same places in `pool`;
    `changed` tells which of them differ from their word.
    """

    def __init__(self, rule: WordRule) -> None:
        self._rule = rule
        self._forget()

    def _forget(self) -> None:
        self.hashes, self.groups = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self.uppers, self.pool = np.zeros(0, np.int64), Texts.from_strings([]).to_arrow()
        self.changed: Bool = np.zeros(0, np.bool_)
        self._count = 0  # of groups

    def places(self, values: U8, starts: I64, stops: I64) -> I64:
        """Return the group of the word in each byte range, -1 where the rule changes nothing."""
        if len(self.hashes) > WORDS_MAX or len(self.uppers) > FORMS_MAX:
            self._forget()
        hashes = word_hashes(values, starts, stops)
        found = np.searchsorted(self.hashes, hashes)
        new = np.flatnonzero(
            (np.append(self.hashes, np.uint64(0)).take(found) != hashes) & (hashes != 0)
        )
        if len(new):
            fresh, first = np.unique(hashes.take(new), return_index=True)
            self._learn(values, fresh, starts.take(new[first]), stops.take(new[first]))
            found = np.searchsorted(self.hashes, hashes)
        groups: I64 = np.append(self.groups, -1).take(found)
        groups[hashes == 0] = -1  # a word over the longest
        return groups

    def _learn(self, values: U8, hashes: U64, starts: I64, stops: I64) -> None:
        """Ask the rule for new words, those in these byte ranges."""
        groups, uppers, noisy = np.full(len(hashes), -1), [self.uppers], list[str]()
        changed = list[bool]()
        for number, (start, stop) in enumerate(zip(starts.tolist(), stops.tolist(), strict=True)):
            word = values[start:stop].tobytes().decode()
            made = self._rule(word)
            if made:
                groups[number] = self._count
                uppers.append(_uppers(self._count, [weight for _, weight in made]))
                noisy += [form for form, _ in made]
                changed += [form != word for form, _ in made]
                self._count += 1
        places = np.searchsorted(self.hashes, hashes)
        self.hashes = np.insert(self.hashes, places, hashes)
        self.groups = np.insert(self.groups, places, groups)
        self.uppers = np.concatenate(uppers)
        self.changed = np.concatenate([self.changed, np.array(changed, np.bool_)])
        self.pool = pa.concat_arrays([self.pool, Texts.from_strings(noisy).to_arrow()])


def _uppers(group: int, weights: Sequence[int]) -> I64:
    sums = np.cumsum(weights, dtype=object)
    shares = [(int(part) << CHOICE_BITS) // int(sums[-1]) for part in sums]
    return (group << 17) + np.array(shares, np.int64)


class WordKernel:
    """Replace words, each with its rate, by what a rule makes of them.

    `limits` holds the 48-bit threshold of every strength. Draw number i of a row decides on its
    i-th word, and which alternative it gets.
    """

    def __init__(self, rule: WordRule, limits: I64) -> None:
        self._limits = limits
        self._forms = WordForms(rule)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        words = texts.tokens
        draws = draw_array(keys.take(words.rows), ordinals(words.rows))
        limits = self._limits.take(variants["rate"]).take(words.rows)
        hit = np.flatnonzero(decisions(draws) < limits)
        groups = self._forms.places(texts.values, words.starts.take(hit), words.stops.take(hit))
        known = np.flatnonzero(groups >= 0)
        hit, groups = hit.take(known), groups.take(known)
        drawn = (groups << 17) + choices(draws.take(hit))
        chosen = np.searchsorted(self._forms.uppers, drawn, side="right").astype(np.int64)
        changed = np.flatnonzero(self._forms.changed.take(chosen))
        hit, chosen = hit.take(changed), chosen.take(changed)
        edges = words.starts.take(hit), words.stops.take(hit)
        return Edits(words.rows.take(hit), *edges, chosen, self._forms.pool)
