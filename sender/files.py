"""Stream files: checked once and completely, then served row by row, from memory or from disk.

A row is a line without its end (LF or CRLF). The whole file is checked before anything is sent, so
that a broken row in its middle is found before it is too late.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt
import psutil

from espbench.errors import InputError
from sender.rows import REMEDY, RowCheck, split_rows

PRODUCTION_TIMES = 3
_BLOCK_BYTES = 1024 * 1024
# Of the memory that is free, so much may be taken by files; the rest is for the system under test.
_SHARE_OF_MEMORY = 0.25

Ids: TypeAlias = npt.NDArray[np.int64]


class StreamFile(Protocol):
    """The rows of one stream file, numbered from 0, starting again from the top at the end."""

    @property
    def path(self) -> Path:
        """Where it is."""
        ...

    @property
    def stream(self) -> int:
        """1 and 2 are sensors, 3 production times."""
        ...

    def __len__(self) -> int: ...

    @property
    def repeats(self) -> bool:
        """Sensor files start again from the top; production times happen once."""
        ...

    def rows_of(self, ids: Ids) -> list[bytes]:
        """The rows of these records; `InputError` where the file is no longer what was checked."""
        ...


@dataclass(frozen=True, slots=True)
class FileInMemory:
    """A file that was read. `suffix` is the workplace id that every row of a real file lacks."""

    path: Path
    stream: int
    data: bytes
    starts: Ids
    ends: Ids
    suffix: bytes

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def repeats(self) -> bool:
        """Production times happen once."""
        return self.stream != PRODUCTION_TIMES

    def rows_of(self, ids: Ids) -> list[bytes]:
        """Slices of the data."""
        data, suffix = self.data, self.suffix
        index = ids % len(self.starts)
        bounds = zip(self.starts[index].tolist(), self.ends[index].tolist(), strict=True)
        if suffix:
            return [data[start:end] + suffix for start, end in bounds]
        return [data[start:end] for start, end in bounds]


class FileOnDisk:
    """A file that is read again block by block while it is sent: its size does not matter.

    Every block has a checksum of the time when it was checked, so that a file that somebody cuts
    off or changes meanwhile is noticed before a wrong row is sent.
    """

    def __init__(self, path: Path, stream: int) -> None:
        self.path = path
        self.stream = stream
        check = RowCheck(path, stream)
        starts, sizes, first_rows, checksums = [], [], [0], []
        place = 0
        with _opened(path) as file:
            for block in _blocks(file):
                rows, _ = check.block(block)
                starts.append(place)
                sizes.append(len(block))
                first_rows.append(first_rows[-1] + len(rows))
                checksums.append(zlib.crc32(block))
                place += len(block)
        check.finish()
        self._suffix = check.suffix
        self._blocks = list(zip(starts, sizes, checksums, strict=True))
        self._first_rows = np.array(first_rows, dtype=np.int64)
        self._cached: tuple[int, list[bytes]] = (-1, [])

    def __len__(self) -> int:
        return int(self._first_rows[-1])

    @property
    def repeats(self) -> bool:
        """Production times happen once."""
        return self.stream != PRODUCTION_TIMES

    def rows_of(self, ids: Ids) -> list[bytes]:
        """Rows of the blocks that hold them; neighbours cost one block each."""
        index = ids % len(self)
        numbers = np.searchsorted(self._first_rows, index, side="right") - 1
        rows: list[bytes] = []
        cuts = np.flatnonzero(np.diff(numbers)) + 1
        for part in np.split(np.arange(len(index)), cuts):
            if not len(part):
                continue
            number = int(numbers[part[0]])
            block = self._block(number)
            first = int(self._first_rows[number])
            rows += [block[row - first] for row in index[part].tolist()]
        return rows

    def _block(self, number: int) -> list[bytes]:
        if self._cached[0] != number:
            start, size, checksum = self._blocks[number]
            try:
                with _opened(self.path) as file:
                    file.seek(start)
                    block = file.read(size)
            except OSError as error:
                raise InputError(
                    f"cannot read the stream file {self.path}: {error.strerror}", REMEDY
                ) from error
            if zlib.crc32(block) != checksum:
                raise InputError(
                    f"{self.path}, line {int(self._first_rows[number]) + 1}: the file was changed "
                    "while it was sent",
                    "leave it alone until the end, or use --read-in-ram",
                )
            starts, ends = split_rows(block)
            bounds = zip(starts.tolist(), ends.tolist(), strict=True)
            suffix = self._suffix
            self._cached = (number, [block[start:end] + suffix for start, end in bounds])
        return self._cached[1]


def open_stream_file(path: Path, stream: int, *, in_memory: bool | None = None) -> StreamFile:
    """Check a stream file and be ready to serve it; `InputError` names the file and the line.

    `in_memory` None: in memory where it fits easily.
    """
    if in_memory is None:
        in_memory = _fits(path)
    if not in_memory:
        return FileOnDisk(path, stream)
    check = RowCheck(path, stream)
    blocks, all_starts, all_ends = [], [], []
    place = 0
    with _opened(path) as file:
        for block in _blocks(file):
            starts, ends = check.block(block)
            all_starts.append(starts + place)
            all_ends.append(ends + place)
            blocks.append(block)
            place += len(block)
    check.finish()
    return FileInMemory(
        path,
        stream,
        b"".join(blocks),
        np.concatenate(all_starts),
        np.concatenate(all_ends),
        check.suffix,
    )


def _fits(path: Path) -> bool:
    try:
        return path.stat().st_size <= _SHARE_OF_MEMORY * psutil.virtual_memory().available
    except OSError:
        return True  # opening it will tell


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except OSError as error:
        raise InputError(
            f"cannot read the stream file {path}: {error.strerror}", "check the path"
        ) from error


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    """The file in blocks of whole lines, about `_BLOCK_BYTES` long."""
    while block := file.read(_BLOCK_BYTES):
        if block[-1:] != b"\n":
            block += file.readline()
        yield block
