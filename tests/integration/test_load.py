"""What only PostgreSQL promises: the same pages after a reset as after the load."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import select, text

from datagen.generate import generate
from datagen.manifest import read_manifest
from datagen.parameters import Parameters
from espbench.cli.load import _data_set
from espbench.config import Settings
from espbench.services.endpoints import database_address
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded, load
from schema.registry import open_database
from schema.reset import reset

START_MS, DURATION_S = 1_767_225_600_000, 40.0
SMALL = Parameters(scale=1, seed=5, districts=2, customers=100, items=300, sensor_rows=10)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    directory: Path = tmp_path_factory.mktemp("data")
    generate(SMALL, directory, workers_count=1)
    return _data_set(directory, read_manifest(directory))


@pytest.fixture
def database(services: Settings, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of the test's own in the embedded PostgreSQL."""
    name = f"t{abs(hash(request.node.name)) % 10**12}"
    with open_database(replace(database_address(services), schema_name=name)) as opened:
        yield opened
        with opened.engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {name} CASCADE"))


def rows(database: Database, name: str) -> list[tuple[object, ...]]:
    with database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(database.table(name)))]


def stamp(database: Database, share: float) -> None:
    lines = database.table("production_order_line")
    with database.engine.begin() as connection:
        connection.execute(
            lines.update()
            .where(lines.c.pol_o_id % 100 < share * 100)
            .values(pol_start_ts=database.now(), pol_end_ts=database.now())
        )


def physical(database: Database) -> tuple[object, ...]:
    """Size of heap and index, order of the rows, and how many of its pages are all visible."""
    name = f"{database.address.schema_name}.production_order_line"
    with database.reading() as connection:
        sizes = connection.execute(
            text(
                "SELECT pg_relation_size(oid), pg_indexes_size(oid), relpages, relallvisible, "
                "reltuples FROM pg_class WHERE oid = to_regclass(:name)"
            ),
            {"name": name},
        ).one()
    return (*sizes, tuple(row[:3] for row in rows(database, "production_order_line")))


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_reset_restores_the_same_physical_state(
    database: Database, data: DataSet, share: float
) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)
    before, content = physical(database), rows(database, "production_order_line")
    stamp(database, share)
    assert physical(database) != before
    report = reset(database, START_MS, DURATION_S, data.tables_sha256)
    assert report.stamps_restored
    assert rows(database, "production_order_line") == content
    assert physical(database) == before
    assert not reset(database, START_MS, DURATION_S).stamps_restored
    assert is_loaded(database, data)


def test_updates_that_were_undone_leave_no_space_behind(database: Database, data: DataSet) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)
    before = physical(database)
    lines = database.table("production_order_line")
    with database.engine.connect() as connection:
        connection.execute(lines.update().values(pol_start_ts=database.now()))
        connection.rollback()
    assert reset(database, START_MS, DURATION_S).stamps_restored
    assert physical(database) == before


def test_sessions_are_in_utc(database: Database) -> None:
    with database.reading() as connection:
        assert connection.scalar(text("SHOW TimeZone")) == "UTC"
