"""Query 1's final answers: windows over batches, whatever their values."""

import pyarrow as pa

from queries.check_sensor_status import WINDOWS, answers, finished, left, merged

HUGE = 10**18 - 1


def batch(*records: tuple[int, int, int]) -> pa.Table:
    partition, time_ms, mf01 = zip(*records, strict=True)
    return pa.table(
        {
            "partition": pa.array(partition, pa.int32()),
            "time_ms": pa.array(time_ms, pa.int64()),
            "mf01": pa.array(mf01, pa.int64()),
        }
    )


def answered(*batches: pa.Table, partitions: int = 1) -> list[tuple[str, str]]:
    before, given = WINDOWS.empty_table(), []
    for each in batches:
        windows, seen = merged(before, each)
        ready = finished(windows, seen, partitions)
        given += answers(windows.filter(ready))
        before = left(windows, ready, seen)
    return given


def test_a_window_is_answered_once_it_is_over() -> None:
    assert answered(batch((0, 0, 1), (0, 999, 2)), batch((0, 1_000, 7))) == [
        ("0", "1.500000,1,2,2")
    ]


def test_every_partition_must_be_beyond_the_end() -> None:
    first = batch((0, 10, 1), (1, 20, 3))
    assert answered(first, batch((0, 1_000, 7)), partitions=2) == []
    assert answered(first, batch((0, 1_000, 7)), batch((1, 1_001, 7)), partitions=2) == [
        ("0", "2.000000,1,3,2")
    ]


def test_a_silent_partition_holds_nothing_back_for_ever() -> None:
    assert answered(batch((0, 10, 1)), batch((0, 3_000, 7)), partitions=2) == [
        ("0", "1.000000,1,1,1")
    ]


def test_what_comes_late_corrects_its_window() -> None:
    late = answered(batch((0, 10, 1)), batch((0, 1_000, 7)), batch((0, 20, 4)))
    assert late == [("0", "1.000000,1,1,1"), ("0", "2.500000,1,4,2")]


def test_sums_do_not_overflow() -> None:
    huge = batch(*[(0, 1, HUGE)] * 20, *[(0, 2, -HUGE)] * 20, (0, 3, 41), (0, 1_000, 0))
    assert answered(huge) == [("0", f"1.000000,{-HUGE},{HUGE},41")]
