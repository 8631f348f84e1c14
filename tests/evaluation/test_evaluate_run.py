"""An evaluation as a whole: files, figures that simple code confirms, comparisons, bad models."""

import csv
import io
import json
import shutil
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from brute_force import matching, xsim_predictions
from rich.console import Console

from noisegen.encoders.encoder import Ragged, Vectors, open_encoder
from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.evaluation.evaluate import evaluate
from noisegen.evaluation.findings import render, verdict
from noisegen.evaluation.measure import Measured, VectorStore, compare, measure, scores
from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.models import named_models, training_of
from noisegen.evaluation.negatives import PublishedNegatives, hard_negatives
from noisegen.evaluation.results import Comparison, EvaluateOptions
from noisegen.evaluation.sets import PairSet, TextSet, make_sets
from noisegen.evaluation.similarity import classify, unit
from noisegen.evaluation.statistics import one_sample_t
from noisegen.options import decode

SEARCHED = {"xsim_error", "xsim_error_reverse", "accuracy_forward", "accuracy_backward"}


class Letters:
    """Texts to counts of letters, remembering what it was asked for."""

    name, digest = "letters", "0"

    def __init__(self, width: int = 128, shift: int = 0) -> None:
        self.width, self.shift = width, shift
        self.asked: list[str] = []

    def encode(self, texts, progress=None) -> Vectors:
        self.asked += texts
        made = np.zeros((len(texts), self.width), np.float32)
        for row, text in enumerate(texts):
            for place, mark in enumerate(text):
                made[row, (ord(mark) * (self.shift + 1)) % self.width] += 1 + 0.01 * place
        return made + 1e-3


@pytest.fixture(scope="session")
def clean(demo) -> list[str]:
    return [row["text"] for row in demo if row["lang"] == "en"][:40]


@pytest.fixture(scope="session")
def noisy(clean) -> list[str]:
    return [
        text.lower().replace("e", "3", 2) if row % 4 else text for row, text in enumerate(clean)
    ]


@pytest.fixture(scope="session")
def pairs_file(tmp_path_factory, clean, noisy):
    path = tmp_path_factory.mktemp("pairs") / "posts.tsv"
    rows = [f"{one}\t{other}" for one, other in zip(noisy, clean, strict=True)]
    path.write_text("\n".join(["noisy\tclean", *rows]) + "\n", "utf-8")
    return str(path)


@pytest.fixture(scope="session")
def files(tmp_path_factory, clean, noisy):
    """A source of each other kind."""
    root = tmp_path_factory.mktemp("files")
    half = len(clean) // 2
    tables = {
        "news.tsv": [("text",), *((text,) for text in clean)],
        "sts.tsv": [
            ("sentence1", "sentence2", "score"),
            *((*two, row % 5) for row, two in enumerate(zip(clean, noisy, strict=True))),
        ],
        "match.tsv": [("source", "target"), *zip(clean, noisy, strict=True)],
        "topics.tsv": [
            ("text", "label"),
            *((text, "ab"[row < half]) for row, text in enumerate(clean)),
        ],
        "same.tsv": [
            ("sentence1", "sentence2", "label"),
            *((text, noisy[row - row % 2], 1 - row % 2) for row, text in enumerate(clean)),
        ],
    }
    for name, rows in tables.items():
        lines = ["\t".join(map(str, row)) for row in rows]
        (root / name).write_text("\n".join(lines) + "\n", "utf-8")
    return {name.partition(".")[0]: str(root / name) for name in tables}


@pytest.fixture(scope="module")
def run(tmp_path_factory, tiny_models, pairs_file, files):
    """Two tiny models on every kind of set."""
    out = tmp_path_factory.mktemp("report")
    models = [f"first={tiny_models()}", f"second={tiny_models(seed=1)}"]
    results = evaluate(
        models,
        out,
        pairs=pairs_file,
        source=files["news"],
        transforms="leet,ugc",
        seeds=2,
        sts=files["sts"],
        retrieval=files["match"],
        labelled=(files["topics"], files["same"]),
    )
    return results, out


def test_all_kinds_of_sets_have_their_figures(run):
    results, _ = run
    kinds = {one.name: one.kind for one in results.datasets}
    assert kinds == {
        "posts": "pairs",
        "sts": "sts",
        "match": "retrieval",
        "topics": "classification",
        "same": "pair_classification",
        "leet": "noise",
        "ugc": "noise",
    }
    found = results.scores["second"]
    assert {"distance", "drift", "anchored_distance", "xsim_hard_error"} <= set(found["posts"])
    assert set(found["sts"]) == {"sts_clean", "sts_one_noisy", "sts_both_noisy"}
    assert set(found["match"]) == SEARCHED | {"accuracy_both"}
    assert {"accuracy_clean", "f1_noisy", "class_similarity"} <= set(found["topics"])
    assert len(found["leet"]["distance"].seeds) == 2
    assert results.baseline.name == "first"
    assert "ttr_ratio" in results.scores["first"]["posts"]


def test_the_files_say_what_the_results_say(run):
    results, out = run
    assert json.loads((out / "metrics.json").read_text()) == results.metrics()
    assert json.loads((out / "results.json").read_text())["settings"]["seeds"] == 2
    assert "</html>" in (out / "report.html").read_text()
    with (out / "metrics.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(m) for sets in results.scores.values() for m in sets.values())
    for row in rows:
        score = results.scores[row["model"]][row["dataset"]][row["metric"]]
        assert float(row["value"]) == score.value
    assert not [path for path in out.iterdir() if path.suffix == ".tmp"]


def test_means_over_sets_and_the_sets_in_which_a_model_is_best(tmp_path, tiny_models, files, clean):
    """As in tables over languages: a model's mean, and in how many of them no other is better."""
    languages = []
    for number, lang in enumerate(("de", "fr", "tr")):
        path = tmp_path / f"en-{lang}.tsv"
        rows = [(text, text[number:] + text[:number]) for text in clean[: 20 + number]]
        path.write_text("".join(f"{one}\t{other}\n" for one, other in rows))
        languages.append(str(path))
    models = [f"first={tiny_models()}", f"second={tiny_models(seed=1)}"]
    results = evaluate(
        models, tmp_path / "report", retrieval=tuple(languages), labelled=(files["topics"],)
    )
    with (tmp_path / "report" / "means.csv").open(newline="") as file:
        found = {(row["kind"], row["metric"], row["model"]): row for row in csv.DictReader(file)}
    values = {
        name: [sets[lang]["accuracy_both"].value for lang in sets if lang != "topics"]
        for name, sets in results.scores.items()
    }
    for name, sets in results.scores.items():
        one = next(iter(sets.values()))
        there, back = (one[f"accuracy_{way}"].value for way in ("forward", "backward"))
        assert one["accuracy_both"].value == pytest.approx((there + back) / 2)
        row = found["retrieval", "accuracy_both", name]
        assert (row["sets"], float(row["mean"])) == ("3", pytest.approx(np.mean(values[name])))
        best = sum(
            value == max(pair) for value, *pair in zip(values[name], *values.values(), strict=True)
        )
        assert row["best"] == str(best)
        one = found["classification", "class_similarity", name]
        assert float(one["mean"]) == sets["topics"]["class_similarity"].value


def test_the_figures_of_pairs_are_those_of_their_definitions(run, tiny_models, clean, noisy):
    """The slow, obvious way: each text encoded by itself, cosines one by one."""
    results, _ = run
    models = {
        name: open_encoder(str(tiny_models(seed=seed)))
        for seed, name in enumerate(("first", "second"))
    }

    @cache
    def vector(name, text):
        return models[name].encode([text])[0].astype(np.float64)

    def distance(one, other):
        return 1 - one @ other / np.linalg.norm(one) / np.linalg.norm(other)

    def mean(name, left, right, anchor):
        pairs = zip(left, right, strict=True)
        return np.mean([distance(vector(name, a), vector(anchor, b)) for a, b in pairs])

    for name in models:
        found = {key: one.value for key, one in results.scores[name]["posts"].items()}
        assert found["distance"] == pytest.approx(mean(name, noisy, clean, name), abs=1e-6)
        assert found["anchored_distance"] == pytest.approx(
            mean(name, noisy, clean, "first"), abs=1e-6
        )
        assert found["drift"] == pytest.approx(mean(name, clean, clean, "first"), abs=1e-6)
        changed = [pair for pair in zip(noisy, clean, strict=True) if pair[0] != pair[1]]
        assert found["distance_changed"] == pytest.approx(
            mean(name, *zip(*changed, strict=True), name), abs=1e-6
        )


def test_noisy_text_is_searched_in_a_pool_of_other_clean_text(
    tmp_path, tiny_models, pairs_file, clean, noisy
):
    pool = [*(f"{text} again" for text in clean), noisy[1], clean[0], "a b", "a b", "\t"]
    (tmp_path / "pool.txt").write_text("\n".join(pool) + "\n", "utf-8")
    models = [f"first={tiny_models()}", f"second={tiny_models(seed=1)}"]
    given = {"pairs": pairs_file, "pool": str(tmp_path / "pool.txt"), "hard": False}
    results = evaluate(models, tmp_path / "report", **given)

    for seed, name in enumerate(("first", "second")):
        encode = open_encoder(str(tiny_models(seed=seed))).encode
        lines = [*clean, *dict.fromkeys(pool[:-1])]
        found = np.argmax(unit(encode(noisy)) @ unit(encode(lines)).T, axis=1)
        right = [lines[line] == text for line, text in zip(found, clean, strict=True)]
        score = results.scores[name]["posts"]["accuracy_pool"]
        assert score.value == pytest.approx(100 * np.mean(right))
        assert score.low < score.value < 100
        assert score.value < results.scores[name]["posts"]["accuracy_forward"].value
    [dataset] = results.datasets
    assert dataset.note == "42 other sentences in the pool"
    test = next(one for one in results.comparisons if one.metric == "accuracy_pool")
    assert test.test == "mcnemar"


def test_a_pool_needs_pairs(tmp_path, files):
    with pytest.raises(UsageError, match="--pool is for natural pairs: give --pairs"):
        evaluate(["minilm"], tmp_path, pool=files["news"], sts=files["sts"])


def test_an_interval_holds_its_figure(run):
    results, _ = run
    found = [one for sets in results.scores.values() for m in sets.values() for one in m.values()]
    with_interval = [one for one in found if one.low is not None]
    assert len(with_interval) > 20
    assert all(one.low - 1e-9 <= one.value <= one.high + 1e-9 for one in with_interval)


def test_every_comparison_has_the_difference_of_its_figures(run):
    results, _ = run
    for one in results.comparisons:
        ours, theirs = (
            results.scores[name][one.dataset][one.metric].value for name in ("second", "first")
        )
        assert one.difference == pytest.approx(ours - theirs, abs=1e-9)
        assert 0 < one.p <= one.p_holm <= 1
    tests = {(one.dataset, one.metric): one.test for one in results.comparisons}
    assert tests["posts", "xsim_error"] == "mcnemar"
    assert tests["leet", "xsim_error"] == "bootstrap"
    assert tests["sts", "sts_one_noisy"] == "bootstrap"


def test_a_model_against_itself_differs_in_nothing(tmp_path, tiny_models, pairs_file):
    models = [f"one={tiny_models()}", f"other={tiny_models()}/."]
    results = evaluate(models, tmp_path, pairs=pairs_file)
    assert results.comparisons
    for one in results.comparisons:
        assert (one.difference, one.p, one.p_holm) == (0, 1, 1)
        assert one.repaired in (None, 0)


def test_doses_begin_at_nothing(run):
    results, _ = run
    assert {(one.model, one.dataset) for one in results.doses} == {
        ("first", "ugc"),
        ("second", "ugc"),
    }
    for one in results.doses:
        assert one.distance[0] == pytest.approx(0, abs=1e-6)
        assert one.distance[0] < one.distance[1] < one.distance[3]


def test_examples_and_maps_show_natural_pairs(run):
    results, _ = run
    repaired = [one for one in results.examples if one.kind == "repaired"]
    gains = [one.distances["first"] - one.distances["second"] for one in repaired]
    assert gains == sorted(gains, reverse=True)
    assert all(gain > 0 for gain in gains)
    broken = [one.distances["second"] for one in results.examples if one.kind == "broken"]
    assert broken == sorted(broken, reverse=True)
    [projection] = results.projections
    assert projection.dataset == "posts"
    assert set(projection.points) == {"first", "second"}


def test_models_of_another_width_have_no_drift_and_it_is_said(tmp_path, tiny_models, pairs_file):
    models = [f"wide={tiny_models()}", f"narrow={tiny_models(16, 1)}"]
    results = evaluate(models, tmp_path, pairs=pairs_file)
    assert not {"drift", "anchored_distance"} & set(results.scores["narrow"]["posts"])
    assert "distance" in results.scores["narrow"]["posts"]
    assert "narrow has 16 numbers per vector, wide 32: no drift" in results.settings["notes"][0]


def test_one_model_alone_is_its_own_baseline(tmp_path, tiny_models, pairs_file):
    results = evaluate(
        str(tiny_models()), tmp_path / "new" / "report", pairs=pairs_file, hard=False
    )
    assert len(results.models) == 1
    assert not results.comparisons
    assert {one.kind for one in results.examples} == {"broken"}
    assert "xsim_hard_error" not in next(iter(results.scores.values()))["posts"]


def test_paper_stats_compare_seeds_by_t_tests(tmp_path, tiny_models, files):
    models = [str(tiny_models()), str(tiny_models(seed=1))]
    results = evaluate(
        models,
        tmp_path,
        source=files["news"],
        transforms="leet",
        seeds=3,
        paper_stats=True,
        hard=False,
    )
    assert {one.test for one in results.comparisons} == {"t"}
    for of_model in results.scores.values():
        for metric in ("distance", "xsim_error"):
            score = of_model["leet"][metric]
            assert score.p_null == pytest.approx(one_sample_t(score.seeds, 0))
    ratio = results.scores[results.baseline.name]["leet"]["ttr_ratio"]
    assert ratio.p_null == pytest.approx(one_sample_t(ratio.seeds, 1))
    report = (tmp_path / "report.html").read_text()
    distance = results.scores[results.baseline.name]["leet"]["distance"]
    assert f"{METRICS['distance'].number(distance.value)}*" in report


def test_floors_are_what_other_seeds_change_of_a_figure(run):
    results, out = run
    written = json.loads((out / "metrics.json").read_text())
    floors = {}
    for name in ("first", "second"):
        one, other = results.scores[name]["leet"]["distance"].seeds
        floors[name] = abs(one - other) / 2**0.5
        assert written[name]["leet"]["distance_floor"] == pytest.approx(floors[name])
        assert "distance_floor" not in written[name]["posts"]  # people's noise has no seeds
    with (out / "metrics.csv").open(newline="") as file:
        rows = {(row["model"], row["dataset"], row["metric"]): row for row in csv.DictReader(file)}
    assert float(rows["second", "leet", "distance"]["floor"]) == pytest.approx(floors["second"])
    test = next(one for one in results.comparisons if one.dataset == "leet")
    assert test.metric == "distance"
    assert test.floor == pytest.approx(max(floors.values()))


@pytest.mark.parametrize("seeds", [1, 2])
def test_with_one_seed_it_is_said_that_there_is_no_floor(tmp_path, tiny_models, files, seeds):
    results = evaluate(
        [str(tiny_models())],
        tmp_path,
        source=files["news"],
        transforms="leet",
        seeds=seeds,
        hard=False,
    )
    shown = io.StringIO()
    render(results, Console(file=shown, width=200))
    report = (tmp_path / "report.html").read_text()
    for text in (shown.getvalue().lower(), report.lower()):
        assert ("--seeds 2 does" in text) == (seeds == 1)
        assert ("with other noise seeds and nothing else" in text) == (seeds == 2)
    lines = [line.split() for line in shown.getvalue().splitlines()]
    floor = results.scores[results.baseline.name]["leet"]["distance"].floor
    assert [line[1] for line in lines if line[:1] == ["floor"]] == (
        [f"{floor:.3f}"] if seeds == 2 else []
    )


def test_stars_of_the_paper_are_before_holm(clean, noisy):
    """Thirteen kinds of noise: what is below .05 alone is often not below .05 / 13."""
    one = Comparison("m", "leet", "distance", -0.1, "t", 0.02, 0.26)
    assert one.p_shown == 0.02
    assert verdict(one) == "better"
    other = replace(one, test="bootstrap")
    assert other.p_shown == 0.26
    assert verdict(other) == "same"


def test_type_token_ratios_need_only_pieces(clean, noisy):
    """LASER2 has no tokenizer: it splits into pieces itself, with an end token."""

    class Pieces(Letters):
        def tokenize(self, texts):
            return Ragged.of([[*(ord(mark) for mark in text), 2] for text in texts])

    found = measure(PairSet("a", "pairs", clean, (noisy,), "a"), VectorStore(Pieces())).seeds
    slow = [100 * len(set("".join(side))) / len("".join(side)) for side in (noisy, clean)]
    assert found["ttr_noisy"] == (pytest.approx(slow[0]),)
    assert found["ttr_clean"] == (pytest.approx(slow[1]),)
    assert found["tokens_clean"] == (len("".join(clean)),)
    assert found["tokens_noisy"] == (len("".join(noisy)),)
    assert found["ttr_ratio"] == (pytest.approx(slow[0] / slow[1]),)


def test_a_classifier_trains_on_the_file_given_and_as_many_texts_as_asked(clean, noisy, tmp_path):
    files = {}
    for name, texts in (("train", noisy), ("test", clean)):
        rows = ["text\tlabel", *(f"{text}\t{len(text) % 3}" for text in texts)]
        files[name] = tmp_path / f"{name}.tsv"
        files[name].write_text("\n".join(rows) + "\n", "utf-8")
    given = {"models": "x", "out": "x", "labelled": str(files["test"]), "recipe": "leet"}
    options = {"labelled_train": str(files["train"]), "samples_per_label": 5}
    [found] = make_sets(decode(EvaluateOptions, given | options), lambda event: None).sets
    store = VectorStore(Letters())
    labels = [[str(len(text) % 3) for text in texts] for texts in (noisy, clean)]
    wanted = classify(
        store(noisy), labels[0], {"clean": store(clean)}, labels[1], samples_per_label=5
    )

    assert list(found.columns["clean"]) == clean  # all of the file is for testing
    accuracy = measure(found, store).seeds["accuracy_clean"]
    assert accuracy == (pytest.approx(wanted["clean"].accuracy),)
    with pytest.raises(UsageError, match="--labelled-train is for labelled texts"):
        decode(EvaluateOptions, {**given, "labelled": [], "sts": "x", "labelled_train": "x"})


@pytest.mark.parametrize("chars", [8_000, pytest.param(100_000, marks=pytest.mark.nightly)])
def test_a_very_long_text_goes_through(tmp_path, tiny_models, chars):
    long = "so long " * (chars // 8)
    path = tmp_path / "long.tsv"
    path.write_text(f"noisy\tclean\n{long}x\t{long}\nhi\thello\nyo\tyes 12\n", "utf-8")
    results = evaluate([str(tiny_models())], tmp_path / "out", pairs=str(path))
    assert results.datasets[0].rows == 3
    assert (tmp_path / "out" / "report.html").stat().st_size < 1_000_000


# The parts.


def test_a_text_is_encoded_once(clean, noisy):
    encoder = Letters()
    store = VectorStore(encoder)
    one = PairSet("a", "pairs", clean, (noisy, clean), "a", negatives=hard_negatives(clean))
    measure(one, store, store(clean))
    measure(one, store)
    assert len(encoder.asked) == len(set(encoder.asked)) == len(set(one.texts()))


def test_a_store_gives_what_the_encoder_gives_whatever_it_forgot(clean):
    encoder, store = Letters(), VectorStore(Letters(), cache_bytes=4 * 128 * 7)
    for start in range(0, len(clean), 3):
        texts = [*clean[start : start + 4], clean[0], clean[start]]
        np.testing.assert_array_equal(store(texts), encoder.encode(texts))
    assert store.cached <= 7


def measured(one: PairSet, encoder: Letters, anchor: Letters) -> dict[str, Measured]:
    return {one.name: measure(one, VectorStore(encoder), VectorStore(anchor)(one.clean))}


def test_holm_corrects_over_the_sets_of_a_kind(clean, noisy):
    sets = [
        PairSet(f"n{seed}", "noise", clean, (noisy[seed:] + clean[:seed],), "g", (seed,))
        for seed in range(3)
    ]
    sides = [{}, {}]
    for one in sets:
        for side, encoder in zip(sides, (Letters(64, 1), Letters(64)), strict=True):
            side |= measured(one, encoder, Letters(64))
    found = compare(sets, "ours", sides[0], sides[1])
    for metric in ("distance", "xsim_error"):
        family = [one for one in found if one.metric == metric]
        assert len(family) == 3
        least = min(family, key=lambda one: one.p)
        assert least.p_holm == pytest.approx(min(1, 3 * least.p))


def test_no_errors_at_all_leave_room_for_some(clean):
    one = PairSet("a", "pairs", clean, (clean,), "a")
    found = scores([one], measured(one, Letters(), Letters()))["a"]["xsim_error"]
    assert (found.value, found.low) == (0, 0)
    assert found.high > 0.5


def test_translations_are_searched_with_a_model_per_side(clean, noisy):
    """Table 6 of RoLASER: the student's English against LASER's other language, both ways."""
    one = TextSet("t", "retrieval", {"source": noisy, "target": clean})
    student, laser = Letters(48, 1), Letters(48)
    found = measure(one, VectorStore(student), targets=VectorStore(laser)).seeds
    x, y = student.encode(noisy).tolist(), laser.encode(clean).tolist()

    def errors(xs, ys, texts):
        wrong = [texts[j] != texts[i] for i, j in enumerate(xsim_predictions(xs, ys, 4, "ratio"))]
        return 100 * sum(wrong) / len(wrong)

    assert found["xsim_error"] == (pytest.approx(errors(x, y, clean)),)
    assert found["xsim_error_reverse"] == (pytest.approx(errors(y, x, noisy)),)
    assert found["accuracy_forward"] == (pytest.approx(100 * np.mean(matching(x, y))),)
    alone = measure(one, VectorStore(student)).seeds
    assert alone["xsim_error"] < found["xsim_error"], "the two models differ"


def test_the_target_model_encodes_the_targets_of_all_models(tmp_path, tiny_models, files):
    first, second = str(tiny_models()), str(tiny_models(seed=1))
    given = {"retrieval": files["match"], "target_model": first}
    results = evaluate([f"a={first}", f"b={second}"], tmp_path / "two", **given)
    both = evaluate([f"a={first}", f"b={second}"], tmp_path / "own", retrieval=files["match"])

    assert results.datasets[0].note == f"target side encoded by {first}"
    assert results.scores["a"] == both.scores["a"]
    assert results.scores["b"]["match"] != both.scores["b"]["match"]
    with pytest.raises(
        UsageError, match=r"b has 16 numbers per vector, --target-model .* 32: they"
    ):
        evaluate([f"b={tiny_models(16, 1)}"], tmp_path / "no", **given)
    with pytest.raises(UsageError, match="--target-model is for translations: give --retrieval"):
        evaluate([first], tmp_path / "no", sts=files["sts"], target_model=first)


def write_xsim_files(folder, clean):
    """Write what xSIM++ published: lines, and their sentence and type; two are of other text."""
    made = [(f"{text} Not.", text, "Causality Alternation") for text in clean[::2]]
    made += [(text.replace("a", "o", 3), text, "EntityReplacement") for text in clean]
    made += [("Of another set.", "Some sentence.", "Number"), ("And more.", "Some.", "Number")]
    made = list({line: (line, *rest) for line, *rest in made if line not in clean}.values())
    lines = [line for line, *_ in made]
    (folder / "eng_Latn_augmented.devtest").write_text("\n".join([*lines, lines[0]]) + "\n")
    path = folder / "eng_Latn_errtype.devtest.json"
    path.write_text(json.dumps({line: {"src": src, "errtype": kind} for line, src, kind in made}))
    return str(path), made


def test_the_lines_of_xsim_are_searched_and_their_types_counted(tmp_path, clean, noisy):
    """By LASER's rules: all lines after the sentences, wrong by text, types by the JSON file."""
    path, made = write_xsim_files(tmp_path, clean)
    hard = PublishedNegatives.read(path).made_from(clean)
    lines = [*clean, *(line for line, src, _ in made if src in clean), made[0][0]]
    assert hard.texts == lines[len(clean) :]
    assert hard.note == "published with xSIM++, 2 more for other sentences"
    encoder = Letters(24)
    found = measure(
        PairSet("a", "pairs", clean, (noisy,), "a", negatives=hard), VectorStore(encoder)
    ).seeds
    counts = lost_by_type(encoder.encode(noisy), encoder.encode(lines), lines, made)
    assert_lost(found, counts, clean)


def lost_by_type(x, y, lines, made):
    """Return how many x find another line than their own, by the type of what they find."""
    types, counts = {line: (src, kind) for line, src, kind in made}, Counter()
    for row, at in enumerate(xsim_predictions(x.tolist(), y.tolist(), 4, "ratio")):
        if lines[at] != lines[row]:
            src, kind = types.get(lines[at], ("", ""))
            counts[kind.lower()[:6] if src == lines[row] else "misaligned"] += 1
    return counts


def assert_lost(found, counts, clean):
    assert found["xsim_hard_error"] == (pytest.approx(100 * counts.total() / len(clean)),)
    for kind, name in (("causal", "causality"), ("entity", "entity")):
        assert found[f"xsim_hard_{name}"] == (pytest.approx(100 * counts[kind] / len(clean)),)
    assert found["xsim_hard_misaligned"] == (pytest.approx(100 * counts["misaligned"] / 40),)
    assert counts["entity"]


@pytest.mark.parametrize("english", ["source", "target"])
def test_translations_are_searched_among_the_lines_of_xsim(tmp_path, clean, noisy, english):
    """xSIM++: foreign sentences in English and its lines, whichever side English is on."""
    path, made = write_xsim_files(tmp_path, clean)
    sides = (clean, noisy) if english == "source" else (noisy, clean)
    table = ["source\ttarget", *map("\t".join, zip(*sides, strict=True))]
    (tmp_path / "flores.tsv").write_text("\n".join(table) + "\n", "utf-8")
    given = {"retrieval": str(tmp_path / "flores.tsv"), "augmented": path}
    options = decode(EvaluateOptions, {"models": "a", "out": "b", **given})
    [one] = make_sets(options, lambda event: None).sets
    lines = [*clean, *(line for line, src, _ in made if src in clean), made[0][0]]
    hard = f"{len(lines) - len(clean):,} hard negatives"
    assert one.note == f"{hard}, published with xSIM++, 2 more for other sentences"
    assert {*lines} <= {*one.texts()}
    (tmp_path / "de-fr.tsv").write_text("source\ttarget\nEin Haus.\tUne maison.\n" * 9, "utf-8")
    other = replace(options, retrieval=(*options.retrieval, str(tmp_path / "de-fr.tsv")))
    note = make_sets(other, lambda event: None).sets[1].note
    assert note.endswith("no hard negatives: none was made from either side")

    first, second = Letters(24), Letters(24)
    second.encode = lambda texts, progress=None: first.encode(texts) * np.linspace(1, 1.2, 24)
    found = measure(one, VectorStore(first), targets=VectorStore(second)).seeds
    ours, theirs = (first, second) if english == "source" else (second, first)
    counts = lost_by_type(theirs.encode(noisy), ours.encode(lines), lines, made)
    assert_lost(found, counts, clean)
    assert {*measure(replace(one, negatives={}), VectorStore(first)).seeds} == SEARCHED | {
        "accuracy_both"
    }


def test_files_of_xsim_that_do_not_fit_are_refused(tmp_path, tiny_models, clean, pairs_file):
    path, _ = write_xsim_files(tmp_path, clean)
    results = evaluate([str(tiny_models())], tmp_path / "a", pairs=pairs_file, augmented=path)
    assert (
        "hard negatives, published with xSIM++, 2 more for other sentences"
        in results.datasets[0].note
    )
    with pytest.raises(SourceError, match="no line is made from any of the 1 sentences"):
        PublishedNegatives.read(path).made_from(["Another."])
    (tmp_path / "b.json").write_text('{"a": {"src": 3}}')
    with pytest.raises(SourceError, match=r"b\.json is no file of xSIM\+\+"):
        PublishedNegatives.read(str(tmp_path / "b.json")).made_from(clean)
    (tmp_path / "b.json").write_text('{"a": {"src": "b", "errtype": "c", "x": ' + "[" * 100_000)
    for wrong in (str(tmp_path / "b.json"), ".", "/"):
        with pytest.raises(SourceError, match="is no file of xSIM"):
            PublishedNegatives.read(wrong).made_from(clean)
    lines = tmp_path / "eng_Latn_augmented.devtest"
    lines.write_text("\ufeff" + lines.read_text("utf-8")[:-400] + " cut", "utf-8")
    hard = PublishedNegatives.read(path).made_from(clean)
    lost = [*json.loads(Path(path).read_text("utf-8"))][len(lines.read_text("utf-8").split("\n")) :]
    assert len(lost) > 3
    assert f"; {len(lost) + 2} lines are only in {lines.name} or " in hard.note
    lines.write_text("\n")
    with pytest.raises(
        SourceError, match=r"json has no line of .*devtest: get both from one release"
    ):
        PublishedNegatives.read(path).made_from(clean)
    lines.write_bytes(b"\xff")
    with pytest.raises(SourceError, match=r"augmented\.devtest is no file of xSIM"):
        PublishedNegatives.read(path).made_from(clean)
    with pytest.raises(UsageError, match="--augmented is for --source, --pairs, --retrieval"):
        evaluate(["minilm"], tmp_path, pairs=pairs_file, augmented=path, hard=False)


def test_a_pool_of_hard_negatives_is_as_large_as_asked_for(pairs_file):
    def number(**given):
        options = {"models": "minilm", "out": "report", "pairs": pairs_file, **given}
        [dataset] = make_sets(decode(EvaluateOptions, options), lambda event: None).sets
        return int(dataset.note.split()[0])

    assert number(per_kind=1) < number() < number(per_kind=10)


def test_sts_is_100_times_the_correlation_of_ranks(clean):
    scipy = pytest.importorskip("scipy.stats")
    gold = np.arange(len(clean), dtype=float) % 5
    columns = {"first": clean, "second": clean[::-1]}
    noisy = {f"{side}_noisy": texts for side, texts in columns.items()}
    one = TextSet("s", "sts", columns | noisy, gold)
    store = VectorStore(Letters())
    units = [
        side / np.linalg.norm(side, axis=1, keepdims=True)
        for side in (store(clean), store(clean[::-1]))
    ]
    cosines = np.einsum("ij,ij->i", *units)
    expected = 100 * scipy.spearmanr(np.round(cosines, 6), gold).statistic
    assert measure(one, store).seeds["sts_clean"][0] == pytest.approx(expected, abs=0.5)


# Models.


def written(run, config: str, log: str = "") -> str:
    (run / "config.yaml").write_text(config)
    (run / "log.jsonl").write_text(log)
    return str(run / "student")


def test_the_teacher_of_a_student_is_the_baseline(tmp_path, tiny_models, pairs_file):
    run = tmp_path / "better"
    shutil.copytree(tiny_models(seed=1), run / "student")
    spec = written(run, f"teacher: {tiny_models()}\n", '{"step": 1, "loss": 0.5}\n{"step": 2, "lo')
    results = evaluate([spec], tmp_path / "out", pairs=pairs_file, hard=False)
    assert [model.name for model in results.models] == [tiny_models().name, "better"]
    assert results.baseline.spec == str(tiny_models())
    assert results.training["log"] == [{"step": 1, "loss": 0.5}]
    assert results.training["config"]["teacher"] == str(tiny_models())


def test_a_teacher_that_is_not_there_is_named_with_the_way_out(tmp_path):
    (tmp_path / "run" / "student").mkdir(parents=True)
    spec = written(tmp_path / "run", "teacher: models/mine\n")
    with pytest.raises(UsageError, match="'models/mine', which is not found here: give --baseline"):
        named_models([spec], None)
    assert [model.spec for model in named_models([spec], "minilm")] == ["minilm", spec]


@pytest.mark.parametrize("config", ["[1, 2]", "teacher: [", ""])
def test_a_config_that_says_nothing_is_passed_over(tmp_path, tiny_models, config):
    shutil.copytree(tiny_models(), tmp_path / "run" / "student")
    spec = written(tmp_path / "run", config)
    assert [model.spec for model in named_models([spec], None)] == [spec]
    assert training_of(named_models([spec], None)) is None


def test_models_have_names_that_differ():
    named = named_models(["minilm", "x=use", "x=npy:a.npy"], None)
    assert [model.name for model in named] == ["minilm", "x", "x-2"]
    named = named_models(["mine=use", "minilm"], "minilm")
    assert [(model.name, model.spec) for model in named] == [("minilm", "minilm"), ("mine", "use")]
    named = named_models(["mine=minilm", "use"], "minilm")
    assert [model.name for model in named] == ["mine", "use"]


def test_a_model_that_is_named_twice_is_refused():
    with pytest.raises(UsageError, match=r"the model use is given twice, as a$"):
        named_models(["a=use", "a=use"], None)
    with pytest.raises(UsageError, match=r"the model use is given twice, as a and b$"):
        named_models(["a=use", "b=use"], None)
    with pytest.raises(UsageError, match="the model use is given twice"):
        named_models(["x=use", "minilm", "y=use"], None)


def test_a_model_that_is_none_is_refused_before_any_work(tmp_path, tiny_models, pairs_file):
    with pytest.raises(UsageError, match=r"no model 'minilmm'.*did you mean 'minilm'"):
        evaluate([str(tiny_models()), "minilmm"], tmp_path / "out", pairs=pairs_file)
    (tmp_path / "none").mkdir()
    with pytest.raises(SourceError, match=r"model none: .*is no model"):
        evaluate([str(tmp_path / "none")], tmp_path / "out", pairs=pairs_file)
    with pytest.raises(UsageError, match="no model to evaluate"):
        evaluate([], tmp_path / "out", pairs=pairs_file)
    with pytest.raises(UsageError, match="has no option 'pair'"):
        evaluate(["minilm"], tmp_path / "out", pair=pairs_file)


def test_a_full_folder_is_kept_unless_forced(tmp_path, tiny_models, pairs_file):
    (tmp_path / "mine.txt").write_text("keep me")
    with pytest.raises(OutputError, match="is not empty; add --force"):
        evaluate([str(tiny_models())], tmp_path, pairs=pairs_file)
    evaluate([str(tiny_models())], tmp_path, pairs=pairs_file, force=True, hard=False)
    assert (tmp_path / "mine.txt").read_text() == "keep me"
    assert (tmp_path / "report.html").exists()


def test_force_keeps_the_files_of_others_that_have_names_of_a_report(tmp_path, pairs_file):
    (tmp_path / "metrics.json").write_text("{}")
    with pytest.raises(OutputError, match=r"noisegen did not write .*metrics\.json; move it"):
        evaluate(["minilm"], tmp_path, pairs=pairs_file, force=True)
    assert (tmp_path / "metrics.json").read_text() == "{}"
    assert [path.name for path in tmp_path.iterdir() if path != pairs_file] == ["metrics.json"]


def test_a_correlation_that_is_left_out_is_told(tmp_path, tiny_models):
    path = tmp_path / "same.tsv"
    path.write_text("sentence1\tsentence2\tscore\nSame.\tSame.\t1\nAgain.\tAgain.\t2\n")
    found = evaluate([str(tiny_models())], tmp_path / "report", sts=str(path), recipe="fing:rate=0")

    assert found.scores[found.baseline.name]["same"] == {}
    assert "same: sts_clean of" in found.settings["notes"][0]


def test_each_model_is_opened_once(tiny_models, files, tmp_path, monkeypatch):
    opened, events = [], []

    def watched(spec):
        opened.append(spec)
        return open_encoder(spec)

    monkeypatch.setattr("noisegen.evaluation.models.open_encoder", watched)
    models = {"one": str(tiny_models()), "two": str(tiny_models(seed=1))}
    specs = [f"{name}={spec}" for name, spec in models.items()]
    evaluate(specs, tmp_path / "report", retrieval=files["match"], progress=events.append)
    assert opened == [*models.values()]
    doing = [event.doing for event in events if "opening" in event.doing]
    assert doing == ["opening one", "opening two"]
