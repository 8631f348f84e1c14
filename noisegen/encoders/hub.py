"""Models of the Hugging Face hub: fetched once into its cache, then opened as a folder."""

from noisegen.encoders.folders import open_folder
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.errors import SourceError

WANTED = ("*.json", "*.txt", "*.model", "*.safetensors")  # no pickles, no code


def open_hub(name: str) -> SentenceEncoder:
    """Open `NAME` or `NAME@REVISION` of the hub; raises SourceError where it cannot be had."""
    from huggingface_hub import snapshot_download

    repository, _, revision = name.partition("@")
    try:
        folder = snapshot_download(
            repository, revision=revision or None, allow_patterns=list(WANTED)
        )
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise SourceError(
            f"cannot fetch {repository} from the hub: {reason}; give a folder instead"
        ) from error
    return open_folder(folder, name=f"hf:{name}")
