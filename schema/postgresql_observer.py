"""What PostgreSQL tells about itself: sizes, WAL, settings, plans."""

import psycopg
from psycopg import sql
from sqlalchemy import Connection, func, select, text

from schema.contract import Database, Observer, Plan
from schema.given import read_given
from schema.postgresql_stamps import Stamping
from schema.tables import BUSINESS_TABLES, PLACED, STAMPED

# Everything that somebody chose: a file, the command line, the environment, the session.
_SETTINGS = text(
    "SELECT name, current_setting(name) FROM pg_settings "
    "WHERE source NOT IN ('default', 'override') ORDER BY name"
)


class PostgreSQLObserver(Observer):
    """Reads system views; needs no right beyond those of `espbench load`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def settings(self) -> dict[str, str]:
        """`pg_settings` that do not come from the program itself."""
        with self._database.reading() as connection:
            return {str(name): str(value) for name, value in connection.execute(_SETTINGS)}

    def sizes(self) -> dict[str, int]:
        """`pg_total_relation_size`: rows, indexes, TOAST, maps."""
        with self._database.reading() as connection:
            return {
                name: int(
                    connection.scalar(
                        select(func.pg_total_relation_size(self._database.quoted(name)))
                    )
                    or 0
                )
                for name in BUSINESS_TABLES
            }

    def log_bytes(self) -> int:
        """The position in the write-ahead log."""
        with self._database.reading() as connection:
            position = text("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
            return int(connection.scalar(position) or 0)

    def plans(self, lines: bytes) -> list[Plan]:
        """EXPLAIN, without carrying anything out."""
        lookup = str(select(self._database.table(PLACED)).compile(self._database.engine))
        with self._database.reading() as connection:
            found = connection.exec_driver_sql(f"EXPLAIN (VERBOSE) {lookup}").scalars()
            read = Plan("query 4 reads the downtimes", lookup, "\n".join(map(str, found)))
            table = self._database.table(STAMPED)
            names = [table.schema] if table.schema else []
            stamping = Stamping(sql.Identifier(*names, table.name))
            statement, plan = stamping.plan(_raw(connection), read_given([lines]))
        return [read, Plan("query 5 stamps production order lines", statement, plan)]


def _raw(connection: Connection) -> psycopg.Connection[tuple[object, ...]]:
    raw = connection.connection.driver_connection
    if not isinstance(raw, psycopg.Connection):
        raise TypeError("the engine is not one of psycopg's")
    return raw
