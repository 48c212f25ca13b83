"""What an interrupted capture leaves behind: a hidden directory beside the target.

    .<target>.unfinished/
        order.json          what is captured from where; another order does not go on here
        <topic>.parquet     the records so far, whole row groups
        <topic>.json        ranges: what the topic held when its reading began;
                            done: what capture.json will say of it, once it was read to its end

There is no capture.json in it, so that nobody judges it. What was read is told by the Parquet file
itself; one without its end (the process was killed) is read anew.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from espbench.errors import InputError, UsageError
from espbench.kafka.admin import OffsetRange
from espbench.paths import make_dir

_ORDER = "order.json"


@dataclass(frozen=True, slots=True)
class Begun:
    """A topic whose reading began earlier; `file` holds its records so far, if there are any."""

    ranges: list[OffsetRange]
    file: Path | None
    foreign_stamps: int


@contextmanager
def workplace_of(out: Path, order: dict[str, Any]) -> Iterator[Path]:
    """The directory to work in, for one process at a time; emptied if it is of another order."""
    directory = out.with_name(f".{out.name}.unfinished")
    make_dir(directory)
    handle = os.open(directory, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise UsageError(
                f"another capture is writing {out}", "wait for it, or name another --out"
            ) from error
        if _read(directory / _ORDER) != order:
            for path in directory.iterdir():
                path.unlink()
            _write(directory / _ORDER, order)
        yield directory
    finally:
        os.close(handle)


def clean(directory: Path) -> None:
    """Take away what is not part of a capture, before the directory becomes one."""
    for path in directory.glob("*.json"):
        path.unlink()


def drop_if_empty(directory: Path) -> bool:
    """Remove the directory where no record was read; whether there is something to go on with."""
    if any(_rows(path) for path in directory.glob("*.parquet")):
        return True
    shutil.rmtree(directory, ignore_errors=True)
    return False


def done_before(directory: Path, name: str, topic_id: str) -> dict[str, Any] | None:
    """What was found of a topic that was read to its end; `topic_id` is Kafka's own."""
    found = _note_of(directory, name, topic_id).get("done")
    return found if isinstance(found, dict) and _rows(directory / found["file"]) >= 0 else None


def begun_before(directory: Path, name: str, topic_id: str, now: list[OffsetRange]) -> Begun | None:
    """Where the reading of a topic began; None where there is nothing, or it is another topic."""
    found = _note_of(directory, name, topic_id)
    if not found:
        (directory / f"{name}.before").unlink(missing_ok=True)
        return None
    ranges = [OffsetRange(*one) for one in found["ranges"]]
    ends = {each.partition: each.end for each in now}
    if any(ends.get(each.partition, -1) < each.end for each in ranges):
        return None
    # Kept under another name: the records are copied into the new file before others follow.
    read, before = directory / f"{name}.parquet", directory / f"{name}.before"
    if _rows(read) > max(_rows(before), 0):
        read.replace(before)
    return Begun(ranges, before if before.exists() else None, int(found.get("foreign_stamps", 0)))


def begin(
    directory: Path, name: str, topic_id: str, ranges: list[OffsetRange], foreign_stamps: int = 0
) -> None:
    """Take note of what the topic holds now."""
    entry = [(each.partition, each.begin, each.end) for each in ranges]
    note = {"topic_id": topic_id, "ranges": entry, "foreign_stamps": foreign_stamps}
    _write(directory / f"{name}.json", note)


def finish(directory: Path, name: str, topic_id: str, topic: Any) -> None:
    """Take note that a topic was read to its end."""
    note = {"topic_id": topic_id, "ranges": [], "done": asdict(topic)}
    _write(directory / f"{name}.json", note)


def records_of(file: Path) -> Iterator[pa.RecordBatch]:
    """The records of an earlier file; raises `InputError` where it is damaged."""
    try:
        with pq.ParquetFile(file, page_checksum_verification=True) as opened:
            yield from opened.iter_batches(1 << 16)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"what an interrupted capture left is damaged: {file}",
            f"remove {file.parent} and capture again",
        ) from error


def _rows(path: Path) -> int:
    """How many rows a Parquet file has; -1 where it is none, or has no end."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException):
        return -1


def _note_of(directory: Path, name: str, topic_id: str) -> dict[str, Any]:
    """The note of a topic; empty where there is none, or one of a topic that was made anew."""
    note = _read(directory / f"{name}.json")
    return note if note is not None and note.get("topic_id") == topic_id else {}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return found


def _write(path: Path, content: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)
