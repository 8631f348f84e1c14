"""The web application of a review: one page, its two files, and a small JSON interface."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

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

Endpoint = Callable[[Request], Awaitable[Response]]


def application(review: ReviewFile) -> Starlette:
    """Return the application; `Guard` stands before it."""
    routes = [Route(path, _file(*named)) for path, named in _FILES.items()]
    routes += [
        Route("/api/review", _get(lambda request: _about(review)), methods=["GET"]),
        Route("/api/state", _get(lambda r: review.state(_key(r))), methods=["GET"]),
        Route(
            "/api/items/{place:int}",
            _get(lambda r: review.item(_key(r), r.path_params["place"])),
            methods=["GET"],
        ),
        Route("/api/reviewers", _post(review, _join), methods=["POST"]),
        Route("/api/answers", _post(review, _answer), methods=["POST"]),
        Route("/api/kinds", _post(review, _add_kind), methods=["POST"]),
    ]
    return Starlette(routes=routes)


def _about(review: ReviewFile) -> dict[str, Any]:
    return {"review": review.id, "langs": review.languages()}


def _key(request: Request) -> str | None:
    return request.headers.get("x-reviewer")


def _join(review: ReviewFile, _: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return review.join(body.get("name"), body.get("langs"), body.get("same") is True)


def _answer(review: ReviewFile, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
    given = (body.get(name) for name in ("item", "question", "value", "nonce"))
    review.answer(key, *given)
    return {"stored": True}


def _add_kind(review: ReviewFile, key: str | None, body: dict[str, Any]) -> dict[str, Any]:
    return review.add_kind(key, body.get("name"))


# Endpoints.


def _file(name: str, kind: str) -> Endpoint:
    content = (PAGE / name).read_bytes()

    async def endpoint(request: Request) -> Response:
        return Response(content, media_type=kind)

    return endpoint


def _get(work: Callable[[Request], dict[str, Any]]) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        return await _answered(work, request)

    return endpoint


def _post(
    review: ReviewFile, work: Callable[[ReviewFile, str | None, dict[str, Any]], dict[str, Any]]
) -> Endpoint:
    async def endpoint(request: Request) -> Response:
        try:
            if request.headers.get("x-review") != review.id:
                raise Refused("review", 409)
            body = await _body(request)
        except Refused as refused:
            return JSONResponse({"reason": refused.reason}, refused.status)
        return await _answered(work, review, _key(request), body)

    return endpoint


async def _answered(work: Callable[..., dict[str, Any]], *given: Any) -> Response:
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
