"""Both sides of bitext held in memory: of the two languages that are asked for, evenly sampled."""

from collections import Counter
from collections.abc import Iterator, Sequence

from noisegen.bitext import stream_bitext
from noisegen.bitext_files import Bitext, find_bitext
from noisegen.cells import ROWS_MAX, in_brackets
from noisegen.errors import SourceError, UsageError
from noisegen.language_codes import language_code
from noisegen.spread import Spread

Two = tuple[str, str]  # of a word's language and of its translations'


def read_sides(
    sources: Sequence[str], langs: Two, columns: Two | None, dropped: Counter[str]
) -> tuple[list[str], list[str]]:
    """Return the sentences in both languages, at most `ROWS_MAX`, spread evenly over all.

    Sources as in `find_bitext`, languages in either order, and tables with columns named by these
    two; with `columns`, any tables that have these. Rows left out are counted in `dropped`. Raises
    SourceError for sources without these languages, UsageError for two names that are one.
    """
    one, other = (language_code(lang) or lang for lang in langs)
    if columns is None and one == other:
        raise UsageError(f"--lang {langs[0]} and --into {langs[1]} are one language")
    if columns is not None and (not all(columns) or columns[0] == columns[1]):
        raise UsageError(f"--columns {','.join(columns)!r} must name two columns: A,B")
    files = [file for source in sources for file in _files(source, (one, other), langs, columns)]
    spread: Spread[Two] = Spread(ROWS_MAX)
    for row in _rows(files, (one, other), dropped):
        spread.offer(lambda: row)  # noqa: B023  (it is called at once)
    if not spread.seen:
        raise SourceError(
            f"no pairs of {one} and {other} in {', '.join(sources)}{in_brackets(dropped)}"
        )
    dropped["sampled_out"] += spread.seen - len(spread.kept)
    return [row[0] for row in spread.kept], [row[1] for row in spread.kept]


def _rows(files: Sequence[Bitext], langs: Two, dropped: Counter[str]) -> Iterator[Two]:
    """Yield the pairs of these languages, in their order; count the others."""
    for pair in stream_bitext(files, dropped):
        said = pair.source_lang, pair.target_lang
        if said == langs:
            yield pair.source, pair.target
        elif said == langs[::-1]:
            yield pair.target, pair.source
        else:
            dropped["other_language"] += 1


def _files(source: str, langs: Two, names: Two, columns: Two | None) -> list[Bitext]:
    """Return what of a source may be of these languages; raises SourceError for nothing."""
    found = find_bitext(source) if columns is None else []
    if not found:
        return [Bitext((source,), langs, source, columns or names)]
    fitting = [file for file in found if file.is_mixed or {*file.langs} == {*langs}]
    if not fitting:
        there = ", ".join(sorted({"-".join(file.langs) for file in found}))
        raise SourceError(f"{source} is bitext of {there}, not of {'-'.join(langs)}")
    return fitting
