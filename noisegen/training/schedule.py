"""The learning rate over a run, and how far the run is."""

from dataclasses import dataclass

from noisegen.training.run_settings import RunSettings


@dataclass(frozen=True)
class Progress:
    """What was done of a run: updates, pairs, and seconds of training."""

    updates: int = 0
    pairs: int = 0
    seconds: float = 0.0

    def share(self, settings: RunSettings, rows: int) -> float:
        """Return how much of the run is done, from 0 to 1; `rows` are the pairs of an epoch."""
        if settings.steps is not None:
            done = self.updates / settings.steps
        elif settings.epochs is not None:
            done = self.pairs / (settings.epochs * rows)
        else:
            done = self.seconds / (settings.time_limit or 1)
        return min(1.0, done)


def learning_rate(settings: RunSettings, progress: Progress, rows: int) -> float:
    """Return the rate of the next update: a linear warm-up, then a linear fall or none."""
    warm = min(1.0, (progress.updates + 1) / max(1, settings.warmup))
    fall = 1 - progress.share(settings, rows) if settings.schedule == "linear" else 1.0
    return settings.lr * min(warm, 1.0) * fall
