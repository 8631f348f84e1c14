"""Words spelled as they sound: in their own script, or in Latin letters, as people do in chats."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from noisegen.noising.edits import Edits
from noisegen.noising.kernels import WordKernel
from noisegen.noising.lexical import LexicalKernel, ListRules
from noisegen.noising.lexicon import head_of, parse_tsv
from noisegen.noising.phrases import load_table
from noisegen.noising.registry import Settings, kernel
from noisegen.noising.rng import RowDraws, Variants, fork, fork_array
from noisegen.text.buffers import U64, Texts
from noisegen.text.case import title
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import Forms, LanguageFiles, existing, rows_of

LETTERS_MIN = 4  # shorter words are in the list or stay
RESPELLINGS_MAX = 6  # forms of a word, the likeliest
_LIST, _RULES = LanguageFiles("phon.tsv"), LanguageFiles("phon_rules.tsv")


Rule = tuple[re.Pattern[str], str, int]  # pattern, replacement, weight


@cache
def rules_of(path: Path) -> tuple[Rule, ...]:
    """Read the rules of a language (pattern, noisy, weight); without a file there are none."""
    rows = rows_of(path) if path.exists() else []
    return tuple((re.compile(pattern), noisy, int(weight)) for pattern, noisy, weight in rows)


@cache
def whole_of(path: Path) -> int:
    """Return the weight of a rule that always applies; 0 if weights are proportions only."""
    return int(head_of(path, "of").get("of", 0)) if path.exists() else 0


@cache
def _any_of(rules: tuple[Rule, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, *_ in rules) or "(?!)")


class Rewriting(NamedTuple):
    """A rule applied at one place of a word: characters [start, stop) become `noisy`."""

    start: int
    stop: int
    noisy: str
    weight: int


def respelled(word: str, rules: tuple[Rule, ...], of: int = 0) -> Forms:
    """Return the likeliest forms of a word that is respelled in one or two places.

    If `of` is not 0, a rule of weight w applies in w of `of` cases; in the cases that no rule takes
    the word stays. Words with capitals stay: most are names, or begin a sentence and are listed.
    """
    if not _is_respellable(word) or not _any_of(rules).search(word):
        return []
    changes = _rewritings(word, rules)
    forms = defaultdict[str, int](int)
    for change in changes:
        form = word[: change.start] + change.noisy + word[change.stop :]
        forms[form] = max(change.weight * (of or 100), forms[form])
    for first, second in combinations(changes, 2):
        if first.stop <= second.start:
            between, end = word[first.stop : second.start], word[second.stop :]
            form = word[: first.start] + first.noisy + between + second.noisy + end
            forms[form] = max(first.weight * second.weight * 2, forms[form])
    forms.pop(word, None)
    likeliest = _likeliest(forms, RESPELLINGS_MAX)
    stays = of * of - sum(weight for _, weight in likeliest)
    return [*likeliest, (word, stays)] if likeliest and stays > 0 else likeliest


def _is_respellable(word: str) -> bool:
    """Tell whether a word is long enough to be respelled and has only small letters."""
    return len(word) >= LETTERS_MIN and word.isalpha() and word == word.lower()


def _rewritings(word: str, rules: tuple[Rule, ...]) -> list[Rewriting]:
    """Return every place of a word where a rule applies, with its new letters, in order."""
    return sorted(
        Rewriting(*match.span(), match.expand(noisy) if "\\" in noisy else noisy, weight)
        for pattern, noisy, weight in rules
        for match in pattern.finditer(word)
    )


def _likeliest(forms: Mapping[str, int], most: int) -> Forms:
    """Return the forms with the greatest weights, at most `most` of them."""
    return sorted(forms.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


@dataclass(frozen=True)
class Respelling:
    """Respell the matches of a list, and by rules the words outside them, each with chance `rate`.

    `listed` and `rules` have the same rates. Draw number i of a row decides on its i-th match, draw
    number i of the stream "rules" on its i-th word; `by_form`, equal words get the same draw.
    """

    listed: LexicalKernel
    rules: WordKernel

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the respellings in one row."""
        row = row.cut(self.listed.table.matched_by)
        matches = self.listed.table.find_row(row)
        listed = self.listed.replaced_in(row, matches, draws)
        matched = {n for first, last, _ in matches for n in range(first, last + 1)}
        others = [
            number
            for number, word in enumerate(row.words)
            if len(word) >= LETTERS_MIN and number not in matched
        ]
        key = fork(draws.key, "rules")
        limit = int(self.listed.lists[0].limits[draws.variants["rate"]])
        ruled = self.rules.replaced(row, self.rules.hits_in(row, key, others, limit))
        return sorted(listed + ruled)

    def propose(self, texts: Texts, keys: U64, variants: Variants) -> Edits:
        """Return the respellings in a batch of rows."""
        matches = self.listed.table.find(texts)
        ruled = self.rules.propose(texts, fork_array(keys, "rules"), variants)
        # A word is outside all matches if it starts behind the last match that starts before it.
        stops = np.append(0, matches.stops)
        last_stop = stops.take(np.searchsorted(matches.starts, ruled.starts, side="right"))
        listed = self.listed.replaced(texts, matches, keys, variants)
        return Edits.join([listed, ruled.keep(ruled.starts >= last_stop)])


def _phon_files(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    return existing(_LIST.of(settings.lang), _RULES.of(settings.lang))


@kernel("phon", _phon_files, _LIST.languages, kind="habit")
def phon(settings: Settings, *, rate: float = 0.15) -> Respelling:
    """Spell words as they sound: 'that was good, though' -> 'that was gud, tho'."""
    rules, limits = rules_of(_RULES.of(settings.lang)), settings.limits(rate)
    table = load_table(_LIST.of(settings.lang), parse_tsv, settings.matched_by)
    rule = partial(respelled, rules=rules, of=whole_of(_RULES.of(settings.lang)))
    ruled = WordKernel(rule, limits, by_form=settings.by_form, bytes_min=LETTERS_MIN)
    listed = ListRules(limits, tags="infinitive", by_form=settings.by_form)
    return Respelling(LexicalKernel(table, (listed,)), ruled)


# Latin letters.

FORMS_MAX = 8  # forms of a word, the likeliest
WHOLE = 1 << 40  # the sum of the weights of a word's forms, but for rounding
GROUP_MAX = 4  # letters that are written as one
FULL_STOPS = "।॥։"  # the tokenizer takes these for letters at the end of words
_LETTER_TABLES = LanguageFiles("latn.tsv")

# Letters -> their place in the word ('start', 'end', 'word': all of it, '': any) -> Latin letters.
LetterTable = Mapping[str, Mapping[str, Forms]]


@cache
def letters_of(path: Path) -> LetterTable:
    """Read a letter table: letters, latin, where, weight."""
    table = defaultdict[str, dict[str, Forms]](dict)
    for letters, latin, where, weight in rows_of(path):
        table[letters].setdefault(where, []).append((latin, int(weight)))
    return dict(table)


def latinised(word: str, table: LetterTable, spoken: Callable[[str], str] = str) -> Forms:
    """Return the likeliest forms of a word in Latin letters, with their weights.

    There are none if the table lacks a letter of the word. `spoken` writes the word as it is
    heard, see `with_schwas`.
    """
    plain = unicodedata.normalize("NFC", word.lower())
    core = plain.rstrip(FULL_STOPS)
    whole = table.get(core, {}).get("word")
    units = [whole] if whole else _units(spoken(core), table)
    if core and not units:
        return []
    units += [table.get(stop, {"": [(stop, 1)]})[""] for stop in plain[len(core) :]]
    cased = _casing_of(word)
    return [(cased(form), weight) for form, weight in _joined(units) if form and weight]


def _joined(units: Sequence[Forms]) -> Forms:
    """Return the likeliest forms of a word, made of one of the forms of each of its units.

    The weights of all forms add up to `WHOLE`, but for rounding.
    """
    forms: Forms = [("", WHOLE)]
    for unit in units:
        total, longer = sum(weight for _, weight in unit), defaultdict[str, int](int)
        for form, share in forms:
            for latin, weight in unit:
                longer[form + latin] += share * weight // total
        forms = _likeliest(longer, FORMS_MAX)
    return forms


def _casing_of(word: str) -> Callable[[str], str]:
    """Return the function that gives a text the case of a word: upper case, a capital, or none."""
    if word.isupper() and len(word) > 1:
        return str.upper
    return title if word[:1].isupper() else str


def _units(core: str, table: LetterTable) -> list[Forms]:
    """Return the Latin letters of each group of letters, the longest known groups first.

    Returns nothing if a letter is unknown, or all letters are ASCII.
    """
    units, at = list[Forms](), 0
    while at < len(core):
        for stop in range(min(at + GROUP_MAX, len(core)), at, -1):
            rows = table.get(core[at:stop], {})
            places = ["start"] * (at == 0) + ["end"] * (stop == len(core)) + [""]
            if written := next((rows[place] for place in places if place in rows), []):
                break
        if not written and not core[at].isascii():
            return []
        units.append(written or [(core[at], 1)])
        at = stop
    return [] if core.isascii() else units


_AKSHARA = re.compile(
    "(?P<consonant>[\u0915-\u0939]\u093c?)(?P<vowel>[\u093e-\u094d]?)(?P<mark>[\u0901-\u0903]?)|.",
    re.DOTALL,
)
_VIRAMA = "\u094d"  # written where a consonant has no vowel
_GLIDES = "\u092f\u0930\u0932\u0935"  # y, r, l, v: behind a consonant they keep a last vowel


def with_schwas(word: str) -> str:
    """Return a Devanagari word with an 'a' for each inherent vowel that is spoken in Hindi.

    After Ohala (1983), Aspects of Hindi Phonology: the vowel is dropped at the end of a word, and
    between a vowel and a consonant that a spoken vowel follows, from right to left.
    """
    parts = list(_AKSHARA.finditer(word))
    inherent = [bool(part["consonant"]) and not part["vowel"] for part in parts]
    for at in range(len(parts) - 1, 0, -1):
        if inherent[at] and not parts[at]["mark"]:
            inherent[at] = _keeps_schwa(parts, inherent, at)
    return "".join(
        part[0][: len(part["consonant"])] + "a" + part["mark"] if here else part[0]
        for part, here in zip(parts, inherent, strict=True)
    )


def _keeps_schwa(parts: Sequence[re.Match[str]], spoken: Sequence[bool], at: int) -> bool:
    """Tell whether Hindi speaks the inherent vowel of part `at` of a word.

    `spoken` tells the same for all later parts.
    """
    is_joined = parts[at - 1]["vowel"] == _VIRAMA
    if at == len(parts) - 1:
        return is_joined and parts[at]["consonant"] in _GLIDES
    after = parts[at + 1]
    vowel_follows = spoken[at + 1] or after["vowel"] not in ("", _VIRAMA)
    return is_joined or not (after["consonant"] and vowel_follows)


@kernel("latn", _LETTER_TABLES.read, _LETTER_TABLES.languages, kind="habit")
def latn(settings: Settings, *, rate: float = 1.0) -> WordKernel:
    """Write another script in Latin letters, as in chats: 'привет' -> 'privet'."""
    spoken = with_schwas if settings.lang == "hi" else str
    table = letters_of(_LETTER_TABLES.of(settings.lang))
    rule = partial(latinised, table=table, spoken=spoken)
    return WordKernel(rule, settings.limits(rate), by_form=settings.by_form)
