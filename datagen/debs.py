"""Reading the real DEBS 2012 files: CRLF, 56 columns, perhaps gzipped; a wrong file is refused.

The blocks that come out have the text of our own sensor files: LF, and the workplace id added as
column 57.
"""

import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

import numpy as np
import numpy.typing as npt

from datagen.sensors import COLUMNS
from espbench.errors import InputError

BLOCK_BYTES = 4 << 20
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{1,9}(?:Z|[+-]\d\d:\d\d)")
_TAB, _NEWLINE, _MINUS = ord("\t"), ord("\n"), ord("-")
_REMEDY = "give a file of the DEBS 2012 Grand Challenge: 56 tab-separated columns a line"


def read_blocks(
    path: Path, stream: int, limit: int | None = None, block_bytes: int = BLOCK_BYTES
) -> Iterator[tuple[bytes, int]]:
    """Checked blocks of whole lines and their numbers of rows, at most `limit` rows in all.

    Raises `InputError` with file, line and reason where a line is not a sensor reading.
    """
    rows = 0
    suffix = b"\t%d\n" % stream
    with _opened(path) as file:
        for block in _whole_lines(path, file, block_bytes):
            lines = block.replace(b"\r\n", b"\n")
            count = _check(path, lines, first_line=rows + 1)
            if limit is not None and rows + count > limit:
                keep = limit - rows
                lines = b"".join(line + b"\n" for line in lines.split(b"\n", keep)[:keep])
                count = keep
            rows += count
            if count:
                yield lines.replace(b"\n", suffix), count
            if limit is not None and rows >= limit:
                return
    if not rows:
        raise InputError(f"{path} is empty", _REMEDY)


def fingerprint(path: Path) -> str:
    """The SHA-256 sum of the file as it lies on disk."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check the path") from error


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as raw:
            gzipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            if gzipped:
                with gzip.open(raw, "rb") as unpacked:
                    yield unpacked  # type: ignore[misc]  # a GzipFile reads like any binary file
            else:
                yield raw
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path} is a damaged gzip file: {error}", "fetch it again") from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}", "check the path") from error


def _whole_lines(path: Path, file: BinaryIO, block_bytes: int) -> Iterator[bytes]:
    rest = b""
    while chunk := file.read(block_bytes):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            yield rest + chunk[:cut]
            rest = chunk[cut:]
        else:
            rest += chunk
        if len(rest) > 2 * block_bytes:
            raise InputError(f"{path} has a line of more than {len(rest):,} bytes", _REMEDY)
    if rest:
        yield rest + b"\n"


def _check(path: Path, lines: bytes, first_line: int) -> int:
    """The number of lines; raises for the first that is wrong."""
    data = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(data == _NEWLINE)
    tabs = np.flatnonzero(data == _TAB)
    starts = np.concatenate([[0], ends[:-1] + 1])
    columns = np.searchsorted(tabs, ends) - np.searchsorted(tabs, starts) + 1
    wrong = _first(columns != COLUMNS)
    # Up to there every line has as many tabs as the next, so the tabs form a table.
    shaped = len(ends) if wrong is None else wrong
    if shaped:
        first_tabs = tabs[: shaped * (COLUMNS - 1) : COLUMNS - 1]
        end = int(ends[shaped - 1]) + 1
        suspects = (
            _first_wrong_time(lines, data, starts[:shaped], first_tabs),
            _first_wrong_number(data[:end], starts[:shaped], first_tabs, ends[:shaped]),
            wrong,
        )
        wrong = min((line for line in suspects if line is not None), default=None)
    if wrong is not None:
        _refuse(path, lines[starts[wrong] : ends[wrong]], first_line + wrong)
    return len(ends)


def _first(condition: npt.NDArray[np.bool_]) -> int | None:
    """The first place where the condition holds."""
    place = int(np.argmax(condition)) if len(condition) else 0
    return place if len(condition) and condition[place] else None


def _first_wrong_number(
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    first_tabs: npt.NDArray[np.int64],
    ends: npt.NDArray[np.int64],
) -> int | None:
    """The first line with a field beyond the first that is not an integer."""
    is_digit = (data >= ord("0")) & (data <= ord("9"))
    after_tab = np.zeros(len(data), dtype=bool)
    after_tab[1:] = data[:-1] == _TAB
    before_digit = np.zeros(len(data), dtype=bool)
    before_digit[:-1] = is_digit[1:]
    separator = (data == _TAB) | (data == _NEWLINE)
    good = is_digit | ((data == _MINUS) & after_tab & before_digit) | (separator & ~after_tab)
    # The first field is a time, of which this says nothing: +1 where it begins, -1 where it ends.
    within_time = np.zeros(len(data), dtype=np.int8)
    within_time[starts] += 1
    within_time[first_tabs] -= 1
    good |= np.cumsum(within_time, dtype=np.int8).astype(bool)
    byte = _first(~good)
    return None if byte is None else int(np.searchsorted(ends, byte))


def _first_wrong_time(
    lines: bytes,
    data: npt.NDArray[np.uint8],
    starts: npt.NDArray[np.int64],
    first_tabs: npt.NDArray[np.int64],
) -> int | None:
    """The first line whose first field is not a time.

    Times of one file look alike: all are compared with the first one at once, and only those that
    look different are read one by one.
    """
    if not _TIME.fullmatch(lines, starts[0], first_tabs[0]):
        return 0
    width = int(first_tabs[0] - starts[0])
    model = data[starts[0] : first_tabs[0]]
    digits = (model >= ord("0")) & (model <= ord("9"))
    unlike = first_tabs - starts != width
    places = np.minimum(starts[:, None] + np.arange(width), len(data) - 1)
    fields = data[places]
    unlike |= (fields[:, ~digits] != model[~digits]).any(axis=1)
    unlike |= ((fields[:, digits] < ord("0")) | (fields[:, digits] > ord("9"))).any(axis=1)
    for line in np.flatnonzero(unlike):
        if not _TIME.fullmatch(lines, starts[line], first_tabs[line]):
            return int(line)
    return None


def _refuse(path: Path, line: bytes, number: int) -> NoReturn:
    where = f"{path}, line {number}"
    try:
        line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{where}: not UTF-8", _REMEDY) from error
    fields = line.split(b"\t")
    if len(fields) != COLUMNS:
        raise InputError(f"{where}: {len(fields)} columns instead of {COLUMNS}", _REMEDY)
    if not _TIME.fullmatch(fields[0]):
        shown = fields[0][:40].decode()
        raise InputError(f"{where}: column 1 is not a time: {shown!r}", _REMEDY)
    for column, field in enumerate(fields[1:], start=2):
        if not re.fullmatch(rb"-?\d+", field):
            shown = field[:40].decode()
            raise InputError(f"{where}: column {column} is not an integer: {shown!r}", _REMEDY)
    raise InputError(f"{where}: not a sensor reading", _REMEDY)
