"""What a killed query finds again of the batch before: exactly that, or a clear end."""

from pathlib import Path

import pyarrow as pa
import pytest

from espbench.errors import InputError
from queries.carry import KEPT, Carry

EMPTY = pa.table({"n": pa.array([], pa.int64())})


def table(*numbers: int) -> pa.Table:
    return pa.table({"n": pa.array(numbers, pa.int64())})


def test_the_first_batch_begins_with_nothing(tmp_path: Path) -> None:
    assert Carry(tmp_path, EMPTY).before(0) == EMPTY


def test_a_batch_begins_with_what_the_one_before_it_left(tmp_path: Path) -> None:
    carry = Carry(tmp_path, EMPTY)
    carry.save(0, table(1, 2))
    assert carry.before(1) == table(1, 2)
    carry.save(1, table(3))
    assert carry.before(2) == table(3)
    # A batch that was not committed is done again.
    assert carry.before(1) == table(1, 2)
    assert carry.before(0) == EMPTY


def test_another_process_goes_on_from_the_files_alone(tmp_path: Path) -> None:
    before = Carry(tmp_path, EMPTY)
    for batch in range(10):
        before.save(batch, table(batch))
    after = Carry(tmp_path, EMPTY)
    assert [after.before(10 - ago) for ago in range(KEPT)] == [
        table(9 - ago) for ago in range(KEPT)
    ]
    assert len(list(tmp_path.iterdir())) == KEPT


def test_what_was_left_last_before_a_batch_is_found(tmp_path: Path) -> None:
    carry = Carry(tmp_path, EMPTY)
    assert carry.newest_before(3, 0) == EMPTY
    for batch in (3, 9):
        carry.save(batch, table(batch))
    found = [Carry(tmp_path, EMPTY).newest_before(batch, 0) for batch in (3, 4, 9, 10, 99)]
    assert found == [EMPTY, table(3), table(3), table(9), table(9)]


def test_what_is_lost_or_torn_is_no_beginning(tmp_path: Path) -> None:
    Carry(tmp_path, EMPTY).save(4, table(*range(1_000)))
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:2_000])
    for batch in (5, 6):
        with pytest.raises(InputError, match=f"lacks what batch {batch - 1} left"):
            Carry(tmp_path, EMPTY).before(batch)
