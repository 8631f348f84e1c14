"""`noisegen preview`."""

from typing import Any

import click

from noisegen.cli.options import (
    column_options,
    plain_examples,
    print_json,
    read_settings,
    recipe_options,
)


@click.command()
@click.argument("texts", nargs=-1, metavar="[TEXT or SOURCE]")
@recipe_options
@column_options
@click.option(
    "-n", "--rows", type=click.IntRange(min=1), default=10, show_default=True, help="Rows to show."
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def preview(texts: tuple[str, ...], rows: int, as_json: bool, **options: Any) -> int:
    """Show text before and after, with the changed spans coloured; writes nothing.

    Without TEXT or SOURCE it shows the bundled demo text.
    Example: noisegen preview "See you tomorrow, my friend." -t abr1:rate=1
    """
    from noisegen.cli.terminal import Terminal
    from noisegen.examples import examples_of
    from noisegen.preview import render
    from noisegen.request import Request

    options["values"] = read_settings(options.pop("settings"))
    examples = examples_of(Request(texts, **options), rows)
    if as_json:
        print_json({"rows": plain_examples(examples)})
    else:
        render(examples, Terminal())
    return 0
