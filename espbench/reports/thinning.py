"""Series made small enough for a page, honestly: extremes survive, and every record counts.

All functions are pure, on arrays; times are seconds from the sender's start.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# About two pixels each on a wide screen.
COLUMNS = 400
ROWS = 120
# A line needs fewer points than a cloud.
LINE_POINTS = 240
# Seconds that an interval of the bands may last.
WIDTHS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600)
# So many records carry a p90, so many intervals must have them, and fewer intervals are no line.
CARRIES_P90, MOST_INTERVALS, LEAST_INTERVALS = 10, 0.9, 5
# Records below it stand on the lowest row: the broker's clock has steps of one millisecond.
FLOOR_MS = 1.0
CURVE_POINTS = 120
# Of a run that was overloaded for hours.
MOST_MS = 1e9


def rounded(values: npt.NDArray[Any], digits: int = 3) -> list[float | None]:
    """Numbers for JSON; what is not finite becomes None."""
    numbers = np.round(values.astype(np.float64), digits)
    return [float(each) if np.isfinite(each) else None for each in numbers]


def cloud(time_s: Floats, latency_ms: Floats) -> dict[str, Any]:
    """Where records lie, by time and logarithm of latency: a grid of counts.

    Every record falls into one cell, so that none is left out, however rare. The cells are runs
    of `column, row, count`, flat; the grid's borders stand beside them.
    """
    if not len(time_s):
        return {"cells": [], "columns": COLUMNS, "rows": ROWS, "time_s": [0, 1], "ms": [1, 10]}
    begin, end = span(time_s)
    highest = power_above(float(latency_ms.max()))
    column = np.clip(((time_s - begin) / (end - begin) * COLUMNS).astype(np.int64), 0, COLUMNS - 1)
    level = np.log10(np.clip(latency_ms, FLOOR_MS, MOST_MS)) / np.log10(highest)
    row = np.clip((level * ROWS).astype(np.int64), 0, ROWS - 1)
    places, counts = np.unique(column * ROWS + row, return_counts=True)
    cells = np.column_stack([places // ROWS, places % ROWS, counts])
    return {
        "cells": cells.ravel().tolist(),
        "columns": COLUMNS,
        "rows": ROWS,
        "time_s": [begin, end],
        "ms": [FLOOR_MS, highest],
    }


def bands(time_s: Floats, latency_ms: Floats) -> dict[str, list[float | None]]:
    """Minimum, median, p90, p99 and maximum per interval of time.

    An interval is one second, or longer where the run has more of them than a line shows, or
    where records come so seldom that seconds do not carry a p90. A percentile that an interval's
    records cannot carry is None; so is all of an empty interval.
    """
    names = ("time_s", "width_s", "n", "min", "p50", "p90", "p99", "max")
    if not len(time_s):
        return {name: [] for name in names}
    width = _width(time_s)
    begin = np.floor(time_s.min() / width) * width
    interval = ((time_s - begin) // width).astype(np.int64)
    order = np.argsort(interval, kind="stable")
    values, interval = latency_ms[order], interval[order]
    count = int(interval[-1]) + 1
    edges = np.searchsorted(interval, np.arange(count + 1))
    rows = np.full((count, 6), np.nan)
    for each in range(count):
        part = values[edges[each] : edges[each + 1]]
        if len(part):
            low, high = part.min(), part.max()
            p50, p90, p99 = np.percentile(part, (50, 90, 99))
            rows[each] = (len(part), low, p50, p90, p99, high)
            rows[each, 3:5] = np.where(len(part) >= np.array([10, 100]), (p90, p99), np.nan)
    middle = begin + (np.arange(count) + 0.5) * width
    return {"time_s": rounded(middle), "width_s": rounded(np.array([width]))} | {
        name: rounded(rows[:, at]) for at, name in enumerate(names[2:])
    }


def _width(time_s: Floats) -> float:
    """The length of an interval in seconds."""
    begin, end = span(time_s)
    least = max(1.0, float(np.ceil((end - begin) / LINE_POINTS)))
    for width in WIDTHS_S:
        if least <= width <= (end - begin) / LEAST_INTERVALS:
            counts = np.bincount((time_s // width - begin // width).astype(np.int64))
            if (counts >= CARRIES_P90).mean() >= MOST_INTERVALS:
                return float(width)
    return least


def percentile_curve(latency_ms: Floats) -> dict[str, list[float | None]]:
    """Latency by percentile, as far as the sample carries: n ≥ 1/(1-q). `odds` is 1/(1-q)."""
    count = len(latency_ms)
    if count < 2:
        return {"odds": [], "ms": []}
    odds = np.geomspace(1.0, count, CURVE_POINTS)
    figures = np.quantile(latency_ms, 1 - 1 / odds)
    return {"odds": rounded(odds, 4), "ms": rounded(figures)}


def thin_line(time_s: Floats, values: Floats, points: int = LINE_POINTS) -> tuple[Floats, Floats]:
    """A line of at most twice `points` points that keeps minimum and maximum of every interval."""
    if len(time_s) <= 2 * points:
        return time_s, values
    begin, end = span(time_s)
    interval = np.minimum(((time_s - begin) / (end - begin) * points).astype(np.int64), points - 1)
    # By interval, then by value: first and last of each interval are its extremes.
    order = np.lexsort((values, interval))
    last = np.flatnonzero(np.diff(interval[order], append=points))
    first = np.concatenate([[0], last[:-1] + 1])
    kept = np.unique(np.concatenate([order[first], order[last]]))
    return time_s[kept], values[kept]


def span(time_s: Floats) -> tuple[float, float]:
    """First and last time, never the same."""
    begin, end = float(time_s.min()), float(time_s.max())
    return (begin, end) if end > begin else (begin, begin + 1.0)


def power_above(value: float) -> float:
    """The power of ten above a value, at least ten."""
    return float(10 ** np.ceil(np.log10(min(max(value, 5.0), MOST_MS) * 1.000001)))
