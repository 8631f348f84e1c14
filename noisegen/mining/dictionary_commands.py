"""What `noisegen dictionary` does: choose entries of files and mining runs, show and save them."""

from collections.abc import Iterator, Sequence
from heapq import nlargest
from pathlib import Path
from typing import TYPE_CHECKING

from noisegen.errors import UsageError
from noisegen.mining import dictionary_files
from noisegen.mining.counts import Count, merged, summed
from noisegen.mining.dictionary import ANY, Alternative, Left, Thresholds, counts_of, kept
from noisegen.mining.dictionary_reading import load
from noisegen.mining.frequencies import seen_words
from noisegen.mining.mined_folder import MiningManifest

if TYPE_CHECKING:
    from rich.table import Table

ENDINGS = {".parquet": "parquet", ".tsv": "tsv", ".json": "json"}


def entries_of(source: Path, lang: str | None = None) -> list[Alternative]:
    """Return the entries of a dictionary file, or of the dictionary in a folder."""
    entries = load(source / "dictionary.parquet" if source.is_dir() else source)
    return [entry for entry in entries if lang in (None, entry.lang)]


def select(
    sources: Sequence[Path], thresholds: Thresholds, lang: str | None = None
) -> tuple[list[Alternative], Left]:
    """Return what passes of the added counts of dictionaries, and an account of the rest.

    Of a mining run all that was counted takes part, and its sentences tell how frequent words are;
    of a file what it has.
    """
    left = Left()
    pairs = [path for source in filter(Path.is_dir, sources) for path in _shards(source)]
    seen = seen_words([_words(path) for path in pairs], pairs, thresholds)
    counts = summed(*map(_counts, sources))
    chosen = (row for row in counts if lang in (None, row.lang))
    return list(kept(chosen, thresholds, left, seen)), left


def _counts(source: Path) -> Iterator[Count]:
    if not source.is_dir():
        return counts_of(load(source))
    return merged([_words(path) for path in _shards(source)])


def _shards(folder: Path) -> list[Path]:
    return [folder / shard["file"] for shard in MiningManifest.load(folder).shards]


def _words(pairs: Path) -> Path:
    return pairs.parent.with_name("words") / pairs.name


def top(entries: Sequence[Alternative], rows: int) -> list[Alternative]:
    """Return the most frequent entries, those of more pages first among equals."""
    order = lambda entry: (entry.count, entry.pages, entry.prob)  # noqa: E731
    return nlargest(rows, entries, key=order)


def save(
    entries: Sequence[Alternative], out: Path, kind: str | None = None,
    head: dict[str, str] | None = None,
) -> None:  # fmt: skip
    """Write entries in a format, or in that of the file's ending; raises UsageError.

    JSON and lexicons name no language, so they hold one only.
    """
    kind = kind or ENDINGS.get(out.suffix)
    if kind is None:
        raise UsageError(f"{out}: unknown ending; write .parquet, .tsv or .json")
    langs = sorted({entry.lang for entry in entries})
    if kind in ("json", "lexicon") and len(langs) > 1:
        raise UsageError(f"a {kind} file holds one language: choose with --lang {langs[0]}")
    if kind == "lexicon":
        lang = {"name": out.stem, "lang": langs[0] if langs else ANY}
        dictionary_files.write_lexicon(entries, out, lang | (head or {}))
        return
    writers = {
        "parquet": dictionary_files.write_parquet,
        "tsv": dictionary_files.write_tsv,
        "json": dictionary_files.write_json,
    }
    writers[kind](entries, out)


def table(entries: Sequence[Alternative]) -> "Table":
    """Return entries as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("lang", "correct", "wrong"):
        shown.add_column(name)
    for name in ("count", "pages", "reverse", "prob"):
        shown.add_column(name, justify="right")
    for entry in entries:
        numbers = (f"{entry.count:,}", f"{entry.pages:,}", f"{entry.reverse_count:,}")
        words = Text(entry.clean, "green"), Text(entry.noisy, "red")
        shown.add_row(entry.lang, *words, *numbers, f"{entry.prob:.3f}")
    return shown
