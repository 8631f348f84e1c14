"""The phrase table: a lexicon compiled to a hash table, and the search for its phrases in text.

A phrase is found word by word: its hash is computed from the hash of its words but the last, the
character after them, and the hash of the last word. Matches consist of whole words. If matches
overlap, the leftmost is kept; if they begin together, the longest. Compiled lexicons are stored in
a cache folder, one file per lexicon, and memory-mapped from there.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property, lru_cache, partial
from hashlib import blake2b
from itertools import chain, compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.errors import LexiconError
from noisegen.noising.lexicon import POS, Entry, Lexicon, Parser, read_lexicon_file
from noisegen.noising.rng import GOLDEN, MASK, WeightedChoices, splitmix, splitmix_array
from noisegen.text import buffers
from noisegen.text.buffers import I32, I64, U8, U64, Bool, HashTable, Texts, Tokens
from noisegen.text.case import capitalize, case_class, case_classes, is_upper, upper
from noisegen.text.resources import cache_folder
from noisegen.text.rows import Memo, Row

RowMatch = tuple[int, int, int]  # match in one row: first word, last word, key of the phrase
FORMAT = 13  # version of the cached files: raise it when their layout or meaning changes
STORED_MAX = 256  # tables of the cache folder that a process keeps open


def row_forms(row: Row, matches: Sequence[RowMatch]) -> list[int]:
    """Return a hash of each match in a row; equal phrases have equal hashes.

    The hash of a match of one word is the hash of this word.
    """
    hashes = row.hashes
    forms: list[int] = []  # `list[int]()` takes 15 times as long as `[]`
    for first, last, _ in matches:
        forms.append((hashes[first] + (hashes[first] ^ hashes[last]) * GOLDEN) & MASK)
    return forms


def phrase_hash(state: int, gap: str, word: int) -> int:
    """Return the hash of a phrase with one more word.

    `state` is the hash of the phrase so far, `word` the hash of the word that is added, and `gap`
    the character between them.
    """
    return splitmix((state + ord(gap) * GOLDEN) & MASK) ^ word


# Cache: hash of a phrase -> number whose XOR with the next word's hash is the `phrase_hash` of
# phrase, space and word.
_AFTER_SPACE = Memo[int, int](partial(phrase_hash, gap=" ", word=0))


def phrase_hashes(states: U64, gaps: I64, words: U64) -> U64:
    """Return `phrase_hash` for many phrases; `gaps` has the code points of the characters."""
    mixed: U64 = splitmix_array(states + gaps.astype(np.uint64) * np.uint64(GOLDEN)) ^ words
    return mixed


@dataclass(frozen=True)
class Matches:
    """Matches of a phrase table in rows of text, ascending and disjoint, one entry per match.

    A match has a row, a byte range, the key of its phrase in the table, and the indices of its
    first and last word.
    """

    rows: I64
    starts: I64
    stops: I64
    keys: I32
    firsts: I64
    lasts: I64

    def take(self, chosen: I64) -> "Matches":
        """Return the matches with the indices `chosen`."""
        return Matches(*(getattr(self, column.name).take(chosen) for column in fields(self)))

    def forms(self, words: Tokens) -> U64:
        """Return a hash of each match; equal phrases have equal hashes, as in `row_forms`.

        `words` are the words in which the matches were found.
        """
        first, last = words.hashes.take(self.firsts), words.hashes.take(self.lasts)
        return first + (first ^ last) * np.uint64(GOLDEN)

    def without(self, dropped: I64) -> "Matches":
        """Return the matches whose indices are not in `dropped`."""
        return self.take(np.delete(np.arange(len(self)), dropped)) if len(dropped) else self

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PhraseTable:
    """A compiled lexicon, or several; each row of text is searched for the phrases of one of them.

    - `slots`, `slot_entries`, `sizes`: hash tables from phrases to entries, one table per lexicon.
      An entry is 2 * key of the phrase, plus 1 if a longer phrase begins with the same words. Keys
      count from 1; key 0 is for words that are no phrase but begin one.
    - `cases_asked`: for each key, the minimum case class that a match must have (`case_class`).
    - `groups`: index of the group of replacements for each (key, part of speech), -1 for none.
    - `bounds`: weighted choices among the replacements of all groups, see `WeightedChoices`.
    - `pool_values`, `pool_offsets`: texts of the replacements. Replacement r has the texts 3 * r
      (as written), 3 * r + 1 (Title) and 3 * r + 2 (UPPER).
    - `stays`: 1 for each replacement that leaves the phrase as it is, else 0.
    - `head`: fields in the head of the lexicon; {} if the table has several lexicons.
    - `words_max`: number of words of the longest phrase.
    - `matched_by`: kind of words that phrases consist of, see `Texts.words`.
    """

    slots: U64
    slot_entries: I32
    sizes: I64
    cases_asked: U8
    groups: I32
    bounds: I64
    pool_values: U8
    pool_offsets: I32
    stays: U8
    head: dict[str, str]
    words_max: int
    matched_by: str = "tokens"

    def find_row(self, row: Row) -> list[RowMatch]:
        """Find the matches in one row, which is cut into words of the kind `matched_by`.

        If matches overlap, the leftmost and then the longest is kept.
        """
        known, hashes, gaps = self.entry_of, row.hashes, row.gaps
        entries: list[Any] = list(map(known.get, hashes))
        matches: list[RowMatch] = []
        reach, end = 0, len(hashes) - 1
        for first in compress(range(len(entries)), entries):  # most words begin no phrase
            if first < reach:
                continue
            entry, last = entries[first], first
            key = entry >> 1
            if entry & 1 and first < end:
                # In most cases, one look-up of the first two words rules out a longer phrase.
                longer = _AFTER_SPACE[hashes[first]] ^ hashes[first + 1]
                if gaps[first] != " " or longer in known:
                    key, last = self._longest_in(row, first, entry)
            asked = key and self.cases_asked[key]
            if key and (not asked or asked <= case_class(row.phrase(first, last))):
                matches.append((first, last, key))
                reach = last + 1
        return matches

    def _longest_in(self, row: Row, first: int, entry: int) -> tuple[int, int]:
        """Return the key and the last word of the longest phrase that begins with word `first`.

        Words are given by their indices in the row. `entry` is the entry of word `first` in the
        hash table. The key is 0 if no phrase is found.
        """
        hashes, gaps, known = row.hashes, row.gaps, self.entry_of
        key, last, end, state = entry >> 1, first, first + 1, hashes[first]
        while entry & 1 and end < len(hashes) and len(gap := gaps[end - 1]) == 1:
            state = phrase_hash(state, gap, hashes[end])
            entry = known.get(state, 0)
            if entry > 1:
                key, last = entry >> 1, end
            end += 1
        return key, last

    def written(self, row: Row, match: RowMatch, drawn: int, group: int | None = None) -> str:
        """Return the replacement that a 16-bit draw chooses for a match.

        `group` is the group to choose from (default: the phrase's first group).
        """
        first, last, key = match
        group = self.first_groups[key] if group is None else group
        chosen, phrase = self.choices.pick_one(group, drawn), row.phrase(first, last)
        if self.stays[chosen]:
            return phrase
        number = chosen * 3 + case_class(phrase)
        # Slicing memory views takes two thirds of the time of slicing arrays.
        start, stop = self.pool_offsets.data[number : number + 2]
        return str(self.pool_values.data[start:stop], "utf-8")

    @cached_property
    def first_groups(self) -> list[int]:
        """For each key, its first group of replacements; there is one per part of speech.

        A look-up in this list takes a hundredth of the time of `argmax` over the groups of a key.
        """
        first: list[int] = self.groups[np.arange(len(self.groups)), self.first_pos].tolist()
        return first

    @cached_property
    def entry_of(self) -> dict[int, int]:
        """Dictionary from the hash of a phrase to its entry, for a table of one lexicon."""
        size = self.sizes[0]
        taken = np.flatnonzero(self.slots[:size])
        return dict(zip(self.slots[taken].tolist(), self.slot_entries[taken].tolist(), strict=True))

    def words(self, texts: Texts) -> Tokens:
        """Return the words of all rows, cut as `matched_by` says."""
        return texts.words(self.matched_by)

    @cached_property
    def pool(self) -> pa.Array:
        """The texts of all replacements, three for each: as written, Title and UPPER."""
        return Texts(self.pool_values, self.pool_offsets.astype(np.int64)).to_arrow()

    @cached_property
    def choices(self) -> WeightedChoices:
        """Weighted choices among the replacements of each group."""
        return WeightedChoices(self.bounds)

    @cached_property
    def ends_in_dot(self) -> Bool:
        """Array that tells for each text in `pool` whether the text ends in a full stop."""
        ends: Bool = self.pool_values[self.pool_offsets[1:] - 1] == ord(".")
        return ends & (np.diff(self.pool_offsets) > 0)

    @cached_property
    def first_pos(self) -> I64:
        """For each key, the first part of speech (column of `groups`) that has replacements."""
        first: I64 = np.argmax(self.groups >= 0, axis=1).astype(np.int64)
        return first

    @cached_property
    def _entries(self) -> HashTable:
        return HashTable(self.slots, self.slot_entries, self.sizes)

    def find(self, texts: Texts, lexicons: I64 | None = None) -> Matches:
        """Find the matches in many rows, as `find_row` does.

        `lexicons` has for each row the index of the lexicon to search it for (default: 0).
        """
        words = self.words(texts)
        lexicon = None if lexicons is None else lexicons.take(words.rows)
        entries = self._entries.find(words.hashes, lexicon)
        firsts = np.flatnonzero(entries != 0)
        keys, lasts = self._longest(words, lexicon, firsts, entries.take(firsts))
        whole = np.flatnonzero(keys != 0)
        firsts, lasts, keys = firsts.take(whole), lasts.take(whole), keys.take(whole)
        ranges = words.rows.take(firsts), words.starts.take(firsts), words.stops.take(lasts)
        matches = Matches(*ranges, keys, firsts, lasts)
        # A phrase that has a capital in the lexicon does not match text without this capital.
        asked = self.cases_asked.take(keys)
        asking = np.flatnonzero(asked)
        cases = case_classes(texts.values, ranges[1].take(asking), ranges[2].take(asking))
        matches = matches.without(asking[cases < asked.take(asking)])
        return matches.without(buffers.overlapping(matches.starts, matches.stops))

    def _longest(
        self, words: Tokens, lexicon: I64 | None, firsts: I64, entries: I32
    ) -> tuple[I32, I64]:
        """Return key and last word of the longest phrase that begins at each word in `firsts`.

        Words are given by their indices in `words`. `entries` has the hash table's entry for each
        word in `firsts`, `lexicon` the index of the lexicon to search for each word in `words`.
        The key is 0 if no phrase is found.
        """
        keys, lasts = entries >> 1, firsts.copy()
        begun = np.flatnonzero(entries & 1)  # phrases that may continue with the next word
        state = words.hashes.take(firsts.take(begun))
        for more in range(1, self.words_max):
            end = firsts.take(begun) + more
            gaps = words.gaps(end - 1)
            on = np.flatnonzero(gaps != 0)
            if not len(on):
                break
            begun, end = begun.take(on), end.take(on)
            state = phrase_hashes(state.take(on), gaps.take(on), words.hashes.take(end))
            entries = self._entries.find(state, None if lexicon is None else lexicon.take(end))
            whole = np.flatnonzero(entries > 1)
            keys[begun.take(whole)] = entries.take(whole) >> 1
            lasts[begun.take(whole)] = end.take(whole)
            on = np.flatnonzero(entries & 1)
            begun, state = begun.take(on), state.take(on)
        return keys, lasts

    def alternatives(self, values: U8, matches: Matches, pos: I64, chosen: I64) -> I64:
        """Return for each match the index in `pool` of the replacement that its draw chooses.

        `values` are the bytes of the searched texts. `pos` and `chosen` have one entry per match:
        the column number in `groups` of the part of speech, and a 16-bit draw.
        """
        drawn = self.choices.pick(self.groups[matches.keys, pos].astype(np.int64), chosen)
        return drawn * 3 + case_classes(values, matches.starts, matches.stops)


_NOTES = ("head", "words_max", "matched_by")
ARRAYS = [column.name for column in fields(PhraseTable) if column.name not in _NOTES]


def build(lexicon: Lexicon, matched_by: str = "tokens") -> PhraseTable:
    """Compile a lexicon whose phrases consist of words of the kind `matched_by`.

    Raises LexiconError for a word that is too long, and for phrases that differ only in case.
    """
    name, groups = lexicon.head["name"], lexicon.groups()
    cleans = _cleans_of(groups, name)
    keys = {folded: key for key, folded in enumerate(cleans)}
    numbers = np.full((len(keys), len(POS)), -1, np.int32)
    for number, (folded, pos) in enumerate(groups):
        numbers[keys[folded], POS.index(pos)] = number
    table, words_max = _hash_table(list(cleans.values()), name, matched_by)
    choices = WeightedChoices.of([entry.weight for entry in group] for group in groups.values())
    cases_asked = np.array(list(map(_case_asked, cleans.values())), np.uint8)
    alternatives = list(chain.from_iterable(groups.values()))
    pool = Texts.from_strings([form for entry in alternatives for form in _forms(entry)])
    stays = np.array([entry.noisy == entry.clean for entry in alternatives], np.uint8)
    return PhraseTable(
        slots=table.slots,
        slot_entries=table.values,
        sizes=table.sizes,
        cases_asked=cases_asked,
        groups=numbers,
        bounds=choices.bounds,
        pool_values=pool.window,
        pool_offsets=pool.offsets.astype(np.int32),
        stays=stays,
        head=lexicon.head,
        words_max=words_max,
        matched_by=matched_by,
    )


def _cleans_of(groups: Mapping[tuple[str, str], Sequence[Entry]], name: str) -> dict[str, str]:
    """Return the phrases of a lexicon by lower-case form; the index of a phrase is its key.

    `groups` has the entries of each lower-case phrase and part of speech. Key 0 belongs to no
    phrase: in the hash table it marks the first words of longer phrases. Raises LexiconError for
    phrases that differ only in case; `name` is the name of the lexicon.
    """
    cleans = {"": ""}
    for (folded, _), group in groups.items():
        clean = cleans.setdefault(folded, group[0].clean)
        if other := next((entry.clean for entry in group if entry.clean != clean), ""):
            raise LexiconError(f"lexicon {name}: {clean!r} and {other!r} differ only in case")
    return cleans


def _forms(entry: Entry) -> tuple[str, str, str]:
    """Return the replacement of an entry as written, in Title case and in UPPER case.

    Two forms stay as written: the Title case of initials ('Oh my god' becomes 'omg'), and the UPPER
    case of the expansion of an acronym ('ASAP' becomes 'as soon as possible').
    """
    initials = "".join(word[0] for word in entry.clean.split(" "))
    plain = len(initials) > 1 and entry.noisy == initials
    acronym = entry.clean == upper(entry.clean)
    return (
        entry.noisy,
        entry.noisy if plain else capitalize(entry.noisy),
        entry.noisy if acronym else upper(entry.noisy),
    )


def _case_asked(clean: str) -> int:
    """Return the minimum case class that a match of a phrase must have, see `case.case_class`.

    It is 2 for an acronym, 1 for another phrase with a capital, and 0 for all other phrases.
    """
    if not any(map(is_upper, clean)):
        return 0
    return 2 if len(clean) > 1 and clean == upper(clean) else 1


def _hash_table(cleans: list[str], name: str, matched_by: str) -> tuple[HashTable, int]:
    """Return a hash table of phrases, and the number of words of the longest phrase.

    The key of a phrase is its index in `cleans`. Each phrase is found with straight and with curly
    apostrophes. `name` is the name of the lexicon in errors.
    """
    phrases = [
        (form, key)
        for key, clean in enumerate(cleans)
        for form in dict.fromkeys(clean.replace("'", mark) for mark in buffers.APOSTROPHES)
        if clean
    ]
    words = Texts.from_strings([form for form, _ in phrases]).words(matched_by)
    firsts = np.searchsorted(words.rows, np.arange(len(phrases) + 1))
    entries: dict[int, int] = {}
    for row, (form, key) in enumerate(phrases):
        hashes = words.hashes[firsts[row] : firsts[row + 1]]
        if 0 in hashes:
            longest = buffers.WORD_BYTES_MAX
            raise LexiconError(f"lexicon {name}: a word of {form!r} is over {longest} bytes")
        state = hashes[:1]
        for word in range(1, len(hashes)):
            entries[int(state[0])] = entries.get(int(state[0]), 0) | 1
            gap = words.gaps(firsts[row : row + 1] + word - 1)
            state = phrase_hashes(state, gap, hashes[word : word + 1])
        entries[int(state[0])] = entries.get(int(state[0]), 0) | key * 2
    hashes = np.fromiter(entries, np.uint64, len(entries))
    values = np.fromiter(entries.values(), np.int32, len(entries))
    return HashTable.of(hashes, values), int(np.diff(firsts).max(initial=0))


def side_by_side(tables: Sequence[PhraseTable]) -> PhraseTable:
    """Join the tables of several lexicons into one; lexicons are numbered in the given order."""
    renumbered: list[PhraseTable] = []
    keys = groups = texts = 0
    for table in tables:
        entries = table.slot_entries
        moved = replace(
            table,
            slot_entries=np.where(entries > 1, entries + 2 * keys, entries),
            groups=np.where(table.groups >= 0, table.groups + groups, -1),
            bounds=table.choices.shifted(groups).bounds,
            pool_offsets=table.pool_offsets[bool(renumbered) :] + np.int32(texts),
        )
        renumbered.append(moved)
        keys, groups = keys + len(table.groups), groups + int(table.groups.max(initial=-1)) + 1
        texts += len(table.pool_values)
    joined = {name: np.concatenate([getattr(t, name) for t in renumbered]) for name in ARRAYS}
    words_max = max(table.words_max for table in tables)
    return PhraseTable(**joined, head={}, words_max=words_max, matched_by=tables[0].matched_by)


def load_table(path: Path, parser: Parser, matched_by: str = "tokens") -> PhraseTable:
    """Compile the lexicon in a file; files with equal content are compiled only once."""
    content, label = read_lexicon_file(path), f"{parser.__name__} {matched_by}"

    def compiled() -> PhraseTable:
        return build(parser(content, str(path)), matched_by)

    return cached_table(path.stem, content, label, compiled)


def cached_table(
    name: str, content: bytes, label: str, make: Callable[[], PhraseTable]
) -> PhraseTable:
    """Return the table for `content`, read from the cache folder or made by `make`.

    The name of the cached file begins with `name`. `label` tells how `make` reads the content, for
    example by which parser: each label has a cached table of its own.
    """
    key = blake2b(content, digest_size=10, person=f"noisegen {FORMAT}".encode())
    key.update(label.encode())
    path = cache_folder() / f"{name}-{key.hexdigest()}.arrow"
    try:
        return _stored_table(path)
    except (OSError, ValueError, KeyError):
        table = make()
    lists = []  # one list per array: the file has a single row
    for name in ARRAYS:
        column = buffers.as_arrow(getattr(table, name).ravel())
        ends = buffers.as_arrow(np.array([0, len(column)], np.int32))
        lists.append(pa.ListArray.from_arrays(ends, column))
    note = json.dumps({name: getattr(table, name) for name in _NOTES})
    batch = pa.record_batch(lists, ARRAYS).replace_schema_metadata({"noisegen": note})
    with suppress(OSError):  # without a writable cache, the next call compiles again
        path.parent.mkdir(parents=True, exist_ok=True)
        with (  # several processes may compile at once: each writes its own file, then renames it
            tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write(batch)
        Path(file.name).replace(path)
    return table


@lru_cache(STORED_MAX)
def _stored_table(path: Path) -> PhraseTable:
    """Return the table in a file of the cache folder; raises OSError, ValueError or KeyError."""
    batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    arrays: dict[str, Any] = {name: buffers.as_numpy(batch[name].values) for name in ARRAYS}
    arrays["groups"] = arrays["groups"].reshape(-1, len(POS))
    return PhraseTable(**arrays, **json.loads(batch.schema.metadata[b"noisegen"]))
