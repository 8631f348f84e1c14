"""The slow, obvious engine: one row, Python strings, one draw after another.

It shares with the package the word lists, the recipe's grammar and the scalar draws, nothing else:
no kernel, no array, no offsets in bytes. `agree` compares the engine with it.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from noisegen.noising import registry, tagging
from noisegen.noising.lexical import BEHIND_GAPS, NO_VERBS, packaged
from noisegen.noising.lexicon import POS, Entry, Lexicon, codespell_dictionary, parse_codespell
from noisegen.noising.recipe import Recipe, Step, Writer, step_values
from noisegen.noising.rng import (
    GOLDEN,
    MASK,
    Draws,
    fraction,
    gap_table,
    row_key,
    stream_key,
    threshold,
)
from noisegen.text.buffers import BEFORE, UNSPACED, WHOLE, is_word, joins
from noisegen.text.languages import MATCHED_BY
from noisegen.text.rows import Row
from noisegen.text.spans import PROTECTABLE
from noisegen.transforms import keyboard

Edit = tuple[int, int, str]


# --- draws ---------------------------------------------------------------------------------------


def stream(name: str, seed: int, row_id: int, copy: int = 0) -> Draws:
    return Draws(row_key(stream_key(seed, name, copy), row_id))


class FormDraws(Draws):
    """The draws of a habit: every form has one, whatever its place."""

    def fork(self, name: str) -> "FormDraws":
        return FormDraws(super().fork(name).key)


def drawn_for(draws: Draws, form: str, lang: str) -> int:
    """The next draw, or that of this word or phrase."""
    if not isinstance(draws, FormDraws):
        return draws.integer()
    row = Row(form)
    hashes = (getattr(row, MATCHED_BY[lang]) if lang in MATCHED_BY else row).hashes
    first, last = hashes[0], hashes[-1]
    return Draws(draws.key, (first + (first ^ last) * GOLDEN) & MASK).integer()


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


def raised(text: str) -> str:
    return "".join(
        chr(ord(c) - 32) if "a" <= c <= "z" or ("à" <= c <= "þ" and c != "÷") else c for c in text
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
    return 2 if len(clean) > 1 and raised(clean) == clean else 1


def recased(match: str, entry: Entry) -> str:
    noisy, case = entry.noisy, case_of(match)
    if case == 2:
        return noisy if raised(entry.clean) == entry.clean else raised(noisy)
    initials = "".join(word[0] for word in entry.clean.split(" "))
    if case == 1 and len(initials) > 1 and noisy == initials:
        return noisy
    return raised(noisy[:1]) + noisy[1:] if case else noisy


def is_name(text: str, start: int) -> bool:
    """Whether a word has a capital within a sentence, in a row that is not all capitals."""
    spans = words(text)
    at = [span[0] for span in spans].index(start)
    if at == 0 or not text[start].isupper() or not any(text[a].islower() for a, _ in spans):
        return False
    before, gap = text[slice(*spans[at - 1])], text[spans[at - 1][1] : start]
    is_title = before[0].isupper() and len(before.encode()) <= 3
    return is_title or len(gap) < 2 or not set(gap) & set(".!?")


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
    """Tell whether a clitic ends what is written and no word follows that it can lean on."""
    behind = spans_at(words(text), 0).get(stop + 1, []) if text[stop : stop + 1] == " " else []
    follows = behind and lower(text[slice(*behind[0])]) not in BEHIND_GAPS.split()
    return not follows and any(noisy.lower().endswith(clitic) for clitic in CLITICS)


def leads_to_no_verb(text: str, start: int, stop: int, noisy: str) -> bool:
    """Tell whether "gonna" or the like would stand before a place: "going to Rome", "to the"."""
    behind = spans_at(words(text), 0).get(stop + 1, []) if text[stop : stop + 1] == " " else []
    if not behind or not lower(text[start:stop]).endswith(" to"):
        return False
    is_noun = lower(text[slice(*behind[0])]) in NO_VERBS.split() or is_name(text, stop + 1)
    return is_noun and noisy.lower().endswith(("a", "gon"))


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
        draw = drawn_for(draws, text[start:stop], lang)
        if draw >> 16 < threshold(rates["rate"]):
            chosen = choose(kept, draw & 0xFFFF)
            if chosen.noisy == chosen.clean:  # it stays
                continue
            noisy = recased(text[start:stop], chosen)
            if step.transform == "cont" and leans_on_nothing(text, stop, noisy):
                continue
            of_verb = step.transform in ("abr1", "abr2", "clip", "dial", "phon")
            if of_verb and leads_to_no_verb(text, start, stop, noisy):
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
    if step_values(step).get("by_length"):
        return counted(text, step, rates, draws, lang)
    known = character_map(step.transform, lang, step_values(step).get("layout"))
    starts = byte_starts(text)
    bare = step.transform == "leet"
    return [
        (starts[at], starts[at] + 1, choose(known[text[starts[at]]], choice).noisy)
        for at, choice in hits(draws, len(text.encode()), rates["rate"])
        if at in starts and text[starts[at]] in known
        if not (bare and joined_to_previous(text[starts[at] + 1 : starts[at] + 2] or " "))
    ]


def counted(
    text: str, step: Step, rates: dict[str, Fraction], draws: Draws, lang: str
) -> list[Edit]:
    """The letters that rate x length draws hit; the first draw of one writes."""
    known, found = character_map("leet", lang, None), dict[int, Edit]()
    fit = [
        at for at, letter in enumerate(text)
        if letter in known and not joined_to_previous(text[at + 1 : at + 2] or " ")
    ]  # fmt: skip
    for _ in range(int(len(text) * rates["rate"]) if fit else 0):
        draw = draws.integer()
        at = fit[(draw >> 32) * len(fit) >> 32]
        found.setdefault(at, (at, at + 1, choose(known[text[at]], draw & 0xFFFF).noisy))
    return sorted(found.values())


def joined_to_previous(character: str) -> bool:
    number = ord(character)
    flag_or_tone = 0x1F1E6 <= number <= 0x1F1FF or 0x1F3FB <= number <= 0x1F3FF
    is_mark = unicodedata.category(character)[0] == "M" or character in "ะาำๅະາຳ"
    return is_mark or number == 0x200D or flag_or_tone


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
        if here in " \t\r\n\u200dเแโใไເແໂໃໄ" or after in " \t\r\n" or joined_to_previous(after):
            continue
        if re.fullmatch(r"[0-9.,:]{2}", here + after) and re.search("[0-9]", here + after):
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
        draws, kind = stream(step.label, seed, row_id, copy), registry.get(step.transform).kind
        if recipe.writers and kind in ("habit", "script"):
            draws = FormDraws(draws.key)
        edits = KERNELS.get(step.transform, lexical)(current, step, rates, draws, lang)
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
