"""The public names: all there, lazily, none hidden by a module of the same name."""

import subprocess
import sys
from pkgutil import iter_modules

import pytest

import noisegen.evaluation as package
from noisegen.evaluation.sets import unique_names


def test_every_name_is_what_its_home_defines():
    assert sorted(package.__all__) == package.__all__
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    assert set(dir(package)) == set(package.__all__)


def test_no_module_has_the_name_of_a_function():
    assert not {module.name for module in iter_modules(package.__path__)} & set(package.__all__)


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="has no attribute 'laser'"):
        _ = package.laser


def test_metrics_of_arrays_start_without_torch():
    names = ", ".join(package.__all__)
    heavy = "['torch', 'sklearn', 'scipy', 'transformers']"
    code = f"import sys; from noisegen.evaluation import {names}"
    code += f"; print([one for one in {heavy} if one in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_alone_imports_nothing_heavy():
    code = "import sys, noisegen.evaluation.results; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("names", "apart"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "a", "a"], ["a", "a-2", "a-3"]),
        (["a", "a", "a-2"], ["a", "a-3", "a-2"]),
        (["a-2", "a", "a"], ["a-2", "a", "a-3"]),
        (["a", "a", "a-2", "a-2"], ["a", "a-3", "a-2", "a-2-2"]),
        ([], []),
    ],
)
def test_no_two_models_or_sets_keep_their_figures_under_one_name(names, apart):
    assert unique_names(names) == apart
