"""Loading a data set: bulk load, constraints, checks; completely, or marked as incomplete."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from sqlalchemy import Connection, Constraint
from sqlalchemy.schema import AddConstraint, CreateTable, DropTable

from espbench.errors import InputError, ServiceError, UsageError
from schema.checks import check_foreign_keys, check_tables, row_counts
from schema.contract import Database
from schema.dataset import DataSet, TableFile
from schema.marker import (
    COMPLETE,
    existing_tables,
    existing_views,
    read_marker,
    update_marker,
    write_marker,
)
from schema.production_times import check_production_times
from schema.reset import place_downtimes, settle
from schema.tables import (
    ALL_TABLES,
    BUSINESS_TABLES,
    MARKER,
    PLAN,
    STAMPED,
    without_constraints,
)

_BULK_TABLES = tuple(name for name in BUSINESS_TABLES if name != "workplace")


@dataclass(frozen=True, slots=True)
class TableReport:
    """How one table was loaded, its keys and checks not counted."""

    rows: int
    seconds: float

    @property
    def rows_per_s(self) -> float:
        """Rows per second."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(slots=True)
class LoadReport:
    """What a load did, step by step; seconds. `keys` has those of each table's own keys."""

    tables: dict[str, TableReport] = field(default_factory=dict)
    keys: dict[str, float] = field(default_factory=dict)
    steps: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(table.rows for table in self.tables.values())


def load(
    database: Database,
    data: DataSet,
    *,
    start_ms: int,
    duration_s: float,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda _rows: None,
) -> LoadReport:
    """Fill the tables with this data set, replacing an earlier one.

    Raises `UsageError` where tables of these names exist that no load of ours made, unless
    `overwrite`. Where the database can undo what it did to tables, a failure leaves the old state;
    elsewhere the marker says that the load is incomplete.
    """
    report = LoadReport()
    started = time.perf_counter()
    with (
        ThreadPoolExecutor(2) as beside,
        database.changing() as connection,
    ):
        ours = _recognise(database, connection, overwrite=overwrite)
        if not database.transactional_ddl:
            # What can be known to be wrong is refused while the old state is still there.
            _read_once(data)
        _make_room(database, connection, data, marked=ours)
        _create(database, connection)
        # The server builds keys meanwhile; this reads two files on the client.
        production = data.tables[STAMPED].path
        pairs = beside.submit(check_production_times, production, data.production_times.path)
        written: list[Future[None]] = []
        done = 0
        for name in _BULK_TABLES:
            report.tables[name] = _fill(
                database, connection, name, data.tables[name], progress, done
            )
            done += report.tables[name].rows
            # What another core writes meanwhile need not be waited for at the end.
            written.append(beside.submit(database.bring_to_disk))
        report.tables["workplace"] = _fill(
            database, connection, PLAN, data.tables["workplace"], progress, done
        )
        marker = read_marker(database, connection)
        if marker is None:
            raise ServiceError("the marker table vanished during the load", "load again")
        with _timed(report, "downtimes"):
            place_downtimes(database, connection, marker, start_ms, duration_s)
        if not database.load_is_pristine:
            with _timed(report, "rewrite"):
                database.restore_stamps(connection)
        if not database.checks_new_foreign_keys:
            with _timed(report, "foreign keys"):
                check_foreign_keys(database, connection)
        with _timed(report, "keys"):
            _add_keys(database, connection, report)
        with _timed(report, "checks"):
            check_tables(database, connection, data)
            pairs.result()
            for each in written:
                each.result()
        update_marker(
            database,
            connection,
            state=COMPLETE,
            loaded_at=database.now(),
        )
    with _timed(report, "settle"):
        settle(database, ALL_TABLES)
    report.seconds = time.perf_counter() - started
    return report


def is_loaded(database: Database, data: DataSet) -> bool:
    """Whether exactly this data set is loaded completely, with all its rows still there."""
    with database.reading() as connection:
        taken = existing_tables(database, connection)
        if taken != set(ALL_TABLES):
            return False
        try:
            marker = read_marker(database, connection)
        except UsageError:
            return False
        if marker is None or not marker.complete or marker.tables_sha256 != data.tables_sha256:
            return False
        counts = row_counts(database, connection)
        return all(counts[name] == data.tables[name].rows for name in BUSINESS_TABLES)


def _recognise(database: Database, connection: Connection, *, overwrite: bool) -> bool:
    """Whether an earlier load's marker is there; raises where something else is in the way."""
    taken = existing_tables(database, connection)
    try:
        ours = MARKER in taken and read_marker(database, connection) is not None
    except UsageError:
        if not overwrite:
            raise
        ours = False
    if taken and not ours and not overwrite:
        shown = ", ".join(sorted(taken))
        raise UsageError(
            f"the schema {database.address.schema_name} of {database.address} holds tables "
            f"that espbench did not make: {shown}",
            "choose another schema (database.schema_name), or drop them with --overwrite",
        )
    if views := existing_views(database, connection):
        raise UsageError(
            f"{', '.join(sorted(views))} in the schema {database.address.schema_name} of "
            f"{database.address} are views, and only tables are dropped",
            "choose another schema (database.schema_name), or drop the views yourself",
        )
    if taken and (dependents := database.dependents(connection, taken)):
        raise ServiceError(
            f"{', '.join(dependents)} of {database.address} depend on the tables",
            "drop what depends on the tables yourself",
        )
    return ours


def _read_once(data: DataSet) -> None:
    """Check the sum of every file of a table."""
    for file in data.tables.values():
        for _block in file.blocks():
            pass


def _make_room(database: Database, connection: Connection, data: DataSet, *, marked: bool) -> None:
    """Drop what an earlier load made, or what --overwrite gave up; never anything else.

    The marker comes first and stays: where tables cannot be brought back, it says from here on
    that they are not whole.
    """
    taken = existing_tables(database, connection)
    database.ensure_schema(connection)
    if not marked:
        if MARKER in taken:
            connection.execute(DropTable(database.table(MARKER)))
        connection.execute(CreateTable(database.table(MARKER)))
    write_marker(database, connection, data)
    for name in reversed(ALL_TABLES):
        if name in taken and name != MARKER:
            connection.execute(DropTable(database.table(name)))


def _create(database: Database, connection: Connection) -> None:
    for name in (*BUSINESS_TABLES, PLAN):
        full = database.table(name)
        bare = without_constraints(full, primary_key=database.keys_before_load)
        connection.execute(CreateTable(bare))


def _fill(
    database: Database,
    connection: Connection,
    name: str,
    file: TableFile,
    progress: Callable[[int], object],
    done: int,
) -> TableReport:
    started = time.perf_counter()
    size = max(file.path.stat().st_size, 1)

    def counted() -> Iterator[bytes]:
        passed = 0
        for block in file.blocks():
            yield block
            passed += len(block)
            progress(done + file.rows * passed // size)

    rows = database.bulk_load(connection, database.table(name), counted())
    if rows != file.rows:
        raise InputError(
            f"{file.path} gave {rows:,} rows, its manifest says {file.rows:,}",
            "make the data again: espbench datagen --force",
        )
    return TableReport(rows, time.perf_counter() - started)


def _add_keys(database: Database, connection: Connection, report: LoadReport) -> None:
    """Primary keys (unless they are there), then foreign keys: each built once, over all rows."""
    tables = [database.table(name) for name in (*BUSINESS_TABLES, PLAN)]
    keys: list[tuple[str, Constraint]] = []
    if not database.keys_before_load:
        keys += [(target.name, target.primary_key) for target in tables]
    for target in tables:
        foreign = sorted(target.foreign_key_constraints, key=lambda key: str(key.name))
        keys += [(target.name, key) for key in foreign]
    for name, key in keys:
        started = time.perf_counter()
        connection.execute(AddConstraint(key))
        report.keys[name] = report.keys.get(name, 0.0) + time.perf_counter() - started


@contextmanager
def _timed(report: LoadReport, step: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    report.steps[step] = time.perf_counter() - started
