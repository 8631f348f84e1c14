"""Make a review file: the blind sample of the first stage, and more rows for the second."""

import json
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from noisegen.errors import SourceError, UsageError
from noisegen.manifest import counted
from noisegen.registry import load_code
from noisegen.request import Request, recipe_of
from noisegen.review.candidates import Plan, candidates, is_output
from noisegen.review.choice import FIRST_STAGE, SECOND_STAGE, most_realistic
from noisegen.review.judgements import judged
from noisegen.review.sampling import Row, pools, sample, shuffled
from noisegen.review.store import Group, connect, created, reading, settled, transaction
from noisegen.review.strengths import parse_strengths

Drawn = list[tuple[Group, list[Row]]]


@dataclass(frozen=True)
class Made:
    """What was put into a review: for every group, how many rows were drawn of how many.

    `unjudged` rows of the first stage had no say in which strength is the best.
    """

    path: Path
    stage: int
    asked: int
    drawn: list[tuple[Group, int]]
    unjudged: int = 0

    @property
    def items(self) -> int:
        """How many rows were added."""
        return sum(count for _, count in self.drawn)

    def lines(self) -> list[str]:
        """Return what people should know, a line a group."""
        lines = [_line(group, count, self.asked) for group, count in self.drawn]
        if self.unjudged:
            left = counted(self.unjudged, "row")
            lines.append(f"warning: {left} of the first stage not judged yet; the best may change")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        groups = [{**group._asdict(), "drawn": count} for group, count in self.drawn]
        added = {"stage": self.stage, "items": self.items, "unjudged": self.unjudged}
        return {"out": str(self.path), **added, "groups": groups}


def _line(group: Group, count: int, asked: int) -> str:
    same = group.rows - group.changed
    if not group.changed:
        return (
            f"{group.lang}, {group.recipe} at {group.strength}: none of "
            f"{counted(group.rows, 'row')} changed; nothing drawn"
        )
    line = f"{group.lang}, {group.recipe} at {group.strength}: drew {counted(count, 'row')}"
    line += f" of {group.changed:,} changed; {same:,} of {counted(group.rows, 'row')} unchanged"
    line += f"; {group.too_long:,} too long" if group.too_long else ""
    return f"{line}; {asked - count:,} fewer than asked" if count < asked else line


def make(
    sources: str | Path | Sequence[str | Path],
    out: str | Path,
    *,
    rows: int = FIRST_STAGE,
    strengths: str = "",
    lang_column: str = "lang",
    **options: Any,
) -> Made:
    """Draw a blind sample of `rows` changed rows at every strength and write it as a review.

    `sources` are outputs of `noisegen augment`, a strength each, or clean text that is noised here
    at `strengths` ('0.05,0.1,0.2' are rates, 'x0.5,x1,x2' factors of the recipe's rates). For clean
    text `options` are the fields of `Request`: recipe, transforms, values, seed, lang, text_column,
    id_column, protect, tagger, limit, code, nlaug_data. Every language has its own sample. Raises
    NoisegenError.
    """
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    if rows < 1:
        raise UsageError(f"--rows {rows} must be at least 1")
    plan = _plan(tuple(map(str, given)), strengths, lang_column, options)
    path = Path(out)
    with created(path) as made:
        review = {"id": secrets.token_hex(8), "seed": str(plan.seed), "plan": plan.dumps()}
        made.executemany("INSERT INTO review VALUES (?, ?)", review.items())
        drawn = _drawn(plan, rows, {}, None)
        with transaction(made):
            _insert(made, drawn, plan.seed, stage=1)
    return Made(path, 1, rows, [(group, len(part)) for group, part in drawn])


def more(
    out: str | Path,
    *,
    rows: int = SECOND_STAGE,
    strength: str = "best",
    sources: Sequence[str | Path] = (),
    code: Sequence[str | Path] = (),
) -> Made:
    """Add `rows` rows of one strength to a review, none with a text that is in it.

    `strength` 'best' is for each language and recipe the one that was judged most realistic. The
    rows come from the sources of the review, or from `sources` where those have moved. `code` are
    the Python files that the review was made with: a review is data, none of it is run on its word.
    Raises NoisegenError.
    """
    path = Path(out)
    if rows < 1:
        raise UsageError(f"--more {rows} must be at least 1")
    with reading(path), closing(connect(path)) as opened:
        plan = _again(Plan.loads(settled(opened, "plan")), sources, code)
        chosen = _best(opened) if strength == "best" else _named(opened, strength)
        unjudged = _unjudged(opened) if strength == "best" else 0
        before = _newest(opened)
        drawn = _drawn(plan, rows, _texts(opened), chosen)
        with transaction(opened):
            if _newest(opened) != before:
                raise UsageError("the review was given other rows meanwhile: run again")
            _insert(opened, drawn, plan.seed, stage=2)
    return Made(path, 2, rows, [(group, len(part)) for group, part in drawn], unjudged)


def _again(plan: Plan, sources: Sequence[str | Path], code: Sequence[str | Path]) -> Plan:
    """Return the plan of a second stage, with what was named anew."""
    if plan.code and not code:
        raise UsageError(f"the review was made with --code {plan.code[0]}: name it again")
    if "-" in plan.sources and not sources:
        raise UsageError("the review was made from standard input: name its source again")
    named = _absolute(tuple(map(str, sources))) or plan.sources
    return replace(plan, sources=named, code=_absolute(tuple(map(str, code))))


def _plan(
    sources: tuple[str, ...], strengths: str, lang_column: str, options: dict[str, Any]
) -> Plan:
    if not sources:
        raise UsageError("name at least one SOURCE")
    request = Request(sources, **options)
    labels = tuple(one.label for one in parse_strengths(strengths)) if strengths else ()
    plan = Plan(
        _absolute(sources), None, labels, request.seed, request.lang, lang_column,
        request.text_column, request.id_column, request.protect, request.tagger, request.limit,
        _absolute(request.code), request.nlaug_data and str(Path(request.nlaug_data).resolve()),
    )  # fmt: skip
    outputs = [source for source in sources if is_output(source)]
    if len(outputs) == len(sources):
        _refuse_noise(request)
        return plan
    if outputs:
        raise UsageError(f"{outputs[0]!r} is an output of augment, others are not: use one kind")
    if not labels:
        raise UsageError("clean text needs --strengths, such as 0.05,0.1,0.2 or x0.5,x1,x2")
    for path in request.code:
        load_code(path)
    return replace(plan, recipe=recipe_of(request).to_dict())


def _refuse_noise(request: Request) -> None:
    """Refuse options that would go unheard, for outputs of augment have their noise."""
    bare = Request(request.sources)
    for name in ("recipe", "transforms", "values", "limit", "text_column", "id_column"):
        if getattr(request, name) not in (getattr(bare, name), {}):
            raise UsageError(f"outputs of augment have their noise and columns: leave out {name}")


def _absolute(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the sources so that they can be found again from another folder."""
    return tuple(str(Path(one).resolve()) if Path(one).exists() else one for one in sources)


def _drawn(
    plan: Plan, count: int, taken: dict[str, set[str]], only: set[tuple[str, str, str]] | None
) -> Drawn:
    """Draw rows; raises SourceError if no row of any group changed."""
    groups = max(len(plan.strengths), len(plan.sources))
    room = count * groups + max(map(len, taken.values()), default=0)
    drawn = sample(pools(candidates(plan), plan.seed, room, only), count, taken)
    if not any(rows for _, rows in drawn):
        seen = sum(group.rows for group, _ in drawn)
        raise SourceError(f"nothing to review: of {counted(seen, 'row')} none changed or is new")
    return drawn


def _insert(opened: sqlite3.Connection, drawn: Drawn, seed: int, stage: int) -> None:
    for group, _ in drawn:
        opened.execute(
            "INSERT INTO groups (lang, recipe, strength, value, rows, changed, too_long)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", group,
        )  # fmt: skip
    for group, row in shuffled(drawn, seed):
        opened.execute(
            "INSERT INTO items (stage, group_id, row_id, clean, noisy, slots) SELECT"
            " ?, id, ?, ?, ?, ? FROM groups WHERE (lang, recipe, strength) = (?, ?, ?)",
            (stage, row.row_id, row.clean, row.noisy, json.dumps(row.slots), *group.name),
        )  # fmt: skip


def _unjudged(opened: sqlite3.Connection) -> int:
    query = (
        "SELECT count(*) FROM items WHERE stage = 1"
        " AND id NOT IN (SELECT item FROM latest WHERE question = 'realism')"
    )
    return int(opened.execute(query).fetchone()[0])


def _newest(opened: sqlite3.Connection) -> int:
    return int(opened.execute("SELECT ifnull(max(id), 0) FROM items").fetchone()[0])


def _texts(opened: sqlite3.Connection) -> dict[str, set[str]]:
    """Return the clean texts in the review, by language."""
    taken: dict[str, set[str]] = {}
    query = "SELECT lang, clean FROM items JOIN groups ON groups.id = group_id"
    for lang, clean in opened.execute(query):
        taken.setdefault(lang, set()).add(clean)
    return taken


def _best(opened: sqlite3.Connection) -> set[tuple[str, str, str]]:
    """Return the most realistic group of every language and recipe; raises UsageError of none."""
    found = {name: most_realistic(ones) for name, ones in judged(opened).items()}
    if waiting := [f"{lang}, {recipe}" for (lang, recipe), one in found.items() if one is None]:
        raise UsageError(
            f"no strength is the best of {waiting[0]}: nothing is judged yet; "
            f"review first, or name one: --strength VALUE"
        )
    return {(*name, one.strength) for name, one in found.items() if one}


def _named(opened: sqlite3.Connection, strength: str) -> set[tuple[str, str, str]]:
    groups = opened.execute("SELECT lang, recipe, strength FROM groups ORDER BY id").fetchall()
    chosen = {(lang, recipe, label) for lang, recipe, label in groups if label == strength}
    if not chosen:
        known = ", ".join(dict.fromkeys(label for _, _, label in groups))
        raise UsageError(f"the review has no strength {strength!r}; it has {known}")
    return chosen
