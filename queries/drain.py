"""When a query has done its work: the end offsets of a sender's report, or silence."""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.errors import InputError, ServiceError
from queries.progress import Offsets, ProgressLog

SENDER_FORMAT = "espbench-sender/1"
ASK_EVERY_S = 1.0


def read_goal(path: Path, topics: Collection[str]) -> Offsets | None:
    """The end offsets (exclusive) of these topics in a sender's report; None before it is there.

    Raises `InputError` for a file that is not such a report, or not about these topics.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise _not_a_report(path, str(error)) from error
    try:
        report = json.loads(content)
        if report["format"] != SENDER_FORMAT:
            raise _not_a_report(path, f"its format is {report['format']!r}")
        goal = {stream["topic"]: _ends(stream["partitions"]) for stream in report["streams"]}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _not_a_report(path, f"{type(error).__name__}: {error}") from error
    if missing := sorted(set(topics) - set(goal)):
        raise _not_a_report(path, f"it says nothing of the topic {missing[0]}")
    return {topic: goal[topic] for topic in topics}


def _ends(partitions: list[dict[str, Any]]) -> dict[int, int]:
    return {
        int(each["partition"]): int(each["last_offset"]) + 1 for each in partitions if each["count"]
    }


def _not_a_report(path: Path, why: str) -> InputError:
    return InputError(
        f"{path} is not a sender's report: {why}",
        "name the file that `espbench send --out` writes for this run",
    )


@dataclass(slots=True)
class Finish:
    """Decides when to stop; whichever condition is given and comes first.

    `long_batches`: a batch tells of its input only at its end, seconds later (real-time mode), so
    that no news is not silence. `ends` asks the broker for the topics' ends: silence with records
    that nobody answered is a batch that takes long, and no end.
    """

    topics: tuple[str, ...]
    until: Path | None = None
    until_idle_s: float | None = None
    long_batches: bool = False
    ends: Callable[[], Offsets] | None = None
    _goal: Offsets | None = field(default=None, init=False)
    _asked: float = field(default=-ASK_EVERY_S, init=False)

    def reached(self, log: ProgressLog) -> str | None:
        """Why it is time to stop, None while it is not."""
        if self.until is not None:
            if self._goal is None:
                self._goal = read_goal(self.until, self.topics)
            if self._goal is not None and log.covers(self._goal):
                return "drained"
        if self.until_idle_s is not None:
            silent_s = log.silent_s(reported=self.long_batches)
            if silent_s > self.until_idle_s and self._all_is_answered(log):
                return "idle"
        return None

    def _all_is_answered(self, log: ProgressLog) -> bool:
        if self.ends is None:
            return True
        now = time.monotonic()
        if now - self._asked < ASK_EVERY_S:
            return False
        self._asked = now
        try:
            return log.covers(self.ends())
        except ServiceError:
            # The watch over the broker tells of it, should it stay silent.
            return False
