"""The histogram answers as the values would."""

import numpy as np
import pytest

from sender.lateness import LatenessHistogram


def test_percentiles_are_close_and_the_maximum_exact() -> None:
    values = np.random.default_rng(1).lognormal(13, 2, 20_000).astype(np.int64)
    histogram = LatenessHistogram()
    for part in np.array_split(values, 7):
        histogram.add(part)
    for percent in (50, 90, 99):
        exact = float(np.percentile(values, percent, method="inverted_cdf")) / 1e6
        assert histogram.percentile_ms(percent) == pytest.approx(exact, rel=0.006, abs=0.001)
    assert histogram.summary_ms()["max"] == round(values.max() / 1e6, 3)
    assert histogram.n == len(values)


def test_whole_milliseconds_stay_whole() -> None:
    histogram = LatenessHistogram()
    histogram.add(np.full(10, 3_000_000))
    assert histogram.summary_ms() == {"p50": 3.0, "p90": 3.0, "p99": 3.0, "max": 3.0, "n": 10}


def test_nothing_counted_gives_nothing() -> None:
    empty = LatenessHistogram()
    empty.add(np.array([], dtype=np.int64))
    assert empty.summary_ms() == {"p50": None, "p90": None, "p99": None, "max": None, "n": 0}
