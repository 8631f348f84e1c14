"""The nine of RoLASER's twelve that look words up: each is a word list and a rate.

Rates are those of RoLASER, Appendix A; a transform without one there changes every match.
"""

from noisegen.lexicon import parse_codespell
from noisegen.registry import lexical
from noisegen.wordlists import LexicalSource, codespell_dictionary, packaged, register_lexicon

lexical(
    "abr1", packaged("abr1"), rate=0.1,
    summary="Abbreviate words and phrases as in chats: 'see you tomorrow' -> 'cu tmrw'.",
)  # fmt: skip
lexical(
    "abr2", packaged("abr2"),
    summary="Shorten words as in posts and notes: 'I was going to ask' -> 'I was gonna ask'.",
)  # fmt: skip
lexical(
    "abr3", packaged("abr3"), tags="no-verb",
    summary="Swap acronyms, business abbreviations and their full forms: "
    "'as soon as possible' -> 'ASAP'.",
)  # fmt: skip
lexical(
    "cont", packaged("cont"), tags="clitic",
    summary="Contract and expand: 'I do not know' -> 'I don't know'.",
)  # fmt: skip
lexical(
    "dysl", packaged("dysl"),
    summary="Confuse words as with dyslexia: 'a letter from him' -> 'a letter form him'.",
)  # fmt: skip
lexical(
    "homo", packaged("homo"), rate=0.5,
    summary="Replace words by words that sound the same: 'which week' -> 'witch weak'.",
)  # fmt: skip
lexical(
    "slng", packaged("slng"), tags="equal",
    summary="Replace nouns, adjectives and adverbs by slang: 'the money' -> 'the dough'.",
)  # fmt: skip
lexical(
    "week", packaged("week"),
    summary="Abbreviate and expand weekdays and months: 'on Monday' -> 'on Mon'.",
)  # fmt: skip


register_lexicon(
    LexicalSource("spel", codespell_dictionary, parser=parse_codespell, langs=("en",)), 0.2,
    "Misspell words as people do: 'definitely' -> 'definately'.",
)  # fmt: skip
