"""The marker: a table of one row that says which data set is loaded, and whether completely.

Tables without it are not ours: `load` refuses them. A marker that does not say "complete" is a load
that was cut short: no run accepts it.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, inspect, select

from espbench.errors import ServiceError, UsageError
from schema.contract import Database
from schema.dataset import DataSet
from schema.tables import ALL_TABLES, MARKER

FORMAT = "espbench-load/1"
LOADING, COMPLETE = "loading", "complete"


@dataclass(frozen=True, slots=True)
class Marker:
    """What the marker says; times are UTC without a zone."""

    state: str
    tables_sha256: str
    scale: int
    seed: int
    downtimes: str
    nominal_run_s: int | None
    loaded_at: datetime | None
    pristine_bytes: int | None
    run_start: datetime | None
    run_duration_us: int | None

    @property
    def complete(self) -> bool:
        """Whether everything was loaded and checked."""
        return self.state == COMPLETE


def existing_tables(database: Database, connection: Connection) -> set[str]:
    """Which of our names are taken in the schema, be it by a table or by a view."""
    schema = database.address.schema_name
    inspector = inspect(connection)
    if schema not in inspector.get_schema_names():
        return set()
    tables = set(inspector.get_table_names(schema)) & set(ALL_TABLES)
    return tables | existing_views(database, connection)


def existing_views(database: Database, connection: Connection) -> set[str]:
    """Which of our names are taken by views of the schema."""
    schema = database.address.schema_name
    inspector = inspect(connection)
    if schema not in inspector.get_schema_names():
        return set()
    views = set(inspector.get_view_names(schema))
    # Not every database has such views.
    with suppress(NotImplementedError):
        views.update(inspector.get_materialized_view_names(schema))
    return views & set(ALL_TABLES)


def read_marker(database: Database, connection: Connection) -> Marker | None:
    """The marker, or None where there is none; raises where the table is not ours."""
    marker = database.table(MARKER)
    inspector = inspect(connection)
    if not inspector.has_table(MARKER, schema=marker.schema):
        return None
    found = {column["name"] for column in inspector.get_columns(MARKER, schema=marker.schema)}
    rows = None
    if found == set(marker.columns.keys()):
        rows = connection.execute(select(marker)).mappings().all()
        if not rows:
            # Cut short between making the table and writing its row.
            return Marker(LOADING, "", 0, 0, "", None, None, None, None, None)
    if rows is None or len(rows) != 1 or rows[0]["format"] != FORMAT:
        raise UsageError(
            f"the table {marker} of {database.address} is not a marker of this version",
            "choose another schema (database.schema_name), or write over it with --overwrite",
        )
    values: dict[str, Any] = dict(rows[0])
    return Marker(**{name: values[name] for name in Marker.__slots__})


def require_loaded(database: Database, tables_sha256: str | None = None) -> Marker:
    """The marker of a complete load; raises `ServiceError` where a run must not begin."""
    with database.reading() as connection:
        marker = read_marker(database, connection)
    return accept(database, marker, tables_sha256)


def accept(database: Database, marker: Marker | None, tables_sha256: str | None = None) -> Marker:
    """The marker if it says that a complete (and this) data set is loaded."""
    if marker is None:
        raise ServiceError(f"no data is loaded into {database.address}", "run `espbench load`")
    if not marker.complete:
        raise ServiceError(
            f"the load into {database.address} was cut short", "run `espbench load` again"
        )
    if tables_sha256 is not None and marker.tables_sha256 != tables_sha256:
        raise ServiceError(
            f"{database.address} holds another data set (scale {marker.scale}, seed {marker.seed})",
            "run `espbench load`",
        )
    return marker


def write_marker(database: Database, connection: Connection, data: DataSet) -> None:
    """Say that this data set is being loaded, whatever was said before."""
    marker = database.table(MARKER)
    connection.execute(marker.delete())
    connection.execute(
        marker.insert().values(
            id=1,
            format=FORMAT,
            state=LOADING,
            tables_sha256=data.tables_sha256,
            scale=data.scale,
            seed=data.seed,
            downtimes=data.downtimes,
            nominal_run_s=data.nominal_run_s,
        )
    )


def update_marker(database: Database, connection: Connection, **values: Any) -> None:
    """Change columns of the marker."""
    connection.execute(database.table(MARKER).update().values(**values))
