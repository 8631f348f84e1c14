"""`normalize`, the way back: it writes noisy words as edited text has them.

Each word has the clean forms that it may stand for (`noising.readings`). The kernel writes the
reading of a text with the highest product of two factors (Viterbi's algorithm): the chance of each
word's form, and how much more often than elsewhere the form follows the word before it, to the
power of `NEIGHBOURS`. Nothing is drawn: the same text is always written in the same way.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.data.columns import CLEAN_TEXT, TextColumns, stream_columns
from noisegen.data.pairs import PAIRS_ARE, read_pairs, shards_of
from noisegen.data.sources import expand
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.edits import Edits
from noisegen.noising.mix import Mix, step_values
from noisegen.noising.neighbours import FILE, as_counted
from noisegen.noising.profile import END, START
from noisegen.noising.readings import Readings
from noisegen.noising.recipe import FILE_ENDINGS, Recipe
from noisegen.noising.registry import Kernel, Settings, kernel, proposed_by_row
from noisegen.noising.rng import RowDraws, Strengths
from noisegen.text.buffers import U64, Texts
from noisegen.text.rows import Memo, Row, RowEdit, overlaps
from noisegen.text.spans import NO_SPANS, Spans
from noisegen.transforms import LanguageFiles, existing, remembered

NEIGHBOURS = 0.3  # weight of the word before; best on the dev parts of MultiLexNorm2
WORDS_MAX = 2  # most words that are read as one: "air plane"
KEPT_MAX = 30  # most readings of a text that are followed at a time, by their last words
SHOUTED_MIN = 10  # fewest characters of a text in capitals that is written in small letters
CLEAN_MAX = 200_000  # most clean texts that are read
_CLEAN = "; clean text is a text file, or a table with a column clean or text"
_COUNTS = LanguageFiles(FILE)
# Signs that may stand before and behind a word that is changed; 'u-18', 'o.o' and '<3' stay.
_BEFORE = frozenset(" \t\r\n\"'“„«‘([¿¡…")
_BEHIND = re.compile(r"""[.,!?;:…"'”“»’)\]]*(?:\s|$)""")
_NAME_BEHIND = re.compile(r"\. +[^\W\d_a-z]")  # behind a title: 'Prof. Renwick'
_CUT = re.compile(r" ?(?:\.\.|…)")  # behind a word that is cut off: 'in a c ...'
_ORDINAL = re.compile(r"\d+(st|nd|rd|th)", re.IGNORECASE)
_PRONOUN = re.compile(r"(?<!\S)i(?=$|[\s'’])")
ABBREVIATION_MAX = 4  # most letters of a word in capitals that stays beside small ones: MA


class _Word(NamedTuple):
    """A word of a row: its place in characters, whether it must stay, and its index."""

    start: int
    stop: int
    fixed: bool
    number: int


@dataclass(frozen=True)
class _Reading:
    """One way to read the first words of a text.

    `score` is the logarithm of its chance, `last` its last word. The reading of the last `words`
    words is `form`; the words before are read as `before`.
    """

    score: float
    last: str
    words: int = 0
    form: str = ""
    before: "_Reading | None" = None


@dataclass(frozen=True)
class Normalizer:
    """Kernel that writes noisy words in their clean form, and capitals and last stops if `style`.

    `lang` decides about the pronoun I, which only English has.
    """

    readings: Readings
    lang: str
    style: bool
    protected: Spans = NO_SPANS

    def sparing(self, spans: Spans) -> Kernel:
        """Return a copy of this kernel that changes nothing inside the protected `spans`."""
        return replace(self, protected=spans)

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits of all rows."""
        return proposed_by_row(self, texts, keys, strengths, self.protected)

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits of one row: words in another form, and a last stop."""
        text, edits = row.text, list[RowEdit]()
        words = self._words(row)
        is_shouted = len(text) > SHOUTED_MIN and text.isupper()
        for words_read, form in self._read(text, words):
            start, stop = words_read[0].start, words_read[-1].stop
            form = self._styled(row, words_read[0], form, is_shouted) if self.style else form
            if form != text[start:stop]:
                edits.append((start, stop, form))
        last = words[-1] if words else None
        if self.style and last and not last.fixed and last.stop == len(text.rstrip()):
            edits.append((last.stop, last.stop, "."))
        return edits

    def _words(self, row: Row) -> list[_Word]:
        """Return the words of a row.

        A word includes the stroke behind it if a word list has it so: "w/".
        """
        words, text, listed = list[_Word](), row.text, self.readings.listed
        is_shouted = text.isupper()
        for number in range(len(row.words)):
            start, stop = row.span(number)
            if text[stop : stop + 1] == "/" and f"{as_counted(text[start:stop])}/" in listed:
                stop += 1
            fixed = overlaps((start, stop), row.protected)
            fixed = fixed or self._stays(text, start, stop, is_shouted)
            words.append(_Word(start, stop, fixed, number))
        return words

    def _stays(self, text: str, start: int, stop: int, is_shouted: bool) -> bool:
        """Tell whether a word must stay: a part of something else, a title, an abbreviation.

        A word of the user's pairs stays only if it is a part of something else. `is_shouted` tells
        that the whole text is in capitals.
        """
        word = text[start:stop]
        stands_alone = not start or text[start - 1] in _BEFORE
        if not stands_alone or not _BEHIND.match(text, stop):
            return True
        if word in self.readings.seen:
            return False
        is_title = word[0].isupper() and _NAME_BEHIND.match(text, stop)
        is_capital = word.isupper() and len(word) <= ABBREVIATION_MAX and not is_shouted
        is_cut = len(word) < ABBREVIATION_MAX and _CUT.match(text, stop)
        return bool(is_title or is_capital or is_cut or _ORDINAL.fullmatch(word))

    def _read(self, text: str, words: list[_Word]) -> Iterator[tuple[list[_Word], str]]:
        """Yield (words, clean form) of the most probable reading of a text, in order."""
        ends = [{START: _Reading(0.0, START)}]  # readings of the first 0, 1, ... words
        for stop in range(1, len(words) + 1):
            best: dict[str, _Reading] = {}
            for first in range(stop - 1, max(-1, stop - 1 - WORDS_MAX), -1):
                for form, chance in self._forms_of(text, words[first:stop]).items():
                    for before in ends[first].values():
                        reading = self._extended(before, stop - first, form, chance)
                        if reading.last not in best or best[reading.last].score < reading.score:
                            best[reading.last] = reading
            kept = sorted(best.values(), key=lambda reading: -reading.score)[:KEPT_MAX]
            ends.append({reading.last: reading for reading in kept})
        last = max(ends[-1].values(), key=lambda reading: self._extended(reading, 0, END, 1).score)
        found, stop = list[tuple[list[_Word], str]](), len(words)
        while last.before:
            found.append((words[stop - last.words : stop], last.form))
            stop -= last.words
            last = last.before
        return reversed(found)

    def _forms_of(self, text: str, words: list[_Word]) -> dict[str, float]:
        """Return the clean forms of neighbouring words that are read as one, with their chances.

        Several words must have single spaces between them, and stand for something else.
        """
        first, last = words[0], words[-1]
        phrase = text[first.start : last.stop]
        if first is last:
            return {phrase: 1.0} if first.fixed else self._forms[phrase]
        if any(word.fixed for word in words):
            return {}
        if any(text[a.stop : b.start] != " " for a, b in pairwise(words)):
            return {}
        return {form: p for form, p in self._forms[phrase].items() if form != phrase}

    def _extended(self, before: _Reading, words: int, form: str, chance: float) -> _Reading:
        """Return a reading continued by the reading `form` of the next words."""
        counted = as_counted(form).split()
        score = before.score + math.log(chance)
        if counted:
            score += NEIGHBOURS * self.readings.neighbours.lift(before.last, counted[0])
        return _Reading(score, counted[-1] if counted else before.last, words, form, before)

    @cached_property
    def _forms(self) -> Memo[str, dict[str, float]]:
        return Memo(self.readings.of_word)

    def _styled(self, row: Row, word: _Word, form: str, is_shouted: bool) -> str:
        """Return the form of a word with the capital that edited text has."""
        if word.fixed or not form:
            return form
        if is_shouted:
            form = form.lower()
        form = self.readings.neighbours.usual.get(form, form)
        if self.lang == "en":
            form = _PRONOUN.sub("I", form)
        begins = not word.number or row.begins_sentence(word.number)
        return form[:1].upper() + form[1:] if begins and form[1:] == form[1:].lower() else form


@remembered
def _own_texts(path: Path) -> list[str]:
    texts = stream_columns(shards_of(str(path)), CLEAN_TEXT, "normalize", TextColumns({}), _CLEAN)
    return [text for (text,) in islice(texts, CLEAN_MAX)]


@remembered
def _own_pairs(path: Path) -> list[tuple[str, str]]:
    pairs = read_pairs([str(path)], advice=(PAIRS_ARE, PAIRS_ARE))
    return list(zip(pairs.noisy, pairs.clean, strict=True))


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    """Return the files that a kernel with these values reads: word lists, counts, the user's."""
    paths = [*existing(_COUNTS.of(settings.lang))]
    steps = _mix(values["recipe"], settings.lang).steps() if "recipe" in values else []
    for step in steps:
        paths += registry.get(step.transform).data(settings, step_values(step))
    given = [shards_of(str(values[name])) for name in ("clean", "pairs") if values.get(name)]
    paths += [Path(item.path) for item in expand(given)] if given else []
    if str(values.get("recipe", "")).endswith(FILE_ENDINGS):
        paths.append(Path(values["recipe"]))
    return list(dict.fromkeys(paths))


def _mix(recipe: str, lang: str) -> Mix:
    """Return the mix of a recipe whose noise is undone; raises UsageError for a way back."""
    mix = Recipe.named(recipe).for_language(lang)[0]
    if any(registry.get(step.transform).kind == "repair" for step in mix.steps()):
        raise UsageError(f"{recipe!r} has the step normalize: name a recipe that makes noise")
    return mix


@kernel("normalize", data=_files, languages=_COUNTS.languages, kind="repair")
def normalize(
    settings: Settings,
    *,
    recipe: str = "ugc",
    clean: str | None = None,
    pairs: str | None = None,
    style: bool = True,
) -> Normalizer:
    """Write noisy words as edited text has them: 'ppl cant w8' -> 'People can't wait.'."""
    own = _own_texts(Path(clean)) if clean else []
    real = _own_pairs(Path(pairs)) if pairs else []
    return Normalizer(
        Readings.of(_mix(recipe, settings.lang), settings.lang, own, real), settings.lang, style
    )
