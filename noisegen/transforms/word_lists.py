"""Transforms that are a word list and a rate: nine of RoLASER's twelve, and the language of chats.

A list is the file `dictionaries/LANG/NAME.tsv`. Another transform needs this file and a row in
`word_lists.tsv`: its default rate, its kind (`registry.Kind`), its `tags` as in `noisegen.lexical`,
and its help. The rates of RoLASER's transforms are from its Appendix A, where a transform without a
rate changes every match. The other rates follow common usage and are from no paper: a writer
shortens some phrases, not all.
"""

from functools import partial
from pathlib import Path
from typing import cast

from noisegen.noising.lexical import LexicalSource, packaged, register_lexicon
from noisegen.noising.lexicon import codespell_dictionary, parse_codespell
from noisegen.noising.registry import Kind
from noisegen.transforms import rows_of
from noisegen.transforms.checkout import WORD_LISTS, OriginalWords

_LISTS = Path(__file__).with_suffix(".tsv")

for _line, (_name, _rate, _kind, _tags, _summary) in enumerate(rows_of(_LISTS), 2):
    _original = OriginalWords(_name) if _name in WORD_LISTS else None
    _source = LexicalSource(
        _name, partial(packaged, _name), _tags, original=_original, kind=cast(Kind, _kind)
    )
    register_lexicon(_source, float(_rate), _summary, f"{_LISTS}:{_line}")

_misspellings = LexicalSource(
    "spel",
    codespell_dictionary,
    parser=parse_codespell,
    langs=("en",),
    original=OriginalWords("spel"),
    kind="slip",
)
register_lexicon(_misspellings, 0.2, "Misspell words as people do: 'definitely' -> 'definately'.")
