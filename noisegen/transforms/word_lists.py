"""Transforms that are a word list and a rate: nine of RoLASER's twelve, and the language of chats.

A list is `dictionaries/LANG/NAME.tsv`; another one needs that file and an entry here. The rates of
RoLASER's are those of its Appendix A, where a transform without one changes every match; the others
are common usage, not a paper's: a writer shortens some phrases, not all.
"""

from noisegen.noise.lexical import LexicalSource, packaged, register_lexicon
from noisegen.noise.lexicon import codespell_dictionary, parse_codespell
from noisegen.noise.registry import called_from
from noisegen.transforms.nlaugmenter import WORD_LISTS, OriginalWords


def _list(name: str, summary: str, *, rate: float = 1.0, tags: str = "") -> None:
    """Register the packaged lists NAME.tsv; `tags` as in `registry.lexical`."""
    original = OriginalWords(name) if name in WORD_LISTS else None
    source = LexicalSource(name, lambda: packaged(name), tags, original=original)
    register_lexicon(source, rate, summary, called_from(1))


_list(
    "abr1", "Abbreviate words and phrases as in chats: 'see you tomorrow' -> 'cu tmrw'.", rate=0.1
)
_list("abr2", "Shorten words as in posts and notes: 'I was going to ask' -> 'I was gonna ask'.")
_list(
    "abr3",
    "Swap acronyms, business abbreviations and their full forms: 'as soon as possible' -> 'ASAP'.",
    tags="no-verb",
)
_list("cont", "Contract and expand: 'I do not know' -> 'I don't know'.", tags="clitic")
_list("dysl", "Confuse words as with dyslexia: 'a letter from him' -> 'a letter form him'.")
_list("homo", "Replace words by words that sound the same: 'which week' -> 'witch weak'.", rate=0.5)
_list(
    "slng",
    "Replace nouns, adjectives and adverbs by slang: 'the money' -> 'the dough'.",
    tags="equal",
)
_list("week", "Abbreviate and expand weekdays and months: 'on Monday' -> 'on Mon'.")

_list(
    "init",
    "Write phrases as their initials: 'talk to you later, never mind' -> 'ttyl, nvm'.",
    rate=0.5,
)
_list(
    "rebus",
    "Write letters and digits for what sounds like them: 'see you later, mate' -> 'c u l8r, m8'.",
    rate=0.3,
)
_list(
    "clip",
    "Cut words short as in chats: 'probably going because of people' -> 'prob goin bc of ppl'.",
    rate=0.3,
)
_list(
    "join",
    "Run words together or break them: 'every day, maybe a lot' -> 'everyday, may be alot'.",
    rate=0.3,
)
_list(
    "cens",
    "Mask words as people do to pass a filter: 'damn, that shit' -> 'd@mn, that sh*t'.",
    rate=0.7,
)

register_lexicon(
    LexicalSource(
        "spel", codespell_dictionary, parser=parse_codespell, langs=("en",),
        original=OriginalWords("spel"),
    ),
    0.2,
    "Misspell words as people do: 'definitely' -> 'definately'.",
)  # fmt: skip
