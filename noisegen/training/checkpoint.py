"""Checkpoints: weights, moments of the optimizer, and the state of a run.

A checkpoint is a folder with two safetensors files and state.json; reading it runs no code. The
folder gets its final name once it is complete.
"""

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
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
    """Indices from 0 of a run's next update: epoch, chunk (part of an epoch), step in the chunk."""

    epoch: int = 0
    chunk: int = 0
    step: int = 0


@dataclass(frozen=True)
class RunProgress:
    """Updates, pairs and time of a run so far; a resumed run counts its earlier sessions too."""

    updates: int = 0
    pairs: int = 0
    seconds: float = 0.0  # wall seconds since the command began
    prepared: float = 0.0  # wall seconds of preparation, before the first update
    done: float = 0.0  # finished share of the run, from 0 to 1
    # Estimated seconds to validate and to write files at the end of the run:
    # CPU seconds if the run has a CPU limit, else wall seconds.
    closing: float = 0.0
    cpu: float = 0.0  # CPU seconds of all threads since the command began
    cpu_prepared: float = 0.0  # CPU seconds of preparation, before the first update


@dataclass(frozen=True)
class Validation:
    """Figures that one validation measured, by name, and when it took place."""

    step: int  # number of updates before this validation
    seconds: float  # seconds of training before this validation, without preparation
    figures: dict[str, float]


@dataclass(frozen=True)
class State:
    """Content of state.json: all of a checkpoint but the weights and the optimizer's moments."""

    progress: RunProgress
    position: Position
    config: str  # digest of settings and data; only a run with the same digest may resume
    validations: tuple[Validation, ...]
    scaler: dict[str, int | float] = field(default_factory=dict)  # state of the scaler of fp16


def save_checkpoint(
    folder: Path, student: nn.Module, optimizer: torch.optim.Optimizer, state: State, keep: int
) -> None:
    """Write a checkpoint into `folder`; keep only the newest `keep` checkpoints there.

    A checkpoint is named step-NNNNNNN, after the number of updates so far. Raises OutputError.
    """
    path = folder / f"step-{state.progress.updates:07d}"
    with writing_weights(path):
        remove(path, *folder.glob("*.tmp"))
        with atomic_folder(path) as temporary:
            save_weights(student, temporary / "model.safetensors")
            moments = {}
            for name, weight in student.named_parameters():
                if weight.requires_grad:
                    for key, value in optimizer.state[weight].items():
                        moments[f"{name}|{key}"] = value.detach().cpu().contiguous()
            save_tensors(moments, temporary / "optimizer.safetensors")
            (temporary / "state.json").write_text(json.dumps(asdict(state)))
        sync(folder)
        remove(*checkpoints(folder)[:-keep])


@contextmanager
def writing_weights(path: Path) -> Iterator[None]:
    """Turn disk errors in the with block into an OutputError of one line that names `path`.

    This includes the SafetensorError that safetensors raises for a full disk.
    """
    with writing(path):
        try:
            yield
        except SafetensorError as error:
            code = re.search(r"os error (\d+)", str(error))  # SafetensorError has no errno
            number = int(code[1]) if code else errno.EIO
            raise OSError(number, os.strerror(number)) from error


def save_weights(student: nn.Module, path: Path) -> None:
    """Write the weights of a network. Weights that two layers share are written for both layers."""
    state = student.state_dict()
    save_tensors({name: value.detach().cpu().clone() for name, value in state.items()}, path)


def save_best(student: nn.Module, folder: Path) -> None:
    """Write the weights of a network to best.safetensors in `folder`; raises OutputError."""
    folder.mkdir(parents=True, exist_ok=True)
    with writing_weights(folder / "best.safetensors"):
        save_weights(student, folder / "best.tmp")
        sync(folder / "best.tmp")
        (folder / "best.tmp").replace(folder / "best.safetensors")


def load_weights(student: nn.Module, path: Path) -> None:
    """Load weights that `save_weights` wrote into a network; raises OutputError."""
    try:
        student.load_state_dict(load_file(path))
    except (OSError, RuntimeError, SafetensorError) as error:
        raise OutputError(
            f"cannot read {path}: {str(error).splitlines()[0]}; train again in another folder"
        ) from error


def checkpoints(folder: Path) -> list[Path]:
    """Return the folders of complete checkpoints in `folder`, oldest first."""
    return sorted(path for path in folder.glob("step-*") if path.suffix != ".tmp")


def load_checkpoint(
    folder: Path, student: nn.Module, optimizer: torch.optim.Optimizer, config: str
) -> State:
    """Load the newest checkpoint in `folder` into network and optimizer; return its State.

    `config` is the digest of this run's settings and data. Raises OutputError if the checkpoint is
    damaged, or if its digest differs from `config`.
    """
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
