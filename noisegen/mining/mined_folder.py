"""The folder of a mining run: what is done, what may be resumed, dictionary and manifest last."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from noisegen import manifest, run_folder
from noisegen.atomic import file_digest, remove, write_text, writing
from noisegen.errors import OutputError
from noisegen.mining.counts import merged
from noisegen.mining.dictionary import Left, Thresholds, kept
from noisegen.mining.dictionary_files import write_both
from noisegen.mining.frequencies import seen_words
from noisegen.mining.mined_card import card
from noisegen.run_folder import Part
from noisegen.shards import is_parquet

METADATA = "noisegen"
DAMAGE_MAX = 1_000  # lines of damage in the manifest
DICTIONARY = ("dictionary.parquet", "dictionary.tsv")
_SHARDS = ("pairs/part-*.parquet", "words/part-*.parquet")
_WRITTEN = (*DICTIONARY, "manifest.json", "README.md")


def pairs_path(out: Path, number: int) -> Path:
    """Return the file of a task's sentence pairs."""
    return out / "pairs" / f"part-{number:05d}.parquet"


def words_path(out: Path, number: int) -> Path:
    """Return the file of a task's word counts, before any threshold."""
    return out / "words" / f"part-{number:05d}.parquet"


@dataclass(frozen=True)
class Mined:
    """What one task gave: rows of pairs, rows of word counts, and the account of its losses."""

    number: int
    rows: int
    words: int = 0
    words_sha256: str = ""
    read: dict[str, int] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    damaged: int = 0
    damage: list[str] = field(default_factory=list)
    sha256: str = ""  # of the pairs; the note inside them cannot say it


def read_note(path: Path) -> tuple[str, Mined] | None:
    """Return the configuration and account of a finished task; None if it is not one of ours."""
    try:
        note = json.loads((pq.read_metadata(path).metadata or {})[METADATA.encode()])
        return note.pop("config"), Mined(**note)
    except (OSError, pa.ArrowException, KeyError, ValueError, TypeError, AttributeError):
        return None


@dataclass(frozen=True)
class MiningManifest:
    """What was asked of a mining run, and what came out; `missing_tasks` is 0 once all is there."""

    version: str
    command: str
    kind: str
    lang: str
    options: dict[str, Any]
    sources: list[dict[str, Any]]
    thresholds: dict[str, int]
    shards: list[dict[str, Any]]
    totals: dict[str, Any]
    dictionary: dict[str, Any]
    damage: list[str]
    left_out: list[str]
    missing_tasks: int
    packages: dict[str, str]

    @classmethod
    def load(cls, path: str | Path) -> "MiningManifest":
        """Read manifest.json (or the one in a folder); raises OutputError."""
        return run_folder.load_manifest(cls, path, "a mining run")

    def to_json(self) -> str:
        """Return the file's text."""
        return run_folder.manifest_text(self)

    def summary(self) -> str:
        """Return one line for people."""
        totals = self.totals
        shards = manifest.counted(len(self.shards), "shard")
        parts = [f"{manifest.counted(totals['pairs'], 'pair')} in {shards}"]
        if self.missing_tasks:
            left = manifest.counted(self.missing_tasks, "task")
            parts.append(f"{left} to do: run the other parts")
        else:
            words, entries = self.dictionary["words"], self.dictionary["entries"]
            forms, of = manifest.counted(entries, "wrong form"), manifest.counted(words, "word")
            parts.append(f"dictionary: {forms} of {of}")
            if shared := self.dictionary.get("pages_in_several_files"):
                pages = manifest.counted(shared, "page")
                parts.append(f"{pages} in several files, which count more than once")
        for name, counts in (("pairs", totals["dropped"]), ("words", self.dictionary["dropped"])):
            if counts:
                listed = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
                parts.append(f"{name} dropped: {listed}")
        return "; ".join(parts + [f"damaged: {totals['damaged']:,}"] * bool(totals["damaged"]))


@dataclass(frozen=True)
class MinedFolder:
    """An output folder bound to a configuration and to the numbers of its tasks."""

    out: Path
    config: dict[str, Any]
    numbers: list[int]

    def open(self, part: Part, *, resume: bool, force: bool) -> dict[int, Mined]:
        """Make the folder or check what is in it; return the tasks that need not be done again.

        Raises OutputError for a folder that cannot be written, or holds something else.
        """
        self._refuse_inputs()
        present = run_folder.make(self.out)
        if force or resume:
            self._refuse_foreign()
        if force:
            remove(*(path for name in (*_SHARDS, *_WRITTEN) for path in self.out.glob(name)))
            self.remove_temporary(run_folder.WHOLE)
        elif present and not resume:
            run_folder.refuse_full(self.out)
        with writing(self.out):
            for name in ("pairs", "words"):
                (self.out / name).mkdir(exist_ok=True)
        self._agree_with_manifest()
        self.remove_temporary(part)
        return self.done()

    def done(self) -> dict[int, Mined]:
        """Return the finished tasks; raises OutputError for what is none of this run."""
        found = {}
        for path in sorted(self.out.glob(_SHARDS[0])):
            note = read_note(path)
            if note is None and is_parquet(path):
                raise OutputError(f"{path} was not made by this program: use another folder")
            if note is None:
                continue
            run_folder.agree(self.out, json.loads(note[0]), self.config)
            if _has_words(self.out, note[1]):
                found[note[1].number] = note[1]
        return found

    def _refuse_inputs(self) -> None:
        """Never write into a folder that a run reads: --force would remove its input."""
        for source in self.config["sources"]:
            if Path(source["path"]).resolve().is_relative_to(self.out):
                raise OutputError(f"{source['path']} is an input and lies in the output: use -o")

    def _refuse_foreign(self) -> None:
        """Never write over a file whose name is one of ours and whose content is not."""
        shards = [path for pattern in _SHARDS for path in sorted(self.out.glob(pattern))]
        written = [path for name in _WRITTEN if (path := self.out / name).exists()]
        mined = any(map(_is_ours, [*shards, *(p for p in written if p.suffix == ".json")]))
        for path in [*shards, *written]:
            if not (_is_ours(path) if path.suffix in (".parquet", ".json") else mined):
                raise OutputError(f"noisegen did not mine {path}; move it, or use another folder")

    def _agree_with_manifest(self) -> None:
        path = self.out / "manifest.json"
        if path.exists():
            found = MiningManifest.load(path)
            theirs = {name: getattr(found, name) for name in self.config}
            run_folder.agree(self.out, theirs, self.config)

    def remove_temporary(self, part: Part) -> None:
        """Remove what a run that was cut short left of the tasks of this part."""
        run_folder.remove_temporary(self.out, part, _WRITTEN, "*")

    def finish(
        self, thresholds: Thresholds, command: str, digests: Mapping[int, str],
        left_out: Sequence[str] = (),
    ) -> MiningManifest:  # fmt: skip
        """Write dictionary, manifest and card, unless tasks are missing or nothing is new.

        `digests` are those of the shards that were just written, `left_out` says what is not mined.
        """
        done = self.done()
        numbers = [number for number in self.numbers if number in done]
        known = self._known_digests() | {f"pairs/{pairs_path(self.out, n).name}": digest
                                         for n, digest in digests.items()}  # fmt: skip
        made = MiningManifest(
            command=command, thresholds=asdict(thresholds), totals=_totals(done.values()),
            shards=[self._listed(done[number], known) for number in numbers],
            dictionary={"words": 0, "entries": 0, "dropped": {}},
            damage=[line for n in numbers for line in done[n].damage][:DAMAGE_MAX],
            left_out=list(left_out),
            missing_tasks=len(self.numbers) - len(numbers), packages=manifest.packages(),
            **self.config,
        )  # fmt: skip
        if made.missing_tasks:
            return made
        earlier = self._earlier(made)
        return earlier or self._merge(made, thresholds, numbers)

    def _known_digests(self) -> dict[str, str]:
        """Return the digests in the last manifest of the shards that are older than it."""
        if not (self.out / "manifest.json").exists():
            return {}
        return run_folder.known_digests(self.out, MiningManifest.load(self.out).shards)

    def _listed(self, mined: Mined, digests: Mapping[str, str]) -> dict[str, Any]:
        path = pairs_path(self.out, mined.number)
        return {
            "file": f"pairs/{path.name}",
            "rows": mined.rows,
            "words": mined.words,
            "sha256": digests.get(f"pairs/{path.name}") or file_digest(path),
            "words_sha256": mined.words_sha256,
        }

    def _earlier(self, made: MiningManifest) -> MiningManifest | None:
        """Return the manifest that is there if it says the same and all its files are there."""
        if not all((self.out / name).exists() for name in _WRITTEN):
            return None
        found = MiningManifest.load(self.out)
        same = (found.shards, found.thresholds) == (made.shards, made.thresholds)
        digests = {name: file_digest(self.out / name) for name in DICTIONARY}
        return found if same and found.dictionary.get("sha256") == digests else None

    def _merge(
        self, made: MiningManifest, thresholds: Thresholds, numbers: list[int]
    ) -> MiningManifest:
        left = Left()
        words = [words_path(self.out, number) for number in numbers]
        pairs = [pairs_path(self.out, number) for number in numbers]
        seen = seen_words(words, pairs, thresholds)
        entries = write_both(kept(merged(words), thresholds, left, seen), self.out)
        dictionary = {
            "words": left.words,
            "entries": entries,
            "dropped": dict(sorted(left.dropped.items())),
            "pages_in_several_files": shared_pages(pairs),
            "sha256": {name: file_digest(self.out / name) for name in DICTIONARY},
        }
        made = replace(made, dictionary=dictionary)
        write_text(self.out / "manifest.json", made.to_json())
        write_text(self.out / "README.md", card(made))
        return made


def shared_pages(paths: Sequence[Path]) -> int:
    """Return how many pages with pairs occur in more than one file; 0 where there are no pages."""
    found = []
    for path in paths:
        if "page_id" in pq.read_schema(path).names:
            pages = pq.read_table(path, columns=["page_id"])["page_id"]
            found.append(pages.unique().to_numpy())
    together = np.concatenate(found) if found else np.zeros(0, np.int64)
    return int(np.count_nonzero(np.unique(together, return_counts=True)[1] > 1))


def _has_words(out: Path, mined: Mined) -> bool:
    path = words_path(out, mined.number)
    return path.exists() and file_digest(path) == mined.words_sha256


def _is_ours(path: Path) -> bool:
    """Tell whether an earlier run wrote a file; of shards also one that is damaged."""
    if path.suffix == ".parquet":
        return not is_parquet(path) or read_note(path) is not None or _is_counts(path)
    return '"missing_tasks"' in path.read_text("utf-8", errors="replace")


def _is_counts(path: Path) -> bool:
    """Tell whether a file holds word counts or a dictionary."""
    return {"lang", "clean", "noisy", "count"} <= set(pq.read_schema(path).names)


def _totals(done: Iterable[Mined]) -> dict[str, Any]:
    read: Counter[str] = Counter()
    dropped: Counter[str] = Counter()
    pairs = damaged = 0
    for mined in done:
        read.update(mined.read)
        dropped.update(mined.dropped)
        pairs, damaged = pairs + mined.rows, damaged + mined.damaged
    sums = {"read": dict(sorted(read.items())), "dropped": dict(sorted(dropped.items()))}
    return {"pairs": pairs, **sums, "damaged": damaged}
