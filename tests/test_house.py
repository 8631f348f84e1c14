"""The house stays as it was drawn: sizes, names, one of each."""

import ast
import re
from collections import Counter
from pathlib import Path

from prose import Documented, count
from walk import walks

import noisegen

PACKAGE = Path(noisegen.__file__).parent
ROOT = Path(__file__).parents[1]
CORE = ("text", "noising", "data", "runs", "report", "transforms", "augmentation")
# Today's sizes in lines of code, without docstrings, comments and blank lines, so that no change
# grows the house unseen.
LINES, FILES, CORE_LINES, LONG_SIGNATURES = 45_825, 268, 22_215, 0
UNNAMED = 0.005  # share of docstrings and comments that do not name their noun
# Functions of the package that a call enters, their files and the depth of the calls.
WALKS = {"augment": (595, 54, 21), "noise": (81, 15, 10)}
MODULES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text("utf-8")) for path in MODULES}


def lines_of_code(paths: list[Path]) -> int:
    """Count the lines of files that are no docstring, no comment and not blank."""
    count = 0
    for path in paths:
        texts = set()
        for node in ast.walk(TREES[path]):
            if isinstance(node, Documented) and ast.get_docstring(node) is not None:
                texts |= {*range(node.body[0].lineno, node.body[0].end_lineno + 1)}
        lines = enumerate(path.read_text("utf-8").splitlines(), 1)
        count += sum(n not in texts and line.strip()[:1] not in ("", "#") for n, line in lines)
    return count


def nodes(kind: type) -> list[tuple[Path, ast.AST]]:
    found = [(path, node) for path, tree in TREES.items() for node in ast.walk(tree)]
    return [(path, node) for path, node in found if isinstance(node, kind)]


def test_the_package_does_not_grow():
    assert lines_of_code(MODULES) <= LINES
    assert len(MODULES) <= FILES


def test_the_core_does_not_grow():
    core = [path for name in CORE for path in (PACKAGE / name).rglob("*.py")]
    assert lines_of_code(core) <= CORE_LINES


def test_docstrings_and_comments_name_their_noun():
    for kind in count(PACKAGE).values():
        assert kind.share <= UNNAMED, kind.unnamed


def test_all_code_is_laid_out_by_the_formatter():
    folders = ("noisegen", "tests", "tools", "benchmarks", "examples")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    exempt = [
        path for path in files if re.search(r"# fmt: (skip|off)$", path.read_text("utf-8"), re.M)
    ]
    assert exempt == []


def test_calls_take_a_short_walk(tmp_path):
    for name, walk in walks(tmp_path).items():
        for figure, most in zip(walk.figures().values(), WALKS[name], strict=True):
            assert figure <= most, (name, walk.figures())


def test_at_most_six_modules_are_loose():
    assert len(list(PACKAGE.glob("*.py"))) <= 6


def test_no_class_name_is_used_twice():
    names = Counter(node.name for _, node in nodes(ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_no_file_name_is_used_three_times():
    names = Counter(path.stem for path in MODULES)
    assert [n for n, count in names.items() if count > 2 and not n.startswith("__")] == []


def is_public(function: ast.FunctionDef) -> bool:
    return any(ast.unparse(decorator) == "public" for decorator in function.decorator_list)


def test_few_functions_have_over_six_parameters():
    public = {node.name for _, node in nodes(ast.FunctionDef) if is_public(node)}
    also_public = {"noise_batch", "noise_table"}  # a method, and the function behind it
    long = [
        f"{path.relative_to(PACKAGE)}:{node.name}"
        for path, node in nodes(ast.FunctionDef)
        if len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) > 6
        and node.name not in public | also_public
    ]
    assert len(long) <= LONG_SIGNATURES, long


def test_no_public_function_hides_its_options():
    hidden = []
    for path, node in nodes(ast.FunctionDef):
        is_public_name = not node.name.startswith("_") or node.name == "__init__"
        if is_public_name and "cli" not in path.parts and node.args.kwarg:
            annotation = node.args.kwarg.annotation
            if annotation is None or ast.unparse(annotation) == "Any":
                hidden.append(f"{path.relative_to(PACKAGE)}:{node.name}")
    assert hidden == []
