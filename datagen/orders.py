"""Orders, their lines and what is produced for them: one district at a time.

The five files of a district share the number of lines of each order, so they are made together.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from datagen import text
from datagen.parameters import District, Parameters, first_undelivered
from datagen.randomness import Part, generator

REFERENCE_US = 1_609_459_200_000_000  # 2021-01-01, as for customers
SECOND_US = 1_000_000

Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True, slots=True)
class Orders:
    """The orders of one district: column arrays, one entry per order."""

    ids: Ints
    customers: Ints
    entered_us: Ints
    carriers: Ints
    line_counts: Ints
    delivered: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Lines:
    """The order lines of one district: column arrays, one entry per line."""

    order_ids: Ints
    numbers: Ints
    items: Ints
    amounts: Ints
    workplaces: Ints
    entered_us: Ints
    delivered: npt.NDArray[np.bool_]


def draw_orders(parameters: Parameters, district: District) -> Orders:
    """The orders of a district; every customer of the district has exactly one."""
    random = _generator(parameters, district, Part.ORDERS)
    rows = parameters.customers
    numbers = np.arange(1, rows + 1)
    return Orders(
        ids=numbers + district.base,
        customers=random.permutation(rows) + 1 + district.base,
        # TPC-C stamps an order when it is populated, one after another.
        entered_us=REFERENCE_US + numbers * SECOND_US,
        carriers=random.integers(1, 11, rows),
        line_counts=random.integers(5, 16, rows),
        delivered=numbers < first_undelivered(parameters),
    )


def draw_lines(parameters: Parameters, district: District, orders: Orders) -> Lines:
    """The lines of these orders, in the order of their keys."""
    random = _generator(parameters, district, Part.LINES)
    counts = orders.line_counts
    rows = int(counts.sum())
    firsts = np.cumsum(counts) - counts
    delivered = np.repeat(orders.delivered, counts)
    amounts = random.integers(1, 1_000_000, rows)
    return Lines(
        order_ids=np.repeat(orders.ids, counts),
        numbers=np.arange(rows) - np.repeat(firsts, counts) + 1,
        items=random.integers(1, parameters.items + 1, rows),
        amounts=np.where(delivered, 0, amounts),
        workplaces=random.integers(1, 10 * parameters.scale + 1, rows),
        entered_us=np.repeat(orders.entered_us, counts),
        delivered=delivered,
    )


def render(parameters: Parameters, district: District) -> dict[str, tuple[bytes, int]]:
    """A district's part of the five files: file name to bytes and rows."""
    orders = draw_orders(parameters, district)
    lines = draw_lines(parameters, district, orders)
    rows = len(lines.numbers)
    dist_info = text.strings(
        text.random_characters(
            _generator(parameters, district, Part.DIST_INFO), 24 * rows, text.LETTERS
        ),
        np.full(rows, 24),
    )
    order_ids, numbers = text.integers(lines.order_ids), text.small(lines.numbers)
    items, entered = text.integers(lines.items), text.timestamps(lines.entered_us)
    order_line = [
        order_ids,
        numbers,
        items,
        str(district.warehouse),
        text.where(lines.delivered, entered),
        "5",
        text.hundredths(lines.amounts),
        dist_info,
    ]
    produced = [order_ids, numbers, "1", items, "1", text.integers(lines.workplaces)]
    return {
        "orders.csv": (text.lines(_order_columns(orders)), len(orders.ids)),
        "order_line.csv": (text.lines(order_line), rows),
        "production_order.csv": (text.lines([order_ids, numbers, entered]), rows),
        "production_order_line.csv": (text.lines([*produced, text.NULL, text.NULL]), rows),
        "production_times.csv": (_production_times(order_ids, numbers), 2 * rows),
    }


def _order_columns(orders: Orders) -> list[pa.Array | str]:
    return [
        text.integers(orders.ids),
        text.integers(orders.customers),
        text.timestamps(orders.entered_us),
        text.where(orders.delivered, text.small(orders.carriers)),
        text.small(orders.line_counts),
        "1",
    ]


def _production_times(order_ids: pa.Array, numbers: pa.Array) -> bytes:
    """For every line its start (0), then its end (1); `pol_number` is always 1."""
    twice = pa.array(np.repeat(np.arange(len(numbers)), 2))
    ends = pa.array(["0", "1"]).take(pa.array(np.tile([0, 1], len(numbers))))
    return text.lines([order_ids.take(twice), numbers.take(twice), "1", ends])


def _generator(parameters: Parameters, district: District, part: Part) -> np.random.Generator:
    return generator(parameters.seed, part, district.warehouse, district.district)
