"""Pages of the documentation site that lie elsewhere in the repository, and the Python reference.

A hook of mkdocs (`make docs`): README is the home page, the changelog and others join it, and links
among them are turned to where they are on the site. Links to other files lead to the repository.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import noisegen

ROOT = Path(__file__).parents[1]
PAGES = {  # on the site: in the repository
    "index.md": "README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "dictionaries.md": "noisegen/dictionaries/README.md",
}
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and the reference of the public names."""
    for page, source in PAGES.items():
        content = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=_with_links(content, source, config)))
    files.append(File.generated(config, "reference.md", content=_reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of the pages in docs/; those from elsewhere are turned already."""
    source = page.file.src_uri
    return markdown if source in PAGES else _with_links(markdown, f"docs/{source}", config)


def _with_links(markdown: str, source: str, config: MkDocsConfig) -> str:
    """Turn relative links of a file of the repository to where their goals are on the site."""
    folder = str(PurePosixPath(source).parent)

    def turned(link: re.Match[str]) -> str:
        goal, anchor = normpath(f"{folder}/{link[1]}"), link[2] or ""
        page = next((page for page, known in PAGES.items() if known == goal), None)
        if goal.startswith("docs/"):
            page = relpath(goal, "docs")
        return f"{page or f'{config.repo_url}/blob/main/{goal}'}{anchor}"

    return LINK.sub(turned, markdown)


def _reference() -> str:
    """Return the page of the public names; twins of commands exist only when they are made."""
    parts = ["# Public names"]
    names = sorted(noisegen._MODULES)
    for name in sorted(names, key=lambda name: name[0].isupper()):  # functions, then classes
        is_made = "__signature__" in vars(getattr(noisegen, name))
        options = "\n    options: { force_inspection: true }" if is_made else ""
        parts.append(f"::: noisegen.{noisegen._MODULES[name]}.{name}{options}")
    return "\n\n".join(parts) + "\n"
