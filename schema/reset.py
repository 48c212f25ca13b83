"""Reset between runs: only what a run changes, and the downtimes of the next one."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection, or_, select

from schema.contract import Database
from schema.downtimes import place, utc_without_zone
from schema.marker import Marker, accept, read_marker, update_marker
from schema.tables import ALL_TABLES, PLACED, PLAN, STAMPED


@dataclass(frozen=True, slots=True)
class ResetReport:
    """What a reset did. `stamps_restored` is false where no run had touched the table."""

    start_ms: int
    duration_s: float
    stamps_restored: bool
    seconds: float


def reset(
    database: Database, start_ms: int, duration_s: float, tables_sha256: str | None = None
) -> ResetReport:
    """Prepare the loaded data for a run: no stamps, downtimes placed relative to its start.

    `start_ms` is the announced start of the sender, `duration_s` how long it will send. Raises
    `ServiceError` unless a complete data set (this one, if named) is loaded.
    """
    started = time.perf_counter()
    with database.changing() as connection:
        marker = accept(database, read_marker(database, connection), tables_sha256)
        # A load that was killed after its commit is whole, but never came to rest.
        unsettled = marker.pristine_bytes is None and database.wear(connection) is not None
        touched = _touched(database, connection, marker)
        if touched:
            database.restore_stamps(connection)
        place_downtimes(database, connection, marker, start_ms, duration_s)
    if touched or unsettled:
        settle(database, ALL_TABLES if unsettled else [STAMPED, PLACED])
    else:
        database.settle([PLACED])
    return ResetReport(start_ms, duration_s, touched, time.perf_counter() - started)


def settle(database: Database, names: Iterable[str]) -> None:
    """Bring tables to rest, production_order_line among them, and note its size at rest."""
    database.settle(names)
    with database.changing() as connection:
        update_marker(database, connection, pristine_bytes=database.wear(connection))


def place_downtimes(
    database: Database, connection: Connection, marker: Marker, start_ms: int, duration_s: float
) -> None:
    """Fill the table of workplaces for a run; times that depend on no run stay as they are."""
    start, duration = utc_without_zone(start_ms), timedelta(seconds=duration_s)
    workplace = database.table(PLACED)
    rows = [dict(row) for row in connection.execute(select(database.table(PLAN))).mappings()]
    if marker.nominal_run_s is not None:
        nominal = timedelta(seconds=marker.nominal_run_s)
        for row in rows:
            for column in ("wp_downtime_start", "wp_downtime_end"):
                row[column] = place(row[column], start, duration, nominal)
    connection.execute(workplace.delete())
    connection.execute(workplace.insert(), rows)
    update_marker(
        database,
        connection,
        run_start=start,
        run_duration_us=duration // timedelta(microseconds=1),
    )


def _touched(database: Database, connection: Connection, marker: Marker) -> bool:
    """Whether a run wrote stamps, or left space behind where stamps were undone."""
    size = database.wear(connection)
    if size is not None and marker.pristine_bytes is not None and size != marker.pristine_bytes:
        return True
    lines = database.table(STAMPED)
    stamped = or_(lines.c.pol_start_ts.is_not(None), lines.c.pol_end_ts.is_not(None))
    return bool(connection.scalar(select(select(1).where(stamped).exists())))
