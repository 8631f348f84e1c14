"""A wrong form that is common in corrected sentences is a word of its own."""

import json

import noisegen
from noisegen.cli import run
from noisegen.data.dictionaries import load_dictionary
from noisegen.mining.dictionary import select
from noisegen.mining.miner import Thresholds

START = "In the old town near the river there "
ROWS = [
    ("is a harbuor again", "is a harbour again"),
    ("are ship on it", "are ships on it"),
    *[(f"is one ship of {n} now and thne", f"is one ship of {n} now and then") for n in "abcdefg"],
]


def mined(tmp_path, **options):
    path = tmp_path / "pairs.jsonl"
    rows = [{"noisy": START + noisy, "clean": START + clean} for noisy, clean in ROWS]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = noisegen.mine_pairs(path, tmp_path / "out", force=True, **options)
    return {entry.noisy for entry in load_dictionary(tmp_path / "out" / "dictionary.tsv")}, made


def test_a_wrong_form_that_is_a_word_is_left_out(tmp_path):
    assert mined(tmp_path)[0] == {"harbuor", "thne", "ship"}
    entries, made = mined(tmp_path, frequency=2)
    assert entries == {"harbuor", "thne"}
    assert made.dictionary["dropped"] == {"real_word": 1}


def test_the_profile_strict_asks_for_it(tmp_path):
    entries, made = mined(tmp_path, profile="strict", min_pages=1)
    assert entries == {"harbuor", "thne"}
    assert made.thresholds["frequency"] == 10


def test_it_can_be_asked_for_later_of_the_folder(tmp_path):
    mined(tmp_path)
    chosen, left = select([tmp_path / "out"], Thresholds(frequency=2))
    assert {entry.noisy for entry in chosen} == {"harbuor", "thne"}
    assert left.dropped == {"real_word": 1}
    out = tmp_path / "sure.tsv"
    words = ["dictionary", "filter", str(tmp_path / "out"), "-o", str(out), "--frequency", "2"]
    assert run(words) == 0
    assert {entry.noisy for entry in load_dictionary(out)} == {"harbuor", "thne"}


def test_the_sentences_of_all_folders_tell(tmp_path):
    """Word pairs of one run, and the sentences of another in which the wrong form is a word."""
    rows = {"a": [ROWS[1]], "b": ROWS[2:]}
    for name, pairs in rows.items():
        sides = [{"noisy": START + noisy, "clean": START + clean} for noisy, clean in pairs]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in sides))
        noisegen.mine_pairs(tmp_path / f"{name}.jsonl", tmp_path / name)
    alone, _ = select([tmp_path / "a"], Thresholds(frequency=2))
    both, left = select([tmp_path / "a", tmp_path / "b"], Thresholds(frequency=2))
    assert {entry.noisy for entry in alone} == {"ship"}
    assert {entry.noisy for entry in both} == {"thne"}
    assert left.dropped == {"real_word": 1}
