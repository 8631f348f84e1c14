"""`noisegen.noise`: text in, text out; lists in, lists out; and what it refuses."""

import re
import subprocess
import sys
import warnings
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import noisegen
from noisegen.errors import UsageError
from noisegen.noising.engine import warn_once
from noisegen.noising.noise import engine_for, id_array
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe

STEP = "fing:rate=0.3"


def test_without_an_id_the_text_is_its_key(demo_texts):
    texts = demo_texts[:40]
    noisy = noisegen.noise(texts, "ugc", seed=1)
    assert [noisegen.noise(text, "ugc", seed=1) for text in texts] == noisy
    assert [noisegen.noise(text, "ugc", seed=1, id=text) for text in texts] == noisy
    of_texts = engine_for("ugc").schedule.draw(Streams(id_array(texts, 40), 1))
    drawn = {tuple(of_texts.steps[of_texts.rows == row]) for row in range(40)}
    assert len(drawn) > 20  # every text draws its own transforms


def test_equal_texts_get_equal_noise_without_ids_and_other_noise_with_them():
    text = "see you tomorrow at the station"
    assert len(set(noisegen.noise([text] * 9, STEP))) == 1
    assert len(set(noisegen.noise([text] * 9, STEP, id=range(9)))) > 5


def test_a_list_gives_a_list_in_its_order():
    texts = ["see you tomorrow", "at the station", ""]
    noisy = noisegen.noise(texts, STEP, id=["a", "b", "c"])
    assert noisy == [
        noisegen.noise(text, STEP, id=key) for text, key in zip(texts, "abc", strict=True)
    ]
    assert noisegen.noise(tuple(texts), STEP, id=np.array(["a", "b", "c"])) == noisy
    assert noisegen.noise(pa.array(texts), STEP, id=pa.array(["a", "b", "c"])) == noisy
    assert noisegen.noise([], STEP) == noisegen.noise([], STEP, id=[]) == []


def test_an_id_of_numpy_or_as_text_is_the_number():
    one = noisegen.noise("see you tomorrow", STEP, id=3)
    assert noisegen.noise("see you tomorrow", STEP, id=np.int64(3)) == one
    assert noisegen.noise("see you tomorrow", STEP, id="3") == one != "see you tomorrow"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "give a text or a list of texts, not None"),
        (5, "give a text or a list of texts, not 5"),
        ({"see you"}, r"give a text or a list of texts, not \{'see you'\}"),
        (b"see", "not b'see'"),
        ({"text": "see"}, "not {'text': 'see'}"),
        (["see", None], "text 1 is None, not a string"),
        ([1.5], "text 0 is 1.5, not a string"),
        ("a\ud800", "text 0, character 1: a lone surrogate"),
    ],
)
def test_what_is_no_text_is_refused(text, message):
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        noisegen.noise(text)


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("see", 1.5, "ids are integers or strings"),
        ("see", [1], "ids are integers or strings"),
        ("see", 2**70, "ids are integers or strings"),
        (["see", "you"], 1, "ids are integers or strings, one per text"),
        (["see", "you"], [1, "a"], "ids are integers or strings"),
        (["see", "you"], [1], "2 texts but 1 ids"),
    ],
)
def test_what_is_no_id_is_refused(text, key, message):
    with pytest.raises(UsageError, match=message):
        noisegen.noise(text, id=key)


def test_a_list_of_steps_is_a_recipe():
    text = "I do not know what you are going to do tomorrow."
    steps = ["cont", "abr1:rate=1"]
    assert noisegen.noise(text, steps, id=3) == noisegen.noise(text, Recipe.of(steps), id=3) != text


@pytest.mark.parametrize("given", [None, {"steps": ["cont"]}, 5, [], [None]])
def test_what_is_no_recipe_is_refused(given):
    ways = "is not a recipe: give a name, a .yaml file, NAME:parameter=value or a Recipe"
    for use in (noisegen.noise, partial(noisegen.augment, "x")):
        with pytest.raises(UsageError, match=re.escape(f"{given!r} {ways}")):
            use("y", recipe=given)


def test_a_run_has_no_list_as_its_recipe():
    with pytest.raises(UsageError, match=r"\['cont'\] is not a recipe"):
        noisegen.augment("x", "y", recipe=["cont"])


@pytest.mark.parametrize("option", ["lang", "protect", "tagger"])
@pytest.mark.parametrize("value", [None, ["url"], 5])
def test_an_option_that_is_no_text_is_refused(option, value):
    with pytest.raises(UsageError, match=re.escape(f"{option} {value!r} is not text: write it as")):
        noisegen.noise("see you", **{option: value})


def test_a_batch_that_is_no_table_is_refused():
    with pytest.raises(UsageError, match=r"needs a pyarrow.Table with a column text, not a list"):
        Recipe.named("ugc").noise_batch(["a"])


def test_an_option_that_is_none_is_named():
    code = "import noisegen; noisegen.noise('x', sed=1)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.endswith("noise has no option 'sed'; did you mean 'seed'?\n")
    with pytest.raises(UsageError, match="augment has no option 'sed'; did you mean 'seed'"):
        noisegen.augment("x", "y", sed=1)
    with pytest.raises(UsageError, match="noise has no option 'protct'; did you mean 'protect'"):
        noisegen.noise("x", protct="none")
    with pytest.raises(UsageError, match="noise has no option 'options'"):
        noisegen.noise("x", options={})


def noise_in_swahili():
    noisegen.noise("habari ya leo", "ugc", lang="sw")
    noisegen.noise("habari ya leo", "ugc", lang="swa", seed=1)
    noisegen.Mapper("ugc", lang="Swahili").noise(["habari"], [1])


def test_what_a_language_lacks_is_warned_of_once():
    warn_once.cache_clear()
    with pytest.warns(UserWarning, match="ugc leaves out .* in 'sw' .*: init, join") as caught:
        noise_in_swahili()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        noisegen.noise("guten Tag", "fing", lang="de")


def test_a_recipe_file_is_read_once_until_it_is_written_anew(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("steps: [{leet: {rate: 1}}]")
    first = engine_for(str(path))
    assert engine_for(str(path)) is first
    assert noisegen.noise("elite", str(path)) == noisegen.noise("elite", "leet:rate=1")
    path.write_text("steps: [{caps: {rate: 1}}]  # other")
    assert engine_for(str(path)) is not first
    assert noisegen.noise("elite", str(path)) == "ELITE"


def test_a_recipe_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(noisegen.NoisegenError, match="cannot read recipe"):
        noisegen.noise("see", str(tmp_path / "mine.yaml"))
