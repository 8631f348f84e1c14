"""Wiki mark-up of one line to plain text, in time linear in its length.

Templates, tables, references, files and categories are dropped, not rendered: what is wanted is
prose that people typed.
"""

import html
import re

PASSES = 8  # depth of nested templates and links that is undone

_TEMPLATE = re.compile(r"\{\{[^{}]*+\}\}")
_LINK = re.compile(r"\[\[([^\[\]]*+)\]\]")
_WEB_LINK = re.compile(r"\[(?:[a-z]{3,6}:)?//[^\s\[\]]*+\s*+([^\[\]]*+)\]")
_ADDRESS = re.compile(r"(?:https?|ftp)://[^\s<>\[\]{}|]*+")
_DROPPED = re.compile(
    r"<(ref|math|chem|gallery|code|pre|syntaxhighlight|source|timeline|score|graph|hiero)\b"
    r"([^<>]*+)>",
    re.IGNORECASE,
)
_BREAK = re.compile(r"<(?:br|hr|p|div|li|td|tr)\b[^<>]*+>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*+>")
_QUOTES = re.compile(r"'''''|'''|''")
_SWITCH = re.compile(r"__[A-Z]{3,30}__")
_VARIANT = re.compile(r"-\{([^{}:;|]*+)\}-")
_MEDIA = re.compile(
    r"\.(?:jpe?g|png|svg|gif|tiff?|webp|xcf|og[agv]|web[am]|mp[34]|wav|flac|midi?|pdf|djvu)\s*$",
    re.IGNORECASE,
)
_PREFIX = re.compile(r"[^\W\d_][\w -]{0,40}:(?=\S)")  # of a namespace or a language
_NO_PROSE = re.compile(r"\s*+(?:\{\||\||!|-{4}|#[^\W\d_]{4,20}\s{0,3}:?\s{0,3}\[\[)")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


def plain_text(line: str) -> str:
    """Return the prose of a line, blanks single; '' where it is a table, a redirect, a category.

    >>> plain_text("* '''Fox'''es are [[canid|dogs]].<ref>A book</ref> {{citation needed}}")
    'Foxes are dogs.'
    """
    if "{" in line or "}" in line:
        line = _without_templates(line)
    if _NO_PROSE.match(line):
        return ""
    if "<" in line or "-->" in line:
        line = _without_tags(line)
    if "[" in line:
        line = _without_links(line)
    if "|" in line:
        return ""  # a row of a gallery, or what is left of a template
    if "://" in line:
        line = _ADDRESS.sub("", line)
    if "''" in line:
        line = _QUOTES.sub("", line)
    if "__" in line:
        line = _SWITCH.sub("", line)
    if "&" in line:
        line = html.unescape(line)
    line = line.strip()
    line = line.strip("= ") if line.startswith("=") else line.lstrip("*#:; ")
    if line.isprintable() and "  " not in line:
        return line
    return " ".join(_CONTROL.sub("", line).split())


def has_control_characters(line: str) -> bool:
    """Tell whether a line holds what no XML may."""
    return not line.isprintable() and _NOT_XML.search(line) is not None


def _without_templates(line: str) -> str:
    """Remove {{...}} from within; one that another line opens or closes, to that end."""
    if "-{" in line:
        line = _VARIANT.sub(r"\1", line)  # a choice between scripts without a choice
    line = _repeated(_TEMPLATE, "", line)
    line = line.partition("{{")[0]
    return line[line.rfind("}}") + 2 :] if "}}" in line else line


def _repeated(pattern: re.Pattern[str], by: str, line: str) -> str:
    for _ in range(PASSES):
        line, count = pattern.subn(by, line)
        if not count:
            break
    return line


def _without_tags(line: str) -> str:
    line = _between(line, "<!--", "-->")
    line = _without_elements(line)
    return _TAG.sub("", _BREAK.sub(" ", line))


def _between(line: str, opening: str, closing: str) -> str:
    """Remove comments; one that another line opens or closes, to that end."""
    kept, at = [], 0
    while (start := line.find(opening, at)) >= 0:
        kept.append(line[at:start])
        end = line.find(closing, start + len(opening))
        at = end + len(closing) if end >= 0 else len(line)
    line = "".join([*kept, line[at:]])
    return line.rpartition(closing)[2]


def _without_elements(line: str) -> str:
    """Remove references, formulas and so on with what is in them."""
    kept, at = [], 0
    for found in _DROPPED.finditer(line):
        if found.start() < at:
            continue
        kept.append(line[at : found.start()])
        at = found.end()
        if not found[2].endswith("/"):
            close = line.find(f"</{found[1]}", at)
            end = line.find(">", close) if close >= 0 else -1
            at = end + 1 if end >= 0 else len(line)
    return "".join([*kept, line[at:]])


def _without_links(line: str) -> str:
    """Put the shown text in place of links; remove files, categories and links to languages."""
    if line.lstrip().startswith("[[") and ":" in line:
        rest = _LINK.sub(lambda found: "" if _PREFIX.match(found[1]) else found[0], line)
        if not rest.strip():
            return ""
    line = _plain_links(line)
    for _ in range(PASSES):
        if "[[" not in line:
            break
        line = _LINK.sub(_shown, line)
    return _WEB_LINK.sub(r"\1", line) if "//" in line else line


def _plain_links(line: str) -> str:
    """Put the shown text in place of links that hold no link, nor a colon: most do not."""
    before, *links = line.split("[[")
    shown = [before]
    for link in links:
        inside, end, after = link.partition("]]")
        if not end or ":" in inside or "[" in inside or "]" in inside:
            shown.append(f"[[{link}")
        else:
            target, _, label = inside.partition("|")
            shown += (label or target, after)
    return "".join(shown)


def _shown(link: re.Match[str]) -> str:
    target, bar, label = link[1].partition("|")
    if ":" in target:
        if _MEDIA.search(target):
            return ""
        if _PREFIX.match(target):
            return label
        target = target.lstrip(":")
    return label if bar and label else target
