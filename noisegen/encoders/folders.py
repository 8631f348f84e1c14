"""Hugging Face and sentence-transformers folders as SentenceEncoder, and back.

A folder is data: its weights are read from safetensors alone, its own code is never run, and of
the modules of sentence-transformers just those are known that `_STEPS` names.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from noisegen.encoders import character_folder as characters
from noisegen.encoders.character_words import WordTokenizer
from noisegen.encoders.encoder import LENGTH_MAX, Tokenizer
from noisegen.encoders.files import pickled_hint, read_json, read_weights, write_json
from noisegen.encoders.head import POOLINGS, Head, HeadSettings
from noisegen.encoders.pieces import PieceTokenizer, lowered
from noisegen.encoders.prepared import PreparedTokenizer, opened_tokenizer
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import SourceError

_NETWORKS = {  # what the first step is called: by sentence-transformers, or with characters
    "Transformer": "sentence_transformers.models.Transformer",
    "CharacterTransformer": f"{characters.__name__}.CharacterTransformer",
}
_STEPS = (*_NETWORKS, "Pooling", "Dense", "Normalize")
_IDENTITY = "torch.nn.modules.linear.Identity"
_MODES = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}  # pooling_mode_...
_PACKAGE = "sentence_transformers.models"
# What transformers raises for values in a config that are of a wrong type, or out of range.
_UNFIT = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def open_folder(
    folder: str | Path, *, name: str | None = None, head: HeadSettings | None = None
) -> SentenceEncoder:
    """Open a folder with config.json, or with modules.json of sentence-transformers.

    `head` takes the place of the folder's own; without either it is mean pooling. Raises
    SourceError for a folder that is no model, has pickled weights only, or steps we do not know.
    """
    folder = Path(folder)
    modules = _modules(folder)
    inner = folder / modules[0]["path"] if modules else folder
    if not (inner / "config.json").is_file():
        raise SourceError(f"{folder} is no model: no config.json; give a Hugging Face folder")
    network, tokenizer = _opened(inner)
    tokenizer = opened_tokenizer(tokenizer, inner)
    settings, projection = _head(folder, modules[1:])
    encoder = SentenceEncoder(network, tokenizer, head or settings, name or str(folder))
    if head is None and projection is not None:
        _load_projection(encoder.head, projection)
    return encoder.eval()


def _modules(folder: Path) -> list[dict[str, Any]]:
    """Return the steps of modules.json, [] where there is none."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    steps = read_json(path, list)
    try:
        kinds = [_kind(step) for step in steps]
        inside = all(
            (folder / step["path"]).resolve().is_relative_to(folder.resolve()) for step in steps
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} is not the modules.json of a model: {error!r}") from error
    if not inside or not {*kinds[:1]} & {*_NETWORKS} or not set(kinds) <= set(_STEPS):
        shown = ", ".join(kinds) or "none"
        raise SourceError(f"{path} has steps {shown}; known are {', '.join(_STEPS)}, in this order")
    return list(steps)


def _kind(step: dict[str, Any]) -> str:
    name = str(step["type"])
    known = name.startswith("sentence_transformers.") or name in _NETWORKS.values()
    return name.rpartition(".")[2] if known else name


def _opened(folder: Path) -> tuple[Any, Tokenizer]:
    """Return the network and its tokenizer."""
    if read_json(folder / "config.json").get("model_type") == characters.KIND:
        return characters.open_network(folder)
    return _network(folder), _tokenizer(folder)


def _network(folder: Path) -> Any:
    from huggingface_hub.errors import StrictDataclassError as Invalid
    from safetensors import SafetensorError
    from transformers import AutoModel

    try:
        with quietly():
            network, info = AutoModel.from_pretrained(
                folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
                dtype=torch.float32, output_loading_info=True,
            )  # fmt: skip
    except (*_UNFIT, OSError, RuntimeError, SafetensorError, Invalid) as error:
        reason = " ".join(str(error).split())
        if "ignore_mismatched_sizes" in reason:  # the report that it speaks of is not shown
            reason = "its weights have other shapes than its config.json says"
        raise SourceError(
            f"cannot open the model {folder}: {reason}{pickled_hint(folder)}"
        ) from error
    missing = sorted(name for name in info["missing_keys"] if not name.startswith("pooler."))
    if missing:
        raise SourceError(f"{folder} lacks {len(missing)} weights, the first is {missing[0]}")
    if hasattr(network, "pooler"):
        network.pooler = None  # nothing here uses it, and its weights would never be trained
    return network


@contextmanager
def quietly() -> Iterator[None]:
    """Keep bars and reports of transformers off the terminal."""
    from transformers.utils import logging as found

    logging: Any = found  # it has no types

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _tokenizer(folder: Path) -> PieceTokenizer:
    from transformers import AutoTokenizer

    written = folder / "sentence_bert_config.json"
    said = read_json(written) if written.is_file() else {}
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
        length = min(
            said.get("max_seq_length") or LENGTH_MAX, tokenizer.model_max_length, LENGTH_MAX
        )
        if len(tokenizer) <= len(tokenizer.all_special_tokens):
            raise ValueError("it has no vocabulary")
        cut = PieceTokenizer(tokenizer, length)
    except (*_UNFIT, OSError) as error:
        raise SourceError(f"cannot open the tokenizer of {folder}: {error}") from error
    return lowered(cut) if said.get("do_lower_case") else cut


def _head(folder: Path, steps: Sequence[dict[str, Any]]) -> tuple[HeadSettings, Path | None]:
    """Return the head that the steps after the network make, and the folder of its projection."""
    settings, projection, pooled = HeadSettings(), None, False
    for step in steps:
        kind, path = _kind(step), folder / step["path"]
        if kind == "Pooling":
            settings, pooled = replace(settings, pooling=_pooling(path)), True
        elif kind == "Dense" and projection is None:
            place = "last" if settings.normalize else "after" if pooled else "before"
            settings, projection = replace(settings, place=place, **_linear(path)), path
        elif kind == "Normalize" and pooled and settings.place != "last":
            settings = replace(settings, normalize=True)
        else:
            raise SourceError(f"{folder}/modules.json: {kind} is not known at this place")
    return settings, projection


def _linear(path: Path) -> dict[str, Any]:
    """Return width and bias of a Dense step."""
    said = read_json(path / "config.json")
    if said.get("activation_function", _IDENTITY) != _IDENTITY:
        raise SourceError(f"{path} has an activation function; only linear layers are known")
    width = said.get("out_features")
    if not isinstance(width, int) or width < 1:
        raise SourceError(f"{path}/config.json: out_features is {width!r}, not a width")
    return {"projection": width, "bias": bool(said.get("bias", True))}


def _pooling(path: Path) -> str:
    said = read_json(path / "config.json")
    modes = [name for name, key in _MODES.items() if said.get(f"pooling_mode_{key}")]
    mode = said.get("pooling_mode", modes)
    mode = "+".join(map(str, mode)) if isinstance(mode, list) else mode
    if mode not in POOLINGS:
        raise SourceError(f"{path} pools by {mode}; known are {', '.join(POOLINGS)}")
    return mode


def _load_projection(head: Head, folder: Path) -> None:
    assert head.projection is not None
    path = folder / "model.safetensors"
    weights = read_weights(path)
    try:
        head.projection.load_state_dict(
            {name.removeprefix("linear."): value for name, value in weights.items()}
        )
    except RuntimeError as error:
        raise SourceError(f"{path} does not fit its config.json: {error}") from error


def save_folder(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a folder that SentenceTransformer opens; weights as safetensors."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    kind = _save_network(encoder, folder)
    steps = _steps(encoder.head, int(encoder.config.hidden_size))
    for path, config in steps:
        (folder / path).mkdir(exist_ok=True)
        if config is not None:
            write_json(folder / path / "config.json", config)
        if path.endswith("Dense"):
            weights = encoder.head.projection.state_dict()  # type: ignore[union-attr]
            named = {f"linear.{name}": value.contiguous() for name, value in weights.items()}
            save_file(named, folder / path / "model.safetensors")
    listed = [("", _NETWORKS[kind])]
    listed += [(path, f"{_PACKAGE}.{path.partition('_')[2]}") for path, _ in steps]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(listed)
    ])  # fmt: skip


def _save_network(encoder: SentenceEncoder, folder: Path) -> str:
    """Write network and tokenizer; return the name of the first step."""
    tokenizer = encoder.tokenizer
    if isinstance(tokenizer, PreparedTokenizer):
        tokenizer.note(folder)
        tokenizer = tokenizer.tokenizer
    if isinstance(tokenizer, WordTokenizer):
        characters.save_network(encoder.network, tokenizer, folder)
        return "CharacterTransformer"
    with quietly():
        encoder.network.save_pretrained(folder)  # type: ignore[operator]
    tokenizer.save(folder)
    said = {"max_seq_length": tokenizer.max_length, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", said)
    return "Transformer"


def _steps(head: Head, hidden: int) -> list[tuple[str, Any]]:
    """Return the folders of the steps after the network, with what their config.json says."""
    said, width = head.settings, hidden
    dense = None
    if said.projection:
        token = {"module_input_name": "token_embeddings", "module_output_name": "token_embeddings"}
        dense = {
            "in_features": hidden, "out_features": said.projection, "bias": said.bias,
            "activation_function": _IDENTITY, **(token if said.place == "before" else {}),
        }  # fmt: skip
        width = said.projection if said.place == "before" else hidden
    pooling = {"word_embedding_dimension": width}
    pooling |= {f"pooling_mode_{key}": name == said.pooling for name, key in _MODES.items()}
    kinds: list[tuple[str, Any]] = [("Pooling", pooling)]
    if said.normalize:
        kinds.append(("Normalize", None))
    if dense:
        at = {"before": 0, "after": 1, "last": len(kinds)}[said.place]
        kinds.insert(at, ("Dense", dense))
    return [(f"{i}_{kind}", config) for i, (kind, config) in enumerate(kinds, 1)]
