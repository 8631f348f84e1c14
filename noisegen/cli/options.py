"""Options that several commands share, and how they print."""

import json
from collections.abc import Callable
from typing import Any, TypeVar

import click
from click.core import ParameterSource

F = TypeVar("F", bound=Callable[..., Any])

_RECIPE = (
    click.option("-t", "--transform", "transforms", multiple=True, metavar="NAME[:k=v,...]",
                 help="A transform; repeat it to apply several in order."),
    click.option("--recipe", default="mix_all", show_default=True, metavar="NAME|FILE.yaml",
                 help="A mix of transforms."),
    click.option("--set", "settings", multiple=True, metavar="TRANSFORM.PARAM=VALUE",
                 help="Change a parameter of the recipe; repeatable."),
    click.option("--seed", type=int, default=0, show_default=True,
                 help="The same seed gives the same noise."),
    click.option("--lang", default="en", show_default=True, help="Language of the text."),
    click.option("--protect", default="url,mention,hashtag,email", show_default=True,
                 help="Kinds of span that stay as they are; 'none' for no kind."),
    click.option("--code", multiple=True, type=click.Path(exists=True, dir_okay=False),
                 metavar="FILE.py", help="Run a file that registers transforms; repeatable."),
    click.option("--nlaug-data", type=click.Path(exists=True, file_okay=False), metavar="DIR",
                 help="Use the vocabularies of your own NL-Augmenter checkout."),
    click.option("--tagger", default="auto", show_default=True,
                 type=click.Choice(["auto", "spacy", "rule"]),
                 help="Parts of speech for slng and abr3."),
)  # fmt: skip
_COLUMNS = (
    click.option("--text-column", default="text", show_default=True,
                 help="Column with the text; a number means a file without header, from 1."),
    click.option("--id-column", help="Column that names the rows; else they are numbered from 0."),
)  # fmt: skip


def recipe_options(function: F) -> F:
    """Add the options that choose noise."""
    return _decorated(function, _RECIPE)


def column_options(function: F) -> F:
    """Add the options that choose columns."""
    return _decorated(function, _COLUMNS)


def _decorated(function: F, options: tuple[Callable[[F], F], ...]) -> F:
    for option in reversed(options):
        function = option(function)
    return function


def read_settings(settings: tuple[str, ...]) -> dict[str, object]:
    """Read TRANSFORM.PARAM=VALUE; refuse a recipe beside transforms, which would go unheard."""
    context = click.get_current_context()
    named = context.get_parameter_source("recipe") is not ParameterSource.DEFAULT
    if named and context.params.get("transforms"):
        raise click.UsageError("--recipe and -t exclude each other: a recipe names its transforms")
    pairs = [text.partition("=") for text in settings]
    for name, equals, value in pairs:
        if not (equals and value and "." in name):
            raise click.UsageError(f"cannot read --set {name!r}: write TRANSFORM.PARAM=VALUE")
    return {name: value for name, _, value in pairs}


def print_json(content: object) -> None:
    """Print one JSON object on stdout."""
    click.echo(json.dumps(content, ensure_ascii=False))


def plain_examples(examples: list[Any]) -> list[dict[str, Any]]:
    """Return the rows of a preview with the names of the columns of a shard."""
    return [
        {
            "id": example.row_id,
            "clean": example.clean,
            "noisy": example.noisy,
            "transforms": example.transforms,
            "edits": [dict(zip(_EDIT, change, strict=True)) for change in example.changes],
        }
        for example in examples
    ]


_EDIT = ("transform", "clean_start", "clean_end", "noisy_start", "noisy_end")
