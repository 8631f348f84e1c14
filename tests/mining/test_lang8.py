import bz2
import gzip
import json
import pickle

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from conftest import SHARED

from noisegen.cli import noisegen
from noisegen.data import tables
from noisegen.data.rows import FileRange
from noisegen.errors import SourceError, UsageError
from noisegen.mining.filters import PROFILES
from noisegen.mining.mine import mine_lang8
from noisegen.mining.miner import Tally, Task, WordPair
from noisegen.mining.parallel import Lang8Miner, kind_of, lang8_tasks
from noisegen.text.segmentation import language

SENTENCE = "I have many frend in this town."
RIGHT = "I have many [f-red]friends[/f-red] in this town."
CLEAN = "I have many friends in this town."
M2 = "S I have many frend here .\nA 3 4|||R:SPELL|||friends|||REQUIRED|||-NONE-|||0\n"


def entry(sentences, corrections, learnt="English", number="7"):
    return json.dumps([number, "9", learnt, "Japanese", sentences, corrections]).encode() + b"\n"


def mine(path, code="en", profile="rcp", **options):
    tally = Tally()
    miner = Lang8Miner(language(code), PROFILES[profile], **options)
    return list(miner(Task(0, (FileRange(str(path)),)), tally)), tally


@pytest.fixture
def file(tmp_path):
    def write(content, name="lang8.dat"):
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def test_an_entry_gives_a_pair_for_every_correction(file):
    path = file(
        entry([SENTENCE, "He go home now."], [[RIGHT, CLEAN + " Good!"], ["He goes home now."]])
    )

    pairs, tally = mine(path)

    assert [(pair.noisy, pair.clean, pair.unit, pair.lang) for pair in pairs] == [
        (SENTENCE, CLEAN, 7, "en"),
        (SENTENCE, CLEAN, 7, "en"),
        ("He go home now.", "He goes home now.", 7, "en"),
    ]
    assert pairs[0].words == (WordPair("friends", "frend"),)
    assert tally.read == {"entries": 1, "sentences": 2, "corrections": 3}
    assert not tally.damaged


def test_struck_words_are_absent_from_the_clean_side(file):
    struck = "We [sline]was[/sline][f-blue]were[/f-blue] very happy in that town."
    path = file(entry(["We was very happy in that town."], [[struck]]))

    [pair], _ = mine(path)

    assert pair.clean == "We were very happy in that town."


def test_control_bytes_are_left_out(file):
    line = entry([SENTENCE], [[RIGHT]]).replace(b"many frend", b"ma\x08ny\x00\tfrend")

    [pair], tally = mine(file(line))

    assert (pair.noisy, tally.damaged) == (SENTENCE, [])


@pytest.mark.parametrize(
    "corrections",
    [None, [], [None], [[]], [[None, ""]], [[SENTENCE]], [[SENTENCE + " OK"]], [5], [[5]]],
)
def test_sentences_without_a_correction_are_counted_and_kept_on_demand(corrections, file):
    path = file(entry([SENTENCE], corrections))

    assert mine(path)[0] == []
    [pair], tally = mine(path, with_uncorrected=True)

    assert (pair.noisy, pair.clean, pair.words) == (SENTENCE, SENTENCE, ())
    assert tally.read["uncorrected"] == 1


def test_an_entry_may_end_before_its_corrections(file):
    assert mine(file(b'["1", "2", "English", "Thai", ["Hello you."]]'))[1].read["uncorrected"] == 1


def test_more_corrections_than_sentences_are_ignored(file):
    pairs, tally = mine(file(entry([SENTENCE], [[RIGHT], ["What is this?"]])))

    assert (len(pairs), tally.read["sentences"]) == (1, 1)


@pytest.mark.parametrize(
    ("learnt", "code", "count"),
    [
        ("English", "en", 1),
        ("Korean, English", "en", 1),
        ("English", "de", 0),
        ("Klingon", "en", 0),
        ("Portuguese(Brazil)", "pt", 1),
        ("Mandarin", "zh", 0),  # the language, but not the script
    ],
)
def test_the_language_learnt_is_that_of_the_run(learnt, code, count, file):
    pairs, tally = mine(file(entry([SENTENCE], [[RIGHT]], learnt)), code)

    assert len(pairs) == count
    assert sum(tally.dropped[name] for name in ("other_language", "wrong_script")) == 1 - count


def test_every_dropped_pair_has_a_reason(file):
    odd = ["こんにちは", "I do not think so at all.", "y" * 9_000, "a \ud800"]
    wrong = ["[sline]I have", "GOOD", *odd]
    path = file(
        entry(
            [SENTENCE, "x" * 3_000, None, "", "Fine it is.", "\ud800 odd", SENTENCE],
            [wrong, ["x"], ["a"], ["b"], [None], ["c"], ["Short."]],
        )
    )

    pairs, tally = mine(path)

    assert pairs == []
    assert tally.dropped == {
        "unclosed_tag": 1,
        "comment": 1,
        "wrong_script": 1,
        "too_different": 1,
        "too_long": 2,
        "not_unicode": 1,
        "empty": 3,
        "length_differs": 1,
    }


@pytest.mark.parametrize(
    "line",
    [
        b'["1", "2", "English", "Thai", ["cut off"',
        b"[" * 100_000,
        b"__import__('os').abort()",
        b"[]",
        b"{}",
        b'["1", "2", null, "Thai", ["a"], []]',
        b'["1", "2", "English", "Thai", "a", []]',
        b'["1", "2", "English", "Thai", ["a"], {}]',
        b'["1", "2", "English", "Thai", ["caf\xe9"], []]',
        b"[" + b"9" * 9_000 + b"]",
    ],
)
def test_a_damaged_line_is_noted_and_mining_goes_on(line, file):
    good = entry([SENTENCE], [[RIGHT]])

    pairs, tally = mine(file(good + b"\n" + line + b"\n" + good))

    assert len(pairs) == 2
    [note] = tally.damaged
    assert note.startswith(str(file(good)) + ":3: ")


def test_a_line_beyond_the_limit_is_noted(file, monkeypatch):
    monkeypatch.setattr(tables, "LINE_MAX", 1_000)

    pairs, tally = mine(file(entry(["x" * 2_000], []) + entry([SENTENCE], [[RIGHT]])))

    assert (len(pairs), len(tally.damaged)) == (1, 1)


@pytest.mark.parametrize(
    ("number", "unit"), [("12", 12), (12, 12), ("x", 2), (None, 2), ("9" * 30, 2), (1.5, 2)]
)
def test_the_unit_is_the_entry_or_else_the_line(number, unit, file):
    [pair], _ = mine(file(b"\n" + entry([SENTENCE], [[RIGHT]], number=number)))

    assert pair.unit == unit


def test_m2_gives_a_pair_for_every_annotator(file):
    more = (
        "A 1 2|||R:VERB|||had|||REQUIRED|||-NONE-|||1\n\n"
        "S Good .\nA -1 -1|||noop|||-NONE-|||REQUIRED|||-NONE-|||0\n"
    )

    pairs, tally = mine(file((M2 + more).encode()))

    assert [(pair.noisy, pair.clean, pair.unit) for pair in pairs] == [
        ("I have many frend here .", "I have many friends here .", 1),
        ("I have many frend here .", "I had many frend here .", 1),
    ]
    assert tally.read == {"sentences": 2, "corrections": 3, "uncorrected": 1}


def test_damage_in_m2_is_noted_with_its_place(file):
    more = b"A 9 9|||M|||x|||REQUIRED|||-NONE-|||1\n\xff\n?\n"

    pairs, tally = mine(file(M2.encode() + more))

    assert len(pairs) == 1
    assert [note.partition(":")[2] for note in tally.damaged] == [
        "4: not UTF-8, or too long",
        "1: line 3 is not an edit of the sentence",
        "1: line 5 is not an M2 line",
    ]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (entry([], []), "lang8"),
        (b"\xef\xbb\xbf\n\n" + entry([], []), "lang8"),
        (M2.encode(), "m2"),
        (b"\xef\xbb\xbf\n" + M2.encode(), "m2"),
    ],
)
@pytest.mark.parametrize("ending", ["dat", "gz", "bz2"])
def test_the_content_of_a_file_tells_its_kind(content, kind, ending, file):
    pack = {"gz": gzip.compress, "bz2": bz2.compress}.get(ending, bytes)

    assert kind_of(str(file(pack(content), f"any.{ending}"))) == kind


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "a.dat", "a.dat: the file is empty"),
        (b"\n \n", "a.dat", "a.dat: the file is empty"),
        (b"a\tb\n", "a.tsv", "neither Lang-8 .* mine-pairs reads other parallel text"),
        (b"no gzip", "a.gz", "a.gz: damaged before its first line"),
    ],
)
def test_a_file_of_another_kind_is_refused(content, name, message, file):
    with pytest.raises(SourceError, match=message):
        lang8_tasks([str(file(content, name))])


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(SourceError, match="no such file"):
        lang8_tasks([str(tmp_path / "none")])


def test_each_file_is_a_task(file):
    one, two = file(M2.encode(), "one"), file(entry([], []), "two")

    tasks = lang8_tasks([str(one), str(two)])
    assert tasks == [Task(0, (FileRange(str(one)),)), Task(1, (FileRange(str(two)),))]


def test_what_a_broken_archive_still_has_is_mined(file):
    content = b"".join(entry([SENTENCE], [[RIGHT]], number=n) for n in range(20_000))
    packed = gzip.compress(content)

    pairs, tally = mine(file(packed[: len(packed) // 2], "lang8.gz"))

    assert 5_000 < len(pairs) < 15_000
    [note] = tally.damaged
    assert "breaks off after line" in note


def test_a_miner_pickles():
    miner = Lang8Miner(language("ja"), PROFILES["strict"], with_uncorrected=True)

    assert pickle.loads(pickle.dumps(miner)) == miner


def run(*arguments):
    words = ["mine-lang8", *map(str, arguments), "--workers", "1"]
    return CliRunner().invoke(noisegen, words, "noisegen", standalone_mode=False)


def test_the_command_writes_pairs_and_dictionary(file, tmp_path):
    entries, m2 = file(entry([SENTENCE], [[RIGHT]]), "a.dat"), file(M2.encode(), "a.m2")

    result = run(entries, m2, "-o", tmp_path / "out", "--json")

    assert result.return_value == 0
    assert json.loads(result.stdout)["pairs"] == 2
    table = pq.read_table(tmp_path / "out" / "dictionary.parquet").to_pylist()
    assert [(row["clean"], row["noisy"], row["count"]) for row in table] == [
        ("friends", "frend", 2)
    ]


def test_the_command_tells_damage_by_its_exit_code(file, tmp_path):
    path = file(entry([SENTENCE], [[RIGHT]]) + b"[\n")

    assert run(path, "-o", tmp_path / "out", "-q").return_value == 3
    strict = run(path, "-o", tmp_path / "strict", "--strict", "-q")
    assert isinstance(strict.exception, SourceError)
    assert "not a Lang-8 entry in JSON" in str(strict.exception)


EXPECTED = {  # sentences with pairs, by hand from the invented samples
    "en": {
        "I went to school yesterday.",
        "I have many friends.",
        "I went to school yesterday .",
        "I have many friends .",
    },
    "ja": {"昨日映画を見ました。", "昨日、映画を見ました。"},
    "zh": {"我昨天去了学校。"},
    "es": set(),
}


@pytest.mark.nightly
@pytest.mark.parametrize("code", EXPECTED)
def test_the_samples_are_read_as_their_description_says(code):
    folder = SHARED / "wiki-dumps" / "lang8"
    if not folder.exists():
        pytest.skip("no development data")
    entries, tally = mine(folder / "lang8-style.dat", code, "all")
    m2, _ = mine(folder / "lang8-style.m2", code, "all") if code == "en" else ([], None)

    assert {pair.clean for pair in entries + m2} == EXPECTED[code]
    assert len(tally.damaged) == 1


DAMAGED_M2 = b"""S I has many frend here .
A 1 2|||R|||have|||REQUIRED|||-NONE-|||0
A 3 4|||R|||friends|||REQUIRED|||-NONE-|||0

no M2
S She go home every single day .
A 1 2|||R|||goes|||REQUIRED|||-NONE-|||0
\xff
A 9 9|||R|||x|||REQUIRED|||-NONE-|||1

"""


@pytest.mark.parametrize("kind", ["lang8", "m2"])
def test_a_large_file_is_many_tasks_with_the_pairs_of_one(kind, file):
    entries = [entry([SENTENCE, "He go."], [[RIGHT], []], number=n % 2 * 70 + n) for n in range(9)]
    path = file(b"junk\n".join([b"", *entries, b""])[5:] if kind == "lang8" else DAMAGED_M2 * 5)
    miner = Lang8Miner(language("en"), PROFILES["all"])

    def mined(lines):
        tasks, tally = lang8_tasks([str(path)], lines), Tally()
        return [pair for task in tasks for pair in miner(task, tally)], tally, len(tasks)

    pairs, whole, count = mined(1_000)
    assert (count, len(pairs) > 4, len(whole.damaged) > 7) == (1, True, True)
    for lines in (1, 2, 3, 7):
        pieced, tally, count = mined(lines)
        assert count > 2
        assert pieced == pairs
        assert (tally.read, tally.dropped) == (whole.read, whole.dropped)
        assert sorted(tally.damaged) == sorted(whole.damaged)


def test_no_files_at_all_are_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match="no sources are given"):
        mine_lang8([], tmp_path / "out")
    assert not (tmp_path / "out").exists()
