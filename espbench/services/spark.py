"""A standalone Spark cluster from the pip package: a master, and a worker for each host."""

import json
import os
import urllib.request
from abc import abstractmethod
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from espbench.errors import ConfigError, MissingExtra, ServiceError
from espbench.paths import make_dir
from espbench.services.java import find_java
from espbench.services.service import Service

_ANSWER_S = 2.0
# A shell of another Spark must not get mixed up with ours.
_FOREIGN = ("SPARK_", "PYSPARK_")


class SparkDaemon(Service):
    """What master and worker have in common: Spark's own launcher, and a page that tells JSON."""

    port_count = 2
    java_class: ClassVar[str]
    options: ClassVar[str] = ""

    def prepare(self) -> None:
        """Nothing is kept from one start to the next but the place to work in."""
        make_dir(self.data)
        # Empty on purpose: Spark would read a configuration of its home, or of the user.
        make_dir(self.home / "conf")

    def command(self, ports: list[int]) -> list[str]:
        """Spark's launcher, which becomes the daemon."""
        port, page = (str(each) for each in ports)
        words = [str(_spark_home() / "bin" / "spark-class"), self.java_class]
        words += ["--host", self.host, "--port", port, "--webui-port", page]
        return [*words, *self.arguments()]

    def environment(self) -> Mapping[str, str]:
        """The environment with the Java that was found, and nothing of another Spark."""
        own = find_java(self.settings).environment()
        kept = {key: value for key, value in own.items() if not key.startswith(_FOREIGN)}
        return kept | {
            "SPARK_HOME": str(_spark_home()),
            "SPARK_CONF_DIR": str(self.home / "conf"),
            "SPARK_LOCAL_IP": self.host,
            "SPARK_LOCAL_DIRS": str(self.data / "local"),
            "SPARK_DAEMON_MEMORY": "512m",
            # A port that is taken is an error; Spark would silently take the next one.
            "SPARK_DAEMON_JAVA_OPTS": f"-Dspark.port.maxRetries=0 {self.options}".strip(),
        }

    def endpoint(self, ports: list[int]) -> dict[str, Any]:
        """The daemon's address and its page."""
        return {"url": f"spark://{self.host}:{ports[0]}", "page": f"{self.host}:{ports[1]}"}

    def address(self, endpoint: dict[str, Any]) -> str:
        """The address as `--master` takes it."""
        return str(endpoint["url"])

    def ask(self, endpoint: dict[str, Any]) -> dict[str, str]:
        """What the daemon says of itself."""
        # Straight to our own server, whatever proxies the environment names.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{endpoint['page']}/json/", timeout=_ANSWER_S) as answer:
            return self.read(json.load(answer))

    @abstractmethod
    def arguments(self) -> list[str]:
        """What this daemon is told beyond its address."""

    @abstractmethod
    def read(self, found: dict[str, Any]) -> dict[str, str]:
        """What is worth showing of the page's JSON; raises while the daemon is not ready."""


class SparkMaster(SparkDaemon):
    """The master: gives the executors of its workers to whoever asks."""

    name = "spark-master"
    java_class = "org.apache.spark.deploy.master.Master"
    options = "-Dspark.master.rest.enabled=false"

    def arguments(self) -> list[str]:
        """Nothing more."""
        return []

    def read(self, found: dict[str, Any]) -> dict[str, str]:
        """How many workers it has."""
        if found["status"] != "ALIVE":
            raise ServiceError(f"the master is {found['status']}", f"see its log {self.log}")
        return {"workers": str(found["aliveworkers"]), "cores": str(found["cores"])}


class SparkWorker(SparkDaemon):
    """A worker: starts executors on its host for the master of `spark.master`."""

    name = "spark-worker"
    java_class = "org.apache.spark.deploy.worker.Worker"
    # A worker that stays for many runs would collect what each left.
    options = "-Dspark.worker.cleanup.enabled=true"

    def arguments(self) -> list[str]:
        """Its share of the host, and its master."""
        wanted, words = self.settings.spark, ["--work-dir", str(self.data / "work")]
        if not wanted.master.startswith("spark://"):
            raise ConfigError(
                f"spark.master = {wanted.master} is no master that a worker can join",
                "name it: ESPBENCH_SPARK__MASTER=spark://HOST:PORT",
            )
        if wanted.worker_cores:
            words += ["--cores", str(wanted.worker_cores)]
        if wanted.worker_memory:
            words += ["--memory", wanted.worker_memory]
        return [*words, wanted.master]

    def read(self, found: dict[str, Any]) -> dict[str, str]:
        """Its share of the host, once the master knows it."""
        if not found.get("masterurl"):
            raise ServiceError(
                f"no master answers at {self.settings.spark.master}", "start the master first"
            )
        return {key: str(found[key]) for key in ("masterurl", "cores", "memory")}


def _spark_home() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("pyspark", "spark")
    return Path(os.fspath(spec.submodule_search_locations[0]))
