"""`normalized:LANG:SPEC`: an encoder behind `normalize`, which reads noisy text as clean text."""

from collections.abc import Sequence

import torch

from noisegen.encoders.encoder import Encoder, Progress, Vectors, digest_of, open_encoder
from noisegen.errors import UsageError
from noisegen.noising.noise import normalize
from noisegen.text.languages import normalize_language
from noisegen.version import __version__


class NormalizedEncoder(torch.nn.Module):
    """An encoder whose texts are normalised first, all but their capitals and last stops.

    `lang` is the language of the texts.
    """

    def __init__(self, encoder: Encoder, lang: str) -> None:
        super().__init__()
        self.encoder, self.lang = encoder, lang
        self.name = f"normalized:{lang}:{encoder.name}"
        self.width = encoder.width
        self.digest = digest_of("normalized", __version__, lang, encoder.digest)

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return the vectors of the normalised texts, shape (texts, width)."""
        return self.encoder.encode(normalize(list(texts), self.lang, words_only=True), progress)


def open_normalized(rest: str) -> NormalizedEncoder:
    """Open the encoder behind `normalize` that LANG:SPEC names; raises UsageError."""
    lang, _, spec = rest.partition(":")
    if not spec:
        example = "write a language and a model, as normalized:en:minilm"
        raise UsageError(f"normalized:{rest}: {example}")
    lang = normalize_language(lang)
    normalize("", lang)  # before the model is opened, for the error of a language without counts
    return NormalizedEncoder(open_encoder(spec), lang)
