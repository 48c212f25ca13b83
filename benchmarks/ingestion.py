"""The study of 2020 of Kafka's ingestion again: what arrives of what is asked, setting by setting.

Every cell asks one broker on this machine for a rate during `--seconds` and tells what the topic
took in: records that the topic holds, by the time from the first to the last LogAppendTime. Then
the study of time stamps: how far LogAppendTime steps from one batch to the next at low rates.

    python benchmarks/ingestion.py [--seconds 3] [--rates 100000,250000,1000000] [--plot FILE.svg]

Published in 2020 by Hesse, Matthies and Uflacker on a broker of its own with four cores per
machine and one or more senders elsewhere: up to about 421,000 records/s, or 92 MB/s.
"""

import argparse
import itertools
import json
import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from broker import broker, espbench, say, send, topics, write_sensor_rows

PUBLISHED_BEST = 421_000
ACKS = ("0", "1", "all")
BATCH_BYTES = (16_384, 1_000_000)
IN_RAM = (True, False)
SENDERS = (1, 2)
# A client that carries each record by itself; it cannot follow, and one cell shows how far it gets.
PORTABLE = ("1", 16_384, True, 1, "kafka-python")
STAMP_RATES = (1_000, 10_000)
WIDTH, HEIGHT, LEFT = 760, 14, 330


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each cell")
    parser.add_argument("--rates", default="100000,250000,1000000")
    parser.add_argument("--plot", type=Path, help="write a bar for each cell to this SVG")
    given = parser.parse_args()
    rates = [int(rate) for rate in given.rates.split(",")]
    say(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}")
    cells = [
        (*cell, "confluent-kafka") for cell in itertools.product(ACKS, BATCH_BYTES, IN_RAM, SENDERS)
    ]
    with broker() as (_settings, work):
        file = work / "sensor-1.csv"
        write_sensor_rows(file)
        say("\n  asked/s    acks  batch bytes  in ram  senders  client           arrived/s    MB/s")
        bars = [
            (describe(rate, cell), measured(file, rate, cell, given.seconds))
            for rate in rates
            for cell in (*cells, PORTABLE)
        ]
        best = max(arrived for _, arrived in bars)
        say(f"  best {best:,.0f}/s; published best of 2020 {PUBLISHED_BEST:,}/s (other hardware)")
        for rate in STAMP_RATES:
            stamps(file, rate, work)
    if given.plot:
        given.plot.write_text(drawn(bars), encoding="utf-8")


Cell = tuple[str, int, bool, int, str]


def measured(file: Path, rate: int, cell: Cell, seconds: float) -> float:
    """Records/s that arrived; prints the cell's row."""
    acks, batch, in_ram, senders, client = cell
    options = ["--acks", acks, "--batch-bytes", str(batch), "--senders", str(senders)]
    options += ["--read-in-ram" if in_ram else "--no-read-in-ram", "--client", client]
    options += ["--no-idempotence", "--rate", str(rate), "--duration", str(seconds)]
    report = send(file, *options, "--no-read-back", partitions=senders)
    (row,) = report["streams"]
    arrived = float(row["achieved_rate"]) * (row["appended"] or 0) / max(row["handed"], 1)
    size = row_bytes(file) * arrived / 1e6
    say(
        f"  {rate:9,}  {acks:>4}  {batch:11,}  {'yes' if in_ram else 'no':>6}  {senders:7}"
        f"  {client:15}  {arrived:10,.0f}  {size:6.1f}"
    )
    return arrived


def row_bytes(file: Path) -> float:
    """The mean size of a message: a row, its id and its time."""
    with file.open("rb") as rows:
        sample = [len(line) for line in itertools.islice(rows, 1_000)]
    return sum(sample) / len(sample) + 20


def stamps(file: Path, rate: int, work: Path) -> None:
    """How LogAppendTime follows the schedule at a low rate: how late, and in which steps."""
    place = work / f"stamps-{rate}"
    with topics() as run:
        options = ["--rate", str(rate), "--duration", "5", "--out", f"{place}.json"]
        espbench("send", "--run", run, "--stream", f"1={file}", *options)
        espbench(
            "capture", "--run", run, "--query", "q3", "--sender-report", f"{place}.json",
            "--out", str(place),
        )  # fmt: skip
        (source,) = place.glob("*-1.parquet")
    report = json.loads(Path(f"{place}.json").read_text(encoding="utf-8"))
    late = report["streams"][0]["lateness_ms"]["appended"]
    shown = "  ".join(f"{key} {late[key]:g}" for key in ("p50", "p90", "p99", "max"))
    say(f"  time stamps at {rate:,}/s: LogAppendTime - due in ms: {shown}")
    times = pq.read_table(source, columns=["timestamp_ms"])["timestamp_ms"].to_numpy()
    distinct, records = np.unique(times, return_counts=True)
    for what, values in (
        ("ms from one stamp to the next", np.diff(distinct)),
        ("records of one stamp", records),
    ):
        p50, p90, p99, most = np.percentile(values, [50, 90, 99, 100])
        say(f"    {what}: p50 {p50:g}  p90 {p90:g}  p99 {p99:g}  max {most:g}")


def describe(rate: int, cell: Cell) -> str:
    """A bar's words."""
    acks, batch, in_ram, senders, client = cell
    ram = "in ram" if in_ram else "streamed"
    return f"{rate // 1000}k acks={acks} {batch:,} B {ram} x{senders} {client.split('-')[0]}"


def drawn(bars: list[tuple[str, float]]) -> str:
    """A horizontal bar for each cell, and a line at the published best."""
    longest = max(PUBLISHED_BEST, *(arrived for _, arrived in bars))
    scale = (WIDTH - LEFT - 70) / longest
    height = HEIGHT * len(bars) + 30
    style = 'font-family="sans-serif" font-size="10" fill="#555"'
    box = f'viewBox="0 0 {WIDTH} {height}"'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {box} {style}>']
    for number, (name, arrived) in enumerate(bars):
        y = 20 + HEIGHT * number
        parts.append(f'<text x="{LEFT - 6}" y="{y + 9}" text-anchor="end">{name}</text>')
        parts.append(
            f'<rect x="{LEFT}" y="{y}" width="{arrived * scale:.1f}" height="10" fill="#3b7dd8"/>'
        )
        x = LEFT + arrived * scale + 4
        parts.append(f'<text x="{x:.1f}" y="{y + 9}">{arrived:,.0f}</text>')
    x = LEFT + PUBLISHED_BEST * scale
    parts.append(f'<path d="M{x:.1f} 16V{height}" stroke="#c0392b" stroke-dasharray="3 3"/>')
    parts.append(f'<text x="{x:.1f}" y="12" fill="#c0392b">best of 2020: 421,000/s</text></svg>')
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
