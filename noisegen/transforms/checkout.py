"""The original word lists of NL-Augmenter, read from a user's checkout (`--nlaug-data`).

Data files of the checkout are parsed. A dictionary inside its code is read from the syntax tree, so
no code of the checkout is imported or run. Phrases that a `PhraseTable` cannot find are left out.
"""

import ast
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from noisegen.errors import LexiconError, UsageError
from noisegen.noising.lexicon import Entry, Lexicon, matchable
from noisegen.noising.phrases import PhraseTable, build
from noisegen.text.buffers import WORD_BYTES_MAX
from noisegen.text.case import fold, is_upper

Reader = Callable[[Path], Iterable[tuple[Any, ...]]]  # a file -> the fields of each `Entry` in it
Decoded = TypeVar("Decoded")

_SCAR = "[email\u00a0protected]"  # scraped pages have this text where an e-mail address stood
_CUT = re.compile(r"[^\w .+$%-]")  # abr2 cuts texts at these characters: no rule can match across
_NEIGHBOURS = ("key_approx", "keyApprox")  # tables of neighbouring keys in the checkout's code


@dataclass(frozen=True)
class OriginalWords:
    """The original vocabulary of a transform; `name` is a key of `WORD_LISTS`."""

    name: str

    def files(self, folder: Path) -> list[Path]:
        """Return the files that the vocabulary is read from in the checkout at `folder`."""
        return original_files(folder, self.name)

    def table(self, folder: Path) -> PhraseTable:
        """Return the vocabulary, compiled from the checkout at `folder`.

        Raises UsageError if the folder is no checkout, LexiconError if a file is missing or
        damaged.
        """
        paths = self.files(folder)
        entries = _entries(self.name, paths, _is_findable)
        # If clean phrases differ only in case, the phrase with the fewest capitals is kept.
        keys = sorted((entry.clean for entry in entries), key=lambda key: -sum(map(is_upper, key)))
        spelled = {fold(key): key for key in keys}
        entries = [entry for entry in entries if spelled[fold(entry.clean)] == entry.clean]
        source = ", ".join(map(str, paths))
        head = {"name": self.name, "lang": "en", "source": source, "license": "see the checkout"}
        return build(Lexicon(head, entries))


def original_characters(folder: Path | None, name: str) -> list[Entry] | None:
    """Return weighted replacements of single characters for transform `name` from a checkout.

    Returns None if `folder` is None. Raises the errors of `OriginalWords.table`.
    """
    if folder is None:
        return None
    return _entries(name, original_files(folder, name), lambda clean: len(clean) == 1)


def original_files(folder: Path | None, name: str) -> list[Path]:
    """Return the data files of transform `name` in the NL-Augmenter checkout at `folder`.

    Returns [] if `folder` is None. Raises UsageError if the folder is no checkout, LexiconError if
    a file is missing.
    """
    if folder is None:
        return []
    root = _transformations(folder)
    paths = [root / file for file in _SOURCES[name]]
    for path in paths:
        if not path.is_file():
            raise LexiconError(f"no file {str(path)!r}; is this a whole checkout of NL-Augmenter?")
    return paths


def _transformations(folder: Path) -> Path:
    """Return the folder with the transformations of a checkout.

    Raises UsageError if the checkout has no such folder.
    """
    for root in (folder / "nlaugmenter" / "transformations", folder / "transformations", folder):
        if any((root / file).parent.is_dir() for files in _SOURCES.values() for file in files):
            return root
    what = "transformations folder in" if folder.is_dir() else "folder"
    raise UsageError(f"no {what} {str(folder)!r}; give the root of an NL-Augmenter checkout")


def _entries(name: str, paths: list[Path], is_usable: Callable[[str], bool]) -> list[Entry]:
    """Read the files of transform `name`; return entries whose clean text satisfies `is_usable`.

    Equal entries become one entry, weighted by their number. Entries that change nothing, or whose
    noisy text is empty or damaged, are left out. Raises LexiconError for a file that cannot be
    read, and if no entry is left.
    """
    counts = Counter[Entry]()
    for path, reader in zip(paths, _SOURCES[name].values(), strict=True):
        try:
            entries = [Entry(*fields) for fields in reader(path)]
        except (OSError, ValueError, TypeError, SyntaxError, RecursionError) as error:
            raise LexiconError(f"cannot read {path}: {error}; check the file out again") from error
        for entry in entries:
            if _changes_text(entry) and is_usable(entry.clean):
                counts[entry] += 1
    if not counts:
        raise LexiconError(f"no usable entry in {paths[0]}; check the file out again")
    return [entry._replace(weight=count) for entry, count in counts.items()]


def _changes_text(entry: Entry) -> bool:
    """Tell whether the noisy text of an entry is undamaged and differs from its clean text."""
    is_empty = not entry.noisy.strip() or fold(entry.noisy) == fold(entry.clean)
    return not is_empty and _SCAR not in entry.noisy


def _is_findable(phrase: str) -> bool:
    """Tell whether a `PhraseTable` can find a phrase in a text.

    It finds phrases with words of at most `WORD_BYTES_MAX` bytes and one ASCII sign between words.
    """
    fits = all(len(word.encode()) <= WORD_BYTES_MAX for word in phrase.split())
    return fits and matchable(phrase)


# Readers of the checkout's file formats. Each yields the fields of entries: clean, then noisy text.


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty, without white space at their ends."""
    return [line.strip() for line in path.read_text("utf-8-sig").split("\n") if line.strip()]


def _json(path: Path, kind: type[Decoded]) -> Decoded:
    return msgspec.json.decode(path.read_text("utf-8-sig"), type=kind)


def source_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file.

    Raises the errors of `ast.parse` and of `Path.read_text`.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of old escapes in strings of the checkout
        return ast.parse(path.read_text("utf-8-sig"), path.name)


def _assignments(path: Path) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and value of every assignment in a Python file, nested code included."""
    for node in ast.walk(source_tree(path)):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _assigned(path: Path, name: str) -> Iterable[tuple[str, str]]:
    """Read the dictionary that a Python file assigns to the variable or attribute `name`."""
    for target, value in _assignments(path):
        if name in (getattr(target, "id", ""), getattr(target, "attr", "")):
            return msgspec.convert(ast.literal_eval(value), dict[str, str]).items()
    raise ValueError(f"nothing is assigned to {name!r}")


def _contractions(path: Path) -> Iterable[tuple[str, str]]:
    """Read `{contracted: expanded}` from code; return both directions: "I'm" <-> 'I am'.

    If several contracted forms have the same expanded form, it is contracted to the last of them.
    """
    pairs = _assigned(path, "contraction_map")
    return chain(pairs, {expanded: contracted for contracted, expanded in pairs}.items())


def _flat(path: Path) -> Iterable[tuple[str, str]]:
    """Read a JSON file `{clean: noisy}`."""
    return _json(path, dict[str, str]).items()


def _rules(path: Path) -> Iterator[tuple[str, str]]:
    """Read the rules of the dictionary abr2; yield pairs of a clean phrase and its abbreviation.

    A rule is `noisy = element element ...`. An element is a word (`word`, `"x"` or `word+`), or has
    optional letters: `(optional)`, `w(h)ole`. If several rules match a phrase, the rule with the
    most elements is used, or the first of equally long rules.
    """
    split = (line.replace("\t", " ").partition(" = ") for line in _lines(path) if line[0] != "#")
    rules = [(" ".join(left.split()), right.split()) for left, equals, right in split if equals]
    labels: dict[str, str] = {}
    for label, elements in sorted(rules, key=lambda rule: -len(rule[1])):
        for chosen in product(*map(_choices, elements)):
            labels.setdefault(" ".join(filter(None, chosen)), label)
    for clean, label in labels.items():
        if clean == clean.lower() and not _CUT.search(clean):
            yield clean, label


def _choices(element: str) -> list[str]:
    """Return the texts that match an element of an abr2 rule: 'wole', 'whole' for 'w(h)ole'."""
    optional = re.fullmatch(r"([^()]*)\(([^()]+)\)([^()]*)", element)
    if optional is None:
        return [element.rstrip("+*").strip('"')]
    before, inside, after = optional.groups()
    return [before + after, before + inside.strip('"') + after]


def _acronyms(path: Path) -> Iterable[tuple[str, str]]:
    """Read `SHORT:long form` lines; return both directions: 'brb' <-> 'be right back'.

    The first of several long forms of a short form is used, and the reverse; case is ignored.
    """
    to_long: dict[str, str] = {}
    to_short: dict[str, str] = {}
    for line in _lines(path):
        short, colon, long = line.partition(":")
        if not colon:
            raise ValueError(f"no colon in {line[:60]!r}")
        to_long.setdefault(fold(short), long.lower())
        to_short.setdefault(fold(long), short)
    return chain(to_long.items(), to_short.items())


def _swaps(path: Path) -> Iterable[tuple[str, str]]:
    """Read a JSON file `{group: {key: value}}`; return the pairs (key, value) and (value, key).

    A text that is both a key and a value is replaced by its key.
    """
    groups = _json(path, dict[str, dict[str, str]]).values()
    words = {key: value for group in groups for key, value in group.items()}
    return (words | {value: key for key, value in words.items()}).items()


def _misspellings(path: Path) -> Iterator[tuple[str, str]]:
    """Read a JSON file `{word: [misspelling, ...]}` with underscores for spaces.

    A misspelling that is listed several times is yielded as often, which raises its weight.
    """
    for word, wrongs in _json(path, dict[str, list[str]]).items():
        yield from ((word.replace("_", " "), wrong.replace("_", " ")) for wrong in wrongs)


def _slang(path: Path, pos: str, columns: int) -> Iterator[tuple[str, str, int, str]]:
    """Read `lemma,slang[,plural of slang]` rows; skip rows without exactly `columns` filled fields.

    Yields an entry (lemma, slang) and, with three columns, an entry (plural of the lemma, plural of
    slang). The plural of the lemma is the regular English one. `pos` is the part of speech.
    """
    for line in _lines(path):
        noun, *slang = fields = [part.strip() for part in line.split(",")]
        if len(fields) == columns and all(fields):
            if noun.endswith(("s", "x", "z", "ch", "sh")):
                plural = noun + "es"
            else:
                plural = noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"
            words = (noun, plural)[: columns - 1]
            yield from ((word, form, 1, pos) for word, form in zip(words, slang, strict=True))


def _neighbours(path: Path) -> Iterator[tuple[str, str]]:
    """Read `key_approx["q"] = "qw..."` assignments: a letter and the letters of nearby keys.

    The same entries in capitals are added.
    """
    for target, value in _assignments(path):
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in _NEIGHBOURS:
            pair = ast.literal_eval(target.slice), ast.literal_eval(value)
            letter, others = msgspec.convert(pair, tuple[str, str])
            yield from ((letter, other) for other in others)
            if letter != letter.upper():
                yield from ((letter.upper(), other.upper()) for other in others)


# Transform -> its files in the checkout's folder `transformations`, each with its reader.
WORD_LISTS: dict[str, dict[str, Reader]] = {
    "abr1": {
        "abbreviation_transformation/phrase_abbrev_dict.json": _flat,
        "abbreviation_transformation/word_abbrev_dict.json": _flat,
    },
    "abr2": {"insert_abbreviation/replacement_rules_en.txt": _rules},
    "abr3": {"replace_abbreviation_and_acronyms/abbreviations.txt": _acronyms},
    "cont": {"contraction_expansions/transformation.py": _contractions},
    "dysl": {"dyslexia_words_swap/data.json": _swaps},
    "slng": {
        "slangificator/Slang_Nouns.txt": partial(_slang, pos="NOUN", columns=3),
        "slangificator/Slang_Adjectives.txt": partial(_slang, pos="ADJ", columns=2),
        "slangificator/Slang_Adverbs.txt": partial(_slang, pos="ADV", columns=2),
    },
    "spel": {"replace_spelling/spell_errors.json": _misspellings},
    "week": {
        "weekday_month_abbreviation/weekday_month_abb_en.json": _flat,
        "weekday_month_abbreviation/weekday_month_exp_en.json": _flat,
    },
}
_SOURCES = WORD_LISTS | {
    "fing": {"butter_fingers_perturbation/transformation.py": _neighbours},
    "leet": {"leet_letters/transformation.py": partial(_assigned, name="leet_letter_mappings")},
}
