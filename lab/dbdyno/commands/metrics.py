"""`dbdyno metrics`: serves the values of a run in progress as OpenMetrics text over HTTP, on a loopback
address or with a token.
"""

from __future__ import annotations

import hmac
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dbdyno.commands import options
from dbdyno.problem import Problem

if TYPE_CHECKING:
    from dbdyno.listening import Listener
    from dbdyno.store.live import RunFollower

# Seconds that a client may take to send its request.
TIMEOUT_S = 10.0


def metrics(
    run: options.AnyRun = None,
    listen: Annotated[
        str,
        typer.Option(metavar="ADDRESS:PORT", help="Address to serve /metrics on; port 0 is any free port."),
    ] = "127.0.0.1:9400",
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with a token that clients must send; required unless --listen is a loopback address."
        ),
    ] = None,
    results: options.Results = options.RESULTS,
) -> None:
    """Serve the values of a run in progress in the OpenMetrics format."""
    from dbdyno.exports import require_client
    from dbdyno.listening import listener

    place = listener(listen, token_file, "read the values")
    require_client("dbdyno metrics")
    values = _Values(results, run)
    values.text()
    try:
        with _Server(place, values) as server:
            print(f"http://{place.url_host}:{server.server_port}/metrics", flush=True)
            server.serve_forever()
    except OSError as error:
        raise Problem(
            f"cannot listen on {listen}: {error.strerror or error}", "Choose another port"
        ) from error


class _Values:
    """The text of the run that a name means; that of an experiment, or none, means its newest run at the time
    of a request.
    """

    def __init__(self, results: Path, name: Path | None) -> None:
        self._results, self._name = results, name
        self._followed: tuple[Path, RunFollower] | None = None
        # A follower reads for one request at a time.
        self._lock = threading.Lock()

    def text(self) -> bytes:
        """The values now. Raises StoreProblem."""
        from dbdyno.exports.openmetrics import exposition
        from dbdyno.store.listing import find_run
        from dbdyno.store.live import RunFollower

        with self._lock:
            run = find_run(self._results, self._name, quick=True)
            if self._followed is None or self._followed[0] != run.path:
                self._followed = run.path, RunFollower(run)
            return exposition(run, self._followed[1].read())


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, place: Listener, values: _Values) -> None:
        if ":" in place.host:
            self.address_family = socket.AF_INET6
        self.values, self.place = values, place
        super().__init__((place.host, place.port), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = TIMEOUT_S
    server_version, sys_version = "dbdyno", ""

    def do_GET(self) -> None:
        expected, sent = self.server.place.token, self.headers.get("Authorization", "")
        if not self.server.place.accepts_host(self.headers.get("Host", "")):
            self._answer(403, b"the Host header does not name this server\n", {})
        elif expected is not None and not hmac.compare_digest(sent.encode(), f"Bearer {expected}".encode()):
            self._answer(401, b"the token is missing or wrong\n", {"WWW-Authenticate": "Bearer"})
        elif self.path.partition("?")[0] != "/metrics":
            self._answer(404, b"see /metrics\n", {})
        else:
            from dbdyno.exports.openmetrics import CONTENT_TYPE
            from dbdyno.store.files import StoreProblem

            try:
                text = self.server.values.text()
            except StoreProblem as problem:
                self._answer(503, f"{problem.text}\n".encode(), {})
            else:
                self._answer(200, text, {"Content-Type": CONTENT_TYPE})

    def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        self.send_response(status)
        for key, value in ({"Content-Type": "text/plain; charset=utf-8"} | headers).items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the library's name.
        """Requests are not logged: a scrape every few seconds would fill the terminal."""
