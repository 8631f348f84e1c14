"""DATA of `noisegen train`: pairs of noisy and clean text, kept on disk once per run.

RUN/data has every distinct clean text once, the noisy side of each pair, its language, and which
clean text it belongs to. Pairs with an empty side are dropped, texts of over TEXT_MAX characters
cut, and both counted; some clean texts are held out. Of bitext the side in the teacher's language
is clean, and its translation is noisy.
"""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.bitext import TEXT_MAX, Bitext, all_bitext, find_bitext, stream_bitext
from noisegen.data.columns import TextColumns, by_reason, in_brackets, stream_columns
from noisegen.data.pairs import PAIRS_ARE, damage, shards_of, stream_pairs
from noisegen.data.sources import expand
from noisegen.data.tables import parquet_head, parquet_tables
from noisegen.encoders.tokens import Rows
from noisegen.errors import SourceError
from noisegen.noise.rng import mix, name_number
from noisegen.runs.files import atomic, write_text
from noisegen.training.computation import Workers
from noisegen.training.settings import DisentangleSettings as Settings
from noisegen.training.stores import TextStore, write_texts

_CLEAN = (("clean",), ("text",))  # columns that hold clean text
_ADVICE = f"{PAIRS_ARE}; clean text alone needs a recipe, such as --noise ugc"


@dataclass(frozen=True)
class PairData:
    """Noisy text `noisy[i]` belongs to clean text `clean[owner[i]]`.

    It is of language `langs[lang[i]]`. `training` and `validation` are pair numbers; no clean text
    has pairs in both. Of `cut` pairs one side at least was too long.
    """

    clean: TextStore
    noisy: TextStore
    owner: npt.NDArray[np.int32]
    lang: npt.NDArray[np.uint16]
    langs: tuple[str, ...]
    training: Rows
    validation: Rows
    dropped: Counter[str]
    cut: int = 0

    @property
    def summary(self) -> str:
        """Return how many pairs there are, and what was lost of them."""
        parts = [f"{len(self.training):,} pairs to train on, {len(self.validation):,} to choose by"]
        return "; ".join([*parts, *lost(self.dropped, self.cut)])

    @property
    def losses(self) -> dict[str, Any]:
        """Return what metrics.json says of what was lost."""
        return {"dropped": dict(self.dropped), "cut": self.cut}


def lost(dropped: Mapping[str, int], cut: int) -> list[str]:
    """Return what was dropped, and how many pairs were cut, in words; nothing of none."""
    parts = [f"dropped {by_reason(dropped)}"] if dropped else []
    return parts + ([f"{cut:,} cut to {TEXT_MAX:,} characters"] if cut else [])


@dataclass(frozen=True)
class Reading:
    """Options of reading DATA: with `clean_only` as clean text, which is then its own noisy side.

    `lang` is the language of clean text. Of bitext come at most `most` rows of each language pair
    of each data set. About `held_out` pairs, at most a `share` of all, are for validation, chosen
    by the seed.
    """

    clean_only: bool = False
    lang: str = "en"
    most: int | None = None
    held_out: int = 500
    seed: int = 0
    share: float = 0.1

    def pairs(
        self, sources: Sequence[str], dropped: Counter[str]
    ) -> Iterator[tuple[str, str, str]]:
        """Yield noisy and clean text, with the language of the noisy one; raises SourceError."""
        found = {source: find_bitext(source) for source in sources}
        plain = [source for source in sources if not found[source]]
        read = _clean_pairs if self.clean_only else partial(stream_pairs, advice=_ADVICE)
        for noisy, clean in read(plain, dropped):
            yield noisy, clean, self.lang
        yield from self._translations([file for of in found.values() for file in of], dropped)

    def _translations(
        self, files: Sequence[Bitext], dropped: Counter[str]
    ) -> Iterator[tuple[str, str, str]]:
        for file in files:
            if self.lang not in file.langs and not file.is_mixed:
                raise SourceError(
                    f"{file.paths[0]} is in {' and '.join(file.langs)}; one side must be in the "
                    f"teacher's language, {self.lang} (another: --set lang=...)"
                )
        for pair in stream_bitext(files, dropped, self.most):
            if pair.source_lang == self.lang:
                yield pair.target, pair.source, pair.target_lang
            elif pair.target_lang == self.lang:
                yield pair.source, pair.target, pair.source_lang
            else:
                dropped[f"no_{self.lang}"] += 1


def prepare_data(folder: Path, sources: Sequence[str], reading: Reading) -> PairData:
    """Read DATA into the folder and open it.

    Sources may be bitext (`bitext_files.find_bitext`) and others together. Raises SourceError where
    nothing is left to train on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    known: dict[bytes, int] = {}
    langs: dict[str, int] = {}
    cut = 0
    with ExitStack() as stack:
        owners = stack.enter_context(atomic(folder / "owner"))
        languages = stack.enter_context(atomic(folder / "lang"))

        def noisy_side() -> Iterator[str]:
            nonlocal cut
            for noisy, clean, lang in reading.pairs(sources, dropped):
                cut += max(len(noisy), len(clean)) > TEXT_MAX
                key = blake2b(clean.encode(), digest_size=16).digest()
                owners.write(np.int32(known.setdefault(key, len(known))).tobytes())
                languages.write(np.uint16(langs.setdefault(lang, len(langs))).tobytes())
                yield noisy[:TEXT_MAX]  # the tokenizer cuts far earlier

        noisy = write_texts(folder, "noisy", noisy_side())
    if not len(noisy):
        raise SourceError(f"no pairs to train on in {', '.join(sources)}{in_brackets(dropped)}")
    write_texts(folder, "clean", _first_of_each(reading.pairs(sources, Counter()), known))
    held_out = max(1, round(len(known) * min(reading.share, reading.held_out / len(noisy))))
    record = {
        "held_out": held_out, "seed": reading.seed, "langs": list(langs), "dropped": dropped,
        "cut": cut,
    }  # fmt: skip
    write_text(folder / "data.json", json.dumps(record))
    return open_data(folder)


def read_pairs(
    folder: Path, sources: Sequence[str], reading: Reading, workers: Workers, *, resume: bool
) -> PairData:
    """Let the first process read DATA, unless a resumed run has it; all processes then open it.

    Raises SourceError where there is too little to train on.
    """
    if workers.leads and not (resume and (folder / "data.json").exists()):
        prepare_data(folder, sources, reading)
    workers.wait()
    pairs = open_data(folder)
    if len(pairs.training) < workers.world or not len(pairs.validation):
        reason = f"{len(pairs.training)} pairs to train on and {len(pairs.validation)} to validate"
        if len(pairs.clean) == 1 and len(pairs.noisy) > 1:
            reason = f"all {len(pairs.noisy):,} pairs have the same clean text, which is held out"
        raise SourceError(f"{reason}: give more data{in_brackets(pairs.dropped)}")
    return pairs


def _clean_pairs(sources: Sequence[str], dropped: Counter[str]) -> Iterator[tuple[str, str]]:
    """Yield every text twice; damage in an input raises SourceError."""
    for source in sources:
        read = TextColumns({}, dropped)
        for (text,) in stream_columns(shards_of(source), _CLEAN, "training", read):
            yield text, text
        if read.damaged:
            raise damage(read.damaged)


def _first_of_each(pairs: Iterable[tuple[str, str, str]], known: dict[bytes, int]) -> Iterator[str]:
    """Return every clean text where it was first met, so that none is held in memory."""
    at = 0
    for _, clean, _ in pairs:
        key = blake2b(clean.encode(), digest_size=16).digest()
        if known[key] == at:
            yield clean[:TEXT_MAX]
            at += 1


def open_data(folder: Path) -> PairData:
    """Open what `prepare_data` wrote; raises SourceError if it is not there or damaged."""
    try:
        record = json.loads((folder / "data.json").read_text())
        clean, noisy = TextStore(folder, "clean"), TextStore(folder, "noisy")
        owner = np.memmap(folder / "owner", np.int32, "r")
        lang = np.memmap(folder / "lang", np.uint16, "r")
        held = _held_out(clean, record["held_out"], record["seed"])[owner]
        dropped, cut, langs = Counter(record["dropped"]), int(record["cut"]), tuple(record["langs"])
        if not len(owner) == len(lang) == len(noisy):
            raise ValueError(f"{len(owner):,} owners, {len(lang):,} languages of {len(noisy):,}")
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SourceError(
            f"{folder} has no training data: {error!r}; begin anew in another folder"
        ) from error
    parts = np.flatnonzero(~held), np.flatnonzero(held)
    return PairData(clean, noisy, owner, lang, langs, *parts, dropped, cut)


def _held_out(clean: TextStore, count: int, seed: int) -> npt.NDArray[np.bool_]:
    """Choose so many clean texts by their content, so that no order or copy changes it."""
    key, numbers = mix(seed), np.zeros(len(clean), np.uint64)
    for first in range(0, len(clean), 65_536):
        texts = clean.take(np.arange(first, min(first + 65_536, len(clean)))).to_pylist()
        numbers[first : first + len(texts)] = [mix(key ^ name_number(text)) for text in texts]
    held = np.zeros(len(clean), np.bool_)
    held[np.argpartition(numbers, min(count, len(clean) - 1))[:count]] = True
    return held


CLEAN, NOISY, SEVERAL = "clean", "noisy", "several"
LABELS_MAX = 1_000
_BATCH_BYTES = 4 << 20
_NOISED = ("noisy", "clean", "transforms")
_NOISED_TYPES = [pa.string(), pa.string(), pa.list_(pa.string())]

Row = tuple[str, str, str, str]  # source, target, and the labels of both
Numbers = npt.NDArray[np.int32]


@dataclass(frozen=True)
class LabelledPairs:
    """Pair i is `texts[source[i]]` and `texts[target[i]]`, of labels `names[source_label[i]]`..."""

    texts: TextStore
    source: Numbers
    target: Numbers
    source_label: Numbers
    target_label: Numbers
    names: tuple[str, ...]
    dropped: Counter[str]

    def __len__(self) -> int:
        return len(self.source)


def prepare_labelled(folder: Path, sources: Sequence[str], settings: Settings) -> LabelledPairs:
    """Read DATA, its distinct texts into the folder; raises SourceError for unusable pairs.

    Rows with an empty side are dropped and counted, and of noisy text those that equal their clean
    form: one vector cannot be both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    read = _Distinct()
    rows = _READERS[settings.labels](sources, settings, dropped)
    texts = write_texts(folder, "texts", read(rows))
    source, target, *labels = (np.array(column, np.int32) for column in read.columns)
    names = tuple(read.labels)
    pairs = LabelledPairs(texts, source, target, labels[0], labels[1], names, dropped)
    _check(pairs, ", ".join(sources))
    return pairs


class _Distinct:
    """Numbers texts and labels in the order in which they are met; yields the new texts."""

    def __init__(self) -> None:
        self.labels: dict[str, int] = {}
        self.columns = tuple(array("i") for _ in range(4))
        self._known: dict[bytes, int] = {}

    def __call__(self, rows: Iterator[Row]) -> Iterator[str]:
        for source, target, *labels in rows:
            for text, column in zip((source, target), self.columns[:2], strict=True):
                key = blake2b(text.encode("utf-8", "replace"), digest_size=16).digest()
                if key not in self._known:
                    self._known[key] = len(self._known)
                    yield text
                column.append(self._known[key])
            for label, column in zip(labels, self.columns[2:], strict=True):
                column.append(self.labels.setdefault(label, len(self.labels)))
            if len(self.labels) > LABELS_MAX:
                raise SourceError(f"more than {LABELS_MAX:,} labels, such as {source[:40]!r}'s: "
                                  "are these columns languages?")  # fmt: skip


def _check(pairs: LabelledPairs, shown: str) -> None:
    if not len(pairs):
        raise SourceError(f"no pairs to train on in {shown}{in_brackets(pairs.dropped)}")
    if len(pairs.names) < 2:
        raise SourceError(f"{shown}: all texts are {pairs.names[0]}: nothing to tell it from")
    for side, rows in (("source", pairs.source), ("target", pairs.target)):
        if (rows == rows[0]).all():
            raise SourceError(f"{shown}: every {side} is the same text: nothing to tell apart")


def _bitext(sources: Sequence[str], settings: Settings, dropped: Counter[str]) -> Iterator[Row]:
    source, target = settings.languages or ("", "")
    languages = (source, target) if source else None
    for pair in stream_bitext(all_bitext(sources, languages), dropped):
        yield pair[:4]


def _sides(sources: Sequence[str], settings: Settings, dropped: Counter[str]) -> Iterator[Row]:
    for noisy, clean in stream_pairs(sources, dropped):
        if noisy == clean:
            dropped["same_sides"] += 1
        else:
            yield noisy[:TEXT_MAX], clean[:TEXT_MAX], NOISY, CLEAN


def _transforms(sources: Sequence[str], settings: Settings, dropped: Counter[str]) -> Iterator[Row]:
    for path in (item.path for source in sources for item in expand([shards_of(source)])):
        for noisy, clean, names in _noised(path):
            if not (noisy and clean and noisy.strip() and clean.strip()):
                dropped["empty_side"] += 1
            elif noisy == clean:
                dropped["same_sides"] += 1
            else:
                label = names[0] if len(names or ()) == 1 else SEVERAL
                yield noisy[:TEXT_MAX], clean[:TEXT_MAX], label, CLEAN


def _noised(path: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the rows of a file of augment; raises SourceError for any other."""
    schema, rows = parquet_head(path) if path.endswith(".parquet") else (pa.schema([]), 0)
    if [schema.field(name).type for name in _NOISED if name in schema.names] != _NOISED_TYPES:
        raise SourceError(
            f"{path} has no columns {', '.join(_NOISED)}: labels transform are for the output of "
            "augment"
        )
    for table in parquet_tables(path, 0, rows, _BATCH_BYTES):
        columns = [table[name].to_pylist() for name in _NOISED]
        yield from zip(*columns, strict=True)


_READERS: dict[str, Callable[[Sequence[str], Settings, Counter[str]], Iterator[Row]]] = {
    "language": _bitext,
    "side": _sides,
    "transform": _transforms,
}
