"""`noisegen learn`, `fit`, `calibrate` and `realism`."""

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from noisegen.cli import common
from noisegen.cli.parameters import click_options
from noisegen.errors import UsageError
from noisegen.realism.calibrate import CalibrateOptions
from noisegen.realism.compare import CompareOptions
from noisegen.realism.fit import FitOptions
from noisegen.realism.learn import LearnOptions
from noisegen.realism.unpaired import PostsOptions
from noisegen.text.resources import DEFAULT_RECIPE

if TYPE_CHECKING:
    from noisegen.noising.profile import Profile

PATH = click.Path(path_type=Path)
WORKERS = ("workers", "executor")
ROWS_PRINTED = 8  # posts that `realism --posts` prints, each beside a noisy text
# Options of `realism` that have no use with --posts
PAIRS_ONLY = (
    *("pairs", "synthetic", "strength", "clean_file", "noisy_column", "clean_column"),
    *WORKERS,
)
_FILE = click.Path(dir_okay=False, path_type=Path)
_recipe_file = click.option(
    "-o",
    "--out",
    type=_FILE,
    metavar="RECIPE.yaml",
    help="File for the new recipe (default: print it)",
)


class _DefaultGroup(click.Group):
    """The command group `learn`: 'learn PAIRS' is short for 'learn from PAIRS'."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Insert 'from' before a first argument that is neither a command of `learn` nor --help."""
        if args and args[0] not in (*self.commands, "-h", "--help"):
            args = ["from", *args]
        return super().parse_args(context, args)


@click.group(cls=_DefaultGroup, epilog=common.example("learn pairs.tsv -o profile --lang en"))
def learn() -> None:
    """Learn a noise profile from real noisy and clean text.

    PAIRS: tables, M2 files, folders of a run, or a text file with --clean-file. A profile serves
    the transform channel: -t channel:profile=PROFILE.

    'noisegen learn PAIRS... -o PROFILE' is short for 'noisegen learn from PAIRS... -o PROFILE'.
    """


@learn.command("from", epilog=common.example("learn pairs.tsv -o profile"))
@click_options(LearnOptions, skip=WORKERS)
@common.worker_options
@common.output
def from_(out: str, as_json: bool, **options: Any) -> int:
    """Learn a profile from pairs (the default command).

    For a path with the name of a command, write ./show.
    """
    from noisegen.realism.learn import learn as learn_from

    learned = learn_from(out=out, **options)
    common.say([*learned.warnings, *(f"damaged: {line}" for line in learned.damaged)], "warning")
    text = f"{out}: {_size(learned.profile)}"
    common.print_done(text, {"out": out, **learned.to_dict()}, as_json)
    return 3 if learned.damaged else 0


def _size(profile: "Profile") -> str:
    from noisegen.runs.manifest import counted

    totals = profile.totals
    return f"{counted(totals['edits'], 'edit')} in {counted(totals['pairs'], 'pair')}"


@learn.command(epilog=common.example("learn show profile -n 30"))
@click.argument("profile", type=PATH)
@click.option(
    "-n",
    "--limit",
    metavar="N",
    type=click.IntRange(1),
    default=15,
    show_default=True,
    help="Maximum rows per table",
)
@common.output
def show(profile: Path, limit: int, as_json: bool) -> None:
    """Show a profile: words, letters, edits per row, habits."""
    from noisegen.noising.profile import load
    from noisegen.realism.report_blocks import profile_blocks, profile_to_dict
    from noisegen.report.terminal import show as show_blocks

    counts = load(profile)
    if as_json:
        common.print_json(profile_to_dict(counts, limit))
    else:
        show_blocks(profile_blocks(counts, limit), common.terminal())


@learn.command(epilog=common.example("learn merge essays posts -o both"))
@click.argument("profiles", type=PATH, nargs=-1, required=True, metavar="PROFILE...")
@click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False),
    metavar="PROFILE",
    required=True,
    help="Folder for the merged profile",
)
@click.option("--force", is_flag=True, help="Overwrite the profile in this folder")
@common.output
def merge(profiles: tuple[Path, ...], out: str, force: bool, as_json: bool) -> None:
    """Merge profiles of one language."""
    from noisegen.realism.learn import merge_profiles

    merged = merge_profiles(profiles, out, force)
    content = {"out": out, "digest": merged.digest, "lang": merged.lang, **merged.totals}
    common.print_done(f"{out}: {_size(merged)}", content, as_json)


@click.command(epilog=common.example("calibrate --recipe fing --target-cer 0.05 -o five.yaml"))
@click_options(CalibrateOptions, skip=WORKERS)
@common.worker_options
@common.settings
@_recipe_file
@common.overwrite
@common.output
def calibrate(
    source: tuple[str, ...],
    settings: tuple[str, ...],
    out: Path | None,
    force: bool,
    as_json: bool,
    **options: Any,
) -> int:
    """Scale a recipe to a target error rate.

    The rate is measured on SOURCE, clean text (default: the bundled demo text).
    """
    from noisegen.realism.calibrate import calibrate as run
    from noisegen.realism.report_blocks import calibration
    from noisegen.report.terminal import show as show_blocks

    if out:
        common.check_file(out, source, force)
        if out.suffix not in (".yaml", ".yml"):
            raise UsageError(f"-o {str(out)!r}: the name of a recipe file ends in .yaml")
    with common.progress("measuring") as show:
        calibrated = run(
            source=source,
            values=common.read_settings(settings),
            name=out.stem if out else None,
            tell=common.hint,
            progress=show,
            **options,
        )
    common.say(calibrated.warnings, "warning")
    if out:
        calibrated.save(out)
    if as_json:
        common.print_json(calibrated.to_dict())
    elif not out:
        click.echo(calibrated.to_yaml(), nl=False)
    if not (common.is_quiet() or as_json):
        show_blocks([calibration(calibrated)], common.terminal(stderr=True))
    if out:
        common.tell(f"wrote {out}; use it: noisegen augment TEXT -o OUT --recipe {out}")
    return 3 if calibrated.dropped else 0


@click.command(
    epilog=common.example("fit posts.txt -o mine.yaml --clean news.txt --report fit.html")
)
@click_options(FitOptions, skip=("out", "force"))
@_recipe_file
@click.option("--report", type=_FILE, metavar="REPORT.html", help="Also write a page with plots")
@common.overwrite
@common.output
def fit(out: Path | None, report: Path | None, force: bool, as_json: bool, **options: Any) -> int:
    """Fit a recipe to noisy posts, without pairs.

    POSTS: text as people wrote it. The new recipe extends another one: it has other strengths of
    the steps, and other weights of the writers.
    """
    from noisegen.realism.fit import fit as run
    from noisegen.realism.fit_blocks import fit_page, fit_sections
    from noisegen.report.terminal import show as show_blocks
    from noisegen.runs.atomic import write_text

    if report:
        files = filter(None, (options["extends"], out))
        common.check_file(report, [*options["posts"], *options["clean"], *files])
    with common.progress() as show:
        fitted = run(out=out, force=force, progress=show, **options)
    common.say(fitted.warnings, "warning")
    if report:  # before the terminal: a reader such as head may close it early
        write_text(report, fit_page(fitted))
    if as_json:
        common.print_json(fitted.to_dict())
    elif not out:
        click.echo(fitted.to_yaml(), nl=False)
    if not (common.is_quiet() or as_json):
        show_blocks(fit_sections(fitted), common.terminal(stderr=True))
    if report:
        common.tell(f"wrote {report}")
    if out:
        common.tell(f"wrote {out}; use it: noisegen augment TEXT -o OUT --recipe {out}")
    return 3 if fitted.dropped else 0


@click.command(epilog=common.example("realism --pairs pairs.tsv --recipe mix_all -o report.html"))
@click_options(CompareOptions, skip=WORKERS, optional=("pairs",))
@click_options(PostsOptions, only=("posts", "clean", "text_column"), optional=("posts", "clean"))
@common.worker_options
@click.option("-o", "--out", type=_FILE, metavar="REPORT.html", help="Also write a page with plots")
@common.output
def realism(out: Path | None, as_json: bool, **options: Any) -> int:
    """Compare synthetic noise with real noise.

    The comparison has kinds and positions of edits, and how well a classifier tells synthetic from
    real noise (AUC). With --posts and --clean no pairs are needed: it has habits that can be
    counted, and a classifier that sees no topics. In Python these are noisegen.compare and
    noisegen.compare_posts.
    """
    from noisegen.realism.compare import compare
    from noisegen.realism.report_blocks import comparison_page, comparison_sections
    from noisegen.realism.unpaired import compare_posts
    from noisegen.realism.unpaired_blocks import unpaired_page, unpaired_sections
    from noisegen.report.terminal import show as show_blocks
    from noisegen.runs.atomic import write_text

    files = [options["clean_file"], options["recipe"]]
    sources = [options[name] or () for name in ("pairs", "posts", "clean", "synthetic")]
    common.check_recipe()
    if out:
        common.check_file(out, [*itertools.chain(*sources), *filter(None, files)])
    posts, clean, column = (options.pop(name) for name in ("posts", "clean", "text_column"))
    found: Any
    page: Any
    with common.progress() as show:
        if posts or clean:
            common.refuse(PAIRS_ONLY, "{} does not go with --posts")
            if not (posts and clean):
                raise UsageError("--posts and --clean belong together")
            shared = {name: options[name] for name in ("transforms", "lang", "seed", "limit")}
            shared |= {"recipe": options["recipe"] or DEFAULT_RECIPE, "text_column": column}
            found = compare_posts(posts, clean, progress=show, **shared)
            sections, page = unpaired_sections(found, ROWS_PRINTED), unpaired_page
        else:
            if not options["pairs"]:
                raise UsageError("give --pairs, or --posts and --clean")
            found = compare(progress=show, **options)
            sections, page = comparison_sections(found), comparison_page
    common.say(found.warnings, "warning")
    if out:  # before the terminal: a reader such as head may close it early
        write_text(out, page(found))
    if as_json:
        common.print_json(found.to_dict())
    else:
        show_blocks(sections, common.terminal())
    if out:
        common.tell(f"wrote {out}")
    common.say(found.damaged, "damaged")
    return 3 if found.damaged else 0
