"""Make and mine realistic noisy text, and train sentence encoders that are robust to it.

All names in this module are public. A name is imported when it is first used, so that `import
noisegen` and `noisegen --help` stay fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from noisegen.version import __version__

if TYPE_CHECKING:  # only for editors and type checkers, which cannot run `__getattr__`
    from noisegen import review as review
    from noisegen.augmentation.augment import augment as augment
    from noisegen.augmentation.catalog import TransformInfo as TransformInfo
    from noisegen.augmentation.catalog import list_transforms as list_transforms
    from noisegen.augmentation.noisy_dataset import NoisyDataset as NoisyDataset
    from noisegen.augmentation.on_the_fly import Collator as Collator
    from noisegen.augmentation.on_the_fly import Mapper as Mapper
    from noisegen.demo.quickstart import quickstart as quickstart
    from noisegen.errors import NoisegenError as NoisegenError
    from noisegen.evaluation.evaluate import evaluate as evaluate
    from noisegen.evaluation.tasks.evaluate_task import evaluate_task as evaluate_task
    from noisegen.mining.mine import mine_lang8 as mine_lang8
    from noisegen.mining.mine import mine_pairs as mine_pairs
    from noisegen.mining.mine import mine_wiki as mine_wiki
    from noisegen.noising.lexical import lexical as lexical
    from noisegen.noising.lexicon import Lexicon as Lexicon
    from noisegen.noising.noise import noise as noise
    from noisegen.noising.noise import normalize as normalize
    from noisegen.noising.recipe import Recipe as Recipe
    from noisegen.noising.registry import transform as transform
    from noisegen.noising.rng import Draws as Draws
    from noisegen.preparation.prepare import prepare as prepare
    from noisegen.realism.calibrate import calibrate as calibrate
    from noisegen.realism.compare import compare as compare
    from noisegen.realism.fit import fit as fit
    from noisegen.realism.learn import learn as learn
    from noisegen.realism.unpaired import compare_posts as compare_posts
    from noisegen.runs.manifest import Manifest as Manifest
    from noisegen.training.export import export as export
    from noisegen.training.train import train as train

_MODULES = {  # public name -> module within noisegen that defines it
    "Collator": "augmentation.on_the_fly",
    "Draws": "noising.rng",
    "Lexicon": "noising.lexicon",
    "Manifest": "runs.manifest",
    "Mapper": "augmentation.on_the_fly",
    "NoisegenError": "errors",
    "NoisyDataset": "augmentation.noisy_dataset",
    "Recipe": "noising.recipe",
    "TransformInfo": "augmentation.catalog",
    "augment": "augmentation.augment",
    "calibrate": "realism.calibrate",
    "compare": "realism.compare",
    "compare_posts": "realism.unpaired",
    "evaluate": "evaluation.evaluate",
    "evaluate_task": "evaluation.tasks.evaluate_task",
    "export": "training.export",
    "fit": "realism.fit",
    "learn": "realism.learn",
    "lexical": "noising.lexical",
    "list_transforms": "augmentation.catalog",
    "mine_lang8": "mining.mine",
    "mine_pairs": "mining.mine",
    "mine_wiki": "mining.mine",
    "noise": "noising.noise",
    "normalize": "noising.noise",
    "prepare": "preparation.prepare",
    "quickstart": "demo.quickstart",
    "train": "training.train",
    "transform": "noising.registry",
}
_PACKAGES = ("review",)  # packages with public functions, such as noisegen.review.make
__all__ = ["__version__", *_MODULES, *_PACKAGES]


def __getattr__(name: str) -> Any:
    """Import a public name's object at its first use; raises AttributeError for other names."""
    if name not in __all__:
        raise AttributeError(f"module 'noisegen' has no attribute {name!r}")
    from noisegen.errors import naming_extras

    with naming_extras():
        if name in _PACKAGES:
            return import_module(f"noisegen.{name}")
        found = getattr(import_module(f"noisegen.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
