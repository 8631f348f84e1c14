"""The development sets, and the values of a model on them, for the benchmarks of docs/proof.md.

Tweets are the English dev part of MultiLexNorm2, EWT is web text of a treebank with the corrections
of its annotators, JFLEG are essays of learners. Sets of pairs that are not here are left out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.natural_noise import ROWS, spread, write_pairs
from benchmarks.real_pairs import MULTILEXNORM2, Pair, available, lines_of, load, posts
from noisegen.encoders.encoder import Encoder, Vectors, digest_of, open_encoder
from noisegen.evaluation.measure import VectorStore, measure
from noisegen.evaluation.results import EvaluateOptions
from noisegen.evaluation.sets import EvaluationSet, PairSet, make_sets
from noisegen.evaluation.similarity import F64
from noisegen.runs.atomic import file_digest, write_text
from noisegen.runs.progress import silent

TEACHER, ANCHORED = "minilm", "anchored_distance"
TWEETS = "tweets"
_SOURCES = {TWEETS: f"{MULTILEXNORM2}:en", "EWT": "ud-corrected:en", "JFLEG": "jfleg"}
SETS = tuple(name for name, source in _SOURCES.items() if source in available())
METRICS = (ANCHORED, "distance", "drift", "xsim_error", "xsim_hard_error")
SIMILARITIES = ("sts_clean", "sts_one_noisy")
HARD = SETS[:1]  # hard negatives of all sets would take three times as long
STS_NOISE = "learner"  # no student is trained on it
SENTENCES, SCORE = slice(5, 7), 4  # columns of STS-B

_INPUTS = "inputs"  # in a file of values

Values = dict[str, F64]  # "set/metric" -> a value per row, or one value


@cache
def tweets(part: str) -> list[Pair]:
    """Return the English tweets of a part of MultiLexNorm2 and their normal form."""
    return list(posts("en", part))


def slug(name: str) -> str:
    """Return the name of a row of a table as the name of a file."""
    return name.replace(",", "").replace(" ", "-")


def development_sets(folder: Path, rows: int = ROWS) -> list[EvaluationSet]:
    """Return tweets, edited web text and essays, as far as they are here, and an STS set.

    `rows` is the maximum of rows per set; the sets in `HARD` have hard negatives. `folder` gets the
    sets as tables.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in SETS:
        pairs = tweets("dev") if name == TWEETS else load(_SOURCES[name])
        write_pairs(folder / f"{name}.csv", spread(pairs, rows))
    similar = [line.split("\t") for line in lines_of("sts/stsb-open-dev.tsv.gz")]
    titles = ["sentence1", "sentence2", "score"]
    table = [titles, *([*line[SENTENCES], line[SCORE]] for line in similar[:rows])]
    write_text(folder / "STS.tsv", "".join("\t".join(line) + "\n" for line in table))
    options = EvaluateOptions(
        models=(TEACHER,),
        out="",
        pairs=tuple(f"{name}={folder / name}.csv" for name in SETS),
        sts=(f"STS={folder / 'STS.tsv'}",),
        recipe=STS_NOISE,
        per_kind=1,
    )
    return [
        dataset
        if dataset.name in HARD or not isinstance(dataset, PairSet)
        else replace(dataset, negatives=None)
        for dataset in make_sets(options, silent).sets
    ]


def anchors(sets: Sequence[EvaluationSet], anchor: Encoder) -> dict[str, Vectors]:
    """Return a model's vectors of the clean texts of each set of pairs."""
    return {
        dataset.name: anchor.encode(dataset.clean)
        for dataset in sets
        if isinstance(dataset, PairSet)
    }


def values_of(
    model: Encoder, sets: Sequence[EvaluationSet], anchored: Mapping[str, Vectors]
) -> Values:
    """Return the values of a model on the sets."""
    store, found = VectorStore(model), Values()
    for dataset in sets:
        if isinstance(dataset, PairSet):
            rows = measure(dataset, store, anchored[dataset.name]).rows
            found |= {f"{dataset.name}/{name}": rows[name] for name in METRICS if name in rows}
        else:
            seeds = measure(dataset, store).seeds
            found |= {f"{dataset.name}/{name}": np.array(seeds[name]) for name in SIMILARITIES}
    return found


def kept(path: Path, inputs: str, make: Callable[[], Values]) -> Values:
    """Return the values in the file `path`; they are made if it is not there or has other inputs.

    `inputs` is all that the values depend on, as text.
    """
    if path.exists():
        with np.load(path) as stored:
            if stored[_INPUTS].item() == inputs:
                return {name: stored[name] for name in stored.files if name != _INPUTS}
    path.parent.mkdir(parents=True, exist_ok=True)
    part, values = path.with_suffix(".part.npz"), make()
    np.savez(part, **{**values, _INPUTS: np.array(inputs)})
    part.replace(path)
    return values


@cache
def files_digest(folder: Path) -> str:
    """Return a digest of the names and contents of the files in a folder, without bytecode."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return digest_of(*(f"{path.relative_to(folder)} {file_digest(path)}" for path in paths))


def student_values(
    student: Path,
    path: Path,
    about: str,
    sets: Sequence[EvaluationSet],
    anchored: Mapping[str, Vectors],
) -> Values:
    """Return the values of the student in a folder, kept in the file `path`.

    `about` is all that the values depend on besides the student, as text.
    """
    inputs = f"{files_digest(student)} {about}"
    return kept(path, inputs, lambda: values_of(open_encoder(str(student)), sets, anchored))


def mean_values(values: Mapping[str, Sequence[Values]]) -> dict[str, dict[str, float]]:
    """Return the means over rows and seeds, by name and "set/metric"."""
    return {
        name: {key: fmean(float(seed[key].mean()) for seed in seeds) for key in seeds[0]}
        for name, seeds in values.items()
    }


def errors_of(dataset: str) -> tuple[str, ...]:
    """Return the error rates that a set has."""
    return ("xsim_error", "xsim_hard_error")[: 1 + (dataset in HARD)]


def markdown(titles: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; all columns but the first are aligned to the right."""
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
