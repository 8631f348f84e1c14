"""The built-in transforms; importing this package registers them."""

from noisegen.transforms import (  # noqa: F401
    apostrophes,
    case,
    channel,
    characters,
    codeswitch,
    diacritics,
    insertions,
    latin,
    lengthening,
    mashing,
    phonetic,
    posts,
    punctuation,
    vowels,
    wiki,
    words,
)
