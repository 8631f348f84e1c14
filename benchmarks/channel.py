"""A learned channel against fing and spel run together; and learning from 30,000 pairs."""

import tempfile
from collections.abc import Iterator

from benchmarks import real_pairs
from benchmarks.measure import Result, Skipped, Target, best, cpu, rates, report
from benchmarks.mechanisms import noiser
from noisegen.data.pairs import Pairs
from noisegen.noising.mix import parse_step
from noisegen.noising.recipe import Recipe
from noisegen.realism.learn import profile_of, save

PROFILE_OF = "cweb:G"
LEARNT_FROM = "ua-gec"
SECONDS_MAX, PAIRS = 20.0, 30_000


def pairs_of(name: str) -> Pairs:
    """Return the pairs of a real set."""
    noisy, clean = zip(*real_pairs.load(name), strict=True)
    return Pairs(list(noisy), list(clean))


def results(rows: int) -> Iterator[Result | Skipped]:
    """Measure the transform, then learning."""
    if not {PROFILE_OF, LEARNT_FROM} <= set(real_pairs.available()):
        yield Skipped("channel", "no real pairs here")
        return
    for name in (PROFILE_OF, "jfleg"):
        with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as folder:
            save(profile_of(pairs_of(name), real_pairs.SETS[name].lang), folder)
            step = parse_step(f"channel:profile={folder}")
            both = Recipe.of([parse_step("fing"), parse_step("spel")])
            recipes = {"channel": Recipe.of([step]), "both": both}
            jobs = {kind: cpu(noiser(recipe, rows)) for kind, recipe in recipes.items()}
            speed = rates(best(jobs), rows)
        yield Result(
            f"channel of {name}",
            speed["channel"],
            speed["both"],
            "k rows/s",
            "fing and spel together",
            Target(">=", 0.5),
        )
    pairs = pairs_of(LEARNT_FROM).take(range(PAIRS))
    seconds = best({"learn": cpu(lambda: profile_of(pairs, "uk"))}, repeats=1)["learn"]
    yield Result(
        f"learn from {PAIRS:,} pairs", seconds, SECONDS_MAX, "CPU s", "the limit", Target("<=", 1.0)
    )


if __name__ == "__main__":
    report(results)
