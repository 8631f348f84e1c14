"""Rows: texts of all scripts against what noise promises, whatever the recipe and the language.

Edits applied to the clean text give the noisy one and none of them changes nothing; protected spans
stay whole; no mark loses its base; rates of 0 change nothing; a row alone, in another order, by the
plain Python of few rows and by the oracle of the tests is noised as in its batch; every noisy
token has the label of the clean token that it came from.
"""

import random
import sys
import unicodedata
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pyarrow as pa
from conftest import SHARED

import noisegen
from campaigns.campaign import Campaign, Trial
from noisegen.augmentation.shards import carry
from noisegen.errors import UsageError
from noisegen.noising import registry
from noisegen.noising.mix import Step
from noisegen.noising.noise import engine_for
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe, recipe_names
from noisegen.testing import ODD_TEXTS
from noisegen.text.resources import DEMO
from noisegen.text.spans import PROTECTED, protect_kinds, protected_in

ROWS = 200  # of a trial
ALONE = 5  # of them that are noised again by themselves
BY_ORACLE = 10  # and by the oracle
KINDS = protect_kinds(PROTECTED)
LANGUAGES = tuple("en de fr es pt it ru uk hi ar zh ja ko tr vi nl ga is".split())  # noqa: SIM905
PACKAGE = str(Path(noisegen.__file__).parent)
ARRAYS_ALONE = ("channel", "ocr")  # transforms without a row form
TRANSFORMS = [  # of the package; lang8 needs a file
    name
    for name in registry.names()
    if registry.get(name).source.startswith(PACKAGE) and name not in ("lang8", *ARRAYS_ALONE)
]
RECIPES = [
    name
    for name in recipe_names()
    if not any(step.transform in ARRAYS_ALONE for step in Recipe.named(name).steps())
]
MARKED = (
    "https://example.org/a?b=c&d=é",
    "@you_2",
    "#Tag",
    "me.you+x@example.co.uk",
    "www.example.com/",
    "http://[::1]/x)",
    "RT @a:",
)
SIGNS = (
    "",
    " ",
    "  ",
    "\u00a0",
    "\u200b",
    "\u200d",
    "\ufeff",
    "\t",
    "\r",
    "...",
    "!?",
    "’",
    "“",
    "—",
    "$1.50",
    "14",
    "3/4",
    "i̇",
    "ǅ",
    "ﬁ",
    "ß",
    "\U0001f468\u200d\U0001f469",
    "🇩🇪",
    "👍🏽",
    "क्षि",
)


@cache
def _alphabets() -> list[str]:
    """Return the letters, marks and digits of Unicode in blocks of 256 code points."""
    blocks: dict[int, list[str]] = {}
    for number in range(sys.maxunicode + 1):
        if unicodedata.category(chr(number))[0] in "LMN":
            blocks.setdefault(number >> 8, []).append(chr(number))
    return ["".join(letters) for letters in blocks.values()]


@cache
def _real() -> list[str]:
    """Return real words: of the demo, and of corpora where they are at hand."""
    texts = [line.split("\t")[0] for line in DEMO.read_text("utf-8").splitlines()[1:]]
    for path in sorted(SHARED.glob("sib200-dev/**/*.tsv"))[:40]:
        texts += path.read_text("utf-8", "replace").splitlines()[:60]
    return [word for text in texts for word in text.split()]


def random_text(dice: random.Random) -> str:
    """Return a text of real words, letters of all scripts, signs, or an odd one."""
    if dice.random() < 0.02:
        return dice.choice(ODD_TEXTS)
    words, count = [], dice.choice((1, 3, 8, 8, 20))
    start = dice.randrange(len(_real()))
    for number in range(count):
        kind = dice.random()
        if kind < 0.7:
            words.append(_real()[(start + number) % len(_real())])
        elif kind < 0.85:
            alphabet = dice.choice(_alphabets())
            words.append("".join(dice.choices(alphabet, k=dice.randint(1, 9))))
        else:
            words.append(dice.choice(MARKED if kind < 0.93 else SIGNS))
    return dice.choice((" ", " ", " ", "", "\n")).join(words)


def make(_: None, trial: Trial) -> None:
    """Draw a recipe, or a transform at some rate, a language that has it, and texts."""
    dice = trial.random()
    name, lang = dice.choice([*RECIPES, *TRANSFORMS]), dice.choice(LANGUAGES)
    while not is_there(name, lang):
        lang = dice.choice(LANGUAGES)
    rate, seed = dice.choice((None, 0.1, 1.0)), dice.randrange(2**32)
    texts = [random_text(dice) for _ in range(ROWS)]
    trial.label, trial.fault = name, "default rate" if rate is None else f"rate {rate:g}"
    trial.counts = {"rows": ROWS}
    trial.notes = {"lang": lang, "rate": rate, "seed": seed, "texts": texts}


@cache
def is_there(name: str, lang: str) -> bool:
    """Tell whether a transform or recipe has what it needs for a language."""
    try:
        engine_for(name, lang)
    except UsageError:
        return False
    return True


def _recipe(trial: Trial, rate: float | None) -> Recipe:
    if trial.label in RECIPES:
        recipe = Recipe.named(trial.label).for_language(trial.notes["lang"])[0]
        return recipe if rate != 0 else recipe.scaled(0)
    rates = {} if rate is None else dict.fromkeys(registry.get(trial.label).rates, rate)
    return Recipe.of([Step(trial.label, rates)])


def _noised(trial: Trial, recipe: Recipe, rows: list[int]) -> list[dict[str, object]]:
    texts = [trial.notes["texts"][row] for row in rows]
    table = pa.table({"id": pa.array(rows, pa.int64()), "text": pa.array(texts, pa.string())})
    lang, seed = trial.notes["lang"], trial.notes["seed"]
    return recipe.noise_batch(table, seed, edits=True, lang=lang).to_pylist()


def check(_: None, trial: Trial) -> None:
    """Noise the texts, and see every row to the promises."""
    recipe = _recipe(trial, trial.notes["rate"])
    order = list(range(len(trial.notes["texts"])))
    rows = _noised(trial, recipe, order)
    for row in rows:
        _check_row(trial, row)
        _check_labels(trial, row)
    _check_oracle(trial, recipe, rows)
    for row in _noised(trial, _recipe(trial, 0), order):
        trial.expect(row["noisy"] == row["text"], f"rate 0 changes {row['text']!r}")
    shuffled = trial.random().sample(order, len(order))
    again = sorted(_noised(trial, recipe, shuffled), key=lambda row: row["id"])
    trial.expect(again == rows, "another order, other noise")
    for at in shuffled[:ALONE]:
        alone = _noised(trial, recipe, [at])[0]
        trial.expect(alone == rows[at], f"alone {alone!r}, in its batch {rows[at]!r}")


def _check_row(trial: Trial, row: dict[str, Any]) -> None:
    clean, noisy, edits = row["text"], row["noisy"], row["edits"]
    at, made = 0, []
    for edit in edits:
        start, stop = edit["clean_start"], edit["clean_end"]
        new = noisy[edit["noisy_start"] : edit["noisy_end"]]
        trial.expect(clean[start:stop] != new, f"an edit that changes nothing: {edit}, {row}")
        made += [clean[at:start], new]
        at = stop
    trial.expect("".join([*made, clean[at:]]) == noisy, f"the edits do not give noisy: {row}")
    trial.expect(bool(edits) == (clean != noisy), f"changed without edits: {row}")
    breaks = [sum(map(text.count, "\n\r")) for text in (clean, noisy)]
    trial.expect(breaks[1] <= breaks[0], f"a new line break: {row}")
    strays = [_strays(clean), _strays(noisy)]
    trial.expect(strays[1] <= strays[0], f"a mark without its base: {row}")
    for start, stop in protected_in(clean, KINDS):
        touched = [
            edit for edit in edits if edit["clean_start"] < stop and edit["clean_end"] > start
        ]
        trial.expect(not touched, f"{clean[start:stop]!r} is protected: {touched}, {row}")


def _strays(text: str) -> int:
    """Return how many marks and joiners begin the text or follow a space: they join nothing."""
    before = " " + text
    return sum(
        place.isspace() and (sign == "\u200d" or unicodedata.category(sign)[0] == "M")
        for place, sign in zip(before, text, strict=False)
    )


def _check_labels(trial: Trial, row: dict[str, Any]) -> None:
    """Number the tokens: each noisy one has the number of a clean one, in order, none twice."""
    tokens = row["text"].split(" ")
    words, owners = carry(tokens, [str(n) for n in range(len(tokens))], row["noisy"], row["edits"])
    numbers = [int(owner.removeprefix("I-")) for owner in owners]
    trial.expect(len(words) == len(owners), f"{len(words)} tokens, {len(owners)} labels: {row}")
    trial.expect(
        "".join("".join(words).split()) == "".join(row["noisy"].split()),
        f"the tokens {words} are not those of {row}",
    )
    trial.expect(numbers == sorted(numbers), f"the labels {owners} are out of order: {row}")
    at = 0
    for number, token in enumerate(tokens):
        start, stop, at = at, at + len(token), at + len(token) + 1
        is_touched = any(
            edit["clean_start"] <= stop and edit["clean_end"] >= start for edit in row["edits"]
        )
        own = [word for word, owner in zip(words, numbers, strict=True) if owner == number]
        trial.expect(is_touched or own == [token], f"{token!r} became {own}: {row}")


def _check_oracle(trial: Trial, recipe: Recipe, rows: list[dict[str, Any]]) -> None:
    texts, seed = trial.notes["texts"], trial.notes["seed"]
    streams = Streams(np.arange(len(texts), dtype=np.uint64), seed)
    few = engine_for(recipe, trial.notes["lang"]).noise_few(texts, streams, KINDS)
    for row, noisy in zip(rows, few, strict=True):
        trial.expect(noisy == row["noisy"], f"in plain Python {noisy!r}, by arrays {row}")
    for row in rows[:BY_ORACLE]:
        expected = oracle.noise(row["text"], recipe, seed, row["id"], KINDS, trial.notes["lang"])
        trial.expect(expected.noisy == row["noisy"], f"the oracle: {expected.noisy!r}, not {row}")
        edits = [tuple(edit.values()) for edit in row["edits"]]
        trial.expect(expected.edits == edits, f"the oracle's edits: {expected.edits}, not {row}")


ROWS_OF_ALL_SCRIPTS = Campaign("rows", nullcontext, make, check)
