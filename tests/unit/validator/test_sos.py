import numpy as np
import numpy.typing as npt
import pytest

from validator.oracles.sos import probabilities

Floats = npt.NDArray[np.float64]


def by_definition(points: Floats, perplexity: float, steps: int) -> list[float]:
    """Point by point, as the definition reads."""
    count = len(points)
    binding = np.zeros((count, count))
    for row in range(count):
        others = [other for other in range(count) if other != row]
        distance = np.array([float(np.hypot(*(points[row] - points[other]))) for other in others])
        beta, low, high = 1.0, -np.inf, np.inf
        for _ in range(steps):
            affinity = np.exp(-beta * distance)
            total = float(affinity.sum())
            too_high = total > 0 and np.log(total) + beta * float(
                (distance * affinity).sum()
            ) / total > np.log(perplexity)
            if too_high:
                low = beta
                beta = beta * 2 if np.isinf(high) else (beta + high) / 2
            else:
                high = beta
                beta = beta / 2 if np.isinf(low) else (beta + low) / 2
        affinity = np.exp(-beta * distance)
        binding[row, others] = affinity / affinity.sum()
    return [float(np.prod(1 - binding[:, column])) for column in range(count)]


def test_the_published_vector() -> None:
    points = np.array([(1, 1), (2, 1), (1, 2), (2, 2), (5, 8)], dtype=np.float64)
    published = [
        0.12707053787018,
        0.22136130977996,
        0.25775014551683,
        0.27900944792029,
        0.99227799024538,
    ]
    for newton in (False, True):
        found = probabilities(points, perplexity=3, steps=500, newton=newton)
        assert np.sort(found) == pytest.approx(published, abs=1e-13)


@pytest.mark.parametrize("spread", [3, 30, 300, 7_000])
def test_agrees_with_the_definition(spread: int) -> None:
    random = np.random.default_rng(spread)
    points = random.integers(0, spread, (120, 2)).astype(np.float64)
    wanted = by_definition(points, 30.0, 50)
    assert probabilities(points) == pytest.approx(wanted, abs=1e-9)
    assert probabilities(points, newton=False) == pytest.approx(wanted, abs=1e-9)


def test_many_equal_points() -> None:
    random = np.random.default_rng(5)
    for points in (
        np.zeros((100, 2)),
        np.repeat([[1.0, 2.0], [900.0, 5.0]], 60, axis=0),
        np.concatenate([np.zeros((90, 2)), random.normal(0, 10_000, (20, 2))]),
    ):
        wanted = by_definition(points, 30.0, 50)
        assert probabilities(points) == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize("noise", [5, 20, 50])
@pytest.mark.parametrize("far", [2_000, 7_000, 10**6])
def test_what_affinities_lose_where_they_fade_is_part_of_the_definition(
    noise: int, far: int
) -> None:
    random = np.random.default_rng(noise + far)
    points = random.integers(-noise, noise + 1, (300, 2)).astype(np.float64)
    points += np.array([13_500.0, 14_500.0])
    points[123] += np.array([far, far / 2])
    wanted = by_definition(points, 30.0, 50)
    assert probabilities(points) == pytest.approx(wanted, abs=1e-9)
