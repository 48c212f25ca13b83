"""What an interrupted capture left: gone on with where it is whole and of the same topic."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from espbench.errors import InputError
from espbench.kafka.admin import OffsetRange
from validator.capture import unfinished

RANGES = [OffsetRange(0, 0, 10)]


def left(directory: Path, topic_id: str = "first") -> None:
    """Three of ten records of a topic."""
    pq.write_table(pa.table({"offset": [0, 1, 2]}), directory / "t.parquet")
    unfinished.begin(directory, "t", topic_id, RANGES)


def test_the_same_topic_is_gone_on_with(tmp_path: Path) -> None:
    left(tmp_path)
    begun = unfinished.begun_before(tmp_path, "t", "first", RANGES)
    assert begun is not None
    assert begun.file is not None
    (batch,) = unfinished.records_of(begun.file)
    assert batch.column("offset").to_pylist() == [0, 1, 2]


def test_a_topic_made_anew_is_read_anew(tmp_path: Path) -> None:
    left(tmp_path)
    assert unfinished.begun_before(tmp_path, "t", "second", RANGES) is None
    left(tmp_path, "second")
    begun = unfinished.begun_before(tmp_path, "t", "second", RANGES)
    assert begun is not None
    assert begun.ranges == RANGES


def test_a_topic_that_shrank_is_read_anew(tmp_path: Path) -> None:
    left(tmp_path)
    assert unfinished.begun_before(tmp_path, "t", "first", [OffsetRange(0, 0, 5)]) is None


def test_torn_notes_are_none(tmp_path: Path) -> None:
    left(tmp_path)
    (tmp_path / "t.json").write_text('{"topic_id": "fir')
    assert unfinished.begun_before(tmp_path, "t", "first", RANGES) is None
    assert unfinished.done_before(tmp_path, "t", "first") is None


def test_damaged_records_are_named(tmp_path: Path) -> None:
    left(tmp_path)
    file = tmp_path / "t.parquet"
    content = bytearray(file.read_bytes())
    content[4:40] = bytes(36)
    file.write_bytes(content)
    with pytest.raises(InputError, match=r"damaged: .*t\.parquet"):
        list(unfinished.records_of(file))
