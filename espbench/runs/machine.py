"""What the run was measured on: machine and versions, stored with every result."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from espbench import __version__
from espbench.config import Settings
from espbench.services.jars import pinned
from espbench.services.java import find_java

_PACKAGES = ("pyspark", "confluent-kafka", "psycopg", "sqlalchemy", "numpy", "pyarrow", "faker")


def machine() -> dict[str, Any]:
    """Processor, cores, memory, kernel."""
    return {
        "processor": _processor(),
        "cores": psutil.cpu_count(logical=True),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def versions(settings: Settings) -> dict[str, str]:
    """Versions of all that takes part, where it runs here."""
    java = find_java(settings)
    found = {"espbench": __version__, "python": platform.python_version()}
    found["java"] = f"{java.version} ({java.origin})"
    found |= {jar.name: jar.version for jar in pinned("kafka") if jar.name.startswith("kafka_")}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
