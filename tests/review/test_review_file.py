"""The review file: reviewers, answers that are never lost, files that are no review."""

import random
import sqlite3
import threading
from contextlib import closing

import pytest
from reviews import made, output, rows_of

from noisegen import review
from noisegen.errors import NoisegenError, SourceError
from noisegen.review.review_file import KINDS_MAX, Refused, ReviewFile
from noisegen.review.store import (
    connect,
    shipped_kinds,
    transaction,
)


@pytest.fixture
def path(tmp_path):
    return made(tmp_path, rows=5, count=60)


@pytest.fixture
def opened(path):
    found = ReviewFile(path)
    yield found
    found.close()


def test_a_reviewer_sees_no_strength_recipe_or_source(opened):
    key = opened.join("Ana", None)["reviewer"]
    seen = str([opened.item(key, place) for place in range(15)])
    assert not any(name in seen for name in ("low", "middle", "high", "review.sqlite"))
    assert set(opened.item(key, 0)) == {
        "item",
        "place",
        "lang",
        "clean",
        "noisy",
        "slots",
        "answers",
        "kinds",
    }


def test_each_change_of_an_answer_is_stored_and_the_last_counts(opened, path):
    key = opened.join("Ana", None)["reviewer"]
    for number, value in enumerate(("realistic", "unrealistic", "moderate")):
        opened.answer(key, 3, "realism", value, f"n{number}")
    assert rows_of(path, "SELECT value FROM answers ORDER BY id") == [
        ('"realistic"',),
        ('"unrealistic"',),
        ('"moderate"',),
    ]
    assert rows_of(path, "SELECT item, question, value FROM latest") == [
        (3, "realism", '"moderate"')
    ]


def test_an_answer_sent_twice_is_stored_once_and_does_not_come_back(opened, path):
    key = opened.join("Ana", None)["reviewer"]
    opened.answer(key, 3, "realism", "realistic", "first")
    opened.answer(key, 3, "realism", "moderate", "second")
    opened.answer(key, 3, "realism", "realistic", "first")
    assert rows_of(path, "SELECT value FROM latest") == [('"moderate"',)]
    assert rows_of(path, "SELECT nonce FROM answers") == [("first",), ("second",)]


def test_a_reviewer_goes_on_at_the_first_item_that_is_not_complete(opened):
    key = opened.join("Ana", None)["reviewer"]
    order = [opened.item(key, place)["item"] for place in range(15)]
    for place in (0, 1, 3):
        opened.answer(key, order[place], "realism", "realistic", f"r{place}")
        opened.answer(key, order[place], "meaning", "yes", f"m{place}")
    opened.answer(key, order[2], "realism", "realistic", "r2")
    assert opened.state(key) == {"name": "Ana", "total": 15, "complete": 3, "next": 2}
    opened.answer(key, order[2], "meaning", "no", "m2")
    assert opened.state(key)["next"] == 4


def test_the_second_stage_comes_after_the_first_for_everybody(opened, path):
    key = opened.join("Ana", None)["reviewer"]
    before = [opened.item(key, place)["item"] for place in range(15)]
    review.more(path, rows=4, strength="low")
    after = [opened.item(key, place)["item"] for place in range(19)]
    assert after[:15] == before
    assert opened.state(key)["total"] == 19


@pytest.mark.parametrize(
    "name", ["ana", "ANA", " Ana ", "Ａｎａ", "A\u200bna".replace("\u200b", "")]
)
def test_a_name_in_use_is_refused_unless_it_is_the_same_person(opened, name):
    key = opened.join("Ana", None)["reviewer"]
    with pytest.raises(Refused, match="taken"):
        opened.join(name, None)
    assert opened.join(name, None, same=True) == {"reviewer": key, "name": "Ana"}


@pytest.mark.parametrize("name", ["", "  ", "\u200b", "x" * 61, None, 3, ["Ana"], "x" * 100_000])
def test_a_name_that_cannot_be_read_is_refused(opened, name):
    with pytest.raises(Refused, match="name"):
        opened.join(name, None)


def test_a_name_of_signs_that_change_the_direction_loses_them(opened):
    assert opened.join("\u202eevil\x00 name\n", None)["name"] == "evil name"


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("realism", "very"),
        ("realism", None),
        ("realism", ["realistic"]),
        ("meaning", "maybe"),
        ("kinds", [999]),
        ("kinds", "typo"),
        ("kinds", [True]),
        ("kinds", [1.0]),
        ("comment", "x" * 2_001),
        ("comment", 3),
        ("strength", "low"),
        (None, "yes"),
        ("__class__", "yes"),
    ],
)
def test_an_answer_that_is_none_is_refused(opened, path, question, value):
    key = opened.join("Ana", None)["reviewer"]
    with pytest.raises(Refused, match="value"):
        opened.answer(key, 1, question, value, "n")
    assert rows_of(path, "SELECT * FROM answers") == []


@pytest.mark.parametrize("item", [0, -1, 16, 10**40, True, "1", None, 1.0])
def test_an_item_that_is_not_there_is_refused(opened, item):
    key = opened.join("Ana", None)["reviewer"]
    with pytest.raises(Refused, match="item"):
        opened.answer(key, item, "realism", "realistic", "n")


@pytest.mark.parametrize("key", ["", None, "nobody", "' OR 1=1 --"])
def test_an_unknown_reviewer_is_refused(opened, key):
    with pytest.raises(Refused, match="reviewer"):
        opened.state(key)


def test_a_new_kind_becomes_an_option_for_all_and_stands_once(opened):
    ana, ben = (opened.join(name, None)["reviewer"] for name in ("Ana", "Ben"))
    number = opened.add_kind(ana, "  keyboard   mash ")["id"]
    assert opened.add_kind(ben, "Keyboard Mash")["id"] == number
    names = [kind["name"] for kind in opened.item(ben, 0)["kinds"]]
    assert names == [kind.name for kind in shipped_kinds() if kind.is_of("en")] + ["keyboard mash"]
    opened.answer(ben, 1, "kinds", [number, 1], "n")
    assert opened.add_kind(ana, "typo")["id"] == 1


@pytest.mark.parametrize(
    ("lang", "without"),
    [
        ("en", {"diacritic", "kanji conversion", "anglicism"}),
        ("pt-BR", {"kanji conversion"}),
        ("hi", {"kanji conversion", "casing"}),
        ("ja", {"diacritic", "casing", "word boundary"}),
        ("zh-Hant", {"diacritic", "kanji conversion", "casing", "word boundary"}),
        ("no-such-language", {"kanji conversion"}),
    ],
)
def test_a_language_offers_the_kinds_that_it_has(lang, without):
    offered = {kind.name for kind in shipped_kinds() if kind.is_of(lang)}
    assert {kind.name for kind in shipped_kinds()} - offered == without


def test_an_added_kind_is_offered_in_the_languages_that_use_it(tmp_path):
    pairs = [("ein Satz mit Wort", "ein Satz mti Wort"), ("a line of words", "a lien of words")]
    review.make(output(tmp_path / "out", pairs, lang=["de", "en"]), tmp_path / "r.sqlite")
    opened = ReviewFile(tmp_path / "r.sqlite")
    ana = opened.join("Ana", None)["reviewer"]
    shown = {item["lang"]: item for item in (opened.item(ana, place) for place in (0, 1))}
    umlaut = opened.add_kind(ana, "umlaut")["id"]
    assert all(umlaut in ids_of(opened, ana, place) for place in (0, 1))  # not used yet
    opened.answer(ana, shown["de"]["item"], "kinds", [umlaut], "1")
    assert umlaut in ids_of(opened, ana, shown["de"]["place"])
    assert umlaut not in ids_of(opened, ana, shown["en"]["place"])
    kanji = next(n for n, kind in enumerate(shipped_kinds(), 1) if kind.name == "kanji conversion")
    opened.answer(ana, shown["en"]["item"], "kinds", [kanji], "2")  # as in an older review
    assert kanji in ids_of(opened, ana, shown["en"]["place"])
    opened.close()


def ids_of(opened: ReviewFile, reviewer: str, place: int) -> set[int]:
    return {kind["id"] for kind in opened.item(reviewer, place)["kinds"]}


def test_there_is_an_end_to_new_kinds(opened):
    key = opened.join("Ana", None)["reviewer"]
    for number in range(KINDS_MAX - len(shipped_kinds())):
        opened.add_kind(key, f"kind {number}")
    with pytest.raises(Refused, match="full"):
        opened.add_kind(key, "one more")


def test_the_keys_of_the_kinds_are_free_and_differ():
    letters = [kind.letter for kind in shipped_kinds()]
    assert len(set(letters)) == len(letters)
    assert not set(letters) & set("123ynu?/+")


def test_answers_of_many_threads_all_arrive(opened, path):
    keys = [opened.join(f"reviewer {number}", None)["reviewer"] for number in range(6)]

    def review_all(key: str) -> None:
        for item in range(1, 16):
            opened.answer(key, item, "realism", "realistic", f"{item}")

    threads = [threading.Thread(target=review_all, args=(key,)) for key in keys]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows_of(path, "SELECT count(*) FROM latest") == [(90,)]


def test_an_answer_is_in_the_file_while_it_is_open(opened, path):
    key = opened.join("Ana", None)["reviewer"]
    opened.answer(key, 1, "meaning", "unsure", "n")
    assert rows_of(path, "SELECT value FROM latest") == [('"unsure"',)]


def test_a_closed_review_is_one_file(path):
    opened = ReviewFile(path)
    opened.join("Ana", None)
    opened.close()
    assert [other.name for other in path.parent.glob("review.sqlite*")] == ["review.sqlite"]


# Files that are no review.


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SourceError, match="there is no review"):
        review.report(tmp_path / "none.sqlite")


def test_a_file_that_is_no_database_is_refused(tmp_path):
    path = tmp_path / "text.sqlite"
    path.write_text("This is a letter, not a database. " * 50)
    with pytest.raises(SourceError, match="cannot use the review"):
        review.report(path)


def test_another_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as other, other:
        other.execute("CREATE TABLE t (a)")
    before = path.read_bytes()
    with pytest.raises(SourceError, match="is not a review"):
        review.report(path)
    assert path.read_bytes() == before


def test_a_review_of_another_version_says_so(path):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("PRAGMA user_version = 2")
    opened.close()
    with pytest.raises(SourceError, match="has format 2, this noisegen reads 1"):
        review.report(path)


def test_a_truncated_review_is_refused_in_one_line(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(SourceError, match="cannot use the review"):
        review.report(path)


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("realism", '"very"'),
        ("realism", "[1]"),
        ("kinds", "[1,,2]"),
        ("kinds", "{}"),
        ("lang", '"xx"'),
        ("comment", "3"),
        ("meaning", "yes"),
    ],
)
def test_an_answer_that_no_page_sends_is_said(path, question, value):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("INSERT INTO reviewers VALUES (1, 'k', 'Ana', 'ana', '[]', 0)")
        opened.execute("INSERT INTO latest VALUES (1, 1, ?, ?)", (question, value))
    opened.close()
    with pytest.raises(SourceError, match="damaged"):
        review.report(path)


def test_a_value_that_a_column_may_not_hold_is_said_with_its_column(path):
    with sqlite3.connect(path) as opened:
        schema = "UPDATE sqlite_master SET sql = replace(sql, ?, ?)"
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute(schema, ("rows INTEGER NOT NULL", "rows INTEGER"))
    opened.close()
    with sqlite3.connect(path) as opened:
        opened.execute("UPDATE groups SET rows = NULL")
        opened.execute("PRAGMA writable_schema = ON")
        opened.execute(schema, ("rows INTEGER", "rows INTEGER NOT NULL"))
    opened.close()
    with pytest.raises(SourceError, match=r"is damaged: NULL value in groups.rows"):
        review.report(path)


def test_whatever_a_damaged_review_holds_is_an_error_of_one_line(path, tmp_path):
    content, rng = path.read_bytes(), random.Random(1)
    filled = [place for place, byte in enumerate(content) if byte]
    said = []
    for number in range(60):
        damaged = bytearray(content)
        for place in rng.sample(filled, 4):
            damaged[place] = rng.randrange(256)
        (tmp_path / f"{number}.sqlite").write_bytes(damaged)
        try:
            review.report(tmp_path / f"{number}.sqlite")
        except NoisegenError as error:
            said.append(str(error))
    assert len(said) > 10
    assert [line for line in said if "\n" in line] == []


def test_an_answer_of_nobody_is_said(path):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("INSERT INTO latest VALUES (9, 1, 'comment', '\"hi\"')")
    opened.close()
    with pytest.raises(SourceError, match="damaged"):
        review.report(path)


@pytest.mark.parametrize("name", ["id", "seed"])
def test_a_review_without_its_head_is_damaged(path, name):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("DELETE FROM review WHERE name = ?", (name,))
    opened.close()
    with pytest.raises(SourceError, match=f"damaged: it has no {name}") as caught:
        ReviewFile(path)
    assert caught.tb  # which holds what was open, so only a closed file leaves nothing beside it
    assert [other.name for other in path.parent.glob("review.sqlite*")] == ["review.sqlite"]


def test_half_a_sign_in_a_comment_is_replaced_and_the_rest_kept(opened, path, tmp_path):
    key = opened.join("Ana", None)["reviewer"]
    item = opened.item(key, 0)["item"]
    opened.answer(key, item, "comment", "so \ud83d real \ud83d\ude00", "1")
    assert opened.item(key, 0)["answers"]["comment"] == "so \ufffd real \U0001f600"
    assert review.report(path, tmp_path / "r.html").comments[0][2] == "so \ufffd real \U0001f600"


def test_half_a_sign_in_a_file_of_someone_else_is_replaced(path, tmp_path):
    with closing(sqlite3.connect(path)) as opened, opened:
        opened.execute("INSERT INTO reviewers VALUES (1, 'k', 'Ana', 'ana', '[]', 0)")
        opened.execute("INSERT INTO latest VALUES (1, 1, 'comment', '\"\\ud83d\"')")
    opened.close()
    review.report(path, tmp_path / "r.html")
    assert "\ufffd" in (tmp_path / "r.html").read_text()


def test_a_commit_that_fails_leaves_no_transaction_open(path):
    def insert_of_no_group() -> None:
        with transaction(opened):
            opened.execute("PRAGMA defer_foreign_keys = ON")
            opened.execute("INSERT INTO items VALUES (NULL, 1, 999, '', 'a', 'b', 'null')")

    with closing(connect(path)) as opened:
        with pytest.raises(sqlite3.IntegrityError):
            insert_of_no_group()
        assert not opened.in_transaction


@pytest.mark.parametrize(
    "change",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER more AFTER INSERT ON answers BEGIN DELETE FROM answers; END",
        "DROP TABLE latest; CREATE VIEW latest AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL"
        " SELECT i + 1 FROM n) SELECT i AS reviewer, i AS item, i AS question, i AS value FROM n",
        "DROP TABLE kinds; CREATE TABLE kinds (id INTEGER PRIMARY KEY, letter TEXT NOT NULL, name"
        " TEXT AS (hex(zeroblob(1000000))), hint TEXT)",
    ],
)
def test_a_review_that_brings_its_own_sql_is_refused(path, change):
    with closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    with pytest.raises(SourceError, match="is not as review make writes it"):
        review.report(path)
