"""Preview of noise: the rows to show, from texts, from sources or from the bundled demo text."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from noisegen.augmentation import Request
from noisegen.augmentation.annotated import one_per_text
from noisegen.augmentation.catalog import demo_texts
from noisegen.augmentation.plan import AugmentPlan, make_plan
from noisegen.augmentation.shards import ShardJob
from noisegen.data.files import is_url
from noisegen.data.formats.registry import file_of
from noisegen.data.sources import is_hub, read
from noisegen.errors import UsageError
from noisegen.options import listed
from noisegen.runs.estimate import UNKNOWN, RunEstimate
from noisegen.text.languages import normalize_language
from noisegen.text.moves import Edit
from noisegen.text.resources import DEMO


@dataclass(frozen=True)
class ShownRow:
    """One row with the columns of a shard; clean and noisy text are equal outside `edits`.

    `strength` is the factor of the noise, such as 'x0.5'; '' without --strength. `copy` is the
    number of the copy; None without --copies.
    """

    id: int | str
    clean: str
    noisy: str
    transforms: list[str]
    edits: list[dict[str, Any]]
    strength: str = ""
    copy: int | None = None

    @property
    def version(self) -> str:
        """The version of the text, such as 'x0.5 copy 1'; '' if the text has one version."""
        copy = "" if self.copy is None else f"copy {self.copy}"
        return f"{self.strength} {copy}".strip()

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data, by the names of a shard's columns."""
        unset = [("strength", ""), ("copy", None)]
        return {name: value for name, value in asdict(self).items() if (name, value) not in unset}

    def beginning(self, most: int) -> "ShownRow":
        """Return the row cut after `most` clean characters.

        If the cut falls into an edit, up to `most` clean and `most` noisy characters of the edit
        are kept.
        """
        edits = [dict(edit) for edit in self.edits if edit["clean_start"] < most]
        stop = noisy_stop = most
        if edits:
            last = edits[-1]
            for side in ("clean", "noisy"):
                last[f"{side}_end"] = min(last[f"{side}_end"], last[f"{side}_start"] + most)
            behind = max(0, most - last["clean_end"])
            stop, noisy_stop = last["clean_end"] + behind, last["noisy_end"] + behind
        return replace(self, clean=self.clean[:stop], noisy=self.noisy[:noisy_stop], edits=edits)

    def texts_of(self, change: Edit) -> tuple[str, str]:
        """Return the clean and the noisy text of a change."""
        clean = self.clean[change.clean_start : change.clean_end]
        return clean, self.noisy[change.noisy_start : change.noisy_end]


# Rows to show: given texts, the first rows of a source, or the bundled demo text.


def is_source(text: str) -> bool:
    """Return whether an argument of `preview` names a source; if not, it is a text to show."""
    if text == "-" or is_hub(text) or is_url(text):
        return True
    if len(text) > 1024 or " " in text:
        return False
    return Path(text).exists() or "*" in text or not file_of(text).skipped


def examples_of(
    request: Request, rows: int, tell: Callable[[str], None] = lambda _: None
) -> list[ShownRow]:
    """Return the first rows of the sources of a request, with their noise.

    Sources may also be texts; without sources, demo texts of the language are shown. With
    `strength` or `copies`, each text comes once per factor and copy, its versions in a row. `tell`
    is called with hints for the user. Raises UsageError if some sources are texts and others are
    not.
    """
    texts = _texts_among(listed(request.sources))
    columns = {"--group-by": request.group_by, "--lang-column": request.lang_column}
    if texts and (flags := [flag for flag, name in columns.items() if name]):
        raise UsageError(f"{flags[0]} names a column of a source; a text has none")
    if texts or not listed(request.sources):
        # A plan needs a source: the demo file, which is read only if there are no texts.
        lang = request.lang or "en"
        request = replace(request, sources=(str(DEMO),), lang=lang, lang_column=None)
        texts = texts or demo_texts().get(normalize_language(lang), [])[:rows]
    plan = make_plan(replace(request, limit=rows), Path("preview"))
    for hint in plan.hints:
        tell(hint)
    tables = [_table_of(texts)] if texts else _clean_tables(plan)
    return list(chain.from_iterable(islice(_versions(plan.job, tables), rows)))


def _versions(job: ShardJob, tables: Iterable[pa.Table]) -> Iterator[tuple[ShownRow, ...]]:
    """Yield the noisy versions of each text, one per strength and copy of a job."""
    names = [column.name for column in fields(ShownRow)]
    columns = [name for name in names if name not in ("strength", "copy")]
    for table in tables:
        versions = []
        for version in job.versions:
            if version.is_clean:
                continue
            noised = one_per_text(job.noised(table, version, edits=True)).select(columns)
            strength, copy = version.strength or "", version.copy if job.copies > 1 else None
            rows = [ShownRow(**row, strength=strength, copy=copy) for row in noised.to_pylist()]
            versions.append(rows)
        yield from zip(*versions, strict=True)


def _texts_among(given: Sequence[str]) -> list[str]:
    """Return the arguments that are texts; raises UsageError if there are also sources."""
    texts = [source for source in given if not is_source(source)]
    if 0 < len(texts) < len(given):
        named = next(source for source in given if is_source(source))
        text = texts[0] if len(texts[0]) <= 40 else f"{texts[0][:37]}..."
        raise UsageError(
            f"{text!r} is a text (there is no such file) and {named!r} a source: "
            "preview one or the other"
        )
    return texts


def _table_of(texts: Sequence[str]) -> pa.Table:
    return pa.table({"id": pa.array(range(len(texts)), pa.int64()), "clean": pa.array(texts)})


def _clean_tables(plan: AugmentPlan) -> Iterator[pa.Table]:
    """Yield the input rows of a plan in tables with the columns that noise needs."""
    job = plan.job
    others = (job.group_column or "id", job.language_column or "id")
    columns = [*dict.fromkeys(["id", "clean", *others])]
    for task in plan.tasks():
        for batch in read(task.ranges, job.columns):
            yield batch.table if job.columns.is_annotated else batch.table.select(columns)


def describe(plan: AugmentPlan, expected: RunEstimate | None) -> str:
    """Return lines of text on a planned run: sources, recipe, columns, and expected output."""
    request, columns = plan.request, plan.job.columns
    transforms = dict.fromkeys(step.transform for step in plan.recipe.steps())
    uses = {
        "text": ", ".join(columns.texts),
        "id": columns.row_id,
        "labels": columns.labels,
        "spans": ", ".join(columns.spans),
        "alignment": columns.align,
        "group": request.group_by,
    }
    clean = " and the clean row" if request.with_clean else ""
    versions = f"copies {request.copies}{clean}"
    if request.strength:
        versions += f" at strength {', '.join(listed(request.strength))}"
    languages = f"language {request.lang or f'of each row in column {request.lang_column}'}"
    lines = [
        f"sources   {', '.join(str(source.path) for source in plan.inputs)}",
        f"recipe    {plan.recipe.name} ({', '.join(transforms)})",
        f"seed      {request.seed}, {versions}, {languages}",
        f"columns   {'; '.join(f'{use} {names}' for use, names in uses.items() if names)}",
        *(expected.lines() if expected else [UNKNOWN]),
    ]
    return "\n".join([*lines, "nothing is written; the first rows would become:"])
