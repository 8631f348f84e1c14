"""The slow, obvious engine: one row, Python strings, one draw after another.

It plans the steps of a row, draws their strengths, and composes their edits. What one step proposes
is the row form of its kernel, which defines the transform. So a comparison of the engine with
`noise` compares the array form of every kernel with its row form, and passes with plain loops.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise

from noisegen.noising import registry
from noisegen.noising.lexical import packaged
from noisegen.noising.lexicon import Entry, Lexicon, codespell_dictionary, parse_codespell
from noisegen.noising.mix import Step, Writer, step_values
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import RowKernel, Settings, Value
from noisegen.noising.rng import (
    Draws,
    RowDraws,
    fraction,
    row_key,
    stream_key,
    threshold,
)
from noisegen.text.buffers import BEFORE, UNSPACED, WHOLE, is_word, joins
from noisegen.text.case import upper
from noisegen.text.languages import MATCHED_BY
from noisegen.text.rows import Row
from noisegen.text.spans import PROTECTABLE

Edit = tuple[int, int, str]


# --- draws ---------------------------------------------------------------------------------------


def stream(name: str, seed: int, row_id: int, copy: int = 0) -> Draws:
    return Draws(row_key(stream_key(seed, name, copy), row_id))


def decide(draws: Draws) -> int:
    return draws.integer() >> 16


def pick(weights: Iterable[int], choice: int) -> int:
    """Return the number of the weight that 16 bits choose."""
    sums = list(accumulate(weights))
    return bisect_right([65536 * part // sums[-1] for part in sums], choice)


def choose(entries: list[Entry], choice: int) -> Entry:
    return entries[pick((entry.weight for entry in entries), choice)]


# --- recipe --------------------------------------------------------------------------------------


def writer_of(recipe: Recipe, seed: int, row_id: int, copy: int) -> Writer:
    """The writer of a row; where there are none, one without habits."""
    if len(recipe.writers) < 2:
        return (*recipe.writers, Writer("", 1, {}))[0]
    sums = list(accumulate(writer.weight for writer in recipe.writers))
    drawn = decide(stream("writer", seed, row_id, copy))
    return recipe.writers[bisect_right([2**48 * part // sums[-1] for part in sums], drawn)]


def plan(recipe: Recipe, seed: int, row_id: int, copy: int) -> list[Step]:
    habits = writer_of(recipe, seed, row_id, copy).habits

    def visit(member, order):
        if isinstance(member, Step):
            return [(order, member)]
        chosen = None
        if member.kind == "one_of":
            weights = [part.weight for part in member.members]
            sums = list(accumulate(weights))
            draw = decide(stream(f"{member.label}/one_of", seed, row_id, copy))
            chosen = bisect_right([2**48 * part // sums[-1] for part in sums], draw)
        found = []
        for place, part in enumerate(member.members):
            gate = stream(f"{part.label}/gate", seed, row_id, copy)
            p = habits[part.label].p if part.label in habits else part.p
            if p < 1 and decide(gate) >= threshold(p):
                continue
            if chosen is not None and chosen != place:
                continue
            turn = place
            if member.kind == "shuffle":
                turn = decide(stream(f"{part.label}/order", seed, row_id, copy))
            found += visit(part, [*order, turn])
        return found

    return [step for _, step in sorted(visit(recipe.root, []), key=lambda pair: pair[0])]


def scaled(recipe: Recipe, step: Step, seed: int, row_id: int, copy: int) -> dict[str, Fraction]:
    """The rates of a step at the strength that the row draws."""
    draws = stream(f"{step.label}/strength", seed, row_id, copy)
    values = step_values(step)
    sums = list(accumulate(weight for _, weight in recipe.strength))
    found = {}
    for parameter in registry.get(step.transform).parameters.values():
        if not parameter.is_rate:
            continue
        factor = recipe.strength[0][0]
        if len(recipe.strength) > 1:
            bounds = [2**48 * part // sums[-1] for part in sums]
            factor = recipe.strength[bisect_right(bounds, decide(draws))][0]
        habits = writer_of(recipe, seed, row_id, copy).habits
        factor *= habits[step.label].strength if step.label in habits else 1
        rate = fraction(values[parameter.name])
        found[parameter.name] = rate if rate == 1 else min(Fraction(1), rate * factor)
    return found


# --- words ---------------------------------------------------------------------------------------


def in_word(text: str, at: int) -> bool:
    if is_word(text[at]):
        return True
    inside = 0 < at < len(text) - 1
    return text[at] in "'’" and inside and is_word(text[at - 1]) and is_word(text[at + 1])


@lru_cache(maxsize=4)
def words(text: str, lang: str = "en") -> tuple[tuple[int, int], ...]:
    marks = "".join("w" if in_word(text, at) else " " for at in range(len(text)))
    spans = [match.span() for match in re.finditer("w+", marks)]
    if lang not in MATCHED_BY:
        return tuple(spans)
    found = []
    for start, stop in spans:
        runs = MATCHED_BY[lang] == "runs"
        inner = [at for at in range(start + 1, stop) if is_cut(text[at - 1], text[at], runs)]
        found += pairwise([start, *inner, stop])
    return tuple(found)


def is_cut(before: str, after: str, runs: bool) -> bool:
    """Whether a word of a text without spaces ends between two characters."""
    scripts = unspaced_script(before), unspaced_script(after)
    whole = runs and scripts[0] == scripts[1] and scripts[0] in WHOLE
    is_one = joins(ord(after)) or ord(before) in BEFORE
    return max(scripts) >= 0 and not whole and not is_one


def unspaced_script(sign: str) -> int:
    scripts = [n for n, ranges in enumerate(UNSPACED) for a, b in ranges if a <= ord(sign) <= b]
    return scripts[0] if scripts else -1


def lower(text: str) -> str:
    return "".join(
        chr(ord(c) + 32) if "A" <= c <= "Z" or ("À" <= c <= "Þ" and c != "×") else c for c in text
    )


def case_of(match: str) -> int:
    """0 as written, 1 Title, 2 UPPER."""
    if lower(match[0]) == match[0]:
        return 0
    return 2 if len(match) > 1 and not any(match[at].islower() for at in (1, -1)) else 1


def case_asked(clean: str) -> int:
    """An acronym asks for capitals throughout, another key with a capital for a first one."""
    if lower(clean) == clean:
        return 0
    return 2 if len(clean) > 1 and upper(clean) == clean else 1


def stays(entries: list[Entry], of: int) -> list[Entry]:
    """What the weights of a phrase lack of a whole: the chance that it stays as it is."""
    found: dict[tuple[str, str], int] = {}
    for entry in entries if of else []:
        found[entry.clean, entry.pos] = found.get((entry.clean, entry.pos), of) - entry.weight
    return [Entry(clean, clean, rest, pos) for (clean, pos), rest in found.items() if rest]


@cache
def lexicon(name: str, lang: str) -> dict[str, tuple[str, list[Entry]]]:
    if name == "spel":
        path = codespell_dictionary()
        entries = parse_codespell(path.read_bytes(), str(path)).entries
    else:
        listed = Lexicon.load(str(packaged(name)).replace("{lang}", lang))
        entries = listed.entries + stays(listed.entries, int(listed.head.get("of", 0)))
    found: dict[str, tuple[str, list[Entry]]] = {}
    for entry in entries:
        for mark in "'’":
            key = lower(entry.clean).replace("'", mark)
            _, group = found.setdefault(key, (entry.clean, []))
            if entry not in group:
                group.append(entry)
    return found


@cache
def longest(name: str, lang: str) -> int:
    return max(len(words(key, lang)) for key in lexicon(name, lang))


def matches(text: str, name: str, lang: str) -> list[tuple[int, int]]:
    known, spans, found, reach = lexicon(name, lang), words(text, lang), [], 0
    for first in range(len(spans)):
        for last in range(min(len(spans), first + longest(name, lang)) - 1, first - 1, -1):
            start, stop = spans[first][0], spans[last][1]
            key = lower(text[start:stop])
            if key not in known:
                continue
            asks = case_asked(known[key][0])
            if start >= reach and case_of(text[start:stop]) >= asks:
                found.append((start, stop))
                reach = stop
            break
    return found


# --- the row form of a kernel --------------------------------------------------------------------


@lru_cache(maxsize=256)
def row_kernel(
    transform: str, values: tuple[tuple[str, Value], ...], lang: str, words_alike: bool
) -> RowKernel:
    made = registry.get(transform).make(Settings(lang, words_alike=words_alike), dict(values))
    assert isinstance(made, RowKernel), f"{transform} has no row form"
    return made


def proposed(
    row: Row, step: Step, rates: dict[str, Fraction], key: int, lang: str, words_alike: bool
) -> list[Edit]:
    """The edits that the row form of a step proposes."""
    values = {**step_values(step), **rates}
    kernel = row_kernel(step.transform, tuple(values.items()), lang, words_alike)
    return kernel.edit_row(row, RowDraws(key, dict.fromkeys(rates, 0)))


# --- spans and the account of edits --------------------------------------------------------------


def protected(text: str, kinds: tuple[str, ...]) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    if kinds:
        pattern = re.compile("|".join(PROTECTABLE[kind] for kind in kinds), re.IGNORECASE)
        for match in pattern.finditer(text):
            start, stop = match.span()
            start -= start > 0 and text[start - 1] == " " and (not spans or spans[-1][1] < start)
            stop += stop < len(text) and text[stop] == " "
            spans.append((start, stop))
    return spans


def touches(edit: Edit, spans: list[tuple[int, int]]) -> bool:
    start, stop, _ = edit
    if start == stop:
        return any(low < start < high for low, high in spans)
    return any(start < high and low < stop for low, high in spans)


def shifted(spans: list[tuple[int, int]], edits: list[Edit]) -> list[tuple[int, int]]:
    """Where spans are after edits, with what is written within them."""
    moved = []
    for low, high in spans:
        before = sum(len(new) - (stop - start) for start, stop, new in edits if stop <= low)
        within = sum(len(new) - (stop - start) for start, stop, new in edits if start < high)
        moved.append((low + before, high + within))
    return moved


def first_changes(
    text: str, edits: list[Edit], changed: list[tuple[int, int]], lang: str
) -> tuple[list[Edit], list[tuple[int, int]]]:
    """The edits whose words have none yet, and where these words stand."""
    kept, spans = [], []
    for start, stop, new in edits:
        near = [word for word in words(text, lang) if word[1] > start and word[0] < stop]
        near = near or [word for word in words(text, lang) if word[1] >= start and word[0] <= stop]
        low, high = min([start, *(a for a, _ in near)]), max([stop, *(b for _, b in near)])
        if not touches((low, high, new), [*changed, *spans]):
            kept.append((start, stop, new))
            spans.append((low, high))
    return kept, spans


@dataclass
class Cell:
    """A piece of the noisy text: one untouched character, or a changed span with its makers."""

    text: str
    clean_start: int
    clean_stop: int
    makers: set[str] = field(default_factory=set)


def apply(cells: list[Cell], edits: list[Edit], maker: str) -> list[Cell]:
    """Apply from the right, so that positions further left stay; changed cells that touch merge."""
    position, done = sum(len(cell.text) for cell in cells), []
    for start, stop, new in reversed(edits):
        inside: list[Cell] = []
        high = None
        while cells:
            left, right = position - len(cells[-1].text), position
            changed = bool(cells[-1].makers)
            if (start < right and left < stop) or (changed and start <= right and left <= stop):
                inside.insert(0, cells.pop())
                high = right if high is None else high
            elif left >= stop:
                done.append(cells.pop())
            else:
                break
            position = left
        edge = cells[-1].clean_stop if cells else 0
        merged = Cell(new, edge, edge, {maker})
        if inside:
            text = "".join(cell.text for cell in inside)
            before, after = (
                text[: max(0, start - position)],
                text[len(text) - max(0, high - stop) :],
            )
            makers = {maker}.union(*(cell.makers for cell in inside))
            merged = Cell(
                before + new + after, inside[0].clean_start, inside[-1].clean_stop, makers
            )
        cells.append(merged)
        position += len(merged.text)
    return cells + done[::-1]


@dataclass
class Noised:
    noisy: str
    transforms: list[str]
    edits: list[tuple[str, int, int, int, int]]


def noise(
    text: str,
    recipe: Recipe,
    seed: int,
    row_id: int,
    kinds: tuple[str, ...] = (),
    lang: str = "en",
    copy: int = 0,
) -> Noised:
    recipe = recipe.languages.get(lang, recipe)
    steps = plan(recipe, seed, row_id, copy)
    transforms = {step.label: step.transform for step in recipe.steps()}
    cells = [Cell(c, at, at + 1) for at, c in enumerate(text)]
    spans, changed = protected(text, kinds), []
    for step in steps:
        current = "".join(cell.text for cell in cells)
        rates = scaled(recipe, step, seed, row_id, copy)
        key, kind = stream(step.label, seed, row_id, copy).key, registry.get(step.transform).kind
        words_alike = bool(recipe.writers) and kind in ("habit", "script")
        # Where nothing is protected, `caps` may write a row at once: an edit that no account needs.
        row = Row(current, spans or [(len(current), len(current))])
        edits = proposed(row, step, rates, key, lang, words_alike)
        edits = [edit for edit in edits if not touches(edit, spans)]
        of_words: list[tuple[int, int]] = []
        if recipe.writers and kind in ("habit", "slip"):
            edits, of_words = first_changes(current, edits, changed, lang)
        spans, changed = shifted(spans, edits), shifted([*changed, *of_words], edits)
        changed = [(low, high) for low, high in changed if low < high]
        cells = apply(cells, edits, step.label)
    account, position = [], 0
    for cell in cells:
        stop = cell.clean_stop
        if cell.makers and cell.text != text[cell.clean_start : stop]:
            makers = [name for label, name in transforms.items() if label in cell.makers]
            names = "+".join(dict.fromkeys(makers))
            span = (cell.clean_start, stop, position, position + len(cell.text))
            account.append((names, *span))
        position += len(cell.text)
    return Noised("".join(cell.text for cell in cells), [step.transform for step in steps], account)
