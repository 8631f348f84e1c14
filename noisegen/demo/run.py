"""`quickstart`: augment, train and evaluate, each called once, on the sentences of `texts.py`."""

import csv
import io
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import noisegen
from noisegen.atomic import write_text
from noisegen.demo.headlines import headlines
from noisegen.demo.texts import compared_documents, demo_texts
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.specs import open_encoder
from noisegen.errors import OutputError
from noisegen.evaluation.neighbours import neighbours
from noisegen.evaluation.results import Results
from noisegen.run_folder import make, refuse_full

TEACHER = "minilm"
NOISE = "ugc-heavy"  # of the shards
SETTINGS = {
    "noise": "stored+mix_all+leet+fing+spac",  # those of RoLASER's that move the teacher most
    "lr": 1.5e-4, "validate_every": 50, "validation_rows": 200,
}  # fmt: skip
SIMILARITY_NOISE = "leet"  # of one side of the pairs with similarities, or of both
RANKS = (1, 4, 16, 64)  # of the neighbours that a held-out sentence is paired with
TIME_LIMIT = "8m"
SENTENCES = 200  # of those held out, for each kind of noise
TRAINING = "training.txt"  # in texts/, the first file that is written
_OURS = ("pairs", "run", "report", "texts")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Quickstart:
    """What came of it: three lines for people, and all that was measured."""

    lines: tuple[str, str, str]
    results: Results


def quickstart(
    out: str | Path, *, seed: int = 0, time_limit: str = TIME_LIMIT, force: bool = False,
    sinks: Sequence[Callable[[dict[str, Any]], None]] = (),
    tell: Tell = lambda line: None,
) -> Quickstart:  # fmt: skip
    """Make a robust student of MiniLM out of text that an installed package ships, and measure it.

    Writes DIR/texts, pairs (of augment), run (of train) and report (of evaluate). `time_limit` is
    that of training alone. Raises NoisegenError; a folder that is not empty needs `force`.
    """
    out = Path(out)
    if make(out) and not force:
        refuse_full(out, can_resume=False)
    found = [name for name in _OURS if (out / name).exists()]
    if found and not (out / "texts" / TRAINING).is_file():
        raise OutputError(f"{out} has {found[0]}, but is of no quickstart: use another folder")
    for name in _OURS:
        shutil.rmtree(out / name, ignore_errors=True)
    tell("texts")
    texts = write_demo_texts(out / "texts", open_encoder(TEACHER))
    tell("augment")
    noisegen.augment(
        texts / TRAINING, out / "pairs", recipe=NOISE, seed=seed, edits=True, workers=1
    )
    noisegen.train(
        [str(out / "pairs")], out / "run", sinks=sinks, tell=tell,
        values={"teacher": TEACHER, "time_limit": time_limit, "seed": seed, **SETTINGS},
    )  # fmt: skip
    results = _measured(out, texts, tell)
    return Quickstart(headlines(results), results)


def _measured(out: Path, texts: Path, tell: Tell) -> Results:
    """Evaluate the student on text kept out of training."""
    return noisegen.evaluate(
        [f"student={out / 'run' / 'student'}"], out / "report", baseline=TEACHER,
        source=[f"news={texts / 'held_out.txt'}"], seeds=1, limit=SENTENCES,
        noise=SIMILARITY_NOISE,
        sts=[f"{name}={texts / name}.tsv" for name in ("sentences", "documents")],
        progress=_told(tell),
    )  # fmt: skip


def _told(tell: Tell) -> Callable[[str, int, int], None]:
    return lambda what, done, total: tell(f"{what}{f', {done:,} of {total:,} texts' * (total > 0)}")


def write_demo_texts(folder: Path, teacher: Encoder) -> Path:
    """Write training.txt, held_out.txt and two sets with similarities; return the folder.

    documents.tsv: news documents that people compared. sentences.tsv: held-out sentences, each with
    neighbours near and far, and the teacher's cosine, since no sentences come with human scores: a
    student that keeps the order of these similarities under noise is one to rely on.
    """
    split = demo_texts()
    make(folder)
    write_text(folder / TRAINING, "\n".join(split.training) + "\n")
    write_text(folder / "held_out.txt", "\n".join(split.held_out) + "\n")
    write_text(folder / "documents.tsv", _sts(compared_documents()))
    write_text(folder / "sentences.tsv", _sts(_neighbours(split.held_out, teacher)))
    return folder


def _neighbours(texts: Sequence[str], teacher: Encoder) -> Iterator[tuple[str, str, float]]:
    """Yield each sentence with neighbours near and far, and the teacher's cosine."""
    vectors = teacher.encode(texts)
    found = neighbours(vectors, vectors, max(RANKS) + 1)  # the nearest is the sentence itself
    for row, text in enumerate(texts):
        for rank in (rank for rank in RANKS if rank < len(texts)):
            yield text, texts[found.rows[row, rank]], float(found.cosines[row, rank])


def _sts(rows: Iterable[tuple[str, str, float]]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    writer.writerow(("sentence1", "sentence2", "score"))
    writer.writerows((first, second, f"{score:.6f}") for first, second, score in rows)
    return table.getvalue()
