"""Work that the engine does once: one pass a step, rows that a step cannot change passed over."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from test_rows import BUILT_IN, WORDS, a_language_of, heavy

from noisegen.noising.engine import Engine
from noisegen.noising.noise import engine_for
from noisegen.noising.plan import Streams
from noisegen.noising.recipe import Recipe
from noisegen.noising.registry import Settings
from noisegen.text import buffers

PLAIN = "see you at the next stop then we go home"
NEEDY = [
    (name, {})
    for name in BUILT_IN
    if getattr(Engine(heavy(name), Settings(a_language_of(name))).steps[0], "needs", b"")
]
NEEDY += [("caps", {"words": words, "case": "lower"}) for words in ("i", "next")]


@pytest.fixture
def runs(monkeypatch) -> list[list[int]]:
    """The steps of the rows of each run of a kernel."""
    found = []
    kernel_for = Engine.kernel_for

    def noted(self, steps, spans):
        found.append(steps.tolist())
        return kernel_for(self, steps, spans)

    monkeypatch.setattr(Engine, "kernel_for", noted)
    return found


def noisy_by(engine: Engine, texts: list[str]) -> list[str]:
    streams = Streams(np.arange(len(texts), dtype=np.uint64), 7)
    return engine.noise(pa.array(texts, pa.string()), streams).noisy.to_pylist()


def test_a_recipe_in_order_runs_each_step_once_for_all_its_rows(demo_texts, runs):
    engine = engine_for("ugc")
    noisy_by(engine, demo_texts)

    assert max(Counter(step for steps in runs for step in set(steps)).values()) == 1
    assert max(map(len, runs)) > len(demo_texts) / 3


def test_a_recipe_that_is_shuffled_runs_its_word_lists_together(demo_texts, runs):
    noisy_by(engine_for("mix_all"), demo_texts)

    assert any(len(set(steps)) > 3 for steps in runs)


def test_rows_without_what_a_step_needs_are_passed_over(runs):
    texts = [PLAIN, "it's me", "", "don’t", PLAIN]
    noisy = noisy_by(Engine(Recipe.of(["apos:rate=1"])), texts)

    assert runs == [[0, 0]]
    assert [a != b for a, b in zip(texts, noisy, strict=True)] == [False, True, False, True, False]


@pytest.mark.parametrize("step", ["caps:words=first,case=lower", "long:rate=1", "mash:rate=1"])
def test_words_are_hashed_for_the_steps_that_compare_them_alone(step, demo_texts, monkeypatch):
    engine, hashed = Engine(Recipe.of([step])), []
    monkeypatch.setattr(buffers, "folded", hashed.append)

    assert noisy_by(engine, demo_texts) != demo_texts
    assert not hashed


def test_what_a_step_needs_may_come_from_the_step_before():
    noisy = noisy_by(Engine(Recipe.of(["cont:rate=1", "apos:rate=1"])), ["it is you"])

    assert noisy[0] not in ("it is you", "it's you")


@pytest.mark.parametrize(("name", "values"), NEEDY)
def test_no_row_without_what_its_kernel_needs_would_change(name, values, demo_texts):
    kernel = Engine(heavy(name, **values), Settings(a_language_of(name))).steps[0]
    needs = kernel.needs
    assert len(NEEDY) > 6
    texts = [
        "".join(sign for sign in text if not set(sign.encode()) & set(needs))
        for text in [*demo_texts, *WORDS.split(), PLAIN]
    ]
    engine = Engine(heavy(name, **values), Settings(a_language_of(name)))
    engine.steps = [replace(engine.steps[0], needs=b"")]

    assert noisy_by(engine, texts) == texts


def test_the_strengths_of_a_recipe_are_numbered_once():
    recipe = Recipe.named("ugc")

    assert recipe.factors is recipe.factors
