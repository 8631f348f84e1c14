"""Words spelled as they sound: a list of words and phrases, and rules for the words outside it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from noisegen.characters import Variants
from noisegen.compiled import load_table
from noisegen.draws import I64, U64, choices, decisions, draw_array, fork_array
from noisegen.edits import Edits
from noisegen.lexicon import parse_tsv
from noisegen.phrases import Matches, PhraseTable
from noisegen.registry import DICTIONARIES, Settings, kernel
from noisegen.text import Bool, Texts, as_arrow, ordinals
from noisegen.word_kernel import WordKernel

LETTERS_MIN = 4  # shorter words are in the list or stay
FORMS_MAX = 6  # alternatives of a word


class Rule(NamedTuple):
    """Letters that match `pattern` may be written `noisy`; `weight` is out of 100."""

    pattern: re.Pattern[str]
    noisy: str
    weight: int


class Place(NamedTuple):
    """Letters of a word that a rule rewrites."""

    start: int
    stop: int
    noisy: str
    weight: int


@cache
def rules_of(path: Path) -> tuple[Rule, ...]:
    """Read the rules of a language: pattern, noisy, weight; none where there is no file."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    rows = (line.split("\t") for line in lines if not line.startswith(("#", "pattern\t")))
    return tuple(Rule(re.compile(pattern), noisy, int(weight)) for pattern, noisy, weight in rows)


def respelled(word: str, rules: Sequence[Rule]) -> list[tuple[str, int]]:
    """Respell a word in one or two places; the likeliest forms, with their weights.

    Words with capitals stay: most are names, and those that begin a sentence are in the list.
    """
    if len(word) < LETTERS_MIN or not word.isalpha() or word != word.lower():
        return []
    found = dict[str, int]()
    for places in _choices(sorted(_places(word, rules))):
        form = _written(word, places)
        weight = places[0].weight * (places[-1].weight * 2 if len(places) > 1 else 100)
        found[form] = max(weight, found.get(form, 0))
    ranked = sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))
    return [pair for pair in ranked if pair[0] != word][:FORMS_MAX]


def _places(word: str, rules: Sequence[Rule]) -> Iterator[Place]:
    for pattern, noisy, weight in rules:
        for match in pattern.finditer(word):
            yield Place(*match.span(), match.expand(noisy), weight)


def _choices(places: Sequence[Place]) -> Iterator[tuple[Place, ...]]:
    """Yield each place alone and each two that do not overlap."""
    for number, first in enumerate(places):
        yield (first,)
        yield from ((first, other) for other in places[number + 1 :] if first.stop <= other.start)


def _written(word: str, places: Sequence[Place]) -> str:
    edges = [0, *(edge for place in places for edge in (place.start, place.stop)), len(word)]
    kept = [word[start:stop] for start, stop in pairwise(edges)][::2]
    return "".join(map("".join, zip(kept, [*(p.noisy for p in places), ""], strict=True)))


@dataclass(frozen=True)
class Respelling:
    """Respell the matches of a list, and words outside them by rules, each with its rate.

    `limits` holds the 48-bit threshold of every strength. Draw number i of a row decides on its
    i-th match; a stream of its own, "rules", on its words.
    """

    table: PhraseTable
    limits: I64
    rules: WordKernel

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the respellings of all rows."""
        matches = self.table.find(texts)
        ruled = self.rules.propose(texts, fork_array(keys, "rules"), variants)
        listed = self._listed(texts, matches, keys, variants)
        return _merged(listed, ruled.keep(~_inside(ruled.starts, matches)))

    def _listed(self, texts: Texts, matches: Matches, keys: U64, variants: Variants) -> Edits:
        draws = draw_array(keys.take(matches.rows), ordinals(matches.rows))
        limits = self.limits.take(variants["rate"]).take(matches.rows)
        hit = np.flatnonzero(decisions(draws) < limits)
        matches, any_pos = matches.take(hit), np.zeros(len(hit), np.int64)
        chosen = self.table.alternatives(texts.values, matches, any_pos, choices(draws.take(hit)))
        return Edits(matches.rows, matches.starts, matches.stops, chosen, self.table.pool)


def _inside(starts: I64, matches: Matches) -> Bool:
    """Tell which positions lie in a match."""
    reach = np.append(0, matches.stops)  # where the last match before a position stops
    found: Bool = starts < reach.take(np.searchsorted(matches.starts, starts, side="right"))
    return found


def _merged(listed: Edits, ruled: Edits) -> Edits:
    """Return the edits of both, which do not overlap, in ascending order."""
    if not len(ruled):
        return listed
    order = np.argsort(np.concatenate([listed.starts, ruled.starts]), kind="stable")
    written = (edits.pool.take(as_arrow(edits.replacements)) for edits in (listed, ruled))
    rows, starts, stops = (
        np.concatenate([getattr(listed, name), getattr(ruled, name)]).take(order)
        for name in ("rows", "starts", "stops")
    )
    return Edits(rows, starts, stops, order, pa.concat_arrays(list(written)))


def _data(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    """Return the list of a language, and its rules if it has any."""
    folder = DICTIONARIES / settings.lang
    rules = folder / "phon_rules.tsv"
    return [folder / "phon.tsv", *([rules] if rules.exists() else [])]


def _languages() -> list[str]:
    return sorted(path.parent.name for path in DICTIONARIES.glob("*/phon.tsv"))


@kernel("phon", _data, _languages)
def phon(settings: Settings, *, rate: float = 0.15) -> Respelling:
    """Spell words as they sound: 'that was good enough' -> 'dat wuz gud enuf'."""
    table = load_table(_data(settings, {})[0], parse_tsv)
    rules = rules_of(DICTIONARIES / settings.lang / "phon_rules.tsv")
    limits = settings.limits(rate)
    return Respelling(table, limits, WordKernel(partial(respelled, rules=rules), limits))
