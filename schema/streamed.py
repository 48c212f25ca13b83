"""Blocks of bytes as a file that a driver can open, without a file on any disk."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


@contextmanager
def as_file(blocks: Iterable[bytes]) -> Iterator[str]:
    """A path that reads as these blocks, once, while they are made.

    The blocks are drawn in a thread of their own. What they raise is raised when the `with` ends;
    a reader that stops early ends them.
    """
    reading, writing = os.pipe()
    failures: list[BaseException] = []

    def feed() -> None:
        try:
            with os.fdopen(writing, "wb") as pipe:
                for block in blocks:
                    pipe.write(block)
        except BrokenPipeError:
            # The reader has had enough and knows why.
            return
        except BaseException as error:  # noqa: BLE001 - raised again where the reader can see it
            failures.append(error)

    feeder = threading.Thread(target=feed, name="blocks", daemon=True)
    feeder.start()
    try:
        yield f"/dev/fd/{reading}"
    finally:
        os.close(reading)
        feeder.join()
    if failures:
        raise failures[0]
