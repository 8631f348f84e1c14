"""DATA of `noisegen train`: pairs of noisy and clean text, copied to disk once per run.

RUN/data has each distinct clean text once, the noisy side of each pair, its language, and the
number of its clean text. Pairs with an empty side are dropped, texts of over TEXT_MAX characters
are cut, and both are counted; some clean texts are held out. In bitext the side in the teacher's
language is the clean one, its translation the noisy one. Recipes may redraw the noisy side in each
epoch.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.bitext import TEXT_MAX, find_bitext, stream_bitext
from noisegen.data.columns import TextColumns, by_reason, in_brackets, stream_columns
from noisegen.data.pairs import PAIRS_ARE, damage, shards_of, stream_pairs
from noisegen.data.sources import named_source
from noisegen.encoders.tokens import Rows
from noisegen.errors import RecipeError, SourceError, UsageError
from noisegen.noising.noise import engine_for
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import DECISION_BITS, mix, name_number
from noisegen.runs.atomic import atomic, write_text
from noisegen.text.languages import normalize_language
from noisegen.text.spans import PROTECTED, protect_kinds
from noisegen.training.computation import Workers
from noisegen.training.stores import TextStore, writing_distinct, writing_texts

PIECE_ROWS = 4_096  # rows noised and tokenised at a time
VALIDATION_EPOCH = 2**20  # no epoch of training has its noise
_CLEAN = (("clean",), ("text",))  # columns that hold clean text
_ADVICE = f"{PAIRS_ARE}; clean text alone needs a recipe, such as --recipe ugc"
_STORED = "stored"
_TEXTS = 65_536  # hashed at a time


@dataclass(frozen=True)
class PairData:
    """Noisy text `noisy[i]` belongs to clean text `clean[owner[i]]`.

    It is of language `langs[lang[i]]`. `training` and `validation` are pair numbers; no clean text
    has pairs in both. `cut` counts pairs with a side that was too long.
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
    clean_only: bool = False  # both sides are the same text, of that language

    @property
    def summary(self) -> str:
        """Return the numbers of pairs, and of those that were dropped or cut."""
        parts = [f"{len(self.training):,} pairs to train on, {len(self.validation):,} held out"]
        return "; ".join([*parts, *lost(self.dropped, self.cut)])


def lost(dropped: Mapping[str, int], cut: int = 0) -> list[str]:
    """Return in words how many pairs were dropped and cut; an empty list if none were."""
    parts = [f"dropped {by_reason(dropped)}"] if dropped else []
    return parts + ([f"{cut:,} cut to {TEXT_MAX:,} characters"] if cut else [])


@dataclass(frozen=True)
class Reading:
    """Options of reading DATA; with `clean_only` it is clean text, which also is the noisy side.

    `lang` is the language of clean text, but for sources that are given as LANG=SOURCE. `most` is
    the maximum of rows per language pair of each bitext. About `held_out` pairs, at most a `share`
    of all, are held out, chosen by the seed.
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
        bitext = {source: find_bitext(source) for source in sources}
        others = [self._with_language(source) for source in sources if not bitext[source]]
        if self.clean_only:
            for source, lang in others:
                read = TextColumns({}, dropped)
                for (text,) in stream_columns(shards_of(source), _CLEAN, "training", read):
                    yield text, text, lang
                if read.damaged:
                    raise damage(read.damaged)
        else:
            for noisy, clean in stream_pairs([source for source, _ in others], dropped, _ADVICE):
                yield noisy, clean, self.lang
        files = [file for files in bitext.values() for file in files]
        for file in files:
            if self.lang not in file.langs and not file.is_mixed:
                raise SourceError(
                    f"{file.paths[0]} is in {' and '.join(file.langs)}; one side must be in the "
                    f"teacher's language, {self.lang} (another: --set lang=...)"
                )
        for pair in stream_bitext(files, dropped, self.most):
            if pair.source_lang == self.lang:
                noisy, clean, lang = pair.target, pair.source, pair.target_lang
            elif pair.target_lang == self.lang:
                noisy, clean, lang = pair.source, pair.target, pair.source_lang
            else:
                dropped[f"no_{self.lang}"] += 1
                continue
            yield (clean, clean, self.lang) if self.clean_only else (noisy, clean, lang)

    def _with_language(self, given: str) -> tuple[str, str]:
        """Return a source that is no bitext, and its language: LANG=SOURCE, for clean text."""
        name, source = named_source(given)
        if source == given:
            return given, self.lang
        if not self.clean_only or find_bitext(source):
            raise UsageError(
                f"{given}: LANG=SOURCE is for clean text, which a recipe noises (--recipe ugc); "
                "give pairs and bitext without a language"
            )
        return source, normalize_language(name)


def prepare_data(folder: Path, sources: Sequence[str], reading: Reading) -> PairData:
    """Read DATA into the folder and open it.

    Sources may mix bitext (`noisegen.data.bitext`) and others. Raises SourceError if no pairs are
    left to train on.
    """
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    langs: dict[str, int] = {}
    cut = pairs = 0
    with (
        writing_texts(folder, "noisy") as add_noisy,
        writing_distinct(folder, "clean") as number_of,
        atomic(folder / "owner") as owners,
        atomic(folder / "lang") as languages,
    ):
        for noisy, clean, lang in reading.pairs(sources, dropped):
            pairs += 1
            cut += max(len(noisy), len(clean)) > TEXT_MAX
            add_noisy(noisy[:TEXT_MAX])  # the tokenizer cuts far earlier
            owners.write(np.int32(number_of(clean)).tobytes())
            languages.write(np.uint16(langs.setdefault(lang, len(langs))).tobytes())
    if not pairs:
        raise SourceError(f"no pairs to train on in {', '.join(sources)}{in_brackets(dropped)}")
    texts = len(TextStore(folder, "clean"))
    record = {
        "held_out": max(1, round(texts * min(reading.share, reading.held_out / pairs))),
        "seed": reading.seed, "langs": list(langs), "dropped": dropped, "cut": cut,
        "clean_only": reading.clean_only,
    }  # fmt: skip
    write_text(folder / "data.json", json.dumps(record))
    return open_data(folder)


def read_pairs(
    folder: Path, sources: Sequence[str], reading: Reading, workers: Workers, *, resume: bool
) -> PairData:
    """Read DATA in the first process, unless a resumed run has it; then open it in all.

    Raises SourceError for too few pairs.
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


def open_data(folder: Path) -> PairData:
    """Open what `prepare_data` wrote; raises SourceError if it is missing or damaged.

    Clean texts are held out by their content, so order and duplicates do not matter.
    """
    try:
        record = json.loads((folder / "data.json").read_text())
        clean, noisy = TextStore(folder, "clean"), TextStore(folder, "noisy")
        owner = np.memmap(folder / "owner", np.int32, "r")
        lang = np.memmap(folder / "lang", np.uint16, "r")
        if not len(owner) == len(lang) == len(noisy):
            raise ValueError(f"{len(owner):,} owners, {len(lang):,} languages of {len(noisy):,}")
        count, key = record["held_out"], mix(record["seed"])
        hashes = (mix(key ^ name_number(text)) for texts in clean.blocks(_TEXTS) for text in texts)
        numbers = np.fromiter(hashes, np.uint64, len(clean))
        is_held = np.zeros(len(clean), np.bool_)
        is_held[np.argpartition(numbers, min(count, len(clean) - 1))[:count]] = True
        parts = np.flatnonzero(~is_held[owner]), np.flatnonzero(is_held[owner])
        dropped, cut, langs = Counter(record["dropped"]), int(record["cut"]), tuple(record["langs"])
        if lang.max(initial=0) >= len(langs):
            raise ValueError(f"language {lang.max()} of {len(langs)}")
        clean_only = bool(record["clean_only"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SourceError(
            f"{folder} has no training data: {error!r}; train again in another folder"
        ) from error
    return PairData(clean, noisy, owner, lang, langs, *parts, dropped, cut, clean_only)


@dataclass(frozen=True)
class NoiseSource:
    """The source of the noisy side: `stored` in DATA, or a recipe, redrawn in every epoch.

    RECIPE noises the clean side, `stored:RECIPE` the stored noisy side in its own language. Of
    several, joined by +, each row draws one per epoch. Raises UsageError for others, which names
    the setting.
    """

    spec: str = _STORED
    seed: int = 0
    lang: str = "en"
    setting: str = "recipe"

    def __post_init__(self) -> None:
        with self._named():
            for is_stored, recipe in self.parts:
                if recipe or not is_stored:  # a wrong name shows before anything is read
                    Recipe.named(recipe)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (UsageError, RecipeError) as error:
            raise UsageError(f"setting {self.setting}: {error}") from error

    def check(self, data: PairData) -> None:
        """Raise UsageError if a recipe lacks a language of the text that it noises."""
        with self._named():
            for is_stored, recipe in self.parts:
                langs = data.langs if self._in_own(data, is_stored) else (self.lang,)
                for lang in langs if recipe else ():
                    engine_for(recipe, lang, "rule")

    @staticmethod
    def _in_own(data: PairData, is_stored: bool) -> bool:
        """Tell text in languages of its own: the clean side of pairs is in the teacher's."""
        return is_stored or data.clean_only

    @property
    def parts(self) -> list[tuple[bool, str]]:
        """For each source that `+` joins, whether the noisy side is read, and the recipe or ''."""
        parts = []
        for name in map(str.strip, self.spec.split("+")):
            side, _, recipe = name.partition(":")
            parts.append((True, recipe) if side == _STORED else (False, name))
        return parts

    @property
    def is_stored(self) -> bool:
        """Whether the noisy side of DATA is read."""
        return any(is_stored for is_stored, _ in self.parts)

    @property
    def is_drawn(self) -> bool:
        """Whether noise is drawn, so that each epoch has its own."""
        return any(recipe for _, recipe in self.parts)

    def noisy(self, data: PairData, rows: Rows, epoch: int) -> list[str]:
        """Return the noisy texts of these pairs."""
        parts, out = self.parts, np.empty(len(rows), object)
        streams = Streams(rows.astype(np.uint64), self.seed, epoch)
        drawn = streams.decide("source of noise", np.arange(len(rows))) * len(parts)
        for part, (is_stored, recipe) in enumerate(parts):
            chosen = np.flatnonzero(drawn >> DECISION_BITS == part)
            some = rows[chosen]
            texts = data.noisy.take(some) if is_stored else data.clean.take(data.owner[some])
            if not recipe:
                out[chosen] = texts.to_pylist()
                continue
            in_own = self._in_own(data, is_stored)
            numbers: npt.NDArray[Any] = data.lang[some] if in_own else np.zeros_like(some)
            for number in np.unique(numbers).tolist():
                here = np.flatnonzero(numbers == number)
                lang = data.langs[number] if in_own else self.lang
                engine = engine_for(recipe, lang, "rule")
                streams = Streams(some[here].astype(np.uint64), self.seed, epoch)
                spoken = texts.take(pa.array(here)).cast(pa.string())
                noised = engine.noise(spoken, streams, protect_kinds(PROTECTED))
                out[chosen[here]] = noised.noisy.to_pylist()
        return list(out)
