"""The pattern of a well-formed record; what Spark makes of it is an integration test."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queries.source import SENSOR_RECORD

# Java writes \z where Python writes \Z.
PATTERN = re.compile(SENSOR_RECORD.replace(r"\z", r"\Z"))


def record(
    id: str = "7", due: str = "1000", columns: int = 57, other: str = "0", **values: str
) -> str:
    line = [other] * columns
    for place, name in ((2, "mf01"), (3, "mf02"), (4, "mf03"), (columns - 1, "workplace")):
        line[place] = values.get(name, "1")
    return f"{id};{due};" + "\t".join(line)


@pytest.mark.parametrize(
    "text",
    [
        record(),
        record(due="-5"),
        record(mf01="-15000"),
        record(mf01="9" * 18),
        record(other=""),
        record(other="a;b"),
        record(other="two\nlines"),
        record(other="ü€"),
    ],
)
def test_well_formed(text: str) -> None:
    assert PATTERN.match(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";;",
        "1;2;",
        record(id=""),
        record(id="-1"),
        record(id="1.0"),
        record(due=""),
        record(due="soon"),
        record(columns=56),
        record(columns=58),
        record(mf01=""),
        record(mf01=" 1"),
        record(mf01="+1"),
        record(mf01="1.0"),
        record(mf01="1e3"),
        record(mf01="9" * 19),
        record(mf01="\uff11"),
        record(mf02="x"),
        record(mf03=""),
        record(workplace="x"),
        record() + "\n",
        record() + "\r",
        "\ufeff" + record(),
    ],
)
def test_malformed(text: str) -> None:
    assert not PATTERN.match(text)


@given(st.text())
def test_anything_else_is_malformed(text: str) -> None:
    assert not PATTERN.match(text) or text.count("\t") == 56
