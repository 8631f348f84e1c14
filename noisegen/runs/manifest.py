"""The manifest of an output folder: the options of the run, its sources, shards and totals.

A list of more than LISTED shards or sources is not in manifest.json but in a file of JSON lines
beside it. The name of that file contains the digest of its content, so manifest.json never names a
list of another run, even if a run is killed between writing the two.
"""

import hashlib
import json
import platform
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, TypedDict

import msgspec

from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic, remove, write_text
from noisegen.runs.store import output_path
from noisegen.text.notebook import folded
from noisegen.version import __version__

# Packages whose version can change the output
PACKAGES = ("noisegen", "numpy", "pyarrow", "codespell", "spacy", "datasets", "distributed")

# Key in each manifest of mining; in other manifests it is present only while tasks are missing
_TO_DO = "missing_tasks"
MINED = ("wiki", "lang8", "pairs")  # kinds of mining runs
_AUGMENT_KEYS = (
    "version command seed recipe recipe_digest sources dictionaries options shards totals packages"
)
_PREPARE_KEYS = "version command lang options identification sources shards totals packages"
_MINED_KEYS = (
    "version command kind lang options sources thresholds shards totals dictionary damage left_out "
    f"{_TO_DO} packages"
)
KEYS = {  # keys of manifest.json for each kind of run, in the order of the file
    "augment": _AUGMENT_KEYS.split(),
    "prepare": _PREPARE_KEYS.split(),
    **dict.fromkeys(MINED, _MINED_KEYS.split()),
}
_RUNS = {"augment": "an augment run", "prepare": "a prepare run"}
LISTED = 100_000  # a list with more entries is not in manifest.json but in a file of its own
# Key of a list in manifest.json -> name of the list's own file; '*' is a digest of its content
LISTS = {name: f"manifest.{name}-*.jsonl" for name in ("shards", "sources")}

_CUT = "unexpected_field"  # reason of a row that is kept without a part of it


class _Totals(TypedDict):
    """Totals that the manifests of all kinds of runs have."""

    dropped: dict[str, int]


class _NoiseTotals(_Totals):
    rows: int
    changed: int
    cer: float
    wer: float


class _SentenceTotals(_Totals):
    rows_in: int
    sentences: int
    kept: int
    damaged: dict[str, int]


class _PairTotals(_Totals):
    pairs: int
    damaged: int


class _WordTotals(_Totals):
    words: int
    entries: int


class _Shard(TypedDict):
    file: str
    rows: int
    sha256: str


_ENTRIES: dict[str, Any] = {"shards": _Shard, "sources": dict[str, Any]}
_ROWS = ("rows", "kept", "pairs")  # names of the total of written rows: each run has one of them
TOTALS = {"augment": _NoiseTotals, "prepare": _SentenceTotals, **dict.fromkeys(MINED, _PairTotals)}


class _ListFile(msgspec.Struct):
    """Entry of manifest.json in place of a long list: the list's file, count and digest."""

    file: Annotated[str, msgspec.Meta(pattern=r"^manifest\.[a-z]+-[0-9a-f]+\.jsonl$")]
    count: int
    sha256: str


def rows_of(totals: Mapping[str, Any]) -> int:
    """Return the number of rows in all shards, from the totals in a manifest."""
    return next(int(totals[name]) for name in _ROWS if name in totals)


def _check_sums(shards: Sequence[Mapping[str, Any]], totals: Mapping[str, Any]) -> None:
    """Raise ValueError if rows per shard, or kept and dropped rows, do not sum to the totals."""
    rows, total = sum(shard["rows"] for shard in shards), rows_of(totals)
    if rows != total:
        raise ValueError(f"its shards have {rows:,} rows, its totals {total:,}")
    accounted = total + sum(totals["dropped"].values())
    if accounted != (sentences := totals.get("sentences", accounted)):
        raise ValueError(f"it has {sentences:,} sentences, {accounted:,} of them kept or dropped")


def _check(kind: str, content: Mapping[str, Any], lists: Mapping[str, list[Any]]) -> None:
    """Raise ValueError if a manifest lacks fields, or if its counts contradict each other.

    `kind` is the kind of run, a key of KEYS. `lists` has the lists of shards and sources, `content`
    the rest of the manifest.
    """
    for name, entries in lists.items():
        for entry in entries:
            msgspec.convert(entry, _ENTRIES[name])
    msgspec.convert(content["totals"], TOTALS[kind])
    if kind in MINED:
        msgspec.convert(content["dictionary"], _WordTotals)
    _check_sums(lists["shards"], content["totals"])


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Options, sources, shards and totals of a run.

    `kind` is the kind of run, a key of KEYS, which lists the fields of this kind; other fields keep
    their defaults. `missing_tasks` counts tasks that other processes of the run have not done yet.
    """

    kind: str
    version: str
    command: str
    options: dict[str, Any]
    sources: list[dict[str, Any]]
    shards: list[dict[str, Any]]
    totals: dict[str, Any]
    packages: dict[str, str]
    lang: str = ""
    seed: int = 0
    recipe: dict[str, Any] = field(default_factory=dict)
    recipe_digest: str = ""
    dictionaries: list[dict[str, str]] = field(default_factory=list)
    identification: str | None = None
    thresholds: dict[str, int] = field(default_factory=dict)
    dictionary: dict[str, Any] = field(default_factory=dict)
    damage: list[str] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    missing_tasks: int = 0

    @classmethod
    def load(cls, path: str | Path, *kinds: str) -> "Manifest":
        """Read a manifest.json; `path` is the file or its folder.

        `kinds` are the kinds of runs that are accepted (default: all). Raises OutputError for
        another kind, and for a damaged file.
        """
        path = output_path(path)
        path = path / "manifest.json" if path.is_dir() else path
        wanted = _RUNS.get(kinds[0], "a mining run") if kinds else "a run"
        try:
            content = content_of(path)
            kind = content.get("kind") or ("augment" if "recipe" in content else "prepare")
            if kind not in (kinds or KEYS) or {*content, _TO_DO} != {*KEYS[kind], _TO_DO}:
                raise ValueError("it has other keys")
            lists: dict[str, Any] = {
                name: msgspec.convert(content.pop(name), list) for name in LISTS
            }
            _check(kind, content, lists)
            # `convert` would copy the many entries of the lists, so they are set afterwards
            without = {"kind": kind, **content, **dict.fromkeys(LISTS, ())}
            return replace(msgspec.convert(without, cls), **lists)
        except (OSError, ValueError, AttributeError, RecursionError) as error:
            raise OutputError(f"{path} is not the manifest of {wanted}: {error}") from error

    def to_json(self, **lists: object) -> str:
        """Return the text of manifest.json; `lists` maps a long list's name to what replaces it."""
        to_do = (_TO_DO,) if self.missing_tasks else ()
        content = {name: getattr(self, name) for name in (*KEYS[self.kind], *to_do)} | lists
        return json.dumps(content, indent=1, ensure_ascii=False) + "\n"

    def save(self, out: Path) -> None:
        """Write manifest.json and the files of its long lists to a folder; raises OutputError."""
        lists = {}
        for name in LISTS:
            if len(entries := getattr(self, name)) > LISTED:
                lists[name] = _save_list(out, name, entries)
        write_text(out / "manifest.json", self.to_json(**lists))
        for name, pattern in LISTS.items():
            for path in [*out.glob(pattern)]:
                if name not in lists or path.name != lists[name]["file"]:
                    remove(path)

    def __repr__(self) -> str:
        return f"<Manifest of {_RUNS.get(self.kind, 'a mining run')}: {self.summary()}>"

    def _repr_html_(self) -> str:
        return folded(repr(self), self.to_json())

    def summary(self) -> str:
        """Return the result of the run as one line for the user."""
        parts = {"augment": self._of_augment, "prepare": self._of_prepare}
        return "; ".join(filter(None, parts.get(self.kind, self._of_mining)()))

    def _of_augment(self) -> list[str]:
        totals, shards = self.totals, counted(len(self.shards), "shard")
        changed = totals["changed"] / max(1, totals["rows"])
        of = " of noisy and clean rows" if self.options.get("with_clean") else ""
        as_is = Counter(totals.get("as_is", {}))  # only in totals of a run that writes one file
        left_out = Counter(totals["dropped"]) - as_is
        damaged = Counter[str]() if self.shards else Counter({_CUT: left_out.pop(_CUT, 0)})
        return [
            counted(totals["rows"], "row") + (f" in {shards}" if self.shards else ""),
            self._to_do(),
            f"{changed:.1%}{of} changed, CER {totals['cer']:.2%}, WER {totals['wer']:.2%}",
            counts_line("left as is", as_is),
            counts_line("dropped or damaged" if self.shards else "left out", left_out),
            counts_line("damaged", +damaged),
        ]

    def _of_prepare(self) -> list[str]:
        totals, model = self.totals, self.identification
        kept = f"{totals['kept']:,} of {totals['sentences']:,} sentences kept"
        return [
            self._to_do() or kept,
            f"{counted(totals['rows_in'], 'row')} read",
            f"language checked by {model}" if model else "language not checked",
            counts_line("dropped", totals["dropped"]),
            counts_line("damaged rows", totals["damaged"]),
        ]

    def _of_mining(self) -> list[str]:
        totals, dictionary = self.totals, self.dictionary
        forms = counted(dictionary["entries"], "wrong form")
        words = counted(dictionary["words"], "word")
        shared = dictionary.get("pages_in_several_files", 0)
        pages = counted(shared, "page")
        return [
            f"{counted(totals['pairs'], 'pair')} in {counted(len(self.shards), 'shard')}",
            self._to_do() or f"dictionary: {forms} of {words}",
            f"{pages} in several files, which count more than once" if shared else "",
            counts_line("pairs dropped", totals["dropped"]),
            counts_line("words dropped", dictionary["dropped"]),
            f"damaged: {totals['damaged']:,}" if totals["damaged"] else "",
        ]

    def _to_do(self) -> str:
        """Return a note on the tasks that other processes of the run have to do; '' if none."""
        to_do = counted(self.missing_tasks, "task")
        return f"{to_do} to do: run the other parts" if self.missing_tasks else ""


def _save_list(out: Path, name: str, entries: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Write a list (shards or sources) to JSON lines; return its entry in manifest.json."""
    digest = hashlib.sha256()
    for entry in entries:
        digest.update(msgspec.json.encode(entry) + b"\n")
    file = LISTS[name].replace("*", digest.hexdigest()[:16])
    with atomic(out / file) as lines:
        lines.writelines(msgspec.json.encode(entry) + b"\n" for entry in entries)
    return {"file": file, "count": len(entries), "sha256": digest.hexdigest()}


def content_of(path: Path) -> dict[str, Any]:
    """Return the content of the manifest.json at `path`, including lists in files of their own.

    Raises OSError, ValueError, AttributeError or RecursionError for a damaged file.
    """
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    files = {name: content[name] for name in LISTS if isinstance(content.get(name), dict)}
    for name, value in files.items():
        listed = msgspec.convert(value, _ListFile)
        with path.with_name(listed.file).open("rb") as file:
            lines = file.read()
        if hashlib.sha256(lines).hexdigest() != listed.sha256:
            raise ValueError(f"{listed.file} has other content")
        content[name] = msgspec.json.Decoder(dict[str, Any]).decode_lines(lines)
    return content


def counts_line(label: str, counts: Mapping[str, int]) -> str:
    """Return a label and {name: count} as text: 'dropped: too_long 3, null_id 1'; '' if empty."""
    shown = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
    return f"{label}: {shown}" if shown else ""


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as '1 row' or '1,200 rows'."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def each_once(names: Iterable[str]) -> str:
    """Return names in the order of their first places, with their counts: 'init, caps (4)'."""
    counts = Counter(names)
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in counts.items())


def summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Add up the counts {name: count} of all tasks, name by name; the result is sorted by name."""
    total: Counter[str] = Counter()
    for task_counts in counts:
        total.update(task_counts)
    return dict(sorted(total.items()))


def packages(*names: str) -> dict[str, str]:
    """Return {package: installed version} of noisegen and the packages `names`.

    Without `names`: of Python, and of all packages whose version can change the output.
    """
    versions = {} if names else {"python": platform.python_version()}
    for name in names or PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return versions | {"noisegen": __version__}
