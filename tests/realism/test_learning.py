"""Learning: where errors come from is put down rightly, and a known channel is found again."""

import math
from collections import Counter

import pytest
from learned import learned_profile, noised_by, pairs_of

import noisegen
from noisegen.noising.profile import (
    FACTOR_BITS,
    SAME,
    SMALL_CASE,
    TITLE_CASE,
    GapKey,
    HabitKey,
    WordKey,
)
from noisegen.realism.kept import letter_changes
from noisegen.realism.learn import profile_of
from noisegen.realism.pair_counts import row_of
from noisegen.transforms import keyboard


def told(clean, noisy):
    found = row_of(clean, noisy)
    words = {word.clean: word.noisy for word in found.words if word.noisy != word.clean}
    gaps = [(gap.gap, gap.right, gap.noisy) for gap in found.gaps if gap.gap != gap.noisy]
    return words, gaps


@pytest.mark.parametrize(
    ("clean", "noisy", "words", "gaps"),
    [
        ("I believe it.", "I beleive it.", {"believe": "beleive"}, []),
        ("in the morning", "in morning", {"the": ""}, []),
        ("The end.", "end.", {"the": ""}, []),
        ("in morning", "in the morning", {}, [(" ", "morning", " the ")]),
        ("It is so, then.", "It is so then", {}, [(", ", "then", " "), (".", "$", "")]),
        ("a lot of it", "alot of it", {}, [(" ", "lot", "")]),
        ("tomorrow it is", "to morrow it is", {"tomorrow": "to morrow"}, []),
        ("es alta", "ella es alta", {}, [("", "es", "ella ")]),
        ("so  it is", "so it is", {}, [("  ", "it", " ")]),
        ("我喜歡他的書", "我喜歡她書", {"他": "她", "的": ""}, []),
        ("oh shit", "oh sh*t", {"shit": "sh*t"}, []),
        ("oh I'm going to go", "oh ima go", {"i'm going to": "ima"}, []),
        ("we want to go", "we wanna go", {"want to": "wanna"}, []),
        ("I don't know, so", "idk, so", {"i don't know": "idk"}, []),
        ("we go without Ben", "we go w/o Ben", {"without": "w/o"}, []),
        ("we go with Ben", "we go w/Ben", {"with": "w/"}, [(" ", "ben", "")]),
        ("and/or none", "an/or none", {"and": "an"}, []),
        ("same as ever", "same as ever", {}, []),
        ("", "", {}, []),
    ],
)
def test_differences_are_put_down_to_words_and_gaps(clean, noisy, words, gaps):
    assert told(clean, noisy) == (words, gaps)


@pytest.mark.parametrize(
    ("clean", "noisy", "found"),
    [
        ("receive", "recieve", [("c", "ei", "v", "ie")]),
        ("tomorrow", "tommorow", [("m", "", "o", "m"), ("o", "r", "r", "")]),
        ("going", "goin", [("n", "g", "$", "")]),
        ("studies", "studys", [("d", "ie", "s", "y")]),
        ("a", "b", [("^", "a", "$", "b")]),
        ("people", "men", []),
        ("same", "same", []),
    ],
)
def test_letters_that_changed(clean, noisy, found):
    assert [tuple(change) for change in letter_changes(clean, noisy)] == found


def test_a_small_letter_behind_an_inserted_word_is_put_down_to_it():
    profile = learned_profile([("Ella es alta", "Es alta")] * 2 + [("Ella es", "Es")], min_count=1)
    assert profile.gaps[GapKey("es", True, "", "Ella ", SMALL_CASE)] == 3
    assert profile.words[WordKey("es", 3, "es", SAME)] == 3


def test_a_capital_behind_a_dropped_word_is_put_down_to_it():
    profile = learned_profile([("Es alta", "Ella es alta"), ("Es", "Ella es")], min_count=1)
    assert profile.words[WordKey("ella", 3, "", TITLE_CASE)] == 2


def test_a_word_and_its_slash_are_one_form_in_profile_and_noise(tmp_path):
    pairs = tmp_path / "pairs.tsv"
    lines = [f"{n} went w/o {n}\t{n} went without {n}\n" for n in range(60)]
    lines += [f"{n} went w/ {n}\t{n} went with {n}\n" for n in range(60)]
    pairs.write_text("noisy\tclean\n" + "".join(lines), "utf-8")
    noisegen.learn(pairs, tmp_path / "profile")
    recipe = f"channel:profile={tmp_path / 'profile'}"
    rows = noisegen.noise(["he went with or without us"] * 60, recipe, id=range(60))
    written = {row.removeprefix("he went ").removesuffix(" us") for row in rows}
    assert "w/ or w/o" in written
    assert written <= {f"{a} or {b}" for a in ("with", "w/") for b in ("without", "w/o")}


def test_a_phrase_is_one_edit_where_several_pairs_have_it():
    changed = [("we wanna go", "we want to go"), ("I wanna see", "I want to see")]
    pairs = [*changed, *((text, text) for text in ("want to", "go to bed")), ("ftw", "for the win")]
    profile = learned_profile(pairs)
    phrases = {key: count for key, count in profile.words.items() if " " in key.clean}
    assert phrases == {
        WordKey("want to", 0, "wanna", SAME): 2,
        WordKey("want to", 0, "want to", SAME): 1,
    }
    assert profile.words[WordKey("to", 0, "to", SAME)] == 2


def test_habits_of_rows_are_no_changes_of_words(demo_texts):
    clean = [text for text in demo_texts if sum(c.isupper() for c in text) > 1 and text.isascii()]
    noisy = [text.lower() if number % 4 == 0 else text for number, text in enumerate(clean)]
    profile = learned_profile(list(zip(noisy, clean, strict=True)))
    shown, not_shown = (profile.habits[HabitKey("small", flag)] for flag in (True, False))
    assert (shown, not_shown) == (len(clean[::4]), len(clean) - len(clean[::4]))
    assert all(key.noisy == key.clean and key.written == SAME for key in profile.words)


def test_a_line_break_is_never_learned():
    pairs = [("so it\nis", "so it is"), ("so\nit", "so it"), ("so\u2028it", "so it")] * 3
    profile = learned_profile(
        [(f"{noisy} {n}", f"{clean} {n}") for n, (noisy, clean) in enumerate(pairs)], min_count=1
    )
    texts = [part for key in profile.gaps for part in (key.gap, key.noisy) if part]
    assert not any(len(text.splitlines()) > 1 or text in "\n\u2028" for text in texts)


@pytest.mark.nightly
def test_blanks_dropped_with_a_known_rate_are_found_again(real_sentences):
    clean = real_sentences[:3_000]
    noisy = noised_by(clean, "spac:drop_rate=0.1,add_rate=0")
    profile = profile_of(pairs_of(list(zip(noisy, clean, strict=True))))
    blanks = Counter()
    for key, count in profile.gaps.items():
        if key.gap == " " and key.noisy is not None:
            blanks[key.noisy] += count
    share, total = blanks[""] / blanks.total(), blanks.total()
    assert set(blanks) == {" ", ""}
    assert abs(share - 0.1) < 4 * math.sqrt(0.1 * 0.9 / total) + 0.002  # some joins are ambiguous


@pytest.mark.nightly
def test_neighbouring_keys_are_found_again(real_sentences):
    clean = real_sentences[:3_000]
    noisy = noised_by(clean, "fing:rate=0.02")
    profile = profile_of(pairs_of(list(zip(noisy, clean, strict=True))))
    pairs = {(entry.clean, entry.noisy) for entry in keyboard.keyboard_of("en", None).neighbours()}
    single = Counter()
    for key, count in profile.letters.items():
        if len(key.clean) == len(key.noisy) == 1 and key.clean != key.noisy:
            single[(key.clean, key.noisy) in pairs] += count
    assert single[True] > 0.99 * single.total()
    assert single.total() > 1_000


def test_misspellings_of_a_word_are_found_again():
    clean = [f"I receive letter number {number}" for number in range(4_000)]
    noisy = noised_by(clean, "spel:rate=0.2")
    profile = profile_of(pairs_of(list(zip(noisy, clean, strict=True))))
    counts = {key.noisy: n for key, n in profile.words.items() if key.clean == "receive"}
    changed = 1 - counts["receive"] / sum(counts.values())
    assert abs(changed - 0.2) < 4 * math.sqrt(0.2 * 0.8 / 4_000)
    assert None not in counts  # each form was seen often


@pytest.mark.nightly
def test_rows_with_equal_chances_have_factors_near_one(real_sentences):
    """Noise without heaps: the spread of the fitted factors is that of no mixture."""
    clean = real_sentences[:3_000]
    noisy = noised_by(clean, "spac:drop_rate=0.1,add_rate=0")
    factors = profile_of(pairs_of(list(zip(noisy, clean, strict=True)))).factors
    near = sum(one.weight for one in factors if 0.7 < one.gaps / (1 << FACTOR_BITS) < 1.6)
    assert near > 0.8 * sum(one.weight for one in factors)


def test_the_same_sentence_again_is_no_second_witness():
    pairs = [("my quolls sleep", "my quolls sleep")] * 9 + [("my dog", "my dog")]
    assert {key.clean for key in learned_profile(pairs).words} == {"my"}


def test_learning_makes_the_same_profile_in_any_order(demo_texts):
    pairs = list(zip(noised_by(demo_texts, "mix_all", 3), demo_texts, strict=True))
    assert learned_profile(pairs).digest == learned_profile(pairs[::-1]).digest
