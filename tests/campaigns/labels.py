"""Labels of tokens: every scheme of tags stays valid, and no entity drifts, when tokens change.

A first run numbers the tokens, which says from which clean token each noisy token came. The labels
of a second run must be the entities of the clean tokens, tagged anew in their scheme.
"""

import random
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import noisegen
from campaigns.campaign import Trial
from campaigns.shapes import read_rows, written

TYPES = ("PER", "LOC", "x-y")
ENTITY = tuple[int, str]  # the number of an entity in its sentence, and its type
# Letters of the first, an inner, the last and a lone token of an entity
SCHEMES = {
    "IOB2": "BIIB",
    "BIOES": "BIES",
    "BILOU": "BILU",
    "BMES": "BMES",
    "IO": "IIII",
    "IOB1": "IIII",
    "IOB2, numbers": "BIIB",
    "plain": "",
}


def make_labels(dice: random.Random, trial: Trial, texts: Sequence[str]) -> None:
    """Draw tokens with entities, and a scheme."""
    trial.fault = dice.choice([*SCHEMES])
    rows = []
    for number, text in enumerate(texts):
        tokens = text.split() or ["a"]
        entities: list[ENTITY | None] = []
        while len(entities) < len(tokens):
            length = dice.choice((1, 1, 2, 3, 5))
            is_one = dice.random() < 0.6
            entity = (len(entities), dice.choice(TYPES)) if is_one else None
            entities += [entity] * length
        rows.append({"id": f"r{number}", "tokens": tokens, "of": entities[: len(tokens)]})
    trial.notes |= {"rows": rows, "file": dice.choice(("JSON lines", "Parquet"))}


def check_labels(trial: Trial) -> None:
    """Noise the rows with numbers and with labels; expect the entities of the clean tokens."""
    rows = trial.notes["rows"]
    numbers = [[f"n{at}" for at in range(len(row["tokens"]))] for row in rows]
    tags = [_tags(trial.fault, [one and tuple(one) for one in row["of"]]) for row in rows]
    numbered = _noised(trial, "numbers", numbers)
    tagged = _noised(trial, "tags", tags)
    in_file = _noised(trial, "file", tags, is_file=True)
    for row, one, two, three in zip(rows, numbered, tagged, in_file, strict=True):
        owners = [int(label[1:]) for label in one["noisy_labels"]]
        trial.expect(one["noisy_tokens"] == two["noisy_tokens"], f"other noise: {one}, {two}")
        entities = [row["of"][owner] and tuple(row["of"][owner]) for owner in owners]
        want = _tags(trial.fault, entities)
        trial.expect(two["noisy_labels"] == want, f"{row} became {two}, not {want}")
        trial.expect(
            (three["tokens"], three["labels"]) == (two["noisy_tokens"], want),
            f"in one file {three}, in shards {two}",
        )
        trial.counts["labels"] = trial.counts.get("labels", 0) + len(want)


def _tags(scheme: str, entities: Sequence[ENTITY | None]) -> list[Any]:
    """Return the tags of tokens, given the entity of each."""
    tags, before = list[str](), None
    for entity, run in groupby(entities):
        count = len([*run])
        if entity is None:
            tags += ["O"] * count
        elif not SCHEMES[scheme]:
            tags += [entity[1]] * count
        else:
            first, inner, last, lone = SCHEMES[scheme]
            letters = [first, *[inner] * (count - 2), last] if count > 1 else [lone]
            if scheme == "IOB1" and before and before[1] == entity[1]:
                letters[0] = "B"
            tags += [f"{letter}-{entity[1]}" for letter in letters]
        before = entity
    return [_names().index(tag) for tag in tags] if "numbers" in scheme else tags


def _names() -> list[str]:
    return ["O", *(f"{letter}-{kind}" for kind in TYPES for letter in "BI")]


def _noised(
    trial: Trial, name: str, labels: Sequence[Any], *, is_file: bool = False
) -> list[dict[str, Any]]:
    notes, folder = trial.notes, trial.folder / name
    folder.mkdir()
    pairs = zip(notes["rows"], labels, strict=True)
    rows = [{"id": row["id"], "tokens": row["tokens"], "labels": some} for row, some in pairs]
    source = written(notes["file"], rows, folder)
    recipe, out = notes["recipe"], folder / (f"noisy{source.suffix}" if is_file else "out")
    noise = {"recipe": recipe} if isinstance(recipe, str) else {"transforms": recipe}
    has_names = "numbers" in trial.fault and name != "numbers"
    noisegen.augment(
        source,
        out,
        **noise,
        seed=notes["seed"],
        lang=notes["lang"],
        tokens="tokens",
        labels="labels",
        label_names=_names() if has_names else (),
    )
    return read_rows(notes["file"], out)
