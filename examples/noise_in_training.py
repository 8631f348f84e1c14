"""Noise in a training loop: what fresh noise in every epoch is worth.

A small classifier learns to tell noisy sentences from clean ones by their trigrams, once with the
same noise in every epoch, once with fresh noise. Both are tested on held-out sentences.

    pip install 'noisegen[demo,hf,train]'
    python examples/noise_in_training.py                # news and encyclopedia text of gensim
    python examples/noise_in_training.py NAME_OR_FOLDER # a dataset with a column `text`
"""

import sys
from zlib import crc32

import torch
from datasets import Dataset, load_dataset
from torch.nn.functional import binary_cross_entropy_with_logits
from torch.utils.data import DataLoader

import noisegen

RECIPE, SEED = "ugc-heavy", 7
ROWS, BUCKETS, EPOCHS = 3_000, 1 << 18, 8


def load(name: str | None) -> Dataset:
    """Return sentences with ids: the noise of a row depends on its id, not on its position."""
    if name:
        data = load_dataset(name, split="train")
    else:
        from noisegen.demo.quickstart import demo_texts

        data = Dataset.from_dict({"text": demo_texts().training})
    data = data.shuffle(seed=SEED).select(range(min(ROWS, len(data))))
    return data.map(lambda row, index: {"id": index}, with_indices=True)


def trigrams(texts: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the hashed trigrams of all texts, and where each text begins."""
    rows = [
        [crc32(text[i : i + 3].encode()) % BUCKETS for i in range(max(1, len(text)))]
        for text in texts
    ]
    starts = torch.tensor([0, *map(len, rows[:-1])]).cumsum(0)
    return torch.tensor([number for row in rows for number in row]), starts


def examples(clean: list[str], noisy: list[str]) -> tuple[list[str], torch.Tensor]:
    """Return texts and labels: 1 for noisy ones, 0 for their clean form."""
    changed = [(a, b) for a, b in zip(clean, noisy, strict=True) if a != b]
    texts = [a for a, _ in changed] + [b for _, b in changed]
    return texts, torch.arange(len(texts)).ge(len(changed)).float()


def accuracy(model: torch.nn.Module, test: Dataset) -> float:
    """Return the share of texts with the right label."""
    texts, labels = examples(test["text"][:], test["noisy"][:])
    with torch.no_grad():
        return (model(*trigrams(texts)).squeeze(1).gt(0) == labels).float().mean().item()


def train(data: Dataset, test: Dataset, is_fresh: bool) -> float:
    """Train a classifier and return its accuracy."""
    torch.manual_seed(SEED)
    model = torch.nn.EmbeddingBag(BUCKETS, 1, mode="mean")
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    collator = noisegen.Collator(RECIPE, seed=SEED)
    for epoch in range(EPOCHS):
        collator.set_epoch(epoch if is_fresh else 0)
        for batch in DataLoader(data, batch_size=128, shuffle=True, collate_fn=collator):
            texts, labels = examples(batch["text"], batch["noisy"])
            loss = binary_cross_entropy_with_logits(model(*trigrams(texts)).squeeze(1), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return accuracy(model, test)


def main() -> None:
    """Train both ways and print both accuracies."""
    data = load(sys.argv[1] if sys.argv[1:] else None).train_test_split(0.25, seed=SEED)
    # Other rows, another seed, and the same noise in every run: a test set.
    mapper = noisegen.Mapper(RECIPE, seed=SEED + 1)
    test = data["test"].map(mapper, batched=True)
    for is_fresh in (False, True):
        how = "fresh noise in every epoch" if is_fresh else "the same noise in every epoch"
        print(f"{how:30} {train(data['train'], test, is_fresh):.1%} told apart")


if __name__ == "__main__":
    main()
