"""A recipe over texts in memory: what calibration measures by."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from noisegen.engine import PROTECTED, Engine
from noisegen.mixing import Dice
from noisegen.recipe import Recipe
from noisegen.registry import Settings
from noisegen.spans import protect_kinds

Tick = Callable[[str, int, int], None]  # what was measured, how many, of how many (0: unknown)


@dataclass(frozen=True)
class Noising:
    """Who asks for noise: language, spans that stay, tagger."""

    lang: str = "en"
    protect: str = PROTECTED
    tagger: str = "auto"

    def noise(
        self, recipe: Recipe, texts: Sequence[str], seed: int = 0, copy: int = 0
    ) -> list[str]:
        """Return the noisy texts, numbered from 0; steps without data for the language stay out.

        Raises UsageError if no step has data.
        """
        engine = Engine(recipe.for_language(self.lang)[0], Settings(self.lang, tagger=self.tagger))
        dice = Dice(np.arange(len(texts), dtype=np.uint64), seed, copy)
        clean = pa.array(texts, pa.string())
        noisy: list[str] = engine.noise(clean, dice, protect_kinds(self.protect)).noisy.to_pylist()
        return noisy
