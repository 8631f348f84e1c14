"""DATA of `noisegen train`: pairs of noisy and clean text, kept on disk once per run.

RUN/data has every distinct clean text once, the noisy side of each pair, its language, and which
clean text it belongs to. Pairs with an empty side are dropped, texts of over TEXT_MAX characters
cut, and both counted; some clean texts are held out. Of bitext the side in the teacher's language
is clean, and its translation is noisy.
"""

import json
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

from noisegen.atomic import atomic, write_text
from noisegen.bitext import TEXT_MAX, stream_bitext
from noisegen.bitext_files import Bitext, find_bitext
from noisegen.cells import Cells, by_reason, in_brackets, stream_cells
from noisegen.draws import mix, name_number
from noisegen.errors import SourceError
from noisegen.realism.pairs import PAIRS_ARE, damage, shards_of, stream_pairs
from noisegen.training.text_store import TextStore, write_texts
from noisegen.training.workers import Workers

_CLEAN = (("clean",), ("text",))  # columns that hold clean text
_ADVICE = f"{PAIRS_ARE}; clean text alone needs a recipe, such as --noise ugc"
Rows = npt.NDArray[np.int64]


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
    """How DATA is read: with `clean_only` as clean text, which is then its own noisy side.

    `lang` is the language of clean text. Of bitext come at most `most` rows of each language pair
    of each data set.
    """

    clean_only: bool = False
    lang: str = "en"
    most: int | None = None

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


def prepare_data(
    folder: Path, sources: Sequence[str], held_out: int, seed: int,
    reading: Reading | None = None, *, share: float = 0.1,
) -> PairData:  # fmt: skip
    """Read DATA into the folder; about `held_out` pairs, at most `share`, are for validation.

    Sources may be bitext (`bitext_files.find_bitext`) and others together. Raises SourceError where
    nothing is left to train on.
    """
    reading = reading or Reading()
    folder.mkdir(parents=True, exist_ok=True)
    dropped: Counter[str] = Counter()
    known: dict[bytes, int] = {}
    langs: dict[str, int] = {}
    cut = 0
    with ExitStack() as stack:
        owners, spoken = (stack.enter_context(atomic(folder / name)) for name in ("owner", "lang"))

        def noisy_side() -> Iterator[str]:
            nonlocal cut
            for noisy, clean, lang in reading.pairs(sources, dropped):
                cut += max(len(noisy), len(clean)) > TEXT_MAX
                key = blake2b(clean.encode(), digest_size=16).digest()
                owners.write(np.int32(known.setdefault(key, len(known))).tobytes())
                spoken.write(np.uint16(langs.setdefault(lang, len(langs))).tobytes())
                yield noisy[:TEXT_MAX]  # the tokenizer cuts far earlier

        noisy = write_texts(folder, "noisy", noisy_side())
    if not len(noisy):
        raise SourceError(f"no pairs to train on in {', '.join(sources)}{in_brackets(dropped)}")
    write_texts(folder, "clean", _first_of_each(reading.pairs(sources, Counter()), known))
    texts = max(1, round(len(known) * min(share, held_out / len(noisy))))
    said = {"held_out": texts, "seed": seed, "langs": list(langs), "dropped": dropped, "cut": cut}
    write_text(folder / "data.json", json.dumps(said))
    return open_data(folder)


def read_once(
    folder: Path, prepare: Callable[[], object], workers: Workers, *, resume: bool
) -> PairData:
    """Let the first process prepare the folder, unless a resumed run has it; all then open it.

    Raises SourceError where there is too little to train on.
    """
    if workers.leads and not (resume and (folder / "data.json").exists()):
        prepare()
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
        read = Cells({}, dropped)
        for (text,) in stream_cells(shards_of(source), _CLEAN, "training", read):
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
        said = json.loads((folder / "data.json").read_text())
        clean, noisy = TextStore(folder, "clean"), TextStore(folder, "noisy")
        owner = np.memmap(folder / "owner", np.int32, "r")
        lang = np.memmap(folder / "lang", np.uint16, "r")
        held = _held_out(clean, said["held_out"], said["seed"])[owner]
        dropped, cut, langs = Counter(said["dropped"]), int(said["cut"]), tuple(said["langs"])
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
