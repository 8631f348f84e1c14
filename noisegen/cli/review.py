"""`noisegen review`: make, serve, report."""

from dataclasses import fields
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from noisegen.augment import Request
from noisegen.cli.common import print_json, read_settings, recipe_options, some_options
from noisegen.options import click_options
from noisegen.review.sample import MakeOptions, MoreOptions
from noisegen.review.server import ServeOptions


@click.group()
def review() -> None:
    """Let people judge how real noise looks, in the browser.

    make draws a blind sample, serve shows it to reviewers, report says what they found.
    Example: noisegen review make news.txt -o review.sqlite -t wiki --strengths 0.05,0.1,0.2
    """


@review.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click_options(MakeOptions, skip={field.name for field in fields(Request)})
@recipe_options
@some_options(Request, ("text_column", "id_column", "limit"))
@click.option("--more", "more_rows", type=click.IntRange(1), metavar="N",
              help="Second stage: add N rows of one strength to the review")  # fmt: skip
@click_options(MoreOptions, skip=("out", "rows", "sources", "code"))
@click.option("--json", "as_json", is_flag=True, help="Print as JSON")
def make(
    sources: tuple[str, ...], out: str, more_rows: int | None, strength: str, as_json: bool,
    **options: Any,
) -> int:  # fmt: skip
    """Draw a blind sample of changed rows at several strengths.

    SOURCE: outputs of noisegen augment, one per strength, or clean text as for augment, which is
    noised here at --strengths.
    Example: noisegen review make news.txt -o review.sqlite -t wiki --strengths 0.05,0.1,0.2
    Then: noisegen review make -o review.sqlite --more 60
    """  # fmt: skip
    from noisegen import review

    options["values"] = read_settings(options.pop("settings"))
    if more_rows is None:
        _refuse(("strength",), "is for --more")
        summary = review.make(sources, out, **options)
    else:
        code = options.pop("code")
        _refuse((*options, "settings"), "was fixed when the review was made: leave it out")
        summary = review.more(out, rows=more_rows, strength=strength, sources=sources, code=code)
    if as_json:
        print_json(summary.to_dict())
        return 0
    for line in summary.lines():
        click.echo(line, err=True)
    click.echo(f"{out}: {summary.items:,} rows; now: noisegen review serve {out}", err=True)
    return 0


def _refuse(names: tuple[str, ...], why: str) -> None:
    """Refuse options that would be ignored."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


@review.command()
@click_options(ServeOptions)
def serve(**options: Any) -> int:
    """Show the review to reviewers until Ctrl-C; every answer is stored at once.

    Open the address that is printed: it holds the token. Several may review at the same time.
    Example: noisegen review serve review.sqlite
    """  # fmt: skip
    from noisegen import review

    def tell(line: str) -> None:
        click.echo(line, err=not line.startswith("open "))

    review.serve(**options, tell=tell)
    return 0


@review.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path), metavar="REVIEW.sqlite")
@click.option("-o", "--out", type=click.Path(dir_okay=False), metavar="FILE.html",
              help="Write a page, too")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print as JSON")
def report(path: Path, out: str | None, as_json: bool) -> int:
    """Show realism by strength, the strength to choose, agreement, kinds of noise.

    Example: noisegen review report review.sqlite -o report.html
    """
    from noisegen import review
    from noisegen.cli.common import terminal
    from noisegen.review.reporting import render

    figures = review.report(path, out)
    if as_json:
        print_json(figures.to_dict())
    else:
        render(figures, terminal())
    if out:
        click.echo(f"wrote {out}", err=True)
    return 0
