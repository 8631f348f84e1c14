"""The report as one HTML page: sections that have something to show, styles and script inside."""

import base64
import hashlib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from noisegen.atomic import write_text
from noisegen.evaluation.report import (
    all_figures,
    comparison_tables,
    doses,
    examples,
    header,
    heat_maps,
    learning,
    projection,
    reproduction,
    robustness,
    slopes,
    verdict,
)
from noisegen.evaluation.report.findings import Findings
from noisegen.evaluation.report.markup import text
from noisegen.evaluation.results import Results


class _Section(NamedTuple):
    name: str
    title: str
    lead: str
    content: Callable[[Findings], str]


_SECTIONS = (
    _Section("short", "In short", "", verdict.content),
    _Section("noise", "Noise by noise", "Each line is one kind of noise, put on clean text.",
             slopes.content),
    _Section("natural", "Natural noise", "Sentences as people wrote them, and their clean form.",
             comparison_tables.natural),
    _Section("map", "All models, all noise", "The fuller the colour, the larger the error.",
             heat_maps.content),
    _Section("drift", "Robust, or only indifferent?", "", robustness.content),
    _Section("dose", "More noise, more error", "", doses.content),
    _Section("space", "Where noisy sentences land", "", projection.content),
    _Section("learning", "How the student learned", "", learning.content),
    _Section("tasks", "Similarity, retrieval, classification", "", comparison_tables.tasks),
    _Section("examples", "Sentences repaired, sentences still broken",
             "What differs is marked. Bars show the cosine distance between the two sides.",
             examples.content),
    _Section("figures", "All figures", "", all_figures.content),
    _Section("again", "To make it again, to cite it", "", reproduction.content),
)  # fmt: skip


def write(results: Results, path: Path) -> None:
    """Write the page at once; raises OutputError if the file cannot be written."""
    write_text(path, page(results))


def page(results: Results) -> str:
    """Return the page; all text of the results in it is escaped, cut and free of controls."""
    found = Findings(results)
    shown = [(one, one.content(found)) for one in _SECTIONS]
    sections = [(one, content) for one, content in shown if content]
    style, script = _part("page.css"), _part("page.js")
    fields = {
        "policy": _policy(style, script),
        "title": text(header.title(found)),
        "style": style,
        "script": script,
        "head": header.content(found),
        "contents": "".join(
            f'<li><a href="#{one.name}">{one.title}</a></li>' for one, _ in sections
        ),
        "sections": "\n".join(_section(one, content) for one, content in sections),
    }
    return _filled(_part("page.html"), fields)


def _part(name: str) -> str:
    return (files("noisegen.evaluation.report") / name).read_text("utf-8")


def _filled(template: str, fields: dict[str, str]) -> str:
    """Put every field once in its place; what a field holds is not looked at again."""
    parts = template.split("\u27e6")
    filled = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("\u27e7")
        filled += [fields[name], rest]
    return "".join(filled)


def _section(one: _Section, content: str) -> str:
    lead = f'<p class="lead">{one.lead}</p>' if one.lead else ""
    return (
        f'<section id="{one.name}" aria-labelledby="{one.name}-title">'
        f'<h2 id="{one.name}-title">{one.title}</h2>{lead}\n{content}</section>'
    )


def _policy(style: str, script: str) -> str:
    """Return what the page may do: its own style and script by their hashes, and nothing else."""
    return (
        f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
