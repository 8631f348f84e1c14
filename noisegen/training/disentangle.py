"""Disentangling (DREAM, MEAT, ORACLE): heads for meaning and language on frozen vectors.

Their DATA are pairs of texts with labels: languages, clean or noisy, or names of transforms.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from noisegen.encoders.tokens import Rows, generator
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.xsim_search import retrieval_accuracy
from noisegen.runs.progress import Show
from noisegen.text.resources import cache_folder
from noisegen.training.checkpoint import writing_weights
from noisegen.training.computation import Workers
from noisegen.training.heads import (
    POINTS_MAX,
    PREFIX,
    SIDES,
    TEXTS_MIN,
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
    TeacherVectors,
    TextStore,
    encoding_seconds,
    random_vectors,
    teacher_vectors,
    writing_distinct,
)
from noisegen.training.trainer import UNLIMITED, Chunk, Clock, Method, Rehearsal, Trainer, adam

CLEAN, NOISY, SEVERAL = "clean", "noisy", "several"
LABELS_MAX = 1_000
PAIRS_MAX = 1_000  # of two labels that are looked up, as in the ORACLE paper
_NOISED = {"noisy": pa.string(), "clean": pa.string(), "transforms": pa.list_(pa.string())}
_ROWS = 8_192  # vectors that are measured at a time
CHUNK_BATCHES = 64  # whose vectors are in memory together
_SPLIT = 2**32  # the draw that splits training and validation, apart from all epochs


@dataclass(frozen=True)
class LabelledPairs:
    """Pair i has the texts of numbers `sides[i]`, source and target, and the labels `labels[i]`.

    Both have shape (pairs, 2); labels are numbers of `names`.
    """

    texts: TextStore
    sides: npt.NDArray[np.int32]
    labels: npt.NDArray[np.int32]
    names: tuple[str, ...]
    dropped: Counter[str]

    def __len__(self) -> int:
        return len(self.sides)


def prepare_labelled(
    folder: Path, sources: Sequence[str], settings: DisentangleSettings
) -> LabelledPairs:
    """Read DATA, its distinct texts into the folder; raises SourceError for unusable pairs.

    Rows with an empty side are dropped and counted, and of noisy text those that equal their clean
    form: one vector cannot be both.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    numbers: dict[str, int] = {}
    sides, labels = array("i"), array("i")
    with writing_distinct(folder, "texts") as number_of:
        for source, target, *names in _labelled(sources, settings, dropped):
            sides.extend(map(number_of, (source, target)))
            labels.extend(numbers.setdefault(name, len(numbers)) for name in names)
            if len(numbers) > LABELS_MAX:
                raise SourceError(f"more than {LABELS_MAX:,} labels, such as {source[:40]!r}'s: "
                                  "are these columns languages?")  # fmt: skip
    shown = ", ".join(sources)
    if not sides:
        raise SourceError(f"no pairs to train on in {shown}{in_brackets(dropped)}")
    if len(numbers) < 2:
        raise SourceError(f"{shown}: all texts are {next(iter(numbers))}: two labels are needed")
    pairs, both = (np.array(column, np.int32).reshape(-1, 2) for column in (sides, labels))
    for side, texts in zip(("source", "target"), pairs.T, strict=True):
        if (texts == texts[0]).all():
            raise SourceError(f"{shown}: every {side} is the same text: give other data")
    return LabelledPairs(TextStore(folder, "texts"), pairs, both, tuple(numbers), dropped)


def _labelled(
    sources: Sequence[str], settings: DisentangleSettings, dropped: Counter[str]
) -> Iterator[tuple[str, str, str, str]]:
    """Yield source and target, then the labels of both."""
    if settings.labels == "language":
        langs = (settings.languages[0], settings.languages[1]) if settings.languages else None
        for pair in stream_bitext(all_bitext(sources, langs), dropped):
            yield pair[:4]
        return
    by_side = settings.labels == "side"
    for noisy, clean, names in (
        ((*pair, [NOISY]) for pair in stream_pairs(sources, dropped)) if by_side
        else _augmented(sources)
    ):  # fmt: skip
        if not (noisy and clean and noisy.strip() and clean.strip()):
            dropped["empty_side"] += 1
        elif noisy == clean:
            dropped["same_sides"] += 1
        else:
            yield noisy, clean, names[0] if len(names or ()) == 1 else SEVERAL, CLEAN


def _augmented(sources: Sequence[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the rows of files of augment; raises SourceError for others."""
    for path in (item.path for source in sources for item in expand([shards_of(source)])):
        schema, rows = parquet_head(path) if path.endswith(".parquet") else (pa.schema([]), 0)
        if not all(name in schema.names and schema.field(name).type == kind
                   for name, kind in _NOISED.items()):  # fmt: skip
            raise SourceError(
                f"{path} has no columns {', '.join(_NOISED)}: labels transform are for the output "
                "of augment"
            )
        for table in parquet_tables(path, 0, rows, BATCH_BYTES):
            yield from zip(*(table[name].to_pylist() for name in _NOISED), strict=True)


def standard(vectors: TeacherVectors) -> tuple[Vectors, float]:
    """Return centre and scale: (e - centre) * scale have mean 0 and, over all, mean square 1.

    Where all vectors share a direction, as most encoders' do, or are short beside the start of a
    bias, language vectors would rather become one constant than tell languages apart.
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
    """Pairs with the frozen vectors of their texts: in batches, and to be looked up."""

    pairs: LabelledPairs
    vectors: TeacherVectors
    device: torch.device
    centre: Vectors
    scale: float = 1.0

    def batch(self, rows: Rows) -> PairBatch:
        """Return these pairs, their vectors standardised."""
        columns = []
        for side in self.pairs.sides[rows].T:
            columns.append(self.vectors.take(side))
            columns[-1] -= self.centre  # in place: a chunk is large
            columns[-1] *= np.float32(self.scale)
        labels = self.pairs.labels[rows].T.astype(np.int64)
        return PairBatch(*(torch.from_numpy(part).to(self.device) for part in (*columns, *labels)))

    def by_label(self, rows: Rows) -> dict[str, Vectors]:
        """Return the frozen vectors of the distinct texts of these pairs by their labels."""
        texts, labels = self.pairs.sides[rows], self.pairs.labels[rows]
        return {
            self.pairs.names[label]: self.vectors.take(np.unique(texts[labels == label]))
            for label in np.unique(labels).tolist()
        }

    def retrieval_sets(self, rows: Rows) -> dict[str, tuple[Vectors, Vectors]]:
        """Return the frozen vectors of both sides of these pairs, a set for each two labels, en-de.

        Of many pairs the first `PAIRS_MAX` of each are taken.
        """
        pairs, sets = self.pairs, {}
        labels = pairs.labels[rows]
        for both in np.unique(labels, axis=0).tolist():
            some = rows[(labels == both).all(1)][:PAIRS_MAX]
            source, target = (self.vectors.take(side) for side in pairs.sides[some].T)
            sets["-".join(pairs.names[label] for label in both)] = source, target
        return sets


@dataclass(frozen=True)
class VectorChunk(Chunk):
    """Pairs of frozen vectors on the device; the batches of `steps` are slices of them."""

    pairs: PairBatch


def retrieval(
    sets: Mapping[str, tuple[Vectors, Vectors]], head: Callable[[Vectors], Vectors]
) -> dict[str, float]:
    """Return the per cent of pairs that find each other, both ways, after a head.

    Names are `retrieval.forward`, `.backward` (means over the sets), `.forward.en-de` and so on.
    Vectors that tie share what they find: language vectors that are one constant find nothing.
    """
    ways: dict[str, dict[str, float]] = {"forward": {}, "backward": {}}
    for name, (source, target) in sets.items():
        for way, share in zip(ways, retrieval_accuracy(head(source), head(target)), strict=True):
            ways[way][f"retrieval.{way}.{name}"] = share
    means = {f"retrieval.{way}": fmean(shares.values()) for way, shares in ways.items()}
    return {**means, **ways["forward"], **ways["backward"]}


class Disentangling(Method[VectorChunk]):
    """Heads that split the vectors of a frozen encoder into meaning and language, or noise."""

    is_resumable: ClassVar[bool] = False
    optimizer_class: ClassVar[type[torch.optim.Optimizer]] = torch.optim.Adam
    settings: DisentangleSettings
    vectors: PairVectors

    def __init__(self, settings: DisentangleSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers = settings, workers
        self.objective = WeightedSum.parse(settings.objective, "heads")
        if workers.world > 1:
            raise UsageError("heads train in one process: run without torchrun")
        if settings.teacher.startswith(PREFIX):
            raise UsageError(f"teacher {settings.teacher!r} has heads: name the encoder under them")
        self.start = open_encoder(settings.teacher)

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read labelled pairs; raises SourceError for too few, and for a single label."""
        self.pairs = pairs = prepare_labelled(folder, sources, self.settings)
        order: Rows = generator(self.settings.seed, _SPLIT).permutation(len(pairs))
        held_out = max(1, min(self.settings.validation_rows, len(pairs) // 10))
        self.training, self.held_out = order[held_out:], order[:held_out]
        self.pairs_read, self.rows = len(pairs), len(self.training)
        self.unvalidated = max(1, self.rows // self.settings.batch_pairs)  # an epoch
        if self.rows < 2:
            raise SourceError(f"{len(pairs)} pairs, of which one is held out: give more data")
        if held_out < 2 and self.objective.needs("partners"):
            raise SourceError(
                f"{len(pairs)} pairs, one is held out, but {self.settings.objective} compares two: "
                "give more data, at least 20 pairs, and validation_rows of at least 2"
            )
        return "; ".join([
            f"{self.rows:,} pairs to train on, {held_out:,} held out",
            f"labels {', '.join(pairs.names)}", *lost(pairs.dropped),
        ])  # fmt: skip

    def estimate(self, chunk: VectorChunk) -> dict[str, Any]:
        """Return the numbers of weights, pairs and texts."""
        weights = 2 * self.start.width * (self.start.width + 1)
        return {
            "weights": weights, "pairs": len(self.pairs), "texts": len(self.pairs.texts),
            "pairs_per_update": len(chunk.steps[0][0]), "updates_per_epoch": self.unvalidated,
        }  # fmt: skip

    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute the frozen vectors, and start the heads."""
        cache = cache_folder() / "vectors"
        texts = self.pairs.texts
        self._begin(teacher_vectors(self.start, texts, cache, "frozen vectors", progress))

    def rehearse(self) -> Rehearsal:
        """Start the heads on random vectors."""
        self._begin(random_vectors(len(self.pairs.texts), self.start.width))
        return Rehearsal(encoding_seconds(self.start, self.pairs.texts))

    def _begin(self, vectors: TeacherVectors) -> None:
        settings, pairs, device = self.settings, self.pairs, self.workers.device
        width, labels = vectors.width, len(pairs.names)
        plain = np.zeros(width, np.float32), 1.0
        shift = standard(vectors) if settings.standardize else plain
        self.vectors = PairVectors(pairs, vectors, device, *shift)
        random = torch.Generator().manual_seed(settings.seed)
        self.heads = Heads(width, random).to(device)
        self.classifier = new_linear(width, labels, random).to(device)
        self.discriminator = new_linear(width, labels, random).to(device)
        self.network = nn.ModuleList([self.heads, self.classifier])
        self.adversary = adam(self.optimizer_class, self.discriminator, settings)

    def chunk(self, epoch: int, number: int) -> VectorChunk | None:
        """Return pairs of frozen vectors in batches.

        They are full and left-over pairs are skipped; fewer pairs than `batch_pairs` are one batch.
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
        self, trainer: Trainer[VectorChunk], chunk: VectorChunk, batches: list[Rows]
    ) -> int:
        """Step the discriminator on the meaning vectors as they are; add up the heads' gradient."""
        (rows,) = batches
        span = slice(int(rows[0]), int(rows[-1]) + 1)
        batch = PairBatch(*(column[span] for column in vars(chunk.pairs).values()))
        output = self._output(batch)
        if self.objective.needs("discriminator"):
            own = discrimination(batch, output, self.discriminator)
            own.backward()  # type: ignore[no-untyped-call]
            trainer.step(self.adversary)
            trainer.window["loss_discriminator"] += own.detach().double()
        judge = self.discriminator
        still = partial(linear, weight=judge.weight.detach(), bias=judge.bias.detach())
        loss, parts = self.objective(batch, replace(output, discriminator=still))
        loss.backward()  # type: ignore[no-untyped-call]
        trainer.count(loss, parts)
        return len(rows)

    def _output(self, batch: PairBatch) -> Disentangled:
        meaning, language = self.heads(torch.cat([batch.source, batch.target]))
        rows = len(batch.source)
        sides = meaning[:rows], language[:rows], meaning[rows:], language[rows:]
        return Disentangled(*sides, self.classifier, self.discriminator)

    @torch.no_grad()
    def validate(self) -> dict[str, float]:
        """Return the loss and its parts, means over the pairs held out."""
        size = self.settings.batch_pairs
        rows = [self.held_out[at : at + size] for at in range(0, len(self.held_out), size)]
        batches = zip(map(len, rows), map(self.vectors.batch, rows), strict=True)
        loss, parts = self.objective.means((n, (b, self._output(b))) for n, b in batches)
        return {"loss": loss, **parts}

    def export(self, trainer: Trainer[VectorChunk]) -> dict[str, Any]:
        """Write RUN/heads, complete encoders with a head where they can be, and a picture."""
        pairs, encoder, out = self.pairs, self.start, trainer.out
        heads = self.heads.cpu()
        heads.unfold(torch.from_numpy(self.vectors.centre), self.vectors.scale)
        best = trainer.best_validation
        assert best is not None  # heads are not resumed
        metrics = {
            "validation": {**best.figures, "step": best.step}, **trainer.reached,
            "labels": list(pairs.names),
            "parameters": sum(weight.numel() for weight in heads.parameters()),
            "dropped": dict(pairs.dropped),
        }  # fmt: skip
        texts = self.vectors.by_label(self.held_out[:POINTS_MAX])
        if sum(map(len, texts.values())) >= TEXTS_MIN:
            write_picture(texts, heads, out / "vectors.html")
        sets = self.vectors.retrieval_sets(self.held_out)
        metrics["retrieval"] = {
            "encoder": retrieval(sets, lambda own: own),
            **{side: retrieval(sets, applied(heads, side)) for side in SIDES},
        }
        spec, objective = self.settings.teacher, self.settings.objective
        spec = str(Path(spec).resolve()) if Path(spec).is_dir() else spec
        config = HeadConfig(spec, encoder.digest, encoder.width, pairs.names, objective)
        with torch.no_grad(), writing_weights(out / "heads"):
            save_heads(heads, config, out / "heads")
            save_students(heads, encoder, out)
        return metrics
