"""`quickstart`: augment, train and evaluate, each called once, on the sentences of `texts.py`."""

import csv
import io
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import noisegen
from noisegen.atomic import write_text
from noisegen.demo.headlines import headlines
from noisegen.demo.texts import compared_documents, demo_texts
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.specs import open_encoder
from noisegen.evaluation.results import Results
from noisegen.evaluation.unit_vectors import cosines
from noisegen.run_folder import make, refuse_full

TEACHER = "minilm"
NOISE = "ugc-heavy"  # of the shards, and of one side of the STS pairs
FRESH = f"stored+{NOISE}+mix_all"  # a row's noise in each epoch is one of these
TIME_LIMIT = "7m"
SENTENCES = 200  # of those held out, for each kind of noise
_OURS = ("texts", "pairs", "run", "report")

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
        refuse_full(out)
    for name in _OURS:
        shutil.rmtree(out / name, ignore_errors=True)
    tell("texts")
    texts = write_demo_texts(out / "texts", open_encoder(TEACHER))
    tell("augment")
    noisegen.augment(
        texts / "training.txt", out / "pairs", recipe=NOISE, seed=seed, edits=True, workers=1
    )
    noisegen.train(
        [str(out / "pairs")], out / "run", sinks=sinks, tell=tell,
        values={"teacher": TEACHER, "noise": FRESH, "time_limit": time_limit, "seed": seed},
    )  # fmt: skip
    results = _measured(out, texts, tell)
    return Quickstart(headlines(results), results)


def _measured(out: Path, texts: Path, tell: Tell) -> Results:
    """Evaluate the student on text kept out of training."""
    return noisegen.evaluate(
        [f"student={out / 'run' / 'student'}"], out / "report", baseline=TEACHER,
        source=[f"news={texts / 'held_out.txt'}"], seeds=1, limit=SENTENCES, noise=NOISE,
        sts=[f"{name}={texts / name}.tsv" for name in ("sentences", "documents")],
        progress=_told(tell),
    )  # fmt: skip


def _told(tell: Tell) -> Callable[[str, int, int], None]:
    return lambda what, done, total: tell(f"{what}{f', {done:,} of {total:,} texts' * (total > 0)}")


def write_demo_texts(folder: Path, teacher: Encoder) -> Path:
    """Write training.txt, held_out.txt and two sets with similarities; return the folder.

    documents.tsv: news documents that people compared. sentences.tsv: pairs of held-out sentences
    with the teacher's cosine, since no sentences come with human scores; a student that keeps the
    order of these similarities behaves as its teacher does.
    """
    split = demo_texts()
    make(folder)
    write_text(folder / "training.txt", "\n".join(split.training) + "\n")
    write_text(folder / "held_out.txt", "\n".join(split.held_out) + "\n")
    write_text(folder / "documents.tsv", _sts(compared_documents()))
    write_text(folder / "sentences.tsv", _sts(_neighbours(split.held_out, teacher)))
    return folder


def _neighbours(texts: Sequence[str], teacher: Encoder) -> Iterable[tuple[str, str, float]]:
    """Pair each sentence with the next one, mostly of the same document, and with a far one."""
    vectors = teacher.encode(texts)
    for step in (1, len(texts) // 2):
        first, second = texts[:-step], texts[step:]
        yield from zip(
            first, second, cosines(vectors[:-step], vectors[step:]).tolist(), strict=True
        )


def _sts(rows: Iterable[tuple[str, str, float]]) -> str:
    table = io.StringIO()
    writer = csv.writer(table, delimiter="\t", lineterminator="\n")
    writer.writerow(("sentence1", "sentence2", "score"))
    writer.writerows((first, second, f"{score:.6f}") for first, second, score in rows)
    return table.getvalue()
