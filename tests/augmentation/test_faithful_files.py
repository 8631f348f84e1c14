"""One noisy file of the format that came in: what noise does not touch stays, byte for byte."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import augment, table
from source_files import on_stdin

from noisegen.cli import run
from noisegen.data.conll import CONLLU as TREEBANK_COLUMNS
from noisegen.data.labels import carried, carried_forms
from noisegen.data.noisy_sentences import rewritten
from noisegen.errors import SourceError

NOTHING = {"transforms": ["leet:rate=0"]}
SPLIT = {"transforms": ["spac:add_rate=0.3,drop_rate=0.2"], "seed": 3}
CONLL = b"""-DOCSTART- -X- -X- O

EU NNP  B-NP B-ORG
rejects VBZ B-VP O\x20
# SYM B-NP O


-DOCSTART- -X- O O
Ann NNP B-NP B-PER

-DOCSTART- -X- O O
"""
BAD = b"ragged NNP B-NP\nx y z\n\nbroken\xff NN B-NP O\n\n"
CONLLU = b"""# newdoc id = d
# sent_id = d-1
# text = Don't go of the isle.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t3:advmod\t_
3\tgo\tgo\tVERB\tVB\tMood=Imp\t0\troot\t0:root\t_
3.1\tyou\tyou\tPRON\t_\t_\t_\t_\t3:nsubj\t_
4\tof\tof\tADP\tIN\t_\t6\tcase\t6:case\t_
5\tthe\tthe\tDET\tDT\t_\t6\tdet\t6:det\t_
6\tisle\tisle\tNOUN\tNN\tNumber=Sing\t3\tobl\t3:obl:of|3.1:dep\tGloss=x|SpaceAfter=No
7\t.\t.\tPUNCT\t.\t_\t3\tpunct\t3:punct\t_

"""
NORM = b"u\tyou\ngoin\tgoing\nto\tto\nthe\tthe\n\nwanna\twant to\nto\t\nne\tnever\nver\t\n\n"


@pytest.fixture
def written(capfd):
    """Run `augment` with a transform; return its exit code, what it wrote, and its last words."""

    def write(source, out, *options, transform="leet:rate=0"):
        code = run(["augment", str(source), "-o", str(out), "-t", transform, *options])
        return code, *capfd.readouterr()

    return write


def cells(*lines: str) -> str:
    return "".join("\t".join(line.split()) + "\n" for line in lines)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.conll", CONLL + BAD),
        ("a.conll", CONLL.replace(b"\n", b"\r\n")),
        ("a.conll", BAD + b"# only a comment\n\n" + CONLL),
        ("a.conllu", CONLLU),
        ("a.norm", NORM + b"no normal form\n\n"),
        ("a.tsv", b"Rome\tB-LOC\ncalls\tO\n\n#hi\tO\n\xc3\xa4\tO\n\n"),
        ("a.txt", b"see you\r\n\xff\r\n\r\nbye\n"),
        ("a.tsv", b"n\ttext\r\n1\tsee\r\n2\r\n"),
        ("a.csv", b'n,text\r\n"1","see, ""you"""\r\n"2"\r\n\xff,x\r\n"3","two\r\nlines"\r\n'),
        ("a.csv", b'n,text\n1,"see\n2,"you"\n3,so ""it"" is\n4,"two\n\n5,lines",x\n6,"end\n'),
        (
            "a.jsonl",
            b'{"n": 1e400, "text":"a", "m": NaN}\r\n{"text": "b", "n": {"a": 1.0}}\r\n[]\n',
        ),
    ],
)
def test_without_noise_a_file_is_what_it_was(tmp_path, name, data):
    source, out = tmp_path / name, tmp_path / f"out{name[1:]}"
    source.write_bytes(data)
    augment(source, out, **NOTHING)
    assert out.read_bytes() == data


@pytest.mark.parametrize("data", [CONLL, CONLL[:-9], CONLLU * 2, NORM])
def test_a_stream_of_sentences_is_known_by_its_lines(tmp_path, written, monkeypatch, data):
    on_stdin(monkeypatch, data)
    code, out, _ = written("-", tmp_path / "a.conll", "--limit", "1")
    assert (code, out) == (0, "")
    assert data.startswith((tmp_path / "a.conll").read_bytes())


def test_all_columns_with_an_item_per_token_follow_the_noisy_tokens(tmp_path):
    row = {"tokens": ["see", "going"] * 9, "tags": ["O", "B-X"] * 9, "pos": [1, 2] * 9}
    lines = [json.dumps(row | {"n": [{"a": 1}, {"b": 2}], "id": number}) for number in range(20)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", tokens="tokens", labels="tags", **SPLIT)
    rows = [*map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())]
    assert any(len(row["tokens"]) != 18 for row in rows)
    assert all(len(row["tokens"]) == len(row["tags"]) == len(row["pos"]) for row in rows)
    assert all(row["n"] == [{"a": 1}, {"b": 2}] for row in rows)


@pytest.mark.parametrize("kind", ["txt", "tsv"])
def test_a_text_of_several_lines_is_one_line(tmp_path, kind):
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "one\r\ntwo\rthree\r"}) + "\n")
    augment(tmp_path / "a.jsonl", tmp_path / f"b.{kind}", transforms="leet:rate=0")
    assert (tmp_path / f"b.{kind}").read_bytes().splitlines()[-1] == b"one  two three "
    assert b"\r" not in (tmp_path / f"b.{kind}").read_bytes()


def test_a_list_with_an_item_per_token_follows_the_tokens_of_its_row(tmp_path):
    def row(number):
        pos = [1] * (17 if number == 29 else 18)
        return {
            "tokens": ["see", "going"] * 9,
            "tags": ["O", "B-X"] * 9,
            "pos": pos,
            "topics": [0] * (18 if number else 1),
        }

    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(row(number)) for number in range(30)))
    made = []
    for size in (1, 7):
        out = tmp_path / f"{size}.jsonl"
        augment(
            tmp_path / "a.jsonl",
            out,
            tokens="tokens",
            labels="tags",
            rows_per_shard=size,
            workers=1,
            **SPLIT,
        )
        made.append(out.read_text())
    rows = [*map(json.loads, made[0].splitlines())]
    assert made[0] == made[1]
    assert all(len(row["tokens"]) == len(row["pos"]) for row in rows[:29])
    assert all(len(row["tokens"]) == len(row["topics"]) for row in rows[1:])
    assert len(rows[0]["topics"]) == 1
    assert len(rows[29]["pos"]) == 17


def test_a_stream_of_text_is_no_stream_of_sentences(tmp_path, written, monkeypatch):
    text = "One O\nand O\n\nA poem O\n\nO\n"
    on_stdin(monkeypatch, text.encode())
    assert written("-", "-")[:2] == (0, text)


def test_a_last_sentence_gets_a_blank_line_only_before_another(tmp_path):
    (tmp_path / "a.conll").write_bytes(b"a O\r\n\r\nb O")
    augment(tmp_path / "a.conll", tmp_path / "b.conll", **NOTHING)
    assert (tmp_path / "b.conll").read_bytes() == b"a O\r\n\r\nb O"
    twice = [tmp_path / "a.conll", tmp_path / "b.conll"]
    augment(twice, tmp_path / "c.conll", **NOTHING)
    assert (tmp_path / "c.conll").read_bytes() == b"a O\r\n\r\nb O\r\n\r\na O\r\n\r\nb O"


def test_noise_changes_words_and_carries_the_tags_of_all_columns():
    names = ("tokens", "column_2", "column_3", "labels")
    words, owners = ["E", "U", "rejects#"], [0, 0, 1]
    new = {"tokens": words, "labels": carried(["B-ORG", "O", "O"], owners)}
    assert rewritten(CONLL.partition(b"\n\n\n")[0] + b"\n\n", names, new, owners) == (
        "-DOCSTART- -X- -X- O\n\nE NNP  B-NP B-ORG\nU NNP  I-NP I-ORG\nrejects# VBZ B-VP O \n\n"
    )


def test_a_treebank_stays_a_tree():
    tags = ["AUX", "VERB", "VERB", "ADP", "NOUN", "PUNCT"]
    new = {"form": ["Don't", "g", "o", "ofthe", "isle", "."], "upos": tags}
    noisy = rewritten(CONLLU, TREEBANK_COLUMNS[1:], new, [0, 2, 2, 3, 5, 6])
    comments = "# newdoc id = d\n# sent_id = d-1\n# text = Don't g o ofthe isle.\n"
    assert (
        noisy
        == comments
        + cells(
            "1 Don't do AUX VB _ 2 aux 2:aux _",
            "2 g go VERB VB Mood=Imp 0 root 0:root _",
            "3 o _ X _ _ 2 goeswith _ _",
            "3.1 you you PRON _ _ _ _ 2:nsubj _",
            "4 ofthe of ADP IN _ 5 case 5:case _",
            "5 isle isle NOUN NN Number=Sing 2 obl 2:obl:of|3.1:dep Gloss=x|SpaceAfter=No",
            "6 . . PUNCT . _ 2 punct 2:punct _",
        )
        + "\n"
    )


def test_a_contraction_is_spelled_as_its_words_and_a_relation_leads_out_of_a_merged_word():
    new = {"form": ["Doo", "n't", "go", "of", "theis", "le", "."]}
    noisy = rewritten(CONLLU, TREEBANK_COLUMNS[1:], new, [0, 1, 2, 3, 4, 5, 6])
    assert "1-2\tDoon't\t" in noisy
    noisy = rewritten(CONLLU, TREEBANK_COLUMNS[1:], {"form": list("abcdef")}, [0, 1, 2, 3, 4, 6])
    assert "# text = ab c d ef\n" in noisy
    assert cells("5 e the DET DT _ 3 obl 3:obl:of|3.1:dep SpaceAfter=No") in noisy
    noisy = rewritten(
        CONLLU, TREEBANK_COLUMNS[1:], {"form": list("abcdefgh")}, [0, 1, 2, 3, 4, 5, 5, 6]
    )
    assert "# text = ab c d e f gh\n" in noisy
    assert (
        cells("7 g _ X _ _ 6 goeswith _ SpaceAfter=No", "8 h . PUNCT . _ 3 punct 3:punct _")
        in noisy
    )


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 100), min_size=1, max_size=8), st.lists(st.integers(0, 7), min_size=1)
)
def test_any_tree_stays_one_whatever_becomes_of_its_words(heads, owners):
    """Word n hangs on one before it or is a root; each of the other columns has its number."""
    owners = sorted(owner % len(heads) for owner in owners)
    heads = [0 if head % 3 == 0 else head % (number + 1) for number, head in enumerate(heads)]
    lines = [f"{n} w{n} l{n} X _ _ {head} r _ _" for n, head in enumerate(heads, 1)]
    new = {"form": [f"x{number}" for number in range(len(owners))]}
    noisy = rewritten(cells(*lines).encode() + b"\n", TREEBANK_COLUMNS[1:], new, owners)
    rows = [line.split("\t") for line in noisy.rstrip("\n").split("\n")]
    assert [row[0] for row in rows] == [str(number) for number in range(1, len(owners) + 1)]
    assert [row[1] for row in rows] == new["form"]
    for number in range(1, len(rows) + 1):
        steps = 0
        while number:
            number, steps = int(rows[number - 1][6]), steps + 1
            assert steps <= len(rows)


def test_split_and_merged_words_of_a_run_keep_their_lines(tmp_path):
    source = tmp_path / "a.conll"
    source.write_bytes(CONLL * 20 + BAD)
    made = augment(source, tmp_path / "b.conll", **SPLIT)
    written = (tmp_path / "b.conll").read_bytes()
    assert written.endswith(BAD)
    assert written.count(b"-DOCSTART- -X-") == 60
    lines = [line.split() for line in written.removesuffix(BAD).splitlines() if line.strip()]
    assert {len(line) for line in lines} == {4}
    assert len(lines) != 140
    assert made.totals["as_is"] == {"not_utf8": 1, "wrong_columns": 1}
    augment(source, tmp_path / "out", **SPLIT)
    tokens = [token for row in table(tmp_path / "out")["noisy_tokens"].to_pylist() for token in row]
    assert [line[0].decode() for line in lines if line[0] != b"-DOCSTART-"] == tokens


def test_normalised_text_stays_normalised(tmp_path, written):
    (tmp_path / "a.norm").write_bytes(NORM * 20)
    options = {"transforms": ["spac:add_rate=0.2,drop_rate=0.2", "fing:rate=0.2"], "seed": 1}
    code, _, told = written(tmp_path / "a.norm", tmp_path / "b.norm")
    assert code == 0
    assert "column 'raw' has the tokens and 'norm' their labels" in told

    augment(tmp_path / "a.norm", tmp_path / "b.norm", force=True, **options)
    augment(tmp_path / "a.norm", tmp_path / "out", **options)
    blocks = (tmp_path / "b.norm").read_text().removesuffix("\n\n").split("\n\n")
    sides = [
        list(zip(*(line.split("\t") for line in block.split("\n")), strict=True))
        for block in blocks
    ]
    rows = table(tmp_path / "out")
    assert [list(raw) for raw, _ in sides] == rows["noisy_tokens"].to_pylist()
    assert [list(norm) for _, norm in sides] == rows["noisy_labels"].to_pylist()
    texts = {" ".join(filter(None, norm)) for _, norm in sides}
    assert texts == {"you going to the", "want to never"}
    assert any(len(raw) != 4 for raw, _ in sides)


def test_forms_of_merged_words_are_joined_and_a_split_one_has_its_form_once():
    assert carried_forms(["you", "going to", ""], [0, 0, 1]) == ["you", "", "going to"]
    assert carried_forms(["a", "b", "c"], [1]) == ["a b c"]
    assert carried_forms([], []) == []


def test_where_the_format_changes_a_row_that_cannot_be_read_is_left_out(tmp_path, written):
    (tmp_path / "a.jsonl").write_text(
        '{"text": "a", "n": 1}\nno\n{"text": null, "n": 2}\n{"n": 3}\n'
    )
    for kind in ("tsv", "csv", "txt", "parquet"):
        code, _, told = written(tmp_path / "a.jsonl", tmp_path / f"b.{kind}")
        assert code == 3
        assert told.endswith("WER 0.00%; left out: bad_json 1, missing_text 2\n")
        assert "1 row;" in told
    assert (tmp_path / "b.tsv").read_text() == "text\tn\na\t1\n"
    assert pq.read_table(tmp_path / "b.parquet").to_pylist() == [{"text": "a", "n": 1}]


def test_a_row_of_a_table_stays_with_the_values_that_it_has(tmp_path):
    rows = {"text": ["see", None, "you"], "id": [1, 2, None]}
    pq.write_table(pa.table(rows), tmp_path / "a.parquet")
    for kind in ("parquet", "jsonl"):
        made = augment(tmp_path / "a.parquet", tmp_path / f"b.{kind}", **NOTHING)
        assert made.totals["as_is"] == made.totals["dropped"] == {"null_id": 1, "null_text": 1}
    assert pq.read_table(tmp_path / "b.parquet").to_pydict() == rows
    assert [*map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())] == pa.table(
        rows
    ).to_pylist()
    made = augment(tmp_path / "a.parquet", tmp_path / "b.txt", **NOTHING)
    assert (made.totals["as_is"], (tmp_path / "b.txt").read_text()) == ({}, "see\n")
    assert made.summary().endswith("left out: null_id 1, null_text 1")


def test_text_of_bytes_is_text_in_other_formats(tmp_path):
    values = pa.array([b"caf\xc3\xa9", b"\xff"], pa.binary())
    pq.write_table(pa.table({"text": values}), tmp_path / "a.parquet")
    for kind in ("jsonl", "txt", "parquet"):
        augment(tmp_path / "a.parquet", tmp_path / f"b.{kind}", **NOTHING)
    assert (tmp_path / "b.jsonl").read_text() == '{"text": "café"}\n'
    assert (tmp_path / "b.txt").read_text() == "café\n"
    assert pq.read_table(tmp_path / "b.parquet")["text"].to_pylist() == values.to_pylist()


def test_a_bad_row_is_written_once_for_all_copies(tmp_path):
    lines = ['{"text": "see you"}', "no", '{"text": "bye"}']
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    made = augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", copies=2, **NOTHING)
    written = (tmp_path / "b.jsonl").read_text().splitlines()
    assert [line for line in written if "copy" not in line] == ["no"]
    assert [json.loads(line)["copy"] for line in written if "copy" in line] == [0, 1, 0, 1]
    assert (made.totals["rows"], written[2]) == (5, "no")


def test_a_field_of_another_type_is_no_loss_where_the_line_stays(tmp_path, written):
    lines = '{"text": "a", "n": 1}\n{"text": "b", "n": "two", "more": [1]}\n'
    (tmp_path / "a.jsonl").write_text(lines)
    assert written(tmp_path / "a.jsonl", "-")[:2] == (0, lines)
    code, out, told = written(tmp_path / "a.jsonl", "-", "--to", "tsv")
    assert (code, out) == (0, "text\tn\tmore\na\t1\t\nb\ttwo\t[1]\n")
    assert "left out" not in told


def test_json_keeps_its_spelling_beside_the_noise(tmp_path):
    line = '{ "n":1e400,"text" : "see\\u0020you", "a": {"text": "no",  "b": [1.0,-0]} }'
    (tmp_path / "a.jsonl").write_text(line + "\n")
    options = {"transforms": ["leet:rate=1"], "copies": 2}
    augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **options)
    first, second = (tmp_path / "b.jsonl").read_text().splitlines()
    noisy = json.loads(first)["text"]
    assert noisy != "see you"
    assert first == line.replace('"see\\u0020you"', json.dumps(noisy, ensure_ascii=False)).replace(
        " }", ' , "copy": 0}'
    )
    assert second.endswith('"copy": 1}')


def test_fields_keep_the_quotes_that_they_have(tmp_path):
    lines = [
        "n,text,x",
        '"1","see",a"b',
        '2,"see ""you""",""',
        '"3",see,"a,b"',
        ",see,",
        '"4"5,see,',
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n")
    augment(tmp_path / "a.csv", tmp_path / "b.csv", transforms=["caps"])
    noisy = "\n".join(lines).replace("see", "SEE").replace("you", "YOU").replace('"4"5', "45")
    assert (tmp_path / "b.csv").read_text() == noisy + "\n"


def test_doubled_keys_are_a_bad_row(tmp_path):
    line = '{"text": "a", "n": 1, "n": 2}\n'
    (tmp_path / "a.jsonl").write_text('{"text": "b", "n": 3}\n' + line)
    made = augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **NOTHING)
    assert made.totals["as_is"] == {"bad_json": 1}
    assert (tmp_path / "b.jsonl").read_text().endswith(line)


def test_lists_beside_the_tokens_follow_them_to_another_format(tmp_path):
    (tmp_path / "a.conll").write_bytes(CONLL * 20)
    augment(tmp_path / "a.conll", tmp_path / "b.jsonl", **SPLIT)
    rows = [json.loads(line) for line in (tmp_path / "b.jsonl").read_text().splitlines()]
    assert {len(row) for row in rows} == {4}
    assert all(len({len(values) for values in row.values()}) == 1 for row in rows)
    assert any(row["column_3"][:2] == ["B-NP", "I-NP"] for row in rows)
    assert any(len(row["tokens"]) == 2 for row in rows)


@pytest.mark.parametrize("other", [None, [], ["N", "V"], "absent"])
def test_a_row_without_a_fitting_list_does_not_stop_the_lists_of_others(tmp_path, other):
    row = {"tokens": ["Marta", "does", "not", "live"], "pos": [1, 2, 3, 4], "tags": ["O"] * 4}
    short = {"tokens": ["Oslo"], "pos": other, "tags": ["O"]}
    if other == "absent":
        del short["pos"]
    elif other:
        row["pos"] = ["A", "B", "C", "D"]
    lines = [json.dumps(each, separators=(",", ":")) for each in (row, short)]
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    named = {"tokens": "tokens", "labels": "tags"}
    augment(tmp_path / "a.jsonl", tmp_path / "b.jsonl", **named, **SPLIT)
    first, second = map(json.loads, (tmp_path / "b.jsonl").read_text().splitlines())
    assert len(first["tokens"]) == len(first["pos"]) == len(first["tags"]) != 4
    assert second.get("pos", "absent") == other
    pq.write_table(pa.Table.from_pylist([row, short]), tmp_path / "a.parquet")
    augment(tmp_path / "a.parquet", tmp_path / "b.parquet", **named, **SPLIT)
    first, second = pq.read_table(tmp_path / "b.parquet").to_pylist()
    assert len(first["tokens"]) == len(first["pos"])
    assert second["pos"] == short.get("pos")


def test_tokens_as_text_are_their_words(tmp_path):
    (tmp_path / "a.conll").write_bytes(CONLL)
    augment(tmp_path / "a.conll", tmp_path / "b.txt", **NOTHING)
    assert (tmp_path / "b.txt").read_text() == "EU rejects #\nAnn\n"


def test_another_member_of_the_family_gets_tokens_and_labels(tmp_path):
    (tmp_path / "a.conll").write_bytes(CONLL)
    (tmp_path / "a.conllu").write_bytes(CONLLU)
    augment(tmp_path / "a.conll", tmp_path / "b.conllu", **NOTHING)
    assert "1\tEU\t_\tB-ORG\t_\t_\t_\t_\t_\t_\n2\trej" in (tmp_path / "b.conllu").read_text()
    augment(tmp_path / "a.conllu", tmp_path / "b.conll", **NOTHING)
    assert (tmp_path / "b.conll").read_bytes() == CONLLU


def test_a_text_is_no_list_of_tokens(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a b", "tags": ["O", "O"]}\n')
    message = "column 'text' is not a list of strings but string"
    with pytest.raises(SourceError, match=message):
        augment(tmp_path / "a.jsonl", tmp_path / "b.conll", tokens="text", labels="tags", **NOTHING)
    message = "column 'text' is not a list of strings"
    with pytest.raises(SourceError, match=message):
        augment(tmp_path / "a.jsonl", tmp_path / "b.conll", tokens="tags", labels="text", **NOTHING)


def test_names_of_a_run_are_free_for_one_file(tmp_path):
    (tmp_path / "a.tsv").write_text("clean\tnoisy\tedits\nsee\tc\t1\n")
    named = {"text_column": "clean", **NOTHING}
    augment(tmp_path / "a.tsv", tmp_path / "b.tsv", **named)
    assert (tmp_path / "b.tsv").read_text() == (tmp_path / "a.tsv").read_text()
    with pytest.raises(SourceError, match="has a column 'edits', as the output will; rename it"):
        augment(tmp_path / "a.tsv", tmp_path / "c.tsv", edits=True, **named)
    augment(tmp_path / "b.tsv", tmp_path / "c.tsv", copies=2, **named)
    with pytest.raises(SourceError, match="has a column 'copy', as the output will; rename it"):
        augment(tmp_path / "c.tsv", tmp_path / "d.tsv", copies=2, **named)


def test_a_run_can_be_noised_again_as_one_file(tmp_path, written):
    (tmp_path / "a.txt").write_text("see you\n")
    augment(tmp_path / "a.txt", tmp_path / "out", transforms=["leet:rate=1"])
    again = {"text_column": "clean", **NOTHING}
    with pytest.raises(SourceError, match=r"'noisy' has a name of .*, or write one file \(-o "):
        augment(tmp_path / "out", tmp_path / "again", **again)
    _, _, told = written(tmp_path / "out", tmp_path / "again.parquet", "--text-column", "clean")
    assert told.startswith("hint: column 'id' is taken as the id of each row\n")
    assert pq.read_table(tmp_path / "again.parquet").equals(table(tmp_path / "out"))


def test_the_column_that_is_named_gets_the_noise(tmp_path):
    (tmp_path / "a.csv").write_text("id,clean,noisy,transforms\n7,see,you,x\n")
    augment(tmp_path / "a.csv", tmp_path / "b.csv", text_column="noisy", transforms=["caps"])
    assert (tmp_path / "b.csv").read_text() == "id,clean,noisy,transforms\n7,see,YOU,x\n"
    (tmp_path / "a.jsonl").write_text('{"clean": ["a"], "tags": ["O"]}\n')
    with pytest.raises(SourceError, match="column 'clean' has a name of the output; rename it"):
        augment(
            tmp_path / "a.jsonl", tmp_path / "b.jsonl", tokens="clean", labels="tags", **NOTHING
        )


def test_a_ragged_first_line_does_not_decide_how_many_columns_there_are(tmp_path):
    data = b"a one too many O\nb B-X\n\nc O\nd B-X\n\ne O\n\n"
    (tmp_path / "a.conll").write_bytes(data)
    made = augment(tmp_path / "a.conll", tmp_path / "b.conll", **NOTHING)
    assert (tmp_path / "b.conll").read_bytes() == data
    assert (made.totals["rows"], made.totals["as_is"]) == (3, {"wrong_columns": 1})


@pytest.mark.parametrize("name", ["a.txt", "a.tsv", "a.csv", "a.jsonl", "a.conll", "a.norm"])
def test_lines_that_end_in_cr_alone_are_an_error_that_says_how(tmp_path, written, name):
    (tmp_path / name).write_bytes(b"text\rone\rtwo\r")
    problem = "its lines end in CR alone; convert them: tr '\\r' '\\n' < FILE > NEW"
    assert written(tmp_path / name, "-") == (1, "", f"error: {tmp_path / name}: {problem}\n")


def test_the_whole_sentences_of_a_damaged_file_are_there(tmp_path):
    content = gzip.compress(b"".join(b"word%d O\n\n" % n for n in range(9_000)))
    (tmp_path / "a.conll.gz").write_bytes(content[: len(content) // 2])
    made = augment(tmp_path / "a.conll.gz", tmp_path / "b.conll", **NOTHING)
    written = (tmp_path / "b.conll").read_bytes()
    assert written == b"".join(b"word%d O\n\n" % n for n in range(made.totals["rows"]))
    assert made.summary().endswith("left out: truncated 1")


def test_a_blank_line_of_json_lines_is_no_row(tmp_path):
    lines = '{"text": "see"}\n\n{"text": "you"}\r\n \t\n\n'
    (tmp_path / "a.jsonl").write_bytes(lines.encode())
    for name in ("b.jsonl", "b.json", "b.txt", "out"):
        made = augment(tmp_path / "a.jsonl", tmp_path / name, **NOTHING)
        assert (made.totals["rows"], made.totals["dropped"]) == (2, {})
        assert not made.totals.get("as_is")
    assert (tmp_path / "b.jsonl").read_bytes() == lines.encode()
    assert [row["text"] for row in json.loads((tmp_path / "b.json").read_text())] == ["see", "you"]
    assert (tmp_path / "b.txt").read_bytes() == b"see\nyou\n"


def test_a_bad_line_is_left_out_of_a_document(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "see"}\nno json\n{"text": "you"}\n')
    made = augment(tmp_path / "a.jsonl", tmp_path / "b.json", **NOTHING)
    assert made.summary().endswith("left out: bad_json 1")
    assert len(json.loads((tmp_path / "b.json").read_text())) == 2
