"""Table files in CSV, all fields as text; an empty field or backslash-N is null."""

import codecs
import csv
import gzip
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from validator.jsonlines import GZIP_MAGIC

MAX_HEADER_BYTES = 10_000
WHOLE_SECOND = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
BLOCK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class CsvRows:
    """The rows of a table file, and the lines (from 1) of a CSV file that are none."""

    table: pa.Table
    torn_lines: tuple[int, ...] = ()
    is_csv: bool = False

    def line(self, row: int) -> int | None:
        """The line of a row, where the file has lines."""
        if not self.is_csv:
            return None
        line = row + 2
        for torn in sorted(self.torn_lines):
            line += torn <= line
        return line


def read_csv(path: Path) -> CsvRows:
    """The rows of a CSV file; a file without a header raises `pa.ArrowInvalid`."""
    try:
        return _without_torn_end(path, CsvRows(_parse(path, None), is_csv=True))
    except pa.ArrowInvalid:
        if (alone := _header_alone(path)) is not None:
            return CsvRows(alone, is_csv=True)
        if not _is_utf8(path):
            raise
        # Once more, row by row, which tells the lines.
        torn: list[int] = []

        def skip(row: Any) -> str:
            torn.append(row.number)
            return "skip"

        table = _parse(path, skip)
        if not torn:
            raise
        return CsvRows(table, tuple(torn), is_csv=True)


def _header_alone(path: Path) -> pa.Table | None:
    """The table of a file that is a header without a line end; None for any other file."""
    content = path.read_bytes() if path.stat().st_size <= MAX_HEADER_BYTES else b"\n"
    if not content.strip() or b"\n" in content or content.startswith(GZIP_MAGIC):
        return None
    names = [name.strip(' "') for name in content.decode("utf-8-sig").split(",")]
    return pa.table([pa.array([], pa.string()) for _ in names], names=names)


def _parse(path: Path, invalid: Any) -> pa.Table:
    names = _header(path)
    table = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(use_threads=invalid is None),
        parse_options=pa.csv.ParseOptions(invalid_row_handler=invalid),
        convert_options=pa.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.string()),
            null_values=["", "\\N"],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )
    return table.rename_columns([name.strip() for name in names])


def _header(path: Path) -> list[str]:
    """The names of the columns; raises `pa.ArrowInvalid` where there are none."""
    try:
        with _opened(path) as file:
            # A line that ends nowhere is no header.
            begin = file.read(MAX_HEADER_BYTES).decode("utf-8-sig", errors="replace")
    except (OSError, EOFError, zlib.error) as error:
        raise pa.ArrowInvalid(f"cannot be unpacked: {error}") from error
    names = next(csv.reader([begin.split("\n", 1)[0].rstrip("\r")]), [])
    if not names:
        raise pa.ArrowInvalid("Empty CSV file")
    return names


def _is_utf8(path: Path) -> bool:
    """Whether all of it is: of a row that is not, Arrow cannot tell its line."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    try:
        with _opened(path) as file:
            while block := file.read(BLOCK_BYTES):
                decode(block)
            decode(b"", final=True)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return False
    return True


def _opened(path: Path) -> Any:
    """The file's bytes; Arrow unpacks by the name as well."""
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _without_torn_end(path: Path, found: CsvRows) -> CsvRows:
    """Without the last row, where its last field was cut: no line end, shorter than all others.

    A time without a fraction is what Python writes of a whole second, however the others look.
    """
    with path.open("rb") as file:
        whole = file.read(2) == GZIP_MAGIC
        file.seek(-1, 2)
        whole |= file.read(1) in b"\r\n"
    rows = found.table.num_rows
    if whole or rows < 2 or not found.table.num_columns:
        return found
    lengths = pc.utf8_length(found.table.column(found.table.num_columns - 1))
    last, shortest = lengths[rows - 1].as_py(), pc.min(lengths.slice(0, rows - 1)).as_py()
    if last is None or shortest is None or last >= shortest:
        return found
    if WHOLE_SECOND.fullmatch(found.table.column(found.table.num_columns - 1)[rows - 1].as_py()):
        return found
    return CsvRows(found.table.slice(0, rows - 1), (rows + 1,), is_csv=True)
