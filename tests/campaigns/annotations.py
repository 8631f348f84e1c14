"""Annotations: spans, alignments and labels follow the noise, in every form, nesting and file.

Noise without annotations gives the edits of every text. By them a slow and obvious second
implementation says where each span goes. Then the same rows are noised with their annotations, in
two ways of (file, shards or one file, workers): each output must have the same noise, the rows that
the edits make, no other change, and counts that add up.
"""

import json
import random
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

import noisegen
from campaigns.borders import moved as slowly_moved
from campaigns.campaign import Campaign, Trial
from campaigns.labels import check_labels, make_labels
from campaigns.rows import LANGUAGES, TRANSFORMS, is_there, random_text
from campaigns.shapes import (
    FILES,
    LAYOUTS,
    MIXED,
    OF_ROW,
    WHOLE,
    Row,
    in_shape,
    noised,
    odd_byte,
    path_of,
    read_rows,
    written,
)
from noisegen.noising import registry
from noisegen.noising.recipe import recipe_names
from noisegen.text.moves import Edit, Moves

ROWS = 300  # of a trial
# Reasons for which a row stays clean, in the order in which they are told
REASONS = ("wrong_span", "wrong_alignment", "span_lost")
NESTED = 40  # most spans of a text that are compared with each other
LABELS = "labels of tokens"
RATES = (None, 0.3, 0.7, 1.0)


# Trials.


def make(_: None, trial: Trial) -> None:
    """Draw a layout, a form, a stack of transforms or a recipe, rows, and ways to noise them."""
    dice = trial.random()
    layout = dice.choice([*LAYOUTS, LABELS])
    trial.label = layout
    trial.notes = _noise(dice)
    trial.counts = {"rows": ROWS}
    if layout == LABELS:
        make_labels(dice, trial, [random_text(dice) for _ in range(ROWS)])
        return
    form = dice.choice(LAYOUTS[layout].forms)
    files = [name for name in FILES if name != "Parquet" or form not in MIXED]
    if not LAYOUTS[layout].is_flat:  # the noise depends on the path, which begins with 'data[]'
        records = FILES[dice.choice(files)].records
        files = [name for name in files if FILES[name].records == records]
    ways = [_way(dice, files) for _ in range(dice.choice((1, 1, 2)))]
    for way in ways:  # a column of shards has no lists of numbers and texts
        way["shards"] &= form not in MIXED or FILES[way["file"]].is_table
    is_flat = not any(FILES[way["file"]].ending == "tsv" for way in ways)
    rows = [_row(dice, number, layout, form, may_break=is_flat) for number in range(ROWS)]
    copies = dice.choice((1, 1, 1, 2))
    trial.notes |= {"form": form, "rows": rows, "ways": ways, "copies": copies}
    trial.fault = form


def _noise(dice: random.Random) -> dict[str, Any]:
    """Draw a recipe or a stack of transforms, a language that has them, and a seed."""
    while True:
        lang = dice.choice(LANGUAGES)
        names = dice.sample(TRANSFORMS, dice.randint(1, 4))
        recipe = dice.choice(recipe_names()) if dice.random() < 0.25 else None
        if all(is_there(name, lang) for name in ([recipe] if recipe else names)):
            break
    steps = [_step(name, dice.choice(RATES)) for name in names]
    return {"lang": lang, "recipe": recipe or steps, "seed": dice.randrange(2**32)}


def _step(name: str, rate: float | None) -> str:
    rates = () if rate is None else registry.get(name).rates
    return f"{name}:{','.join(f'{one}={rate}' for one in rates)}" if rates else name


def _way(dice: random.Random, files: Sequence[str]) -> dict[str, Any]:
    return {
        "file": dice.choice(files),
        "shards": dice.random() < 0.4,
        "lost": dice.choice(("keep-clean", "drop")),
        "workers": 2 if dice.random() < 0.03 else 1,
        "rows_per_shard": dice.choice((151, 100_000)),
    }


def _row(
    dice: random.Random, number: int, layout: str, form: str, *, may_break: bool
) -> dict[str, Any]:
    count = LAYOUTS[layout].texts
    texts = [random_text(dice) for _ in range(count if count else dice.choice((0, 1, 2, 3, 4)))]
    if not may_break:
        texts = [" ".join(text.split()) for text in texts]
    if layout == "text" or LAYOUTS[layout].is_flat:
        texts = [text or "a" for text in texts]
    spans = [_spans(dice, text, form) for text in texts]
    if LAYOUTS[layout].align:
        spans[1] = []
    if spans and dice.random() < 0.01 and form not in WHOLE and spans[0]:
        spans[0][-1] = [0, len(texts[0]) + 5]
    row = {"id": f"r{number}", "texts": texts, "spans": spans}
    row["labels"] = [_labels(dice, *pair) for pair in zip(texts, spans, strict=True)]
    if LAYOUTS[layout].align:
        row["links"] = _links(dice, texts)
    return row


def _labels(dice: random.Random, text: str, spans: Sequence[Sequence[int]]) -> list[str]:
    """Return a label per span; some read as the text that the span covers."""
    return [
        text[slice(*span)] if dice.random() < 0.1 else f"L{dice.randint(0, 3)}" for span in spans
    ]


def _spans(dice: random.Random, text: str, form: str) -> list[list[int]]:
    """Draw spans of a text: words, single characters, nested and overlapping ones, all of it."""
    count = {"relation": 2}.get(form, 1 if form in OF_ROW else dice.choice((0, 1, 20, 60, 200)))
    found: list[list[int]] = []
    starts = [0, *(at + 1 for at, one in enumerate(text) if one.isspace()), len(text)]
    for _ in range(count):
        kind = dice.random()
        low, high = sorted(dice.choices(range(len(text) + 1), k=2))
        if kind < 0.5:  # words
            first = dice.randrange(len(starts) - 1)
            low = starts[first]
            stop = starts[min(first + dice.choice((1, 1, 2, 4)), len(starts) - 1)]
            high = max(low, stop - (stop < len(text)))
        elif kind < 0.6:
            high = min(len(text), low + 1)
        elif kind < 0.65:
            low, high = 0, len(text)
        elif kind < 0.75 and found:  # nested
            low, high = sorted(dice.choices(range(found[-1][0], found[-1][1] + 1), k=2))
        elif kind < 0.85:
            last = max(0, len(text) - 1)
            low, high = dice.choice(((0, high), (low, len(text)), (last, len(text)), (0, last)))
        if low >= high and (form in WHOLE or dice.random() < 0.9):
            low, high = 0, len(text)
        if low < high or (form not in WHOLE and text):
            found.append([low, high])
        elif form in OF_ROW:
            found.append([0, 1])
    return found


def _links(dice: random.Random, texts: Sequence[str]) -> str:
    counts = [len(text.split()) for text in texts]
    if not all(counts):
        return ""
    links = [f"{n}-{min(dice.randint(0, n + 1), counts[1] - 1)}" for n in range(counts[0])]
    if dice.random() < 0.01:
        links.append(f"{counts[0] + 3}-0")
    return " ".join(links)


# What must hold.


def check(_: None, trial: Trial) -> None:
    """Noise the rows without annotations, say where these go, and expect it in every output."""
    if trial.label == LABELS:
        check_labels(trial)
        return
    made = _Expected(trial)
    for number, way in enumerate(trial.notes["ways"]):
        folder = trial.folder / f"way-{number}"
        folder.mkdir()
        _check_way(trial, made, way, folder)


def _augment(trial: Trial, file: str, source: Path, out: Path, **options: Any) -> noisegen.Manifest:
    notes, layout = trial.notes, LAYOUTS[trial.label]
    recipe = notes["recipe"]
    noise = {"recipe": recipe} if isinstance(recipe, str) else {"transforms": recipe}
    return noisegen.augment(
        source,
        out,
        **noise,
        seed=notes["seed"],
        lang=notes["lang"],
        copies=notes["copies"],
        text_column=tuple(path_of(file, path) for path in layout.paths),
        id_column=path_of(file, "id"),
        **options,
    )


class _Expected:
    """The noise of all rows, and the rows that it makes of them with their annotations.

    `noisy` has {(id, copy): noisy texts and edits}, `rows` {(id, copy): row in its shape}, and
    `reasons` {(id, copy): why the row stays clean}.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial, self.notes = trial, trial.notes
        self.by_id = {row["id"]: row for row in self.notes["rows"]}
        self.rows: dict[Any, Row] = {}
        self.reasons: dict[Any, str] = {}
        self.noisy: dict[Any, list[str]] = {}
        file = self.notes["ways"][0]["file"]
        source = written(file, [self.clean(row) for row in self.by_id.values()], trial.folder)
        out = trial.folder / "noise"
        _augment(trial, file, source, out, edits=True)
        for made in read_rows(file, out):
            self._add(made)
        self._check_noise()

    def clean(self, row: Row) -> Row:
        """Return the row in its shape without noise."""
        return in_shape(self.trial.label, self.notes["form"], row, row["texts"], row["spans"])

    def _add(self, made: Row) -> None:
        """Move the annotations of a row by the edits of its texts."""
        trial, row = self.trial, self.by_id[made["id"]]
        key = row["id"], made.get("copy", 0)
        has_noise = noised(trial.label, row)
        texts = [text for text, has in zip(row["texts"], has_noise, strict=True) if has]
        is_list = isinstance(made["clean"], list)
        sides = [made[name] if is_list else [made[name]] for name in ("clean", "noisy", "edits")]
        trial.expect(sides[0] == texts, f"clean texts {sides[0]}, not {texts}")
        moves = iter(map(Moves, *sides[:2], [[Edit(**one) for one in some] for some in sides[2]]))
        ways = [next(moves) if has else None for has in has_noise]
        for way in filter(None, ways):
            self._check_edits(way)
        spans = [self._moved(*pair) for pair in zip(ways, row["spans"], strict=True)]
        links, reason = self._links(row, ways)
        found = {reason, *(one for some in spans for one in some if isinstance(one, str))}
        reason = next((one for one in REASONS if one in found), "")
        noisy = [way.noisy if way else text for way, text in zip(ways, row["texts"], strict=True)]
        self.noisy[key], self.reasons[key] = noisy, reason
        changed = row | {"links": links}
        self.rows[key] = (
            self.clean(row)
            if reason
            else in_shape(trial.label, self.notes["form"], changed, noisy, spans)
        )

    def _check_edits(self, way: Moves) -> None:
        at, made = 0, []
        for edit in way.edits:
            made += [way.clean[at : edit.clean_start], way.noisy[edit.noisy_start : edit.noisy_end]]
            self.trial.expect(edit.clean_start > at or not at, f"edits touch: {way.edits}")
            at = edit.clean_end
        text = "".join([*made, way.clean[at:]])
        self.trial.expect(text == way.noisy, f"the edits make {text!r}, not {way.noisy!r}")

    def _moved(self, way: Moves | None, spans: Sequence[Sequence[int]]) -> list[Any]:
        """Return each span in the noisy text, or the reason for which its row stays clean."""
        if not way:
            return [*spans]
        edits = [edit._asdict() for edit in way.edits]
        moved: dict[tuple[int, int], Any] = {}
        found: list[Any] = []
        for low, high in spans:
            if high > len(way.clean):
                found.append("wrong_span")
                continue
            self._count("spans")
            if (low, high) not in moved:
                moved[low, high] = self._checked(way, edits, (low, high))
            found.append(moved[low, high] or "span_lost")
        self._check_nested(way, moved)
        return found

    def _checked(self, way: Moves, edits: Any, span: tuple[int, int]) -> tuple[int, int] | None:
        """Move a span, and expect one of the places that the slow way allows."""
        place = way.moved(*span)
        allowed = slowly_moved(way.clean, edits, way.noisy, span)
        self.trial.expect(
            place in allowed,
            f"span {span} of {way.clean!r}, now {way.noisy!r} by {edits}: {place}, not {allowed}",
        )
        return place

    def _check_nested(self, way: Moves, moved: dict[tuple[int, int], Any]) -> None:
        """Expect spans within the text, and nested ones nested, unless they end in white space."""
        for span, place in moved.items():
            is_inside = not place or 0 <= place[0] <= place[1] <= len(way.noisy)
            self.trial.expect(is_inside, f"{span} went to {place}, outside of {way.noisy!r}")
        whole = [
            (span, place)
            for span, place in moved.items()
            if place and way.clean[slice(*span)].strip() == way.clean[slice(*span)] != ""
        ]
        for (one, place), (other, another) in combinations(whole[:NESTED], 2):
            for outer, inner, outside, inside in (
                (one, other, place, another),
                (other, one, another, place),
            ):
                if outer[0] <= inner[0] and inner[1] <= outer[1]:
                    self.trial.expect(
                        outside[0] <= inside[0] and inside[1] <= outside[1],
                        f"{inner} in {outer} became {inside} in {outside}: {way.clean!r}, now "
                        f"{way.noisy!r} by {way.edits}",
                    )

    def _links(self, row: Row, ways: Sequence[Moves | None]) -> tuple[str, str]:
        """Return the alignment of the noisy words, and the reason if it does not fit its words."""
        made: dict[str, None] = {}
        sides = [_words(text) for text in row["texts"]]
        followed: list[dict[int, list[int]]] = [{}, {}]
        for link in row.get("links", "").split():
            numbers = [int(number) for number in link.split("-")]
            if any(number >= len(side) for number, side in zip(numbers, sides, strict=True)):
                return row["links"], "wrong_alignment"
            self._count("links")
            for number, side, way, known in zip(numbers, sides, ways, followed, strict=True):
                if number not in known:
                    known[number] = self._word(way, side[number], number)
            first, second = (known[number] for number, known in zip(numbers, followed, strict=True))
            made |= {f"{one}-{other}": None for one in first for other in second}
        return " ".join(made), ""

    def _word(self, way: Moves | None, word: tuple[int, int], number: int) -> list[int]:
        """Return the numbers of the noisy words that overlap the place of a clean word."""
        if not way:
            return [number]
        edits = [edit._asdict() for edit in way.edits]
        if (place := self._checked(way, edits, word)) is None:
            return []
        words = enumerate(_words(way.noisy))
        return [n for n, (low, high) in words if low < place[1] and place[0] < high]

    def _count(self, name: str) -> None:
        self.trial.counts[name] = self.trial.counts.get(name, 0) + 1

    def _check_noise(self) -> None:
        """Expect the noise of `noisegen.noise` in rows with one text in a plain column."""
        notes = self.notes
        if notes["copies"] > 1 or not LAYOUTS[self.trial.label].is_flat:
            return
        texts = [row["texts"][0] for row in self.by_id.values()]
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".* leaves out .* transforms in")
            noise = noisegen.noise(
                texts, notes["recipe"], seed=notes["seed"], id=[*self.by_id], lang=notes["lang"]
            )
        for name, text in zip(self.by_id, noise, strict=True):
            made = self.noisy[name, 0][0]
            self.trial.expect(text == made, f"noise() makes {text!r}, augment {made!r}")


def _words(text: str) -> list[tuple[int, int]]:
    """Return start and end of each word of a text."""
    at, found = 0, []
    for word in text.split():
        low = text.index(word, at)
        at = low + len(word)
        found.append((low, at))
    return found


def _check_way(trial: Trial, expected: _Expected, way: dict[str, Any], folder: Path) -> None:
    """Noise the rows with their annotations in one way, and compare all that comes out."""
    file, layout = way["file"], LAYOUTS[trial.label]
    clean = [expected.clean(row) for row in expected.by_id.values()]
    source = written(file, clean, folder)
    out = folder / ("out" if way["shards"] else f"noisy{source.suffix}")
    manifest = _augment(
        trial,
        file,
        source,
        out,
        spans=tuple(path_of(file, path) for path in layout.spans),
        spans_lost=way["lost"],
        align=path_of(file, layout.align) if layout.align else None,
        workers=way["workers"],
        rows_per_shard=way["rows_per_shard"],
    )
    made = read_rows(file, out)
    head = f"{FILES[file].records}." if FILES[file].records else ""
    made = [{name.removeprefix(head): value for name, value in row.items()} for row in made]
    wanted = dict(_wanted(trial, expected, way))
    keys = [(row["id"], int(row.get("copy", 0))) for row in made]
    if way["shards"]:
        trial.expect(
            sorted(keys) == sorted(wanted), f"{way}: rows {_difference(keys, wanted, expected)}"
        )
    else:
        trial.expect(keys == [*wanted], f"{way}: rows {_difference(keys, wanted, expected)}")
    for row, key in zip(made, keys, strict=True):
        _check_row(trial, expected, way, row, key, wanted[key])
    _check_counts(trial, expected, way, manifest, len(wanted))
    if not way["shards"] and trial.notes["copies"] == 1 and way["lost"] == "keep-clean":
        _check_bytes(trial, way, source, out)


def _wanted(trial: Trial, expected: _Expected, way: dict[str, Any]) -> Iterator[tuple[Any, Row]]:
    """Yield the keys and rows of an output in order."""
    for row in expected.by_id.values():
        for copy in range(trial.notes["copies"]):
            key = row["id"], copy
            if key in expected.rows:
                if not expected.reasons[key] or way["lost"] == "keep-clean":
                    yield key, expected.rows[key]
            elif not way["shards"] and not copy:
                yield key, expected.clean(row)  # no text in it


def _difference(made: Sequence[Any], wanted: Iterable[Any], expected: _Expected) -> str:
    """Return which rows are there too often or not often enough, and what is known of the first."""
    counts = Counter(made)
    counts.subtract(Counter([*wanted]))
    differ = [pair for pair in counts.items() if pair[1]]
    key = differ[0][0] if differ else ("", 0)
    known = expected.by_id.get(key[0]), expected.noisy.get(key), expected.reasons.get(key)
    return f"{len(made)}, too many or below 0 too few: {differ[:5]}; {known}"


def _check_row(
    trial: Trial, expected: _Expected, way: dict[str, Any], row: Row, key: Any, want: Row
) -> None:
    if way["shards"]:
        noisy = _noisy_of(trial, expected, key)
        if isinstance(made := row["noisy"], str):  # the text has the columns `clean` and `noisy`
            made, shown = [made], LAYOUTS[trial.label].paths
            want = {name: value for name, value in want.items() if name not in shown}
        trial.expect(made == noisy, f"{way}: noisy {made}, not {noisy}")
    is_table = FILES[way["file"]].is_table
    for name, value in want.items():
        seen = row[name]
        if isinstance(seen, str) and not isinstance(value, str):
            seen = json.loads(seen)
        if is_table and name == "links" and seen is None:
            seen = ""
        trial.expect(
            seen == value,
            f"{way}: {name} of {key} is {seen!r}, not {value!r}; "
            f"clean {expected.by_id[key[0]]}, noisy {expected.noisy.get(key)}, "
            f"{expected.reasons.get(key)}",
        )


def _noisy_of(trial: Trial, expected: _Expected, key: Any) -> list[str]:
    row = expected.by_id[key[0]]
    texts = row["texts"] if expected.reasons[key] else expected.noisy[key]
    return [text for text, has in zip(texts, noised(trial.label, row), strict=True) if has]


def _check_counts(
    trial: Trial,
    expected: _Expected,
    way: dict[str, Any],
    manifest: noisegen.Manifest,
    rows: int,
) -> None:
    """Expect as many rows as were counted, and every row that is not there under its reason."""
    totals, copies = manifest.totals, trial.notes["copies"]
    reasons = Counter(
        reason
        for (_, copy), reason in expected.reasons.items()
        if reason == "span_lost" or (reason and not copy)  # copies share the other reasons
    )
    if missing := len(expected.by_id) - len(expected.rows) // copies:
        reasons["missing_text"] = missing
    trial.expect(totals["rows_in"] == len(expected.by_id), f"{way}: {totals}")
    trial.expect(totals["rows"] == rows, f"{way}: {rows} rows, but {totals}")
    trial.expect(totals["dropped"] == dict(reasons), f"{way}: {totals}, not {reasons}")
    is_kept = not way["shards"]
    kept = reasons if way["lost"] == "keep-clean" else Counter(missing_text=missing)
    if is_kept:
        trial.expect(totals["as_is"] == dict(+kept), f"{way}: {totals}, not {kept}")


def _check_bytes(trial: Trial, way: dict[str, Any], source: Path, out: Path) -> None:
    """Expect equal bytes, or an equal schema, where values are equal."""
    file = FILES[way["file"]]
    if file.ending == "parquet":
        schemas = [pq.read_schema(path) for path in (source, out)]
        trial.expect(schemas[0].equals(schemas[1]), f"{way}: {schemas}")
        return
    before, after = (path.read_bytes().decode("utf-8") for path in (source, out))
    if file.is_table:  # the line with the names loses quotes that it does not need
        before, after = (text.partition("\n")[2] for text in (before, after))
    if file.ending != "tsv":
        odd = odd_byte(before, after, of_csv=file.is_table)
        trial.expect(not odd, f"{way}: {odd}")


ANNOTATIONS = Campaign("annotations", nullcontext, make, check)
