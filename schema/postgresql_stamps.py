"""Query 5's update in PostgreSQL: arrays in one prepared statement, no table between.

A batch is one message to the server and one statement. A temporary table would cost several of
both and would leave dead rows in the server's catalogue.
"""
# ruff: noqa: S608 - put together from names and numbers of ours

import numpy as np
import psycopg
from psycopg import sql
from psycopg.adapt import Dumper
from psycopg.pq import Format

from schema.given import ENDED, STARTED, Given, Integers

_INT8, _INT8_ARRAY = 20, 1016


class _Column:
    """A column of integers on its way to the server."""

    def __init__(self, values: Integers) -> None:
        self.values = values


class _ColumnDumper(Dumper):
    """PostgreSQL's binary format of an array, written by numpy instead of value by value."""

    format = Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: _Column) -> bytes:
        """Dimensions, whether there are nulls, type, length, lower bound; then size and value."""
        count = len(obj.values)
        header = np.array([1, 0, _INT8, count, 1], dtype=">i4")
        body = np.empty(count, dtype=[("size", ">i4"), ("value", ">i8")])
        body["size"], body["value"] = 8, obj.values
        return header.tobytes() + body.tobytes()


# The class is our own: nobody else's values are dumped differently by this.
psycopg.adapters.register_dumper(_Column, _ColumnDumper)

# (SELECT …) around a parameter hides its length from the planner, which then expects few rows: the
# plan is a lookup by the primary key for each, whatever the batch. A plan for the real number would
# read the whole table from some thousand rows on, and would be made anew for every batch.
_KEYS = "unnest((SELECT %s), (SELECT %s), (SELECT %s)) AS g (o, l, n)"
_ROWS = "unnest((SELECT %s), (SELECT %s), (SELECT %s), (SELECT %s)) AS g (o, l, n, what)"
_SAME = "t.pol_o_id = g.o AND t.pol_ol_number = g.l AND t.pol_number = g.n"
_NOW = "clock_timestamp() AT TIME ZONE 'UTC'"
# New values are computed in the order of the columns, so a start comes before an end. A row that
# needs no change gets no new version.
_UPDATE = (
    "UPDATE {table} AS t SET "
    f"pol_start_ts = CASE WHEN g.what & {STARTED} > 0 THEN coalesce(t.pol_start_ts, {_NOW}) "
    "ELSE t.pol_start_ts END, "
    f"pol_end_ts = CASE WHEN g.what & {ENDED} > 0 THEN coalesce(t.pol_end_ts, {_NOW}) "
    "ELSE t.pol_end_ts END "
    f"FROM {_ROWS} WHERE {_SAME} AND ("
    f"g.what & {STARTED} > 0 AND t.pol_start_ts IS NULL OR "
    f"g.what & {ENDED} > 0 AND t.pol_end_ts IS NULL)"
)
_UNKNOWN = (
    f"SELECT count(*) FROM {_KEYS} WHERE NOT EXISTS (SELECT FROM {{table}} AS t WHERE {_SAME})"
)


class Stamping:
    """The statements for one table, spelled once."""

    def __init__(self, table: sql.Identifier) -> None:
        self._update = sql.SQL(_UPDATE).format(table=table).as_string().encode()
        self._unknown = sql.SQL(_UNKNOWN).format(table=table).as_string().encode()

    def update(self, connection: psycopg.Connection[tuple[object, ...]], given: Given) -> int:
        """Stamp; returns how many of the rows changed."""
        columns = [_Column(column) for column in given.rows]
        return connection.execute(self._update, columns, prepare=True).rowcount

    def plan(
        self, connection: psycopg.Connection[tuple[object, ...]], given: Given
    ) -> tuple[str, str]:
        """The statement that stamps, and the server's plan of it; nothing is changed."""
        columns = [_Column(column) for column in given.rows]
        lines = connection.execute(b"EXPLAIN (VERBOSE) " + self._update, columns).fetchall()
        return self._update.decode(), "\n".join(str(line[0]) for line in lines)

    def unknown(self, connection: psycopg.Connection[tuple[object, ...]], given: Given) -> int:
        """How many of the lines name no row."""
        columns = [_Column(column) for column in given.keys]
        found = connection.execute(self._unknown, columns, prepare=True).fetchone()
        return int(str(found[0])) if found else 0
