"""`noisegen transforms`."""

import click

from noisegen.cli.common import print_json


@click.command()
@click.argument("name", required=False)
@click.option(
    "--code",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE.py",
    help="Run a file that registers transforms; repeatable.",
)
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
def transforms(name: str | None, code: tuple[str, ...], as_json: bool) -> int:
    """List the transforms, or show one: parameters, examples, data and licence, file:line.

    Example: noisegen transforms spac
    """  # fmt: skip
    from noisegen.augment.catalog import describe, info, list_transforms, table
    from noisegen.cli.common import terminal
    from noisegen.noise import registry

    for path in code:
        registry.load_code(path)
    if as_json:
        listed = [one.to_dict() for one in list_transforms()] if not name else []
        print_json(info(name).to_dict() if name else {"transforms": listed})
    elif name:
        terminal().print(describe(info(name)), highlight=False)
    else:
        terminal().print(table(list_transforms()))
    return 0
