"""`noisegen review`: make, serve, report."""

from typing import Any

import click

from noisegen.augmentation import NOISE
from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.review.sample import MakeOptions, MoreOptions
from noisegen.review.server import ServeOptions
from noisegen.runs.manifest import counted, counts_line

ROWS = ("text_column", "id_column", "limit")  # input options; the help lists them after noise


@click.group(
    epilog=common.example("review make news.txt -o review.sqlite -t wiki --strengths 0.1,0.2")
)
def review() -> None:
    """Let people judge in the browser how real noise looks.

    `make` draws a blind sample, `serve` shows it to reviewers, `report` sums up their answers.
    """


@review.command(
    epilog=common.example(
        "review make news.txt -o review.sqlite -t wiki --strengths 0.1,0.2",
        "review make -o review.sqlite --more 60",
    )
)
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click_options(MakeOptions, skip={"sources", *NOISE, *ROWS})
@common.recipe_options(MakeOptions)
@click_options(MakeOptions, only=ROWS)
@click.option(
    "--more",
    "more_rows",
    type=click.IntRange(1),
    metavar="N",
    help="Second stage: add N rows of one strength to the review",
)
@click_options(MoreOptions, only=("strength",))
@common.output
def make(
    sources: tuple[str, ...],
    out: str,
    more_rows: int | None,
    strength: str,
    as_json: bool,
    **options: Any,
) -> int:
    """Draw a blind sample of rows at several strengths.

    SOURCE: outputs of noisegen augment, one per strength or one with --strength, or clean text as
    for augment, which is noised here at --strengths.
    """
    from noisegen import review

    options["values"] = common.read_settings(options.pop("settings"))
    if more_rows is None:
        common.refuse(["strength"], "{} is for --more")
        summary = review.make(sources, out, **options)
    else:
        code = options.pop("code")
        why = "{} was fixed when the review was made: leave it out"
        common.refuse([*options, "settings"], why)
        summary = review.more(out, rows=more_rows, strength=strength, sources=sources, code=code)
    if as_json:
        common.print_json(summary.to_dict())
    else:
        rows = counted(summary.items, "row")
        for line in [*summary.lines(), f"{out}: {rows}; now: noisegen review serve {out}"]:
            common.tell(line)
    return common.exit_code(out, counts_line("dropped or damaged", summary.dropped), as_json)


@review.command(epilog=common.example("review serve review.sqlite"))
@click_options(ServeOptions)
@common.quiet
def serve(**options: Any) -> None:
    """Serve the review until Ctrl-C; answers are saved at once.

    Open the address that is printed: it contains the token. Several reviewers can work at the same
    time.
    """
    from noisegen import review

    def tell(line: str) -> None:
        (common.print_lines if line.startswith("open ") else common.on_stderr)(line)

    review.serve(**options, tell=tell)


@review.command(epilog=common.example("review report review.sqlite -o report.html"))
@click.argument("path", type=click.Path(dir_okay=False), metavar="REVIEW.sqlite")
@click.option(
    "-o", "--out", type=click.Path(dir_okay=False), metavar="FILE.html", help="Also write a page"
)
@common.output
def report(path: str, out: str | None, as_json: bool) -> None:
    """Show realism by strength, and how reviewers agree."""
    from noisegen import review
    from noisegen.report.terminal import show
    from noisegen.review.reporting import compose

    figures = review.report(path, out)
    if as_json:
        common.print_json(figures.to_dict())
    else:
        show(compose(figures), common.terminal())
    if out:
        common.tell(f"wrote {out}")
