"""How long `espbench validate` takes, and how much memory, on captures of a five-minute run.

Makes a capture per query (10,000 records a second and stream for 300 s by default), validates it in
a process of its own and prints a table.

    python benchmarks/validate_captures.py [--queries q0,q3] [--times 10] [--json-lines]
"""

import argparse
import json
import multiprocessing
import os
import shutil
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

from datagen import signals
from espbench.names import Query, parse_queries
from validator.oracles.determine_outliers import outlier_probabilities
from validator.synthetic import START_MS, TOPIC_SCHEMA, sensor_line

DISTINCT_LINES = 60_011
DELAY_MS = 150
BATCH = 500_000
WINDOW = 500
Sources = dict[int, tuple[Any, Any]]


def main() -> None:
    """Make, validate and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", default="q0,q1,q2,q3,q4,q5")
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--rate", type=int, default=10_000)
    parser.add_argument("--times", type=int, default=1, help="how many times as long")
    parser.add_argument("--json-lines", action="store_true", help="topics as kcat writes them")
    parser.add_argument("--dir", type=Path, default=None)
    given = parser.parse_args()
    print("query                  records   seconds   peak MiB   verdict")
    spawned = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=given.dir) as place:
        for query in parse_queries(given.queries):
            directory = Path(place) / query.name
            # In a process of its own: a child's peak begins with the memory of its parent.
            maker = spawned.Process(
                target=make_capture,
                args=(directory, query, given.seconds * given.times, given.rate),
                kwargs={"json_lines": given.json_lines},
            )
            maker.start()
            maker.join()
            print(line(query, directory), flush=True)
            shutil.rmtree(directory)


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


def make_capture(
    directory: Path, query: Query, seconds: int, rate: int, *, json_lines: bool = False
) -> None:
    """A capture whose answers are right and 150 ms late."""
    directory.mkdir(parents=True)
    count = seconds * rate
    topics, tables = [], []
    if query.number == 5:
        # As many production times as three warehouses have, or fewer.
        count = min(count, 1_800_000)
        _write_production(directory, count, rate)
        tables = ["production_order_line"]
        topics.append(_topic("b-3", "source-3", count))
    else:
        sources = {stream: _lines(stream) for stream in query.streams}
        for stream, (lines, _) in sources.items():
            topics.append(_topic(f"b-{stream}", f"source-{stream}", count))
            _write_source(directory / f"b-{stream}.parquet", lines, count, rate)
        if query.number == 4:
            _write_downtimes(directory / "workplace.parquet", seconds)
            tables = ["workplace"]
        answers = _write_sink(directory / "b-sink.parquet", query, sources, count, rate)
        topics.append(_topic("b-sink", "sink", answers))
    for topic in topics if json_lines else []:
        topic["file"] = _as_json_lines(directory / topic["file"])
    document = {
        "format": "espbench-capture/1",
        "run": "benchmark",
        "query": query.name,
        "prefix": "b",
        "guarantee": "at-least-once",
        "rate": float(rate),
        "duration": count / rate,
        "warmup": 10.0,
        "topics": topics,
        "tables": [{"name": name, "file": f"{name}.parquet", "columns": []} for name in tables],
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


def _as_json_lines(path: Path) -> str:
    """Write the records of a topic as `kcat -C -J` does, in place of the file; its new name."""
    names = ["partition", "offset", "ts", "key", "payload"]
    written = path.with_suffix(".jsonl")
    with written.open("w", encoding="utf-8") as file:
        for batch in pq.ParquetFile(path).iter_batches():
            for row in batch.rename_columns(names).to_pylist():
                record = {"topic": path.stem, "tstype": "logappend", **row}
                file.write(json.dumps(record, separators=(",", ":"), default=bytes.decode) + "\n")
    path.unlink()
    return written.name


def _lines(stream: int) -> tuple[Any, Any]:
    """Distinct lines, and mf01, mf02, mf03 of them, as the data generator draws them."""
    drawn = signals.draw(2021, stream, 0, DISTINCT_LINES)
    measured = np.stack([drawn.mf01, drawn.mf02, drawn.mf03])
    lines = [
        sensor_line(number, *numbers, workplace=stream)
        for number, numbers in enumerate(zip(*measured.tolist(), strict=True))
    ]
    return pa.array(lines), measured


def _values(lines: Any, numbers: Any, rate: int, *, due: bool) -> tuple[Any, Any]:
    due_ms = START_MS + numbers * 1_000 // rate
    parts = [pa.array(numbers).cast(pa.string())]
    if due:
        parts.append(pa.array(due_ms).cast(pa.string()))
    parts.append(lines.take(pa.array(numbers % DISTINCT_LINES)))
    return pc.binary_join_element_wise(*parts, ";").cast(pa.binary()), due_ms


def _write_source(path: Path, lines: Any, count: int, rate: int) -> None:
    with pq.ParquetWriter(path, TOPIC_SCHEMA, compression="zstd") as writer:
        for begin in range(0, count, BATCH):
            numbers = np.arange(begin, min(begin + BATCH, count))
            values, due_ms = _values(lines, numbers, rate, due=True)
            writer.write_table(_rows(numbers, due_ms + 2, values))


def _write_sink(path: Path, query: Query, sources: Sources, count: int, rate: int) -> int:
    """What the query should answer; returns how many answers there are."""
    with pq.ParquetWriter(path, TOPIC_SCHEMA, compression="zstd") as writer:
        if query.number == 1:
            return _write_windows(writer, sources[1][1][0], count, rate)
        written = 0
        for begin in range(0, count, BATCH):
            numbers = np.arange(begin, min(begin + BATCH, count))
            for stream, (lines, measured) in sources.items():
                values, due_ms = _values(lines, numbers, rate, due=query.number == 0)
                chosen, shares = _chosen(query, stream, measured, numbers, due_ms + 2)
                values = values.filter(pa.array(chosen))
                if shares is not None:
                    values = pc.binary_join_element_wise(values, shares, b",")
                offsets = np.arange(written, written + len(values))
                # Query 2 answers when its window is full.
                last = numbers // WINDOW * WINDOW + WINDOW - 1
                ready_ms = START_MS + last * 1_000 // rate if query.number == 2 else due_ms
                writer.write_table(_rows(offsets, ready_ms[chosen] + 2 + DELAY_MS, values))
                written += len(values)
    return written


def _chosen(query: Query, stream: int, measured: Any, numbers: Any, stamps: Any) -> tuple[Any, Any]:
    """Which records are answered, and query 2's probabilities as text."""
    mf01, mf02, mf03 = measured[:, numbers % DISTINCT_LINES]
    if query.number == 2:
        points = np.stack([mf01, mf02], axis=-1).astype(np.float64)
        whole = len(points) // WINDOW
        found = outlier_probabilities(points[: whole * WINDOW].reshape(whole, WINDOW, 2))
        share = np.zeros(len(points))
        share[: whole * WINDOW] = found.reshape(-1)
        chosen = share >= 0.5
        texts = [b"%.2f" % one for one in share[chosen].tolist()]
        return chosen, pa.array(texts, pa.binary())
    if query.number == 3:
        return mf01 > 14_963, None
    if query.number == 4:
        down = (stamps - START_MS) // 10_000 % 2 == stream % 2
        return (mf03 < 8_105) & ~down, None
    return np.ones(len(numbers), dtype=np.bool_), None


def _write_windows(writer: Any, mf01: Any, count: int, rate: int) -> int:
    numbers = np.arange(count)
    stamps = START_MS + numbers * 1_000 // rate + 2
    values = mf01[numbers % DISTINCT_LINES].astype(np.int64)
    begins = np.flatnonzero(np.diff(stamps // 1_000, prepend=0))
    counts = np.diff(np.append(begins, count))
    figures = zip(
        (np.add.reduceat(values, begins) / counts).tolist(),
        np.minimum.reduceat(values, begins).tolist(),
        np.maximum.reduceat(values, begins).tolist(),
        counts.tolist(),
        strict=True,
    )
    starts = stamps[begins] // 1_000 * 1_000
    texts = pa.array([b"%.3f,%d,%d,%d" % one for one in figures], pa.binary())
    keys = pa.array([b"%d" % start for start in starts.tolist()], pa.binary())
    table = _rows(np.arange(len(begins)), starts + 1_000 + DELAY_MS, texts)
    writer.write_table(table.set_column(3, "key", keys))
    return len(begins)


def _write_downtimes(path: Path, seconds: int) -> None:
    """Ten seconds up, ten seconds down, the two machines by turns; edges far from any stamp."""
    rows = [
        {
            "wp_id": stream,
            "wp_dt_id": number,
            "wp_downtime_start": (START_MS + begin * 1_000) * 1_000 - 1_500,
            "wp_downtime_end": (START_MS + begin * 1_000 + 10_000) * 1_000 - 1_500,
        }
        for stream in (1, 2)
        for number, begin in enumerate(range(10 * (stream % 2), seconds, 20))
    ]
    table = pa.Table.from_pylist(rows)
    for name in ("wp_downtime_start", "wp_downtime_end"):
        place = table.column_names.index(name)
        table = table.set_column(place, name, table.column(name).cast(pa.timestamp("us")))
    pq.write_table(table, path)


def _write_production(directory: Path, count: int, rate: int) -> None:
    """Production times in the order of the lines, and the table that they stamp."""
    lines = count // 2
    order, line = np.arange(lines) // 10 + 1, np.arange(lines) % 10 + 1
    with pq.ParquetWriter(directory / "b-3.parquet", TOPIC_SCHEMA, compression="zstd") as writer:
        for begin in range(0, count, BATCH):
            numbers = np.arange(begin, min(begin + BATCH, count))
            due_ms = START_MS + numbers * 1_000 // rate
            head = [pa.array(numbers).cast(pa.string()), pa.array(due_ms).cast(pa.string())]
            keys = [order[numbers // 2], line[numbers // 2], np.ones_like(numbers), numbers % 2]
            rows = pc.binary_join_element_wise(
                *(pa.array(key).cast(pa.string()) for key in keys), "\t"
            )
            values = pc.binary_join_element_wise(*head, rows, ";").cast(pa.binary())
            writer.write_table(_rows(numbers, due_ms + 2, values))
    stamps = [(START_MS + (2 * np.arange(lines) + end) * 1_000 // rate + 152) for end in (0, 1)]
    table = {
        "pol_o_id": order,
        "pol_ol_number": line,
        "pol_number": np.ones(lines, dtype=np.int64),
        "pol_start_ts": pa.array(stamps[0] * 1_000).cast(pa.timestamp("us")),
        "pol_end_ts": pa.array(stamps[1] * 1_000).cast(pa.timestamp("us")),
        "end_commit_ts": pa.array(stamps[1] * 1_000 + 500).cast(pa.timestamp("us")),
    }
    pq.write_table(pa.table(table), directory / "production_order_line.parquet")


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
