import numpy as np
import pytest

from datagen import calibration, signals

# The test vector of the definition's query 2 has perplexity 3.
POINTS = np.array([(1, 1), (2, 1), (1, 2), (2, 2), (5, 8)], dtype=np.float64)
EXPECTED = [
    0.12707053787018,
    0.22136130977996,
    0.25775014551683,
    0.27900944792029,
    0.99227799024538,
]


def test_outlier_probabilities_are_those_of_the_test_vector(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calibration, "PERPLEXITY", 3)
    monkeypatch.setattr(calibration, "BISECTIONS", 500)
    found = sorted(calibration.outlier_probabilities(POINTS))
    assert found == pytest.approx(EXPECTED, abs=1e-12)


def test_every_figure_of_a_stream_stands_beside_the_published_one() -> None:
    drawn = signals.draw(2021, 1, 0, 20_000)
    found = calibration.findings(drawn.mf01, drawn.mf02, drawn.mf03, windows=4)
    assert len(found) == 10
    assert all(one.published and one.found for one in found)
    by_figure = {one.figure: one.found for one in found}
    below = 100 * (drawn.mf03 < 8_105).mean()
    assert by_figure["`mf03` below 8,105 (query 4)"] == f"{below:.1f} %"


def test_a_histogram_counts_every_value_once() -> None:
    values = np.array([7, 8, 9, 10, 19, 20, 999])
    assert calibration.histogram(values, 10) == [(0, 3), (10, 2), (20, 1), (990, 1)]
    lines = calibration.bars(values, 10)
    assert len(lines) == 4
    assert lines[0].count("█") > lines[1].count("█") > lines[2].count("█") >= 1
