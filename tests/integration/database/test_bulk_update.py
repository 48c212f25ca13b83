"""Stamps in bulk: each row once, whatever comes twice, unknown or undone."""

from sqlalchemy import select

from schema.contract import Database
from schema.dataset import DataSet
from schema.reset import reset
from tests.integration.database.given import (
    DURATION_S,
    START_MS,
    bulk,
    filled,
    key_of,
    stamps,
    times_of,
)


def test_a_bulk_update_stamps_what_is_named_once(database: Database, data: DataSet) -> None:
    filled(database, data)
    lines = times_of(data)
    first = lines[:101]
    with database.engine.connect() as connection:
        begun = connection.scalar(select(database.now()))
        # Blocks need not end with lines.
        joined = b"".join(first)
        stamped = database.bulk_update(connection, [joined[:50], joined[50:51], joined[51:]])
        ended = connection.scalar(select(database.now()))
        connection.commit()
    assert begun is not None
    assert ended is not None
    assert (stamped.inputs, stamped.unknown) == (101, 0)
    after = stamps(database)
    named = {key_of(line) for line in first}
    for key, (start, end) in after.items():
        if key not in named:
            assert (start, end) == (None, None)
        elif key == key_of(first[-1]):
            assert start is not None
            assert end is None
        else:
            assert start is not None
            assert end is not None
            # Taken when the update ran, not when its transaction began.
            assert begun < start <= end < ended
    again = bulk(database, lines[:301])
    assert again == (301, 0)
    later = stamps(database)
    assert {key: later[key] for key in named - {key_of(first[-1])}} == {
        key: after[key] for key in named - {key_of(first[-1])}
    }
    assert later[key_of(first[-1])][0] == after[key_of(first[-1])][0]
    assert len([start for start, _end in later.values() if start]) == 151


def test_a_bulk_update_counts_what_it_does_not_know(database: Database, data: DataSet) -> None:
    filled(database, data)
    lines = times_of(data)[:4]
    assert bulk(database, [b"7\t1\t1\t0\n", *lines, *lines, b"7\t1\t1\t1\n"]) == (10, 2)
    assert len([start for start, _end in stamps(database).values() if start]) == 2
    assert bulk(database, []) == (0, 0)


def test_a_bulk_update_that_is_undone_leaves_nothing(database: Database, data: DataSet) -> None:
    filled(database, data)
    with database.engine.connect() as connection:
        database.bulk_update(connection, [b"".join(times_of(data))])
        # A connection serves many calls, also within one transaction.
        database.bulk_update(connection, times_of(data)[:2])
        connection.rollback()
        assert all(stamp == (None, None) for stamp in stamps(database).values())
        database.bulk_update(connection, times_of(data)[:2])
        connection.commit()
    assert len([start for start, _end in stamps(database).values() if start]) == 1
    assert reset(database, START_MS, DURATION_S).stamps_restored
