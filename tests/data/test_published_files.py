"""Files of published sets, made in their formats with our own sentences, are read as they are."""

import gzip
import json
import shlex
from collections import Counter

import click
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noisegen.cli import noisegen, run
from noisegen.data.bitext import all_bitext, stream_bitext
from noisegen.data.columns import read_columns
from noisegen.data.formats.corrections import correction_table
from noisegen.data.formats.registry import file_of, read_head
from noisegen.data.pairs import read_pairs
from noisegen.data.rows import Columns
from noisegen.data.sources import is_hub
from noisegen.data.tables import LISTS, REASON
from noisegen.errors import SourceError
from noisegen.evaluation.metrics import published_sets
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.sets import make_sets
from noisegen.options import decode

TEXT, PAIR, STS = (
    ("text", "label"),
    ("sentence1", "sentence2", "label"),
    ("sentence1", "sentence2", "score"),
)
BOM = b"\xef\xbb\xbf"
CAFE = "a café — “warm”".encode("cp1252")


def sets_of(**given):
    options = decode(EvaluateOptions, {"models": "minilm", "out": "report", **given})
    return make_sets(options, lambda line: None)


# Name of the file, what is in it, columns, rows, what is dropped and how many rows are damaged.
FILES = [
    (
        "sts-test.csv",
        b"main-news\tours\t2012\t0001\t4.250\tA dog's \"bark\tIt barks\r\n"
        b"main-forums\tours\t2013\t7\t0\tUp\tDown\tsome source\thttp://x\n"
        b"main-news\tours\t2012\t0002\t\tA\tB\nmain-news\tours\t2012\n",
        STS,
        [("A dog's \"bark", "It barks", "4.250"), ("Up", "Down", "0")],
        {"no_score": 1},
        1,
    ),
    (
        "STS.en-de.txt",
        BOM + b"A red door\tEine rote T\xc3\xbcr\t5.0\na\tb\t1.25\n",
        STS,
        [("A red door", "Eine rote Tür", "5.0"), ("a", "b", "1.25")],
        {},
        0,
    ),
    (
        "test.jsonl",
        b'{"id": "1_2", "score": 3.25, "sentence1": "It rains.\\nA lot.", "sentence2": "Wet"}\r\n'
        b'{"id": "3_4", "score": null, "sentence1": "a", "sentence2": "b"}\n',
        STS,
        [("It rains.\nA lot.", "Wet", "3.25")],
        {"no_score": 1},
        0,
    ),
    (
        "SICK_trial.txt",
        b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
        b"4\tA cat naps\tA cat runs\t3.5\tNEUTRAL\r\n5\ta\tb\t\tNEUTRAL\n",
        STS,
        [("A cat naps", "A cat runs", "3.5")],
        {"no_score": 1},
        0,
    ),
    (
        "msr_paraphrase_test.txt",
        BOM + b"Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\r\n"
        b'1\t10\t11\t"So," he said\tHe said "so\r\n',
        PAIR,
        [('"So," he said', 'He said "so', "1")],
        {},
        0,
    ),
    (
        "rt-polarity.neg",
        CAFE + b"\r\n\xe2\x80\x94 caf\xc3\xa9 .\n\nodd \x81 byte\n",
        TEXT,
        [("a café — “warm”", "neg"), ("— café .", "neg"), ("odd \x81 byte", "neg")],
        {"empty_cell": 1},
        0,
    ),
    ("custrev.pos", b"works , mostly\n", TEXT, [("works , mostly", "pos")], {}, 0),
    ("mpqa.pos", b"fond of\n", TEXT, [("fond of", "pos")], {}, 0),
    ("subj.objective", b"a man\tleaves town\n", TEXT, [("a man\tleaves town", "objective")], {}, 0),
    (
        "train_5500.label",
        b"LOC:other Where : is\tthe sea ?\nHUM:ind Who made \xfcber it ?\nNUM\n",
        TEXT,
        [("Where : is", "LOC"), ("Who made über it ?", "HUM")],
        {},
        1,
    ),
    (
        "sentiment-dev",
        b"a fine , dull film\t0\nso good\t1\n",
        TEXT,
        [("a fine , dull film", "0"), ("so good", "1")],
        {},
        0,
    ),
    (
        "sentiment-test",
        b"4 a fine film\n0 3 dull hours\n",
        TEXT,
        [("a fine film", "4"), ("3 dull hours", "0")],
        {},
        0,
    ),
    (
        "train.data",
        b"12\tRain\tit rains\tit 's wet\t(4, 1)\tit/O\tit/O\n12\tRain\ta\tb\t(0, 5)\tx\tx\n"
        b"12\tRain\tc\td\t(2, 3)\tx\tx\n12\tRain\te\n",
        PAIR,
        [("it rains", "it 's wet", "1"), ("a", "b", "0")],
        {"no_label": 1},
        1,
    ),
    (
        "test.data",
        b"3\tRain\ta\tb\t5\tx\tx\n3\tRain\tc\td\t3\tx\tx\n3\tRain\te\tf\t0\tx\tx\n",
        PAIR,
        [("a", "b", "1"), ("e", "f", "0")],
        {"no_label": 1},
        0,
    ),
    (
        "Flood-ontopic_offtopic.csv",
        b"tweet id, tweet, label\n'11',\"Wet, wet\nroads\",on-topic\n'12',\"\",off-topic\n"
        b"'11',again,on-topic\n'13',So \"dry\" here,off-topic\n",
        TEXT,
        [("Wet, wet\nroads", "on-topic"), ('So "dry" here', "off-topic")],
        {"empty_cell": 1, "duplicate_id": 1},
        0,
    ),
    (
        "humaid_test.tsv",
        b'tweet_id\ttweet_text\tclass_label\n7\t"RT open shelter\tcaution\n8\t\tother\n',
        TEXT,
        [('"RT open shelter', "caution")],
        {"empty_cell": 1},
        0,
    ),
    (
        "crisis_consolidated_humanitarian_filtered_lang_en_test.tsv",
        b"id\tevent\tsource\ttext\tlang\tlang_conf\tclass_label\n"
        b"7\tflood\tours\thelp us\ten\t1.0\tneed\n",
        TEXT,
        [("help us", "need")],
        {},
        0,
    ),
    (
        "task_informative_text_img_train.tsv",
        b"event_name\ttweet_id\timage_id\ttweet_text\timage\tlabel\tlabel_text\tlabel_image\tlabel_text_image\n"
        b"flood\t5\t5_0\tbridge gone\ti.jpg\tinformative\tyes\tno\tx\n"
        b"flood\t5\t5_1\tbridge gone\tj.jpg\tinformative\tyes\tno\tx\n",
        TEXT,
        [("bridge gone", "informative")],
        {"duplicate_id": 1},
        0,
    ),
]

SICK_HEADER = b"pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "content", "columns", "rows", "dropped", "damaged"), FILES, ids=[f[0] for f in FILES]
)
def test_a_published_file_is_read(tmp_path, name, content, columns, rows, dropped, damaged, packed):
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(content) if packed else content)
    read = read_columns(str(path), [columns], "the set")
    assert list(zip(*(read.columns[name] for name in columns), strict=True)) == rows
    assert read.dropped == dropped
    assert read.unread.total() == damaged


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("sentiment-dev", b"nothing here\n", "its first line has 1 of 2 columns"),
        ("test.data", b"a b c\n", "topic_id, topic, sentence1, sentence2, label"),
        ("train_5500.label", b"Where is it ?\n", "not as TREC is published"),
        ("SICK_trial.txt", b"", "trial.txt is not as SICK is published: it is empty; get it again"),
        ("sts-dev.csv.gz", gzip.compress(b"\n", mtime=0), "benchmark is published: it is empty"),
        ("rt-polarity.pos", b"", "CR and MPQA is published: it is empty"),
        ("SICK_train.txt", SICK_HEADER, "the set: it is empty or has only a header; get it again"),
        ("SICK.txt", b"a,b,c\n", "by its name it is of SICK, but not by its lines"),
        ("c.csv", b"\xef\xbb\xbf", "the set: it is empty or has only a header"),
        ("github-typo-corpus.v1.jsonl", b"<html>\n", "none; by its name it is of GitHub Typo"),
        ("b.tsv", b"text\tlabel\nx\xff\tb\n", r"no rows for the set \(1 not_utf8\)"),
    ],
)
def test_a_file_of_that_name_with_other_lines_is_refused(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SourceError, match=said) as error:
        read_columns(str(tmp_path / name), [STS if "SICK" in name else TEXT], "the set")
    assert "\n" not in str(error.value)


def test_a_file_of_that_name_that_is_a_table_stays_one(tmp_path):
    path = tmp_path / "sts-test.csv"
    path.write_text("sentence1,sentence2,score\na,b,1\n")
    assert read_head(file_of(path), Columns("sentence1")).format == "csv"
    assert read_head(file_of(path), Columns("1")).schema.names == [f"column_{n}" for n in (1, 2, 3)]
    (tmp_path / "STS.input.mine.txt").write_text("only sentences\n")
    assert read_head(file_of(tmp_path / "STS.input.mine.txt"), Columns()).format == "txt"


# Scores in a file of their own.


def sts_folder(folder, scores=b"4.5\n\n0\n", gold="STS2016.gs.ours.txt"):
    text = b"it rains\tit is wet\tfrom a\tfrom b\na\tb\nup\tdown\n"
    (folder / "STS2016.input.ours.txt").write_bytes(text)
    (folder / gold).parent.mkdir(exist_ok=True)
    (folder / gold).write_bytes(scores)
    (folder / "00-readme.txt").write_text("Read me.\n")
    return str(folder)


def test_scores_stand_in_a_file_beside_the_sentences(tmp_path):
    read = read_columns(sts_folder(tmp_path), [STS], "--sts")
    assert list(zip(*read.columns.values(), strict=True)) == [
        ("it rains", "it is wet", "4.5"),
        ("up", "down", "0"),
    ]
    assert read.dropped == {"no_score": 1}


def test_scores_stand_in_a_folder_beside_that_of_the_sentences(tmp_path):
    (tmp_path / "STS2016.eval").mkdir()
    source = sts_folder(tmp_path / "STS2016.eval", gold="../STS2016.gs/STS2016.gs.ours.txt")
    assert len(read_columns(source, [STS], "--sts")) == 2


@pytest.mark.parametrize(
    ("scores", "said"),
    [(b"1\n", "has 3 lines and its scores 1"), (b"1\n" * 4, "has 3 lines and its scores 4")],
)
def test_scores_that_are_not_of_the_sentences_are_refused(tmp_path, scores, said):
    source = sts_folder(tmp_path, scores)
    with pytest.raises(SourceError, match=said):
        read_columns(source, [STS], "--sts")
    (tmp_path / "STS2016.gs.ours.txt").unlink()
    with pytest.raises(SourceError, match=r"scores are in STS2016.gs.ours.txt, which is not there"):
        read_columns(source, [STS], "--sts")


# Whole sets, as `evaluate` reads them.


def test_a_folder_of_senteval_is_one_labelled_set(tmp_path):
    (tmp_path / "rt-polarity.pos").write_text("".join(f"good {n}\n" for n in range(20)))
    (tmp_path / "rt-polarity.neg").write_text("".join(f"bad {n}\n" for n in range(20)))
    [found] = sets_of(labelled=[str(tmp_path)]).sets
    assert (len(found), set(found.truth)) == (40, {"pos", "neg"})


def test_labels_of_crisislex_are_chosen_by_column(tmp_path):
    path = tmp_path / "2012_Flood-tweets_labeled.csv"
    labels = ["Caution", " Not labeled", "Needs"] * 10
    rows = [f'"{n}","tweet {n}",Media,{kind},Related' for n, kind in enumerate(labels)]
    head = "Tweet ID, Tweet Text, Information Source, Information Type, Informativeness"
    path.write_text("\n".join([head, *rows]) + "\n")
    other = tmp_path / "custrev.neg"
    other.write_text("bad\n" * 30)
    other.with_suffix(".pos").write_text("".join(f"good {n}\n" for n in range(30)))
    sources = [str(path), f"CR={tmp_path}/custrev.*"]
    made = sets_of(labelled=sources, label_column="Information Type")
    assert set(made.sets[0].truth) == {"Caution", "Needs"}
    assert "no_label 10" in made.notes[0]
    assert set(made.sets[1].truth) == {"pos", "neg"}
    with pytest.raises(SourceError, match="name others with --text-column and --label-column"):
        sets_of(labelled=[str(path)])


def test_a_release_without_the_text_of_tweets_says_so(tmp_path):
    (tmp_path / "ids.tsv").write_text("tweet_id\tclass_label\n1\tx\n")
    with pytest.raises(SourceError, match="ids of tweets without their text"):
        sets_of(labelled=[str(tmp_path / "ids.tsv")])


def test_flores_is_text_of_one_language_per_file(tmp_path):
    (tmp_path / "eng_Latn.devtest").write_text('One house.\nTwo "houses".\n')
    [made, *_] = sets_of(source=[str(tmp_path / "eng_Latn.devtest")], transforms=["leet"]).sets
    assert list(made.clean) == ["One house.", 'Two "houses".']


def test_words_of_multilexnorm_are_pairs(tmp_path):
    path = tmp_path / "test.norm"
    path.write_bytes(
        BOM + b'u\tyou\r\nalot\ta lot\r\n:)\t:)\r\n\r\nto\ttogether\r\ngether\t\r\n"\t"\r\n'
    )
    pairs = read_pairs([str(path)])
    assert pairs.noisy == ["u alot :)", 'to gether "']
    assert pairs.clean == ["you a lot :)", 'together "']


def test_typos_of_github_are_pairs_and_other_edits_are_not(tmp_path):
    def edit(noisy, clean, is_typo, probability=0.9):
        sides = [
            {"text": text, "path": "a.md", "lang": "eng", "ppl": 9.5} for text in (noisy, clean)
        ]
        told = {"prob_typo": probability, "is_typo": is_typo}
        told = {name: value for name, value in told.items() if value is not None}
        return {"src": sides[0], "tgt": sides[1], **told}

    commits = [
        {"repo": "r", "commit": "c", "message": "m", "edits": edits}
        for edits in (
            [edit("teh cat\n", "the cat\n", True), edit("v1", "v2", False)],
            [edit("a", "b", None, 0.2), edit("uma", "um", None, None)],
            [edit("Its ok", "It's ok", True)],
        )
    ]
    half = json.dumps(commits[0]).replace("teh", "\\ud83d")  # of a surrogate pair
    lines = [*map(json.dumps, commits), '{"edits": 3}', "{", half]
    path = tmp_path / "github-typo-corpus.v1.0.0.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    pairs = read_pairs([str(path)])
    assert list(zip(pairs.noisy, pairs.clean, strict=True)) == [
        ("teh cat", "the cat"),
        ("uma", "um"),
        ("Its ok", "It's ok"),
    ]
    assert pairs.dropped == {"not_a_typo": 2, "unreadable": 3}
    assert pairs.damaged == [f"{path}: 3 rows bad_json"]


def test_m2_of_learners_is_pairs(tmp_path):
    path = tmp_path / "A.dev.gold.bea19.m2"
    path.write_bytes(
        b"S He go home .\r\nA 1 2|||R:VERB:SVA|||goes|||REQUIRED|||-NONE-|||0\r\n\r\n"
        b"S Fine .\r\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\r\n"
    )
    pairs = read_pairs([str(path)])
    assert (pairs.noisy, pairs.clean) == (["He go home .", "Fine ."], ["He goes home .", "Fine ."])


# Bitext.


def pairs_of(source):
    rows = stream_bitext(all_bitext(source), dropped := Counter())
    return [(*row[:4],) for row in rows], dropped


@pytest.mark.parametrize(
    ("names", "given", "langs"),
    [
        (("eng_Latn.devtest", "deu_Latn.devtest"), "{0},{1}", ("en", "de")),
        (("newstest2019-src.eng.txt", "newstest2019-ref.deu.txt"), "{0},{1}", ("en", "de")),
        (("tatoeba.deu-eng.deu", "tatoeba.deu-eng.eng"), ".", ("de", "en")),
        (("deu-eng/test.src", "deu-eng/test.trg"), "deu-eng", ("de", "en")),
        (("new/test.src", "new/test.trg"), "de-en=new", ("de", "en")),
    ],
)
def test_translations_lie_in_two_files(tmp_path, monkeypatch, names, given, langs):
    monkeypatch.chdir(tmp_path)
    for name, content in zip(
        names, (BOM + b"One.\r\n\r\nTwo.\r\n", b"Un.\nx\nDeux.\n"), strict=True
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).with_name("test.id").write_text("deu\teng\n" * 3)
    found, dropped = pairs_of(given.format(*names))
    assert found == [("One.", "Un.", *langs), ("Two.", "Deux.", *langs)]
    assert dropped == {"empty_side": 1}


def test_a_side_of_the_challenge_that_is_missing_is_named(tmp_path):
    (tmp_path / "deu-eng").mkdir()
    (tmp_path / "deu-eng" / "test.trg").write_text("One.\n")
    with pytest.raises(SourceError, match=r"test\.src is missing"):
        all_bitext(str(tmp_path))


def test_the_challenge_in_one_file_names_languages_per_row(tmp_path):
    path = tmp_path / "tatoeba-test-v2023-09-26.eng-zho.txt.gz"
    path.write_bytes(
        gzip.compress(
            b'eng\tcmn_Hans\tSay "no\t\xe4\xb8\x8d\n'
            b"eng\tyue_Hant\tOne\t\xe4\xb8\x80\neng\tcmn\tx\t\n"
        )
    )
    found, dropped = pairs_of(str(path))
    assert found == [('Say "no', "不", "en", "zh"), ("One", "一", "en", "yue")]
    assert dropped == {"empty_side": 1}
    [one] = sets_of(retrieval=[str(path)]).sets
    assert len(one) == 2


def test_tico_names_both_sides_its_own_way(tmp_path):
    path = tmp_path / "test.en-fr.tsv"
    path.write_bytes(
        BOM + b"sourceLang\ttargetLang\tsourceString\ttargetString\tstringID\turl\tlicense\tid\r\n"
        b'en\tfr\tA "dry cough\tUne toux\tours_1\thttp://x\tpublic\t4\r\n'
    )
    assert pairs_of(str(path)) == ([('A "dry cough', "Une toux", "en", "fr")], {})


def test_pairs_of_bucc_are_those_of_its_gold(tmp_path):
    for end, content in {
        "fr": b"fr-1\tUn.\nfr-2\tDeux\tmots.\nfr-3\tTrois.\n",
        "en": b"en-7\tTwo\twords.\nen-8\tOther.\n",
        "gold": b"fr-2\ten-7\nfr-1\ten-9\n",
    }.items():
        (tmp_path / f"fr-en.training.{end}").write_bytes(content)
    for source in (tmp_path, tmp_path / "fr-en.training"):
        found, dropped = pairs_of(str(source))
        assert found == [("Deux\tmots.", "Two\twords.", "fr", "en")]
        assert dropped == {"unreadable": 1}


# The list of all of them.


def test_the_list_shows_every_set(capsys):
    assert run(["evaluate", "--list"]) == 0
    shown = capsys.readouterr().out
    assert run(["evaluate", "--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["sets"]
    assert listed == published_sets()
    assert all(one[key] and one[key] in shown for one in listed for key in one)


@pytest.mark.parametrize("given", published_sets(), ids=lambda one: one["name"])
def test_commands_of_the_list_are_right(given):
    """Options are there, and files have an ending or name that is read."""
    name, *words = shlex.split(given["command"])
    command = noisegen.commands[name]
    parent = click.Context(noisegen, **noisegen.context_settings)
    values = command.make_context(name, ["minilm", "-o", "out", *words], parent).params
    sources = [source for key in ("source", "sts", "labelled") for source in values.get(key, ())]
    files = [source for source in sources if "." in source and not is_hub(source)]
    assert not [file for file in files if file_of(file).skipped]


def test_without_a_model_or_a_folder_the_usage_is_shown(capsys):
    assert run(["evaluate"]) == run(["evaluate", "minilm"]) == 2
    said = capsys.readouterr().err
    assert "missing argument MODEL" in said
    assert "missing option -o" in said


# Essays of learners.


@given(st.data())
def test_paragraphs_of_an_essay_have_all_its_corrections(data):
    text = data.draw(st.text("ab \n", max_size=40))
    ends = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    new = st.sampled_from(["", "x", "y z", None])
    edits = [[*span, data.draw(new)] for span in zip(ends[::2], ends[1::2], strict=False)]
    flat = [[*edit, "R:OTHER"] for edit in edits]
    corrected = text
    for start, stop, words in reversed(edits):
        corrected = corrected if words is None else corrected[:start] + words + corrected[stop:]
    shown = flat if edits and data.draw(st.booleans()) else [[0, edits], [3, []]]
    line = json.dumps({"text": text, "edits": shown}).encode()
    rows = correction_table(line, "essays", pa.schema({"noisy": pa.string(), "clean": LISTS}))

    assert not any(rows[REASON].to_pylist())
    noisy, clean = rows["noisy"].to_pylist(), rows["clean"].to_pylist()
    assert "".join("".join(noisy).split()) == "".join(text.split())
    assert "".join("".join(each[0] for each in clean).split()) == "".join(corrected.split())
    if shown is not flat:
        assert [each[1] for each in clean] == noisy
    if not edits:
        assert noisy == [line.strip() for line in text.split("\n") if line.strip()]


@pytest.mark.parametrize(
    ("name", "edits"),
    [
        ("A.train.json", [[0, [[0, 3, "The"], [4, 9, None]]], [1, [[0, 3, "That"]]]]),
        ("fce.dev.json", [[0, [[0, 3, "The", "R:SPELL"], [4, 9, None, "R:NOUN"]]]]),
        ("mine.jsonl.gz", [[0, 3, "The", "R:SPELL"], [4, 9, None, "R:NOUN"]]),
    ],
)
def test_essays_are_pairs_of_paragraphs(tmp_path, name, edits):
    lines = [
        {"id": "x", "text": "No edits here.", "edits": []},
        {"id": "1", "text": "Teh horsse .\n\nIt runs .\n", "edits": edits},
        {"id": "2", "text": "Teh cat .", "edits": [[0, [[0, 3, "The"], [2, 7, "dog"]]]]},
        {"id": "3", "text": "Teh cat .", "edits": [[0, [[0, 99, "The"]]]]},
        {"id": "4", "text": "Teh cat ."},
    ]
    content = "\n".join(map(json.dumps, lines)).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)

    pairs = read_pairs([str(tmp_path / name)])

    assert list(zip(pairs.noisy, pairs.clean, strict=True)) == [
        ("No edits here.", "No edits here."),
        ("Teh horsse .", "The horsse ."),
        ("It runs .", "It runs ."),
    ]
    path = tmp_path / name
    assert pairs.damaged == [f"{path}: 2 rows bad_edits", f"{path}: 1 rows bad_json"]


def test_json_lines_with_columns_of_pairs_stay_a_table(tmp_path):
    row = {"text": "a", "edits": [[0, [[0, 1, "b"]]]], "noisy": "Teh cat", "clean": "The cat"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")

    assert read_pairs([str(tmp_path / "a.jsonl")]).noisy == ["Teh cat"]
    assert read_head(file_of(tmp_path / "a.jsonl"), Columns("text")).format == "jsonl"
