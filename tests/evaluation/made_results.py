"""Results as an evaluation yields them, made up: for tests of the report and for looking at it."""

from dataclasses import replace
from itertools import product
from math import exp, log

import numpy as np

from noisegen.evaluation.results import (
    Comparison,
    Dataset,
    Model,
    Projection,
    Results,
    Score,
    ShownPair,
    StrengthCurve,
)

NOISES = "leet fing mix_all spel spac vowl abr1 slng homo dysl cont abr2 week abr3 apos".split()  # noqa: SIM905
NOISES += "caps cens channel clip diac emot init intj join long mash phon punc rebus wiki".split()  # noqa: SIM905
_BASE = (0.302, 0.287, 0.263, 0.224, 0.184, 0.146, 0.12, 0.085, 0.075, 0.05, 0.031, 0.019, 0.004)
_MODELS = tuple(
    "minilm student char-student long-run deep wide noisy-mse collapsed".split()  # noqa: SIM905
)
_GAIN = (1.0, 0.52, 0.61, 0.45, 0.7, 0.66, 0.58, 0.15)  # factor on distance
_ERRORS = (1.0, 0.55, 0.8, 0.4, 0.9, 0.85, 0.75, 3.5)  # factor on xSIM errors
_DRIFT = (0.0, 0.024, 0.041, 0.029, 0.02, 0.022, 0.033, 0.31)
PAIRS = (
    ("I will call you back as soon as I get home.", "ill call u bak as soon as i get hme"),
    ("The train to Lisbon was forty minutes late again.", "teh trian to Lisbon was 40min late agn"),
    ("Does anybody know where the spare keys are?", "does any1 kno where teh spare keyz r"),
    (
        "She has never been to the sea before this summer.",
        "she has nevr been 2 the sea b4 dis summer",
    ),
    ("Please send me the figures by Thursday evening.", "pls snd me teh figures by thurs evenin"),
    (
        "The soup needs more salt and a little patience.",
        "the s0up n33ds more s4lt and a l1ttle pat1ence",
    ),
    ("We could not hear the speaker at the back.", "we couldnt here the speeker at the bak"),
    (
        "Nobody told the driver about the closed bridge.",
        "no body told the dirver about the closed brige",
    ),
)


def made(models: int = 3, noises: int = 13, *, seed: int = 7) -> Results:
    """Return results of so many models on so many kinds of noise, natural pairs and tasks."""
    draws = np.random.Generator(np.random.PCG64(seed))
    names = _MODELS[:models]
    datasets = (*_noises(noises), *_OTHERS)
    scores = {
        name: {one.name: _scores(one, place, draws) for one in datasets}
        for place, name in enumerate(names)
    }
    return Results(
        models=tuple(
            Model(
                name,
                name if not place else f"runs/{name}/student",
                384,
                f"{place:02d}" * 32,
                22_713_216,
                baseline=not place,
            )
            for place, name in enumerate(names)
        ),
        datasets=datasets,
        scores=scores,
        comparisons=_comparisons(names, datasets, scores),
        doses=_doses(names),
        examples=_examples(names),
        projections=(_projection(names, draws),),
        training=_training(draws) if models > 1 else None,
        settings={
            "command": "noisegen evaluate runs/student -o report --baseline minilm",
            "recipe": "mix_all",
            "seconds": 312.4,
            "options": {"transforms": "all", "seeds": 10, "k": 4, "margin": "ratio"},
            "versions": {"noisegen": "0.1.0", "torch": "2.13.0", "numpy": "2.4.0"},
        },
    )


def with_scores(results: Results, values: float | dict[str, float], *metrics: str) -> Results:
    """Return results with another value of metrics: one for all models, or one for each."""
    of = values if isinstance(values, dict) else dict.fromkeys(results.scores, values)
    scores = {
        model: {
            name: {m: Score(of[model]) if m in metrics else score for m, score in found.items()}
            for name, found in sets.items()
        }
        for model, sets in results.scores.items()
    }
    return replace(results, scores=scores)


_OTHERS = (
    Dataset("jfleg", "pairs", 747, 640, note="learners' sentences, first correction"),
    Dataset("cweb-g", "pairs", 1_200, 511),
    Dataset("vilexnorm", "pairs", 1_050, 1_043, note="Vietnamese comments"),
    Dataset("sts-dev", "sts", 1_500),
    Dataset("forum", "retrieval", 900),
    Dataset("topics", "classification", 2_000),
    Dataset("paraphrases", "pair_classification", 1_800),
)
_HEIGHT = {"jfleg": 0.052, "cweb-g": 0.028, "vilexnorm": 0.19, "forum": 0.11}
_TASKS = {
    "sts": {"sts_clean": 74.6, "sts_one_noisy": 50.5, "sts_both_noisy": 41.2},
    "classification": {
        "accuracy_clean": 88.1,
        "accuracy_noisy": 71.5,
        "f1_clean": 87.2,
        "f1_noisy": 69.8,
    },
    "pair_classification": {"average_precision_clean": 81.3, "average_precision_noisy": 66.0},
}


def _noises(count: int) -> tuple[Dataset, ...]:
    return tuple(Dataset(name, "noise", 1_000, 930, tuple(range(10))) for name in NOISES[:count])


def _scores(one: Dataset, place: int, draws: np.random.Generator) -> dict[str, Score]:
    if one.kind in _TASKS:
        return {
            name: _around(value + _moved(name, place), 1.4, draws)
            for name, value in _TASKS[one.kind].items()
        }
    height = _HEIGHT.get(one.name) or _of_noise(one.name)
    gain = _GAIN[place] if one.kind == "noise" else _GAIN[place] ** 0.6
    wrong = 26 * height * (_ERRORS[place] if one.kind == "noise" else _ERRORS[place] ** 0.1)
    distance = height * gain * exp(draws.normal(0, 0.05)) if place else height
    found = {
        "distance": _around(distance, 0.06 * distance, draws),
        "distance_changed": _around(1.08 * distance, 0.06 * distance, draws),
        "anchored_distance": _around(height * (1 + gain) / 2, 0.05 * height, draws),
        "xsim_error": _around(round(wrong, 1) if wrong > 0.4 else 0.0, 0.25 * wrong, draws),
        "xsim_hard_error": _around(3.1 * wrong + 4, 0.6 * wrong + 0.3, draws),
        "accuracy_forward": _around(100 - 1.2 * wrong, 0.3 * wrong, draws),
        "accuracy_backward": _around(100 - 1.4 * wrong, 0.3 * wrong, draws),
        "ttr_ratio": Score(1.18),
    }
    if place:
        found["drift"] = _around(_DRIFT[place] * exp(draws.normal(0, 0.08)), 0.001, draws)
    return found


def _of_noise(name: str) -> float:
    place = NOISES.index(name)
    return _BASE[place] if place < len(_BASE) else 0.02 + 0.011 * (place - len(_BASE))


def _moved(name: str, place: int) -> float:
    """Return how a task's figure differs from the baseline's."""
    return 0.0 if not place else 6.6 - 2 * place if "noisy" in name else -0.3 * place


def _around(value: float, reach: float, draws: np.random.Generator) -> Score:
    low = value - reach * (0.9 + 0.2 * draws.random())
    high = value + reach * (0.9 + 0.2 * draws.random())
    return Score(float(value), max(0.0, float(low)), float(high), float(reach / 2))


def _comparisons(
    names: tuple[str, ...],
    datasets: tuple[Dataset, ...],
    scores: dict[str, dict[str, dict[str, Score]]],
) -> tuple[Comparison, ...]:
    return tuple(
        _comparison(scores, name, one, metric)
        for name, one in product(names[1:], datasets)
        for metric in scores[name][one.name]
        if metric not in ("drift", "ttr_ratio")
    )


def _comparison(
    scores: dict[str, dict[str, dict[str, Score]]], name: str, one: Dataset, metric: str
) -> Comparison:
    before, after = scores["minilm"][one.name][metric], scores[name][one.name][metric]
    difference = after.value - before.value
    wide = (before.high or 0) - (before.low or 0) + (after.high or 0) - (after.low or 0)
    p = min(1.0, 2 * exp(-6 * abs(difference) / wide)) if wide else 1.0
    counts = metric.startswith(("xsim", "accuracy"))
    broken = round(one.rows * 0.01)
    repaired = max(0, broken - round(one.rows * difference / 100))
    return Comparison(
        name,
        one.name,
        metric,
        difference,
        "mcnemar" if counts else "bootstrap",
        p / 3,
        p,
        repaired if counts else None,
        broken if counts else None,
    )


def _doses(names: tuple[str, ...]) -> tuple[StrengthCurve, ...]:
    strengths = (0.0, 0.5, 1.0, 1.5, 2.0)
    return tuple(
        StrengthCurve(
            name,
            "mix_all",
            strengths,
            tuple(_GAIN[place] * 0.26 * (1 - exp(-1.1 * one)) for one in strengths),
            tuple(_ERRORS[place] * 5.2 * one**1.5 for one in strengths),
        )
        for place, name in enumerate(names)
    )


def _examples(names: tuple[str, ...]) -> tuple[ShownPair, ...]:
    found = []
    for place, (clean, noisy) in enumerate(PAIRS):
        kind = "repaired" if place < 5 else "broken"
        factor = 0.3 if kind == "repaired" else 0.95
        distances = {
            name: (0.61 - 0.03 * place) * (factor if number else 1) * (1 + 0.05 * number)
            for number, name in enumerate(names)
        }
        found.append(ShownPair(kind, ("jfleg", "mix_all")[place % 2], clean, noisy, distances))
    return tuple(found)


def _projection(names: tuple[str, ...], draws: np.random.Generator) -> Projection:
    clean = draws.normal(0, 0.28, (60, 2))
    moved = draws.normal(0, 0.16, (60, 2))
    points = {
        name: tuple(
            (float(a), float(b), float(a + _GAIN[place] * c), float(b + _GAIN[place] * d))
            for (a, b), (c, d) in zip(clean + _DRIFT[place], moved, strict=True)
        )
        for place, name in enumerate(names)
    }
    texts = tuple(PAIRS[number % len(PAIRS)] for number in range(60))
    return Projection("jfleg", texts, points, (0.093, 0.071), 0.64)


def _training(draws: np.random.Generator) -> dict[str, object]:
    log_rows: list[dict[str, float]] = []
    for step in range(10, 2_001, 10):
        noisy = 0.12 + 0.3 * exp(-step / 420) + float(draws.normal(0, 0.006))
        clean = 0.012 + 0.02 * exp(-step / 900) * (1 - exp(-step / 60))
        log_rows.append(
            {
                "step": step,
                "loss": noisy + clean,
                "loss_noisy": noisy,
                "loss_clean": clean,
                "lr": 1e-4 * min(1, step / 40, (2_000 - step) / 1_900),
                "pairs": step * 62,
                "seconds": step * 0.3,
            }
        )
        if step % 200 == 0:
            log_rows.append(
                {
                    "step": step,
                    "validation_loss": 0.2 - 0.011 * log(step),
                    "validation_loss_noisy": 0.18 - 0.011 * log(step),
                    "validation_loss_clean": 0.02,
                    "validation_drift": 0.018 + step / 4e5,
                    "validation_anchored": 0.2 - 0.009 * log(step),
                    "validation_distance": 0.21 - 0.012 * log(step),
                    "validation_xsim_error": 5.0,
                }
            )
    config = {
        "preset": "quickstart",
        "teacher": "minilm",
        "student": "copy",
        "objective": "two_term+0.2*info_nce",
        "recipe": "ugc",
        "seed": 0,
    }
    return {"config": config, "log": log_rows}
