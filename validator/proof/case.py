"""A small right capture of each query, made without any oracle, and how a mutated one is judged."""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from espbench.names import find_query
from validator.judge import judge
from validator.oracles.sos import probabilities
from validator.request import Request
from validator.synthetic import (
    START_MS,
    Plan,
    Record,
    Topic,
    errors_sink,
    identity_sink,
    source,
    well_formed,
)
from validator.topics import Claim, TopicFile

Rows = list[dict[str, Any]]
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the database holds UTC without a zone
WINDOW = 500
DELAY_MS = 20
NEAR = 0.001


@dataclass
class Case:
    """A capture under mutation, and what the verdict must then be.

    `source` is the stream that mutations change, `others` those that they leave alone. A part of
    a file's end is cut off by `cut_sink`, `cut_source` and `cut_table`, in bytes.
    """

    query: str
    source: Topic
    sink: Topic
    others: dict[int, Topic] = field(default_factory=dict)
    tables: dict[str, Rows] = field(default_factory=dict)
    correctness: str = "correct"
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    cut_sink: int = 0
    cut_source: int = 0
    cut_table: int = 0
    load_is_valid: bool = True

    def become(self, correctness: str, **counts: int) -> None:
        """Say what the verdict must be; what is not named may be anything."""
        self.correctness = correctness
        self.counts = counts

    def set_sink(self, records: list[Record]) -> None:
        """Other outputs, with offsets that run from 0."""
        self.sink = Topic(self.sink.name, records).renumbered()

    def set_source(self, records: list[Record]) -> None:
        """Other inputs, likewise."""
        self.source = Topic(self.source.name, records).renumbered()


Mutation = Callable[[Case, Random], None]


def fresh(query: str, random: Random) -> Case:
    """A right capture."""
    return _MAKERS[query](random)


def check(case: Case) -> str | None:
    """Judge a case; None where the verdict is as it must be, else what is not."""
    with tempfile.TemporaryDirectory() as place:
        found = _judged(case, Path(place))
    counts = found["counts"]
    if found["correctness"] != case.correctness:
        return f"{found['correctness']}, not {case.correctness}: {found['problems']}"
    for name, wanted in case.counts.items():
        if counts[name] != wanted:
            return f"{counts[name]} {name}, not {wanted}"
    if counts["expected"] != counts["matched"] + counts["missing"] + counts["wrong"]:
        return f"the counts do not add up: {counts}"
    fine = 0 if case.load_is_valid else 5
    code = {"correct": fine, "incorrect": 4, "unknown": 5}[case.correctness]
    return None if found["exit"] == code else f"exit code {found['exit']}, not {code}"


def _judged(case: Case, place: Path) -> dict[str, Any]:
    query = find_query(case.query)
    options = dict(case.options)
    claims: dict[str, Claim] = options.pop("claims", {})

    def file(role: str, topic: Topic, cut: int) -> TopicFile:
        content = topic.json_lines()
        path = place / f"{role}.jsonl"
        path.write_bytes(content[: len(content) - cut])
        return TopicFile(role, path, claims.get(role, Claim()))

    first = query.streams[0]
    sources = {first: file(f"source-{first}", case.source, case.cut_source)}
    sources |= {n: file(f"source-{n}", topic, 0) for n, topic in case.others.items()}
    tables = {}
    for name, rows in case.tables.items():
        tables[name] = place / f"{name}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), tables[name])
        content = tables[name].read_bytes()
        tables[name].write_bytes(content[: len(content) - case.cut_table])
    verdict = judge(
        Request(
            query=query,
            sources=sources,
            sink=file("sink", case.sink, case.cut_sink) if query.sink else None,
            tables=tables,
            **options,
        )
    )
    return verdict.document() | {"exit": int(verdict.exit_code())}


def _plan(random: Random, workplace: int = 1) -> Plan:
    return Plan(
        records=random.randint(150, 250),
        partitions=random.choice([1, 1, 2, 3]),
        seed=random.randint(0, 10**9),
        error_share=0.2,
        workplace=workplace,
    )


def _identity(random: Random) -> Case:
    plan = _plan(random)
    stream = source(plan)
    return Case("q0", stream, identity_sink(stream, plan))


def _errors(random: Random) -> Case:
    plan = _plan(random)
    stream = source(plan)
    return Case("q3", stream, errors_sink(stream, plan))


def mf01(record: Record) -> int:
    """The first measurement of a well-formed record."""
    return int((record.value or b"").split(b"\t")[2])


def _status(random: Random) -> Case:
    stream = source(_plan(random))
    windows: dict[int, list[int]] = {}
    for record in stream.records:
        windows.setdefault(record.timestamp_ms // 1_000 * 1_000, []).append(mf01(record))
    sink = Topic("sink")
    partitions = random.choice([1, 2])
    for start, seen in windows.items():
        value = f"{sum(seen) / len(seen):.3f},{min(seen)},{max(seen)},{len(seen)}"
        sink.add(
            start + 1_000 + DELAY_MS, value.encode(), start // 1_000 % partitions, b"%d" % start
        )
    return Case("q1", stream, sink)


@cache
def _outlier_windows(seed: int) -> tuple[Topic, Topic]:
    """Two windows and a rest, and what query 2 should answer."""
    random = np.random.default_rng(seed)
    points = random.normal((13_500, 14_500), (100, 160), (2 * WINDOW + 77, 2)).astype(np.int64)
    stream, sink = Topic("in"), Topic("out")
    plan = source(Plan(records=len(points), seed=seed))
    for record, (first, second) in zip(plan.records, points.tolist(), strict=True):
        columns = (record.value or b"").split(b"\t")
        columns[2], columns[3] = b"%d" % first, b"%d" % second
        stream.add(record.timestamp_ms, b"\t".join(columns))
    for begin in (0, WINDOW):
        found = probabilities(points[begin : begin + WINDOW].astype(np.float64), newton=False)
        if (np.abs(found - 0.5) < NEAR).any():
            # At the borderline every verdict is right: no case for a mutation.
            return _outlier_windows(seed + 1_000)
        when = stream.records[begin + WINDOW - 1].timestamp_ms + DELAY_MS
        for place in np.flatnonzero(found >= 0.5).tolist():
            number, _, line = (stream.records[begin + place].value or b"").split(b";", 2)
            sink.add(when, number + b";" + line + b",%.2f" % found[place])
    return stream, sink


def _outliers(random: Random) -> Case:
    stream, sink = _outlier_windows(random.randrange(4))
    return Case("q2", Topic("in", list(stream.records)), Topic("out", list(sink.records)))


def time(epoch_ms: float) -> datetime:
    """As a database holds it."""
    return EPOCH + timedelta(milliseconds=epoch_ms)


def low_and_up(case: Case) -> Iterable[tuple[Topic, Record, bytes]]:
    """Inputs of query 4 that call for an output: stream, record, output."""
    rows = case.tables["workplace"]
    for stream in (case.source, *case.others.values()):
        for record, number, line in well_formed(stream):
            columns = line.split("\t")
            when = time(record.timestamp_ms)
            down = any(
                row["wp_id"] == int(columns[56])
                and row["wp_downtime_start"] <= when <= row["wp_downtime_end"]
                for row in rows
            )
            if int(columns[4]) < 8_105 and not down:
                yield stream, record, f"{number};{line}".encode()


def _power(random: Random) -> Case:
    plan = _plan(random)
    second = source(_plan(random, workplace=2), "in-2")
    # Between two records, far from both: nothing is at the borderline.
    begin = START_MS + 512.0
    downtimes = [
        {
            "wp_id": wp_id,
            "wp_dt_id": number,
            "wp_downtime_start": time(begin + 1_000 * number),
            "wp_downtime_end": time(begin + 1_000 * number + 480),
        }
        for wp_id in (1, 2, 3)
        for number in range(3)
    ]
    case = Case("q4", source(plan), Topic("out"), {2: second}, {"workplace": downtimes})
    answers = sorted(low_and_up(case), key=lambda answer: answer[1].timestamp_ms)
    for _, record, value in answers:
        case.sink.add(record.timestamp_ms + DELAY_MS, value, record.partition)
    return case


def _stamps(random: Random) -> Case:
    stream = Topic("in")
    rows: Rows = []
    lines = random.randint(30, 60)
    partitions = random.choice([1, 2])
    for number in range(2 * lines):
        line, is_end = divmod(number, 2)
        due = START_MS + number * 20
        keys = (line // 10 + 1, line % 10 + 1, 1)
        value = f"{number};{due};{keys[0]}\t{keys[1]}\t{keys[2]}\t{is_end}"
        stream.add(due + 1, value.encode(), line % partitions)
        if not is_end:
            names = ("pol_o_id", "pol_ol_number", "pol_number")
            rows.append(dict(zip(names, keys, strict=True)))
        rows[line]["pol_end_ts" if is_end else "pol_start_ts"] = time(due + 1 + DELAY_MS)
    untouched = {"pol_o_id": 999, "pol_ol_number": 1, "pol_number": 1}
    rows.append(untouched | {"pol_start_ts": None, "pol_end_ts": None})
    return Case("q5", stream, Topic("none"), tables={"production_order_line": rows})


_MAKERS: dict[str, Callable[[Random], Case]] = {
    "q0": _identity,
    "q1": _status,
    "q2": _outliers,
    "q3": _errors,
    "q4": _power,
    "q5": _stamps,
}
