"""`mine-wiki` on a made history of 77 MB: over plain bz2 decoding, and 100 times the usual recipe.

The history is real text with invented edits; its generator lies beside the checkout, if at all.
"""

import bz2
import difflib
import html
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa

from benchmarks.measure import ROOT, ChildFailed, Result, Skipped, Target, best, child, cpu, report

DATA = ROOT.parent / "shared" / "data"
GENERATOR = DATA / "wiki-dumps" / "make_history.py"
PAGES = (
    DATA / "wiki-minidumps" / "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
)
WHOLE, SLICE = 60, 4  # megabytes asked of the generator: it makes 77 and some 5
USUAL = ("mwparserfromhell", "punkt")  # needed by the usual way alone
CONTAINERS = {"7z": 3.0, "zst": 3.0}  # over our own speed from .bz2


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure speed from three containers, the usual recipe, and memory; `rows` has no say."""
    if not GENERATOR.exists():
        yield Skipped("mine-wiki", "the generator of the history is not here")
        return
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        history = made(folder / "history.xml", WHOLE)
        yield from _containers(history)
        yield from _usual(made(folder / "slice.xml", SLICE, "--maxpages=6"))
        yield from _memory(folder)


def made(path: Path, megabytes: int, *options: str) -> Path:
    """Make a history of about `megabytes` MB."""
    command = [
        sys.executable,
        GENERATOR,
        "en",
        megabytes,
        path,
        path.with_suffix(".tsv"),
        1,
        PAGES,
        *options,
    ]
    subprocess.run(list(map(str, command)), check=True, stderr=subprocess.DEVNULL)
    return path


def _containers(history: Path) -> Iterator[Result | Skipped]:
    size = history.stat().st_size / 1e6
    data = bz2.compress(history.read_bytes())
    history.with_suffix(".bz2").write_bytes(data)
    pa_zstd = pa.Codec("zstd", compression_level=19)
    history.with_suffix(".zst").write_bytes(pa_zstd.compress(history.read_bytes(), asbytes=True))
    jobs = {
        "plain": cpu(partial(bz2.decompress, data)),
        "bz2": mining(history.with_suffix(".bz2")),
        "zst": mining(history.with_suffix(".zst")),
    }
    if find_spec("py7zr"):
        _archive(history)
        jobs["7z"] = mining(history.with_suffix(".7z"))
    speed = {name: size / seconds for name, seconds in best(jobs).items()}
    yield Result(
        "mine-wiki from .bz2",
        speed["bz2"],
        speed["plain"],
        "MB/s",
        "bz2.decompress alone",
        Target(">=", 0.7),
    )
    for name, target in CONTAINERS.items():
        if name in speed:
            yield Result(
                f"mine-wiki from .{name}",
                speed[name],
                speed["bz2"],
                "MB/s",
                "mine-wiki from .bz2",
                Target(">=", target),
            )
        else:
            yield Skipped(f"mine-wiki from .{name}", "py7zr is not installed")


def _archive(history: Path) -> None:
    """Write the history as Wikimedia does: one member, LZMA2."""
    import py7zr

    chain = [{"id": py7zr.FILTER_LZMA2, "preset": 5}]
    with py7zr.SevenZipFile(history.with_suffix(".7z"), "w", filters=chain) as archive:
        archive.write(history, history.name)


def mining(dump: Path) -> Callable[[], float]:
    """Return the job that mines a dump, in this process, into a new folder: pairs to manifest."""
    return cpu(partial(_mine, dump))


def _mine(dump: Path) -> None:
    from noisegen.mining.mine import mine_wiki

    with tempfile.TemporaryDirectory(dir=dump.parent) as out:
        mine_wiki(dump, out, executor="serial")


def _find(dump: Path) -> int:
    """Mine without writing, as the usual recipe is measured; return the number of pairs."""
    from noisegen.data.rows import FileRange
    from noisegen.mining.filters import PROFILES
    from noisegen.mining.miner import Tally, Task
    from noisegen.mining.wiki import WikiMiner
    from noisegen.text.segmentation import language

    miner = WikiMiner(language("en"), PROFILES["rcp"])
    return sum(1 for _ in miner(Task(0, (FileRange(str(dump)),)), Tally()))


def _usual(history: Path) -> Iterator[Result | Skipped]:
    """Compare with the usual recipe, side by side on a slice."""
    missing = [name for name in USUAL if find_spec(name) is None]
    if missing:
        yield Skipped("mine-wiki and the usual recipe", f"{', '.join(missing)} not installed")
        return
    size = history.stat().st_size / 1e6
    ours = best({"ours": cpu(partial(_find, history))})["ours"]
    usual = best({"usual": cpu(partial(usual_recipe, history))}, repeats=1)["usual"]
    yield Result(
        "mine-wiki on a slice",
        size / ours,
        size / usual,
        "MB/s",
        "etree, mwparserfromhell, Punkt and difflib on every revision",
        Target(">=", 100),
    )


def usual_recipe(dump: Path) -> int:
    """Parse, clean, split and compare every revision whole; return how many sentences differ."""
    import mwparserfromhell
    import punkt

    split = punkt.tokenizer_for("english").tokenize
    found, before = 0, None
    for _, element in ElementTree.iterparse(dump):
        name = element.tag.rpartition("}")[2]
        if name == "page":
            before = None
        if name == "text":
            text = mwparserfromhell.parse(element.text or "").strip_code()
            after = [one for line in text.split("\n") for one in split(html.unescape(line))]
            if before is not None:
                found += _differing(before, after)
            before = after
        if name in ("revision", "page"):
            element.clear()
    return found


def _differing(before: list[str], after: list[str]) -> int:
    """Count the replaced sentences whose words were compared."""
    found = 0
    for tag, start, stop, first, last in difflib.SequenceMatcher(
        None, before, after, autojunk=False
    ).get_opcodes():
        if tag == "replace":
            for old, new in zip(before[start:stop], after[first:last], strict=False):
                words = (re.findall(r"\w+|[^\w\s]", side) for side in (old, new))
                found += difflib.SequenceMatcher(None, *words, autojunk=False).ratio() > 0.7
    return found


def _memory(folder: Path) -> Iterator[Result]:
    """Mine a history and one ten times as long, each in a process of its own."""
    peaks: dict[int, float] = {}
    for megabytes in (20, 200):
        history = made(folder / f"{megabytes}.xml", megabytes)
        out = folder / f"out-{megabytes}"
        command = ("-m", "noisegen", "mine-wiki", str(history), "-o", str(out), "--workers", "1")
        failure = ""
        try:
            peaks[megabytes] = child((*command, "--quiet")).megabytes
        except ChildFailed as error:
            peaks[megabytes], failure = error.usage.megabytes, str(error)
        note = failure or f"{peaks[megabytes] / peaks[20]:.2f} of the peak for a tenth"
        yield Result(
            f"peak memory of mine-wiki, {megabytes} MB asked",
            peaks[megabytes],
            history.stat().st_size / 1e6,
            "MB",
            "text in the input",
            Target("<", 400, "ours"),
            note,
            bool(failure),
        )
        history.unlink()


if __name__ == "__main__":
    report(results)
