"""Labelled files: what is read, what is dropped and counted, what is refused."""

import gzip
import json

import made_tasks
import pytest
from conftest import SHARED

from noisegen.data.formats.slot_files import is_split
from noisegen.data.labelled import (
    LabelledRow,
    read_nli,
    read_slots,
    read_snips,
    read_split,
    read_tags,
    read_wikiann,
)
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation.tasks.kinds import TASKS
from noisegen.evaluation.tasks.sets import read_data

SLOTS, NER, NLI = (TASKS[name] for name in ("intent-slots", "ner", "nli"))


def test_slots_of_snips_never_share_a_token(tmp_path):
    pieces = [{"text": "rate "}, {"text": "Dan Fox", "entity": "artist"}, {"text": "'s song"}]
    (tmp_path / "a.json").write_text(json.dumps({"Rate": [{"data": pieces}]}))
    row = LabelledRow(
        ("rate", "Dan", "Fox", "'s", "song"), ("O", "B-artist", "I-artist", "O", "O"), "Rate"
    )
    assert read_snips(str(tmp_path)).rows == [row]


def test_an_emoji_in_two_halves_is_read_and_broken_text_is_told(tmp_path):
    content = json.dumps({"Eat": [{"data": [{"text": "a pizza"}]}, {"data": [{"text": "b"}]}]})
    whole = content.encode().replace(b"pizza", "\ud83c\udf55".encode("utf-8", "surrogatepass"))
    path = tmp_path / "eat.json.gz"
    path.write_bytes(gzip.compress(whole))
    assert read_snips(str(path)).rows[0].tokens == ("a", "🍕")
    path.write_bytes(gzip.compress(content.encode().replace(b"pizza", b"\xff")))
    found = read_snips(str(path))
    assert [row.text for row in found.rows] == ["b"]
    assert found.damaged == [f"{path}: 1 rows not_utf8"]


def test_rows_that_are_no_requests_are_counted(tmp_path):
    rows = [{"data": [{"text": "hi"}]}, {"data": "x"}, 3, {"data": []}, {"data": [{"text": 4}]}]
    rows.append({"data": [{"text": "x", "entity": ["artist"]}]})
    (tmp_path / "a.json").write_text(json.dumps({"Hi": rows, "Other": 5}))
    found = read_snips(str(tmp_path / "*.json"))
    assert len(found.rows) == 1
    assert found.dropped == {"empty_cell": 1}
    assert found.damaged == [f"{tmp_path / 'a.json'}: 5 rows bad_row"]


@pytest.mark.parametrize(
    ("content", "said"), [("{", "is not JSON"), ("[1]", "no object of intents")]
)
def test_a_file_that_is_no_snips_is_refused(tmp_path, content, said):
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(SourceError, match=said):
        read_snips(str(tmp_path / "a.json"))


def test_damaged_gzip_is_refused(tmp_path):
    path = tmp_path / "a.json.gz"
    path.write_bytes(gzip.compress(b"{}" * 5_000)[:-9])
    with pytest.raises(SourceError, match="damaged"):
        read_snips(str(path))


def test_marks_of_replaced_tokens_go_and_unequal_labels_are_counted(tmp_path):
    path = tmp_path / "es.tsv"
    path.write_text(
        "id\told_utterance\tnew_utterance\tdiffs\tslot_labels\tintent\n"
        "1\tpon a Eva\t<pom|1> <á|0> Eva\t-\tO O artist\tPlayMusic\n"
        "2\tpon a Eva\tpon Eva\t-\tO O artist\tPlayMusic\n"
        "3\tpon a Eva\tpon a Eva\t-\tO artist\tPlayMusic\n"
        "4\t\tx\t-\tO\tPlayMusic\n"
    )
    found = read_slots(str(path))
    tags = ("O", "O", "artist")
    assert found.rows == [LabelledRow(("pon", "a", "Eva"), tags, "PlayMusic", key="1")]
    assert found.noisy == [LabelledRow(("pom", "á", "Eva"), tags, "PlayMusic", key="1")]
    assert found.dropped == {"unequal_labels": 2, "empty_cell": 1}
    assert found.corpus == "snips"


@pytest.mark.parametrize(
    ("noisy", "read"),
    [
        ("<a|1><b|2> x", "ab x"),
        ("<a<b|1> <c|d|0>", "a<b c|d"),
        ("pre<a|1> <|1>", "prea <|1>"),
    ],
)
def test_every_mark_of_a_replaced_token_goes_alone(tmp_path, noisy, read):
    path = tmp_path / "es.tsv"
    path.write_text(
        "id\told_utterance\tnew_utterance\tslot_labels\tintent\n"
        f"1\tuno dos\t{noisy}\tO O\tPlayMusic\n"
    )
    assert [row.text for row in read_slots(str(path)).noisy] == [read]


def test_a_table_of_multiatis_is_of_that_corpus(tmp_path):
    path = tmp_path / "train_EN.tsv"
    path.write_text("id\tutterance\tslot_labels\tintent\n0\tto rome\tO B-toloc.city_name\tflight\n")
    found = read_slots(str(path))
    assert found.corpus == "atis"
    assert found.rows == [
        LabelledRow(("to", "rome"), ("O", "B-toloc.city_name"), "flight", key="0")
    ]


def test_wikiann_takes_one_language_and_counts_bad_lines(tmp_path):
    path = tmp_path / "dev"
    path.write_bytes(
        b"es:Ana\tB-PER\nes:vive\tO\n\n\nfr:Ulm\tB-LOC\n\nes:sola\n\nes:x\xff\tO\n\nes:y\t \n\n"
        b"1\tes:z\tO\n\nes:10:30\tO\r\n"
    )
    found = read_wikiann(str(path), "es")
    assert found.rows == [
        LabelledRow(("Ana", "vive"), ("B-PER", "O")),
        LabelledRow(("10:30",), ("O",)),
    ]
    assert found.dropped == {"other_language": 1, "unequal_labels": 1}
    assert found.damaged == [f"{path}: 2 rows wrong_columns", f"{path}: 1 rows not_utf8"]


def test_nli_takes_one_language_and_one_name_for_a_class(tmp_path):
    path = tmp_path / "xnli.tsv"
    path.write_text(
        "language\tgold_label\tsentence1\tsentence2\n"
        "es\tneutral\tUna  casa\tDos\nde\tneutral\tEin Haus\tZwei\nes\t-\ta\tb\nes\t-1\ta\tb\n"
    )
    found = read_nli(str(path), "es")
    assert found.rows == [LabelledRow(("Una", "casa"), (), "neutral", "Dos")]
    assert found.dropped == {"other_language": 1, "no_label": 2}
    train = read_nli(str(made_tasks.nli_file(tmp_path, "train.tsv")), "en")
    assert {row.label for row in train.rows} == {"entailment", "contradiction"}


def test_nli_of_rcp_is_in_apostrophes_and_has_numbers_for_classes(tmp_path):
    path = tmp_path / "test_en_typos_0.05.tsv"
    path.write_bytes(
        b"premise\thypothesis\tlabel\r\n'It's warm'\t'It isn't \"cold\"'\t0\r\n"
        b"'We sat'\t'We 'stood''\t2\r\n'a'\t'b'\t1\r\n'a'\t'b'\t-1\r\n'a'\tb\r\n"
    )
    found = read_nli(str(path), "en")
    assert [(row.text, row.second, row.label) for row in found.rows] == [
        ("It's warm", 'It isn\'t "cold"', "entailment"),
        ("We sat", "We 'stood'", "contradiction"),
        ("a", "b", "neutral"),
    ]
    assert found.dropped == {"no_label": 1}
    assert found.damaged == [f"{path}: 1 rows wrong_columns"]


def split_folder(folder, *lines):
    for name, content in zip(("seq.in", "seq.out", "label"), lines, strict=True):
        (folder / name).write_bytes(content)
    return str(folder)


def test_slots_in_three_files_are_read_line_by_line(tmp_path):
    source = split_folder(
        tmp_path,
        b"\xef\xbb\xbfplay eva  now .\r\nrain on mars\r\n\r\nx\xff\r\nask\r\n",
        b"O artist O O\r\nO O\r\nO\r\nO\r\nO\r\n",
        b"Play\r\nAsk\r\nAsk\r\nAsk\r\nAsk\r\n",
    )
    assert is_split(source)
    found = read_split(source)
    assert found.rows == [
        LabelledRow(("play", "eva", "now", "."), ("O", "artist", "O", "O"), "Play"),
        LabelledRow(("ask",), ("O",), "Ask"),
    ]
    assert (found.dropped, found.corpus) == ({"unequal_labels": 1, "empty_cell": 1}, "snips")
    assert found.damaged == [f"{tmp_path}: 1 rows not_utf8"]
    [test] = read_data(SLOTS, [str(made_tasks.snips_file(tmp_path))], [f"en={source}"]).tests
    assert len(test.sides["clean"]) == 2


def test_three_files_of_unequal_length_are_refused(tmp_path):
    source = split_folder(tmp_path, b"a\nb\n", b"O\nO\n", b"Play\n")
    with pytest.raises(SourceError, match=r"seq.in 2, seq.out 2, label 1 lines"):
        read_split(source)


def test_lines_of_three_files_over_the_limit_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("noisegen.data.columns.ROWS_MAX", 2)
    source = split_folder(tmp_path, b"a\nb\nc\nd\n", b"O\nO\nO\nB-x\n", b"X\nY\nX\nX\n")
    data = read_data(SLOTS, [source], [f"en={source}"])
    assert [row.text for row in data.training] == ["a", "b"]
    assert data.notes[0] == f"{source}: dropped 2 rows: over_limit 2"
    (tmp_path / "label").write_bytes(b"X\nY\nX\n")
    with pytest.raises(SourceError, match=r"seq.in 4, seq.out 4, label 3 lines"):
        read_split(source)


def test_a_byte_order_mark_is_no_damage_and_an_empty_file_is_named(tmp_path):
    path = made_tasks.snips_file(tmp_path)
    rows = read_snips(str(path)).rows
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert read_snips(str(path)).rows == rows
    path.write_bytes(b"\n")
    with pytest.raises(SourceError, match=rf"{path} is empty: get it again"):
        read_snips(str(path))


def test_what_is_damaged_of_wikiann_is_named(tmp_path):
    path = tmp_path / "en.gz"
    path.write_bytes(b"en:Ann\tB-PER\n\n")  # not compressed
    assert read_wikiann(str(path), "en").damaged == [
        f"{path}: its compression is another one than its name says"
    ]


def test_a_table_of_both_sides_comes_before_the_three_files(tmp_path):
    source = split_folder(tmp_path, b"a\n", b"O\n", b"Play\n")
    made_tasks.slots_file(tmp_path, "data.tsv")
    assert not is_split(source)
    assert read_slots(source).noisy


def test_tags_of_rcp_are_the_numbers_of_wikiann(tmp_path):
    path = tmp_path / "test_es_typos_0.1.jsonl"
    rows = [(["Ana", "Li", "vive"], [1, 2, 0], "es"), (["Ulm"], [5], "de"), (["x"], [7], "es")]
    objects = [{"tokens": t, "ner_tags": n, "langs": [lang] * len(t)} for t, n, lang in rows]
    path.write_text("\n".join(map(json.dumps, objects)) + '\n{"tokens": ["a"], "ner_tags": []}\n')
    found = read_tags(str(path), "es")
    found.drop_strays()
    assert found.rows == [LabelledRow(("Ana", "Li", "vive"), ("B-PER", "I-PER", "O"))]
    assert found.dropped == {"other_language": 1, "unknown_tag": 1, "unequal_labels": 1}


def test_rows_of_tags_over_the_limit_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("noisegen.data.columns.ROWS_MAX", 3)
    monkeypatch.setattr("noisegen.data.labelled.ROWS_MAX", 2)  # of a part of the table
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"tokens": [n], "ner_tags": [1]}) for n in "abcde"))
    found = read_tags(str(path), "es")
    assert ([row.text for row in found.rows], found.dropped) == ([*"abc"], {"over_limit": 2})


def test_tags_lose_their_marks_unless_all_sets_have_them(tmp_path):
    train = str(made_tasks.snips_file(tmp_path))
    bare = read_data(SLOTS, [train], [f"es={made_tasks.slots_file(tmp_path)}"])
    assert {tag for row in bare.training for tag in row.tags} == {"O", "artist", "city"}
    assert any("are removed" in note for note in bare.notes)
    marked = read_data(SLOTS, [train], [f"en={train}"])
    assert "B-artist" in marked.training[0].tags
    assert marked.notes == []


def test_labels_that_training_has_not_are_counted_and_told(tmp_path):
    train = made_tasks.snips_file(tmp_path)
    path = made_tasks.slots_file(tmp_path)
    text = path.read_text().replace("city\tGetWeather", "town\tAskWeather")
    path.write_text(text)
    notes = read_data(SLOTS, [str(train)], [f"es={path}"]).notes
    rows = text.count("AskWeather")
    assert any(f"{rows:,} rows" in note and "AskWeather" in note for note in notes)
    assert any("town" in note for note in notes)


def test_sides_are_paired_by_id_or_by_place(tmp_path):
    header = "id\tutterance\tslot_labels\tintent\n"
    rows = [f"{n}\tto rome {n}\tO city O\tflight\n" for n in range(3)]
    files = {"clean": rows, "noisy": [rows[2], rows[0]], "other": [*rows, "9\tx\tO\tflight\n"]}
    for name, lines in files.items():
        (tmp_path / f"{name}.tsv").write_text(header + "".join(lines))
    clean, noisy, other = (str(tmp_path / f"{name}.tsv") for name in files)
    data = read_data(SLOTS, [clean], [f"de={clean},{noisy}", f"fr={clean},{other}"])
    assert [test.shared for test in data.tests] == [[2, 0], None]
    assert [note[:2] for note in data.notes if "no change" in note] == ["fr"]


def test_equally_long_files_with_other_ids_are_not_paired_by_place(tmp_path):
    for name, first in (("clean", 0), ("noisy", 7)):
        rows = [f"{first + n}\tto rome {n}\tO city O\tflight\n" for n in range(3)]
        head = "id\tutterance\tslot_labels\tintent\n"
        (tmp_path / f"{name}.tsv").write_text(head + "".join(rows))
    clean, noisy = str(tmp_path / "clean.tsv"), str(tmp_path / "noisy.tsv")
    data = read_data(SLOTS, [clean], [f"de={clean},{noisy}"])
    assert data.tests[0].shared is None
    assert any(note.startswith("de: no change") and noisy in note for note in data.notes)


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        ([], "no test set"),
        (["es"], "write LANG=CLEAN"),
        (["=a"], "write LANG=CLEAN"),
        (["es=a", "es=b"], "tested twice"),
        (["mean=a"], "'mean' is reserved for"),
    ],
)
def test_wrong_test_sets_are_usage_errors(tmp_path, tests, said):
    with pytest.raises(UsageError, match=said):
        read_data(SLOTS, [str(made_tasks.snips_file(tmp_path))], tests)


def test_a_language_without_data_is_refused(tmp_path):
    train = made_tasks.wikiann_file(tmp_path, "en", "en")
    with pytest.raises(SourceError, match=r"no rows of language 'es' \(20 other_language\)"):
        read_data(NER, [str(train)], [f"es={train}"])
    with pytest.raises(SourceError, match="no such file"):
        read_data(NER, [str(train)], [f"es={tmp_path / 'absent'}"])
    with pytest.raises(SourceError, match="is a folder: name a file in it"):
        read_data(NER, [str(train)], [f"es={tmp_path}"])


@pytest.mark.nightly
def test_the_shared_requests_are_read_whole():
    if not (SHARED / "snips").exists():
        pytest.skip("no development data")
    data = read_data(
        SLOTS, [str(SHARED / "snips")], [f"hi={SHARED / 'snips-multilingual' / 'hi.tsv'}"]
    )
    assert (len(data.training), data.damaged) == (13_784, [])
    assert len({row.label for row in data.training}) == 7
    assert {side: len(rows) for side, rows in data.tests[0].sides.items()} == {
        "clean": 345,
        "noisy": 345,
    }
    assert len(data.notes) == 1  # no label that the training data has not


def test_a_table_lacks_what_the_nearest_format_has(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("id\tutterance\tintent\n1\ta b\tx\n")
    with pytest.raises(SourceError, match="no column 'slot_labels' among: id, utterance, intent"):
        read_slots(str(path))


def test_a_byte_order_mark_is_no_part_of_the_first_token(tmp_path):
    (tmp_path / "en.txt").write_bytes(b"\xef\xbb\xbfen:Rome\tB-LOC\nen:fell\tO\n")

    (row,) = read_wikiann(str(tmp_path / "en.txt"), "en").rows
    assert row.tokens == ("Rome", "fell")
