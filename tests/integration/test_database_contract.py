"""The contract of a database, on real servers: one suite for all of them."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from sqlalchemy import TextClause, func, inspect, select, text
from sqlalchemy.schema import CreateSchema

from datagen.generate import generate
from datagen.parameters import Parameters
from espbench import services as embedded
from espbench.config import load_settings
from espbench.datasets import data_set_in
from espbench.errors import InputError, Interrupted, ServiceError, UsageError
from espbench.services import unprivileged
from espbench.services.endpoints import DatabaseAddress, database_address
from schema.contract import Database
from schema.dataset import DataSet
from schema.downtimes import utc_without_zone
from schema.load import is_loaded, load
from schema.marker import LOADING, read_marker, require_loaded
from schema.registry import open_database
from schema.reset import reset
from schema.tables import ALL_TABLES, BUSINESS_TABLES, MARKER
from schema.testkit import Authority, tls_before_postgresql

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


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("data"), SMALL)


@pytest.fixture(scope="module")
def other_data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("other"), SMALL.model_copy(update={"seed": 6}))


@pytest.fixture(scope="module")
def big_data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return make(tmp_path_factory.mktemp("big"), Parameters(scale=1, seed=9, sensor_rows=1))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A server's certificate and key, its authority's, and the one of another authority."""
    directory = tmp_path_factory.mktemp("certificates")
    authority = Authority("authority")
    authority.write(directory / "ca.pem")
    authority.issue(directory / "server.pem", directory / "server.key")
    Authority("another authority").write(directory / "other-ca.pem")
    if unprivileged.is_root():
        for path in (directory, *directory.iterdir()):
            os.chown(path, *unprivileged.owner())
    return directory


@pytest.fixture(scope="module", params=KINDS)
def server(
    state_dir: Path, certificates: Path, request: pytest.FixtureRequest
) -> Iterator[Database]:
    """A running embedded server, stopped at the end if it did not run before."""
    pair = (str(certificates / "server.pem"), str(certificates / "server.key"))
    tls: dict[str, dict[str, str]] = {
        "postgresql": {},
        "mariadb": dict(zip(("ssl-cert", "ssl-key"), pair, strict=True)) | {"skip-ssl": "0"},
    }
    settings = load_settings(
        None,
        {
            "state_dir": state_dir,
            "database.url": request.param,
            "database.server_settings": tls[request.param],
        },
    )
    (service,) = embedded.select(settings, [request.param])
    started = service.start()
    try:
        with open_database(database_address(settings)) as opened:
            yield opened
    finally:
        if started:
            service.stop()


@pytest.fixture
def database(server: Database, request: pytest.FixtureRequest) -> Iterator[Database]:
    """A schema of the test's own."""
    name = f"t{abs(hash(request.node.name)) % 10**12}"
    with open_database(replace(server.address, schema_name=name)) as opened:
        yield opened
        with opened.engine.begin() as connection:
            connection.execute(text(f"DROP SCHEMA IF EXISTS {name} {CASCADE[opened.kind]}"))


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


def made_by_others(database: Database, *statements: str) -> None:
    """The schema as somebody else uses it."""
    with database.engine.begin() as connection:
        connection.execute(CreateSchema(database.address.schema_name))
        for statement in statements:
            connection.execute(in_schema(database, statement))


def test_tables_of_others_are_refused_and_kept(database: Database, data: DataSet) -> None:
    made_by_others(
        database,
        "CREATE TABLE SCHEMA.orders (mine text)",
        "CREATE TABLE SCHEMA.precious (mine text)",
        "INSERT INTO SCHEMA.orders VALUES ('money')",
    )
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
    made_by_others(database, "CREATE TABLE SCHEMA.espbench_load (id int)")
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
    with pytest.raises(ServiceError, match="depend") as caught:
        filled(database, other_data)
    assert "yourself" in caught.value.remedy
    assert is_loaded(database, data)


def test_a_view_of_a_tables_name_is_left_alone(database: Database, data: DataSet) -> None:
    made_by_others(database, "CREATE VIEW SCHEMA.orders AS SELECT 1 AS theirs")
    with pytest.raises(UsageError, match="did not make: orders"):
        filled(database, data)
    with pytest.raises(UsageError, match="are views, and only tables are dropped"):
        load(database, data, start_ms=START_MS, duration_s=DURATION_S, overwrite=True)
    with database.engine.connect() as connection:
        assert connection.scalar(in_schema(database, "SELECT theirs FROM SCHEMA.orders")) == 1


def test_nothing_that_refers_to_a_table_is_broken(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    filled(database, data)
    with database.engine.begin() as connection:
        connection.execute(
            in_schema(
                database,
                "CREATE TABLE SCHEMA.theirs "
                "(id INT, FOREIGN KEY (id) REFERENCES SCHEMA.item (i_id))",
            )
        )
    with pytest.raises(ServiceError, match="depend"):
        filled(database, other_data)
    assert is_loaded(database, data)


class Stop(Exception):
    """What an interrupted load raises here."""


@pytest.mark.parametrize("before", [False, True])
def test_an_interrupted_load_leaves_the_old_state_or_a_mark(
    database: Database, data: DataSet, other_data: DataSet, before: bool
) -> None:
    if before:
        filled(database, data)

    def stop(done: int) -> None:
        if done > 1_000:
            raise Stop

    with pytest.raises(Stop):
        load(database, other_data, start_ms=START_MS, duration_s=DURATION_S, progress=stop)
    assert not is_loaded(database, other_data)
    assert_old_state_or_marked(database, data if before else None)
    filled(database, other_data)
    assert is_loaded(database, other_data)


def assert_old_state_or_marked(database: Database, old: DataSet | None) -> None:
    if database.transactional_ddl and old:
        assert is_loaded(database, old)
        return
    assert marker_state(database) == (None if database.transactional_ddl else LOADING)
    with pytest.raises(ServiceError, match=NOT_USABLE):
        require_loaded(database)
    with pytest.raises(ServiceError, match=NOT_USABLE):
        reset(database, START_MS, DURATION_S)


def test_a_marker_without_its_row_is_a_load_that_was_cut_short(
    database: Database, data: DataSet
) -> None:
    filled(database, data)
    with database.engine.begin() as connection:
        connection.execute(database.table(MARKER).delete())
    with pytest.raises(ServiceError, match="was cut short"):
        require_loaded(database)
    assert not is_loaded(database, data)
    filled(database, data)
    assert is_loaded(database, data)


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
        ("item", column(1, b"2"), "pk_item|PRIMARY"),
        ("item", column(4, b"cheap"), "cheap"),
        ("item", column(5, b"x" * 51), "too long|truncated"),
        ("orders", column(1, rb"\N"), "o_id"),
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
    assert_old_state_or_marked(database, None)


def test_production_times_of_other_data_are_refused(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    with pytest.raises(InputError, match="exactly a start and an end"):
        filled(database, replace(data, production_times=other_data.production_times))
    assert_old_state_or_marked(database, None)


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
            connection.execute(text(SLEEP[database.kind]))
    except Interrupted:
        pass
    else:
        pytest.fail("the statement was not interrupted")
    finally:
        signal.signal(signal.SIGALRM, previous)
    deadline = time.monotonic() + 30
    while running(database, SLEEP[database.kind]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while True:
        try:
            with database.changing():
                break
        except ServiceError:
            assert time.monotonic() < deadline
            time.sleep(0.1)


def stamp(database: Database, share: float) -> None:
    lines = database.table("production_order_line")
    with database.engine.begin() as connection:
        connection.execute(
            lines.update()
            .where(lines.c.pol_o_id % 100 < share * 100)
            .values(pol_start_ts=database.now(), pol_end_ts=database.now())
        )


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_a_reset_restores_the_state_after_the_load(
    database: Database, data: DataSet, share: float
) -> None:
    filled(database, data)
    content = rows(database, "production_order_line")
    stamp(database, share)
    report = reset(database, START_MS, DURATION_S, data.tables_sha256)
    assert report.stamps_restored
    assert sorted(rows(database, "production_order_line")) == content
    assert not reset(database, START_MS, DURATION_S).stamps_restored
    assert is_loaded(database, data)


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


def stamps(database: Database) -> dict[tuple[object, ...], tuple[Any, Any]]:
    lines = rows(database, "production_order_line")
    return {line[:3]: (line[6], line[7]) for line in lines}


def times_of(data: DataSet) -> list[bytes]:
    return data.production_times.path.read_bytes().splitlines(keepends=True)


def key_of(line: bytes) -> tuple[object, ...]:
    return tuple(int(field) for field in line.split(b"\t")[:3])


def test_a_bulk_update_stamps_what_is_named_once(database: Database, data: DataSet) -> None:
    filled(database, data)
    lines = times_of(data)
    first = lines[:101]
    with database.engine.connect() as connection:
        begun = connection.scalar(select(database.now()))
        # Blocks need not end with lines.
        joined = b"".join(first)
        stamped = database.bulk_update(connection, [joined[:50], joined[50:51], joined[51:]])
        ended = connection.scalar(select(database.now()))
        connection.commit()
    assert begun is not None
    assert ended is not None
    assert (stamped.inputs, stamped.unknown) == (101, 0)
    after = stamps(database)
    named = {key_of(line) for line in first}
    for key, (start, end) in after.items():
        if key not in named:
            assert (start, end) == (None, None)
        elif key == key_of(first[-1]):
            assert start is not None
            assert end is None
        else:
            assert start is not None
            assert end is not None
            # Taken when the update ran, not when its transaction began.
            assert begun < start <= end < ended
    again = bulk(database, lines[:301])
    assert again == (301, 0)
    later = stamps(database)
    assert {key: later[key] for key in named - {key_of(first[-1])}} == {
        key: after[key] for key in named - {key_of(first[-1])}
    }
    assert later[key_of(first[-1])][0] == after[key_of(first[-1])][0]
    assert len([start for start, _end in later.values() if start]) == 151


def bulk(database: Database, lines: list[bytes]) -> tuple[int, int]:
    with database.engine.begin() as connection:
        stamped = database.bulk_update(connection, [b"".join(lines)])
    return stamped.inputs, stamped.unknown


def test_a_bulk_update_counts_what_it_does_not_know(database: Database, data: DataSet) -> None:
    filled(database, data)
    lines = times_of(data)[:4]
    assert bulk(database, [b"7\t1\t1\t0\n", *lines, *lines, b"7\t1\t1\t1\n"]) == (10, 2)
    assert len([start for start, _end in stamps(database).values() if start]) == 2
    assert bulk(database, []) == (0, 0)


def test_a_bulk_update_that_is_undone_leaves_nothing(database: Database, data: DataSet) -> None:
    filled(database, data)
    with database.engine.connect() as connection:
        database.bulk_update(connection, [b"".join(times_of(data))])
        # A connection serves many calls, also within one transaction.
        database.bulk_update(connection, times_of(data)[:2])
        connection.rollback()
        assert all(stamp == (None, None) for stamp in stamps(database).values())
        database.bulk_update(connection, times_of(data)[:2])
        connection.commit()
    assert len([start for start, _end in stamps(database).values() if start]) == 1
    assert reset(database, START_MS, DURATION_S).stamps_restored


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


@pytest.fixture
def guarded(database: Database, certificates: Path) -> Iterator[DatabaseAddress]:
    """Where the server speaks TLS: MariaDB by itself; PostgreSQL's wheel was built without it."""
    if database.kind == "mariadb":
        yield database.address
        return
    pair = (certificates / "server.pem", certificates / "server.key")
    with tls_before_postgresql(database.address.port, *pair) as port:
        yield replace(database.address, port=port)


AUTHORITY = {"postgresql": "sslrootcert", "mariadb": "ssl-ca"}


def encrypted(address: DatabaseAddress, **options: str) -> bool:
    """Whether a session with these options of the URL is encrypted."""
    with (
        open_database(replace(address, options=tuple(options.items()))) as opened,
        opened.reading() as connection,
    ):
        if opened.kind == "postgresql":
            driver: Any = connection.connection.driver_connection
            return bool(driver.pgconn.ssl_in_use)
        cipher = text("SHOW SESSION STATUS LIKE 'Ssl_cipher'")
        return bool(connection.execute(cipher).one()[1])


def test_tls_is_as_strict_as_the_url_says(guarded: DatabaseAddress, certificates: Path) -> None:
    authority = AUTHORITY[guarded.kind]
    right = {authority: str(certificates / "ca.pem")}
    wrong = {authority: str(certificates / "other-ca.pem")}
    assert not encrypted(guarded, sslmode="disable")
    assert encrypted(guarded, sslmode="require")
    assert encrypted(guarded, sslmode="verify-ca", **right)
    assert encrypted(guarded, sslmode="verify-full", **right)
    for mode in ("verify-ca", "verify-full"):
        with pytest.raises(ServiceError, match=r"(?i)certificate verify failed") as caught:
            encrypted(guarded, sslmode=mode, **wrong)
        assert authority in caught.value.remedy


def url_of(address: DatabaseAddress, *, user: str | None = None, name: str | None = None) -> str:
    place = f"{address.host}:{address.port}/{name or address.database}"
    return f"{address.kind}://{user or address.user}@{place}"


def test_a_remote_server_is_loaded_with_tls_and_a_password_file(
    state_dir: Path,
    database: Database,
    guarded: DatabaseAddress,
    data: DataSet,
    certificates: Path,
) -> None:
    # In MariaDB the schema is the URL's database.
    name = database.address.schema_name if database.kind == "mariadb" else None
    plain = url_of(guarded, name=name)
    secret = str(state_dir / "services" / database.kind / "password")
    directory = str(data.production_times.path.parent)

    def loaded(url: str, **variables: str) -> tuple[int, str, str]:
        process = espbench(state_dir, database, "--data", directory, "--json", db=url, **variables)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    full = f"{plain}?sslmode=verify-full&{AUTHORITY[database.kind]}={certificates}"
    code, out, err = loaded(f"{full}/ca.pem", ESPBENCH_DATABASE__PASSWORD_FILE=secret)
    assert (code, json.loads(out)["loaded"]) == (0, True), err
    assert is_loaded(database, data)
    refusals = {
        "certificate verify failed": loaded(
            f"{full}/other-ca.pem", ESPBENCH_DATABASE__PASSWORD_FILE=secret
        ),
        "ESPBENCH_DATABASE__PASSWORD": loaded(plain, ESPBENCH_DATABASE__PASSWORD=OTHER),
        "is it running": loaded(
            plain.replace(f":{guarded.port}", ":1"), ESPBENCH_DATABASE__PASSWORD=OTHER
        ),
    }
    if database.kind == "postgresql":
        refusals['database "none"'] = loaded(
            url_of(database.address, name="none"), ESPBENCH_DATABASE__PASSWORD_FILE=secret
        )
    for words, (code, out, err) in refusals.items():
        assert (code, out) == (3, ""), err
        assert words.lower() in err.lower()
        assert err.count("\n") == 1
        assert OTHER not in err
    assert is_loaded(database, data)


def test_a_load_that_was_killed_before_it_came_to_rest_is_brought_there(
    database: Database, data: DataSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_arguments: object) -> None:
        raise Stop

    monkeypatch.setattr("schema.load.settle", stop)
    with pytest.raises(Stop):
        filled(database, data)
    assert is_loaded(database, data)
    assert require_loaded(database).pristine_bytes is None
    reset(database, START_MS, DURATION_S)
    assert require_loaded(database).pristine_bytes is not None
    assert not reset(database, START_MS, DURATION_S).stamps_restored


@pytest.mark.parametrize(
    ("end", "moment"),
    [(signal.SIGTERM, "bulk"), (signal.SIGKILL, "bulk"), (signal.SIGKILL, "keys")],
)
def test_an_ended_command_leaves_no_half_filled_database(
    state_dir: Path,
    database: Database,
    data: DataSet,
    big_data: DataSet,
    end: signal.Signals,
    moment: str,
) -> None:
    filled(database, data)
    statement = BULK[database.kind] if moment == "bulk" else "ALTER TABLE"
    directory = big_data.production_times.path.parent
    process = espbench(state_dir, database, "--data", str(directory))
    deadline = time.monotonic() + 60
    while not running(database, statement):
        assert time.monotonic() < deadline
        assert process.poll() is None
    process.send_signal(end)
    _out, err = process.communicate(timeout=60)
    if end is signal.SIGTERM:
        assert process.returncode == 130, err
        assert err.strip().count("\n") == 0
    while running(database, statement):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert not is_loaded(database, big_data)
    assert_old_state_or_marked(database, data)
