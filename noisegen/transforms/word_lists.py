"""Transforms made of a word list and a rate: nine of RoLASER's twelve, and transforms for chats.

The list of a transform is the file `dictionaries/LANG/NAME.tsv`. To add a transform, add this file
and a row in `word_lists.tsv`, with the columns name, default rate, kind (`registry.Kind`), `tags`
(see `noisegen.noising.lexical`) and help text. The rates of RoLASER's transforms come from Appendix
A of its paper; the rate is 1 for transforms that have no rate there. The other rates follow common
usage and come from no paper: a writer shortens some phrases, not all.
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
