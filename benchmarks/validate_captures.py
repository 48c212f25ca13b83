"""How long `espbench validate` takes, and how much memory, on captures of a five-minute run.

Makes a capture per query (10,000 records a second and stream for 300 s by default), validates it in
a process of its own and prints a table.

    python benchmarks/validate_captures.py --queries q0,q3 [--seconds 300] [--rate 10000]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from espbench.names import Query, parse_queries
from validator.synthetic import START_MS, TOPIC_SCHEMA, sensor_line

DISTINCT_LINES = 60_011
DELAY_MS = 150
BATCH = 500_000


def main() -> None:
    """Make, validate and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", default="q0,q3")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--dir", type=Path, default=None)
    given = parser.parse_args()
    print("query                  records   seconds   peak MiB   verdict")
    with tempfile.TemporaryDirectory(dir=given.dir) as place:
        for query in parse_queries(given.queries):
            directory = Path(place) / query.name
            make_capture(directory, query, given.seconds, given.rate)
            print(line(query, directory))


def line(query: Query, directory: Path) -> str:
    """Validate in a child process, so that its memory is its own."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "espbench", "validate", str(directory), "--json", "--quiet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None  # noqa: S101 - asked for above
        document = json.loads(child.stdout.read())
        _, _, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - begun
    records = document["counts"]["input"]
    peak = usage.ru_maxrss / 1024
    return f"{query.name:20} {records:10,} {took:9.1f} {peak:10,.0f}   {document['correctness']}"


def make_capture(directory: Path, query: Query, seconds: int, rate: int) -> None:
    """A capture whose answers are right and 150 ms late."""
    directory.mkdir(parents=True)
    count = seconds * rate
    topics = []
    sources = {}
    for stream in query.streams:
        lines, mf01, mf03 = _lines(stream)
        sources[stream] = (lines, mf01, mf03)
        topics.append(_topic(f"b-{stream}", f"source-{stream}", count))
        _write_source(directory / f"b-{stream}.parquet", lines, count, rate)
    answers = _write_sink(directory / "b-sink.parquet", query, sources[1], count, rate)
    topics.append(_topic("b-sink", "sink", answers))
    document = {
        "format": "espbench-capture/1",
        "run": "benchmark",
        "query": query.name,
        "prefix": "b",
        "guarantee": "at-least-once",
        "rate": float(rate),
        "duration": float(seconds),
        "warmup": 10.0,
        "topics": topics,
        "tables": [],
        "sender_report": None,
        "freshness": 10,
        "clocks": [],
        "versions": {},
    }
    (directory / "capture.json").write_text(json.dumps(document), encoding="utf-8")


def _topic(name: str, role: str, end: int) -> dict[str, Any]:
    return {
        "name": name,
        "role": role,
        "file": f"{name}.parquet",
        "timestamp_type": "LogAppendTime",
        "complete": True,
        "partitions": [{"partition": 0, "begin": 0, "end": end, "leader": 1}],
    }


def _lines(stream: int) -> tuple[Any, Any, Any]:
    random = np.random.default_rng(stream)
    mf01 = np.where(
        random.random(DISTINCT_LINES) < 0.0042,
        random.integers(14_964, 21_000, DISTINCT_LINES),
        random.integers(13_000, 14_963, DISTINCT_LINES),
    )
    mf02 = random.integers(14_000, 15_000, DISTINCT_LINES)
    mf03 = random.integers(8_030, 8_800, DISTINCT_LINES)
    lines = [
        sensor_line(number, *numbers, workplace=stream)
        for number, numbers in enumerate(zip(mf01, mf02, mf03, strict=True))
    ]
    return pa.array(lines), mf01, mf03


def _values(lines: Any, begin: int, end: int, rate: int, *, due: bool) -> tuple[Any, Any]:
    numbers = np.arange(begin, end)
    due_ms = START_MS + numbers * 1_000 // rate
    parts = [pa.array(numbers).cast(pa.string())]
    if due:
        parts.append(pa.array(due_ms).cast(pa.string()))
    parts.append(lines.take(pa.array(numbers % DISTINCT_LINES)))
    return pc.binary_join_element_wise(*parts, ";").cast(pa.binary()), due_ms


def _write_source(path: Path, lines: Any, count: int, rate: int) -> None:
    with pq.ParquetWriter(path, TOPIC_SCHEMA, compression="zstd") as writer:
        for begin in range(0, count, BATCH):
            end = min(begin + BATCH, count)
            values, due_ms = _values(lines, begin, end, rate, due=True)
            writer.write_table(_rows(np.arange(begin, end), due_ms + 2, values))


def _write_sink(path: Path, query: Query, first: Any, count: int, rate: int) -> int:
    lines, mf01, _ = first
    written = 0
    with pq.ParquetWriter(path, TOPIC_SCHEMA, compression="zstd") as writer:
        for begin in range(0, count, BATCH):
            end = min(begin + BATCH, count)
            values, due_ms = _values(lines, begin, end, rate, due=query.name == "identity")
            chosen = np.ones(end - begin, dtype=np.bool_)
            if query.name == "identify-errors":
                chosen = mf01[np.arange(begin, end) % DISTINCT_LINES] > 14_963
            answers = int(chosen.sum())
            offsets = np.arange(written, written + answers)
            rows = _rows(offsets, due_ms[chosen] + 2 + DELAY_MS, values.filter(pa.array(chosen)))
            writer.write_table(rows)
            written += answers
    return written


def _rows(offsets: Any, stamps: Any, values: Any) -> Any:
    return pa.table(
        {
            "partition": np.zeros(len(offsets), dtype=np.int32),
            "offset": offsets,
            "timestamp_ms": stamps,
            "key": pa.nulls(len(offsets), pa.binary()),
            "value": values,
        },
        schema=TOPIC_SCHEMA,
    )


if __name__ == "__main__":
    main()
