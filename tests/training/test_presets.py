import json
import re
import shlex
from pathlib import Path

import click
import pytest

from noisegen.cli import noisegen, run
from noisegen.cli.train import train
from noisegen.training.settings import preset_names, read_preset
from noisegen.training.train import METHODS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_says_what_it_follows_needs_and_costs(name):
    found = read_preset(name)

    assert found.method in METHODS
    assert all((found.paper, found.data, found.cost, found.objective))


@pytest.mark.parametrize("name", preset_names())
def test_the_command_of_a_preset_can_be_typed(name):
    program, command, *words = shlex.split(read_preset(name).command)
    parent = click.Context(noisegen, **noisegen.context_settings)
    given = train.make_context("train", words, parent).params

    assert (program, command) == ("noisegen", "train")
    assert (given["preset"] or preset_names()[0]) == name
    assert given["data"]
    assert given["out"]


@pytest.mark.parametrize("name", preset_names())
def test_the_commands_of_tables_can_be_typed(name):
    tables = read_preset(name).tables
    if isinstance(tables, str):
        assert not isinstance(read_preset(tables).tables, str)
        return
    assert tables
    for line in tables.values():
        program, *words = shlex.split(line)
        if program == "python":
            assert words[0] == "-m"
            assert (ROOT / f"{words[1].replace('.', '/')}.py").exists()
        else:
            command = noisegen.commands[words[0]]
            parent = click.Context(noisegen, **noisegen.context_settings)
            if isinstance(command, click.Group):
                command = command.commands[words.pop(1)]
            assert program == "noisegen"
            params = command.make_context(words[0], words[1:], parent).params
            assert params.get("out") or params.get("plot")


def test_the_list_shows_every_preset(capsys):
    assert run(["train", "--list"]) == 0
    shown = capsys.readouterr().out
    assert run(["train", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["presets"]

    assert [one["name"] for one in listed] == preset_names()
    assert max(map(len, shown.splitlines())) <= 80
    joined = re.sub(r" \\\n *", " ", shown)  # as a shell reads it
    for one in listed:
        assert f"{one['name']}: {one['paper']}" in shown
        assert f"\n    {one['command']}\n" in joined
        if isinstance(one["tables"], str):
            assert f"  tables     those of {one['tables']}\n" in shown
        else:
            lines = [f"  {name}:\n    {line}\n" for name, line in one["tables"].items()]
            assert [line for line in lines if line not in joined] == []


def test_without_data_the_usage_is_shown(capsys):
    assert run(["train"]) == 2
    assert "missing argument DATA" in capsys.readouterr().err
