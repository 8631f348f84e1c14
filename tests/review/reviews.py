"""Reviews of invented text, servers on loopback, and requests to them: shared by these tests."""

import contextlib
import http.client
import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from noisegen import review
from noisegen.review.server import Server, prepare

LINE = "the ferry to Brindle leaves at nine and the bakery opens early on market days"


def sentences(count: int) -> list[tuple[str, str]]:
    """Return invented pairs, each with one word spelt wrong."""
    pairs, line = [], LINE.split()
    for number in range(count):
        words = [*line[number % 7 :], str(number), *line[: number % 7]]
        noisy = [*words[:2], words[2] + words[2][-1], *words[3:]]
        pairs.append((" ".join(words), " ".join(noisy)))
    return pairs


def output(folder: Path, pairs: Sequence[tuple[str, str]], **columns: Any) -> Path:
    """Write a folder as `augment` does, without manifest; `columns` are added."""
    (folder / "data").mkdir(parents=True)
    clean, noisy = zip(*pairs, strict=True)
    rows = {"id": list(range(len(pairs))), "clean": clean, "noisy": noisy, **columns}
    pq.write_table(pa.table(rows), folder / "data" / "part-00000.parquet")
    return folder


def made(folder: Path, rows: int = 15, count: int = 300, **options: Any) -> Path:
    """Return a review of invented text at the strengths low, middle, high."""
    names = ("low", "middle", "high")
    outputs = [output(folder / name, sentences(count)) for name in names]
    path = folder / "review.sqlite"
    review.make(outputs, path, rows=rows, **options)
    return path


def rows_of(path: Path, query: str, *given: Any) -> list[Any]:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return opened.execute(query, given).fetchall()


@contextlib.contextmanager
def serving(path: Path, host: str = "127.0.0.1", port: int = 0) -> Iterator[Server]:
    """Serve a review from a thread."""
    server = prepare(path, host, port)
    with server.in_thread():
        yield server


class Served:
    """The server in a process of its own; whatever happens, it ends with the block."""

    def __init__(self, path: Path, *options: str, port: int = 0) -> None:
        words = [sys.executable, "-m", "noisegen", "review", "serve", str(path), *options]
        words += ["--port", str(port)]
        self.process = subprocess.Popen(
            words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Served":
        self.address = self.process.stdout.readline().removeprefix("open ").strip()
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.communicate(timeout=20)

    def stop(self, number: int) -> tuple[int, str]:
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=20)
        return self.process.returncode, said


class Client:
    """A reviewer without a browser."""

    def __init__(self, server: Server) -> None:
        self.server, self.reviewer = server, ""
        self.headers = {"X-Review": server.review.id, "Cookie": self.cookie(server.token)}

    def cookie(self, token: str) -> str:
        return f"noisegen-review-{self.server.port}={token}"

    def send(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """Send one request; a header given as '' is left out."""
        host = f"127.0.0.1:{self.server.port}"
        sent = {"Host": host, **self.headers, "X-Reviewer": self.reviewer}
        if method == "POST":
            sent |= {"Origin": f"http://{host}", "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(
            http.client.HTTPConnection("127.0.0.1", self.server.port, 10)
        ) as it:
            it.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                if value:
                    it.putheader(name, value)
            if body is not None and "Content-Length" not in sent:
                it.putheader("Content-Length", str(len(body)))
            it.endheaders(body)
            answer = it.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def get(self, path: str, **headers: str) -> tuple[int, Any]:
        status, _, content = self.send("GET", path, **headers)
        return status, json.loads(content)

    def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        status, _, content = self.send("POST", path, json.dumps(body).encode(), **headers)
        return status, json.loads(content)

    def join(self, name: str, **options: Any) -> "Client":
        status, content = self.post("/api/reviewers", {"name": name, **options})
        assert status == 200, content
        self.reviewer = content["reviewer"]
        return self

    def answer(self, item: int, question: str, value: Any, nonce: str = "") -> int:
        nonce = nonce or f"{self.reviewer}/{item}/{question}/{value}"[-60:]
        body = {"item": item, "question": question, "value": value, "nonce": nonce}
        return self.post("/api/answers", body)[0]


def token_of(address: str) -> str:
    return urlsplit(address).query.removeprefix("token=")
