"""The web application of a review: the page, its files, a JSON interface, and access checks."""

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import socket
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol

from noisegen.errors import printable
from noisegen.review.review_file import Refused, ReviewFile

_LOG = logging.getLogger(__name__)
PAGE = Path(__file__).with_name("page")
_DENIED = (PAGE / "denied.html").read_bytes()
BODY_MAX = 16 << 10  # maximum bytes in the body of a request
BODY_SECONDS = 10.0
CONNECTIONS_MAX = 500
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
_HOST = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9.-]+)(?::[0-9]{1,5})?")

Content = dict[str, Any]


def application(review: ReviewFile, token: str, cookie: str, hosts: frozenset[str]) -> Starlette:
    """Return the web application that serves a review; `guard` checks every request to it.

    The arguments `token`, `cookie` and `hosts` are explained there.
    """

    def file(path: str, name: str, kind: str) -> Route:
        content = (PAGE / name).read_bytes()
        return Route(path, lambda _: Response(content, media_type=kind))

    def get(path: str, work: Callable[[Request], Content]) -> Route:
        return Route(path, lambda request: JSONResponse(work(request)))

    def post(path: str, work: Callable[[str | None, Content], Content]) -> Route:
        async def endpoint(request: Request) -> Response:
            if request.headers.get("x-review") != review.id:
                raise Refused("review", 409)
            body = await _body(request)
            # The work runs in a thread, so that a slow disk does not delay other requests.
            return JSONResponse(await run_in_threadpool(work, _key(request), body))

        return Route(path, endpoint, methods=["POST"])

    def join(_: str | None, body: Content) -> Content:
        return review.join(body.get("name"), body.get("langs"), body.get("same") is True)

    def answer(key: str | None, body: Content) -> Content:
        review.answer(key, *(body.get(name) for name in ("item", "question", "value", "nonce")))
        return {"stored": True}

    routes = [
        *(file(path, *named) for path, named in _FILES.items()),
        get("/api/review", lambda _: {"review": review.id, "langs": review.languages()}),
        get("/api/state", lambda request: review.state(_key(request))),
        get("/api/items/{place:int}", lambda r: review.item(_key(r), r.path_params["place"])),
        post("/api/reviewers", join),
        post("/api/answers", answer),
        post("/api/kinds", lambda key, body: review.add_kind(key, body.get("name"))),
    ]
    return Starlette(
        routes=routes,
        middleware=[guard(token, cookie, hosts)],
        exception_handlers={Refused: _refused, sqlite3.Error: _unusable},
    )


def _key(request: Request) -> str | None:
    return request.headers.get("x-reviewer")


def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return JSONResponse({"reason": error.reason}, error.status)


def _unusable(_: Request, error: Exception) -> Response:
    """Answer a request that met a database error, so that the page tries again later."""
    _LOG.error("cannot use the review: %s", printable(str(error)))
    return JSONResponse({"reason": "file"}, 503)


class Connection(H11Protocol):
    """A browser's connection, which the server may close to make room for newer connections.

    At most CONNECTIONS_MAX connections are kept. A new connection beyond this number closes the
    least recently used one, so that idle connections keep nobody out. `used` is the time in seconds
    at which the connection was opened, or last answered a request.
    """

    used = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Register a new connection; close the least recently used one if there are too many."""
        super().connection_made(transport)
        self.used = self.loop.time()
        if len(self.connections) > CONNECTIONS_MAX:
            oldest = min(self.connections, key=lambda other: getattr(other, "used", 0.0))
            self.connections.discard(oldest)
            oldest.transport.abort()

    def on_response_complete(self) -> None:
        """Set `used` to the present time when a response is complete."""
        self.used = self.loop.time()
        super().on_response_complete()


async def _body(request: Request) -> Content:
    """Return the JSON object in the body of a request.

    Raises Refused for a body that is no JSON object, too large or too slow.
    """
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


# Checks of every request, and headers of every response.


def guard(token: str, cookie: str, hosts: frozenset[str]) -> Middleware:
    """Return middleware that answers only requests that come from the review page with the token.

    The token must be in the cookie named `cookie`. The page itself may also be requested with the
    token in the query; the response then sets the cookie. `refusal` makes the other checks; `hosts`
    are the host names of this server.
    """

    def is_token(given: str) -> bool:
        # Bytes, since `compare_digest` refuses strings with characters beyond ASCII.
        return secrets.compare_digest(given.encode(), token.encode())

    async def dispatch(request: Request, call_next: RequestResponseEndpoint) -> Response:
        is_invited = any(map(is_token, request.query_params.getlist("token")))
        is_known = is_token(request.cookies.get(cookie, ""))
        is_known |= is_invited and request.scope["path"] == "/"
        response = refusal(request, hosts, is_known) or await call_next(request)
        response.headers.update(HEADERS)
        if is_invited and response.status_code == 200:
            response.headers["Set-Cookie"] = f"{cookie}={token}; Path=/; HttpOnly; SameSite=Strict"
        return response

    return Middleware(BaseHTTPMiddleware, dispatch=dispatch)


def refusal(request: Request, hosts: frozenset[str], is_known: bool) -> Response | None:
    """Return the error response to a request that does not come from the review page, else None.

    The host in the request must be an IP address or one of `hosts`: this stops a foreign page whose
    host name has been made to point to this machine. A request that changes data must have the
    review page as its origin. `is_known` tells whether the request has the token.
    """
    headers, host = request.headers, request.headers.get("host", "")
    if not is_own_host(host, hosts):
        return JSONResponse({"reason": "host"}, 421)
    is_own_page = headers.get("origin") in (f"http://{host}", f"https://{host}")
    is_own_page &= headers.get("sec-fetch-site", "same-origin") == "same-origin"
    if request.method not in ("GET", "HEAD") and not is_own_page:
        return JSONResponse({"reason": "origin"}, 403)
    if is_known:
        return None
    if request.scope["path"].startswith("/api/"):
        return JSONResponse({"reason": "token"}, 403)
    return HTMLResponse(_DENIED, 403)


def is_own_host(header: str, hosts: frozenset[str]) -> bool:
    """Tell whether a Host header names an IP address or one of `hosts`; its port is ignored."""
    match = _HOST.fullmatch(header)
    name = match[1].strip("[]").lower().rstrip(".") if match else ""
    return bool(name) and (name in hosts or _address(name) is not None)


def own_names(host: str) -> frozenset[str]:
    """Return the host names that may be in a URL of this server, which is bound to `host`."""
    others = () if is_loopback(host) else (socket.gethostname().lower(), socket.getfqdn().lower())
    return frozenset(("localhost", host.lower(), *others))


def is_loopback(host: str) -> bool:
    """Tell whether a host is a loopback address, which only this machine can reach."""
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
