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
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType, UnionType
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

from noisegen.errors import UsageError, did_you_mean, naming_extras

P = ParamSpec("P")
Options = TypeVar("Options")
Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])
Strings = str | Path | Sequence[str | Path]  # one or several; a decoded option is a tuple of str


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
    """
    signature = inspect.signature(options)

    def twin(*args: P.args, **kwargs: P.kwargs) -> Result:
        _refuse_unknown(kwargs, signature.parameters, name)
        return run(decode(options, signature.bind(*args, **kwargs).arguments))

    name = run.__name__.lstrip("_")
    returns = inspect.signature(run).return_annotation
    twin.__name__, twin.__qualname__, twin.__module__ = name, name, run.__module__
    twin.__doc__ = run.__doc__
    vars(twin)["__signature__"] = signature.replace(return_annotation=returns)
    return twin


def decode(
    options: Callable[..., Options],
    values: Mapping[str, Any],
    what: str = "",
    label: Callable[[str], str] | None = None,
) -> Options:
    """Return the dataclass `options` of these values, each converted to its field's type.

    Text is read as the type asks ("3" as 3), a path as its text, one value as a list of one. Errors
    name a value by `label` of its field, or by its flag, and an unknown one as of `what`. Raises
    UsageError for an unknown name and for a value of a wrong type or out of bounds.
    """
    known = {field.name: field for field in _fields(options)}
    _refuse_unknown(values, known, what)
    return options(
        **{
            name: known[name].convert(value, label(name) if label else known[name].flag)
            for name, value in values.items()
        }
    )


def click_options(options: Any, skip: Collection[str] = ()) -> Callable[[Command], Command]:
    """Return a decorator that gives a click command the fields of `options`, in their order."""

    def decorate(command: Command) -> Command:
        for field in reversed(_fields(options)):
            if field.name not in skip and field.meta.place != "python":
                command = field.click_parameter()(command)
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
        elif field.is_a(bool):
            flags.append(field.flag.split("/")[0 if value else 1])
        elif field.pair:
            flags += [field.flag, *map(str, value)]
        else:
            flags += [word for item in _listed(value) for word in (field.flag, str(item))]
    return shlex.join(["noisegen", command, *arguments, *more, *flags])


def parse_values(pairs: Sequence[str], flag: str = "--set") -> dict[str, Any]:
    """Return KEY=VALUE pairs as a mapping, values read as YAML; raises UsageError."""
    import yaml

    values = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(f"{flag} {pair!r}: write KEY=VALUE")
        try:
            values[name] = yaml.safe_load(value)
        except (ValueError, yaml.YAMLError):
            raise UsageError(
                f"{flag} {pair!r}: the value is not YAML; put text in quotes"
            ) from None
    return values


@dataclass(frozen=True)
class _Field:
    """A field of a dataclass of options: its alternatives of types, its default, its Meta."""

    name: str
    kinds: tuple[Any, ...]  # without None; of the items where it is a list
    many: bool
    pair: int  # how many values a tuple of fixed length has, or 0
    optional: bool
    default: Any
    meta: Meta

    @classmethod
    def of(cls, name: str, hint: Any, default: Any) -> "_Field":
        """Return the field of an annotation such as Annotated[int | None, option(...)]."""
        metas = [meta for meta in getattr(hint, "__metadata__", ()) if isinstance(meta, Meta)]
        hint = hint.__origin__ if hasattr(hint, "__metadata__") else hint
        if hint == Strings:
            hint = tuple[str, ...]
        is_union = get_origin(hint) in (Union, UnionType)
        types = get_args(hint) if is_union else (hint,)
        kinds = tuple(kind for kind in types if kind not in (type(None), Path))  # a path is text
        optional, items = type(None) in get_args(hint), get_args(kinds[0])
        is_tuple = get_origin(kinds[0]) in (tuple, list)
        many = is_tuple and (get_origin(kinds[0]) is list or items[-1] is ...)
        if is_tuple:
            kinds = items[:1]
        pair = len(items) if is_tuple and not many else 0
        return cls(name, kinds, many, pair, optional, default, metas[0] if metas else Meta())

    @property
    def flag(self) -> str:
        """The last spelling on the command line, such as --rows-per-shard or --hard/--no-hard."""
        flag = self.meta.flags[-1] if self.meta.flags else f"--{self.name.replace('_', '-')}"
        return f"{flag}/--no-{flag[2:]}" if self.default is True else flag

    def is_a(self, kind: type) -> bool:
        """Return whether the field takes values of this type."""
        return kind in self.kinds

    def convert(self, value: Any, label: str) -> Any:
        """Return the value as the field's type; raises UsageError."""
        if self.meta.place == "python" or (value is None and self.optional):
            return value
        kind: Any = Union[tuple(self._bounded(kind) for kind in self.kinds)]  # noqa: UP007
        try:
            if self.many:
                return tuple(self._item(item, kind) for item in _listed(value))
            if self.pair:
                first, *others = value
                if len(others) + 1 != self.pair:
                    raise ValueError
                return tuple(self._item(item, kind) for item in (first, *others))
            return self._item(value, kind)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{label} {value!r} is not {self._wanted()}") from error

    def _item(self, value: Any, kind: Any) -> Any:
        if isinstance(value, bool) and not self.is_a(bool):
            raise ValueError
        return msgspec.convert(str(value) if isinstance(value, Path) else value, kind, strict=False)

    def _bounded(self, kind: Any) -> Any:
        bounds: dict[str, Any] = dict(self.meta.bounds)
        return Annotated[kind, msgspec.Meta(**bounds)] if bounds and kind in (int, float) else kind

    def _wanted(self) -> str:
        """Return in words what the field takes: "a whole number, at least 1"."""
        names = []
        for kind in self.kinds:
            if get_origin(kind) is Literal:
                *others, last = map(str, get_args(kind))
                names.append(f"{', '.join(others)} or {last}" if others else last)
            else:
                names.append(_NAMES.get(kind, getattr(kind, "__name__", str(kind))))
        words = [_BOUNDS[name].format(limit) for name, limit in self.meta.bounds]
        single = ", ".join([" or ".join(names), *words])
        if self.many:
            return f"a list, each {single}"
        return f"{self.pair} values, each {single}" if self.pair else single

    def click_parameter(self) -> Callable[[Command], Command]:
        """Return the click decorator of this field."""
        import click

        required = self.default is MISSING
        if self.meta.place == "argument":
            count = -1 if self.many else 1
            metavar = self.meta.metavar
            return click.argument(self.name, nargs=count, metavar=metavar, required=required)
        shown = not required and self.default not in (None, (), False, "")
        settings: dict[str, Any] = {
            **({"required": True} if required else {"default": self.default}),
            "metavar": self.meta.metavar, "show_default": shown, "help": self.meta.help,
        }  # fmt: skip
        if self.is_a(bool):
            settings["is_flag"] = True
        else:
            settings |= {"type": self._click_type(), "multiple": self.many}
            settings |= {"nargs": self.pair} if self.pair else {}
        flags = self.meta.flags or (self.flag,)
        return click.option(*flags, self.name, **settings)

    def _click_type(self) -> Any:
        import click

        kind = self.kinds[0]
        if get_origin(kind) is Literal:
            return click.Choice([str(value) for value in get_args(kind)])
        bounds: dict[str, Any] = dict(self.meta.bounds)
        if kind not in (int, float) or len(self.kinds) > 1:
            return click.STRING
        ranged = click.IntRange if kind is int else click.FloatRange
        return ranged(
            bounds.get("ge", bounds.get("gt")), bounds.get("le", bounds.get("lt")),
            min_open="gt" in bounds, max_open="lt" in bounds,
        ) if bounds else kind  # fmt: skip


_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_BOUNDS = {"ge": "at least {:,}", "gt": "above {:,}", "le": "at most {:,}", "lt": "below {:,}"}


@cache
def _fields(options: Any) -> tuple[_Field, ...]:
    hints = get_type_hints(options, include_extras=True)
    return tuple(
        _Field.of(
            field.name,
            hints[field.name],
            field.default if field.default_factory is MISSING else field.default_factory(),
        )
        for field in fields(options)
        if field.init
    )


def _listed(value: Any) -> list[Any]:
    is_list = isinstance(value, Sequence) and not isinstance(value, str)
    return list(value) if is_list else [value]


def _refuse_unknown(values: Mapping[str, Any], known: Mapping[str, Any], what: str) -> None:
    if foreign := next((name for name in values if name not in known), None):
        where = f"{what} has" if what else "there is"
        raise UsageError(f"{where} no option {foreign!r}{did_you_mean(str(foreign), known)}")


class CallablePackage(ModuleType):
    """A package that acts as one of its functions, which is imported when first needed."""

    _function: str

    def _load(self) -> Callable[..., Any]:
        module, _, name = self._function.partition(":")
        function: Callable[..., Any] = getattr(import_module(module), name)
        return function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the function; raises MissingExtra where it needs a package that is not there."""
        with naming_extras():
            return self._load()(*arguments, **options)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._load())

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        return self._load().__doc__


def callable_package(name: str, function: str) -> None:
    """Let a package be called as a function 'module:name'; for the last line of its `__init__`."""
    package = sys.modules[name]
    package._function = function  # type: ignore[attr-defined]
    package.__class__ = CallablePackage
