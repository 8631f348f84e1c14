"""`calibrate`: a recipe fitted to real pairs, or scaled to an error rate."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from noisegen import registry
from noisegen.engine import PROTECTED
from noisegen.errors import UsageError
from noisegen.examples import DEMO
from noisegen.inputs import Columns, expand
from noisegen.realism.calibrated import Calibrated
from noisegen.realism.noising import Noising, Tick
from noisegen.realism.pairs import read_pairs
from noisegen.realism.real_fit import calibrate_pairs
from noisegen.realism.target_rate import calibrate_rate
from noisegen.recipe import Recipe
from noisegen.sources import read, tasks

TEXTS_MAX = 20_000  # of a source are read
ROUNDS = 6
Sources = str | Path | Sequence[str | Path]
Tell = Callable[[str], None]


def calibrate(
    recipe: str | Recipe = "mix_all", *, real: Sources = (), target_cer: float | None = None,
    target_wer: float | None = None, source: Sources = (), lang: str = "en",
    name: str | None = None, values: Mapping[str, object] | None = None, seed: int = 0,
    rounds: int = ROUNDS, noisy_column: str = "noisy", clean_column: str = "clean",
    clean_file: str | None = None, text_column: str = "text", protect: str = PROTECTED,
    tagger: str = "auto", code: Sequence[str] = (), tell: Tell = lambda _: None,
    tick: Tick | None = None,
) -> Calibrated:  # fmt: skip
    """Fit a recipe to real pairs, or scale it so that a text gets an expected CER or WER.

    One of `real` (what `read_pairs` reads), `target_cer` and `target_wer` (shares: 0.05 is 5 %) is
    given. `source` is the clean text that a target is for, by default the bundled demo text.
    `values` ({'leet.rate': 0.1}) change the recipe first; `name` is that of the new one. `tell`
    hears what was decided, `tick` of every measurement: what, how many, of how many (0: unknown).
    Raises NoisegenError.
    """
    for path in code:
        registry.load_code(path)
    base = Recipe.named(recipe) if isinstance(recipe, str) else recipe
    base = base.with_values(values or {})
    pairs, asked = _listed(real), {"cer": target_cer, "wer": target_wer}
    targets = [(figure, value) for figure, value in asked.items() if value is not None]
    if len(targets) + bool(pairs) != 1:
        raise UsageError("give one of --real, --target-cer and --target-wer")
    if pairs and source:
        raise UsageError("SOURCE is the clean text of a target rate; --real has its own")
    noising, name = Noising(lang.lower(), protect, tagger), name or f"{base.name}-calibrated"
    if left_out := base.for_language(noising.lang)[1]:
        tell(f"without data for {noising.lang!r}, so without noise: {', '.join(left_out)}")
    if pairs:
        found = read_pairs(
            pairs, noisy_column=noisy_column, clean_column=clean_column, clean_file=clean_file
        )
        label = ", ".join(Path(one).name or one for one in pairs)
        return calibrate_pairs(base, found, label, noising, name, seed, rounds, tick)
    texts = _texts(_listed(source), text_column, noising.lang, tell)
    return calibrate_rate(base, texts, targets[0][1], targets[0][0], noising, name, seed, tick)


def _texts(source: Sequence[str], column: str, lang: str, tell: Tell) -> list[str]:
    if source:
        return texts_of(source, column)
    texts = demo_texts(lang)
    tell(f"no SOURCE given: the {len(texts):,} {lang!r} rows of the bundled demo text are taken")
    return texts


def texts_of(sources: Sequence[str], column: str = "text") -> list[str]:
    """Return the first `TEXTS_MAX` texts of sources, as `augment` reads them."""
    columns, texts = Columns(column), list[str]()
    inputs = [one for one in expand(sources) if not one.skipped]
    for task in tasks(inputs, columns, TEXTS_MAX, TEXTS_MAX):
        for batch in read(task, columns):
            texts += batch.table["clean"].to_pylist()
    return texts


def demo_texts(lang: str) -> list[str]:
    """Return the bundled texts of a language; raises UsageError where there are none."""
    columns, texts = Columns(), list[str]()
    for task in tasks(expand([str(DEMO)]), columns, TEXTS_MAX):
        for batch in read(task, columns):
            rows = zip(
                batch.table["clean"].to_pylist(), batch.table["lang"].to_pylist(), strict=True
            )
            texts += [text for text, spoken in rows if spoken == lang]
    if not texts:
        raise UsageError(f"there is no demo text in {lang!r}: give a SOURCE of clean text")
    return texts


def _listed(sources: Sources) -> list[str]:
    given = [sources] if isinstance(sources, str | Path) else sources
    return [str(source) for source in given]
