"""What Spark tells of itself: the progress of every batch, kept as JSON lines and summed up."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TextIO

from espbench.errors import EspbenchError

Offsets = dict[str, dict[int, int]]
SHOWN_MALFORMED = 20


@dataclass(slots=True)
class Totals:
    """The sums over all batches so far.

    `answered` holds, by topic and partition, the offset up to which (exclusive) everything was
    read, answered, and acknowledged by the sink. `malformed` is None where the query does not
    look into its input.
    """

    answered: Offsets = field(default_factory=dict)
    batches: int = 0
    input_rows: int = 0
    malformed: int | None = None
    first_malformed: list[dict[str, Any]] = field(default_factory=list)

    def add(self, progress: Mapping[str, Any]) -> None:
        """Add one progress as Spark writes it in JSON."""
        self.batches += 1
        self.input_rows += int(progress.get("numInputRows") or 0)
        for source in progress.get("sources", ()):
            merge(self.answered, parse_offsets(source.get("endOffset")))
        for metrics in (progress.get("observedMetrics") or {}).values():
            self.malformed = (self.malformed or 0) + int(metrics.get("malformed") or 0)
        room = SHOWN_MALFORMED - len(self.first_malformed)
        self.first_malformed += set_aside(progress)[:room]


def set_aside(progress: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The places of a batch's malformed records: `stream`, `partition`, `offset`, in order."""
    places = [
        {"stream": stream, **place}
        for stream, metrics in (progress.get("observedMetrics") or {}).items()
        for place in metrics.get("set_aside") or ()
    ]
    return sorted(places, key=lambda each: tuple(each.values()))


def parse_offsets(value: Any) -> Offsets:
    """Kafka offsets in Spark's notation: `{"topic": {"0": 17}}`, as JSON text or already read."""
    content = json.loads(value) if isinstance(value, str) else value
    if not isinstance(content, dict):
        return {}
    return {
        topic: {int(partition): int(offset) for partition, offset in partitions.items()}
        for topic, partitions in content.items()
        if isinstance(partitions, dict)
    }


def merge(into: Offsets, offsets: Offsets) -> None:
    """Keep the highest offset of every partition."""
    for topic, partitions in offsets.items():
        known = into.setdefault(topic, {})
        for partition, offset in partitions.items():
            known[partition] = max(offset, known.get(partition, 0))


def committed_offsets(checkpoint: Path) -> Offsets:
    """Up to where an earlier life of the query had answered, read from its checkpoint."""
    numbers = sorted(
        (int(path.name) for path in (checkpoint / "commits").glob("*") if path.name.isdigit()),
        reverse=True,
    )
    offsets: Offsets = {}
    for number in numbers[:1]:
        path = checkpoint / "offsets" / str(number)
        if path.exists():
            # The first line is the format's version, the second the batch's metadata.
            for line in path.read_text(encoding="utf-8").splitlines()[2:]:
                merge(offsets, parse_offsets(line))
    return offsets


def malformed_file(progress_file: Path) -> Path:
    """Where the places of malformed records are kept, beside the progress."""
    return progress_file.with_name(
        f"{progress_file.stem.removesuffix('-progress')}-malformed.jsonl"
    )


class ProgressLog:
    """Collects progress events, from any thread; one JSON line each in `file`.

    The places of malformed records are set aside, a line each in a file beside it, which is there
    only if there are any. A query that goes on (`answered` is not empty) adds to its files.
    """

    def __init__(self, file: Path, answered: Offsets | None = None) -> None:
        self._lock = threading.Lock()
        self.malformed_file = malformed_file(file)
        if not answered:
            self.malformed_file.unlink(missing_ok=True)
        self._file: TextIO = file.open("a" if answered else "w", encoding="utf-8")
        self._totals = Totals(answered=answered or {})
        self._last_input = time.monotonic()
        self._last_was_empty = False
        self.terminated = threading.Event()
        self.failure: str | None = None
        # What stopped the query, where it was one of our own parts.
        self.error: EspbenchError | None = None

    def add(self, text: str) -> None:
        """Take one progress event's JSON."""
        progress = json.loads(text)
        with self._lock:
            self._totals.add(progress)
            self._last_was_empty = not progress.get("numInputRows")
            if not self._last_was_empty:
                self._last_input = time.monotonic()
            if not self._file.closed:
                self._write(progress)

    def _write(self, progress: dict[str, Any]) -> None:
        if places := set_aside(progress):
            with self.malformed_file.open("a", encoding="utf-8") as file:
                file.writelines(json.dumps(place) + "\n" for place in places)
        for metrics in (progress.get("observedMetrics") or {}).values():
            metrics.pop("set_aside", None)
        self._file.write(json.dumps(progress, separators=(",", ":")) + "\n")
        self._file.flush()

    def end(self, failure: str | None) -> None:
        """The query has ended, by itself or by a failure."""
        self.failure = failure
        self.terminated.set()

    @property
    def totals(self) -> Totals:
        """The sums so far; not to be changed."""
        with self._lock:
            return self._totals

    def covers(self, goal: Offsets) -> bool:
        """Whether everything before these offsets was answered for."""
        with self._lock:
            answered = self._totals.answered
            return all(
                answered.get(topic, {}).get(partition, 0) >= end
                for topic, partitions in goal.items()
                for partition, end in partitions.items()
            )

    def begin_silence(self) -> None:
        """Count silence from now on: the query has only just begun to listen."""
        with self._lock:
            self._last_input = time.monotonic()

    def silent_s(self, *, reported: bool) -> float:
        """Seconds without input; with `reported` 0 unless the last batch said that it was empty."""
        with self._lock:
            if reported and not self._last_was_empty:
                return 0.0
            return time.monotonic() - self._last_input

    def close(self) -> None:
        """Close the file; later events are counted but not written."""
        with self._lock:
            self._file.close()


class Listener:
    """A `StreamingQueryListener` that hands each event over as one piece of JSON.

    PySpark's own base class asks the JVM for every field by itself, about a hundred calls per
    event, which ten batches a second would feel; Spark needs no more of it than `_jlistener`.
    """

    def __init__(self, log: ProgressLog) -> None:
        self._log = log

    @cached_property
    def _jlistener(self) -> Any:
        from pyspark import SparkContext  # noqa: PLC0415 - an extra, and heavy

        jvm: Any = SparkContext._jvm  # noqa: SLF001 - as PySpark's own listener does
        return jvm.PythonStreamingQueryListenerWrapper(_JavaListener(self._log))


class _JavaListener:
    """Implements Spark's Java interface; its methods are called by the JVM, in a thread of its."""

    def __init__(self, log: ProgressLog) -> None:
        self._log = log

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the interface's name
        """Nothing to do."""

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - the interface's name
        """A batch is done."""
        self._log.add(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802 - the interface's name
        """Nothing to do."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802 - the interface's name
        """The query has ended."""
        failure = event.exception()
        self._log.end(failure.get() if failure.isDefined() else None)

    class Java:
        """What py4j reads."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)
