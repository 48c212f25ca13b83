"""What watching costs: the monitor's own share of a core, beside embedded services and a sender.

Starts Kafka and PostgreSQL in a temporary state directory (jars of the checkout), sends a stream to
the broker, and lets the monitor watch all of it, itself included. The share is measured from
outside, by the CPU time of the monitor's process between two moments, and compared with what the
monitor says of itself.

    python benchmarks/monitor.py [--seconds 30] [--interval 1] [--idle-processes 0]
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pyarrow.compute as pc
import pyarrow.parquet as pq

from espbench import services
from espbench.config import load_settings

ROOT = Path(__file__).parents[1]
SETTLE_S = 3.0


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--idle-processes", type=int, default=0, help="to fill the process table")
    given = parser.parse_args()
    with ExitStack() as cleanup:
        work = Path(cleanup.enter_context(tempfile.TemporaryDirectory()))
        (work / "jars").symlink_to(ROOT / ".espbench" / "jars")
        work.chmod(0o755)
        for service in services.select(load_settings(None, {"state_dir": work})):
            cleanup.callback(service.stop)
            service.start()
        for _ in range(given.idle_processes):
            idle = subprocess.Popen(["sleep", "3600"])
            cleanup.callback(idle.wait)
            cleanup.callback(idle.kill)
        out = work / "system.parquet"
        share = measure(work, out, given.seconds, given.interval)
        table = pq.read_table(out)
    print(f"{len(psutil.pids())} processes, {os.cpu_count()} cores, every {given.interval:g} s")
    print(f"share of one core, from outside: {share:.2f} %")
    for name in sorted(set(table["component"].to_pylist())):
        rows = table.filter(pc.field("component") == name)
        cpu, rss = pc.mean(rows["cpu_percent"]).as_py(), pc.max(rows["rss_bytes"]).as_py()
        gc, threads = pc.mean(rows["gc_ms"]).as_py(), pc.max(rows["threads"]).as_py()
        more = "" if gc is None else f", GC {gc:.2f} ms/s"
        print(f"  {name:<12} {cpu:6.2f} % CPU, {rss / 2**20:6.0f} MiB, {threads} threads{more}")


def measure(work: Path, out: Path, seconds: float, interval: float) -> float:
    """The share of a core that the monitor takes, in percent."""
    own = {**os.environ, "ESPBENCH_STATE_DIR": str(work)}
    command = [sys.executable, "-m", "espbench", "monitor", "--auto", "--json"]
    monitor = subprocess.Popen(
        [*command, "--interval", str(interval), "--out", str(out)],
        env=own,
        stdout=subprocess.PIPE,
    )
    process = psutil.Process(monitor.pid)
    time.sleep(SETTLE_S)
    before, begin = sum(process.cpu_times()[:2]), time.monotonic()
    time.sleep(seconds)
    used, passed = sum(process.cpu_times()[:2]) - before, time.monotonic() - begin
    monitor.send_signal(signal.SIGTERM)
    answer, _ = monitor.communicate()
    print(json.loads(answer))
    return 100 * used / passed


if __name__ == "__main__":
    main()
