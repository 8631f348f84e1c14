"""RCP's Table 3, small: `python -m benchmarks.rcp -o DIR`.

Gives a multilingual encoder a head for masks, then pre-trains it on Tatoeba's sentences with the
noise of `ugc`, once by masks alone (p(aug)) and once with the contrast (RCP). Then fine-tunes on
English SNIPS and tests on Spanish, French and Hindi requests, clean and noisy; t: with task-time
augmentation. Prints a table of each metric, mean and sd over seeds; writes DIR/table.json. A
finished student is not trained again, an interrupted run is resumed.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

import noisegen
from benchmarks.real_pairs import DATA
from noisegen.cli.progress import progress_on_stderr
from noisegen.data.bitext import all_bitext, stream_bitext
from noisegen.evaluation.tasks.results import TaskResults
from noisegen.noising.rng import name_number, splitmix
from noisegen.options import parse_values
from noisegen.report.terminal import show

FILES = ("eng-spa", "eng-fra", "eng-hin")  # sentences of Tatoeba
TESTS = ("es", "fr", "hi")
NOISE, NOISE_SEED, AUGMENT = "ugc", 1, "rcp-en-aggregate"
HEAD = {"objective": "mlm", "freeze": ["embeddings", "encoder"], "lr": 2e-3}
OBJECTIVES = {"p(aug)": "mlm", "RCP": "mlm+nt_xent"}
COLUMNS = {"base": "base", "p(aug)": "p(aug)", "base+t": "t", "RCP": "RCP", "RCP+t": "RCP+t"}


def write_pairs(folder: Path, most: int) -> list[str]:
    """Write pairs of noisy and clean sentences of each language; return their folders."""
    texts: dict[str, dict[str, None]] = {}
    for name in FILES:
        files = all_bitext([str(DATA / "tatoeba-opus" / f"{name}.tsv.gz")])
        for row in stream_bitext(files, Counter()):
            texts.setdefault(row.source_lang, {})[row.source] = None
            texts.setdefault(row.target_lang, {})[row.target] = None
    folder.mkdir(parents=True, exist_ok=True)
    for lang, found in texts.items():
        some = sorted(found, key=lambda text: splitmix(name_number(text)))[:most]
        path = folder / f"{lang}.txt"
        path.write_text("".join(f"{text}\n" for text in some), "utf-8")
        out = folder / lang
        noisegen.augment(path, out, recipe=NOISE, seed=NOISE_SEED, lang=lang, force=True)
    return [str(folder / lang) for lang in texts]


def pretrain(out: Path, data: Sequence[str], values: dict[str, Any]) -> str:
    """Pre-train, if it was not done; return the SPEC of what came out."""
    if not (out / "metrics.json").exists():
        noisegen.train(
            data,
            out,
            preset="rcp-small",
            values=values,
            resume=out.exists(),
            device="cpu",
            tell=lambda line: print(line, flush=True),
        )
    return str(out / "student")


def fine_tune(
    models: dict[str, str], out: Path, given: argparse.Namespace, augment: str | None
) -> TaskResults:
    """Fine-tune models on English requests and test them in other languages."""
    folder = DATA / "snips-multilingual"
    with progress_on_stderr() as show:
        return noisegen.evaluate_task(
            [f"{name}={spec}" for name, spec in models.items()],
            out,
            force=True,
            progress=show,
            train=str(DATA / "snips" / "train_*_full*"),
            device="cpu",
            augment=augment,
            test=[f"{lang}={folder / f'{lang}.tsv'}" for lang in TESTS],
            seeds=given.seeds,
            epochs=given.epochs,
            fast=given.epochs is None,
        )


def joined(with_t: TaskResults, without: TaskResults) -> TaskResults:
    """Return one table of both, in the order of the paper's."""
    figures = [*with_t.figures, *without.figures]
    named = [
        replace(figure, model=shown)
        for name, shown in COLUMNS.items()
        for figure in figures
        if figure.model == name
    ]
    return replace(with_t, figures=named)


def main() -> None:
    """Read the arguments; pre-train, fine-tune, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--model", default="e5", help="SPEC of the encoder to begin with")
    parser.add_argument("--head-steps", type=int, default=60, help="updates of the head alone")
    parser.add_argument("--steps", type=int, default=80, help="updates of each pre-training")
    parser.add_argument("--sentences", type=int, default=8_000, help="of each language")
    parser.add_argument("--seeds", type=int, default=3, help="of fine-tuning")
    parser.add_argument("--epochs", type=float, help="of fine-tuning; default: --fast")
    parser.add_argument(
        "--set",
        nargs="*",
        default=["lr=5e-5", "freeze=[embeddings]"],
        dest="values",
        metavar="KEY=VALUE",
        help="of pre-training",
    )
    given = parser.parse_args()
    torch.set_num_threads(1)
    began, data = time.monotonic(), write_pairs(given.out / "pairs", given.sentences)
    begun = {**HEAD, "student": given.model, "steps": given.head_steps}
    values = {"student": pretrain(given.out / "head", data, begun), "steps": given.steps}
    specs = {
        name: pretrain(
            given.out / name,
            data,
            {**values, **parse_values(given.values), "objective": objective},
        )
        for name, objective in OBJECTIVES.items()
    }
    masks = specs.pop("p(aug)")
    with_t = fine_tune({"base": given.model, **specs}, given.out / "tasks-t", given, AUGMENT)
    results = joined(with_t, fine_tune({"p(aug)": masks}, given.out / "tasks", given, None))
    show([*results.tables()], Console(width=120))
    print(results.legend(), f"{(time.monotonic() - began) / 60:.0f} minutes", sep="\n")
    (given.out / "table.json").write_text(json.dumps(results.metrics(), indent=1) + "\n")


if __name__ == "__main__":
    main()
