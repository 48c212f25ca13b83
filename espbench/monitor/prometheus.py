"""The latest sample for Prometheus, as text over HTTP on the loopback address."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from espbench.errors import MachineError
from espbench.monitor.store import SCHEMA

ADDRESS = "127.0.0.1"
_LABELS = ("host", "component", "query")
_METRICS = [name for name in SCHEMA.names if name not in {*_LABELS, "time_ms"}]
_PER_SECOND = {
    *("read_bytes", "written_bytes", "net_sent_bytes", "net_received_bytes"),
    *("voluntary_switches", "involuntary_switches", "context_switches", "gc_ms"),
}


def render(rows: list[dict[str, Any]]) -> str:
    """The rows in Prometheus' text format; what is unknown is left out."""
    lines = []
    for metric in _METRICS:
        known = [row for row in rows if row.get(metric) is not None]
        if not known:
            continue
        name = f"espbench_{metric}{'_per_second' if metric in _PER_SECOND else ''}"
        lines.append(f"# TYPE {name} gauge")
        for row in known:
            labels = ",".join(f'{label}="{_escape(row[label])}"' for label in _LABELS if row[label])
            lines.append(f"{name}{{{labels}}} {row[metric]} {row['time_ms']}")
    return "\n".join(lines) + "\n" if lines else ""


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class _Latest:
    """The rows of the newest sample; replaced as a whole, so no lock is needed."""

    rows: list[dict[str, Any]]

    def __init__(self) -> None:
        self.rows = []


class Endpoint:
    """Where the latest rows are served: `show` replaces them."""

    def __init__(self, port: int, latest: _Latest) -> None:
        self.port = port
        self._latest = latest

    def show(self, rows: list[dict[str, Any]]) -> None:
        """Serve these rows from now on."""
        self._latest.rows = rows


@contextmanager
def serve(port: int) -> Iterator[Endpoint]:
    """Serve `/metrics` on this port of the loopback address; 0 takes any free one."""
    newest = _Latest()

    class Handler(BaseHTTPRequestHandler):
        latest: ClassVar[_Latest] = newest

        def do_GET(self) -> None:
            """Answer with the latest rows."""
            if self.path.partition("?")[0] != "/metrics":
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            body = render(self.latest.rows).encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words: object) -> None:
            """Say nothing: the benchmark's lines matter more."""

    try:
        server = ThreadingHTTPServer((ADDRESS, port), Handler)
    except OSError as error:
        raise MachineError(
            f"port {port} of {ADDRESS} is taken: {error.strerror}", "choose another --prometheus"
        ) from error
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield Endpoint(int(server.server_address[1]), newest)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
