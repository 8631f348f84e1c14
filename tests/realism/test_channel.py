"""The transform channel: the promises of all transforms, and the figures of its profile."""

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from learned import divergences, learned_profile, measure, noised_by, noisy_pairs, pairs_of

import noisegen
from noisegen.errors import SourceError, UsageError
from noisegen.noising import registry
from noisegen.noising.channel_model import letter_pairs
from noisegen.noising.edits import Edits
from noisegen.noising.engine import Engine
from noisegen.noising.mix import Step
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings, Transform
from noisegen.realism.learn import profile_of, save
from noisegen.testing import check_transform
from noisegen.text.buffers import Texts
from noisegen.text.sequences import forbidden_sequences
from noisegen.text.spans import PROTECTED, protect_kinds


@pytest.fixture(scope="module")
def folder(tmp_path_factory, demo_texts):
    path = tmp_path_factory.mktemp("profiles") / "profile"
    save(learned_profile(noisy_pairs(demo_texts)), path)
    return path


def noised(folder, texts, lang="en", seed=0, protect=(), **values):
    engine = Engine(
        Recipe.of([Step("channel", {"profile": str(folder), **values})]), Settings(lang)
    )
    dice = Streams(np.arange(len(texts), dtype=np.uint64), seed)
    return engine.noise(pa.array(texts, pa.string()), dice, protect).noisy.to_pylist()


def test_no_sequence_is_written_that_the_script_forbids(tmp_path):
    """Vowel signs stored in the wrong order, as in RCP's Hindi pairs: 'हमेिशा' for 'हमेशा'."""
    clean = ["की", "से", "हमेशा", "लिए", "नहीं", "में"] * 9
    noisy = ["कीा", "सेे", "हमेिशा", "िलए", "नही", "मे"] * 9
    save(profile_of(pairs_of(list(zip(noisy, clean, strict=True))), lang="hi"), tmp_path)
    rows = noised(tmp_path, ["की से हमेशा लिए नहीं में"] * 300, lang="hi")
    assert not any(map(forbidden_sequences, rows))
    assert {"नही", "मे"} < {word for row in rows for word in row.split()}


def test_a_long_row_takes_no_longer_than_many_short_ones():
    """Each edit read the row again: 15 kB took 17 s."""
    starts = np.arange(2_000) * len("की लिए नहीं ".encode())
    starts = np.stack([starts + 3, starts + 13], axis=1).ravel()
    breaks = np.arange(len(starts)) % 2 == 0  # a space before a sign; the next takes a letter out
    pool = pa.array([b"", b" "], pa.binary())
    edits = Edits(starts * 0, starts, starts + 3 * ~breaks, breaks.astype(np.int64), pool)
    kept = edits.legal(Texts.from_strings(["की लिए नहीं " * 2_000]))
    assert kept.starts.tolist() == starts[~breaks].tolist()


def test_channel_keeps_the_promises(folder):
    """With a profile given: without one there is nothing that it could do."""
    ours = registry.get("channel")
    parameters = {
        **ours.parameters,
        "profile": type(ours.parameters["profile"])("profile", str(folder), str),
    }
    registry.register(
        Transform("channel-here", ours.summary, parameters, ours.make, ours.languages, ours.data)
    )
    check_transform("channel-here")


def test_its_example_is_within_reach(tmp_path):
    ((clean, noisy),) = registry.examples_in(registry.get("channel").summary)
    pairs = [(noisy, clean), (f"{noisy} so", f"{clean} so")]
    save(learned_profile(pairs), tmp_path)
    assert noisy in noised(tmp_path, [clean] * 200)


def test_protected_spans_stay(folder):
    spans = "https://example.org/the-end?see=you @the_people #the you@the.com"
    texts = [f"The people, {spans} because the friends see you."] * 50
    kinds = protect_kinds(PROTECTED)
    for noisy in noised(folder, texts, protect=kinds):
        assert all(span in noisy for span in spans.split())


def test_line_breaks_stay(folder):
    texts = ["The people\nsee the\r\nfriends.\u2028And the end\n"] * 200
    assert {"".join(c for c in row if c in "\n\r\u2028") for row in noised(folder, texts)} == {
        "\n\r\n\u2028\n"
    }


def test_numbers_stay_where_the_pairs_did_not_change_them(tmp_path):
    clean = [f"The people.of {n} friends, because it is so" for n in range(300)]
    noisy = [row.replace("eo", "oe").replace("aus", "asu").replace(".", ",") for row in clean]
    save(learned_profile(list(zip(noisy, clean, strict=True))), tmp_path)
    texts = [f"The people: {n}, of {n}.25 and {n}:00, 14 16 friends." for n in range(1_000, 1_200)]
    made = noised(tmp_path, texts)
    assert made != texts
    for n, row in zip(range(1_000, 1_200), made, strict=True):
        assert all(number in row for number in (f"{n}", f"{n}.25", f"{n}:00", "14 16")), row


def test_a_phrase_changes_as_one(tmp_path):
    clean = [f"we want to go to {n} and to {n} and want it" for n in range(400)]
    noisy = [row.replace("want to", "wanna", n % 2) for n, row in enumerate(clean)]
    save(learned_profile(list(zip(noisy, clean, strict=True))), tmp_path)
    made = noised(tmp_path, clean)
    assert 120 < sum("wanna go to" in row for row in made) < 280
    assert not any("wanna to" in row or "wanna it" in row for row in made)
    assert all(
        row.replace("wanna", "want to") == text for row, text in zip(made, clean, strict=True)
    )


@pytest.mark.parametrize("habitual", [True, False])
def test_a_writer_is_as_consistent_as_those_of_the_pairs(tmp_path, habitual):
    clean = [f"you know {n} and you see" for n in range(800)]
    noisy = [
        row.replace("you", "u", 2 * (n % 2))
        if habitual
        else row.replace("you", "u", n % 2)[::-1].replace("uoy", "u", n // 2 % 2)[::-1]
        for n, row in enumerate(clean)
    ]
    save(learned_profile(list(zip(noisy, clean, strict=True))), tmp_path)
    made = Counter(row.split().count("u") for row in noised(tmp_path, clean))
    assert (made[1] < 0.1 * made.total()) if habitual else (made[1] > 0.3 * made.total())


def test_rows_without_the_words_that_people_change_stay(tmp_path):
    chats, news = (
        [f"{begin} {n}" for n in range(500)]
        for begin in ("you see what you like and you know", "The council of the city met on day")
    )
    noisy = [row.replace("you", "u") if n % 10 else row for n, row in enumerate(chats)]
    pairs = list(zip([*noisy, *news], [*chats, *news], strict=True))
    save(learned_profile(pairs), tmp_path)
    made = noised(tmp_path, [*chats, *news])
    assert sum(a != b for a, b in zip(made[:500], chats, strict=True)) > 400
    assert made[500:] == news


def test_no_row_loses_all_its_words(folder, demo_texts):
    texts = ["the", "The.", "the the", *demo_texts] * 30
    assert all(any(c.isalnum() for c in row) for row in noised(folder, texts))


def test_no_letters_stand_together_that_the_pairs_do_not_have(tmp_path, demo_texts):
    noisy = noised_by(demo_texts, "fing:rate=0.03", 1)
    profile = learned_profile(list(zip(noisy, demo_texts, strict=True)))
    save(profile, tmp_path)
    seen = set().union(*(letter_pairs(text.lower()) for text in (*noisy, *demo_texts)))
    rows = [text[::-1].title() for text in demo_texts] * 4
    made = noised(tmp_path, [*demo_texts * 4, *rows])
    assert made != [*demo_texts * 4, *rows]
    for text, row in zip([*demo_texts * 4, *rows], made, strict=True):
        new = letter_pairs(row.lower()) - letter_pairs(text.lower()) - seen
        assert not new, (text, row)


def test_the_rate_scales_the_noise(folder, demo_texts):
    texts = demo_texts * 20
    edits = {rate: measure(texts, noised(folder, texts, rate=rate)).cer for rate in (0, 0.3, 1, 2)}
    assert edits[0] == 0 < edits[0.3] < 0.6 * edits[1] < 0.4 * edits[2]
    with pytest.raises(UsageError, match="outside 0 to 4"):
        noised(folder, texts, rate=5)


def test_another_seed_makes_other_noise(folder, demo_texts):
    assert noised(folder, demo_texts, seed=1) != noised(folder, demo_texts, seed=2)


def test_a_learned_profile_another_language_is_told(folder, demo_texts):
    with pytest.warns(UserWarning, match="is of language 'en', the text of 'de'"):
        noised(folder, demo_texts[:1], lang="de")


def test_a_profile_must_be_given_where_none_is_packaged(tmp_path):
    with pytest.raises(UsageError, match="learn one with noisegen learn PAIRS -o PROFILE"):
        noisegen.noise("so it is", "channel", lang="tlh")
    with pytest.raises(SourceError, match="is no profile"):
        noised(tmp_path, ["so it is"])


def test_a_profile_learned_anew_is_read_anew(tmp_path, demo_texts):
    first = learned_profile([(f"teh {text}", f"the {text}") for text in demo_texts])
    save(first, tmp_path)
    before = noised(tmp_path, ["the end of the day"] * 50)
    save(learned_profile([(text, text) for text in demo_texts]), tmp_path)
    assert noised(tmp_path, ["the end of the day"] * 50) != before


def test_a_profile_without_edits_changes_nothing(tmp_path, demo_texts):
    save(learned_profile([(text, text) for text in demo_texts]), tmp_path)
    assert noised(tmp_path, demo_texts) == demo_texts


def test_the_digest_of_its_files_is_known_to_the_manifest(folder):
    files = registry.get("channel").data(Settings(), {"profile": str(folder)})
    assert {path.name for path in files} >= {"profile.json", "words.parquet"}


@pytest.fixture(scope="module")
def learned_and_made(tmp_path_factory, real_sentences):
    """Noise of known steps on 5,000 rows, and that of the profile of 2,500 others on the same."""
    recipe = "mix_all"
    fitted, rows = real_sentences[:2_500], real_sentences[4_000:9_000]
    pairs = zip(noised_by(fitted, recipe, 1), fitted, strict=True)
    path = tmp_path_factory.mktemp("learned") / "profile"
    save(profile_of(pairs_of(list(pairs))), path)
    return measure(rows, noised_by(rows, recipe, 2)), measure(rows, noised(path, rows))


@pytest.mark.nightly
def test_the_share_of_changed_rows_is_that_of_the_profile(learned_and_made):
    real, made = learned_and_made
    sigma = math.sqrt(0.5 * 0.5 * (1 / 2_500 + 2 / 5_000))
    assert abs(real.changed_share - made.changed_share) < 4 * sigma


@pytest.mark.nightly
def test_edits_per_row_are_those_of_the_profile(learned_and_made):
    real, made = learned_and_made
    for ours, theirs in zip(real.edits_per_row, made.edits_per_row, strict=True):
        share = (ours + theirs) / 10_000
        sigma = math.sqrt(share * (1 - share) * (1 / 2_500 + 2 / 5_000))
        assert abs(ours - theirs) / 5_000 < 5 * sigma + 0.01


@pytest.mark.nightly
def test_errors_are_as_many_as_in_the_profile(learned_and_made):
    real, made = learned_and_made
    assert made.cer == pytest.approx(real.cer, rel=0.25)
    assert made.wer == pytest.approx(real.wer, rel=0.15)


@pytest.mark.nightly
def test_kinds_of_edit_are_those_of_the_profile(learned_and_made):
    found = divergences(*learned_and_made)
    assert found["kinds"] < 0.05
    assert found["edits_per_row"] < 0.01
    assert found["sentence_positions"] < 0.01


def test_what_becomes_of_a_word_has_the_shares_of_the_pairs(tmp_path):
    clean = [f"see the {number} because" for number in range(2_000)]
    forms = ["becuase", "cuz", "bcs", "because"]
    noisy = [f"see the {number} {forms[number % 4]}" for number in range(2_000)]
    save(learned_profile(list(zip(noisy, clean, strict=True))), tmp_path)
    counts = Counter(row.rpartition(" ")[2] for row in noised(tmp_path, clean))
    for form in forms:
        assert abs(counts[form] - 500) < 5 * math.sqrt(2_000 * 0.25 * 0.75)
