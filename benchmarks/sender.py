"""What the sender can do, beside Kafka's own ProducerPerformance, in one run on one machine.

On an embedded broker of its own in a temporary directory. Every figure is measured `--rounds` times
in turn, both programs alternating; the best round counts, and the worst stands beside it, because
a shared machine can only make things slower. `stolen` is the time that the machine's host kept for
others: with more than a few percent of it, lateness is the host's.

    python benchmarks/sender.py [--rounds 3] [--seconds 8] [--records 2000000] [--memory-minutes 0]
"""

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import psutil
from broker import broker, say, send, topics, write_sensor_rows

from espbench.config import Settings
from espbench.kafka.admin import KafkaAdmin
from espbench.services import jars
from espbench.services.endpoints import bootstrap_servers
from espbench.services.java import find_java

ACKS, BATCH_BYTES, LINGER_MS = "1", 1_000_000, 5
PUNCTUAL_RATES = (1_000, 10_000, 100_000)


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="of each punctual send")
    parser.add_argument("--records", type=int, default=2_000_000, help="of each flat-out send")
    parser.add_argument("--memory-minutes", type=float, default=0.0, help="0: leave it out")
    given = parser.parse_args()
    say(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f}, rounds {given.rounds}")
    with broker() as (settings, work):
        file = work / "sensor-1.csv"
        write_sensor_rows(file)
        if given.rounds:
            flat_out(settings, file, given.rounds, given.records)
            punctual(file, given.rounds, given.seconds)
        if given.memory_minutes:
            memory(file, given.memory_minutes)


def flat_out(settings: Settings, file: Path, rounds: int, records: int) -> None:
    """As many records a second as go, by the same settings and rows as Kafka's own tool."""
    options = ["--acks", ACKS, "--batch-bytes", str(BATCH_BYTES), "--linger-ms", str(LINGER_MS)]
    # Asked for far more than can be done: the sender never waits.
    options += ["--rate", "5000000", "--duration", str(records / 5_000_000), "--no-read-back"]
    ours, theirs = [], []
    for _ in range(rounds):
        theirs.append(producer_performance(settings, file, records))
        (row,) = send(file, *options)["streams"]
        ours.append(row["achieved_rate"])
    ratio = max(ours) / max(theirs)
    say(
        f"\nflat out, {records:,} records, acks={ACKS}, batches of {BATCH_BYTES:,} bytes, records/s"
    )
    say(f"  espbench send        best {max(ours):9,.0f}   worst {min(ours):9,.0f}")
    say(f"  ProducerPerformance  best {max(theirs):9,.0f}   worst {min(theirs):9,.0f}")
    say(f"  ratio of the best    {ratio:.2f} (at least 0.60 wanted: {told(ratio >= 0.6)})")


def producer_performance(settings: Settings, file: Path, records: int) -> float:
    """Records/s of org.apache.kafka.tools.ProducerPerformance."""
    path = [*jars.class_path(settings, "kafka"), *jars.class_path(settings, "kafka-tools")]
    java = find_java(settings)
    # Its report every 5 s and at the end; the last one is over everything.
    with topics() as run:
        command = [
            *(str(java.executable), "-Xmx512m", "-cp", os.pathsep.join(map(str, path))),
            *("org.apache.kafka.tools.ProducerPerformance", "--topic", f"espbench-{run}-1"),
            *("--num-records", str(records), "--throughput", "-1"),
            *("--payload-file", str(file), "--producer-props"),
            f"bootstrap.servers={bootstrap_servers(settings)}",
            *(f"acks={ACKS}", f"batch.size={BATCH_BYTES}", f"linger.ms={LINGER_MS}"),
            *("enable.idempotence=false", "compression.type=none", "buffer.memory=536870912"),
        ]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        found = re.findall(r"records sent, ([\d.]+) records/sec", answer.stdout)
        if answer.returncode or not found:
            raise SystemExit(answer.stdout + answer.stderr)
        arrived = sum(
            each.count
            for each in KafkaAdmin(bootstrap_servers(settings)).offsets(f"espbench-{run}-1")
        )
        if arrived != records:
            raise SystemExit(f"ProducerPerformance left {arrived:,} of {records:,} records")
        return float(found[-1])


def punctual(file: Path, rounds: int, seconds: float) -> None:
    """Achieved rates and lateness with default settings."""
    say(f"\npunctual, default settings, {seconds:g} s each; lateness in ms, best round (worst)")
    say("  asked/s  achieved/s   off %   handed p99        stamped p99       stolen %")
    for rate in PUNCTUAL_RATES:
        rows = []
        for _ in range(rounds):
            report = send(file, "--rate", str(rate), "--duration", str(seconds))
            (row,) = report["streams"]
            late = row["lateness_ms"]
            rows.append(
                (
                    late["appended"]["p99"],
                    late["handed"]["p99"],
                    row["achieved_rate"],
                    100 * (report["cpu_share"]["stolen"] or 0.0),
                )
            )
        best, worst = min(rows), max(rows)
        off = 100 * (best[2] / rate - 1)
        say(
            f"  {rate:7,}  {best[2]:10,.1f}  {off:6.3f}   {best[1]:6.1f} ({worst[1]:7.1f})"
            f"  {best[0]:6.1f} ({worst[0]:7.1f})   {best[3]:4.1f} ({worst[3]:4.1f})"
        )


def memory(file: Path, minutes: float) -> None:
    """Resident memory of the sender over time, at 1,000/s."""
    say(f"\nmemory of the sender at 1,000/s over {minutes:g} minutes, MiB")
    with topics() as run:
        command = [sys.executable, "-m", "espbench", "send", "--run", run, "--quiet", "--json"]
        command += ["--stream", f"1={file}", "--rate", "1000", "--duration", str(minutes * 60)]
        sending = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process = psutil.Process(sending.pid)
        begin, samples = time.monotonic(), []
        # The first seconds read the file and connect; the last ones read the topic back.
        while time.monotonic() - begin < minutes * 60 - 5 and sending.poll() is None:
            time.sleep(1)
            if time.monotonic() - begin > 10:
                samples.append(process.memory_info().rss / 2**20)
        sending.wait()
    quarter = max(1, len(samples) // 4)
    first, last = samples[:quarter], samples[-quarter:]
    say(f"  first quarter {sum(first) / len(first):.1f}, last quarter {sum(last) / len(last):.1f},")
    say(f"  lowest {min(samples):.1f}, highest {max(samples):.1f}")


def told(met: bool) -> str:
    """Yes or no."""
    return "met" if met else "missed"


if __name__ == "__main__":
    main()
