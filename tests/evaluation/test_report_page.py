"""The report as HTML, without a browser: structure, escaping, figures, missing parts."""

import json
import re
from dataclasses import replace

import pytest
from made_results import made, with_scores
from read_page import ALL, Read

from noisegen.errors import OutputError
from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.page import page, write
from noisegen.evaluation.results import Comparison, Results, Score


@pytest.fixture(scope="module")
def results() -> Results:
    return made()


@pytest.fixture(scope="module")
def html(results) -> str:
    return page(results)


@pytest.fixture(scope="module")
def read(html) -> Read:
    return Read(html)


# Structure.


def test_all_sections_stand_in_their_order(read):
    assert read.sections == ALL


def test_contents_lead_to_every_section(read):
    links = [one["href"] for one in read.all("a") if one.get("class") != "skip"]
    assert links == [f"#{name}" for name in ALL]


def test_ids_are_unique(read):
    found = [one["id"] for _, one in read.tags if "id" in one]
    assert len(found) == len(set(found))


def test_every_chart_has_a_title_a_description_and_a_role(html):
    charts = re.findall(r"<svg ([^>]*)><title>([^<]*)</title>", html)
    assert len(charts) == html.count("<svg ")
    assert all('role="img"' in attributes and title for attributes, title in charts)
    assert html.count("<desc") == len(charts)


def test_every_table_has_a_caption_and_heads_with_scope(read, html):
    assert html.count("<caption>") == len(read.all("table")) > 10
    assert all(one.get("scope") in ("col", "row") for one in read.all("th"))


def test_no_two_wide_boxes_are_named_alike_by_accident_or_left_without_name(read):
    boxes = [one for one in read.all("div") if one.get("class") == "wide"]
    assert all(one["aria-label"] and one["tabindex"] == "0" for one in boxes)


def test_nothing_is_asked_from_elsewhere(html, read):
    assert not re.search(r"(?:https?:)?//[a-z]|@import|url\(", html)
    assert [one["href"] for one in read.all("link")] == ["data:,"]
    assert not any("src" in one for _, one in read.tags)


def test_the_policy_allows_its_own_style_and_script_alone(html, read):
    policy = next(one["content"] for one in read.all("meta") if "http-equiv" in one)
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not any("style" in one or "onclick" in one for _, one in read.tags)
    assert (html.count("<style>"), html.count("<script>")) == (1, 1)


def test_a_page_is_the_same_every_time(results, html):
    assert page(made()) == html


@pytest.mark.parametrize(("models", "noises"), [(1, 1), (2, 1), (1, 30), (8, 30), (3, 13)])
def test_any_number_of_models_and_noises_is_shown_in_little_room(models, noises):
    html = page(made(models, noises))
    assert Read(html).sections[0] == ("noise" if models > 1 else "natural")
    assert "nan" not in re.sub(r"<(style|script)>.*?</\1>", "", html, flags=re.S).lower().split()
    if models <= 3:
        assert len(html.encode()) < 1_500_000


# Figures.


def test_every_figure_in_the_table_equals_the_results(html, results):
    table = html[html.index("<caption><bdi>All figures") : html.index('<section id="again"')]
    rows = re.findall(r"<tr><th scope=\"row\"><bdi>(.*?)</bdi></th>(.*?)</tr>", table)
    shown = 0
    for dataset, cells in rows:
        name = re.search(r'<span title="(\w+)">', cells)[1]
        values = re.findall(r'<td class="(n|none)"(?: data-value="([^"]+)")?>', cells)
        assert len(values) == len(results.models)
        for model, (kind, value) in zip(results.models, values, strict=True):
            score = results.scores[model.name][dataset].get(name)
            assert (score is None) == (kind == "none")
            if score:
                shown += 1
                assert float(value) == score.value
                assert f">{METRICS[name].number(score.value)}<" in cells
    assert shown == sum(len(found) for sets in results.scores.values() for found in sets.values())


def test_the_chart_says_both_figures_of_every_noise(html, results):
    noise = html[html.index('<section id="noise"') : html.index('<section id="natural"')]
    for one in results.datasets:
        if one.kind == "noise":
            before, after = (
                METRICS["distance"].number(results.scores[model][one.name]["distance"].value)
                for model in ("minilm", "student")
            )
            assert f">{one.name}</text>" in noise
            assert f">{before} → {after}</text>" in noise


def test_the_table_of_natural_pairs_says_difference_p_and_items(results):
    scores = {**results.scores}
    one = Comparison("student", "jfleg", "xsim_error", -0.13, "mcnemar", 0.01, 0.0312, 14, 10)
    html = page(replace(results, scores=scores, comparisons=(one,)))
    natural = html[html.index('<section id="natural"') : html.index('<section id="map"')]
    cell = re.search(r'−0.13 <b class="better">better</b>.*?</div>', natural)[0]
    assert "p\u00a0=\u00a00.031" in cell
    assert "14 newly right, 10 newly wrong" in cell


def test_what_was_evaluated_stands_at_the_end(html):
    end = html.index('<section id="again"')
    for said in ("evaluated on", "2,000 steps", "torch 2.13.0", "22,713,216", "0101"):
        assert html.index(said) > end, said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.0, "XSIM error: 0 for every model on every set."),
        (0.1, "at most one error in 1,000 sentences for every model on every set"),
    ],
)
def test_a_chart_with_nothing_in_it_is_a_sentence(results, value, said):
    shown = page(with_scores(results, value, "xsim_error", "xsim_hard_error"))
    noise = shown[shown.index('<section id="noise"') : shown.index('<section id="natural"')]
    assert said.replace("XSIM", "xSIM") in noise
    assert noise.count("<h3>") == 1  # the distance alone is drawn
    assert "<bdi>xSIM error (%)</bdi></caption>" not in shown


def test_the_name_of_a_recipe_stands_above_its_chart(html, results):
    strength = html[html.index('<section id="strength"') : html.index('<section id="space"')]
    assert strength.index("<h3>mix_all</h3>") < strength.index("<svg")
    still = tuple(replace(one, xsim_error=(0.0,) * len(one.strengths)) for one in results.doses)
    shown = page(replace(results, doses=still))
    still = shown[shown.index('<section id="strength"') : shown.index('<section id="space"')]
    assert strength.count("<svg") == 2 * still.count("<svg") == 2
    assert "at most one error in 1,000 sentences at every strength" in still


def test_a_map_is_drawn_if_it_shows_most_of_what_tells_vectors_apart(html, results):
    assert "No map is drawn for jfleg: its two axes would show only 16%" in html
    wide = replace(results.projections[0], explained=(0.3, 0.2))
    assert "<h3>jfleg</h3>" in page(replace(results, projections=(wide,)))


def test_a_gold_score_that_is_the_baselines_own_is_named(results):
    assert "the gold score is" not in page(results)
    assert "the gold score is the similarity that minilm itself gives" in page(
        with_scores(results, 100.0, "sts_clean")
    )


def test_every_term_of_the_tables_is_explained_beside_them(html):
    for name in ("natural", "tasks"):
        section = html[html.index(f'<section id="{name}"') :]
        section = section[: section.index("</section>")]
        for metric in METRICS.values():
            if metric.gloss and f"<bdi>{metric.heading} " in section:
                assert f"{metric.title}: {html_of(metric.gloss)}".lower() in section.lower()


def html_of(text: str) -> str:
    return text.replace("'", "&#39;")


# What is missing.


def only(results: Results, **other) -> Results:
    empty = {
        "comparisons": (),
        "doses": (),
        "examples": (),
        "projections": (),
        "training": None,
        "settings": {},
    }
    return replace(results, **{**empty, **other})


def kinds(results: Results, *names: str) -> Results:
    return replace(results, datasets=tuple(one for one in results.datasets if one.kind in names))


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (["noise"], ["noise", "map", "drift", "figures", "again"]),
        (["pairs"], ["natural", "drift", "figures", "again"]),
        (["sts"], ["tasks", "figures", "again"]),
        ([], ["again"]),
    ],
)
def test_sections_without_data_are_left_out(results, names, left):
    assert Read(page(only(kinds(results, *names)))).sections == left


def test_figures_without_intervals_tests_or_number_are_shown_as_far_as_they_go(results):
    bare = {
        model: {
            name: {metric: Score(score.value) for metric, score in found.items()}
            for name, found in sets.items()
        }
        for model, sets in results.scores.items()
    }
    bare["student"]["leet"]["distance"] = Score(float("nan"), float("nan"), float("inf"))
    del bare["student"]["fing"]["distance"], bare["char-student"]["jfleg"]
    words = Read(page(only(results, scores=bare))).words
    assert "No test was run on it" in words
    assert "nan" not in words.split()
    assert "whisker" not in words


def test_models_without_a_mark_of_baseline_are_compared_with_the_first(results):
    models = tuple(replace(model, baseline=False) for model in results.models)
    assert "against minilm" in page(replace(results, models=models))


def test_a_metric_that_is_not_known_is_shown_by_its_name(results):
    scores = {
        name: {**sets, "jfleg": {"new_metric": Score(0.5)}} for name, sets in results.scores.items()
    }
    assert "new_metric" in Read(page(replace(results, scores=scores))).words


def test_the_end_says_how_long_a_student_learned(html):
    words = " ".join(Read(html).words.split())
    assert "recipe ugc, seed 0, 2,000 steps, 124,000 pairs, 10.0 minutes" in words


def test_one_step_is_no_steps(results):
    training = {"log": [{"step": 1, "pairs": 1, "seconds": 600}]}
    assert "1 step, 1 pair, 10.0 minutes" in page(replace(results, training=training))


def test_a_log_with_broken_rows_draws_the_others(results):
    log = [
        {},
        {"step": 1, "loss": float("nan")},
        {"step": None, "loss": 1.0},
        *({"step": n, "loss": 1 / n, "note": "x"} for n in range(1, 2_000)),
    ]
    html = page(replace(results, training={"log": log}))
    curve = re.search(r'<path class="m1 curve" d="([^"]+)"', html[html.index('id="learning"') :])
    assert 100 < curve[1].count("L") < 170


# The file.


def test_the_file_takes_its_name_when_it_is_whole(results, tmp_path):
    write(results, tmp_path / "report.html")
    assert [one.name for one in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text("utf-8") == page(results)


def test_a_folder_that_is_not_there_is_one_clear_line(results, tmp_path):
    with pytest.raises(OutputError, match=r"cannot write .*report\.html: "):
        write(results, tmp_path / "none" / "report.html")


def test_results_come_back_from_json_and_draw_the_same_page(tmp_path):
    results = made()
    again = Results.from_dict(json.loads(json.dumps(results.to_dict())))
    assert again == results
    for name, one in (("a", results), ("b", again)):
        write(one, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
