"""Distillation: a student learns to encode noisy text as its teacher encodes the clean form.

The tokens of an update are shared by all processes, each of which cuts its share into `accumulate`
batches. Each loss is weighted by its share of all their sentences, so 1 process x N batches and
N x 1 give the same gradient.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from noisegen.data.columns import in_brackets
from noisegen.data.pairs import PAIRS_ARE, Pairs, damage
from noisegen.data.pairs import read_pairs as read_given
from noisegen.encoders.encoder import Ragged, Vectors, open_encoder, uses_bf16
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder, prepared
from noisegen.encoders.stored import read_json, write_json
from noisegen.encoders.tokens import Rows, plan
from noisegen.errors import NoisegenError, SourceError, UsageError
from noisegen.evaluation.similarity import cosine_distance
from noisegen.runs.atomic import write_text
from noisegen.runs.manifest import counted
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.resources import cache_folder
from noisegen.training.computation import Computation, Workers
from noisegen.training.losses import Batch, Output
from noisegen.training.noisy_words import Words, add_noisy_words, find_noisy_words, pieces_of
from noisegen.training.objectives import WeightedSum
from noisegen.training.pairs import VALIDATION_EPOCH, NoiseSource
from noisegen.training.settings import GIVEN, DistilSettings, Tell
from noisegen.training.stores import (
    DAMAGED,
    Negatives,
    StoredTexts,
    TeacherVectors,
    encoding_seconds,
    open_hard_texts,
    random_vectors,
    sampled_seconds,
    write_hard_texts,
)
from noisegen.training.students import (
    PairChunk,
    PairMethod,
    interpolate,
    make_student,
    xsim_error,
)
from noisegen.training.trainer import UNLIMITED, Clock, Trainer

_VECTORS_SHARE = 0.25  # of a limit
_WORDS_SHARE = 0.25  # of what vectors leave of it
_GIVEN_MAX = 10_000  # pairs of --validation that are used
_Given = tuple[list[str], list[str], int]  # their sides, and the number of all pairs


@dataclass(frozen=True)
class HeldOut:
    """Token ids of pairs, the teacher's vectors of the clean texts, and numbers of these texts."""

    noisy: Ragged
    clean: Ragged
    teacher: Vectors
    owners: npt.NDArray[np.integer]

    def figures(self, student: SentenceEncoder) -> dict[str, float]:
        """Return the validation figures of a student on these pairs."""
        noisy, clean = (student.encode_ids(side) for side in (self.noisy, self.clean))
        of_clean, of_noisy = (
            float(np.square(self.teacher - side).sum(1).mean()) for side in (clean, noisy)
        )
        return {
            "loss": of_clean + of_noisy, "loss_clean": of_clean, "loss_noisy": of_noisy,
            "drift": cosine_distance(self.teacher, clean),
            "anchored": cosine_distance(self.teacher, noisy),
            "distance": cosine_distance(clean, noisy),
            "xsim_error": xsim_error(noisy, clean, self.owners),
        }  # fmt: skip


class Distillation(PairMethod[PairChunk]):
    """Training of a student on noisy and clean pairs, by a teacher's vectors of the clean text."""

    card = "student.md"
    settings: DistilSettings
    network: SentenceEncoder
    vectors: TeacherVectors
    negatives: Negatives
    held_out: dict[str, HeldOut]  # by what begins the names of their figures
    noisy_words: Words
    given: Pairs | None = None  # other pairs to validate on

    def __init__(self, settings: DistilSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers, self.tell = settings, workers, tell
        teacher, prepare = open_encoder(settings.teacher), settings.prepare
        self.teacher = teacher if prepare in (None, "plain") else prepared(teacher, prepare)
        self.start = self.teacher
        self.network = make_student(settings, self.teacher).to(workers.device)
        if settings.noisy_words:  # refuses other students before the long work
            pieces_of(self.network)
        self.objective = WeightedSum.parse(settings.objective)
        if settings.hard_negatives and not self.objective.needs("negatives"):
            raise UsageError(
                f"hard_negatives are for info_nce: add +0.2*info_nce to {settings.objective}"
            )
        self.noise = NoiseSource(settings.recipe, settings.seed, settings.lang)
        self.words_noise = self.noise
        if also := settings.noisy_words_also:
            added = replace(self.noise, spec=also, setting="noisy_words_also")
            if added.is_stored:
                raise UsageError(
                    f"setting noisy_words_also {also!r}: give recipes; stored noise is read if "
                    "--recipe has it"
                )
            self.words_noise = replace(added, spec=f"{settings.recipe}+{also}")
        self.computation = Computation(settings, self.network, workers.device, workers.world)
        self.is_altered = settings.interpolate < 1
        if settings.validation and not settings.select_by:
            self.selects_by = f"{GIVEN}loss"

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read pairs or clean text, and other pairs to validate on."""
        summary, copy = super().read(sources, folder, resume=resume), folder / "validation.json"
        if self.settings.noisy_words:
            self.words_noise.check(self.pairs)
        batches = self.workers.world * self.settings.accumulate
        if self.rows < batches:
            raise UsageError(
                f"{self.rows:,} pairs to train on are fewer than the {batches:,} batches of an "
                "update: give more data, or a smaller accumulate"
            )
        if not self.settings.validation:
            return summary
        lost = ""
        if self.workers.leads and not (resume and copy.exists()):
            pairs = read_given(self.settings.validation, advice=(PAIRS_ARE, PAIRS_ARE))
            if pairs.damaged:
                raise damage(pairs.damaged)
            some, lost = pairs.sample(_GIVEN_MAX), in_brackets(pairs.dropped)
            write_text(copy, json.dumps([some.noisy, some.clean, len(pairs)]))
        self.workers.wait()
        noisy, clean, count = read_json(copy, _Given, DAMAGED)
        if not 0 < len(noisy) == len(clean):
            raise SourceError(
                f"cannot read {copy}: {len(noisy):,} and {len(clean):,} sides{DAMAGED}"
            )
        self.given = Pairs(noisy, clean)
        of = f"{len(noisy):,} of " if len(noisy) < count else ""
        return f"{summary}; {of}{counted(count, 'other pair')} to validate on{lost}"

    def batched(self, rows: Rows, epoch: int, number: int) -> PairChunk:
        """Return noisy token ids, and clean ones if an objective needs them, in batches."""
        settings = self.settings
        sides = self.tokens(rows, epoch, both_sides=self.objective.needs("clean"))
        lengths = np.stack([side.lengths for side in sides], 1)
        batches = self.workers.world * settings.accumulate
        tokens = settings.tokens_per_batch(self.workers.world)
        steps = plan(lengths, tokens, settings.seed, epoch, number, batches)
        return PairChunk(steps, sides, self.pairs.owner[rows])

    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute the teacher's vectors, and noise the held-out pairs by an epoch of their own.

        At most a quarter of a limit goes into vectors: a teacher encodes about three times as
        fast as a student learns, so that is enough to see each text once.
        """

        def vectors(name: str, what: str) -> TeacherVectors:
            stop = clock.spent + clock.left * _VECTORS_SHARE
            stored = StoredTexts(folder, name, lambda: stop - clock.spent)
            return self._vectors(stored, what, progress)

        settings, hard, hard_rows = self.settings, None, None
        self.vectors = vectors("clean", "teacher's vectors")
        if settings.hard_negatives:
            if self.workers.leads and not (folder / "hard.rows").exists():
                progress(Progress("hard negatives"))
                most, seed, lang = settings.hard_negatives, settings.seed, settings.lang
                write_hard_texts(folder, self.pairs.clean, most, seed, lang)
            self.workers.wait()
            texts, hard_rows = open_hard_texts(folder, len(self.pairs.clean))
            hard = vectors("hard", "vectors of hard negatives") if len(texts) else None
        self.negatives = Negatives(self.vectors, settings.negatives, settings.seed, hard, hard_rows)
        self.hold_out(self.held_rows)
        for start, held_out in self.held_out.items():
            if np.array_equal(held_out.noisy.values, held_out.clean.values):
                kind, count = "validation" if start else "held-out", len(held_out.owners)
                self.tell(
                    f"the student reads the same on both sides of all {kind} pairs ({count:,}): "
                    "they say nothing about noise"
                )
        if settings.noisy_words:
            self.before = self.validate()
            self._find_noisy_words(folder, progress, clock)
            tokens, replaced = add_noisy_words(self.network, self.noisy_words)
            self.tell(
                f"{tokens:,} noisy words are tokens of the student, which start as their words; "
                f"the tokenizer replaces {replaced:,} more by contractions and phrases"
            )
            self.hold_out(self.held_rows, self.held_out)
        self._leave_out_unknown()

    def _find_noisy_words(self, folder: Path, progress: Show, clock: Clock) -> None:
        """Find them in the first process, unless a resumed run has them; read them in all.

        At most a quarter of what a limit leaves goes into them.
        """
        path, rows = folder / "words.json", self._noisy_rows
        end = clock.spent + clock.left * _WORDS_SHARE

        def stop(read: int) -> bool:
            progress(Progress("noisy words", read, rows, "rows"))
            if clock.spent < end:
                return False
            self.tell(f"{self._limit} leaves time for noisy words in {read:,} of {rows:,} rows")
            return True

        if self.workers.leads and not path.exists():
            words = find_noisy_words(self.network, self.pairs, self.words_noise, rows, stop)
            write_json(path, words)
        self.workers.wait()
        self.noisy_words = read_json(path, Words, DAMAGED)

    def stand_in(self) -> float:
        """Take random vectors in place of the teacher's, and no noisy words."""
        settings, texts = self.settings, self.pairs.clean
        with self._teaching():
            seconds = encoding_seconds(self.teacher, texts) * (1 + settings.hard_negatives)
        self.vectors = random_vectors(len(texts), self.teacher.width)
        self.negatives = Negatives(self.vectors, settings.negatives, settings.seed)
        seconds = min(seconds, (settings.limit or inf) * _VECTORS_SHARE)
        if settings.noisy_words:
            find = partial(find_noisy_words, self.network, self.pairs, self.words_noise)
            most = ((settings.limit or inf) - seconds) * _WORDS_SHARE
            seconds += min(sampled_seconds(find, self._noisy_rows), most)
        return seconds

    def hold_out(self, rows: Rows, known: Mapping[str, HeldOut] | None = None) -> None:
        """Tokenise pairs in an epoch of their own, and given ones; `known` has their vectors."""
        owners = self.pairs.owner[rows]
        noisy, clean = self.tokens(rows, VALIDATION_EPOCH, both_sides=True)
        if known:
            vectors = known[""].teacher
        elif len(self.vectors) == len(self.pairs.clean):
            vectors = self.vectors.take(owners)
        else:
            vectors = self.teacher.encode(self.pairs.clean.take(owners).to_pylist())
        self.held_out = {"": HeldOut(noisy, clean, vectors, owners)}
        if self.given is None:
            return
        share = len(rows) / len(self.held_rows)
        given = self.given.sample(max(1, round(share * len(self.given))))
        texts, numbers = np.unique(given.clean, return_inverse=True)
        noisy, clean = map(self.network.tokenizer.tokenize, (given.noisy, given.clean))
        with self._teaching():
            vectors = (
                known[GIVEN].teacher if known else self.teacher.encode(texts.tolist())[numbers]
            )
        self.held_out[GIVEN] = HeldOut(noisy, clean, vectors, numbers)

    def _leave_out_unknown(self) -> None:
        """Restrict training to the pairs whose clean text has a teacher's vector."""
        pairs, texts = self.pairs, len(self.pairs.clean)
        if len(self.vectors) == texts:
            return
        known = pairs.training[np.isin(pairs.owner[pairs.training], self.vectors.rows)]
        self.pairs, self.rows = replace(pairs, training=known), len(known)
        self.tell(
            f"{self._limit} leaves time for the teacher's vectors of {len(self.vectors):,} of "
            f"{texts:,} clean texts: {len(known):,} pairs to train on"
        )

    @property
    def _noisy_rows(self) -> int:
        """The rows that are read for noisy words: stored noise is read once."""
        most = inf if self.words_noise.is_drawn else len(self.pairs.training)
        return int(min(self.settings.noisy_words, most))

    @property
    def _limit(self) -> str:
        return f"the {'CPU' if self.settings.cpu_limit else 'time'} limit"

    def _vectors(self, stored: StoredTexts, what: str, progress: Show) -> TeacherVectors:
        """Return the teacher's vectors."""
        leads = self.workers.leads
        show = progress if leads else silent
        for is_turn in (leads, not leads):
            if is_turn:  # the others then find them in the cache
                with self._teaching() as is_half:
                    cache = cache_folder() / ("vectors-bf16" if is_half else "vectors")
                    vectors = stored.vectors(self.teacher, cache, what, show)
            self.workers.wait()
        return vectors

    @contextmanager
    def _teaching(self) -> Iterator[bool]:
        """Let the teacher compute on the device, a network in the student's precision.

        Yield whether that is bf16, in which MiniLM's vectors are off by 1 - cos = 1e-5, a
        thousandth of what light noise does to them.
        """
        device, is_half = self.workers.device, False
        if isinstance(self.teacher, SentenceEncoder):
            self.teacher.to(device)
            is_half = uses_bf16(self.settings.precision, device)
        with torch.autocast(device.type, torch.bfloat16, enabled=is_half):
            yield is_half

    def backward(self, trainer: Trainer[PairChunk], chunk: PairChunk, batches: list[Rows]) -> int:
        """Accumulate the gradients of this process's batches."""
        settings, updates = self.settings, trainer.progress.updates
        device = self.workers.device
        total = sum(len(batch) for batch in batches)
        each = len(batches) // self.workers.world
        first = self.workers.rank * each
        if settings.dropout or settings.activation_dropout:
            torch.manual_seed(settings.seed * 1_000_003 + updates * 1_009 + first)
        for number in range(first, first + each):
            rows = batches[number]
            with self.computation.precision():
                vectors = [
                    self.computation.vectors(side.take(rows), trainer.window)
                    for side in chunk.sides
                ]
            owners, negatives = chunk.owner[rows], None
            if self.objective.needs("negatives"):
                others = self.negatives.take(owners, updates, number)
                negatives = torch.from_numpy(others).to(device)
            teacher = torch.from_numpy(self.vectors.take(owners)).to(device)
            batch = Batch(teacher, negatives, settings.temperature)
            loss, parts = self.objective(batch, Output(*vectors))
            share = len(rows) / total
            (loss * share).backward()  # type: ignore[no-untyped-call]
            trainer.count(loss, parts, share)
        return total

    def validate(self) -> dict[str, float]:
        """Return the two-term loss of RoLASER, clean drift, distances and xSIM error.

        `loss`: MSE(T[clean], S[clean]) + MSE(T[clean], S[noisy]), means over all entries, times the
        width (RoLASER, section 5.1; the factor keeps figures readable). `drift`, `anchored`,
        `distance`: mean 1 - cosine of S[clean] and T[clean], S[noisy] and T[clean], S[noisy] and
        S[clean]. `xsim_error`: the percentage of noisy sides for which xSIM finds another clean
        side than their own. The same figures on the pairs of `validation` begin with `given_`.
        """
        return {
            start + name: value
            for start, pairs in self.held_out.items()
            for name, value in pairs.figures(self.network).items()
        }

    def check(self, trainer: Trainer[PairChunk], figures: Mapping[str, float]) -> None:
        """Raise NoisegenError if the drift is above the limit."""
        drift, limit = figures["drift"], self.settings.max_drift
        if limit is not None and drift > limit:
            raise NoisegenError(
                f"clean drift {drift:.3f} is above max_drift {limit} at step "
                f"{trainer.progress.updates}; the best weights are in "
                f"{trainer.folder / 'best.safetensors'}"
            )

    def export(self, trainer: Trainer[PairChunk]) -> dict[str, Any]:
        """Write RUN/student, interpolated with its start if the settings say so."""
        if self.is_altered:
            start = make_student(self.settings, self.teacher)
            if self.settings.noisy_words:
                add_noisy_words(start, self.noisy_words)
            interpolate(self.network, start, self.settings.interpolate)
        return super().export(trainer)

    def save(self, folder: Path) -> None:
        """Write the student for SentenceTransformer and `open_encoder`."""
        save_folder(self.network.cpu(), folder)
