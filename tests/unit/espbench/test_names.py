import pytest

from espbench.errors import UsageError
from espbench.names import QUERIES, find_query, parse_queries, run_of, topics_of


@pytest.mark.parametrize("text", ["3", "q3", "Q3", "identify-errors", " identify-errors "])
def test_a_query_is_found_by_number_short_name_and_name(text: str) -> None:
    assert find_query(text).name == "identify-errors"


@pytest.mark.parametrize("text", ["6", "q", "", "identify", "3.0"])
def test_no_other_name_is_a_query(text: str) -> None:
    with pytest.raises(UsageError, match="there is no query"):
        find_query(text)


def test_several_queries_keep_their_order_and_come_once() -> None:
    assert [query.number for query in parse_queries("q3,identity,3")] == [3, 0]


def test_an_empty_list_is_refused() -> None:
    with pytest.raises(UsageError, match="no query"):
        parse_queries(" , ")


def test_topics_follow_the_specification() -> None:
    run = run_of("20260101T000000-abcd", find_query("4"))
    assert topics_of("espbench", run, find_query("4")) == {
        "source-1": "espbench-20260101T000000-abcd-q4-1",
        "source-2": "espbench-20260101T000000-abcd-q4-2",
        "sink": "espbench-20260101T000000-abcd-q4-check-machine-power",
    }
    assert "sink" not in topics_of("p", "r", find_query("5"))


def test_the_queries_are_numbered_in_order() -> None:
    assert [query.number for query in QUERIES] == list(range(6))
