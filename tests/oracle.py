"""The slow, obvious engine: one row, Python strings, one draw after another.

It shares with the package the word lists, the recipe's grammar and the scalar draws, nothing else:
no kernel, no array, no offsets in bytes. `agree` compares the engine with it.
"""

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from noisegen.noise import registry, tagging
from noisegen.noise.engine import Engine, add_noise
from noisegen.noise.lexical import packaged
from noisegen.noise.lexicon import POS, Entry, Lexicon, codespell_dictionary, parse_codespell
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import Recipe, Step, step_values
from noisegen.noise.registry import Settings
from noisegen.noise.rng import Draws, fraction, gap_table, row_key, stream_key, threshold
from noisegen.text.buffers import is_word
from noisegen.text.spans import PROTECTABLE, PROTECTED, protect_kinds
from noisegen.transforms import keyboard

Edit = tuple[int, int, str]


# --- draws ---------------------------------------------------------------------------------------


def stream(name: str, seed: int, row_id: int, copy: int = 0) -> Draws:
    return Draws(row_key(stream_key(seed, name, copy), row_id))


def decide(draws: Draws) -> int:
    return draws.integer() >> 16


def hits(draws: Draws, length: int, rate: Fraction) -> list[tuple[int, int]]:
    """Positions hit and the 16 bits that choose."""
    table, position, found = gap_table(rate), 0, []
    while position < length:
        draw = draws.integer()
        gap = bisect_right(table, draw >> 16)
        position += gap
        if gap < len(table):
            if position < length:
                found.append((position, draw & 0xFFFF))
            position += 1
    return found


def choose(entries: list[Entry], choice: int) -> Entry:
    sums = list(accumulate(entry.weight for entry in entries))
    return entries[bisect_right([65536 * part // sums[-1] for part in sums], choice)]


# --- recipe --------------------------------------------------------------------------------------


def plan(recipe: Recipe, seed: int, row_id: int, copy: int) -> list[Step]:
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
            if part.p < 1 and decide(gate) >= threshold(part.p):
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
def words(text: str) -> tuple[tuple[int, int], ...]:
    marks = "".join("w" if in_word(text, at) else " " for at in range(len(text)))
    return tuple(match.span() for match in re.finditer("w+", marks))


def lower(text: str) -> str:
    return "".join(
        chr(ord(c) + 32) if "A" <= c <= "Z" or ("À" <= c <= "Þ" and c != "×") else c for c in text
    )


def raised(text: str) -> str:
    return "".join(
        chr(ord(c) - 32) if "a" <= c <= "z" or ("à" <= c <= "þ" and c != "÷") else c for c in text
    )


def case_of(match: str) -> int:
    """0 as written, 1 Title, 2 UPPER."""
    if lower(match[0]) == match[0]:
        return 0
    return 2 if len(match) > 1 and all(not "a" <= match[at] <= "z" for at in (1, -1)) else 1


def case_asked(clean: str) -> int:
    """An acronym asks for capitals throughout, another key with a capital for a first one."""
    if lower(clean) == clean:
        return 0
    return 2 if len(clean) > 1 and raised(clean) == clean else 1


def recased(match: str, entry: Entry) -> str:
    noisy, case = entry.noisy, case_of(match)
    if case == 2:
        return noisy if raised(entry.clean) == entry.clean else raised(noisy)
    initials = "".join(word[0] for word in entry.clean.split(" "))
    if case == 1 and len(initials) > 1 and noisy == initials:
        return noisy
    return raised(noisy[:1]) + noisy[1:] if case else noisy


@cache
def lexicon(name: str, lang: str) -> dict[str, tuple[str, list[Entry]]]:
    if name == "spel":
        path = codespell_dictionary()
        entries = parse_codespell(path.read_bytes(), str(path)).entries
    else:
        entries = Lexicon.load(str(packaged(name)).replace("{lang}", lang)).entries
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
    return max(len(words(key)) for key in lexicon(name, lang))


def matches(text: str, name: str, lang: str) -> list[tuple[int, int]]:
    known, spans, found, reach = lexicon(name, lang), words(text), [], 0
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


def spelled(text: str, span: tuple[int, int]) -> str:
    return lower(text[slice(*span)]).replace("’", "'")


@lru_cache(maxsize=4)
def spans_at(spans: tuple[tuple[int, int], ...], end: int) -> dict[int, list[tuple[int, int]]]:
    """Words by where they begin (end 0) or stop (end 1)."""
    return {span[end]: [span] for span in spans}


def rule_tags(text: str, start: int, stop: int) -> tuple[str, str]:
    """The two likeliest tags of a match by the words one blank before and after it."""
    listed, spans = tagging.before_words(), words(text)
    before = [span for span in spans_at(spans, 1).get(start - 1, []) if text[start - 1] == " "]
    after = [span for span in spans_at(spans, 0).get(stop + 1, []) if text[stop] == " "]
    before, after = ([spelled(text, span) for span in found] for found in (before, after))
    allowed = listed.get(before[-1], ("ADV",)) if before else ("ADV",)
    if allowed[0] == "NOUN" and after and after[0] not in listed:
        allowed = allowed[::-1]
    return allowed[0], allowed[-1]


TAGS = {"abr3": "no-verb", "slng": "equal"}
CLITICS = {mark + end for mark in "'’" for end in ("m", "re", "s", "ve", "d", "ll")}


def leans_on_nothing(text: str, stop: int, noisy: str) -> bool:
    """Tell whether a clitic ends what is written and no word follows one blank later."""
    follows = text[stop : stop + 1] == " " and stop + 1 in spans_at(words(text), 0)
    return not follows and any(noisy.lower().endswith(clitic) for clitic in CLITICS)


def lexical(
    text: str, step: Step, rates: dict[str, Fraction], draws: Draws, lang: str
) -> list[Edit]:
    edits = []
    for start, stop in matches(text, step.transform, lang):
        group = lexicon(step.transform, lang)[lower(text[start:stop])][1]
        kept = group
        if step.transform in TAGS:
            best, second = rule_tags(text, start, stop)
            if TAGS[step.transform] == "no-verb":
                if best == "VERB":
                    continue
            else:
                kept = [entry for entry in group if entry.pos == best]
                kept = kept or [entry for entry in group if entry.pos == second]
        if not kept:
            continue
        if TAGS.get(step.transform) != "equal":
            first = min(kept, key=lambda entry: POS.index(entry.pos)).pos
            kept = [entry for entry in kept if entry.pos == first]
        draw = draws.integer()
        if draw >> 16 < threshold(rates["rate"]):
            noisy = recased(text[start:stop], choose(kept, draw & 0xFFFF))
            if step.transform == "cont" and leans_on_nothing(text, stop, noisy):
                continue
            own_dot = noisy.endswith(".") and text[stop : stop + 1] == "."
            edits.append((start, stop + own_dot, noisy))
    return edits


# --- characters ----------------------------------------------------------------------------------


@cache
def character_map(name: str, lang: str, layout: str | None) -> dict[str, list[Entry]]:
    if name == "fing":
        entries = keyboard.keyboard_of(lang, layout).substitutes()
    else:
        entries = Lexicon.load(str(packaged(name)).replace("{lang}", lang)).entries
    return {clean: [e for e in entries if e.clean == clean] for clean in {e.clean for e in entries}}


def byte_starts(text: str) -> dict[int, int]:
    """Byte position -> character position, for the first byte of every character."""
    sizes = accumulate((len(c.encode()) for c in text), initial=0)
    return {byte: at for at, byte in enumerate(sizes) if at < len(text)}


def substituted(
    text: str, step: Step, rates: dict[str, Fraction], draws: Draws, lang: str
) -> list[Edit]:
    known = character_map(step.transform, lang, step_values(step).get("layout"))
    starts = byte_starts(text)
    return [
        (starts[at], starts[at] + 1, choose(known[text[starts[at]]], choice).noisy)
        for at, choice in hits(draws, len(text.encode()), rates["rate"])
        if at in starts and text[starts[at]] in known
    ]


def joined_to_previous(character: str) -> bool:
    number = ord(character)
    flag_or_tone = 0x1F1E6 <= number <= 0x1F1FF or 0x1F3FB <= number <= 0x1F3FF
    return unicodedata.category(character)[0] == "M" or number == 0x200D or flag_or_tone


def blanks(
    text: str, step: Step, rates: dict[str, Fraction], draws: Draws, lang: str
) -> list[Edit]:
    starts, size = byte_starts(text), len(text.encode())
    edits = [
        (starts[at], starts[at] + 1, "")
        for at, _ in hits(draws.fork("drop"), size, rates["drop_rate"])
        if at in starts and text[starts[at]] in " \t"
    ]
    for at, _ in hits(draws.fork("add"), size, rates["add_rate"]):
        if at not in starts or starts[at] + 1 == len(text):
            continue
        here, after = text[starts[at]], text[starts[at] + 1]
        if here in " \t\r\n\u200d" or after in " \t\r\n" or joined_to_previous(after):
            continue
        edits.append((starts[at] + 1, starts[at] + 1, " "))
    return sorted(edits)


def capitals(
    text: str, step: Step, rates: dict[str, Fraction], draws: Draws, lang: str
) -> list[Edit]:
    edits = []
    for start, stop in words(text):
        if decide(draws) < threshold(rates["rate"]):
            word = text[start:stop]
            noisy = "".join(map(capital, word.replace("i", "İ") if lang == "tr" else word))
            edits += [(start, stop, noisy)] if noisy != word else []
    return edits


@cache
def capital(character: str) -> str:
    """Unicode's simple mapping: one character for one."""
    found: str = pc.utf8_upper(pa.scalar(character)).as_py()
    return found


KERNELS = {"fing": substituted, "leet": substituted, "spac": blanks, "caps": capitals}


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
    moved = []
    for low, high in spans:
        by = sum(len(new) - (stop - start) for start, stop, new in edits if stop <= low)
        moved.append((low + by, high + by))
    return moved


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
    steps = plan(recipe, seed, row_id, copy)
    transforms = {step.label: step.transform for step in recipe.steps()}
    cells = [Cell(c, at, at + 1) for at, c in enumerate(text)]
    spans = protected(text, kinds)
    for step in steps:
        current = "".join(cell.text for cell in cells)
        rates = scaled(recipe, step, seed, row_id, copy)
        draws = stream(step.label, seed, row_id, copy)
        edits = KERNELS.get(step.transform, lexical)(current, step, rates, draws, lang)
        edits = [edit for edit in edits if not touches(edit, spans)]
        spans = shifted(spans, edits)
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


# --- the engine against it -----------------------------------------------------------------------


def agree(name, rows, lang="en", seed=7, **values):
    """Assert that engine and slow twin agree on text and edits; return how many rows change."""
    kinds = protect_kinds(PROTECTED)
    recipe, clean = Recipe.of([Step(name, values)]), pa.array(rows, pa.string())
    streams = Streams(np.arange(len(rows), dtype=np.uint64), seed)
    table = add_noise(
        Engine(recipe, Settings(lang)), pa.table({"clean": clean}), clean, streams, kinds, True
    )
    for number, row in enumerate(table.to_pylist()):
        expected = noise(rows[number], recipe, seed, number, kinds, lang)
        assert row["noisy"] == expected.noisy
        assert [tuple(edit.values()) for edit in row["edits"]] == expected.edits
    return sum(a != b for a, b in zip(rows, table["noisy"].to_pylist(), strict=True))
