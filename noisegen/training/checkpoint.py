"""Checkpoints: weights, moments of the optimiser and the position, written under their name last.

A checkpoint is a folder of two safetensors files and state.json; nothing in it is executed.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from noisegen.encoders.stored import save_tensors
from noisegen.errors import OutputError
from noisegen.runs.atomic import atomic_folder, remove, sync, writing


@dataclass(frozen=True)
class Position:
    """The position of a run: step `step` of this chunk of this epoch comes next."""

    epoch: int = 0
    chunk: int = 0
    step: int = 0


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run: updates, pairs, and the share of the run that is done.

    `seconds` count from the start of the command, `prepared` those of them before the first update,
    `cpu` and `cpu_prepared` the same in CPU time; of a resumed run all include the earlier
    sessions. `closing` are the seconds that its end takes as far as measured, of the limit's kind:
    the last validation, and saving.
    """

    updates: int = 0
    pairs: int = 0
    seconds: float = 0.0
    prepared: float = 0.0
    done: float = 0.0
    closing: float = 0.0
    cpu: float = 0.0
    cpu_prepared: float = 0.0


@dataclass(frozen=True)
class Validation:
    """The figures of a validation, after so many updates and seconds of training."""

    step: int
    seconds: float
    figures: dict[str, float]


@dataclass(frozen=True)
class State:
    """The position of a run, besides weights and moments."""

    progress: RunProgress
    position: Position
    best: float | None  # the lowest validation loss so far
    config: str  # digest of the settings and the data
    validations: tuple[Validation, ...] = ()


def save_checkpoint(
    folder: Path, student: nn.Module, optimizer: torch.optim.Optimizer, state: State, keep: int
) -> None:
    """Write step-NNNNNNN and remove all but the `keep` newest; raises OutputError."""
    path = folder / f"step-{state.progress.updates:07d}"
    with writing_weights(path):
        remove(path, *folder.glob("*.tmp"))
        with atomic_folder(path) as temporary:
            save_weights(student, temporary / "model.safetensors")
            moments = {
                f"{name}|{key}": value.detach().cpu().contiguous()
                for name, weight in student.named_parameters()
                if weight.requires_grad
                for key, value in optimizer.state[weight].items()
            }
            save_tensors(moments, temporary / "optimizer.safetensors")
            (temporary / "state.json").write_text(json.dumps(asdict(state)))
        sync(folder)
        remove(*checkpoints(folder)[:-keep])


@contextmanager
def writing_weights(path: Path) -> Iterator[None]:
    """Turn what a full disk raises, safetensors' own error too, into an OutputError of one line."""
    with writing(path):
        try:
            yield
        except SafetensorError as error:
            code = re.search(r"os error (\d+)", str(error))  # it says the number in its text alone
            number = int(code[1]) if code else errno.EIO
            raise OSError(number, os.strerror(number)) from error


def save_weights(student: nn.Module, path: Path) -> None:
    """Write the weights alone; tied ones are cloned."""
    save_tensors(
        {name: value.detach().cpu().clone() for name, value in student.state_dict().items()}, path
    )


def save_best(student: nn.Module, folder: Path) -> None:
    """Write best.safetensors; raises OutputError."""
    folder.mkdir(parents=True, exist_ok=True)
    with writing_weights(folder / "best.safetensors"):
        save_weights(student, folder / "best.tmp")
        sync(folder / "best.tmp")
        (folder / "best.tmp").replace(folder / "best.safetensors")


def load_weights(student: nn.Module, path: Path) -> None:
    """Load what save_weights wrote; raises OutputError."""
    try:
        student.load_state_dict(load_file(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise OutputError(
            f"cannot read {path}: {str(error).splitlines()[0]}; train again in another folder"
        ) from error


def checkpoints(folder: Path) -> list[Path]:
    """Return the complete checkpoints, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.suffix != ".tmp")


def load_checkpoint(
    folder: Path, student: nn.Module, optimizer: torch.optim.Optimizer, config: str
) -> State:
    """Load the newest checkpoint; raises OutputError if it is damaged, or another run's."""
    path = max(checkpoints(folder))
    try:
        state = msgspec.convert(json.loads((path / "state.json").read_text()), State)
        if state.config != config:
            raise OutputError(
                f"{path} was made with other settings or data; resume with the same ones, or use "
                "another folder"
            )
        student.load_state_dict(load_file(path / "model.safetensors"))
        weights = dict(student.named_parameters())
        for name, value in load_file(path / "optimizer.safetensors").items():
            weight, _, key = name.rpartition("|")
            optimizer.state[weights[weight]][key] = value.to(weights[weight].device)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = str(error).splitlines()[0]
        raise OutputError(
            f"cannot read checkpoint {path}: {reason}; remove that folder to resume from the "
            "previous one"
        ) from error
    return state
