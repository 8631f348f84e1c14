"""Misspellings of frequent words, so that a student knows more of them than noise has shown it.

Noise shows misspellings of some words, such as `definately`. The letters that change in them tell
how likely any word is misspelled in each way: one letter left out, added or replaced, or two
neighbours swapped (Kernighan, Church and Gale, 1990, A Spelling Correction Program Based on a Noisy
Channel Model, section 2). The likeliest misspellings of frequent words become noisy words, if no
other word is as likely, and if they are words of no language of the text.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple

from rapidfuzz.distance import Postfix, Prefix
from simplemma import is_known
from simplemma.strategies.dictionaries.dictionary_factory import SUPPORTED_LANGUAGES

from noisegen.noising.neighbours import NeighbourCounts
from noisegen.noising.profile import END, START

SHORTEST = 5  # fewest letters of a word and of its misspelling: shorter ones may be other words
KNOWN = 3  # fewest occurrences of a word in clean text
SURE = 0.8  # least share of the likeliest word among all words that a form may stand for
PRIOR = 10.0  # places that count as much as those with the same neighbours, see `_Channel.chance`
LEAST = 1e-5  # least chance of a misspelling
# A form that occurs in clean text stays, unless misspellings explain its occurrences: noisy text
# has CARELESS times as many misspellings as clean text.
CARELESS = 3.0
_CODES = dict.fromkeys(("bs", "hr", "sr"), "hbs")  # languages with another code in simplemma


class LetterSite(NamedTuple):
    """Up to two neighbouring letters of a word, and the letters before and after them.

    `letters` is empty where a letter can be added. START and END stand for the edges of the word.
    """

    before: str
    letters: str
    after: str


def likely_misspellings(
    words: Mapping[str, Mapping[str, int]],
    counts: Counter[str],
    langs: Sequence[str],
    of_one_piece: Callable[[list[str]], Collection[str]],
    most: int,
) -> dict[str, dict[str, int]]:
    """Return the `most` likeliest misspellings of frequent words: {form: {word: 1}}.

    `words` are noisy words with the words that they stand for; they show how letters change.
    `counts` counts the words of clean text in the languages `langs`; the packaged counts of these
    languages are added. `of_one_piece` selects the words of one piece, which have an embedding.
    Only these words get misspellings, and none of these words is a misspelling.
    """
    counts = sum((NeighbourCounts.load(lang).words for lang in langs), counts)
    channel = _Channel((form, max(known, key=known.__getitem__)) for form, known in words.items())
    likely: defaultdict[str, dict[str, float]] = defaultdict(dict)  # form -> word -> occurrences
    frequent = [word for word, count in counts.items() if count >= KNOWN and len(word) >= SHORTEST]
    for word in sorted(of_one_piece([word for word in frequent if word.isalpha()])):
        for form, chance in channel.misspelled(word).items():
            if len(form) >= SHORTEST and CARELESS * chance * counts[word] > counts[form]:
                likely[form][word] = chance * counts[word]
    sure = {
        form: word
        for form, meant in likely.items()
        if meant[word := max(meant, key=meant.__getitem__)] >= SURE * sum(meant.values())
    }
    forms = nlargest(2 * most, sure, key=lambda form: likely[form][sure[form]])
    known = {*words, *of_one_piece(forms)}
    forms = _unknown([form for form in forms if form not in known], langs)
    return {form: {sure[form]: 1} for form in forms[:most]}


class _Channel:
    """How likely each letter change is, by pairs of a noisy form and its word."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._changes = Counter[tuple[LetterSite, str]]()  # (site, letters written there) -> count
        self._places = Counter[LetterSite]()  # in words that have a pair
        self._written = defaultdict[str, Counter[str]](Counter)  # letters -> letters written
        self._sites = Counter[str]()  # letters -> places in these words
        seen = set[str]()
        for form, word in pairs:
            if not (form.isalpha() and word.isalpha()):
                continue
            if word not in seen:
                seen.add(word)
                self._places.update(site for _, site in _sites(word))
            if change := _change(form, word):
                site, written = change
                self._changes[change] += 1
                self._written[site.letters][written] += 1
        for site, count in self._places.items():
            self._sites[site.letters] += count

    def misspelled(self, word: str) -> dict[str, float]:
        """Return the misspellings of a word by one change, with their chances above `LEAST`."""
        forms = defaultdict[str, float](float)
        for at, site in _sites(word):
            for written, count in self._written.get(site.letters, {}).items():
                rate = count / (self._sites[site.letters] + PRIOR)
                places, changes = self._places[site], self._changes[site, written]
                form = word[:at] + written + word[at + len(site.letters) :]
                forms[form] += (changes + PRIOR * rate) / (places + PRIOR)
        return {form: chance for form, chance in forms.items() if chance > LEAST and form != word}


def _sites(word: str) -> Iterator[tuple[int, LetterSite]]:
    """Yield each site of a word with the offset of its letters."""
    framed = START + word + END
    for at in range(len(word) + 1):
        for stop in range(at, min(at + 2, len(word)) + 1):
            yield at, LetterSite(framed[at], word[at:stop], framed[stop + 1])


def _change(form: str, word: str) -> tuple[LetterSite, str] | None:
    """Return the site and the new letters if one change makes `form` of `word`, else None.

    >>> _change("recieve", "receive")
    (LetterSite(before='c', letters='ei', after='v'), 'ie')
    """
    start = Prefix.similarity(form, word)
    end = Postfix.similarity(form[start:], word[start:])
    letters, written = word[start : len(word) - end], form[start : len(form) - end]
    is_swap = len(letters) == 2 and written == letters[::-1]
    if form == word or not (is_swap or max(len(letters), len(written)) == 1):
        return None
    framed = START + word + END
    return LetterSite(framed[start], letters, framed[start + len(letters) + 1]), written


def _unknown(forms: list[str], langs: Iterable[str]) -> list[str]:
    """Return the forms that no dictionary of these languages has, in order.

    Dictionaries have inflected words too. Languages without a dictionary are left out.
    """
    for code in {_CODES.get(lang, lang) for lang in langs} & SUPPORTED_LANGUAGES:
        forms = [form for form in forms if not is_known(form, code)]
    return forms
