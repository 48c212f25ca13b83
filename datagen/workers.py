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
        waiting: deque[Future[plan.Rendered]] = deque(
            executor.submit(_render, block) for block in islice(queue, 2 * workers)
        )
        try:
            while waiting:
                result = waiting.popleft().result()
                waiting.extend(executor.submit(_render, block) for block in islice(queue, 1))
                yield result
        except BrokenProcessPool as error:
            raise MachineError(
                "a worker process of the data generator was killed",
                "check the memory, or use fewer with --workers",
            ) from error
        finally:
            executor.shutdown(wait=True, cancel_futures=True)


def _start(parameters: Parameters, pools: Pools) -> None:
    global _given  # noqa: PLW0603 - a worker process is given its work once
    # Ctrl-C reaches the whole group; the parent alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
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
