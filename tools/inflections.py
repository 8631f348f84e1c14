"""Derive noisegen/dictionaries/en/infl.tsv, inflected forms that learners mix up, from public data.

Usage, in the environment of the project, with English sentences of Tatoeba (CC BY 2.0 FR), a
sentence a line:

    python tools/inflections.py SENTENCES.txt [OUT.tsv]

A form is one of the language if noisegen's list of respellings (`phon.tsv`, from CMU's dictionary)
has it, or three of the sentences. Regular forms are derived here; irregular ones, and what rules do
not give, were written for noisegen. How often endings go and come is what JFLEG's learners do: of
plurals and third persons 13 % lose their ending, of bare forms 1.4 % get one.
"""

import re
from collections import Counter
from pathlib import Path

from tools.paths import paths

TOOLS = Path(__file__).parent
DICTIONARIES = TOOLS.parent / "noisegen/dictionaries/en"
KNOWN_MIN, COMMON_MIN = 3, 5  # sentences with a form, with a base
LETTERS_MIN = 3  # least letters of a base: 'as' is not two a
PLURAL_MIN = 0.06  # forms in -s for each bare one: few adjectives have them
DROPPED = {"s": 100, "ed": 50, "ing": 20}  # weight of inflected forms, in percent of the rate
ADDED = {"s": 12, "ed": 2, "ing": 2}
IRREGULAR = {"past": 40, "participle": 25, "swapped": 3, "bare": 2, "wrong": 3}
HEAD = """# name: infl
# lang: en
# source: written for noisegen; regular forms by tools/inflections.py from sentences of Tatoeba
# license: Apache-2.0 AND CC-BY-2.0
# of: 100
# note: weight is the percent of the rate; with the rest of its chance a word stays
clean\tnoisy\tweight
"""
DOUBLED = re.compile(r"[^aeiou][aeiou][bdfglmnprt]$")  # plan, planned
_Y = re.compile(r"[^aeiou]y$")


def rows(name: str) -> list[list[str]]:
    """Return the rows of a table of tools/, without its head and header."""
    lines = (TOOLS / name).read_text("utf-8").splitlines()
    return [line.split("\t") for line in lines if not line.startswith("#")][1:]


def with_s(word: str) -> list[str]:
    """Return the plural or third person of a regular word."""
    if re.search(r"(s|x|z|ch|sh)$", word):
        return [f"{word}es"]
    if _Y.search(word):
        return [f"{word[:-1]}ies"]
    return [f"{word}es"] * word.endswith("o") + [f"{word}s"]


def with_ending(word: str, ending: str) -> list[str]:
    """Return the forms of a regular verb with -ed or -ing."""
    if _Y.search(word) and ending == "ed":
        return [f"{word[:-1]}ied"]
    if word.endswith("ie") and ending == "ing":
        return [f"{word[:-2]}ying"]
    if word.endswith("e") and not (word.endswith("ee") and ending == "ing"):
        return [word[:-1] + ending]
    return [word + word[-1] + ending] * bool(DOUBLED.search(word)) + [word + ending]


class Forms:
    """The words of a language with how often sentences have them."""

    def __init__(self, sentences: list[str]) -> None:
        words = (re.findall(r"[a-z]+", sentence.lower()) for sentence in set(sentences))
        self.count = Counter(word for found in words for word in found)
        listed = (DICTIONARIES / "phon.tsv").read_text("utf-8").splitlines()
        self.known = {line.split("\t")[0] for line in listed if not line.startswith("#")}
        self.known |= {word for word, count in self.count.items() if count >= KNOWN_MIN}
        self.known -= {row[0] for row in rows("inflections_left_out.tsv")}
        self.irregular = {row[0] for row in rows("irregular_verbs.tsv")}
        self.past = {form for row in rows("irregular_verbs.tsv") for form in row[1:3]}

    def of(self, word: str) -> dict[str, str]:
        """Return the regular forms of a bare word by their ending."""
        found = {"s": self._first(with_s(word))}
        for ending in ("ed", "ing"):
            forms = with_ending(word, ending)
            if not word.endswith("e") and f"{word}e" in self.known:
                forms = forms[:-1]  # hated is of hate, not of hat
            found[ending] = self._first(forms)
        if word in self.irregular:
            found["ed"] = ""
        return found

    def _first(self, forms: list[str]) -> str:
        return next((form for form in forms if form in self.known), "")


def regular(forms: Forms) -> list[tuple[str, str, int]]:
    """Return the entries of words with regular forms."""
    entries = []
    for word in sorted(forms.known):
        if not word.isalpha() or word in (forms.past - forms.irregular):
            continue
        if len(word) < LETTERS_MIN or forms.count[word] < COMMON_MIN:
            continue
        for ending, form in forms.of(word).items():
            if form:
                entries.append((form, word, DROPPED[ending]))
                if ending != "s" or forms.count[form] >= PLURAL_MIN * forms.count[word]:
                    entries.append((word, form, ADDED[ending]))
    return entries


def irregular() -> list[tuple[str, str, int]]:
    """Return the entries of irregular verbs."""
    entries = []
    for base, past, participle, wrong in rows("irregular_verbs.tsv"):
        entries += [(past, base, IRREGULAR["past"]), (base, past, IRREGULAR["bare"])]
        if participle not in (past, base):
            entries.append((participle, past, IRREGULAR["participle"]))
            entries.append((past, participle, IRREGULAR["swapped"]))
        if wrong:
            entries.append((past, wrong, IRREGULAR["wrong"]))
    return [entry for entry in entries if entry[0] != entry[1]]


def main(sentences: Path, out: Path) -> None:
    """Write the list."""
    written = [(clean, noisy, int(weight)) for clean, noisy, weight in rows("inflected_words.tsv")]
    derived = irregular() + regular(Forms(sentences.read_text("utf-8").splitlines()))
    weights: dict[tuple[str, str], int] = {}
    for clean, noisy, weight in [*written, *derived]:  # the handwritten list decides
        if not any(clean == own for own, *_ in written) or (clean, noisy, weight) in written:
            weights.setdefault((clean, noisy), weight)
    totals: Counter[str] = Counter()
    lines = []
    for (clean, noisy), weight in sorted(weights.items()):
        weight = min(weight, 100 - totals[clean])
        totals[clean] += weight
        if weight:
            lines.append(f"{clean}\t{noisy}\t{weight}\n")
    out.write_text(HEAD + "".join(lines), "utf-8")
    print(f"{len(lines)} entries of {len(totals)} words")


if __name__ == "__main__":
    main(*paths(__doc__, data=None, out=DICTIONARIES / "infl.tsv"))
