"""A chunk of an epoch: its rows noised, as token ids, and put into batches."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.encoders.encoder import Ragged, Tokenizer
from noisegen.encoders.tokens import Rows, chunks_of, plan
from noisegen.noise.engine import engine_for
from noisegen.noise.plan import Streams
from noisegen.noise.recipe import Recipe
from noisegen.noise.rng import DECISION_BITS
from noisegen.text.spans import PROTECTED, protect_kinds
from noisegen.training.pairs import PairData

PIECE_ROWS = 4_096  # rows noised and tokenised at a time
C = TypeVar("C")


@dataclass(frozen=True)
class Position:
    """The position of a run: step `step` of this chunk of this epoch comes next."""

    epoch: int = 0
    chunk: int = 0
    step: int = 0


@dataclass(frozen=True)
class Chunk:
    """Row i has token ids `noisy[i]` and `clean[i]` and the teacher's vector of text `owner[i]`."""

    noisy: Ragged
    clean: Ragged
    owner: npt.NDArray[np.int32]
    steps: list[list[Rows]]


STORED = "stored"
VALIDATION_EPOCH = 2**20  # no epoch of training has its noise


@dataclass(frozen=True)
class NoiseSource:
    """The source of the noisy side: `stored` in DATA, or a recipe that noises anew every epoch.

    RECIPE noises the clean side, `stored:RECIPE` the stored noisy side in its own language. Of
    several, joined by +, every row draws one anew in every epoch. Raises UsageError for others.
    """

    spec: str = STORED
    seed: int = 0
    lang: str = "en"

    def __post_init__(self) -> None:
        for _, recipe in map(_side, self.parts):
            if recipe:  # a wrong name shows before anything is read
                Recipe.named(recipe)

    @property
    def parts(self) -> list[str]:
        """The sources that `+` joins."""
        return [name.strip() for name in self.spec.split("+")]

    @property
    def is_stored(self) -> bool:
        """Whether the noisy side of DATA is read."""
        return any(stored for stored, _ in map(_side, self.parts))

    def noisy(self, data: PairData, rows: Rows, epoch: int) -> list[str]:
        """Return the noisy texts of these pairs."""
        names, out = self.parts, np.empty(len(rows), object)
        dice = Streams(rows.astype(np.uint64), self.seed, epoch)
        drawn = dice.decide("source of noise", np.arange(len(rows))) * len(names) >> DECISION_BITS
        for number, (is_stored, recipe) in enumerate(map(_side, names)):
            chosen = np.flatnonzero(drawn == number)
            some = rows[chosen]
            if is_stored:
                texts, langs = data.noisy.take(some), data.lang[some]
            else:
                texts, langs = data.clean.take(data.owner[some]), None
            if not recipe:
                out[chosen] = texts.to_pylist()
            elif langs is None:
                out[chosen] = self._noised(recipe, self.lang, texts, some, epoch)
            else:
                for lang in np.unique(langs).tolist():
                    here = np.flatnonzero(langs == lang)
                    spoken = texts.take(pa.array(here))
                    out[chosen[here]] = self._noised(
                        recipe, data.langs[lang], spoken, some[here], epoch
                    )
        return list(out)

    def _noised(self, recipe: str, lang: str, texts: pa.Array, rows: Rows, epoch: int) -> list[str]:
        dice = Streams(rows.astype(np.uint64), self.seed, epoch)
        engine = engine_for(recipe, lang, "auto")
        noised = engine.noise(texts.cast(pa.string()), dice, protect_kinds(PROTECTED))
        return list(noised.noisy.to_pylist())


def _side(name: str) -> tuple[bool, str]:
    """Split `stored`, `stored:RECIPE` or RECIPE into whether the noisy side is read, and RECIPE."""
    begin, _, recipe = name.partition(":")
    return (True, recipe) if begin == STORED else (False, name)


@dataclass(frozen=True)
class Chunks:
    """The chunks of all epochs, each made while the one before is trained on.

    A batch has at most `budget` tokens, a step `world` batches; `both_sides`: of clean ids too.
    """

    data: PairData
    noise: NoiseSource
    tokenizer: Tokenizer
    budget: int
    seed: int
    world: int = 1
    both_sides: bool = False

    def make(self, epoch: int, number: int) -> Chunk | None:
        """Return a chunk; None where the epoch has no more."""
        chunks = chunks_of(self.data.training, self.seed, epoch)
        if number >= len(chunks):
            return None
        noisy, clean, owner = self.tokens(chunks[number], epoch)
        sides = [noisy.lengths, clean.lengths] if self.both_sides else [noisy.lengths]
        steps = plan(np.stack(sides, 1), self.budget, self.seed, epoch, number, self.world)
        return Chunk(noisy, clean, owner, steps)

    def first(self) -> Chunk:
        """Return the first chunk, by which a run is estimated."""
        chunk = self.make(0, 0)
        assert chunk is not None  # there are pairs to train on
        return chunk

    def tokens(
        self, rows: Rows, epoch: int, *, both_sides: bool = False
    ) -> tuple[Ragged, Ragged, npt.NDArray[np.int32]]:
        """Return the ids of both sides of these pairs, and the number of each clean text.

        There are no clean ids unless they are asked for, here or by an objective.
        """
        data, noisy, clean = self.data, [], []
        for first in range(0, len(rows), PIECE_ROWS):
            piece = rows[first : first + PIECE_ROWS]
            noisy.append(self.tokenizer.tokenize(self.noise.noisy(data, piece, epoch)))
            if both_sides or self.both_sides:
                texts = data.clean.take(data.owner[piece]).to_pylist()
                clean.append(self.tokenizer.tokenize(texts))
        return Ragged.joined(noisy), Ragged.joined(clean), data.owner[rows]

    def from_position(self, start: Position) -> Iterator[tuple[Position, Chunk]]:
        """Yield chunks without end, with where they are; the next one is made meanwhile."""
        return made_ahead(self.make, start)


def made_ahead(
    make: Callable[[int, int], C | None], start: Position
) -> Iterator[tuple[Position, C]]:
    """Yield what `make(epoch, number)` makes, without end; the next one is made meanwhile.

    Where an epoch has no more, `make` returns None.
    """

    def following(at: Position) -> tuple[Position, C]:
        chunk = make(at.epoch, at.chunk)
        if chunk is None:
            at = Position(at.epoch + 1)
            chunk = make(at.epoch, 0)
        assert chunk is not None
        return at, chunk

    with ThreadPoolExecutor(1) as ahead:
        at = start
        coming = ahead.submit(following, at)
        while True:
            at, chunk = coming.result()
            coming = ahead.submit(following, Position(at.epoch, at.chunk + 1))
            yield at, chunk
