import pytest
from sqlalchemy import make_url
from sqlalchemy.schema import CreateTable

from datagen import manifest
from schema.tables import ALL_TABLES, BUSINESS_TABLES, table, tables, without_constraints

# The columns, as the definition of the benchmark lists them.
COLUMNS = {
    "item": "i_id i_im_id i_name i_price i_data",
    "customer": "c_id c_first c_middle c_last c_street_1 c_street_2 c_city c_state c_zip c_phone "
    "c_since c_credit c_credit_lim c_discount c_balance c_ytd_payment c_payment_cnt "
    "c_delivery_cnt c_data",
    "orders": "o_id o_c_id o_entry_d o_carrier_id o_ol_cnt o_all_local",
    "order_line": "ol_o_id ol_number ol_i_id ol_supply_w_id ol_delivery_d ol_quantity ol_amount "
    "ol_dist_info",
    "production_order": "po_o_id po_ol_number po_date",
    "production_order_line": "pol_o_id pol_ol_number pol_number pol_i_id pol_quantity pol_wp_id "
    "pol_start_ts pol_end_ts",
    "workplace": "wp_id wp_dt_id wp_downtime_start wp_downtime_end",
}
REFERENCES = {
    "item": set(),
    "customer": set(),
    "orders": {"customer"},
    "order_line": {"orders", "item"},
    "production_order": {"order_line"},
    "production_order_line": {"production_order", "item"},
    "workplace": set(),
}
NULLABLE = {"o_carrier_id", "ol_delivery_d", "pol_start_ts", "pol_end_ts"}
METADATA = tables("somewhere")


def test_the_generator_and_the_schema_mean_the_same_tables() -> None:
    assert manifest.TABLES == BUSINESS_TABLES
    assert set(COLUMNS) == set(BUSINESS_TABLES)


@pytest.mark.parametrize("name", BUSINESS_TABLES)
def test_columns_keys_and_references(name: str) -> None:
    found = table(METADATA, name)
    assert found.schema == "somewhere"
    assert found.columns.keys() == COLUMNS[name].split()
    referred = {key.referred_table.name for key in found.foreign_key_constraints}
    assert referred == REFERENCES[name]
    assert {column.name for column in found.columns if column.nullable} <= NULLABLE


def test_primary_keys() -> None:
    keys = {name: len(table(METADATA, name).primary_key) for name in BUSINESS_TABLES}
    assert keys == {
        "item": 1,
        "customer": 1,
        "orders": 1,
        "order_line": 2,
        "production_order": 2,
        "production_order_line": 3,
        "workplace": 2,
    }


def test_timestamps_have_microseconds_and_no_zone_everywhere() -> None:
    create = CreateTable(table(METADATA, "workplace"))
    for url, type_name in (
        ("postgresql+psycopg://", "TIMESTAMP(6) WITHOUT TIME ZONE"),
        ("mysql://", "DATETIME(6)"),
    ):
        dialect = make_url(url).get_dialect()()
        assert str(create.compile(dialect=dialect)).count(type_name) == 2


@pytest.mark.parametrize("name", ALL_TABLES)
def test_a_table_without_constraints_has_the_same_columns(name: str) -> None:
    full = table(METADATA, name)
    bare = without_constraints(full)
    assert bare.columns.keys() == full.columns.keys()
    assert not bare.primary_key.columns
    assert not bare.foreign_key_constraints
    assert [column.nullable for column in bare.columns] == [
        column.nullable for column in full.columns
    ]
    keyed = without_constraints(full, primary_key=True)
    assert keyed.primary_key.columns.keys() == full.primary_key.columns.keys()
    assert not keyed.foreign_key_constraints
