"""A capture directory: `capture.json` and the files that it names."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from espbench.errors import InputError, UsageError
from espbench.names import Query, find_query
from validator.request import GUARANTEES, LARGEST, Request, Slo
from validator.topics import Claim, TopicFile

NAME = "capture.json"
FORMAT = "espbench-capture/1"


class BrokenCaptureError(Exception):
    """`capture.json` cannot be used: the text says why, and `query` what is known of the query."""

    def __init__(self, text: str, query: str | None = None) -> None:
        super().__init__(text)
        self.query = query


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the user says; it beats what the capture says."""

    guarantee: str | None = None
    rate: float | None = None
    duration_s: float | None = None
    warmup_s: float | None = None
    freshness_s: float | None = None
    sender_report: dict[str, Any] | None = None
    slo: Slo = field(default_factory=Slo)


def find_captures(directory: Path) -> list[Path]:
    """The directory itself, or the captures of several queries within it."""
    if not directory.is_dir():
        raise InputError(f"{directory} is not a directory", "name a capture directory")
    if (directory / NAME).exists():
        return [directory]
    found = sorted(path.parent for path in directory.glob(f"*/{NAME}"))
    if not found:
        raise InputError(
            f"{directory} holds no {NAME}", "name a directory that `espbench capture` wrote"
        )
    return found


def read_capture(directory: Path, overrides: Overrides) -> Request:
    """What `capture.json` asks to be judged; raises `BrokenCaptureError` where it is unusable."""
    found = _load(directory / NAME)
    query = _query(found)
    problems: list[str] = []
    files = _topics(directory, found, problems)
    roles = [f"source-{stream}" for stream in query.streams] + ["sink"] * query.sink
    problems.extend(
        f"{directory / NAME}: there is no topic with role {role}"
        for role in roles
        if role not in files
    )
    tables = _tables(directory, found, query, problems)
    guarantee = overrides.guarantee or _get(found, "guarantee", "declared guarantee")
    if guarantee is not None and guarantee not in GUARANTEES:
        raise BrokenCaptureError(f"{directory / NAME}: guarantee {guarantee!r} is not known")
    report = overrides.sender_report or _get(found, "sender report", "senders report", "sender")
    # The sender's report says what was asked of each stream, profiles and early ends included.
    reported = isinstance(report, dict) and _tells_rates(report)
    request = Request(
        query=query,
        sources={
            stream: files[f"source-{stream}"]
            for stream in query.streams
            if f"source-{stream}" in files
        },
        sink=files.get("sink") if query.sink else None,
        tables=tables,
        # No rate at all cannot have been asked for.
        rate=_first(overrides.rate, None if reported else _number(_get(found, "rate")) or None),
        duration_s=_first(
            overrides.duration_s,
            None if reported else _number(_get(found, "duration", "duration s")),
        ),
        slo=overrides.slo,
        sender_report=report if isinstance(report, dict) else None,
        clock_offsets_ms=tuple(_offsets(_get(found, "clocks"))),
        run=_text(_get(found, "run", "run id")),
        problems=tuple(problems),
    )
    warmup_s = _first(overrides.warmup_s, _number(_get(found, "warm up", "warm up s")))
    freshness_s = _first(overrides.freshness_s, _number(_get(found, "freshness", "freshness s")))
    # What nobody says stays as `Request` has it.
    said: dict[str, Any] = {
        "guarantee": guarantee,
        "warmup_s": warmup_s,
        "freshness_s": freshness_s,
    }
    return replace(request, **{name: value for name, value in said.items() if value is not None})


def _tells_rates(report: dict[str, Any]) -> bool:
    streams = report.get("streams")
    known = streams if isinstance(streams, list) else []
    entries = [entry for entry in known if isinstance(entry, dict)]
    return bool(entries) and all(_number(entry.get("asked_rate")) for entry in entries)


def _first(given: float | None, captured: float | None) -> float | None:
    return captured if given is None else given


def _load(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        line = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise BrokenCaptureError(f"{path}{line}: not readable as JSON: {error}") from error
    if not isinstance(found, dict):
        raise BrokenCaptureError(f"{path}: not a JSON object")
    if found.get("format") != FORMAT:
        raise BrokenCaptureError(
            f"{path}: format is {found.get('format')!r}, not {FORMAT!r}",
            _text(found.get("query")),
        )
    return found


def _query(found: dict[str, Any]) -> Query:
    named = found.get("query")
    try:
        return find_query(str(named))
    except UsageError as error:
        raise BrokenCaptureError(f"{NAME}: {error.cause}") from error


def _topics(directory: Path, found: dict[str, Any], problems: list[str]) -> dict[str, TopicFile]:
    files: dict[str, TopicFile] = {}
    entries = found.get("topics")
    for entry in entries if isinstance(entries, list) else []:
        role = _text(entry.get("role")) if isinstance(entry, dict) else None
        if role is None:
            problems.append(f"{directory / NAME}: a topic without a role")
            continue
        if role in files:
            problems.append(f"{directory / NAME}: two topics have the role {role}")
            continue
        name = _text(entry.get("name"))
        file = _text(entry.get("file")) or f"{name}.parquet"
        files[role] = TopicFile(role, _inside(directory, file), _claim(entry, name))
    return files


def _claim(entry: dict[str, Any], name: str | None) -> Claim:
    ranges: dict[int, tuple[int, int]] = {}
    partitions = entry.get("partitions")
    for part in partitions if isinstance(partitions, list) else []:
        found = part if isinstance(part, dict) else {}
        number, begin, end = (found.get(name) for name in ("partition", "begin", "end"))
        if isinstance(number, int) and isinstance(begin, int) and isinstance(end, int):
            ranges[number] = (begin, end)
    kind = entry.get("timestamp_type")
    complete = entry.get("complete")
    return Claim(
        name=name,
        log_append_time=None if kind is None else _is_log_append(kind),
        complete=complete if isinstance(complete, bool) else None,
        transactional=entry.get("transactional") is True,
        ranges=ranges,
    )


def _is_log_append(kind: Any) -> bool:
    """`LogAppendTime`, kcat's `logappend`, or the number that Kafka's clients use for it."""
    return "logappend" in _key(str(kind)) or kind == 2


def _tables(
    directory: Path, found: dict[str, Any], query: Query, problems: list[str]
) -> dict[str, Path]:
    tables = {}
    entries = found.get("tables")
    for entry in entries if isinstance(entries, list) else []:
        name = _text(entry.get("name")) if isinstance(entry, dict) else None
        if name in query.tables and name is not None:
            file = _text(entry.get("file")) or f"{name}.parquet"
            tables[name] = _inside(directory, file)
    for name in query.tables:
        if name not in tables:
            if (directory / f"{name}.parquet").exists():
                tables[name] = directory / f"{name}.parquet"
            else:
                problems.append(f"{directory / NAME}: the table {name} is not captured")
    return tables


def _inside(directory: Path, file: str) -> Path:
    """A file of the capture; what lies outside the directory is no part of it."""
    path = Path(file)
    return directory / (path.name if path.is_absolute() or ".." in path.parts else path)


def _get(found: dict[str, Any], *names: str) -> Any:
    """A value by any of its names, however they are spelled (`warm-up`, `warmup_s`)."""
    spelled = {_key(name): value for name, value in found.items()}
    return next((spelled[_key(name)] for name in names if _key(name) in spelled), None)


def _key(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _text(value: Any) -> str | None:
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else None


def _number(value: Any) -> float | None:
    """A number that can be a rate or a number of seconds."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if good and 0 <= value <= LARGEST else None


def _offsets(clocks: Any, depth: int = 5) -> list[float]:
    """Every `offset_ms` in what the capture says of clocks, some levels down."""
    if not depth:
        return []
    if isinstance(clocks, dict):
        own = clocks.get("offset_ms")
        here = [float(own)] if isinstance(own, int | float) and abs(own) <= LARGEST else []
        return here + [offset for value in clocks.values() for offset in _offsets(value, depth - 1)]
    if isinstance(clocks, list):
        return [offset for value in clocks for offset in _offsets(value, depth - 1)]
    return []
