"""`noisegen quickstart`: from nothing to a student, a report and three honest lines."""

import dataclasses
import json

import pytest
import torch

import noisegen
from noisegen.cli import run
from noisegen.demo import quickstart as demo
from noisegen.demo.quickstart import (
    SHOWN_WORDS,
    Split,
    example_lines,
    headlines,
)
from noisegen.encoders.encoder import open_encoder
from noisegen.evaluation.results import Comparison, Dataset, Model, Results, Score
from noisegen.evaluation.similarity import cosine_distances
from noisegen.text.resources import EXAMPLE_PAIRS, rows_of

pytest.importorskip("gensim")


@pytest.fixture
def small(monkeypatch, tiny_bert, sentences):
    """The same with a tiny teacher and a little text."""
    split = Split(sentences[:200], sentences[200:230])
    monkeypatch.setattr(demo, "demo_texts", lambda: split)
    monkeypatch.setattr(demo, "TEACHER", str(tiny_bert))
    monkeypatch.setattr(demo, "SENTENCES", 20)


def test_one_command_makes_texts_pairs_student_and_report(small, tmp_path, capsys):
    out = tmp_path / "first"
    assert run(["quickstart", "-o", str(out), "--time-limit", "2s"]) == 0

    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert "distance of noisy to clean text" in said.err  # of the training run
    assert lines[0].startswith("distance of noisy text to its clean form: posts 0.")
    assert "under noise, unseen first: channel:rate=4 0." in lines[0]
    assert "documents" in lines[1]
    assert lines[2].startswith("worse: ")
    assert lines[3] == "the first short posts, teacher -> student:"
    assert lines[-1].endswith(str(out / "report" / "report.html"))
    assert 'class="m1 link' in (out / "report" / "report.html").read_text()
    assert noisegen.Manifest.load(out / "pairs").totals["rows"] == 200
    figures = json.loads((out / "report" / "metrics.json").read_text())
    assert {"sentences", "documents"} < figures["student"].keys()
    metrics = json.loads((out / "run" / "metrics.json").read_text())
    assert metrics["updates"] > 0


@pytest.mark.nightly
def test_json_is_that_of_the_report(small, tmp_path, capsys):
    out = tmp_path / "first"
    assert run(["quickstart", "-o", str(out), "--time-limit", "10s", "--json", "-q"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads((out / "report" / "metrics.json").read_text())


def test_a_folder_that_is_not_empty_is_refused(small, tmp_path, capsys):
    (tmp_path / "mine").write_text("kept")
    assert run(["quickstart", "-o", str(tmp_path), "-q"]) == 1
    assert "not empty" in capsys.readouterr().err
    assert (tmp_path / "mine").read_text() == "kept"


@pytest.mark.parametrize("name", ["texts", "pairs", "report"])
def test_force_removes_no_folder_that_only_has_the_name(small, tmp_path, capsys, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "mine").write_text("kept")
    assert run(["quickstart", "-o", str(tmp_path), "-q", "--force"]) == 1
    assert f"has {name}, but not from a quickstart" in capsys.readouterr().err
    assert (tmp_path / name / "mine").read_text() == "kept"


def test_force_keeps_files_of_others_beside_texts_of_this_name(small, tmp_path, capsys):
    for name, content in (("texts/training.txt", "mine\n"), ("report/metrics.json", "{}")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(content)

    assert run(["quickstart", "-o", str(tmp_path), "-q", "--force"]) == 1

    assert "has pairs" not in (said := capsys.readouterr().err)
    assert "but not from a quickstart: use another folder" in said
    assert (tmp_path / "texts" / "training.txt").read_text() == "mine\n"
    assert (tmp_path / "report" / "metrics.json").read_text() == "{}"


def results(*figures):
    """Results of two models on a noise `leet`, of a baseline's and a student's (metric, value)."""
    scores = {
        name: {
            "leet": {metric: Score(values[side]) for metric, *values, _ in figures[:3]},
            "news": {metric: Score(values[side]) for metric, *values, _ in figures[3:]},
            "posts": {"distance": Score((0.3, 0.1)[side]), "drift": Score((0.0, 0.01)[side])},
        }
        for side, name in enumerate(("minilm", "student"))
    }
    compared = tuple(
        Comparison("student", "leet" if number < 3 else "news", metric, after - before, "t", p, p)
        for number, (metric, before, after, p) in enumerate(figures)
    )
    models = Model("minilm", "minilm", 8, "", baseline=True), Model("student", "s", 8, "")
    sets = Dataset("leet", "noise", 9), Dataset("news", "sts", 9), Dataset("posts", "pairs", 9)
    return Results(models, sets, scores, compared)


FIGURES = (
    ("distance", 0.2, 0.08, 0.001),
    ("xsim_error", 4.0, 5.0, 0.4),
    ("drift", 0.0, 0.0123, 1.0),
    ("sts_clean", 80.0, 79.0, 0.001),
    ("sts_one_noisy", 60.0, 66.0, 0.001),
)


def test_the_three_lines_tell_what_is_better_and_what_is_not():
    noise, similarity, rest = headlines(results(*FIGURES))

    assert "clean form: posts 0.300 -> 0.100 (3.00 times nearer); under noise" in noise
    assert noise.endswith("unseen first: leet 0.200 -> 0.080 (2.50 times nearer)")
    assert (
        "news 80.0 -> 79.0 clean, 60.0 -> 66.0 noisy. Cost: clean vectors shift by 0.012"
        in similarity
    )
    assert rest.startswith("worse: STS, both clean on news 80.0 -> 79.0. No difference shown in 2 ")


def test_what_is_worse_is_never_left_out():
    worse = dataclasses.replace(
        results(*FIGURES),
        comparisons=tuple(
            Comparison("student", "leet", "distance", 0.1, "t", 0.0, 0.0) for _ in range(7)
        ),
    )
    assert "and 3 more" in headlines(worse)[2]


def test_a_small_change_is_shown_with_the_digits_that_differ():
    same = results(*FIGURES)
    for model, value in (("minilm", 0.00091), ("student", 0.00094)):
        same.scores[model]["leet"]["distance"] = Score(value)
    test = Comparison("student", "leet", "distance", 0.00003, "t", 0.0, 0.0)
    rest = headlines(dataclasses.replace(same, comparisons=(test,)))[2]
    assert "on leet 0.00091 -> 0.00094" in rest


def test_posts_are_told_by_rule_and_one_that_moved_away(tiny_bert):
    pairs = rows_of(EXAMPLE_PAIRS)
    teacher, student = open_encoder(str(tiny_bert)), open_encoder(str(tiny_bert))
    with torch.no_grad():
        for weight in student.parameters():
            weight.add_(0.05 * torch.randn(weight.shape, generator=torch.manual_seed(1)))
    told = example_lines(teacher, student, pairs)

    short = [f"{n}  ({c})" for n, c in pairs if len(c.split()) <= SHOWN_WORDS]
    assert [line.split("  ", 1)[1] for line in told[1:4]] == short[:3]
    moved = [distance(student, n, c) - distance(teacher, n, c) for n, c in pairs]
    noise, clean = pairs[moved.index(max(moved))]
    assert told[4] == f"moved away: {sum(m > 0 for m in moved)} of {len(pairs)}, farthest:"
    assert told[5].endswith(f"  {noise}  ({clean})")
    first, then = map(float, told[5].split("  ")[0].split(" -> "))
    assert first == pytest.approx(distance(teacher, noise, clean), abs=1e-3)
    assert then == pytest.approx(distance(student, noise, clean), abs=1e-3)


def distance(model, one, other):
    return float(cosine_distances(model.encode([one]), model.encode([other]))[0])


@pytest.mark.alone
def test_ten_minutes_make_a_robust_student(tmp_path):
    found = noisegen.quickstart(str(tmp_path / "first")).results.metrics()
    before, after = found["minilm"], found["student"]

    assert before["posts"]["distance"] / after["posts"]["distance"] >= 2
    noises = [name for name in after if "drift" in after[name]]
    nearer = {name: before[name]["distance"] / after[name]["distance"] for name in noises}
    assert nearer[demo.NOISE] >= 2
    assert min(nearer.values()) >= 1.15  # of noise that was not trained on
    assert max(after[name]["drift"] for name in noises) <= 0.01
    for name in ("sentences", "documents"):
        assert after[name]["sts_one_noisy"] > before[name]["sts_one_noisy"]
    assert after["documents"]["sts_clean"] - before["documents"]["sts_clean"] >= -0.5
    assert after["sentences"]["sts_clean"] >= 98.5  # of 100, the order of the teacher itself
