"""`espbench watch`: a run as it goes on, from outside."""

import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options

if TYPE_CHECKING:
    from espbench.live.look import Looker

# Of plain lines: a log is read later, not watched.
_PLAIN_S = 5.0


def watch(
    run: Annotated[
        str, typer.Argument(help="A run: its id, the beginning of one, last, or its directory.")
    ] = "last",
    out: Annotated[
        Path | None, typer.Option("--out", help="Where the runs are (default: results).")
    ] = None,
    interval: Annotated[
        float, typer.Option("--interval", min=0.2, max=60.0, help="Seconds between two looks.")
    ] = 1.0,
    web: Annotated[
        bool,
        typer.Option("--web", help="Serve a page with growing curves too, on 127.0.0.1 alone."),
    ] = False,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Of --web (default: any free one).")
    ] = 0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and leave.")] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Watch a run while it goes on: step, rate, lag, latency so far, what its processes use.

    Reads the run's files and a few records a second from its topics; changes nothing, and ends
    with the run. --json prints what was seen last. Example: espbench watch --web
    """
    from espbench.kafka.security import Servers, translated
    from espbench.live.broker import Tail
    from espbench.live.files import RunFiles
    from espbench.live.look import Looker
    from espbench.names import Query
    from espbench.runs.store import find_run

    settings = context.begin(config, quiet=quiet, verbose=verbose, options={"results_dir": out})
    known = translated(settings.kafka.options)

    def door(address: str, query: Query, prefix: str, of_run: str) -> Tail:
        return Tail(Servers(address, known), query, prefix, of_run)

    looker = Looker(RunFiles(find_run(settings.results_dir, run).root), door)
    with ExitStack() as stack:
        stack.callback(looker.close)
        looker.look()
        if not once:
            _follow(looker, stack, interval, port if web else None, quiet=quiet)
        document = looker.document()
    if json:
        context.print_json(document)
    elif not quiet:
        _say_last(document)


def _follow(
    looker: "Looker", stack: ExitStack, interval_s: float, port: int | None, *, quiet: bool
) -> None:
    """Look at every beat, show what is seen, until the run is over."""
    from espbench.live.serve import Board, served
    from espbench.live.terminal import plain

    document = looker.document(charts=port is not None)
    board = None
    if port is not None:
        board = Board(document, max(1.0, interval_s))
        address = stack.enter_context(served(board, port))
        # Not a log line: whoever asked for it needs the address, also with --quiet.
        sys.stderr.write(f"live view: {address}\n")
        sys.stderr.flush()
    live = None if quiet else _screen(stack, document)
    begin, said_s, beat = time.monotonic(), -_PLAIN_S, 0
    while True:
        if live is not None:
            live(document)
        elif not quiet and (time.monotonic() - said_s >= _PLAIN_S or document["over"]):
            said_s = time.monotonic()
            sys.stderr.write(f"{plain(document)}\n")
        if board is not None:
            board.put(document)
        if document["over"]:
            break
        # Beats that a busy machine made us miss are left out.
        beat = max(beat, int((time.monotonic() - begin) / interval_s)) + 1
        time.sleep(max(0.0, begin + beat * interval_s - time.monotonic()))
        looker.look()
        document = looker.document(charts=port is not None)


def _screen(stack: ExitStack, document: dict[str, Any]) -> Any:
    """How to show a document on a terminal; None where there is none."""
    if not logs.stderr.is_terminal:
        return None
    from rich.live import Live

    from espbench.live.terminal import screen

    live = Live(screen(document), console=logs.stderr, auto_refresh=False, transient=True)
    stack.enter_context(live)
    return lambda newer: live.update(screen(newer), refresh=True)


def _say_last(document: dict[str, Any]) -> None:
    from espbench.live.terminal import screen

    logs.stdout.print(screen(document), soft_wrap=True)
    if document["error"]:
        sys.stdout.write(f"error: {document['error']}\n")
