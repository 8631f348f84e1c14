"""The preview of noise: before and after on a terminal, aligned column by column.

Widths are those of rich.cells; text that runs from right to left stands as it is stored.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import pyarrow as pa
from rich.columns import Columns
from rich.console import Console
from rich.style import Style
from rich.text import Text

from noisegen.augment import Request
from noisegen.augment.augment import AugmentPlan, make_plan
from noisegen.data.sources import file_input, read
from noisegen.noise.engine import add_noise
from noisegen.noise.plan import Streams
from noisegen.noise.rng import id_numbers
from noisegen.runs.folder import listed
from noisegen.text.alignment import character_errors
from noisegen.text.graphemes import Grapheme, displayed, graphemes
from noisegen.text.resources import DEMO


class ShownEdit(NamedTuple):
    """A replaced span, in characters of either side; of two transforms it names 'fing+spac'."""

    transform: str
    clean_start: int
    clean_end: int
    noisy_start: int
    noisy_end: int


@dataclass(frozen=True)
class ShownRow:
    """One row to show; the text outside `changes` is equal on both sides."""

    row_id: int | str
    clean: str
    noisy: str
    transforms: list[str]
    changes: list[ShownEdit]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, named as the columns of a shard."""
        sides = {"id": self.row_id, "clean": self.clean, "noisy": self.noisy}
        edits = [change._asdict() for change in self.changes]
        return sides | {"transforms": self.transforms, "edits": edits}


# Rows to show: given texts, the first rows of a source, or the bundled demo text.


def is_source(text: str) -> bool:
    """Tell whether an argument names a source, there or not, rather than being a text."""
    if text == "-" or text.startswith("hf:"):
        return True
    if len(text) > 1024 or " " in text:
        return False
    return Path(text).exists() or "*" in text or not file_input(Path(text)).skipped


def examples_of(request: Request, rows: int) -> list[ShownRow]:
    """Return the first rows of a request's sources, which may also be texts, with their noise."""
    given = listed(request.sources)
    texts = [source for source in given if not is_source(source)]
    sources = [str(DEMO)] if texts or not given else given
    plan = make_plan(replace(request, sources=sources, limit=rows), Path("preview"))
    if texts:
        ids = pa.array(range(len(texts)), pa.int64())
        tables = iter([pa.table({"id": ids, "clean": pa.array(texts)})])
    else:
        columns = plan.job.columns
        tables = (batch.table for task in plan.tasks() for batch in read(task, columns))
    return list(_examples(plan, tables))[:rows]


def _examples(plan: AugmentPlan, tables: Iterator[pa.Table]) -> Iterator[ShownRow]:
    for table in tables:
        clean = table["clean"].combine_chunks()
        streams = Streams(id_numbers(table["id"].combine_chunks()), plan.request.seed)
        table = table.select(["id", "clean"])
        noised = add_noise(plan.job.engine(), table, clean, streams, plan.job.protect, edits=True)
        for row in noised.to_pylist():
            changes = [ShownEdit(*edit.values()) for edit in row["edits"]]
            yield ShownRow(row["id"], row["clean"], row["noisy"], row["transforms"], changes)


def describe(request: Request) -> str:
    """Return what a run would do, in lines of text."""
    plan = make_plan(request, Path("out"))
    columns = vars(plan.job.columns)
    lines = [
        f"sources   {', '.join(str(source.path) for source in plan.inputs)}",
        f"recipe    {plan.recipe.name} ({', '.join(s.transform for s in plan.recipe.steps())})",
        f"seed      {request.seed}, copies {request.copies}, language {request.lang}",
        f"columns   {', '.join(f'{k}={v}' for k, v in columns.items() if v)}",
        f"shards    of {request.rows_per_shard:,} rows",
    ]
    return "\n".join([*lines, "nothing is written; the first rows would become:"])


# Printing.


def render(examples: Sequence[ShownRow], console: Console) -> None:
    """Print the rows, clean above noisy, and a legend of the transforms."""
    if not examples:
        console.print("no rows to show")
        return
    shown: Counter[str] = Counter()
    for example in examples:
        changes = _real_changes(example)
        shown.update(change.transform for change in changes)
        _print_example(example, changes, console)
        console.print()
    _print_legend(examples, shown, console)


_PAD = "·"
_LABELS = {"clean": "clean  ", "noisy": "noisy  ", "both": "both   ", "": "       "}


def _print_example(example: ShownRow, changes: list[ShownEdit], console: Console) -> None:
    console.print(_head(example), highlight=False)
    width = max(console.width - len(_LABELS[""]), 2)
    # Half a line, so that a word carried over and a block after it always fit into one line.
    blocks = _blocks(_pieces(example, changes), max(width // 2, 2))
    for line in _wrap(blocks, width):
        sides = [_side(line, name) for name in (("clean", "noisy") if changes else ("both",))]
        if not _has_colour(console) and any(block.transforms for block in line):
            sides.append(_carets(line))
        for side in sides:
            console.print(side, soft_wrap=True)


def _carets(line: Sequence["_Block"]) -> Text:
    carets = "".join(("^" if block.transforms else " ") * block.width for block in line)
    return Text(_LABELS[""] + carets.rstrip())


def _has_colour(console: Console) -> bool:
    return console.is_terminal and console.color_system is not None and not console.no_color


def _head(example: ShownRow) -> Text:
    row = "".join(cell.shown for cell in displayed(str(example.row_id)))
    drawn = ", ".join(example.transforms) or "no transform"
    if example.clean == example.noisy:
        changed = "nothing changed" if example.clean else "nothing changed (empty text)"
    elif not example.clean:
        changed = "clean is empty"
    else:
        changed = f"CER {character_errors(example.clean, example.noisy) / len(example.clean):.1%}"
    return Text(f"row {row}  {drawn}  {changed}", style="dim")


# From changes to pieces.


def _real_changes(example: ShownRow) -> list[ShownEdit]:
    """Return the changes in order, without those that replace a text by itself."""
    changes = sorted(example.changes, key=lambda change: change[1:])
    return [change for change in changes if len(set(_texts(example, change))) == 2]


def _texts(example: ShownRow, change: ShownEdit) -> tuple[str, str]:
    clean = example.clean[change.clean_start : change.clean_end]
    return clean, example.noisy[change.noisy_start : change.noisy_end]


class _Piece(NamedTuple):
    """Text of both sides, equal where `transforms` is empty."""

    clean: str
    noisy: str
    transforms: str


def _pieces(example: ShownRow, changes: list[ShownEdit]) -> Iterator[_Piece]:
    """Yield the row from left to right; no piece begins or ends inside a grapheme."""
    done = 0
    for change in _whole_graphemes(example, changes):
        same = example.clean[done : change.clean_start]
        yield _Piece(same, same, "")
        yield _Piece(*_texts(example, change), change.transform)
        done = change.clean_end
    yield _Piece(example.clean[done:], example.clean[done:], "")


def _whole_graphemes(example: ShownRow, changes: list[ShownEdit]) -> list[ShownEdit]:
    """Widen changes until they cut no grapheme of either side, joining those that then meet."""
    clean, noisy = _edges(example.clean), _edges(example.noisy)
    ahead, done = changes[::-1], []
    while ahead:
        transforms, start, stop, noisy_start, noisy_end = ahead.pop()
        while start not in clean or noisy_start not in noisy:
            start, noisy_start = start - 1, noisy_start - 1
        while stop not in clean or noisy_end not in noisy:
            if ahead and ahead[-1].clean_start == stop:
                transform, _, stop, _, noisy_end = ahead.pop()
                transforms = "+".join(
                    dict.fromkeys([*transforms.split("+"), *transform.split("+")])
                )
            else:
                stop, noisy_end = stop + 1, noisy_end + 1
        done.append(ShownEdit(transforms, start, stop, noisy_start, noisy_end))
    return done


def _edges(text: str) -> set[int]:
    """Return the offsets at which a grapheme begins or ends."""
    return {0, *accumulate(len(cluster) for cluster in graphemes(text))}


# Layout: blocks, wrapped into lines.


class _Block(NamedTuple):
    """Cells that stay on one line: as wide as the wider side, the other is padded."""

    clean: list[Grapheme]
    noisy: list[Grapheme]
    transforms: str

    @property
    def width(self) -> int:
        return max(_width(self.clean), _width(self.noisy))

    @property
    def is_space(self) -> bool:
        return not self.transforms and self.clean[0].text.isspace()


def _width(side: list[Grapheme]) -> int:
    return sum(cell.width for cell in side)


def _blocks(pieces: Iterator[_Piece], limit: int) -> Iterator[_Block]:
    """Yield the unchanged graphemes and the changes; a change over `limit` columns is cut."""
    for piece in pieces:
        if not piece.transforms:
            yield from (_Block([cell], [cell], "") for cell in displayed(piece.clean))
            continue
        clean, noisy = displayed(piece.clean, changed=True), displayed(piece.noisy, changed=True)
        while clean or noisy:
            heads = _fitting(clean, limit), _fitting(noisy, limit)
            yield _Block(clean[: heads[0]], noisy[: heads[1]], piece.transforms)
            clean, noisy = clean[heads[0] :], noisy[heads[1] :]


def _fitting(side: list[Grapheme], limit: int) -> int:
    """Return how many cells fit, but at least one."""
    return max(sum(total <= limit for total in accumulate(cell.width for cell in side)), 1)


def _wrap(blocks: Iterator[_Block], width: int) -> Iterator[list[_Block]]:
    """Yield lines, broken after a space where the word begun there is shorter than half a line."""
    line: list[_Block] = []
    used = 0
    for block in blocks:
        if line and used + block.width > width:
            space = max((i + 1 for i, part in enumerate(line) if part.is_space), default=0)
            word = sum(part.width for part in line[space:])
            carried = space and word <= width // 2 and not block.is_space
            cut = space if carried else len(line)
            yield line[:cut]
            line = line[cut:]
            used = sum(part.width for part in line)
        line.append(block)
        used += block.width
    if line:
        yield line


def _side(line: list[_Block], side: str) -> Text:
    text = Text().append(_LABELS[side], "dim")
    for block in line:
        shown = block.noisy if side == "noisy" else block.clean
        for number, cell in enumerate(shown):
            text.append(cell.shown, _style(block.transforms, number / len(shown)))
        text.append(_PAD * (block.width - _width(shown)), "dim")
    return text


# Colours and legend.

# Paul Tol's 'light' scheme: made for black text on coloured ground, told apart by the colour-blind.
_GROUNDS = ("#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33", "#aaaa00")
_ORDER = (
    "fing", "leet", "spac", "spel", "homo", "abr1", "slng", "dysl", "abr2", "abr3", "cont", "week",
)  # fmt: skip


def _style(transforms: str, part: float = 0.0) -> Style:
    """Return the style at a part, 0 to 1, of a span: its transforms share it from left to right."""
    if not transforms:
        return Style()
    names = transforms.split("+")
    name = names[int(part * len(names))]
    number = _ORDER.index(name) if name in _ORDER else crc32(name.encode())
    underline = bool(number // len(_GROUNDS) % 2)
    ground = _GROUNDS[number % len(_GROUNDS)]
    return Style(color="black", bgcolor=ground, underline=underline, bold=len(names) > 1)


def _print_legend(examples: Sequence[ShownRow], shown: Counter[str], console: Console) -> None:
    changed = sum(example.clean != example.noisy for example in examples)
    ending = "; changes by transform:" if shown else ""
    rows = f"{len(examples):,} row{'s' * (len(examples) != 1)}, {changed:,} changed{ending}"
    console.print(Text(rows, "dim"))
    entries = []
    for transforms in sorted(shown, key=lambda transforms: (-shown[transforms], transforms)):
        entry = Text()
        if _has_colour(console):
            entry.append(" a", _style(transforms)).append("b ", _style(transforms, 0.99)).append(
                " "
            )
        entries.append(entry.append(f"{transforms.replace('+', ' + ')} {shown[transforms]:,}"))
    console.print(Columns(entries, padding=(0, 3)))
