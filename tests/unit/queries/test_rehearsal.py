"""The records of a rehearsal: of the right form, with work for every query, and harmless."""

import re

import pytest

from queries.rehearsal import record
from queries.source import PRODUCTION_TIME, SENSOR_RECORD

# Java spells the end of the text \\z.
SENSOR, PRODUCTION = (
    re.compile(pattern.replace("\\z", "\\Z")) for pattern in (SENSOR_RECORD, PRODUCTION_TIME)
)


@pytest.mark.parametrize("stream", [1, 2])
def test_sensor_records_are_well_formed_and_give_every_query_work(stream: int) -> None:
    texts = [record(stream, number).decode() for number in range(2_000)]
    assert all(SENSOR.fullmatch(text) for text in texts)
    columns = [text.split(";", 2)[2].split("\t") for text in texts]
    assert {each[-1] for each in columns} == {str(stream)}
    assert any(int(each[2]) > 14_963 for each in columns)
    assert any(int(each[4]) < 8_105 for each in columns)


def test_production_times_name_no_row_of_the_table() -> None:
    texts = [record(3, number).decode() for number in range(100)]
    assert all(PRODUCTION.fullmatch(text) for text in texts)
    keys = [text.split(";", 2)[2].split("\t") for text in texts]
    # Orders are numbered from 1,010,001 on.
    assert {each[0] for each in keys} == {"0"}
    assert {each[3] for each in keys} == {"0", "1"}
