"""Real pairs of noisy and clean text: read from tables, aligned files, M2 or a run, and parted."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from glob import escape
from pathlib import Path

from noisegen.draws import DECISION_BITS, mix, name_number, threshold
from noisegen.errors import SourceError, UsageError
from noisegen.mining.filters import PROFILES
from noisegen.mining.lang8 import lang8_tasks, m2_sentences
from noisegen.mining.languages import language
from noisegen.mining.pairs import Account
from noisegen.mining.parallel import OPTIONS, PairsMiner, aligned_tasks, table_tasks

M2_ENDINGS = (".m2", ".m2.gz")
_ANY = language("und")  # sides are read as they are: nothing depends on the language
PAIRS_MAX = 1_000_000  # pairs that are held in memory
PAIRS_ARE = "; pairs are tables with the columns noisy and clean"
HELD_BACK = 0.3  # share of the pairs that nothing is fitted to


@dataclass(frozen=True)
class Pairs:
    """Noisy texts with their clean versions, in the order of the source.

    `dropped` counts rows by reason; `damaged` has a line for each loss in the input.
    """

    noisy: list[str]
    clean: list[str]
    dropped: Counter[str] = field(default_factory=Counter)
    damaged: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.noisy)

    def take(self, numbers: Sequence[int]) -> "Pairs":
        """Return the pairs of these numbers."""
        noisy, clean = ([side[number] for number in numbers] for side in (self.noisy, self.clean))
        return Pairs(noisy, clean)

    def sample(self, most: int) -> "Pairs":
        """Return at most so many pairs, spread evenly over all."""
        if len(self) <= most:
            return self
        return self.take([number * len(self) // most for number in range(most)])

    def parted(self, share: float = HELD_BACK, seed: int = 0) -> tuple["Pairs", "Pairs"]:
        """Return the pairs to fit, and a share held back to judge by.

        The clean text decides on which side a pair falls, so no text is on both.
        """
        limit = threshold(share)
        key = mix(seed)
        held = [mix(key ^ name_number(text)) >> (64 - DECISION_BITS) < limit for text in self.clean]
        numbers = range(len(self))
        fitted = self.take([number for number in numbers if not held[number]])
        return fitted, self.take([number for number in numbers if held[number]])


def read_pairs(
    sources: Sequence[str],
    *,
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
    limit: int = PAIRS_MAX,
) -> Pairs:
    """Read pairs, at most `limit`: others, and those with an empty side, are dropped and counted.

    `sources` are tables (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), M2 files (.m2, or
    .m2.gz; the first annotator), folders written by augment or mine-*, or one text file with
    `clean_file`. Where a row has several clean versions the first counts. Raises SourceError for
    what is missing and where no pair is left, UsageError for options that do not fit.
    """
    account = Account()
    pairs = Pairs([], [], account.dropped, account.damaged)
    columns = noisy_column, clean_column
    for noisy, clean in _rows(sources, columns, clean_file, account):
        if len(pairs) == limit:
            account.dropped["over_limit"] += 1
        elif noisy is None or clean is None or not (noisy.strip() and clean.strip()):
            account.dropped["empty_side"] += 1
        else:
            pairs.noisy.append(noisy)
            pairs.clean.append(clean)
    if not pairs.noisy:
        lost = f" ({account.dropped['empty_side']:,} with an empty side)" if account.dropped else ""
        raise SourceError(f"no pairs in {', '.join(sources)}{lost}")
    return pairs


def refuse_onto(out: Path, sources: Sequence[str]) -> None:
    """Raise UsageError if what is written to `out` would replace one of the sources."""
    for source in sources:
        if out.exists() and Path(source).exists() and out.samefile(source):
            raise UsageError(f"-o {str(out)!r} is one of the sources: give another name")


def stream_pairs(
    sources: Sequence[str], dropped: Counter[str], advice: str = PAIRS_ARE
) -> Iterator[tuple[str, str]]:
    """Yield (noisy, clean) row by row; pairs with an empty side are counted in `dropped`.

    Sources and errors as in `read_pairs`, those about a missing column with `advice`; damage in an
    input raises SourceError.
    """
    account = Account()
    for noisy, clean in _rows(sources, ("noisy", "clean"), None, account, (advice, advice)):
        if noisy is None or clean is None or not (noisy.strip() and clean.strip()):
            dropped["empty_side"] += 1
        else:
            yield noisy, clean
    dropped.update(account.dropped)
    if account.damaged:
        raise damage(account.damaged)


def damage(lines: Sequence[str]) -> SourceError:
    """Return the error about damaged rows where no row may be lost silently."""
    return SourceError(f"damaged input: {lines[0]}: mend the file, or take these rows out")


Sides = tuple[str | None, str | None]  # noisy, clean


def _rows(
    sources: Sequence[str], columns: tuple[str, str], clean_file: str | None, account: Account,
    advice: tuple[str, str] = OPTIONS,
) -> Iterator[Sides]:  # fmt: skip
    annotated = [source for source in sources if source.lower().endswith(M2_ENDINGS)]
    for task in lang8_tasks(annotated) if annotated else []:
        for learnt in m2_sentences(task.paths[0], _ANY, account):
            yield learnt.noisy, learnt.corrections[0].text if learnt.corrections else learnt.noisy
    tables = [shards_of(source) for source in sources if source not in annotated]
    if clean_file is not None and len(tables) != 1:
        raise UsageError(f"--clean-file goes with one text file, not with {len(tables)}")
    if not tables:
        return
    miner = PairsMiner(_ANY, PROFILES["all"], columns[0], (columns[1],), advice=advice)
    tasks = aligned_tasks(tables[0], [clean_file]) if clean_file else table_tasks(tables, miner)[0]
    for task in tasks:
        for row in miner.rows(task, account):
            yield row.noisy, next(iter(row.clean), None)


def shards_of(source: str) -> str:
    """Return what to read of a folder that augment or mine-* wrote; else the source itself."""
    folder = Path(source)
    if not (folder / "manifest.json").is_file():
        return source
    mined = folder / "pairs"
    return str(mined) if mined.is_dir() else f"{escape(source)}/part-*.parquet"
