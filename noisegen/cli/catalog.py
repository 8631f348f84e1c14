"""`noisegen preview`, `recipes`, `transforms` and `stats`."""

from pathlib import Path
from typing import Any

import click

from noisegen.augmentation import NoiseRequest, Request
from noisegen.cli import common
from noisegen.cli.parameters import click_options


@click.command(
    epilog=common.example(
        'preview "See you tomorrow, my friend." -t abr1:rate=1',
        "preview news.txt --recipe ugc --unaligned",
        "preview news.txt --strength x0.5,x1,x2",
        "preview news.txt --copies 3",
    )
)
@click.argument("sources", nargs=-1, metavar="[TEXT or SOURCE]...")
@common.recipe_options(Request)
@click_options(
    Request, only=("text_column", "id_column", "lang_column", "group_by", "copies", "strength")
)
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Maximum texts to show",
)
@click.option("--unaligned", is_flag=True, help="Print whole texts, without alignment or filler")
@common.output
def preview(limit: int, unaligned: bool, as_json: bool, **given: Any) -> None:
    """Show text before and after, with the changes marked.

    Nothing is written. Without TEXT or SOURCE it shows the demo text of the language.
    """
    from noisegen.augmentation.preview import examples_of
    from noisegen.augmentation.rendering import render

    examples = examples_of(common.request(given), limit, common.hint)
    if as_json:
        common.print_json({"rows": [example.to_dict() for example in examples]})
    else:
        render(examples, common.terminal(), aligned=not unaligned)


@click.command(epilog=common.example("stats out --plot out.html"))
@click.argument("out", type=click.Path(path_type=Path))
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE.png|.html",
    help="Also draw the figures (.png needs the extra plot)",
)
@common.output
def stats(out: Path, plot: Path | None, as_json: bool) -> None:
    """Show figures of a run: rows changed, CER, WER, kinds of edit."""
    from noisegen.augmentation import statistics_report as report
    from noisegen.augmentation.statistics import measure

    if plot:
        report.check_plot(plot)
    figures = measure(out)
    if plot:  # before the terminal: a reader such as head may close it early
        report.plot(figures, plot)
    if as_json:
        common.print_json(figures.to_dict())
    else:
        report.render(figures, common.terminal())
    if plot:
        common.tell(f"wrote {plot}")


@click.command(epilog=common.example("recipes ugc"))
@click.argument("recipe", required=False, metavar="[NAME|FILE.yaml]")
@click_options(NoiseRequest, only=("code",))
@common.output
def recipes(recipe: str | None, code: tuple[str, ...], as_json: bool) -> None:
    """List the recipes, or show one: steps, languages, error rates.

    Error rates are measured on the bundled demo text.
    """
    from noisegen.augmentation import catalog
    from noisegen.noising.registry import load_code
    from noisegen.report.terminal import show

    load_code(*code)
    if as_json and recipe:
        common.print_json(catalog.recipe_info(recipe).to_dict())
    elif as_json:
        common.print_json({"recipes": [known.to_dict() for known in catalog.list_recipes()]})
    else:
        one = catalog.describe_recipe(catalog.recipe_info(recipe)) if recipe else None
        show(one or catalog.recipe_table(catalog.list_recipes()), common.terminal())


@click.command(epilog=common.example("transforms spac"))
@click.argument("transform", required=False, metavar="[NAME]")
@click_options(NoiseRequest, only=("code",))
@common.output
def transforms(transform: str | None, code: tuple[str, ...], as_json: bool) -> None:
    """List the transforms, or show one: parameters, examples, data.

    A single transform is shown with the licence of its data and the file of its code.
    """
    from noisegen.augmentation import catalog
    from noisegen.noising.registry import load_code

    load_code(*code)
    if as_json and transform:
        common.print_json(catalog.info(transform).to_dict())
    elif as_json:
        common.print_json({"transforms": [known.to_dict() for known in catalog.list_transforms()]})
    else:
        one = catalog.describe(catalog.info(transform)) if transform else None
        shown = one or catalog.table(catalog.list_transforms())
        common.terminal().print(shown, highlight=False)


@click.command(epilog=common.example("example pairs"))
@click.argument("name", required=False, metavar="[NAME]")
@common.output
def example(name: str | None, as_json: bool) -> None:
    """List the packaged example data, or print some.

    NAME: text, casual, posts or pairs. They were written for noisegen (Apache-2.0), to try its
    commands on.
    """
    from noisegen.augmentation import catalog
    from noisegen.report.terminal import show

    if name:
        content = catalog.example(name)
        if as_json:
            common.print_json({"name": name, "lines": content.splitlines()})
        else:
            click.echo(content, nl=False)
    elif as_json:
        common.print_json({"examples": catalog.EXAMPLES, "source": catalog.EXAMPLES_FROM})
    else:
        show([catalog.example_table()], common.terminal())
