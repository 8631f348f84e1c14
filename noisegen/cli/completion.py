"""`noisegen completion`: the script for a shell, and what the values of options may be."""

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from noisegen.errors import UsageError

SHELLS = ("bash", "zsh", "fish")


@click.command(
    epilog="""\b
Examples:
  echo 'eval "$(noisegen completion bash)"' >> ~/.bashrc
  echo 'eval "$(noisegen completion zsh)"' >> ~/.zshrc
  noisegen completion fish > ~/.config/fish/completions/noisegen.fish
"""
)
@click.argument("shell", type=click.Choice(SHELLS), required=False)
def completion(shell: str | None) -> None:
    """Print the completion script of a shell.

    It completes commands, options, recipes, transforms, languages, presets, models and files. The
    default is the shell in the environment variable SHELL.
    """
    from noisegen.cli import COMPLETE, noisegen

    shell = shell or Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise UsageError(f"name a shell: {', '.join(SHELLS)}")
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(noisegen, {}, "noisegen", COMPLETE).source())


class Bash(BashComplete):
    """Bash, which cuts words at : and =, as in `fing:rate=0.1`: the line itself is read instead."""

    source_template = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    for completion in $(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" \\
        COMP_WORDBREAKS="$COMP_WORDBREAKS" %(complete_var)s=bash_complete $1); do
        IFS=',' read -r type value <<< "$completion"
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            *) COMPREPLY+=("$value"); [[ $value == *[:=.+,] ]] && compopt -o nospace ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the words of the line, and the one that is being typed."""
        line = os.environ["COMP_WORDS"]
        words = split_arg_string(line)
        incomplete = words.pop() if words and not line[-1].isspace() else ""
        return words[1:], incomplete

    def format_completion(self, item: CompletionItem[str]) -> str:
        """Return the type, and the value without what bash takes for earlier words."""
        _, incomplete = self.get_completion_args()
        breaks = set(":=") & set(os.environ.get("COMP_WORDBREAKS", ""))
        cut = max((incomplete.rfind(sign) + 1 for sign in breaks), default=0)
        return f"{item.type},{item.value.removeprefix(incomplete[:cut])}"


add_completion_class(Bash)


# Values.


class Values(click.ParamType[str]):
    """Text that may be one of some names, several of them, or a file.

    `names` are given what is written up to the last of the signs `between`.
    """

    name = "text"

    def __init__(self, names: Callable[[str], Iterable[str]], between: str = "") -> None:
        self.names, self.between = names, between

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem[str]]:
        """Return the names that begin with what is typed; files if there are none."""
        cut = max((incomplete.rfind(sign) + 1 for sign in self.between), default=0)
        head, begun = incomplete[:cut], incomplete[cut:]
        names = (name for name in self.names(head) if name.startswith(begun))
        items = [CompletionItem(head + name) for name in names]
        return items or [CompletionItem(incomplete, type="file")]


def _recipes(_: str) -> list[str]:
    from noisegen.noising.recipe import recipe_names

    return recipe_names()


def _transforms(head: str = "") -> list[str]:
    """Return the names of all transforms, or the parameters of the one that is typed."""
    from noisegen.noising import registry

    if not head:
        return registry.names()
    return [f"{name}=" for name in registry.get(re.split("[:.]", head)[0]).parameters]


def _settings(head: str) -> list[str]:
    return _transforms(head) if head else [f"{name}." for name in _transforms()]


def _languages(_: str) -> list[str]:
    from noisegen.noising import registry

    spoken = (registry.get(name).languages() for name in registry.names())
    return sorted(set[str]().union(*spoken) - {"*"})


def _presets(_: str) -> list[str]:
    from noisegen.training.settings import preset_names

    return preset_names()


_SPECS = ("minilm", "use", "e5", "hf:", "laser2:", "rolaser:", "npy:")
_VALUES = {  # by the flag or the name of a parameter
    "--augment": Values(_recipes),
    "--into": Values(_languages),
    "--lang": Values(_languages),
    "--preset": Values(_presets),
    "--protect": Values(lambda _: ("url", "mention", "hashtag", "email", "none"), ","),
    "--recipe": Values(_recipes, "+"),
    "--student": Values(lambda _: ("copy", "layers:", "char", "e5", "hf:")),
    "--teacher": Values(lambda _: (*_SPECS, "social:")),
    "--transform": Values(_transforms, ":,"),
    "--transforms": Values(lambda head: ["all", *_recipes(head), *_transforms()], ","),
    "baseline": Values(lambda _: _SPECS),
    "models": Values(lambda _: _SPECS),
    "recipe": Values(_recipes),
    "settings": Values(_settings, "."),
    "transform": Values(_transforms),
}


def add_values(command: click.Command) -> None:
    """Let the completion of a command know the values of its parameters; all others are files."""
    for parameter in command.params:
        values = _VALUES.get(parameter.opts[-1]) or _VALUES.get(parameter.name or "")
        if values:
            parameter.type = values
        elif parameter.type is click.STRING:
            parameter.type = click.Path()
    if isinstance(command, click.Group):
        for part in command.commands.values():
            add_values(part)
