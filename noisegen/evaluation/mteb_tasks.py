"""Tasks for the `mteb` package made of local pairs: bitext mining and STS, no network needed.

`mteb.evaluate(mteb_model(encoder), [bitext_task("posts", noisy, clean)], cache=None)`; a
SentenceTransformer does as well as an encoder of ours. Written for mteb 2.
"""

from collections.abc import Sequence
from types import new_class
from typing import Any

import numpy as np
import numpy.typing as npt

from noisegen.encoders.encoder import Encoder, Vectors
from noisegen.errors import MissingExtra, UsageError
from noisegen.evaluation.unit_vectors import cosines, unit

ENGLISH = "eng-Latn"  # languages of mteb are ISO 639-3 with a script


def bitext_task(name: str, noisy: Sequence[str], clean: Sequence[str], lang: str = ENGLISH) -> Any:
    """Return a task of finding each noisy text's clean form; its main score is F1.

    Raises UsageError for sides of different length, MissingExtra without mteb.
    """
    mteb = _mteb()
    columns = {"sentence1": list(noisy), "sentence2": list(clean)}
    return _task(mteb.AbsTaskBitextMining, "BitextMining", "f1", name, columns, lang)


def sts_task(
    name: str, first: Sequence[str], second: Sequence[str], scores: Sequence[float],
    lang: str = ENGLISH,
) -> Any:  # fmt: skip
    """Return an STS task, its main score Spearman's correlation of cosines; errors as above."""
    mteb = _mteb()
    columns: dict[str, list[Any]] = {"sentence1": list(first), "sentence2": list(second)}
    columns["score"] = [float(score) for score in scores]
    return _task(mteb.AbsTaskSTS, "STS", "cosine_spearman", name, columns, lang)


def mteb_model(encoder: Encoder) -> Any:
    """Return an encoder of ours as mteb wants a model; raises MissingExtra without mteb."""
    _mteb()
    return _Model(encoder)


def _mteb() -> Any:
    try:
        from mteb import abstasks
    except ImportError as error:
        raise MissingExtra("mteb", "mteb") from error
    return abstasks


def _task(
    parent: type, kind: str, score: str, name: str, columns: dict[str, list[Any]], lang: str
) -> Any:
    from datasets import Dataset
    from mteb.abstasks.task_metadata import TaskMetadata

    if len({len(column) for column in columns.values()}) != 1:
        sides = ", ".join(f"{key} {len(column):,}" for key, column in columns.items())
        raise UsageError(f"columns of {name} differ in length: {sides}")
    metadata = TaskMetadata(
        name=name, description=f"{name}, local text", type=kind, main_score=score, category="t2t",
        dataset={"path": "local", "revision": "local"}, eval_splits=["test"], eval_langs=[lang],
    )  # fmt: skip

    def load_data(self: Any, **_: Any) -> None:
        self.dataset = {"test": Dataset.from_dict(columns)}
        self.data_loaded = True

    made = new_class(
        name, (parent,), exec_body=lambda body: body.update(metadata=metadata, load_data=load_data)
    )
    return made()


class _Model:
    """What mteb calls a model: texts come in batches, similarity is the cosine."""

    def __init__(self, encoder: Encoder) -> None:
        from mteb.models.model_meta import ModelMeta

        self._encoder = encoder
        name = encoder.name.strip("/").replace("/", "-") or "encoder"
        told = {"name": f"noisegen/{name}", "revision": encoder.digest[:16]}
        self.mteb_model_meta = ModelMeta.create_empty(overwrites=told)

    def encode(self, inputs: Any, **_: Any) -> Vectors:
        """Return the vectors of all texts of the batches."""
        return self._encoder.encode([text for batch in inputs for text in batch["text"]])

    def similarity(self, one: Vectors, other: Vectors) -> Vectors:
        """Return the cosine of each with each."""
        return unit(np.asarray(one)) @ unit(np.asarray(other)).T

    def similarity_pairwise(self, one: Vectors, other: Vectors) -> npt.NDArray[np.float64]:
        """Return the cosine of each pair."""
        return cosines(np.asarray(one), np.asarray(other))
