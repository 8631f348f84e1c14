"""The loop of heads: batches to updates, the discriminator's step before each; validation."""

import math
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor, nn

from noisegen.disentangling.heads import Heads, as_layer, linear
from noisegen.disentangling.objectives import PairBatch, Parted, WeightedHeads, discrimination
from noisegen.disentangling.pair_vectors import PairVectors
from noisegen.disentangling.settings import HeadTraining
from noisegen.errors import NoisegenError
from noisegen.training.log import Sink
from noisegen.training.plan import Rows
from noisegen.training.schedule import Progress, learning_rate
from noisegen.training.trainer import LOG_EVERY

Weights = dict[str, Tensor]


class HeadLoop:
    """One run of heads on frozen vectors."""

    def __init__(
        self, settings: HeadTraining, vectors: PairVectors, training: Rows, validation: Rows,
        report: Sink,
    ) -> None:  # fmt: skip
        self.settings, self.vectors, self.report = settings, vectors, report
        self.training, self.validation = training, validation
        self.objective = WeightedHeads.parse(settings.objective)
        random = torch.Generator().manual_seed(settings.seed)
        width, labels = vectors.vectors.width, len(vectors.pairs.names)
        self.heads = Heads(width, random).to(vectors.device)
        self.classifier = linear(width, labels, random).to(vectors.device)
        self.discriminator = linear(width, labels, random).to(vectors.device)
        self.learners = nn.ModuleList([self.heads, self.classifier])
        self.optimizer = self._optimizer(self.learners)
        self.rival = self._optimizer(self.discriminator)
        self.progress, self.epoch = Progress(), 0
        self.best: dict[str, float] = {}
        self.best_heads: Weights = {}
        self._since_best = self._validated = 0
        self._window: dict[str, Tensor] = defaultdict(lambda: torch.zeros((), dtype=torch.float64))
        self._logged = Progress()

    def _optimizer(self, module: nn.Module) -> torch.optim.Optimizer:
        said = self.settings
        return torch.optim.Adam(
            module.parameters(), lr=said.lr, betas=said.betas, eps=said.eps,
            weight_decay=said.weight_decay, fused=True,
        )  # fmt: skip

    def run(self) -> Heads:
        """Train to the end, or until validation stands still; return the best heads.

        Raises NoisegenError for a gradient that is no number.
        """
        self._validate()
        began = time.monotonic()
        for batch in self._batches():
            self._update(batch)
            self.progress = replace(self.progress, seconds=time.monotonic() - began)
            if self._after_update():
                break
        if self._validated != self.progress.updates:
            self._validate()
        self.heads.load_state_dict(self.best_heads)
        return self.heads

    def _batches(self) -> Iterable[PairBatch]:
        said = self.settings
        while True:
            yield from self.vectors.epoch(self.training, said.batch_pairs, said.seed, self.epoch)
            self.epoch += 1

    def _update(self, batch: PairBatch) -> None:
        """Step the discriminator on the meaning vectors as they are, then the heads."""
        output = self._output(batch)
        for optimizer in (self.optimizer, self.rival):
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(self.settings, self.progress, len(self.training))
        if self.objective.is_adversarial:
            told = discrimination(batch, output, as_layer(self.discriminator))
            self._step(self.rival, self.discriminator, told)
            self._window["loss_discriminator"] += told.detach()
        rival = as_layer(self.discriminator, still=True)
        loss, parts = self.objective(batch, replace(output, discriminate=rival))
        self._step(self.optimizer, self.learners, loss)
        for name, value in {"loss": loss, **{f"loss_{k}": v for k, v in parts.items()}}.items():
            self._window[name] += value.detach()
        done = self.progress
        rows = len(batch.source)
        self.progress = replace(done, updates=done.updates + 1, pairs=done.pairs + rows)

    def _output(self, batch: PairBatch) -> Parted:
        meaning, language = self.heads(torch.cat([batch.source, batch.target]))
        rows, classifier = len(batch.source), as_layer(self.classifier)
        return Parted(meaning[:rows], language[:rows], meaning[rows:], language[rows:], classifier)

    def _step(self, optimizer: torch.optim.Optimizer, module: nn.Module, loss: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = float(nn.utils.clip_grad_norm_(module.parameters(), self.settings.clip))
        if not math.isfinite(norm):
            raise NoisegenError(
                f"the gradient of step {self.progress.updates + 1} is {norm}: try a lower lr"
            )
        optimizer.step()

    def _after_update(self) -> bool:
        """Log and validate where it is time to; tell whether the run is at its end."""
        step, said = self.progress.updates, self.settings
        if step % LOG_EVERY == 0 or step == 1:
            self._log()
        epoch = max(1, len(self.training) // said.batch_pairs)
        if step % min(said.validate_every, epoch) == 0:
            self._validate()
        done = self.progress.share(said, len(self.training)) >= 1
        return done or self._since_best >= said.patience

    def _log(self) -> None:
        window, now, last = dict(self._window), self.progress, self._logged
        self._window.clear()
        self._logged = now
        updates, seconds = now.updates - last.updates, max(1e-9, now.seconds - last.seconds)
        done = now.share(self.settings, len(self.training))
        self.report({
            "step": now.updates, **{name: float(value) / updates for name, value in window.items()},
            "lr": self.optimizer.param_groups[0]["lr"], "pairs": now.pairs, "epoch": self.epoch,
            "pairs_per_second": (now.pairs - last.pairs) / seconds, "done": done,
            "seconds": now.seconds, "eta": now.seconds * (1 - done) / max(done, 1e-9),
        })  # fmt: skip

    def _validate(self) -> None:
        """Measure on the pairs held out; keep the heads if their loss is the lowest so far."""
        found = self._measured()
        self._validated = self.progress.updates
        self.report({"step": self._validated, **{f"validation_{k}": v for k, v in found.items()}})
        if self.best and found["loss"] >= self.best["loss"]:
            self._since_best += 1
            return
        self.best, self._since_best = {**found, "step": self._validated}, 0
        self.best_heads = {k: v.detach().clone() for k, v in self.heads.state_dict().items()}

    @torch.no_grad()
    def _measured(self) -> dict[str, float]:
        """Return the loss and its parts, means over the pairs held out."""
        sums: dict[str, float] = defaultdict(float)
        rival = as_layer(self.discriminator)
        for batch in self.vectors.batches(self.validation, self.settings.batch_pairs):
            output = replace(self._output(batch), discriminate=rival)
            loss, parts = self.objective(batch, output)
            share = len(batch.source) / len(self.validation)
            for name, value in {"loss": loss, **parts}.items():
                sums[name] += float(value) * share
        return dict(sums)
