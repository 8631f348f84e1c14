"""A recipe fitted to real pairs and judged on pairs that were kept from the fit."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from noisegen.errors import UsageError
from noisegen.realism import checks
from noisegen.realism.alignment import edits
from noisegen.realism.calibrated import Calibrated, Figure, Missing
from noisegen.realism.figures import HISTOGRAMS, NoiseFigures, divergences, measure
from noisegen.realism.fitting import ROUND_ROWS, Bench, fit, tiered
from noisegen.realism.kinds import kind_of
from noisegen.realism.noising import Noising, Tick
from noisegen.realism.pairs import Pairs
from noisegen.realism.scaling import factor_max, one_rate_each
from noisegen.realism.signatures import vector
from noisegen.recipe import Recipe

REAL_ROWS, JUDGED_ROWS = 10_000, 4_000
MISSING_SHARE = 0.01  # of the real edits, for a kind to be worth a line
MISSING_PART = 0.2  # of what the real pairs have: below it a kind counts as not expressed
EXAMPLES = 4
_JUDGE = 1  # added to the seed for the noise that is judged


def calibrate_pairs(
    recipe: Recipe, pairs: Pairs, label: str, noising: Noising, name: str, seed: int, rounds: int,
    tick: Tick | None = None,
) -> Calibrated:  # fmt: skip
    """Fit a recipe to pairs; raises UsageError if there is nothing to fit, or nothing to fit with.

    `label` stands for the pairs in the head of the file.
    """
    base = recipe.for_language(noising.lang)[0]
    if not factor_max(base):
        raise UsageError(f"recipe {recipe.name} has no p or rate above 0 that could be fitted")
    fitted, held = pairs.parted()
    for part, what in ((fitted, "to fit"), (held, "held back")):
        if part.noisy == part.clean:
            raise UsageError(f"{label}: none of the {len(part):,} pairs {what} differs")
    lang, part = noising.lang, fitted.sample(REAL_ROWS)
    real = vector(part.clean, part.noisy, lang)
    bench = Bench(fitted.sample(ROUND_ROWS).clean, noising, seed)
    found = fit(one_rate_each(base), real, bench, rounds, tick)
    made = replace(tiered(one_rate_each(base), found), name=name)
    judged = held.sample(JUDGED_ROWS)
    target = measure(judged.clean, judged.noisy, lang)
    sides = [
        measure(judged.clean, noising.noise(one, judged.clean, seed + _JUDGE), lang)
        for one in (base, made)
    ]
    whole = measure(part.clean, part.noisy, lang)
    figures = _figures(target, whole, *sides)
    missing = _missing(target, sides[1], part, lang)
    counts = {"fitted": len(fitted), "held_back": len(held), "judged": len(judged)}
    return Calibrated(
        made, figures, (*_head(recipe, label, lang, counts, figures, missing),),
        {"real": label, "pairs": counts}, missing, tuple(checks.warnings(pairs, lang)),
    )  # fmt: skip


def _figures(
    real: NoiseFigures, whole: NoiseFigures, given: NoiseFigures, reached: NoiseFigures
) -> tuple[Figure, ...]:
    """Return the figures; a divergence aims at that between two parts of the real pairs."""
    sides = real, given, reached
    shares = [
        Figure(title, *(float(getattr(side, name) or 0) for side in sides))
        for title, name in (("changed rows", "changed_share"), ("CER", "cer"), ("WER", "wer"))
    ]
    edits_a_row = Figure("edits per row", *(side.edits / side.rows for side in sides))
    apart = [divergences(real, side) for side in (whole, given, reached)]
    unlike = [
        Figure(f"{name.replace('_', ' ')}, divergence", *(one[name] for one in apart))
        for name in HISTOGRAMS
    ]
    return (*shares, edits_a_row, *unlike)


def _missing(
    real: NoiseFigures, made: NoiseFigures, pairs: Pairs, lang: str
) -> tuple[Missing, ...]:
    """Return the kinds of real edits that the recipe makes too seldom to speak of."""
    few = {
        kind: made.kinds[kind] / max(1, made.edits)
        for kind, count in real.kinds.items()
        if count >= MISSING_SHARE * real.edits and made.kinds[kind] < MISSING_PART * count
    }
    words = _words(pairs, few, lang)
    found = [
        Missing(kind, real.kinds[kind] / real.edits, share, words[kind])
        for kind, share in few.items()
    ]
    return tuple(sorted(found, key=lambda one: -one.share))


def _words(pairs: Pairs, kinds: Iterable[str], lang: str) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the most frequent edits of some kinds."""
    seen = {kind: Counter[tuple[str, str]]() for kind in kinds}
    for noisy, clean in zip(pairs.noisy, pairs.clean, strict=True):
        for edit in edits(clean, noisy) if noisy != clean else []:
            kind = kind_of(clean, noisy, edit, lang)
            if kind in seen:
                sides = (
                    clean[edit.clean_start : edit.clean_stop],
                    noisy[edit.noisy_start : edit.noisy_stop],
                )
                seen[kind][sides] += 1
    return {
        kind: tuple(one for one, _ in count.most_common(EXAMPLES)) for kind, count in seen.items()
    }


def _head(
    recipe: Recipe, label: str, lang: str, counts: dict[str, int],
    figures: Sequence[Figure], missing: Sequence[Missing],
) -> list[str]:  # fmt: skip
    lines = [
        f"{recipe.name} fitted to {label} ({lang}): {counts['fitted']:,} pairs; figures are of "
        f"{counts['judged']:,} of the {counts['held_back']:,} held back: real, as given, fitted"
    ]
    lines += [
        f"{one.name}: {one.target:.4f}, {one.given:.4f}, {one.reached:.4f}" for one in figures
    ]
    if missing:
        kinds = ", ".join(f"{one.kind} {one.share:.1%}" for one in missing)
        lines.append(f"real edits that this recipe hardly makes: {kinds}")
    return lines
