"""Run all benchmarks in order and print one table; with --json FILE, write them there too."""

from importlib import import_module

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result, options, save, shown

NAMES = (
    "copy_limit",
    "mix_all",
    "mechanisms",
    "startup",
    "memory",
    "workers",
    "peers",
    "loop",
    "draws",
    "oracle",
    "mining",
    "dictionary_quality",
    "ugc",
    "channel",
    "review",
    "xsim",
    "training_speed",
    "training_to_loss",
    "loader",
    "processes",
    "training_memory",
    "retrieval_memory",
    "evaluation_speed",
    "rcp_speed",
    "head_speed",
    "static_speed",
)


def main() -> None:
    """Measure, print, save."""
    chosen = options(__doc__ or "").parse_args()
    results = [
        result
        for name in NAMES
        for result in shown(import_module(f"benchmarks.{name}").results(chosen.rows))
    ]
    Console().print(table(results))
    save(results, chosen.json)


def table(results: list[Result]) -> Table:
    """Return the results as a table."""
    made = Table("what", "ratio", "ours", "other", "unit", "against", "target")
    for result in results:
        figures = (f"{number:,.4g}" for number in (result.ratio, result.ours, result.other))
        color = {True: "green", False: "red", None: ""}[result.met]
        made.add_row(result.name, *figures, result.unit, result.than, result.verdict, style=color)
    return made


if __name__ == "__main__":
    main()
