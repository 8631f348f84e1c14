"""Complete encoders with a head inside, as folders that SentenceTransformer opens."""

from dataclasses import replace
from pathlib import Path

from noisegen.disentangling.heads import SIDES, Heads
from noisegen.encoders.encoder import Encoder
from noisegen.encoders.folders import save_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder

FOLDERS = dict(zip(SIDES, ("student", "language"), strict=True))


def save_students(heads: Heads, encoder: Encoder, out: Path) -> None:
    """Write RUN/student (meaning vectors) and RUN/language; other kinds of encoder have no folder.

    Nor has one that projects already: a folder holds one projection. `heads:RUN/heads` opens both.
    """
    if not isinstance(encoder, SentenceEncoder) or encoder.head.projection is not None:
        return
    own = encoder.head.settings
    settings = replace(own, projection=encoder.width, place="last", bias=True)
    for side, name in FOLDERS.items():
        made = SentenceEncoder(encoder.network, encoder.tokenizer, settings, name)
        assert made.head.projection is not None
        made.head.projection.load_state_dict(getattr(heads, side).state_dict())
        save_folder(made, out / name)
