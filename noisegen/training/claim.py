"""Whose folder a run writes into: a new one, or one of ours to go on with or to replace."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from noisegen.atomic import write_text, writing
from noisegen.errors import OutputError
from noisegen.run_folder import make, refuse_full

CONFIG = "config.yaml"
OURS = ("log.jsonl", "metrics.json", "data", "checkpoints", "student", "tensorboard", "heads",
        "language", CONFIG)  # fmt: skip
_SAID = {"version", "data", "preset"}  # what config.yaml of every run says


def claim(
    out: Path, said: Mapping[str, Any], *, resume: bool, force: bool, can_resume: bool = True
) -> None:  # fmt: skip
    """Make the folder ours, or check that it is; raises OutputError.

    `said` is what config.yaml says, `can_resume` whether such runs can go on. A folder that holds
    something is refused, unless `force` allows to remove the run in it: never what only has the
    name of a part of a run, such as `data`.
    """
    if resume:
        _agree(out, said)
        return
    if make(out) and not force:
        refuse_full(out, can_resume=can_resume)
    found = [name for name in OURS if (out / name).exists()]
    if found and not (read_config(out) or {}).keys() >= _SAID:
        raise OutputError(
            f"{out} has {found[0]}, but no run of train to replace: use another folder"
        )
    _remove_all(out)
    write_text(out / CONFIG, yaml.safe_dump(dict(said), sort_keys=False, allow_unicode=True))


@contextmanager
def removed_if_not_begun(out: Path, *, ours: bool) -> Iterator[None]:
    """Leave nothing of a run that fails before its first update; where `ours`, as `claim` says."""
    try:
        yield
    except BaseException:
        if ours:
            _remove_all(out)
            with suppress(OSError):  # something else is in it
                out.rmdir()
        raise


def _agree(out: Path, said: Mapping[str, Any]) -> None:
    if not (out / CONFIG).is_file():
        raise OutputError(f"{out} has no run to resume: no {CONFIG}")
    theirs = read_config(out)
    if theirs is None:
        raise OutputError(f"{out / CONFIG} cannot be read: train anew in another folder")
    name = next((key for key in said if theirs.get(key) != said[key]), None)
    if name is not None:
        raise OutputError(
            f"{out} was trained with {name} {theirs.get(name)!r}, not {said[name]!r}; resume "
            "with the same settings, or use another folder"
        )


def read_config(out: Path) -> dict[str, Any] | None:
    """Return what a run's config.yaml says; None where it is missing or cannot be read."""
    try:
        found = yaml.safe_load((out / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return None
    return found if isinstance(found, dict) else None


def _remove_all(out: Path) -> None:
    """Remove the parts of a run, config.yaml last: until then it is known to be ours."""
    for path in (out / name for name in OURS):
        with writing(path):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
