"""Distillation: a student learns to encode noisy text as its teacher encodes the clean text.

The tokens of an update are divided among all processes, and each process cuts its tokens into
`accumulate` batches. The loss of a batch is weighted by its share of the update's sentences, so one
process with N batches gives the same gradient as N processes with one batch each.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch

from noisegen.encoders.encoder import open_encoder, precision_name
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder, encoding_on, prepared
from noisegen.encoders.static import static_form
from noisegen.encoders.stored import read_json, write_json
from noisegen.encoders.tokens import Packed, Padded, Rows, plan, sizes, upload
from noisegen.errors import NoisegenError, UsageError
from noisegen.evaluation.similarity import cosine_distances
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.resources import cache_folder
from noisegen.training.clock import UNLIMITED, Clock
from noisegen.training.computation import Computation, Workers
from noisegen.training.held_out import HeldOut, ValidationPairs, read_validation
from noisegen.training.losses import Batch, Output
from noisegen.training.model_card import ImprovedPair
from noisegen.training.noisy_words import Words, add_noisy_words, find_noisy_words, pieces_of
from noisegen.training.objectives import WeightedSum
from noisegen.training.pair_method import PairChunk, PairMethod
from noisegen.training.pairs import VALIDATION_EPOCH, NoiseSource
from noisegen.training.settings import GIVEN, LAST, DistilSettings, Tell
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
    STATIC,
    interpolate,
    make_student,
    not_kept,
    refuse_for_static,
)
from noisegen.training.trainer import Trainer

_VECTORS_SHARE = 0.25  # maximum share of the time left, for the teacher's vectors
_WORDS_SHARE = 0.25  # maximum share of the time then left, for noisy words
# Characters of both sides of the pair in the model card, and held-out pairs it is chosen from
SHOWN_MAX, SHOWN_AMONG = 160, 200


@dataclass(frozen=True)
class LoadedBatch:
    """A batch on the device: token ids of each side, and the teacher's vectors."""

    sides: list[Padded | Packed]
    target: Batch


class Distillation(PairMethod[PairChunk]):
    """Trains a student to encode noisy text as the teacher encodes its clean text.

    `held_out` maps "" to the held-out pairs of DATA, and "given_" to the pairs of --validation.
    These keys are prefixes of the names of validation figures: "loss" and "given_loss".
    """

    card, task = "student.md", "sentence-similarity"
    settings: DistilSettings
    network: SentenceEncoder
    untaught: SentenceEncoder | None  # encoder that a static student starts as a copy of
    vectors: TeacherVectors
    negatives: Negatives
    held_out: dict[str, HeldOut]
    noisy_words: Words
    given: ValidationPairs | None = None

    def __init__(self, settings: DistilSettings, workers: Workers, tell: Tell) -> None:
        self.settings, self.workers, self.tell = settings, workers, tell
        self.teacher = open_encoder(settings.teacher)
        if settings.prepare not in (None, "plain"):
            self.teacher = prepared(self.teacher, settings.prepare)
        self.start, self.untaught = self.teacher, None
        if settings.student == STATIC:
            refuse_for_static(settings)
            self.teacher, self.untaught = static_form(self.teacher, tell=tell)
        self.network = self.new_student().to(workers.device)
        if settings.noisy_words:  # raises UsageError before slow work
            pieces_of(self.network)
        self.objective = WeightedSum.parse(settings.objective)
        if settings.hard_negatives and not self.objective.needs("negatives"):
            raise UsageError(
                f"hard_negatives are for info_nce: add +0.2*info_nce to {settings.objective}"
            )
        self.noise = NoiseSource(settings.recipe, settings.seed, settings.lang)
        self.words_noise = _noise_for_words(self.noise, settings.noisy_words_also)
        self.computation = Computation(settings, self.network, workers.device, workers.world)
        self.changes_best_weights = settings.interpolate < 1
        if settings.select_by == LAST:
            self.selects_by = LAST
        elif settings.validation and not settings.select_by:
            self.selects_by = f"{GIVEN}loss"

    def read(self, sources: Sequence[str], folder: Path, *, resume: bool = False) -> str:
        """Read the pairs or clean text of DATA, and the pairs of --validation; return a summary."""
        settings = self.settings
        summary = super().read(sources, folder, resume=resume)
        if settings.noisy_words:
            self.words_noise.check(self.pairs)
        batches = self.workers.world * settings.accumulate
        if self.rows < batches:
            raise UsageError(
                f"{self.rows:,} pairs to train on are fewer than the {batches:,} batches of an "
                "update: give more data, or a smaller accumulate"
            )
        if settings.batch_pairs is not None and settings.batch_pairs < batches:
            raise UsageError(
                f"batch_pairs {settings.batch_pairs} is less than the {batches:,} batches of an "
                "update: give more pairs, or a smaller accumulate"
            )
        if settings.validation:
            path = folder / "validation.json"
            self.given = read_validation(settings.validation, path, self.workers, resume=resume)
            summary = f"{summary}; {self.given.summary}"
        return summary

    def batched(self, rows: Rows, epoch: int, number: int) -> PairChunk:
        """Return the pairs with the indices `rows` as a chunk of token ids, in batches.

        It has the ids of the noisy sides, and of the clean sides if the objective needs them.
        """
        settings = self.settings
        sides = self.tokens(rows, epoch, both_sides=self.objective.needs("clean"))
        tokenizer, unit = self.network.tokenizer, settings.batch_unit
        lengths = np.stack([sizes(side, tokenizer, unit) for side in sides], 1)
        batches = self.workers.world * settings.accumulate
        tokens = settings.tokens_per_batch(self.workers.world)
        planned = partial(
            plan, budget=tokens, seed=settings.seed, epoch=epoch, chunk=number, world=batches
        )
        if settings.batch_pairs is None:
            steps = planned(lengths)
        else:  # the chunk is shuffled, so each update has the next pairs
            ends = range(settings.batch_pairs, len(rows) - batches + 1, settings.batch_pairs)
            steps = [
                [part[batch] for step in planned(lengths[part]) for batch in step]
                for part in np.split(np.arange(len(rows)), ends)
            ]
        return PairChunk(steps, sides, self.pairs.owner[rows])

    def prepare(self, folder: Path, progress: Show, clock: Clock = UNLIMITED) -> None:
        """Compute the teacher's vectors, make held-out pairs, and teach the student noisy words.

        Noisy words come from training pairs. Single words, such as "ppl", become tokens of the
        student; its tokenizer replaces contractions and phrases, such as "dont" by "don't".
        """
        self.vectors = self._teacher_vectors(folder, "clean", "teacher's vectors", progress, clock)
        self.negatives = self._find_negatives(folder, progress, clock)
        self.hold_out(self.held_rows)
        self._report_pairs_read_alike()
        if self.settings.noisy_words:
            self.before = self.validate()
            self.noisy_words = self._find_noisy_words(folder, progress, clock)
            tokens, replaced = add_noisy_words(self.network, self.noisy_words)
            self.tell(
                f"{tokens:,} noisy words are tokens of the student, which start as their words; "
                f"the tokenizer replaces {replaced:,} more by contractions and phrases"
            )
            for held_out in self.held_out.values():
                held_out.tokenize(self.network.tokenizer)
        self._leave_out_unknown()

    def _teacher_vectors(
        self, folder: Path, name: str, what: str, progress: Show, clock: Clock
    ) -> TeacherVectors:
        """Return the teacher's vectors of the texts in the store `name` of the folder.

        The processes of the run share the work. A run with a limit stops computing after a quarter
        of the time left. A teacher encodes about three times as fast as a student learns, so the
        rest of the time is enough to train on each of these texts once. `what` names the vectors in
        progress events.
        """
        stop = clock.spent + clock.left * _VECTORS_SHARE
        stored = StoredTexts(folder, name, lambda: stop - clock.spent)
        with self._teaching(self.tell) as half:
            cache = cache_folder() / (f"vectors-{precision_name(half)}" if half else "vectors")
            return stored.vectors(self.teacher, cache, what, progress, self.workers)

    def _teaching(self, tell: Tell = silent) -> AbstractContextManager[torch.dtype | None]:
        """Return a context in which the teacher computes on the run's device (`encoding_on`).

        A teacher that is a SentenceEncoder computes in 16 bits if the student does. In bf16,
        MiniLM's vectors are off by 1 - cosine = 1e-5: a thousandth of the change that light noise
        makes.
        """
        return encoding_on(self.workers.device, self.teacher, self.settings.precision, tell)

    def _find_negatives(self, folder: Path, progress: Show, clock: Clock) -> Negatives:
        """Return the negatives of training: the teacher's vectors of random and altered texts.

        If the settings ask for hard negatives, the first process makes their texts, unless a
        resumed run has them already.
        """
        settings = self.settings
        negatives = Negatives(self.vectors, settings.negatives, settings.seed)
        if not settings.hard_negatives:
            return negatives
        if self.workers.leads and not (folder / "hard.rows").exists():
            progress(Progress("hard negatives"))
            most, seed, lang = settings.hard_negatives, settings.seed, settings.lang
            write_hard_texts(folder, self.pairs.clean, most, seed, lang)
        self.workers.wait()
        texts, rows = open_hard_texts(folder, len(self.pairs.clean))
        if not len(texts):
            return negatives
        hard = self._teacher_vectors(folder, "hard", "vectors of hard negatives", progress, clock)
        return replace(negatives, hard=hard, hard_rows=rows)

    def _report_pairs_read_alike(self) -> None:
        for prefix, held_out in self.held_out.items():
            if held_out.reads_alike:
                kind = "validation" if prefix else "held-out"
                self.tell(
                    f"the student reads the same on both sides of all {kind} pairs "
                    f"({len(held_out.owners):,}): they say nothing about noise"
                )

    def _find_noisy_words(self, folder: Path, progress: Show, clock: Clock) -> Words:
        """Return noisy words, each with the clean words that it stood for and their counts.

        The first process finds them and writes words.json, unless a resumed run has this file. In
        a run with a limit this takes at most a quarter of the time left.
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
            most = self.settings.misspellings
            found = find_noisy_words(self.network, self.pairs, self.words_noise, rows, stop, most)
            write_json(path, found)
        self.workers.wait()
        words: Words = read_json(path, Words, DAMAGED)
        return words

    def use_stand_ins(self) -> float:
        """Use random vectors in place of the teacher's vectors, and no noisy words, in a dry run.

        Return the estimated seconds that a run takes for the teacher's vectors and noisy words.
        """
        settings, texts = self.settings, self.pairs.clean
        limit = settings.limit or inf
        with self._teaching():
            seconds = encoding_seconds(self.teacher, texts) * (1 + settings.hard_negatives)
        self.vectors = random_vectors(len(texts), self.teacher.width)
        self.negatives = Negatives(self.vectors, settings.negatives, settings.seed)
        seconds = min(seconds, limit * _VECTORS_SHARE)
        if settings.noisy_words:
            find = partial(find_noisy_words, self.network, self.pairs, self.words_noise)
            most = (limit - seconds) * _WORDS_SHARE
            seconds += min(sampled_seconds(find, self._noisy_rows), most)
        return seconds

    def hold_out(self, rows: Rows) -> None:
        """Make the held-out pairs for `validate`: pairs `rows` of DATA, and pairs of --validation.

        Pairs of DATA get the noise of an epoch that training never reaches. If `rows` are only some
        of `held_rows` (dry run), the same share of the pairs of --validation is used. All pairs get
        token ids, and the teacher's vectors of their clean sides.
        """
        self.held_out = {"": self._held_out_of_data(rows)}
        if self.given is not None:
            share = len(rows) / len(self.held_rows)
            self.held_out[GIVEN] = self._held_out_of_validation(self.given, share)
        for held_out in self.held_out.values():
            held_out.tokenize(self.network.tokenizer)

    def _held_out_of_data(self, rows: Rows) -> HeldOut:
        owners = self.pairs.owner[rows]
        noisy = self.noise.noisy(self.pairs, rows, VALIDATION_EPOCH)
        clean = self.pairs.clean.take(owners).to_pylist()
        if len(self.vectors) == len(self.pairs.clean):
            vectors = self.vectors.take(owners)
        else:
            with self._teaching():
                vectors = self.teacher.encode(clean)
        return HeldOut(noisy, clean, vectors, owners)

    def _held_out_of_validation(self, given: ValidationPairs, share: float) -> HeldOut:
        pairs = given.pairs
        pairs = pairs.sample(max(1, round(share * len(pairs))))
        texts, numbers = np.unique(pairs.clean, return_inverse=True)
        with self._teaching():
            vectors = self.teacher.encode(texts.tolist())[numbers]
        return HeldOut(pairs.noisy, pairs.clean, vectors, numbers)

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
        """Number of rows to search for noisy words: at most one per pair if no recipe is used."""
        most = inf if self.words_noise.is_drawn else len(self.pairs.training)
        return int(min(self.settings.noisy_words, most))

    @property
    def _limit(self) -> str:
        return f"the {'CPU' if self.settings.cpu_limit else 'time'} limit"

    def load(self, chunk: PairChunk, batches: list[Rows], update: int) -> list[LoadedBatch]:
        """Return this process's batches of an update, on the device."""
        own_batches = len(batches) // self.workers.world
        first = self.workers.rank * own_batches
        return [
            self._loaded(chunk, batches[number], update, number)
            for number in range(first, first + own_batches)
        ]

    def _loaded(self, chunk: PairChunk, rows: Rows, update: int, number: int) -> LoadedBatch:
        """Return a batch of an update on the device.

        `rows` has the indices of the batch's rows in the chunk. `number` is the index of the batch
        in the update; it seeds the choice of random negatives.
        """
        device, owners, negatives = self.workers.device, chunk.owner[rows], None
        if self.objective.needs("negatives"):
            negatives = upload(self.negatives.take(owners, update, number), device)
        teacher = upload(self.vectors.take(owners), device)
        sides = [self.computation.batch(side.take(rows)) for side in chunk.sides]
        return LoadedBatch(sides, Batch(teacher, negatives, self.settings.temperature))

    def backward(
        self,
        trainer: Trainer[PairChunk],
        chunk: PairChunk,
        batches: list[Rows],
        loaded: list[LoadedBatch],
    ) -> int:
        """Compute the gradient of an update over all processes; return its number of pairs.

        Only the backward pass of a process's last batch sums gradients over the processes.
        """
        settings, updates = self.settings, trainer.progress.updates
        world, total = self.workers.world, sum(len(batch) for batch in batches)
        if settings.dropout or settings.activation_dropout:
            first = self.workers.rank * len(loaded)
            torch.manual_seed(settings.seed * 1_000_003 + updates * 1_009 + first)
        for batch in loaded:
            share = batch.sides[0].rows / total
            with nullcontext() if batch is loaded[-1] else self.computation.alone():
                with self.computation.precision():
                    sides = [self.computation.vectors(side, trainer.window) for side in batch.sides]
                loss, parts = self.objective(batch.target, Output(*sides))
                # The gradients are averaged over the processes, but their sum is needed.
                scaled = self.computation.scaled(loss * share * world)
                scaled.backward()  # type: ignore[no-untyped-call]
            trainer.count(loss, parts, share)
        return total

    def validate(self) -> dict[str, float]:
        """Return validation figures by name.

        S are the student's vectors, T the teacher's. `loss`: MSE(T[clean], S[clean]) +
        MSE(T[clean], S[noisy]), times the width for readable figures (RoLASER, section 5.1).
        `drift`: mean 1 - cosine of S[clean] and T[clean]; `anchored`: of S[noisy] and T[clean];
        `distance`: of S[noisy] and S[clean]. `xsim_error`: the percentage of noisy sides for which
        xSIM finds another clean side than their own. Figures on the pairs of --validation have the
        prefix `given_`.
        """
        figures = {}
        for prefix, held_out in self.held_out.items():
            for name, value in held_out.figures(self.network).items():
                figures[prefix + name] = value
        return figures

    def check(self, trainer: Trainer[PairChunk], figures: Mapping[str, float]) -> None:
        """Raise NoisegenError if the figure `drift` is above the setting `max_drift`."""
        drift, limit = figures["drift"], self.settings.max_drift
        if limit is not None and drift > limit:
            raise NoisegenError(
                f"clean drift {drift:.3f} is above max_drift {limit} at step "
                f"{trainer.progress.updates}; the best weights are in "
                f"{trainer.folder / 'best.safetensors'}"
            )

    def export(self, trainer: Trainer[PairChunk]) -> dict[str, Any]:
        """Write RUN/student; return the content of metrics.json.

        `not_kept` has the teacher's settings for sentence-transformers that the student lacks. If
        the setting `interpolate` is below 1, the student's weights are first mixed with the weights
        that it had before training.
        """
        if self.changes_best_weights:
            interpolate(self.network, self._untrained(), self.settings.interpolate)
        return {**super().export(trainer), "not_kept": not_kept(self.network, self.teacher)}

    def improved_pair(self) -> ImprovedPair | None:
        """Return the short held-out pair that training improved most; None if it improved none.

        Its noisy side is compared with the teacher's vector of its clean side.
        """
        held_out = self.held_out[""]
        pairs = list(zip(held_out.noisy, held_out.clean, strict=True))
        short = [len(noisy + clean) <= SHOWN_MAX and noisy != clean for noisy, clean in pairs]
        rows = np.flatnonzero(short)[:SHOWN_AMONG]
        if not len(rows):
            return None
        noisy, clean = zip(*(pairs[row] for row in rows), strict=True)
        before, after = (
            cosine_distances(student.encode(noisy), held_out.teacher[rows])
            for student in (self._untrained(), self.network)
        )
        if not (after < before).any():
            return None
        best = int(np.argmax(before - after))
        return ImprovedPair(noisy[best], clean[best], float(before[best]), float(after[best]))

    def new_student(self) -> SentenceEncoder:
        """Return the student as it is before it knows noisy words; raises UsageError."""
        return make_student(self.settings, self.teacher, self.untaught)

    def _untrained(self) -> SentenceEncoder:
        """Return the student as it is before its first update."""
        student = self.new_student()
        if self.settings.noisy_words:
            add_noisy_words(student, self.noisy_words)
        return student

    def save(self, folder: Path) -> None:
        """Write the student into a folder that SentenceTransformer and `open_encoder` open.

        With misspellings, whose embeddings double its size, weights are in half precision.
        """
        half = self.settings.noisy_words > 0 and self.settings.misspellings > 0
        save_folder(self.network.cpu(), folder, half=half)


def _noise_for_words(noise: NoiseSource, also: str | None) -> NoiseSource:
    """Return the source of noise for the search for noisy words, such as `ppl`.

    It mixes `noise`, the source for training, with the recipes in `also`, the value of the setting
    `noisy_words_also`. Raises UsageError if `also` has "stored", the noisy side of DATA.
    """
    if not also:
        return noise
    added = replace(noise, spec=also, setting="noisy_words_also")
    if added.is_stored:
        raise UsageError(
            f"setting noisy_words_also {also!r}: give recipes; stored noise is read if "
            "--recipe has it"
        )
    return replace(added, spec=f"{noise.spec}+{also}")
