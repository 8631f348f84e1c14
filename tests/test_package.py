"""The package as a whole: its exports, and what an import costs."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import noisegen

PACKAGE = Path(noisegen.__file__).parent
LAZY = {"spacy", "nltk", "jieba", "pypinyin", "datasets", "matplotlib", "distributed", "torch"}
TENSORS = ("encoders", "training", "evaluation", "demo")  # built on torch: imported where used


def imported_at_the_top(path: Path) -> set[str]:
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def test_heavy_packages_are_imported_where_used():
    for path in sorted(PACKAGE.rglob("*.py")):
        on_torch = path.relative_to(PACKAGE).parts[0] in TENSORS
        assert not imported_at_the_top(path) & (LAZY - {"torch"} if on_torch else LAZY), path


def test_every_public_name_is_there_and_nothing_else():
    for name in noisegen.__all__:
        assert getattr(noisegen, name).__doc__ or name == "__version__"
    assert dir(noisegen) == sorted(noisegen.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        noisegen.nothing  # noqa: B018


def test_the_functions_of_a_public_package_are_there_without_its_import():
    code = "import noisegen\nassert 'review' in dir(noisegen)\nnoisegen.review.make"
    assert "noisegen.review.sample" in loaded_after(code)
    assert not {name for name in loaded_after("import noisegen") if "review" in name}


def test_editors_see_every_public_name_where_it_comes_from():
    seen = {}
    for node in ast.walk(ast.parse((PACKAGE / "__init__.py").read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("noisegen."):
            seen |= {alias.name: node.module for alias in node.names if alias.asname}
    homes = {name: f"noisegen.{home}" for name, home in noisegen._MODULES.items()}
    assert seen == homes


def test_no_module_has_the_name_of_a_public_function():
    assert not {path.stem for path in PACKAGE.iterdir()} & set(noisegen._MODULES)


def loaded_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy():
    heavy = {"click", "numpy", "pyarrow", "rich", "yaml", *LAZY}
    assert not loaded_after("import noisegen") & heavy


def test_the_command_line_loads_nothing_heavy_for_its_help():
    code = "from noisegen.cli import run\nrun(['--help'])\nrun(['augment', '--help'])"
    assert not loaded_after(code) & {"numpy", "pyarrow", "rich", "yaml", *LAZY}


def test_the_help_of_no_command_loads_an_extra():
    code = (
        "from noisegen.cli import noisegen, run\nfor name in noisegen.commands: run([name, '-h'])"
    )
    assert not loaded_after(code) & {"pandas", *LAZY}


def test_noise_loads_no_optional_package():
    code = "import noisegen\nnoisegen.noise('see you', 'fing')"
    assert not loaded_after(code) & {"pandas", *LAZY}
