"""Miner of learner text: Lang-8 entries (a JSON array a line) and M2 files, told by content."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from noisegen.errors import SourceError
from noisegen.inputs import BOM, COMPRESSIONS
from noisegen.mining import m2
from noisegen.mining.corrections import Correction, one_line, read_correction, without_tags
from noisegen.mining.filters import Profile, Verdict, judge
from noisegen.mining.languages import Language, codes_by_name
from noisegen.mining.pairs import Account, SentencePair, Task
from noisegen.readers import LINE_MAX, Damaged, blocks, is_unicode, opened, reading

_BLOCK = 1 << 20  # bytes read at once
_HEAD = 1 << 16  # bytes in which the kind of a file shows
_CHARS_MAX = 2_000  # of a sentence or correction: what is longer is none, and slow to compare
_BLANKS = b"\t\v\f\r"
_CONTROLS = bytes(code for code in range(32) if code not in (*_BLANKS, 10))
_TO_BLANKS = bytes.maketrans(_BLANKS, b" " * len(_BLANKS))
LANG8, M2 = "lang8", "m2"


class Learnt(NamedTuple):
    """A learner's sentence with its corrections; the unit is its entry, or the sentence in M2."""

    unit: int
    noisy: str
    corrections: list[Correction]


@dataclass(frozen=True)
class Lang8Miner:
    """Mines learners' sentences (noisy) with their corrections (clean).

    Only what was written to learn `language` is taken. With `with_uncorrected` a sentence that
    nobody changed is a pair of itself.
    """

    language: Language
    profile: Profile
    with_uncorrected: bool = False

    def __call__(self, task: Task, account: Account) -> Iterator[SentencePair]:
        """Yield the pairs that pass the filters; damage is counted, and mining goes on."""
        for path in task.paths:
            read = _READERS[kind_of(path)]
            for learnt in read(path, self.language, account):
                yield from self._pairs(learnt, account)

    def _pairs(self, learnt: Learnt, account: Account) -> Iterator[SentencePair]:
        """Yield a pair for every correction that is one."""
        noisy, code = learnt.noisy, self.language.code
        account.read["sentences"] += 1
        if reason := self._unfit(noisy):
            account.dropped[reason] += 1
            return
        account.read["corrections"] += len(learnt.corrections)
        if all(text == noisy for text, _ in learnt.corrections):
            account.read["uncorrected"] += 1
            if self.with_uncorrected and noisy:
                yield SentencePair(noisy, noisy, code, learnt.unit)
            return
        for correction in learnt.corrections:
            verdict = self._verdict(noisy, correction)
            if verdict.reason is not None:
                account.dropped[verdict.reason] += 1
                continue
            account.dropped.update(verdict.dropped_words)
            yield SentencePair(noisy, correction.text, code, learnt.unit, verdict.words)

    def _unfit(self, text: str) -> str | None:
        """Return why a text is no sentence of the language, as far as length and script tell."""
        if len(text) > _CHARS_MAX:
            return "too_long"
        return None if self.language.is_written_in(text) else "wrong_script"

    def _verdict(self, noisy: str, correction: Correction) -> Verdict:
        reason = correction.reason or self._unfit(correction.text)
        if reason is not None:
            return Verdict(reason, (), Counter())
        return judge(noisy, correction.text, self.language, self.profile)


def lang8_tasks(sources: Sequence[str]) -> list[Task]:
    """Return a task for each file; raises SourceError for what is missing or of another kind."""
    for source in sources:
        if not Path(source).is_file():
            what = "a folder; name its files" if Path(source).is_dir() else "no such file"
            raise SourceError(f"{source!r}: {what}")
    paths = list(dict.fromkeys(str(Path(source).resolve()) for source in sources))
    for path in paths:
        kind_of(path)
    return [Task(number, (path,)) for number, path in enumerate(paths)]


def kind_of(path: str) -> str:
    """Tell by the first line of a file that is not blank whether it is lang8 or m2.

    Raises SourceError for a file of another kind, or with nothing in it.
    """
    try:
        with reading(path), opened(path, _compression(path)) as read:
            head = read(_HEAD).removeprefix(BOM).lstrip()
    except Damaged as damage:
        raise SourceError(f"{path}: damaged before its first line ({damage})") from damage
    if head.startswith(b"["):
        return LANG8
    if head.startswith((b"S ", b"S\n", b"S\r")):
        return M2
    if not head:
        raise SourceError(f"{path}: the file is empty")
    raise SourceError(
        f"{path}: neither Lang-8 (a JSON array a line) nor M2 (S and A lines); mine-pairs reads "
        "other parallel text"
    )


def _compression(path: str) -> str:
    ending = path.lower().rpartition(".")[2]
    return ending if ending in COMPRESSIONS else ""


def _lines(path: str, account: Account) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file and their numbers from 1, without control characters.

    Damaged lines, and where a compressed file breaks off, are noted.
    """
    number = 0
    try:
        with opened(path, _compression(path)) as read:
            for block in blocks(read, _BLOCK):
                lines = block.removesuffix(b"\n").split(b"\n")
                for line in lines:
                    number += 1
                    text = _decoded(line.removeprefix(BOM) if number == 1 else line)
                    if text is None:
                        account.damaged.append(f"{path}:{number}: not UTF-8, or too long")
                    else:
                        yield number, text
    except Damaged as damage:
        account.damaged.append(f"{path}: breaks off after line {number} ({damage})")


def _decoded(line: bytes) -> str | None:
    """Return a line as text, blanks for tabs, nothing for other control bytes (Lang-8 has some)."""
    if len(line) > LINE_MAX:
        return None
    try:
        return line.translate(_TO_BLANKS, _CONTROLS).decode()
    except UnicodeDecodeError:
        return None


def lang8_sentences(path: str, language: Language, account: Account) -> Iterator[Learnt]:
    """Yield the sentences of Lang-8 entries in which someone learns `language`."""
    for number, line in _lines(path, account):
        if not line.strip():
            continue
        entry = _entry(line)
        if entry is None:
            account.damaged.append(f"{path}:{number}: no Lang-8 entry in JSON")
            continue
        account.read["entries"] += 1
        for given, texts in zip_longest(entry.sentences, entry.corrections[: len(entry.sentences)]):
            noisy = _learner_text(given)
            if language.code not in entry.learnt:
                account.dropped["other_language"] += 1
            elif not noisy:
                account.dropped["empty"] += 1
            else:
                yield Learnt(entry.unit or number, noisy, _read_all(noisy, texts))


def _learner_text(given: object) -> str:
    """Return a learner's sentence, which may have tags; empty for what is none."""
    if not isinstance(given, str) or not is_unicode(given):
        return ""
    return one_line(without_tags(given) or "")


class _Entry(NamedTuple):
    unit: int | None
    learnt: list[str | None]
    sentences: list[Any]
    corrections: list[Any]


def _entry(line: str) -> _Entry | None:
    """Return an entry: ids, language learnt, native language, sentences, lists of corrections."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, list) or len(row) < 5:
        return None
    unit, _, learnt, _, sentences, *more = row
    corrections = more[0] if more and more[0] is not None else []
    if not (isinstance(learnt, str) and all(isinstance(x, list) for x in (sentences, corrections))):
        return None
    return _Entry(_number(unit), _codes(learnt), sentences, corrections)


def _number(unit: object) -> int | None:
    text = str(unit)
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None


def _codes(names: str) -> list[str | None]:
    """Return the codes of languages such as 'Korean, Portuguese(Brazil)'."""
    bare = (name.partition("(")[0].strip().lower() for name in names.split(","))
    return [codes_by_name().get(name) for name in bare]


def _read_all(noisy: str, texts: object) -> list[Correction]:
    """Return the corrections of a sentence; null and empty ones are none."""
    if not isinstance(texts, list) or len(noisy) > _CHARS_MAX:
        return []
    return [_read(noisy, text) for text in texts if isinstance(text, str) and text.strip()]


def _read(noisy: str, text: str) -> Correction:
    if len(text) > 2 * _CHARS_MAX or not is_unicode(text):
        return Correction("", "too_long" if is_unicode(text) else "not_unicode")
    return read_correction(noisy, text)


def m2_sentences(path: str, language: Language, account: Account) -> Iterator[Learnt]:
    """Yield the sentences of an M2 file, tokens joined by blanks; they are in `language`."""
    for block in m2.blocks(_lines(path, account)):
        corrections = [Correction(text) for text in block.corrected()]
        account.damaged += [f"{path}:{block.line}: {note}" for note in block.damaged]
        if block.tokens:
            yield Learnt(block.line, " ".join(block.tokens), corrections)


_READERS: dict[str, Callable[[str, Language, Account], Iterator[Learnt]]]
_READERS = {LANG8: lang8_sentences, M2: m2_sentences}
