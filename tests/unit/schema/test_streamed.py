import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from schema.streamed import with_file


class Stop(Exception):
    """What goes wrong here."""


def read(path: str) -> bytes:
    return Path(path).read_bytes()


@pytest.mark.parametrize("blocks", [[], [b""], [b"a", b"bc"], [b"x" * 3_000_000, b"y"]])
def test_a_file_reads_as_its_blocks(blocks: list[bytes]) -> None:
    assert with_file(blocks, read) == b"".join(blocks)


def test_what_the_blocks_raise_ends_the_file_and_is_raised() -> None:
    seen: list[bytes] = []

    def blocks() -> Iterator[bytes]:
        yield b"begun"
        raise Stop

    with pytest.raises(Stop):
        with_file(blocks(), lambda path: seen.append(read(path)))
    # The reader has come to its end before the exception goes on.
    assert seen == [b"begun"]


def test_a_reader_that_stops_early_says_why() -> None:
    def refuse(_path: str) -> None:
        raise Stop

    with pytest.raises(Stop):
        with_file((b"x" * 100_000 for _ in range(1_000)), refuse)


def held() -> tuple[int, int]:
    """Open files and threads of this process."""
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def test_nothing_is_left_open() -> None:
    before = held()
    for _ in range(20):
        with_file([b"abc"], read)
    deadline = time.monotonic() + 10
    # A thread gives its result just before it ends.
    while any(now > then for now, then in zip(held(), before, strict=True)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
