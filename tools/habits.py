"""Count the habits of people who write posts, and of our recipes, to set the rates of recipes by.

`python -m tools.habits SET... [--noise NAME]... [--forms N]` prints, for real pairs of a language
(names of `benchmarks.real_pairs`) and for noise on their clean sides: the share of rows that show a
habit and of the places where it could; how often a row that shows it at one place shows it at
another; the writers of the rows, as a mixture of binomials with their number chosen by BIC; and the
forms of words that recipes write too often or too rarely. `--posts` prints what English posts alone
tell, without a corrected side: capitals, punctuation and spaces, which normalised tweets lack.
"""

import argparse
import csv
import gzip
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import logsumexp

from benchmarks.real_pairs import DATA, SETS, available, load
from noisegen.augmentation.on_the_fly import Noising
from noisegen.noising.recipe import Recipe
from noisegen.realism.kinds import kind_of
from noisegen.realism.two_sample import F64
from noisegen.text.alignment import TokenEdit, edits, token_spans
from noisegen.text.buffers import I64
from noisegen.transforms.keyboard import keyboard_of, languages

NOISES = ("ugc", "ugc-light", "ugc-heavy", "mix_all")
KNOWN_MIN = 2  # clean texts of a language that have a word
WRITERS_MAX, STARTS, STEPS = 10, 4, 100
SHARE_MIN = 0.005  # share of rows that show a habit by which writers differ
PRIOR = (0.02, 1.0)  # pseudo-counts of a chance: places with the habit, and without
SEEDS = 3  # copies of noise whose forms are counted
STOPS = ".!?\u2026"
SIGNS = "\u201c\u201d\u2018\u2019\u2013\u2014\u2026"
WORDS = {  # English ones; those of other languages are counted as words
    "subject": {"i", "you", "he", "she", "it", "we", "they", "this", "that", "there"},
    "article": {"a", "an", "the"},
    "auxiliary": {
        "am",
        "is",
        "are",
        "was",
        "were",
        "be",
        "been",
        "have",
        "has",
        "had",
        "do",
        "does",
        "did",
        "will",
        "would",
        "can",
        "could",
    },
    "preposition": {"to", "of", "in", "on", "at", "for", "with", "from", "by", "about"},
}
LAUGHS = re.compile(r"(?:lo+l+|lmf?ao+|rofl|(?:ha|he|hi|ja|je|ka|wk){2,}\w*|x+d+)", re.IGNORECASE)
FIRST_PERSON = re.compile(r"I(?:['\u2019]\w+)?")
LETTERS = {"you": "u", "your": "ur", "are": "r", "you're": "ur", "why": "y", "and": "n", "see": "c"}
SLIPS = ("insertion", "deletion", "substitution", "transposition", "spelling")


@dataclass(frozen=True)
class Row:
    """A text, what became of it, and its edits with their kinds."""

    clean: str
    noisy: str
    lang: str

    def habits(self) -> Iterator[tuple[str, str, str]]:
        """Yield the habit of every edit, with the text before and after."""
        for edit in edits(self.clean, self.noisy):
            before, after = edit.texts(self.clean, self.noisy)
            kind = kind_of(self.clean, self.noisy, edit, self.lang)
            yield self._habit(kind, before, after, edit), before, after

    def _habit(self, kind: str, before: str, after: str, edit: TokenEdit) -> str:
        """Return the habit of an edit: its kind, split by the ways in which people make it."""
        word, form = before.lower(), after.lower()
        if kind == "casing":
            return self._case(before, after, edit)
        if kind.startswith("punctuation"):
            return self._punctuation(kind, before, after, edit)
        if kind == "spaces":
            return "space missing" if before.isspace() and not after else "space inserted"
        if kind == "word dropped":
            return next((f"{name} dropped" for name, words in WORDS.items() if word in words), kind)
        return self._word_habit(kind, word, form)

    def _word_habit(self, kind: str, word: str, form: str) -> str:
        """Return the habit of a changed or added word, both sides in lower case."""
        if LAUGHS.fullmatch(form) and kind in ("word added", "emoticon"):
            return "laugh added"
        if word.endswith("ing") and form.rstrip("'\u2019") == word[:-1]:
            return "-in for -ing"
        if kind == "merge" and word.replace(" ", "") != form:
            return "wanna, ima, nvm"
        if LETTERS.get(word) == form:
            return "u, ur, r"
        is_known = form in vocabulary(self.lang)
        if is_known and kind in ("ending", "word replaced", *SLIPS):
            return "inflection" if kind == "ending" else "another word"
        if kind == "substitution" and self.lang in languages():
            return f"{kind}, {'near' if _is_near(word, form, self.lang) else 'far'} key"
        return kind

    def _case(self, before: str, after: str, edit: TokenEdit) -> str:
        if after[0].islower() and FIRST_PERSON.fullmatch(before):
            return "i for I"
        if after[0].islower() and self._begins_sentence(edit.clean_start):
            return "start in lower case"
        if after.islower():
            return "name in lower case"
        return "word shouted" if after.isupper() and len(after) > 1 else "capital added"

    def _begins_sentence(self, at: int) -> bool:
        before = self.clean[:at].rstrip()
        return before[-1:] in STOPS or not any(map(str.isalnum, before))

    def _punctuation(self, kind: str, before: str, after: str, edit: TokenEdit) -> str:
        is_stop = before != "" and before[0] in STOPS
        is_last = not any(map(str.isalnum, self.clean[edit.clean_stop :]))
        if is_stop and kind == "punctuation dropped":
            return "last stop dropped" if is_last else "run-on"
        if is_stop and not is_last and after == ",":
            return "run-on"
        if before == "," and not after:
            return "comma dropped"
        return "sign typed plain" if before in SIGNS and before and after.isascii() else kind

    def places(self) -> Counter[str]:
        """Return how many places of the clean text could show each habit; '' for any other."""
        spans = [span for span in token_spans(self.clean) if self.clean[span[0]].isalnum()]
        words = [self.clean[slice(*span)] for span in spans]
        first_persons = sum(map(bool, map(FIRST_PERSON.fullmatch, words)))
        starts = [start for start, _ in spans if self.clean[start].isupper()]
        sentences = sum(map(self._begins_sentence, starts))
        inner = self.clean.rstrip(STOPS + " ")
        found = Counter(
            {
                "i for I": first_persons,
                "start in lower case": sentences,
                "name in lower case": max(0, len(starts) - sentences - first_persons),
                "apostrophe": sum("'" in word or "\u2019" in word for word in words),
                "last stop dropped": int(self.clean.rstrip()[-1:] in STOPS),
                "run-on": sum(inner.count(stop) for stop in STOPS),
                "comma dropped": self.clean.count(","),
                "sign typed plain": sum(map(self.clean.count, SIGNS)),
                "-in for -ing": sum(word.lower().endswith("ing") for word in words),
                "u, ur, r": sum(word.lower() in LETTERS for word in words),
                "diacritics": sum(not word.isascii() for word in words),
                "": max(1, len(words)),
            }
        )
        for name, chosen in WORDS.items():
            found[f"{name} dropped"] = sum(word.lower() in chosen for word in words)
        return found


@cache
def vocabulary(lang: str) -> frozenset[str]:
    """Return the words that people corrected their texts to, in several rows of a language."""
    seen: Counter[str] = Counter()
    for name in available():
        for _, clean in load(name) if SETS[name].lang == lang else ():
            seen.update({clean[slice(*span)].lower() for span in token_spans(clean)})
    return frozenset(word for word, rows in seen.items() if rows >= KNOWN_MIN)


def _is_near(word: str, form: str, lang: str) -> bool:
    """Tell whether a replaced letter is beside the intended letter on the keyboard."""
    changed = next(pair for pair in zip(word, form, strict=True) if pair[0] != pair[1])
    return changed in _near(lang)


@cache
def _near(lang: str) -> frozenset[tuple[str, str]]:
    return frozenset((entry.clean, entry.noisy) for entry in keyboard_of(lang).neighbours())


@dataclass(frozen=True)
class Habits:
    """Counts per row and habit: places that show the habit, and places that could."""

    names: list[str]
    shown: I64
    places: I64

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Habits":
        """Count the habits of rows."""
        shown = [Counter(habit for habit, *_ in row.habits()) for row in rows]
        places = [row.places() for row in rows]
        names = sorted({name for counts in shown for name in counts})
        could = [
            [max(has[name], can.get(name, can[""])) for name in names]
            for has, can in zip(shown, places, strict=True)
        ]
        return cls(
            names, np.array([[has[name] for name in names] for has in shown]), np.array(could)
        )

    def take(self, names: Sequence[str]) -> "Habits":
        """Return the counts of these habits; a habit that no row shows is left out."""
        at = [self.names.index(name) if name in self.names else -1 for name in names]
        columns = [np.pad(counts, ((0, 0), (0, 1)))[:, at] for counts in (self.shown, self.places)]
        return Habits(list(names), *columns)

    @property
    def rows(self) -> F64:
        """The share of rows that show each habit."""
        return np.asarray((self.shown > 0).mean(axis=0))

    @property
    def rates(self) -> F64:
        """The share of places that show each habit."""
        return np.asarray(self.shown.sum(axis=0) / np.maximum(1, self.places.sum(axis=0)))

    @property
    def again(self) -> F64:
        """The share of other places that show a habit, of rows that show it at a place."""
        pairs = (self.shown * (self.places - 1)).sum(axis=0)
        return np.asarray((self.shown * (self.shown - 1)).sum(axis=0) / np.maximum(1, pairs))


# What posts tell without a corrected side: a habit, and what others write there.

_SHORT = {
    "u": "you",
    "ur": "your",
    "r": "are",
    "n": "and",
    "2": "to|too",
    "4": "for",
    "b4": "before",
    "ppl": "people",
    "pls|plz": "please",
    "thx|tnx": "thanks",
    "w/": "with",
    "2day": "today",
    "cuz|coz|cos|bc": "because",
    "tmrw|tmr": "tomorrow",
    "gonna": "going to",
    "wanna": "want to",
    "gotta": "got to|have to",
    "da|tha": "the",
    "dis": "this",
    "dat": "that",
}
_BARE = (
    "im|ive|dont|doesnt|didnt|cant|wont|isnt|wasnt|arent|couldnt|havent|thats|theres|youre|theyre"
)
_FULL = (
    "(?:i|you|they|that|there|do|does|did|ca|wo|is|was|are|could|have)n?['\u2019](?:m|ve|t|s|re)"
)
POST_HABITS = {
    "start in lower case": (r"\A\W*[a-z]", r"\A\W*[A-Z]"),
    "i for I": (r"\bi\b", r"\bI\b"),
    "next sentence in lower case": (r"(?<!\.)[.!?] +[a-z]", r"(?<!\.)[.!?] +[A-Z]"),
    "word shouted": (r"\b[A-Z]{4,}\b", r"\b[A-Za-z][a-z]{3,}\b"),
    "apostrophe dropped": (rf"(?i)\b(?:{_BARE})\b", rf"(?i)\b{_FULL}\b"),
    "last stop dropped": (r"\w\s*\Z", r"[.!?\u2026]\s*\Z"),
    "sign repeated": (r"(?:!{2,}|\?{2,}|[!?]{2,}|\.{2,}|,{2,})", r"(?<![!?.,])[!?.,](?![!?.,])"),
    "space missing": (r"[a-z]{2}[.,!?][A-Za-z]{2}", r"[a-z]{2}[.,!?] "),
    "space before sign": (r"\w [,.!?](?!\w)", r"\w[,.!?](?!\w)"),
    "curly quotes": (r"[\u2018\u2019\u201c\u201d]", r"['\"]"),
    "laugh": (rf"(?i)\b(?:{LAUGHS.pattern})\b", r"\Z"),
    "emoticon": (r"[:;=]-?[)(DPp]|<3|[\u2600-\u27bf\U0001f000-\U0001faff]", r"\Z"),
    "lengthening": (r"(?i)\b\w*?([a-z])\1\1\w*", r"\b\w+"),
    **{
        f"{short.replace('|', '/')} for {word.replace('|', '/')}": (
            rf"(?i)\b(?:{short})(?!\w)",
            rf"(?i)\b(?:{word})\b",
        )
        for short, word in _SHORT.items()
    },
}
NOT_WRITTEN = re.compile(r"(?:https?:|www\.)\S+|[@#]\w+|&\w+;")


def posts() -> list[str]:
    """Return English tweets of people in a region, most about nothing in particular."""
    texts = []
    for path in sorted((DATA / "crisislex").glob("T6*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = [row[1] for row in csv.reader(file) if row[2].strip() == "off-topic"]
        texts += [NOT_WRITTEN.sub("", row).strip() for row in rows if not row.startswith("RT ")]
    return [text for text in dict.fromkeys(texts) if len(text.split()) > 2]


def post_habits(texts: Sequence[str]) -> Habits:
    """Count the habits that texts alone show."""
    patterns = [tuple(map(re.compile, both)) for both in POST_HABITS.values()]
    counts = np.array(
        [[[len(p.findall(text)) for p in both] for both in patterns] for text in texts]
    )
    return Habits(list(POST_HABITS), counts[..., 0], counts.sum(axis=2))


# Writers.


@dataclass(frozen=True)
class Writers:
    """A mixture: the share of each writer, and the chance of each habit at a place."""

    shares: F64
    chances: F64
    likelihood: float  # its logarithm

    @property
    def parameters(self) -> int:
        """The number of free parameters."""
        return self.chances.size + len(self.shares) - 1


def writers_of(habits: Habits) -> list[Writers]:
    """Return the mixtures of one to `WRITERS_MAX` writers; a smaller BIC is better."""
    return [_best(habits, count) for count in range(1, WRITERS_MAX + 1)]


def bic(writers: Writers, rows: int) -> float:
    """Return the Bayesian information criterion."""
    return float(writers.parameters * np.log(rows) - 2 * writers.likelihood)


def _best(habits: Habits, count: int) -> Writers:
    fits = (_fit(habits, count, seed) for seed in range(STARTS if count > 1 else 1))
    return max(fits, key=lambda fit: fit.likelihood)


def _fit(habits: Habits, count: int, seed: int) -> Writers:
    """Fit a mixture by expectation maximisation from a random start."""
    weights = np.random.default_rng(seed).dirichlet(np.full(count, 0.3), len(habits.shown))
    likelihood = -np.inf
    for _ in range(STEPS):
        shares = weights.mean(axis=0)
        shown, places = weights.T @ habits.shown, weights.T @ habits.places
        chances = (shown + PRIOR[0]) / (places + sum(PRIOR))
        logs = habits.shown @ np.log(chances).T
        logs += (habits.places - habits.shown) @ np.log1p(-chances).T + np.log(shares + 1e-12)
        totals = logsumexp(logs, axis=1, keepdims=True)
        weights, last, likelihood = np.exp(logs - totals), likelihood, float(totals.sum())
        if likelihood - last < 1e-3:
            break
    order = np.argsort(-shares)
    return Writers(shares[order], chances[order], likelihood)


# Forms of words.


@dataclass(frozen=True)
class Forms:
    """How often words were written in each form, and how often they occur in clean text."""

    written: Counter[tuple[str, str]]
    words: Counter[str]

    @classmethod
    def of(cls, rows: Sequence[Row]) -> "Forms":
        """Count the edits of words of rows, in lower case."""
        written, words = Counter[tuple[str, str]](), Counter[str]()
        for row in rows:
            words.update(row.clean[slice(*span)].lower() for span in token_spans(row.clean))
            for _, *sides in row.habits():
                before, after = map(str.lower, sides)
                if before[:1].isalnum() and after not in ("", before):
                    written[before, after] += 1
        for before, _ in written:
            if " " in before:
                words[before] = sum(row.clean.lower().count(before) for row in rows)
        return cls(written, words)

    def chance(self, pair: tuple[str, str]) -> float:
        """Return how often an occurrence of the word is in that form."""
        return self.written[pair] / max(1, self.words[pair[0]])


# Pages.


def rows_of(names: Sequence[str], noise: str = "", seed: int = 0) -> list[Row]:
    """Return the rows of real sets, or noise on their clean sides."""
    rows = []
    for name in names:
        lang, (noisy, clean) = SETS[name].lang, zip(*load(name), strict=True)
        if noise:
            noisy = tuple(Noising(lang).noise(Recipe.named(noise), clean, seed))
        rows += [Row(*sides, lang) for sides in zip(clean, noisy, strict=True)]
    return rows


def habit_lines(sides: dict[str, Habits]) -> Iterator[str]:
    """Yield the table of habits: rows and places that show them, and whether they show again."""
    heads = (f"{name}: rows | places" for name in sides)
    yield f"| habit | {' | '.join(heads)} | again | again, ugc |"
    yield "|---|" + "---:|" * (2 * len(sides) + 2)
    names = sorted({name for side in sides.values() for name in side.names})
    taken = {side: habits.take(names) for side, habits in sides.items()}
    real = taken["real"]
    for at in np.argsort(-real.rows, kind="stable"):
        cells = [f"{side.rows[at]:.2%} | {side.rates[at]:.2%}" for side in taken.values()]
        other = taken["ugc"].again[at] if "ugc" in taken else 0
        yield f"| {names[at]} | {' | '.join(cells)} | {real.again[at]:.0%} | {other:.0%} |"


def writer_lines(habits: Habits) -> Iterator[str]:
    """Yield the writers of rows with their shares and chances."""
    habits = habits.take(
        [n for n, share in zip(habits.names, habits.rows, strict=True) if share >= SHARE_MIN]
    )
    fits = writers_of(habits)
    scores = [bic(fit, len(habits.shown)) for fit in fits]
    best = fits[int(np.argmin(scores))]
    yield "BIC by number of writers: " + ", ".join(f"{score:,.0f}" for score in scores)
    yield ""
    yield f"| habit | all | {' | '.join(f'{share:.1%}' for share in best.shares)} |"
    yield "|---|" + "---:|" * (len(best.shares) + 1)
    for at in np.argsort(-habits.rows, kind="stable"):
        cells = [f"{chance:.1%}" for chance in (habits.rates[at], *best.chances[:, at])]
        yield f"| {habits.names[at]} | {' | '.join(cells)} |"


def post_lines(noises: Sequence[str]) -> Iterator[str]:
    """Yield the habits and writers of posts, beside noise on the clean sides of web text."""
    clean = [row.clean for row in rows_of(["ud-corrected:en"])]
    sides = {"real": post_habits(posts()), "clean web text": post_habits(clean)}
    sides |= {
        noise: post_habits([row.noisy for row in rows_of(["ud-corrected:en"], noise)])
        for noise in noises
    }
    yield from habit_lines(sides)
    yield ""
    yield from writer_lines(sides["real"])


def form_lines(names: Sequence[str], noise: str, count: int) -> Iterator[str]:
    """Yield the most frequent forms, then forms that a recipe writes too often or too rarely."""
    real = Forms.of(rows_of(names))
    ours = Forms.of([row for seed in range(SEEDS) for row in rows_of(names, noise, seed)])
    over = {
        pair: (ours.chance(pair) - real.chance(pair)) * real.words[pair[0]]
        for pair in real.written | ours.written
    }
    ranked = sorted(over, key=lambda pair: over[pair])
    tables = {
        f"Most frequent {count}": [pair for pair, _ in real.written.most_common(count)],
        f"Too often in {noise}": ranked[::-1][: count // 3],
        f"Too rarely in {noise}": ranked[: count // 3],
    }
    for title, pairs in tables.items():
        yield f"\n## {title}\n\n| word | form | words | real | chance | {noise} | too many |"
        yield "|---|---|---:|---:|---:|---:|---:|"
        for pair in pairs:
            figures = f"{real.words[pair[0]]} | {real.written[pair]} | {real.chance(pair):.2%}"
            ratio = f"{ours.chance(pair):.2%} | {over[pair]:+.1f}"
            yield f"| {' | '.join(pair)} | {figures} | {ratio} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the habits and writers of sets in one language, or the forms of their words."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET")
    parser.add_argument("--noise", action="append", help="recipe to compare")
    parser.add_argument("--forms", type=int, default=0, help="print so many forms instead")
    parser.add_argument("--posts", action="store_true", help="what posts alone tell, instead")
    given = parser.parse_args(arguments)
    if {*given.sets} - {*available()} or not (given.sets or given.posts):
        parser.error(f"give sets that are here: {', '.join(available())}")
    noises = given.noise or NOISES
    if given.posts:
        print(*post_lines(noises), sep="\n")
        return
    if given.forms:
        print(*form_lines(given.sets, noises[0], given.forms), sep="\n")
        return
    sides = {name: Habits.of(rows_of(given.sets, name)) for name in noises}
    sides = {"real": Habits.of(rows_of(given.sets)), **sides}
    print(*habit_lines(sides), "", *writer_lines(sides["real"]), sep="\n")


if __name__ == "__main__":
    main()
