"""Arguments and flags of a click command, made from the fields of an options dataclass."""

from collections.abc import Callable, Collection
from dataclasses import MISSING
from typing import Any, Literal, TypeVar, get_args, get_origin

import click

from noisegen.options import MANY, OptionField, fields_of

Command = TypeVar("Command", bound=Callable[..., Any])
# Placeholders of values in help texts. A key is the last word of a field's name ('clean_file' has
# 'file'), or a type for fields with other names.
_METAVARS: dict[object, str] = {
    "column": "COLUMN",
    "columns": "COLUMN",
    "file": "FILE",
    "files": "FILE",
    "host": "HOST",
    "lang": "LANG",
    "port": "PORT",
    "seed": "SEED",
    int: "N",
    float: "NUMBER",
}


def click_options(
    options: Any,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    optional: Collection[str] = (),
) -> Callable[[Command], Command]:
    """Return a decorator that adds the fields of the dataclass `options` to a click command.

    The fields named in `only` (default: all) are added, except those named in `skip`. A field
    without a default is required; if it is named in `optional`, its default is None.
    """

    def decorate(command: Command) -> Command:
        for field in reversed(fields_of(options).values()):
            is_wanted = field.name not in skip and (only is None or field.name in only)
            if is_wanted and field.meta.place != "python":
                is_required = field.default is MISSING and field.name not in optional
                command = _parameter(field, is_required)(command)
        return command

    return decorate


def _parameter(field: OptionField, is_required: bool) -> Callable[[Command], Command]:
    """Return the click decorator that adds one field as an argument or option."""
    if field.meta.place == "argument":
        return click.argument(
            field.name, nargs=field.length, metavar=field.meta.metavar, required=is_required
        )
    settings: dict[str, Any] = {"help": field.meta.help, "metavar": _metavar(field)}
    if is_required:
        settings["required"] = True
    else:
        default = None if field.default is MISSING else field.default
        settings["default"] = default
        settings["show_default"] = default is not False and default not in (None, (), "")
    if bool in field.kinds:
        settings["is_flag"] = True
    else:
        settings["type"] = _click_type(field)
        if field.length == MANY:
            settings["multiple"] = True
        elif field.length > 1:
            settings["nargs"] = field.length
    return click.option(*(field.meta.flags or [field.flag]), field.name, **settings)


def _metavar(field: OptionField) -> str | None:
    """Return the placeholder of a field's value in help texts: FILE in '--clean-file FILE'."""
    last_word = field.name.rpartition("_")[2]
    return field.meta.metavar or _METAVARS.get(last_word, _METAVARS.get(field.kinds[0]))


def _click_type(field: OptionField) -> Any:
    """Return the click type that checks choices and bounds, or STRING to leave it to `decode`."""
    kind, *others = field.kinds
    if get_origin(kind) is Literal:
        return click.Choice([str(value) for value in get_args(kind)])
    if kind not in (int, float) or others:
        return click.STRING
    bounds: dict[str, Any] = dict(field.meta.bounds)
    if not bounds:
        return kind
    lowest, highest = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
    number_range = click.IntRange if kind is int else click.FloatRange
    return number_range(lowest, highest, min_open="gt" in bounds, max_open="lt" in bounds)
