"""Options are declared once: the same dataclass for Python, YAML and the command line."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import click
import pytest
from click.testing import CliRunner

import noisegen
from noisegen.cli.parameters import click_options
from noisegen.errors import MissingExtra, UsageError
from noisegen.options import (
    Strings,
    argument,
    decode,
    internal,
    option,
    parse_values,
    public,
)

PACKAGE = Path(noisegen.__file__).parent
DECODING = re.compile(
    r"^@public\ndef (\w+)\(.*?decode\((\w+), locals\(\)\)", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class GreetOptions:
    names: Annotated[Strings, argument("NAME...")]
    times: Annotated[int, option("How often", ge=1)] = 1
    rate: Annotated[float | None, option("Share greeted", gt=0, le=1)] = None
    tone: Annotated[Literal["warm", "cool"], option("How it sounds")] = "warm"
    aloud: Annotated[bool, option("With a voice")] = True
    twice: Annotated[bool, option("Once more")] = False
    words: Annotated[tuple[str, ...], option("Said too", "-w", "--word")] = ()
    span: Annotated[tuple[float, float], option("From and to")] = (0.0, 1.0)
    progress: Annotated[Callable[[int], None] | None, internal()] = None


@public
def greet(
    names: Strings,
    times: int = 1,
    rate: float | None = None,
    tone: Literal["warm", "cool"] = "warm",
    aloud: bool = True,
    twice: bool = False,
    words: tuple[str, ...] = (),
    span: tuple[float, float] = (0.0, 1.0),
    progress: Callable[[int], None] | None = None,
) -> GreetOptions:
    """Greet people."""
    return decode(GreetOptions, locals())


def test_a_public_function_decodes_its_arguments() -> None:
    assert greet("Ann", times=2) == GreetOptions(("Ann",), times=2)
    assert greet(["Ann", Path("b")], words="so") == GreetOptions(("Ann", "b"), words=("so",))
    assert greet.__name__ == "greet"


def test_a_missing_package_names_its_extra() -> None:
    @public
    def cut() -> None:
        raise ModuleNotFoundError(name="jieba.posseg")

    with pytest.raises(MissingExtra, match=r"noisegen\[zh\]"):
        cut()


def decoding_functions() -> Iterator[tuple[Callable[..., Any], Any]]:
    """Yield each function of the package that decodes its arguments, with its dataclass."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for function, options in DECODING.findall(path.read_text("utf-8")):
            name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
            module = importlib.import_module(name)
            yield getattr(module, function), getattr(module, options)


@pytest.mark.parametrize(
    ("function", "options"),
    [pytest.param(*pair, id=pair[0].__name__) for pair in decoding_functions()],
)
def test_signature_and_dataclass_agree(function: Callable[..., Any], options: Any) -> None:
    declared, hints = inspect.signature(options), get_type_hints(options, include_extras=True)
    own, own_hints = inspect.signature(function), get_type_hints(function)
    assert list(own.parameters) == list(declared.parameters)
    for name, parameter in own.parameters.items():
        field, hint = declared.parameters[name], hints[name]
        hint = get_args(hint)[0] if get_origin(hint) is Annotated else hint
        assert (parameter.kind, parameter.default) == (field.kind, field.default), name
        # The dataclass of a command has Any for a class that is slow to import.
        assert own_hints[name] == hint or Any in get_args(hint), name


def test_all_public_functions_with_options_are_compared() -> None:
    assert len(list(decoding_functions())) == 19


def test_text_becomes_what_the_type_asks() -> None:
    values = {"names": "Ann", "times": "3", "rate": "0.5", "aloud": "false", "span": ["0", "2"]}
    decoded = decode(GreetOptions, values)
    assert decoded == GreetOptions(("Ann",), times=3, rate=0.5, aloud=False, span=(0.0, 2.0))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"times": 0}, "--times 0 is not a whole number, at least 1"),
        ({"times": 2.5}, "--times 2.5 is not a whole number, at least 1"),
        ({"times": True}, "--times True is not a whole number, at least 1"),
        ({"rate": 2}, "--rate 2 is not a number, above 0, at most 1"),
        ({"tone": "hot"}, "--tone 'hot' is not warm or cool"),
        ({"aloud": 3}, "--aloud/--no-aloud 3 is not true or false"),
        ({"span": (1,)}, r"--span \(1,\) is not 2 values, each a number"),
        ({"words": ["so", ""]}, "--word is empty: give a value, or leave it out"),
        ({"tims": 1}, "greet has no option 'tims'; did you mean 'times'"),
    ],
)
def test_wrong_values_are_refused_in_one_line(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        greet("Ann", **values)


def test_internal_values_are_taken_as_they_are() -> None:
    heard: list[int] = []
    assert greet("Ann", progress=heard.append).progress == heard.append


@click.command()
@click_options(GreetOptions)
def command(**values: Any) -> None:
    click.echo(repr(decode(GreetOptions, values)))


def test_a_command_line_is_read() -> None:
    line = "Ann Bo --times 3 --rate 0.25 --tone cool --no-aloud --twice --word so -w no --span .5 2"
    wanted = GreetOptions(
        ("Ann", "Bo"), 3, 0.25, "cool", aloud=False, twice=True, words=("so", "no"), span=(0.5, 2.0)
    )
    assert CliRunner().invoke(command, line.split()).output.strip() == repr(wanted)


def test_help_has_bounds_choices_and_defaults() -> None:
    shown = CliRunner().invoke(command, ["--help"]).output
    for part in (
        "NAME...",
        "[default: 1; x>=1]",
        "[warm|cool]",
        "--aloud / --no-aloud",
        "-w, --word",
    ):
        assert part in shown
    assert "progress" not in shown


def test_pairs_of_key_and_value_are_read_as_yaml() -> None:
    assert parse_values(["a=1", "b.c=no", "d=[x, 2]"]) == {"a": 1, "b.c": False, "d": ["x", 2]}
    with pytest.raises(UsageError, match="write KEY=VALUE"):
        parse_values(["a"])
