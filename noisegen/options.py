"""Options of a command, declared once: a dataclass for the command line, YAML files and Python.

    @dataclass(frozen=True)
    class GreetOptions:
        names: Annotated[Strings, argument("NAME...")]
        times: Annotated[int, option("Greetings per name", ge=1)] = 1

    @public
    def greet(names: Strings, times: int = 1) -> str:
        options = decode(GreetOptions, locals())  # types and bounds are checked here
        ...

`noisegen.cli.parameters` makes the arguments and flags of a command from the same dataclass. A test
compares the signature of every public function with its dataclass.
"""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from functools import cache, cached_property, wraps
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

import msgspec  # chosen over pydantic for its import time: 25 ms, not 80 ms

from noisegen.errors import UsageError, did_you_mean, name_extra

P = ParamSpec("P")
Options = TypeVar("Options")
Result = TypeVar("Result")
Made = TypeVar("Made")
MANY = -1  # the length of a tuple of any length; click uses -1 for it, too
Strings = str | Path | Sequence[str | Path]  # one text or several; `decode` makes a tuple of str


def listed(sources: Strings) -> list[str]:
    """Return one or several paths or texts as a list of text."""
    given = [sources] if isinstance(sources, str | Path) else sources
    return [str(source) for source in given]


# Declaring options.


@dataclass(frozen=True)
class Meta:
    """Annotation of a field of an options dataclass: help text, flags, bounds, and place.

    `place` says whether the field is an option, a positional argument, or for Python callers only.
    `bounds` are pairs such as ("ge", 1): "ge", "gt", "le" or "lt", and a number.
    """

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
    """Annotate a field as an option of the command line.

    `flags` replace the flag that is made from the field's name. `bounds` are limits such as ge=1;
    their names are ge (at least), gt (above), le (at most) and lt (below).
    """
    return Meta(help, flags, metavar, tuple(bounds.items()))


def argument(metavar: str) -> Meta:
    """Annotate a field as a positional argument of the command."""
    return Meta(metavar=metavar, place="argument")


def internal() -> Meta:
    """Annotate a field that is no option of the command line: an object or a callback.

    Only Python callers can set it; `decode` does not convert its value.
    """
    return Meta(place="python")


# Checking what a caller gives.


def public(function: Callable[P, Result]) -> Callable[P, Result]:
    """Decorate a public function so that a wrong call raises an error that says what to do.

    An unknown option raises UsageError, which suggests the nearest known name; so does a text for
    an option that is True or False, since "no" counts as true in Python. An optional package that
    is not installed raises MissingExtra.
    """
    known = inspect.signature(function).parameters
    switches = {option for option, parameter in known.items() if parameter.annotation is bool}
    name = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> Result:
        if not kwargs.keys() <= known.keys():
            refuse_unknown(kwargs, known, name)
        for option in switches.intersection(kwargs):
            if isinstance(kwargs[option], str):
                raise UsageError(f"{option} is True or False, not {kwargs[option]!r}")
        try:
            return function(*args, **kwargs)
        except ImportError as error:
            name_extra(error)
            raise

    return checked


def checked_init(made: type[Made]) -> type[Made]:
    """Decorate a public dataclass: its `__init__` is checked as `public` checks a function."""
    setattr(made, "__init__", public(vars(made)["__init__"]))  # noqa: B010 - for mypy
    return made


def refuse_unknown(values: Iterable[str], known: Collection[str], owner: str = "") -> None:
    """Raise UsageError for the first name in `values` that is not in `known`, the known options.

    The error suggests the nearest known name. Its message begins with `owner`, the name of the
    function or class that has the options.
    """
    for name in values:
        if name not in known:
            where = f"{owner} has" if owner else "there is"
            raise UsageError(f"{where} no option {name!r}{did_you_mean(name, known)}")


def decode(
    options: Callable[..., Options],
    values: Mapping[str, Any],
    label: Callable[[str], str] | None = None,
) -> Options:
    """Make an object of the dataclass `options`; each value is converted to its field's type.

    Text becomes a number for a field of numbers ("3" -> 3), a number or path becomes text for a
    field of text (2 -> "2"), and a single value becomes a tuple for a field of several values.
    Raises UsageError for an unknown name, a wrong type or a value out of bounds; the message names
    a field by `label(name)` (default: its flag).
    """
    known = fields_of(options)
    if not values.keys() <= known.keys():
        refuse_unknown(values, known)
    decoded = {}
    for name, value in values.items():
        decoded[name] = known[name].convert(value, label(name) if label else "")
    return options(**decoded)


def parse_values(pairs: Sequence[str]) -> dict[str, Any]:
    """Parse the values of --set, KEY=VALUE with VALUE in YAML: ['epochs=3'] -> {'epochs': 3}.

    Raises UsageError for a text without = and for a value that is not YAML.
    """
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


# Fields.


@dataclass(frozen=True)
class OptionField:
    """A field of an options dataclass, with the content of its annotation.

    `kinds` are the types that one value may have, without None, and without Path, since paths
    become text. `length` is the number of values: 1, N for a tuple of N, or MANY.
    """

    name: str
    kinds: tuple[Any, ...]
    length: int
    is_optional: bool
    default: Any
    meta: Meta

    @classmethod
    def of(cls, field: Field[Any], hint: Any) -> "OptionField":
        """Make the OptionField of a field; `hint` is its type, such as Annotated[int, option()]."""
        meta = Meta()
        if get_origin(hint) is Annotated:
            hint, *annotations = get_args(hint)
            meta = next(one for one in annotations if isinstance(one, Meta))
        if hint == Strings:
            hint = tuple[str, ...]
        is_union = get_origin(hint) in (Union, UnionType)
        types = get_args(hint) if is_union else (hint,)
        kinds = tuple(kind for kind in types if kind not in (NoneType, Path))
        length = 1
        if get_origin(kinds[0]) is tuple:
            items = get_args(kinds[0])
            kinds = items[:1]
            length = MANY if items[-1] is ... else len(items)
        factory = field.default_factory
        default = field.default if factory is MISSING else factory()
        return cls(field.name, kinds, length, NoneType in types, default, meta)

    @property
    def flag(self) -> str:
        """The long flag, '--rows-per-shard', or '--hard/--no-hard' if the default is True."""
        flag = self.meta.flags[-1] if self.meta.flags else f"--{self.name.replace('_', '-')}"
        return f"{flag}/--no-{flag[2:]}" if self.default is True else flag

    def convert(self, value: Any, label: str = "") -> Any:
        """Return the value converted to the type of the field.

        Raises UsageError, which names the field by `label` (default: its flag).
        """
        if self.meta.place == "python":
            if self.name == "values" and not isinstance(value, Mapping | None):
                raise UsageError(f"values {value!r} is not a dict")
            return value
        if value is None and self.is_optional:
            return None
        given = _as_text(value if self.length == 1 else _as_list(value), self.kinds)
        is_empty = given == "" or (isinstance(given, list) and "" in given)
        if is_empty and self.default not in ("", MISSING):
            raise UsageError(f"{label or self.flag} is empty: give a value, or leave it out")
        try:
            return msgspec.convert(given, self.checked_type, strict=False)
        except msgspec.ValidationError as error:
            _refuse_dataset(value)
            wanted = self._wanted()
            if self.kinds == (str,) and "|" in (self.meta.metavar or ""):
                wanted += f": {self.meta.metavar}"
            raise UsageError(f"{label or self.flag} {value!r} is not {wanted}") from error

    @cached_property
    def checked_type(self) -> Any:
        """The type to which msgspec converts a value; it has the minimum and maximum of numbers."""
        bounds: Any = msgspec.Meta(**dict[str, Any](self.meta.bounds))
        bounded = [Annotated[kind, bounds] if kind in (int, float) else kind for kind in self.kinds]
        kind: Any = Union[tuple(bounded)]  # noqa: UP007
        if self.length == 1:
            return kind
        items = (kind, ...) if self.length == MANY else (kind,) * self.length
        return tuple.__class_getitem__(items)

    def _wanted(self) -> str:
        """Describe the values that the field takes: "a whole number, at least 1"."""
        names = []
        for kind in self.kinds:
            if get_origin(kind) is Literal:
                *others, last = map(str, get_args(kind))
                names.append(f"{', '.join(others)} or {last}" if others else last)
            else:
                names.append(_TYPE_NAMES.get(kind, getattr(kind, "__name__", str(kind))))
        limits = [_BOUND_NAMES[name].format(limit) for name, limit in self.meta.bounds]
        single = ", ".join([" or ".join(names), *limits])
        if self.length == 1:
            return single
        return f"{'a list' if self.length == MANY else f'{self.length} values'}, each {single}"


_TYPE_NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_BOUND_NAMES = {"ge": "at least {:,}", "gt": "above {:,}", "le": "at most {:,}", "lt": "below {:,}"}


@cache
def fields_of(options: Any) -> dict[str, OptionField]:
    """Map the names of an options dataclass's fields to OptionFields, in their order."""
    hints = get_type_hints(options, include_extras=True)
    given = [field for field in fields(options) if field.init]
    return {field.name: OptionField.of(field, hints[field.name]) for field in given}


def _as_list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]


def _as_text(value: Any, kinds: tuple[Any, ...]) -> Any:
    """Return a value with every path in it, or in its list, turned into text.

    Numbers become text too if a value may only be text: `kinds` are the types that it may have.
    """
    if isinstance(value, list):
        return [_as_text(item, kinds) for item in value]
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if isinstance(value, Path) or (is_number and kinds == (str,)) else value


def _refuse_dataset(value: Any) -> None:
    """Raise UsageError if a value, or an item of its list, is an object of the package datasets."""
    for item in _as_list(value):
        if type(item).__module__.partition(".")[0] == "datasets":
            raise UsageError(
                f"a {type(item).__name__} in memory is no source: save it with save_to_disk and "
                "name the folder, or noise its rows with noisegen.Mapper"
            ) from None
