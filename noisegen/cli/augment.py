"""`noisegen augment`."""

from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.augmentation import NOISE, AugmentOptions, Request
from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.errors import UsageError, one_line
from noisegen.options import decode
from noisegen.text.resources import DEFAULT_RECIPE

if TYPE_CHECKING:
    from noisegen.augmentation.plan import AugmentPlan
    from noisegen.runs.manifest import Manifest


_MANY = 20  # rows; if so many stay clean, it is hardly by chance
_NOTHING = "no row changed: the texts lack what this noise changes, or its rates are low"
_KNOWN = "no row changed: normalize knows all words, or the noisy ones are on no list"
_LOOK = "; see what a dictionary holds: noisegen dictionary show DICTIONARY"


@click.command(epilog=common.example("augment news.txt -o out --seed 7"))
@click.argument("sources", nargs=-1, metavar="SOURCE...")
@click.option(
    "-o",
    "--out",
    metavar="FOLDER|FILE|-",
    help="Folder for the shards, a file such as noisy.jsonl, or - for standard output",
)
@common.recipe_options(AugmentOptions)
@common.run_options(AugmentOptions, skip={"sources", "out", *NOISE})
@click.option(
    "--from",
    "manifest",
    type=click.Path(),
    metavar="MANIFEST",
    help="Make the rows of an earlier run again",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Estimate rows, shards, bytes and time, and show ten rows; write nothing",
)
def augment(
    out: str | None, manifest: str | None, dry_run: bool, as_json: bool, **given: Any
) -> int:
    """Write clean/noisy pairs as Parquet shards, or one noisy file.

    SOURCE: files, folders, globs or - (.txt .tsv .csv .jsonl .json .conll .conllu .iob2 .parquet
    .arrow, also .gz .zst .bz2 .xz), folders that datasets saved, URLs such as
    s3://bucket/news.txt, or hf:NAME[:CONFIG][:SPLIT].

    One file instead of shards: -o noisy.jsonl keeps rows and columns; -o - streams.
    """
    earlier = _earlier(manifest)
    if not (earlier or given["sources"]):
        raise UsageError("name at least one SOURCE (or --from MANIFEST)")
    run = common.run_values(given) | {"to": given.pop("to"), "out": out or ""}
    options = _options_again(earlier, given, run) if earlier else _options(given, run)
    return _dry_run(options, as_json) if dry_run else _make(options, as_json, earlier)


@click.command(epilog=common.example("normalize posts.txt -o clean.txt"))
@click.argument("sources", nargs=-1, metavar="SOURCE...", required=True)
@click.option(
    "-o",
    "--out",
    required=True,
    metavar="FOLDER|FILE|-",
    help="Folder for the shards, a file such as clean.jsonl, or - for standard output",
)
@click.option(
    "--recipe",
    default=DEFAULT_RECIPE,
    metavar="NAME|FILE.yaml",
    help="Noise that is undone, such as a recipe that fit made (default: ugc)",
)
@click.option("--clean", metavar="SOURCE", help="Clean text like that which is meant")
@click.option("--pairs", metavar="SOURCE", help="Real pairs of noisy and clean text to learn from")
@click.option("--words-only", is_flag=True, help="Leave capitals and last stops as they are")
@click_options(AugmentOptions, only={"lang", "protect"})
@common.run_options(
    AugmentOptions,
    skip={"sources", "out", *NOISE, "copies", "with_clean", "strength", "group_by"},
)
def normalize(
    recipe: str,
    clean: str | None,
    pairs: str | None,
    words_only: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Write noisy text as edited text is written.

    This is the way back from noise. SOURCE and outputs are as in `augment`, but shards have the
    given text as `noisy` and the result as `clean`. The same text always gives the same result.
    Unknown words stay as they are.
    """
    values = {"recipe": recipe, "clean": clean, "pairs": pairs, "style": not words_only}
    settings = {f"normalize.{name}": value for name, value in values.items() if value is not None}
    chosen = {"transforms": ("normalize",), "values": settings, "to": given.pop("to")}
    run = common.run_values(given)
    return _make(decode(AugmentOptions, {**given, **run, **chosen}), as_json)


def _make(options: AugmentOptions, as_json: bool, earlier: "Manifest | None" = None) -> int:
    """Run `augment` or `normalize` with checked options, and return the exit code."""
    from noisegen.augmentation.augment import make
    from noisegen.augmentation.plan import make_plan
    from noisegen.runs.manifest import counts_line
    from noisegen.runs.store import output_path

    out = str(options.out)
    if not out:
        raise UsageError("name the output: -o FOLDER, -o FILE or -o -")
    common.refuse_memory(out)
    if out == "-" and as_json:
        raise UsageError("--json and -o - both write to standard output: choose one")
    plan = make_plan(options, output_path(out))
    _warn(plan, earlier)
    with common.progress() as show:
        written = make(plan, replace(options, progress=show))
    _tell(written, plan, out, as_json)
    damaged = counts_line("dropped or damaged", written.totals["dropped"])
    return common.exit_code(_place(out), damaged, as_json)


def _place(out: str) -> str:
    return "standard output" if out == "-" else out


def _tell(written: "Manifest", plan: "AugmentPlan", out: str, as_json: bool) -> None:
    """Print the result of a run, and lines on its annotations and the encoding of its input."""
    from noisegen.data.formats.registry import advice_on_file

    common.say(written.totals.get("notes", ()), "note")
    if as_json:
        common.print_json({"out": out, "shards": len(written.shards), **written.totals})
    else:
        common.tell(f"{_place(out)}: {written.summary()}")
    common.say(written.totals.get("warnings", ()), "warning")
    is_mined = any(used["transform"] == "wiki" for used in written.dictionaries)
    if written.totals["rows"] >= (1 if is_mined else _MANY) and not written.totals["changed"]:
        why = _KNOWN if plan.job.is_way_back else _NOTHING
        common.hint(why + (_LOOK if is_mined else ""))
    if "not_utf8" in written.totals["dropped"]:
        files = (item for item in plan.inputs if not item.encoding)
        advice = ((item.path, advice_on_file(item, "--encoding")) for item in files)
        common.say([f"{path}: {what}" for path, what in advice if what], "hint")


def _earlier(manifest: str | None) -> "Manifest | None":
    """Return the manifest of the earlier run that --from names, or None without --from."""
    from noisegen.runs.manifest import Manifest

    return Manifest.load(manifest, "augment") if manifest else None


def _options(given: dict[str, Any], run: Mapping[str, Any]) -> AugmentOptions:
    """Return the options of a run without --from."""
    given["values"] = common.read_settings(given.pop("settings"))
    return decode(AugmentOptions, {**given, **run})


def _options_again(
    earlier: "Manifest", given: dict[str, Any], run: Mapping[str, Any]
) -> AugmentOptions:
    """Return options that reproduce the rows of an earlier run, from its manifest.

    Raises UsageError if the user gave an option that would change the rows.
    """
    from noisegen.augmentation.plan import values_of

    fixed = {field.name for field in fields(Request)} | {"settings"}
    if earlier.options.get("code"):
        fixed.remove("code")
    common.refuse(fixed, "--from makes the same rows again: leave out {}")
    values = values_of(earlier, given["code"])
    return decode(AugmentOptions, {**values, **run}, label=lambda name: f"manifest: {name}")


def _warn(plan: "AugmentPlan", earlier: "Manifest | None") -> None:
    """Print the skipped input files, the hints, and any change since the earlier run."""
    from noisegen.runs.folder import difference

    for skipped in plan.skipped:
        common.tell(f"skipped {one_line(skipped)}")
    common.say(plan.hints, "hint")
    if earlier:
        config = {name: getattr(earlier, name) for name in plan.config}
        if changed := difference(config, plan.config):
            common.say([f"the rows may differ, for this has changed: {changed}"], "hint")


def _dry_run(options: AugmentOptions, as_json: bool) -> int:
    """Print the plan, an estimate and ten noisy rows; return the exit code."""
    from noisegen.augmentation.augment import estimate_of
    from noisegen.augmentation.one_file import target_of
    from noisegen.augmentation.plan import make_plan
    from noisegen.augmentation.preview import describe, examples_of
    from noisegen.augmentation.rendering import render

    planned = make_plan(options, Path("out"))
    out = str(options.out)
    target = target_of(out, options.to, planned) if out else None
    examples = examples_of(replace(options, copies=1), 10, common.hint)  # copies may be many
    expected = estimate_of(planned, options.workers)
    expected = replace(expected, shards=0) if expected and target else expected
    plan = describe(planned, expected)
    if as_json:
        rows = [example.to_dict() for example in examples]
        estimate = asdict(expected) if expected else None
        common.print_json({"plan": plan, "estimate": estimate, "rows": rows})
    else:
        console = common.terminal()
        console.print(plan, markup=False, highlight=False, soft_wrap=True)
        render(examples, console)
    return 0
