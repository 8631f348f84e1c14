"""What it takes to make the figures again, and how to cite them."""

import json

import yaml

from noisegen.evaluation.report import header
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import bdi, cell, paragraph, row_head, table, text
from noisegen.version import __version__

_SETTINGS_MAX = 20_000  # characters
_PAPERS = (
    "Nishimwe, Sagot and Bawden, “Making Sentence Embeddings Robust to User-Generated Content”, "
    "LREC-COLING 2024 (distance and xSIM under noise); Artetxe and Schwenk, “Margin-based Parallel "
    "Corpus Mining with Multilingual Sentence Embeddings”, ACL 2019 (the ratio margin of xSIM)"
)


def content(found: Findings) -> str:
    """Return the models with their digests, the settings, and a line to cite."""
    heads = ["model", "SPEC", "width", "digest"]
    rows = [
        [row_head(bdi(model.name)), cell(f"<code>{text(model.spec)}</code>"),
         cell(f"{model.width:,}", "n", model.width), cell(f"<code>{text(model.digest)}</code>")]
        for model in found.models
    ]  # fmt: skip
    return (
        table("Models", heads, rows, "definitions")
        + _settings("Settings of the evaluation", found.results.settings)
        + _settings("Settings of the training", (found.results.training or {}).get("config"))
        + paragraph(f"To cite: {text(_line(found), 2_000)} Methods: {text(_PAPERS, 2_000)}.")
    )


def _settings(title: str, settings: object) -> str:
    if not settings:
        return ""
    plain = json.loads(json.dumps(settings, default=str))
    written = yaml.safe_dump(plain, allow_unicode=True, sort_keys=False)
    return (
        f"<details><summary>{title}</summary><pre><code>{text(written, _SETTINGS_MAX)}</code></pre>"
        "</details>"
    )


def _line(found: Findings) -> str:
    versions = found.results.settings.get("versions")
    version = versions.get("noisegen", __version__) if isinstance(versions, dict) else __version__
    models = ", ".join(model.name for model in found.students) or found.baseline.name
    against = f" against {found.baseline.name} ({found.baseline.spec})" if found.students else ""
    return f"noisegen {version}, evaluation of {models}{against} on {header.sets(found)}."
