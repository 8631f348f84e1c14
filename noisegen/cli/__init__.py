"""The command line: one file a command; each parses, calls the library once, and prints."""

import os
import signal
import sys
import warnings

import click

from noisegen.cli.augment import augment
from noisegen.cli.calibrate import calibrate
from noisegen.cli.dictionary import dictionary
from noisegen.cli.evaluate import evaluate
from noisegen.cli.evaluate_task import evaluate_task
from noisegen.cli.learn import learn
from noisegen.cli.mine_lang8 import mine_lang8
from noisegen.cli.mine_pairs import mine_pairs
from noisegen.cli.mine_wiki import mine_wiki
from noisegen.cli.prepare import prepare
from noisegen.cli.preview import preview
from noisegen.cli.quickstart import quickstart
from noisegen.cli.realism import realism
from noisegen.cli.review import review
from noisegen.cli.stats import stats
from noisegen.cli.train import train
from noisegen.cli.transforms import transforms
from noisegen.errors import NoisegenError, UsageError
from noisegen.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="noisegen")
def noisegen() -> None:
    """Make and mine realistic noisy text.

    Example: noisegen augment news.txt -o out --seed 7
    """


_COMMANDS = (
    augment, preview, transforms, stats, prepare, mine_wiki, mine_lang8, mine_pairs, dictionary,
    learn, calibrate, realism, review, train, evaluate, evaluate_task, quickstart,
)  # fmt: skip
for command in _COMMANDS:
    noisegen.add_command(command)


def main() -> None:
    """Run the program; see `run` for what its exit codes mean."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # cleans up as Ctrl-C does
    warnings.showwarning = lambda message, *_: click.echo(f"warning: {message}", err=True)
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code.

    0 done, 1 an error to act on, 2 wrong usage, 3 damaged input was salved, 130 interrupted.
    """
    try:
        code = noisegen(arguments, "noisegen", standalone_mode=False, obj=arguments) or 0
        if sys.stdout:
            sys.stdout.flush()
        return code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except UsageError as error:
        click.echo(f"error: {error}", err=True)
        return 2
    except NoisegenError as error:
        click.echo(f"error: {error}", err=True)
        return 1
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
