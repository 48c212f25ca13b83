"""Try the queries on a real Spark cluster: a master and two workers on this machine.

Starts Spark's own standalone master and workers from the pip package, each a process of its own
with a directory of its own and in a foreign time zone, and runs `espbench run --master spark://…`
on them, with embedded Kafka and PostgreSQL. Prints the verdicts, and what ran on which executor.
Ends everything that it started. Standard library and pyspark.

    .venv/bin/python tools/try_on_cluster.py --queries q0,q1,q2,q3,q4,q5
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from espbench.config import load_settings
from espbench.services.java import find_java

ROOT = Path(__file__).resolve().parents[1]
HOST = "127.0.0.1"
WORKERS = 2
DEADLINE_S = 60.0


def main() -> None:
    """Start the cluster, run on it, end it; leave with the run's exit code."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--queries", default="q0,q1,q2,q3,q4,q5")
    options.add_argument("--rate", default="500")
    options.add_argument("--duration", default="15")
    options.add_argument("--partitions", default="1")
    options.add_argument("--engine", default="auto")
    options.add_argument("--scale", default="1")
    options.add_argument("--cores", default="2", help="of each worker")
    options.add_argument("--memory", default="768m", help="of each executor")
    given = options.parse_args()
    with ExitStack() as stack:
        work = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="espbench-cluster-")))
        master = Cluster(work, stack).start(given.cores, given.memory)
        command = [sys.executable, "-m", "espbench", "run", "--master", master.url]
        for name in ("queries", "rate", "duration", "partitions", "engine", "scale"):
            command += [f"--{name}", getattr(given, name)]
        command += ["--warmup", "5"]
        conf = {"spark.executor.memory": given.memory}
        environment = {
            "ESPBENCH_SPARK__REHEARSAL": "3",
            **os.environ,
            "ESPBENCH_SPARK__CONF": json.dumps(conf),
        }
        # Ctrl-C reaches the run as well, which ends by itself; only then may the cluster go.
        signal.signal(signal.SIGINT, lambda *_: None)
        code = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        for line in master.applications():
            say(line)
    sys.exit(code)


class Cluster:
    """A standalone master and its workers; `stack` ends them."""

    def __init__(self, work: Path, stack: ExitStack) -> None:
        self._work = work
        self._stack = stack
        self._port, self._ui = free_port(), free_port()
        self.url = f"spark://{HOST}:{self._port}"

    def start(self, cores: str, memory: str) -> "Cluster":
        """Return once all workers are registered."""
        where = ["--host", HOST, "--port", str(self._port), "--webui-port", str(self._ui)]
        self._launch("master", "org.apache.spark.deploy.master.Master", *where)
        self._wait_for(0)
        for number in range(WORKERS):
            place = ["--host", HOST, "--webui-port", "0", "--cores", cores, "--memory", memory]
            place += ["--work-dir", str(self._work / f"worker-{number}")]
            kind = "org.apache.spark.deploy.worker.Worker"
            self._launch(f"worker-{number}", kind, *place, self.url)
        self._wait_for(WORKERS)
        say(f"the cluster is ready: {self.url}, {WORKERS} workers with {cores} cores each")
        return self

    def state(self) -> dict[str, Any]:
        """What the master's page says."""
        with urllib.request.urlopen(f"http://{HOST}:{self._ui}/json/", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def applications(self) -> list[str]:
        """One line for each application that ran."""
        done = [*self.state()["completedapps"], *self.state()["activeapps"]]
        lines = []
        for each in sorted(done, key=lambda each: str(each["id"])):
            executors = len(list(self._work.glob(f"worker-*/{each['id']}/*")))
            lines.append(f"{each['name']}: {executors} executors, {each['state'].lower()}")
        return lines

    def _launch(self, name: str, main_class: str, *words: str) -> None:
        from pyspark.find_spark_home import _find_spark_home  # noqa: PLC0415 - an extra

        home = _find_spark_home()
        environment = {
            **os.environ,
            "JAVA_HOME": str(find_java(load_settings()).home),
            "SPARK_HOME": home,
            "SPARK_LOCAL_IP": HOST,
            "SPARK_CONF_DIR": str(self._work),
            "SPARK_DAEMON_MEMORY": "256m",
            # Executors take it from their worker; the queries must not notice.
            "TZ": "Asia/Tokyo",
        }
        log_file = self._work / f"{name}.log"
        with log_file.open("wb") as log:
            # exec: the shell script's process becomes Java's, which we can end.
            process = subprocess.Popen(
                [f"{home}/bin/spark-class", main_class, *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                cwd=self._work,
            )
        self._stack.callback(end, process)

    def _wait_for(self, workers: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            try:
                alive = [each for each in self.state()["workers"] if each["state"] == "ALIVE"]
                if len(alive) >= workers:
                    return
            except (OSError, ValueError):
                pass  # not there yet
            if time.monotonic() > deadline:
                logs = [path.read_text("utf-8") for path in self._work.glob("*.log")]
                sys.exit(f"the cluster did not start:\n{''.join(logs)[-3000:]}")
            time.sleep(0.2)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Ask, then insist."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"espbench: {text}\n")


if __name__ == "__main__":
    main()
