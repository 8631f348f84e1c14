"""The kernel of word lists: matches, parts of speech if asked for, draws, replacements."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen import phrases
from noisegen.characters import Variants
from noisegen.draws import I64, U64, choices, decisions, draw_array
from noisegen.edits import Edits
from noisegen.lexicon import POS
from noisegen.phrases import I32, Matches, PhraseTable
from noisegen.taggers import Tagger
from noisegen.text import Bool, Texts, as_arrow, ordinals

CLITICS = "(?i)['\u2019](m|re|s|ve|d|ll)$"


@dataclass(frozen=True)
class LexicalKernel:
    """Replace each match of a row in its lexicon with its rate; for one or more lexicons.

    `limits` holds the 48-bit thresholds, shape (lexicons, strengths); `taggers` and `tags` (see
    `registry.lexical`) have one entry a lexicon.
    """

    table: PhraseTable
    limits: I64
    taggers: tuple[Tagger | None, ...]
    tags: tuple[str, ...]

    def propose(
        self, texts: Texts, keys: U64, variants: Variants, lexicons: I64 | None = None
    ) -> Edits:
        """Propose the replacements of all rows; `lexicons` is the number of each row's lexicon."""
        lexicons = np.zeros(len(texts), np.int64) if lexicons is None else lexicons
        matches, pos = self._eligible(texts, self.table.find(texts, lexicons), lexicons)
        if not len(matches):
            return Edits.none()
        draws = draw_array(keys.take(matches.rows), ordinals(matches.rows))
        limits = self.limits[lexicons, variants["rate"]]
        hit = np.flatnonzero(decisions(draws) < limits.take(matches.rows))
        matches, pos, draws = matches.take(hit), pos.take(hit), draws.take(hit)
        drawn = self.table.alternatives(texts.values, matches, pos, choices(draws))
        matches, drawn = self._leaning(texts, matches, drawn, lexicons)
        return Edits(
            matches.rows, matches.starts, self._past_dots(texts, matches, drawn), drawn,
            self.table.pool,
        )  # fmt: skip

    def _leaning(
        self, texts: Texts, matches: Matches, drawn: I64, lexicons: I64
    ) -> tuple[Matches, I64]:
        """Drop clitics with nothing to lean on: "You have." is no "You've."."""
        asked = np.array([rule == "clitic" for rule in self.tags])
        here = np.flatnonzero(asked[lexicons.take(matches.rows)])
        follows = texts.tokens.gaps.take(matches.lasts.take(here)) == ord(" ")
        here = here[~follows]
        written = self.table.pool.take(as_arrow(drawn.take(here))).cast(pa.string())
        clitic = pc.match_substring_regex(written, CLITICS).to_numpy(zero_copy_only=False)
        kept = np.delete(np.arange(len(matches)), here[clitic.astype(np.bool_)])
        return matches.take(kept), drawn.take(kept)

    def _past_dots(self, texts: Texts, matches: Matches, drawn: I64) -> I64:
        """Take in the dot behind a match if the replacement has its own: 'Sun.', not 'Sun..'."""
        here = texts.values[np.minimum(matches.stops, len(texts.values) - 1)]
        dotted = (matches.stops < texts.offsets[matches.rows + 1]) & (here == ord("."))
        stops: I64 = matches.stops + (dotted & self._ends_in_dot[drawn])
        return stops

    @cached_property
    def _ends_in_dot(self) -> Bool:
        pool = Texts.from_arrow(self.table.pool)
        ends: Bool = pool.values[pool.offsets[1:] - 1] == ord(".")
        return ends

    def _eligible(self, texts: Texts, matches: Matches, lexicons: I64) -> tuple[Matches, I64]:
        """Drop matches with the wrong part of speech; return the `groups` column of the rest."""
        pos = self._first_pos.take(matches.keys)
        keep = np.ones(len(matches), np.bool_)
        for number, (tagger, rule) in enumerate(zip(self.taggers, self.tags, strict=True)):
            if tagger is None:
                continue
            here = np.flatnonzero(lexicons.take(matches.rows) == number)
            best, second = tagger.tag(texts, matches.take(here))
            keep[here], pos[here] = self._accepted(rule, matches.keys.take(here), best, second)
        kept = np.flatnonzero(keep)
        return matches.take(kept), pos.take(kept)

    def _accepted(self, rule: str, keys: I32, best: I64, second: I64) -> tuple[Bool, I64]:
        """Tell which keys may be replaced where they have these tags, and as what."""
        if rule == "no-verb":
            return best != POS.index("VERB"), self._first_pos.take(keys)
        tags = np.where(self.table.groups[keys, best] >= 0, best, second)
        return self.table.groups[keys, tags] >= 0, tags

    @cached_property
    def _first_pos(self) -> I64:
        """The first part of speech that each key has alternatives for."""
        first: I64 = np.argmax(self.table.groups >= 0, axis=1).astype(np.int64)
        return first


def side_by_side(kernels: Sequence[LexicalKernel]) -> LexicalKernel:
    """Return the kernel of all lexicons of kernels with the same strengths."""
    return LexicalKernel(
        phrases.side_by_side([kernel.table for kernel in kernels]),
        np.concatenate([kernel.limits for kernel in kernels]),
        tuple(tagger for kernel in kernels for tagger in kernel.taggers),
        tuple(rule for kernel in kernels for rule in kernel.tags),
    )
