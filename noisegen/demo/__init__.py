"""The quickstart, which runs offline: its texts and its teacher come from installed packages."""

from dataclasses import dataclass
from typing import Annotated

from noisegen.options import internal, option
from noisegen.runs.options import Device
from noisegen.runs.progress import Show, silent
from noisegen.training.settings import Tell


@dataclass(frozen=True)
class QuickstartOptions:
    """Options of `noisegen quickstart`."""

    out: Annotated[
        str, option("Folder for texts, pairs, run and report", "-o", "--out", metavar="DIR")
    ]
    seed: Annotated[int, option("Seed of noise, batches and new weights", ge=0)] = 0
    time_limit: Annotated[
        str, option("Time limit for training, teacher's vectors and saving included", metavar="8m")
    ] = "8m"
    device: Device = "auto"
    force: Annotated[bool, option("Overwrite the quickstart in this folder")] = False
    tell: Annotated[Tell, internal()] = silent
    progress: Annotated[Show, internal()] = silent
