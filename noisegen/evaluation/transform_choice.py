"""Which noise a model is tested on."""

from collections.abc import Sequence

from noisegen import registry
from noisegen.errors import UsageError
from noisegen.recipe import Recipe

ROLASER = (  # the twelve of its Appendix A
    "abr1", "abr2", "abr3", "cont", "dysl", "fing", "homo", "leet", "slng", "spac", "spel", "week",
)  # fmt: skip
POSTS = (
    "apos", "caps", "cens", "clip", "diac", "init", "join", "long", "mash", "phon", "punc", "rebus",
    "vowl",
)  # fmt: skip
MIXES = ("mix_all", "ugc")


def chosen_recipes(given: Sequence[str], lang: str) -> dict[str, Recipe]:
    """Return the recipes by name; `all` stands for RoLASER's twelve, those of posts, and two mixes.

    Commas part several names. Transforms keep their own rates. Those of `all` without data for the
    language stay out; raises UsageError for others, and for unknown names.
    """
    names = [name for text in given for name in _parts(text)]
    chosen: dict[str, Recipe] = {}
    for name in names:
        for one in (*ROLASER, *POSTS, *MIXES) if name == "all" else (name,):
            if name != "all" or one in MIXES or _speaks(one, lang):
                chosen[one] = Recipe.named(one)
                chosen[one].for_language(lang)
    if not chosen:
        raise UsageError("--transforms names nothing")
    return chosen


def _parts(text: str) -> list[str]:
    """Split at commas, but for those between parameters of one transform."""
    return [text] if "=" in text else [part.strip() for part in text.split(",") if part.strip()]


def _speaks(name: str, lang: str) -> bool:
    return bool({lang, "*"} & set(registry.get(name).languages()))
