"""The front matter of the model card beside a trained student, as the Hugging Face Hub reads it."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

# Packaged models by SPEC: their names on the Hub (of USE on TensorFlow Hub) and licences
PACKAGED = {
    "minilm": ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0"),
    "e5": ("intfloat/multilingual-e5-small", "mit"),
    "use": ("google/universal-sentence-encoder-multilingual", "apache-2.0"),
}
TEMPLATES = Path(__file__).parent / "templates"
OTHER = "other"  # the Hub's word for a licence that is not known, or not in its list
_FENCE = "---\n"  # line before and after the front matter


class ImprovedPair(NamedTuple):
    """A held-out pair whose noisy side came nearer to the teacher's vector of its clean side.

    `before` and `after` training: 1 - cosine of the two vectors.
    """

    noisy: str
    clean: str
    before: float
    after: float


def front_matter(
    settings: Mapping[str, Any], data: Sequence[str], langs: Collection[str], task: str
) -> str:
    """Return the front matter of a model card as YAML, its two fences included.

    `settings` has the settings of the run, `data` its sources, `langs` the languages of its texts.
    `task` is the Hub's name of the task, such as 'sentence-similarity'.
    """
    teacher, student = (str(settings.get(name) or "") for name in ("teacher", "student"))
    starts_as_teacher = not student or student.partition(":")[0] in (
        *("copy", "layers", "char", "static"),
    )
    base, licence = origin(teacher if starts_as_teacher and teacher else student)
    datasets = [name.split(":")[1] for name in data if name.startswith("hf:")]
    content = {
        "license": licence,
        **({"language": sorted(langs)} if langs else {}),
        "base_model": base,
        **({"datasets": datasets} if datasets else {}),
        "library_name": "sentence-transformers" if teacher else "transformers",
        "pipeline_tag": task,
        "tags": ["sentence-transformers", "noisegen", "robustness"],
    }
    return _FENCE + yaml.safe_dump(content, sort_keys=False, allow_unicode=True) + _FENCE


def rendered(template: str, values: Mapping[str, Any]) -> str:
    """Return a template of model cards, filled in with values."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    loader = FileSystemLoader(TEMPLATES)
    templates = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    return templates.get_template(template).render(values)


def exported_card(spec: str, about: Mapping[str, Any]) -> str:
    """Return the model card of an exported folder: the model's own card, then its files.

    A model without a card gets front matter and a title. `about` has the values of the template
    export.md.
    """
    card = Path(spec) / "README.md"
    try:
        text = card.read_text("utf-8")
    except (OSError, ValueError):
        front = front_matter({"teacher": spec, "student": "copy"}, [], [], "sentence-similarity")
        text = f"{front}\n# {origin(spec)[0]}\n"
    return f"{text.rstrip()}\n\n{rendered('export.md', about)}"


def origin(spec: str) -> tuple[str, str]:
    """Return the name on the Hub and the licence of a model, given by its SPEC.

    A folder has its own name, and the licence that its model card states.
    """
    if spec in PACKAGED:
        return PACKAGED[spec]
    kind, colon, rest = spec.partition(":")
    if kind == "hf":
        return rest, OTHER
    folder = Path(rest if colon else spec)
    return folder.name, _stated(folder / "README.md") or OTHER


def _stated(card: Path) -> str:
    """Return the licence in the front matter of a model card; '' without card or licence."""
    try:
        text = card.read_text("utf-8")
        content = yaml.safe_load(text.split(_FENCE)[1]) if text.startswith(_FENCE) else {}
        return str(content.get("license") or "")
    except (OSError, ValueError, IndexError, AttributeError, yaml.YAMLError):
        return ""
