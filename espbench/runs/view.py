"""What a person sees of a run: the step, how long it takes, what was sent and answered.

Plain lines where standard error is no terminal; there, one line that moves below them.
"""

import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.text import Text

from espbench.logs import LOGGER, stderr
from espbench.runs.events import Began, Ended, News, Skipped, Step

# A skipped task has ended by then.
SHOWN_AFTER_S = 0.2
_FOLLOW_S = 0.25
_SENT = re.compile(r"\bsending: ([\d,]+)(?: of ([\d,]+))?")
# Words of others, in files of their own.
_NOT_FOLLOWED = ("-spark.log", "ansible.log")


class Follower:
    """Reads the lines that are added to files; a line counts once it is whole."""

    def __init__(self) -> None:
        self._places: dict[Path, int] = {}

    def new_lines(self, file: Path) -> list[str]:
        """The lines since the last call."""
        place = self._places.get(file, 0)
        try:
            if file.stat().st_size <= place:
                return []
            with file.open("rb") as content:
                content.seek(place)
                added = content.read()
        except OSError:
            return []
        whole = added[: added.rfind(b"\n") + 1]
        self._places[file] = place + len(whole)
        return whole.decode("utf-8", "replace").splitlines()

    def skip(self, file: Path) -> None:
        """Leave out what the file holds by now."""
        if file.exists():
            self._places[file] = file.stat().st_size


class Numbers:
    """How much of one query was sent and answered for, as far as it has been told."""

    def __init__(self) -> None:
        self.sent: int | None = None
        self.asked: int | None = None
        self.answered: int | None = None

    def hear(self, line: str) -> bool:
        """Take a line of the sender's log; whether it told of numbers."""
        found = _SENT.search(line)
        if found is None:
            return False
        self.sent, self.asked = (
            None if text is None else int(text.replace(",", "")) for text in found.groups()
        )
        return True

    def batch(self, line: str) -> None:
        """Take a line of the query's progress."""
        try:
            rows = int(json.loads(line).get("numInputRows") or 0)
        except (ValueError, AttributeError):
            return
        self.answered = (self.answered or 0) + rows

    def answers(self) -> str:
        """What is known of the answers: a query tells at the end of each batch."""
        if self.answered is None:
            return ""
        lag = "" if self.sent is None else f", lag at most {max(0, self.sent - self.answered):,}"
        return f"answered at least {self.answered:,}{lag}"

    def __str__(self) -> str:
        of_all = f" of {self.asked:,}" if self.asked else ""
        sent = "" if self.sent is None else f"sent {self.sent:,}{of_all}"
        return ", ".join(part for part in (sent, self.answers()) if part)


class View:
    """The view of one run; a context manager that gives the terminal back at its end."""

    def __init__(self, logs: Path, *, quiet: bool) -> None:
        self._logs = logs
        self._shown = not quiet and LOGGER.isEnabledFor(logging.INFO)
        self._follower = Follower()
        self._numbers = Numbers()
        self._query: str | None = None
        self._step: Step | None = None
        self._said: Step | None = None
        self._since = self._followed = self._begin = time.monotonic()
        self._stack = ExitStack()
        self._live: Live | None = None
        for file in self._files():
            self._follower.skip(file)

    def __enter__(self) -> Self:
        if self._shown and stderr.is_terminal:
            # Plain lines that are written meanwhile appear above it.
            self._live = self._stack.enter_context(
                Live(console=stderr, get_renderable=self._line, refresh_per_second=4)
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.follow(at_once=True)
        self._stack.close()

    def take(self, news: News) -> None:
        """Take what a step did."""
        if isinstance(news, Began):
            self._step, self._since = news.step, time.monotonic()
            if news.step.query and news.step.query != self._query:
                self._query, self._numbers = news.step.query, Numbers()
        elif (
            isinstance(news, (Ended, Skipped)) and self._step and news.step.name == self._step.name
        ):
            if isinstance(news, Ended):
                self._say()
            self._step = None

    def follow(self, *, at_once: bool = False) -> None:
        """Show what was said since; to be called often."""
        now = time.monotonic()
        if self._step and now - self._since > SHOWN_AFTER_S:
            self._say()
        if now - self._followed < _FOLLOW_S and not at_once:
            return
        self._followed = now
        if self._query:
            for line in self._follower.new_lines(
                self._logs / f"{self._query}-query-progress.jsonl"
            ):
                self._numbers.batch(line)
        for file in self._files():
            for line in self._follower.new_lines(file):
                self._relay(line)

    def _files(self) -> Iterator[Path]:
        for file in sorted(self._logs.glob("*.log")):
            if not file.name.endswith(_NOT_FOLLOWED):
                yield file

    def _relay(self, line: str) -> None:
        told = self._numbers.hear(line)
        if not self._shown or (told and self._live):
            return
        known = f", {self._numbers.answers()}" if told and self._numbers.answers() else ""
        sys.stderr.write(f"    {line}{known}\n")

    def _say(self) -> None:
        if self._step != self._said:
            self._said = self._step
            if self._shown:
                LOGGER.info("%s", self._step)

    def _line(self) -> Text:
        now = time.monotonic()
        parts = [f"{_minutes(now - self._begin)}"]
        if self._said:
            parts.append(f"{self._said} {now - self._since:.0f} s")
        if numbers := str(self._numbers):
            parts.append(numbers)
        return Text(" · ".join(parts))


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
