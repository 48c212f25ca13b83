"""What a load leaves behind, on real servers."""

import json
import time
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import inspect, select

from espbench.errors import ServiceError
from schema.contract import Database
from schema.dataset import DataSet
from schema.downtimes import utc_without_zone
from schema.load import is_loaded, load
from schema.marker import require_loaded
from schema.tables import ALL_TABLES, BUSINESS_TABLES
from tests.integration.database.given import DURATION_S, START_MS, count, espbench, filled, rows


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


def test_the_server_tells_what_it_is(database: Database) -> None:
    server = database.server()
    product, setting, value = {
        "postgresql": ("PostgreSQL", "fsync", "on"),
        "mariadb": ("MariaDB", "innodb_flush_log_at_trx_commit", "1"),
    }[database.kind]
    assert server.product == product
    assert server.version[0].isdigit()
    assert server.settings[setting] == value


def now(database: Database) -> datetime:
    with database.reading() as connection:
        found = connection.scalar(select(database.now()))
    assert isinstance(found, datetime)
    return found


def test_the_time_is_the_clocks_in_utc_with_microseconds(database: Database) -> None:
    with database.reading() as connection:
        times = [connection.scalar(select(database.now())) for _ in range(20)]
    # The clock, not the transaction's beginning; UTC without a zone.
    assert None not in times
    assert times == sorted(set(times))  # type: ignore[type-var]
    assert {time.tzinfo for time in times if time} == {None}
    assert any(time.microsecond % 1_000 for time in times if time)
    apart = abs(now(database) - utc_without_zone(int(time.time() * 1_000)))
    assert apart < timedelta(seconds=10)


def test_the_command_loads_once_and_then_resets(
    state_dir: Path, database: Database, data: DataSet
) -> None:
    directory = str(data.production_times.path.parent)
    documents = []
    for arguments in (["--data", directory], ["--data", directory], ["--reset"]):
        process = espbench(state_dir, database, *arguments, "--json", "--start-ms", str(START_MS))
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
