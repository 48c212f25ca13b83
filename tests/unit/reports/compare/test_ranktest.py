"""Mann and Whitney's test against known values and against brute force."""

import itertools

import numpy as np
import pytest

from espbench.compare import ranktest
from espbench.compare.ranktest import mann_whitney


def brute_force(base: list[float], new: list[float]) -> float:
    """The share of all ways to deal the values that favour the new side as much."""
    values = [*base, *new]

    def wins(chosen: tuple[int, ...]) -> float:
        others = [values[at] for at in range(len(values)) if at not in chosen]
        return sum(
            (values[at] > other) + 0.5 * (values[at] == other) for at in chosen for other in others
        )

    seen = wins(tuple(range(len(base), len(values))))
    deals = list(itertools.combinations(range(len(values)), len(new)))
    return sum(wins(deal) >= seen for deal in deals) / len(deals)


def test_five_against_five_wholly_apart() -> None:
    larger, differ = mann_whitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])
    assert larger == pytest.approx(1 / 252)
    assert differ == pytest.approx(2 / 252)
    smaller, _ = mann_whitney([6, 7, 8, 9, 10], [1, 2, 3, 4, 5])
    assert smaller == 1.0


@pytest.mark.parametrize("seed", range(8))
def test_it_equals_brute_force_with_ties_too(seed: int) -> None:
    rng = np.random.default_rng(seed)
    base = rng.integers(0, 6, 4).astype(float).tolist()
    new = rng.integers(1, 7, 5).astype(float).tolist()
    assert mann_whitney(base, new)[0] == pytest.approx(brute_force(base, new))


def test_equal_samples_say_nothing() -> None:
    assert mann_whitney([3.0] * 5, [3.0] * 5) == (1.0, 1.0)
    assert mann_whitney([3.0] * 30, [3.0] * 30) == (1.0, 1.0)
    assert mann_whitney([], [1.0]) == (1.0, 1.0)


def test_the_approximation_meets_the_exact_values(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    base, new = rng.normal(0, 1, 18).round(1).tolist(), rng.normal(0.5, 1, 20).round(1).tolist()
    exact = mann_whitney(base, new)
    monkeypatch.setattr(ranktest, "EXACT_UP_TO", 0)
    assert mann_whitney(base, new) == pytest.approx(exact, abs=0.005)


def test_it_is_wrong_as_often_as_it_says() -> None:
    rng = np.random.default_rng(5)
    found = [
        mann_whitney(rng.normal(size=6).tolist(), rng.normal(size=6).tolist())[1] < 0.05
        for _ in range(400)
    ]
    assert 0.01 < np.mean(found) < 0.07
