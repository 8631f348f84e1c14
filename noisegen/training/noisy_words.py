"""Noisy words that a student knows before training: `ppl` starts as `people`, `dont` as `don't`.

The tokenizer of a teacher cuts unknown forms, such as `ppl`, into pieces of other words, so a
student would have to learn the meaning of such forms text by text. Pairs of noisy and clean text
tell their meaning before training. A form that mostly stands for a word of one piece, and is rare
in clean text, becomes a token of the student: its embedding starts as the embedding of the word.
Other forms stand for a word of several pieces. A token that starts as the mean of these pieces'
embeddings (Gee and others, 2022, Fast Vocabulary Transfer, section 3) did not bring noisy texts
nearer to clean texts; with e5 it moved them away (docs/development/log.md, 9). Instead the
tokenizer replaces the most frequent noisy contractions and phrases, such as `dont`, by clean ones
before it cuts text into pieces (docs/development/log.md, 11).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from tokenizers import AddedToken, Regex, normalizers, pre_tokenizers

from noisegen.encoders.encoder import Tokenizer
from noisegen.encoders.sentence_encoder import SentenceEncoder
from noisegen.encoders.tokens import (
    PREPARATIONS,
    PieceTokenizer,
    PreparedTokenizer,
    keeping_rules,
    piece_tokenizer,
)
from noisegen.encoders.word_ids import WHOLE_WORD
from noisegen.text.alignment import aligned_words
from noisegen.training.misspellings import likely_misspellings
from noisegen.training.pairs import PIECE_ROWS, VALIDATION_EPOCH, NoiseSource, PairData

SEEN = 3  # minimum occurrences of a noisy form in noisy text; chosen on development tweets
SHARE = 0.5  # minimum share of a form's occurrences that stand for its most frequent word
TOLERATED = 0.2  # maximum occurrences of a form in clean text, per occurrence in noisy text
PIECE_SEEN = 20  # like SEEN, for a form that is a piece of the tokenizer: it may be a real word
RARE = 0.1  # a word is ignored if fewer than this share of a form's occurrences stand for it
PHRASE = 4  # maximum number of words in a phrase that a form stands for
# Training cannot correct a wrong contraction or phrase, since the tokenizer inserts it everywhere.
# So the form needs SHORT_SEEN occurrences, and SHORT_TOLERATED replaces TOLERATED, if the form is a
# piece of the tokenizer (maybe a real word) or has at most SHORT letters (maybe initials).
SHORT, SHORT_SEEN, SHORT_TOLERATED = 3, 100, 0.02
COVERED = 0.95  # rules are added until they replace this share of contractions and phrases
MAX_RULES = 200  # maximum replaced contractions and phrases: each costs 0.5 microseconds per post
# Forms that treebanks write before an apostrophe, "did n't". A token would match there; a rule of
# the tokenizer (`WHOLE_WORD`) does not.
BEFORE_APOSTROPHE = {"n"}
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_WORDS = re.compile(rf"{WORD.pattern}(?: {WORD.pattern})*")
_SEVERAL = re.compile(r"[ '’]")  # a word with such a character is a contraction or phrase
_PART = re.compile(r"[^\W_]+")

# Pre-tokenizers of XLM-R and similar models.
# Metaspace adds a space before each stretch of text between two added tokens.
_METASPACE = pre_tokenizers.Metaspace()
_SPLIT_METASPACE = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), _METASPACE])
# Normalizers that turn several spaces into one, as the replaced WhitespaceSplit did.
_SINGLE_SPACES = (
    normalizers.Strip(left=False),
    normalizers.Replace(Regex(r"\s+▁"), "▁"),
    normalizers.Replace(Regex(r"\s+"), " "),
)

# Noisy form -> word or phrase that it stood for -> count; a phrase has spaces between its words.
_Text = Annotated[str, Meta(min_length=1)]
Words = dict[_Text, Annotated[dict[_Text, Annotated[int, Meta(ge=1)]], Meta(min_length=1)]]


def find_noisy_words(
    student: SentenceEncoder,
    pairs: PairData,
    noise: NoiseSource,
    rows: int,
    stop: Callable[[int], bool] = lambda read: False,
    misspellings: int = 0,
) -> Words:
    """Return noisy words: forms, such as `ppl`, that stand for words and are rare in clean text.

    The result counts the words and phrases that each form stood for. The search reads up to `rows`
    training pairs. Pairs with noise from recipes are read again with new noise, other pairs only
    once. The search ends early when `stop(number of pairs read)` is true. The `misspellings`
    likeliest misspellings of frequent words are added. Raises UsageError for a student whose
    tokenizer has no word pieces.
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
            for form, word in aligned_words(noisy, clean, PHRASE):
                if form != word and _is_form(form) and _WORDS.fullmatch(word):
                    seen[form][word] += 1
    found = {}
    for form, words in seen.items():
        if words.total() >= SEEN and _is_noisy(pieces, form, words, usual[form]):
            rare = RARE * words.total()
            found[form] = {word: count for word, count in words.items() if count >= rare}
    if misspellings and found:
        of_one_piece = partial(_of_one_piece, pieces)
        found |= likely_misspellings(found, usual, pairs.langs, of_one_piece, misspellings)
    return found


def _is_form(word: str) -> bool:
    return bool(WORD.fullmatch(word)) and not word.isdecimal()


def _is_noisy(pieces: Any, form: str, words: Counter[str], usual: int) -> bool:
    """Return whether a form (`ppl`) stands for one word often enough, and is rare in clean text.

    `words` counts the words that the form stood for in noisy text. `usual` is the count of the form
    in clean text.
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
    """Yield the noisy and the clean text of training pairs, until `rows` pairs are read.

    The noise comes from epochs that training never reaches. If the noisy text of DATA is mixed with
    noise from recipes, equal pairs are yielded once: the text of DATA is the same in every epoch.
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


def add_noisy_words(
    student: SentenceEncoder, words: Words, max_rules: int = MAX_RULES
) -> tuple[int, int]:
    """Teach the student noisy words; return the counts of new tokens and of replaced forms.

    A form (`ppl`) that stands for a word of one piece becomes a token, whose embedding starts as
    the embedding of the piece. For the most frequent contractions and phrases, at most `max_rules`,
    the tokenizer replaces noisy forms, `dont` by `don't`. Raises UsageError for a student whose
    tokenizer has no word pieces.
    """
    whole = pieces_of(student)
    replacements = _replacements(whole.tokenizer, words, max_rules)
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
    """Set the embedding of each new token to a weighted mean of the embeddings of some pieces.

    `starts` maps the text of a new token to the weights of these pieces, by piece id.
    """
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
    """Return the student's tokenizer of word pieces; raises UsageError for other tokenizers."""
    return piece_tokenizer(student.tokenizer, "the student", "set noisy_words=0")


def _with_words_at_spaces(pieces: Any) -> Any:
    """Return a copy of the tokenizer that splits "ppl," as it splits "people,".

    XLM-R's tokenizer begins a new word after each added token: with "ppl" as a token, it would read
    "ppl," as "ppl" and " ,". The copy begins a word only after a space. Text without added tokens
    is split as before. The copy is a PreTrainedTokenizerFast, since XLMRobertaTokenizer would reset
    these rules when it opens a folder. The given tokenizer is left unchanged: the teacher may use
    it.
    """
    pieces = deepcopy(pieces)
    backend = pieces.backend_tokenizer
    state = backend.pre_tokenizer and backend.pre_tokenizer.__getstate__()
    if state not in (_METASPACE.__getstate__(), _SPLIT_METASPACE.__getstate__()):
        return pieces
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    if state == _SPLIT_METASPACE.__getstate__():
        _add_rules(backend, _SINGLE_SPACES)
    return keeping_rules(pieces)


def _replacements(pieces: Any, words: Words, max_rules: int) -> dict[str, list[str]]:
    """Return {contraction or phrase: noisy forms to replace by it}, the most frequent first.

    A contraction or phrase that is one piece of the tokenizer is left out. The others are added
    until they cover the share `COVERED` of all occurrences, but at most `max_rules` of them. The
    words for forms in `BEFORE_APOSTROPHE` count as phrases.
    """
    added = {token.content.lower() for token in pieces.added_tokens_decoder.values()}
    forms: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for form, counts in words.items():
        word = _most_frequent(counts)
        is_phrase = _SEVERAL.search(word) or form in BEFORE_APOSTROPHE
        if form.lower() not in added and is_phrase and _can_replace(pieces, form, word):
            forms[word][form] = counts[word]
    totals = {word: counts.total() for word, counts in forms.items()}
    most = COVERED * sum(totals.values())
    chosen: dict[str, list[str]] = {}
    covered = 0
    for word in sorted(totals, key=totals.__getitem__, reverse=True)[:max_rules]:
        if covered >= most:
            break
        covered += totals[word]
        chosen[word] = sorted(forms[word])
    return chosen


def _can_replace(pieces: Any, form: str, word: str) -> bool:
    """Return whether the tokenizer can replace `form` by `word`, as two or more known pieces.

    One piece is enough for a form in `BEFORE_APOSTROPHE`. The tokenizer cannot if its normalisation
    changes `form` or `word`.
    """
    normalizer = pieces.backend_tokenizer.normalizer
    if normalizer is not None:
        for text in (form, word):
            if normalizer.normalize_str(text) != text:
                return False
    ids = pieces(f" {word}", add_special_tokens=False)["input_ids"]
    return (len(ids) > 1 or form in BEFORE_APOSTROPHE) and pieces.unk_token_id not in ids


def _with_replacements(pieces: Any, replacements: Mapping[str, list[str]]) -> Any:
    """Return the tokenizer with added rules that replace noisy forms by clean words.

    The added rules apply after the tokenizer's own rules. `replacements` maps a clean word to its
    noisy forms. The backend of the given tokenizer is changed in place.
    """
    if not replacements:
        return pieces
    backend = pieces.backend_tokenizer
    rules = [normalizers.Replace(_whole_word(forms), word) for word, forms in replacements.items()]
    if getattr(backend.pre_tokenizer, "prepend_scheme", "") == "first":
        # Metaspace puts "▁" before the first character of the text, but not if a rule has replaced
        # this character. So a rule puts "▁" before a form at the start of the text.
        forms = [form for forms in replacements.values() for form in forms]
        rules.insert(0, normalizers.Replace(_whole_word(forms, r"\A(?=%s)"), "▁"))
    _add_rules(backend, rules)
    return keeping_rules(pieces)


def _add_rules(backend: Any, rules: Iterable[Any]) -> None:
    """Add normalizers to the backend of a tokenizer; they run after the normalizer that it has."""
    own = [] if backend.normalizer is None else [backend.normalizer]
    backend.normalizer = normalizers.Sequence([*own, *rules])


def _whole_word(forms: list[str], where: str = "%s") -> Regex:
    """Return a regular expression that matches any of these forms as a whole word.

    `where` is a pattern around this expression, such as "^%s".
    """
    return Regex(where % (WHOLE_WORD % "|".join(map(re.escape, forms))))


def _is_uncased(pieces: Any) -> bool:
    normalizer = pieces.backend_tokenizer.normalizer
    return normalizer is not None and bool(normalizer.normalize_str("A") == "a")


def _most_frequent(counts: Mapping[str, int]) -> str:
    return max(counts, key=counts.__getitem__)


def _known(pieces: Any, counts: Mapping[str, int]) -> dict[int, int]:
    """Return {piece id: count} for the words in `counts` that are a single piece.

    `counts` has the words that a noisy form stands for. If the most frequent one has several
    pieces, the result is empty: then the form does not become a token.
    """
    found = {word: _piece(pieces, word) for word in counts}
    if found[_most_frequent(counts)] is None:
        return {}
    return {piece: counts[word] for word, piece in found.items() if piece is not None}


def _piece(pieces: Any, word: str) -> int | None:
    """Return the piece id of a word that is one piece after a space; None for other words."""
    return _of_one_piece(pieces, [word]).get(word)


def _of_one_piece(pieces: Any, words: list[str]) -> dict[str, int]:
    """Return {word: piece id} for the words that are one piece after a space."""
    if not words:
        return {}
    ids = pieces([f" {word}" for word in words], add_special_tokens=False)["input_ids"]
    both = zip(words, ids, strict=True)
    return {word: own[0] for word, own in both if len(own) == 1 and own[0] != pieces.unk_token_id}


def _content(pieces: Any, form: str) -> str | None:
    """Return the text under which a noisy form is added as a token; None if it cannot be added.

    The text is the form itself, unless the vocabulary has it as a piece of words: then the token
    would also match inside longer words. In that case the text is the form in upper case if the
    tokenizer is uncased, since it lower-cases added tokens before matching; otherwise None.
    """
    has = pieces.backend_tokenizer.token_to_id
    if has(form) is None:
        return form
    upper = form.upper()
    is_free = has(upper) is None and upper.lower() == form
    return upper if is_free and _is_uncased(pieces) else None
