"""The live view in a browser: one page and one JSON document, on this machine's own address only.

The page asks for the document again and again; the server answers with what was seen last, so
that no number of readers makes anybody look at the run more often.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from espbench.errors import ServiceError
from espbench.live.charts import NAMES
from espbench.reports.page import policy_of, render

ADDRESS = "127.0.0.1"
DOCUMENT = "/live.json"


class Board:
    """Where the newest document hangs; written by one thread, read by others."""

    def __init__(self, document: dict[str, Any], interval_s: float) -> None:
        scripts = ("charts.js", "live.js")
        self.policy = policy_of(scripts, connect=True)
        self.page = render(
            "live.html",
            document["charts"],
            scripts=scripts,
            connect=True,
            run=document["run"],
            chart_names=NAMES,
            titles={name: each["title"] for name, each in document["charts"].items()},
            texts={name: each["text"] for name, each in document["charts"].items()},
            interval_ms=round(interval_s * 1_000),
        ).encode()
        self._newest = b""
        self.put(document)

    def put(self, document: dict[str, Any]) -> None:
        """Hang up a newer document."""
        self._newest = json.dumps(document, allow_nan=False, separators=(",", ":")).encode()

    def newest(self) -> bytes:
        """The document as it is served."""
        return self._newest


@contextmanager
def served(board: Board, port: int) -> Iterator[str]:
    """Serve the board in a thread; gives the page's address. Port 0 takes any free one."""
    try:
        server = ThreadingHTTPServer((ADDRESS, port), _handler(board))
    except OSError as error:
        raise ServiceError(
            f"cannot serve the live view at {ADDRESS}:{port}: {error.strerror}",
            "choose another --port, or none for any free one",
        ) from error
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.2})
    thread.start()
    try:
        yield f"http://{ADDRESS}:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(board: Board) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "espbench"
        sys_version = ""
        protocol_version = "HTTP/1.1"
        timeout = 30

        def do_GET(self) -> None:
            if not self._asked_here():
                # A page of somebody else that found the port under a name of its own.
                self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            elif self.path == "/":
                self._answer(board.page, "text/html; charset=utf-8")
            elif self.path == DOCUMENT:
                self._answer(board.newest(), "application/json")
            else:
                self.send_error(HTTPStatus.NOT_FOUND)

        def _asked_here(self) -> bool:
            name = str(self.headers.get("Host") or "").rpartition(":")[0]
            return name in {ADDRESS, "localhost"}

        def _answer(self, body: bytes, kind: str) -> None:
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Security-Policy", board.policy)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Referrer-Policy", "no-referrer")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing: a line for every look would hide everything else."""

    return Handler
