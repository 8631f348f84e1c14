"""Files with a token per line: which columns they have, and what their sentences become."""

import gzip
import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from source_files import File, clean, rows_of, writer

import noisegen
from noisegen.data.formats.registry import read_head
from noisegen.data.labelled import read_tags
from noisegen.data.pairs import read_pairs
from noisegen.data.rows import Columns, FileRange
from noisegen.data.sources import completed, expand
from noisegen.errors import SourceError, UsageError

BOM = b"\xef\xbb\xbf"
CONLL = b"""-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O
# SYM B-NP O

Ann NNP B-NP B-PER
"""
CONLLU = b"""# newdoc id = d
# sent_id = d-1
# text = Don't go, Ann.
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
2.1\tyou\tyou\tPRON\t_\t_\t_\t_\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No

# sent_id = d-2
1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\t_
"""
UNER = b"# text = Tom is\n1\tTom\tB-PER\t-\tann\n2\tis\tO\t-\tann\n\n1\t#yes\tO\t-\tann\n"
WIKI = b"Rome\tB-LOC\ncalls\tO\n\n#hi\tO\n\xc3\xa4\tO\n"
NORM = (
    b"u\tyou\ngoin\tgoing\nto\tto\nthe\tthe\n\n#lol\t#lol\nwanna\twant to\nto\t\nne\tnever\nver\t\n"
)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return writer(tmp_path)


def meant(path: Path, **named: str) -> Columns:
    return completed(expand(path), Columns(**named))[0]


def sentences(path: Path, **named: str) -> list[tuple[list[str], list[str]]]:
    columns = meant(path, **named)
    assert None not in (columns.tokens, columns.labels)
    table, dropped = rows_of(path, columns=columns)
    assert not dropped
    assert table["clean"].to_pylist() == [" ".join(t) for t in table[columns.tokens].to_pylist()]
    pairs = zip(
        *(table[name].to_pylist() for name in (columns.tokens, columns.labels)), strict=True
    )
    return list(pairs)


IO = b"Rome LOC\ncalls O\n\nhi O\n"
CONLL_NER = [(["EU", "rejects", "#"], ["B-ORG", "O", "O"]), (["Ann"], ["B-PER"])]


@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.conll", CONLL, CONLL_NER),
        ("a.conll", CONLL.replace(b"\n", b"\r\n"), CONLL_NER),
        ("a.conll.gz", gzip.compress(BOM + CONLL.replace(b" ", b"\t"), mtime=0), CONLL_NER),
        ("a.conllu", CONLLU, [(["Do", "n't", "go"], ["AUX", "PART", "VERB"]), (["Yes"], ["INTJ"])]),
        ("a.iob2", UNER, [(["Tom", "is"], ["B-PER", "O"]), (["#yes"], ["O"])]),
        ("a.bio", WIKI, [(["Rome", "calls"], ["B-LOC", "O"]), (["#hi", "ä"], ["O", "O"])]),
        ("a.tsv", WIKI, [(["Rome", "calls"], ["B-LOC", "O"]), (["#hi", "ä"], ["O", "O"])]),
        ("a.txt", WIKI, [(["Rome", "calls"], ["B-LOC", "O"]), (["#hi", "ä"], ["O", "O"])]),
        ("io.txt", IO, [(["Rome", "calls"], ["LOC", "O"]), (["hi"], ["O"])]),
        ("eng.testa", CONLL, CONLL_NER),
        ("a.conll", b"a DT\nfox NN", [(["a", "fox"], ["DT", "NN"])]),
    ],
)
def test_a_sentence_is_a_row_with_its_tokens_and_labels(
    file: File, name: str, data: bytes, expected: object
) -> None:
    assert sentences(file(name, data)) == expected


def test_columns_may_be_named_by_number_or_name(file: File) -> None:
    conll, treebank = file("a.conll", CONLL), file("a.conllu", CONLLU)
    assert sentences(conll, labels="2")[1] == (["Ann"], ["NNP"])
    assert sentences(conll, tokens="2", labels="4")[1] == (["NNP"], ["B-PER"])
    assert sentences(treebank, labels="xpos")[1] == (["Yes"], ["UH"])
    assert sentences(treebank, tokens="3", labels="8")[1] == (["yes"], ["root"])
    with pytest.raises(SourceError, match="no column 'column_9' among: "):
        sentences(conll, labels="9")
    with pytest.raises(SourceError, match=r"no column 'xpo' among: .*; did you mean 'xpos'"):
        sentences(treebank, labels="xpo")


def test_one_of_tokens_and_labels_is_enough_for_a_token_per_line(file: File) -> None:
    conll = file("a.conll", CONLL)
    assert meant(conll, labels="3") == Columns(tokens="tokens", labels="column_3")
    assert meant(file("a.txt", b"a\n")) == Columns()
    with pytest.raises(UsageError, match="--labels goes with --tokens"):
        meant(file("a.txt", b"a\n"), labels="3")


def test_the_other_columns_of_a_treebank_come_along(file: File) -> None:
    path = file("a.conllu", CONLLU)
    table, _ = rows_of(path, columns=meant(path))
    assert table.column_names == [
        "id",
        "clean",
        "sent_id",
        "form",
        "lemma",
        "upos",
        "xpos",
        "feats",
        "head",
        "deprel",
        "deps",
        "misc",
    ]
    assert table["sent_id"].to_pylist() == ["d-1", "d-2"]
    assert table["lemma"].to_pylist() == [["do", "not", "go"], ["yes"]]
    table, _ = rows_of(path, columns=Columns(tokens="form", labels="upos", row_id="sent_id"))
    assert table["id"].to_pylist() == ["d-1", "d-2"]


def test_a_sentence_is_also_plain_text(file: File) -> None:
    assert clean(file("a.conll", CONLL)) == ["EU rejects #", "Ann"]
    assert clean(file("a.conllu", CONLLU)) == ["Don't go, Ann.", "Yes"]


CORRECTED = [  # form, relation and notes of each word, what was written, and what was meant
    (["teh det CorrectForm=the", "dog root _"], "teh dog", "the dog"),
    (
        ["be root CorrectForm=before", "for goeswith SpaceAfter=No", ", punct _"],
        "be for,",
        "before,",
    ),
    (["with root _", "out goeswith _", "us obl _"], "with out us", "without us"),
    (["in case CorrectSpaceAfter=Yes|SpaceAfter=No", "time root _"], "intime", "in time"),
    (["! root CorrectSpaceAfter=No", "! punct _"], "! !", "!!"),
    (
        ["the det CorrectForm=_", "= root CorrectForm==)|SpaceAfter=No", ") punct CorrectForm=_"],
        "the =)",
        "=)",
    ),
]


def treebank(*words: str) -> bytes:
    cells = enumerate(map(str.split, words), 1)
    lines = (f"{n}\t{form}" + "\t_" * 5 + f"\t{rel}\t_\t{misc}\n" for n, (form, rel, misc) in cells)
    return "".join([*lines, "\n"]).encode()


@pytest.mark.parametrize(("words", "noisy", "meant"), CORRECTED)
def test_the_corrections_of_a_treebank_are_its_clean_side(
    file: File, words: list[str], noisy: str, meant: str
) -> None:
    pairs = read_pairs([str(file("a.conllu", treebank(*words)))])
    assert (pairs.noisy, pairs.clean) == ([noisy], [meant])
    path = file("a.conllu", treebank(*words))
    assert clean(path, columns=completed(expand(path), Columns("clean"))[0]) == [meant]


def test_a_contraction_is_corrected_as_its_words(file: File) -> None:
    data = CONLLU.replace(b"advmod\t_\t_", b"advmod\t_\tCorrectForm=es")
    pairs = read_pairs([str(file("a.conllu", data + b"\n1\tbad\n"))])
    assert (pairs.noisy, pairs.clean) == (["Don'tgo", "Yes"], ["Doesgo", "Yes"])
    assert pairs.damaged == [f"{file('a.conllu', data)}: 1 rows wrong_columns"]


def test_bad_sentences_are_dropped_and_counted(file: File) -> None:
    data = b"a\tO\nb\tO\n\nc\tO\nd\n\n\xff\tO\n\ne\tB-X\n"
    path = file("a.conll", data)
    table, dropped = rows_of(path, columns=meant(path))
    assert table["clean"].to_pylist() == ["a b", "e"]
    assert dropped == {"wrong_columns": 1, "not_utf8": 1}

    content = gzip.compress(b"".join(b"word%d\tO\n\n" % n for n in range(9_000)))
    path = file("b.conll.gz", content[: len(content) // 2])
    table, dropped = rows_of(path, columns=meant(path))
    assert table["clean"].to_pylist() == [f"word{n}" for n in range(len(table))]
    assert len(table) > 1_000
    assert dropped == {"truncated": 1}


def test_two_words_on_every_line_are_no_tags(file: File) -> None:
    for text in (b"Good DAY\nDEAR ALL\n\nBye ALL\n", b"it IS\nO so\n\nme O\n"):
        assert meant(file("two.txt", text)) == Columns()


def test_a_table_with_blank_lines_stays_a_table(file: File) -> None:
    assert clean(file("a.tsv", b"text\tn\nx\t1\n\ny\t2\n\nz\t3\n")) == ["x", "y", "z"]
    rows, dropped = rows_of(file("b.tsv", b"x\t1\n\ny\t2\n\nz\t3\n"), columns=Columns("1"))
    assert (rows["clean"].to_pylist(), dropped) == (["x", "y", "z"], {"wrong_columns": 2})
    two = file("deu-eng.tsv", b"Ich bin da\tI am here\n\nDu bist da\tYou are here\n")
    with pytest.raises(SourceError, match="no column 'text' among: Ich bin da, I am here"):
        rows_of(two)


def test_an_empty_file_has_no_rows(file: File) -> None:
    assert read_head(FileRange(str(file("a.conll", b"\n\n")), "conll"), Columns()) is None
    with pytest.raises(SourceError, match="no rows in"):
        rows_of(file("b.norm", b""))


@pytest.mark.parametrize("name", ["a.norm", "a.norm.gz", "a.tsv"])
def test_normalised_text_is_pairs(file: File, name: str) -> None:
    path = file(name, gzip.compress(NORM, mtime=0) if name.endswith("gz") else NORM)
    pairs = read_pairs(str(path))
    assert pairs.noisy == ["u goin to the", "#lol wanna to ne ver"]
    assert pairs.clean == ["you going to the", "#lol want to never"]


def test_a_line_without_its_normal_form_costs_its_sentence(file: File) -> None:
    path = file("a.norm", b"u\tyou\n\nlol\nx\tx\n\nok\tokay\n")
    pairs = read_pairs([path])
    assert (pairs.noisy, pairs.clean) == (["u", "ok"], ["you", "okay"])
    assert pairs.damaged == [f"{path}: 1 rows wrong_columns"]


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.conll", CONLL),
        ("a.tsv", b"en:EU\tB-ORG\nen:rejects\tO\nen:#\tO\n\nen:Ann\tB-PER\n"),
        (
            "a.jsonl",
            b"".join(
                json.dumps({"tokens": words, "tags": tags}).encode() + b"\n"
                for words, tags in CONLL_NER
            ),
        ),
    ],
)
def test_a_task_reads_tags_from_any_format(file: File, name: str, data: bytes) -> None:
    found = read_tags(str(file(name, data)), "en")
    assert [(list(row.tokens), list(row.tags)) for row in found.rows] == CONLL_NER
    assert not found.dropped
    assert not found.damaged


def test_what_a_task_cannot_read_is_damage(file: File) -> None:
    path = file("a.conll", b"a O\n\n\xff O\n\nb B-X\nc\n")
    found = read_tags(str(path), "en")
    assert [row.tokens for row in found.rows] == [("a",)]
    assert found.damaged == [f"{path}: 1 rows not_utf8", f"{path}: 1 rows wrong_columns"]
    with pytest.raises(SourceError, match="no column 'tokens' among: text"):
        read_tags(str(file("a.jsonl", b'{"text": "a"}\n')), "en")


def test_augment_noises_the_tokens_of_a_renamed_file_and_not_its_tags(
    file: File, tmp_path: Path
) -> None:
    words = [f"Wonderful{n} B-MISC\nstory{n} O\n" for n in range(200)]
    path = file("news.conll", "\n".join(words).encode())
    manifest = noisegen.augment(path, tmp_path / "out", transforms="fing:p=1,rate=0.2")
    assert (manifest.options["tokens"], manifest.options["labels"]) == ("tokens", "labels")
    (shard,) = (tmp_path / "out" / "data").glob("*.parquet")
    rows = pq.read_table(shard).to_pylist()
    assert Counter(label for row in rows for label in row["noisy_labels"]) == Counter(
        {"B-MISC": 200, "O": 200}
    )
    assert sum(row["noisy_tokens"] != row["tokens"] for row in rows) > 100
    again = noisegen.augment(path, tmp_path / "out", transforms="fing:p=1,rate=0.2", resume=True)
    assert json.loads(again.to_json())["shards"] == json.loads(manifest.to_json())["shards"]


def test_shards_may_hold_more_rows_than_any_file_has(file: File, tmp_path: Path) -> None:
    path = file("in.conll", CONLL)
    manifest = noisegen.augment(path, tmp_path / "out", rows_per_shard=10**20, limit=10**20)
    assert manifest.totals["rows"] == 2


@pytest.mark.parametrize("name", ["names.conll", "names.txt", "names.tsv"])
def test_a_line_that_names_the_columns_is_no_token(file: File, tmp_path: Path, name: str) -> None:
    source = file(name, b"Token\ttag\nJohn\tB-PER\nlives\tO\n\nShe\tO\nsleeps\tO\n")
    noisy = tmp_path / f"noisy-{name}"
    noisegen.augment(source, noisy, transforms="fing:rate=1")
    lines = noisy.read_text("utf-8").splitlines()
    assert lines[0] == "Token\ttag"
    assert lines[1] != "John\tB-PER"
    assert lines[1].endswith("\tB-PER")
    named = {"tokens": "Token", "labels": "tag"}
    noisegen.augment(source, noisy, transforms="fing:rate=1", force=True, **named)
    assert noisy.read_text("utf-8").splitlines() == lines
