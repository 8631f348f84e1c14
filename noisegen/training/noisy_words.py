"""Noisy words that the student knows: `ppl` is a token that starts as `people`, `dont` is `don't`.

A teacher cuts forms that it never met into pieces of other words, and a student has to learn text
by text what they stand for. Noise knows it from the start. A form that mostly stands for a word of
one piece, and that clean text hardly has, gets a row of the embedding, which starts as that word's.
One row cannot stand for several pieces: their mean, as in Gee and others (2022, Fast Vocabulary
Transfer, section 3), brought texts no nearer, and in e5 less near (docs/development/log.md, 9). So the
tokenizer replaces the most frequent forms of contractions and phrases before it cuts text
(docs/development/log.md, 11).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import accumulate, filterfalse, groupby
from operator import itemgetter
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from noisegen.encoders.encoder import Tokenizer
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import (
    PREPARATIONS,
    PieceTokenizer,
    PreparedTokenizer,
    piece_tokenizer,
)
from noisegen.text.alignment import aligned, token_spans
from noisegen.training.pairs import PIECE_ROWS, VALIDATION_EPOCH, NoiseSource, PairData

SEEN = 3  # times that a form must have stood for any word; chosen on development tweets
SHARE = 0.5  # of them that the most frequent word must have
TOLERATED = 0.2  # occurrences in clean text, for each that stands for another word
PIECE_SEEN = 20  # times, if it is a piece already: it may be a word that the text lacks
RARE = 0.1  # of the occurrences: words with fewer are left out of the mean
PHRASE = 4  # words that a form may stand for
# A contraction or a phrase replaces a form whatever training shows. So a form that is a piece, or
# has at most `SHORT` letters, as initials do ("ID"), must occur often, and hardly in clean text.
SHORT, SHORT_SEEN, SHORT_TOLERATED = 3, 100, 0.02
COVERED = 0.95  # share of the occurrences of forms of contractions and phrases that rules cover
MAX_RULES = 200  # contractions and phrases; each takes half a microsecond per post
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORDS = re.compile(rf"{WORD.pattern}(?: {WORD.pattern})*")
_SEVERAL = re.compile(r"[ '’]")  # in contractions and phrases
_PART = re.compile(r"[^\W_]+")
# No part of a word, a mention, a tag or a link.
_ALONE = r"(?<![\w@#/='’-])(?<!\w\.)(?:%s)(?![\w@/=-]|['’.]\w)"

# What XLM-R and others split text with, and what takes the place of WhitespaceSplit.
_SPACES = pre_tokenizers.Metaspace()  # puts one before each text between added tokens
_SPLIT = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), _SPACES])
_SINGLE = (
    normalizers.Strip(left=False), normalizers.Replace(Regex(r"\s+▁"), "▁"),
    normalizers.Replace(Regex(r"\s+"), " "),
)  # fmt: skip

# For each noisy form, how often it stood for which word, or words with spaces between them.
_Text = Annotated[str, Meta(min_length=1)]
Words = dict[_Text, Annotated[dict[_Text, Annotated[int, Meta(ge=1)]], Meta(min_length=1)]]


def find_noisy_words(
    student: SentenceEncoder, pairs: PairData, noise: NoiseSource, rows: int,
    stop: Callable[[int], bool] = lambda read: False,
) -> Words:  # fmt: skip
    """Return noisy forms of words and phrases that clean text hardly has, found in `rows` rows.

    Text is noised again and again until it has that many rows; a stored pair counts once. Reading
    ends when `stop`, called with the number of rows so far, returns true. Raises UsageError for a
    student without a tokenizer of pieces.
    """
    pieces = pieces_of(student).tokenizer
    prepare = PREPARATIONS[getattr(student.tokenizer, "preparation", "")]
    fold: Callable[[str], str] = str.lower if _is_uncased(pieces) else str
    seen: defaultdict[str, Counter[str]] = defaultdict(Counter)
    usual: Counter[str] = Counter()
    for noisy, clean in _rows(pairs, noise, rows, stop):
        noisy, clean = fold(prepare(noisy)), fold(prepare(clean))
        usual.update({*WORD.findall(clean), *_PART.findall(clean)})
        if noisy != clean:
            for form, word in _aligned_words(noisy, clean):
                seen[form][word] += 1
    found = {}
    for form, words in seen.items():
        word, total = _most_frequent(words), words.total()
        if total < SEEN or words[word] < SHARE * total:
            continue
        is_piece = _piece(pieces, form) is not None
        least, tolerated = (PIECE_SEEN if is_piece else SEEN), TOLERATED
        if _SEVERAL.search(word) and (is_piece or len(form) <= SHORT):
            least, tolerated = SHORT_SEEN, SHORT_TOLERATED
        if total >= least and usual[form] <= tolerated * total:
            found[form] = {word: n for word, n in words.items() if n >= RARE * total}
    return found


def _rows(
    pairs: PairData, noise: NoiseSource, rows: int, stop: Callable[[int], bool]
) -> Iterator[tuple[str, str]]:
    """Yield noisy and clean text of training pairs, noised in epochs of their own.

    Where some noise is stored, the same pair comes once, so that its words are not counted anew in
    each epoch.
    """
    training, read, epoch = pairs.training, 0, VALIDATION_EPOCH
    known, comes_again = set[int](), noise.is_stored and noise.is_drawn
    while read < rows and (epoch == VALIDATION_EPOCH or noise.is_drawn):
        epoch += 1
        size = min(rows - read, len(training))
        some = training[np.linspace(0, len(training) - 1, size).astype(np.int64)]
        for first in range(0, size, PIECE_ROWS):
            if stop(read):
                return
            piece = some[first : first + PIECE_ROWS]
            clean = pairs.clean.take(pairs.owner[piece]).to_pylist()
            for row in zip(noise.noisy(pairs, piece, epoch), clean, strict=True):
                if comes_again:
                    if (key := hash(row)) in known:
                        continue
                    known.add(key)
                yield row
            read += len(piece)


def _aligned_words(noisy: str, clean: str) -> Iterator[tuple[str, str]]:
    """Yield words of the noisy side, each with the one, or the phrase, whose place it took."""
    ours, theirs = (
        [text[start:stop] for start, stop in token_spans(text)] for text in (clean, noisy)
    )
    for is_equal, block in groupby(aligned(ours, theirs), itemgetter(0)):
        parts = list(block)
        words, forms = ours[parts[0][1] : parts[-1][2]], theirs[parts[0][3] : parts[-1][4]]
        if len(forms) == 1 < len(words) <= PHRASE:
            words = [" ".join(words)]
        if not is_equal and len(words) == len(forms):
            for word, form in zip(words, forms, strict=True):
                if _WORDS.fullmatch(word) and WORD.fullmatch(form) and not form.isdecimal():
                    yield form, word


def add_noisy_words(student: SentenceEncoder, words: Words) -> tuple[int, int]:
    """Let the student read forms as words; return how many are tokens, and how many are replaced.

    Forms of words of one piece are tokens that start as these. The tokenizer replaces the most
    frequent forms of contractions and phrases. Raises UsageError for a student without a tokenizer
    of pieces.
    """
    whole = pieces_of(student)
    replacements = _replacements(whole.tokenizer, words)
    replaced = {form for forms in replacements.values() for form in forms}
    pieces = _with_replacements(_with_words_at_spaces(whole.tokenizer), replacements)
    starts = {
        content: known
        for form in filterfalse(replaced.__contains__, words)
        if (known := _known(whole.tokenizer, words[form])) and (content := _content(pieces, form))
    }
    pieces.add_tokens([AddedToken(content, single_word=True, lstrip=True) for content in starts])
    network: Any = student.network
    old = network.get_input_embeddings().weight.detach()
    if len(pieces) > len(old):
        network.resize_token_embeddings(len(pieces), mean_resizing=False)
    rows = network.get_input_embeddings().weight
    with torch.no_grad():
        for content, known in starts.items():
            shares = torch.tensor([*known.values()], dtype=old.dtype)
            row = shares @ old[[*known]] / shares.sum()
            rows[pieces.convert_tokens_to_ids(content)] = row
    tokenizer: Tokenizer = PieceTokenizer(pieces, whole.max_length)
    if isinstance(student.tokenizer, PreparedTokenizer):
        tokenizer = replace(student.tokenizer, tokenizer=tokenizer)
    student.tokenizer = tokenizer
    return len(starts), len(replaced)


def pieces_of(student: SentenceEncoder) -> PieceTokenizer:
    """Return the tokenizer that gets tokens; raises UsageError for a student without pieces."""
    return piece_tokenizer(student.tokenizer, "the student", "set noisy_words=0")


def _with_words_at_spaces(pieces: Any) -> Any:
    """Return a copy, since the teacher may have the same, that reads "people," and "ppl," alike.

    XLM-R's rules begin a word after each added token, so "ppl," is "ppl" and " ,". These begin one
    after a space, and read text without added tokens as before. XLMRobertaTokenizer sets its own
    rules when it opens a folder; PreTrainedTokenizerFast keeps those of the file.
    """
    pieces = deepcopy(pieces)
    backend = pieces.backend_tokenizer
    state = backend.pre_tokenizer and backend.pre_tokenizer.__getstate__()
    if state not in (_SPACES.__getstate__(), _SPLIT.__getstate__()):
        return pieces
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    if state == _SPLIT.__getstate__():
        rules = [*filter(None, [backend.normalizer]), *_SINGLE]
        backend.normalizer = normalizers.Sequence(rules)
    return _keeping_rules(pieces)


def _replacements(pieces: Any, words: Words) -> dict[str, list[str]]:
    """Return contractions and phrases of several pieces, with the forms that are replaced by them.

    They are the most frequent ones: so many as have `COVERED` of all occurrences of such forms.
    """
    added = {token.content.lower() for token in pieces.added_tokens_decoder.values()}
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for form, counts in words.items():
        word = _most_frequent(counts)
        if form.lower() not in added and _SEVERAL.search(word) and _is_cut(pieces, form, word):
            forms[word][form] = counts[word]
    totals = {word: counts.total() for word, counts in forms.items()}
    order = sorted(totals, key=totals.__getitem__, reverse=True)
    before = accumulate((totals[word] for word in order), initial=0)
    most = COVERED * sum(totals.values())
    chosen = [word for word, count in zip(order, before, strict=False) if count < most]
    return {word: sorted(forms[word]) for word in chosen[:MAX_RULES]}


def _is_cut(pieces: Any, form: str, word: str) -> bool:
    """Return whether a word has several pieces, and neither it nor its form is normalised first."""
    normalizer = pieces.backend_tokenizer.normalizer
    ids = pieces(f" {word}", add_special_tokens=False)["input_ids"]
    is_kept = normalizer is None or all(normalizer.normalize_str(t) == t for t in (form, word))
    return is_kept and len(ids) > 1 and pieces.unk_token_id not in ids


def _with_replacements(pieces: Any, replacements: Mapping[str, list[str]]) -> Any:
    """Return a tokenizer that replaces forms by words, in text as its other rules leave it."""
    if not replacements:
        return pieces
    backend = pieces.backend_tokenizer
    rules = [normalizers.Replace(_alone(forms), word) for word, forms in replacements.items()]
    if getattr(backend.pre_tokenizer, "prepend_scheme", "") == "first":
        # Metaspace begins a word at offset 0, and those of a replaced beginning start later.
        forms = [form for forms in replacements.values() for form in forms]
        rules.insert(0, normalizers.Replace(_alone(forms, r"\A(?=%s)"), "▁"))
    backend.normalizer = normalizers.Sequence([*filter(None, [backend.normalizer]), *rules])
    return _keeping_rules(pieces)


def _alone(forms: list[str], where: str = "%s") -> Regex:
    """Return what matches these forms where they are words of their own."""
    return Regex(where % (_ALONE % "|".join(map(re.escape, forms))))


def _keeping_rules(pieces: Any) -> Any:
    """Return a tokenizer that opens with these rules: a model's own class would set its own."""
    kept = ("model_max_length", "model_input_names", "padding_side", "truncation_side")
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=pieces.backend_tokenizer, **{name: getattr(pieces, name) for name in kept},
        **pieces.special_tokens_map,
    )  # fmt: skip


def _is_uncased(pieces: Any) -> bool:
    normalizer = pieces.backend_tokenizer.normalizer
    return normalizer is not None and bool(normalizer.normalize_str("A") == "a")


def _most_frequent(counts: Mapping[str, int]) -> str:
    return max(counts, key=counts.__getitem__)


def _known(pieces: Any, counts: Mapping[str, int]) -> dict[int, int]:
    """Return the counts of words by their piece; none if the most frequent one has several."""
    found = {word: _piece(pieces, word) for word in counts}
    if found[_most_frequent(counts)] is None:
        return {}
    return {piece: counts[word] for word, piece in found.items() if piece is not None}


def _piece(pieces: Any, word: str) -> int | None:
    """Return the id of a word inside a text if it is one piece, else None."""
    ids = pieces(f" {word}", add_special_tokens=False)["input_ids"]
    return ids[0] if len(ids) == 1 and ids[0] != pieces.unk_token_id else None


def _content(pieces: Any, form: str) -> str | None:
    """Return the text of a new token that matches a form; None if there can be none.

    A token of the same text would also be found inside longer words. That of another case is not,
    and an uncased tokenizer matches it all the same, since added tokens are normalised too.
    """
    has = pieces.backend_tokenizer.token_to_id
    if has(form) is None:
        return form
    upper = form.upper()
    is_free = has(upper) is None and upper.lower() == form
    return upper if is_free and _is_uncased(pieces) else None
