"""Miners of corrected text: Lang-8 entries, M2 files, parallel tables and aligned files."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import msgspec
from rapidfuzz.distance import Levenshtein

from noisegen.data.files import absolute, is_url
from noisegen.data.formats.layouts import corrections_in
from noisegen.data.formats.registry import pieces
from noisegen.data.m2 import M2_STARTS, line_pieces, read_m2, text_head, text_lines
from noisegen.data.pairs import NOT_A_TYPO, PairColumns, pair_rows, pair_tables
from noisegen.data.rows import Columns, FileRange
from noisegen.data.tables import is_unicode
from noisegen.errors import SourceError, UsageError
from noisegen.mining.changes import align
from noisegen.mining.filters import FilterProfile, judge
from noisegen.mining.miner import SentencePair, Tally, Task
from noisegen.text.languages import codes_by_name
from noisegen.text.segmentation import Language, language

ROWS = 100_000  # rows or lines of a file per task
# Maximum characters of a sentence or correction; longer ones are dropped, since comparing is slow
_CHARS_MAX = 2_000


@dataclass(frozen=True)
class PairsMiner:
    """Miner of noisy and clean text; a task is a table, or a noisy file with its clean files.

    The language of a row is read from the language column, or is `language` if there is no such
    column. With `split`, both texts of a row are split into sentences, and similar ones are paired.
    """

    kind: ClassVar[str] = "pairs"
    language: Language
    profile: FilterProfile
    columns: PairColumns = field(default_factory=PairColumns)
    split: bool = False

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        """Yield the pairs that pass the filters; `unit` of a pair is the index of its row."""
        rows = pair_rows(task.files, self.columns, tally.damaged)
        for unit, row in enumerate(rows, task.files[0].first):
            tally.read["rows"] += 1
            spoken = self.language if row.lang is None else _spoken(row.lang, self.language)
            if spoken is None:
                tally.dropped["unknown_lang"] += 1
                continue
            # Without a language column, only published corrections name the language of a row
            if self.columns.lang is None and spoken.code != self.language.code:
                tally.dropped["other_language"] += 1
                continue
            for clean in row.clean:
                if row.noisy is None or clean is None:
                    tally.dropped[NOT_A_TYPO if row.reason == NOT_A_TYPO else "null_text"] += 1
                    continue
                is_split = self.split or row.is_paragraph
                for pair in self._sentence_pairs(row.noisy, clean, spoken, tally, is_split):
                    words = judge(*pair, spoken, self.profile, tally.dropped)
                    if words is not None:
                        yield SentencePair(*pair, spoken.code, unit, words)

    def _sentence_pairs(
        self, noisy: str, clean: str, spoken: Language, tally: Tally, is_split: bool
    ) -> list[tuple[str, str]]:
        """Return both texts as one pair; if `is_split`, the pairs of their aligned sentences."""
        if not is_split:
            return [(noisy, clean)]
        return align(spoken.sentences(noisy), spoken.sentences(clean), tally.dropped)


@lru_cache(maxsize=1_000)
def _spoken(name: str, like: Language) -> Language | None:
    """Return the language with this code or English name; None if it is unknown.

    Its sentence splitter and other options are copied from the language `like`.
    """
    try:
        code = codes_by_name().get(name.lower(), name)
        return language(code, splitter=like.splitter, fuzzy_pinyin=like.fuzzy_pinyin)
    except UsageError:
        return None


def table_tasks(
    sources: Sequence[str], miner: PairsMiner, rows: int | None = None
) -> tuple[list[Task], list[str]]:
    """Return the tasks of tables, and a message for each skipped file.

    A task has at most `rows` rows (default: `ROWS`).
    """
    found, skipped = pair_tables(sources, miner.columns)
    noisy = Columns.of_texts(miner.columns.noisy)
    cut = [piece for file in found for piece in pieces(file, noisy, rows or ROWS)]
    return [Task(number, (piece,)) for number, piece in enumerate(cut)], skipped


# Reading of Lang-8 corrections.

# An addition at the end with at least this many characters is a comment (gector-ja's rule)
COMMENT_CHARS = 10
# Comments are searched for after the first sentence ends only, at most this many
_ENDS_MAX = 20
_TAG = re.compile(r"\[(/?)(f-[a-z]+|sline)\]", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？]+[\"'”’»)\]」』）]*")
_BRACKETS = re.compile(r"\([^()]*\)|（[^（）]*）|\[[^\[\]]*\]|【[^【】]*】")
_NO_CONTROLS = {code: None for code in (*range(32), *range(127, 160)) if not chr(code).isspace()}
_PRAISE = re.compile(r"\s*(?<![a-z])(?:ok|good|perfect|nice|great)[!.！。]*$", re.IGNORECASE)
# Separators of alternatives ('a/b') and of explanations ('a -> b') in corrections
_ALTERNATIVES = ("/", "／", "→", "->", "=>", "＝")


class Correction(NamedTuple):
    """A corrected sentence, or '' and the reason why a Lang-8 correction has none."""

    text: str
    reason: str | None = None


def read_correction(noisy: str, correction: str) -> Correction:
    """Return the corrected sentence in a Lang-8 correction of the learner's sentence `noisy`.

    Struck-out words are removed; colour tags are removed and their content stays. Brackets, praise
    at the end, and comments after the sentence are removed unless the learner wrote them. The
    result is empty with the reason `comment` if the correction has alternatives ('a/b') or is only
    a comment, and with the reason `unclosed_tag` if a strike-out is not closed.
    """
    bare = without_tags(correction)
    if bare is None:
        return Correction("", "unclosed_tag")
    text = _BRACKETS.sub(lambda bracket: bracket[0] if bracket[0] in noisy else "", one_line(bare))
    if not _PRAISE.search(noisy):
        text = _PRAISE.sub("", text)
    text = one_line(_without_comment(noisy, text))
    offers_alternatives = any(sign in text and sign not in noisy for sign in _ALTERNATIVES)
    if not text or offers_alternatives:
        return Correction("", "comment")
    return Correction(text)


def one_line(text: str) -> str:
    """Return a text without control characters, with single spaces between words."""
    return " ".join(text.translate(_NO_CONTROLS).split())


def without_tags(text: str) -> str | None:
    """Return a text without tags and struck-out words; None if a strike-out is not closed.

    Tags may be nested or overlap; an end tag without a start tag is ignored.
    """
    pieces: list[str] = []
    start = struck = 0  # `struck` counts the [sline] tags that are not closed yet
    for tag in _TAG.finditer(text):
        if not struck:
            pieces.append(text[start : tag.start()])
        start = tag.end()
        if tag[2].lower() == "sline":
            struck = max(0, struck - 1) if tag[1] else struck + 1
    return None if struck else "".join([*pieces, text[start:]])


def _without_comment(noisy: str, text: str) -> str:
    """Return the correction `text` without a comment after the sentence.

    `text` is cut at the sentence end that makes it most similar to the learner's sentence `noisy`.
    If `text` is a single sentence, only an addition at its end is cut, and only if it has at least
    `COMMENT_CHARS` characters.
    """
    stops = [end.end() for end in islice(_SENTENCE_END.finditer(text), _ENDS_MAX)]
    if stops and stops[0] < len(text):
        ends = [*stops, len(text)]
        return text[: min(ends, key=lambda end: Levenshtein.distance(noisy, text[:end]))]
    added = len(text)
    for tag, source, _ in reversed(Levenshtein.editops(noisy, text).as_list()):
        if tag != "insert" or source != len(noisy):
            break
        added -= 1
    return text[:added] if len(text) - added >= COMMENT_CHARS else text


# Miner of learners' sentences.

LANG8, M2 = "lang8", "m2"


class LearnerSentence(NamedTuple):
    """A learner's sentence and its corrections.

    `unit` is the id of the sentence's Lang-8 entry, or its line number in an M2 file.
    """

    unit: int
    noisy: str
    corrections: list[Correction]


@dataclass(frozen=True)
class Lang8Miner:
    """Miner of learners' sentences (noisy) and their corrections (clean).

    Lang-8 entries that are not written in `language` are dropped. With `with_uncorrected`, a
    sentence that nobody corrected becomes a pair of two equal texts.
    """

    kind: ClassVar[str] = "lang8"
    language: Language
    profile: FilterProfile
    with_uncorrected: bool = False

    def __call__(self, task: Task, tally: Tally) -> Iterator[SentencePair]:
        """Yield the pairs that pass the filters; damaged input is counted and skipped."""
        for file in task.files:
            read = lang8_sentences if kind_of(file.path) == LANG8 else m2_sentences
            for sentence in read(file, self.language, tally):
                tally.read["sentences"] += 1
                if reason := self._unfit(sentence.noisy):
                    tally.dropped[reason] += 1
                else:
                    yield from self._pairs(sentence, tally)

    def _pairs(self, sentence: LearnerSentence, tally: Tally) -> Iterator[SentencePair]:
        """Yield a pair per correction that can be used; dropped ones are counted by reason."""
        unit, noisy, corrections = sentence
        code = self.language.code
        tally.read["corrections"] += len(corrections)
        if all(text == noisy for text, _ in corrections):
            tally.read["uncorrected"] += 1
            if self.with_uncorrected and noisy:
                yield SentencePair(noisy, noisy, code, unit)
            return
        for text, reason in corrections:
            if reason := reason or self._unfit(text):
                tally.dropped[reason] += 1
                continue
            words = judge(noisy, text, self.language, self.profile, tally.dropped)
            if words is not None:
                yield SentencePair(noisy, text, code, unit, words)

    def _unfit(self, text: str) -> str | None:
        """Return the reason why a text cannot be a sentence of the language; None if it can."""
        if len(text) > _CHARS_MAX:
            return "too_long"
        return None if self.language.is_written_in(text) else "wrong_script"


def lang8_tasks(sources: Sequence[str], lines: int | None = None) -> list[Task]:
    """Return the tasks of Lang-8 or M2 files, about `lines` lines each (default: `ROWS`).

    Raises SourceError for a missing file, or one in neither format.
    """
    for source in sources:
        if not (is_url(source) or Path(source).is_file()):
            what = "a folder; name its files" if Path(source).is_dir() else "no such file"
            raise SourceError(f"{source!r}: {what}")
    paths = list(dict.fromkeys(map(absolute, sources)))
    for path in paths:
        kind_of(path)
    cut = [piece for path in paths for piece in line_pieces(path, lines or ROWS)]
    return [Task(number, (piece,)) for number, piece in enumerate(cut)]


def kind_of(path: str) -> str:
    """Return the format of a file, lang8 or m2, by its first line that is not blank.

    Raises SourceError for an empty file, or one in neither format.
    """
    head = text_head(path)
    if head.startswith(b"["):
        return LANG8
    if head.startswith(M2_STARTS):
        return M2
    if not head:
        raise SourceError(f"{path}: the file is empty")
    if corrections_in(head):
        raise SourceError(f"{path}: corrections in JSON lines: mine-pairs reads them")
    known = "neither Lang-8 (one JSON array per line) nor M2 (S and A lines)"
    raise SourceError(f"{path}: {known}; mine-pairs reads other parallel text")


class Lang8Entry(msgspec.Struct, array_like=True):
    """A Lang-8 entry; `entry` is its id, and `corrections` has a list per sentence."""

    entry: Any
    author: Any
    learnt: str
    native: Any
    sentences: list[Any]
    corrections: list[Any] | None = None


def lang8_sentences(file: FileRange, language: Language, tally: Tally) -> Iterator[LearnerSentence]:
    """Yield the sentences of Lang-8 entries written in `language`; count all others as dropped."""
    for number, line in text_lines(file, tally.damaged):
        if not line.strip():
            continue
        try:
            entry = msgspec.convert(json.loads(line), Lang8Entry)
        except (ValueError, RecursionError):
            tally.damaged.append(f"{file.path}:{number}: not a Lang-8 entry in JSON")
            continue
        tally.read["entries"] += 1
        unit = _entry_number(entry.entry) or number
        is_learnt = language.code in _languages(entry.learnt)
        corrections = (entry.corrections or [])[: len(entry.sentences)]
        for given, texts in zip_longest(entry.sentences, corrections):
            noisy = _plain_sentence(given)
            if not is_learnt:
                tally.dropped["other_language"] += 1
            elif not noisy:
                tally.dropped["empty"] += 1
            else:
                yield LearnerSentence(unit, noisy, _read_all(noisy, texts))


def _plain_sentence(given: object) -> str:
    """Return a sentence of an entry on one line, without tags; '' if it is not valid text."""
    if not isinstance(given, str) or not is_unicode(given):
        return ""
    return one_line(without_tags(given) or "")


def _entry_number(value: object) -> int:
    """Return the id of an entry as a number; 0 for an id that is not a number of 1 to 18 digits."""
    digits = str(value)
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= 18
    return int(digits) if is_number else 0


def _languages(learnt: str) -> set[str | None]:
    """Return the codes of the languages in a field such as 'Korean, Portuguese(Brazil)'."""
    names = [name.partition("(")[0].strip().lower() for name in learnt.split(",")]
    return {codes_by_name().get(name) for name in names}


def _read_all(noisy: str, texts: object) -> list[Correction]:
    """Read the corrections of a sentence; values that are blank or not strings are ignored."""
    if not isinstance(texts, list) or len(noisy) > _CHARS_MAX:
        return []
    corrections = []
    for text in texts:
        if not isinstance(text, str) or not text.strip():
            continue
        if not is_unicode(text):
            corrections.append(Correction("", "not_unicode"))
        elif len(text) > 2 * _CHARS_MAX:
            corrections.append(Correction("", "too_long"))
        else:
            corrections.append(read_correction(noisy, text))
    return corrections


def m2_sentences(file: FileRange, language: Language, tally: Tally) -> Iterator[LearnerSentence]:
    """Yield the sentences of an M2 file, with their tokens joined by spaces."""
    for sentence in read_m2(file, tally.damaged):
        corrections = [Correction(text) for text in sentence.corrected()]
        tally.damaged += sentence.notes(file.path)
        if sentence.tokens:
            yield LearnerSentence(sentence.line, " ".join(sentence.tokens), corrections)
