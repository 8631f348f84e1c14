from collections import Counter

import numpy as np
import pytest
import torch

from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import open_folder, save_folder
from noisegen.training.misspellings import likely_misspellings
from noisegen.training.noisy_words import add_noisy_words, find_noisy_words
from noisegen.training.pairs import NoiseSource, Reading, prepare_data

DROPPED = {"hoes": "hopes", "rise": "riske"}  # shows that p and k are left out


def likely(changes, counts, lang="en", most=100, pieces=None):
    """Return the likely misspellings of these words, all of one piece, as {form: word}."""
    words = {form: {word: 1} for form, word in changes.items()}
    known = {*(pieces or counts)}
    found = likely_misspellings(words, Counter(counts), [lang], known.intersection, most)
    return {form: word for form, [word] in found.items()}


def test_letters_that_change_in_noisy_words_change_in_others():
    swaps = {"beleive": "believe", "recieve": "receive"}

    found = likely(swaps, {"achieve": 9, "deceive": 9, "present": 9})

    assert found == {"acheive": "achieve", "decieve": "deceive"}


def test_the_likeliest_come_first():
    doubled = {"diferent": "different", "hapen": "happen", "stoped": "stopped", "sumer": "summer"}

    assert [*likely(doubled, {"commend": 9, "offered": 90})] == ["ofered", "comend"]
    assert [*likely(doubled, {"commend": 9, "offered": 90}, most=1)] == ["ofered"]


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"zorken": 9}, {"zoren": "zorken"}),
        ({"zorken": 2}, {}),  # too rare
        ({"zork": 9}, {}),  # too short
        ({"zorken": 9, "zorpen": 9}, {}),  # zoren may be either
        ({"zorken": 999, "zorpen": 9}, {"zoren": "zorken"}),
        ({"zorken": 9, "zoren": 9}, {}),  # a word of this text
        ({"zorken": 999, "zoren": 1}, {"zoren": "zorken"}),  # misspelled in clean text
    ],
)
def test_a_form_stands_for_one_frequent_word(counts, expected):
    assert likely(DROPPED, counts, pieces={"zork", "zorken", "zorpen"}) == expected


def test_a_form_of_one_piece_or_of_a_dictionary_stays():
    dropped = {"back": "black", "bending": "blending"}
    counts = {"blaming": 9, "clashing": 9, "plaster": 9}
    forms = {"baming": "blaming", "paster": "plaster"}

    assert likely(dropped, counts) == forms
    assert likely(dropped, counts, "hr") == forms | {"cashing": "clashing"}
    assert likely(dropped, counts, pieces={*counts, "baming"}) == {"paster": "plaster"}


def test_minilm_reads_misspellings_that_no_noise_has_shown(tmp_path, demo_texts):
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(text.replace("\n", " ") for text in demo_texts), "utf-8")
    pairs = prepare_data(tmp_path / "data", [str(texts)], Reading(clean_only=True))
    minilm, noise = open_encoder("minilm"), NoiseSource("spel")
    shown = find_noisy_words(minilm, pairs, noise, 5_000)
    words = find_noisy_words(minilm, pairs, noise, 5_000, misspellings=20_000)
    noisy = ["It is realy importent.", "What a diffrence!", "It happend. I beleve it is posible."]
    clean = [
        "It is really important.",
        "What a difference!",
        "It happened. I believe it is possible.",
    ]

    def distances():
        return 1 - np.sum(minilm.encode(noisy) * minilm.encode(clean), axis=1)

    before = distances()
    add_noisy_words(minilm, words)

    assert len(words) == len(shown) + 20_000
    assert not shown.keys() & {*" ".join(noisy).lower().replace(".", "").replace("!", "").split()}
    assert distances().max() < 1e-6 < 0.02 < before.min()


def test_a_student_stored_in_half_precision_is_as_good(tmp_path):
    minilm = open_encoder("minilm")
    for name, half in (("whole", False), ("half", True)):
        save_folder(minilm, tmp_path / name, half=half)
    whole, half = (tmp_path / name / "model.safetensors" for name in ("whole", "half"))
    texts = ["so many ppl here", "Where is it?", ""]

    student = open_folder(tmp_path / "half")

    assert half.stat().st_size < 0.51 * whole.stat().st_size
    assert {weights.dtype for weights in student.network.parameters()} == {torch.float32}
    cosines = np.sum(student.encode(texts) * minilm.encode(texts), axis=1)
    assert cosines.min() > 1 - 1e-5
