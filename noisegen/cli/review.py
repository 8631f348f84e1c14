"""`noisegen review`: make, serve, report."""

from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from noisegen.cli.options import column_options, print_json, read_settings, recipe_options

PATH = click.Path(dir_okay=False, path_type=Path)


@click.group()
def review() -> None:
    """Let people judge how real noise looks, in the browser.

    make draws a blind sample, serve shows it to reviewers, report says what they found.
    Example: noisegen review make news.txt -o review.sqlite -t wiki --strengths 0.05,0.1,0.2
    """


@review.command()
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "-o",
    "--out",
    type=PATH,
    required=True,
    metavar="REVIEW.sqlite",
    help="The review: made, or with --more continued.",
)
@recipe_options
@column_options
@click.option(
    "--lang-column",
    default="lang",
    show_default=True,
    help="Column with the language of each row; without it, all have --lang.",
)
@click.option(
    "--strengths",
    default="",
    metavar="S,S,S",
    help="Clean text: 0.05,0.1,0.2 sets every rate of the recipe, x0.5,x1,x2 multiplies "
    "the rates below 1. Outputs of augment: a name for each.",
)
@click.option(
    "--rows",
    type=int,
    default=15,
    show_default=True,
    help="Rows of each language and strength in the first stage.",
)
@click.option(
    "--more", type=int, metavar="N", help="Second stage: add N rows of one strength to the review."
)
@click.option(
    "--strength",
    default="best",
    show_default=True,
    metavar="best|S",
    help="Which one --more adds; best is the most realistic of the first stage.",
)
@click.option("--limit", type=int, help="Only the first rows of clean text.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def make(sources: tuple[str, ...], out: Path, as_json: bool, **options: Any) -> int:
    """Draw a blind sample of changed rows at several strengths.

    SOURCE: outputs of noisegen augment, one a strength, or clean text as for augment, which is
    noised here at --strengths.
    Example: noisegen review make news.txt -o review.sqlite -t wiki --strengths 0.05,0.1,0.2
    Then: noisegen review make -o review.sqlite --more 60
    """  # fmt: skip
    from noisegen import review

    number, strength = options.pop("more"), options.pop("strength")
    options["values"] = read_settings(options.pop("settings"))
    if number is None:
        _refuse(("strength",), "is for --more")
        made = review.make(sources, out, **options)
    else:
        code = options.pop("code")
        _refuse((*options, "settings"), "was settled when the review was made: leave it out")
        made = review.more(out, rows=number, strength=strength, sources=sources, code=code)
    if as_json:
        print_json(made.to_dict())
        return 0
    for line in made.lines():
        click.echo(line, err=True)
    click.echo(f"{out}: {made.items:,} rows; now: noisegen review serve {out}", err=True)
    return 0


def _refuse(names: tuple[str, ...], why: str) -> None:
    """Refuse options that would go unheard."""
    context = click.get_current_context()
    for parameter in context.command.params:
        given = context.get_parameter_source(parameter.name or "") is ParameterSource.COMMANDLINE
        if parameter.name in names and given:
            raise click.UsageError(f"{parameter.opts[-1]} {why}")


@review.command()
@click.argument("path", type=PATH, metavar="REVIEW.sqlite")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    help="Address to bind; another than this machine's own lets others in.",
)
@click.option("--port", type=int, default=8765, show_default=True, help="0 for any free one.")
@click.option("--open", "open_browser", is_flag=True, help="Open the browser, too.")
def serve(path: Path, host: str, port: int, open_browser: bool) -> int:
    """Show the review to reviewers until Ctrl-C; every answer is stored at once.

    Open the address that is printed: it holds the token. Several may review at the same time.
    Example: noisegen review serve review.sqlite
    """  # fmt: skip
    from noisegen import review

    def tell(line: str) -> None:
        click.echo(line, err=not line.startswith("open "))

    review.serve(path, host=host, port=port, open_browser=open_browser, tell=tell)
    return 0


@review.command()
@click.argument("path", type=PATH, metavar="REVIEW.sqlite")
@click.option("-o", "--out", type=PATH, metavar="FILE.html", help="Write a page, too.")
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def report(path: Path, out: Path | None, as_json: bool) -> int:
    """Show realism by strength, the strength to choose, agreement, kinds of noise.

    Example: noisegen review report review.sqlite -o report.html
    """
    from noisegen import review
    from noisegen.cli.terminal import Terminal
    from noisegen.review.tables import render

    found = review.report(path, out)
    if as_json:
        print_json(found.to_dict())
    else:
        render(found, Terminal())
    if out:
        click.echo(f"wrote {out}", err=True)
    return 0
