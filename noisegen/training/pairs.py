"""DATA of `noisegen train`: pairs of noisy and clean text, copied to disk once per run.

RUN/data has each distinct clean text once. For each pair it has the noisy text, the language of the
noisy text, and the index of the clean text. Pairs with an empty side are dropped, texts of over
TEXT_MAX characters are cut, and both are counted. Some clean texts are held out. In bitext, text in
the teacher's language counts as clean, and its translation as noisy. If noise comes from recipes,
each epoch draws new noisy texts.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.data.bitext import TEXT_MAX, Bitext, find_bitext, stream_bitext
from noisegen.data.columns import CLEAN_TEXT, TextColumns, by_reason, in_brackets, stream_columns
from noisegen.data.pairs import PAIRS_ARE, damage, shards_of, stream_pairs
from noisegen.data.sources import named_source
from noisegen.encoders.tokens import Rows
from noisegen.errors import RecipeError, SourceError, UsageError
from noisegen.noising.noise import engine_for
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.rng import DECISION_BITS, name_number, splitmix
from noisegen.runs.atomic import atomic, write_text
from noisegen.text.languages import normalize_language
from noisegen.text.spans import PROTECTED, protect_kinds
from noisegen.training.computation import Workers
from noisegen.training.stores import TextStore, writing_distinct, writing_texts

PIECE_ROWS = 16_384  # rows noised and tokenised at a time; noise is half as fast on 4,096
VALIDATION_EPOCH = 2**20  # epoch that seeds the noise of held-out pairs; training ends earlier
_ADVICE = f"{PAIRS_ARE}; clean text alone needs a recipe, such as --recipe ugc"
_COLUMN = "; name yours: --text-column NAME"
_STORED = "stored"
_TEXTS = 65_536  # clean texts read at once when a hash chooses the held-out texts


@dataclass(frozen=True)
class PairData:
    """Pairs on disk: pair i has noisy text `noisy[i]` and clean text `clean[owner[i]]`.

    The language of the noisy text is `langs[lang[i]]`. `training` and `validation` have indices of
    pairs; no clean text has pairs in both. `dropped` counts rows of DATA that give no pair, by
    reason. `cut` counts pairs with a side that was too long.
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
    clean_only: bool = False  # DATA is clean text, and both sides of a pair are the same

    @property
    def summary(self) -> str:
        """Return in words how many pairs there are, and how many were dropped or cut."""
        parts = [f"{len(self.training):,} pairs to train on, {len(self.validation):,} held out"]
        return "; ".join([*parts, *lost(self.dropped, self.cut)])


def lost(dropped: Mapping[str, int], cut: int = 0) -> list[str]:
    """Return up to two phrases: how many pairs were dropped, and how many were cut."""
    parts = []
    if dropped:
        parts.append(f"dropped {by_reason(dropped)}")
    if cut:
        parts.append(f"{cut:,} cut to {TEXT_MAX:,} characters")
    return parts


class Pair(NamedTuple):
    """A pair of DATA, with the language of its noisy side."""

    noisy: str
    clean: str
    lang: str


@dataclass(frozen=True)
class Reading:
    """Reader of DATA, with its options.

    With `clean_only`, DATA is clean text, and both sides of a pair are the same text. `lang` is the
    language of clean text whose source is not written LANG=SOURCE. From bitext, at most `most` rows
    per language pair are read. About `held_out` pairs are held out, but at most the share `share`
    of all pairs; `seed` determines the choice. `text_column` names the column of clean text
    (default: clean, else text); UsageError is raised if DATA is pairs.
    """

    clean_only: bool = False
    lang: str = "en"
    most: int | None = None
    held_out: int = 500
    seed: int = 0
    share: float = 0.1
    text_column: str | None = None

    def __post_init__(self) -> None:
        if self.text_column and not self.clean_only:
            raise UsageError(
                "--text-column names clean text, but DATA is pairs here: name a recipe, such as "
                "--recipe ugc, or leave it out"
            )

    def pairs(self, sources: Sequence[str], dropped: Counter[str]) -> Iterator[Pair]:
        """Yield the pairs of DATA, pairs from bitext last; raises SourceError.

        Rows that give no pair are counted in `dropped`, by reason.
        """
        bitext, others = {}, []
        for source in sources:
            if files := find_bitext(source):
                bitext[source] = files
            else:
                others.append(self._with_language(source))
        if self.clean_only:
            for source, lang in others:
                yield from self._clean_texts(source, lang, dropped)
        else:
            names = [source for source, _ in others]
            for noisy, clean in stream_pairs(names, dropped, _ADVICE):
                yield Pair(noisy, clean, self.lang)
        all_files = [file for files in bitext.values() for file in files]
        yield from self._bitext(all_files, dropped)

    def _clean_texts(self, source: str, lang: str, dropped: Counter[str]) -> Iterator[Pair]:
        """Yield a pair for each clean text of a source: both sides are this text."""
        read = TextColumns({}, dropped)
        named = self.text_column
        columns, advice = (((named,),), "") if named else (CLEAN_TEXT, _COLUMN)
        for (text,) in stream_columns(shards_of(source), columns, "training", read, advice):
            yield Pair(text, text, lang)
        if read.damaged:
            raise damage(read.damaged)

    def _bitext(self, files: Sequence[Bitext], dropped: Counter[str]) -> Iterator[Pair]:
        """Yield pairs from bitext: text in the teacher's language as clean, translation as noisy.

        With `clean_only`, both sides are the text in the teacher's language. Pairs with no text in
        this language are dropped. Raises SourceError, before reading, if a file has neither side in
        this language.
        """
        for file in files:
            if self.lang not in file.langs and not file.is_mixed:
                raise SourceError(
                    f"{file.paths[0]} is in {' and '.join(file.langs)}; one side must be in the "
                    f"teacher's language, {self.lang} (another: --set lang=...)"
                )
        for pair in stream_bitext(files, dropped, self.most):
            if pair.source_lang == self.lang:
                clean, translation = pair.source, Pair(pair.target, pair.source, pair.target_lang)
            elif pair.target_lang == self.lang:
                clean, translation = pair.target, Pair(pair.source, pair.target, pair.source_lang)
            else:
                dropped[f"no_{self.lang}"] += 1
                continue
            yield Pair(clean, clean, self.lang) if self.clean_only else translation

    def _with_language(self, given: str) -> tuple[str, str]:
        """Split LANG=SOURCE into source and language; SOURCE alone has the language `lang`.

        Raises UsageError if LANG is given for pairs or bitext.
        """
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
    """Copy the pairs of DATA into files in the folder, and open these files.

    Some sources may be bitext (`noisegen.data.bitext`). Raises SourceError if no pairs are left to
    train on.
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
        for pair in reading.pairs(sources, dropped):
            pairs += 1
            cut += max(len(pair.noisy), len(pair.clean)) > TEXT_MAX
            add_noisy(pair.noisy[:TEXT_MAX])  # the tokenizer cuts texts far earlier
            owners.write(np.int32(number_of(pair.clean)).tobytes())
            languages.write(np.uint16(langs.setdefault(pair.lang, len(langs))).tobytes())
    if not pairs:
        raise SourceError(f"no pairs to train on in {', '.join(sources)}{in_brackets(dropped)}")
    texts = len(TextStore(folder, "clean"))
    record = {
        "held_out": max(1, round(texts * min(reading.share, reading.held_out / pairs))),
        "seed": reading.seed,
        "langs": list(langs),
        "dropped": dropped,
        "cut": cut,
        "clean_only": reading.clean_only,
    }
    write_text(folder / "data.json", json.dumps(record))
    return open_data(folder)


def read_pairs(
    folder: Path, sources: Sequence[str], reading: Reading, workers: Workers, *, resume: bool
) -> PairData:
    """Copy DATA into the folder in the first process; then open the copy in all processes.

    A resumed run that has the copy reads no sources. Raises SourceError for too few pairs.
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
    """Open the files of `prepare_data`; raises SourceError if they are missing or damaged.

    A hash of each clean text decides whether the text is held out, so neither the order of DATA nor
    duplicates change the choice.
    """
    try:
        record = json.loads((folder / "data.json").read_text())
        clean, noisy = TextStore(folder, "clean"), TextStore(folder, "noisy")
        owner = np.memmap(folder / "owner", np.int32, "r")
        lang = np.memmap(folder / "lang", np.uint16, "r")
        if not len(owner) == len(lang) == len(noisy):
            raise ValueError(f"{len(owner):,} owners, {len(lang):,} languages of {len(noisy):,}")
        is_held = _held_out(clean, record["held_out"], record["seed"])[owner]
        parts = np.flatnonzero(~is_held), np.flatnonzero(is_held)
        dropped, cut, langs = Counter(record["dropped"]), int(record["cut"]), tuple(record["langs"])
        if lang.max(initial=0) >= len(langs):
            raise ValueError(f"language {lang.max()} of {len(langs)}")
        clean_only = bool(record["clean_only"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise SourceError(
            f"{folder} has no training data: {error!r}; train again in another folder"
        ) from error
    return PairData(clean, noisy, owner, lang, langs, *parts, dropped, cut, clean_only)


def _held_out(clean: TextStore, count: int, seed: int) -> npt.NDArray[np.bool_]:
    """Return for each clean text whether it is one of the `count` held-out texts.

    The texts with the lowest hashes are held out; `seed` is part of the hash.
    """
    key = splitmix(seed)
    hashes = (splitmix(key ^ name_number(text)) for texts in clean.blocks(_TEXTS) for text in texts)
    numbers = np.fromiter(hashes, np.uint64, len(clean))
    is_held = np.zeros(len(clean), np.bool_)
    is_held[np.argpartition(numbers, min(count, len(clean) - 1))[:count]] = True
    return is_held


class NoisePart(NamedTuple):
    """One part of a NoiseSource: a recipe, and the side of each pair that it is applied to.

    The recipe adds noise to the stored noisy side if `is_stored`, else to the clean side. If
    `recipe` is empty, the stored noisy side is used unchanged.
    """

    is_stored: bool
    recipe: str


@dataclass(frozen=True)
class NoiseSource:
    """Source of the noisy sides of pairs, from the value `spec` of the setting `recipe`.

    "stored" is the noisy side of DATA. "ugc", or another recipe, adds noise to the clean side.
    "stored:ugc" adds ugc noise to the noisy side of DATA, in the language of that side. Recipes
    draw new noise in every epoch. In "stored+ugc", each row draws one of the parts per epoch.
    Raises UsageError for unknown recipes; `setting` is the name of the setting in the message.
    """

    spec: str = _STORED
    seed: int = 0
    lang: str = "en"
    setting: str = "recipe"

    def __post_init__(self) -> None:
        with self._naming_setting():
            for part in self.parts:
                if part.recipe or not part.is_stored:
                    Recipe.named(part.recipe)  # raises its error before DATA is read

    @contextmanager
    def _naming_setting(self) -> Iterator[None]:
        try:
            yield
        except (UsageError, RecipeError) as error:
            raise UsageError(f"setting {self.setting}: {error}") from error

    def check(self, data: PairData) -> None:
        """Raise UsageError if a recipe does not support a language of the texts that it noises."""
        with self._naming_setting():
            for part in self.parts:
                if part.recipe:
                    for lang in data.langs if _has_own_langs(data, part) else (self.lang,):
                        engine_for(part.recipe, lang, "rule")

    @property
    def parts(self) -> list[NoisePart]:
        """The parts that `spec` names, joined by "+"."""
        parts = []
        for name in map(str.strip, self.spec.split("+")):
            side, _, recipe = name.partition(":")
            is_stored = side == _STORED
            parts.append(NoisePart(is_stored, recipe if is_stored else name))
        return parts

    @property
    def is_stored(self) -> bool:
        """Whether any of the parts uses the noisy side of DATA."""
        return any(part.is_stored for part in self.parts)

    @property
    def is_drawn(self) -> bool:
        """Whether any of the parts has a recipe, which draws new noise in every epoch."""
        return any(part.recipe for part in self.parts)

    def noisy(self, data: PairData, rows: Rows, epoch: int) -> list[str]:
        """Return the noisy texts of the pairs with the indices `rows`, in an epoch."""
        parts, out = self.parts, np.empty(len(rows), object)
        streams = Streams(rows.astype(np.uint64), self.seed, epoch)
        drawn = streams.decide("source of noise", np.arange(len(rows))) * len(parts)
        for number, part in enumerate(parts):
            chosen = np.flatnonzero(drawn >> DECISION_BITS == number)
            out[chosen] = self._noisy_of_part(part, data, rows[chosen], epoch)
        return list(out)

    def _noisy_of_part(
        self, part: NoisePart, data: PairData, rows: Rows, epoch: int
    ) -> npt.NDArray[np.object_]:
        """Return the noisy texts that one part gives for the pairs with the indices `rows`."""
        texts = data.noisy.take(rows) if part.is_stored else data.clean.take(data.owner[rows])
        out = np.empty(len(rows), object)
        if not part.recipe:
            out[:] = texts.to_pylist()
            return out
        has_own_langs = _has_own_langs(data, part)
        numbers: npt.NDArray[Any] = data.lang[rows] if has_own_langs else np.zeros_like(rows)
        for number in np.unique(numbers).tolist():
            here = np.flatnonzero(numbers == number)
            lang = data.langs[number] if has_own_langs else self.lang
            engine = engine_for(part.recipe, lang, "rule")
            streams = Streams(rows[here].astype(np.uint64), self.seed, epoch)
            strings = texts.take(pa.array(here)).cast(pa.string())
            noised = engine.noise(strings, streams, protect_kinds(PROTECTED))
            out[here] = noised.noisy.to_pylist()
        return out


def _has_own_langs(data: PairData, part: NoisePart) -> bool:
    """Return whether `data` records the language of each text that this part adds noise to.

    The clean sides of pairs have no recorded languages: all are in the teacher's language.
    """
    return part.is_stored or data.clean_only
