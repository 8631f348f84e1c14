"""`noisegen export`: a student's folder for the Hub, with ONNX graphs that need no torch."""

# ruff: noqa: E402 - the extras are checked before the imports that need one of them

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.errors import NoisegenError, UsageError, check_extras

check_extras("torch", "onnx", "onnxscript", "onnxruntime")

import torch

from noisegen.encoders.encoder import Vectors, open_encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.stored import reading
from noisegen.encoders.tokens import PREPARATIONS, PreparedTokenizer, piece_tokenizer
from noisegen.evaluation.similarity import cosine_distances
from noisegen.options import decode, public
from noisegen.runs.atomic import write_text
from noisegen.runs.folder import Layout, RunFolder
from noisegen.runs.progress import Progress, Show, silent
from noisegen.text.resources import EXAMPLE_PAIRS, rows_of
from noisegen.training.checkpoint import writing_weights
from noisegen.training.model_card import exported_card
from noisegen.training.onnx_graph import INPUTS, OUTPUTS, write_graph, write_int8
from noisegen.training.settings import ExportOptions

FLOATS, INT8 = "onnx/model.onnx", "onnx/model_quantized.onnx"  # names that transformers.js expects
FAR = 1e-3  # 1 - cosine: a graph of floats that is farther from the student is an error
_BATCH = 32
_LAYOUT: Layout[None] = Layout(
    "export",
    whole=dict.fromkeys(
        (
            *("README.md", "config.json", "model.safetensors", "modules.json", "onnx"),
            *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"),
            *("sentence_bert_config.json", "config_sentence_transformers.json"),
            *("preparation.json", "[0-9]*_*/*"),
        ),
        "",
    ),
)


@public
def export(
    student: str, out: str, force: bool = False, progress: Show = silent
) -> dict[str, dict[str, float]]:
    """Write a student into one folder that several libraries open; return figures of its files.

    `student` is RUN/student or another SPEC of an encoder that can be trained. OUT gets the
    student as sentence-transformers opens it, `onnx/model.onnx` in float32,
    `onnx/model_quantized.onnx` with weights of int8, and a model card. The result maps the name of
    each file of weights to its size (`bytes`) and, for graphs, to the mean and the maximum distance
    (1 - cosine) of their vectors from the student's (`mean`, `max`). Raises UsageError,
    SourceError, OutputError, MissingExtra, and NoisegenError if the graph in float32 gives other
    vectors.
    """
    return _export(decode(ExportOptions, locals()))


def _export(options: ExportOptions) -> dict[str, dict[str, float]]:
    """Run `export` with decoded options."""
    show, out = options.progress, Path(options.out)
    show(Progress(f"opening {options.student}"))
    encoder = open_encoder(options.student)
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"{options.student} cannot be exported: give RUN/student or a folder")
    piece_tokenizer(encoder.tokenizer, options.student, "there is no tokenizer.json to export")
    if Path(options.student).is_dir() and out.resolve() == Path(options.student).resolve():
        raise UsageError(f"{out} is the student itself: give -o another folder")
    with RunFolder(out, _LAYOUT, {}).claimed(force=options.force, can_resume=False):
        with torch.no_grad(), writing_weights(out), _quiet():
            weights = encoder.network.parameters()
            is_half = all(torch.equal(each, each.half().to(each.dtype)) for each in weights)
            save_folder(encoder, out, half=is_half)  # as small as the student's own folder
            _cut_and_pad(encoder, out / "tokenizer.json")
            (out / FLOATS).parent.mkdir(exist_ok=True)
            show(Progress("ONNX graph"))
            write_graph(encoder, out / FLOATS)
            show(Progress("weights of int8"))
            write_int8(out / FLOATS, out / INT8)
        show(Progress("comparing vectors"))
        figures: dict[str, dict[str, float]] = {
            "model.safetensors": {"bytes": (out / "model.safetensors").stat().st_size},
            **{name: _compared(encoder, out, name) for name in (FLOATS, INT8)},
        }
        length = piece_tokenizer(encoder.tokenizer, "", "").max_length
        about = {"files": figures, "length": length, "prompt": encoder.usage.prompt}
        write_text(out / "README.md", exported_card(options.student, about))
    return figures


def _cut_and_pad(encoder: SentenceEncoder, path: Path) -> None:
    """Let tokenizer.json cut texts as the student does, and pad the rows of a batch."""
    from tokenizers import Tokenizer

    inner = piece_tokenizer(encoder.tokenizer, encoder.name, "")
    with reading(path, OSError, ValueError):
        backend = Tokenizer.from_file(str(path))
        backend.enable_truncation(inner.max_length)
        pad = inner.tokenizer.pad_token or "[PAD]"
        backend.enable_padding(pad_id=inner.pad_id, pad_token=pad)
        backend.save(str(path), pretty=False)


def _compared(encoder: SentenceEncoder, out: Path, name: str) -> dict[str, float]:
    """Return size of a graph's file, and mean and maximum distance from the student's vectors.

    Raises NoisegenError if the graph in float32 is far from the student.
    """
    texts = [text for row in rows_of(EXAMPLE_PAIRS) for text in row]
    texts.append(" ".join(texts))  # longer than any limit
    tokenizer = encoder.tokenizer
    given = texts
    if isinstance(tokenizer, PreparedTokenizer):
        prepare = PREPARATIONS[tokenizer.preparation]
        given = [f"{tokenizer.prompt}{prepare(text)}" for text in texts]
    distances = cosine_distances(encoder.encode(texts), onnx_vectors(out, name, given))
    figures = {"mean": float(distances.mean()), "max": float(distances.max())}
    if name == FLOATS and figures["max"] > FAR:
        raise NoisegenError(
            f"the ONNX graph of {encoder.name} gives vectors {figures['max']:.4f} away from its "
            f"own: a {type(encoder.network).__name__} cannot be exported"
        )
    return {"bytes": (out / name).stat().st_size, **figures}


def onnx_vectors(folder: Path, name: str, texts: Sequence[str]) -> Vectors:
    """Return the vectors of texts by a graph in an exported folder, without torch."""
    import onnxruntime
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors only
    session = onnxruntime.InferenceSession(str(folder / name), options)
    vectors = []
    for first in range(0, len(texts), _BATCH):
        rows = tokenizer.encode_batch(list(texts[first : first + _BATCH]))
        given = [[row.ids for row in rows], [row.attention_mask for row in rows]]
        inputs = dict(zip(INPUTS, map(np.array, given), strict=True))
        vectors.append(session.run([OUTPUTS[1]], inputs)[0])
    return np.concatenate(vectors)


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the exporter's warnings about packages and axes in the with block."""
    logger: Any = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
