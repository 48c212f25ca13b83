"""What one micro-batch, or interval of real-time mode, leaves to the next.

It stands beside Spark's own checkpoint. Batch n begins with what batch n-1 left. It is saved after
the effects of n and before Spark commits n: a query that is killed anywhere in between does n
again, from the same beginning, with the same records, and so with the same answers. An interval
done again may read less than the first time, and of a partition nothing; so what it leaves says how
far it had read.
"""

import os
from pathlib import Path

import pyarrow as pa

from espbench.errors import InputError
from espbench.paths import make_dir

# Spark repeats at most the batch it had not committed; one more costs nothing.
KEPT = 3
_READ_TO = b"read_to"


class Carry:
    """Tables by batch number, in a directory of the query's checkpoint."""

    def __init__(self, directory: Path, empty: pa.Table) -> None:
        self._directory = make_dir(directory)
        self._empty = empty
        self._last: tuple[int, pa.Table] | None = None

    def before(self, batch: int) -> pa.Table:
        """What the batch before this one left; raises `InputError` where it is lost."""
        if batch == 0:
            return self._empty
        if self._last is not None and self._last[0] == batch - 1:
            return self._last[1]
        path = self._path(batch - 1)
        try:
            with pa.memory_map(str(path)) as file:
                return pa.ipc.open_file(file).read_all()
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"the checkpoint lacks what batch {batch - 1} left ({path})",
                "start with another --run or --checkpoint",
            ) from error

    def newest_before(self, batch: int, begin: int) -> pa.Table:
        """What was left last before this batch, whose first offset is `begin`.

        Not every batch leaves something. One that had read `begin` already was never committed.
        """
        numbers = (int(path.stem) for path in self._directory.glob("*.arrow"))
        for number in sorted((each for each in numbers if each < batch), reverse=True):
            left = self.before(number + 1)
            if int((left.schema.metadata or {}).get(_READ_TO, b"0")) <= begin:
                return left.replace_schema_metadata(None)
        return self._empty

    def save(self, batch: int, table: pa.Table, *, read_to: int | None = None) -> None:
        """Keep what this batch leaves; appears all at once. It had read all before `read_to`."""
        if read_to is not None:
            table = table.replace_schema_metadata({_READ_TO: str(read_to)})
        path = self._path(batch)
        draft = path.with_suffix(".draft")
        with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
        _to_disk(draft)
        draft.replace(path)
        _to_disk(self._directory)
        self._last = batch, table
        numbers = sorted(int(each.stem) for each in self._directory.glob("*.arrow"))
        for number in numbers[:-KEPT]:
            self._path(number).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._directory / f"{batch}.arrow"


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
