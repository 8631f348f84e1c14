"""Count docstrings and comments that do not name their noun ("those that", "what is", "of which").

`python tools/prose.py [FOLDER]` prints the counts and shares as JSON; `-v` lists each sentence. A
pattern finds a pronoun or a tail in place of a noun. A sentence without any may still be a riddle:
the count is a ratchet (tests/test_house.py), and a reader judges.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "noisegen"
DOCSTRING = re.compile(
    r"\b[Tt]hose (that|of|which|with|who|in|from|at|by)\b"
    r"|\bwhat (is|are|was|were|it|they|a|an|the|each|every|of|people|users|one|has|have)\b"
    r"|\bof (which|whom)\b|\bso many\b|\bas (many|much)\b|\bth(at|ose) of\b|\bas of `"
    r"|\bone (that|which)\b"
    r"|(\A|[.!?:;] )(Of|Those|What|Which|That of|Whose|Whom)\b"
)
COMMENT = re.compile(r"(of|those|what|which|that|whose|whom|whether|how many|where)\b")
DIRECTIVES = ("type:", "noqa", "fmt:", "pragma")
Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Count:
    """Sentences of one kind: how many there are, and where each unnamed one stands."""

    total: int = 0
    unnamed: list[str] = field(default_factory=list)

    @property
    def share(self) -> float:
        """The share of unnamed sentences, 0 to 1."""
        return len(self.unnamed) / max(1, self.total)

    def add(self, sentence: str, place: str, *, unnamed: bool) -> None:
        """Count one sentence."""
        self.total += 1
        if unnamed:
            self.unnamed.append(f"{place} {sentence}")


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of the docstrings of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), " ".join(text.split())


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of the comments of a module, except directives of tools."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        text = token.string.lstrip("#: ").strip()
        if token.type == tokenize.COMMENT and text and not text.startswith(DIRECTIVES):
            yield token.start[0], text


def count(folder: Path = PACKAGE) -> dict[str, Count]:
    """Count the docstrings and the comments of all modules below a folder."""
    counts = {"docstrings": Count(), "comments": Count()}
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text("utf-8")
        for line, text in docstrings(source):
            unnamed = DOCSTRING.search(text) is not None
            counts["docstrings"].add(text, f"{path}:{line}", unnamed=unnamed)
        for line, text in comments(source):
            unnamed = COMMENT.match(text) is not None
            counts["comments"].add(f"# {text}", f"{path}:{line}", unnamed=unnamed)
    return counts


def main(arguments: list[str]) -> None:
    """Print the counts of a folder (default: the package)."""
    folders = [Path(argument) for argument in arguments if argument != "-v"]
    counts = count(*folders[:1])
    if "-v" in arguments:
        for kind in counts.values():
            print(*kind.unnamed, sep="\n")
    shares = {
        name: {"total": kind.total, "unnamed": len(kind.unnamed), "share": round(kind.share, 3)}
        for name, kind in counts.items()
    }
    print(json.dumps(shares))


if __name__ == "__main__":
    main(sys.argv[1:])
