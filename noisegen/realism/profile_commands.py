"""What `noisegen learn` does: read pairs and write a profile, and merge profiles."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from noisegen.errors import OutputError
from noisegen.realism import checks, profile_files
from noisegen.realism.learning import MIN_COUNT, fitted, profile_of
from noisegen.realism.pairs import read_pairs, refuse_onto
from noisegen.realism.profile import Profile, merged
from noisegen.realism.profile_files import HEAD


@dataclass(frozen=True)
class Learned:
    """A profile that was written, and what is to be said about its pairs."""

    profile: Profile
    warnings: list[str]
    dropped: dict[str, int]
    damaged: list[str]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"digest": self.profile.digest, "lang": self.profile.lang,
                **self.profile.totals, "warnings": self.warnings,
                "dropped": self.dropped, "damaged": self.damaged}  # fmt: skip


def learn(
    sources: Sequence[str],
    out: str | Path,
    *,
    lang: str = "en",
    min_count: int = MIN_COUNT,
    force: bool = False,
    noisy_column: str = "noisy",
    clean_column: str = "clean",
    clean_file: str | None = None,
) -> Learned:
    """Learn from pairs (see `pairs.read_pairs`) and write the profile; raises NoisegenError."""
    check_free(out, force)
    refuse_onto(Path(out), list(sources))
    pairs = read_pairs(
        sources, noisy_column=noisy_column, clean_column=clean_column, clean_file=clean_file
    )
    profile = profile_of(pairs, lang, min_count)
    doubts = checks.warnings(pairs, lang)
    if not profile.totals["edits"]:
        doubts.append("no pair differs: the profile makes no noise")
    profile_files.save(profile, out)
    return Learned(profile, doubts, dict(sorted(pairs.dropped.items())), pairs.damaged)


def merge_profiles(sources: Sequence[str | Path], out: str | Path, force: bool = False) -> Profile:
    """Add up profiles of one language and write the sum; raises NoisegenError."""
    check_free(out, force)
    profile = fitted(merged([profile_files.load(source) for source in sources]))
    profile_files.save(profile, out)
    return profile


def check_free(out: str | Path, force: bool) -> None:
    """Raise OutputError for a folder with files; with `force` only if they are no profile."""
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; a profile is a folder")
    if not folder.exists() or not any(folder.iterdir()):
        return
    if not force:
        raise OutputError(f"{folder} is not empty; choose another folder or use --force")
    if not (folder / HEAD).is_file():
        raise OutputError(f"{folder} has files that are no profile; choose another folder")
