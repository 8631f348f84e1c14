"""A multilingual encoder of crisis texts, small: `python -m benchmarks.crisis -o DIR`.

Trains multilingual students on Tatoeba's pairs of some languages as preset `ct` says, then prints
tables like CT-XLMR-SE's: D_avg on labelled tweets (its Table 2), sentence matching in both
directions (Table 4), and the cosines of translations (Table 6). One student learns from
translations alone; with `--robust` another from them, from noise on them and from noise on English,
and both are tested with noise on the translations. A folder that has a student is not trained
again, one that was cut short goes on. `--json FILE` takes the figures too.
"""

import argparse
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

import noisegen
from benchmarks.crisis_data import events, news, parted, write_bitext
from benchmarks.tatoeba import Sides
from noisegen.encoders.encoder import Encoder, Vectors, open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.head import HeadSettings
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.evaluation import matching_accuracy, mean_class_similarity
from noisegen.evaluation.similarity import unit
from noisegen.options import parse_values
from noisegen.report.terminal import titled

LANGS = ("ar", "de", "hi", "ja", "tr")
TEACHER, START = "social:minilm", "social:e5"
FITTED_PAIRS = 400  # rows per language that the linear layer is fitted to
SMALL = {  # settings that differ from the preset, so that a CPU trains in minutes
    "freeze": ["embeddings"],
    "lr": 1e-4,
    "warmup": 20,
    "dropout": 0.0,
    "batch_tokens": 1024,
    "validation_rows": 200,
    "validate_every": 50,
}
ROBUST = "stored+stored:ugc-heavy+ugc-heavy"  # translation, noise on it, noise on English
TEST_NOISE, TEST_SEED = "ugc-heavy", 100
Models = dict[str, Any]  # encoders, by their names in the tables
Figures = dict[str, dict[str, float]]


class Remembering:
    """An encoder that encodes a text once, in bf16."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.known: dict[str, Vectors] = {}

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return shape (texts, width)."""
        new = list(dict.fromkeys(text for text in texts if text not in self.known))
        with torch.autocast("cpu", torch.bfloat16):
            self.known.update(zip(new, self.encoder.encode(new), strict=True))
        return np.stack([self.known[text] for text in texts])


class Projected:
    """The vectors of an encoder, with the head of another that has the same network."""

    def __init__(self, inner: Remembering, other: SentenceEncoder) -> None:
        self.inner, self.layer = inner, other.head.projection

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Return shape (texts, width), each of length 1."""
        assert self.layer is not None
        with torch.inference_mode():
            return unit(self.layer(torch.from_numpy(self.inner.encode(texts))).numpy())


def fitted_start(folder: Path, pairs: Sides) -> None:
    """Save e5 with a linear layer after pooling, fitted by least squares to the teacher's vectors.

    English and its translations are to have the teacher's vector of the English, as in training.
    """
    start, teacher = open_encoder(START), open_encoder(TEACHER)
    assert isinstance(start, SentenceEncoder)
    wanted = teacher.encode([english for english, _ in pairs])
    found = start.encode([text for side in zip(*pairs, strict=True) for text in side])
    inputs = np.hstack([found, np.ones((len(found), 1))]).astype(np.float64)
    gram = inputs.T @ inputs + np.eye(inputs.shape[1])
    weights = np.linalg.solve(gram, inputs.T @ np.vstack([wanted, wanted]))
    head = HeadSettings().projected(teacher.width, "after", bias=True).normalized(True)
    made = SentenceEncoder(start.network, start.tokenizer, head, "fitted")
    assert made.head.projection is not None
    with torch.no_grad():
        made.head.projection.weight.copy_(torch.from_numpy(weights[:-1].T))
        made.head.projection.bias.copy_(torch.from_numpy(weights[-1]))
    save_folder(made, folder)


def train(out: Path, parts: dict[str, tuple[Sides, Sides]], values: dict[str, Any]) -> None:
    """Train the student of one seed, if it is not there."""
    if (out / "metrics.json").exists():
        return
    write_bitext(out.parent / "bitext", parts)
    if not (out.parent / "start").exists():
        some = [row for pairs, _ in parts.values() for row in pairs[:FITTED_PAIRS]]
        fitted_start(out.parent / "start", some)
    said = {**SMALL, "student": str(out.parent / "start"), **values}
    noisegen.train(
        [str(out.parent / "bitext")],
        out,
        preset="ct",
        values=said,
        resume=out.exists(),
        device="cpu",
        tell=lambda line: print(line, flush=True),
    )


def similarity(models: Models, most: int) -> dict[str, Figures]:
    """Return D_avg by question, event and model."""
    found: dict[str, Figures] = {}
    for event in events(most):
        for name, model in models.items():
            vectors = model.encode(event.texts)
            for question, labels in event.labels.items():
                of_event = found.setdefault(question, {}).setdefault(event.name, {})
                of_event[name] = mean_class_similarity(vectors, labels)
    return found


def matching(models: Models, tests: dict[str, Sides]) -> dict[str, dict[str, list[float]]]:
    """Return the accuracy from English, into English, and their mean, by language and model."""
    found: dict[str, dict[str, list[float]]] = {}
    for lang, rows in tests.items():
        sides = [list(side) for side in zip(*rows, strict=True)]
        for name, model in models.items():
            one = matching_accuracy(*map(model.encode, sides))
            figures = [one.accuracy_forward, one.accuracy_backward, one.accuracy]
            found.setdefault(lang, {})[name] = figures
    return found


def noised(tests: dict[str, Sides]) -> dict[str, Sides]:
    """Return the same pairs with noise on the translations."""
    return {
        lang: [
            (english, noisegen.noise(text, TEST_NOISE, seed=TEST_SEED, id=row, lang=lang))
            for row, (english, text) in enumerate(rows)
        ]
        for lang, rows in tests.items()
    }


def cosines(models: Models, texts: dict[str, list[str]]) -> dict[str, dict[str, list[list[float]]]]:
    """Return the mean cosines of translations, and of other sentences, language by language."""
    found = {}
    for name, model in models.items():
        sides = [unit(model.encode(of)) for of in texts.values()]
        alike = [[float((a * b).sum(1).mean()) for b in sides] for a in sides]
        other = [[float((a * np.roll(b, 1, 0)).sum(1).mean()) for b in sides] for a in sides]
        found[name] = {"translations": alike, "others": other}
    return found


def evaluate(
    models: Models, given: argparse.Namespace, parts: dict[str, tuple[Sides, Sides]]
) -> dict[str, Any]:
    """Return the figures of all tables."""
    texts = news(given.langs, given.news)
    tests = {lang: test for lang, (_, test) in parts.items()}
    other = {lang: list(zip(texts["en"], texts[lang], strict=True)) for lang in given.langs}
    return {
        "matching": {
            "Tatoeba": matching(models, tests),
            "Tatoeba, noise on translations": matching(models, noised(tests)),
            "NTREX": matching(models, other),
        },
        "cosines": cosines(models, texts),
        "similarity": similarity(models, given.tweets),
    }


def show(found: dict[str, Any], langs: Sequence[str], console: Console) -> None:
    """Print the tables."""
    names = found["models"]
    for question, of_events in found["similarity"].items():
        rows = [[event, *(f"{of[name]:.4f}" for name in names)] for event, of in of_events.items()]
        means = [np.mean([of[name] for of in of_events.values()]) for name in names]
        rows.append(["average", *(f"{mean:.4f}" for mean in means)])
        _print(f"D_avg of {question}", ["event", *names], rows, console)
    for title, of_langs in found["matching"].items():
        rows = [
            [lang, *(" ".join(f"{value:5.1f}" for value in of[name]) for name in names)]
            for lang, of in of_langs.items()
        ]
        head = ["language", *(f"{name} (en→xx, xx→en, mean)" for name in names)]
        _print(f"Sentence matching, {title}, per cent", head, rows, console)
    for name in names[1:]:
        sides = found["cosines"][name]
        rows = [
            [one, *(f"{alike:.3f} ({other:.3f})" for alike, other in zip(*pair, strict=True))]
            for one, *pair in zip(
                ("en", *langs), sides["translations"], sides["others"], strict=True
            )
        ]
        _print(
            f"Cosines of translations (of other sentences): {name}",
            ["", "en", *langs],
            rows,
            console,
        )


def _print(
    title: str, head: Sequence[str], rows: Sequence[Sequence[str]], console: Console
) -> None:
    table = titled(title)
    for place, name in enumerate(head):
        table.add_column(name, justify="right" if place else "left")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def main() -> None:
    """Read the arguments, train, evaluate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--langs", nargs="+", default=[*LANGS])
    parser.add_argument("--time-limit", default="10m", help="of training, for each seed")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--train", type=int, default=2_500, help="pairs of each language")
    parser.add_argument(
        "--robust",
        nargs="*",
        type=int,
        metavar="SEED",
        help="train students with noise, too; without seeds, of all",
    )
    parser.add_argument("--test", type=int, default=500, help="pairs of each language")
    parser.add_argument("--news", type=int, default=100, help="lines of NTREX")
    parser.add_argument("--tweets", type=int, default=60, help="of each event")
    parser.add_argument("--set", nargs="*", default=[], dest="values", help="KEY=VALUE of training")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1)))
    began, parts = time.monotonic(), parted(given.langs, given.train, given.test, seed=0)
    robust = given.seeds if given.robust == [] else given.robust or []
    students = {f"student {seed}": ("stored", seed) for seed in given.seeds}
    students |= {f"robust {seed}": (ROBUST, seed) for seed in robust}
    for name, (noise, seed) in students.items():
        values = parse_values(given.values)
        values |= {"seed": seed, "time_limit": given.time_limit, "recipe": noise}
        train(given.out / name.replace(" ", "-"), parts, values)
    models: Models = {
        name: Remembering(open_encoder(spec)) for name, spec in (("minilm", TEACHER), ("e5", START))
    }
    start = open_encoder(str(given.out / "start"))
    assert isinstance(start, SentenceEncoder)
    models["fitted"] = Projected(models["e5"], start)
    for name in students:
        student = open_encoder(str(given.out / name.replace(" ", "-") / "student"))
        models[name] = Remembering(student)
    found = {"models": [*models], **evaluate(models, given, parts)}
    show(found, given.langs, Console(width=160))
    found["minutes"] = (time.monotonic() - began) / 60
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
