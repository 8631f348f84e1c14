"""Tokenizers of Hugging Face folders, without padding: rows of piece ids."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from noisegen.encoders.ragged import Ragged
from noisegen.encoders.surrogates import whole


class PieceTokenizer:
    """A fast tokenizer of transformers; raises ValueError for one that is not fast."""

    def __init__(self, tokenizer: Any, max_length: int) -> None:
        if not tokenizer.is_fast:
            raise ValueError("the tokenizer has no tokenizer.json")
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.pad_id = int(tokenizer.pad_token_id or 0)
        self._backend = deepcopy(tokenizer.backend_tokenizer)  # others set its padding
        self._backend.no_padding()
        self._backend.enable_truncation(max_length)

    @cached_property
    def digest(self) -> str:
        """Names vocabulary, rules and the length where texts are cut."""
        return sha256(f"{self.max_length} {self._backend.to_str()}".encode()).hexdigest()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of ids a text, cut to `max_length`."""
        found = self._backend.encode_batch_fast([whole(text) for text in texts])
        return Ragged.of([cut.ids for cut in found])

    def encodings(self, texts: Sequence[str | tuple[str, str]]) -> list[Any]:
        """Return all that `tokenizers` tells of each text, or pair of texts: ids, offsets, types.

        Offsets count characters of the text; its halves of surrogate pairs must be gone.
        """
        found: list[Any] = self._backend.encode_batch(list(texts))
        return found

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files."""
        self.tokenizer.save_pretrained(folder)


def lowered(tokenizer: PieceTokenizer) -> PieceTokenizer:
    """Return the tokenizer with lower-casing as its first rule, written into its own file."""
    from tokenizers import normalizers

    backend = tokenizer.tokenizer.backend_tokenizer
    rules = [normalizers.Lowercase(), *filter(None, [backend.normalizer])]
    backend.normalizer = normalizers.Sequence(rules)
    return PieceTokenizer(tokenizer.tokenizer, tokenizer.max_length)
