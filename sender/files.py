"""Stream files: checked once and completely, then served row by row without copying the file.

A row is a line without its end (LF or CRLF). The whole file is checked before anything is sent, so
that a broken row in its middle is found before it is too late.
"""

import mmap
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from espbench.errors import InputError

PRODUCTION_TIMES = 3
SENSOR_COLUMNS = 56
_COLUMNS = {1: (SENSOR_COLUMNS, SENSOR_COLUMNS + 1), 2: (SENSOR_COLUMNS, SENSOR_COLUMNS + 1)}
_PRODUCTION_COLUMNS = (4,)
_BLOCK_BYTES = 16 * 1024 * 1024
_LF, _CR, _TAB = b"\n"[0], b"\r"[0], b"\t"[0]
_REMEDY = "correct the file, or make a new one with `espbench datagen`"


@dataclass(frozen=True, slots=True)
class StreamFile:
    """The rows of one stream file.

    `suffix` is what every row lacks: the workplace id, in real DEBS files; else empty.
    """

    path: Path
    stream: int
    data: "bytes | mmap.mmap"
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    suffix: bytes

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def repeats(self) -> bool:
        """Sensor files start again from the top; production times happen once."""
        return self.stream != PRODUCTION_TIMES

    def rows(self, first: int, stop: int) -> list[bytes]:
        """The rows of the records `first` … `stop` - 1, starting again from the top at the end."""
        data, suffix = self.data, self.suffix
        index = np.arange(first, stop, dtype=np.int64) % len(self.starts)
        bounds = zip(self.starts[index].tolist(), self.ends[index].tolist(), strict=True)
        if suffix:
            return [data[start:end] + suffix for start, end in bounds]
        return [data[start:end] for start, end in bounds]


def open_stream_file(path: Path, stream: int, *, in_memory: bool = True) -> StreamFile:
    """Read, check and index a stream file; `InputError` names the file and the line.

    `in_memory` reads the file into memory; otherwise it is mapped, and the system decides.
    """
    data = _read(path, in_memory=in_memory)
    if not len(data):
        raise InputError(f"{path} is empty", _REMEDY)
    starts, ends, tabs = _index(path, data)
    columns = int(tabs[0]) + 1
    allowed = _COLUMNS.get(stream, _PRODUCTION_COLUMNS)
    expected = columns if columns in allowed else allowed[0]
    wrong = np.flatnonzero(tabs != expected - 1)
    if wrong.size:
        line = int(wrong[0])
        raise InputError(
            f"{path}, line {line + 1}: {int(tabs[line]) + 1} columns, expected "
            f"{' or '.join(map(str, allowed if line == 0 else (expected,)))}, separated by tabs",
            _REMEDY,
        )
    suffix = b"\t%d" % stream if stream != PRODUCTION_TIMES and columns == SENSOR_COLUMNS else b""
    if stream != PRODUCTION_TIMES and not suffix:
        _check_workplace(path, stream, data, ends)
    return StreamFile(path, stream, data, starts, ends, suffix)


def _read(path: Path, *, in_memory: bool) -> "bytes | mmap.mmap":
    try:
        with path.open("rb") as file:
            if in_memory or path.stat().st_size == 0:
                return file.read()
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(
            f"cannot read the stream file {path}: {error.strerror}", "check the path"
        ) from error


def _index(
    path: Path, data: "bytes | mmap.mmap"
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Where every row starts and ends, and how many tabs it has; checks that it is UTF-8."""
    all_starts, all_ends, all_tabs = [], [], []
    lines_before = 0
    begin = 0
    while begin < len(data):
        end = _block_end(data, begin)
        block = data[begin:end]
        _check_utf8(path, block, lines_before)
        octets = np.frombuffer(block, dtype=np.uint8)
        ends = np.flatnonzero(octets == _LF)
        if block[-1] != _LF:
            ends = np.append(ends, len(block))
        starts = np.concatenate(([0], ends[:-1] + 1))
        tabs_before = np.searchsorted(np.flatnonzero(octets == _TAB), np.append(starts, len(block)))
        # A carriage return stands before the line's end, or nowhere.
        ends -= (ends > starts) & (octets[ends - 1] == _CR)
        all_starts.append(starts + begin)
        all_ends.append(ends + begin)
        all_tabs.append(np.diff(tabs_before))
        lines_before += len(starts)
        begin = end
    return np.concatenate(all_starts), np.concatenate(all_ends), np.concatenate(all_tabs)


def _block_end(data: "bytes | mmap.mmap", begin: int) -> int:
    """The end of a block of whole lines, about `_BLOCK_BYTES` long."""
    if begin + _BLOCK_BYTES >= len(data):
        return len(data)
    newline = data.find(b"\n", begin + _BLOCK_BYTES)
    return len(data) if newline < 0 else newline + 1


def _check_utf8(path: Path, block: bytes, lines_before: int) -> None:
    try:
        block.decode("utf-8")
    except UnicodeDecodeError as error:
        line = lines_before + block.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}, line {line}: not UTF-8", _REMEDY) from error


def _check_workplace(
    path: Path, stream: int, data: "bytes | mmap.mmap", ends: npt.NDArray[np.int64]
) -> None:
    octets = np.frombuffer(data, dtype=np.uint8)
    right = (octets[ends - 1] == ord(str(stream))) & (octets[ends - 2] == _TAB)
    wrong = np.flatnonzero(~right)
    if wrong.size:
        raise InputError(
            f"{path}, line {int(wrong[0]) + 1}: column {SENSOR_COLUMNS + 1} is not {stream}, "
            f"the workplace of stream {stream}",
            "give each stream its own file: --stream 1=sensor-1.csv --stream 2=sensor-2.csv",
        )
