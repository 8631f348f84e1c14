"""The three sentences of the report: what got better, what did not move, what got worse."""

import re
from dataclasses import replace

import pytest
from made_results import made

from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.page import page
from noisegen.evaluation.results import Comparison, Results


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


def test_one_model_alone_is_compared_with_nothing():
    assert "there is nothing to compare it with" in page(made(1, 2))
