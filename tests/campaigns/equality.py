"""Equality: the same rows get the same noise however and wherever they are noised.

Other interpreters are tried where PYTHONS says how to start them, one a line: a path, or a command
such as `chroot /trixie /venv/bin/python`; they must find noisegen.
"""

import gzip
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from campaigns.campaign import Campaign, Trial
from campaigns.cluster import Cluster, running
from noisegen.data.files import shard_files
from noisegen.noising.recipe import recipe_names
from noisegen.text.resources import DEMO

SECONDS = 120
Rows = dict[str, str]  # noisy texts by their ids
PYTHON = """
import sys, json
import noisegen
from noisegen.augmentation.on_the_fly import Collator
texts, ids, recipe, lang, seed, batch = json.load(sys.stdin)
collate = Collator(recipe, seed=seed, lang=lang)
made = {}
for at in range(0, len(ids), batch):
    rows = [{"id": i, "text": t} for i, t in zip(ids[at:at + batch], texts[at:at + batch])]
    if at // batch % 2:
        made |= zip(ids[at:at + batch], collate(rows)["noisy"])
    else:
        made |= zip(ids[at:at + batch], noisegen.noise(texts[at:at + batch], recipe, seed=seed,
                                                       lang=lang, id=ids[at:at + batch]))
print(json.dumps(made))
"""


def _tsv(rows: Rows) -> bytes:
    return "".join(["id\ttext\n", *(f"{key}\t{text}\n" for key, text in rows.items())]).encode()


def _parquet(rows: Rows) -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"id": [*rows], "text": [*rows.values()]})
    pq.write_table(table, sink, row_group_size=37)
    return bytes(sink.getvalue())


FORMATS: dict[str, Callable[[Rows], bytes]] = {
    "tsv": _tsv,
    "tsv.gz": lambda rows: gzip.compress(_tsv(rows)),
    "jsonl": lambda rows: "".join(
        json.dumps({"id": key, "text": text}) + "\n" for key, text in rows.items()
    ).encode(),
    "parquet": _parquet,
}
LOCALES = ("C", "C.UTF-8", "tr_TR.UTF-8", "POSIX")


HOW = ("one worker", "two workers", "parts", "one file", "Dask", "Dask, a worker dies")
VERSION = "import platform; print(platform.python_version(), platform.machine())"


@dataclass(frozen=True)
class Places:
    """Where rows can be noised: a cluster, and interpreters by their versions."""

    cluster: Cluster
    pythons: dict[str, list[str]]


@contextmanager
def begin() -> Iterator[Places]:
    """Start a cluster, and ask interpreters who they are."""
    commands = [[sys.executable], *map(shlex.split, os.environ.get("PYTHONS", "").splitlines())]
    asked = ([*words, "-c", VERSION] for words in commands)
    versions = [subprocess.check_output(words, text=True).strip() for words in asked]
    pythons = {f"Python {v}": words for v, words in zip(versions, commands, strict=True)}
    with running() as cluster:
        yield Places(cluster, pythons)


def make(places: Places, trial: Trial) -> None:
    """Draw rows, a recipe, and two ways to noise them."""
    dice = trial.random()
    texts = [line.split("\t")[0] for line in DEMO.read_text("utf-8").splitlines()[1:]]
    rows = {f"row-{number}": dice.choice(texts) for number in range(dice.choice((1, 50, 400)))}
    (trial.folder / "in" / "rows.json").write_text(json.dumps(rows))
    trial.notes = {
        "recipe": dice.choice(recipe_names()),
        "lang": dice.choice(("en", "de", "hi")),
        "seed": dice.randrange(2**31),
        "ways": [_way(dice, [*HOW, *places.pythons]) for _ in range(2)],
    }
    trial.label, trial.fault = sorted(way["how"] for way in trial.notes["ways"])
    trial.counts = {"rows": len(rows)}


def _way(dice: random.Random, how: list[str]) -> dict[str, Any]:
    return {
        "how": dice.choice(how),
        "format": dice.choice(list(FORMATS)),
        "shuffle": dice.choice((0, dice.random())),
        "rows_per_shard": dice.choice((1, 7, 64, 100_000)),
        "batch": dice.choice((1, 3, 16, 400)),
        "locale": dice.choice(LOCALES),
        "hash_seed": dice.randrange(2**31),
    }


def check(places: Places, trial: Trial) -> None:
    """Noise the rows in both ways; expect equal texts."""
    rows = json.loads((trial.folder / "in" / "rows.json").read_text())
    one, other = (
        _noised(places, trial, rows, way, trial.folder / f"way-{n}")
        for n, way in enumerate(trial.notes["ways"])
    )
    trial.expect(one.keys() == rows.keys() == other.keys(), "rows are missing")
    differ = [key for key in one if one[key] != other[key]]
    trial.expect(not differ, f"{len(differ)} rows differ, the first {differ[:1]}")


def _noised(places: Places, trial: Trial, rows: Rows, way: dict[str, Any], folder: Path) -> Rows:
    keys = list(rows)
    if way["shuffle"]:
        random.Random(way["shuffle"]).shuffle(keys)
    rows = {key: rows[key] for key in keys}
    folder.mkdir()
    if python := places.pythons.get(way["how"]):
        notes = trial.notes
        asked = [
            *map(list, (rows.values(), rows)),
            notes["recipe"],
            notes["lang"],
            notes["seed"],
            way["batch"],
        ]
        return json.loads(_run(trial, way, [*python, "-c", PYTHON], json.dumps(asked)))
    source = folder / f"rows.{way['format']}"
    source.write_bytes(FORMATS[way["format"]](rows))
    words = [
        sys.executable,
        "-m",
        "noisegen",
        "augment",
        str(source),
        "--recipe",
        trial.notes["recipe"],
        "--seed",
        trial.notes["seed"],
        "--lang",
        trial.notes["lang"],
        "-q",
    ]
    if way["how"] == "one file":
        _run(trial, way, [*words, "-o", str(folder / "noisy.jsonl")])
        lines = map(json.loads, (folder / "noisy.jsonl").read_text("utf-8").splitlines())
        return {row["id"]: row["text"] for row in lines}
    size = max(way["rows_per_shard"], len(rows) // 40)
    words += ["-o", str(folder / "out"), "--rows-per-shard", size]
    dask = ["--executor", places.cluster.executor]
    runs = {
        "one worker": [["--workers", "1"]],
        "two workers": [["--workers", "2"]],
        "Dask": [dask],
        "Dask, a worker dies": [dask],
        "parts": [["--part", f"{n}/3", "--workers", "1"] for n in (2, 3, 1)],
    }
    for more in runs[way["how"]]:
        with _worse(places, way):
            _run(trial, way, [*words, *more])
    table = pa.concat_tables(map(pq.read_table, shard_files(folder / "out")))
    return dict(zip(table["id"].to_pylist(), table["noisy"].to_pylist(), strict=True))


@contextmanager
def _worse(places: Places, way: dict[str, Any]) -> Iterator[None]:
    """Kill a worker in the block, where that is the way."""
    killer = Thread(target=places.cluster.kill_a_worker)
    if way["how"] == "Dask, a worker dies":
        killer.start()
    try:
        yield
    finally:
        if killer.ident:
            killer.join()


def _run(trial: Trial, way: dict[str, Any], words: list[Any], given: str = "") -> str:
    env = os.environ | {"LC_ALL": way["locale"], "PYTHONHASHSEED": str(way["hash_seed"])}
    done = subprocess.run(
        list(map(str, words)),
        capture_output=True,
        text=True,
        input=given,
        env=env,
        timeout=SECONDS,
        encoding="utf-8",
    )
    trial.expect(
        done.returncode == 0, f"{way['how']}: exit {done.returncode}: {done.stderr[-400:]}"
    )
    return done.stdout


EQUALITY = Campaign("equality", begin, make, check)
