"""Compare synthetic noise with real noise: rates, histograms, divergences, and a classifier."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

from noisegen.augmentation import Transforms, levels_in
from noisegen.augmentation.on_the_fly import Noising
from noisegen.augmentation.shards import factor_of
from noisegen.data.pairs import Pairs, read_pairs
from noisegen.errors import NoisegenError, UsageError
from noisegen.noising.recipe import Recipe
from noisegen.options import Strings, decode, internal, listed, option, public
from noisegen.realism.advice import Advice, AllChanges, advised, differences
from noisegen.realism.doubts import doubts, languages_differ
from noisegen.realism.figures import Divergence, NoiseFigures, measure, row_divergences
from noisegen.realism.two_sample import TwoSample, two_sample
from noisegen.runs.manifest import Manifest, counted
from noisegen.runs.options import ALONE, Folder, Lang, WorkerOptions
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.notebook import framed

EXAMPLES = 8  # most example rows in the report
ROWS_MAX = 10_000  # most rows of each set that are compared
# Sets that share at least this many clean texts are paired: only the shared texts are compared
PAIRED_MIN = 100


@dataclass(frozen=True, kw_only=True)
class PairOptions:
    """Options of reading real pairs with `data.pairs.read_pairs`."""

    lang: Lang = "en"
    noisy_column: Annotated[str, option("Column with the noisy text")] = "noisy"
    clean_column: Annotated[str, option("Column with the clean text")] = "clean"
    clean_file: Annotated[
        Folder | None,
        option("Clean version of every line, where the pairs are a text file", metavar="FILE"),
    ] = None

    def read(self, sources: Strings) -> Pairs:
        """Return the pairs in `sources`; raises SourceError and UsageError."""
        clean_file = str(self.clean_file) if self.clean_file else None
        return read_pairs(
            listed(sources),
            noisy_column=self.noisy_column,
            clean_column=self.clean_column,
            clean_file=clean_file,
        )


@dataclass(frozen=True)
class CompareOptions(PairOptions, WorkerOptions):
    """Options of a comparison: real pairs, and synthetic pairs or a recipe.

    A recipe makes the synthetic pairs from the clean side of the real pairs. Tables of `synthetic`
    have the columns noisy and clean.
    """

    pairs: Annotated[
        Strings,
        option("Real noisy and clean text: tables, M2 files, folders; repeatable", metavar="PAIRS"),
    ]
    _: KW_ONLY
    synthetic: Annotated[
        Strings, option("Output of noisegen augment, or any pairs; repeatable", metavar="OUT")
    ] = ()
    recipe: Annotated[
        str | None, option("Noise the clean side of the pairs instead", metavar="NAME|FILE.yaml")
    ] = None
    transforms: Transforms = ()
    seed: Annotated[int, option("Seed of the recipe's noise")] = 0
    strength: Annotated[
        Strings,
        option(
            "Factors of the recipe's noise, such as x0.5,x1,x2: it is compared at each",
            metavar="xN[,xN...]",
        ),
    ] = ()
    limit: Annotated[
        int, option("Maximum rows of each set, spread evenly", "-n", "--limit", ge=1)
    ] = ROWS_MAX
    progress: Annotated[Show, internal()] = silent

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.synthetic) == self.has_recipe:
            raise UsageError("give either --synthetic or a recipe, with --recipe or -t")
        object.__setattr__(self, "strength", levels_in(self.strength))
        if self.strength and not self.has_recipe:
            raise UsageError("--strength scales a recipe: name one with --recipe or -t")
        for strength in listed(self.strength):
            factor_of(strength)

    @property
    def has_recipe(self) -> bool:
        """Tell whether a recipe, or transforms, make the synthetic pairs."""
        return self.recipe is not None or bool(self.transforms)

    def compared(
        self,
        real: Pairs,
        synthetic: Pairs,
        name: str,
        recipe: Recipe | None = None,
        note: str = "",
    ) -> "Realism":
        """Return the comparison of two sets; `name` names the synthetic set, `note` is a warning.

        The real set has the names of its sources. Changes of the recipe of the synthetic set, if
        it is known, are tried.
        """
        realism = compare_pairs(
            real,
            synthetic,
            lang=self.lang,
            limit=self.limit,
            progress=self.progress,
            workers=self,
        )
        sources = [*listed(self.pairs), *([str(self.clean_file)] if self.clean_file else [])]
        warnings = (note, *realism.warnings) if note else realism.warnings
        found = replace(realism, names=(", ".join(sources), name), warnings=warnings)
        if not recipe:
            return found
        self.progress(Progress("trying changes of the recipe"))
        rows = real.sample(self.limit)
        advice, changes = advised(found.advice, recipe, rows, self.lang, self.seed)
        if self.recipe and not self.transforms:
            changes = replace(changes, extends=self.recipe)
        return replace(found, advice=advice, changes=changes)


@dataclass(frozen=True)
class Realism:
    """The result of comparing synthetic noise with real noise.

    `is_paired` tells whether the two sets share clean texts; then only the noise on these texts is
    compared. `names` and `pairs_read` are the names and sizes of the real and the synthetic set.
    `transforms` names the transforms of the synthetic noise, () if unknown. `advice` is on the
    kinds of edit whose shares differ most, `changes` are the changes of a given recipe that help,
    None if none was tried. `warnings` are reasons to doubt the figures, `damaged` messages about
    damaged input.
    `examples` are rows: {"clean": text, "real": text, "synthetic": text}.

    With --strength, `levels` has a comparison for each factor of the noise. The other figures are
    the figures of the first factor, and `examples` have the synthetic text at each factor:
    {"x0.5": text, ...}.
    """

    lang: str
    is_paired: bool
    pairs_read: tuple[int, int]
    real: NoiseFigures
    synthetic: NoiseFigures
    divergences: dict[str, Divergence]
    two_sample: TwoSample
    warnings: tuple[str, ...]
    damaged: tuple[str, ...] = ()
    names: tuple[str, str] = ("", "")
    transforms: tuple[str, ...] = ()
    advice: tuple[Advice, ...] = ()
    changes: AllChanges | None = None
    examples: tuple[dict[str, str], ...] = ()
    levels: dict[str, "Realism"] = field(default_factory=dict)

    def __repr__(self) -> str:
        auc = self.two_sample.all_rows
        told = f"told apart {auc.value:.0%} of the time (50% is guessing)" if auc else "no AUC"
        return f"<Realism {self.names[1] or 'synthetic'} against {self.names[0] or 'real'}: {told}>"

    def _repr_html_(self) -> str:
        return framed(self, "noisegen.realism.report_blocks:comparison_page")

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain data for JSON."""
        return asdict(self)


@public
def compare(
    pairs: Strings,
    *,
    workers: int = 1,
    executor: str = "processes",
    lang: str = "en",
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | Path | None = None,
    synthetic: Strings = (),
    recipe: str | None = None,
    transforms: Strings = (),
    seed: int = 0,
    strength: Strings = (),
    limit: int = 10_000,
    progress: Show = silent,
) -> Realism:
    """Compare the noise in real pairs with synthetic pairs or a recipe's noise: command `realism`.

    A recipe, or `transforms` ('fing:rate=0.1') in their order, noises the clean side of the real
    pairs, at each `strength` if there are some ('x0.5', 'x2'). Equal input gives equal figures.
    Raises NoisegenError, MissingExtra without scikit-learn.
    """
    return _compare(decode(CompareOptions, locals()))


def _compare(options: CompareOptions) -> Realism:
    """Run `compare` with checked options."""
    options.progress(Progress("reading"))
    real = options.read(options.pairs)
    if not options.has_recipe:
        sources = listed(options.synthetic)
        manifests = [_manifest(source) for source in sources]
        name = ", ".join(map(_run_name, sources, manifests))
        found = options.compared(real, read_pairs(sources), name)
        recipes = [_recipe(made) for made in manifests]
        if not all(recipes):  # noise of unknown origin may have any transform
            return found
        return replace(found, transforms=_transforms(list(filter(None, recipes)), options.lang))
    recipe = Recipe.chosen(options.recipe or "", options.transforms, lang=options.lang)
    found = _of_recipe(options, real, recipe)
    return replace(found, transforms=_transforms([recipe], options.lang))


def _recipe(manifest: Manifest | None) -> Recipe | None:
    """Return the recipe of a run, None if it is unknown or has transforms of code that is not here.

    A run of a plug-in is compared like any other: only the advice is less exact.
    """
    try:
        return Recipe.from_dict(manifest.recipe) if manifest else None
    except NoisegenError:
        return None


def _transforms(recipes: Sequence[Recipe], lang: str) -> tuple[str, ...]:
    """Return the names of the transforms in the recipes' mixes for a language."""
    steps = (step for recipe in recipes for step in recipe.mix_of(lang).steps())
    return tuple(dict.fromkeys(step.transform for step in steps))


def _of_recipe(options: CompareOptions, real: Pairs, recipe: Recipe) -> Realism:
    """Compare real pairs with a recipe's noise on their clean side, at each strength."""
    clean = real.sample(options.limit).clean
    factors = {strength: factor_of(strength) for strength in listed(options.strength)}
    name, note = f"recipe {recipe.name} (seed {options.seed})", recipe.note_on(options.lang)
    noising = Noising(options.lang)
    if not factors:
        synthetic = Pairs(noising.noise(recipe, clean, options.seed), clean)
        return options.compared(real, synthetic, name, recipe, note)
    sets = {
        strength: Pairs(noising.noise(recipe.scaled(factor), clean, options.seed), clean)
        for strength, factor in factors.items()
    }
    levels = {
        strength: options.compared(real, synthetic, f"{name} at {strength}", note=note)
        for strength, synthetic in sets.items()
    }
    return _joined(levels, sets, f"{name} at {', '.join(levels)}")


def _joined(levels: dict[str, Realism], sets: Mapping[str, Pairs], name: str) -> Realism:
    """Return one comparison for all strengths; its synthetic set is called `name`.

    `sets` are the synthetic pairs. The examples are those of the last strength. A warning that not
    all strengths share names its strength.
    """
    *_, last = levels.values()
    texts = {
        strength: dict(zip(one.clean, one.noisy, strict=True)) for strength, one in sets.items()
    }
    examples = []
    for row in last.examples:
        noisy = {strength: of_clean[row["clean"]] for strength, of_clean in texts.items()}
        examples.append({"clean": row["clean"], "real": row["real"], **noisy})
    often = Counter(line for one in levels.values() for line in one.warnings)
    warnings = [
        line if often[line] == len(levels) else f"at {strength}: {line}"
        for strength, one in levels.items()
        for line in one.warnings
    ]
    return replace(
        next(iter(levels.values())),
        names=(last.names[0], name),
        warnings=tuple(dict.fromkeys(warnings)),
        examples=tuple(examples),
        levels=levels,
    )


def _manifest(source: str) -> Manifest | None:
    """Return the manifest of a source that `augment` wrote, None for any other source."""
    try:
        return Manifest.load(source, "augment")
    except NoisegenError:
        return None


def _run_name(source: str, manifest: Manifest | None) -> str:
    """Return a name for `source`; if `augment` wrote it, the name includes recipe and seed."""
    if manifest is None:
        return source
    return f"{source} (recipe {manifest.recipe.get('name')}, seed {manifest.seed})"


def compare_pairs(
    real: Pairs,
    synthetic: Pairs,
    *,
    lang: str = "",
    limit: int = ROWS_MAX,
    progress: Show = silent,
    workers: WorkerOptions = ALONE,
) -> Realism:
    """Compare synthetic noise with real noise.

    At most `limit` rows are used, equally many of both sets, spread evenly over each set. `lang` is
    the language of the pairs; `progress` is called with an event per step. Equal input gives equal
    figures. Raises UsageError for a set without pairs, MissingExtra without scikit-learn.
    """
    sides = {"real": real, "synthetic": synthetic}
    for name, pairs in sides.items():
        if not pairs:
            raise UsageError(f"the {name} set has no pairs")
    ours, theirs, is_paired = alongside(real, synthetic, limit)
    warnings = [f"real set: {line}" for line in doubts(real, lang)]
    warnings += [f"{name} set: {line}" for name in sides for line in _losses(sides[name])]
    warnings += _pairing(real, synthetic, len(ours) if is_paired else None, limit)
    progress(Progress(f"aligning {len(ours):,} real pairs"))
    real_figures, real_counts = measure(ours.clean, ours.noisy, lang, workers)
    progress(Progress(f"aligning {len(theirs):,} synthetic pairs"))
    synthetic_figures, synthetic_counts = measure(theirs.clean, theirs.noisy, lang, workers)
    return Realism(
        lang=lang,
        is_paired=is_paired,
        pairs_read=(len(real), len(synthetic)),
        real=real_figures,
        synthetic=synthetic_figures,
        two_sample=two_sample(ours, theirs, progress),
        advice=tuple(differences(real_figures, synthetic_figures, lang)),
        examples=tuple(_examples(ours, theirs, is_paired)),
        divergences=row_divergences(real_counts, synthetic_counts, is_paired),
        warnings=tuple(warnings),
        damaged=(*real.damaged, *synthetic.damaged),
    )


def _losses(pairs: Pairs) -> Iterator[str]:
    """Yield warnings about a set: how many pairs were dropped and why, and that it has no noise."""
    for reason, lost in pairs.dropped.items():
        yield f"dropped {counted(lost, 'pair')}: {reason}"
    if pairs.noisy == pairs.clean:
        yield "no row differs from its clean version: there is no noise to compare"


def _pairing(real: Pairs, synthetic: Pairs, compared: int | None, limit: int) -> Iterator[str]:
    """Yield warnings about which rows are compared.

    If the sets are paired, `compared` is the number of pairs that are compared, and a warning says
    if some are left out. If not, it is None, and warnings say that topics or languages may differ.
    """
    if compared is not None:
        if compared < min(len(real), limit):
            yield (
                f"compared on the {compared:,} of {len(real):,} real pairs whose clean text "
                "is also in the synthetic set"
            )
        return
    yield (
        "the sets share too few clean texts for a paired comparison: the AUC also measures "
        "how their topics differ (see the two clean sides); use --recipe, or noise the clean "
        "side of the real pairs"
    )
    if languages_differ(real.clean, synthetic.clean):
        yield "the clean sides look like texts in different languages"


def _examples(real: Pairs, synthetic: Pairs, is_paired: bool) -> Iterator[dict[str, str]]:
    """Yield clean texts with both noisy versions if the sets are paired, else with one of them."""
    if is_paired:
        triples = zip(real.clean, real.noisy, synthetic.noisy, strict=True)
        rows = [
            {"clean": clean, "real": ours, "synthetic": theirs}
            for clean, ours, theirs in triples
            if ours != clean != theirs
        ]
        yield from _spread(rows, EXAMPLES)
        return
    for name, pairs in (("real", real), ("synthetic", synthetic)):
        sides = zip(pairs.clean, pairs.noisy, strict=True)
        rows = [{"clean": clean, name: noisy} for clean, noisy in sides if noisy != clean]
        yield from _spread(rows, EXAMPLES // 2)


def _spread(rows: Sequence[dict[str, str]], most: int) -> Sequence[dict[str, str]]:
    """Return at most `most` rows, evenly spaced."""
    return rows[:: max(1, len(rows) // most)][:most]


def alongside(real: Pairs, synthetic: Pairs, limit: int) -> tuple[Pairs, Pairs, bool]:
    """Return equally large samples of both sets, and whether the sets are paired.

    Sets are paired if they share at least `PAIRED_MIN` clean texts, or all texts of the smaller
    set. Then row i of one sample has the same clean text as row i of the other.
    """
    # Clean text -> indices of its synthetic rows, the last row first: `pop` takes the first row
    partners_of: defaultdict[str, list[int]] = defaultdict(list)
    for number in reversed(range(len(synthetic))):
        partners_of[synthetic.clean[number]].append(number)
    ours: list[int] = []
    theirs: list[int] = []
    for number, text in enumerate(real.clean):
        if partners := partners_of.get(text):
            ours.append(number)
            theirs.append(partners.pop())
    if len(ours) >= min(PAIRED_MIN, len(real), len(synthetic)):
        return real.take(ours).sample(limit), synthetic.take(theirs).sample(limit), True
    most = min(len(real), len(synthetic), limit)
    return real.sample(most), synthetic.sample(most), False
