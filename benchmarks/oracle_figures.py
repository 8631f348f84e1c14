"""Figures of meaning and language vectors, and their table over seeds.

High is wanted of meaning vectors, low of language vectors (ORACLE, Tables 3, 10 and 11).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev

from rich.console import Console

from noisegen.encoders.encoder import Vectors
from noisegen.evaluation.similarity import sts_spearman
from noisegen.evaluation.xsim_search import retrieval_accuracy
from noisegen.report.terminal import titled
from noisegen.training.heads import SIDES, Heads, applied

Figures = dict[str, float]
FORWARD, BACKWARD, STS = "forward", "backward", "sts"


@dataclass(frozen=True)
class Retrieval:
    """Vectors of sentences and their translations, row by row; `group` names the average."""

    name: str
    source: Vectors
    target: Vectors
    group: str = "retrieval"


@dataclass(frozen=True)
class Similarity:
    """Vectors of both sentences of each pair, with the score that people gave."""

    name: str
    first: Vectors
    second: Vectors
    scores: Sequence[float]


@dataclass(frozen=True)
class Sets:
    """All that heads are measured on."""

    retrieval: Sequence[Retrieval] = ()
    similarity: Sequence[Similarity] = ()


def measure(sets: Sets, head: Callable[[Vectors], Vectors]) -> Figures:
    """Return accuracies and Spearman's correlation x 100 of each set, and their means.

    Vectors that tie share their matches: language vectors that are one constant find nothing.
    Names are GROUP.forward, GROUP.backward, GROUP.forward.NAME, ..., sts, sts.NAME.
    """
    found: Figures = {}
    for one in sets.retrieval:
        there, back = retrieval_accuracy(head(one.source), head(one.target))
        found[f"{one.group}.{FORWARD}.{one.name}"] = there
        found[f"{one.group}.{BACKWARD}.{one.name}"] = back
    for two in sets.similarity:
        found[f"{STS}.{two.name}"] = sts_spearman(head(two.first), head(two.second), two.scores)
    return {**_means(found), **found}


def _means(found: Figures) -> Figures:
    groups: dict[str, list[float]] = {}
    for name, value in found.items():
        groups.setdefault(name.rpartition(".")[0], []).append(value)
    return {name: fmean(values) for name, values in groups.items()}


def measure_heads(sets: Sets, heads: Heads) -> dict[str, Figures]:
    """Return the figures of meaning and of language vectors."""
    return {side: measure(sets, applied(heads, side)) for side in SIDES}


def flat(figures: Mapping[str, Figures]) -> Figures:
    """Return figures of both sides under one name each, `meaning.sts`."""
    return {
        f"{side}.{name}": value for side, found in figures.items() for name, value in found.items()
    }


def columns_of(sets: Sets) -> list[str]:
    """Return the names of the columns of a table: of each side its groups both ways, then STS."""
    groups = dict.fromkeys(one.group for one in sets.retrieval)
    names = [f"{group}.{way}" for group in groups for way in (FORWARD, BACKWARD)]
    names += [STS] if sets.similarity else []
    return [f"{side}.{name}" for side in SIDES for name in names]


_TITLES = {FORWARD: "En→XX", BACKWARD: "XX→En", STS: "STS"}


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation (n - 1) of a figure over runs; 0 where there is one run."""

    mean: float
    sd: float
    runs: int

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.sd:.2f}" if self.runs > 1 else "")


Table = Mapping[str, Mapping[str, Spread]]  # method, figure


def over_runs(runs: Sequence[Figures]) -> dict[str, Spread]:
    """Return the spread of each figure over runs that differ by their seed."""
    columns = {name: [run[name] for run in runs] for name in runs[0]}
    return {
        name: Spread(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values))
        for name, values in columns.items()
    }


def plain(table: Table) -> dict[str, dict[str, dict[str, float]]]:
    """Return the table as plain values for JSON."""
    return {
        method: {name: asdict(spread) for name, spread in row.items()}
        for method, row in table.items()
    }


def render(table: Table, columns: Sequence[str], title: str, console: Console) -> None:
    """Print the columns of a table; '-' where a method has no such figure."""
    made = titled(title)
    made.add_column("method")
    for name in columns:
        made.add_column(_title(name, columns), justify="right")
    for method, row in table.items():
        made.add_row(method, *(str(row[name]) if name in row else "-" for name in columns))
    console.print(made)


def _title(column: str, columns: Sequence[str]) -> str:
    """Return side, way and, where there are several, the group of the sets of a column."""
    side, _, rest = column.partition(".")
    group, _, way = rest.rpartition(".")
    groups = {name.partition(".")[2].rpartition(".")[0] for name in columns} - {""}
    return "\n".join([side, *([group] if len(groups) > 1 else []), _TITLES[way]])
