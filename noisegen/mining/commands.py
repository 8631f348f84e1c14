"""The mining commands for Python: `mine_wiki`, `mine_lang8`, `mine_pairs`."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from noisegen.errors import UsageError
from noisegen.mining.dictionary import THRESHOLDS, Thresholds
from noisegen.mining.filters import Profile, profile
from noisegen.mining.languages import language
from noisegen.mining.mined_folder import MiningManifest
from noisegen.mining.output import mine

Sources = str | Path | Sequence[str | Path]
Tell = Callable[[str], None]


def mine_wiki(
    dumps: Sources, out: str | Path, *, lang: str = "en", splitter: str = "sentencex",
    skip: bool = True, tell: Tell | None = None, **options: Any,
) -> MiningManifest:  # fmt: skip
    """Mine sentence pairs and a dictionary from the revision history of a wiki.

    `dumps`: files, folders or globs; `skip` off compares whole pages, slowly, and finds the same
    word pairs; `tell` hears of files that are left out.

    `options` of every mining function: profile (rcp, strict, all), max_char_distance ('none' or a
    number), fuzzy_pinyin; min_pages, min_count, balance, frequency, top (see `Thresholds`);
    workers, executor, part, resume, force, strict (damage is an error), progress. Raises
    NoisegenError.
    """
    from noisegen.mining.dumps import tasks_of
    from noisegen.mining.wiki import WikiMiner

    spoken = language(lang, splitter=splitter, fuzzy_pinyin=options.get("fuzzy_pinyin", False))
    tasks, left_out = tasks_of(_listed(dumps), spoken.code)
    _told(left_out, tell)
    options["left_out"] = left_out
    miner = WikiMiner(spoken, _profile(options), skip=skip)
    own = {"splitter": splitter, "skip": skip}
    return _mine(tasks, miner, out, "wiki", spoken.code, own, options)


def mine_lang8(
    files: Sources, out: str | Path, *, lang: str = "en", with_uncorrected: bool = False,
    **options: Any,
) -> MiningManifest:  # fmt: skip
    """Mine learners' sentences: Lang-8 entries (a JSON array a line) or M2.

    `with_uncorrected` keeps a sentence that nobody corrected, as a pair of itself. For `options`
    see `mine_wiki`.
    """
    from noisegen.mining.lang8 import Lang8Miner, lang8_tasks

    spoken = language(lang, fuzzy_pinyin=options.get("fuzzy_pinyin", False))
    miner = Lang8Miner(spoken, _profile(options), with_uncorrected)
    own = {"with_uncorrected": with_uncorrected}
    return _mine(lang8_tasks(_listed(files)), miner, out, "lang8", spoken.code, own, options)


def mine_pairs(
    sources: Sources, out: str | Path, *, lang: str = "en", noisy_column: str = "noisy",
    clean_columns: Sequence[str] = ("clean",), clean_files: Sequence[str | Path] = (),
    lang_column: str | None = None, split: bool = False, splitter: str = "sentencex",
    tell: Tell | None = None, **options: Any,
) -> MiningManifest:  # fmt: skip
    """Mine a dictionary from parallel noisy and clean text.

    `sources`: tables as for `augment`, or one text file with the corrections of its lines in
    `clean_files`. `split` cuts rows into sentences and aligns those. For `options` see `mine_wiki`.
    """
    from noisegen.mining.parallel import PairsMiner, aligned_tasks, table_tasks

    spoken = language(lang, splitter=splitter, fuzzy_pinyin=options.get("fuzzy_pinyin", False))
    columns = tuple(clean_columns)
    miner = PairsMiner(spoken, _profile(options), noisy_column, columns, lang_column, split)
    given, corrected = _listed(sources), _listed(clean_files)
    if corrected and len(given) > 1:
        raise UsageError("--clean-file goes with one SOURCE, the noisy text file")
    if corrected and (lang_column or (noisy_column, columns) != ("noisy", ("clean",))):
        raise UsageError("--clean-file goes with text files, which have no columns")
    if noisy_column in columns:
        raise UsageError(f"column {noisy_column!r} cannot be both noisy and clean")
    tasks, skipped = (
        (aligned_tasks(given[0], corrected), []) if corrected else table_tasks(given, miner)
    )
    _told(skipped, tell)
    options["left_out"] = skipped
    own = {
        "splitter": splitter, "split": split, "noisy_column": noisy_column,
        "clean_columns": columns, "lang_column": lang_column, "clean_files": corrected,
    }  # fmt: skip
    return _mine(tasks, miner, out, "pairs", spoken.code, own, options)


def _mine(
    tasks: Any, miner: Any, out: str | Path, kind: str, lang: str,
    own: dict[str, Any], options: dict[str, Any],
) -> MiningManifest:  # fmt: skip
    """Run the miner; what decides its pairs is the configuration of the folder."""
    names = ("profile", "max_char_distance", "fuzzy_pinyin")
    defaults = {"profile": "rcp", "max_char_distance": None, "fuzzy_pinyin": False}
    shared = {name: options.pop(name, defaults[name]) for name in names}
    thresholds = _thresholds(shared["profile"], options)
    return mine(
        tasks, miner, Path(out), config={**shared, **own}, kind=kind, lang=lang,
        thresholds=thresholds, **options,
    )  # fmt: skip


def _profile(options: dict[str, Any]) -> Profile:
    return profile(options.get("profile", "rcp"), options.get("max_char_distance"))


def _thresholds(name: str, options: dict[str, Any]) -> Thresholds:
    """Return the thresholds of a profile, with those that were given."""
    names = ("min_pages", "min_count", "balance", "frequency", "top")
    given = {name: options.pop(name, None) for name in names}
    chosen = {name: value for name, value in given.items() if value is not None}
    return replace(THRESHOLDS[name], **chosen)


def _listed(sources: Sources) -> list[str]:
    given = [sources] if isinstance(sources, str | Path) else sources
    return [str(source) for source in given]


def _told(left_out: Sequence[str], tell: Tell | None) -> None:
    if tell is not None:
        for one in left_out:
            tell(f"skipped {one}")
