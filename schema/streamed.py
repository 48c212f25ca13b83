"""Blocks of bytes as a file that a driver can open, without a file on any disk."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import TypeVar

_END_TIMEOUT_S = 10

T = TypeVar("T")


def with_file(blocks: Iterable[bytes], work: Callable[[str], T]) -> T:
    """What `work` returns for a path that reads as these blocks, once, while they are made.

    The blocks are drawn here and `work` runs in a thread of its own, where no signal interrupts it
    half-way through a message to a server. Whatever ends the blocks ends the file: `work` sees its
    end, and is waited for, before the exception goes on.
    """
    reading, writing = os.pipe()
    result: Future[T] = Future()

    def run() -> None:
        try:
            result.set_result(work(f"/dev/fd/{reading}"))
        except BaseException as error:  # noqa: BLE001 - raised again by the caller's thread
            result.set_exception(error)
        finally:
            os.close(reading)

    threading.Thread(target=run, name="reader of blocks", daemon=True).start()
    try:
        with os.fdopen(writing, "wb") as pipe:
            for block in blocks:
                pipe.write(block)
    except BrokenPipeError:
        # `work` has had enough; its result says why.
        pass
    except BaseException:
        with suppress(TimeoutError):
            result.exception(_END_TIMEOUT_S)
        raise
    return result.result()
