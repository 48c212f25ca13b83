"""The estimator against the definition's bisection, as the validator has it, and the vector."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from queries import sos
from queries.sos import StochasticOutlierSelection
from validator.oracles.sos import probabilities


def test_the_published_vector() -> None:
    points = [(1, 1), (2, 1), (1, 2), (2, 2), (5, 8)]
    found = StochasticOutlierSelection(perplexity=3).predict_probability(points)
    assert np.sort(found) == pytest.approx(
        [0.12707053787018, 0.22136130977996, 0.25775014551683, 0.27900944792029, 0.99227799024538],
        abs=1e-9,
    )


@settings(max_examples=60)
@given(
    points=npst.arrays(
        np.int64,
        st.tuples(st.integers(40, 120), st.just(2)),
        elements=st.one_of(st.integers(0, 12), st.integers(0, 30_000)),
    )
)
def test_it_is_the_bisection_whatever_the_points(points: np.ndarray) -> None:
    floats = points.astype(np.float64)
    found = StochasticOutlierSelection().predict_probability(floats)
    assert np.abs(found - probabilities(floats, newton=False)).max() < 1e-6


def test_steps_that_go_to_and_fro_end() -> None:
    """Points for which plain Newton, within its bracket, never ends."""
    random = np.random.default_rng(7)
    for _ in range(60):
        walk = np.cumsum(random.integers(-9, 10, (500, 2)), axis=0) + 14_000
        walk[random.random(500) < 0.02] += random.integers(-8_000, 8_000, 2)
        found = StochasticOutlierSelection().predict_probability(walk)
        wanted = probabilities(walk.astype(np.float64), newton=False)
        assert np.abs(found - wanted).max() < 1e-6


@pytest.mark.parametrize(
    "values", [(10**18 - 1, 1 - 10**18, 2**53 + 1, 2**31), (2**53 + 1, 2**31, -(2**31)), (10**12,)]
)
def test_distances_beyond_the_bisections_steps(values: tuple[int, ...]) -> None:
    """Where 50 steps do not suffice, the definition is what they came to."""
    random = np.random.default_rng(3)
    points = random.integers(13_000, 15_000, (500, 2)).astype(np.float64)
    points[::5] = random.choice(np.array(values, dtype=np.float64), (100, 2))
    found = StochasticOutlierSelection().predict_probability(points)
    assert np.abs(found - probabilities(points, newton=False)).max() < 1e-6


NEAR = np.random.default_rng(5).integers(0, 50, (500, 2)).astype(np.float64)


@pytest.mark.parametrize(
    "points",
    [
        np.full((500, 2), 7.0),
        NEAR[np.arange(500) % 2],
        np.vstack([np.full((100, 2), 7.0), NEAR[100:]]),
        NEAR + np.where(np.arange(500) < 250, 0.0, 1e9)[:, None],
        NEAR + np.where(np.arange(500) < 31, 1e6, 0.0)[:, None],
        np.vstack([NEAR[1:], [[1e7, 1e7]]]),
        np.vstack([NEAR[1:], [[6e3, 5e3]]]),
        np.column_stack([2.0 ** np.linspace(0, 50, 500), np.zeros(500)]),
        NEAR * 1e-9,
        NEAR[: sos.BLOCK],
        NEAR[: 2 * sos.BLOCK + 1],
    ],
    ids=[
        "all equal",
        "two places",
        "100 equal",
        "two clusters",
        "31 far away",
        "one far away",
        "one away",
        "2^0 to 2^50",
        "tiny",
        "one block",
        "one point over two blocks",
    ],
)
def test_windows_that_no_sensor_gives(points: np.ndarray) -> None:
    found = StochasticOutlierSelection().predict_probability(points)
    assert np.abs(found - probabilities(points, newton=False)).max() < 1e-8


@pytest.mark.parametrize("start", [1e-6, 1e6])
def test_a_wrong_first_guess_decides_nothing(start: float, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = StochasticOutlierSelection().predict_probability(NEAR)
    monkeypatch.setattr(sos, "START", start)
    found = StochasticOutlierSelection().predict_probability(NEAR)
    assert np.abs(found - wanted).max() < 1e-8


def test_the_points_are_left_as_they_are() -> None:
    points = NEAR.copy()
    StochasticOutlierSelection().fit(points)
    assert (points == NEAR).all()


def test_near_points_far_from_the_origin_keep_their_distances() -> None:
    random = np.random.default_rng(1)
    near = random.integers(0, 50, (200, 2)).astype(np.float64)
    alone = StochasticOutlierSelection().predict_probability(near)
    shifted = StochasticOutlierSelection().predict_probability(near + 1e9)
    assert shifted == pytest.approx(alone, abs=1e-9)


def test_outliers_are_those_at_the_threshold_or_above() -> None:
    points = np.vstack([np.random.default_rng(2).normal(size=(60, 2)), [[40.0, 40.0]]])
    selection = StochasticOutlierSelection(perplexity=30, threshold=0.5)
    assert selection.fit_predict(points)[-1] == -1
    assert set(selection.fit_predict(points)) <= {-1, 1}
