"""Completion, as bash asks for it."""

import subprocess
import sys

import pytest

from noisegen.cli import run

IN_BASH = """
eval "$(cat {folder}/script)"
compopt() {{ options="$1 $2"; }}
while IFS= read -r line; do
    COMP_LINE=$line COMP_POINT=${{#line}} COMPREPLY=() options=
    _noisegen_completion {folder}/noisegen
    echo "${{COMPREPLY[*]}}|$options"
done
"""
IN_PYTHON = """
import os, sys
from noisegen.cli import COMPLETE, completion, noisegen
for line in sys.stdin.read().splitlines():
    os.environ |= {"COMP_WORDS": line, "COMP_WORDBREAKS": ":="}
    found = completion.Bash(noisegen, {}, "noisegen", COMPLETE).complete()
    print(*found.splitlines())
"""
LINES = {  # and what replaces the last of bash's words; files where there is no name
    "noisegen mine-": "mine-lang8 mine-pairs mine-wiki",
    "noisegen preview --rec": "--recipe",
    "noisegen preview --recipe ugc": "ugc ugc-heavy ugc-light",
    "noisegen preview --recipe=ugc-": "ugc-heavy ugc-light",
    "noisegen preview --tagger ": "rule spacy",
    "noisegen preview -t spa": "spac",
    "noisegen preview -t spac:drop_rate=0.1,a": "0.1,add_rate=",
    "noisegen preview --set spac.d": "spac.drop_rate=",
    "noisegen preview --lang d": "da de",
    "noisegen preview --protect url,m": "url,mention",
    "noisegen preview news": "",
    "noisegen preview --recipe my": "",
    "noisegen transforms lee": "leet",
    "noisegen recipes rolaser-": "rolaser-code",
    "noisegen review make -t hom": "homo",
    "noisegen train pairs --preset oracle": "oracle oracle-small",
    "noisegen train pairs --recipe stored+mix": "stored+mix_all",
    "noisegen train pairs --teacher la": "laser2:",
    "noisegen evaluate mini": "minilm",
    "noisegen evaluate --transforms fing,ugc-h": "fing,ugc-heavy",
    "noisegen completion ": "bash zsh fish",
}


@pytest.fixture(scope="module")
def completed():
    """What bash is answered, by line; commands are changed by it, so in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", IN_PYTHON], input="\n".join(LINES), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(zip(LINES, done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("line", LINES)
def test_values_are_completed(completed, line):
    expected = [f"plain,{name}" for name in LINES[line].split()]
    assert completed[line] == (" ".join(expected) or f"file,{line.split()[-1]}")


def test_bash_completes(tmp_path):
    program = tmp_path / "noisegen"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m noisegen "$@"\n')
    program.chmod(0o755)
    script = subprocess.check_output([program, "completion", "bash"], text=True)
    (tmp_path / "script").write_text(script)
    lines = ["noisegen preview --recipe=ug", "noisegen preview -t fing:r", "noisegen preview ne"]
    done = subprocess.run(
        ["bash", "-c", IN_BASH.format(folder=tmp_path)], input="".join(f"{x}\n" for x in lines),
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "ugc ugc-heavy ugc-light|",
        "rate=|-o nospace",
        "|-o default",
    ]


@pytest.mark.parametrize(("shell", "word"), [("zsh", "#compdef noisegen"), ("fish", "complete ")])
def test_other_shells_have_scripts_of_their_own(shell, word, monkeypatch, capfd):
    assert run(["completion", shell]) == 0
    script = capfd.readouterr().out
    assert word in script
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    run(["completion"])
    assert capfd.readouterr().out == script


def test_an_unknown_shell_is_wrong_usage(monkeypatch, capfd):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert run(["completion"]) == 2
    assert "name a shell: bash, zsh, fish" in capfd.readouterr().err
