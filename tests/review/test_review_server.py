"""The server on loopback: who is let in, what is refused, what it says at start."""

import contextlib
import http.client
import re
import socket
import sqlite3
import time

import pytest
from reviews import Client, made, rows_of, serving, token_of

from noisegen.errors import NoisegenError, SourceError, UsageError
from noisegen.review import web
from noisegen.review.server import prepare
from noisegen.review.web import is_loopback, is_own_host


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return made(tmp_path_factory.mktemp("served"), rows=5, count=60)


@pytest.fixture(scope="module")
def server(path):
    with serving(path) as running:
        yield running


@pytest.fixture
def client(server):
    return Client(server)


def test_a_reviewer_joins_answers_and_is_remembered(client, path):
    client.join("Cleo")
    status, item = client.get("/api/items/0")
    assert status == 200
    assert client.answer(item["item"], "realism", "moderate") == 200
    assert client.get("/api/items/0")[1]["answers"] == {"realism": "moderate"}
    assert rows_of(path, "SELECT value FROM latest WHERE item = ?", item["item"]) == [
        ('"moderate"',)
    ]


def test_the_address_holds_the_token_and_sets_a_strict_cookie(server, client):
    path = server.address.partition(str(server.port))[2]
    status, headers, content = client.send("GET", path, Cookie="")
    assert status == 200
    assert b"<title>Realism review</title>" in content
    assert headers["set-cookie"] == (
        f"noisegen-review-{server.port}={server.token}; Path=/; HttpOnly; SameSite=Strict"
    )
    assert len(token_of(server.address)) >= 32


@pytest.mark.parametrize(
    "asked", ["/", "/page.js", "/page.css", "/icon.svg", "/api/review", "/api/state", "/none"]
)
@pytest.mark.parametrize("token", ["", "wrong", "wröng", "x" * 43])
def test_nothing_is_shown_without_the_token(client, asked, token):
    cookie = client.cookie(token.encode("latin-1", "replace").decode("latin-1")) if token else ""
    status, headers, content = client.send("GET", asked, Cookie=cookie)
    assert status == 403
    assert "set-cookie" not in headers
    assert b"ferry" not in content


def test_the_token_in_the_query_opens_the_page_alone(server, client):
    for path in ("/api/review", "/page.js"):
        assert client.send("GET", f"{path}?token={server.token}", Cookie="")[0] == 403
    assert client.send("GET", "/?token=wrong", Cookie="")[0] == 403


def test_what_is_asked_is_never_echoed(client):
    for path in ("/<script>alert(1)</script>", "/?token=<script>", "/api/items/<b>"):
        _, _, content = client.send("GET", path.replace(" ", "%20"), Cookie="")
        assert b"<script>" not in content
        assert b"<b>" not in content


@pytest.mark.parametrize("asked", ["/", "/page.js", "/api/review", "/none"])
def test_every_answer_forbids_what_the_page_does_not_need(client, asked):
    _, headers, _ = client.send("GET", asked)
    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self';")
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:80",
        "",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::1",
        "a b",
    ],
)
def test_a_foreign_host_is_refused_though_the_token_is_right(client, host):
    assert client.send("GET", "/api/review", Host=host)[0] in (400, 421)


@pytest.mark.parametrize("host", ["localhost", "localhost:9000", "127.0.0.1:80", "[::1]:8765"])
def test_own_names_and_addresses_are_let_in_at_any_port_for_tunnels(client, host):
    assert client.send("GET", "/api/review", Host=host)[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": ""},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_a_post_from_another_page_is_refused(client, headers):
    status, content = client.post("/api/reviewers", {"name": "Mallory"}, **headers)
    assert (status, content) == (403, {"reason": "origin"})


def test_a_body_too_large_is_refused_before_it_is_read_whole(client):
    status, content = client.post("/api/reviewers", {"name": "x" * 20_000})
    assert (status, content["reason"]) == (413, "size")


def test_a_body_in_pieces_is_bounded_too(client):
    pieces = b"".join(b"3e8\r\n" + b"x" * 1000 + b"\r\n" for _ in range(20)) + b"0\r\n\r\n"
    status, _, content = client.send(
        "POST", "/api/answers", pieces, Transfer_Encoding="chunked", Content_Length=""
    )
    assert (status, content) == (413, b'{"reason":"size"}')


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"3", b"\xff", b'"' + b"[" * 9_000, b"[" * 16_000, b'{"name": NaN}']
)
def test_a_body_that_is_no_object_is_refused(client, body):
    status, _, content = client.send("POST", "/api/reviewers", body)
    assert status in (400, 409)
    assert b"reason" in content


def test_another_type_of_body_is_refused(client):
    assert client.post("/api/reviewers", {"name": "x"}, Content_Type="text/plain")[0] == 415


def test_a_page_of_another_review_is_told_so(client):
    status, content = client.post("/api/reviewers", {"name": "Dora"}, X_Review="other")
    assert (status, content) == (409, {"reason": "review"})


def test_a_reviewer_of_another_file_is_told_so(client):
    client.reviewer = "0" * 32
    assert client.get("/api/state") == (409, {"reason": "reviewer"})


@pytest.mark.parametrize("place", ["-1", "15", "99999999999999999999999", "x", "1.5"])
def test_a_place_that_is_not_there_is_not_found(client, place):
    client.join(f"looks for {place}")
    assert client.send("GET", f"/api/items/{place}")[0] == 404


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH"])
def test_other_methods_are_refused(client, method):
    assert client.send(method, "/api/review")[0] in (403, 405)


@contextlib.contextmanager
def connections(server, count, content=b""):
    """Open connections that send something and then nothing more."""
    with contextlib.ExitStack() as stack:
        opened = []
        for _ in range(count):
            sent = socket.create_connection(("127.0.0.1", server.port), 10)
            opened.append(stack.enter_context(sent))
            with contextlib.suppress(OSError):  # it has given way already
                sent.sendall(content)
        yield opened


def is_closed(sent):
    sent.setblocking(False)
    try:
        return not sent.recv(1)
    except BlockingIOError:
        return False
    except OSError:  # reset
        return True


@pytest.mark.parametrize("body", [False, True])
def test_silent_and_slow_connections_shut_out_nobody(client, server, monkeypatch, body):
    monkeypatch.setattr(web, "CONNECTIONS_MAX", 20)
    half = b"POST /api/answers HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    if body:  # a reviewer's, whose body does not come
        head = f"Cookie: {client.cookie(server.token)}\r\nOrigin: http://127.0.0.1\r\n"
        head += f"X-Review: {server.review.id}\r\nContent-Type: application/json\r\n"
        half += f"{head}Content-Length: 100\r\n\r\n".encode()
    with connections(server, 60, half) as opened:
        for _ in range(3):
            assert client.get("/api/review")[0] == 200
        assert sum(map(is_closed, opened)) >= 40
    assert client.get("/api/review")[0] == 200


def test_a_body_that_does_not_come_is_given_up(client, monkeypatch):
    monkeypatch.setattr(web, "BODY_SECONDS", 0.2)
    status, _, content = client.send("POST", "/api/answers", Content_Length="100")
    assert (status, content) == (408, b'{"reason":"slow"}')


def test_a_head_without_end_is_refused(server):
    with connections(server, 1, b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000) as [sent]:
        assert sent.recv(12) == b"HTTP/1.1 400"


def test_the_page_asks_nobody_but_its_own_server():
    for path in web.PAGE.iterdir():
        foreign = path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search(r"https?://|(src|href|url)\W{1,3}//", foreign)


# Hosts, ports, files.


def test_own_hosts_are_addresses_and_known_names():
    names = frozenset({"localhost", "box"})
    assert all(is_own_host(h, names) for h in ("box", "BOX:80", "10.0.0.7:8765", "[fe80::1]:1"))
    assert not any(is_own_host(h, names) for h in ("other", "box.evil", "1.2.3", "box@x", "[box]"))


def test_loopback_is_told_from_what_others_reach():
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.5", "box")))


def test_a_port_in_use_is_said_with_a_free_one(server, path):
    with pytest.raises(NoisegenError) as caught:
        prepare(path, port=server.port)
    free = re.fullmatch(
        rf"port {server.port} of 127.0.0.1 is in use; a free one: --port (\d+)", str(caught.value)
    )
    with socket.socket() as tried:
        tried.bind(("127.0.0.1", int(free[1])))


@pytest.mark.parametrize(
    ("host", "port"), [("::1", 70_000), ("no such host", 0), ("a" * 70, 0), ("a..b", 0)]
)
def test_an_impossible_address_is_wrong_usage(path, host, port):
    with pytest.raises(UsageError):
        prepare(path, host, port)


def test_a_file_that_is_no_review_is_not_served(tmp_path):
    with pytest.raises(SourceError):
        prepare(tmp_path / "none.sqlite")


def test_every_start_has_a_token_of_its_own(path):
    tokens = set()
    for _ in range(3):
        with serving(path) as one:
            tokens.add(one.token)
    assert len(tokens) == 3


def test_small_answers_do_not_wait_for_more_to_send(server):
    connection = http.client.HTTPConnection("127.0.0.1", server.port, 10)
    cookie = Client(server).cookie(server.token)
    times = []
    with contextlib.closing(connection):
        for _ in range(10):  # of one connection; Nagle's algorithm would hold back 40 ms each
            start = time.perf_counter()
            connection.request("GET", "/api/review", headers={"Cookie": cookie})
            assert connection.getresponse().read()
            times.append(time.perf_counter() - start)
    assert min(times[2:]) < 0.03


def test_a_foreign_cookie_of_any_form_does_not_lock_us_out(client, server):
    for foreign in ('prefs={"dark":true}', "a b", "x[1]=2", ""):
        cookies = f"{foreign}; {client.cookie(server.token)}"
        assert client.get("/api/review", Cookie=cookies)[0] == 200


def test_a_file_that_cannot_be_written_is_said_and_works_again_later(path, server, client, caplog):
    item = client.join("Fay").get("/api/items/0")[1]["item"]
    server.review._opened.execute("PRAGMA busy_timeout = 50")
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        body = {"item": item, "question": "realism", "value": "moderate", "nonce": "f"}
        assert client.post("/api/answers", body) == (503, {"reason": "file"})
        assert "cannot use the review: database is locked" in caplog.text
    assert client.post("/api/answers", body) == (200, {"stored": True})
