"""One connection that stamps production order lines, batch by batch, and survives its loss."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Self

import pyarrow as pa

from espbench.errors import ServiceError
from espbench.logs import LOGGER

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from schema.contract import Database

PATIENCE_S = 60.0
PAUSE_S = 0.2


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

    def persist(self, lines: bytes) -> tuple[int, int]:
        """Stamp, again until it is committed: a lost connection or a conflict is not the end.

        Returns how many lines are of no row, and how often it was tried again.
        """
        give_up = time.monotonic() + PATIENCE_S
        retries = 0
        while True:
            try:
                return self.stamp(lines), retries
            except PassingError as error:
                if time.monotonic() > give_up:
                    raise
                retries += 1
                LOGGER.warning("%s; the batch is done again", error.cause)
                time.sleep(PAUSE_S)

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


class Stamper:
    """A thread that stamps what is added: all that waits, then all that came meanwhile.

    When the block ends everything is stamped and committed. What `stamp` raises is raised by the
    next `add`, or at the block's end. `counts` are the sums of what `stamp` returned.
    """

    def __init__(self, stamp: Callable[[list[pa.Table]], dict[str, int]]) -> None:
        self._stamp = stamp
        self._changed = threading.Condition()
        self._waiting: list[pa.Table] = []
        self._ended = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()
        self._raise()

    def add(self, table: pa.Table) -> None:
        """Have it stamped soon."""
        self._raise()
        with self._changed:
            self._waiting.append(table)
            self._changed.notify()

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _run(self) -> None:
        try:
            while tables := self._next():
                self.counts.update(self._stamp(tables))
        except BaseException as error:  # noqa: BLE001 - raised where somebody listens
            self._failure = error

    def _next(self) -> list[pa.Table]:
        """What waits, as soon as there is anything; nothing at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            tables, self._waiting = self._waiting, []
            return tables
