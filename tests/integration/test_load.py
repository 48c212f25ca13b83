"""Loading, refusing and resetting on a real PostgreSQL."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import TextClause, func, inspect, select, text
from sqlalchemy.schema import CreateSchema

from datagen.generate import generate
from datagen.manifest import read_manifest
from datagen.parameters import Parameters
from espbench.cli.load import _data_set
from espbench.config import Settings
from espbench.errors import InputError, Interrupted, ServiceError, UsageError
from espbench.services.endpoints import database_address
from schema.contract import Database
from schema.dataset import DataSet
from schema.downtimes import utc_without_zone
from schema.load import is_loaded, load
from schema.marker import require_loaded
from schema.registry import open_database
from schema.reset import reset
from schema.tables import ALL_TABLES, BUSINESS_TABLES

START_MS, DURATION_S = 1_767_225_600_000, 40.0
SMALL = Parameters(scale=1, seed=5, districts=2, customers=100, items=300, sensor_rows=10)


def make(directory: Path, parameters: Parameters) -> DataSet:
    generate(parameters, directory, workers_count=1)
    return _data_set(directory, read_manifest(directory))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("data"), SMALL)


@pytest.fixture(scope="module")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("other"), SMALL.model_copy(update={"seed": 6}))


@pytest.fixture
def database(services: Settings, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of the test's own in the embedded PostgreSQL."""
    name = f"t{abs(hash(request.node.name)) % 10**12}"
    with open_database(replace(database_address(services), schema_name=name)) as opened:
        yield opened
        with opened.engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {name} CASCADE"))


def in_schema(database: Database, statement: str) -> TextClause:
    return text(statement.replace("SCHEMA.", f"{database.address.schema_name}."))


def filled(database: Database, data: DataSet) -> None:
    load(database, data, start_ms=START_MS, duration_s=DURATION_S)


def count(database: Database, name: str) -> int:
    with database.reading() as connection:
        found = connection.scalar(select(func.count()).select_from(database.table(name)))
    return int(found or 0)


def rows(database: Database, name: str) -> list[tuple[object, ...]]:
    with database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(database.table(name)))]


def test_a_load_fills_every_table_and_marks_it(database: Database, data: DataSet) -> None:
    seen: list[int] = []
    report = load(database, data, start_ms=START_MS, duration_s=DURATION_S, progress=seen.append)
    assert set(report.tables) == set(BUSINESS_TABLES)
    for name in BUSINESS_TABLES:
        assert count(database, name) == report.tables[name].rows == data.tables[name].rows
        assert report.tables[name].rows_per_s > 0
    assert seen == sorted(seen)
    assert seen[-1] == report.rows
    marker = require_loaded(database, data.tables_sha256)
    assert marker.complete
    assert (marker.scale, marker.seed, marker.downtimes) == (1, 5, "run")
    assert marker.run_start == utc_without_zone(START_MS)
    assert is_loaded(database, data)


def test_values_arrive_as_the_files_have_them(database: Database, data: DataSet) -> None:
    filled(database, data)
    for name in ("orders", "order_line", "production_order_line", "customer", "item"):
        expected = [
            [None if field == r"\N" else field for field in line.split("\t")]
            for line in data.tables[name].path.read_text(encoding="utf-8").splitlines()
        ]
        found = [
            [None if value is None else spelled(value) for value in row]
            for row in rows(database, name)
        ]
        assert found == expected


def spelled(value: object) -> str:
    return value.isoformat(" ", "microseconds") if hasattr(value, "isoformat") else str(value)


def test_keys_and_foreign_keys_are_made(database: Database, data: DataSet) -> None:
    filled(database, data)
    with database.reading() as connection:
        inspector = inspect(connection)
        schema = database.address.schema_name
        for name in ALL_TABLES:
            wanted = database.table(name)
            key = inspector.get_pk_constraint(name, schema)["constrained_columns"]
            assert key == wanted.primary_key.columns.keys()
            found = {
                (tuple(each["constrained_columns"]), each["referred_table"])
                for each in inspector.get_foreign_keys(name, schema)
            }
            assert found == {
                (tuple(each.column_keys), each.referred_table.name)
                for each in wanted.foreign_key_constraints
            }


def test_another_data_set_replaces_the_first(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    filled(database, data)
    assert not is_loaded(database, other_data)
    filled(database, other_data)
    assert is_loaded(database, other_data)
    assert not is_loaded(database, data)
    with pytest.raises(ServiceError, match="another data set"):
        require_loaded(database, data.tables_sha256)


def test_tables_of_others_are_refused_and_kept(database: Database, data: DataSet) -> None:
    schema = database.address.schema_name
    with database.engine.begin() as connection:
        connection.execute(CreateSchema(schema))
        connection.execute(in_schema(database, "CREATE TABLE SCHEMA.orders (mine text)"))
        connection.execute(in_schema(database, "CREATE TABLE SCHEMA.precious (mine text)"))
        connection.execute(in_schema(database, "INSERT INTO SCHEMA.orders VALUES ('money')"))
    with pytest.raises(UsageError, match="did not make: orders"):
        filled(database, data)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT mine FROM SCHEMA.orders")) == "money"
    load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    assert is_loaded(database, data)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT count(*) FROM SCHEMA.precious")) == 0


def test_a_foreign_table_with_the_markers_name_is_refused(
    database: Database, data: DataSet
) -> None:
    schema = database.address.schema_name
    with database.engine.begin() as connection:
        connection.execute(CreateSchema(schema))
        connection.execute(in_schema(database, "CREATE TABLE SCHEMA.espbench_load (id int)"))
    with pytest.raises(UsageError, match="not a marker"):
        filled(database, data)
    with pytest.raises(UsageError, match="not a marker"):
        require_loaded(database)
    load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    assert is_loaded(database, data)


def test_nothing_that_depends_on_a_table_is_dropped(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    filled(database, data)
    with database.engine.begin() as connection:
        connection.execute(
            in_schema(database, "CREATE VIEW SCHEMA.v AS SELECT i_id FROM SCHEMA.item")
        )
    with pytest.raises(ServiceError, match="depend"):
        filled(database, other_data)
    assert is_loaded(database, data)


class Stop(Exception):
    """What an interrupted load raises here."""


@pytest.mark.parametrize("before", [False, True])
def test_an_interrupted_load_leaves_the_old_state(
    database: Database, data: DataSet, other_data: DataSet, before: bool
) -> None:
    if before:
        filled(database, data)

    def stop(done: int) -> None:
        if done > 1_000:
            raise Stop

    with pytest.raises(Stop):
        load(database, other_data, start_ms=START_MS, duration_s=DURATION_S, progress=stop)
    assert is_loaded(database, data) == before
    if not before:
        with pytest.raises(ServiceError, match="no data is loaded"):
            require_loaded(database)


Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("table", "damage", "error", "match"),
    [
        ("item", lambda data: data.replace(b"1\t", b"2\t", 1), InputError, "damaged"),
        ("orders", lambda data: data + b"broken\n", InputError, "damaged"),
        ("workplace", lambda data: data.replace(b"\t", b" "), InputError, "damaged"),
        ("customer", lambda _data: b"", InputError, "damaged"),
    ],
)
def test_a_damaged_file_is_refused(
    database: Database,
    data: DataSet,
    tmp_path: Path,
    table: str,
    damage: Change,
    error: type[Exception],
    match: str,
) -> None:
    filled(database, data)
    original = data.tables[table]
    path = tmp_path / "damaged.csv"
    path.write_bytes(damage(original.path.read_bytes()))
    broken = replace(data, tables={**data.tables, table: replace(original, path=path)})
    with pytest.raises(error, match=match):
        filled(database, broken)
    assert is_loaded(database, data)


def column(number: int, value: bytes) -> Change:
    """Set one column of the first row."""

    def change(content: bytes) -> bytes:
        first, _, rest = content.partition(b"\n")
        fields = first.split(b"\t")
        fields[number - 1] = value
        return b"\t".join(fields) + b"\n" + rest

    return change


@pytest.mark.parametrize(
    ("table", "change", "match"),
    [
        ("orders", column(5, b"4"), "TPC-C 4 and 6"),
        ("orders", column(4, rb"\N"), "TPC-C 7"),
        ("order_line", column(5, rb"\N"), "TPC-C 7"),
        ("order_line", column(7, b"1.00"), "TPC-C 12"),
        ("customer", column(15, b"-9.00"), "TPC-C 10 and 12"),
        ("production_order_line", column(6, b"99"), "a workplace that exists"),
        ("order_line", column(3, b"999999"), "fk_order_line_item"),
        ("orders", column(2, b"7"), "fk_orders_customer"),
        ("item", column(1, b"2"), "pk_item"),
    ],
)
def test_data_that_breaks_a_rule_is_refused(
    database: Database, data: DataSet, tmp_path: Path, table: str, change: Change, match: str
) -> None:
    content = change(data.tables[table].path.read_bytes())
    path = tmp_path / "altered.csv"
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    altered = replace(data.tables[table], path=path, sha256=sha256)
    with pytest.raises(ServiceError, match=match):
        filled(database, replace(data, tables={**data.tables, table: altered}))
    with pytest.raises(ServiceError, match="no data is loaded"):
        require_loaded(database)


def test_production_times_of_other_data_are_refused(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    with pytest.raises(InputError, match="exactly a start and an end"):
        filled(database, replace(data, production_times=other_data.production_times))


def test_two_at_once_do_not_mix(database: Database, data: DataSet) -> None:
    with database.changing(), pytest.raises(ServiceError, match="another load or reset"):
        filled(database, data)
    filled(database, data)


def test_an_interruption_ends_a_running_statement(database: Database) -> None:
    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise Interrupted("stopped")

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        with database.changing() as connection:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            connection.execute(text("SELECT pg_sleep(300)"))
    except Interrupted:
        pass
    else:
        pytest.fail("the statement was not interrupted")
    finally:
        signal.signal(signal.SIGALRM, previous)
    deadline = time.monotonic() + 30
    sleeping = text("SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%'")
    with database.reading() as connection:
        while connection.scalar(sleeping):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    with database.changing():
        pass


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
    filled(database, data)
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
    filled(database, data)
    before = physical(database)
    lines = database.table("production_order_line")
    with database.engine.connect() as connection:
        connection.execute(lines.update().values(pol_start_ts=database.now()))
        connection.rollback()
    assert reset(database, START_MS, DURATION_S).stamps_restored
    assert physical(database) == before


def test_a_reset_places_the_downtimes_of_the_run(database: Database, data: DataSet) -> None:
    filled(database, data)
    later_ms, duration_s = START_MS + 86_400_000, 300.0
    reset(database, later_ms, duration_s)
    start = utc_without_zone(later_ms)
    end = start + timedelta(seconds=duration_s)
    placed = rows(database, "workplace")
    assert len(placed) == data.tables["workplace"].rows
    for machine in (1, 2):
        mine = [(row[2], row[3]) for row in placed if row[0] == machine]
        assert all(start < begun < ended < end for begun, ended in mine)  # type: ignore[operator]
        down = sum((ended - begun for begun, ended in mine), timedelta(0))  # type: ignore[operator]
        assert 0.3 <= down / timedelta(seconds=duration_s) <= 0.6
    others = [row for row in placed if row[0] not in {1, 2}]
    throughout = [row for row in others if row[2] < start and row[3] > end]  # type: ignore[operator]
    past = [row for row in others if row[3] < start]  # type: ignore[operator]
    assert len(throughout) == 4
    assert len(past) == 5
    assert require_loaded(database).run_start == start


def test_fixed_downtimes_stay_as_they_are(database: Database, tmp_path: Path) -> None:
    fixed = make(tmp_path, SMALL.model_copy(update={"downtimes": "2021"}))
    filled(database, fixed)
    before = rows(database, "workplace")
    reset(database, START_MS + 1_000_000, 99.0)
    assert rows(database, "workplace") == before


def test_a_reset_needs_a_complete_load(database: Database) -> None:
    with pytest.raises(ServiceError, match="no data is loaded"):
        reset(database, START_MS, DURATION_S)


def test_the_server_tells_what_it_is(database: Database) -> None:
    server = database.server()
    assert server.product == "PostgreSQL"
    assert server.settings["fsync"] == "on"
    with database.reading() as connection:
        first, second = (connection.scalar(select(database.now())) for _ in range(2))
        assert first is not None
        assert second is not None
        # The clock, not the transaction's beginning; UTC without a zone.
        assert first < second
        assert first.tzinfo is None
        assert connection.scalar(text("SHOW TimeZone")) == "UTC"


def espbench(settings: Settings, schema: str, *arguments: str) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "ESPBENCH_STATE_DIR": str(settings.state_dir),
        "ESPBENCH_DATABASE__SCHEMA_NAME": schema,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "espbench", "load", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_the_command_loads_once_and_then_resets(
    services: Settings, database: Database, data: DataSet
) -> None:
    schema = database.address.schema_name
    directory = str(data.production_times.path.parent)
    documents = []
    for arguments in (["--data", directory], ["--data", directory], ["--reset"]):
        process = espbench(services, schema, *arguments, "--json", "--start-ms", str(START_MS))
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        documents.append(json.loads(out))
    first, second, third = documents
    assert first["loaded"]
    assert {row["table"] for row in first["tables"]} == set(BUSINESS_TABLES)
    assert all(row["rows_per_s"] > 0 for row in first["tables"])
    assert not second["loaded"]
    assert second["reused"]
    assert not third["stamps_restored"]
    assert third["start_ms"] == START_MS


def test_a_terminated_command_leaves_no_half_filled_database(
    services: Settings, database: Database, data: DataSet, tmp_path: Path
) -> None:
    filled(database, data)
    big = tmp_path / "big"
    generate(Parameters(scale=1, seed=9, sensor_rows=1), big, workers_count=1)
    process = espbench(services, database.address.schema_name, "--data", str(big))
    busy = text(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND state = 'active'"
    )
    deadline = time.monotonic() + 60
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        while not connection.scalar(busy):
            assert time.monotonic() < deadline
            assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    _out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert err.strip().count("\n") == 0
    assert is_loaded(database, data)
