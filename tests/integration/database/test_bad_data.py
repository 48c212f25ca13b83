"""Data that is damaged or breaks a rule is refused, and what was there stays."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.errors import InputError, ServiceError
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import is_loaded
from tests.integration.database.given import assert_old_state_or_marked, filled

Change = Callable[[bytes], bytes]


@pytest.mark.parametrize(
    ("table", "damage", "error", "match"),
    [
        ("item", lambda data: data.replace(b"1\t", b"2\t", 1), InputError, "damaged"),
        ("orders", lambda data: data + b"broken\n", InputError, "damaged"),
        ("workplace", lambda data: data.replace(b"\t", b" "), InputError, "damaged"),
        ("customer", lambda _data: b"", InputError, "damaged"),
    ],
)
def test_a_damaged_file_is_refused(
    database: Database,
    data: DataSet,
    tmp_path: Path,
    table: str,
    damage: Change,
    error: type[Exception],
    match: str,
) -> None:
    filled(database, data)
    original = data.tables[table]
    path = tmp_path / "damaged.csv"
    path.write_bytes(damage(original.path.read_bytes()))
    broken = replace(data, tables={**data.tables, table: replace(original, path=path)})
    with pytest.raises(error, match=match):
        filled(database, broken)
    assert is_loaded(database, data)


def column(number: int, value: bytes) -> Change:
    """Set one column of the first row."""

    def change(content: bytes) -> bytes:
        first, _, rest = content.partition(b"\n")
        fields = first.split(b"\t")
        fields[number - 1] = value
        return b"\t".join(fields) + b"\n" + rest

    return change


@pytest.mark.parametrize(
    ("table", "change", "match"),
    [
        ("orders", column(5, b"4"), "TPC-C 4 and 6"),
        ("orders", column(4, rb"\N"), "TPC-C 7"),
        ("order_line", column(5, rb"\N"), "TPC-C 7"),
        ("order_line", column(7, b"1.00"), "TPC-C 12"),
        ("customer", column(15, b"-9.00"), "TPC-C 10 and 12"),
        ("production_order_line", column(6, b"99"), "a workplace that exists"),
        ("order_line", column(3, b"999999"), "fk_order_line_item"),
        ("orders", column(2, b"7"), "fk_orders_customer"),
        ("item", column(1, b"2"), "pk_item|PRIMARY"),
        ("item", column(4, b"cheap"), "cheap"),
        ("item", column(5, b"x" * 51), "too long|truncated"),
        ("orders", column(1, rb"\N"), "o_id"),
    ],
)
def test_data_that_breaks_a_rule_is_refused(
    database: Database, data: DataSet, tmp_path: Path, table: str, change: Change, match: str
) -> None:
    content = change(data.tables[table].path.read_bytes())
    path = tmp_path / "altered.csv"
    path.write_bytes(content)
    sha256 = hashlib.sha256(content).hexdigest()
    altered = replace(data.tables[table], path=path, sha256=sha256)
    with pytest.raises(ServiceError, match=match):
        filled(database, replace(data, tables={**data.tables, table: altered}))
    assert_old_state_or_marked(database, None)


def test_production_times_of_other_data_are_refused(
    database: Database, data: DataSet, other_data: DataSet
) -> None:
    with pytest.raises(InputError, match="exactly a start and an end"):
        filled(database, replace(data, production_times=other_data.production_times))
    assert_old_state_or_marked(database, None)
