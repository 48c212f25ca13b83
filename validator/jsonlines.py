"""JSON Lines as `kcat -C -J` writes them, gzipped or not.

kcat escapes what JSON must have escaped and writes every other byte as it is, so that a payload
that is not UTF-8 makes a file that is not UTF-8: bytes are kept as bytes here. A null payload or
key is `null`; a record without a timestamp has neither `tstype` nor `ts`.

Blocks of whole lines go through Arrow's JSON reader. A block that it refuses, or where it may have
been more generous than one record a line, is read line by line, so that every bad line is named.
"""

import io
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from validator.batches import LAST_PARTITION, NO_TIMESTAMP, Batch, are_timestamps, numbers
from validator.evidence import Evidence
from validator.records import text

BLOCK_BYTES = 16 << 20
MAX_LINE_BYTES = 64 << 20
COMPRESSED_BYTES = 1 << 20
# A file of another kind need not be read to its end to know that.
MAX_BAD_LINES = 10_000
# Text of records shrinks to a tenth or a fiftieth; only a bomb is this much larger than its file.
BOMB_RATIO, BOMB_BYTES = 400, 1 << 30
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LOG_APPEND = "logappend"
_LINE_END, _OPEN, _CLOSE = b"\n{}"
# A bracket within a bracket: no list of headers.
_ONCE = (b"partition", b"offset", b"payload")
_NESTED = re.compile(rb"\[[^\]\n]*\[")

_SCHEMA = pa.schema(
    [
        ("topic", pa.binary()),
        ("partition", pa.int64()),
        ("offset", pa.int64()),
        ("tstype", pa.binary()),
        ("ts", pa.int64()),
        ("key", pa.binary()),
        ("payload", pa.binary()),
    ]
)
_PARSE = pj.ParseOptions(explicit_schema=_SCHEMA, unexpected_field_behavior="ignore")


class BadLineError(Exception):
    """A line that is not a record, and why."""


def read_json_lines(path: Path, evidence: Evidence) -> Iterator[Batch]:
    """The records of a file in batches; whatever cannot be read becomes a problem of `evidence`."""
    line = 1
    for block in _blocks(path, evidence):
        lines = block.count(b"\n")
        batch = _fast(block) or _slow(block, line, evidence)
        line += lines
        if len(batch):
            yield batch
        if len(evidence.problems) + evidence.more > MAX_BAD_LINES:
            evidence.add(f"more than {MAX_BAD_LINES:,} bad lines; reading stopped there", line)
            return


def _blocks(path: Path, evidence: Evidence) -> Iterator[bytes]:
    """Whole lines, about `BLOCK_BYTES` at a time; the last block may lack its line end."""
    rest = b""
    first = True
    for piece in _content(path, evidence):
        fresh = piece
        if first:
            first = False
            fresh = piece.removeprefix(BYTE_ORDER_MARK)
        cut = fresh.rfind(b"\n") + 1
        if cut:
            yield rest + fresh[:cut]
            rest = fresh[cut:]
        else:
            rest += fresh
        if len(rest) > MAX_LINE_BYTES:
            evidence.add(f"a line is longer than {MAX_LINE_BYTES >> 20} MiB; reading stopped there")
            return
    if rest:
        yield rest


def _content(path: Path, evidence: Evidence) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            zipped = file.peek(2)[:2] == GZIP_MAGIC
            if not zipped:
                yield from iter(lambda: file.read(BLOCK_BYTES), b"")
                return
            limit = max(BOMB_BYTES, BOMB_RATIO * path.stat().st_size)
            for piece in _unzipped(file, evidence):
                limit -= len(piece)
                if limit < 0:
                    evidence.add(
                        f"a gzip bomb: its content is more than {BOMB_RATIO} times as large as the "
                        "file; reading stopped there"
                    )
                    return
                yield piece
    except OSError as error:
        evidence.add(f"cannot be read: {error.strerror or error}")


def _unzipped(file: io.BufferedReader, evidence: Evidence) -> Iterator[bytes]:
    """The content of a gzip file, member by member, as far as it is intact."""
    pending = b""
    while True:
        # Between members there may be a padding of zeros.
        pending = pending.lstrip(b"\0") or file.read(COMPRESSED_BYTES).lstrip(b"\0")
        if not pending and not file.peek(1):
            return
        if not pending:
            continue
        member = zlib.decompressobj(wbits=31)
        try:
            yield from _member(member, pending, file)
        except zlib.error as error:
            evidence.add(f"the gzip data is damaged: {error}")
            return
        if not member.eof:
            evidence.add("the gzip data is torn: it ends before its end")
            return
        pending = member.unused_data


def _member(member: Any, begin: bytes, file: io.BufferedReader) -> Iterator[bytes]:
    """The content of one member, in pieces of bounded size."""
    pending = begin
    while not member.eof:
        piece = member.decompress(pending, BLOCK_BYTES)
        if piece:
            yield piece
        pending = member.unconsumed_tail
        if not pending and not member.eof:
            pending = file.read(COMPRESSED_BYTES)
            if not pending and not piece:
                return


def _fast(block: bytes) -> Batch | None:
    """A block by Arrow's reader, or None where it has to be read line by line."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    if not _looks_like_kcat(block, lines):
        return None
    try:
        table = pj.read_json(
            io.BytesIO(block),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(block) + 1),
            parse_options=_PARSE,
        ).combine_chunks()
    except pa.ArrowInvalid:
        return None
    columns = {name: _flat(table.column(name)) for name in _SCHEMA.names}
    wanted = [columns[name] for name in ("partition", "offset", "payload")]
    # A null where there must be something may be a field that is not there at all; and as many
    # records as lines shows that none is broken over two lines and none shares one.
    if table.num_rows != lines or any(column.null_count for column in wanted):
        return None
    partition, offset = numbers(columns["partition"]), numbers(columns["offset"])
    if not len(offset) or partition.min() < 0 or offset.min() < 0:
        return None
    if partition.max() > LAST_PARTITION:
        return None
    stamps = numbers(columns["ts"])
    kinds = columns["tstype"].unique().to_pylist()
    return Batch(
        partition=partition,
        offset=offset,
        timestamp_ms=stamps,
        key=columns["key"],
        value=columns["payload"],
        stamped=kinds == [LOG_APPEND.encode()] and are_timestamps(stamps),
        topic=text(columns["topic"][0].as_py()),
    )


def _looks_like_kcat(block: bytes, lines: int) -> bool:
    """Whether every line is one flat object, from its first byte to its last.

    Arrow's reader dies of other things: a `null` between objects, values nested too deeply.
    """
    content = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(content == _LINE_END)
    if len(ends) < lines:
        ends = np.append(ends, len(content))
    begins = np.append(0, ends[:-1] + 1)
    return bool(
        (begins < ends).all()
        and (content[begins] == _OPEN).all()
        and (content[ends - 1] == _CLOSE).all()
        and np.count_nonzero(content == _OPEN) == lines
        and np.count_nonzero(content == _CLOSE) == lines
        and (b"[" not in block or _NESTED.search(block) is None)
        # Two lines torn into one have their fields twice.
        and all(block.count(b'"%s":' % name) == lines for name in _ONCE)
    )


def _flat(column: Any) -> Any:
    joined = column.combine_chunks()
    return joined.chunk(0) if isinstance(joined, pa.ChunkedArray) else joined


def _slow(block: bytes, first_line: int, evidence: Evidence) -> Batch:
    """A block line by line: the good records, and a problem for every other line."""
    records = []
    bad = 0
    lines = block.split(b"\n") if block.strip() else []
    for number, line in enumerate(lines, start=first_line):
        if not line.strip():
            continue
        if bad > MAX_BAD_LINES:
            break
        try:
            records.append(_record(line))
        except BadLineError as error:
            at_end = number - first_line == len(lines) - 1
            torn = "torn: the file ends within this line; " if at_end else ""
            evidence.add(f"{torn}{error}", number)
            bad += 1
    columns: list[list[Any]] = [list(column) for column in zip(*records, strict=True)]
    partition, offset, timestamp, kind, key, value, topic = columns or [[] for _ in range(7)]
    stamps = np.array(timestamp, dtype=np.int64)
    return Batch(
        partition=np.array(partition, dtype=np.int64),
        offset=np.array(offset, dtype=np.int64),
        timestamp_ms=stamps,
        key=pa.array(key, type=pa.binary()),
        value=pa.array(value, type=pa.binary()),
        stamped=all(one == LOG_APPEND for one in kind) and are_timestamps(stamps),
        topic=topic[0] if topic else None,
    )


def _record(line: bytes) -> tuple[Any, ...]:
    try:
        found = json.loads(line.decode("utf-8", "surrogateescape"), object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise BadLineError(f"not JSON ({reason})") from error
    if not isinstance(found, dict):
        raise BadLineError("not a JSON object as `kcat -C -J` writes it")
    missing = [name for name in ("partition", "offset", "payload") if name not in found]
    if missing:
        raise BadLineError(f"no {' and no '.join(missing)}: not as `kcat -C -J` writes it")
    timestamp = found.get("ts")
    topic = found.get("topic")
    return (
        _count(found, "partition", LAST_PARTITION),
        _count(found, "offset"),
        NO_TIMESTAMP if timestamp is None else _integer(found, "ts"),
        found.get("tstype"),
        _bytes(found, "key"),
        _bytes(found, "payload"),
        topic if isinstance(topic, str) else None,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise BadLineError("a field occurs twice: two lines torn into one")
    return found


def _integer(found: dict[str, Any], name: str) -> int:
    value = found[name]
    if type(value) is not int or abs(value) >= 2**63:
        raise BadLineError(f"{name} is not an integer")
    return value


def _count(found: dict[str, Any], name: str, limit: int = 2**63 - 1) -> int:
    value = _integer(found, name)
    if not 0 <= value <= limit:
        raise BadLineError(f"{name} is {'negative' if value < 0 else 'too large'}")
    return value


def _bytes(found: dict[str, Any], name: str) -> bytes | None:
    value = found.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadLineError(f"{name} is neither a string nor null")
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return value.encode("utf-8", "surrogatepass")
