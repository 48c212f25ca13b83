"""What the tests of the databases share: small data, and looks into the tables."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import TextClause, func, select, text

from datagen.generate import generate
from datagen.parameters import Parameters
from espbench.datasets import data_set_in
from espbench.errors import ServiceError
from espbench.services.endpoints import DatabaseAddress
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded, load
from schema.marker import LOADING, read_marker, require_loaded
from schema.reset import reset

KINDS = ("postgresql", "mariadb")
START_MS, DURATION_S = 1_767_225_600_000, 40.0
SMALL = Parameters(scale=1, seed=5, districts=2, customers=100, items=300, sensor_rows=10)
# What the contract does not say because no part of the benchmark needs it.
SLEEP = {"postgresql": "SELECT pg_sleep(300)", "mariadb": "SELECT sleep(300)"}
RUNNING = {
    "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE ",
    "mariadb": "SELECT count(*) FROM information_schema.processlist WHERE info LIKE ",
}
BULK = {"postgresql": "COPY", "mariadb": "LOAD DATA"}
OTHER = "another-one"
NOT_USABLE = r"no data is loaded|was cut short"
CASCADE = {"postgresql": "CASCADE", "mariadb": ""}


def make(directory: Path, parameters: Parameters) -> DataSet:
    generate(parameters, directory, workers_count=1)
    return data_set_in(directory)


def marker_state(database: Database) -> str | None:
    with database.reading() as connection:
        marker = read_marker(database, connection)
    return marker.state if marker else None


def running(database: Database, beginning: str) -> int:
    """How many statements that begin like this run now, not counting this question."""
    question = text(f"{RUNNING[database.kind]} '{beginning}%'")
    with database.reading() as connection:
        return int(connection.scalar(question) or 0)


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


def espbench(
    state_dir: Path, database: Database, *arguments: str, db: str | None = None, **variables: str
) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "ESPBENCH_STATE_DIR": str(state_dir),
        "ESPBENCH_DATABASE__SCHEMA_NAME": database.address.schema_name,
        **variables,
    }
    return subprocess.Popen(
        [sys.executable, "-m", "espbench", "load", "--db", db or database.kind, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def url_of(address: DatabaseAddress, *, user: str | None = None, name: str | None = None) -> str:
    place = f"{address.host}:{address.port}/{name or address.database}"
    return f"{address.kind}://{user or address.user}@{place}"


class Stop(Exception):
    """What an interrupted load raises here."""


def assert_old_state_or_marked(database: Database, old: DataSet | None) -> None:
    if database.transactional_ddl and old:
        assert is_loaded(database, old)
        return
    assert marker_state(database) == (None if database.transactional_ddl else LOADING)
    with pytest.raises(ServiceError, match=NOT_USABLE):
        require_loaded(database)
    with pytest.raises(ServiceError, match=NOT_USABLE):
        reset(database, START_MS, DURATION_S)


def bulk(database: Database, lines: list[bytes]) -> tuple[int, int]:
    with database.engine.begin() as connection:
        stamped = database.bulk_update(connection, [b"".join(lines)])
    return stamped.inputs, stamped.unknown


def stamps(database: Database) -> dict[tuple[object, ...], tuple[Any, Any]]:
    lines = rows(database, "production_order_line")
    return {line[:3]: (line[6], line[7]) for line in lines}


def times_of(data: DataSet) -> list[bytes]:
    return data.production_times.path.read_bytes().splitlines(keepends=True)


def key_of(line: bytes) -> tuple[object, ...]:
    return tuple(int(field) for field in line.split(b"\t")[:3])


def stamp(database: Database, share: float) -> None:
    lines = database.table("production_order_line")
    with database.engine.begin() as connection:
        connection.execute(
            lines.update()
            .where(lines.c.pol_o_id % 100 < share * 100)
            .values(pol_start_ts=database.now(), pol_end_ts=database.now())
        )


AUTHORITY = {"postgresql": "sslrootcert", "mariadb": "ssl-ca"}
