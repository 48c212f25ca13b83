"""Making a data set: once, completely, or not at all."""

import fcntl
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from datagen import debs, plan, workers
from datagen.manifest import FILES, NAME, SENSORS, DowntimeScale, Manifest, read_manifest
from datagen.parameters import Parameters
from datagen.pools import make_pools
from datagen.workplaces import NOMINAL_RUN_S
from datagen.writer import Writer
from espbench.errors import InputError, MachineError, UsageError
from espbench.paths import make_dir

_PARTIAL = ".partial"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `generate` did; `rows` and `seconds` are zero where the data set was there already."""

    directory: Path
    manifest: Manifest
    reused: bool
    rows: int = 0
    seconds: float = 0.0


def generate(
    parameters: Parameters,
    directory: Path,
    *,
    workers_count: int | None = None,
    real_sensors: dict[int, Path] | None = None,
    force: bool = False,
    progress: Callable[[int], object] = lambda _rows: None,
    announce: Callable[[int, int], object] = lambda _rows, _bytes: None,
) -> Outcome:
    """Make the data set in `directory`, or find it there.

    The files are written beside and moved into place at the end, the manifest last: a directory
    with a manifest is complete. Other data in the directory is refused unless `force`. Two
    processes that want the same directory take turns, and the second finds the data of the first.
    `announce` is told the rows and bytes to expect before anything is made.
    """
    directory = make_dir(directory.absolute())
    with _turn(directory):
        found = _existing(directory, parameters, force=force)
        if found:
            return Outcome(directory, found, reused=True)
        _check_disk(directory, parameters)
        announce(plan.expected_rows(parameters), plan.expected_bytes(parameters))
        started = time.perf_counter()
        partial = directory / _PARTIAL
        # Only a process that was killed leaves this behind, and ours is the turn now.
        shutil.rmtree(partial, ignore_errors=True)
        make_dir(partial)
        try:
            manifest, rows = _write(
                parameters, partial, workers_count, real_sensors or {}, progress
            )
            (directory / NAME).unlink(missing_ok=True)
            for name in FILES:
                (partial / name).replace(directory / name)
            manifest.write(directory)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        seconds = time.perf_counter() - started
        return Outcome(directory, manifest, reused=False, rows=rows, seconds=seconds)


def _write(
    parameters: Parameters,
    directory: Path,
    workers_count: int | None,
    real_sensors: dict[int, Path],
    progress: Callable[[int], object],
) -> tuple[Manifest, int]:
    pools = make_pools(parameters.seed, parameters.locale)
    count = workers_count or workers.default_workers()
    with Writer(directory) as writer:
        for stream, path in real_sensors.items():
            for data, rows in debs.read_blocks(path, stream, parameters.real_rows):
                writer.append(SENSORS[stream], data, rows)
                progress(writer.rows)
        for rendered in workers.rendered(parameters, pools, plan.blocks(parameters), count):
            for name, (data, rows) in rendered.items():
                writer.append(name, data, rows)
            progress(writer.rows)
        entries = writer.finish()
        scale = DowntimeScale(kind=parameters.downtimes)
        if parameters.downtimes == "run":
            scale = DowntimeScale(
                kind="run", origin="1970-01-01T00:00:00", nominal_run_s=NOMINAL_RUN_S
            )
        return Manifest(parameters=parameters, downtimes=scale, files=entries), writer.rows


def _existing(directory: Path, parameters: Parameters, *, force: bool) -> Manifest | None:
    """The data set in the directory if it is the wanted one; raises if it is something else."""
    if force:
        return None
    occupied = [name for name in (NAME, *FILES) if (directory / name).exists()]
    if not occupied:
        return None
    try:
        manifest = read_manifest(directory)
    except InputError as error:
        raise UsageError(
            f"{directory} holds {occupied[0]}, but no complete data set",
            "choose another --out, or write over it with --force",
        ) from error
    if manifest.parameters == parameters:
        return manifest
    raise UsageError(
        f"{directory} holds a data set with other parameters",
        "choose another --out, or write over it with --force",
    )


def _check_disk(directory: Path, parameters: Parameters) -> None:
    needed, free = plan.expected_bytes(parameters), shutil.disk_usage(directory).free
    if needed > free:
        raise MachineError(
            f"the data set takes about {needed / 1e9:.1f} GB, and {directory} has "
            f"{free / 1e9:.1f} GB free",
            "make room, choose another --out or a smaller --scale",
        )


@contextmanager
def _turn(directory: Path) -> Iterator[None]:
    """Wait until no other process makes data in this directory; ends with the process."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
