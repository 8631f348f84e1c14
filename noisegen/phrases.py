"""The phrase kernel: a lexicon compiled to a hash table, and all its matches in a batch of rows.

A phrase is found word by word: the hash of its first words, the byte between, and the next word
gives the hash of one word more. Matches are whole words, leftmost first, then longest.
"""

import json
import os
import tempfile
from dataclasses import dataclass, fields
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from noisegen.draws import CHOICE_BITS, I64, U64
from noisegen.errors import LexiconError
from noisegen.lexicon import POS, Entry, Lexicon, Parser, read_lexicon_file
from noisegen.text import U8, Bool, Texts, as_arrow, as_numpy, capitalize, fold, is_upper, upper
from noisegen.words import APOSTROPHES, WORD_BYTES_MAX, extend

FORMAT = 6  # of the compiled cache; raise it when anything below changes what a table means
_SLOTS_PER_ENTRY = 4
I32 = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Matches:
    """Matches in `Texts`: row, byte range, key of the table, numbers of first and last word.

    Ascending and disjoint.
    """

    rows: I64
    starts: I64
    stops: I64
    keys: I64
    firsts: I64
    lasts: I64

    def take(self, chosen: Bool | I64) -> "Matches":
        """Return the chosen matches."""
        return Matches(*(getattr(self, column.name)[chosen] for column in fields(self)))

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True)
class PhraseTable:
    """A compiled lexicon.

    `slots` (hash or 0) and `slot_entries` (key * 2 + 1 if the phrase goes on; key 0 is a mere
    prefix) form an open hash table. Key k has the alternatives of group `groups[k, pos]` (-1:
    none); `uppers` holds group * 2^17 + cumulative weight out of 2^16, ascending; alternative a
    is `pool[3 * a + case]`.
    """

    slots: U64
    slot_entries: I32
    capital_keys: U8
    groups: I32
    uppers: I64
    pool_values: U8
    pool_offsets: I32
    head: dict[str, str]
    words_max: int

    @cached_property
    def pool(self) -> pa.Array:
        """All replacements, three a case."""
        return Texts(self.pool_values, self.pool_offsets.astype(np.int64)).to_arrow()

    def find(self, texts: Texts) -> Matches:
        """Find all matches, leftmost-longest."""
        words = texts.tokens
        entries = self.look_up(words.hashes)
        first = np.flatnonzero(entries)
        entries, state = entries[first], words.hashes[first]
        best, last = entries >> 1, first.copy()
        at = np.arange(len(first))  # the phrases that may go on
        for count in range(1, self.words_max):
            end = first[at] + count - 1
            on = (entries & 1 == 1) & (words.gaps[end] > 0)
            at, state, end = at[on], state[on], end[on]
            if not len(at):
                break
            state = extend(state, words.gaps[end], words.hashes[end + 1])
            entries = self.look_up(state)
            longer = entries > 1
            best[at[longer]], last[at[longer]] = entries[longer] >> 1, end[longer] + 1
        found = best > 0
        first, last, keys = first[found], last[found], best[found]
        rows, starts, stops = words.rows[first], words.starts[first], words.stops[last]
        matches = Matches(rows, starts, stops, keys, first, last)
        return _leftmost(self._capitals_met(texts.values, matches))

    def _capitals_met(self, values: U8, matches: Matches) -> Matches:
        """Drop matches whose key asks for a capital that the text lacks."""
        asking = np.flatnonzero(self.capital_keys[matches.keys])
        asked = self.capital_keys[matches.keys[asking]]
        lacking = case_classes(values, matches.starts[asking], matches.stops[asking]) < asked
        if not lacking.any():
            return matches
        keep = np.ones(len(matches), np.bool_)
        keep[asking[lacking]] = False
        return matches.take(keep)

    def look_up(self, hashes: U64) -> I64:
        """Return the table's entry for every hash, 0 where there is none."""
        mask = len(self.slots) - 1
        entries = np.zeros(len(hashes), np.int64)
        slots = (hashes & np.uint64(mask)).view(np.int64)
        left = np.flatnonzero(self.slots[slots])
        while len(left):
            at = slots[left]
            equal = self.slots[at] == hashes[left]
            entries[left[equal]] = self.slot_entries[at[equal]]
            left = left[~equal]
            slots[left] = (slots[left] + 1) & mask
            left = left[self.slots[slots[left]] != 0]
        return entries

    def alternatives(self, values: U8, matches: Matches, pos: I64, chosen: I64) -> I64:
        """Return the index in `pool` of matches in `values`, given tags and choices."""
        groups = self.groups[matches.keys, pos].astype(np.int64)
        drawn = np.searchsorted(self.uppers, (groups << 17) + chosen, side="right")
        cases: I64 = case_classes(values, matches.starts, matches.stops)
        return drawn * 3 + cases


def case_classes(values: U8, starts: I64, stops: I64) -> I64:
    """Return 1 where the first letter is a capital, 2 where the match looks all upper-case.

    UPPER needs two bytes or more of which neither the second character's first nor the last is a
    lower-case ASCII letter.
    """
    padded = np.concatenate([values, np.zeros(2, np.uint8)]) if len(values) < 3 else values
    first = values[starts]
    follow = padded[np.minimum(starts + 1, len(padded) - 1)]
    accented = (first == 0xC3) & (follow >= 0x80) & (follow <= 0x9E) & (follow != 0x97)
    title: Bool = ((first >= 65) & (first <= 90)) | accented
    second = padded[np.minimum(starts + 1 + accented, len(padded) - 1)]
    end = values[stops - 1]
    shouted = title & (stops - starts > 1 + accented) & ~_is_lower(second) & ~_is_lower(end)
    classes: I64 = title.astype(np.int64) + shouted
    return classes


def _is_lower(bytes_: U8) -> Bool:
    return (bytes_ >= 97) & (bytes_ <= 122)


def _leftmost(matches: Matches) -> Matches:
    """Drop matches that overlap an earlier kept one; only runs that overlap are walked."""
    apart = matches.starts[1:] >= np.maximum.accumulate(matches.stops)[:-1]
    walked = np.flatnonzero(~np.append(apart, True) | ~np.append(True, apart))
    if not len(walked):
        return matches
    dropped, reach = [], 0
    starts, stops = matches.starts[walked].tolist(), matches.stops[walked].tolist()
    for at, start, stop in zip(walked.tolist(), starts, stops, strict=True):
        if start < reach:
            dropped.append(at)
        else:
            reach = stop
    keep = np.ones(len(matches), np.bool_)
    keep[dropped] = False
    return matches.take(keep)


def build(lexicon: Lexicon) -> PhraseTable:
    """Compile a lexicon."""
    groups: dict[tuple[int, int], list[Entry]] = {}
    keys: dict[str, int] = {}
    cleans: list[str] = [""]  # key 0 is a mere prefix
    for entry in lexicon.entries:
        key = keys.setdefault(fold(entry.clean), len(cleans))
        if key == len(cleans):
            cleans.append(entry.clean)
        if cleans[key] != entry.clean:
            both = f"{cleans[key]!r} and {entry.clean!r}"
            raise LexiconError(f"lexicon {lexicon.head['name']}: {both} differ only in case")
        groups.setdefault((key, POS.index(entry.pos)), []).append(entry)
    table = np.full((len(cleans), len(POS)), -1, np.int32)
    for number, place in enumerate(groups):
        table[place] = number
    slots, entries, words_max = _hash_table(cleans[1:], lexicon.head["name"])
    pool = Texts.from_strings(
        [form for group in groups.values() for e in group for form in _forms(e)]
    )
    return PhraseTable(
        slots, entries, np.array(list(map(_case_asked, cleans)), np.uint8), table,
        _uppers(list(groups.values())), pool.window, pool.offsets.astype(np.int32),
        lexicon.head, words_max,
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


def _uppers(groups: list[list[Entry]]) -> I64:
    uppers: list[int] = []
    for number, group in enumerate(groups):
        sums = np.cumsum([entry.weight for entry in group])
        shares = [(int(part) << CHOICE_BITS) // int(sums[-1]) for part in sums]
        uppers += [(number << 17) + share for share in shares]
    return np.array(uppers, np.int64)


def _spellings(clean: str) -> set[str]:
    """Return a phrase with straight and with curly apostrophes."""
    return {clean.replace(APOSTROPHES[0], mark) for mark in APOSTROPHES}


def _hash_table(cleans: list[str], name: str) -> tuple[U64, I32, int]:
    spelled = [(form, key) for key, clean in enumerate(cleans, 1) for form in _spellings(clean)]
    texts = Texts.from_strings([form for form, _ in spelled])
    words = texts.tokens
    hashes, gaps = words.hashes, words.gaps
    firsts = np.searchsorted(words.rows, np.arange(len(spelled) + 1))
    entries: dict[int, int] = {}
    for row, (form, key) in enumerate(spelled):
        span = range(firsts[row], firsts[row + 1])
        if 0 in hashes[span.start : span.stop]:
            raise LexiconError(f"lexicon {name}: a word of {form!r} is over {WORD_BYTES_MAX} bytes")
        state = hashes[span.start : span.start + 1]
        for word in span[1:]:
            entries[int(state[0])] = entries.get(int(state[0]), 0) | 1
            state = extend(state, gaps[word - 1 : word], hashes[word : word + 1])
        entries[int(state[0])] = entries.get(int(state[0]), 0) | key * 2
    words_max = int(np.diff(firsts).max()) if spelled else 0
    return *_fill(entries), words_max


def _fill(entries: dict[int, int]) -> tuple[U64, I32]:
    """Place the entries in an open hash table, linear probing, a quarter full at most."""
    size = 1 << (len(entries) * _SLOTS_PER_ENTRY).bit_length()
    hashes = np.fromiter(entries, np.uint64, len(entries))
    values = np.fromiter(entries.values(), np.int32, len(entries))
    slots, stored = np.zeros(size, np.uint64), np.zeros(size, np.int32)
    at, left = (hashes & np.uint64(size - 1)).astype(np.int64), np.arange(len(entries))
    while len(left):
        free = left[slots[at[left]] == 0]
        places, winners = np.unique(at[free], return_index=True)
        slots[places], stored[places] = hashes[free[winners]], values[free[winners]]
        left = left[slots[at[left]] != hashes[left]]
        at[left] = (at[left] + 1) & (size - 1)
    return slots, stored


def load_table(path: Path, parser: Parser) -> PhraseTable:
    """Return the compiled lexicon of a file, from the cache if its content was compiled before."""
    content = read_lexicon_file(path)
    key = blake2b(content, digest_size=10, person=f"noisegen {FORMAT}".encode())
    key.update(parser.__name__.encode())
    cached = cache_folder() / f"{path.stem}-{key.hexdigest()}.arrow"
    try:
        return _open(cached)
    except (OSError, pa.ArrowInvalid):
        table = build(parser(content, str(path)))
    _save(table, cached)
    return table


def cache_folder() -> Path:
    """Return the folder of compiled lexicons: NOISEGEN_CACHE, or the user's cache."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("NOISEGEN_CACHE") or user_cache_path("noisegen", appauthor=False))


def _arrays() -> list[str]:
    return [field.name for field in fields(PhraseTable) if field.name not in ("head", "words_max")]


def _save(table: PhraseTable, path: Path) -> None:
    """Write one record: every array a list. Concurrent writers each rename a file of their own."""
    columns = [as_arrow(getattr(table, name).ravel()) for name in _arrays()]
    lists = [
        pa.ListArray.from_arrays(as_arrow(np.array([0, len(c)], np.int32)), c) for c in columns
    ]
    note = json.dumps({"head": table.head, "words_max": table.words_max})
    batch = pa.record_batch(lists, _arrays()).replace_schema_metadata({"noisegen": note})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.NamedTemporaryFile(dir=path.parent, suffix=".tmp", delete=False) as file,
            pa.ipc.new_file(file, batch.schema) as writer,
        ):
            writer.write(batch)
        Path(file.name).replace(path)
    except OSError:
        return  # a read-only or full cache costs time, not correctness


def _open(path: Path) -> PhraseTable:
    batch = pa.ipc.open_file(pa.memory_map(str(path))).get_batch(0)
    note = json.loads(batch.schema.metadata[b"noisegen"])
    arrays: dict[str, Any] = {name: as_numpy(batch[name].values) for name in _arrays()}
    arrays["groups"] = arrays["groups"].reshape(-1, len(POS))
    return PhraseTable(**arrays, **note)
