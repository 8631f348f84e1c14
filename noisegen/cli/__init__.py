"""The command line: a file per group of commands; each parses, calls the library once, prints."""

import ast
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import cast

import click

from noisegen.errors import NoisegenError, UsageError, naming_extras
from noisegen.version import __version__

_MODULES = {  # of the commands, in the order of the documentation
    "augment": "augment", "preview": "augment", "transforms": "augment", "stats": "augment",
    "prepare": "mine", "mine-wiki": "mine", "mine-lang8": "mine", "mine-pairs": "mine",
    "dictionary": "dictionary", "learn": "realism", "calibrate": "realism", "realism": "realism",
    "review": "review", "train": "train", "evaluate": "evaluate",
    "evaluate-task": "evaluate", "quickstart": "train",
}  # fmt: skip


class _Commands(Mapping[str, click.Command]):
    """The commands by name, each imported when it is needed."""

    def __getitem__(self, name: str) -> click.Command:
        module = import_module(f"noisegen.cli.{_MODULES[name]}")
        return cast(click.Command, getattr(module, name.replace("-", "_")))

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Program(click.Group):
    """A group that imports no command to list them: their docstrings are read from the source."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the first line of the docstring of every command."""
        lines: dict[str, str] = {}
        for module in set(_MODULES.values()):
            tree = ast.parse(Path(__file__).with_name(f"{module}.py").read_text("utf-8"))
            functions = (node for node in tree.body if isinstance(node, ast.FunctionDef))
            lines |= {node.name: ast.get_docstring(node) or "" for node in functions}
        summaries = {name: lines[name.replace("-", "_")] for name in sorted(_MODULES)}
        with formatter.section("Commands"):
            formatter.write_dl([(n, text.partition("\n")[0]) for n, text in summaries.items()])


@click.group(cls=_Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noisegen")
def noisegen() -> None:
    """Make and mine realistic noisy text.

    Example: noisegen augment news.txt -o out --seed 7
    """


noisegen.commands = _Commands()  # type: ignore[assignment] # click only reads it


def main() -> None:
    """Run the program; see `run` for what its exit codes mean."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up as Ctrl-C does
    warnings.showwarning = lambda message, *_: click.echo(f"warning: {message}", err=True)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 done, 1 an error to act on, 2 wrong usage, 3 damaged input was salvaged, 130 interrupted.
    """
    try:
        with naming_extras():
            code = noisegen(arguments, "noisegen", standalone_mode=False, obj=arguments) or 0
        if sys.stdout:
            sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except NoisegenError as error:
        click.echo(f"error: {error}", err=True)
        return 2 if isinstance(error, UsageError) else 1
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted; what is finished is kept: run again with --resume", err=True)
        return 130
    except UnicodeEncodeError:
        click.echo("error: an argument is not valid UTF-8", err=True)
        return 2
    except (BrokenPipeError, SystemExit):  # the reader of a pipe has had enough; click then exits
        _drop_stdout()
        return 0
    except OSError as error:
        _drop_stdout()
        what = error.filename or "cannot write the output"
        click.echo(f"error: {what}: {error.strerror}", err=True)
        return 1


def _drop_stdout() -> None:
    """Send what is still in the buffer nowhere, so that leaving does not fail on it once more."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
