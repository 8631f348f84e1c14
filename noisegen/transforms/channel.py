"""Noise learned from real pairs: a profile's chances, drawn for each row."""

import warnings
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from noisegen.errors import UsageError
from noisegen.registry import Kernel, Settings, kernel

if TYPE_CHECKING:
    from noisegen.realism.channel_model import Channel
    from noisegen.realism.profile import Profile


def _files(settings: Settings, values: Mapping[str, Any]) -> list[Path]:
    profile = values.get("profile")
    return sorted(path for path in Path(profile).glob("*") if path.is_file()) if profile else []


@kernel("channel", _files, lambda: ["*"], keeps_meaning=False)
def channel(settings: Settings, *, profile: str | None = None, rate: float = 1.0) -> Kernel:
    """Make noise as learned from real pairs (see learn): 'I believe it' -> 'i beleive it'.

    `rate` scales all chances of the profile; 1 leaves them. Warns of a profile of another language.
    Raises UsageError without a profile, SourceError for one that cannot be read.
    """
    if not profile:
        raise UsageError(
            "channel needs a profile: learn one with noisegen learn PAIRS -o PROFILE, "
            "and give it as channel:profile=PROFILE"
        )
    from noisegen.realism.channel_kernel import ChannelKernel

    found, compiled = _loaded(Path(profile).resolve(), _written(profile))
    if found.lang != settings.lang:
        told = f"profile {profile} is of language {found.lang!r}, the text of {settings.lang!r}"
        warnings.warn(told, stacklevel=2)
    return ChannelKernel(compiled, found.factors, settings.rates(rate))


def _written(profile: str) -> tuple[int, ...]:
    """Return when the files of a profile were written: one learned anew is read anew."""
    return tuple(path.stat().st_mtime_ns for path in _files(Settings(), {"profile": profile}))


@lru_cache(maxsize=8)
def _loaded(folder: Path, written: tuple[int, ...]) -> tuple["Profile", "Channel"]:
    from noisegen.realism import profile_files
    from noisegen.realism.channel_model import compiled

    profile = profile_files.load(folder)
    return profile, compiled(profile)
