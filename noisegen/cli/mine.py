"""`noisegen prepare`, `mine-wiki`, `mine-lang8` and `mine-pairs`."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import click

from noisegen.cli import common
from noisegen.data.sources import expand
from noisegen.errors import UsageError
from noisegen.mining import mine
from noisegen.mining.miner_options import Lang8Options, PairsOptions, WikiOptions
from noisegen.options import decode, listed
from noisegen.preparation import prepare as preparation
from noisegen.runs.manifest import Manifest, counted, counts_line
from noisegen.runs.progress import size

DAMAGE_SHOWN = 10  # maximum of printed lines about damaged input; the manifest has all
_ONE_REVISION = (
    "no page has more than one revision, so there are no edits to mine: take a dump with the "
    "full history, pages-meta-history, instead of pages-articles"
)

_dry_run = click.option("--dry-run", is_flag=True, help="Show input and output; write nothing")


@click.command(epilog=common.example("prepare crawl.jsonl.gz -o sentences --lang de"))
@common.run_options(preparation.PrepareOptions)
@_dry_run
def prepare(**given: Any) -> int:
    """Turn raw web or social text into clean sentences.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .parquet, also .gz .zst .bz2 .xz), or
    hf:NAME[:CONFIG][:SPLIT].
    """
    return _run(preparation.prepare, preparation.PrepareOptions, given)


@click.command("mine-wiki", epilog=common.example("mine-wiki enwiki-*.xml.bz2 -o out --lang en"))
@common.run_options(WikiOptions, skip={"skip"})
@click.option(
    "--dry-run", is_flag=True, help="Estimate output and time by a measured second; write nothing"
)
@click.option(
    "--no-skip",
    "skip",
    is_flag=True,
    flag_value=False,
    default=True,
    help="Compare whole pages: slow, to check the short cuts",
)
def mine_wiki(**given: Any) -> int:
    """Mine sentence pairs and a dictionary from wiki revisions.

    DUMP: files, folders or globs of pages-meta-history or content history (.xml, .bz2, .7z, .gz,
    .zst, .xz).
    """
    return _run(mine.mine_wiki, WikiOptions, given, tell=common.tell)


@click.command("mine-lang8", epilog=common.example("mine-lang8 lang-8.dat -o out --lang ja"))
@common.run_options(Lang8Options)
@_dry_run
def mine_lang8(**given: Any) -> int:
    """Mine a dictionary of errors from corrections of learners.

    FILE: Lang-8 entries (one JSON array per line) or M2, compressed or not; the format is detected.
    """
    return _run(mine.mine_lang8, Lang8Options, given)


@click.command("mine-pairs", epilog=common.example("mine-pairs pairs.tsv -o out --lang en"))
@common.run_options(PairsOptions)
@_dry_run
def mine_pairs(**given: Any) -> int:
    """Mine a dictionary of errors from noisy and clean text.

    PAIRS: tables as for augment (.tsv .csv .jsonl .parquet, compressed or not, hf:NAME), JSON of
    the GitHub Typo Corpus, W&I+LOCNESS or FCE, or a text file with --clean-file.
    """
    return _run(mine.mine_pairs, PairsOptions, given, tell=common.tell)


def _run(
    function: Callable[..., Manifest], options: Any, given: dict[str, Any], **callbacks: Any
) -> int:
    """Call a library function that writes a folder, print its summary, return the exit code."""
    out, as_json, dry_run = given["out"], given.pop("as_json"), given.pop("dry_run")
    values = common.run_values(given)
    if dry_run:
        decoded = decode(options, {**given, **values, "out": out or ""})
        if isinstance(decoded, WikiOptions):
            _print_estimate(decoded, as_json)
        else:
            _print_plan(decoded, as_json)
        return 0
    if not out:
        raise UsageError("name the output: -o FOLDER")
    common.refuse_memory(out)
    with common.progress() as show:
        manifest = function(**given, **values, **callbacks, progress=show)
    totals = manifest.totals
    is_wiki = manifest.kind == mine.WIKI and not manifest.missing_tasks
    common.say(manifest.damage[:DAMAGE_SHOWN], "damaged")
    if as_json:
        names = ("missing_tasks",) + ("dictionary",) * (manifest.kind != "prepare")
        after = {name: getattr(manifest, name) for name in names}
        common.print_json({"out": out, "shards": len(manifest.shards), **totals, **after})
    else:
        common.tell(f"{out}: {manifest.summary()}")
        if is_wiki:
            common.tell(_history(totals["read"]))
    if is_wiki and 0 < totals["read"].get("revisions", 0) <= totals["read"]["pages"]:
        common.hint(_ONE_REVISION)
    if manifest.kind == "prepare":
        return common.exit_code(out, counts_line("damaged rows", totals["damaged"]), as_json)
    return 3 if totals["damaged"] else 0


def _print_estimate(options: WikiOptions, as_json: bool) -> None:
    """Print how much a run with these options would write, and how long it would take."""
    from noisegen.mining.estimate import estimate
    from noisegen.runs.estimate import UNKNOWN

    expected = estimate(options.work(), options.workers)
    if as_json:
        common.print_json({"estimate": asdict(expected) if expected else None})
    else:
        lines = expected.lines() if expected else [UNKNOWN]
        common.print_lines(*lines, "nothing is written")


def _print_plan(options: Any, as_json: bool) -> None:
    """Print the input that a run would read and the folder it would write."""
    if isinstance(options, preparation.PrepareOptions):
        sizes = [item.file_size for item in expand(listed(options.sources)) if not item.skipped]
    else:
        sizes = list(options.work().sizes().values())
    total = 0 if None in sizes else sum(filter(None, sizes))
    if as_json:
        common.print_json({"inputs": len(sizes), "bytes": total or None, "out": str(options.out)})
        return
    amount = size(total) if total else "of unknown size"
    lines = f"input     {counted(len(sizes), 'file')}, {amount}", f"output    {options.out}"
    common.print_lines(*lines, "nothing is written")


def _history(counts: Mapping[str, int]) -> str:
    """Return one line: counts of the pages, revisions and edits read, and share of text skipped."""
    names = ("pages", "revisions", "edits", "null_edits", "reverts", "withheld")
    read = ", ".join(f"{name.replace('_', ' ')} {counts.get(name, 0):,}" for name in names)
    if not counts.get("text_bytes"):
        return f"read: {read}"
    unchanged = 1 - counts.get("changed_bytes", 0) / counts["text_bytes"]
    return f"read: {read}; {unchanged:.1%} of the text skipped, since no edit changed it"
