"""Several sender processes for one send: process k owns the partitions that are k modulo P.

Each has its own files, client and clock; they share the schedule and the start, which the parent
fixes when all are ready. Signals are the parent's business: a word on the pipe, or the parent's
end, stops a process.
"""

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from espbench.errors import EspbenchError, Interrupted, ServiceError
from sender.clock import SystemClock
from sender.replay import Ending
from sender.share import CONNECT_TIMEOUT_S, Share, carry_out

_READY_TIMEOUT_S = 60.0 + CONNECT_TIMEOUT_S
_LOOK_S = 0.05


@dataclass(slots=True)
class _Child:
    process: Any
    pipe: Connection
    handed: int = 0
    share: Share | None = None
    ended: bool = False


@dataclass(slots=True)
class _Glance:
    """Tells whether the parent said stop, or ended; looks at most every `_LOOK_S`."""

    pipe: Connection
    _next_s: float = 0.0
    _asked: bool = field(default=False)

    def __call__(self) -> bool:
        now_s = time.monotonic()
        if not self._asked and now_s >= self._next_s:
            self._next_s = now_s + _LOOK_S
            self._asked = self.pipe.poll()
        return self._asked


def send_by_many(
    request: Any,
    senders: int,
    begin: Callable[[], int],
    *,
    stop: Callable[[], bool],
    progress: Callable[[int], object],
) -> list[Share]:
    """Start the processes, `begin()` (the start, epoch ms) when all are ready, collect shares.

    Raises `ServiceError` where one cannot connect. A process that dies leaves no share; the others
    are stopped and their endings say so.
    """
    context = multiprocessing.get_context("spawn")
    children: list[_Child] = []
    try:
        for index in range(senders):
            ours, theirs = context.Pipe()
            process = context.Process(target=_work, args=(theirs, request, (index, senders)))
            process.start()
            theirs.close()
            children.append(_Child(process, ours))
        _await_ready(children, stop)
        start_ms = begin()
        for child in children:
            child.pipe.send(start_ms)
        return _collect(children, stop, progress)
    finally:
        for child in children:
            child.pipe.close()
        for child in children:
            child.process.join(timeout=10)
            if child.process.is_alive():
                child.process.kill()
                child.process.join()


def _await_ready(children: Sequence[_Child], stop: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _READY_TIMEOUT_S
    for child in children:
        while not child.pipe.poll(0.1):
            if stop():
                raise Interrupted("sending was interrupted before it began")
            if time.monotonic() > deadline:
                raise ServiceError("a sender process is not ready in time", "try fewer --senders")
        try:
            kind, *words = child.pipe.recv()
        except EOFError as error:
            raise ServiceError("a sender process ended at once", "try --senders 1") from error
        if kind == "error":
            raise ServiceError(*words)


def _collect(
    children: Sequence[_Child], stop: Callable[[], bool], progress: Callable[[int], object]
) -> list[Share]:
    told = False
    while not all(child.ended for child in children):
        running = {child.pipe: child for child in children if not child.ended}
        for pipe in wait(list(running), timeout=0.1):
            child = running[pipe]  # type: ignore[index]
            try:
                kind, content = child.pipe.recv()
            except (EOFError, OSError):
                child.ended = True
                continue
            if kind == "progress":
                child.handed = content
            elif kind == "share":
                child.share, child.ended = content, True
        progress(sum(child.handed for child in children) // len(children))
        failed = any(
            child.ended and (child.share is None or child.share.ending != Ending())
            for child in children
        )
        if (failed or stop()) and not told:
            told = True
            for child in children:
                if not child.ended:
                    child.pipe.send("stop")
    shares = [child.share for child in children if child.share is not None]
    if len(shares) < len(children):
        died = Ending(failure="a sender process died; its records are not in the counts")
        shares.append(Share((), died, 0.0, 0.0, 1.0))
    return shares


def _work(pipe: Connection, request: Any, part: tuple[int, int]) -> None:
    """The body of a sender process."""
    from sender.send import prepare  # noqa: PLC0415 - send imports this module

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)

    def begin() -> Any:
        pipe.send(("ready",))
        start_ms = pipe.recv()
        return start_ms, prepared.replays(start_ms, part)

    try:
        prepared = prepare(request)
        share = carry_out(
            request.producer,
            request.bootstrap_servers,
            [each.topic for each in request.streams],
            begin,
            clock=SystemClock(),
            give_up_ns=request.give_up_ns,
            stop=_Glance(pipe),
            progress=lambda handed: pipe.send(("progress", handed)),
        )
    except EspbenchError as error:
        pipe.send(("error", error.cause, error.remedy))
    except (EOFError, BrokenPipeError):
        return  # the parent ended: nobody wants to know
    else:
        pipe.send(("share", share))
