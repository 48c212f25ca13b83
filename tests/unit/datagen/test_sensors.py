import re
from datetime import datetime

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datagen import sensors, signals
from datagen.calibration import LIMIT_3, LIMIT_4, outlier_share
from datagen.parameters import Parameters

ROWS = 600_011


@pytest.fixture(scope="module", params=[1, 2])
def stream(request: pytest.FixtureRequest) -> signals.Signals:
    return signals.draw(2021, request.param, 0, ROWS)


def share(condition: npt.NDArray[np.bool_]) -> float:
    return float(condition.mean())


def test_mf01_is_calibrated(stream: signals.Signals) -> None:
    mf01 = stream.mf01
    assert share((mf01 >= 13_000) & (mf01 < 14_000)) > 0.95
    assert 6_500 <= mf01.max() - mf01.min() <= 7_500
    assert share(mf01 > LIMIT_3) == pytest.approx(0.0042, abs=0.0004)
    assert np.percentile(mf01, 99.5) == pytest.approx(LIMIT_3, abs=30)


def test_mf02_is_calibrated(stream: signals.Signals) -> None:
    mf02 = stream.mf02
    assert share((mf02 >= 14_000) & (mf02 < 15_000)) > 0.95
    assert 6_500 <= mf02.max() - mf02.min() <= 7_500


def test_mf03_is_calibrated(stream: signals.Signals) -> None:
    mf03 = stream.mf03
    assert share((mf03 >= 7_900) & (mf03 < 8_800)) > 0.99
    assert 1_900 <= mf03.max() - mf03.min() <= 2_200
    assert share(mf03 < LIMIT_4) == pytest.approx(0.088, abs=0.004)


def test_values_move_smoothly(stream: signals.Signals) -> None:
    for values in (stream.mf01, stream.mf02, stream.mf03):
        steps = np.abs(np.diff(values))
        assert np.percentile(steps, 90) <= 10
        # Half of what white noise of the same spread would give, and less.
        assert steps.std() < values.std() / 5


def test_excursions_come_in_episodes(stream: signals.Signals) -> None:
    for above, shortest in ((stream.mf01 > LIMIT_3, 3), (stream.mf03 < LIMIT_4, 50)):
        beginnings = int((np.diff(above.astype(np.int8)) == 1).sum())
        assert above.sum() / beginnings > shortest


def test_windows_have_about_as_many_outliers_as_the_real_ones(stream: signals.Signals) -> None:
    # 7 % of the real ones.
    assert 0.055 <= outlier_share(stream.mf01, stream.mf02, windows=12) <= 0.085


@given(st.integers(0, 2**63 - 1), st.integers(1, 2), st.integers(0, 5_000))
@settings(max_examples=30)
def test_queries_3_and_4_have_work_in_any_10_000_rows(seed: int, stream: int, first: int) -> None:
    drawn = signals.draw(seed, stream, 0, first + 10_000)
    assert (drawn.mf01[first:] > LIMIT_3).any()
    assert (drawn.mf01[first:] <= LIMIT_3).any()
    assert (drawn.mf03[first:] < LIMIT_4).any()
    assert (drawn.mf03[first:] >= LIMIT_4).any()


@given(st.integers(0, 2**63 - 1), st.integers(0, 9), st.integers(1, 6_000))
@settings(max_examples=20)
def test_a_piece_of_a_stream_is_the_same_drawn_alone(seed: int, cell: int, rows: int) -> None:
    whole = signals.draw(seed, 1, 0, cell * signals.CELL + rows)
    piece = signals.draw(seed, 1, cell, rows)
    assert (piece.mf01 == whole.mf01[cell * signals.CELL :]).all()
    assert (piece.mf03 == whole.mf03[cell * signals.CELL :]).all()


def test_the_streams_differ() -> None:
    one, two = (signals.draw(2021, stream, 0, 2_500) for stream in (1, 2))
    assert (one.mf01 != two.mf01).mean() > 0.5


@pytest.fixture(scope="module")
def lines() -> list[str]:
    parameters = Parameters(seed=1)
    total = sensors.BLOCK + 700
    rendered = [sensors.render(parameters, 2, block, total) for block in range(2)]
    assert sum(rows for _data, rows in rendered) == total
    return b"".join(data for data, _rows in rendered).decode().splitlines()


def test_a_line_has_the_text_of_the_real_ones(lines: list[str]) -> None:
    pattern = re.compile(
        r"2012-02-22T\d\d:\d\d:\d\d\.\d{7}\+00:00\t\d{7}\t1\d{4}\t1\d{4}\t[789]\d{3}"
        r"(\t\d{4}){7}(\t[01]){44}\t2"
    )
    assert len(lines) == sensors.BLOCK + 700
    assert all(pattern.fullmatch(line) for line in lines)
    assert all(line.count("\t") == 56 for line in lines)


def test_a_hundred_rows_a_second_and_an_index_without_gaps(lines: list[str]) -> None:
    fields = [line.split("\t", 2) for line in lines]
    first, last = (
        datetime.fromisoformat(re.sub(r"(\.\d{6})\d", r"\1", fields[row][0])) for row in (0, -1)
    )
    assert (last - first).total_seconds() == pytest.approx((len(lines) - 1) / 100, abs=0.001)
    assert [field[0] for field in fields] == sorted(field[0] for field in fields)
    assert [int(field[1]) for field in fields] == list(range(1_000_001, 1_000_001 + len(lines)))
