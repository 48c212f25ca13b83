"""Seeded mutations of the queries that answer record by record: identity, 2, 3 and 4.

Each says by itself what it makes of the verdict, from the specification and not from the validator.
"""

from dataclasses import replace
from random import Random

from validator.proof.case import Case, Mutation, fresh
from validator.synthetic import Topic
from validator.topics import Claim


def text_of(case: Case, value: bytes) -> bytes:
    """What of an input stands in its output."""
    number, due, line = value.split(b";", 2)
    return b";".join([number, due, line] if case.query == "q0" else [number, line])


def calm(case: Case, random: Random) -> int:
    """A source record that the query does not answer (identity: any)."""
    told = {(record.value or b"").rsplit(b",", 1)[0] for record in case.sink.records}
    rows = [
        row
        for row, record in enumerate(case.source.records)
        if case.query == "q0" or text_of(case, record.value or b"") not in told
    ]
    return random.choice(rows[1:-1])


def within_a_line(topic: Topic, random: Random) -> int:
    """How many bytes to cut off; between two lines nobody could tell."""
    content = topic.json_lines()
    cut = random.randint(2, len(content) // 2)
    while content[-cut - 1 : -cut] in {b"\n", b"}"}:
        cut += 1
    return cut


def nothing(case: Case, _random: Random) -> None:
    """The capture as it is."""
    case.become("correct", missing=0, extra=0, wrong=0, duplicate=0)


def drop(case: Case, random: Random) -> None:
    """Outputs are lost."""
    records = list(case.sink.records)
    count = random.randint(1, 5)
    for _ in range(count):
        records.pop(random.randrange(len(records)))
    case.set_sink(records)
    case.become("incorrect", missing=count, extra=0, wrong=0, duplicate=0)


def alter_a_digit(case: Case, random: Random) -> None:
    """One digit of one output."""
    records = list(case.sink.records)
    row = random.randrange(len(records))
    value = bytearray(records[row].value or b"")
    begin, end = value.index(b";") + 1, value.rindex(b"\t")
    digits = [place for place in range(begin, end) if 0x30 <= value[place] <= 0x39]
    place = random.choice(digits)
    value[place] = 0x30 + (value[place] - 0x30 + random.randint(1, 9)) % 10
    records[row] = replace(records[row], value=bytes(value))
    case.set_sink(records)
    case.become("incorrect", missing=0, extra=0, wrong=1, duplicate=0)


def alter_the_identity(case: Case, random: Random) -> None:
    """An output of another id or workplace, or one that is no UTF-8."""
    records = list(case.sink.records)
    row = random.randrange(len(records))
    value = records[row].value or b""
    others = [b"7" * 6 + value, value.replace(b"\t", b"\xff\t", 1)]
    # Query 2's outputs do not end with the workplace.
    others += [value[:-1] + b"4"] if case.query != "q2" else []
    records[row] = replace(records[row], value=random.choice(others))
    case.set_sink(records)
    case.become("incorrect", missing=1, extra=1, wrong=0, duplicate=0)


def duplicate(case: Case, random: Random) -> None:
    """Right outputs once more."""
    records = list(case.sink.records)
    count = random.randint(1, 4)
    chosen = [random.choice(case.sink.records) for _ in range(count)]
    records.extend(chosen)
    case.set_sink(records)
    guarantee = random.choice(["at-least-once", "exactly-once"])
    case.options["guarantee"] = guarantee
    verdict = "correct" if guarantee == "at-least-once" else "incorrect"
    case.become(verdict, duplicate=count, missing=0, extra=0, wrong=0)


def add_garbage(case: Case, random: Random) -> None:
    """An output that cannot be read."""
    records = list(case.sink.records)
    value = random.choice([None, b"", b"garbage", b"\xff\xfe\xfd", b"5;6;7", b";;;\t\t"])
    records.insert(random.randrange(len(records)), replace(records[0], value=value))
    case.set_sink(records)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def answer_too_much(case: Case, random: Random) -> None:
    """An input is answered that must not be."""
    value = case.source.records[calm(case, random)].value or b""
    value = b"9999" + value if case.query == "q0" else text_of(case, value)
    value += b",0.80" if case.query == "q2" else b""
    records = list(case.sink.records)
    records.insert(random.randrange(len(records)), replace(records[0], value=value))
    case.set_sink(records)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def swap(case: Case, random: Random) -> None:
    """Two neighbours change places."""
    records = list(case.sink.records)
    row = random.randrange(len(records) - 6)
    same = [
        n for n in range(row + 1, len(records)) if records[n].partition == records[row].partition
    ]
    if not same:
        return
    other = same[0]
    records[row], records[other] = (
        replace(records[row], value=records[other].value),
        replace(records[other], value=records[row].value),
    )
    case.set_sink(records)
    case.become("correct", out_of_order=1, missing=0, extra=0, wrong=0, duplicate=0)
    if case.query == "q4":
        # Two streams in one sink: records of different streams have no order.
        del case.counts["out_of_order"]


def deliver_twice(case: Case, random: Random) -> None:
    """An input twice, its output once or twice."""
    told = {record.value: place for place, record in enumerate(case.sink.records)}
    rows = [
        row
        for row, record in enumerate(case.source.records)
        if text_of(case, record.value or b"") in told
    ]
    row = random.choice(rows)
    place = told[text_of(case, case.source.records[row].value or b"")]
    records = list(case.source.records)
    records.insert(row, records[row])
    case.set_source(records)
    if random.random() < 0.5:
        case.become("incorrect", missing=1, duplicate=0, extra=0)
        return
    outputs = list(case.sink.records)
    outputs.insert(place, outputs[place])
    case.set_sink(outputs)
    case.options["guarantee"] = "exactly-once"
    case.become("correct", missing=0, duplicate=0, extra=0)


def cut_the_sink(case: Case, random: Random) -> None:
    """The end of the sink's file is cut off."""
    case.cut_sink = within_a_line(case.sink, random)
    case.become("unknown", extra=0, wrong=0)


def cut_the_source(case: Case, random: Random) -> None:
    """The end of the source's file is cut off."""
    case.cut_source = within_a_line(case.source, random)
    case.become("unknown", wrong=0, missing=0)
    if case.query == "q2":
        # Windows shift when a partition ends early: nothing is certain.
        case.become("unknown")


def lose_lines(case: Case, random: Random) -> None:
    """A line within the sink's file is lost."""
    records = list(case.sink.records)
    # The last of a partition leaves no gap behind.
    ends = {record.partition: record.offset for record in records}
    inner = [n for n, r in enumerate(records) if 0 < r.offset < ends[r.partition]]
    records.pop(random.choice(inner))
    case.sink = Topic(case.sink.name, records)
    sure = random.random() < 0.3
    if sure:
        case.options["claims"] = {"sink": Claim(complete=True)}
    case.become("incorrect" if sure else "unknown", missing=1, extra=0, wrong=0)


def lose_an_id(case: Case, random: Random) -> None:
    """An input was never captured, with or without a report that explains it."""
    records = list(case.source.records)
    row = calm(case, random)
    gone = (records.pop(row).value or b"").split(b";")[0]
    case.set_source(records)
    explained = random.random() < 0.5
    if explained:
        stream = {"stream": 1, "acknowledged": len(records), "failed": 1}
        case.options["sender_report"] = {"streams": [stream]}
        case.load_is_valid = False
    if case.query == "q0":
        outputs = [r for r in case.sink.records if (r.value or b"").split(b";")[0] != gone]
        case.set_sink(outputs)
    case.become("correct" if explained else "unknown", missing=0, extra=0, wrong=0)


def break_a_source_record(case: Case, random: Random) -> None:
    """An input becomes malformed."""
    records = list(case.source.records)
    row = calm(case, random)
    value = records[row].value or b""
    broken = random.choice(
        [None, b"broken", value + b"\t1", value.rsplit(b"\t", 1)[0], value.replace(b";", b",", 1)]
    )
    records[row] = replace(records[row], value=broken)
    case.set_source(records)
    case.become("correct", malformed=1, missing=0, extra=0, wrong=0)
    if case.query == "q0":
        case.become("incorrect", malformed=1, missing=1, extra=1, wrong=0)
        if random.random() < 0.5:
            outputs = [
                replace(r, value=broken) if r.value == value else r for r in case.sink.records
            ]
            case.set_sink(outputs)
            case.become("correct", malformed=1, missing=0, extra=0, wrong=0)


def mix_two_runs(case: Case, random: Random) -> None:
    """The outputs of another run behind those of this one."""
    other = fresh(case.query, random)
    while other.sink.records == case.sink.records:
        other = fresh(case.query, random)
    case.sink = Topic(case.sink.name, [*case.sink.records, *other.sink.records]).renumbered()
    case.correctness = "incorrect"


def empty_the_sink(case: Case, _random: Random) -> None:
    """No output at all."""
    count = len(case.sink.records)
    case.sink = Topic(case.sink.name)
    case.become("incorrect", missing=count, matched=0)


def stamp_too_early(case: Case, random: Random) -> None:
    """Outputs stamped before their inputs."""
    early = [
        replace(record, timestamp_ms=record.timestamp_ms - random.randint(0, 100))
        for record in case.sink.records
    ]
    case.set_sink(early)
    case.become("correct", missing=0, extra=0, wrong=0)


def cut_and_alter(case: Case, random: Random) -> None:
    """A wrong output in the intact part of a torn file."""
    records = list(case.sink.records)
    value = (records[0].value or b"").replace(b"\t0193\t", b"\t0194\t")
    records[0] = replace(records[0], value=value)
    case.set_sink(records)
    case.cut_sink = within_a_line(case.sink, random)
    case.become("incorrect", wrong=1)


MUTATIONS: list[Mutation] = [
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
