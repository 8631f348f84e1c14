"""Make and mine realistic noisy text, and train sentence encoders that withstand it.

The names here are the public ones; each is imported when first used, so that `import noisegen` and
`noisegen --help` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from noisegen.version import __version__

if TYPE_CHECKING:
    from noisegen.demo.run import quickstart
    from noisegen.draws import Draws
    from noisegen.engine import noise
    from noisegen.errors import NoisegenError
    from noisegen.evaluation.run import evaluate
    from noisegen.generation import augment
    from noisegen.info import TransformInfo, list_transforms
    from noisegen.lexicon import Lexicon
    from noisegen.manifest import Manifest
    from noisegen.mapper import Collator, Mapper
    from noisegen.mining.commands import mine_lang8, mine_pairs, mine_wiki
    from noisegen.preparing.run import prepare
    from noisegen.realism.calibration import calibrate
    from noisegen.realism.profile_commands import learn
    from noisegen.realism.reading import compare
    from noisegen.recipe import Recipe
    from noisegen.registry import lexical, transform
    from noisegen.tasks.run import evaluate_task
    from noisegen.training.methods import train

_HOMES = {
    "Collator": "mapper",
    "Draws": "draws",
    "Lexicon": "lexicon",
    "Manifest": "manifest",
    "Mapper": "mapper",
    "NoisegenError": "errors",
    "Recipe": "recipe",
    "TransformInfo": "info",
    "augment": "generation",
    "calibrate": "realism.calibration",
    "compare": "realism.reading",
    "evaluate": "evaluation.run",
    "evaluate_task": "tasks.run",
    "learn": "realism.profile_commands",
    "lexical": "registry",
    "list_transforms": "info",
    "mine_lang8": "mining.commands",
    "mine_pairs": "mining.commands",
    "mine_wiki": "mining.commands",
    "noise": "engine",
    "prepare": "preparing.run",
    "quickstart": "demo.run",
    "train": "training.methods",
    "transform": "registry",
}

__all__ = [
    "Collator",
    "Draws",
    "Lexicon",
    "Manifest",
    "Mapper",
    "NoisegenError",
    "Recipe",
    "TransformInfo",
    "__version__",
    "augment",
    "calibrate",
    "compare",
    "evaluate",
    "evaluate_task",
    "learn",
    "lexical",
    "list_transforms",
    "mine_lang8",
    "mine_pairs",
    "mine_wiki",
    "noise",
    "prepare",
    "quickstart",
    "train",
    "transform",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'noisegen' has no attribute {name!r}")
    return getattr(import_module(f"noisegen.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
