"""A reset brings back the state after the load, with new downtimes."""

from datetime import timedelta
from pathlib import Path

import pytest

from espbench.errors import ServiceError
from schema.contract import Database
from schema.dataset import DataSet
from schema.downtimes import utc_without_zone
from schema.load import is_loaded
from schema.marker import require_loaded
from schema.reset import reset
from tests.integration.database.given import DURATION_S, SMALL, START_MS, filled, make, rows, stamp


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
