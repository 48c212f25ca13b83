"""What a run says, and what it leaves, when one of its parts is killed - at every step.

Every trial is a short run of one query in a directory of its own. As soon as a step has begun, and
after a random moment in it, one part is ended by `kill -9`: a server, Spark, the step's own
command, Ansible, or the run itself. A trial is good if the run ends with a documented exit code,
its last line names the cause, no traceback is shown, no process stays, and the run is kept as it
ended.

    python benchmarks/killed_runs.py [--steps send,capture] [--parts kafka,spark] [--query q5]

Needs nothing but this machine. About half a minute a trial.
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

STEPS = (
    "services", "data", "load", "topics", "reset", "monitoring-on", "query-start", "send", "drain",
    "monitoring-off", "capture", "validate", "cleanup", "stop",
)  # fmt: skip
DEADLINE_S = 240.0
# Of a step, before its part is killed.
LATEST_S = 0.4
# Everything that the run started must be gone so soon after its end.
SETTLED_S = 20.0
# Under `kill -9` of the run itself nobody is left to say a word.
SILENT = -signal.SIGKILL


class House:
    """A directory in which runs are made, and what runs for it."""

    def __init__(self, root: Path, query: str) -> None:
        self.root = root
        self._query = query
        (root / ".espbench").mkdir()
        jars = Path(__file__).resolve().parents[1] / ".espbench" / "jars"
        if jars.exists():
            (root / ".espbench" / "jars").symlink_to(jars)
        (root / "espbench.yml").write_text(
            "data: {scale: 1, sensor_rows: 60011}\nload: {rate: 500, duration: 5, warmup: 0}\n",
            encoding="utf-8",
        )

    def begin(self) -> "subprocess.Popen[str]":
        """Begin a run."""
        return subprocess.Popen(
            [sys.executable, "-m", "espbench", "run", "--queries", self._query],
            cwd=self.root,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def processes(self) -> list[psutil.Process]:
        """Everything that runs in or for this directory, oldest first."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                inside = process.cwd().startswith(str(self.root))
                named = any(str(self.root) in word for word in process.cmdline())
                if (inside or named) and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
        return sorted(found, key=lambda each: each.create_time())

    def with_words(self, wanted: Callable[[list[str]], bool]) -> psutil.Process | None:
        """The oldest process whose command line is wanted."""
        for process in self.processes():
            with suppress(psutil.Error):
                if wanted(process.cmdline()):
                    return process
        return None

    def server(self, name: str) -> psutil.Process | None:
        """The embedded server, where it runs."""
        file = self.root / ".espbench" / "services" / name / f"{name}.pid"
        with suppress(OSError, ValueError, psutil.Error):
            return psutil.Process(int(json.loads(file.read_text(encoding="utf-8"))["pid"]))
        return None

    def state(self) -> str:
        """How the newest run is written down."""
        files = sorted((self.root / "results").glob("*/run.json"))
        return str(json.loads(files[-1].read_text(encoding="utf-8"))["state"]) if files else "none"


# The words by which the command of a step is known.
COMMANDS = {
    "services": "up", "data": "datagen", "load": "load", "topics": "topics", "reset": "load",
    "monitoring-on": "background", "query-start": "background", "send": "send",
    "drain": "background", "monitoring-off": "background", "capture": "capture",
    "validate": "validate", "cleanup": "topics", "stop": "down",
}  # fmt: skip


def find(house: House, part: str, step: str) -> psutil.Process | None:
    """The process of a part, None where it does not run now."""
    if part in {"kafka", "postgresql"}:
        return house.server(part)
    if part == "ansible":
        return house.with_words(lambda words: any(w.endswith("/ansible-playbook") for w in words))
    word = {"run": "run", "query": "query", "monitor": "monitor"}.get(part)
    if part == "spark":
        return house.with_words(lambda words: "org.apache.spark.deploy.SparkSubmit" in words)
    return house.with_words(lambda words: words[1:4] == ["-m", "espbench", word or COMMANDS[step]])


PARTS = ("kafka", "postgresql", "ansible", "command", "query", "spark", "monitor", "run")


@dataclass(frozen=True)
class Outcome:
    """What became of a run."""

    code: int
    words: str
    faults: tuple[str, ...]


def trial(house: House, step: str, part: str, moment_s: float) -> Outcome | None:
    """Kill a part in a step; None where it never ran in this step."""
    child = house.begin()
    try:
        return _killed(house, child, step, part, moment_s)
    finally:
        # Interrupted here, the run must not go on without its directory.
        if child.poll() is None:
            child.terminate()
            child.wait(DEADLINE_S)


def _killed(
    house: House, child: "subprocess.Popen[str]", step: str, part: str, moment_s: float
) -> Outcome | None:
    said: list[str] = []
    begun = threading.Event()

    def listen() -> None:
        for line in child.stderr or ():
            said.append(line.rstrip("\n"))
            if re.fullmatch(rf"\d\d:\d\d:\d\d (\S+: )?{step}", line.strip()):
                begun.set()
        begun.set()

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    begun.wait(DEADLINE_S)
    time.sleep(moment_s)
    deadline = time.monotonic() + LATEST_S
    victim = None
    while victim is None and child.poll() is None and time.monotonic() < deadline:
        victim = child if part == "run" else find(house, part, step)
    if victim is not None:
        with suppress(psutil.NoSuchProcess):
            victim.kill()
    child.wait(DEADLINE_S)
    listener.join(10)
    left = settled(house)
    if victim is None:
        return None
    found = faults(house, child.returncode, said, left, silent=part == "run")
    return Outcome(child.returncode, last(said), found)


def settled(house: House) -> list[str]:
    """What still runs a while after the end; it is ended, so that the next trial is clean."""
    deadline = time.monotonic() + SETTLED_S
    while (left := house.processes()) and time.monotonic() < deadline:
        time.sleep(0.2)
    names = []
    for process in left:
        with suppress(psutil.Error):
            names.append(" ".join(process.cmdline())[:80])
            process.kill()
    return names


def faults(
    house: House, code: int, said: list[str], left: list[str], *, silent: bool
) -> tuple[str, ...]:
    """What is not as promised."""
    found = [f"left: {each}" for each in left]
    state = house.state()
    if silent:
        if code != SILENT:
            found.append(f"exit code {code}")
        return tuple(found)
    if any("Traceback" in line for line in said):
        found.append("traceback")
    # What dies when all is judged, or was asked to end anyway, spoils nothing.
    if code not in {0, 3, 5, 6}:
        found.append(f"exit code {code}")
    if code == 3 and not last(said).startswith("espbench: "):
        found.append("no line that tells why")
    if state != ("failed" if code == 3 else "finished"):
        found.append(f"kept as {state}")
    return tuple(found)


def last(said: list[str]) -> str:
    """The last line."""
    return said[-1] if said else ""


def main() -> None:
    """Kill, and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--steps", default=",".join(STEPS))
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--query", default="q5")
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: the time)")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    print(f"seed {seed}\n\n| step | killed | exit code | words | |", flush=True)
    print("|---|---|---|---|---|", flush=True)
    good = done = 0
    with tempfile.TemporaryDirectory(prefix="espbench-killed-") as name:
        os.environ["ESPBENCH_SPARK__REHEARSAL"] = "0"
        house = House(Path(name).resolve(), given.query)
        for step in given.steps.split(","):
            for part in given.parts.split(","):
                outcome = trial(house, step, part, chance.uniform(0, LATEST_S))
                if outcome is None:
                    continue
                done += 1
                good += not outcome.faults
                verdict = "; ".join(outcome.faults) or "good"
                words = outcome.words.replace(str(house.root), "…").replace("|", "/")
                print(f"| {step} | {part} | {outcome.code} | {words} | {verdict} |", flush=True)
    print(f"\n{good} of {done} ended as promised, seed {seed}")
    sys.exit(0 if good == done else 4)


if __name__ == "__main__":
    main()
