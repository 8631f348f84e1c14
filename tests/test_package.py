"""The package as a whole: its exports, the direction of its imports, what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import noisegen

PACKAGE = Path(noisegen.__file__).parent
LAYERS = (  # a module imports only from its own layer or those before it
    {"version", "errors", "memory"},
    {"draws", "text", "words"},
    {"ids", "spans", "parameters", "edits", "lexicon", "measures", "graphemes"},
    {"characters", "phrases"},
    {"compiled", "registry"},
    {"rowwise", "taggers", "keyboards", "phrase_kernel", "word_kernel"},
    {"wordlists", "transforms"},
    {"recipe"},
    {"mixing"},
    {"engine"},
)
LAZY = ("torch", "spacy", "nltk", "jieba", "pypinyin", "datasets", "matplotlib", "distributed")
TENSORS = ("encoders", "training", "pretraining", "disentangling", "evaluation", "tasks", "demo")
# built on torch: imported where used


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def imported(path: Path, top_level: bool) -> set[str]:
    tree = ast.parse(path.read_text())
    nodes = tree.body if top_level else list(ast.walk(tree))
    found = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def layer(module: str) -> int | None:
    return next((i for i, names in enumerate(LAYERS) if module in names), None)


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    here = path.relative_to(PACKAGE).with_suffix("").parts[0]
    for name in imported(path, top_level=True):
        parts = name.split(".")
        if parts[0] != "noisegen" or len(parts) < 2 or layer(here) is None:
            continue
        if (PACKAGE / f"{parts[1]}.py").exists() or (PACKAGE / parts[1]).is_dir():
            assert layer(parts[1]) is not None, f"{here} imports {parts[1]}, which is above it"
            assert layer(parts[1]) <= layer(here), f"{here} imports {parts[1]}"


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_heavy_packages_are_imported_where_used(path):
    on_torch = path.relative_to(PACKAGE).parts[0] in TENSORS
    heavy = set(LAZY) - ({"torch"} if on_torch else set())
    assert not {name.split(".")[0] for name in imported(path, top_level=True)} & heavy


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_what_is_built_on_torch_is_imported_where_used(path):
    here = path.relative_to(PACKAGE).parts[0]
    if here not in TENSORS:
        found = {
            name.split(".")[1] for name in imported(path, top_level=True) if "noisegen." in name
        }
        assert not found & set(TENSORS)


def test_every_public_name_is_there_and_nothing_else():
    assert sorted(noisegen.__all__) == noisegen.__all__
    for name in noisegen.__all__:
        assert getattr(noisegen, name).__doc__ or name == "__version__"
    assert dir(noisegen) == sorted(noisegen.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        noisegen.nothing  # noqa: B018


def test_no_module_takes_the_name_of_a_public_function():
    """Importing it would put the module where the function was."""
    assert not {path.stem for path in PACKAGE.iterdir()} & set(noisegen.__all__)


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert not loaded_after("import noisegen") & {"numpy", "pyarrow", "rich", "yaml", *LAZY}


def test_the_command_line_loads_nothing_heavy_for_its_help():
    code = "from noisegen.cli import run\nrun(['--help'])\nrun(['augment', '--help'])"
    assert not loaded_after(code) & {"numpy", "pyarrow", "rich", "yaml", *LAZY}


def test_noise_loads_no_optional_package():
    code = "import noisegen\nnoisegen.noise('see you', 'fing')"
    assert not loaded_after(code) & set(LAZY)


def test_files_are_small_enough_to_read():
    for path in modules():
        assert len(path.read_text().splitlines()) <= 350, path
