"""Profiles as files: read back as written, added up, refused when damaged or foreign."""

import json
import re
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from learned import learned_profile, noisy_pairs, pairs_of

from noisegen.errors import OutputError, SourceError, UsageError
from noisegen.noising.profile import WordKey, load, merged
from noisegen.realism.learn import check_free, profile_of, save


@pytest.fixture
def saved(tmp_path, demo_texts):
    profile = learned_profile(noisy_pairs(demo_texts))
    save(profile, tmp_path / "profile")
    return tmp_path / "profile"


def test_a_profile_is_read_back_as_it_was_written(saved, demo_texts):
    assert load(saved) == learned_profile(noisy_pairs(demo_texts))


def test_the_same_pairs_give_the_same_files(saved, tmp_path, demo_texts):
    save(profile_of(pairs_of(noisy_pairs(demo_texts)), "en"), tmp_path / "again")
    for path in saved.iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


def test_a_profile_is_small(saved):
    assert sum(path.stat().st_size for path in saved.iterdir()) < 200_000


def test_merging_adds_counts_up(demo_texts):
    pairs = noisy_pairs(demo_texts[:60])
    first, second = (
        learned_profile(pairs[: len(pairs) // 2]),
        learned_profile(pairs[len(pairs) // 2 :]),
    )
    both = merged([first, second])
    assert both.totals["pairs"] == len(pairs)
    assert both.words == first.words + second.words
    assert merged([second, first]).digest == both.digest


def test_what_is_kept_at_any_count_is_the_same_learned_at_once_or_merged(demo_texts):
    pairs = noisy_pairs(demo_texts[:60])
    parts = [learned_profile(part, min_count=1) for part in (pairs[::2], pairs[1::2])]
    both, whole = merged(parts), learned_profile(pairs, min_count=1)
    assert both.words == whole.words
    assert both.rows == whole.rows


def test_profiles_of_several_languages_are_not_merged(demo_texts):
    profile = learned_profile(noisy_pairs(demo_texts))
    with pytest.raises(UsageError, match="several languages cannot be merged: en, is"):
        merged([profile, replace(profile, lang="is")])


def tokens(text):
    return re.findall(r"\w+(?:['’]\w+)*", text or "")


def test_no_four_words_of_the_source_are_in_a_profile(real_sentences):
    clean = real_sentences[:600]
    noisy = [text.replace(" the ", " a ").replace(", ", " and also ") for text in clean]
    profile = learned_profile(list(zip(noisy, clean, strict=True)))
    texts = [
        text
        for table in (profile.words, profile.gaps, profile.letters)
        for key in table
        for text in key
        if isinstance(text, str)
    ]
    assert max(len(tokens(text)) for text in texts) <= 2
    phrases = {(*tokens(key.noisy), *tokens(key.right)) for key in profile.gaps}
    assert max(map(len, phrases)) == 3


def test_what_stands_in_one_pair_only_is_not_kept():
    pairs = [
        ("see you tomorow Zebulon", "see you tomorrow Zebulon"),
        ("you see", "see you"),
        ("to tomorow", "today tomorrow"),
        ("my secret, tomorrow", "tomorrow"),
    ]
    profile = learned_profile(pairs * 3)
    assert not any(
        "zebulon" in str(key) or "secret" in str(key)
        for table in (profile.words, profile.gaps)
        for key in table
    )
    assert profile.words[WordKey("tomorrow", 0, "tomorow", 0)] == 6


def test_a_slip_seen_once_is_kept_an_odd_form_is_not():
    pairs = [
        ("they beleive it", "they believe it"),
        ("they xyzzy it", "they believe it"),
        ("they believe", "they believe"),
    ]
    forms = {key.noisy for key in learned_profile(pairs).words if key.clean == "believe"}
    assert forms == {"beleive", "believe", None}


def rewrite(folder, **changes):
    head = json.loads((folder / "profile.json").read_text("utf-8"))
    (folder / "profile.json").write_text(json.dumps(head | changes), "utf-8")


def test_another_format_says_what_to_do(saved):
    rewrite(saved, format=99)
    with pytest.raises(SourceError, match=r"format 99, this noisegen .* reads 2; learn it again"):
        load(saved)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"totals": {"pairs": "many"}}, r"`\$.totals"),
        ({"lang": None}, r"`\$.lang`"),
        ({"factors": [[1, 2]]}, "factors"),
        ({"factors": [[1, 2, 0]]}, "factors"),
        ({"factors": [[1 << 40, 2, 1]]}, "factors"),
        ({"digest": "0" * 16}, "do not belong together"),
    ],
)
def test_a_damaged_head_is_refused(saved, changes, message):
    rewrite(saved, **changes)
    with pytest.raises(SourceError, match=message):
        load(saved)


@pytest.mark.parametrize("content", ["", "{", "[]", '{"a": 1}', "\xff"])
def test_a_foreign_head_is_refused(tmp_path, content):
    (tmp_path / "profile.json").write_text(content, "latin-1")
    with pytest.raises(SourceError, match="profile"):
        load(tmp_path)


def test_a_folder_without_profile_says_how_to_make_one(tmp_path):
    with pytest.raises(SourceError, match="make one: noisegen learn PAIRS -o"):
        load(tmp_path)


@pytest.mark.parametrize("name", ["words", "gaps", "letters", "shapes", "rows", "habits"])
def test_a_damaged_table_is_refused(saved, name):
    path = saved / f"{name}.parquet"
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(SourceError, match=f"{name}.parquet cannot be read"):
        load(saved)


def test_a_table_with_other_columns_is_refused(saved):
    pq.write_table(pa.table({"clean": ["a"]}), saved / "words.parquet")
    with pytest.raises(SourceError, match="its columns are not those of a profile"):
        load(saved)


@pytest.mark.parametrize("text", ["a\nb", "a\u2028b", "x" * 900])
def test_line_breaks_and_long_texts_are_refused(saved, text):
    schema = pq.read_schema(saved / "gaps.parquet")
    row = {"right": ["a"], "initial": [False], "gap": [" "], "noisy": [text], "written": [0]}
    pq.write_table(pa.table({**row, "count": [1]}, schema), saved / "gaps.parquet")
    with pytest.raises(SourceError, match="too long or has a line break"):
        load(saved)


def test_a_huge_word_is_refused_before_it_is_copied(saved):
    schema = pq.read_schema(saved / "words.parquet")
    row = {"clean": ["x" * 100_000], "case": [0], "noisy": ["b"], "written": [0], "count": [1]}
    columns = {name: value * 100 for name, value in row.items()}
    pq.write_table(pa.table(columns, schema), saved / "words.parquet")
    with pytest.raises(SourceError, match="a text of over 1,000 bytes"):
        load(saved)


def test_numbers_out_of_range_are_refused(saved):
    schema = pq.read_schema(saved / "words.parquet")
    row = {"clean": ["a"], "case": [9], "noisy": ["b"], "written": [0], "count": [1]}
    pq.write_table(pa.table(row, schema), saved / "words.parquet")
    with pytest.raises(SourceError, match="'case'"):
        load(saved)


def test_a_folder_with_files_is_not_written_over(tmp_path, saved):
    with pytest.raises(OutputError, match="not empty"):
        check_free(saved, force=False)
    check_free(saved, force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="files but no profile"):
        check_free(tmp_path / "other", force=True)
