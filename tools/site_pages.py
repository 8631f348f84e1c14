"""A hook of mkdocs (`make docs`): pages of the site from outside docs/, and the Python reference.

The changelog, the contributing guide and the page of word lists join the site. Relative links are
rewritten to the place of their target on the site, or to the file in the repository where the
target is no page; links to README.md lead to the home page.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

import api_page
import stand_ins
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
SOURCES = {  # page on the site: file in the repository
    "development/changelog.md": "CHANGELOG.md",
    "development/contributing.md": "CONTRIBUTING.md",
    "reference/dictionaries.md": "noisegen/dictionaries/README.md",
}
PAGES = {source: page for page, source in SOURCES.items()} | {"README.md": "index.md"}
API = "reference/api.md"
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/ and the reference of the public names."""
    for page, source in SOURCES.items():
        content = (ROOT / source).read_text("utf-8")
        files.append(File.generated(config, page, content=content))
    stand_ins.install()
    files.append(File.generated(config, API, content=api_page.reference()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page with its relative links rewritten for the site."""
    on_site = page.file.src_uri
    if on_site == API:
        return markdown
    source = SOURCES.get(on_site, f"docs/{on_site}")

    def rewritten(link: re.Match[str]) -> str:
        target = normpath(str(PurePosixPath(source).parent / link[1]))
        target_page = PAGES.get(target, target.removeprefix("docs/"))
        if target_page == target:
            return f"{config.repo_url}/blob/main/{target}{link[2] or ''}"
        return relpath(target_page, PurePosixPath(on_site).parent) + (link[2] or "")

    return LINK.sub(rewritten, markdown)
