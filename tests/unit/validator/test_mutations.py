"""Seeded mutations of a right capture: the verdict must be right for every one of them.

Each mutation says by itself what it makes of the verdict, from the specification and not from the
validator.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from validator.synthetic import Plan, Record, Topic, errors_sink, identity_sink, source
from validator.topics import Claim

Judged = Callable[..., dict[str, Any]]
ROUNDS = 25


@dataclass
class Case:
    """A capture under mutation, and what the verdict must then be."""

    query: str
    source: Topic
    sink: Topic
    correctness: str = "correct"
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    cut_sink: int = 0
    cut_source: int = 0
    load_is_valid: bool = True

    def become(self, correctness: str, **counts: int) -> None:
        self.correctness = correctness
        self.counts = counts


def fresh(query: str, random: Random) -> Case:
    plan = Plan(
        records=random.randint(150, 250),
        partitions=random.choice([1, 1, 2, 3]),
        seed=random.randint(0, 10**9),
        error_share=0.2,
    )
    stream = source(plan)
    sink = identity_sink(stream, plan) if query == "q0" else errors_sink(stream, plan)
    return Case(query, stream, sink)


def set_sink(case: Case, records: list[Record]) -> None:
    case.sink = Topic(case.sink.name, records).renumbered()


def set_source(case: Case, records: list[Record]) -> None:
    case.source = Topic(case.source.name, records).renumbered()


def calm(case: Case, random: Random) -> int:
    """A source record that query 3 does not answer."""
    rows = [
        row
        for row, record in enumerate(case.source.records)
        if int((record.value or b"").split(b"\t")[2]) <= 14_963
    ]
    return random.choice(rows[1:-1])


def nothing(case: Case, _random: Random) -> None:
    case.become("correct", missing=0, extra=0, wrong=0, duplicate=0)


def drop(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    count = random.randint(1, 5)
    for _ in range(count):
        records.pop(random.randrange(len(records)))
    set_sink(case, records)
    case.become("incorrect", missing=count, extra=0, wrong=0, duplicate=0)


def alter_a_digit(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    row = random.randrange(len(records))
    value = bytearray(records[row].value or b"")
    begin, end = value.index(b";") + 1, value.rindex(b"\t")
    digits = [place for place in range(begin, end) if 0x30 <= value[place] <= 0x39]
    place = random.choice(digits)
    value[place] = 0x30 + (value[place] - 0x30 + random.randint(1, 9)) % 10
    records[row] = replace(records[row], value=bytes(value))
    set_sink(case, records)
    case.become("incorrect", missing=0, extra=0, wrong=1, duplicate=0)


def alter_the_identity(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    row = random.randrange(len(records))
    value = records[row].value or b""
    other = random.choice([b"7" * 6 + value, value[:-1] + b"4"])
    records[row] = replace(records[row], value=other)
    set_sink(case, records)
    case.become("incorrect", missing=1, extra=1, wrong=0, duplicate=0)


def duplicate(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    count = random.randint(1, 4)
    chosen = [random.choice(case.sink.records) for _ in range(count)]
    records.extend(chosen)
    set_sink(case, records)
    guarantee = random.choice(["at-least-once", "exactly-once"])
    case.options["guarantee"] = guarantee
    verdict = "correct" if guarantee == "at-least-once" else "incorrect"
    case.become(verdict, duplicate=count, missing=0, extra=0, wrong=0)


def add_garbage(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    value = random.choice([None, b"", b"garbage", b"\xff\xfe\xfd", b"5;6;7", b";;;\t\t"])
    records.insert(random.randrange(len(records)), replace(records[0], value=value))
    set_sink(case, records)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def answer_too_much(case: Case, random: Random) -> None:
    value = case.source.records[calm(case, random)].value or b""
    number, due, line = value.split(b";", 2)
    head = b"9999;" + due if case.query == "q0" else number
    value = head + b";" + line
    records = list(case.sink.records)
    records.insert(random.randrange(len(records)), replace(records[0], value=value))
    set_sink(case, records)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def swap(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    row = random.randrange(len(records) - 6)
    other = next(
        n for n in range(row + 1, len(records)) if records[n].partition == records[row].partition
    )
    records[row], records[other] = (
        replace(records[row], value=records[other].value),
        replace(records[other], value=records[row].value),
    )
    set_sink(case, records)
    case.become("correct", out_of_order=1, missing=0, extra=0, wrong=0, duplicate=0)


def deliver_twice(case: Case, random: Random) -> None:
    answered = (case.sink.records[random.randrange(len(case.sink.records))].value or b"").split(
        b";"
    )
    row = next(
        n
        for n, record in enumerate(case.source.records)
        if (record.value or b"").split(b";")[0] == answered[0]
    )
    records = list(case.source.records)
    records.insert(row, records[row])
    set_source(case, records)
    if random.random() < 0.5:
        case.become("incorrect", missing=1, duplicate=0, extra=0)
        return
    outputs = list(case.sink.records)
    place = next(
        n for n, out in enumerate(outputs) if (out.value or b"").split(b";")[0] == answered[0]
    )
    outputs.insert(place, outputs[place])
    set_sink(case, outputs)
    case.options["guarantee"] = "exactly-once"
    case.become("correct", missing=0, duplicate=0, extra=0)


def cut_the_sink(case: Case, random: Random) -> None:
    case.cut_sink = random.randint(2, len(case.sink.json_lines()) // 2)
    case.become("unknown", extra=0, wrong=0)


def cut_the_source(case: Case, random: Random) -> None:
    case.cut_source = random.randint(2, len(case.source.json_lines()) // 2)
    case.become("unknown", wrong=0, missing=0)


def lose_lines(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    inner = [n for n, r in enumerate(records) if r.offset > 0 and n < len(records) - 8]
    records.pop(random.choice(inner))
    case.sink = Topic(case.sink.name, records)
    sure = random.random() < 0.3
    if sure:
        case.options["claims"] = {"sink": Claim(complete=True)}
    case.become("incorrect" if sure else "unknown", missing=1, extra=0, wrong=0)


def lose_an_id(case: Case, random: Random) -> None:
    records = list(case.source.records)
    row = calm(case, random)
    gone = (records.pop(row).value or b"").split(b";")[0]
    set_source(case, records)
    explained = random.random() < 0.5
    if explained:
        stream = {"stream": 1, "acknowledged": len(records), "failed": 1}
        case.options["sender_report"] = {"streams": [stream]}
        case.load_is_valid = False
    if case.query == "q0":
        outputs = [r for r in case.sink.records if (r.value or b"").split(b";")[0] != gone]
        set_sink(case, outputs)
    case.become("correct" if explained else "unknown", missing=0, extra=0, wrong=0)


def break_a_source_record(case: Case, random: Random) -> None:
    records = list(case.source.records)
    row = calm(case, random)
    value = records[row].value or b""
    broken = random.choice(
        [None, b"broken", value + b"\t1", value.rsplit(b"\t", 1)[0], value.replace(b";", b",", 1)]
    )
    records[row] = replace(records[row], value=broken)
    set_source(case, records)
    case.become("correct", malformed=1, missing=0, extra=0, wrong=0)
    if case.query == "q0":
        case.become("incorrect", malformed=1, missing=1, extra=1, wrong=0)
        if random.random() < 0.5:
            outputs = [
                replace(r, value=broken) if r.value == value else r for r in case.sink.records
            ]
            set_sink(case, outputs)
            case.become("correct", malformed=1, missing=0, extra=0, wrong=0)


def mix_two_runs(case: Case, random: Random) -> None:
    other = fresh(case.query, random)
    case.sink = Topic(case.sink.name, [*case.sink.records, *other.sink.records]).renumbered()
    case.correctness = "incorrect"


def empty_the_sink(case: Case, _random: Random) -> None:
    count = len(case.sink.records)
    case.sink = Topic(case.sink.name)
    case.become("incorrect", missing=count, matched=0)


def stamp_too_early(case: Case, random: Random) -> None:
    early = [
        replace(record, timestamp_ms=record.timestamp_ms - random.randint(0, 100))
        for record in case.sink.records
    ]
    set_sink(case, early)
    case.become("correct", missing=0, extra=0, wrong=0)


def cut_and_alter(case: Case, random: Random) -> None:
    records = list(case.sink.records)
    value = (records[0].value or b"").replace(b"\t0193\t", b"\t0194\t")
    records[0] = replace(records[0], value=value)
    set_sink(case, records)
    case.cut_sink = random.randint(2, len(case.sink.json_lines()) // 2)
    case.become("incorrect", wrong=1)


MUTATIONS = [
    nothing,
    drop,
    alter_a_digit,
    alter_the_identity,
    duplicate,
    add_garbage,
    answer_too_much,
    swap,
    deliver_twice,
    cut_the_sink,
    cut_the_source,
    lose_lines,
    lose_an_id,
    break_a_source_record,
    mix_two_runs,
    empty_the_sink,
    stamp_too_early,
    cut_and_alter,
]


@pytest.mark.parametrize("query", ["q0", "q3"])
@pytest.mark.parametrize("mutate", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_the_verdict_survives(
    judged: Judged, query: str, mutate: Callable[[Case, Random], None]
) -> None:
    for seed in range(ROUNDS):
        random = Random(f"{mutate.__name__} {query} {seed}")  # noqa: S311 - reproducible
        case = fresh(query, random)
        mutate(case, random)
        sink, stream = case.sink.json_lines(), case.source.json_lines()
        found = judged(
            query,
            stream[: len(stream) - case.cut_source],
            sink[: len(sink) - case.cut_sink],
            **case.options,
        )
        wanted = case.counts
        assert found["correctness"] == case.correctness, (seed, found["problems"])
        assert {name: found["counts"][name] for name in wanted} == wanted, seed
        counts = found["counts"]
        assert counts["expected"] == counts["matched"] + counts["missing"] + counts["wrong"]
        told = counts["matched"] + counts["extra"] + counts["wrong"] + counts["duplicate"]
        assert counts["actual"] == told
        fine = 0 if case.load_is_valid else 5
        code = {"correct": fine, "incorrect": 4, "unknown": 5}[case.correctness]
        assert found["exit"] == code, seed
