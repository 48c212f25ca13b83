"""How many answers are lost or repeated when a query is killed again and again.

Every trial is one query while its streams are sent. It is started, and at a random moment - while
Spark starts, in the midst of a batch, between two - its JVM or the whole command is ended by
`kill -9`; then it is started again, and so on. In the end the validator judges what the sink or the
table holds. `--outages` ends the database as well (query 5) and starts it again some seconds later.

    python benchmarks/kills.py --queries q2,q5 --partitions 1,3 --kills 3 [--seed 7] [--outages]

Needs nothing but this machine: services of its own are started in a directory of its own.
"""

import argparse
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from espbench.names import find_query

FILES = {1: "sensor-1.csv", 2: "sensor-2.csv", 3: "production_times.csv"}
DEADLINE_S = 300.0
# After an announced start the downtimes must have been seen: freshness, and some more.
ANNOUNCED_S = 14.0
# Of a query's life until it is killed. It begins to consume after six or more.
SHORTEST_S, LONGEST_S = 3.0, 16.0
OUTAGE_S = 4.0


def main() -> None:
    """Kill and judge, cell by cell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--queries", default="q0,q1,q2,q3,q4,q5")
    parser.add_argument("--engines", default="micro-batch,real-time")
    parser.add_argument("--partitions", default="1,3")
    parser.add_argument("--kills", type=int, default=3, help="of each trial")
    parser.add_argument("--trials", type=int, default=1, help="of each cell")
    parser.add_argument("--rate", type=int, default=500)
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: the time)")
    parser.add_argument("--outages", action="store_true", help="of the database, in query 5")
    given = parser.parse_args()
    seed = given.seed if given.seed is not None else time.time_ns() % 1_000_000
    say(f"seed {seed}")
    chance = random.Random(seed)  # noqa: S311 - moments, not secrets
    with tempfile.TemporaryDirectory(prefix="espbench-kills-") as name:
        house = House(Path(name))
        try:
            house.open()
            score = [
                Trial(house, query, engine, partitions, given.rate, given.kills).run(
                    chance, outages=given.outages and query == "q5"
                )
                for query in given.queries.split(",")
                for engine in given.engines.split(",")
                for partitions in map(int, given.partitions.split(","))
                for _ in range(given.trials)
            ]
        finally:
            house.close()
    kills = sum(each["kills"] for each in score)
    right = sum(each["correctness"] == "correct" for each in score)
    say(f"{right} of {len(score)} trials correct, {kills} kills, seed {seed}")
    sys.exit(0 if right == len(score) else 4)


class House:
    """Services and data in one directory, which the commands find by their environment."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data = root / "data"
        state = root / "state"
        state.mkdir()
        jars = Path(__file__).resolve().parents[1] / ".espbench" / "jars"
        if jars.exists():
            (state / "jars").symlink_to(jars)
        self._environment = {
            **os.environ,
            "ESPBENCH_STATE_DIR": str(state),
            # Long enough to be killed in, too.
            "ESPBENCH_SPARK__REHEARSAL": "2",
            # A database that comes back must come back where it was.
            "ESPBENCH_DATABASE__PORT": str(free_port()),
        }

    def open(self) -> None:
        """Start the services, make and load the data."""
        self.do("up", "kafka", "postgresql")
        self.do("datagen", "--scale", "1", "--sensor-rows", "60011", "--out", str(self.data))
        self.do("load", "--data", str(self.data))

    def close(self) -> None:
        """Stop the services."""
        self.do("down")

    def do(self, *words: str) -> str:
        """Run a command to its end; what it printed."""
        command = [sys.executable, "-m", "espbench", *words]
        done = subprocess.run(
            command,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        if done.returncode not in {0, 4, 5, 6}:
            raise SystemExit(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def begin(self, log: Path, *words: str) -> "subprocess.Popen[bytes]":
        """Begin a command."""
        with log.open("ab") as file:
            return subprocess.Popen(
                [sys.executable, "-m", "espbench", *words],
                env=self._environment,
                stdout=file,
                stderr=file,
            )

    def cut_database(self) -> None:
        """End the database without a word, and start it again after a while."""
        services = json.loads(self.do("status", "--json"))["services"]
        (found,) = (each for each in services if each["name"] == "postgresql")
        database = psutil.Process(found["pid"])
        family = [database, *database.children(recursive=True)]
        for process in family:
            process.kill()
        psutil.wait_procs(family, timeout=10)
        time.sleep(OUTAGE_S)
        self.do("up", "postgresql")


@dataclass(slots=True)
class Trial:
    """One query, killed some times while its streams are sent."""

    house: House
    query: str
    engine: str
    partitions: int
    rate: int
    kills: int
    moments: list[str] = field(default_factory=list)

    def run(self, chance: random.Random, *, outages: bool) -> dict[str, Any]:
        """The verdict, told as well."""
        name = f"k{time.time_ns():x}"
        place = self.house.root / name
        place.mkdir()
        house, count = self.house, str(self.partitions)
        lives = [chance.uniform(SHORTEST_S, LONGEST_S) for _ in range(self.kills)]
        duration = f"{sum(lives) + (24 if outages else 4):.0f}"
        house.do("topics", "create", "--run", name, "--queries", self.query, "--partitions", count)
        start_ms = str(int((time.time() + ANNOUNCED_S) * 1_000))
        house.do("load", "--reset", "--start-ms", start_ms, "--duration", duration)
        # Query 4 must have seen the new downtimes; the others need not wait.
        announced = ["--start-ms", start_ms] if self.query == "q4" else []
        streams = [
            f"--stream={number}={house.data / FILES[number]}"
            for number in find_query(self.query).streams
        ]
        sent = place / "sent.json"
        sender = house.begin(
            place / "sender.log", "send", "--run", name, *streams, "--rate", str(self.rate),
            "--duration", duration, *announced, "--out", str(sent),
        )  # fmt: skip
        if announced:
            time.sleep(ANNOUNCED_S)
        words = ("query", self.query, "--run", name, "--engine", self.engine)
        words += ("--until", str(sent), "--out", str(place / "query.json"))
        for life_s in lives:
            victim = chance.choice(("driver", "command"))
            self._live(house.begin(place / "query.log", *words), life_s, victim)
        last = house.begin(place / "query.log", *words)
        if outages:
            time.sleep(chance.uniform(6, 10))
            house.cut_database()
            self.moments.append("database")
        sender.wait(DEADLINE_S)
        if last.wait(DEADLINE_S):
            raise SystemExit((place / "query.log").read_text("utf-8")[-3000:])
        return self._verdict(name, place, sent)

    def _live(self, command: "subprocess.Popen[bytes]", life_s: float, victim: str) -> None:
        """Let a query live so long."""
        try:
            command.wait(life_s)
        except subprocess.TimeoutExpired:
            process = psutil.Process(command.pid)
            below = process.children(recursive=True)
            java = [each for each in below if "java" in each.name()]
            (java[0] if victim == "driver" and java else process).kill()
            self.moments.append(f"{victim if java else 'command'} at {life_s:.1f} s")
            command.wait(DEADLINE_S)
            # Its checkpoint is free once the last one that holds it is gone.
            psutil.wait_procs(below, timeout=30)

    def _verdict(self, name: str, place: Path, sent: Path) -> dict[str, Any]:
        house, capture = self.house, place / "capture"
        house.do(
            "capture", "--run", name, "--query", self.query, "--out", str(capture),
            "--sender-report", str(sent),
        )  # fmt: skip
        house.do("topics", "delete", "--run", name)
        verdict: dict[str, Any] = json.loads(house.do("validate", str(capture), "--json"))
        counts = verdict["counts"]
        say(
            f"{self.query} {self.engine}, {self.partitions} partitions, "
            f"killed: {', '.join(self.moments) or 'never'}: {verdict['correctness']}, "
            + ", ".join(f"{counts[kind]:,} {kind}" for kind in COUNTED)
        )
        if verdict["correctness"] != "correct":
            say(json.dumps(verdict["witnesses"][:3]))
            say(json.dumps(verdict.get("reasons")))
        return {**verdict, "kills": len(self.moments)}


COUNTED = ("expected", "matched", "missing", "wrong", "extra", "duplicate", "surplus")


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def say(line: str) -> None:
    """Print at once: this takes long."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
