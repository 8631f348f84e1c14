"""Options are declared once: the same dataclass for Python, YAML and the command line."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import click
import pytest
from click.testing import CliRunner

from noisegen.errors import UsageError
from noisegen.options import (
    Strings,
    argument,
    click_options,
    command_line,
    decode,
    internal,
    option,
    parse_values,
    public,
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


def _greet(options: GreetOptions) -> GreetOptions:
    """Greet people."""
    return options


greet = public(GreetOptions, _greet)


def test_a_twin_takes_what_its_dataclass_takes() -> None:
    assert greet("Ann", times=2) == GreetOptions(("Ann",), times=2)
    assert greet(["Ann", Path("b")], words="so") == GreetOptions(("Ann", "b"), words=("so",))
    assert greet.__name__ == "greet"
    assert list(inspect.signature(greet).parameters)[:2] == ["names", "times"]


def test_a_twin_is_documented_by_its_options() -> None:
    assert greet.__doc__.startswith(
        "Greet people.\n\n- `times`: How often\n- `rate`: Share greeted"
    )
    assert inspect.signature(greet).parameters["times"].annotation is int


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
    click.echo(command_line("greet", decode(GreetOptions, values)))


@pytest.mark.parametrize(
    "line",
    [
        "noisegen greet Ann",
        "noisegen greet Ann 'B C' --times 3 --rate 0.25 --tone cool --no-aloud --twice",
        "noisegen greet Ann --word so --word well --span 0.5 2.0",
    ],
)
def test_a_command_line_is_read_and_written_back(line: str) -> None:
    import shlex

    assert CliRunner().invoke(command, shlex.split(line)[2:]).output.strip() == line


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
