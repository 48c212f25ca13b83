"""A right answer in made-up topics, what is counted of it, and ways to change it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from validator.synthetic import Plan, Record, Topic, errors_sink, identity_sink, source

Judged = Callable[..., dict[str, Any]]

PLAN = Plan()
INPUT = source(PLAN)
ERRORS = errors_sink(INPUT, PLAN)
ECHO = identity_sink(INPUT, PLAN)
COUNTS = {
    "input": 2_000,
    "expected": 199,
    "actual": 199,
    "matched": 199,
    "missing": 0,
    "extra": 0,
    "wrong": 0,
    "duplicate": 0,
    "out_of_order": 0,
    "surplus": 0,
    "borderline": 0,
    "malformed": 0,
}


def changed(topic: Topic, change: Callable[[list[Record]], object]) -> Topic:
    """A copy of a topic with a change to its list of records, offsets running again."""
    records = list(topic.records)
    change(records)
    return Topic(topic.name, records, topic.tstype).renumbered()


def with_value(topic: Topic, row: int, value: bytes | None) -> Topic:
    return changed(
        topic, lambda records: records.__setitem__(row, replace(records[row], value=value))
    )


def kinds(document: dict[str, Any]) -> list[str]:
    return [witness["kind"] for witness in document["witnesses"]]
