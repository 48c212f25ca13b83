"""The plan of a data set: its blocks, in the order in which they reach the files."""

from collections.abc import Iterator
from dataclasses import dataclass

from datagen import customers, items, orders, sensors, workplaces
from datagen.manifest import SENSORS
from datagen.parameters import District, Parameters, districts
from datagen.pools import Pools

# What rendering a block gives: file name to bytes and number of rows.
Rendered = dict[str, tuple[bytes, int]]


@dataclass(frozen=True, slots=True)
class Items:
    """A block of items."""

    block: int


@dataclass(frozen=True, slots=True)
class Customers:
    """A district's customers."""

    district: District


@dataclass(frozen=True, slots=True)
class DistrictOrders:
    """A district's orders and everything that follows from them."""

    district: District


@dataclass(frozen=True, slots=True)
class Workplaces:
    """All workplaces."""


@dataclass(frozen=True, slots=True)
class Sensor:
    """A block of a sensor stream of so many rows."""

    stream: int
    block: int
    total_rows: int


Block = Items | Customers | DistrictOrders | Workplaces | Sensor


def blocks(parameters: Parameters) -> Iterator[Block]:
    """Every block that is generated; within a file they come in the order of its rows."""
    yield from (Items(block) for block in range(items.blocks(parameters)))
    yield Workplaces()
    for district in districts(parameters):
        yield Customers(district)
        yield DistrictOrders(district)
    for stream, real in ((1, parameters.sensor_1), (2, parameters.sensor_2)):
        rows = parameters.sensor_rows
        if real is None:
            yield from (Sensor(stream, block, rows) for block in range(sensors.blocks(rows)))


def expected_rows(parameters: Parameters) -> int:
    """About how many rows there will be in all files, for a progress bar."""
    per_scale = parameters.districts * parameters.customers
    lines = 10 * per_scale
    generated = sum(real is None for real in (parameters.sensor_1, parameters.sensor_2))
    sensor_rows = generated * parameters.sensor_rows
    return parameters.items + parameters.scale * (2 * per_scale + 5 * lines) + sensor_rows


def expected_bytes(parameters: Parameters) -> int:
    """About how much disk the files will take; real sensor files not counted."""
    customers_and_lines = parameters.districts * parameters.customers * parameters.scale
    generated = sum(real is None for real in (parameters.sensor_1, parameters.sensor_2))
    return (
        80 * parameters.items
        + 2_300 * customers_and_lines
        + 190 * generated * parameters.sensor_rows
    )


def render(parameters: Parameters, pools: Pools, block: Block) -> Rendered:
    """The bytes of one block. Depends on nothing but its arguments."""
    match block:
        case Items():
            return {"item.csv": items.render(parameters, block.block)}
        case Customers():
            return {"customer.csv": customers.render(parameters, block.district, pools)}
        case DistrictOrders():
            return orders.render(parameters, block.district)
        case Workplaces():
            return {"workplace.csv": workplaces.render(parameters)}
        case Sensor():
            rendered = sensors.render(parameters, block.stream, block.block, block.total_rows)
            return {SENSORS[block.stream]: rendered}
