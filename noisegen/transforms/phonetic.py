"""Words spelled as they sound: `phon` in their own script, `latn` in Latin letters as in chats."""

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
from noisegen.noising.rng import RowDraws, Strengths, fork, fork_array
from noisegen.text.buffers import U64, Texts
from noisegen.text.case import title
from noisegen.text.rows import Row, RowEdit
from noisegen.transforms import Forms, LanguageFiles, existing, rows_of

LETTERS_MIN = 4  # fewest letters of a word that rules respell; shorter words must be in the list
RESPELLINGS_MAX = 6  # most forms of a word respelled by rules; the likeliest forms are kept
_LIST, _RULES = LanguageFiles("phon.tsv"), LanguageFiles("phon_rules.tsv")


Rule = tuple[re.Pattern[str], str, int]  # pattern, replacement, weight


@cache
def rules_of(path: Path) -> tuple[Rule, ...]:
    """Read respelling rules from a file (columns pattern, noisy, weight); () if there is none."""
    rows = rows_of(path) if path.exists() else []
    return tuple((re.compile(pattern), noisy, int(weight)) for pattern, noisy, weight in rows)


@cache
def whole_of(path: Path) -> int:
    """Return the weight of a rule that always applies: the number `of` in the head of the file.

    Returns 0 if the head has no `of`. Then the weights say only how likely a rule is compared
    with other rules.
    """
    return int(head_of(path, "of").get("of", 0)) if path.exists() else 0


@cache
def _any_of(rules: tuple[Rule, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern.pattern})" for pattern, *_ in rules) or "(?!)")


class Rewriting(NamedTuple):
    """A change of a word by a rule: its characters from `start` to `stop` become `noisy`."""

    start: int
    stop: int
    noisy: str
    weight: int


def respelled(word: str, rules: tuple[Rule, ...], total: int = 0) -> Forms:
    """Return the likeliest forms of a word that one or two applications of rules produce.

    A rule of weight w has the chance w / `total`, and the word itself is a form with the remaining
    chance; if `total` is 0, the word always changes. Words with capitals have no forms: most are
    names or begin a sentence.
    """
    if not _is_respellable(word) or not _any_of(rules).search(word):
        return []
    changes = _rewritings(word, rules)
    forms = defaultdict[str, int](int)
    for change in changes:
        form = word[: change.start] + change.noisy + word[change.stop :]
        forms[form] = max(change.weight * (total or 100), forms[form])
    for first, second in combinations(changes, 2):
        if first.stop <= second.start:
            between, end = word[first.stop : second.start], word[second.stop :]
            form = word[: first.start] + first.noisy + between + second.noisy + end
            forms[form] = max(first.weight * second.weight * 2, forms[form])
    forms.pop(word, None)
    likeliest = _likeliest(forms, RESPELLINGS_MAX)
    stays = total * total - sum(weight for _, weight in likeliest)
    return [*likeliest, (word, stays)] if likeliest and stays > 0 else likeliest


def _is_respellable(word: str) -> bool:
    """Tell whether a word is long enough to be respelled and has only small letters."""
    return len(word) >= LETTERS_MIN and word.isalpha() and word == word.lower()


def _rewritings(word: str, rules: tuple[Rule, ...]) -> list[Rewriting]:
    """Return the changes of a word by single rules, sorted by position."""
    return sorted(
        Rewriting(*match.span(), match.expand(noisy) if "\\" in noisy else noisy, weight)
        for pattern, noisy, weight in rules
        for match in pattern.finditer(word)
    )


def _likeliest(forms: Mapping[str, int], most: int) -> Forms:
    """Return the `most` forms with the greatest weights, in descending order of weight."""
    return sorted(forms.items(), key=lambda pair: (-pair[1], pair[0]))[:most]


@dataclass(frozen=True)
class Respelling:
    """Kernel that respells words by a list and, outside the matches of the list, by rules.

    Each match and each other word has chance `rate`. `listed` and `rules` are the kernels of list
    and rules. The i-th random number of a row decides on its i-th match; the i-th number of the
    random stream "rules" decides on its i-th word. If the kernels have `words_alike` set, equal
    words get equal random numbers, so that a word is respelled everywhere or nowhere in the row.
    """

    listed: LexicalKernel
    rules: WordKernel

    def edit_row(self, row: Row, draws: RowDraws) -> list[RowEdit]:
        """Return the edits of all respelled words in one row."""
        row = row.cut(self.listed.table.matched_by)
        matches = self.listed.table.find_row(row)
        listed = self.listed.replaced_in(row, matches, draws)
        matched = set[int]()
        for first, last, _ in matches:
            matched.update(range(first, last + 1))
        others = [
            number
            for number, word in enumerate(row.words)
            if len(word) >= LETTERS_MIN and number not in matched
        ]
        key = fork(draws.key, "rules")
        limit = int(self.listed.lists[0].limits[draws.strengths["rate"]])
        return sorted(listed + self.rules.replaced(row, key, others, limit))

    def propose(self, texts: Texts, keys: U64, strengths: Strengths) -> Edits:
        """Return the edits of all respelled words in a batch of rows."""
        matches = self.listed.table.find(texts)
        ruled = self.rules.propose(texts, fork_array(keys, "rules"), strengths)
        # A word is outside all matches if the last match that starts before it also ends before it.
        stops = np.append(0, matches.stops)
        last_stop = stops.take(np.searchsorted(matches.starts, ruled.starts, side="right"))
        listed = self.listed.replaced(texts, matches, keys, strengths)
        return Edits.join([listed, ruled.keep(ruled.starts >= last_stop)])


def _phon_files(settings: Settings, _: Mapping[str, Any]) -> list[Path]:
    return existing(_LIST.of(settings.lang), _RULES.of(settings.lang))


@kernel("phon", _phon_files, _LIST.languages, kind="habit")
def phon(settings: Settings, *, rate: float = 0.15) -> Respelling:
    """Spell words as they sound: 'that was good, though' -> 'that was gud, tho'."""
    rules, limits = rules_of(_RULES.of(settings.lang)), settings.limits(rate)
    table = load_table(_LIST.of(settings.lang), parse_tsv, settings.matched_by)
    rule = partial(respelled, rules=rules, total=whole_of(_RULES.of(settings.lang)))
    ruled = WordKernel(rule, limits, words_alike=settings.words_alike, bytes_min=LETTERS_MIN)
    listed = ListRules(limits, tags="infinitive", words_alike=settings.words_alike)
    return Respelling(LexicalKernel(table, (listed,)), ruled)


# Words of another script in Latin letters.

FORMS_MAX = 8  # most Latin forms of a word; the likeliest forms are kept
WHOLE = 1 << 40  # sum of the weights of all Latin forms of a word, apart from rounding
GROUP_MAX = 4  # most letters of a group that a letter table writes as a whole
FINAL_SIGNS = "।॥։،؛؟۔"  # signs that the tokenizer takes for the last letter of a word
_LETTER_TABLES = LanguageFiles("latn.tsv")

# Letter or group of letters -> place in the word -> weighted Latin spellings.
# Places are 'start', 'end', 'word' (the letters are the whole word) and '' (anywhere).
LetterTable = Mapping[str, Mapping[str, Forms]]


@cache
def letters_of(path: Path) -> LetterTable:
    """Read a letter table from a file with the columns letters, latin, where, weight."""
    table = defaultdict[str, dict[str, Forms]](dict)
    for letters, latin, where, weight in rows_of(path):
        table[letters].setdefault(where, []).append((latin, int(weight)))
    return dict(table)


def latinised(word: str, table: LetterTable, spoken: Callable[[str], str] = str) -> Forms:
    """Return the likeliest forms of a word in Latin letters, with their weights.

    Returns [] for a word in ASCII, and if the table lacks a letter beyond ASCII. `spoken` is a
    function that first spells the word as it is spoken, such as `with_schwas` (default: no change).
    """
    plain = unicodedata.normalize("NFC", word.lower())
    core = plain.rstrip(FINAL_SIGNS)
    whole = table.get(core, {}).get("word")
    units = [whole] if whole else _units(spoken(core), table)
    if core and not units:
        return []
    units += [table.get(stop, {"": [(stop, 1)]})[""] for stop in plain[len(core) :]]
    cased = _casing_of(word)
    return [(cased(form), weight) for form, weight in _joined(units) if form and weight]


def _joined(units: Sequence[Forms]) -> Forms:
    """Return the likeliest Latin forms of a word, which join one spelling of each of its units.

    A unit is a letter or group of letters, given as its weighted Latin spellings. The weights of
    all forms, also of the unlikely ones that are dropped, sum to `WHOLE`, apart from rounding.
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
    """Return a function that gives a text the case of a word.

    The function makes the text upper-case if the word is, capitalises it if the word is
    capitalised, and else returns it unchanged.
    """
    if word.isupper() and len(word) > 1:
        return str.upper
    return title if word[:1].isupper() else str


def _units(core: str, table: LetterTable) -> list[Forms]:
    """Split a word into letters or groups in the table; return the Latin spellings of each.

    From left to right, the longest group in the table is taken. ASCII letters may be missing in the
    table and then stay. Returns [] if another letter is missing, or if all letters are ASCII.
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
_VIRAMA = "\u094d"  # sign of a consonant without a vowel
_GLIDES = "\u092f\u0930\u0932\u0935"  # y, r, l, v keep a final inherent vowel after a consonant


def with_schwas(word: str) -> str:
    """Return a Devanagari word with an added 'a' for each inherent vowel pronounced in Hindi.

    A consonant letter without a vowel sign has the inherent vowel 'a'. By the rules of Ohala
    (1983), Aspects of Hindi Phonology, it is silent at the end of a word, and between two
    consonants if a vowel precedes the first and a pronounced vowel follows the second. The word is
    processed from right to left.
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
    """Tell whether the inherent vowel of the consonant `parts[at]` of a word is pronounced.

    A part is a consonant with its signs, or another character. `spoken` tells for each part after
    `at` whether its inherent vowel is pronounced.
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
    alike = settings.words_alike
    return WordKernel(rule, settings.limits(rate), words_alike=alike, drops_joiners=True)
