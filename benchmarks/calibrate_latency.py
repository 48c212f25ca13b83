"""Calibration of the latency: a fake system under test whose delays are known.

Through a real broker, it answers every record of stream 1 unchanged after a delay drawn from a
seeded log-normal distribution, and logs when it received and when it sent each. Topics are captured
and judged as those of any system; what the verdict says is held against the log.

    python benchmarks/calibrate_latency.py [--records 30000] [--rate 500] [--bootstrap-servers HOST]

Without an address an embedded broker is started in a temporary directory.
"""

import argparse
import gc
import heapq
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import confluent_kafka
import numpy as np
import pyarrow.parquet as pq

from espbench import services
from espbench.config import load_settings
from espbench.services.endpoints import bootstrap_servers
from validator.synthetic import sensor_line

ROOT = Path(__file__).parents[1]
PERCENTILES = {"p50": 50, "p90": 90, "p95": 95, "p99": 99}
MEDIAN_MS, SPREAD = 40.0, 0.6
PATIENCE_S = 60.0
Log = dict[int, tuple[float, float]]


def main() -> None:
    """Send, answer, capture, judge and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap-servers", default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with ExitStack() as cleanup:
        place = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="espbench-cal-")))
        address = given.bootstrap_servers or embedded(place, cleanup)
        found = calibrate(place, address, given.records, given.rate, given.seed)
    print(json.dumps(found, indent=2) if given.json else "\n".join(table(found)))


def embedded(place: Path, cleanup: ExitStack) -> str:
    """An embedded broker of our own."""
    place.chmod(0o755)
    jars = ROOT / ".espbench" / "jars"
    jars.mkdir(parents=True, exist_ok=True)
    (place / "jars").symlink_to(jars)
    settings = load_settings(None, {"state_dir": place})
    (service,) = services.select(settings, ["kafka"])
    cleanup.callback(service.stop)
    service.start()
    return bootstrap_servers(settings)


def calibrate(place: Path, address: str, records: int, rate: float, seed: int) -> dict[str, Any]:
    """All figures in milliseconds."""
    run = f"cal{os.getpid()}"
    where = ["--bootstrap-servers", address]
    espbench(place, "topics", "create", "--run", run, "--queries", "q0", *where)
    log = converse(address, f"espbench-{run}-1", f"espbench-{run}-identity", records, rate, seed)
    capture = str(place / "capture")
    espbench(place, "capture", "--run", run, "--query", "q0", "--out", capture, *where)
    out = str(place / "verdict")
    verdict = espbench(place, "validate", capture, "--out", out, "--warmup", "0", "--json")
    rows = pq.read_table(Path(out) / "latencies-identity.parquet").to_pydict()
    received, sent = np.array([log[number] for number in rows["id"]]).T
    logged = sent - received
    before, after = received - np.array(rows["in_ms"]), np.array(rows["out_ms"]) - sent
    reported = np.array(rows["latency_ms"], dtype=np.float64)
    return {
        "correctness": verdict["correctness"],
        "n": verdict["latency_ms"]["n"],
        "logged": _figures(logged),
        "reported": {name: verdict["latency_ms"][name] for name in PERCENTILES},
        "broker_in": _figures(before),
        "broker_out": _figures(after),
        # A stamp is a whole millisecond: an answer is never faster than its delay, but for these.
        "faster_than_logged": int((reported < logged - 2).sum()),
    }


def converse(
    address: str, source: str, sink: str, records: int, rate: float, seed: int
) -> dict[int, tuple[float, float]]:
    """Send records and answer them; per id when it was received and sent, epoch milliseconds."""
    sender = threading.Thread(target=send, args=(address, source, records, rate))
    delays = np.random.default_rng(seed).lognormal(np.log(MEDIAN_MS), SPREAD, records).tolist()
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": source,
            "fetch.wait.max.ms": 5,
            "enable.auto.commit": False,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(source, 0, 0)])
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 0})
    log: Log = {}
    waiting: list[tuple[float, int, float, bytes]] = []
    sender.start()
    deadline = time.time() + records / rate + PATIENCE_S
    gc.disable()
    while len(log) < records and time.time() < deadline:
        message = consumer.poll(0.0005)
        if message is not None and message.error() is None:
            now_ms = time.time() * 1_000
            value = message.value() or b""
            number = int(value.split(b";", 1)[0])
            heapq.heappush(waiting, (now_ms + delays[number], number, now_ms, value))
        while waiting and waiting[0][0] <= time.time() * 1_000:
            _, number, received_ms, value = heapq.heappop(waiting)
            log[number] = (received_ms, time.time() * 1_000)
            producer.produce(sink, value)
            producer.poll(0)
    gc.enable()
    producer.flush(PATIENCE_S)
    sender.join()
    consumer.close()
    if len(log) < records:
        raise SystemExit(f"only {len(log)} of {records} records came back in time")
    return log


def send(address: str, topic: str, records: int, rate: float) -> None:
    """Records at a steady rate."""
    producer = confluent_kafka.Producer({"bootstrap.servers": address, "linger.ms": 0})
    begun = time.time()
    for number in range(records):
        due = begun + number / rate
        time.sleep(max(0.0, due - time.time()))
        value = f"{number};{round(due * 1_000)};{sensor_line(number, 13_500, 14_500, 8_400)}"
        producer.produce(topic, value.encode())
        producer.poll(0)
    producer.flush(PATIENCE_S)


def espbench(place: Path, *words: str) -> Any:
    """Run a command; its JSON document where it has one. A missed gate is no failure here."""
    environment = {**os.environ, "ESPBENCH_STATE_DIR": str(place)}
    command = [sys.executable, "-m", "espbench", *words, "--quiet"]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=False)
    if done.returncode not in {0, 6}:
        raise SystemExit(f"espbench {words[0]} failed")
    return json.loads(done.stdout) if "--json" in words else None


def _figures(values: Any) -> dict[str, float]:
    return {name: float(np.percentile(values, percent)) for name, percent in PERCENTILES.items()}


def table(found: dict[str, Any]) -> list[str]:
    """The figures side by side."""
    names = {
        "logged": "logged by the system: sent - received",
        "reported": "reported by the verdict: out - in",
        "broker_in": "of that before it was received",
        "broker_out": "of that after it was sent",
    }
    lines = [f"{found['correctness']}, n {found['n']:,}"]
    lines += [f"| milliseconds | {' | '.join(PERCENTILES)} |", "|---|" + "---|" * len(PERCENTILES)]
    for key, name in names.items():
        shown = " | ".join(f"{found[key][percentile]:.2f}" for percentile in PERCENTILES)
        lines.append(f"| {name} | {shown} |")
    gaps = " | ".join(f"{found['reported'][p] - found['logged'][p]:+.2f}" for p in PERCENTILES)
    lines.append(f"| reported - logged | {gaps} |")
    return lines


if __name__ == "__main__":
    main()
