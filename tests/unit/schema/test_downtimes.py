from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datagen import workplaces
from datagen.parameters import Parameters
from schema.downtimes import EPOCH, place, utc_without_zone

NOMINAL = timedelta(seconds=100)
START = datetime(2026, 3, 1, 12)  # noqa: DTZ001 - the tables hold UTC without a zone


@pytest.mark.parametrize(
    ("planned_s", "seconds_from_start"),
    [
        (-86_400, -86_400),
        (-1, -1),
        (0, 0),
        (25, 10),
        (50, 20),
        (100, 40),
        (101, 41),
        (3_700, 3_640),
    ],
)
def test_only_what_lies_within_the_run_is_stretched(
    planned_s: float, seconds_from_start: float
) -> None:
    placed = place(EPOCH + timedelta(seconds=planned_s), START, timedelta(seconds=40), NOMINAL)
    assert placed == START + timedelta(seconds=seconds_from_start)


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=20),
    st.floats(0.1, 100_000, allow_nan=False),
)
def test_the_order_of_events_is_kept(offsets_us: list[int], duration_s: float) -> None:
    planned = [EPOCH + timedelta(microseconds=offset) for offset in sorted(offsets_us)]
    placed = [place(moment, START, timedelta(seconds=duration_s), NOMINAL) for moment in planned]
    assert placed == sorted(placed)


@given(st.integers(0, 2**63 - 1), st.floats(5, 86_400))
def test_generated_downtimes_take_30_to_60_percent_of_any_run(seed: int, duration_s: float) -> None:
    drawn = workplaces.draw(Parameters(seed=seed, scale=1))
    duration = timedelta(seconds=duration_s)
    for machine in (1, 2):
        mine = drawn.workplaces == machine
        total = timedelta(0)
        for start_us, end_us in zip(drawn.starts_us[mine], drawn.ends_us[mine], strict=True):
            start, end = (
                place(EPOCH + timedelta(microseconds=int(us)), START, duration, NOMINAL)
                for us in (start_us, end_us)
            )
            assert START < start < end < START + duration
            total += end - start
        assert 0.3 <= total / duration <= 0.6


def test_epoch_milliseconds_become_utc_without_a_zone() -> None:
    assert utc_without_zone(1_767_225_600_123) == datetime(2026, 1, 1, 0, 0, 0, 123_000)  # noqa: DTZ001 - as above
