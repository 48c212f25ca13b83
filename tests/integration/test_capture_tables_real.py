"""Tables of a real database in a capture."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sqlalchemy import insert, text, update
from sqlalchemy.schema import CreateSchema, DropSchema

from espbench.config import Settings
from espbench.services.endpoints import database_address
from schema.contract import Database
from schema.registry import open_database
from validator.capture.tables import capture_table
from validator.tables import read_table

SCHEMA = "capture_test"


@pytest.fixture
def database(services: Settings) -> Iterator[Database]:
    """A database with two of the tables, without what they refer to."""
    address = replace(database_address(services), schema_name=SCHEMA)
    with open_database(address) as found:
        with found.engine.begin() as connection:
            connection.execute(CreateSchema(SCHEMA))
            for name in ("workplace", "production_order_line"):
                table = found.table(name)
                columns = ", ".join(
                    f"{column.name} {column.type.compile(found.engine.dialect)}"
                    for column in table.columns
                )
                connection.execute(text(f"CREATE TABLE {SCHEMA}.{name} ({columns})"))
        try:
            yield found
        finally:
            with found.engine.begin() as connection:
                connection.execute(DropSchema(SCHEMA, cascade=True))


def test_workplaces(database: Database, tmp_path: Path) -> None:
    start = datetime(2026, 1, 1, 12, 0, 0, 123456)  # noqa: DTZ001 - UTC without zone, as stored
    row = {
        "wp_id": 1,
        "wp_dt_id": 0,
        "wp_downtime_start": start,
        "wp_downtime_end": start + timedelta(seconds=5),
    }
    with database.engine.begin() as connection:
        connection.execute(insert(database.table("workplace")), [row, row | {"wp_id": 2}])
    captured = capture_table(database, "workplace", tmp_path)
    assert (captured.rows, captured.columns) == (2, list(row))
    assert pq.read_table(tmp_path / captured.file).to_pylist()[0] == row
    table = read_table("workplace", tmp_path / captured.file)
    assert table.evidence.complete
    assert table.rows is not None
    epoch_us = round(start.replace(tzinfo=UTC).timestamp() * 1e6)
    assert table.rows["wp_downtime_start"].to_pylist() == [epoch_us, epoch_us]


def test_production_order_lines_with_commit_times(database: Database, tmp_path: Path) -> None:
    lines = database.table("production_order_line")
    base = {
        "pol_o_id": 1,
        "pol_number": 1,
        "pol_i_id": 1,
        "pol_quantity": 1,
        "pol_wp_id": 1,
        "pol_start_ts": None,
        "pol_end_ts": None,
    }
    with database.engine.begin() as connection:
        connection.execute(insert(lines), [base | {"pol_ol_number": n} for n in (1, 2, 3)])
    for number, column in ((1, "pol_start_ts"), (2, "pol_start_ts"), (2, "pol_end_ts")):
        with database.engine.begin() as connection:
            connection.execute(
                update(lines)
                .where(lines.c.pol_ol_number == number)
                .values({column: database.now()})
            )
    captured = capture_table(database, "production_order_line", tmp_path)
    assert captured.columns[-2:] == ["start_commit_ts", "end_commit_ts"]
    found = {
        row["pol_ol_number"]: row for row in pq.read_table(tmp_path / captured.file).to_pylist()
    }
    assert found[1]["start_commit_ts"] >= found[1]["pol_start_ts"]
    assert found[1]["end_commit_ts"] is None
    assert found[2]["end_commit_ts"] >= found[2]["pol_end_ts"]
    assert found[2]["start_commit_ts"] is None
    assert found[3]["pol_start_ts"] is found[3]["start_commit_ts"] is None
    assert read_table("production_order_line", tmp_path / captured.file).evidence.complete
