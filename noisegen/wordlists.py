"""The transform that a word list is: matches, parts of speech if asked for, draws, replacements."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from noisegen.characters import Variants
from noisegen.draws import I64, U64, choices, decisions, draw_array, threshold
from noisegen.edits import Edits
from noisegen.errors import LexiconError
from noisegen.lexicon import POS, Lexicon, Parser, head_of, parser_of
from noisegen.parameters import Parameter
from noisegen.phrases import Matches, PhraseTable, load_table
from noisegen.registry import DICTIONARIES, Settings, Transform, called_from, register
from noisegen.taggers import Tagger, make_tagger
from noisegen.text import Bool, Texts, ordinals


@dataclass(frozen=True)
class LexicalSource:
    """Where the word list of a transform lies: a path ('{lang}' in it is the language)."""

    name: str
    path: Callable[[], Path]
    tags: str = ""
    parser: Parser | None = None
    langs: tuple[str, ...] = ("*",)

    def files(self, settings: Settings) -> list[Path]:
        """Return the files that a kernel for these settings reads."""
        from noisegen.transforms import nlaug_data

        theirs = nlaug_data.files(settings.nlaug_data, self.name) if settings.nlaug_data else []
        return theirs or [Path(str(self.path()).replace("{lang}", settings.lang))]

    def languages(self) -> list[str]:
        """Return the languages that have a file."""
        before, found, after = str(self.path()).partition("{lang}")
        if not found:
            return list(self.langs)
        return sorted(path.parent.name for path in Path(before).glob(f"*{after}"))

    def table(self, settings: Settings) -> PhraseTable:
        """Return the compiled word list, from the user's NL-Augmenter checkout if there is one."""
        from noisegen.transforms import nlaug_data

        theirs = nlaug_data.vocabulary(settings.nlaug_data, self.name)
        if theirs is not None:
            return theirs
        path = self.files(settings)[0]
        return load_table(path, self.parser or parser_of(path))

    def kernel(self, settings: Settings, rate: float) -> "LexicalKernel":
        """Make the kernel for a language and rate."""
        limits = np.array([threshold(part) for part in settings.rates(rate)], np.int64)
        tagger = make_tagger(settings.tagger, settings.lang) if self.tags else None
        return LexicalKernel(self.table(settings), limits, tagger, self.tags)


def register_lexicon(
    source: LexicalSource, rate: float, summary: str, place: str | None = None
) -> None:
    """Register a word list as a transform with the default rate `rate`."""

    def make(settings: Settings, values: Mapping[str, Any]) -> LexicalKernel:
        return source.kernel(settings, float(values["rate"]))

    rates = {"rate": Parameter("rate", rate, float)}
    place = place or called_from(1)
    languages, files = source.languages, source.files
    register(Transform(source.name, summary, rates, make, languages, files, place))


def languages_of(path: Path) -> tuple[str, ...]:
    """Return the languages in a word list's head; any language where it has none."""
    lang = head_of(path, "lang").get("lang", "*") if path.exists() else "*"
    return tuple(lang.split())


def summary_of_list(path: Path) -> str:
    """Return a summary with the first entry of a TSV as its example."""
    if path.suffix == ".parquet" or "{lang}" in str(path):
        return f"Replace words of {path.name}."
    first = Lexicon.load(path).entries[0]
    return f"Replace words of {path.name}: '{first.clean}' -> '{first.noisy}'."


def packaged(name: str) -> Path:
    """Return the path template of a packaged word list."""
    return DICTIONARIES / "{lang}" / f"{name}.tsv"


def codespell_dictionary() -> Path:
    """Return the dictionary file of the codespell package, without importing it."""
    spec = find_spec("codespell_lib")
    if spec is None or spec.origin is None:
        raise LexiconError("codespell is not installed; run: pip install codespell")
    return Path(spec.origin).parent / "data" / "dictionary.txt"


@dataclass(frozen=True)
class LexicalKernel:
    """Replace each match with its rate; `limits` holds the 48-bit threshold of every strength."""

    reads_words: ClassVar[bool] = True

    table: PhraseTable
    limits: I64
    tagger: Tagger | None
    tags: str

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Propose the replacements of all rows."""
        matches = self.table.find(texts)
        matches, pos = self._eligible(texts, matches)
        if not len(matches):
            return Edits.none()
        draws = draw_array(keys[matches.rows], ordinals(matches.rows))
        hit = decisions(draws) < self.limits[variants["rate"][matches.rows]]
        if not hit.all():
            matches, pos, draws = matches.take(hit), pos[hit], draws[hit]
        drawn = self.table.alternatives(texts.values, matches, pos, choices(draws))
        return Edits(
            matches.rows, matches.starts, self._past_dots(texts, matches, drawn), drawn,
            self.table.pool,
        )  # fmt: skip

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

    def _eligible(self, texts: Texts, matches: Matches) -> tuple[Matches, I64]:
        """Drop matches with the wrong part of speech; return the `groups` column of the rest."""
        if self.tagger is None or not len(matches):
            return matches, self._first_pos[matches.keys]
        best, second = self.tagger.tag(texts, matches)
        if self.tags == "no-verb":
            matches = matches.take(best != POS.index("VERB"))
            return matches, self._first_pos[matches.keys]
        tags = np.where(self.table.groups[matches.keys, best] >= 0, best, second)
        keep = self.table.groups[matches.keys, tags] >= 0
        return matches.take(keep), tags[keep]

    @cached_property
    def _first_pos(self) -> I64:
        """The first part of speech that each key has alternatives for."""
        first: I64 = np.argmax(self.table.groups >= 0, axis=1).astype(np.int64)
        return first
