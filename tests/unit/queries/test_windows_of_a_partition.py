"""Query 2 in real-time mode: windows that neither batches nor intervals nor kills can shift."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from queries.carry import Carry
from queries.determine_outliers import RECORDS, WINDOW, Waiting

AT_ONCE = 16


def batches(begin: int, end: int) -> list[pa.RecordBatch]:
    offsets = np.arange(begin, end)
    columns = {
        "partition": np.full(len(offsets), 7, dtype=np.int32),
        "offset": offsets,
        "mf01": offsets,
        "mf02": offsets,
        "value": [str(offset) for offset in offsets],
    }
    table = pa.table(columns, RECORDS)
    return list(table.to_batches(max_chunksize=AT_ONCE))


def an_interval(directory: Path, number: int, begin: int, end: int) -> list[list[int]]:
    """The offsets of the windows that a worker of its own completes in one interval."""
    waiting = Waiting(Carry(directory, RECORDS.empty_table()), number, begin)
    windows = [window for batch in batches(begin, end) for window in waiting.add(batch)]
    waiting.save()
    return [window["offset"].to_pylist() for window in windows]


def test_a_window_is_complete_with_the_batch_of_its_last_record(tmp_path: Path) -> None:
    waiting = Waiting(Carry(tmp_path, RECORDS.empty_table()), 0, 0)
    full = [len(waiting.add(batch)) for batch in batches(0, 3 * WINDOW)]
    last_records = [(number * WINDOW - 1) // AT_ONCE for number in (1, 2, 3)]
    assert [place for place, windows in enumerate(full) if windows] == last_records


@pytest.mark.parametrize("ends", [(1_700,), (3, 499, 500, 501, 1_499, 1_700), (600, 601, 1_700)])
def test_intervals_do_not_shift_windows(ends: tuple[int, ...], tmp_path: Path) -> None:
    begins = (0, *ends)
    found = [
        window
        for number, (begin, end) in enumerate(zip(begins, ends, strict=False))
        for window in an_interval(tmp_path, number, begin, end)
    ]
    assert found == [list(range(begin, begin + WINDOW)) for begin in range(0, 3 * WINDOW, WINDOW)]


def test_an_interval_that_is_done_again_begins_where_it_began(tmp_path: Path) -> None:
    an_interval(tmp_path, 0, 0, 300)
    # Killed after it had left its rest, before Spark noted it; and after silent intervals.
    an_interval(tmp_path, 4, 300, 900)
    assert an_interval(tmp_path, 4, 300, 1_100) == [list(range(500)), list(range(500, 1_000))]
    assert an_interval(tmp_path, 9, 1_100, 1_500) == [list(range(1_000, 1_500))]


def test_an_interval_that_reads_nothing_when_it_is_done_again_shifts_nothing(
    tmp_path: Path,
) -> None:
    an_interval(tmp_path, 0, 0, 300)
    # Killed before Spark noted it; done again too late to read a record, and noted then.
    an_interval(tmp_path, 1, 300, 450)
    assert an_interval(tmp_path, 2, 300, 800) == [list(range(500))]
    assert an_interval(tmp_path, 3, 800, 1_000) == [list(range(500, 1_000))]


def test_an_interval_that_left_no_record_is_told_from_one_that_was_not_noted(
    tmp_path: Path,
) -> None:
    an_interval(tmp_path, 0, 0, 300)
    an_interval(tmp_path, 1, 300, 500)
    assert an_interval(tmp_path, 2, 300, 600) == [list(range(500))]
    assert an_interval(tmp_path, 3, 600, 1_000) == [list(range(500, 1_000))]
