"""Vectors of words from their characters: the CNN of CharacterBERT, once a distinct word."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from noisegen.encoders.character_words import CHARACTER_KINDS, CHARACTERS, WordTable

# CharacterBERT's, from ELMo: width of a window and how many filters have it.
FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1_024))
CHARACTER_WIDTH = 16
HIGHWAYS = 2
_FILTERS = sum(count for _, count in FILTERS)
_WIDEST = max(width for width, _ in FILTERS)
SHORT = 16  # characters that words of up to 7 bytes need, which most are


class CharacterCNN(nn.Module):
    """Stands where a network has its embeddings of words.

    Takes ids of `table` (rows, words) and gives (rows, words, hidden): convolutions of several
    widths over the characters, their maximum, two highway layers and a projection.
    """

    def __init__(self, hidden: int, table: WordTable, spread: float = 0.02) -> None:
        super().__init__()
        self.table = table
        self.characters = nn.Embedding(CHARACTER_KINDS, CHARACTER_WIDTH)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(CHARACTER_WIDTH, count, width) for width, count in FILTERS
        )
        self.highways = nn.ModuleList(nn.Linear(_FILTERS, 2 * _FILTERS) for _ in range(HIGHWAYS))
        self.projection = nn.Linear(_FILTERS, hidden)
        self._begin(spread)

    def _begin(self, spread: float) -> None:
        """Let highways carry, and vectors be as large as embeddings of words with `spread` are."""
        with torch.no_grad():
            for highway in self.highways:
                nn.init.ones_(highway.get_parameter("bias")[_FILTERS:])
            # At the beginning what the highways give has a root mean square of 0.4 (measured).
            nn.init.normal_(self.projection.weight, std=spread / 0.4 * _FILTERS**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, ids: Tensor) -> Tensor:
        """Return shape (rows, words, hidden); raises NoisegenError for ids the table gave up."""
        characters, where = self.table.distinct(ids.cpu().numpy())
        vectors = self.vectors(torch.from_numpy(characters))
        return nn.functional.embedding(torch.from_numpy(where).to(ids.device), vectors)

    def of_characters(self, characters: Tensor) -> Tensor:
        """Return shape (rows, words, hidden) of characters (rows, words, 50), without the table."""
        words, where = torch.unique(characters.flatten(0, 1), dim=0, return_inverse=True)
        order = _needed(words).argsort(stable=True)
        vectors = self.vectors(words[order])
        return nn.functional.embedding(order.argsort()[where].view(characters.shape[:2]), vectors)

    def vectors(self, characters: Tensor) -> Tensor:
        """Return shape (words, hidden) of characters (words, 50), shortest words first."""
        found = torch.cat([self._convolved(group) for group in trimmed(characters)])
        for highway in self.highways:
            made, gate = highway(found).chunk(2, dim=-1)
            carried = torch.sigmoid(gate)
            found = carried * found + (1 - carried) * torch.relu(made)
        vectors: Tensor = self.projection(found)
        return vectors

    def _convolved(self, characters: Tensor) -> Tensor:
        """Return shape (words, filters): the largest that each filter gives, if above 0."""
        states = self.characters(characters.to(self.projection.weight.device).int())
        found = [largest(states, *conv.parameters()) for conv in self.convolutions]
        return torch.relu(torch.cat(found, 1))


def largest(states: Tensor, filters: Tensor, bias: Tensor) -> Tensor:
    """Return shape (words, filters): the maximum over the windows of a convolution.

    `states` (words, characters, width), `filters` (filters, width, window). As one product of
    matrices this takes half the time of torch's convolution, which is made for more channels.
    """
    windows = states.unfold(1, filters.shape[2], 1).flatten(2)
    return nn.functional.linear(windows, filters.flatten(1), bias).amax(1)


def trimmed(characters: Tensor) -> Iterator[Tensor]:
    """Yield short words, then the others, without most of what fills them up.

    A window with nothing but filling gives the same wherever it is, and the maximum needs it once:
    behind its last character a word keeps as much filling as the widest window.
    """
    needed = _needed(characters)
    short = int((needed <= SHORT).sum())
    for rows in (slice(short), slice(short, None)):
        if len(needed[rows]):
            yield characters[rows, : min(CHARACTERS, int(needed[rows].max()))]


def _needed(characters: Tensor) -> Tensor:
    """Return how many characters of each word have to be read."""
    return (characters != characters[:, -1:]).sum(1) + _WIDEST
