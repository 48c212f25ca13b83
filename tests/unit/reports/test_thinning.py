"""What a chart shows of a series: small, and nothing that matters is lost."""

import numpy as np
import pytest

from espbench.reports.thinning import (
    COLUMNS,
    LINE_POINTS,
    ROWS,
    bands,
    cloud,
    percentile_curve,
    power_above,
    rounded,
    thin_line,
)

RNG = np.random.default_rng(7)


def test_every_record_is_in_the_cloud() -> None:
    time_s, latency_ms = RNG.uniform(0, 300, 100_000), RNG.lognormal(3, 1, 100_000)
    latency_ms[77] = 123_456.0
    found = cloud(time_s, latency_ms)
    cells = np.array(found["cells"]).reshape(-1, 3)
    assert cells[:, 2].sum() == 100_000
    assert len(cells) <= COLUMNS * ROWS
    # The lone slow one has a cell of its own, in the right place.
    low, high = found["ms"]
    assert (low, high) == (1.0, 1_000_000.0)
    top = cells[cells[:, 1].argmax()]
    assert top[2] == 1
    assert high ** (top[1] / ROWS) <= 123_456.0 <= high ** ((top[1] + 1) / ROWS)
    begin, end = found["time_s"]
    column = (time_s[77] - begin) / (end - begin) * COLUMNS
    assert top[0] == int(column)


@pytest.mark.parametrize("values", [[], [5.0], [0.0, 0.0]])
def test_few_records_make_a_cloud_too(values: list[float]) -> None:
    found = cloud(np.zeros(len(values)), np.array(values))
    assert sum(found["cells"][2::3]) == len(values)
    assert found["time_s"][1] > found["time_s"][0]


def test_bands_are_the_figures_of_each_second() -> None:
    time_s = np.repeat(np.arange(3.0), 200) + 0.25
    latency_ms = np.concatenate([np.arange(200.0), np.full(200, 7.0), np.arange(200.0) * 2])
    found = bands(time_s, latency_ms)
    assert found["time_s"] == [0.5, 1.5, 2.5]
    assert found["max"] == [199.0, 7.0, 398.0]
    assert found["min"] == [0.0, 7.0, 0.0]
    assert found["p50"] == [99.5, 7.0, 199.0]


def test_bands_leave_out_what_an_interval_cannot_carry() -> None:
    found = bands(np.array([0.1, 0.2, 2.5]), np.array([1.0, 3.0, 9.0]))
    assert found["p90"] == [None, None, None]
    assert found["p50"] == [2.0, None, 9.0]
    assert found["n"] == [2.0, None, 1.0]


def test_long_runs_have_wider_bands() -> None:
    found = bands(np.arange(10_000.0), np.ones(10_000))
    assert len(found["time_s"]) <= LINE_POINTS + 1


def test_sparse_answers_have_bands_that_carry_a_percentile() -> None:
    # Forty answers every three seconds: no second but each fourth has any.
    time_s = np.repeat(np.arange(0.5, 60, 3), 40)
    found = bands(time_s, np.ones(len(time_s)))
    assert found["width_s"] == [5.0]
    assert found["time_s"][0] == 2.5
    assert None not in found["p90"]
    # One answer a second carries nothing at any width: the seconds stay.
    assert bands(np.arange(30.0), np.ones(30))["width_s"] == [1.0]


def test_the_curve_ends_where_the_sample_does() -> None:
    found = percentile_curve(np.arange(1_000.0))
    assert found["odds"][-1] == 1_000
    assert found["ms"][0] == 0.0
    assert found["ms"][-1] == pytest.approx(np.quantile(np.arange(1_000.0), 0.999))
    assert percentile_curve(np.array([1.0])) == {"odds": [], "ms": []}


def test_a_thin_line_keeps_the_extremes_in_order() -> None:
    time_s, values = np.arange(50_000.0), RNG.normal(size=50_000)
    values[123], values[40_000] = 99.0, -99.0
    thin_s, thin = thin_line(time_s, values)
    assert len(thin) <= 2 * LINE_POINTS
    assert (thin.max(), thin.min()) == (99.0, -99.0)
    assert (np.diff(thin_s) > 0).all()
    short = time_s[:5], values[:5]
    assert thin_line(*short)[1].tolist() == short[1].tolist()


def test_numbers_for_json_are_finite() -> None:
    assert rounded(np.array([1.23456, np.nan, np.inf])) == [1.235, None, None]


@pytest.mark.parametrize(("value", "power"), [(0, 10), (10, 100), (11, 100), (99_999, 100_000)])
def test_the_power_above(value: float, power: float) -> None:
    assert power_above(value) == power
