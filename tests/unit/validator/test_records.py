from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from validator.records import RawBytes, integers, is_utf8, take_apart, text
from validator.streams import production_columns, sensor_columns
from validator.synthetic import sensor_line


def parse(texts: Sequence[bytes]) -> list[int | None]:
    raw = RawBytes.of(pa.array(texts, type=pa.binary()))
    found, good = integers(raw.data, raw.start, raw.stop)
    return [int(number) if ok else None for number, ok in zip(found, good, strict=True)]


def test_integers_are_optional_minus_and_digits() -> None:
    texts = [b"0", b"14963", b"-12", b"0071", b"", b"-", b"1.5", b"1e4", b" 1", b"+1", b"1_0", b"x"]
    assert parse(texts) == [0, 14963, -12, 71, None, None, None, None, None, None, None, None]
    assert parse([b"9" * 18, b"9" * 19]) == [10**18 - 1, None]


DIGITS = st.text("0123456789", max_size=20) | st.text("0123456789-/:;\t", max_size=20)


@given(st.lists(st.binary(max_size=20) | DIGITS.map(str.encode)))
def test_integers_agree_with_python(texts: list[bytes]) -> None:
    def by_python(value: bytes) -> int | None:
        digits = value.removeprefix(b"-")
        good = 1 <= len(digits) <= 18 and all(0x30 <= byte <= 0x39 for byte in digits)
        return int(value) if good else None

    assert parse(texts) == [by_python(value) for value in texts]


@given(st.lists(st.one_of(st.none(), st.binary(max_size=12), st.text(max_size=6).map(str.encode))))
def test_utf8_agrees_with_python(texts: list[bytes | None]) -> None:
    def by_python(value: bytes | None) -> bool:
        try:
            return value is not None and value.decode("utf-8") is not None
        except UnicodeDecodeError:
            return False

    values = pa.array(texts, type=pa.binary())
    assert is_utf8(RawBytes.of(values)).tolist() == [by_python(value) for value in texts]


@given(
    st.lists(st.one_of(st.none(), st.text("ab;\t", max_size=12).map(str.encode))),
    st.integers(0, 3),
)
def test_taking_apart_agrees_with_python(texts: list[bytes | None], skip: int) -> None:
    values = pa.array([b"x;\t"] * skip + list(texts), type=pa.binary()).slice(skip)
    parts = take_apart(RawBytes.of(values), fields=2, columns=3)
    for row, value in enumerate(texts):
        pieces = (value or b"").split(b";", 2)
        assert parts.has_fields[row] == (value is not None and len(pieces) == 3)
        columns = pieces[-1].split(b"\t")
        assert parts.has_columns[row] == (parts.has_fields[row] and len(columns) == 3)
        if parts.has_columns[row]:
            data = parts.raw.data.tobytes()
            for number, column in enumerate(columns, start=1):
                begin, end = (int(bound[row]) for bound in parts.column_bounds(number))
                assert data[begin:end] == column


@given(st.lists(st.text("ab;\t", max_size=12).map(str.encode), max_size=4))
def test_a_batch_of_like_values_and_one_of_others_agree(others: list[bytes]) -> None:
    like = [b"1;22;a\tb\tc", b";;\t\t", b"x;y;\t\tz"]
    alike = take_apart(RawBytes.of(pa.array(like, type=pa.binary())), fields=2, columns=3)
    mixed = take_apart(RawBytes.of(pa.array([*like, *others])), fields=2, columns=3)
    assert alike.has_columns.all()
    assert mixed.has_columns[:3].all()
    for number in (1, 2, 3):
        for one, other in zip(
            alike.column_bounds(number), mixed.column_bounds(number), strict=True
        ):
            assert one.tolist() == other[:3].tolist()


GOOD = f"7;1700000000000;{sensor_line(7, 14000, 14500, 8500)}".encode()


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"hello",
        b"7;1700000000000",
        GOOD.replace(b"7;", b"x;", 1),
        GOOD.replace(b"7;", b"-7;", 1),
        GOOD.replace(b"7;", b"-0;", 1),
        GOOD.replace(b";1700000000000;", b";soon;"),
        GOOD + b"\t1",
        GOOD.rsplit(b"\t", 1)[0],
        GOOD + b"\r",
        GOOD.replace(b"14000", b"14000.0"),
        GOOD.replace(b"14500", b""),
        GOOD.replace(b"8500", b"abc"),
        GOOD.replace(b"0193", b"\xff\xfe"),
    ],
)
def test_malformed_sensor_records(value: bytes | None) -> None:
    found = sensor_columns(pa.array([GOOD, value, GOOD], type=pa.binary()))
    assert found["well_formed"].tolist() == [True, False, True]


def test_sensor_columns() -> None:
    other = f"8;5;{sensor_line(8, -1, 2, 3, workplace=2)}".encode()
    found = sensor_columns(pa.array([GOOD, other], type=pa.binary()))
    assert found["id"].tolist() == [7, 8]
    assert found["due_ms"].tolist() == [1_700_000_000_000, 5]
    assert found["workplace"].tolist() == [1, 2]
    assert found["mf01"].tolist() == [14000, -1]
    assert found["mf02"].tolist() == [14500, 2]
    assert found["mf03"].tolist() == [8500, 3]


def test_beyond_ascii_is_well_formed_where_it_is_utf8() -> None:
    value = GOOD.replace(b"0193", "Größe".encode())
    assert sensor_columns(pa.array([value], type=pa.binary()))["well_formed"].all()


def test_production_columns() -> None:
    values = [
        b"0;5;10\t1\t1\t0",
        b"1;6;10\t1\t1\t1",
        b"2;7;10\t1\t1\t2",
        b"3;7;x\t1\t1\t1",
        b"4;7;1\t1",
    ]
    found = production_columns(pa.array(values, type=pa.binary()))
    assert found["well_formed"].tolist() == [True, True, False, False, False]
    assert found["o_id"][:2].tolist() == [10, 10]
    assert found["is_end"][:2].tolist() == [0, 1]


def test_a_slice_of_a_batch_is_read_as_such() -> None:
    values = pa.array([b"1;2;" + b"a", GOOD, None, GOOD], type=pa.binary()).slice(1, 3)
    found = sensor_columns(values)
    assert found["well_formed"].tolist() == [True, False, True]
    assert np.array_equal(found["id"][[0, 2]], [7, 7])


def test_text_of_a_witness() -> None:
    assert text(None) is None
    assert text(b"a\xff") == "a\\xff"
    assert text(b"x" * 3_000) == "x" * 2_000 + "…"
