"""The three sentences of the report: what got better, what did not move, what got worse."""

import io
import re
from dataclasses import replace

import pytest
from made_results import made, with_scores
from rich.console import Console

from noisegen.evaluation.findings import Findings, render
from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.page import page
from noisegen.evaluation.results import Comparison, Dataset, Results, Score


@pytest.fixture(scope="module")
def results() -> Results:
    return made()


def comparison(metric: str, difference: float, p: float, dataset: str = "jfleg") -> Comparison:
    return Comparison("student", dataset, metric, difference, "bootstrap", p, p)


def sentences(results: Results, *comparisons: Comparison) -> list[str]:
    """Return the verdict on `student` as its three sentences."""
    html = page(replace(results, comparisons=comparisons))
    card = html[html.index('<article class="card">') : html.index("</article>")]
    plain = [re.sub("<[^>]*>", "", one) for one in re.findall(r"<p class=.*?</p>", card)]
    return plain[:3]


def test_the_verdict_sorts_by_direction_and_by_p_after_holm(results):
    better, same, worse = sentences(
        results,
        comparison("distance", -0.017, 0.001),
        comparison("xsim_error", -0.1, 0.4),
        comparison("accuracy_forward", -2.0, 0.002),
    )
    assert better.startswith("Better: cosine distance on jfleg")
    assert better.count(";") == 0
    assert same.startswith("No difference shown: xSIM error on jfleg")
    assert "p\u00a0=\u00a00.400" in same
    assert worse.startswith("Worse: retrieval accuracy, noisy to clean on jfleg")


def test_the_verdict_says_when_nothing_got_better(results):
    better, same, worse = sentences(results, comparison("distance", 0.02, 0.0001))
    assert better == "Better: nothing that was tested."
    assert same == "No difference shown: nothing that was tested."
    assert worse.startswith("Worse: cosine distance on jfleg")


def test_the_verdict_leaves_nothing_bad_out(results):
    names = [name for name, metric in METRICS.items() if metric.better]
    signs = {"low": 1.0, "high": -1.0}
    tests = [comparison(name, signs[METRICS[name].better], 0.001) for name in names]
    worse = sentences(results, *tests)[2]
    assert all(METRICS[name].title in worse for name in names)


def test_a_tiny_p_before_holm_does_not_count(results):
    one = Comparison("student", "jfleg", "distance", -0.01, "bootstrap", 0.001, 0.2)
    assert sentences(results, one)[0] == "Better: nothing that was tested."


def test_the_sets_of_a_kind_are_counted_and_the_widest_change_is_told(results):
    better, same, _ = sentences(
        results,
        *(
            comparison("distance", -0.1 if one == "leet" else -0.01, 0.001, one)
            for one in ("leet", "fing", "spel")
        ),
        comparison("distance", 0.001, 0.5, "homo"),
    )
    assert better.startswith(
        "Better: cosine distance on 3 of 4 kinds of noise (most on leet: 0.302"
    )
    assert "cosine distance on homo, one of 4 kinds of noise" in same


def test_a_gain_in_a_lesser_figure_is_told_where_there_is_no_other(results):
    better, _, _ = sentences(results, comparison("anchored_distance", -0.02, 0.001))
    assert better.startswith("Better: anchored distance on jfleg")


def test_a_model_without_tests_is_said_to_have_none(results):
    assert page(replace(results, comparisons=())).count("No test was run on it") == 2


@pytest.mark.parametrize(("floor", "within"), [(0.011, True), (0.009, False), (None, False)])
def test_a_difference_that_another_seed_makes_is_none(floor, within):
    noises = [one for one in made(2).datasets if one.kind == "noise"]
    tests = [replace(comparison("distance", -0.01, 0.001, one.name), floor=floor) for one in noises]
    found = replace(made(2), datasets=tuple(noises), comparisons=tuple(tests))
    said = "within the floor of another seed"
    better, same, _ = sentences(found, *tests)
    assert ("nothing that was tested" in better) == within
    assert (f"13 {said}" in same) == within
    assert (f"{said} on synthetic noise" in Findings(found).headline) == within
    assert bool(re.search(rf"best: \w+ \([^)]* lower, {said}\)", page(found))) == within
    assert ("floor 0.009" in page(found)) == (floor == 0.009)
    by_seeds = [replace(test, test="t") for test in tests]  # tested over the seeds themselves
    assert "13 kinds of noise" in sentences(found, *by_seeds)[0]


def test_one_model_alone_is_compared_with_nothing():
    assert "there is nothing to compare it with" in page(made(1, 2))


# The headline.


@pytest.mark.parametrize(
    ("distance", "said"),
    [
        (0.2, "1.5 times nearer on real noise"),
        (0.29, "about as near on real noise"),
        (0.6, "2.0 times farther on real noise"),
    ],
)
def test_the_headline_says_how_much_nearer_noisy_text_is(distance, said):
    found = with_scores(made(2), {"minilm": 0.3, "student": distance}, "distance")
    assert Findings(replace(found, comparisons=())).headline.startswith(f"student: {said}, ")


def test_the_headline_says_what_became_of_clean_text(results):
    two = made(2)
    assert Findings(two).headline.endswith(", clean text unharmed")
    far = with_scores(two, {"minilm": 0.0, "student": 0.06}, "drift")
    assert Findings(far).headline.endswith(", clean text shifted by 0.060")
    worse = comparison("sts_clean", -3.0, 0.001, "sts-dev")
    harmed = Findings(replace(two, comparisons=(worse,))).headline
    assert harmed.endswith(", clean text worse (STS, both clean)")
    own = with_scores(
        two, {"minilm": 100.0, "student": 97.0}, "sts_clean"
    )  # its gold is minilm's cosine
    assert Findings(replace(own, comparisons=(worse,))).headline.endswith("clean text unharmed")


def test_of_several_models_the_nearest_that_harms_no_clean_text_is_named():
    eight = made(8)  # the last one is nearest, but its vectors have collapsed
    assert re.match(r"long-run \(best of 7 models\): 1\.\d times nearer", Findings(eight).headline)


def test_a_difference_that_no_test_shows_is_none(results):
    tests = [comparison("distance", -0.1, 0.4, name) for name in ("jfleg", "cweb-g", "vilexnorm")]
    found = Findings(replace(made(2), comparisons=tuple(tests)))
    assert found.headline.startswith("student: no difference shown on real noise")


def test_a_small_difference_that_tests_show_is_said_to_be_small():
    near = with_scores(made(2), {"minilm": 0.3, "student": 0.29}, "distance")
    sets = ("jfleg", "cweb-g", "vilexnorm")
    better, worse = (
        [comparison("distance", by, 0.001, one) for one in sets] for by in (-0.01, 0.01)
    )
    for tests, said in (
        (better, "slightly nearer"),
        (better[:1] + worse[1:], "about as near"),
        (worse, "about as near"),
    ):
        found = Findings(replace(near, comparisons=tuple(tests)))
        assert found.headline.startswith(f"student: {said} on real noise")


@pytest.mark.parametrize(
    ("p", "said"),
    [
        (0.001, "student: nDCG@10 of noisy queries 75.0 instead of 72.0"),
        (0.4, "student: no difference shown in search with noisy queries"),
    ],
)
def test_the_headline_says_how_noisy_queries_are_answered(p, said):
    two = made(2)
    scores = {
        name: {"faq": {"ndcg_noisy": Score(ndcg)}}
        for name, ndcg in (("minilm", 72.0), ("student", 75.0))
    }
    test = comparison("ndcg_noisy", 3.0, p, "faq")
    sets = (Dataset("faq", "search", 9),)
    found = replace(two, datasets=sets, scores=scores, comparisons=(test,))
    assert Findings(found).headline.startswith(said)


def test_best_and_worst_noise_are_named_on_page_and_terminal():
    two = made(2)
    worst = {**two.scores["student"]["abr2"], "distance": Score(0.03)}
    scores = two.scores | {"student": two.scores["student"] | {"abr2": worst}}
    found = replace(two, scores=scores)
    best = r"best: \w+ \(0\.\d+ to 0\.\d+, \d\.\d times lower\);"
    said = rf"{best}\s+worst: abr2 \(0\.019 to 0\.030, 1\.6 times higher"
    shown = io.StringIO()
    render(found, Console(file=shown, width=80))
    assert shown.getvalue().startswith(Findings(found).headline)
    assert re.search(said, shown.getvalue())
    html = page(found)
    assert f"<h1>{Findings(found).headline}</h1>" in html
    assert re.search(said, html)


def test_one_name_stands_for_the_model_throughout():
    two = made(2)
    shown = io.StringIO()
    render(two, Console(file=shown, width=200))
    assert "natural pairs: minilm → student" in shown.getvalue()
    html = page(two)
    assert "How student learned" in html
    assert "the model " not in re.sub("<(style|script)>.*?</\\1>", "", html, flags=re.DOTALL)
