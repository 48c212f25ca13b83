"""Query 5's update in MariaDB: the batch as one JSON text in one statement, no table between.

A temporary table filled by LOAD DATA costs six messages and two passes over the rows; for a
hundred lines that is more than ten times the work of the update.
"""
# ruff: noqa: S608 - put together from names and numbers of ours

import json

from sqlalchemy import Connection

from schema.given import ENDED, STARTED, Given, Integers

_JSON = (
    "JSON_TABLE(%s, '$[*]' COLUMNS (o BIGINT PATH '$[0]', l BIGINT PATH '$[1]', "
    "n BIGINT PATH '$[2]', what BIGINT PATH '$[3]')) AS g"
)
_SAME = "t.pol_o_id = g.o AND t.pol_ol_number = g.l AND t.pol_number = g.n"
# STRAIGHT_JOIN: look each row up by its key, never read the table. Assignments are evaluated from
# left to right, so a start comes before an end; the contract suite holds both servers to that.
_UPDATE = (
    "UPDATE {json} STRAIGHT_JOIN {table} AS t ON {same} SET "
    f"t.pol_start_ts = IF(g.what & {STARTED}, COALESCE(t.pol_start_ts, SYSDATE(6)), "
    "t.pol_start_ts), "
    f"t.pol_end_ts = IF(g.what & {ENDED}, COALESCE(t.pol_end_ts, SYSDATE(6)), t.pol_end_ts) "
    f"WHERE (g.what & {STARTED} AND t.pol_start_ts IS NULL) "
    f"OR (g.what & {ENDED} AND t.pol_end_ts IS NULL)"
)
_UNKNOWN = "SELECT count(*) FROM {json} WHERE NOT EXISTS (SELECT 1 FROM {table} AS t WHERE {same})"


class Stamping:
    """The statements for one table, whose quoted name is given."""

    def __init__(self, table: str) -> None:
        self._update = _UPDATE.format(json=_JSON, table=table, same=_SAME)
        self._unknown = _UNKNOWN.format(json=_JSON, table=table, same=_SAME)

    def update(self, connection: Connection, given: Given) -> int:
        """Stamp; returns how many of the rows changed."""
        return connection.exec_driver_sql(self._update, (_text(given.rows),)).rowcount

    def plan(self, connection: Connection, given: Given) -> tuple[str, str]:
        """The statement that stamps, and the server's plan of it; nothing is changed."""
        rows = connection.exec_driver_sql(f"EXPLAIN {self._update}", (_text(given.rows),))
        return self._update, "\n".join(
            ", ".join(f"{name}: {value}" for name, value in row.items() if value is not None)
            for row in rows.mappings()
        )

    def unknown(self, connection: Connection, given: Given) -> int:
        """How many of the lines name no row."""
        return int(connection.exec_driver_sql(self._unknown, (_text(given.keys),)).scalar() or 0)


def _text(columns: Integers) -> str:
    return json.dumps(columns.T.tolist(), separators=(",", ":"))
