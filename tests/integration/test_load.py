"""What only PostgreSQL promises: the same pages after a reset as after the load."""

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Text, cast, func, literal_column, select, text

from datagen.generate import generate
from datagen.parameters import Parameters
from espbench.config import Settings
from espbench.datasets import data_set_in
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
    return data_set_in(directory)


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
    """Size of heap and index, how many pages are all visible, and which page holds which rows."""
    name = f"{database.address.schema_name}.production_order_line"
    with database.reading() as connection:
        sizes = connection.execute(
            text(
                "SELECT pg_relation_size(oid), pg_indexes_size(oid), relpages, relallvisible, "
                "reltuples FROM pg_class WHERE oid = to_regclass(:name)"
            ),
            {"name": name},
        ).one()
        lines = database.table("production_order_line")
        page = func.split_part(cast(literal_column("ctid"), Text), ",", 1)
        key = lines.primary_key.columns
        pages = connection.execute(select(page, *key).order_by(*key)).all()
    return (*sizes, tuple(map(tuple, pages)))


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_reset_restores_the_same_physical_state(
    database: Database, data: DataSet, share: float
) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)
    before, content = physical(database), rows(database, "production_order_line")
    stamp(database, share)
    report = reset(database, START_MS, DURATION_S, data.tables_sha256)
    assert report.stamps_restored
    assert sorted(rows(database, "production_order_line")) == content
    assert physical(database) == before
    assert not reset(database, START_MS, DURATION_S).stamps_restored
    assert is_loaded(database, data)


def wear(database: Database) -> int | None:
    with database.reading() as connection:
        return database.wear(connection)


def test_rows_that_left_their_pages_lie_in_the_order_of_their_keys_again(
    database: Database, data: DataSet
) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)
    before, content = physical(database), rows(database, "production_order_line")
    for _ in range(3):
        # Versions that an open snapshot may still want cannot make room for others.
        with database.engine.connect() as holding:
            holding.execution_options(isolation_level="REPEATABLE READ")
            holding.scalar(text("SELECT count(*) FROM pg_class"))
            stamp(database, 1.0)
            stamp(database, 0.5)
            stamp(database, 1.0)
    reset(database, START_MS, DURATION_S)
    # CLUSTER fills pages by a rule that differs from COPY's by a few bytes a page.
    assert physical(database)[0] <= before[0]  # type: ignore[operator]
    assert rows(database, "production_order_line") == content


def test_updates_that_were_undone_leave_no_space_behind(database: Database, data: DataSet) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)
    before, rested = physical(database), wear(database)
    lines = database.table("production_order_line")
    with database.engine.connect() as connection:
        connection.execute(lines.update().values(pol_start_ts=database.now()))
        connection.rollback()
    # The server counts changes of a session when it ends, which nobody waits for.
    deadline = time.monotonic() + 30
    while wear(database) == rested:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert reset(database, START_MS, DURATION_S).stamps_restored
    assert physical(database) == before


def test_sessions_are_in_utc(database: Database) -> None:
    with database.reading() as connection:
        assert connection.scalar(text("SHOW TimeZone")) == "UTC"
