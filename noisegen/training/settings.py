"""Options of `noisegen train`, and settings of its methods: presets, a file and single values.

The command line imports this module at its start, so it imports nothing heavy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from noisegen.encoders import CHUNK_ROWS
from noisegen.errors import RecipeError, UsageError, did_you_mean
from noisegen.noising.bounded_yaml import read_yaml
from noisegen.options import Strings, argument, decode, internal, option
from noisegen.runs.options import Device
from noisegen.runs.progress import Show, silent

Sink = Callable[[dict[str, Any]], None]  # takes one row of figures
Tell = Callable[[str], None]  # takes a message for the user
# Settings that have their own option on the command line; --set NAME=VALUE sets any other.
OPTIONS = (
    *("teacher", "student", "objective", "recipe", "lang", "text_column", "seed"),
    *("epochs", "steps", "time_limit", "cpu_limit", "max_drift", "validation"),
)
Text = str | None  # None: the preset's value


@dataclass(frozen=True)
class TrainOptions:
    """Options of `noisegen train`. None stands for the preset's value."""

    data: Annotated[Strings, argument("DATA...")]
    out: Annotated[Text, option("Folder of the run", "-o", "--out", metavar="RUN")] = None
    preset: Annotated[
        Text,
        option(
            "Preset, one of --list (default: quickstart, or the preset of the objective's method)",
            metavar="NAME",
        ),
    ] = None
    config: Annotated[
        Text, option("File with settings that replace the preset's", metavar="FILE.yaml")
    ] = None
    values: Annotated[Mapping[str, Any] | None, internal()] = None
    teacher: Annotated[
        Text,
        option(
            "Teacher: minilm, use, e5, a folder, hf:NAME, laser2:FOLDER, rolaser:FOLDER, "
            "npy:FILE, social:SPEC",
            metavar="SPEC",
        ),
    ] = None
    student: Annotated[
        Text,
        option(
            "Student: copy, layers:0,3,5, static (a vector per token, very fast), char, "
            "char:FOLDER, e5, a folder or hf:NAME",
            metavar="SPEC",
        ),
    ] = None
    objective: Annotated[
        Text, option("Objectives with weights: two_term+0.2*info_nce", metavar="NAME[+NAME]")
    ] = None
    recipe: Annotated[
        Text,
        option(
            "Noisy side: the noisy text of DATA (stored), more noise on it in its own language "
            "(stored:RECIPE), or noise on clean text, redrawn in every epoch (RECIPE)",
            metavar="stored[:RECIPE]|RECIPE",
        ),
    ] = None
    lang: Annotated[Text, option("Language of the clean text", metavar="LANG")] = None
    text_column: Annotated[
        Text, option("Column of the clean text (default: clean, else text)", metavar="COLUMN")
    ] = None
    seed: Annotated[int | None, option("Seed of batches, noise and new weights", ge=0)] = None
    epochs: Annotated[float | None, option("Passes over the data")] = None
    steps: Annotated[int | None, option("Number of updates", ge=1)] = None
    time_limit: Annotated[
        Text,
        option(
            "Time limit for the whole run, including teacher's vectors, validation and saving",
            metavar="10m",
        ),
    ] = None
    cpu_limit: Annotated[
        Text,
        option(
            "Like --time-limit in CPU time of all threads, however busy the machine is",
            metavar="10m",
        ),
    ] = None
    validation: Annotated[
        tuple[str, ...],
        option(
            "Noisy/clean pairs, as for evaluate --pairs, that choose the weights in place of "
            "pairs held out of DATA; repeatable",
            metavar="PAIRS",
        ),
    ] = ()
    max_drift: Annotated[
        float | None,
        option(
            "Stop if clean vectors drift further than this from the teacher's (mean 1 - cosine)"
        ),
    ] = None
    code: Annotated[
        tuple[str, ...],
        option(
            "Python file that registers objectives or transforms; repeatable", metavar="FILE.py"
        ),
    ] = ()
    device: Device = "auto"
    resume: Annotated[bool, option("Resume from the newest checkpoint")] = False
    force: Annotated[bool, option("Overwrite the run in this folder")] = False
    force_small: Annotated[bool, option("Train on fewer than 50 pairs")] = False
    dry_run: Annotated[
        bool, option("Time some updates, print size, cost and time; write nothing")
    ] = False
    boards: Annotated[bool, option("Also write RUN/tensorboard", "--tensorboard")] = False
    # time.monotonic() and time.process_time() at the moment from which the run's limit counts.
    began: Annotated[tuple[float, float] | None, internal()] = None
    sinks: Annotated[Sequence[Sink], internal()] = ()
    tell: Annotated[Tell, internal()] = silent
    progress: Annotated[Show, internal()] = silent

    @property
    def sources(self) -> tuple[str, ...]:
        """DATA as a tuple of strings."""
        return cast(tuple[str, ...], self.data)


@dataclass(frozen=True)
class ExportOptions:
    """Options of `noisegen export`."""

    student: Annotated[str, argument("STUDENT")]
    out: Annotated[str, option("Folder for the Hub", "-o", "--out", metavar="OUT")]
    force: Annotated[bool, option("Overwrite an earlier export in this folder")] = False
    progress: Annotated[Show, internal()] = silent


LIMITS = ("time_limit", "cpu_limit")
LENGTHS = ("epochs", "steps", *LIMITS)
DEFAULT = "quickstart"
LAST = "last"  # value of the setting select_by: the weights at the end are kept
GIVEN = "given_"  # prefix of the names of validation figures on pairs of --validation
_PRESETS = Path(__file__).parent / "presets"
_INFINITE = ("clip", "graph_gb")  # settings that may be infinite
_NO_SETTINGS = ("version", "data")  # keys of config.yaml that are no settings; --config skips them
_UNITS = {"s": 1, "m": 60, "h": 3600}
Precision = Literal["auto", "bf16", "fp16", "fp32"]


@dataclass(frozen=True)
class RunSettings:
    """Settings that every training method has.

    The length of a run is given by `epochs`, `steps`, `time_limit` or `cpu_limit` (seconds, or 90s,
    10m, 2h). After the warm-up the learning rate falls to 0 (`schedule` linear), stays
    (`constant`), or falls as 1 / sqrt(updates) (`inverse_sqrt`). A limit counts from the start of
    the command, but the learning rate falls only after preparation. A run ends early after
    `patience` validations without a new minimum of the figure that chooses the best weights.
    """

    preset: str = DEFAULT
    epochs: Annotated[float | None, option("Passes over the data", gt=0)] = None
    steps: Annotated[int | None, option("Updates", ge=1)] = None
    time_limit: Annotated[float | None, option("Seconds of the whole run", gt=0)] = None
    cpu_limit: Annotated[float | None, option("CPU seconds of the whole run", gt=0)] = None
    lr: Annotated[float, option("Learning rate after the warm-up", gt=0)] = 1e-4
    warmup: Annotated[int, option("Updates over which the learning rate rises", ge=0)] = 40
    schedule: Literal["linear", "constant", "inverse_sqrt"] = "linear"
    betas: Annotated[tuple[float, float], option("Betas of Adam", ge=0, lt=1)] = (0.9, 0.98)
    eps: Annotated[float, option("Epsilon of Adam", gt=0)] = 1e-8
    weight_decay: Annotated[float, option("Weight decay", ge=0)] = 0.0
    clip: Annotated[float, option("Maximum gradient norm; inf: no clipping", gt=0)] = 1.0
    validation_rows: Annotated[int, option("Maximum held-out pairs", ge=1)] = 500
    validate_every: Annotated[int, option("Updates between validations", ge=1)] = 500
    patience: Annotated[
        int | None, option("Validations without a new best until the end", ge=1)
    ] = None
    keep: Annotated[int, option("Checkpoints kept", ge=1)] = 3
    # Below 2**32: seeds of dropout are multiples of it, and torch's seeds have at most 64 bits.
    seed: Annotated[int, option("Seed of batches, noise and new weights", ge=0, lt=2**32)] = 0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if isinstance(value, float) and name not in _INFINITE and not isfinite(value):
                raise UsageError(f"setting {name} {value!r} is not finite")
        lengths = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(lengths) != 1:
            given = " and ".join(lengths) or "none of them"
            raise UsageError(
                f"give one of --epochs, --steps, --time-limit, --cpu-limit (not {given})"
            )

    @property
    def limit(self) -> float | None:
        """Limit of the whole run in seconds, wall or CPU time; None without a limit."""
        return self.time_limit or self.cpu_limit

    def to_dict(self) -> dict[str, Any]:
        """Return name -> value of the settings, with lists in place of tuples, for config.yaml."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }


@dataclass(frozen=True)
class DistilSettings(RunSettings):
    """All settings of a distillation run; the run writes these into its config.yaml."""

    method: Literal["distil"] = "distil"
    teacher: Annotated[str, option("SPEC of the teacher")] = "minilm"
    student: Annotated[
        str, option("copy, layers:0,3,5, static, char, char:FOLDER, or a SPEC of a folder")
    ] = "copy"
    objective: Annotated[str, option("Objectives with weights: two_term+0.2*info_nce")] = "two_term"
    # Sources of noise, joined by "+": each row draws one of them per epoch.
    recipe: str = "stored"
    lang: Annotated[str, option("Language of clean text")] = "en"
    text_column: Annotated[str | None, option("Column of clean text")] = None
    bitext_rows: Annotated[int | None, option("Rows read per language pair and set", ge=1)] = None
    # How texts are changed before they are tokenized; "plain" means not at all. None: as for the
    # encoder that the student starts as, else as for a LASER teacher.
    prepare: Annotated[
        Literal["social", "laser", "plain"] | None, option("How texts are prepared")
    ] = None
    # None: the student keeps its own pooling.
    pooling: Literal["mean", "max", "cls"] | None = None
    project: Annotated[
        Literal["before", "after"] | None, option("Place of a projection: before or after pooling")
    ] = None
    projection_bias: bool = True
    projection_activation: Literal["gelu", "tanh"] | None = None
    normalize: Annotated[bool | None, option("Vectors of length 1; None: like the teacher's")] = (
        None
    )
    lower: Annotated[bool, option("Lower-case text first")] = False
    freeze: Annotated[tuple[str, ...], option("Prefixes of names of frozen weights")] = ()
    noisy_words: Annotated[
        int, option("Noisy rows in which noisy words are searched, for the student to know", ge=0)
    ] = 0
    # More recipes for the search for noisy words: spel adds misspellings, rare in posts.
    noisy_words_also: str | None = None
    misspellings: Annotated[
        int, option("Likely misspellings of frequent words that join the noisy words found", ge=0)
    ] = 0
    # Without `batch_pairs`, the tokens of an update; with it, the most tokens at once.
    batch_tokens: Annotated[
        int, option("Tokens per update over all processes, padding included", ge=1)
    ] = 2048
    batch_unit: Annotated[
        Literal["tokens", "characters"], option("Unit of batch_tokens; characters: --student char")
    ] = "tokens"
    batch_pairs: Annotated[
        int | None, option("Pairs per update; default: as many as batch_tokens has room for", ge=1)
    ] = None
    accumulate: Annotated[int, option("Batches per update in each process", ge=1)] = 1
    max_length: Annotated[
        int | None, option("Maximum tokens of a text; None: like the teacher's", ge=8)
    ] = None
    dropout: Annotated[float, option("Dropout rate", ge=0, lt=1)] = 0.0
    activation_dropout: Annotated[
        float, option("Dropout rate inside the feed-forward layers", ge=0, lt=1)
    ] = 0.0
    temperature: Annotated[float, option("Temperature of contrastive losses", ge=1e-3)] = 0.05
    negatives: Annotated[
        int, option("Random negatives per batch, for contrastive losses", ge=0)
    ] = 1024
    hard_negatives: Annotated[
        int, option("Hard negatives per text, for contrastive losses", ge=0)
    ] = 0
    precision: Precision = "auto"
    # Whether rows are joined in batches without padding. None: on CUDA in bf16.
    packed: bool | None = None
    compile: Annotated[bool, option("Compile the network, for packed batches on CUDA")] = False
    interpolate: Annotated[
        float,
        option("Share of the trained weights in a mean with the weights at the start", gt=0, le=1),
    ] = 1.0
    max_drift: Annotated[
        float | None, option("Maximum clean drift; training stops above", gt=0)
    ] = None
    validation: tuple[str, ...] | None = None  # sources of more pairs to validate on
    # Pairs whose loss chooses the best weights; "held_out" stands for pairs held out of DATA. With
    # "last", the weights at the end are kept. None: the pairs of `validation` if there are any,
    # else pairs held out of DATA.
    select_by: Literal["held_out", "last"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.projection_activation and not self.project:
            raise UsageError(
                f"setting projection_activation {self.projection_activation!r} needs a projection: "
                "add --set project=after or project=before"
            )

    def tokens_per_batch(self, world: int) -> int:
        """Return the maximum tokens of a batch if `world` processes share each update."""
        return max(1, self.batch_tokens // (world * self.accumulate))


@dataclass(frozen=True)
class PretrainSettings(RunSettings):
    """All settings of a pre-training run; the run writes these into its config.yaml.

    An update learns from up to `batch_pairs` pairs, which go through the network in batches of
    `batch_tokens` tokens. Each process keeps up to `graph_gb` gigabytes of autograd graphs until
    the backward pass. The other batches go forward twice, which gives the same gradient.
    """

    method: Literal["pretrain"] = "pretrain"
    student: Annotated[str, option("SPEC of a masked-language model")] = "minilm"
    objective: Annotated[str, option("mlm, or mlm+NAME with a contrast")] = "mlm+nt_xent"
    recipe: str = "stored"  # as in DistilSettings
    lang: Annotated[str, option("Language of clean text")] = "en"
    text_column: Annotated[str | None, option("Column of clean text")] = None
    batch_pairs: Annotated[
        int, option("Pairs per update, over all processes", ge=2, le=CHUNK_ROWS)
    ] = 2048
    batch_tokens: Annotated[int, option("Tokens per pass, padding included", ge=1)] = 2048
    graph_gb: Annotated[float, option("Maximum gigabytes of graphs kept per process", ge=0)] = 4.0
    max_length: Annotated[int, option("Maximum tokens of a text", ge=8)] = 128
    mask_rate: Annotated[float, option("Share of tokens masked", gt=0, lt=1)] = 0.15
    dropout: Annotated[float, option("Dropout rate", ge=0, lt=1)] = 0.1
    temperature: Annotated[float, option("Temperature of the contrast", ge=1e-3)] = 0.05
    memory: Annotated[int, option("Vectors of earlier updates used as negatives", ge=0)] = 0
    freeze: Annotated[tuple[str, ...], option("Prefixes of names of frozen weights")] = ()
    precision: Precision = "auto"
    packed: bool | None = None  # as in DistilSettings
    compile: Annotated[bool, option("Compile the network, for packed batches on CUDA")] = False
    validation_share: Annotated[float, option("Share of pairs held out", gt=0, lt=1)] = 0.01

    def tokens_per_batch(self, world: int) -> int:
        """Return the maximum tokens of a batch, however many processes share each update."""
        return self.batch_tokens


@dataclass(frozen=True)
class DisentangleSettings(RunSettings):
    """All settings of a run that trains heads; the run writes these into its config.yaml.

    The validation loss is measured every `validate_every` updates, and at least once per epoch.
    """

    preset: str = "oracle-small"
    keep: Literal[3] = 3  # without effect: training heads writes no checkpoints
    method: Literal["heads"] = "heads"
    teacher: Annotated[str, option("SPEC of the encoder whose vectors are frozen")] = "minilm"
    objective: Annotated[str, option("Objectives with weights: dream+0.5*oracle")] = "meat+oracle"
    # Labels that language vectors tell apart: languages, clean or noisy ("side"), or transforms.
    labels: Literal["language", "side", "transform"] = "language"
    languages: Annotated[
        tuple[str, ...], option("Languages of source and target; default: from file names")
    ] = ()
    bitext_rows: Annotated[
        int | None, option("Random pairs kept per pair of labels; None: all", ge=1)
    ] = None
    standardize: Annotated[bool, option("Train on vectors of mean 0 and mean square 1")] = True
    batch_pairs: Annotated[int, option("Pairs per update, compared with each other", ge=2)] = 512
    patience: Annotated[
        int | None, option("Validations without a new best until the end", ge=1)
    ] = 10

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.languages) not in (0, 2) or len({*self.languages, ""}) <= len(self.languages):
            raise UsageError(
                f"setting languages {self.languages!r} must be two different names: those of "
                "the source and the target language"
            )


SETTINGS = {"distil": DistilSettings, "pretrain": PretrainSettings, "heads": DisentangleSettings}


@dataclass(frozen=True)
class Preset:
    """A preset: a training method with `values` for its settings.

    `paper`, `data`, `cost`, `command` and `tables` describe the preset when presets are listed.
    """

    name: str
    method: str
    paper: str  # source of the settings
    data: str  # description of suitable DATA
    cost: str  # time and hardware of a run
    command: str
    tables: Mapping[str, str] | str  # {table of the paper: command}, or the preset that has these
    needs: Mapping[str, str]  # settings that users must give, each with a hint for the error
    values: Mapping[str, Any] = field(repr=False)

    @property
    def objective(self) -> str:
        """The objective of the preset."""
        return str(self.values["objective"])


def preset_names() -> list[str]:
    """Return the names of all presets, the default one first."""
    names = sorted(path.stem for path in _PRESETS.glob("*.yaml"))
    return [DEFAULT, *(name for name in names if name != DEFAULT)]


def read_preset(name: str) -> Preset:
    """Return the preset of this name; raises UsageError for an unknown name."""
    if name not in (names := preset_names()):
        near = did_you_mean(str(name), names)
        raise UsageError(f"no preset {name!r} among {', '.join(names)}{near}")
    import yaml

    values = yaml.safe_load((_PRESETS / f"{name}.yaml").read_text("utf-8"))
    about = {"needs": {}, **values.pop("about")}
    return Preset(name, values["method"], **about, values=values)


def load_settings(
    preset: str, config: str | Path | None = None, values: Mapping[str, Any] | None = None
) -> Any:
    """Return a preset's settings, overridden by the file `config` and then by `values`.

    The result is of the class in `SETTINGS` that belongs to the preset's method. Raises UsageError.
    """
    base = read_preset(preset)
    kind = SETTINGS[base.method]
    known = [field.name for field in fields(kind)]
    merged: dict[str, Any] = {"preset": preset}
    for layer in (base.values, _read(Path(config)) if config else {}, values or {}):
        _check_names(layer, preset, known)
        merged = _overridden(merged, layer)
    for name, what in base.needs.items():
        if name not in merged:
            raise UsageError(f"preset {preset} needs {what}")
    for name in LIMITS:
        if isinstance(merged.get(name), str):
            merged[name] = seconds(merged[name], name)
    return decode(kind, merged, label=lambda name: f"setting {name}")


def _overridden(settings: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return `settings`, updated with `values`.

    A length of the run in `values` replaces any length in `settings`: `steps` replaces `epochs`.
    """
    has_length = any(values.get(name) is not None for name in LENGTHS)
    replaced = LENGTHS if has_length else ()
    kept = {name: value for name, value in settings.items() if name not in replaced}
    return {**kept, **values}


def _check_names(values: Mapping[str, Any], preset: str, known: Sequence[str]) -> None:
    """Raise UsageError if `values` has names not in `known`, or another preset than `preset`."""
    if values.get("preset", preset) != preset:
        raise UsageError(f"setting preset: give it as --preset {values['preset']}")
    for name in values:
        if name not in known:
            near = did_you_mean(str(name), known)
            raise UsageError(f"preset {preset} has no setting {name!r}{near}")


def _read(path: Path) -> dict[str, Any]:
    try:
        content = read_yaml(path.read_text("utf-8"), str(path))
    except (OSError, ValueError, RecipeError) as error:
        raise UsageError(f"cannot read {path}: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise UsageError(f"{path} is not a mapping of settings to values")
    return {name: value for name, value in content.items() if name not in _NO_SETTINGS}


def seconds(text: str, name: str) -> float:
    """Return the number of seconds in a text such as 90, 90s, 10m or 2h.

    Raises UsageError for other texts; `name` is the setting that the error names.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return float(number) * _UNITS[unit]
    except ValueError:
        raise UsageError(f"setting {name} {text!r}: write 90s, 10m or 2h") from None
