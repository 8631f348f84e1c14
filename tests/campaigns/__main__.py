"""Run campaigns: `python -m tests.campaigns --minutes 30 --seed N [NAME...]`.

Prints a table for each, and with --table writes it into a page; a trial that broke a promise is
saved as a zip file that replays it: `python -m tests.campaigns --replay FILE...`. The exit code is
1 if anything broke.
"""

import argparse
import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest has it

from campaigns.annotations import ANNOTATIONS
from campaigns.campaign import Replays, run_side_by_side
from campaigns.disk import DISK
from campaigns.equality import EQUALITY
from campaigns.kills import KILLS
from campaigns.mutations import MUTATIONS
from campaigns.page import update
from campaigns.rows import ROWS_OF_ALL_SCRIPTS

CAMPAIGNS = {
    campaign.name: campaign
    for campaign in (ANNOTATIONS, DISK, EQUALITY, KILLS, MUTATIONS, ROWS_OF_ALL_SCRIPTS)
}


def main() -> int:
    """Parse the command line and run what it asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.campaigns", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(CAMPAIGNS)}")
    parser.add_argument("--minutes", type=float, default=1.0, help="of each campaign")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: the time")
    parser.add_argument("--first", type=int, default=0, help="number of the first trial")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--saved", type=Path, default=Path("out/campaigns"), help="for what broke")
    parser.add_argument("--table", type=Path, metavar="PAGE.md", help="write the tables into it")
    parser.add_argument("--replay", type=Path, nargs="+", metavar="FILE", help="saved trials")
    options = parser.parse_args()
    if options.replay:
        with Replays(CAMPAIGNS) as replays:
            seen = {path: replays.replay(path) for path in options.replay}
        for path, what in seen.items():
            print(f"{path}: {what or 'held'}")
        return 1 if any(seen.values()) else 0
    if unknown := {*options.names} - {*CAMPAIGNS}:
        parser.error(f"no campaign {', '.join(sorted(unknown))}; known: {', '.join(CAMPAIGNS)}")
    is_broken = False
    for name in options.names or CAMPAIGNS:
        how = f"seed {options.seed}, {options.minutes:g} minutes, {options.jobs} processes"
        print(f"{name}: {how}", flush=True)
        table = run_side_by_side(
            CAMPAIGNS[name],
            options.seed,
            options.minutes * 60,
            options.saved,
            options.first,
            options.jobs,
        )
        print("\n".join([*table.lines(), table.summary()]), flush=True)
        if options.table:
            update(options.table, name, how, table)
        is_broken = is_broken or bool(table.broken)
    return int(is_broken)


if __name__ == "__main__":
    raise SystemExit(main())
