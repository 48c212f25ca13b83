"""Calibration of the latency: a fake system under test whose delays are known.

Through a real broker, it answers every record of stream 1 unchanged after a delay drawn from a
seeded log-normal distribution. Sender and system are processes of their own; each logs, by its own
clock, when it handed a record to its client, when that was acknowledged and when one was received.
Topics are captured and judged as those of any system. Told apart are

  arithmetic   the verdict's percentiles against those of the stamps that the broker told the two
               clients: what the validator itself adds, which must be nothing
  log          every latency of the verdict against the clients' clocks alone: a record was appended
               between its handing over and its acknowledgement, halfway as far as one can tell
  broker       what client and broker add before a record is received and after one is handed over

    python benchmarks/calibrate_latency.py [--records 30000] [--rate 500] [--bootstrap-servers HOST]

Without an address an embedded broker is started in a temporary directory. Records of the first
seconds (`--warmup`) warm everything up and are left out.
"""

import argparse
import gc
import heapq
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
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
# A stamp is a whole millisecond: the difference of two is off by less than one.
ROUNDING_MS = 1.0
# Nothing is collected before it is sent, and no small packet waits for another's receipt.
FAST = {"linger.ms": 0, "socket.nagle.disable": True, "acks": 1}


def main() -> None:
    """Send, answer, capture, judge and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=30_000)
    parser.add_argument("--rate", type=float, default=500.0)
    parser.add_argument("--warmup", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bootstrap-servers", default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    with ExitStack() as cleanup:
        place = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="espbench-cal-")))
        address = given.bootstrap_servers or embedded(place, cleanup)
        found = calibrate(place, address, given)
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


def calibrate(place: Path, address: str, given: argparse.Namespace) -> dict[str, Any]:
    """All figures in milliseconds."""
    run = f"cal{os.getpid()}-{time.time_ns() % 10**9}"
    where = ["--bootstrap-servers", address]
    espbench(place, "topics", "create", "--run", run, "--queries", "q0", *where)
    source, sink = f"espbench-{run}-1", f"espbench-{run}-identity"
    logs = converse(place, address, (source, sink), given)
    capture = str(place / "capture")
    espbench(place, "capture", "--run", run, "--query", "q0", "--out", capture, *where)
    out, warmup = str(place / "verdict"), str(given.warmup)
    verdict = espbench(place, "validate", capture, "--out", out, "--warmup", warmup, "--json")
    rows = pq.read_table(Path(out) / "latencies-identity.parquet").to_pydict()
    after = np.array(rows["after_warmup"], dtype=np.bool_)
    reported = np.array(rows["latency_ms"], dtype=np.float64)[after]
    log = {name: values[np.array(rows["id"])[after]] for name, values in logs.items()}
    figures = {name: verdict["latency_ms_after_warmup"][name] for name in PERCENTILES}
    told = _figures(log["out_stamp"] - log["in_stamp"])
    halfway = (log["sent"] + log["sent_acked"] - log["handed"] - log["handed_acked"]) / 2
    # What is received was appended, whenever its acknowledgement came.
    least = log["sent"] - np.minimum(log["handed_acked"], log["received"])
    most = log["sent_acked"] - log["handed"]
    inside = (reported > least - ROUNDING_MS) & (reported < most + ROUNDING_MS)
    return {
        "correctness": verdict["correctness"],
        "n": len(reported),
        "reported": figures,
        "stamps": told,
        "arithmetic_error": {name: figures[name] - told[name] for name in PERCENTILES},
        "log": _figures(halfway),
        "log_error": {name: figures[name] - _figures(halfway)[name] for name in PERCENTILES},
        "outside_log": int((~inside).sum()),
        "delay": _figures(log["sent"] - log["received"]),
        "broker_in": _figures(log["received"] - log["in_stamp"]),
        "broker_out": _figures(log["out_stamp"] - log["sent"]),
        "round_trip": _figures(log["sent_acked"] - log["sent"]),
    }


def converse(
    place: Path, address: str, topics: tuple[str, str], given: argparse.Namespace
) -> dict[str, Any]:
    """Send records and answer them; the times of each by id, in epoch milliseconds."""
    fresh = multiprocessing.get_context("spawn")
    ready = fresh.Event()
    files = [place / "sent.npz", place / "answered.npz"]
    count = (given.records, given.rate)
    answering = fresh.Process(
        target=answer, args=(address, topics, count, given.seed, ready, files[1])
    )
    sending = fresh.Process(target=send, args=(address, topics[0], count, ready, files[0]))
    for each in (answering, sending):
        each.start()
    for each in (sending, answering):
        each.join(given.records / given.rate + 2 * PATIENCE_S)
    if answering.exitcode or sending.exitcode or not all(file.exists() for file in files):
        for each in (sending, answering):
            each.kill()
        raise SystemExit("sender or system did not come to their end")
    return {name: values for file in files for name, values in np.load(file).items()}


def answer(
    address: str,
    topics: tuple[str, str],
    count: tuple[int, float],
    seed: int,
    ready: Any,
    file: Path,
) -> None:
    """The fake system: answer every record after its delay."""
    (source, sink), (records, rate) = topics, count
    delays = np.random.default_rng(seed).lognormal(np.log(MEDIAN_MS), SPREAD, records).tolist()
    names = ("in_stamp", "received", "sent", "sent_acked", "out_stamp")
    log = {name: np.full(records, np.nan) for name in names}
    settings = {"group.id": source, "fetch.wait.max.ms": 2, "socket.nagle.disable": True}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": address, **settings})
    consumer.assign([confluent_kafka.TopicPartition(source, 0, 0)])
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **FAST})
    producer.list_topics(sink, PATIENCE_S)
    waiting: list[tuple[float, int, bytes]] = []
    answered = 0
    deadline = time.time() + records / rate + PATIENCE_S
    ready.set()
    gc.disable()
    while answered < records and time.time() < deadline:
        message = consumer.poll(0.0005)
        if message is not None and message.error() is None:
            now_ms = time.time() * 1_000
            value = message.value() or b""
            number = int(value.split(b";", 1)[0])
            log["received"][number], log["in_stamp"][number] = now_ms, message.timestamp()[1]
            heapq.heappush(waiting, (now_ms + delays[number], number, value))
        while waiting and waiting[0][0] <= time.time() * 1_000:
            _, number, value = heapq.heappop(waiting)
            log["sent"][number] = time.time() * 1_000
            producer.produce(
                sink, value, partition=0, on_delivery=_noting(log, number, "sent_acked")
            )
            answered += 1
        producer.poll(0)
    producer.flush(PATIENCE_S)
    consumer.close()
    _keep(file, log)


def send(address: str, topic: str, count: tuple[int, float], ready: Any, file: Path) -> None:
    """Records at a steady rate."""
    records, rate = count
    log = {name: np.full(records, np.nan) for name in ("handed", "handed_acked")}
    producer = confluent_kafka.Producer({"bootstrap.servers": address, **FAST})
    producer.list_topics(topic, PATIENCE_S)
    ready.wait(PATIENCE_S)
    gc.disable()
    begun = time.time()
    for number in range(records):
        due = begun + number / rate
        while (left := due - time.time()) > 0:
            producer.poll(min(left, 0.0005))
        value = f"{number};{round(due * 1_000)};{sensor_line(number, 13_500, 14_500, 8_400)}"
        log["handed"][number] = time.time() * 1_000
        noting = _noting(log, number, "handed_acked")
        producer.produce(topic, value.encode(), partition=0, on_delivery=noting)
        producer.poll(0)
    producer.flush(PATIENCE_S)
    _keep(file, log)


def _noting(log: dict[str, Any], number: int, name: str) -> Any:
    """Note when a record was acknowledged, and the stamp that the acknowledgement tells."""

    def note(error: Any, message: Any) -> None:
        if error is None:
            log[name][number] = time.time() * 1_000
            if "out_stamp" in log:
                log["out_stamp"][number] = message.timestamp()[1]

    return note


def _keep(file: Path, log: dict[str, Any]) -> None:
    if any(np.isnan(values).any() for values in log.values()):
        raise SystemExit("not every record was received, sent and acknowledged in time")
    np.savez(file, **log)


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
        "reported": "reported by the verdict: out - in",
        "stamps": "by the stamps that the clients were told",
        "arithmetic_error": "error of the validator (must be 0)",
        "log": "by the clients' clocks alone",
        "log_error": "reported - clients' clocks (aim: 1 at most)",
        "delay": "the system's delay: sent - received",
        "broker_in": "added before: received - in",
        "broker_out": "added after: out - sent",
        "round_trip": "of an acknowledgement",
    }
    lines = [f"{found['correctness']}, n {found['n']:,}"]
    lines += [f"| milliseconds | {' | '.join(PERCENTILES)} |", "|---|" + "---|" * len(PERCENTILES)]
    for key, name in names.items():
        shown = " | ".join(f"{found[key][percentile]:.2f}" for percentile in PERCENTILES)
        lines.append(f"| {name} | {shown} |")
    lines.append(f"latencies that the clients' clocks rule out: {found['outside_log']:,}")
    return lines


if __name__ == "__main__":
    main()
