"""`mine-pairs`: tables of any kind, aligned files, languages by row, damage, real corpora."""

import bz2
import csv
import gzip
import json
from collections import Counter
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import SHARED
from mined import run_cut
from source_files import bgzf, cut_finely

import noisegen
from noisegen import cli
from noisegen.data import columns
from noisegen.data.formats import hub
from noisegen.data.pairs import PairColumns, aligned_files
from noisegen.errors import OutputError, SourceError
from noisegen.mining.filters import PROFILES, judge
from noisegen.mining.miner import Tally, Task
from noisegen.mining.miner_options import PairsOptions
from noisegen.mining.parallel import PairsMiner, table_tasks
from noisegen.options import decode
from noisegen.runs.manifest import Manifest
from noisegen.text.segmentation import language

# Three that pass, one that is equal, one that is too different.
ROWS = [
    ("I recieve teh long letter today.", "I receive the long letter today."),
    ("She have two dogs, three cats", "She has two dogs, three cats"),
    ("Their is a house over there.", "There is a house over there."),
    ("Nothing wrong here at all.", "Nothing wrong here at all."),
    ("so so bad bad day", "It was quite an unlucky evening for everyone."),
]
WORDS = {("receive", "recieve"), ("the", "teh"), ("has", "have"), ("There", "Their")}
NOISY, CLEAN = ([row[side] for row in ROWS] for side in (0, 1))


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def mined(sources, split=False, **columns):
    """Return the pairs, the word pairs, and the tally of tables."""
    miner = PairsMiner(language("en"), PROFILES["rcp"], PairColumns(**columns), split)
    return collected(miner, table_tasks(sources, miner)[0])


def aligned(noisy, clean):
    return [Task(0, tuple(aligned_files(noisy, clean)))]


def collected(miner, tasks):
    tally = Tally()
    pairs = list(chain.from_iterable(miner(task, tally) for task in tasks))
    return pairs, {(w.clean, w.noisy) for pair in pairs for w in pair.words}, tally


def table(rows, names=("noisy", "clean"), comma="\t"):
    return "".join(comma.join(row) + "\n" for row in ([names] if names else []) + list(rows))


def jsonl(rows, names=("noisy", "clean")):
    return "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)


def quoted(row):
    return [f'"{cell}"' for cell in row]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", table(ROWS)),
        ("a.csv", table(map(quoted, ROWS), comma=",")),
        ("a.jsonl", jsonl(ROWS)),
        ("a.tsv.gz", gzip.compress(table(ROWS).encode(), mtime=0)),
        ("a.csv.bz2", bz2.compress(table(map(quoted, ROWS), comma=",").encode())),
        ("a.tsv", "\ufeff" + table(ROWS).replace("\n", "\r\n")),
        ("a.tsv", table([(*row, "more") for row in ROWS], ("noisy", "clean", "id"))),
    ],
)
def test_every_kind_of_table_gives_the_same_pairs(name, content, write):
    pairs, words, tally = mined([write(name, content)])

    assert [(pair.noisy, pair.clean) for pair in pairs] == ROWS[:3]
    assert [pair.unit for pair in pairs] == [0, 1, 2]
    assert words == WORDS
    assert tally.read == {"rows": 5}
    assert tally.dropped == {"equal": 1, "length_differs": 1} or tally.dropped.total() == 2
    assert tally.damaged == []


@pytest.mark.parametrize(
    ("kind", "cast"),
    [
        ("string", pa.string()),
        ("large", pa.large_string()),
        ("view", pa.string_view()),
        ("binary", pa.binary()),
        ("dictionary", pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_every_kind_of_text_in_parquet(kind, cast, tmp_path):
    columns = {"noisy": pa.array(NOISY).cast(cast), "clean": pa.array(CLEAN).cast(cast)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")

    assert mined([str(tmp_path / "a.parquet")])[1] == WORDS


def test_what_augment_wrote_can_be_mined(tmp_path, write):
    import noisegen

    source = write("clean.txt", "\n".join(CLEAN * 20) + "\n")
    noisegen.augment(source, tmp_path / "out", transforms=["fing:rate=0.03"])
    pairs, words, _ = mined([str(tmp_path / "out" / "data/part-00000.parquet")])

    assert len(pairs) > 20
    assert len(words) > 20


def test_a_folder_has_a_task_for_each_table(tmp_path, write):
    for name in ("a.tsv", "b.tsv"):
        write(name, table(ROWS))
    write("notes.md", "no table")
    miner = PairsMiner(language("en"), PROFILES["rcp"])
    tasks, skipped = table_tasks([str(tmp_path)], miner)

    assert [task.number for task in tasks] == [0, 1]
    assert skipped == [f"{tmp_path / 'notes.md'}: unknown ending"]


def test_columns_by_number_in_a_file_without_header(write):
    path = write("a.tsv", table([("0", *row) for row in ROWS], None))

    assert mined([path], noisy="2", clean=("3",))[1] == WORDS


def test_several_corrections_of_a_row_are_one_unit(write, tmp_path):
    rows = [(noisy, clean, clean.replace("house", "hut")) for noisy, clean in ROWS]
    path = write("a.tsv", table(rows, ("noisy", "one", "two")))
    pairs, words, _ = mined([path], clean=("one", "two"))
    lists = {"noisy": NOISY, "clean": [list(row[1:]) for row in rows]}
    pq.write_table(pa.table(lists), tmp_path / "a.parquet")

    assert [pair.unit for pair in pairs] == [0, 0, 1, 1, 2, 2]
    assert words == WORDS
    assert mined([str(tmp_path / "a.parquet")])[0] == pairs


def test_each_row_has_its_language(write):
    rows = [
        (ROWS[0][0], ROWS[0][1], "en"),
        ("Das ist ein schöner Tak heute.", "Das ist ein schöner Tag heute.", "German"),
        ("Il a un chein noir.", "Il a un chien noir.", "fr-CA"),
        ("?", "!", "Klingonese?"),
    ]
    path = write("a.tsv", table(rows, ("noisy", "clean", "lang")))
    pairs, _, tally = mined([path], lang="lang")

    assert [pair.lang for pair in pairs] == ["en", "de", "fr"]
    assert tally.dropped == {"unknown_lang": 1}


def test_rows_of_several_sentences_are_split_and_aligned(write):
    noisy = "A new one came first. " + " ".join(NOISY[:3])
    path = write("a.tsv", table([(noisy, " ".join(CLEAN[:3]) + " And another at the end.")]))

    assert mined([path])[1] == set()
    pairs, words, _ = mined([path], split=True)
    assert [pair.unit for pair in pairs] == [0] * len(pairs)
    assert words >= {("receive", "recieve"), ("the", "teh"), ("There", "Their")}


def test_files_aligned_by_line(write):
    noisy = write("a.src.gz", gzip.compress("\n".join(NOISY).encode()))
    clean = [write(name, "\n".join(CLEAN) + "\n") for name in ("a.ref0", "a.ref1")]
    miner = PairsMiner(language("en"), PROFILES["rcp"])
    pairs, words, tally = collected(miner, aligned(noisy, clean))

    assert [pair.unit for pair in pairs] == [0, 0, 1, 1, 2, 2]
    assert words == WORDS
    assert tally.damaged == []


def test_lines_without_a_partner_are_damage(write):
    noisy, clean = write("noisy", "\n".join(NOISY)), write("clean", "\n".join(CLEAN[:2]))
    miner = PairsMiner(language("en"), PROFILES["rcp"])
    pairs, _, tally = collected(miner, aligned(noisy, [clean]))

    assert len(pairs) == 2
    assert tally.damaged == [
        f"{noisy} and its clean files differ in length: 3 lines at the end have no partner"
    ]


@pytest.mark.parametrize(
    ("name", "content", "lost"),
    [
        ("a.tsv", table([*ROWS, ("only one",)]), "1 rows wrong_columns"),
        ("a.tsv", table(ROWS).encode() + b"\xff\xfe\tx\n", "1 rows not_utf8"),
        ("a.jsonl", jsonl(ROWS) + '{"noisy": \n[1\n', "2 rows bad_json"),
        (
            "a.tsv.gz",
            gzip.compress(table(ROWS * 5_000).encode(), mtime=0)[:-40],
            "1 rows truncated",
        ),
    ],
)
def test_what_cannot_be_read_is_counted_as_damage(name, content, lost, write):
    path = write(name, content)
    _, words, tally = mined([path])

    assert words == WORDS
    assert tally.damaged == [f"{path}: {lost}"]


def test_a_side_that_is_missing_is_no_damage(tmp_path):
    columns = {"noisy": [*NOISY, None, "x"], "clean": [*CLEAN, "y", None]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    _, words, tally = mined([str(tmp_path / "a.parquet")])

    assert words == WORDS
    assert tally.dropped["null_text"] == 2
    assert tally.damaged == []


def test_a_dataset_of_the_hub_is_a_table(monkeypatch):
    monkeypatch.setattr(hub, "hf_tables", lambda name: iter([table_of(NOISY, CLEAN)] * 2))
    pairs, words, tally = mined(["hf:learners:validation"])

    assert words == WORDS
    assert (len(pairs), tally.read["rows"]) == (6, 10)


def table_of(noisy, clean):
    return pa.table({"noisy": noisy, "clean": [[text] for text in clean]})


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "a.tsv",
            table(ROWS, ("noisi", "clean")),
            "no column 'noisy' among: noisi, clean; did you",
        ),
        (
            "a.tsv",
            table(ROWS, ("noisy", "fixed")),
            "no column 'clean' among: noisy, fixed; name it",
        ),
        ("a.txt", "text\n", "no column 'clean' among: noisy; the clean side of a text file is"),
        ("a.docx", "text\n", "unknown ending"),
        ("a.parquet", "no table", "cannot read .*a.parquet"),
    ],
)
def test_a_wrong_table_is_one_clear_line(name, content, said, write):
    with pytest.raises(SourceError, match=said):
        mined([write(name, content)])


def test_a_column_of_numbers_is_one_clear_line(tmp_path):
    pq.write_table(pa.table({"noisy": NOISY, "clean": [1] * 5}), tmp_path / "a.parquet")

    with pytest.raises(SourceError, match=r"a.parquet: column 'clean' is not text but int64"):
        mined([str(tmp_path / "a.parquet")])


def test_batches_do_not_matter(write, monkeypatch):
    path = write("a.tsv", table(ROWS * 40))
    whole = mined([path])
    monkeypatch.setattr(columns, "BATCH_ROWS", 3)

    assert mined([path]) == whole
    assert len(whole[0]) == 120


# The command.


def command(*words, capfd):
    code = cli.run(["mine-pairs", *map(str, words), "--workers", "1"])
    return code, *capfd.readouterr()


def test_the_command_writes_pairs_and_dictionary(write, tmp_path, capfd):
    out = tmp_path / "out"
    code, stdout, stderr = command(write("a.tsv", table(ROWS)), "-o", out, capfd=capfd)

    assert (code, stdout) == (0, "")
    assert f"{out}: 3 pairs in 1 shard; dictionary: 4 wrong forms of 4 words" in stderr
    rows = pq.read_table(out / "dictionary.parquet").to_pylist()
    assert {(row["clean"], row["noisy"]) for row in rows} == WORDS
    made = Manifest.load(out)
    assert made.command.startswith("noisegen mine-pairs ")
    assert made.options["noisy_column"] == "noisy"


def test_the_result_makes_noise(write, tmp_path, capfd):
    import noisegen

    command(write("a.tsv", table(ROWS)), "-o", tmp_path / "out", capfd=capfd)
    step = f"wiki:dictionary={tmp_path / 'out' / 'dictionary.parquet'},rate=1"

    assert noisegen.noise("receive it.", step) == "recieve it."


def test_damage_is_code_3_and_strict_code_1(write, tmp_path, capfd):
    path = write("a.tsv", table([*ROWS, ("only one",)]))
    code, _, stderr = command(path, "-o", tmp_path / "out", capfd=capfd)
    assert code == 3
    assert f"damaged: {path}: 1 rows wrong_columns" in stderr
    code, _, stderr = command(path, "-o", tmp_path / "strict", "--strict", capfd=capfd)
    assert code == 1
    assert stderr.startswith("error: damaged input: ")
    assert stderr.count("\n") == 1


def test_json_is_one_object(write, tmp_path, capfd):
    words = (write("a.tsv", table(ROWS)), "-o", tmp_path / "out", "--json", "-q")
    code, stdout, stderr = command(*words, capfd=capfd)

    assert (code, stderr) == (0, "")
    found = json.loads(stdout)
    assert (found["pairs"], found["dictionary"]["entries"], found["missing_tasks"]) == (3, 4, 0)


def test_profile_and_thresholds_are_heard(write, tmp_path, capfd):
    path = write("a.tsv", table(ROWS))
    command(path, "-o", tmp_path / "one", "--max-char-distance", 1, capfd=capfd)
    command(path, "-o", tmp_path / "two", "--min-pages", 2, capfd=capfd)
    command(path, "-o", tmp_path / "three", "--profile", "strict", capfd=capfd)

    assert Manifest.load(tmp_path / "one").dictionary["entries"] < 4
    assert Manifest.load(tmp_path / "two").dictionary["dropped"] == {"few_pages": 4}
    thresholds = Manifest.load(tmp_path / "three").thresholds
    assert (thresholds["min_pages"], thresholds["balance"]) == (2, 3)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("a.tsv",), 2, "error: name the output: -o FOLDER"),
        (("gone.tsv", "-o", "out"), 1, "error: 'gone.tsv': no such file or folder"),
        (("a.tsv", "-o", "out", "--clean-file", "gone"), 1, "error: 'gone': no such file"),
        (("a.tsv", "b.tsv", "-o", "out", "--clean-file", "a.tsv"), 2, "goes with one noisy"),
        (("a.tsv", "-o", "out", "--lang", "?"), 2, "unknown language '?'"),
        (("a.tsv", "-o", "out", "--max-char-distance", "x"), 2, "write a number"),
        (("a.tsv", "-o", "out", "--top", "-3"), 2, "-3 is not in the range x>=0"),
    ],
)
def test_wrong_usage_is_one_clear_line(words, code, said, write, tmp_path, monkeypatch, capfd):
    write("a.tsv", table(ROWS))
    monkeypatch.chdir(tmp_path)
    found, stdout, stderr = command(*words, capfd=capfd)

    assert (found, stdout) == (code, "")
    assert said in stderr
    assert not (tmp_path / "out").exists()


# Real corpora.


def real(*names):
    paths = [SHARED.joinpath(*name.split("/")) for name in names]
    if not all(path.exists() for path in paths):
        pytest.skip("no development data")
    return list(map(str, paths))


def best(words, count):
    return {word for word, _ in words.most_common(count)}


@pytest.mark.nightly
def test_jflag_is_the_slow_loop_over_its_lines():
    """Learner English with four corrections a sentence."""
    source, *clean = real("jfleg/dev.src.gz", *(f"jfleg/dev.ref{n}.gz" for n in range(4)))
    miner = PairsMiner(language("en"), PROFILES["rcp"])
    pairs, _, tally = collected(miner, aligned(source, clean))

    sides = [
        gzip.open(path, "rt", encoding="utf-8").read().split("\n")[:-1]  # noqa: SIM115
        for path in (source, *clean)
    ]
    expected, dropped = [], Counter()
    for noisy, *versions in zip(*sides, strict=True):
        for version in versions:
            words = judge(noisy, version, language("en"), PROFILES["rcp"], dropped)
            if words is not None:
                expected.append((noisy, version, words))
    assert [(pair.noisy, pair.clean, pair.words) for pair in pairs] == expected
    assert tally.dropped == dropped
    assert len(expected) > 1_000


@pytest.mark.nightly
def test_vietnamese_comments_give_their_abbreviations():
    (path,) = real("vilexnorm/dev.csv.gz")
    miner = PairsMiner(language("vi"), PROFILES["rcp"], PairColumns("original", ("normalized",)))
    pairs, _, tally = collected(miner, table_tasks([path], miner)[0])
    words = Counter((w.clean, w.noisy) for pair in pairs for w in pair.words)

    assert {("tôi", "t"), ("được", "đc"), ("rồi", "r")} <= best(words, 10)
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        assert tally.read["rows"] == len(list(csv.reader(file))) - 1


@pytest.mark.nightly
def test_russian_blogs_give_their_misspellings():
    noisy, clean = real("ruspellru/sources.even.txt.gz", "ruspellru/corrections.even.txt.gz")
    miner = PairsMiner(language("ru"), PROFILES["rcp"])
    pairs, _, _ = collected(miner, aligned(noisy, [clean]))
    words = Counter((w.clean, w.noisy) for pair in pairs for w in pair.words)

    assert ("вообще", "вобще") in best(words, 3)


def cut_at(rows, path, miner):
    """Return the pairs and word pairs of a file cut after so many rows, the tally, the tasks."""
    tasks, _ = table_tasks([path], miner, rows)
    pairs, words, tally = collected(miner, tasks)
    return pairs, words, tally, len(tasks)


def in_pieces(pack, data, size=501):
    return b"".join(pack(data[at : at + size]) for at in range(0, len(data), size))


def many(count=60):
    return [
        (f"{noisy} It was number {n}.", f"{clean} It was number {n}.")
        for n, (noisy, clean) in zip(range(count), ROWS * count, strict=False)
    ]


@pytest.mark.parametrize(
    "kind",
    [
        "a.tsv",
        "crlf.tsv",
        "a.jsonl",
        "a.parquet",
        "a.tsv.bz2",
        "a.tsv.zst",
        "a.csv",
        "a.tsv.gz",
        "bgzip.tsv.gz",
    ],
)
def test_a_large_table_is_many_tasks_with_the_pairs_of_one(kind, write, tmp_path, monkeypatch):
    rows, data = many(), table(many())
    if kind == "a.parquet":
        columns = dict(zip(("noisy", "clean"), map(list, zip(*rows, strict=True)), strict=True))
        pq.write_table(pa.table(columns), tmp_path / kind, row_group_size=13)
    contents = {
        "a.tsv": data,
        "a.jsonl": jsonl(rows),
        "crlf.tsv": "\ufeff" + data.replace("\n", "\r\n")[:-2],
        "a.tsv.bz2": in_pieces(bz2.compress, data.encode()),
        "a.tsv.zst": in_pieces(partial(pa.compress, codec="zstd", asbytes=True), data.encode()),
        "a.csv": table(map(quoted, rows), comma=","),
        "a.tsv.gz": gzip.compress(data.encode()),
        "bgzip.tsv.gz": in_pieces(bgzf, data.encode()),
    }
    path = write(kind, contents[kind]) if kind in contents else str(tmp_path / kind)
    miner = PairsMiner(language("en"), PROFILES["rcp"])
    cut_finely(monkeypatch, 1_000, 100)

    whole = cut_at(1_000, path, miner)
    assert whole[3] == 1
    assert len(whole[0]) == 36
    is_cut = kind not in ("a.csv", "a.tsv.gz")
    for size in (1, 7, 59, 60):
        pieced = cut_at(size, path, miner)
        assert pieced[:3] == whole[:3]
        assert pieced[3] == (-(-60 // size) if is_cut else 1)


def test_a_run_over_pieces_of_a_table_resumes_in_parts(write, tmp_path):
    path = write("a.tsv", table(many()))
    whole = noisegen.mine_pairs(path, tmp_path / "whole")

    def run(rows, **given):
        options = decode(PairsOptions, {"sources": path, "out": tmp_path / "parts", **given})
        return run_cut(options, lambda miner: table_tasks([path], miner, rows)[0])

    for part in ("2/3", "1/3", "3/3"):
        made = run(13, part=part)

    assert made.missing_tasks == 0
    assert len(made.shards) == 5
    assert made.totals == whole.totals
    for name in ("pairs", "dictionary.parquet"):
        assert pq.read_table(tmp_path / "parts" / name) == pq.read_table(tmp_path / "whole" / name)
    with pytest.raises(OutputError, match="other sources"):
        run(14, resume=True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *((name, "") for name in ("a.norm", "a.conll", "a.csv")),
        ("a.tsv", "noisy\tclean\n"),
        ("a.csv", "noisy,clean\n"),
        ("a.tsv.gz", gzip.compress(b"noisy\tclean\n", mtime=0)),
    ],
)
def test_nothing_but_empty_files_is_one_line(write, tmp_path, capfd, name, content):
    path = write(name, content)
    assert cli.run(["mine-pairs", path, "-o", str(tmp_path / "out"), "--lang", "en"]) == 1
    assert capfd.readouterr().err == f"error: no pairs in {path}: empty, or with only a header\n"
    assert not (tmp_path / "out").exists()


def test_empty_tables_beside_one_with_rows_are_mined(write, tmp_path):
    paths = [write("a.tsv", "noisy\tclean\n"), write("b.csv", "noisy,clean\na b,a c\n")]
    totals = noisegen.mine_pairs(paths, tmp_path / "out", profile="all", workers=1).totals
    assert totals["read"] == {"rows": 1}


def test_parquet_and_aligned_files_without_rows_are_one_line(write, tmp_path):
    pq.write_table(
        pa.table({"noisy": pa.nulls(0, pa.string()), "clean": pa.nulls(0, pa.string())}),
        tmp_path / "a.parquet",
    )
    with pytest.raises(SourceError, match=r"no pairs in .*a\.parquet"):
        noisegen.mine_pairs(tmp_path / "a.parquet", tmp_path / "out")
    noisy, clean = write("a.txt", ""), write("b.txt", "\n")
    with pytest.raises(SourceError, match=r"no pairs in .*a\.txt, .*b\.txt"):
        noisegen.mine_pairs(noisy, tmp_path / "out", clean_files=[clean])
    assert not (tmp_path / "out").exists()


def typo(noisy, clean, lang="eng", is_typo=True):
    """Return an edit as in the GitHub Typo Corpus."""
    sides = ({"text": text, "path": "a.md", "lang": lang} for text in (noisy, clean))
    return {**dict(zip(("src", "tgt"), sides, strict=True)), "is_typo": is_typo}


def test_typos_of_commits_are_mined_in_one_language(write, tmp_path):
    edits = [typo(*ROWS[0]), typo("Das ist gtu so.", "Das ist gut so.", "deu")]
    edits += [typo(*ROWS[1], is_typo=False), typo("html", "html5", "cmn-hant")]
    edits += [typo(*ROWS[2], lang=None)]
    path = write("typos.jsonl", json.dumps({"repo": "r", "edits": edits}) + "\n")

    totals = noisegen.mine_pairs(path, tmp_path / "en").totals
    assert (totals["pairs"], totals["damaged"]) == (2, 0)
    assert totals["dropped"] == {"not_a_typo": 1, "other_language": 2}
    assert noisegen.mine_pairs(path, tmp_path / "de", lang="de").totals["pairs"] == 2
    every = noisegen.mine_pairs(path, tmp_path / "all", lang_column="lang").totals
    assert (every["pairs"], every["dropped"]) == (3, {"not_a_typo": 1, "too_short": 1})


def test_essays_are_mined_by_sentence(write, tmp_path):
    text = "My freind live in a big town. It is beautifull there.\nI recieve letters every day."
    edits = [[3, 9, "friend"], [10, 14, None], [36, 46, "beautiful"], [56, 63, "receive"]]
    essay = {"id": "1", "cefr": "A1", "text": text, "edits": [[0, edits]]}
    path = write("wi.jsonl", json.dumps(essay) + "\n")

    assert noisegen.mine_pairs(path, tmp_path / "out").totals["pairs"] == 3
    pairs = pq.read_table(tmp_path / "out" / "pairs").to_pylist()
    assert [(pair["noisy"], pair["clean"]) for pair in pairs] == [
        ("My freind live in a big town.", "My friend live in a big town."),
        ("It is beautifull there.", "It is beautiful there."),
        ("I recieve letters every day.", "I receive letters every day."),
    ]
    with pytest.raises(SourceError, match="corrections in JSON lines: mine-pairs reads them"):
        noisegen.mine_lang8(path, tmp_path / "lang8")


def test_nested_values_of_another_form_are_listed(write, tmp_path):
    path = write("a.jsonl", '{"id": 1, "turns": [{"said": "teh", "tags": ["x"]}]}\n')
    with pytest.raises(SourceError, match=r"among: turns\[\]\.said, turns\[\]\.tags"):
        noisegen.mine_pairs(path, tmp_path / "out")
    with pytest.raises(SourceError, match=r"no column 'clean' among: turns"):
        noisegen.mine_pairs(path, tmp_path / "out", noisy_column="turns[].said")
