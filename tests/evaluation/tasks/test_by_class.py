"""Classes that a model gets right, confuses, wins and loses, against counts by loops."""

import csv
import random

import made_tasks
import pytest

from noisegen.data.labelled import LabelledRow
from noisegen.evaluation.tasks.by_class import ClassCounts, WonClasses, spans, won
from noisegen.evaluation.tasks.evaluate_task import evaluate_task
from noisegen.evaluation.tasks.kinds import SEEDS, TASKS

TAGS = ["O", "B-city", "I-city", "B-artist", "I-artist", "B-date"]
INTENTS = ["play", "book", "weather"]


def rows_and_answers(seed, count=60):
    drawn = random.Random(seed)
    lengths = [drawn.randint(1, 7) for _ in range(count)]
    truth = [[drawn.choice(TAGS) for _ in range(n)] for n in lengths]
    guess = [[t if drawn.random() < 0.6 else drawn.choice(TAGS) for t in row] for row in truth]
    labels = [drawn.choice(INTENTS) for _ in lengths]
    rows = [
        LabelledRow(tuple("x" * len(tags)), tuple(tags), label)
        for tags, label in zip(truth, labels, strict=True)
    ]
    guessed = [label if drawn.random() < 0.7 else drawn.choice(INTENTS) for label in labels]
    return rows, list(zip(guessed, guess, strict=True))


@pytest.mark.parametrize("seed", range(8))
def test_counts_equal_a_loop_over_rows_and_spans(seed):
    counts = ClassCounts()
    rows, answers = rows_and_answers(seed)
    for _ in range(2):  # two seeds of fine-tuning
        counts.add(TASKS["intent-slots"], ("m", "es", "noisy"), rows, answers)

    for figure in counts.figures():
        gold = predicted = correct = 0
        for row, (label, tags) in zip(rows, answers, strict=True):
            if figure.metric == "intent_accuracy":
                real, ours = [(row.label,)], [(label,)]
            else:
                real, ours = spans(row.tags), spans(tags)
            gold += 2 * sum(one[0] == figure.name for one in real)
            predicted += 2 * sum(one[0] == figure.name for one in ours)
            correct += 2 * sum(one[0] == figure.name for one in ours if one in real)
        assert (figure.gold, figure.predicted, figure.correct) == (gold, predicted, correct)
        precision, recall = correct / max(1, predicted), correct / max(1, gold)
        mean = 2 * precision * recall / (precision + recall) if correct else 0
        assert figure.f1 == pytest.approx(100 * mean)

    confusion = counts.confusion["m", "es", "noisy", "slot_f1"]
    plain = {tag: tag[2:] or "O" for tag in TAGS}
    for (one, other), count in confusion.items():
        assert count == 2 * sum(
            (plain[a], plain[b]) == (one, other)
            for row, (_, tags) in zip(rows, answers, strict=True)
            for a, b in zip(row.tags, tags, strict=True)
        )
    assert confusion.total() == 2 * sum(len(row.tags) for row in rows)


def test_a_model_wins_and_loses_classes_of_the_test_set_against_the_first():
    def row(kind):
        return LabelledRow(("x",), (f"B-{kind}",), "")

    rows = [row("city"), row("city"), row("artist"), row("date")]
    answers = {
        "base": ["city", "O", "artist", "date"],
        "other": ["city", "city", "O", "date"],
        "third": ["song", "song", "artist", "date"],
    }
    counts = ClassCounts()
    for model, kinds in answers.items():
        tags = [("", [kind if kind == "O" else f"B-{kind}"]) for kind in kinds]
        counts.add(TASKS["ner"], (model, "fr", "noisy"), rows, tags)

    assert list(won(counts.figures())) == [
        WonClasses("other", "fr", "noisy", "ner_f1", won=1, lost=1, equal=1),
        WonClasses("third", "fr", "noisy", "ner_f1", won=0, lost=1, equal=2),
    ]
    assert counts.confusion["third", "fr", "noisy", "ner_f1"]["city", "song"] == 2


def test_five_seeds_and_the_tables_by_class(tiny_models, tmp_path):
    train, test = made_tasks.snips_file(tmp_path), made_tasks.slots_file(tmp_path)
    models = [f"base={tiny_models()}", f"other={tiny_models(seed=1)}"]
    out = tmp_path / "out"
    found = evaluate_task(models, str(out), str(train), f"es={test}", epochs=0.1)

    assert found.settings["seeds"] == list(SEEDS), "RCP's five"

    def table(name):
        return list(csv.DictReader((out / name).read_text().splitlines()))

    classes, confusion = table("classes.csv"), table("confusion.csv")
    intents = [row for row in classes if row["metric"] == "intent_accuracy"]
    assert {row["class"] for row in intents} == {"PlayMusic", "GetWeather"}
    of_base = [r for r in intents if (r["model"], r["side"]) == ("base", "clean")]
    assert sum(int(row["gold"]) for row in of_base) == 40 * 5
    assert {row["gold"] for row in confusion if row["metric"] == "slot_f1"} == {
        "O",
        "artist",
        "city",
    }
    assert {(one.model, one.side, one.metric) for one in found.won} == {
        ("other", side, metric)
        for side in ("clean", "noisy")
        for metric in ("intent_accuracy", "slot_f1")
    }
    assert found.won[0].won + found.won[0].lost + found.won[0].equal == 2
    titles = [one.caption for one in found.tables()]
    assert any("won-lost against base" in title for title in titles)
    page = (out / "report.html").read_text("utf-8")
    for one in found.won:  # RCP's Figure 4: bars of classes won and lost
        assert f"other, es: {one.won}, {one.lost}" in page
    wrong = [row for row in confusion if row["gold"] != row["predicted"]]
    worst = max(wrong, key=lambda row: int(row["count"]))  # RCP's Table 7
    assert f">{int(worst['count']):,}<" in page
    assert "es noisy, slot F1, counts over all seeds" in page
