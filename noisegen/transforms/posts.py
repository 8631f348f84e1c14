"""Habits of posts and chats that are lists: initials, sounds, clippings, joints, masks.

The rates are common usage, not a paper's: a writer shortens some phrases, not all.
"""

from noisegen.registry import lexical
from noisegen.wordlists import packaged

lexical(
    "init", packaged("init"), rate=0.5,
    summary="Write phrases as their initials: 'talk to you later, never mind' -> 'ttyl, nvm'.",
)  # fmt: skip
lexical(
    "rebus", packaged("rebus"), rate=0.3,
    summary="Write letters and digits for what sounds like them: 'see you later, mate' "
    "-> 'c u l8r, m8'.",
)  # fmt: skip
lexical(
    "clip", packaged("clip"), rate=0.3,
    summary="Cut words short as in chats: 'probably going because of people' "
    "-> 'prob goin bc of ppl'.",
)  # fmt: skip
lexical(
    "join", packaged("join"), rate=0.3,
    summary="Run words together or break them: 'every day, maybe a lot' "
    "-> 'everyday, may be alot'.",
)  # fmt: skip
lexical(
    "cens", packaged("cens"), rate=0.7,
    summary="Mask words as people do to pass a filter: 'damn, that shit' -> 'd@mn, that sh*t'.",
)  # fmt: skip
