"""What every training run is asked to do, whatever it trains: length, steps, checks of values."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, ClassVar

from noisegen.errors import UsageError

Check = tuple[Callable[[Any], bool], str]  # what a value must be, and the same in words
LENGTHS = ("epochs", "steps", "time_limit")

AT_LEAST_ONE: Check = (lambda v: v >= 1, "at least 1")
ABOVE_ZERO: Check = (lambda v: 0 < v < inf, "above 0 and finite")
ZERO_OR_MORE: Check = (lambda v: 0 <= v < inf, "0 or more, and finite")
TEMPERATURE: Check = (lambda v: 1e-3 <= v < inf, "at least 0.001, and finite")
LENGTH: Check = (lambda v: v is None or 0 < v < inf, "above 0 and finite")


def one_of(*names: str | None) -> Check:
    """Return the check for one of these words."""
    *some, last = (name for name in names if name is not None)
    return lambda v: v in names, " or ".join([*filter(None, [", ".join(some)]), last])


@dataclass(frozen=True)
class RunSettings:
    """What the settings of every method have.

    The length is `epochs`, `steps` (updates) or `time_limit` (seconds, or 90s, 10m, 2h), in which
    the learning rate then falls to 0 (`schedule` linear) or stays (`constant`).
    """

    checks: ClassVar[Mapping[str, Check]] = {
        **dict.fromkeys(LENGTHS, LENGTH),
        **dict.fromkeys(("lr", "eps"), ABOVE_ZERO),
        **dict.fromkeys(("warmup", "weight_decay"), ZERO_OR_MORE),
        **dict.fromkeys(("validation_rows", "validate_every", "keep"), AT_LEAST_ONE),
        "schedule": one_of("linear", "constant"),
        "betas": (lambda v: all(0 <= beta < 1 for beta in v), "two numbers from 0 to below 1"),
        "clip": (lambda v: v > 0, "above 0"),  # inf clips nothing
        # torch takes 64 bits, and dropout multiplies it
        "seed": (lambda v: 0 <= v < 2**32, "from 0 to below 2**32"),
    }

    preset: str = "quickstart"
    epochs: float | None = None
    steps: int | None = None
    time_limit: float | None = None
    lr: float = 1e-4
    warmup: int = 40  # updates
    schedule: str = "linear"
    betas: tuple[float, float] = (0.9, 0.98)
    eps: float = 1e-8
    weight_decay: float = 0.0
    clip: float = 1.0
    validation_rows: int = 500
    validate_every: int = 500  # updates
    keep: int = 3  # checkpoints
    seed: int = 0

    def __post_init__(self) -> None:
        for name, (holds, meant) in self.checks.items():
            if not holds(getattr(self, name)):
                raise UsageError(f"{name} {getattr(self, name)!r} is not {meant}")
        lengths = [name for name in LENGTHS if getattr(self, name) is not None]
        if len(lengths) != 1:
            given = " and ".join(lengths) or "none of them"
            raise UsageError(f"give one of --epochs, --steps, --time-limit (not {given})")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as they stand in config.yaml."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in asdict(self).items()
        }
