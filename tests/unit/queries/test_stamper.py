"""The thread that stamps: everything, in order, together what came together; failures come out."""

import threading

import pyarrow as pa
import pytest

from queries.stamping import Stamper

PATIENCE_S = 30.0


def table(number: int) -> pa.Table:
    return pa.table({"n": [number]})


def numbers(tables: list[pa.Table]) -> list[int]:
    return [number for each in tables for number in each["n"].to_pylist()]


def test_what_comes_meanwhile_is_stamped_together() -> None:
    begun, go_on = threading.Event(), threading.Event()
    stamped: list[list[int]] = []

    def stamp(tables: list[pa.Table]) -> dict[str, int]:
        stamped.append(numbers(tables))
        begun.set()
        assert go_on.wait(PATIENCE_S)
        return {"unknown_keys": 1}

    with Stamper(stamp) as stamper:
        stamper.add(table(0))
        assert begun.wait(PATIENCE_S)
        for number in (1, 2, 3):
            stamper.add(table(number))
        go_on.set()
    assert stamped == [[0], [1, 2, 3]]
    assert stamper.counts == {"unknown_keys": 2}


def test_everything_is_stamped_when_the_block_ends() -> None:
    stamped: list[int] = []

    def stamp(tables: list[pa.Table]) -> dict[str, int]:
        stamped.extend(numbers(tables))
        return {}

    with Stamper(stamp) as stamper:
        for number in range(1_000):
            stamper.add(table(number))
    assert stamped == list(range(1_000))


def test_a_failure_is_raised_by_the_next_record() -> None:
    failed = threading.Event()

    def stamp(_tables: list[pa.Table]) -> dict[str, int]:
        failed.set()
        raise ValueError("no such table")

    def fill(stamper: Stamper) -> None:
        stamper.add(table(0))
        assert failed.wait(PATIENCE_S)
        # The thread ends a moment after it failed.
        for number in range(10**6):
            stamper.add(table(number))

    with pytest.raises(ValueError, match="no such table"), Stamper(stamp) as stamper:
        fill(stamper)


def test_a_failure_is_raised_at_the_latest_at_the_end() -> None:
    def stamp(_tables: list[pa.Table]) -> dict[str, int]:
        raise ValueError("no such table")

    with pytest.raises(ValueError, match="no such table"), Stamper(stamp) as stamper:
        stamper.add(table(0))
