"""The review server at 10,000 items: milliseconds a request, from a client on the same machine."""

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from benchmarks.measure import Result, Target, options, save
from noisegen import review
from noisegen.review.store import connect

ITEMS, REQUESTS, BOUND = 10_000, 400, 50.0  # the bound in milliseconds
SERVE = "import sys; from noisegen import review; review.serve(sys.argv[1], port=0)"


def results(rows: int) -> Iterator[Result]:
    """Measure each kind of request; the other figure is a file that is only read."""
    del rows  # the promise is about 10,000 items
    with tempfile.TemporaryDirectory(prefix="noisegen-bench-") as name:
        path = _review(Path(name))
        with _served(path) as ask:
            found = {what: _times(job) for what, job in _jobs(ask).items()}
    bare = float(np.percentile(found.pop("a file"), 99))
    for what, times in found.items():
        p50, p99 = np.percentile(times, (50, 99))
        note = f"p50 {p50:.1f}, p99 {p99:.1f}, most {max(times):.1f} ms of {len(times):,}"
        yield Result(
            f"review: {what}",
            float(p99),
            bare,
            "ms (p99)",
            "a file",
            Target("<", BOUND, "ours"),
            note,
        )


Ask = Callable[[str, str, object], dict[str, object]]


def _review(folder: Path) -> Path:
    """Make a review of 10,000 items, and a reviewer who has judged nearly all of them."""
    out = folder / "out"
    out.mkdir()
    clean = [
        f"the ferry number {number} leaves from the old pier at nine" for number in range(ITEMS)
    ]
    noisy = [text.replace("ferry", "fery") for text in clean]
    table = pa.table({"id": range(ITEMS), "clean": clean, "noisy": noisy})
    pq.write_table(table, out / "part-00000.parquet")
    path = folder / "review.sqlite"
    review.make(out, path, rows=ITEMS)
    answers = ["realism", '"realistic"'], ["meaning", '"yes"'], ["kinds", "[1]"]
    with closing(connect(path)) as opened:
        opened.execute("BEGIN")
        opened.execute("INSERT INTO reviewers VALUES (1, 'key', 'A', 'a', '[\"en\"]', 0)")
        opened.executemany(
            "INSERT INTO answers (reviewer, item, question, value, at, nonce)"
            " VALUES (1, ?, ?, ?, 0, ?)",
            ((i, *one, f"{i}/{one[0]}") for i in range(1, ITEMS) for one in answers),
        )
        opened.execute("COMMIT")
    return path


@contextmanager
def _served(path: Path) -> Iterator[Ask]:
    """Serve from another process; yields what asks it over one connection."""
    command = [sys.executable, "-c", SERVE, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = urlsplit(process.stdout.readline().removeprefix("open ").strip())
            with closing(http.client.HTTPConnection(address.netloc, timeout=10)) as connection:
                token = address.query.removeprefix("token=")
                yield _asker(connection, f"noisegen-review-{address.port}={token}")
        finally:
            process.kill()


def _asker(connection: http.client.HTTPConnection, cookie: str) -> Ask:
    headers = {
        "Cookie": cookie,
        "X-Reviewer": "key",
        "Origin": f"http://{connection.host}:{connection.port}",
        "Content-Type": "application/json",
    }

    def ask(method: str, path: str, body: object = None) -> dict[str, object]:
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, headers)
        answer = connection.getresponse()
        read = answer.read()
        assert answer.status == 200, read
        return json.loads(read) if read[:1] == b"{" else {}

    headers["X-Review"] = str(ask("GET", "/api/review")["review"])
    return ask


def _jobs(ask: Ask) -> dict[str, Callable[[int], object]]:
    def answer(number: int) -> object:
        body = {
            "item": number % ITEMS + 1,
            "question": "realism",
            "value": "moderate",
            "nonce": str(number),
        }
        return ask("POST", "/api/answers", body)

    return {
        "a file": lambda _: ask("GET", "/icon.svg", None),
        "an item": lambda number: ask("GET", f"/api/items/{number * 37 % ITEMS}", None),
        "an answer, on disk": answer,
        "progress": lambda _: ask("GET", "/api/state", None),
        "a reviewer joins": lambda n: ask("POST", "/api/reviewers", {"name": f"reviewer {n}"}),
    }


def _times(job: Callable[[int], object]) -> list[float]:
    """Return the milliseconds of each request, the first few left out."""
    times = []
    for number in range(REQUESTS):
        start = time.perf_counter()
        job(number)
        times.append(1000 * (time.perf_counter() - start))
    return times[5:]


def main() -> None:
    """Measure, print a table, save."""
    chosen = options(__doc__ or "").parse_args()
    found = list(results(chosen.rows))
    table = Table("request", "p50, p99, most", f"under {BOUND:g} ms")
    for one in found:
        table.add_row(one.name, one.note, "yes" if one.met else "NO")
    Console().print(table)
    save(found, chosen.json)


if __name__ == "__main__":
    main()
