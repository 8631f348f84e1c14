"""The tasks that are known, what each measures, and how RCP fine-tunes on them."""

from dataclasses import dataclass

SEEDS = (1234, 1000, 2000, 3000, 4321)  # RCP's


@dataclass(frozen=True)
class Task:
    """What the rows of a task have, and its metrics."""

    name: str
    has_tags: bool
    has_label: bool
    metrics: tuple[str, ...]

    @property
    def shown(self) -> tuple[str, ...]:
        """The metrics that tables show."""
        return tuple(name for name in self.metrics if name != "hallucinated_tokens")


@dataclass(frozen=True)
class FineTuning:
    """How RCP fine-tunes on one corpus (its section on experiments, and its launchers).

    `epochs_augmented` and `growth` (how many times as large the data then is) are for task-time
    augmentation. The learning rate falls linearly to 0. `max_length` is in pieces. For WikiANN and
    XNLI the paper gives no augmentation and no length: these are ours.
    """

    epochs: float
    epochs_augmented: float
    growth: float
    lr: float
    max_length: int


METRICS = {
    "intent_accuracy": "intent accuracy %",
    "slot_f1": "slot F1 %",
    "ner_f1": "NER F1 %",
    "accuracy": "accuracy %",
    "hallucinated_spans": "hallucinated spans",
    "hallucinated_tokens": "hallucinated tokens",
}
_HALLUCINATED = ("hallucinated_spans", "hallucinated_tokens")
TASKS = {
    task.name: task
    for task in (
        Task("intent-slots", True, True, ("intent_accuracy", "slot_f1", *_HALLUCINATED)),
        Task("ner", True, False, ("ner_f1", *_HALLUCINATED)),
        Task("nli", False, True, ("accuracy",)),
    )
}
FINE_TUNING = {
    "snips": FineTuning(40, 10, 5.5, 1e-4, 50),
    "atis": FineTuning(80, 20, 3.5, 1e-4, 50),
    "wikiann": FineTuning(3, 3, 2.0, 2e-5, 128),
    "xnli": FineTuning(5, 5, 2.0, 2e-5, 128),
}
# Share of tokens that RCP noises, chosen by people's judgement of how real the noise looks.
NOISE_RATES = {"fr": 0.1, "de": 0.2, "es": 0.1, "hi": 0.05, "tr": 0.1}
NLI_NOISE_RATE = 0.05
