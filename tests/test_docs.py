"""The documentation is true: generated pages are fresh, shown commands and code do what they show.

In a page, a fenced block with a title is written to the file of that name, and so is a file that
an `sh` block writes (`cat > FILE <<'END'`). `console` is run and compared (`...` stands for
anything, a line of it for any lines). `python` is run: an `expression  # -> value` is checked, and
what it prints is the next `text` block. All other blocks are only read.
"""

import ast
import contextlib
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import api_page
import click
import pytest
import yaml

import noisegen
from noisegen import cli
from noisegen.augmentation import on_the_fly, shards
from noisegen.augmentation.catalog import TransformInfo, list_transforms
from noisegen.noising import noise, recipe, registry, tagging
from noisegen.testing import noise_with

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for path in [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("noisegen/**/README.md"),
    ]
    if path.name[0] != "." and "templates" not in path.parts
)
PLAYED = [
    path for path in PAGES if re.search(r"^```(console|python)\n", path.read_text("utf-8"), re.M)
]
FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
WRITTEN = re.compile(r"^cat > (\S+) <<'END'\n(.*?)^END$", re.MULTILINE | re.DOTALL)
FOLDERS = ("benchmarks", "examples", "noisegen", "tests", "tools")
TRIED = 500  # ids
NOT_FOR_DOCS = ("torch", "spacy", "sklearn", "pytest", "playwright", "hypothesis")
LEARNED = ("channel",)  # transforms whose example is of a profile that a test learns


class Block(NamedTuple):
    kind: str
    file: str
    body: str


def read(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(text: str) -> list[Block]:
    return [Block(*parts) for parts in FENCE.findall(text)]


def built_in() -> list[TransformInfo]:
    return [one for one in list_transforms() if ":" not in one.name]


# What is generated.


def test_generated_pages_are_fresh():
    made = read("docs/reference/transforms.md")
    from importlib.metadata import version

    if f"codespell {version('codespell')}" not in made:
        pytest.skip("another codespell than the one of the page")
    program = (
        f"import runpy, sys; sys.modules.update(dict.fromkeys({NOT_FOR_DOCS}))\n"
        "sys.argv = ['make_docs.py', '--check']\n"
        "runpy.run_path('tools/make_docs.py', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_home_page_has_real_noise_and_three_doors():
    home = read("docs/index.md")
    (*_, (clean, noisy)) = re.findall(r"^\| (.*) \| (.*) \|$", home, re.MULTILINE)
    assert noisegen.noise(clean, "ugc", seed=21, id=0) == noisy
    assert "pip install noisegen\n" in home
    assert re.findall(r"^- \*\*(.*)\*\*", home, re.MULTILINE) == ["Make noise", "Measure", "Train"]
    guides = "".join(path.read_text("utf-8") for path in (ROOT / "docs/guides").glob("*.md"))
    for word in ("chats", "severity", "OCR", "spans"):  # for the search of the site
        assert word in home
        assert word in guides


def test_pages_count_the_transforms():
    count = len(built_in())
    assert f"{count} built-in transforms" in read("docs/reference/transforms.md")
    assert f"clean text: {count} transforms" in read("README.md")
    assert f"{count} transforms" in read("docs/index.md")


def test_every_command_and_option_is_on_its_page():
    page = read("docs/reference/cli.md")
    for name, command in cli.noisegen.commands.items():
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert f"noisegen {name}" in section
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert all(option in section for option in parameter.opts), parameter.opts


def test_every_public_name_is_on_the_python_page():
    page = read("docs/reference/python.md")
    assert [name for name in noisegen.__all__ if not re.search(rf"\b{name}\b", page)] == []


def test_the_command_realism_and_its_function_name_each_other():
    assert "noisegen.compare" in (cli.noisegen.commands["realism"].help or "")
    assert "command `realism`" in noisegen.compare.__doc__.partition("\n")[0]
    for page in ("docs/reference/python.md", "docs/guides/realism.md"):
        assert re.search(r"the command `realism`", read(page))


def test_the_reference_has_parameters_errors_and_an_example_of_every_name():
    page = api_page.reference()
    sections = dict(re.findall(r"^::: noisegen\.\S*\.(\w+)$(.*?)(?=^:::|\Z)", page, re.M | re.S))
    assert sorted(sections) == sorted(noisegen._MODULES)
    for name, section in sections.items():
        shown = api_page.MADE.get(name, name)
        assert f"noisegen.{shown}" in section.partition("**Example**")[2]
        assert "**Errors**" in section or name in api_page.MADE
    assert "| `sources` | Files, folders, globs" in sections["augment"]
    assert "| `keeps_meaning` | `bool` |" in sections["TransformInfo"]
    assert "| `noisegen.errors.SourceError` | An input that cannot be read. |" in page
    assert "| `target_cer` | Character error rate | `None` |" in sections["calibrate"]
    with pytest.raises(LookupError, match=r"python.md has no example of noisegen\.nothing"):
        api_page.example("nothing")

    def noise_all(texts: list[str], rate: float = 0.1) -> None:
        """Noise `texts`."""

    with pytest.raises(LookupError, match="noise_all: its docstring does not name `rate`"):
        api_page.parameters("noise_all", noise_all)


ON_THE_CORE = """
import sys
from importlib.machinery import PathFinder
from noisegen.errors import EXTRAS

class CoreFinder(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name in EXTRAS else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [CoreFinder if one is PathFinder else one for one in sys.meta_path]
sys.path.insert(0, sys.argv[1])
import api_page
import stand_ins

stand_ins.install()
sys.stdout.write(api_page.reference())
"""


def test_the_reference_is_made_on_the_core_alone():
    """`make docs` installs no extra, and shows `train` all the same."""
    words = [sys.executable, "-c", ON_THE_CORE, str(ROOT / "tools")]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == api_page.reference(), done.stderr


@pytest.mark.parametrize("one", built_in(), ids=lambda one: one.name)
def test_every_transform_is_in_the_table_and_on_its_page(one):
    assert f"\n## {one.name}\n" in read("docs/reference/transforms.md")
    (before, after), *_ = one.examples
    row = next(
        line
        for line in read("docs/reference/transforms.md").splitlines()
        if line.startswith(f"| [`{one.name}`]")
    )
    assert f"| {before} | {after} |" in row


@pytest.mark.parametrize("one", built_in(), ids=lambda one: one.name)
def test_the_examples_of_a_summary_are_real(one):
    if one.name in LEARNED:
        pytest.skip("its test learns a profile first")
    langs = ["en"] if {"en", "*"} & set(one.languages) else one.languages
    for before, after in one.examples:
        assert any(
            after in noise_with(one.name, [before] * TRIED, rate, lang)
            for lang in langs
            for rate in (1, 0.5)
        )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_exists(page):
    links = re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8"))
    local = [link for link in links if "://" not in link]
    assert [link for link in local if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_file_and_name_of_the_project_exists(page):
    text = page.read_text("utf-8").partition("### Removed")[0].replace("noisegen.fish", "")
    files = re.findall(rf"\b(?:{'|'.join(FOLDERS)})/[a-z_./-]+\.(?:py|tsv|md)\b", text)
    assert [file for file in files if not (ROOT / file).exists()] == []
    names = re.findall(r"\bnoisegen(?:\.[a-z]\w+)+(?:\.[A-Z]\w+)?\b(?![./:-]\w)", text)
    assert [name for name in names if not _resolves(name)] == []
    modules = re.findall(r"\bpython -m\s(benchmarks[.\w]*\w)", text)
    assert [name for name in modules if find_spec(name) is None] == []


def _resolves(name: str) -> bool:
    if f'entry-points."{name}"' in read("pyproject.toml") or name == "noisegen.objectives":
        return True
    try:
        return pkgutil.resolve_name(name) is not None
    except (ImportError, AttributeError):
        return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_fence_is_one_to_the_site_too(page):
    """A fence that names its file in another way is running text to the Markdown of the site."""
    lines = page.read_text("utf-8").splitlines()
    fences = [line for line in lines if line.lstrip().startswith("```")]
    assert [line for line in fences if not re.fullmatch(r' *```(\w+( title="\S+")?)?', line)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_of_a_shell_block_is_valid(page):
    for block in blocks(page.read_text("utf-8")):
        if block.kind == "sh":
            shell = re.sub(r'"\$SLURM_\w+(/16)?"', r"1\1", block.body.replace("\\\n", " "))
            for command in re.findall(r"(?:^|\| |-m )noisegen ([^|>\n]+)", shell, re.MULTILINE):
                assert _problem(shlex.split(command, comments=True)) == ""


def _problem(arguments: list[str]) -> str:
    """Return what click says of an unknown command, option or value; run nothing."""
    try:
        _parse(arguments)
    except click.ClickException as error:
        return error.format_message()
    return ""


def _parse(arguments: list[str]) -> None:
    command: click.Command = cli.noisegen
    context = command.make_context("noisegen", arguments)
    while isinstance(command, click.Group):
        left = [*getattr(context, "_protected_args", ()), *context.args]
        name, inner, left = command.resolve_command(context, left)
        assert inner is not None
        command, context = inner, inner.make_context(name, left, parent=context)


PAPERS = ("rolaser", "rcp", "crisis", "oracle")
PLACE = re.compile(r"`((?:noisegen|tests|benchmarks)/[\w./-]+?)::?([\w.]+)`")


@pytest.mark.parametrize("page", PAPERS)
def test_every_place_in_a_table_of_items_exists(page):
    """A row has five cells; what is not implemented has no place, all else a test."""
    section = (
        read(f"docs/papers/{page}.md").partition("\n## Item by item\n")[2].partition("\n## ")[0]
    )
    head, _, *rows = [line for line in section.splitlines() if line.startswith("|")]
    assert head == "| item | the paper | here | exact, or how it differs | test |"
    for row in rows:
        _, here, how, test = row.strip("| ").split(" | ")[1:]
        if here == "-":
            assert (how[:15], test) == ("not implemented", "-"), row
        else:
            assert PLACE.fullmatch(here), row
            assert PLACE.fullmatch(test), row
            assert test.startswith("`tests/"), row
    places = PLACE.findall(section)
    assert [place for place in places if place[1] not in _defined_in(ROOT / place[0])] == []


def _defined_in(path: Path) -> set[str]:
    """Return the top-level names of a file, and `Class.name` of what classes have."""
    if path.suffix == ".yaml":
        return set(yaml.safe_load(path.read_text("utf-8")))

    def names(nodes: list[ast.stmt], prefix: str = "") -> Iterator[str]:
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                yield f"{prefix}{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from names(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.AnnAssign):
                yield f"{prefix}{ast.unparse(node.target)}"
            elif isinstance(node, ast.Assign):
                targets = [
                    target.elts if isinstance(target, ast.Tuple) else [target]
                    for target in node.targets
                ]
                yield from (f"{prefix}{ast.unparse(one)}" for group in targets for one in group)

    return set(names(ast.parse(path.read_text("utf-8")).body))


# What is shown.


@contextlib.contextmanager
def fresh() -> Iterator[None]:
    """Undo what is registered inside, and forget engines made before and inside."""
    registry.names()
    kept = [(table, dict(table)) for table in (registry._REGISTERED, registry._CODE)]
    _forget()
    try:
        yield
    finally:
        for table, before in kept:
            table.clear()
            table.update(before)
        _forget()


def _forget() -> None:
    for module in (noise, recipe, on_the_fly, shards):
        for made in vars(module).values():
            getattr(made, "cache_clear", int)()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder like a checkout, on a machine of one core without spaCy, 80 columns wide."""
    (tmp_path / "noisegen").symlink_to(ROOT / "noisegen")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(tagging, "installed_model", lambda lang: None)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    with fresh():
        yield tmp_path


# Programs of a shell block that the test of the first pages leaves out, and commands of noisegen
# that take minutes or train an encoder: these are only parsed.
LEFT_OUT = ("git", "cd", "make", "source", "pip", "echo", "cat", "eval")
SLOW = ("quickstart", "train", "evaluate")


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_commands_of_the_first_pages_run_in_a_fresh_folder(page, folder, capfd):
    """They run one after another, as a reader types them."""
    pytest.importorskip("sklearn")
    for block in blocks(read(page)):
        if block.kind == "console":
            lines = [line[2:] for line in block.body.splitlines() if line.startswith("$ ")]
        else:
            lines = WRITTEN.sub("", block.body).splitlines() if block.kind == "sh" else []
        for file, body in WRITTEN.findall(block.body):
            (folder / file).write_text(body, "utf-8")
        for line in lines:
            command, _, target = line.partition(" > ")
            words = shlex.split(command, comments=True)
            if not words or words[0] in LEFT_OUT or words[0].startswith("_NOISEGEN"):
                continue
            assert words[0] == "noisegen", line
            if words[1] in SLOW:
                files = [word for word in words if re.fullmatch(r"\w+\.(tsv|txt)", word)]
                assert [file for file in files if not (folder / file).exists()] == []
                continue
            capfd.readouterr()
            with fresh():
                code = cli.run(words[1:])
            shown = capfd.readouterr()
            assert code == 0, (line, shown.err)
            if target:
                (folder / target.split()[0]).write_text(shown.out, "utf-8")


def shown_by(command: str) -> str:
    """Run `noisegen ...` and return what a terminal shows of it."""
    program, *arguments = shlex.split(command)
    assert program == "noisegen", command
    shown = io.BytesIO()
    screen = io.TextIOWrapper(shown, "utf-8", write_through=True)
    with fresh(), contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
        cli.run(arguments)
    return shown.getvalue().decode().replace(f"{Path.cwd()}/", "")


def session(body: str) -> str:
    """Run the commands of a console block and return it as it should read."""
    commands = [line for line in body.splitlines() if line.startswith("$ ")]
    shown = "".join(f"{line}\n{shown_by(line[2:])}" for line in commands)
    return "\n".join(line.rstrip() for line in shown.splitlines()).rstrip() + "\n"


def fits(wanted: str, shown: str) -> bool:
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", wanted + "\n", flags=re.MULTILINE)]
    inline = [part.replace(r"\.\.\.", ".*") for part in parts]
    return re.fullmatch(r"(?:.*\n)*?".join(inline), shown + "\n") is not None


def run_python(body: str, names: dict[str, object]) -> str:
    """Run a block with its checks and return what it prints."""
    checked = re.sub(r"^(\S.*?)  # -> (.*)$", r"_same(\1, \2)", body, flags=re.MULTILINE)
    screen = io.StringIO()
    with contextlib.redirect_stdout(screen):
        exec(compile(checked, "page", "exec", dont_inherit=True), names)
    return screen.getvalue()


def _same(found: object, wanted: object) -> None:
    assert found == wanted


@pytest.mark.parametrize("page", PLAYED, ids=lambda page: page.name)
def test_shown_commands_and_code_do_what_they_show(page, folder):
    names: dict[str, object] = {"_same": _same, "__name__": "page"}
    printed = ""
    for block in blocks(page.read_text("utf-8")):
        if printed:
            assert block.kind == "text"
            assert block.body == printed
            printed = ""
        elif block.file:
            (folder / block.file).write_text(block.body, "utf-8", newline="")
        elif block.kind == "sh":
            for file, body in WRITTEN.findall(block.body):
                (folder / file).write_text(body, "utf-8", newline="")
        elif block.kind == "console":
            shown = session(block.body)
            assert fits(block.body, shown), f"{page.name} should read:\n{shown}"
        elif block.kind == "python":
            printed = run_python(block.body, names)
    assert not printed
