"""The web application of a review: one page, its files, a JSON interface, and who may use them."""

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import socket
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, Request, cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from noisegen.review.review_file import Refused, ReviewFile

_LOG = logging.getLogger(__name__)
PAGE = Path(__file__).with_name("page")
BODY_MAX = 16 << 10  # bytes
BODY_SECONDS = 10.0
_FILES = {
    "/": ("page.html", "text/html"),
    "/page.js": ("page.js", "text/javascript"),
    "/sending.js": ("sending.js", "text/javascript"),
    "/page.css": ("page.css", "text/css"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_DENIED = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Token needed</title>
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark"></head>
<body><main><h1>This address needs its token</h1>
<p>Open the whole address that <code>noisegen review serve</code> has printed in its terminal.
It ends in <code>?token=</code> and a long word. The token is a new one each time the server
starts.</p></main></body></html>
"""
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")

Endpoint = Callable[[Request], Awaitable[Response]]
Answer = dict[str, Any]


def application(review: ReviewFile) -> Starlette:
    """Return the application; `Guard` stands before it."""

    def get(path: str, work: Callable[[Request], Answer]) -> Route:
        async def endpoint(request: Request) -> Response:
            return await _answered(work, request)

        return Route(path, endpoint, methods=["GET"])

    def post(path: str, work: Callable[[str | None, Answer], Answer]) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                if request.headers.get("x-review") != review.id:
                    raise Refused("review", 409)
                body = await _body(request)
            except Refused as refused:
                return JSONResponse({"reason": refused.reason}, refused.status)
            return await _answered(work, _key(request), body)

        return Route(path, endpoint, methods=["POST"])

    def join(_: str | None, body: Answer) -> Answer:
        return review.join(body.get("name"), body.get("langs"), body.get("same") is True)

    def answer(key: str | None, body: Answer) -> Answer:
        review.answer(key, *(body.get(name) for name in ("item", "question", "value", "nonce")))
        return {"stored": True}

    routes = [Route(path, _file(*named)) for path, named in _FILES.items()]
    routes += [
        get("/api/review", lambda _: {"review": review.id, "langs": review.languages()}),
        get("/api/state", lambda request: review.state(_key(request))),
        get("/api/items/{place:int}",
            lambda request: review.item(_key(request), request.path_params["place"])),
        post("/api/reviewers", join),
        post("/api/answers", answer),
        post("/api/kinds", lambda key, body: review.add_kind(key, body.get("name"))),
    ]  # fmt: skip
    return Starlette(routes=routes)


def _key(request: Request) -> str | None:
    return request.headers.get("x-reviewer")


def _file(name: str, kind: str) -> Endpoint:
    content = (PAGE / name).read_bytes()

    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


async def _answered(work: Callable[..., Answer], *given: Any) -> Response:
    """Do the work in a thread, so that a slow disk holds up nobody else."""
    try:
        return JSONResponse(await run_in_threadpool(work, *given))
    except Refused as refused:
        return JSONResponse({"reason": refused.reason}, refused.status)
    except sqlite3.Error as error:  # a full disk, a file in use: the page tries again
        _LOG.error("cannot use the review: %s", error)
        return JSONResponse({"reason": "file"}, 503)


async def _body(request: Request) -> dict[str, Any]:
    """Return the JSON object of a request; raises Refused if it is none, too large or too slow."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise Refused("type", 415)
    content = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                content += part
                if len(content) > BODY_MAX:
                    raise Refused("size", 413)
        body = json.loads(content)
    except (TimeoutError, ClientDisconnect):
        raise Refused("slow", 408) from None
    except (ValueError, RecursionError):
        raise Refused("json") from None
    if not isinstance(body, dict):
        raise Refused("json")
    return body


# What every request must pass, and what every answer carries.


class Guard:
    """Let a request through to the application if it is ours; see `refusal` for what is not."""

    def __init__(
        self, application: ASGIApp, token: str, cookie: str, hosts: frozenset[str]
    ) -> None:
        self._application, self._token, self._cookie = application, token, cookie
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        query = parse_qs(scope["query_string"].decode("latin-1"))
        invited = any(map(self._is_token, query.get("token", [])))

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if invited and message["status"] == 200:
                    headers["Set-Cookie"] = (
                        f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict"
                    )
            await send(message)

        refused = self.refusal(scope["method"], Headers(scope=scope), invited, scope["path"])
        await (refused or self._application)(scope, receive, send_with_headers)

    def refusal(self, method: str, headers: Headers, invited: bool, path: str) -> Response | None:
        """Return the answer to a request that is not ours, None for one that is.

        Its host must be an IP address or a name of this machine (a page elsewhere whose name is
        rebound to this machine has another). What changes something must come from our own page.
        The token must be in the cookie, or in the query of the page itself.
        """
        host = headers.get("host", "")
        if not is_own_host(host, self._hosts):
            return JSONResponse({"reason": "host"}, 421)
        is_own_page = headers.get("origin") in (f"http://{host}", f"https://{host}")
        is_own_page &= headers.get("sec-fetch-site", "same-origin") == "same-origin"
        if method not in ("GET", "HEAD") and not is_own_page:
            return JSONResponse({"reason": "origin"}, 403)
        # Cookies of other programs on this machine may have any form.
        cookie = cookie_parser(headers.get("cookie", "")).get(self._cookie, "")
        if (invited and path == "/") or self._is_token(cookie):
            return None
        if path.startswith("/api/"):
            return JSONResponse({"reason": "token"}, 403)
        return HTMLResponse(_DENIED, 403)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode(), self._token.encode())


def is_own_host(header: str, hosts: frozenset[str]) -> bool:
    """Tell whether a Host header names an IP address or one of `hosts`, whatever the port."""
    match = _HOST.fullmatch(header)
    if not match:
        return False
    name = match[1].strip("[]").lower().rstrip(".")
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return name in hosts
    return True


def own_names(host: str) -> frozenset[str]:
    """Return the names by which a server bound to `host` may be called."""
    names = {"localhost", host.lower()}
    if not is_loopback(host):
        names |= {socket.gethostname().lower(), socket.getfqdn().lower()}
    return frozenset(names)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
