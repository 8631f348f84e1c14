"""A review with answers on the wire: its server is killed, and what it acknowledged is kept."""

import http.client
import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from shutil import copy
from threading import Thread
from types import SimpleNamespace
from typing import cast
from urllib.parse import urlsplit

from review import reviews

from campaigns import forks
from campaigns.campaign import Trial

REVIEW = "review serve"
REVIEWERS = 3
STARTED = 30.0  # seconds in which the server says its address
Answers = dict[str, str]  # by their nonces

Kill = Callable[[Trial, forks.Forked, str, float, bool], int]


def review_file(folder: Path) -> Path:
    """Make a review of invented text in a folder."""
    return reviews.made(folder, rows=5, count=60)


def check_answers(trial: Trial, inputs: Path, kill: Kill) -> None:
    """Serve a review, answer until the server is killed; expect every acknowledged answer."""
    path, acknowledged = trial.folder / "out" / "review.sqlite", Answers()
    copy(inputs / path.name, path)
    for turn, (name, moment, whole_group) in enumerate(trial.notes["kills"]):
        server = forks.fork(trial.words, trial.folder)
        client, taken = _client(trial.folder / "stdout"), [Answers() for _ in range(REVIEWERS)]
        threads = [
            Thread(target=_answer, args=(client, f"{turn}-{number}", taken[number]))
            for number in range(REVIEWERS)
        ]
        for thread in threads:
            thread.start()
        try:
            kill(trial, server, name, moment, whole_group)
        finally:
            for thread in threads:
                thread.join()
        for answers in taken:
            acknowledged |= answers
    trial.counts["answers"] = len(acknowledged)
    with closing(sqlite3.connect(path)) as opened:
        stored = dict(opened.execute("SELECT nonce, value FROM answers"))
        [state] = opened.execute("PRAGMA integrity_check").fetchone()
    trial.expect(state == "ok", f"the file is damaged: {state}")
    lost = [nonce for nonce, value in acknowledged.items() if stored.get(nonce) != value]
    trial.expect(not lost, f"{len(lost)} of {len(acknowledged)} answers lost: {lost[:3]}")


def _client(stdout: Path) -> Callable[[], reviews.Client]:
    """Return what makes a client of the server that says its address in a file."""
    end = time.monotonic() + STARTED
    while not (said := stdout.read_text()).endswith("\n"):
        assert time.monotonic() < end, "the server says no address"
        time.sleep(0.005)
    address = urlsplit(said.splitlines()[0].removeprefix("open "))
    server = SimpleNamespace(port=address.port, token=reviews.token_of(address.geturl()))
    server.review = SimpleNamespace(id="")

    def made() -> reviews.Client:
        client = reviews.Client(cast(reviews.Server, server))
        client.headers["X-Review"] = client.get("/api/review")[1]["review"]
        return client

    return made


def _answer(made: Callable[[], reviews.Client], name: str, acknowledged: Answers) -> None:
    """Join and answer until the server is gone."""
    with suppress(OSError, http.client.HTTPException):
        client = made().join(name)
        items = [client.get(f"/api/items/{place}")[1]["item"] for place in range(3)]
        for number in count():
            nonce, value = f"{name}/{number}", f"comment {number} of {name}"
            if client.answer(items[number % 3], "comment", value, nonce) == 200:
                acknowledged[nonce] = json.dumps(value)
