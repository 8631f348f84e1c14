"""Disentangling (DREAM, MEAT, ORACLE): trains two heads on a frozen encoder.

The heads, linear layers, give meaning and language vectors. DATA are pairs of texts. Each text has
a label: its language, "clean" or "noisy", or the name of the transform that made it noisy. Language
vectors tell these labels apart.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import nn
from torch.nn.functional import linear

from noisegen.data.bitext import all_bitext, stream_bitext
from noisegen.data.columns import BATCH_BYTES, in_brackets
from noisegen.data.formats.parquet import parquet_head, parquet_tables
from noisegen.data.pairs import shards_of, stream_pairs
from noisegen.data.sources import expand
from noisegen.encoders.encoder import Vectors, open_encoder
from noisegen.encoders.sentence_encoder import encoding_on
from noisegen.encoders.stored import read_json, write_json
from noisegen.encoders.tokens import Rows, generator, upload
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.xsim_search import retrieval_accuracy
from noisegen.runs.atomic import atomic
from noisegen.runs.progress import Show
from noisegen.text.resources import cache_folder
from noisegen.training.checkpoint import writing_weights
from noisegen.training.clock import UNLIMITED, Clock
from noisegen.training.computation import Workers
from noisegen.training.heads import (
    PAIRS_DRAWN,
    PREFIX,
    SIDES,
    HeadConfig,
    Heads,
    applied,
    new_linear,
    save_heads,
    save_students,
    write_picture,
)
from noisegen.training.losses import Disentangled, PairBatch, discrimination
from noisegen.training.objectives import WeightedSum
from noisegen.training.pairs import lost
from noisegen.training.settings import DisentangleSettings, Tell
from noisegen.training.stores import (
    StoredTexts,
    TeacherVectors,
    TextStore,
    encoding_seconds,
    random_vectors,
    writing_distinct,
)
from noisegen.training.trainer import Chunk, Method, Rehearsal, Trainer, adam

CLEAN, NOISY, SEVERAL = "clean", "noisy", "several"
LABELS_MAX = 1_000
# Columns and types that identify a file as output of `noisegen augment`.
_NOISED = {"noisy": pa.string(), "clean": pa.string(), "transforms": pa.list_(pa.string())}
_ROWS = 8_192  # vectors read at once while centre and scale are computed, to bound the memory
CHUNK_BATCHES = 64  # batches per chunk; memory holds the vectors of a whole chunk
_HELD_OUT_SEED = 2**32  # larger than all epochs, which seed batches
_SAMPLE_SEED = 2**33  # another stream than that of held-out pairs


@dataclass(frozen=True)
class LabelledPairs:
    """Pairs of a source text and a target text, each with a label.

    For pair i, `sides[i]` has the indices of source and target in the store `texts`, and
    `labels[i]` the indices of their labels in the tuple `names`. `dropped` counts the rows of DATA
    that give no pair, by reason.
    """

    texts: TextStore
    sides: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    names: tuple[str, ...]
    dropped: Counter[str]

    def __len__(self) -> int:
        return len(self.sides)


@dataclass(frozen=True)
class LabelledPair:
    """A source text and a target text, each with its label."""

    source: str
    target: str
    source_label: str
    target_label: str

    @property
    def both_labels(self) -> tuple[str, str]:
        """The labels of source and target."""
        return self.source_label, self.target_label


def prepare_labelled(
    folder: Path, sources: Sequence[str], settings: DisentangleSettings
) -> LabelledPairs:
    """Copy the labelled pairs of DATA into files in the folder, and open these files.

    A row is dropped, and counted, if a side is empty, or if its noisy text equals the clean text:
    one vector cannot have two labels. Raises SourceError if there are no pairs, only one label, too
    many labels, or if all sources or all targets are the same text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    sides, labels = array("i"), array("i")
    with writing_distinct(folder, "texts") as number_of:
        for pair in _chosen(sources, settings, dropped):
            sides.extend([number_of(pair.source), number_of(pair.target)])
            for label in (pair.source_label, pair.target_label):
                labels.append(numbers.setdefault(label, len(numbers)))
            if len(numbers) > LABELS_MAX:
                raise SourceError(
                    f"more than {LABELS_MAX:,} labels, such as {pair.source[:40]!r}'s: "
                    "are these columns languages?"
                )
    shown = ", ".join(sources)
    if not sides:
        raise SourceError(f"no pairs to train on in {shown}{in_brackets(dropped)}")
    if len(numbers) < 2:
        raise SourceError(f"{shown}: all texts are {next(iter(numbers))}: two labels are needed")
    side_array = np.array(sides, np.int32).reshape(-1, 2)
    label_array = np.array(labels, np.int32).reshape(-1, 2)
    for side, texts in zip(("source", "target"), side_array.T, strict=True):
        if (texts == texts[0]).all():
            raise SourceError(f"{shown}: every {side} is the same text: give other data")
    for name, numbers_of_pairs in (("sides", side_array), ("labels", label_array)):
        with atomic(folder / name) as file:
            np.save(file, numbers_of_pairs, allow_pickle=False)
    write_json(folder / "labels.json", {"names": list(numbers), "dropped": dropped})
    return open_labelled(folder)


def open_labelled(folder: Path) -> LabelledPairs:
    """Open the files of `prepare_labelled`."""
    record = read_json(folder / "labels.json")
    sides, labels = (np.load(folder / name, mmap_mode="r") for name in ("sides", "labels"))
    names, dropped = tuple(record["names"]), Counter(record["dropped"])
    return LabelledPairs(TextStore(folder, "texts"), sides, labels, names, dropped)


def _chosen(
    sources: Sequence[str], settings: DisentangleSettings, dropped: Counter[str]
) -> Iterator[LabelledPair]:
    """Yield the pairs of DATA: all, or `bitext_rows` random ones of each two labels.

    To choose random pairs, DATA are read twice: the first time to count the pairs.
    """
    if settings.bitext_rows is None:
        yield from _labelled(sources, settings, dropped)
        return
    counts = Counter(pair.both_labels for pair in _labelled(sources, settings, Counter()))
    is_chosen = {}
    for number, (both, count) in enumerate(counts.items()):
        order = generator(settings.seed, _SAMPLE_SEED, number).permutation(count)
        is_chosen[both] = iter((np.argsort(order) < settings.bitext_rows).tolist())
    for pair in _labelled(sources, settings, dropped):
        if next(is_chosen[pair.both_labels]):
            yield pair


def _labelled(
    sources: Sequence[str], settings: DisentangleSettings, dropped: Counter[str]
) -> Iterator[LabelledPair]:
    """Yield the pairs of DATA; labels are languages, "clean" or "noisy", or transform names."""
    if settings.labels == "language":
        langs = (settings.languages[0], settings.languages[1]) if settings.languages else None
        for pair in stream_bitext(all_bitext(sources, langs), dropped):
            yield LabelledPair(pair.source, pair.target, pair.source_lang, pair.target_lang)
    elif settings.labels == "side":
        rows = ((noisy, clean, NOISY) for noisy, clean in stream_pairs(sources, dropped))
        yield from _noised(rows, dropped)
    else:
        yield from _noised(_augmented(sources), dropped)


def _noised(rows: Iterable[tuple[str, str, str]], dropped: Counter[str]) -> Iterator[LabelledPair]:
    """Yield a labelled pair for each row: noisy text, clean text, and label of the noisy text.

    The clean text gets the label "clean". Rows with an empty side or two equal sides are dropped,
    and counted in `dropped`.
    """
    for noisy, clean, label in rows:
        if not (noisy and clean and noisy.strip() and clean.strip()):
            dropped["empty_side"] += 1
        elif noisy == clean:
            dropped["same_sides"] += 1
        else:
            yield LabelledPair(noisy, clean, label, CLEAN)


def _augmented(sources: Sequence[str]) -> Iterator[tuple[str, str, str]]:
    """Yield noisy text, clean text and label for each row that `noisegen augment` wrote.

    The label is the name of the transform that changed the row, or "several" if not exactly one
    did. Raises SourceError for files that augment did not write.
    """
    for source in sources:
        for item in expand([shards_of(source)]):
            rows = _rows_of_augment(item.path)
            for table in parquet_tables(item.path, 0, rows, BATCH_BYTES):
                columns = [table[name].to_pylist() for name in _NOISED]
                for noisy, clean, transforms in zip(*columns, strict=True):
                    label = transforms[0] if len(transforms or ()) == 1 else SEVERAL
                    yield noisy, clean, label


def _rows_of_augment(path: str) -> int:
    """Return the number of rows in a file of `noisegen augment`.

    Raises SourceError for any other file.
    """
    if path.endswith(".parquet"):
        schema, rows = parquet_head(path)
        found = {field.name: field.type for field in schema}
        if all(found.get(name) == kind for name, kind in _NOISED.items()):
            return rows
    raise SourceError(
        f"{path} has no columns {', '.join(_NOISED)}: labels transform are for the output of "
        "augment"
    )


def standard(vectors: TeacherVectors) -> tuple[Vectors, float]:
    """Return the centre (width,) and the scale that standardise the vectors of an encoder.

    The vectors (e - centre) * scale have mean 0 in each dimension, and mean square 1 over all
    entries. Without this, training would make all language vectors equal instead of telling
    languages apart: the vectors of most encoders have a direction in common, and the vectors of
    some encoders are short compared with the random biases that the heads start with.
    """
    total, squares = np.zeros(vectors.width), 0.0
    for first in range(0, len(vectors), _ROWS):
        some = vectors.take(np.arange(first, min(first + _ROWS, len(vectors))))
        total += some.sum(0, np.float64)
        squares += float(np.square(some, dtype=np.float64).sum())
    centre = total / len(vectors)
    spread = squares / len(vectors) - float(centre @ centre)
    scale = (vectors.width / spread) ** 0.5 if spread > 0 else 1.0
    return centre.astype(np.float32), scale


@dataclass(frozen=True)
class PairVectors:
    """Labelled pairs, and the frozen encoder's vectors of their texts.

    Batches for training get standardised vectors, (vector - `centre`) * `scale`. The plot of
    `write_picture` and the retrieval test get the encoder's vectors unchanged.
    """

    pairs: LabelledPairs
    vectors: TeacherVectors
    device: torch.device
    centre: Vectors
    scale: float = 1.0

    def batch(self, rows: Rows) -> PairBatch:
        """Return the pairs with the indices `rows` as a batch, with standardised vectors."""
        sources, targets = (self._standardised(side) for side in self.pairs.sides[rows].T)
        labels = self.pairs.labels[rows].T.astype(np.int64)
        columns = sources, targets, labels[0], labels[1]
        return PairBatch(*(upload(column, self.device) for column in columns))

    def _standardised(self, texts: Rows) -> Vectors:
        vectors = self.vectors.take(texts)
        vectors -= self.centre  # in place: a copy of a whole chunk would be large
        vectors *= np.float32(self.scale)
        return vectors

    def sets_by_labels(
        self, rows: Rows, most: int | None = None
    ) -> dict[str, tuple[Vectors, Vectors]]:
        """Return the encoder's vectors of sources and targets, in sets for `retrieval`.

        The pairs with the indices `rows` are grouped by the labels of source and target into sets,
        which are named after both labels: "en-de". With `most`, a set has its first `most` pairs.
        """
        pairs, sets = self.pairs, {}
        labels = pairs.labels[rows]
        for both in np.unique(labels, axis=0).tolist():
            some = rows[(labels == both).all(1)][:most]
            source, target = (self.vectors.take(side) for side in pairs.sides[some].T)
            sets["-".join(pairs.names[label] for label in both)] = source, target
        return sets


@dataclass(frozen=True)
class VectorChunk(Chunk):
    """Chunk with the standardised vectors of its pairs on the device; a batch is a slice."""

    pairs: PairBatch


def retrieval(
    sets: Mapping[str, tuple[Vectors, Vectors]], head: Callable[[Vectors], Vectors]
) -> dict[str, float]:
    """Return the percentage of texts whose nearest text is the other text of their pair.

    `sets` maps the labels of pairs, such as "en-de", to vectors of their sources and targets; the
    function `head` is applied to all vectors first. `retrieval.forward.en-de` finds the target
    nearest to each source, `retrieval.backward.en-de` the source nearest to each target.
    `retrieval.forward` and `retrieval.backward` are means over all sets. If k texts are equally
    near, the right one counts 1 / k.
    """
    forward, backward = {}, {}
    for name, (source, target) in sets.items():
        there, back = retrieval_accuracy(head(source), head(target))
        forward[f"retrieval.forward.{name}"] = there
        backward[f"retrieval.backward.{name}"] = back
    means = {
        "retrieval.forward": fmean(forward.values()),
        "retrieval.backward": fmean(backward.values()),
    }
    return {**means, **forward, **backward}


class Disentangling(Method[VectorChunk]):
    """Trains heads that split the vectors of a frozen encoder into meaning and language."""

    is_resumable: ClassVar[bool] = False
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.Adam
    settings: DisentangleSettings
    vectors: PairVectors

    def __init__(self, settings: DisentangleSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers, self.tell = settings, workers, tell
        self.objective = WeightedSum.parse(settings.objective, "heads")
        if settings.teacher.startswith(PREFIX):
            raise UsageError(f"teacher {settings.teacher!r} has heads: name the encoder under them")
        self.start = open_encoder(settings.teacher)

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read the labelled pairs of DATA and choose the held-out pairs; return a summary.

        A tenth of the pairs is held out: one half to validate, the other half to test at the end.

        Raises SourceError for too few pairs, and if all texts have the same label.
        """
        if self.workers.leads:
            prepare_labelled(folder, sources, self.settings)
        self.workers.wait()
        self.pairs = pairs = open_labelled(folder)
        order: Rows = generator(self.settings.seed, _HELD_OUT_SEED).permutation(len(pairs))
        held_out = max(1, min(2 * self.settings.validation_rows, len(pairs) // 10))
        parts = np.split(order, [-(-held_out // 2), held_out])
        self.held_out, self.test, self.training = parts
        if not len(self.test):  # a single pair is held out
            self.test = self.held_out
        self.pairs_read, self.rows = len(pairs), len(self.training)
        self.validation_interval = max(1, self.rows // self.settings.batch_pairs)  # once per epoch
        if self.rows < 2:
            raise SourceError(f"{len(pairs)} pairs, one of them is held out: give more data")
        if len(self.held_out) < 2 and self.objective.needs("partners"):
            raise SourceError(
                f"{len(pairs)} pairs, one is held out, but {self.settings.objective} compares two: "
                "give more data, at least 30 pairs, and validation_rows of at least 2"
            )
        counts = f"{self.rows:,} pairs to train on, {len(self.held_out):,} held out"
        counts += f", {len(self.test):,} to test"
        return "; ".join([counts, f"labels {', '.join(pairs.names)}", *lost(pairs.dropped)])

    def estimate(self, chunk: VectorChunk) -> dict[str, Any]:
        """Return the sizes that a dry run prints: numbers of weights, pairs, texts and updates."""
        weights = 2 * self.start.width * (self.start.width + 1)
        return {
            "weights": weights,
            "pairs": len(self.pairs),
            "texts": len(self.pairs.texts),
            "pairs_per_update": len(chunk.steps[0][0]),
            "updates_per_epoch": self.validation_interval,
        }

    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute the frozen encoder's vectors of all texts; make heads with random weights."""
        stored, cache = StoredTexts(folder, "texts"), cache_folder() / "vectors"
        with self._encoding():
            vectors = stored.vectors(self.start, cache, "frozen vectors", progress, self.workers)
        self._begin(vectors)

    def rehearse(self) -> Rehearsal:
        """Make the heads for a dry run, with random vectors in place of the encoder's.

        Return the estimated seconds that a run takes to compute the encoder's vectors.
        """
        self._begin(random_vectors(len(self.pairs.texts), self.start.width))
        with self._encoding():
            return Rehearsal(encoding_seconds(self.start, self.pairs.texts))

    def _encoding(self) -> AbstractContextManager[torch.dtype | None]:
        """Return a context in which the frozen encoder computes on the run's device."""
        return encoding_on(self.workers.device, self.start, "fp32", self.tell)

    def _begin(self, vectors: TeacherVectors) -> None:
        settings, pairs, device = self.settings, self.pairs, self.workers.device
        width, labels = vectors.width, len(pairs.names)
        centre, scale = np.zeros(width, np.float32), 1.0
        if settings.standardize:
            centre, scale = standard(vectors)
        self.vectors = PairVectors(pairs, vectors, device, centre, scale)
        random = torch.Generator().manual_seed(settings.seed)
        self.heads = Heads(width, random).to(device)
        self.classifier = new_linear(width, labels, random).to(device)
        self.discriminator = new_linear(width, labels, random).to(device)
        self.network = nn.ModuleList([self.heads, self.classifier])
        self.adversary = adam(self.optimizer_class, self.discriminator, settings)

    def chunk(self, epoch: int, number: int) -> VectorChunk | None:
        """Return the chunk with index `number` of an epoch, in batches of `batch_pairs`.

        All batches of an epoch are full: its last pairs are skipped if they fill no batch. Only if
        there are too few training pairs for one batch, all of them form a smaller batch. Return
        None after the last chunk.
        """
        size = min(self.settings.batch_pairs, self.rows)
        order = generator(self.settings.seed, epoch).permutation(self.training)
        first = number * CHUNK_BATCHES * size
        rows = order[: len(order) // size * size][first : first + CHUNK_BATCHES * size]
        if not len(rows):
            return None
        steps = [[batch] for batch in np.arange(len(rows)).reshape(-1, size)]
        return VectorChunk(steps, self.vectors.batch(rows))

    def backward(
        self,
        trainer: Trainer[VectorChunk],
        chunk: VectorChunk,
        batches: list[Rows],
        loaded: None = None,
    ) -> int:
        """Compute the gradient of the heads in one batch; return its number of pairs.

        Every process computes the same, since the heads are small and their losses compare all
        pairs of a batch: processes share only the work of the frozen encoder.

        For an objective with a discriminator (MEAT), the discriminator first gets an update of its
        own, on the current meaning vectors.
        """
        (rows,) = batches
        batch = chunk.pairs.part(int(rows[0]), int(rows[-1]) + 1)
        output = self._output(batch)
        if self.objective.needs("discriminator"):
            own = discrimination(batch, output, self.discriminator)
            own.backward()  # type: ignore[no-untyped-call]
            trainer.step(self.adversary)
            trainer.window["loss_discriminator"] += own.detach().double() / self.workers.world
        weight, bias = self.discriminator.weight.detach(), self.discriminator.bias.detach()
        frozen = partial(linear, weight=weight, bias=bias)
        loss, parts = self.objective(batch, replace(output, discriminator=frozen))
        loss.backward()  # type: ignore[no-untyped-call]
        trainer.count(loss, parts, 1 / self.workers.world)  # of a sum over equal processes
        return len(rows)

    def _output(self, batch: PairBatch) -> Disentangled:
        meaning, language = self.heads(torch.cat([batch.source, batch.target]))
        rows = len(batch.source)
        sides = meaning[:rows], language[:rows], meaning[rows:], language[rows:]
        return Disentangled(*sides, self.classifier, self.discriminator)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return the loss and its named parts, each as a mean over the held-out pairs."""
        loss, parts = self.objective.means(self._held_out_batches())
        return {"loss": loss, **parts}

    def _held_out_batches(self) -> Iterator[tuple[int, tuple[PairBatch, Disentangled]]]:
        """Yield each batch of held-out pairs: its size, the batch, and the heads' output for it."""
        size = self.settings.batch_pairs
        for first in range(0, len(self.held_out), size):
            rows = self.held_out[first : first + size]
            batch = self.vectors.batch(rows)
            yield len(rows), (batch, self._output(batch))

    def export(self, trainer: Trainer[VectorChunk]) -> dict[str, Any]:
        """Write RUN/heads, a picture of the vectors, and encoders that contain a head.

        The picture and the retrieval figures are of the test pairs. Encoders with a head are
        written if the frozen encoder is a SentenceEncoder. Return the content of metrics.json.
        """
        pairs, encoder, out = self.pairs, self.start, trainer.out
        heads = self.heads.cpu()
        heads.absorb_standardisation(torch.from_numpy(self.vectors.centre), self.vectors.scale)
        best = trainer.best_validation
        metrics = {
            "validation": {**best.figures, "step": best.step},
            **trainer.reached,
            "labels": list(pairs.names),
            "parameters": sum(weight.numel() for weight in heads.parameters()),
            "dropped": dict(pairs.dropped),
        }
        drawn = self.vectors.sets_by_labels(self.test, PAIRS_DRAWN)
        write_picture(drawn, heads, out / "vectors.html")
        sets = self.vectors.sets_by_labels(self.test)
        metrics["retrieval"] = {
            "encoder": retrieval(sets, lambda own: own),
            **{side: retrieval(sets, applied(heads, side)) for side in SIDES},
        }
        spec, objective = self.settings.teacher, self.settings.objective
        if Path(spec).is_dir():
            spec = str(Path(spec).resolve())
        config = HeadConfig(spec, encoder.digest, encoder.width, pairs.names, objective)
        with torch.no_grad(), writing_weights(out / "heads"):
            save_heads(heads, config, out / "heads")
            save_students(heads, encoder, out)
        return metrics
