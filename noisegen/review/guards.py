"""What every request must pass, and what every answer carries: token, host, origin, headers."""

import ipaddress
import re
import secrets
import socket
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
        invited = self._is_token(parse_qs(scope["query_string"].decode("latin-1")).get("token"))

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
        if not is_own_host(headers.get("host", ""), self._hosts):
            return JSONResponse({"reason": "host"}, 421)
        if method not in ("GET", "HEAD") and not _from_own_page(headers):
            return JSONResponse({"reason": "origin"}, 403)
        if (invited and path == "/") or self._is_token(_cookies(headers, self._cookie)):
            return None
        if path.startswith("/api/"):
            return JSONResponse({"reason": "token"}, 403)
        return HTMLResponse(_DENIED, 403)

    def _is_token(self, given: list[str] | None) -> bool:
        return any(
            secrets.compare_digest(one.encode(), self._token.encode()) for one in given or []
        )


def _cookies(headers: Headers, name: str) -> list[str]:
    """Return our cookie. Those of other programs on this machine may have any form."""
    cookies = cookie_parser(headers.get("cookie", ""))
    return [cookies[name]] if name in cookies else []


def _from_own_page(headers: Headers) -> bool:
    """Tell whether a request comes from a page of the host it is sent to."""
    host = headers.get("host", "")
    site = headers.get("sec-fetch-site", "same-origin")
    return headers.get("origin") in (f"http://{host}", f"https://{host}") and site == "same-origin"


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
