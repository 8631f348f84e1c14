"""Three sentences a model: what got better, what did not move, what got worse."""

from collections.abc import Iterator, Sequence

from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.report.findings import ALPHA, Findings, metric_of, verdict
from noisegen.evaluation.report.markup import bdi, paragraph, text
from noisegen.evaluation.report.wording import (
    KINDS,
    change,
    items,
    listed,
    p_value,
    several,
    signed,
)
from noisegen.evaluation.results import Comparison, Model

_NAMES_MAX = 3  # sets named in a clause
# What the first two sentences tell of a kind of set; the third leaves nothing out.
_HEADLINES = {
    "pairs": ("distance", "xsim_error"),
    "noise": ("distance", "xsim_error"),
    "sts": ("sts_clean", "sts_one_noisy", "sts_both_noisy"),
    "retrieval": ("accuracy_forward",),
    "classification": ("accuracy_clean", "accuracy_noisy"),
    "pair_classification": ("average_precision_clean", "average_precision_noisy"),
}
_LEADS = {"better": "Better", "same": "No difference shown", "worse": "Worse"}
_NOTHING = "nothing that was tested"


def content(found: Findings) -> str:
    """Return the verdict on every model that is not the baseline."""
    if not found.students:
        return paragraph("One model was evaluated; there is nothing to compare it with.")
    cards = "".join(_card(found, model) for model in found.students)
    note = (
        f"Against {bdi(found.baseline.name)}. A difference counts as shown where p &lt; {ALPHA:g} "
        "after Holm’s correction over the sets of one kind. The first two sentences tell the main "
        "figures, the third all that were tested."
    )
    return f'<div class="verdicts">{cards}</div>{paragraph(note, "quiet")}'


def _card(found: Findings, model: Model) -> str:
    compared = [one for one in found.results.comparisons if one.model == model.name]
    if compared:
        lines = [_sentence(found, compared, state) for state in _LEADS]
    else:
        lines = [paragraph("No test was run on it; the tables show bare differences.", "same")]
    head = f'<h3 class="{found.style(model.name)} named">{bdi(model.name)}</h3>'
    return f'<article class="card">{head}{"".join(lines)}{_drift(found, model)}</article>'


def _sentence(found: Findings, compared: Sequence[Comparison], state: str) -> str:
    kinds = {one.name: one.kind for one in found.results.datasets}
    main = [one for one in compared if one.metric in _HEADLINES.get(kinds.get(one.dataset, ""), ())]
    clauses = [] if state == "worse" else _clauses(found, main, state)
    said = "; ".join(clauses or _clauses(found, compared, state)) or _NOTHING
    return paragraph(f"<strong>{_LEADS[state]}:</strong> {said}.", state)


def _clauses(found: Findings, compared: Sequence[Comparison], state: str) -> list[str]:
    """Return 'cosine distance on all 3 natural sets (...) and on 11 of 13 kinds of noise (...)'."""
    tested = dict.fromkeys(one.metric for one in compared if metric_of(one.metric).better)
    clauses = []
    for metric in sorted(tested, key=_order):
        parts = list(_parts(found, [one for one in compared if one.metric == metric], state))
        if parts:
            clauses.append(f"{text(metric_of(metric).title)} on {' and on '.join(parts)}")
    return clauses


def _order(metric: str) -> int:
    return list(METRICS).index(metric)


def _parts(found: Findings, compared: Sequence[Comparison], state: str) -> Iterator[str]:
    """Yield, for every kind of set, on how many of them a metric is in this state."""
    for kind in KINDS:
        names = {one.name for one in found.datasets(kind)}
        tested = [one for one in compared if one.dataset in names]
        chosen = [one for one in tested if verdict(one) == state]
        if chosen:
            yield _part(found, kind, chosen, len(tested))


def _part(found: Findings, kind: str, chosen: Sequence[Comparison], tested: int) -> str:
    most = max(chosen, key=lambda one: abs(one.difference))
    if len(chosen) == 1:
        of = "" if tested == 1 else f", one of {several(tested, *KINDS[kind])}"
        return f"{bdi(most.dataset)}{of} {_aside(_evidence(found, most))}"
    if verdict(most) == "same":
        evidence = bdi(listed([one.dataset for one in chosen], _NAMES_MAX), 200)
    else:
        evidence = f"most on {bdi(most.dataset)}: {_evidence(found, most)}"
    sets = several(tested, *KINDS[kind])
    share = f"all {sets}" if len(chosen) == tested else f"{len(chosen)} of {sets}"
    return f"{share} {_aside(evidence)}"


def _aside(evidence: str) -> str:
    return f'<span class="quiet">({evidence})</span>'


def _evidence(found: Findings, one: Comparison) -> str:
    """Return the two figures, the items repaired and broken, and p where nothing was shown."""
    metric = metric_of(one.metric)
    models = found.baseline.name, one.model
    scores = [found.score(name, one.dataset, one.metric) for name in models]
    values = [score.value for score in scores if score]
    said = [change(metric, *values) if len(values) == 2 else signed(metric, one.difference)]
    said += [items(one)] if items(one) else []
    said += [p_value(one.p_holm)] if verdict(one) == "same" else []
    return text(", ".join(said))


def _drift(found: Findings, model: Model) -> str:
    drifts = found.values(model.name, found.datasets("pairs", "noise"), "drift")
    if not drifts:
        return ""
    drift = f"{sum(drifts) / len(drifts):.3f}"
    said = (
        f"Clean text moved by {drift} (clean drift, mean of {several(len(drifts), 'set', 'sets')})."
    )
    return paragraph(said, "quiet")
