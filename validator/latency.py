"""Latency: exact figures from all matched outputs."""

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

PERCENTILES = {"p50": "50", "p90": "90", "p95": "95", "p99": "99", "p99_9": "99.9"}


def elapsed_ms(since_ms: npt.NDArray[Any], until_ms: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Milliseconds between times; those of a database are finer, and exact to the microsecond."""
    took: npt.NDArray[Any] = until_ms - since_ms
    return np.round(took, 3) if took.dtype.kind == "f" else took


def carries(count: int, percent: float | str) -> bool:
    """Whether a sample is large enough for a percentile: n ≥ 1/(1-p), decided without rounding."""
    return count * (100 - Fraction(str(percent))) >= 100


def percentile(values: npt.NDArray[Any], percent: float) -> float | None:
    """A percentile by linear interpolation; None where the sample cannot carry it."""
    return float(np.percentile(values, percent)) if carries(len(values), percent) else None


def statistics(values: npt.NDArray[Any]) -> dict[str, Any]:
    """The figures of a sample; None where it cannot carry them."""
    if not len(values):
        return {"n": 0, "min": None, "mean": None, **dict.fromkeys(PERCENTILES), "max": None}
    carried = [name for name, percent in PERCENTILES.items() if carries(len(values), percent)]
    wanted = [float(PERCENTILES[name]) for name in carried]
    found = np.percentile(values, wanted).tolist() if carried else []
    figures = dict(zip(carried, found, strict=True))
    return {
        "n": len(values),
        "min": float(values.min()),
        "mean": float(values.mean()),
        **{name: figures.get(name) for name in PERCENTILES},
        "max": float(values.max()),
    }
