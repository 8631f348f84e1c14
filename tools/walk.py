"""Count the functions that `augment` on two lines and a warm `noise` enter: `python tools/walk.py`.

Prints JSON: functions and files of the package that a call enters, and the deepest nesting of
their calls, in all threads. `-v` lists the functions by file.
"""

import json
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType

import noisegen

PACKAGE = str(Path(noisegen.__file__).parent)


@dataclass
class Walk:
    """Code of the package that a call entered, and the deepest nesting of its calls."""

    entered: set[CodeType] = field(default_factory=set)
    depth: int = 0

    def profile(self, frame: FrameType, event: str, _: object) -> None:
        """Note one event of the interpreter; for `sys.setprofile`."""
        if event != "call" or not frame.f_code.co_filename.startswith(PACKAGE):
            return
        self.entered.add(frame.f_code)
        depth = 0
        outer: FrameType | None = frame
        while outer is not None:
            depth += outer.f_code.co_filename.startswith(PACKAGE)
            outer = outer.f_back
        self.depth = max(self.depth, depth)

    @property
    def files(self) -> Counter[str]:
        """Entered functions per file, by path within the package."""
        names = (code.co_filename.removeprefix(f"{PACKAGE}/") for code in self.entered)
        return Counter(names)

    def figures(self) -> dict[str, int]:
        """Return the three figures of the walk."""
        return {"functions": len(self.entered), "files": len(self.files), "depth": self.depth}


def walk(call: Callable[[], object]) -> Walk:
    """Make a call and return its walk."""
    seen = Walk()
    threading.setprofile(seen.profile)
    sys.setprofile(seen.profile)
    try:
        call()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return seen


def walks(folder: Path) -> dict[str, Walk]:
    """Return the walks of a two-line `augment` and of a warm `noise`; `folder` is empty."""
    text = folder / "two.txt"
    text.write_text("See you tomorrow, my friend.\nI do not know.\n")

    def augment(name: str) -> object:
        return noisegen.augment(str(text), str(folder / name), recipe="ugc", seed=1, workers=1)

    augment("warm")
    noisegen.noise("See you tomorrow.", "ugc", seed=1)
    return {
        "augment": walk(lambda: augment("out")),
        "noise": walk(lambda: noisegen.noise("See you tomorrow, my friend.", "ugc", seed=2)),
    }


def main() -> None:
    """Print the figures, and with -v the functions."""
    with tempfile.TemporaryDirectory() as folder:
        seen = walks(Path(folder))
    if "-v" in sys.argv:
        for name, one in seen.items():
            print(name)
            for file, count in sorted(one.files.items()):
                inside = sorted(
                    code.co_qualname
                    for code in one.entered
                    if code.co_filename == f"{PACKAGE}/{file}"
                )
                print(f"  {file} {count}: {', '.join(inside)}")
    print(json.dumps({name: one.figures() for name, one in seen.items()}))


if __name__ == "__main__":
    main()
