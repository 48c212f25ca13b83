"""How far the host's count of processor time is off for work that comes in step with its ticks.

A process that works for a fifth of every millisecond is counted three ways: by its own counters, by
those of all processes, by the host's. It wakes at one moment of the millisecond, then at others.
Nothing else should run.

    python benchmarks/ticks.py [--seconds 5]
"""

import argparse
import time

import psutil

from espbench.monitor import processes
from espbench.monitor.host import read_host

PERIOD_NS = 1_000_000
WORK_NS = 200_000
PHASES_NS = (0, 200_000, 400_000, 600_000, 800_000)


def main() -> None:
    """Measure and tell, in percent of a core."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0)
    seconds = parser.parse_args().seconds
    print("wakes at ms   by itself   all processes   host")
    for phase_ns in PHASES_NS:
        before, begun = counters(), time.monotonic()
        work(phase_ns, seconds)
        took = time.monotonic() - begun
        own, everyone, host = (
            100 * (now - then) / took for now, then in zip(counters(), before, strict=True)
        )
        print(f"{phase_ns / PERIOD_NS:11.1f} {own:11.0f} {everyone:15.0f} {host:6.0f}")


def counters() -> tuple[float, float, float]:
    """Seconds so far: of this process, of all processes, of the host."""
    table = processes.table()
    everyone = sum(process.cpu_s - process.waited_s for process in table.values())
    own = psutil.Process().cpu_times()
    return own.user + own.system, everyone, read_host(0).busy_s


def work(phase_ns: int, seconds: float) -> None:
    """Work at the same moment of every millisecond."""
    wake = time.monotonic_ns() // PERIOD_NS * PERIOD_NS + phase_ns
    end = wake + int(seconds * 1e9)
    while wake < end:
        wake += PERIOD_NS
        time.sleep(max(0, wake - time.monotonic_ns()) / 1e9)
        busy_until = time.monotonic_ns() + WORK_NS
        while time.monotonic_ns() < busy_until:
            pass


if __name__ == "__main__":
    main()
