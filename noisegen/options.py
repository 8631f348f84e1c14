"""Options declared once: a dataclass with annotated fields serves command line, YAML and Python.

    @dataclass(frozen=True)
    class GreetOptions:
        names: Annotated[Strings, argument("NAME...")]
        times: Annotated[int, option("How often", ge=1)] = 1

    greet = public(GreetOptions, _greet)          # greet("Ann", times=2): typed, completed, checked
    command = click_options(GreetOptions)(command)          # NAME... and --times for click
    decode(GreetOptions, {"names": "Ann", "times": "2"})    # types, bounds, "did you mean"

msgspec converts the values: it is imported in 25 ms, pydantic in 80.
"""

import inspect
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from noisegen.errors import UsageError, did_you_mean

P = ParamSpec("P")
Options = TypeVar("Options")
Result = TypeVar("Result")
Made = TypeVar("Made")
Command = TypeVar("Command", bound=Callable[..., Any])
MANY = -1  # values, as click counts them
RENAMED = {  # what options were called before, and now
    "chars_max": "max_chars", "chars_min": "min_chars", "common_min": "min_common",
    "natural": "validation", "noise": "recipe", "real": "pairs", "rows": "limit",
    "rows_max": "limit", "source": "origin",
}  # fmt: skip
Strings = str | Path | Sequence[str | Path]  # one or several; a decoded option is a tuple of str


def listed(sources: Strings) -> list[str]:
    """Return the sources as text, one alone as a list of one."""
    given = [sources] if isinstance(sources, str | Path) else sources
    return [str(source) for source in given]


@dataclass(frozen=True)
class Meta:
    """How a field stands on the command line, and which numbers it takes."""

    help: str = ""
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    bounds: tuple[tuple[str, float], ...] = ()
    place: Literal["option", "argument", "python"] = "option"


def option(
    help: str,  # noqa: A002 - as click names it
    *flags: str,
    metavar: str | None = None,
    **bounds: float,
) -> Meta:
    """Annotate a field as an option; `flags` replace --field-name, `bounds` are ge, gt, le, lt."""
    return Meta(help, flags, metavar, tuple(bounds.items()))


def argument(metavar: str) -> Meta:
    """Annotate a field as a positional argument of the command."""
    return Meta(metavar=metavar, place="argument")


def internal() -> Meta:
    """Annotate a field that only Python callers have, taken as it is: an object or a callback."""
    return Meta(place="python")


def public(options: Callable[P, Options], run: Callable[[Options], Result]) -> Callable[P, Result]:
    """Return the Python twin of a command: a function of the fields of `options`.

    It takes what the dataclass takes, checks it as `decode` does, and calls `run` with the result.
    Its documentation is that of `run`, and a line for each option.
    """
    signature = inspect.signature(options)
    shown = [
        parameter.replace(annotation=get_args(parameter.annotation)[0])
        if get_origin(parameter.annotation) is Annotated else parameter
        for parameter in signature.parameters.values()
    ]  # fmt: skip
    helps = {field.name: field.meta.help for field in _fields(options) if field.meta.help}

    def twin(*args: P.args, **kwargs: P.kwargs) -> Result:
        _refuse_unknown(kwargs, signature.parameters, name)
        return run(decode(options, signature.bind(*args, **kwargs).arguments))

    name = run.__name__.lstrip("_")
    returns = inspect.signature(run).return_annotation
    twin.__name__, twin.__qualname__, twin.__module__ = name, name, run.__module__
    lines = [f"- `{key}`: {helps[key]}" for key in signature.parameters if key in helps]
    twin.__doc__ = "\n".join([inspect.getdoc(run) or "", "", *lines])
    vars(twin)["__signature__"] = signature.replace(parameters=shown, return_annotation=returns)
    return twin


def decode(
    options: Callable[..., Options],
    values: Mapping[str, Any],
    label: Callable[[str], str] | None = None,
) -> Options:
    """Return the dataclass `options` of these values, each converted to its field's type.

    Text is read as the type asks ("3" as 3), a path as its text, one value as a list of one. Raises
    UsageError for an unknown name, and for a value of a wrong type or out of bounds, which it names
    by `label` of its field, or by its flag.
    """
    known = {field.name: field for field in _fields(options)}
    _refuse_unknown(values, known)
    labels = {name: label(name) if label else known[name].flag for name in values}
    return options(
        **{name: known[name].convert(value, labels[name]) for name, value in values.items()}
    )


def click_options(
    options: Any,
    skip: Collection[str] = (),
    only: Collection[str] | None = None,
    optional: Collection[str] = (),
) -> Callable[[Command], Command]:
    """Return a decorator that gives a click command the fields of `options`, in their order.

    A field without a default is required, unless it is among `optional`: it is then None.
    """

    def decorate(command: Command) -> Command:
        for field in reversed(_fields(options)):
            is_wanted = field.name not in skip and (only is None or field.name in only)
            if is_wanted and field.meta.place != "python":
                command = field.click_parameter(field.name in optional)(command)
        return command

    return decorate


def command_line(command: str, options: Any, *more: str) -> str:
    """Return the command line that asks for the same: arguments, `more`, what is not a default."""
    arguments: list[str] = []
    flags: list[str] = []
    kind: Any = type(options)
    for field in _fields(kind):
        value = getattr(options, field.name)
        if field.meta.place == "python" or value == field.default:
            continue
        if field.meta.place == "argument":
            arguments += map(str, _listed(value))
        elif bool in field.kinds:
            flags.append(field.flag.split("/")[0 if value else 1])
        elif field.length > 1:
            flags += [field.flag, *map(str, value)]
        else:
            flags += [word for item in _listed(value) for word in (field.flag, str(item))]
    return shlex.join(["noisegen", command, *arguments, *more, *flags])


def parse_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Return KEY=VALUE pairs as a mapping, values read as YAML; raises UsageError."""
    import yaml

    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"--set {pair!r}: write KEY=VALUE")
        try:
            values[name] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            raise UsageError(f"--set {pair!r}: the value is not YAML; put text in quotes") from None
    return values


@dataclass(frozen=True)
class _Field:
    """A field of a dataclass of options."""

    name: str
    kinds: tuple[Any, ...]  # the types that one value may have, without None
    length: int  # 1 for a value, N for a tuple of N, MANY for a tuple of any length
    optional: bool
    default: Any
    meta: Meta

    @classmethod
    def of(cls, field: Field[Any], hint: Any) -> "_Field":
        """Return the field of an annotation such as Annotated[int | None, option(...)]."""
        hint, *extras = get_args(hint) if get_origin(hint) is Annotated else [hint]
        meta = next((extra for extra in extras if isinstance(extra, Meta)), Meta())
        hint = tuple[str, ...] if hint == Strings else hint
        types = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        kinds = tuple(kind for kind in types if kind not in (NoneType, Path))  # a path is text
        length = 1
        if get_origin(kinds[0]) is tuple:
            items = get_args(kinds[0])
            kinds, length = items[:1], MANY if items[-1] is ... else len(items)
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        return cls(field.name, kinds, length, NoneType in types, default, meta)

    @property
    def flag(self) -> str:
        """The last spelling on the command line, such as --rows-per-shard or --hard/--no-hard."""
        flag = self.meta.flags[-1] if self.meta.flags else f"--{self.name.replace('_', '-')}"
        return f"{flag}/--no-{flag[2:]}" if self.default is True else flag

    def convert(self, value: Any, label: str) -> Any:
        """Return the value as the field's type; raises UsageError."""
        if self.name == "values" and not isinstance(value, Mapping | None):
            raise UsageError(f"values {value!r} is not a dict")
        if self.meta.place == "python" or (value is None and self.optional):
            return value
        bounds: Any = msgspec.Meta(**dict[str, Any](self.meta.bounds))
        types: tuple[Any, ...] = tuple(
            Annotated[kind, bounds] if kind in (int, float) else kind for kind in self.kinds
        )
        kind: Any = Union[types]  # noqa: UP007
        if self.length != 1:
            items: Any = (kind, ...) if self.length == MANY else (kind,) * self.length
            kind = tuple.__class_getitem__(items)
        try:
            given = _plain(value if self.length == 1 else _listed(value))
            return msgspec.convert(given, kind, strict=False)
        except msgspec.ValidationError as error:
            _refuse_dataset(value)
            raise UsageError(f"{label} {value!r} is not {self._wanted()}") from error

    def _wanted(self) -> str:
        """Return in words what the field takes: "a whole number, at least 1"."""
        names = []
        for kind in self.kinds:
            if get_origin(kind) is Literal:
                *others, last = map(str, get_args(kind))
                names.append(f"{', '.join(others)} or {last}" if others else last)
            else:
                names.append(_NAMES.get(kind, getattr(kind, "__name__", str(kind))))
        limits = [_BOUNDS[name].format(limit) for name, limit in self.meta.bounds]
        single = ", ".join([" or ".join(names), *limits])
        if self.length == 1:
            return single
        return f"{'a list' if self.length == MANY else f'{self.length} values'}, each {single}"

    def click_parameter(self, optional: bool = False) -> Callable[[Command], Command]:
        """Return the click decorator of this field; `optional`: it need not have a default."""
        import click

        required = self.default is MISSING and not optional
        if self.meta.place == "argument":
            metavar = self.meta.metavar
            return click.argument(self.name, nargs=self.length, metavar=metavar, required=required)
        default = None if self.default is MISSING else self.default
        settings: dict[str, Any] = {"required": True} if required else {"default": default}
        last_word = self.name.rpartition("_")[2]
        metavar = self.meta.metavar or _METAVARS.get(last_word, _METAVARS.get(self.kinds[0]))
        settings |= {"metavar": metavar, "help": self.meta.help}
        settings["show_default"] = default is not False and default not in (None, (), "")
        if bool in self.kinds:
            settings["is_flag"] = True
        else:
            settings |= {"type": self._click_type(), "multiple": self.length == MANY}
            settings |= {"nargs": self.length} if self.length > 1 else {}
        return click.option(*(self.meta.flags or [self.flag]), self.name, **settings)

    def _click_type(self) -> Any:
        import click

        kind, *others = self.kinds
        if get_origin(kind) is Literal:
            return click.Choice([str(value) for value in get_args(kind)])
        if kind not in (int, float) or others:
            return click.STRING
        bounds: dict[str, Any] = dict(self.meta.bounds)
        if not bounds:
            return kind
        least, most = bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt"))
        ranged = click.IntRange if kind is int else click.FloatRange
        return ranged(least, most, min_open="gt" in bounds, max_open="lt" in bounds)


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_METAVARS = {  # by the last word of a name, else by type
    "column": "COLUMN", "columns": "COLUMN", "file": "FILE", "files": "FILE", "host": "HOST",
    "lang": "LANG", "port": "PORT", "seed": "SEED", int: "N", float: "NUMBER",
}  # fmt: skip
_BOUNDS = {"ge": "at least {:,}", "gt": "above {:,}", "le": "at most {:,}", "lt": "below {:,}"}


@cache
def _fields(options: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(options, include_extras=True)
    return tuple(_Field.of(field, hints[field.name]) for field in fields(options) if field.init)


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _refuse_dataset(value: Any) -> None:
    """Raise UsageError for an object of the package datasets, alone or in a list."""
    for item in _listed(value):
        if type(item).__module__.partition(".")[0] == "datasets":
            raise UsageError(
                f"a {type(item).__name__} in memory is no source: save it with save_to_disk and "
                "name the folder, or noise its rows with noisegen.Mapper"
            ) from None


def _plain(value: Any) -> Any:
    """Return paths as text."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value


def _refuse_unknown(values: Mapping[str, Any], known: Mapping[str, Any], what: str = "") -> None:
    if foreign := next((name for name in values if name not in known), None):
        where = f"{what} has" if what else "there is"
        new = RENAMED.get(foreign)
        hint = f"; it is called {new!r} now" if new in known else did_you_mean(foreign, known)
        raise UsageError(f"{where} no option {foreign!r}{hint}")


def naming_options(made: type[Made]) -> type[Made]:
    """Let a dataclass refuse an unknown option with UsageError; for the line above @dataclass."""
    init: Callable[..., None] = vars(made)["__init__"]
    known = inspect.signature(made).parameters

    @wraps(init)
    def _checked(self: Made, /, *arguments: Any, **options: Any) -> None:
        _refuse_unknown(options, known, made.__name__)
        init(self, *arguments, **options)

    setattr(made, "__init__", _checked)  # noqa: B010 - mypy refuses it as an assignment
    return made
