"""A load that ends early leaves the old state or a mark; two do not mix."""

import signal
import time
from pathlib import Path
from types import FrameType

import pytest
from sqlalchemy import text

from espbench.errors import Interrupted, ServiceError
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded, load
from schema.marker import require_loaded
from schema.reset import reset
from schema.tables import MARKER
from tests.integration.database.given import (
    BULK,
    DURATION_S,
    SLEEP,
    START_MS,
    Stop,
    assert_old_state_or_marked,
    espbench,
    filled,
    running,
)


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
