"""A table of methods by figures, mean and standard deviation over seeds, as text and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean, stdev

from rich.console import Console

from noisegen.disentangling.measures import BACKWARD, FORWARD, STS, Figures
from noisegen.tables import titled

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
