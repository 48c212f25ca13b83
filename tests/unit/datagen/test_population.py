"""The population rules of TPC-C, and their distributions, with fixed seeds."""

import re
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datagen import customers, items, orders
from datagen.parameters import District, Parameters, districts, first_undelivered
from datagen.pools import make_pools
from datagen.randomness import Part, generator

FULL = Parameters(scale=2, seed=7)
SEEDS = st.integers(0, 2**63 - 1)


def rows_of(data: bytes) -> list[list[str]]:
    return [line.split("\t") for line in data.decode().splitlines()]


def chi_square_per_degree(observed: npt.NDArray[np.int64]) -> float:
    """Near 1 for draws from a uniform distribution."""
    expected = observed.sum() / len(observed)
    return float(((observed - expected) ** 2 / expected).sum() / (len(observed) - 1))


@pytest.fixture(scope="module")
def customer_rows() -> list[list[str]]:
    return rows_of(customers.render(FULL, District(2, 10), make_pools(7, "en_US"))[0])


@pytest.fixture(scope="module")
def item_rows() -> list[list[str]]:
    blocks = range(items.blocks(FULL))
    return rows_of(b"".join(items.render(FULL, block)[0] for block in blocks))


@pytest.fixture(scope="module")
def order_files() -> dict[str, list[list[str]]]:
    rendered = orders.render(FULL, District(2, 3))
    return {name: rows_of(data) for name, (data, _rows) in rendered.items()}


def test_items_are_numbered_from_1_to_100_000(item_rows: list[list[str]]) -> None:
    assert [int(row[0]) for row in item_rows] == list(range(1, 100_001))


def test_item_columns_have_their_lengths_and_ranges(item_rows: list[list[str]]) -> None:
    assert all(1 <= int(row[1]) <= 10_000 for row in item_rows)
    assert {len(row[2]) for row in item_rows} == set(range(14, 25))
    assert all(re.fullmatch(r"\d{1,3}\.\d\d", row[3]) for row in item_rows)
    assert min(float(row[3]) for row in item_rows) == pytest.approx(1.0, abs=0.05)
    assert max(float(row[3]) for row in item_rows) == pytest.approx(100.0, abs=0.05)
    assert {len(row[4]) for row in item_rows} == set(range(26, 51))


def test_a_tenth_of_the_items_is_original_at_random_places(item_rows: list[list[str]]) -> None:
    places = [row[4].index("ORIGINAL") for row in item_rows if "ORIGINAL" in row[4]]
    assert len(places) == 10_000
    assert set(places) >= set(range(19))
    assert max(places) == 42


def test_image_numbers_and_prices_are_uniform(item_rows: list[list[str]]) -> None:
    for column, least, values in ((1, 1, 10_000), (3, 100, 9_901)):
        drawn = np.array([row[column].replace(".", "") for row in item_rows], dtype=np.int64)
        observed = np.bincount(drawn - least, minlength=values)
        assert len(observed) == values
        assert 0.9 < chi_square_per_degree(observed) < 1.1


def test_customers_have_composite_ids_in_order(customer_rows: list[list[str]]) -> None:
    assert [int(row[0]) for row in customer_rows] == list(range(2_100_001, 2_103_001))


def test_the_first_thousand_customers_run_through_all_last_names(
    customer_rows: list[list[str]],
) -> None:
    names = [row[3] for row in customer_rows]
    assert names[:1_000] == list(customers.LAST_NAMES)
    assert names[371] == "PRICALLYOUGHT"
    assert set(names) == set(customers.LAST_NAMES)
    assert max(map(len, names)) <= 16


def test_the_other_last_names_follow_nurand() -> None:
    random = generator(3, Part.CUSTOMER)
    drawn = customers.nurand(random, 255, 0, 999, 123, 200_000)
    assert drawn.min() == 0
    assert drawn.max() == 999
    # Of eight bits or-ed with another number each is set with probability 3/4 at least, so that
    # some names are far more frequent than others; uniform ones would give about 1.
    assert chi_square_per_degree(np.bincount(drawn, minlength=1_000)) > 100
    plain = (drawn - 123) % 1_000
    assert np.mean(plain & 1) == pytest.approx(0.75, abs=0.01)


def test_customer_constants_and_shapes(customer_rows: list[list[str]]) -> None:
    for row in customer_rows:
        assert len(row) == 19
        assert row[2] == "OE"
        assert re.fullmatch(r"[A-Z]{2}", row[7])
        assert re.fullmatch(r"\d{4}11111", row[8])
        assert re.fullmatch(r"\d{16}", row[9])
        assert row[10] == "2021-01-01 00:00:00.000000"
        assert [row[12], *row[14:18]] == ["50000.00", "-10.00", "10.00", "1", "0"]
        assert 0 <= float(row[13]) <= 0.5
        assert 300 <= len(row[18]) <= 500
        assert 0 < len(row[1]) <= 16
        assert all(0 < len(row[column]) <= 20 for column in (4, 5, 6))


def test_a_tenth_of_the_customers_has_bad_credit(customer_rows: list[list[str]]) -> None:
    assert Counter(row[11] for row in customer_rows) == {"GC": 2_700, "BC": 300}


def test_every_customer_of_a_district_has_exactly_one_order(
    order_files: dict[str, list[list[str]]],
) -> None:
    rows = order_files["orders.csv"]
    assert [int(row[0]) for row in rows] == list(range(2_030_001, 2_033_001))
    buyers = [int(row[1]) for row in rows]
    assert sorted(buyers) == list(range(2_030_001, 2_033_001))
    assert buyers != sorted(buyers)


def test_the_last_900_orders_are_not_delivered(order_files: dict[str, list[list[str]]]) -> None:
    for row in order_files["orders.csv"]:
        delivered = int(row[0]) % 10_000 <= 2_100
        assert (row[3] != r"\N") == delivered
        assert row[3] == r"\N" or 1 <= int(row[3]) <= 10
    for row in order_files["order_line.csv"]:
        delivered = int(row[0]) % 10_000 <= 2_100
        assert (row[4] != r"\N") == delivered
        assert (row[6] == "0.00") == delivered
        assert delivered or 0.01 <= float(row[6]) <= 9_999.99


def test_lines_are_numbered_within_their_order(order_files: dict[str, list[list[str]]]) -> None:
    counts = {row[0]: int(row[4]) for row in order_files["orders.csv"]}
    assert set(counts.values()) == set(range(5, 16))
    expected = [(order, str(n)) for order, most in counts.items() for n in range(1, most + 1)]
    assert [(row[0], row[1]) for row in order_files["order_line.csv"]] == expected
    assert [(row[0], row[1]) for row in order_files["production_order.csv"]] == expected


def test_line_columns(order_files: dict[str, list[list[str]]]) -> None:
    entered = {row[0]: row[2] for row in order_files["orders.csv"]}
    for row in order_files["order_line.csv"]:
        assert 1 <= int(row[2]) <= 100_000
        assert row[3] == "2"
        assert row[4] in {r"\N", entered[row[0]]}
        assert row[5] == "5"
        assert re.fullmatch(r"[A-Za-z0-9]{24}", row[7])


def test_production_follows_the_lines(order_files: dict[str, list[list[str]]]) -> None:
    lines = order_files["order_line.csv"]
    produced = order_files["production_order_line.csv"]
    assert [row[:2] for row in produced] == [row[:2] for row in lines]
    assert [row[3] for row in produced] == [row[2] for row in lines]
    assert {(row[2], row[4], row[6], row[7]) for row in produced} == {("1", "1", r"\N", r"\N")}
    assert {int(row[5]) for row in produced} == set(range(1, 21))


def test_every_line_starts_and_then_ends(order_files: dict[str, list[list[str]]]) -> None:
    expected = [
        [*row[:3], end] for row in order_files["production_order_line.csv"] for end in ("0", "1")
    ]
    assert order_files["production_times.csv"] == expected


@given(SEEDS)
@settings(max_examples=15, derandomize=True)
def test_distributions_of_orders_are_uniform_for_any_seed(seed: int) -> None:
    parameters = Parameters(scale=1, seed=seed)
    drawn = orders.draw_orders(parameters, District(1, 1))
    lines = orders.draw_lines(parameters, District(1, 1), drawn)
    # 3,000 orders and about 30,000 lines: the bounds are beyond five standard deviations.
    assert chi_square_per_degree(np.bincount(drawn.line_counts)[5:16]) < 4
    assert chi_square_per_degree(np.bincount(drawn.carriers)[1:]) < 4
    assert chi_square_per_degree(np.bincount(lines.workplaces)[1:]) < 4
    assert chi_square_per_degree(np.bincount((lines.items - 1) // 1_000, minlength=100)) < 2
    open_amounts = lines.amounts[~lines.delivered]
    assert chi_square_per_degree(np.bincount(open_amounts // 10_000, minlength=100)) < 2
    assert abs(int(drawn.line_counts.sum()) - 30_000) < 1_000


@given(
    SEEDS,
    st.integers(1, 3),
    st.integers(1, 10),
    st.integers(10, 300),
)
@settings(max_examples=20)
def test_composite_ids_keep_the_districts_apart(
    seed: int, scale: int, per_warehouse: int, rows: int
) -> None:
    parameters = Parameters(scale=scale, seed=seed, districts=per_warehouse, customers=rows)
    ids = np.concatenate(
        [orders.draw_orders(parameters, district).ids for district in districts(parameters)]
    )
    assert len(ids) == scale * per_warehouse * rows
    assert (np.diff(ids) > 0).all()
    assert (ids // 1_000_000).max() == scale


def test_the_largest_scale_fits_into_an_integer() -> None:
    assert District(2_000, 10).base + 3_000 < 2**31


def test_the_full_population_is_undelivered_from_2101() -> None:
    assert first_undelivered(Parameters()) == 2_101


@pytest.mark.parametrize("locale", ["en_US", "de_DE", "ja_JP"])
def test_pools_fit_their_columns_in_any_locale(locale: str) -> None:
    pools = make_pools(1, locale)
    assert max(map(len, pools.first_names)) <= 16
    assert max(map(len, (*pools.streets, *pools.cities))) <= 20
    assert all(re.fullmatch("[A-Z]{2}", state) for state in pools.states)
    everything = "".join((*pools.first_names, *pools.streets, *pools.cities))
    assert not set("\t\n\r\\") & set(everything)
    assert min(len(pools.first_names), len(pools.streets), len(pools.cities)) >= 40


def test_equal_seeds_give_equal_pools_and_others_do_not() -> None:
    assert make_pools(5, "en_US") == make_pools.__wrapped__(5, "en_US")
    assert make_pools(5, "en_US") != make_pools(6, "en_US")


def test_generators_differ_by_seed_part_and_block() -> None:
    keys = [(1, Part.ITEM, 0), (1, Part.ITEM, 1), (1, Part.CUSTOMER, 0), (2, Part.ITEM, 0)]
    firsts = {int(generator(*key).integers(0, 2**62)) for key in keys}
    assert len(firsts) == 4
    assert generator(1, Part.ITEM, 0).integers(0, 2**62) == generator(1, Part.ITEM, 0).integers(
        0, 2**62
    )
