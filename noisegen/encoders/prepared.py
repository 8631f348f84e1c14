"""Encoders whose texts are prepared first: the same for teacher, student and evaluation."""

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path

from noisegen.encoders.encoder import Encoder, Progress, Tokenizer, Vectors
from noisegen.encoders.files import read_json, write_json
from noisegen.encoders.ragged import Ragged
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import SourceError
from noisegen.preparing.social import social_text

FILE = "preparation.json"  # of a model's folder
PREPARATIONS: Mapping[str, Callable[[str], str]] = {"social": social_text}


class PreparedTokenizer:
    """A tokenizer that is given prepared texts; its folder says so in preparation.json."""

    def __init__(self, tokenizer: Tokenizer, preparation: str) -> None:
        self.tokenizer, self.preparation = tokenizer, preparation
        self.pad_id, self.max_length = tokenizer.pad_id, tokenizer.max_length

    @property
    def digest(self) -> str:
        """Names the preparation, vocabulary, rules and the length where texts are cut."""
        return sha256(f"{self.preparation} {self.tokenizer.digest}".encode()).hexdigest()

    def tokenize(self, texts: Sequence[str]) -> Ragged:
        """Return one row of ids a text, cut to `max_length`."""
        prepare = PREPARATIONS[self.preparation]
        return self.tokenizer.tokenize([prepare(text) for text in texts])

    def save(self, folder: Path) -> None:
        """Write the tokenizer's files, and what is done before."""
        self.tokenizer.save(folder)
        self.note(folder)

    def note(self, folder: Path) -> None:
        """Write what is done before."""
        write_json(folder / FILE, {"preparation": self.preparation})


class PreparedEncoder:
    """An encoder that cannot be trained, given prepared texts."""

    def __init__(self, encoder: Encoder, preparation: str) -> None:
        self.encoder, self.preparation = encoder, preparation
        self.name, self.width = f"{preparation}:{encoder.name}", encoder.width

    @property
    def digest(self) -> str:
        """Names the preparation and the encoder."""
        return sha256(f"{self.preparation} {self.encoder.digest}".encode()).hexdigest()

    def encode(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Return shape (texts, width)."""
        prepare = PREPARATIONS[self.preparation]
        return self.encoder.encode([prepare(text) for text in texts], progress)


def prepared(encoder: Encoder, preparation: str) -> Encoder:
    """Return the encoder with its texts prepared; one that can be trained stays so.

    Raises MissingExtra without what the preparation needs.
    """
    PREPARATIONS[preparation]("")
    if not isinstance(encoder, SentenceEncoder):
        return PreparedEncoder(encoder, preparation)
    encoder.tokenizer = with_preparation(encoder.tokenizer, preparation)
    encoder.name = f"{preparation}:{encoder.name}"
    return encoder


def with_preparation(tokenizer: Tokenizer, preparation: str) -> PreparedTokenizer:
    """Return the tokenizer with this preparation in place of any that it had."""
    inner = tokenizer.tokenizer if isinstance(tokenizer, PreparedTokenizer) else tokenizer
    return PreparedTokenizer(inner, preparation)


def open_social(spec: str) -> Encoder:
    """Open `social:SPEC`: an encoder whose texts are prepared as CT-XLMR-SE's (section 3)."""
    from noisegen.encoders.specs import open_encoder

    return prepared(open_encoder(spec), "social")


def opened_tokenizer(tokenizer: Tokenizer, folder: Path) -> Tokenizer:
    """Return the tokenizer of a folder, with the preparation that the folder says.

    Raises SourceError for one that is not known.
    """
    path = folder / FILE
    if not path.is_file():
        return tokenizer
    said = read_json(path).get("preparation")
    if said not in PREPARATIONS:
        known = ", ".join(PREPARATIONS)
        raise SourceError(f"{path}: preparation {said!r} is not known; known are {known}")
    return PreparedTokenizer(tokenizer, str(said))
