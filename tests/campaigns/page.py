"""The page of the campaigns: its figures of each are kept up to date."""

import platform
import re
import time
from pathlib import Path

from campaigns.campaign import Table
from noisegen.version import __version__


def update(page: Path, campaign: str, how: str, table: Table) -> None:
    """Replace the figures of a campaign, between its two comments in a page."""
    begin, end = f"<!-- figures of {campaign} -->", f"<!-- end of {campaign} -->"
    system = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}"
    date = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        begin,
        f"{table.summary()} ({how}; {date}, noisegen {__version__}, {system}).",
        "",
        *table.lines(),
        end,
    ]
    text = page.read_text("utf-8")
    pattern = f"{re.escape(begin)}.*{re.escape(end)}"
    new, found = re.subn(pattern, lambda _: "\n".join(lines), text, flags=re.DOTALL)
    if not found:
        raise SystemExit(f"{page} has no place for the figures of {campaign}: {begin} ... {end}")
    page.write_text(new, "utf-8")
