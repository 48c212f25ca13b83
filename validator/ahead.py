"""Work on items while the next ones are read or made."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def ahead(
    items: Iterable[Item], work: Callable[[Item], Found], pool: Executor | None = None
) -> Iterator[tuple[Item, Found]]:
    """Every item and what `work` makes of it, in the order of the items.

    `work` runs in `pool`, or in threads, as many as there are processors; what reads, decompresses
    and computes on whole arrays lets others run meanwhile. A few items are in memory at a time.
    """
    workers = os.cpu_count() or 1
    if pool is None:
        with ThreadPoolExecutor(workers) as threads:
            yield from ahead(items, work, threads)
        return
    waiting: deque[tuple[Item, Future[Found]]] = deque()
    for item in items:
        waiting.append((item, pool.submit(work, item)))
        if len(waiting) > 2 * workers:
            first, found = waiting.popleft()
            yield first, found.result()
    for last, found in waiting:
        yield last, found.result()
