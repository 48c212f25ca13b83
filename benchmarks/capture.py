"""How fast `espbench capture` reads a topic, and how much memory it takes.

Fills a topic of a broker of its own and captures it several times, start of Python included.

    python benchmarks/capture.py [--records 3000000] [--partitions 1]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from broker import broker, espbench, say, topics, write_sensor_rows

FILL_RATE = 100_000
TIMES = 3


def main() -> None:
    """Fill, capture and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=3_000_000)
    parser.add_argument("--partitions", type=int, default=1)
    given = parser.parse_args()
    with broker() as (_, work), topics(given.partitions) as run:
        rows = work / "rows.csv"
        write_sensor_rows(rows)
        seconds = str(given.records / FILL_RATE)
        load = ["--stream", f"1={rows}", "--rate", str(FILL_RATE), "--duration", seconds]
        sent = espbench("send", "--run", run, *load, "--json")
        if not sent.stdout:
            raise SystemExit(sent.stderr)
        say(f"{json.loads(sent.stdout)['streams'][0]['acknowledged']:,} records in the topic")
        say("  seconds   records/s   peak MiB")
        for number in range(TIMES):
            say(capture(run, work / f"capture-{number}"))


def capture(run: str, out: Path) -> str:
    """One capture, in a process of its own."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "espbench", "capture", "--run", run, "--query", "q3"]
    with subprocess.Popen([*command, "--out", str(out), "--json", "--quiet"], stdout=-1) as child:
        assert child.stdout is not None  # noqa: S101 - asked for above
        document = json.loads(child.stdout.read())
        _, _, usage = os.wait4(child.pid, 0)
    took = time.perf_counter() - begun
    records = sum(topic["records"] for topic in document["topics"])
    return f"{took:9.1f} {records / took:11,.0f} {usage.ru_maxrss / 1024:10,.0f}"


if __name__ == "__main__":
    main()
