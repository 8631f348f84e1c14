"""Set the weights of word lists by what people write: how often, and in which form.

`python -m tools.weights LIST... [--lang CODE] [--set SET]...` reads pairs of real posts
(`benchmarks.real_pairs`) and rewrites the weights of `noisegen/dictionaries/CODE/LIST.tsv`. The
list stays ours: forms that the pairs have and the list lacks are not taken over. Forms of phrases
that only repeat those of their words ("you know" to "u know") go: they would hide these.

A word that occurs often enough has its forms in the proportions of the pairs, a form that they lack
at a floor; another word keeps the proportions that it has in the list. In a list with `of` in its
head the weights also say how often a form is written at all, by a writer who writes so: the chance
in the pairs times `--one-in` (one writer in so many writes so). Words too rare to tell have the
chance of all such words; with `--by-change`, as for `phon`, a form has those of all forms with
the same change of letters ("ing" to "in", "tion" to "shun").

In languages without spaces a list is counted where it matches; an entry whose two sides are equal,
a word that holds another one of the list, keeps its weight.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from statistics import fmean

from benchmarks.real_pairs import available
from noisegen.noising.lexicon import Entry, Lexicon
from noisegen.noising.phrases import build
from noisegen.text.alignment import aligned
from noisegen.text.case import fold
from noisegen.text.languages import MATCHED_BY
from noisegen.text.resources import DICTIONARIES
from noisegen.text.rows import Row as TextRow
from tools.habits import Forms, Row, rows_of

SETS = "multilexnorm2:{lang}"
WORDS_MIN = 20  # occurrences of a word whose forms are told from the pairs
PHRASE_MAX = 5  # words of a phrase
FLOOR = 0.5  # occurrences of a form that the pairs lack
PRIOR = 5  # occurrences that a word has of the chance of all words
CHANGE_PRIOR = 50  # occurrences that a change has of the chance of all: one "spyder" tells little
ONE_IN = 10  # writers has a list's forms, and all of them
SCALE = 100  # sum of weights that are proportions only
UNMARKED = {("with", "w/"): 0.05}  # chances of forms that annotators leave: tools.habits --posts

Change = tuple[str, str]  # letters and what is written for them


def by_clean(lexicon: Lexicon) -> dict[str, list[Entry]]:
    """Return the alternatives of every phrase."""
    grouped: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in lexicon.entries:
        grouped[entry.clean].append(entry)
    return dict(grouped)


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

    @classmethod
    def of_matches(cls, rows: Sequence[Row], lexicon: Lexicon, matched_by: str) -> "Counts":
        """Count the matches of a list in text without spaces, and which form became of each."""
        table, groups = build(lexicon, matched_by), by_clean(lexicon)
        phrases, written = Counter[str](), Counter[tuple[str, str]]()
        for row in rows:
            words, moved = TextRow(row.clean).cut(matched_by), Moved(row.clean, row.noisy)
            for first, last, _ in table.find_row(words):
                clean = words.phrase(first, last)
                phrases[clean] += 1
                became = moved.forms(*words.span(first, last))
                listed = [e.noisy for e in groups.get(clean, ()) if e.noisy in became]
                written.update((clean, form) for form in listed[:1] if form != clean)
        return cls(phrases, written)

    def of_group(self, group: Iterable[Entry]) -> list[int]:
        """Return how often each form of a phrase is written."""
        return [self.written[fold(entry.clean), fold(entry.noisy)] for entry in group]

    def pooled(self, groups: Iterable[Sequence[Entry]], most: float) -> float:
        """Return how often phrases that occur up to `most` times are in a form of their list."""
        rare = [group for group in groups if 0 < self.phrases[fold(group[0].clean)] <= most]
        written = sum(sum(self.of_group(group)) for group in rare)
        return written / max(1, sum(self.phrases[fold(group[0].clean)] for group in rare))

    def by_change(self, entries: Iterable[Entry]) -> Callable[[Entry], float]:
        """Return how often a form is written, by all forms with the same changes of letters.

        A change that the pairs lack has the mean of its letters between all neighbours: "g" goes
        from "going", not from "sign". Letters that they lack have the mean of all.
        """
        occurs, written = Counter[Change](), Counter[Change]()
        neighbours = defaultdict[Change, set[Change]](set)
        for entry in entries:
            found = changes(entry)
            for letters, between in found if len(found) == 1 else ():
                neighbours[letters].add(between)
                occurs[between] += self.phrases[fold(entry.clean)]
                written[between] += self.written[fold(entry.clean), fold(entry.noisy)]

        def chance(change: Change, prior: float) -> float:
            return (written[change] + CHANGE_PRIOR * prior) / (occurs[change] + CHANGE_PRIOR)

        mean = {
            letters: fmean(chance(between, 0) for between in found)
            for letters, found in neighbours.items()
        }
        rest = fmean(mean.values()) if mean else 0
        return lambda entry: min(
            chance(between, mean.get(letters, rest)) for letters, between in changes(entry)
        )


class Moved:
    """Where the places of a clean text are in the noisy one, character by character."""

    def __init__(self, clean: str, noisy: str) -> None:
        self.noisy, self.places = noisy, defaultdict[int, set[int]](set)
        for is_equal, a, b, c, d in aligned(clean, noisy):
            pairs = (
                zip(range(a, b + 1), range(c, d + 1), strict=True) if is_equal else ((a, c), (b, d))
            )
            for ours, theirs in pairs:
                self.places[ours].add(theirs)

    def forms(self, start: int, stop: int) -> set[str]:
        """Return the noisy forms of a part of the clean text."""
        starts, stops = self.places[start], self.places[stop]
        return {self.noisy[a:b] for a in starts for b in stops if a < b}


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


def calibrated(
    lexicon: Lexicon, counts: Counts, one_in: float = ONE_IN, by_change: bool = False
) -> list[Entry]:
    """Return the entries of a list with the weights that the counts give them."""
    groups, of = by_clean(lexicon), int(lexicon.head.get("of", 0))
    rare = counts.pooled(groups.values(), WORDS_MIN - 1)
    known = counts.pooled(groups.values(), float("inf"))
    of_change = counts.by_change(lexicon.entries)
    entries = list[Entry]()
    for clean, group in groups.items():
        occurs, written = counts.phrases[fold(clean)], counts.of_group(group)
        is_kept = group[0].noisy == clean
        if is_kept or (occurs < WORDS_MIN and not of):
            entries += group
            continue
        if occurs >= WORDS_MIN:
            shares = [count or FLOOR for count in written]
            chance = one_in * (sum(written) + PRIOR * known) / (occurs + PRIOR)
        elif by_change:
            shares = [one_in * of_change(entry) for entry in group]
            chance = sum(shares)
        else:
            shares, chance = [float(entry.weight) for entry in group], one_in * rare
        whole = min(of * chance, of - len(group)) if of else SCALE
        for entry, share in zip(group, shares, strict=True):
            entries.append(entry._replace(weight=max(1, round(whole * share / (sum(shares) or 1)))))
    return entries


def rewrite(path: Path, weights: Mapping[tuple[str, str, str], int]) -> None:
    """Write the weights of entries into a list, without other entries; all else stays.

    Phrases that stay as they are have no weight of their own to find: they keep theirs.
    """
    lines = path.read_text("utf-8").split("\n")
    header = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    columns = lines[header].split("\t")
    written = lines[: header + 1]
    for line in filter(None, lines[header + 1 :]):
        row = defaultdict(str, zip(columns, line.split("\t"), strict=False))
        stays = row["clean"] == row["noisy"]
        if weight := weights.get((row["clean"], row["noisy"], row["pos"])) or stays:
            row["weight"] = row["weight"] if stays else str(weight)
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
    parser.add_argument("--one-in", type=float, default=ONE_IN, help=f"default: {ONE_IN}")
    parser.add_argument("--by-change", action="store_true", help="tell rare words by their letters")
    given = parser.parse_args()
    sets = given.sets or [SETS.format(lang=given.lang)]
    if {*sets} - {*available()}:
        parser.error(f"give sets that are here: {', '.join(available())}")
    rows, matched_by = rows_of(sets), MATCHED_BY.get(given.lang)
    counts = Counts.of(rows)
    paths = [DICTIONARIES / given.lang / f"{name}.tsv" for name in given.lists]
    lists = [Lexicon.load(path) for path in paths]
    forms = {(entry.clean, entry.noisy) for lexicon in lists for entry in lexicon.entries}
    for path, lexicon in zip(paths, lists, strict=True):
        own = [entry for entry in lexicon.entries if not only_repeats(entry, forms)]
        of_list = Counts.of_matches(rows, lexicon, matched_by) if matched_by else counts
        entries = calibrated(replace(lexicon, entries=own), of_list, given.one_in, given.by_change)
        rewrite(path, {(e.clean, e.noisy, e.pos): e.weight for e in entries})


if __name__ == "__main__":
    main()
