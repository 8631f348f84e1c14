"""The original vocabularies, read from a user's own checkout of NL-Augmenter (`--nlaug-data`).

Nothing of the checkout is imported or run: its data files are parsed, and a dictionary that lives
in code is taken from the syntax tree. What the matcher cannot find is left out.
"""

import ast
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

from noisegen.errors import LexiconError, UsageError
from noisegen.lexicon import Entry, Lexicon, matchable
from noisegen.phrases import PhraseTable, build
from noisegen.text import fold, is_upper
from noisegen.words import WORD_BYTES_MAX

Reader = Callable[[Path], Iterable[Entry]]

_SCAR = "[email\u00a0protected]"  # what a scraper of web pages left of an address
_CUT = re.compile(r"[^\w .+$%-]")  # where abr2 cuts the lower-cased text: other rules never fire
_NEIGHBOURS = ("key_approx", "keyApprox")


def vocabulary(folder: Path | None, name: str) -> PhraseTable | None:
    """Return the compiled vocabulary of a transform in a checkout, None where there is none.

    Raises UsageError if the folder is no checkout, LexiconError if a file is missing or damaged.
    """
    if folder is None or name not in _WORDS:
        return None
    paths = files(folder, name)
    entries = _weighted(_merged(_read(_WORDS[name], paths)), paths)
    source = ", ".join(map(str, paths))
    head = {"name": name, "lang": "en", "source": source, "license": "see the checkout"}
    return build(Lexicon(head, entries))


def characters(folder: Path | None, name: str) -> list[Entry] | None:
    """Return a character's weighted replacements in a checkout; otherwise as `vocabulary`."""
    if folder is None or name not in _CHARACTERS:
        return None
    paths = files(folder, name)
    entries = (entry for entry in _read(_CHARACTERS[name], paths) if len(entry.clean) == 1)
    return _weighted(entries, paths)


def files(folder: Path | None, name: str) -> list[Path]:
    """Return the files of a checkout that a transform is read from."""
    source = _WORDS.get(name) or _CHARACTERS.get(name)
    if folder is None or source is None:
        return []
    paths = [_root(folder) / source.folder / file for file in source.readers]
    for path in paths:
        if not path.is_file():
            raise LexiconError(f"no file {str(path)!r}; is this a whole checkout of NL-Augmenter?")
    return paths


def source_tree(path: Path) -> ast.Module:
    """Return the syntax tree of a Python file; raises what `ast.parse` and reading raise."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old escapes in code of others
        return ast.parse(_text(path), path.name)


def _root(folder: Path) -> Path:
    """Return the folder of transformations: in the newer layout, the older one, or as given."""
    if not folder.is_dir():
        raise UsageError(f"no folder {str(folder)!r}; give the root of an NL-Augmenter checkout")
    for nested in (folder / "nlaugmenter" / "transformations", folder / "transformations"):
        if nested.is_dir():
            return nested
    if any((folder / source.folder).is_dir() for source in (_WORDS | _CHARACTERS).values()):
        return folder
    raise UsageError(f"no transformations folder in {str(folder)!r}; give the root of a checkout")


def _read(source: "_Source", paths: list[Path]) -> Iterator[Entry]:
    """Read the entries of all files, without those that change nothing or hold nothing."""
    for path, reader in zip(paths, source.readers.values(), strict=True):
        try:
            entries = list(reader(path))
        except (OSError, ValueError, TypeError, SyntaxError, RecursionError) as error:
            raise LexiconError(f"cannot read {path}: {error}; check the file out again") from error
        for entry in entries:
            blank = not entry.noisy.strip() or fold(entry.noisy) == fold(entry.clean)
            if not blank and _SCAR not in entry.noisy:
                yield entry


def _merged(entries: Iterable[Entry]) -> list[Entry]:
    """Keep what can be matched; of keys that differ only in case, the one with fewest capitals."""
    usable = [entry for entry in entries if _can_match(entry.clean)]
    keys = sorted((entry.clean for entry in usable), key=lambda key: -sum(map(is_upper, key)))
    spelled = {fold(key): key for key in keys}
    return [entry for entry in usable if spelled[fold(entry.clean)] == entry.clean]


def _can_match(clean: str) -> bool:
    longest = max((len(part.encode()) for part in clean.split()), default=0)
    return matchable(clean) and longest <= WORD_BYTES_MAX


def _weighted(entries: Iterable[Entry], paths: list[Path]) -> list[Entry]:
    """Count equal entries into one with their number as weight, in the order of the file."""
    counts = Counter(entries)
    if not counts:
        raise LexiconError(f"no usable entry in {paths[0]}; check the file out again")
    return [entry._replace(weight=count) for entry, count in counts.items()]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8-sig")


def _lines(path: Path) -> list[str]:
    """Return the lines that are not blank, stripped."""
    return [line.strip() for line in _text(path).split("\n") if line.strip()]


def _json(path: Path) -> dict[str, object]:
    data = json.loads(_text(path))
    if not isinstance(data, dict):
        raise ValueError(f"{type(data).__name__} where a dictionary belongs")
    return data


def _strings(data: object) -> dict[str, str]:
    """Check that this is a dictionary of strings; raises ValueError for any other thing."""
    pairs = data.items() if isinstance(data, dict) else [(data, None)]
    for pair in pairs:
        if not all(isinstance(part, str) for part in pair):
            raise ValueError(f"{str(pair)[:60]} where two strings belong")
    return dict(pairs)


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError) as error:
        raise ValueError(f"line {node.lineno} is no plain value") from error


def _assignments(path: Path) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield target and value of every assignment, wherever it stands."""
    for node in ast.walk(source_tree(path)):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _assigned(path: Path, name: str) -> dict[str, str]:
    """Return the dictionary assigned to a name or an attribute."""
    for target, value in _assignments(path):
        if name in (getattr(target, "id", ""), getattr(target, "attr", "")):
            return _strings(_literal(value))
    raise ValueError(f"nothing is assigned to {name!r}")


def _entries(pairs: dict[str, str]) -> Iterator[Entry]:
    return (Entry(clean, noisy) for clean, noisy in pairs.items())


def _inverse(pairs: dict[str, str]) -> dict[str, str]:
    return {value: key for key, value in pairs.items()}


def _flat(path: Path) -> Iterator[Entry]:
    """Read `{clean: noisy}`."""
    return _entries(_strings(_json(path)))


def _letters(path: Path) -> Iterator[Entry]:
    """Read `{clean: noisy}` from code."""
    return _entries(_assigned(path, "leet_letter_mappings"))


def _rules(path: Path) -> Iterator[Entry]:
    """Read `noisy = clean` rules of abr2; the one with most elements wins, then the first."""
    split = (line.replace("\t", " ").partition(" = ") for line in _lines(path) if line[0] != "#")
    rules = [(" ".join(left.split()), right.split()) for left, found, right in split if found]
    labels: dict[str, str] = {}
    for label, elements in sorted(rules, key=lambda rule: -len(rule[1])):
        for chosen in product(*map(_choices, elements)):
            labels.setdefault(" ".join(filter(None, chosen)), label)
    alive = (clean for clean in labels if clean == clean.lower() and not _CUT.search(clean))
    return (Entry(clean, labels[clean]) for clean in alive)


def _choices(element: str) -> list[str]:
    """Return what an element stands for: `word`, `"x"`, `word+`, `(optional)` or `w(h)ole`."""
    optional = re.fullmatch(r"([^()]*)\(([^()]+)\)([^()]*)", element)
    if optional is None:
        return [element.rstrip("+*").strip('"')]
    before, inside, after = optional.groups()
    return [before + after, before + inside.strip('"') + after]


def _acronyms(path: Path) -> list[Entry]:
    """Read `SHORT:long form` lines; either becomes the other, whatever its case, the first wins."""
    to_long: dict[str, str] = {}
    to_short: dict[str, str] = {}
    for line in _lines(path):
        short, colon, long = line.partition(":")
        if not colon:
            raise ValueError(f"no colon in {line[:60]!r}")
        to_long.setdefault(fold(short), long.lower())
        to_short.setdefault(fold(long), short)
    return [*_entries(to_long), *_entries(to_short)]


def _contractions(path: Path) -> list[Entry]:
    """Read `{contracted: expanded}` from code; either becomes the other."""
    expanded = _assigned(path, "contraction_map")
    return [*_entries(expanded), *_entries(_inverse(expanded))]


def _swaps(path: Path) -> Iterator[Entry]:
    """Read `{group: {word: word}}`; either becomes the other, the second first where both could."""
    groups = _json(path).values()
    forward = {word: other for group in groups for word, other in _strings(group).items()}
    return _entries(forward | _inverse(forward))


def _misspellings(path: Path) -> Iterator[Entry]:
    """Read `{word: [misspelling, ...]}`, an underscore for a blank; repeats weigh."""
    for word, wrongs in _json(path).items():
        if not isinstance(wrongs, list) or not all(isinstance(wrong, str) for wrong in wrongs):
            raise ValueError(f"no list of strings at {word!r}")
        yield from (Entry(word.replace("_", " "), wrong.replace("_", " ")) for wrong in wrongs)


def _slang(pos: str, columns: int) -> Reader:
    """Make the reader of `lemma,slang[,plural of slang]` rows; other rows are skipped."""

    def read(path: Path) -> Iterator[Entry]:
        for line in _lines(path):
            fields = [part.strip() for part in line.split(",")]
            if len(fields) == columns and all(fields):
                yield Entry(fields[0], fields[1], pos=pos)
                yield from (Entry(_plural(fields[0]), plural, pos=pos) for plural in fields[2:])

    return read


def _plural(noun: str) -> str:
    """Return the regular plural, since the list has lemmas and the matcher words."""
    if noun.endswith(("s", "x", "z", "ch", "sh")):
        return noun + "es"
    return noun[:-1] + "ies" if re.search(r"[^aeiou]y$", noun) else noun + "s"


def _neighbours(path: Path) -> Iterator[Entry]:
    """Read `key_approx["q"] = "qw..."` lines; a capital has the neighbours of its letter."""
    for target, value in _assignments(path):
        if isinstance(target, ast.Subscript) and getattr(target.value, "id", "") in _NEIGHBOURS:
            pair = {_literal(target.slice): _literal(value)}
            for letter, others in _strings(pair).items():
                yield from (Entry(letter, other) for other in others)
                if letter != letter.upper():
                    yield from (Entry(letter.upper(), other.upper()) for other in others)


class _Source(NamedTuple):
    """The folder of a transform, and a reader for each of its files."""

    folder: str
    readers: dict[str, Reader]


_CODE = "transformation.py"
_WORDS = {
    "abr1": _Source("abbreviation_transformation", {
        "phrase_abbrev_dict.json": _flat, "word_abbrev_dict.json": _flat,
    }),
    "abr2": _Source("insert_abbreviation", {"replacement_rules_en.txt": _rules}),
    "abr3": _Source("replace_abbreviation_and_acronyms", {"abbreviations.txt": _acronyms}),
    "cont": _Source("contraction_expansions", {_CODE: _contractions}),
    "dysl": _Source("dyslexia_words_swap", {"data.json": _swaps}),
    "slng": _Source("slangificator", {
        "Slang_Nouns.txt": _slang("NOUN", 3), "Slang_Adjectives.txt": _slang("ADJ", 2),
        "Slang_Adverbs.txt": _slang("ADV", 2),
    }),
    "spel": _Source("replace_spelling", {"spell_errors.json": _misspellings}),
    "week": _Source("weekday_month_abbreviation", {
        "weekday_month_abb_en.json": _flat, "weekday_month_exp_en.json": _flat,
    }),
}  # fmt: skip
_CHARACTERS = {
    "fing": _Source("butter_fingers_perturbation", {_CODE: _neighbours}),
    "leet": _Source("leet_letters", {_CODE: _letters}),
}
