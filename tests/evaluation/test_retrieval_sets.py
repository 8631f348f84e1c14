"""Retrieval sets: read as they are published, searched in parts, scored as BEIR does."""

import gzip
import json
import math

import numpy as np
import pytest

from noisegen.cli import run
from noisegen.data.judged import read_judged
from noisegen.encoders.encoder import open_encoder
from noisegen.errors import SourceError, UsageError
from noisegen.evaluation import document_search
from noisegen.evaluation.document_search import NOTHING, ranked, ranking_scores, search_parts
from noisegen.evaluation.evaluate import evaluate
from noisegen.evaluation.page import page
from noisegen.evaluation.similarity import unit
from noisegen.evaluation.xsim_search import neighbours

DOCUMENTS = {
    "d1": ("Bread", "Flour, water, salt and yeast make a plain loaf."),
    "d2": ("", "The last train to the coast leaves at nine."),
    "d3": ("Bees", ""),
    "d4": ("Tea", "Green tea should not be made with boiling water."),
    "q2": ("", "when does the last train go"),
}
QUERIES = {"q1": "how do i make bread", "q2": "when does the last train go", "q3": "green tea"}
GRADES = [("q1", "d1", 2), ("q1", "d4", 1), ("q2", "d2", 1), ("q3", "d4", 1), ("q3", "d9", 2)]


def write_lines(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row}\n" for row in rows), "utf-8")


def beir(folder, documents=DOCUMENTS, queries=QUERIES, grades=GRADES):
    """Write a set in the layout of BEIR and return its path."""
    rows = [{"_id": i, "title": title, "text": text} for i, (title, text) in documents.items()]
    write_lines(folder / "corpus.jsonl", map(json.dumps, rows))
    rows = [{"_id": i, "text": text, "metadata": {}} for i, text in queries.items()]
    write_lines(folder / "queries.jsonl", map(json.dumps, rows))
    rows = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in grades)]
    write_lines(folder / "qrels" / "test.tsv", rows)
    return str(folder)


# Reading.


def test_a_set_of_beir_is_read_as_published(tmp_path):
    found = read_judged(beir(tmp_path))
    assert found.queries.columns == {"id": [*QUERIES], "clean": [*QUERIES.values()]}
    joined = [f"{title} {text}".strip() for title, text in DOCUMENTS.values()]
    assert found.documents == joined
    assert found.rows == {"d1": 0, "d2": 1, "d4": 3, "q2": 4}
    assert found.grades["q1"] == {"d1": 2, "d4": 1}
    assert found.lost["judgements"] == {"document_not_found": 1}


def test_compressed_files_and_one_file_of_judgements_are_read(tmp_path):
    source = beir(tmp_path / "set")
    corpus = tmp_path / "set" / "corpus.jsonl"
    corpus.with_name("corpus.jsonl.gz").write_bytes(gzip.compress(corpus.read_bytes()))
    corpus.unlink()
    write_lines(tmp_path / "set" / "qrels" / "dev.tsv", ["query-id\tcorpus-id\tscore", "q3\td3\t1"])
    assert list(read_judged(source).grades) == ["q1", "q2", "q3"]
    assert read_judged(f"{source}/qrels/dev.tsv").grades == {"q3": {"d3": 1}}


def test_dl_typo_is_read_as_published(tmp_path):
    """Tables without a header line, judgements as in TREC, and the corrected queries beside."""
    write_lines(tmp_path / "collection.tsv", ["7\tbees make honey", '8\tthe "last" train'])
    write_lines(tmp_path / "query.tsv", ["31\twhat do bees make", "32\tlast train", "33\ttea"])
    write_lines(tmp_path / "query.typo.tsv", ["31\twhat do beez mkae", "33\tteh tea"])
    write_lines(tmp_path / "qrels.txt", ["31 0 7 3", "31 0 8 0", "32 0 8 1", "33\t0\t8\t0"])
    found = read_judged(str(tmp_path))
    assert found.queries.columns == {
        "id": ["31"],
        "clean": ["what do bees make"],
        "noisy": ["what do beez mkae"],
    }
    assert found.queries.dropped == {"no_relevant_document": 1, "no_noisy_query": 1}
    assert found.documents == ["bees make honey", 'the "last" train']
    assert found.grades == {"31": {"7": 3, "8": 0}}


def test_whatever_is_left_out_is_counted(tmp_path, monkeypatch):
    monkeypatch.setattr("noisegen.data.judged.ROWS_MAX", 2)
    source = beir(
        tmp_path,
        documents={**DOCUMENTS, "d5": ("", " ")},
        queries={**QUERIES, "q4": "never judged", "q5": "judged irrelevant"},
        grades=[*GRADES, ("q5", "d1", 0), ("q5", "d2", -1), ("q8", "d1", 1), ("q1", "d1", 1)],
    )
    for name, line in (
        ("corpus.jsonl", '{"_id": "d1", "text": "again"}\n{"_id": broken\n'),
        ("qrels/test.tsv", "q1\td2\tmany\nq1 d2\n"),
    ):
        with (tmp_path / name).open("a") as file:
            file.write(line)
    found = read_judged(source)
    assert found.queries.dropped == {"no_relevant_document": 2}
    assert found.lost == {
        "documents": {"empty_cell": 1, "duplicate_id": 1, "over_limit": 1},
        "judgements": {
            "duplicate": 1,
            "malformed": 2,
            "query_not_found": 1,
            "document_not_found": 1,
        },
    }
    assert found.documents[1:] == [DOCUMENTS["d2"][1], "Tea " + DOCUMENTS["d4"][1], QUERIES["q2"]]
    assert found.queries.damaged == [f"{tmp_path}/corpus.jsonl: 1 rows bad_json"]


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("corpus.jsonl", r"no corpus\.jsonl or corpus\.tsv"),
        ("queries.jsonl", r"no queries\.jsonl"),
        ("qrels/test.tsv", "no judgements; a retrieval set is a folder with corpus.jsonl"),
    ],
)
def test_a_missing_file_is_named(tmp_path, missing, message):
    source = beir(tmp_path)
    (tmp_path / missing).unlink()
    with pytest.raises(SourceError, match=message):
        read_judged(source)


def test_unclear_or_useless_judgements_are_refused(tmp_path):
    source = beir(tmp_path, grades=[("q1", "d1", 0)])
    with pytest.raises(SourceError, match=r"no query has a relevant document in test\.tsv"):
        read_judged(source)
    (tmp_path / "qrels" / "test.tsv").rename(tmp_path / "qrels" / "dev.tsv")
    write_lines(tmp_path / "qrels" / "train.tsv", ["q1\td1\t1"])
    with pytest.raises(
        SourceError, match=r"several files of judgements; name one of dev\.tsv, train"
    ):
        read_judged(source)
    with pytest.raises(SourceError, match="no such folder"):
        read_judged(str(tmp_path / "absent"))


def test_noisy_queries_belong_to_one_set(tmp_path):
    with pytest.raises(UsageError, match="--noisy-queries is for one retrieval set"):
        evaluate(["minilm"], tmp_path / "out", sts="a.tsv", noisy_queries="a.jsonl")


# Scores.


def test_scores_are_those_computed_by_hand():
    found = np.array([[5, 0, 3], [1, NOTHING, 2], [4, 5, 6]])
    grades = [{0: 2, 3: 1, -2: 3}, {1: 1, 2: 0}, {0: 1}]
    ideal = 3 + 2 / math.log2(3) + 1 / math.log2(4)
    first = (2 / math.log2(3) + 1 / math.log2(4)) / ideal
    made = ranking_scores(found, grades)
    assert made["ndcg"].tolist() == pytest.approx([100 * first, 100, 0])
    assert made["mrr"].tolist() == [50, 100, 0]
    assert made["recall"].tolist() == pytest.approx([200 / 3, 100, 0])


def random_ranking(seed):
    """Return documents found for 60 queries, and judgements graded -1 to 3."""
    draws = np.random.default_rng(seed)
    found = np.array([draws.permutation(400)[:100] for _ in range(60)])
    grades = []
    for _ in found:
        judged = draws.permutation(420)[: draws.integers(1, 60)].tolist()
        grades.append({n: int(draws.integers(-1, 4)) for n in judged} | {judged[0]: 1})
    return found, grades


def test_scores_are_those_of_trec_eval():
    pytrec_eval = pytest.importorskip("pytrec_eval")
    found, grades = random_ranking(3)
    qrels = {f"q{n}": {str(d): g for d, g in of.items()} for n, of in enumerate(grades)}
    runs = {f"q{n}": {str(d): -float(r) for r, d in enumerate(of)} for n, of in enumerate(found)}
    judge = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "recall.100", "recip_rank"})
    theirs = judge.evaluate(runs)
    ours = ranking_scores(found, grades)
    for n in range(len(found)):
        expected = theirs[f"q{n}"]
        rank = expected["recip_rank"]
        assert ours["ndcg"][n] == pytest.approx(100 * expected["ndcg_cut_10"])
        assert ours["recall"][n] == pytest.approx(100 * expected["recall_100"])
        assert ours["mrr"][n] == pytest.approx(100 * rank if rank >= 0.1 else 0)


def test_ndcg_is_that_of_scikit_learn():
    from sklearn.metrics import ndcg_score

    found, grades = random_ranking(4)
    made = ranking_scores(found, grades)["ndcg"]
    for n, (rows, judged) in enumerate(zip(found, grades, strict=True)):
        gains = np.array([max(0, judged.get(d, 0)) for d in range(420)])
        scores = np.zeros(420)
        scores[rows] = np.arange(len(rows), 0, -1)
        assert made[n] == pytest.approx(100 * ndcg_score([gains], [scores], k=10))


# The search.


def test_a_search_in_parts_is_the_search_of_all():
    draws = np.random.default_rng(0)
    documents = draws.standard_normal((700, 16)).astype(np.float32)
    documents[300:600] = documents[:300]  # ties across parts
    queries = documents[::50] + 0.01
    parts = np.split(documents, [64, 300, 301])
    for k in (5, 101, 900):
        ours, theirs = search_parts(queries, parts, k), neighbours(queries, documents, k)
        assert np.array_equal(ours.rows, theirs.rows)
        assert np.array_equal(ours.cosines, theirs.cosines)


def test_a_query_does_not_find_itself(monkeypatch):
    documents = np.eye(4, dtype=np.float32) + 0.1
    own = np.array([2, NOTHING])
    found = ranked(documents[[2, 2]], [documents], own)
    assert found.tolist() == [[0, 1, 3, NOTHING], [2, 0, 1, 3]]
    monkeypatch.setattr(document_search, "DEPTH", 2)
    assert ranked(documents[[2, 2]], [documents], own).tolist() == [[0, 1], [2, 0]]


# The evaluation.


@pytest.fixture(scope="module")
def posts(tmp_path_factory, demo):
    """Clean sentences as documents; as queries the same ones, cut, and typed in haste."""
    folder = tmp_path_factory.mktemp("posts")
    texts = [row["text"] for row in demo if row["lang"] == "en"][:40]
    queries = {f"q{n}": text[: len(text) // 2] for n, text in enumerate(texts[:20])}
    grades = [(f"q{n}", f"d{n}", 1) for n in range(20)] + [("q0", "d1", 2)]
    beir(folder, {f"d{n}": ("", text) for n, text in enumerate(texts)}, queries, grades)
    rows = [{"_id": i, "text": text.lower().replace("e", "3")} for i, text in queries.items()]
    write_lines(folder / "queries.typed.jsonl", map(json.dumps, rows))
    return folder


def test_figures_are_those_of_their_definitions(tmp_path, tiny_models, posts):
    models = [f"first={tiny_models()}", f"second={tiny_models(seed=1)}"]
    typed = str(posts / "queries.typed.jsonl")
    results = evaluate(
        models, tmp_path / "out", retrieval_set=f"posts={posts}", noisy_queries=typed
    )
    [dataset] = results.datasets
    assert results.settings["recipe"] == ""
    assert (dataset.kind, dataset.rows, dataset.changed) == ("search", 20, 20)
    assert dataset.note == "40 documents; typed by people"
    judged = read_judged(str(posts), typed)
    documents = [f"d{n}" for n in range(40)]
    for seed, name in enumerate(("first", "second")):
        found = results.scores[name]["posts"]
        encode = open_encoder(str(tiny_models(seed=seed))).encode
        by_side = {}
        for side in ("clean", "noisy"):
            cosines = unit(encode(judged.queries.columns[side])) @ unit(encode(judged.documents)).T
            order = np.argsort(-cosines, axis=1, kind="stable")
            ndcg, mrr = [], []
            for one, rows in zip(judged.queries.columns["id"], order, strict=True):
                gains = [judged.grades[one].get(documents[row], 0) for row in rows[:10]]
                ideal = sorted(judged.grades[one].values(), reverse=True)
                dcg, best = (
                    sum(g / math.log2(r + 2) for r, g in enumerate(gs)) for gs in (gains, ideal)
                )
                ndcg.append(dcg / best)
                mrr.append(next((1 / (r + 1) for r, gain in enumerate(gains) if gain), 0))
            by_side[side] = np.mean(ndcg)
            assert found[f"ndcg_{side}"].value == pytest.approx(100 * np.mean(ndcg))
            assert found[f"mrr_{side}"].value == pytest.approx(100 * np.mean(mrr))
            assert found[f"recall_{side}"].value == 100
            assert found[f"ndcg_{side}"].low < 100 * np.mean(ndcg) < found[f"ndcg_{side}"].high
        drop = by_side["clean"] - by_side["noisy"]
        assert found["ndcg_drop"].value == pytest.approx(100 * drop)
    tests = {one.metric: one for one in results.comparisons}
    assert {one.test for one in tests.values()} == {"bootstrap"}
    assert set(tests) == set(results.scores["first"]["posts"])


def test_queries_get_noise_of_several_strengths(tmp_path, tiny_models, posts):
    models = [f"first={tiny_models()}", f"second={tiny_models(seed=1)}"]
    results = evaluate(
        models, tmp_path / "out", retrieval_set=str(posts), limit=12, strengths=(0, 1, 2)
    )
    [dataset] = results.datasets
    assert dataset.rows == 12
    assert dataset.note == "12 of 20 rows, evenly sampled; 40 documents; noise: ugc"
    assert results.settings["recipe"] == "ugc"
    for curve in results.doses:
        found = results.scores[curve.model][curve.dataset]
        assert curve.strengths == (0, 1, 2)
        expected = [found["ndcg_clean"].value, found["ndcg_noisy"].value]
        assert curve.ndcg_noisy[:2] == pytest.approx(expected)
    shown = page(results)
    assert "nDCG@10, noisy queries" in shown
    assert "More noise, more error" in shown


def test_the_command_prints_a_table_and_counts_what_it_left_out(
    tmp_path, tiny_models, posts, capsys
):
    qrels = tmp_path / "set" / "qrels"
    qrels.mkdir(parents=True)
    for name in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / "set" / name).write_bytes((posts / name).read_bytes())
    (qrels / "test.tsv").write_text("q1\td1\t1\nq2\td2\t1\nq3\td77\t0\n")
    given = ["evaluate", str(tiny_models()), "-o", str(tmp_path / "out")]
    assert run([*given, "--retrieval-set", str(tmp_path / "set"), "--strengths", ""]) == 0
    shown = capsys.readouterr()
    assert "document search" in shown.out
    assert "noisy nDCG" in shown.out
    assert "set: dropped 18 rows: no_relevant_document 18" in shown.err
