"""An open review file: gives items (clean and noisy text) to reviewers, stores each answer."""

import json
import secrets
import threading
import time
import unicodedata
from collections.abc import Collection
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from rapidfuzz.distance import Levenshtein

from noisegen.noising.rng import row_keys, stream_key
from noisegen.review.store import (
    ANSWERS,
    connect,
    is_offered,
    stored,
    transaction,
    well_formed,
)
from noisegen.text.buffers import I64
from noisegen.text.graphemes import graphemes

NAME_MAX, KIND_MAX = 60, 40  # maximum characters in the name of a reviewer, and of a kind of noise
KINDS_MAX = 100  # maximum kinds of noise in a review, including kinds added by reviewers
REVIEWERS_MAX = 1_000
_KIND = ("id", "letter", "name", "hint")
Part = tuple[bool, str]  # (True if the part differs from the other text, part)
# Scripts without spaces between words: their texts are compared character by character.
_SINGLE = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


class Refused(Exception):  # noqa: N818 - reads as what happened
    """Error for a request that is refused.

    `reason` is a word such as 'taken'; the page shows a message for it. `status` is the HTTP status
    of the response.
    """

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


class ReviewFile:
    """An open review file; several threads may share it, since a lock lets in one at a time."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._opened = connect(path, threads=True)
        try:
            self.id, self._seed = stored(self._opened, "id"), int(stored(self._opened, "seed"))
        except BaseException:
            self._opened.close()
            raise

    def close(self) -> None:
        """Close the file; every answer is already stored."""
        with self._lock:
            self._opened.close()

    def languages(self) -> list[str]:
        """Return the codes of the languages that have items, sorted."""
        query = "SELECT DISTINCT lang FROM groups JOIN items ON group_id = groups.id ORDER BY 1"
        return [lang for (lang,) in self._all(query)]

    def join(self, name: object, langs: object, same: bool = False) -> dict[str, Any]:
        """Add a reviewer for the languages `langs`; return the secret key and the name.

        All languages are chosen if `langs` names none of the review. With `same`, the reviewer who
        already has this name continues. Raises Refused with the reason 'name' for an empty or too
        long name, 'taken' for a name in use, 'full' for too many reviewers.
        """
        shown, folded = _checked_name(name, NAME_MAX, "name")
        known = self.languages()
        chosen = [lang for lang in known if not isinstance(langs, list) or lang in langs] or known
        with self._lock, transaction(self._opened):
            reviewer = self._one("SELECT key, name FROM reviewers WHERE folded = ?", folded)
            if reviewer and not same:
                raise Refused("taken", 409)
            if not reviewer and self._one("SELECT count(*) FROM reviewers")[0] >= REVIEWERS_MAX:
                raise Refused("full", 409)
            key, shown = reviewer or (secrets.token_hex(16), shown)
            self._opened.execute(
                "INSERT INTO reviewers (key, name, folded, langs, joined) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (key) DO UPDATE SET langs = excluded.langs",
                (key, shown, folded, json.dumps(chosen), time.time()),
            )
        return {"reviewer": key, "name": shown}

    def state(self, key: object) -> dict[str, Any]:
        """Return the progress of the reviewer with this key.

        `total` counts all items, `complete` the items judged for both realism and meaning. `next`
        is the index of the first incomplete item in the order of the reviewer, or `total` if all
        are complete.
        """
        reviewer, name, order = self._reviewer(key)
        query = "SELECT json_group_array(item) FROM latest WHERE reviewer = ? AND question = ?"
        realism, meaning = (  # answered items; a JSON array is faster than rows
            np.array(json.loads(self._one(query, reviewer, question)[0]), np.int64)
            for question in ("realism", "meaning")
        )
        is_done = np.isin(order, np.intersect1d(realism, meaning, assume_unique=True))
        first = len(order) if is_done.all() else int(np.argmin(is_done))
        return {"name": name, "total": len(order), "complete": int(is_done.sum()), "next": first}

    def item(self, key: object, place: int) -> dict[str, Any]:
        """Return the item at index `place` in a reviewer's order, as a dictionary for the page.

        The dictionary has the two texts, the answers that this reviewer gave, and the kinds of
        noise to choose from. It lacks the strength, recipe and source of the item, which stay
        hidden from reviewers.
        """
        reviewer, _, order = self._reviewer(key)
        if not 0 <= place < len(order):
            raise Refused("place", 404)
        number = int(order[place])
        lang, clean, noisy, slots = self._one(
            "SELECT lang, clean, noisy, slots FROM items JOIN groups ON groups.id = group_id"
            " WHERE items.id = ?",
            number,
        )
        query = "SELECT question, value FROM latest WHERE reviewer = ? AND item = ?"
        answers = {name: json.loads(value) for name, value in self._all(query, reviewer, number)}
        texts = dict(zip(("clean", "noisy"), marked(clean, noisy), strict=True))
        kinds = self.kinds(lang, answers.get("kinds", []))
        return {
            "item": number,
            "place": place,
            "lang": lang,
            **texts,
            "slots": json.loads(slots),
            "answers": answers,
            "kinds": kinds,
        }

    def answer(
        self, key: object, item: object, question: object, value: object, nonce: object
    ) -> None:
        """Store a reviewer's answer to a question on an item.

        The page sends a random `nonce` with each answer: an answer that arrives twice is stored
        once. Raises Refused for an item, question, value or nonce that is not allowed.
        """
        reviewer, _, order = self._reviewer(key)
        if type(item) is not int or item.bit_length() > 32 or item not in order:
            raise Refused("item")
        if not isinstance(nonce, str) or not nonce.isascii() or not 0 < len(nonce) <= 64:
            raise Refused("nonce")
        checked = self._checked_answer(question, value)
        with self._lock:
            self._opened.execute(
                "INSERT INTO answers (reviewer, item, question, value, at, nonce)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (reviewer, item, question, checked, time.time(), nonce),
            )

    def add_kind(self, key: object, name: object) -> dict[str, Any]:
        """Return the kind of noise with this name; add it to the review if it is new.

        Raises Refused for an unusable name and for too many kinds.
        """
        shown, folded = _checked_name(name, KIND_MAX, "kind")
        find = f"SELECT {', '.join(_KIND)} FROM kinds WHERE folded = ?"
        with self._lock, transaction(self._opened):
            reviewer, _, _ = self._reviewer(key)
            if not self._one(find, folded):
                if self._one("SELECT count(*) FROM kinds")[0] >= KINDS_MAX:
                    raise Refused("full", 409)
                self._opened.execute(
                    "INSERT INTO kinds (letter, name, folded, hint, reviewer)"
                    " VALUES ('', ?, ?, '', ?)",
                    (shown, folded, reviewer),
                )
            return dict(zip(_KIND, self._one(find, folded), strict=True))

    def kinds(self, lang: str, chosen: Collection[int] = ()) -> list[dict[str, Any]]:
        """Return the kinds of noise to offer for an item in a language.

        Kinds that reviewers added come last: such a kind is offered for all languages until
        somebody uses it, then only for the languages in which it is used. The kinds with the
        numbers in `chosen` are offered in any language.
        """
        used_elsewhere = (
            "SELECT kind.value FROM latest, json_each(latest.value) AS kind"
            " JOIN items ON items.id = item JOIN groups ON groups.id = group_id"
            " WHERE question = 'kinds' GROUP BY kind.value HAVING NOT max(lang = ?)"
        )
        rows = self._all(
            f"SELECT {', '.join(_KIND)} FROM kinds"
            f" WHERE reviewer IS NULL OR id NOT IN ({used_elsewhere}) ORDER BY id",
            lang,
        )
        kinds = (dict(zip(_KIND, row, strict=True)) for row in rows)
        return [kind for kind in kinds if kind["id"] in chosen or is_offered(kind["name"], lang)]

    def _checked_answer(self, question: object, value: object) -> str:
        """Return the answer `value` as JSON; raises Refused for a wrong question or answer."""
        try:
            answer = msgspec.convert(value, ANSWERS[question])  # type: ignore[index]
        except (KeyError, TypeError, ValueError) as error:
            raise Refused("value") from error
        if question == "kinds":
            answer = sorted(set(answer))
            known = {number for (number,) in self._all("SELECT id FROM kinds")}
            if not known.issuperset(answer):
                raise Refused("value")
        return json.dumps(well_formed(answer) if question == "comment" else answer)

    def _reviewer(self, key: object) -> tuple[int, str, I64]:
        """Return a reviewer's number and name, and the item numbers in this reviewer's order.

        Raises Refused for an unknown key.
        """
        row = self._one("SELECT id, name, folded, langs FROM reviewers WHERE key = ?", str(key))
        if row is None:
            raise Refused("reviewer", 409)
        number, name, folded, langs = row
        return number, name, self._order(folded, langs, self._one("SELECT max(id) FROM items")[0])

    @lru_cache(maxsize=64)  # noqa: B019 - the object lives as long as the server
    def _order(self, folded: str, langs: str, newest: int) -> I64:
        """Return the numbers of the items in the languages `langs`, in the order of a reviewer.

        `folded` is the reviewer's name in lower case, `langs` a JSON list. `newest`, the number
        of the newest item, keeps the cache from returning an order without that item.
        """
        rows = self._all(
            "SELECT items.id, stage FROM items JOIN groups ON groups.id = group_id"
            " WHERE lang IN (SELECT value FROM json_each(?)) AND items.id <= ?",
            langs,
            newest,
        )
        items, stages = np.array(rows, np.int64).reshape(-1, 2).T
        return order_of(self._seed, folded, items, stages)

    def _all(self, query: str, *values: object) -> list[Any]:
        with self._lock:
            return self._opened.execute(query, values).fetchall()

    def _one(self, query: str, *values: object) -> Any:
        """Return the first row that a query finds, None if there is no row."""
        return next(iter(self._all(query, *values)), None)


def order_of(seed: int, reviewer: str, items: I64, stages: I64) -> I64:
    """Return item numbers in the order of one reviewer: by stage, shuffled within each stage.

    `items` and `stages` have one entry per item. The same seed and reviewer give the same order.
    """
    keys = row_keys(stream_key(seed, f"review/reviewer/{reviewer}"), items.astype(np.uint64))
    ordered: I64 = items[np.lexsort((keys, stages))]
    return ordered


def _checked_name(text: object, most: int, reason: str) -> tuple[str, str]:
    """Return a name in two forms: as it is shown, and in lower case for comparison with others.

    Control characters become spaces. Raises Refused with `reason` for a name that is empty or has
    more than `most` characters.
    """
    if not isinstance(text, str) or len(text) > 4 * most:
        raise Refused(reason)
    seen = (c if unicodedata.category(c)[0] != "C" else " " for c in text)
    shown = " ".join(unicodedata.normalize("NFC", "".join(seen)).split())
    if not 0 < len(shown) <= most:
        raise Refused(reason)
    return shown, unicodedata.normalize("NFKC", shown).casefold()


def marked(clean: str, noisy: str) -> tuple[list[Part], list[Part]]:
    """Split both texts into parts that are equal in both and parts that differ.

    The parts of a text, joined, are the text. Both lists have the same equal parts in the same
    order.

    >>> marked("see you", "see u")
    ([(False, 'see '), (True, 'you')], [(False, 'see '), (True, 'u')])
    """
    sides = tokens(clean), tokens(noisy)
    numbers = {token: number for number, token in enumerate(dict.fromkeys([*sides[0], *sides[1]]))}
    opcodes = Levenshtein.opcodes(*([numbers[token] for token in side] for side in sides))
    parts: tuple[list[Part], list[Part]] = ([], [])
    for differs, block in groupby(opcodes, lambda code: code.tag != "equal"):
        codes = list(block)
        clean_span = codes[0].src_start, codes[-1].src_end
        spans = clean_span, (codes[0].dest_start, codes[-1].dest_end)
        for side, of_side, span in zip(sides, parts, spans, strict=True):
            if text := "".join(side[slice(*span)]):
                of_side.append((differs, text))
    return parts


def tokens(text: str) -> list[str]:
    """Split a text into words, runs of white space, and single other characters (graphemes)."""
    runs = groupby(graphemes(text), key=lambda cluster: _kind(cluster[0]))
    return [token for kind, run in runs for token in (["".join(run)] if kind else run)]


def _kind(character: str) -> str:
    """Return the kind of token to which a character belongs: 'word', 'space' or ''.

    With '' the character is a token by itself.
    """
    if character.isspace():
        return "space"
    if not character.isalnum():
        return ""
    single = ord(character) > 0x0E00 and unicodedata.name(character, "").startswith(_SINGLE)
    return "" if single else "word"
