"""What a Spark cluster needs that a local Spark does not."""

import os
import re
import socket
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any

from espbench.config import HIDDEN, secrets_in
from espbench.errors import ServiceError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONNECT_S = 5.0
# Executors that come at all are there within seconds; a queue of yarn may take longer.
PATIENCE_S = 90.0
POLL_S = 0.2
_STANDALONE = "spark://"
_THREADS = r"(?:\*|[1-9]\d*)"
_MASTER = re.compile(
    rf"local(?:\[{_THREADS}(?:,\s*[1-9]\d*)?\])?"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://(?:[^\s:,/]+|\[[0-9a-fA-F:]+\]):\d+(?:,(?:[^\s:,/]+|\[[0-9a-fA-F:]+\]):\d+)*"
    r"|yarn|k8s://\S+"
)
_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/")


def check_master(master: str) -> None:
    """Raise `UsageError` for what is no master URL, or lacks what it needs on this machine."""
    if not _MASTER.fullmatch(master):
        raise UsageError(
            f"{master!r} is no Spark master",
            "use local[N], local[*], spark://HOST:PORT, yarn or k8s://URL",
        )
    if master == "yarn" and not {"HADOOP_CONF_DIR", "YARN_CONF_DIR"} & set(os.environ):
        raise UsageError(
            "--master yarn, but nothing says where yarn is",
            "set HADOOP_CONF_DIR to the directory of the cluster's configuration",
        )


def standalone_masters(master: str) -> list[tuple[str, int]]:
    """Host and port of the masters of a standalone cluster; none for any other."""
    if not master.startswith(_STANDALONE):
        return []
    places = (each.rpartition(":") for each in master.removeprefix(_STANDALONE).split(","))
    return [(host.strip("[]"), int(port)) for host, _, port in places]


def require_master(master: str) -> None:
    """Raise `ServiceError` where no master answers: Spark would try for a minute and more."""
    masters = standalone_masters(master)
    failures = []
    for place in masters:
        try:
            socket.create_connection(place, CONNECT_S).close()
        except OSError as error:
            failures.append(f"{place[0]}:{place[1]}: {error.strerror or error}")
    if masters and len(failures) == len(masters):
        raise ServiceError(
            f"no Spark master answers ({'; '.join(failures)})", "start it, or check --master"
        )


def on_this_machine(master: str) -> bool:
    """Whether all of it runs here: files of this machine are files of the executors."""
    hosts = [host for host, _ in standalone_masters(master)]
    return (
        master == "local"
        or master.startswith(("local[", "local-cluster["))
        or (bool(hosts) and all(map(_is_loopback, hosts)))
    )


def driver_address(master: str) -> str | None:
    """The address of this machine that the cluster sees; None where Spark must find it itself.

    Behind a master that listens on loopback alone there is nobody else to talk to.
    """
    masters = standalone_masters(master)
    if on_this_machine(master):
        return "127.0.0.1"
    for place in masters:
        try:
            family, kind, _, _, address = socket.getaddrinfo(*place, type=socket.SOCK_DGRAM)[0]
            with socket.socket(family, kind) as probe:
                # Sends nothing: it asks which way the machine would go.
                probe.connect(address)
                return str(probe.getsockname()[0])
        except OSError:
            continue
    return None


def check_checkpoint(given: Path) -> None:
    """Raise `UsageError` where it is no directory of a file system."""
    if _URI.match(str(given)):
        raise UsageError(
            f"the checkpoint {given} is no directory",
            "name one that is mounted on every machine: locks and windows stand beside Spark's",
        )


def wait_for_executors(
    spark: "SparkSession",
    master: str,
    tasks: int | None,
    stopped: Callable[[], bool],
    *,
    patience_s: float = PATIENCE_S,
) -> None:
    """Return when the cluster gave an executor, or cores for so many `tasks`, or on `stopped`.

    A query without them would seem ready, and wait for ever. Raises `ServiceError` in the end.
    """
    if spark.conf.get("spark.dynamicAllocation.enabled", "false") == "true":
        return
    context: Any = spark.sparkContext._jsc.sc()  # noqa: SLF001 - PySpark has no way to ask
    give_up = time.monotonic() + patience_s
    while True:
        # The driver is one of them.
        executors = context.getExecutorMemoryStatus().size() - 1
        cores = int(context.schedulerBackend().totalCoreCount())
        if (executors and cores >= (tasks or 1)) or stopped():
            return
        if time.monotonic() > give_up:
            break
        time.sleep(POLL_S)
    if not executors:
        raise ServiceError(
            f"{master} gave no executor within {patience_s:.0f} s",
            "look whether workers run there, with enough memory (spark.executor.memory) and cores",
        )
    raise ServiceError(
        f"real-time mode runs {tasks} tasks at once, {master} gave {cores} cores",
        "add workers or cores, or use --engine micro-batch",
    )


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings as they may stand in a report."""
    hidden = secrets_in(settings)
    return {name: HIDDEN if name in hidden else value for name, value in settings.items()}


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
