"""Changes of single characters and of case: leetspeak, spaces, capitals."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.errors import UsageError, did_you_mean
from noisegen.noise.edits import Edits
from noisegen.noise.kernels import Spacing, Substitution, character_map
from noisegen.noise.lexicon import Lexicon
from noisegen.noise.registry import Settings, kernel
from noisegen.noise.rng import CERTAIN, RowDraws, Variants, hits, row_hits
from noisegen.text.buffers import I64, U64, Texts, as_arrow
from noisegen.text.rows import Memo, Row, RowEdit
from noisegen.transforms import LanguageFiles
from noisegen.transforms.nlaugmenter import original_characters, original_files

_LEET = LanguageFiles("leet.tsv")


def _leet_files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    return original_files(settings.nlaug_data, "leet") or _LEET.read(settings, values)


@kernel("leet", _leet_files, _LEET.languages)
def leet(settings: Settings, *, rate: float = 0.1) -> Substitution:
    """Replace letters with digits and signs that look alike: 'elite' -> '31173'."""
    entries = original_characters(settings.nlaug_data, "leet")
    entries = entries or Lexicon.load(_LEET.of(settings.lang)).entries
    return Substitution(character_map(entries), settings.gaps(rate))


@kernel("spac")
def spac(settings: Settings, *, drop_rate: float = 0.1, add_rate: float = 0.05) -> Spacing:
    """Drop spaces and add spaces inside words: 'so it is' -> 's oi ti s'."""
    return Spacing(settings.gaps(drop_rate), settings.gaps(add_rate))


DOTTED_I = ("tr", "az")  # languages in which I is the capital of ı, and İ that of i
CASES = {"upper": (pc.utf8_upper, "i", "İ"), "lower": (pc.utf8_lower, "I", "ı")}


@dataclass(frozen=True)
class Recased:
    """Write words in one of `CASES`, each with its rate; `limits`: one for every strength.

    Words of any length are written at once: a rule asked word by word would leave out long ones.
    """

    limits: I64
    case: str
    dotted: bool  # whether i and ı are two letters

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the words of all rows that change."""
        words = texts.tokens
        hit, _ = hits(keys, words.rows, self.limits.take(variants["rate"]))
        if not len(hit):
            return Edits.none()
        starts, stops = words.starts.take(hit), words.stops.take(hit)
        edges = np.stack([starts, stops], axis=1).ravel()  # of a word, a gap, a word, ..., a word
        pieces = Texts(texts.values, edges).to_arrow()
        clean = pieces.take(as_arrow(np.arange(0, len(pieces), 2))).cast(pa.string())
        write, letter, dotted = CASES[self.case]
        noisy = write(pc.replace_substring(clean, letter, dotted) if self.dotted else clean)
        changed = pc.not_equal(clean, noisy).to_numpy(zero_copy_only=False)
        pool = noisy.cast(pa.binary())
        return Edits(words.rows.take(hit), starts, stops, np.arange(len(hit)), pool).keep(changed)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Propose the words of one row that change."""
        limit = int(self.limits[draws.variants["rate"]])
        if limit == CERTAIN and row.text.isascii() and not (self.dotted or row.protected):
            return [(0, len(row.text), _recased(row.text, self.case, self.dotted))]
        words, cased = row.words, _CASED[self.case, self.dotted]
        changed = [number for number, word in enumerate(words) if cased[word] != word]
        hit = row_hits(draws.key, changed, limit)
        return [(*row.span(number), cased[words[number]]) for number, _ in hit]


def _recased(word: str, case: str, dotted: bool) -> str:
    """Return a word, or a text of ASCII, in one of `CASES`."""
    if word.isascii() and not dotted:
        return word.upper() if case == "upper" else word.lower()
    write, letter, other = CASES[case]
    recased: str = write(pa.scalar(word.replace(letter, other) if dotted else word)).as_py()
    return recased


_CASED = {
    (case, dotted): Memo(partial(_recased, case=case, dotted=dotted))
    for case in CASES for dotted in (False, True)
}  # fmt: skip


@kernel("caps")
def caps(settings: Settings, *, rate: float = 1.0, case: str = "upper") -> Recased:
    """Write words in capitals or lower case: 'see you tomorrow' -> 'SEE YOU TOMORROW'.

    With case=lower, 'I saw Anna' becomes 'i saw anna'. Raises UsageError for another case.
    """
    if case not in CASES:
        near = did_you_mean(case, CASES) or f"; known: {', '.join(CASES)}"
        raise UsageError(f"caps has no case {case!r}{near}")
    return Recased(settings.limits(rate), case, settings.lang in DOTTED_I)
