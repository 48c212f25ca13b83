"""Rendering blocks on several processes, with the results in order and a bounded number waiting."""

import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice

from datagen import plan
from datagen.parameters import Parameters
from datagen.pools import Pools
from espbench.errors import MachineError

# What a worker process works on; set once when it starts.
_given: tuple[Parameters, Pools] | None = None


def default_workers() -> int:
    """As many as this process may use cores."""
    return len(os.sched_getaffinity(0))


def rendered(
    parameters: Parameters, pools: Pools, blocks: Iterable[plan.Block], workers: int
) -> Iterator[plan.Rendered]:
    """The blocks rendered, in their order; the bytes do not depend on the number of workers."""
    if workers == 1:
        yield from (plan.render(parameters, pools, block) for block in blocks)
        return
    context = multiprocessing.get_context("spawn")
    queue = iter(blocks)
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_start, initargs=(parameters, pools)
    ) as executor:
        waiting: deque[Future[plan.Rendered]] = deque()

        def submit(count: int) -> None:
            with _sigint_blocked():
                waiting.extend(executor.submit(_render, block) for block in islice(queue, count))

        try:
            submit(2 * workers)
            while waiting:
                result = waiting.popleft().result()
                submit(1)
                yield result
        except BrokenProcessPool as error:
            raise MachineError(
                "a worker process of the data generator was killed",
                "check the memory, or use fewer with --workers",
            ) from error
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _sigint_blocked() -> Iterator[None]:
    """Processes that start in here never get Ctrl-C: the parent alone decides what it means.

    In the parent itself it only comes a moment later.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(parameters: Parameters, pools: Pools) -> None:
    global _given  # noqa: PLW0603 - a worker process is given its work once
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _given = parameters, pools


def _end_with_parent() -> None:
    """A parent that was killed cannot end its workers."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)


def _render(block: plan.Block) -> plan.Rendered:
    if _given is None:
        raise RuntimeError("the worker was not started by `rendered`")
    return plan.render(*_given, block)
