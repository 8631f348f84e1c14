"""Word lists: read, checked, compiled, cached."""

import multiprocessing
import os
import random

import oracle
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import noisegen
from noisegen.errors import LexiconError
from noisegen.noising import phrases
from noisegen.noising.lexicon import (
    Entry,
    Lexicon,
    codespell_dictionary,
    matchable,
    parse_codespell,
    parse_tsv,
)
from noisegen.noising.phrases import build, load_table
from noisegen.text.buffers import SIGNS, Texts, is_word

HEAD = "# name: pets\n# lang: en\n# source: field notes\n# license: CC0-1.0\n"


def tsv(body: str, head: str = HEAD) -> Lexicon:
    return parse_tsv((head + body).encode(), "pets.tsv")


def test_a_tsv_is_read_with_its_head():
    lexicon = tsv("clean\tnoisy\tweight\tpos\nthe cat\tkitty\t3\tNOUN\r\ndog\tdoggo\t1\t\n")
    assert lexicon.head["license"] == "CC0-1.0"
    assert lexicon.entries == [Entry("the cat", "kitty", 3, "NOUN"), Entry("dog", "doggo")]
    assert tsv("clean\tnoisy\ndog\tdoggo\n").entries == [Entry("dog", "doggo", 1)]


def test_the_head_may_stand_in_one_line():
    head = "# name: pets   # lang: en   # source: field notes 2026   # license: CC0-1.0\n"
    assert tsv("clean\tnoisy\ndog\tdoggo\n", head).head["source"] == "field notes 2026"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("clean\tnoisy\tweight\ndog\tdoggo\t0\n", "line 6: weight '0' is not a whole number"),
        ("clean\tnoisy\tweight\ndog\tdoggo\n", "line 6: 2 columns, not 3"),
        ("clean\tnoisy\ndog\tdog\n", "line 6: noisy 'dog' is empty, equal to clean or"),
        ("clean\tnoisy\ndog\t \u3000\n", "is empty, equal to clean or of several lines"),
        ("clean\tnoisy\ndog\tdog\u2028go\n", "is empty, equal to clean or of several lines"),
        ("clean\tnoisy\n", "pets.tsv has no entries"),
        ("clean\tnoisy\ndog.\tdoggo\n", "line 6: clean 'dog.' must be words"),
        ("clean\tnoisy\nthe  dog\tdoggo\n", "line 6: clean 'the  dog' must be words"),
        ("clean\tnoisy\tpos\ndog\tdoggo\tXX\n", "line 6: pos 'XX' is not one of NOUN, ADJ"),
        ("noisy\tclean\ndoggo\tdog\n", "line 5: the header must be clean, noisy"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(body, message):
    with pytest.raises(LexiconError, match=message):
        tsv(body)


def test_a_phrase_of_a_language_without_spaces_may_stay_or_be_left_out():
    head = HEAD.replace("lang: en", "lang: zh")
    entries = tsv("clean\tnoisy\tweight\n再见\t再见\t1\n的\t\t2\n的\t的\t8\n", head).entries
    assert entries == [Entry("再见", "再见"), Entry("的", "", 2), Entry("的", "的", 8)]
    with pytest.raises(LexiconError, match="is empty, equal to clean"):
        tsv("clean\tnoisy\n再见\t \n", head)


def test_in_a_list_of_chances_a_phrase_may_stay_whole():
    entries = tsv("clean\tnoisy\tweight\nfor real madrid\tfor real madrid\t1\n", HEAD + "# of: 9\n")
    assert entries.entries == [Entry("for real madrid", "for real madrid")]


def test_a_list_without_licence_does_not_load():
    with pytest.raises(LexiconError, match="does not say its license; begin it with '# license"):
        tsv("clean\tnoisy\ndog\tdoggo\n", HEAD.replace("# license: CC0-1.0\n", ""))


def test_files_that_cannot_be_read_say_so(tmp_path):
    with pytest.raises(LexiconError, match=r"cannot read lexicon .*none\.tsv': No such file"):
        Lexicon.load(tmp_path / "none.tsv")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(LexiconError, match="is not a Parquet file"):
        Lexicon.load(tmp_path / "bad.parquet")
    (tmp_path / "latin.tsv").write_bytes(HEAD.encode() + b"clean\tnoisy\ncaf\xe9\tcafe\n")
    with pytest.raises(LexiconError, match="is not UTF-8"):
        Lexicon.load(tmp_path / "latin.tsv")


def test_a_mined_dictionary_is_a_lexicon(tmp_path):
    table = pa.table({"clean": ["dog", "dog"], "noisy": ["dgo", "doog"], "count": [5, 1]})
    pq.write_table(table, tmp_path / "d.parquet")
    loaded = noisegen.Lexicon.load(tmp_path / "d.parquet")
    assert [*loaded.entries] == [Entry("dog", "dgo", 5), Entry("dog", "doog", 1)]
    pq.write_table(table.drop_columns("count"), tmp_path / "e.parquet")
    with pytest.raises(LexiconError, match=r"with the columns clean, noisy .* and count .*weight"):
        Lexicon.load(tmp_path / "e.parquet")


@pytest.mark.parametrize(
    ("clean", "noisy", "count", "message"),
    [
        (["dog", None], ["doog", "ct"], [1, 1], "without empty places: .*'clean' with null"),
        (["dog"], ["doog"], [1.5], r"count \(whole numbers\), .* 1\.5"),
        (["dog"], ["doog"], ["many"], r"count \(whole numbers\), .* 'many'"),
        ([["dog"]], ["doog"], [1], r"clean, noisy \(text\) .* list"),
        (["dog"], ["doog"], [0], "row 0: weight '0' is not a whole number"),
        ([], [], [], "has no entries"),
    ],
)
def test_a_mined_dictionary_that_is_none(tmp_path, clean, noisy, count, message):
    columns = {"clean": clean, "noisy": noisy, "count": count}
    pq.write_table(pa.table(columns), tmp_path / "d.parquet")
    with pytest.raises(LexiconError, match=message):
        Lexicon.load(tmp_path / "d.parquet")


@pytest.mark.parametrize("phrase", ["dog", "the dog", "e-mail", "don't", "a.m", "été"])
def test_phrases_that_can_be_matched(phrase):
    assert matchable(phrase)


@pytest.mark.parametrize("phrase", ["", " dog", "dog.", "the  dog", "give 'em", "a—b", "’tis"])
def test_phrases_that_cannot(phrase):
    assert not matchable(phrase)


def test_codespell_is_inverted():
    lines = (
        b"teh->the\nrecieve->receive\nadn->and, and/or,\nclas->class, disabled because of name\n"
    )
    assert parse_codespell(lines, "dictionary.txt").entries == [
        Entry("and", "adn", 6),
        Entry("receive", "recieve", 12),
        Entry("the", "teh", 12),
    ]


def test_a_misspelling_begins_as_its_word_does():
    wrong = "nedia->media\naother->mother\ngoogel->google\nhte->the\nohter->other\nnife->knife\n"
    wrong += "imbarrass->embarrass\nseperate->separate\nneumonia->pneumonia\nxour->your\n"
    found = {entry.noisy for entry in parse_codespell(wrong.encode(), "x").entries}
    assert found == {
        "googel",
        "hte",
        "ohter",
        "nife",
        "imbarrass",
        "seperate",
        "neumonia",
    }


def test_what_nobody_misspells_so_is_left_out():
    lines = (
        "ois->is\nsi->is\niss->is\nfo->of\nf->of\nnd->and\nofo->of\nalot->a lot\n"
        "acceptin->accepting, accept in\nabsodeflyly->absolutely\nсontain->contain\n"
    )
    pairs = {(e.clean, e.noisy) for e in parse_codespell(lines.encode(), "x").entries}
    assert pairs == {
        ("is", "si"),
        ("is", "iss"),
        ("of", "fo"),
        ("and", "nd"),
        ("a lot", "alot"),
        ("accepting", "acceptin"),
    }


def test_matches_are_leftmost_longest_whole_words_like_the_oracle(
    demo_texts, odd_texts, monkeypatch
):
    """A lexicon drawn from the text itself, dense with overlaps, against the obvious search."""
    rng = random.Random(1)
    rows = demo_texts + odd_texts[:-1]
    cleans = set()
    for text in rows:
        spans = oracle.words(text)
        for _ in range(min(6, len(spans))):
            first = rng.randrange(len(spans))
            last = min(len(spans) - 1, first + rng.randrange(4))
            phrase = oracle.lower(text[spans[first][0] : spans[last][1]]).replace("’", "'")
            if matchable(phrase) and all(len(w.encode()) <= 64 for w in phrase.split()):
                cleans.add(phrase)
    entries = [Entry(clean, "~") for clean in sorted(cleans)]
    monkeypatch.setattr(
        oracle,
        "lexicon",
        lambda *_: {
            clean.replace("'", mark): (clean, [entry])
            for clean, entry in ((e.clean, e) for e in entries)
            for mark in "'’"
        },
    )
    monkeypatch.setattr(oracle, "longest", lambda *_: 5)
    texts = Texts.from_strings(rows)
    found = build(Lexicon({"name": "dense"}, entries)).find(texts)
    expected = [
        (
            row,
            int(texts.offsets[row]) + len(text[:a].encode()),
            int(texts.offsets[row]) + len(text[:b].encode()),
        )
        for row, text in enumerate(rows)
        for a, b in oracle.matches(text, "", "")
    ]
    assert len(expected) > 1_000
    columns = (found.rows, found.starts, found.stops)
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected


def test_words_over_the_longest_match_nothing():
    table = build(Lexicon({"name": "x"}, [Entry("a" * 64, "b")]))
    rows = ["a" * 64, "a" * 65, "a" * 10_000_000]
    assert table.find(Texts.from_strings(rows)).rows.tolist() == [0]
    with pytest.raises(LexiconError, match="is over 64 bytes"):
        build(Lexicon({"name": "x"}, [Entry("a" * 65, "b")]))


def test_keys_that_differ_only_in_case_are_refused():
    with pytest.raises(LexiconError, match="'March' and 'march' differ only in case"):
        build(Lexicon({"name": "x"}, [Entry("March", "Mar"), Entry("march", "walk")]))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("NOISEGEN_CACHE", str(folder))
    return folder


def load(path) -> bytes:
    return load_table(path, parse_tsv).pool_values.tobytes()


def test_a_compiled_lexicon_comes_back_from_the_cache(cache):
    first = load_table(codespell_dictionary(), parse_codespell)
    (file,) = cache.iterdir()
    written = file.stat().st_mtime_ns
    second = load_table(codespell_dictionary(), parse_codespell)
    assert file.stat().st_mtime_ns == written
    for name in phrases.ARRAYS:
        assert (getattr(first, name) == getattr(second, name)).all()
    assert (first.head, first.words_max) == (second.head, second.words_max)


def test_a_changed_source_is_compiled_anew(cache, tmp_path):
    path = tmp_path / "pets.tsv"
    path.write_text(HEAD + "clean\tnoisy\ndog\tdoggo\n")
    before = load(path)
    stat = path.stat()
    path.write_text(HEAD + "clean\tnoisy\ndog\tpuppy\n")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # same size, same time, other content
    assert load(path) != before


def test_a_damaged_cache_file_is_made_again(cache, tmp_path):
    path = tmp_path / "pets.tsv"
    path.write_text(HEAD + "clean\tnoisy\ndog\tdoggo\n")
    expected = load(path)
    (file,) = cache.iterdir()
    for damage in (b"", file.read_bytes()[:100], b"no arrow at all"):
        file.write_bytes(damage)
        assert load(path) == expected


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    monkeypatch.setenv("NOISEGEN_CACHE", "/dev/null/cache")
    path = tmp_path / "pets.tsv"
    path.write_text(HEAD + "clean\tnoisy\ndog\tdoggo\n")
    assert b"doggo" in load(path)


def test_concurrent_writers_of_the_cache_do_not_meet(cache, tmp_path):
    path = tmp_path / "pets.tsv"
    body = "".join(f"dog{i}\tdoggo{i}\n" for i in range(3_000))
    path.write_text(HEAD + "clean\tnoisy\n" + body)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        contents = pool.map(load, [path] * 6)
    assert len(set(contents)) == 1
    assert [file.suffix for file in cache.iterdir()] == [".arrow"]


def matchable_by_characters(phrase):
    """Words with one ASCII character between neighbours, character by character."""
    words = [is_word(character) for character in phrase]
    gaps = [at for at, word in enumerate(words) if not word]
    return (
        bool(words)
        and words[0]
        and words[-1]
        and all(phrase[at].isascii() for at in gaps)
        and not any(at + 1 in gaps for at in gaps)
    )


def test_phrases_are_judged_as_character_by_character():
    edges = [at + by for low, high in SIGNS for at in (low, high) for by in (-1, 0, 1)]
    every = [*range(0x180), *edges, 0xD800, 0x10FFFF]
    signs = [chr(number) for number in every]
    for sign in signs:
        for phrase in (sign, f"a{sign}", f"{sign}a", f"a{sign}b", f"a{sign} b"):
            assert matchable(phrase) == matchable_by_characters(phrase), ascii(phrase)
    drawn = random.Random(0)
    for _ in range(5_000):
        kinds = [*"abé'- .", *drawn.sample(signs, 2)]
        phrase = "".join(drawn.choices(kinds, k=drawn.randrange(8)))
        assert matchable(phrase) == matchable_by_characters(phrase), ascii(phrase)


def test_a_damaged_parquet_lexicon_is_one_line(tmp_path):
    path = tmp_path / "d.parquet"
    words = [f"word{number}" for number in range(90)]
    columns = {"clean": words, "noisy": [f"{w}x" for w in words], "count": list(range(1, 91))}
    pq.write_table(pa.table(columns), path)
    whole, messages = path.read_bytes(), []
    for offset in range(0, len(whole), 24):
        path.write_bytes(whole[:offset] + b"\xff" * 8 + whole[offset + 8 :])
        try:
            Lexicon.load(path)
        except LexiconError as error:
            messages.append(str(error))

    assert len(messages) > 40
    assert all(message.startswith(str(path)) and "\n" not in message for message in messages)


def test_a_huge_lexicon_is_refused_before_it_is_in_memory(tmp_path):
    with pytest.raises(LexiconError, match="it is over 256 MiB"):
        Lexicon.load("/dev/zero")
    path = tmp_path / "d.parquet"  # 100 kB that would be 400 GB
    word = pa.DictionaryArray.from_arrays(pa.array([0] * 200_000, pa.int32()), ["x" * 1_000_000])
    pq.write_table(pa.table({"clean": word, "noisy": word, "count": [1] * 200_000}), path)
    assert path.stat().st_size < 200_000
    with pytest.raises(LexiconError, match="a text of over 1,000 bytes"):
        Lexicon.load(path)
