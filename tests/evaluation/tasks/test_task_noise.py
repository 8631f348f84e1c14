"""Noise on labelled rows: tags go with their tokens, copies grow the data, rates are RCP's."""

import made_tasks
import pytest

from noisegen.data.labelled import LabelledRow, read_snips
from noisegen.evaluation.tasks.kinds import TASKS
from noisegen.evaluation.tasks.sets import augmented, noise_recipe, noised, read_data
from noisegen.noising.recipe import Recipe

ENGLISH = Recipe.named("rcp-en-aggregate")


@pytest.fixture
def rows(tmp_path):
    return read_snips(str(made_tasks.snips_file(tmp_path))).rows


def test_every_tag_follows_its_token_through_glued_and_capital_words(rows):
    recipe = Recipe.named("spac:drop_rate=0.5,add_rate=0")
    for clean, noisy in zip(rows, noised(rows, recipe, lang="en", seed=4), strict=True):
        assert len(noisy.tokens) == len(noisy.tags)
        assert noisy.label == clean.label
        assert "".join(noisy.tokens) == "".join(clean.tokens)
        at = 0  # a noisy token has the tag of the clean token that it begins with
        for token, tag in zip(noisy.tokens, noisy.tags, strict=True):
            inside = [
                clean.tags[n]
                for n in range(len(clean.tokens))
                if len("".join(clean.tokens[:n])) == at
            ]
            assert inside in ([tag], [f"I-{tag[2:]}"])
            at += len(token)


def test_the_recipe_of_rcp_keeps_rows_whole_and_changes_many(rows):
    made = noised(rows * 5, ENGLISH, lang="en")
    assert all(len(row.tokens) == len(row.tags) for row in made)
    assert sum(new != old for new, old in zip(made, rows * 5, strict=True)) > len(made) / 4
    kinds = {tag for row in made for tag in row.tags}
    assert kinds <= {"O", "B-artist", "I-artist", "B-city", "I-city"}


def test_both_sentences_of_a_pair_get_noise_of_their_own():
    row = LabelledRow(("see", "you", "soon"), (), "neutral", "see you soon")
    made = noised([row] * 20, Recipe.named("fing:rate=0.3"), lang="en")
    assert all(one.label == "neutral" for one in made)
    assert any(one.text != one.second for one in made)
    assert len({one.second for one in made}) > 1


def test_data_grows_by_copies_of_which_the_last_is_of_some_rows(rows):
    made = augmented(rows, ENGLISH, 2.5, lang="en", seed=1)
    assert made[: len(rows)] == rows
    assert len(made) == round(2.5 * len(rows))
    copies = made[len(rows) : 2 * len(rows)], made[2 * len(rows) :]
    assert copies[0] != copies[1] + copies[0][len(copies[1]) :]
    assert made == augmented(rows, ENGLISH, 2.5, lang="en", seed=1)
    assert made != augmented(rows, ENGLISH, 2.5, lang="en", seed=2)
    assert augmented(rows, ENGLISH, 1.0, lang="en") == rows


@pytest.mark.parametrize(
    ("given", "lang", "is_nli", "rate"),
    [
        ("wiki", "hi", False, 0.05),
        ("wiki", "de", False, 0.2),
        ("wiki", "fr", True, 0.05),
        ("wiki:dictionary=d.tsv", "es", False, 0.1),
        ("wiki:rate=0.3", "hi", False, 0.3),
    ],
)
def test_injection_has_the_rate_of_the_paper_unless_it_is_given(given, lang, is_nli, rate):
    (step,) = noise_recipe(given, lang, is_nli=is_nli).steps()
    assert step.transform == "wiki"
    assert step.values["rate"] == pytest.approx(rate)


def test_a_noisy_side_is_made_from_a_dictionary_without_the_rows_it_leaves(tmp_path):
    words = tmp_path / "dictionary.tsv"
    words.write_text(
        "lang\tclean\tnoisy\tcount\tpages\treverse_count\tprob\nes\tweather\twether\t3\t3\t0\t1.0\n"
    )
    train = made_tasks.snips_file(tmp_path)
    data = read_data(
        TASKS["intent-slots"], [str(train)], [f"es={train}"], recipe=f"wiki:dictionary={words}"
    )
    (test,) = data.tests
    clean, noisy = test.sides["clean"], test.sides["noisy"]
    assert len(noisy) == sum("weather" in row.tokens for row in clean) == 20
    for number, row in zip(test.shared, noisy, strict=True):
        assert row.tokens == ("wether", *clean[number].tokens[1:])
        assert row.tags == clean[number].tags
    assert any("leaves 20 of 40 rows" in note for note in data.notes)
