"""The phrase table: a lexicon compiled to a hash table, and all its matches in a batch of rows.

A phrase is found word by word: the hash of its first words, the byte between, and the next word
give the hash of one word more. Matches are whole words, leftmost first, then longest. Compiled
lexicons are kept in a cache folder, by content, and memory-mapped from there.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from hashlib import blake2b
from itertools import compress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from noisegen.errors import LexiconError
from noisegen.noising.lexicon import POS, Entry, Lexicon, Parser, read_lexicon_file
from noisegen.noising.rng import GOLDEN, MASK, WeightedChoices, mix, mix_array
from noisegen.text import buffers
from noisegen.text.buffers import I32, I64, U8, U64, Bool, HashTable, Texts, Tokens
from noisegen.text.case import capitalize, case_class, case_classes, is_upper, upper
from noisegen.text.resources import cache_folder
from noisegen.text.rows import Memo, Row

RowMatch = tuple[int, int, int]  # numbers of the first and last word, key of the table
FORMAT = 13  # of a compiled lexicon; raise it when a change alters what a table means


@dataclass(frozen=True)
class Matches:
    """Matches in `Texts`: row, byte range, key of the table, numbers of first and last word.

    Ascending and disjoint.
    """

    rows: I64
    starts: I64
    stops: I64
    keys: I32
    firsts: I64
    lasts: I64

    def take(self, chosen: I64) -> "Matches":
        """Return the matches of these numbers."""
        return Matches(*(getattr(self, column.name).take(chosen) for column in fields(self)))

    def forms(self, words: Tokens) -> U64:
        """Return a number for the phrase of each match: of one word, its hash."""
        first, last = words.hashes.take(self.firsts), words.hashes.take(self.lasts)
        return first + (first ^ last) * np.uint64(GOLDEN)

    def without(self, dropped: I64) -> "Matches":
        """Return the other matches."""
        return self.take(np.delete(np.arange(len(self)), dropped)) if len(dropped) else self

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PhraseTable:
    """A compiled lexicon, or several side by side: a row of text is searched in one of them.

    `slots`, `slot_entries` and `sizes` are hash tables from phrases to entries: key * 2 + 1 if the
    phrase goes on; key 0 is a mere prefix. Key k asks for a match of case class `cases_asked[k]` or
    above. It has the alternatives of group `groups[k, pos]` (-1: none) of the weighted choices
    `bounds`; alternative a is `pool[3 * a + case class]`, or with `stays[a]` the match itself.
    `matched_by` names the words of a text: `tokens`, `characters` or `runs`.
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

    def words(self, texts: Texts) -> Tokens:
        """Return the words that matches are made of."""
        words: Tokens = getattr(texts, self.matched_by)
        return words

    def row_words(self, row: Row) -> Row:
        """Return a row with the words that matches are made of."""
        return row if self.matched_by == "tokens" else getattr(row, self.matched_by)

    @cached_property
    def pool(self) -> pa.Array:
        """All replacements, three per alternative: as written, Title, UPPER."""
        return Texts(self.pool_values, self.pool_offsets.astype(np.int64)).to_arrow()

    @cached_property
    def choices(self) -> WeightedChoices:
        """The alternatives of every group."""
        return WeightedChoices(self.bounds)

    @cached_property
    def ends_in_dot(self) -> Bool:
        """Whether each replacement of `pool` ends in a full stop."""
        ends: Bool = self.pool_values[self.pool_offsets[1:] - 1] == ord(".")
        return ends & (np.diff(self.pool_offsets) > 0)

    @cached_property
    def first_pos(self) -> I64:
        """The first part of speech that each key has alternatives for."""
        first: I64 = np.argmax(self.groups >= 0, axis=1).astype(np.int64)
        return first

    @cached_property
    def _entries(self) -> HashTable:
        return HashTable(self.slots, self.slot_entries, self.sizes)

    def find(self, texts: Texts, lexicons: I64 | None = None) -> Matches:
        """Find all matches, leftmost-longest; every row in its lexicon (default: the first)."""
        words = self.words(texts)
        lexicon = None if lexicons is None else lexicons.take(words.rows)
        entries = self._entries.find(words.hashes, lexicon)
        firsts = np.flatnonzero(entries != 0)
        keys, lasts = self._longest(words, lexicon, firsts, entries.take(firsts))
        whole = np.flatnonzero(keys != 0)
        firsts, lasts, keys = firsts.take(whole), lasts.take(whole), keys.take(whole)
        ranges = words.rows.take(firsts), words.starts.take(firsts), words.stops.take(lasts)
        matches = Matches(*ranges, keys, firsts, lasts)
        # Drop matches whose key asks for a capital that the text lacks.
        asked = self.cases_asked.take(keys)
        asking = np.flatnonzero(asked)
        cases = case_classes(texts.values, ranges[1].take(asking), ranges[2].take(asking))
        matches = matches.without(asking[cases < asked.take(asking)])
        return matches.without(buffers.overlapping(matches.starts, matches.stops))

    def _longest(
        self, words: Tokens, lexicon: I64 | None, firsts: I64, entries: I32
    ) -> tuple[I32, I64]:
        """Return key (0: none) and last word of the longest phrase from each of the first words."""
        keys, lasts = entries >> 1, firsts.copy()
        begun = np.flatnonzero(entries & 1)  # those that may go on
        state = words.hashes.take(firsts.take(begun))
        for more in range(1, self.words_max):
            end = firsts.take(begun) + more
            gaps = words.gaps(end - 1)
            on = np.flatnonzero(gaps != 0)
            if not len(on):
                break
            begun, end = begun.take(on), end.take(on)
            state = _phrase_hash(state.take(on), gaps.take(on), words.hashes.take(end))
            entries = self._entries.find(state, None if lexicon is None else lexicon.take(end))
            whole = np.flatnonzero(entries > 1)
            keys[begun.take(whole)] = entries.take(whole) >> 1
            lasts[begun.take(whole)] = end.take(whole)
            on = np.flatnonzero(entries & 1)
            begun, state = begun.take(on), state.take(on)
        return keys, lasts

    def alternatives(self, values: U8, matches: Matches, pos: I64, chosen: I64) -> I64:
        """Return the index in `pool` of matches in `values`, given tags and choices."""
        drawn = self.choices.pick(self.groups[matches.keys, pos].astype(np.int64), chosen)
        return drawn * 3 + case_classes(values, matches.starts, matches.stops)

    def find_row(self, row: Row, least: int = 1) -> list[RowMatch]:
        """Find the matches in one of `row_words`, as `find`; maybe none if fewer than `least`."""
        matches, reach, asked = list[RowMatch](), 0, self._asked
        hashes, gaps, known, spaced = row.hashes, row.gaps, self._entries.as_dict, self._spaced
        entries: list[Any] = list(map(known.get, hashes))
        begun = list(compress(range(len(entries)), entries))
        end = len(hashes) - 1
        for first in begun if len(begun) >= least else ():
            if first < reach:
                continue
            entry = entries[first]
            key, last = entry >> 1, first
            # Few phrases that may go on do: a look at the next word is cheaper than a search.
            if (
                entry & 1
                and first < end
                and (gaps[first] != " " or spaced[hashes[first]] ^ hashes[first + 1] in known)
            ):
                key, last = self._longest_in(row, first, entry)
            if key and (not asked[key] or asked[key] <= case_class(row.phrase(first, last))):
                matches.append((first, last, key))
                reach = last + 1
        return matches

    def _longest_in(self, row: Row, first: int, entry: int) -> tuple[int, int]:
        """Return key (0: none) and last word of the longest phrase from a word with this entry."""
        hashes, gaps, prefixes, known = row.hashes, row.gaps, self._prefixes, self._entries.as_dict
        key, last, end, state = entry >> 1, first, first + 1, hashes[first]
        while entry & 1 and end < len(hashes) and len(gap := gaps[end - 1]) == 1:
            state = prefixes[state, gap] ^ hashes[end]
            entry = known.get(state, 0)
            if entry > 1:
                key, last = entry >> 1, end
            end += 1
        return key, last

    @cached_property
    def _spaced(self) -> Memo[int, int]:
        """What the hash of a phrase becomes with a space behind it, before the next word."""
        return Memo(lambda state: self._prefixes[state, " "])

    @cached_property
    def _prefixes(self) -> Memo[tuple[int, str], int]:
        """What the hash of a phrase and the character behind it become, before the next word."""
        return Memo(lambda begun: mix((begun[0] + ord(begun[1]) * GOLDEN) & MASK))

    def written(self, row: Row, match: RowMatch, drawn: int, group: int | None = None) -> str:
        """Return the alternative of a match, of its first group or another, for 16 drawn bits."""
        first, last, key = match
        group = self.first_groups[key] if group is None else group
        chosen, phrase = self.choices.pick_one(group, drawn), row.phrase(first, last)
        if self._stays[chosen]:
            return phrase
        number = chosen * 3 + case_class(phrase)
        start, stop = self._edges[number : number + 2]
        return str(self._written[start:stop], "utf-8")

    @cached_property
    def first_groups(self) -> list[int]:
        """The group of each key for the first part of speech that it has alternatives for."""
        groups: list[int] = self.groups[np.arange(len(self.groups)), self.first_pos].tolist()
        return groups

    @cached_property
    def _stays(self) -> bytes:
        return self.stays.tobytes()

    @cached_property
    def _asked(self) -> bytes:
        return self.cases_asked.tobytes()

    @cached_property
    def _edges(self) -> memoryview:
        return self.pool_offsets.data

    @cached_property
    def _written(self) -> memoryview:
        return self.pool_values.data


def row_forms(row: Row, matches: Sequence[RowMatch]) -> list[int]:
    """Return `Matches.forms` of the matches in one row."""
    hashes = row.hashes
    return [
        (hashes[first] + (hashes[first] ^ hashes[last]) * GOLDEN) & MASK
        for first, last, _ in matches
    ]


_NOTES = ("head", "words_max", "matched_by")
ARRAYS = [column.name for column in fields(PhraseTable) if column.name not in _NOTES]


def _phrase_hash(state: U64, gap: I64, hashes: U64) -> U64:
    """Return the hash of a phrase that goes on with a byte and a word."""
    mixed: U64 = mix_array(state + gap.astype(np.uint64) * np.uint64(GOLDEN)) ^ hashes
    return mixed


def build(lexicon: Lexicon, matched_by: str = "tokens") -> PhraseTable:
    """Compile a lexicon; raises LexiconError for words that are too long or differ in case only."""
    name = lexicon.head["name"]
    groups = lexicon.groups()
    cleans: dict[str, str] = {"": ""}  # by their keys' folded form; key 0 is a mere prefix
    for (folded, _), group in groups.items():
        clean = cleans.setdefault(folded, group[0].clean)
        if other := next((entry.clean for entry in group if entry.clean != clean), ""):
            both = f"{clean!r} and {other!r}"
            raise LexiconError(f"lexicon {name}: {both} differ only in case")
    keys = {folded: key for key, folded in enumerate(cleans)}
    numbers = np.full((len(keys), len(POS)), -1, np.int32)
    for number, (folded, pos) in enumerate(groups):
        numbers[keys[folded], POS.index(pos)] = number
    phrases = [  # with straight and with curly apostrophes
        (form, key)
        for key, clean in enumerate(cleans.values())
        for form in dict.fromkeys(clean.replace("'", mark) for mark in buffers.APOSTROPHES)
        if clean
    ]
    table, words_max = _hash_table(phrases, name, matched_by)
    choices = WeightedChoices.of([entry.weight for entry in group] for group in groups.values())
    cases_asked = np.array([_case_asked(clean) for clean in cleans.values()], np.uint8)
    alternatives = [entry for group in groups.values() for entry in group]
    pool = Texts.from_strings([form for entry in alternatives for form in _forms(entry)])
    stays = np.array([entry.noisy == entry.clean for entry in alternatives], np.uint8)
    return PhraseTable(
        table.slots, table.values, table.sizes, cases_asked, numbers, choices.bounds, pool.window,
        pool.offsets.astype(np.int32), stays, lexicon.head, words_max, matched_by,
    )  # fmt: skip


def _forms(entry: Entry) -> tuple[str, str, str]:
    """Return a replacement as written, Title and UPPER.

    Initials are never Title ('Oh my god' becomes 'omg'), an acronym's expansion never UPPER.
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
    """Return the case class that a key asks for: 2 an acronym, 1 another with a capital."""
    if not any(map(is_upper, clean)):
        return 0
    return 2 if len(clean) > 1 and clean == upper(clean) else 1


def _hash_table(
    phrases: list[tuple[str, int]], name: str, matched_by: str
) -> tuple[HashTable, int]:
    """Return the entries of phrases with their keys, and the words of the longest."""
    words: Tokens = getattr(Texts.from_strings([form for form, _ in phrases]), matched_by)
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
            state = _phrase_hash(state, gap, hashes[word : word + 1])
        entries[int(state[0])] = entries.get(int(state[0]), 0) | key * 2
    hashes = np.fromiter(entries, np.uint64, len(entries))
    values = np.fromiter(entries.values(), np.int32, len(entries))
    return HashTable.of(hashes, values), int(np.diff(firsts).max(initial=0))


def side_by_side(tables: Sequence[PhraseTable]) -> PhraseTable:
    """Return the table of several lexicons, numbered in this order."""
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
    """Return the compiled lexicon of a file, from the cache if its content was compiled before."""
    content, meant = read_lexicon_file(path), f"{parser.__name__} {matched_by}"

    def compiled() -> PhraseTable:
        return build(parser(content, str(path)), matched_by)

    return cached_table(path.stem, content, meant, compiled)


def cached_table(
    name: str, content: bytes, meant: str, make: Callable[[], PhraseTable]
) -> PhraseTable:
    """Return what `make` compiles of a content, or did before; `meant` says how it is read."""
    key = blake2b(content, digest_size=10, person=f"noisegen {FORMAT}".encode())
    key.update(meant.encode())
    path = cache_folder() / f"{name}-{key.hexdigest()}.arrow"
    try:
        batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
        arrays: dict[str, Any] = {name: buffers.as_numpy(batch[name].values) for name in ARRAYS}
        arrays["groups"] = arrays["groups"].reshape(-1, len(POS))
        return PhraseTable(**arrays, **json.loads(batch.schema.metadata[b"noisegen"]))
    except (OSError, ValueError, KeyError):
        table = make()
    lists = []  # of one record
    for name in ARRAYS:
        column = buffers.as_arrow(getattr(table, name).ravel())
        ends = buffers.as_arrow(np.array([0, len(column)], np.int32))
        lists.append(pa.ListArray.from_arrays(ends, column))
    note = json.dumps({name: getattr(table, name) for name in _NOTES})
    batch = pa.record_batch(lists, ARRAYS).replace_schema_metadata({"noisegen": note})
    with suppress(OSError):  # a read-only or full cache costs time, not correctness
        path.parent.mkdir(parents=True, exist_ok=True)
        with (  # concurrent writers each rename a file of their own
            tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write(batch)
        Path(file.name).replace(path)
    return table
