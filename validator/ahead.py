"""Work on the batches of a file while the next ones are read."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


def ahead(items: Iterable[Item], work: Callable[[Item], Found]) -> Iterator[tuple[Item, Found]]:
    """Every item and what `work` makes of it, in the order of the items.

    `work` runs in threads, as many as there are processors; what reads, decompresses and computes
    on whole arrays lets others run meanwhile. A few items are in memory at a time.
    """
    workers = os.cpu_count() or 1
    waiting: deque[tuple[Item, Future[Found]]] = deque()
    with ThreadPoolExecutor(workers) as pool:
        for item in items:
            waiting.append((item, pool.submit(work, item)))
            if len(waiting) > 2 * workers:
                first, found = waiting.popleft()
                yield first, found.result()
        for last, found in waiting:
            yield last, found.result()
