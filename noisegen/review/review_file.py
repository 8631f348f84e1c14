"""What the server does with a review file: reviewers, their items, every answer stored at once."""

import json
import secrets
import threading
import time
import unicodedata
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from noisegen.draws import I64
from noisegen.review.changes import marked
from noisegen.review.judgements import MEANING, REALISM, whole
from noisegen.review.sampling import order_of
from noisegen.review.store import connect, settled, transaction

NAME_MAX, KIND_MAX, COMMENT_MAX = 60, 40, 2_000  # characters
KINDS_MAX = 100  # of a review; a reviewer adds a few
REVIEWERS_MAX = 1_000
_ASKED = ("realism", "meaning")  # what makes an item complete


class Refused(Exception):  # noqa: N818 - reads as what happened
    """A request that cannot be carried out; `reason` is a word that the page knows."""

    def __init__(self, reason: str, status: int = 400) -> None:
        super().__init__(reason)
        self.reason, self.status = reason, status


class ReviewFile:
    """A review opened for reviewers. Several threads may use it: one at a time has the file."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.RLock()
        self._opened = connect(path, threads=True)
        self.id, self._seed = settled(self._opened, "id"), int(settled(self._opened, "seed"))

    def close(self) -> None:
        """Close the file; all answers are in it already."""
        with self._lock:
            self._opened.close()

    def languages(self) -> list[str]:
        """Return the languages that have items."""
        with self._lock:
            query = "SELECT DISTINCT lang FROM groups JOIN items ON group_id = groups.id ORDER BY 1"
            return [lang for (lang,) in self._opened.execute(query)]

    def join(self, name: object, langs: object, same: bool = False) -> dict[str, Any]:
        """Add a reviewer, or go on as one (`same`), and return key and name.

        Raises Refused 'name' for no name, 'taken' for a name in use, unless `same`.
        """
        shown = _plain(name, NAME_MAX, "name")
        known = self.languages()
        chosen = [lang for lang in known if not isinstance(langs, list) or lang in langs] or known
        folded = unicodedata.normalize("NFKC", shown).casefold()
        with self._lock, transaction(self._opened):
            row = self._opened.execute(
                "SELECT key, name FROM reviewers WHERE folded = ?", (folded,)
            ).fetchone()
            if row and not same:
                raise Refused("taken", 409)
            if row:
                self._opened.execute(
                    "UPDATE reviewers SET langs = ? WHERE key = ?", (json.dumps(chosen), row[0])
                )
                return {"reviewer": row[0], "name": row[1]}
            if self._count("reviewers") >= REVIEWERS_MAX:
                raise Refused("full", 409)
            key = secrets.token_hex(16)
            self._opened.execute(
                "INSERT INTO reviewers (key, name, folded, langs, joined) VALUES (?, ?, ?, ?, ?)",
                (key, shown, folded, json.dumps(chosen), time.time()),
            )
        return {"reviewer": key, "name": shown}

    def state(self, key: object) -> dict[str, Any]:
        """Return progress: items in all, those complete, the place of the first that is not."""
        with self._lock:
            reviewer, name, order = self._reviewer(key)
            done = self._complete(reviewer)
            here = np.isin(order, done)
            first = int(np.argmin(here)) if not here.all() else len(order)
            return {"name": name, "total": len(order), "complete": int(here.sum()), "next": first}

    def item(self, key: object, place: int) -> dict[str, Any]:
        """Return what a reviewer may see of an item, their answers, and the kinds to choose from.

        Neither strength nor recipe nor source is among it.
        """
        with self._lock:
            reviewer, _, order = self._reviewer(key)
            if not 0 <= place < len(order):
                raise Refused("place", 404)
            number = int(order[place])
            lang, clean, noisy, slots = self._opened.execute(
                "SELECT lang, clean, noisy, slots FROM items JOIN groups ON groups.id = group_id"
                " WHERE items.id = ?", (number,),
            ).fetchone()  # fmt: skip
            answers = self._opened.execute(
                "SELECT question, value FROM latest WHERE reviewer = ? AND item = ?",
                (reviewer, number),
            ).fetchall()
            kinds = self.kinds()
        texts = dict(zip(("clean", "noisy"), marked(clean, noisy), strict=True))
        given = {question: json.loads(value) for question, value in answers}
        return {"item": number, "place": place, "lang": lang, **texts,
                "slots": json.loads(slots), "answers": given, "kinds": kinds}  # fmt: skip

    def answer(
        self, key: object, item: object, question: object, value: object, nonce: object
    ) -> None:
        """Store an answer; one that was sent twice (the same nonce) is stored once."""
        with self._lock:
            reviewer, _, order = self._reviewer(key)
            if type(item) is not int or item.bit_length() > 32 or item not in order:
                raise Refused("item")
            if not isinstance(nonce, str) or not nonce.isascii() or not 0 < len(nonce) <= 64:
                raise Refused("nonce")
            checked = self._checked(question, value)
            self._opened.execute(
                "INSERT INTO answers (reviewer, item, question, value, at, nonce)"
                " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (reviewer, item, question, checked, time.time(), nonce),
            )

    def add_kind(self, key: object, name: object) -> dict[str, Any]:
        """Add a kind of noise, or find the one of this name, and return it."""
        shown = _plain(name, KIND_MAX, "kind")
        folded = unicodedata.normalize("NFKC", shown).casefold()
        with self._lock, transaction(self._opened):
            reviewer, _, _ = self._reviewer(key)
            known = self._opened.execute("SELECT 1 FROM kinds WHERE folded = ?", (folded,))
            if not known.fetchone():
                if self._count("kinds") >= KINDS_MAX:
                    raise Refused("full", 409)
                self._opened.execute(
                    "INSERT INTO kinds (letter, name, folded, hint, reviewer)"
                    " VALUES ('', ?, ?, '', ?)", (shown, folded, reviewer),
                )  # fmt: skip
            kinds = self.kinds()
            (number,) = self._opened.execute(
                "SELECT id FROM kinds WHERE folded = ?", (folded,)
            ).fetchone()
        return {"kind": number, "kinds": kinds}

    def kinds(self) -> list[dict[str, Any]]:
        """Return all kinds, additions last."""
        with self._lock:
            rows = self._opened.execute("SELECT id, letter, name, hint FROM kinds ORDER BY id")
            return [dict(zip(("id", "letter", "name", "hint"), row, strict=True)) for row in rows]

    def _checked(self, question: object, value: object) -> str:
        """Return an answer as JSON; raises Refused for one that the question does not allow."""
        if question == "kinds":
            known = {kind["id"] for kind in self.kinds()}
            good = isinstance(value, list) and all(type(v) is int and v in known for v in value)
            value = sorted(set(value)) if isinstance(value, list) and good else value
        elif question == "comment":
            good = isinstance(value, str) and len(value) <= COMMENT_MAX
            value = whole(value) if isinstance(value, str) else value
        else:
            allowed = {"realism": REALISM, "meaning": MEANING}.get(str(question), ())
            good = isinstance(value, str) and value in allowed
        if not good:
            raise Refused("value")
        return json.dumps(value)

    def _reviewer(self, key: object) -> tuple[int, str, I64]:
        row = self._opened.execute(
            "SELECT id, name, folded, langs FROM reviewers WHERE key = ?", (str(key),)
        ).fetchone()
        if row is None:
            raise Refused("reviewer", 409)
        number, name, folded, langs = row
        newest = self._opened.execute("SELECT max(id) FROM items").fetchone()[0]
        return number, name, self._order(folded, langs, newest)

    @lru_cache(maxsize=64)  # noqa: B019 - one such object lives as long as the server
    def _order(self, folded: str, langs: str, newest: int) -> I64:
        """Return the items of a reviewer in order; `newest` renews it when rows were added."""
        rows = self._opened.execute(
            "SELECT items.id, stage FROM items JOIN groups ON groups.id = group_id"
            " WHERE lang IN (SELECT value FROM json_each(?)) AND items.id <= ?", (langs, newest),
        ).fetchall()  # fmt: skip
        items, stages = np.array(rows, np.int64).reshape(-1, 2).T
        return order_of(self._seed, folded, items, stages)

    def _complete(self, reviewer: int) -> I64:
        """Return the items whose questions are answered; arrays as text are read fastest."""
        answered = [
            self._opened.execute(
                "SELECT json_group_array(item) FROM latest WHERE reviewer = ? AND question = ?",
                (reviewer, question),
            ).fetchone()[0]
            for question in _ASKED
        ]
        realism, meaning = (np.array(json.loads(items), np.int64) for items in answered)
        return np.intersect1d(realism, meaning, assume_unique=True)

    def _count(self, table: str) -> int:
        return int(self._opened.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _plain(text: object, most: int, reason: str) -> str:
    """Return a short text of one line without signs that cannot be seen; raises Refused."""
    if not isinstance(text, str) or len(text) > 4 * most:
        raise Refused(reason)
    seen = (c if unicodedata.category(c)[0] != "C" else " " for c in text)
    shown = " ".join(unicodedata.normalize("NFC", "".join(seen)).split())
    if not 0 < len(shown) <= most:
        raise Refused(reason)
    return shown
