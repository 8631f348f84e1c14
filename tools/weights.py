"""Set the weights of word lists by what people write: how often, and in which form.

`python -m tools.weights LIST... [--lang CODE] [--set SET]...` reads pairs of real posts
(`benchmarks.real_pairs`) and rewrites the weights of `noisegen/dictionaries/CODE/LIST.tsv`. The
list stays ours: forms that the pairs have and the list lacks are not taken over. Forms of phrases
that only repeat those of their words ("you know" to "u know") go: they would hide these.

A word that occurs often enough has its forms in the proportions of the pairs, a form that they lack
at a floor; another word keeps the proportions that it has in the list. In a list with `of` in its
head the weights also say how often a form is written at all, by a writer who writes so: the odds
in the pairs times `--odds` (one writer in so many writes so). Words that are too rare to tell have
the odds of all such words; with `--by-change`, as for `phon`, a form has those of all forms with
the same change of letters ("ing" to "in", "tion" to "shun").
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path

from benchmarks.real_pairs import available
from noisegen.noise.lexicon import Entry, Lexicon
from noisegen.text.case import fold
from noisegen.text.resources import DICTIONARIES
from tools.habits import Forms, Row, rows_of

SETS = "multilexnorm2:{lang}"
WORDS_MIN = 20  # occurrences of a word whose forms are told from the pairs
PHRASE_MAX = 5  # words of a phrase
FLOOR = 0.5  # occurrences of a form that the pairs lack
PRIOR = 5  # occurrences that a word has of the chance of all words
ODDS = 10  # of a form by those who write so, against those of all
SCALE = 100  # of weights that are proportions only
UNMARKED = {("with", "w/"): 0.05}  # chances of forms that annotators leave: tools.habits --posts

Change = tuple[str, str]  # letters and what is written for them


@dataclass(frozen=True)
class Counts:
    """How often pairs have each phrase in clean text, and each form of it."""

    phrases: Counter[str]
    written: Counter[tuple[str, str]]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Counts":
        """Count phrases and forms, in lower case."""
        phrases = Counter[str]()
        for row in rows:
            words = row.clean.lower().split()
            for size in range(1, PHRASE_MAX + 1):
                phrases.update(
                    " ".join(words[at : at + size]) for at in range(len(words) + 1 - size)
                )
        written = Forms.of(rows).written
        written |= {pair: int(chance * phrases[pair[0]]) for pair, chance in UNMARKED.items()}
        return cls(phrases, written)

    def of_group(self, group: Iterable[Entry]) -> list[int]:
        """Return how often each form of a phrase is written."""
        return [self.written[fold(entry.clean), fold(entry.noisy)] for entry in group]

    def pooled(self, groups: Iterable[Sequence[Entry]], most: float) -> float:
        """Return how often phrases that occur up to `most` times are in a form of their list."""
        rare = [group for group in groups if 0 < self.phrases[fold(group[0].clean)] <= most]
        written = sum(sum(self.of_group(group)) for group in rare)
        return written / max(1, sum(self.phrases[fold(group[0].clean)] for group in rare))

    def by_change(self, entries: Iterable[Entry], prior: float) -> Callable[[Entry], float]:
        """Return how often a form is written, by all forms with the same changes of letters."""
        occurs, written = Counter[Change](), Counter[Change]()
        for entry in entries:
            found = changes(entry)
            for change in found[0] if len(found) == 1 else ():
                occurs[change] += self.phrases[fold(entry.clean)]
                written[change] += self.written[fold(entry.clean), fold(entry.noisy)]

        def chance(change: Change, prior: float) -> float:
            return (written[change] + PRIOR * prior) / (occurs[change] + PRIOR)

        return lambda entry: min(
            chance(between, chance(letters, prior)) for letters, between in changes(entry)
        )


@cache
def changes(entry: Entry) -> list[tuple[Change, Change]]:
    """Return which letters become which in a form, alone and between their neighbours."""
    clean, noisy = f" {fold(entry.clean)} ", f" {fold(entry.noisy)} "
    codes = SequenceMatcher(None, clean, noisy, autojunk=False).get_opcodes()
    return [
        ((clean[a:b], noisy[c:d]), (clean[a - 1 : b + 1], noisy[c - 1 : d + 1]))
        for code, a, b, c, d in codes
        if code != "equal"
    ]


def with_odds(chance: float, odds: float) -> float:
    """Return a chance with its odds times `odds`."""
    return odds * chance / (1 + (odds - 1) * chance)


def calibrated(
    lexicon: Lexicon, counts: Counts, odds: float = ODDS, by_change: bool = False
) -> list[Entry]:
    """Return the entries of a list with the weights that the counts give them."""
    groups, of = lexicon.by_clean(), int(lexicon.head.get("of", 0))
    rare = counts.pooled(groups.values(), WORDS_MIN - 1)
    known = counts.pooled(groups.values(), float("inf"))
    of_change = counts.by_change(lexicon.entries, rare)
    entries = list[Entry]()
    for clean, group in groups.items():
        occurs, written = counts.phrases[fold(clean)], counts.of_group(group)
        if occurs < WORDS_MIN and not of:
            entries += group
            continue
        if occurs >= WORDS_MIN:
            shares = [count or FLOOR for count in written]
            chance = with_odds((sum(written) + PRIOR * known) / (occurs + PRIOR), odds)
        elif by_change:
            shares = [with_odds(of_change(entry), odds) for entry in group]
            chance = sum(shares)
        else:
            shares, chance = [float(entry.weight) for entry in group], with_odds(rare, odds)
        whole = min(of * chance, of - len(group)) if of else SCALE
        for entry, share in zip(group, shares, strict=True):
            entries.append(entry._replace(weight=max(1, round(whole * share / (sum(shares) or 1)))))
    return entries


def rewrite(path: Path, weights: Mapping[tuple[str, str, str], int]) -> None:
    """Write the weights of entries into a list, without other entries; all else stays."""
    lines = path.read_text("utf-8").split("\n")
    header = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    columns = lines[header].split("\t")
    written = lines[: header + 1]
    for line in filter(None, lines[header + 1 :]):
        row = defaultdict(str, zip(columns, line.split("\t"), strict=False))
        if weight := weights.get((row["clean"], row["noisy"], row["pos"])):
            row["weight"] = str(weight)
            written.append("\t".join(row[column] for column in columns))
    path.write_text("\n".join([*written, ""]), "utf-8")


def only_repeats(entry: Entry, forms: Set[Change]) -> bool:
    """Tell whether a form of a phrase is made of shorter `forms`: "you know" to "u know"."""
    clean, noisy = entry.clean.split(), entry.noisy.split()
    while len(clean) > 1 and noisy and clean[-1] == noisy[-1]:
        clean, noisy = clean[:-1], noisy[:-1]
    while len(clean) > 1 and noisy and clean[0] == noisy[0]:
        clean, noisy = clean[1:], noisy[1:]
    pairs = [*zip(clean, noisy, strict=False)] if len(clean) == len(noisy) else []
    is_made = len(clean) > 1 and all(a == b or (a, b) in forms for a, b in pairs)
    is_shorter = len(clean) < len(entry.clean.split())
    return (bool(pairs) and is_made) or (is_shorter and (" ".join(clean), " ".join(noisy)) in forms)


def main() -> None:
    """Rewrite the weights of lists."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("lists", nargs="+", metavar="LIST")
    parser.add_argument("--lang", default="en", help="default: en")
    parser.add_argument("--set", action="append", dest="sets", help=f"default: {SETS}")
    parser.add_argument("--odds", type=float, default=ODDS, help=f"default: {ODDS}")
    parser.add_argument("--by-change", action="store_true", help="tell rare words by their letters")
    given = parser.parse_args()
    sets = given.sets or [SETS.format(lang=given.lang)]
    if {*sets} - {*available()}:
        parser.error(f"give sets that are here: {', '.join(available())}")
    counts = Counts.of(rows_of(sets))
    paths = [DICTIONARIES / given.lang / f"{name}.tsv" for name in given.lists]
    lists = [Lexicon.load(path) for path in paths]
    forms = {(entry.clean, entry.noisy) for lexicon in lists for entry in lexicon.entries}
    for path, lexicon in zip(paths, lists, strict=True):
        own = [entry for entry in lexicon.entries if not only_repeats(entry, forms)]
        entries = calibrated(replace(lexicon, entries=own), counts, given.odds, given.by_change)
        rewrite(path, {(e.clean, e.noisy, e.pos): e.weight for e in entries})


if __name__ == "__main__":
    main()
