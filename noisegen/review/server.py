"""Web server of a review: serves it on this machine to browsers with a token until interrupted."""

import errno
import secrets
import socket
import webbrowser
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from noisegen.errors import NoisegenError, UsageError, naming_extras
from noisegen.options import argument, decode, internal, option, public
from noisegen.review.store import reading
from noisegen.runs.options import Folder

if TYPE_CHECKING:
    import uvicorn

    from noisegen.review.review_file import ReviewFile

HOST, PORT = "127.0.0.1", 8765
PORTS_TRIED = 50
BACKLOG = 100  # maximum connections that wait until the server accepts them


def print_at_once(line: str) -> None:
    """Print a line and flush it: the reader of a pipe sees it while the server is still running."""
    print(line, flush=True)


@dataclass(frozen=True)
class ServeOptions:
    """Options of `serve`: the review and the address to serve it on."""

    path: Annotated[Folder, argument("REVIEW.sqlite")]
    _: KW_ONLY
    host: Annotated[
        str, option("Address to bind; any but the loopback address lets other machines in")
    ] = HOST
    port: Annotated[int, option("Port (0: any free port)")] = PORT
    open_browser: Annotated[bool, option("Open the page in the browser", "--open")] = False
    tell: Annotated[Callable[[str], None], internal()] = print_at_once


@dataclass(frozen=True)
class Server:
    """An open review and a socket bound to its port, so that it can be served."""

    review: "ReviewFile"
    host: str
    token: str
    listening: socket.socket

    @property
    def port(self) -> int:
        """The number of the bound port; if port 0 was requested, the port that was chosen."""
        return int(self.listening.getsockname()[1])

    @property
    def address(self) -> str:
        """The web address to give to reviewers: http://HOST:PORT/?token=..."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(self.host, self.host)
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/?token={self.token}"

    def uvicorn(self) -> "uvicorn.Server":
        """Return the uvicorn server of the review.

        `run(sockets=[self.listening])` of the returned server serves until its `should_exit` is
        True.
        """
        import uvicorn

        from noisegen.review.web import Connection, application, own_names

        # Browsers share cookies between the ports of a host: each review needs its own cookie name
        cookie = f"noisegen-review-{self.port}"
        config = uvicorn.Config(
            application(self.review, self.token, cookie, own_names(self.host)),
            log_level="warning",
            access_log=False,
            server_header=False,
            date_header=False,
            lifespan="off",
            ws="none",
            http=Connection,
            loop="asyncio",
            backlog=BACKLOG,
            timeout_graceful_shutdown=2,
            proxy_headers=False,
        )
        return uvicorn.Server(config)

    @contextmanager
    def in_thread(self) -> Iterator[Future[None]]:
        """Serve the review in a thread while the block runs, then close the review and its port.

        Yield the future of the thread: it is done only if the server ends by itself.
        """
        running = self.uvicorn()
        with closing(self.review), closing(self.listening), ThreadPoolExecutor(1) as thread:
            try:
                yield thread.submit(running.run, sockets=[self.listening])
            finally:
                running.should_exit = True


def prepare(path: str | Path, host: str = HOST, port: int = PORT) -> Server:
    """Open a review and bind its port.

    Raises SourceError for a file that is no review, NoisegenError for a port in use (the error
    names a free port), UsageError for a host that cannot be used, MissingExtra if starlette or
    uvicorn is not installed.
    """
    with naming_extras():
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    from noisegen.review.review_file import ReviewFile

    path = Path(path)
    with reading(path):
        review = ReviewFile(path)
    try:
        listening = _bound(host, port)
    except BaseException:
        review.close()
        raise
    return Server(review, host, secrets.token_urlsafe(32), listening)


@public
def serve(
    path: str | Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    open_browser: bool = False,
    tell: Callable[[str], None] = print_at_once,
) -> None:
    """Serve a review until interrupted; every answer is stored at once.

    `tell` is called with each line for the user: the address with its token, and warnings. Raises
    NoisegenError; see `prepare`.
    """
    _serve(decode(ServeOptions, locals()))


def _serve(options: ServeOptions) -> None:
    """Run `serve` with checked options.

    The server runs in a thread: Ctrl-C then always interrupts the waiting of the main thread, and
    never the start of the event loop.
    """
    server, tell = prepare(options.path, options.host, options.port), options.tell
    from noisegen.review.web import is_loopback

    try:
        with server.in_thread() as served:
            if not is_loopback(options.host):
                tell(
                    f"warning: {options.host} can be reached from other machines: anyone with "
                    f"the address can read the texts and review, and nothing is encrypted"
                )
            tell(f"open {server.address}")
            tell("stop with Ctrl-C; every answer is stored at once")
            if options.open_browser:
                webbrowser.open(server.address)
            while not served.done():
                wait([served], timeout=1)  # without a time limit, Windows does not hear Ctrl-C
            served.result()
    except KeyboardInterrupt:
        tell(f"stopped; the answers are in {options.path}")


def _bound(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise UsageError(f"--port {port} is not between 0 and 65535")
    try:
        return _socket(host, port)
    except UnicodeError as error:  # a part of the host name between dots is empty or too long
        raise UsageError(f"cannot serve on host {host!r}: not a host name") from error
    except OSError as error:
        if _free_port(host, 0) is None:
            raise UsageError(f"cannot serve on host {host!r}: {error.strerror}") from error
        in_use = error.errno == errno.EADDRINUSE
        reason = "is in use" if in_use else f"cannot be used ({error.strerror})"
        near = range(port + 1, min(port + PORTS_TRIED, 65535))
        free = next(filter(None, (_free_port(host, other) for other in (*near, 0))), None)
        raise NoisegenError(f"port {port} of {host} {reason}; a free one: --port {free}") from error


def _socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at a host and port.

    At an IPv6 address it also listens for IPv4 if the system supports that.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    is_dual = family == socket.AF_INET6 and socket.has_dualstack_ipv6()
    bound = socket.create_server(address, family=family, dualstack_ipv6=is_dual)
    bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # without it answers may wait 40 ms
    return bound


def _free_port(host: str, port: int) -> int | None:
    """Return `port` if it is free, any free port if `port` is 0, else None."""
    try:
        with _socket(host, port) as tried:
            return int(tried.getsockname()[1])
    except OSError:
        return None
