"""What is told of data and models: strays, long rows, classes, damage, what is left out."""

import json
from pathlib import Path

import made_tasks
import pytest
from click.testing import CliRunner
from models import head_of

from noisegen.cli import noisegen
from noisegen.data.labelled import CHARACTERS_MAX, TOKENS_MAX, read_nli, read_slots, read_wikiann
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import with_preparation
from noisegen.errors import SourceError
from noisegen.evaluation.tasks.evaluate_task import evaluate_task
from noisegen.evaluation.tasks.kinds import TASKS
from noisegen.evaluation.tasks.sets import read_data

SLOTS, NER, NLI = (TASKS[name] for name in ("intent-slots", "ner", "nli"))
HEAD = "utterance\tslot_labels\tintent\n"


def wikiann(folder, name, rows):
    """Write rows of (token, tag)."""
    path = folder / name
    path.write_text("\n\n".join("\n".join(f"{a}\t{b}" for a, b in row) for row in rows) + "\n")
    return str(path)


@pytest.mark.parametrize("stray", ["Q-foo", "foo", "B-", "I-"])
def test_one_stray_tag_costs_its_row_and_changes_no_other(tmp_path, stray):
    train = str(made_tasks.wikiann_file(tmp_path, "train", "en"))
    clean = Path(train).read_text().replace("en:", "de:")
    (tmp_path / "de").write_text(clean)
    (tmp_path / "bad").write_text(clean.replace("B-PER", stray, 1))
    good = read_data(NER, [train], [f"de={tmp_path / 'de'}"])
    found = read_data(NER, [train], [f"de={tmp_path / 'bad'}"])
    assert found.training == good.training
    assert found.tests[0].sides["clean"] == good.tests[0].sides["clean"][1:]
    assert found.notes == [f"{tmp_path / 'bad'}: dropped 1 rows: unknown_tag 1"]


def test_both_sides_of_a_file_lose_the_rows_of_stray_tags(tmp_path):
    path = tmp_path / "es.tsv"
    rows = [f"{n}\ta b\tA b\t{tags}\tx\n" for n, tags in enumerate(["B-y O", "O z", "O B-y"])]
    path.write_text("id\told_utterance\tnew_utterance\tslot_labels\tintent\n" + "".join(rows))
    found = read_slots(str(path))
    found.drop_strays()
    assert [row.key for row in found.rows] == [row.key for row in found.noisy] == ["0", "2"]
    assert found.dropped == {"unknown_tag": 1}


def test_a_set_without_marks_keeps_a_tag_that_looks_like_one(tmp_path):
    train = tmp_path / "train.tsv"
    train.write_text(HEAD + "a b c\tcity O B-city\tx\na b\tyear city\ty\n")
    data = read_data(SLOTS, [str(train)], [f"es={train}"])
    assert [row.tags for row in data.training] == [("city", "O", "city"), ("year", "city")]
    assert len(data.notes) == 1  # that marks are taken off


def test_a_tag_that_is_only_a_mark_has_itself_as_its_name(tmp_path):
    train, test = tmp_path / "train.tsv", tmp_path / "es.tsv"
    train.write_text(HEAD + "a b\tcity O\tx\na b\tyear city\ty\n")
    test.write_text(HEAD + "a b\tB- city\tx\na\tcity\ty\n")
    notes = read_data(SLOTS, [str(train)], [f"es={test}"]).notes
    assert any("1 tokens have a label that the training data lacks (B-)" in one for one in notes)


def test_rows_of_absurd_length_are_counted_in_every_format(tmp_path):
    long, more = ["a"] * TOKENS_MAX, ["a"] * (TOKENS_MAX + 1)
    slots = tmp_path / "a.tsv"
    slots.write_text(
        HEAD + "".join(f"{' '.join(t)}\t{' '.join('O' for _ in t)}\tx\n" for t in (long, more))
    )
    pairs = tmp_path / "b.tsv"
    wide = "x" * CHARACTERS_MAX
    pairs.write_text(f"premise\thypothesis\tlabel\na\tb\t1\na\t{wide}\t0\n")
    snips = tmp_path / "c.json"
    snips.write_text(json.dumps({"X": [{"data": [{"text": " ".join(t)}]} for t in (long, more)]}))
    names = wikiann(tmp_path, "d", [[(t, "O") for t in tokens] for tokens in (long, more * 3)])
    read = [read_slots(str(slots)), read_nli(str(pairs), "en"), read_wikiann(names, "en")]
    for found in read:
        assert len(found.rows) == 1
        assert found.dropped == {"too_long": 1}
    data = read_data(SLOTS, [str(made_tasks.snips_file(tmp_path))], [f"es={snips}"])
    assert any("too_long 1" in note for note in data.notes)


@pytest.mark.parametrize(
    ("task", "content", "said"),
    [
        (NLI, "premise\thypothesis\tlabel\na\tb\t1\nc\td\t1\n", "all rows have the label neutral"),
        (NER, "a\tO\n\nb\tO\n", "all tokens have the tag O"),
        (SLOTS, HEAD + "a b\tO O\tx\n", "label x and all tokens have the tag O"),
    ],
)
def test_training_data_of_one_class_is_refused(tmp_path, task, content, said):
    path = tmp_path / "train.tsv"
    path.write_text(content)
    with pytest.raises(SourceError, match=f"{said}: there is nothing to learn"):
        read_data(task, [str(path)], [f"es={path}"])


def test_one_intent_beside_slots_to_learn_is_told(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text(HEAD + "a b\tO B-y\tx\nc\tB-z\tx\n")
    notes = read_data(SLOTS, [str(path)], [f"es={path}"]).notes
    assert notes == [f"{path}: all rows have the label x, so every model will predict it"]


def test_damaged_rows_of_wikiann_are_told_and_the_exit_code_is_that_of_tables(
    tiny_models, tmp_path
):
    train = made_tasks.wikiann_file(tmp_path, "train", "en")
    test = tmp_path / "es"
    test.write_bytes(b"es:Ana\tB-PER\n\nes:x\xff\tO\n")
    words = ["evaluate-task", tiny_models(), "-o", tmp_path / "out", "--task", "ner"]
    words += ["--train", train, "--test", f"es={test}", "--epochs", "1", "--seeds", "1"]
    found = CliRunner().invoke(noisegen, list(map(str, words)), standalone_mode=False)
    assert found.return_value == 3
    assert f"damaged: {test}: 1 rows not_utf8" in found.stderr.splitlines()
    only = tmp_path / "fr"
    only.write_bytes(b"fr:x\xff\tO\n")
    with pytest.raises(SourceError, match="1 rows not_utf8"):
        read_data(NER, [str(train)], [f"fr={only}"])


def saved(folder, out, preparation=None, **head):
    """Save a model with another head, or with a preparation of its texts."""
    start = open_folder(folder)
    tokenizer = with_preparation(start.tokenizer, preparation) if preparation else start.tokenizer
    save_folder(SentenceEncoder(start.network, tokenizer, head_of(**head)), out)
    return str(out)


@pytest.mark.parametrize(("place", "said"), [("before", "before"), ("after", "after")])
def test_a_projection_that_is_left_out_is_told(tiny_models, tmp_path, place, said):
    model = saved(tiny_models(), tmp_path / "h1", projection=8, place=place)
    train = str(made_tasks.snips_file(tmp_path))
    found = evaluate_task(
        [str(tiny_models()), model],
        tmp_path / "out",
        train=train,
        test=f"en={train}",
        seeds=1,
        epochs=0.1,
    )
    wanted = f"h1: its projection {said} pooling is left out: token states are what is fine-tuned"
    assert found.settings["notes"] == [wanted]


def test_a_student_that_prepares_its_texts_is_fine_tuned(tiny_models, tmp_path):
    pytest.importorskip("ftfy")
    model = saved(tiny_models(), tmp_path / "ct", preparation="social")
    train = tmp_path / "train.tsv"
    rows = ["see @ann https://t.co/x now\tO B-who B-where O\tx\n", "ah \U0001f525\tO O\ty\n"]
    train.write_text(HEAD + "".join(rows * 4))
    options = {"train": str(train), "test": f"en={train}", "seeds": 1, "epochs": 60, "lr": 5e-3}
    found = evaluate_task([f"ct={model}"], tmp_path / "out", **options)
    assert found.metrics()["ct"]["en clean"]["slot_f1"] == 100


@pytest.mark.parametrize("task", ["intent-slots", "nli"])
def test_rows_that_are_cut_are_told(tiny_models, tmp_path, task):
    made = made_tasks.snips_file(tmp_path)
    train = made if task == "intent-slots" else made_tasks.nli_file(tmp_path, "train.tsv")
    found = evaluate_task(
        [f"m={tiny_models()}"],
        tmp_path / "out",
        train=str(train),
        test=f"en={train}",
        task=task,
        seeds=1,
        epochs=0.1,
        max_length=8,
        augment="fing",
    )
    (note,) = found.settings["notes"]
    assert "40 of 40 test rows are cut at 8 pieces" in note
    assert ("tokens lie beyond" in note) == (task == "intent-slots")
