"""One connection that stamps production order lines, batch by batch, and survives its loss."""

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from espbench.errors import ServiceError

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from schema.contract import Database


class PassingError(ServiceError):
    """A lost connection, a deadlock, a serialization failure: worth another try."""


class StampingSession:
    """Stamps in transactions of its own; a connection is made when it is needed.

    `update_s` and `commit_s` are what the last call took, without the making of a connection.
    """

    def __init__(self, database: "Database") -> None:
        self._database = database
        self._connection: Connection | None = None
        self._by_line = database.address.writes == "single"
        self.update_s = self.commit_s = 0.0

    def stamp(self, lines: bytes) -> int:
        """Stamp and commit, all or nothing; how many lines are of no row.

        With single writes every line is a transaction of its own. Raises `PassingError` where it
        is worth another try, which changes nothing twice.
        """
        self.update_s = self.commit_s = 0.0
        try:
            if self._connection is None:
                self._connection = self._database.engine.connect()
            parts = lines.splitlines(keepends=True) if self._by_line else [lines]
            return sum(self._write(self._connection, part) for part in parts)
        except Exception as error:
            self._give_up_connection()
            if isinstance(error, self._passing()):
                explained = self._database.explain(error)
                raise PassingError(explained.cause, explained.remedy) from error
            with self._database.errors():
                raise

    def _write(self, connection: "Connection", lines: bytes) -> int:
        begun = time.perf_counter()
        stamped = self._database.bulk_update(connection, [lines])
        updated = time.perf_counter()
        connection.commit()
        self.update_s += updated - begun
        self.commit_s += time.perf_counter() - updated
        return stamped.unknown

    def close(self) -> None:
        """End the connection."""
        self._give_up_connection()

    def _passing(self) -> tuple[type[Exception], ...]:
        from sqlalchemy import exc  # noqa: PLC0415 - an extra

        driver = self._database.engine.dialect.dbapi
        own = (driver.OperationalError, driver.InterfaceError) if driver else ()
        return (exc.OperationalError, exc.InterfaceError, *own)

    def _give_up_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # it is lost already, or ends here
                connection.invalidate()
                connection.close()
