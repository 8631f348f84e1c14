"""Learn noise profiles from real pairs: count the changes of words, gaps, letters and rows.

The module `pair_counts` counts the changes, `kept` chooses the counts that a profile keeps, and
`row_factors` fits how noisy each row is.
"""

import json
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen.data.pairs import Pairs, refuse_onto
from noisegen.errors import OutputError
from noisegen.noising import profile as profiles
from noisegen.noising.profile import Profile
from noisegen.noising.rng import name_number, splitmix
from noisegen.options import Strings, argument, decode, listed, option, public
from noisegen.realism.compare import PairOptions
from noisegen.realism.doubts import FEW, doubts
from noisegen.realism.kept import kept_profile
from noisegen.realism.pair_counts import CountedPair, PairCounts, count_pairs
from noisegen.realism.row_factors import row_factors
from noisegen.runs.atomic import atomic, write_text, writing
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.lock import STATE
from noisegen.runs.options import ALONE, Folder, WorkerOptions
from noisegen.text.notebook import folded
from noisegen.version import __version__

PAIRS_AT_ONCE = 2_000  # pairs that a worker counts per task
MIN_COUNT = 2  # minimum different pairs that have a word or a replacement, for it to be stored
LAYOUT: Layout[None] = Layout(
    "learn",
    whole={
        profiles.HEAD: r'\{"format": .*"digest": ',
        **{f"{name}.parquet": "" for name in profiles.TABLES},
    },
    columns=frozenset({"count"}),
    is_overwritten=True,
)


@dataclass(frozen=True)
class LearnOptions(PairOptions, WorkerOptions):
    """Options of learning: the real pairs, and the folder for the noise profile."""

    sources: Annotated[Strings, argument("PAIRS...")]
    out: Annotated[Folder, option("Folder for the profile", "-o", "--out", metavar="PROFILE")]
    _: KW_ONLY
    min_count: Annotated[
        int, option("Minimum number of different pairs with a word and its replacement", ge=1)
    ] = MIN_COUNT
    force: Annotated[bool, option("Overwrite a profile")] = False


@dataclass(frozen=True)
class Learned:
    """A noise profile that was written, and notes on its pairs.

    `warnings` are reasons to doubt the pairs, `dropped` has the number of dropped pairs by reason,
    and `damaged` are messages about damaged input.
    """

    profile: Profile
    warnings: list[str]
    dropped: dict[str, int]
    damaged: list[str]

    def __repr__(self) -> str:
        edits, pairs = (self.profile.totals[name] for name in ("edits", "pairs"))
        return f"<Learned {self.profile.lang}: {edits:,} edits in {pairs:,} pairs>"

    def _repr_html_(self) -> str:
        return folded(repr(self), json.dumps(self.to_dict(), indent=1, ensure_ascii=False))

    def to_dict(self) -> dict[str, Any]:
        """Return the totals of the profile and the notes as plain data for JSON."""
        return {
            "digest": self.profile.digest,
            "lang": self.profile.lang,
            **self.profile.totals,
            "warnings": self.warnings,
            "dropped": self.dropped,
            "damaged": self.damaged,
        }


@public
def learn(
    sources: Strings,
    out: str | Path,
    *,
    workers: int = 1,
    executor: str = "processes",
    lang: str = "en",
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | Path | None = None,
    min_count: int = 2,
    force: bool = False,
) -> Learned:
    """Learn a noise profile from real pairs and write it into the folder `out`.

    `sources` are tables, M2 files or folders (see `data.pairs.read_pairs`). The profile stores the
    text of a word or replacement if at least `min_count` different pairs have it. Raises
    NoisegenError.
    """
    return _learn(decode(LearnOptions, locals()))


def _learn(options: LearnOptions) -> Learned:
    """Run `learn` with checked options."""
    check_free(options.out, options.force)
    refuse_onto(Path(options.out), listed(options.sources))
    with RunFolder(Path(options.out), LAYOUT, {}).claimed(force=options.force):
        pairs = options.read(options.sources)
        profile = profile_of(pairs, options.lang, options.min_count, options)
        warnings = doubts(pairs, options.lang)
        if not profile.totals["edits"]:
            warnings.append("no pair differs: the profile makes no noise")
        save(profile, options.out)
    return Learned(profile, warnings, dict(sorted(pairs.dropped.items())), pairs.damaged)


def merge_profiles(sources: Sequence[str | Path], out: str | Path, force: bool = False) -> Profile:
    """Add up the counts of noise profiles of one language; write and return the sum.

    Raises NoisegenError.
    """
    check_free(out, force)
    with RunFolder(Path(out), LAYOUT, {}).claimed(force=force):
        profile = profiles.merged([profiles.load(source) for source in sources])
        save(profile, out)
    return profile


def check_free(out: str | Path, force: bool) -> None:
    """Raise OutputError unless a profile can be written into the folder `out`.

    The folder must be missing or empty. With `force`, it may also contain a profile, or files
    of an interrupted run.
    """
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; a profile is a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not force:
        raise OutputError(f"{folder} is not empty; choose another folder or use --force")
    if not (folder / profiles.HEAD).is_file() and not (folder / STATE).is_dir():
        raise OutputError(f"{folder} holds files but no profile; choose another folder")


def save(profile: Profile, folder: str | Path) -> None:
    """Write the files of a noise profile, with the rows of each table sorted by key.

    Raises OutputError.
    """
    folder = Path(folder)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, (_, schema) in profiles.TABLES.items():
        counts = getattr(profile, name)
        keys = sorted(counts, key=lambda key: [(part is None, part) for part in key])
        rows = [dict(zip(schema.names, (*key, counts[key]), strict=True)) for key in keys]
        with atomic(folder / f"{name}.parquet") as file:
            pq.write_table(pa.Table.from_pylist(rows, schema), file, compression="zstd")
    totals = dict(sorted(profile.totals.items()))
    head = profiles.ProfileHead(
        format=profiles.FORMAT,
        lang=profile.lang,
        version=__version__,
        digest=profile.digest,
        totals=totals,
        factors=profile.factors,
        consistency=profile.consistency,
        source=profile.source,
        license=profile.license,
    )
    content = json.dumps(msgspec.to_builtins(head), ensure_ascii=False)
    write_text(folder / profiles.HEAD, content + "\n")


def profile_of(
    pairs: Pairs, lang: str = "en", min_count: int = MIN_COUNT, workers: WorkerOptions = ALONE
) -> Profile:
    """Return the noise profile of pairs, with the counts that the module `kept` chooses.

    Row factors (how noisy each row is) are fitted to half of the pairs, with chances of errors
    learned from the other half. With chances learned from the same pairs, the errors of a row would
    look likelier than they are. With fewer than `FEW` different pairs, all are used for both.
    """
    distinct = list(Counter(zip(pairs.clean, pairs.noisy, strict=True)).items())
    if len(distinct) < FEW:
        every = _all_counted(distinct, lang, workers)
        profile = kept_profile(every, min_count)
        return replace(profile, factors=row_factors(profile, every.rows))
    halves: tuple[list[CountedPair], list[CountedPair]] = [], []
    for pair in distinct:
        clean = pair[0][0]
        # Pairs with the same clean text are in the same half
        halves[splitmix(name_number(clean)) & 1].append(pair)
    fitted, held = (_all_counted(half, lang, workers) for half in halves)
    factors = row_factors(kept_profile(fitted, min_count), held.rows)
    return replace(kept_profile(fitted.add(held), min_count), factors=factors)


def _all_counted(pairs: list[CountedPair], lang: str, workers: WorkerOptions) -> PairCounts:
    """Return the counts of all pairs; the workers count `PAIRS_AT_ONCE` pairs per task."""
    tasks = (pairs[at : at + PAIRS_AT_ONCE] for at in range(0, len(pairs), PAIRS_AT_ONCE))
    total = PairCounts(Profile(lang))
    with closing(workers.in_order(partial(count_pairs, lang), tasks)) as parts:
        for part in parts:
            total.add(part)
    return total
