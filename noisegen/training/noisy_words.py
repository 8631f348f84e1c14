"""Noisy words that a student knows before training: `ppl` starts as `people`, `dont` as `don't`.

A teacher cuts forms that it never met into pieces of other words, so a student would have to learn
their meaning text by text. Noise tells it from the start. A form that mostly stands for a word of
one piece, and is rare in clean text, becomes a token: its row of the embeddings starts as the
word's row.
A form of several pieces cannot start as their mean, as in Gee and others (2022, Fast Vocabulary
Transfer, section 3): that brought texts no nearer, and in e5 less near (docs/development/log.md,
9). Instead the tokenizer replaces the most frequent forms of contractions and phrases before it
cuts text (docs/development/log.md, 11).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import groupby
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

SEEN = 3  # minimum occurrences of a form; chosen on development tweets
SHARE = 0.5  # minimum share of the most frequent word among the words that a form stands for
TOLERATED = 0.2  # maximum occurrences in clean text per occurrence as another word
PIECE_SEEN = 20  # minimum occurrences of a form that is a piece: it may be a word by itself
RARE = 0.1  # words with a smaller share of a form's occurrences are left out of the mean
PHRASE = 4  # maximum words of a phrase that a form may stand for
# The tokenizer replaces forms of contractions and phrases in every text, so training cannot correct
# them. A form that is a piece, or has at most SHORT letters (it may be initials, such as "ID"),
# must therefore occur often, and hardly in clean text.
SHORT, SHORT_SEEN, SHORT_TOLERATED = 3, 100, 0.02
COVERED = 0.95  # share of the occurrences of forms of contractions and phrases that rules cover
MAX_RULES = 200  # contractions and phrases; each takes half a microsecond per post
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORDS = re.compile(rf"{WORD.pattern}(?: {WORD.pattern})*")
_SEVERAL = re.compile(r"[ '’]")  # characters inside contractions and phrases
_PART = re.compile(r"[^\W_]+")
# Matches words that are not part of a longer word, a mention, a tag or a link.
_ALONE = r"(?<![\w@#/='’-])(?<!\w\.)(?:%s)(?![\w@/=-]|['’.]\w)"

# Pre-tokenizers of XLM-R and similar models. Metaspace adds a space before each text between added
# tokens.
_SPACES = pre_tokenizers.Metaspace()
_SPLIT = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), _SPACES])
# Normalizers that replace WhitespaceSplit.
_SINGLE_SPACES = (
    normalizers.Strip(left=False),
    normalizers.Replace(Regex(r"\s+▁"), "▁"),
    normalizers.Replace(Regex(r"\s+"), " "),
)

# Counts of the words that a noisy form stood for, by form; a phrase has spaces between its words.
_Text = Annotated[str, Meta(min_length=1)]
Words = dict[_Text, Annotated[dict[_Text, Annotated[int, Meta(ge=1)]], Meta(min_length=1)]]


def find_noisy_words(
    student: SentenceEncoder,
    pairs: PairData,
    noise: NoiseSource,
    rows: int,
    stop: Callable[[int], bool] = lambda read: False,
) -> Words:
    """Return forms of words and phrases in noisy text that clean text hardly has.

    `rows` noisy rows are read; drawn noise is drawn again until there are enough, and a stored pair
    counts once. Reading ends when `stop`, called with the number of rows so far, returns true.
    Raises UsageError for a student without a tokenizer of pieces.
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
        if words.total() >= SEEN and _is_noisy(pieces, form, words, usual[form]):
            rare = RARE * words.total()
            found[form] = {word: count for word, count in words.items() if count >= rare}
    return found


def _is_noisy(pieces: Any, form: str, words: Counter[str], usual: int) -> bool:
    """Return whether a form is a noisy word.

    `words` counts the words that it stood for, `usual` its occurrences in clean text.
    """
    word, total = _most_frequent(words), words.total()
    if words[word] < SHARE * total:
        return False
    is_piece = _piece(pieces, form) is not None
    least, tolerated = (PIECE_SEEN if is_piece else SEEN), TOLERATED
    if _SEVERAL.search(word) and (is_piece or len(form) <= SHORT):
        least, tolerated = SHORT_SEEN, SHORT_TOLERATED
    return total >= least and usual <= tolerated * total


def _rows(
    pairs: PairData, noise: NoiseSource, rows: int, stop: Callable[[int], bool]
) -> Iterator[tuple[str, str]]:
    """Yield noisy and clean texts of training pairs, with noise of epochs that training lacks.

    If some noise is stored, equal pairs are yielded once: else each epoch would count them again.
    """
    training, read, epoch = pairs.training, 0, VALIDATION_EPOCH
    known = set[int]()
    may_repeat = noise.is_stored and noise.is_drawn
    while read < rows:
        epoch += 1
        size = min(rows - read, len(training))
        some = training[np.linspace(0, len(training) - 1, size).astype(np.int64)]
        for first in range(0, size, PIECE_ROWS):
            if stop(read):
                return
            piece = some[first : first + PIECE_ROWS]
            clean = pairs.clean.take(pairs.owner[piece]).to_pylist()
            for row in zip(noise.noisy(pairs, piece, epoch), clean, strict=True):
                if may_repeat:
                    if (key := hash(row)) in known:
                        continue
                    known.add(key)
                yield row
            read += len(piece)
        if not noise.is_drawn:
            return


def _aligned_words(noisy: str, clean: str) -> Iterator[tuple[str, str]]:
    """Yield the changed words of the noisy side, each with the word or phrase that it replaced."""
    ours = [clean[start:stop] for start, stop in token_spans(clean)]
    theirs = [noisy[start:stop] for start, stop in token_spans(noisy)]
    for is_equal, block in groupby(aligned(ours, theirs), itemgetter(0)):
        if is_equal:
            continue
        parts = list(block)
        words, forms = ours[parts[0][1] : parts[-1][2]], theirs[parts[0][3] : parts[-1][4]]
        if len(forms) == 1 < len(words) <= PHRASE:
            words = [" ".join(words)]
        if len(words) == len(forms):
            for word, form in zip(words, forms, strict=True):
                if _WORDS.fullmatch(word) and WORD.fullmatch(form) and not form.isdecimal():
                    yield form, word


def add_noisy_words(student: SentenceEncoder, words: Words) -> tuple[int, int]:
    """Let the student read forms as words; return the numbers of new tokens and replaced forms.

    A form of a word of one piece becomes a token that starts as that piece. The tokenizer replaces
    the most frequent forms of contractions and phrases. Raises UsageError for a student without a
    tokenizer of pieces.
    """
    whole = pieces_of(student)
    replacements = _replacements(whole.tokenizer, words)
    replaced = {form for forms in replacements.values() for form in forms}
    pieces = _with_replacements(_with_words_at_spaces(whole.tokenizer), replacements)
    starts = {}
    for form, counts in words.items():
        if form not in replaced:
            known, content = _known(whole.tokenizer, counts), _content(pieces, form)
            if known and content:
                starts[content] = known
    pieces.add_tokens([AddedToken(content, single_word=True, lstrip=True) for content in starts])
    _start_embeddings(student, pieces, starts)
    tokenizer: Tokenizer = PieceTokenizer(pieces, whole.max_length)
    if isinstance(student.tokenizer, PreparedTokenizer):
        tokenizer = replace(student.tokenizer, tokenizer=tokenizer)
    student.tokenizer = tokenizer
    return len(starts), len(replaced)


def _start_embeddings(
    student: SentenceEncoder, pieces: Any, starts: Mapping[str, Mapping[int, int]]
) -> None:
    """Set the embedding of each new token to the mean of pieces, weighted by their counts."""
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


def pieces_of(student: SentenceEncoder) -> PieceTokenizer:
    """Return the student's tokenizer of pieces; raises UsageError if it has none."""
    return piece_tokenizer(student.tokenizer, "the student", "set noisy_words=0")


def _with_words_at_spaces(pieces: Any) -> Any:
    """Return a copy of the tokenizer that splits "ppl," as it splits "people,".

    XLM-R's rules begin a word after each added token, so "ppl," would be "ppl" and " ,". The rules
    of the copy begin a word after a space, and read text without added tokens as before.
    XLMRobertaTokenizer sets its own rules when it opens a folder; PreTrainedTokenizerFast keeps the
    rules of the file. The given tokenizer is left unchanged, since the teacher may use it.
    """
    pieces = deepcopy(pieces)
    backend = pieces.backend_tokenizer
    state = backend.pre_tokenizer and backend.pre_tokenizer.__getstate__()
    if state not in (_SPACES.__getstate__(), _SPLIT.__getstate__()):
        return pieces
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    if state == _SPLIT.__getstate__():
        _add_rules(backend, _SINGLE_SPACES)
    return _keeping_rules(pieces)


def _replacements(pieces: Any, words: Words) -> dict[str, list[str]]:
    """Return the contractions and phrases that the tokenizer writes for forms, with these forms.

    They have several pieces, and are the most frequent ones, with `COVERED` of all occurrences.
    """
    added = {token.content.lower() for token in pieces.added_tokens_decoder.values()}
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for form, counts in words.items():
        word = _most_frequent(counts)
        if form.lower() not in added and _SEVERAL.search(word) and _is_cut(pieces, form, word):
            forms[word][form] = counts[word]
    totals = {word: counts.total() for word, counts in forms.items()}
    most = COVERED * sum(totals.values())
    chosen: dict[str, list[str]] = {}
    covered = 0
    for word in sorted(totals, key=totals.__getitem__, reverse=True)[:MAX_RULES]:
        if covered >= most:
            break
        covered += totals[word]
        chosen[word] = sorted(forms[word])
    return chosen


def _is_cut(pieces: Any, form: str, word: str) -> bool:
    """Return whether a word has several pieces, and normalisation keeps it and its form."""
    normalizer = pieces.backend_tokenizer.normalizer
    if normalizer is not None:
        for text in (form, word):
            if normalizer.normalize_str(text) != text:
                return False
    ids = pieces(f" {word}", add_special_tokens=False)["input_ids"]
    return len(ids) > 1 and pieces.unk_token_id not in ids


def _with_replacements(pieces: Any, replacements: Mapping[str, list[str]]) -> Any:
    """Return a tokenizer that replaces forms by words after its other rules."""
    if not replacements:
        return pieces
    backend = pieces.backend_tokenizer
    rules = [normalizers.Replace(_alone(forms), word) for word, forms in replacements.items()]
    if getattr(backend.pre_tokenizer, "prepend_scheme", "") == "first":
        # Metaspace begins a word at offset 0, but a replaced form at the beginning has none there.
        forms = [form for forms in replacements.values() for form in forms]
        rules.insert(0, normalizers.Replace(_alone(forms, r"\A(?=%s)"), "▁"))
    _add_rules(backend, rules)
    return _keeping_rules(pieces)


def _add_rules(backend: Any, rules: Iterable[Any]) -> None:
    """Let a tokenizer apply more normalizers after its own."""
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([*own, *rules])


def _alone(forms: list[str], where: str = "%s") -> Regex:
    """Return an expression that matches these forms as words of their own."""
    return Regex(where % (_ALONE % "|".join(map(re.escape, forms))))


def _keeping_rules(pieces: Any) -> Any:
    """Return a tokenizer of a class that keeps its rules in a folder; a model's class would not."""
    kept = ("model_max_length", "model_input_names", "padding_side", "truncation_side")
    options = {name: getattr(pieces, name) for name in kept} | pieces.special_tokens_map
    backend = pieces.backend_tokenizer
    return PreTrainedTokenizerFast(tokenizer_object=backend, **options)  # type: ignore[no-untyped-call]


def _is_uncased(pieces: Any) -> bool:
    normalizer = pieces.backend_tokenizer.normalizer
    return normalizer is not None and bool(normalizer.normalize_str("A") == "a")


def _most_frequent(counts: Mapping[str, int]) -> str:
    return max(counts, key=counts.__getitem__)


def _known(pieces: Any, counts: Mapping[str, int]) -> dict[int, int]:
    """Return the counts of words by their piece; none if the most frequent word has several."""
    found = {word: _piece(pieces, word) for word in counts}
    if found[_most_frequent(counts)] is None:
        return {}
    return {piece: counts[word] for word, piece in found.items() if piece is not None}


def _piece(pieces: Any, word: str) -> int | None:
    """Return the id of a word inside a text if it is one piece, else None."""
    ids = pieces(f" {word}", add_special_tokens=False)["input_ids"]
    return ids[0] if len(ids) == 1 and ids[0] != pieces.unk_token_id else None


def _content(pieces: Any, form: str) -> str | None:
    """Return the text of a new token that matches a form; None if no token can match it.

    If the form is a piece already, a token with its text would also be found inside longer words.
    Its text in upper case is not, and an uncased tokenizer matches it, since added tokens are
    normalised too.
    """
    has = pieces.backend_tokenizer.token_to_id
    if has(form) is None:
        return form
    upper = form.upper()
    is_free = has(upper) is None and upper.lower() == form
    return upper if is_free and _is_uncased(pieces) else None
