"""One look after the other: the run's files and the broker, put together as one document."""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import ValidationError

from espbench.config import LoadSettings
from espbench.errors import EspbenchError, UsageError
from espbench.live.broker import Tail
from espbench.live.charts import live_charts
from espbench.live.files import RunFiles
from espbench.live.history import RATE_S, History, Series
from espbench.names import Query, run_of
from espbench.reports.reading import at, number
from espbench.reports.sentences import checks
from sender.profile_options import parse_profile
from sender.schedule import NS_PER_MS, Schedule

FORMAT = "espbench-live/1"
# Until a broker that did not answer is asked again.
RETRY_S = 5.0
OpenTail = Callable[[str, Query, str, str], Tail]


class Looker:
    """Looks at one run; `look` at every beat, `document` for whoever wants to see.

    The broker is asked only while the query's topics are of use: from their making to the end of
    the drain. `open_tail` is the door to it, None where it is not to be asked.
    """

    def __init__(self, files: RunFiles, open_tail: OpenTail | None = Tail) -> None:
        self.files = files
        self._open_tail = open_tail
        self._tail: Tail | None = None
        self._retry_s = 0.0
        self._history: History | None = None
        self._asked = Series()
        self._schedule: Schedule | None = None
        self._note: str | None = None

    def close(self) -> None:
        """Let the broker go."""
        if self._tail is not None:
            self._tail.close()
            self._tail = None

    def look(self) -> None:
        """Look once; raises where the run cannot be read, or is gone."""
        self.files.refresh()
        query = self.files.current()
        if query is None:
            return
        if self._history is None or self._history.query != query:
            self.close()
            self._history, self._asked = History(query), Series()
            self._note, self._retry_s = None, 0.0
        batches = self.files.batches(query)
        self._history.take_batches(batches)
        if (table := self.files.usage(query)) is not None:
            self._history.take_usage(table)
        if self._worth_asking():
            self._ask(self._history, batches)
        else:
            self.close()

    def document(self, *, charts: bool = True) -> dict[str, Any]:
        """What was seen: figures, notes, and, as they cost most, the charts where asked for."""
        run, seen = self.files.document, self._history
        step = self.files.step()
        return {
            "format": FORMAT,
            "run": self.files.run_id,
            "state": self.files.state,
            "over": self.files.over,
            "elapsed_s": round(self.files.elapsed_s(), 1),
            "query": seen.query.name if seen else None,
            "step": None
            if step is None
            else {
                "name": step[0],
                "query": step[1].name if step[1] else None,
                "seconds": round(max(0.0, time.time() - step[2]), 1),
            },
            "queries": self._queries(),
            "rate_per_s": {
                "asked": _rounded(self._asked.last()),
                **{
                    name.replace(" ", "_"): _rounded(series.last())
                    for name, series in (seen.rates.items() if seen else ())
                },
            },
            "records": self._records(),
            "latency_ms": None if seen is None else seen.latency_ms(),
            "components": [
                {
                    "name": each.component,
                    "cpu_percent": _rounded(float(each.cpu_percent[-1])),
                    "rss_bytes": _rounded(float(each.rss_bytes[-1]), 0),
                }
                for each in (seen.usage if seen else [])
            ],
            "error": at(run, "error"),
            "notes": [self._note] if self._note else [],
        } | ({"charts": self._charts()} if charts else {})

    def _charts(self) -> dict[str, Any]:
        run = self.files.document
        limit_ms = number(at(run, "config", "slo", "limit_ms"))
        return live_charts(
            self._history, self._asked, limit_ms, number(at(run, "machine", "cores"))
        )

    def _records(self) -> dict[str, int] | None:
        seen = self._history
        if seen is None or not seen.sent:
            return None
        sent, answered = seen.sent_count(), min(seen.sent_count(), seen.answered_count())
        found = {"sent": sent, "answered_at_least": answered, "lag_at_most": sent - answered}
        answers = seen.answers.last()
        return found if answers is None else found | {"answers": int(answers)}

    def _queries(self) -> list[dict[str, Any]]:
        verdicts = self.files.verdicts()
        found = []
        for query in self.files.queries():
            verdict = verdicts.get(query.name)
            p90 = number(at(verdict, "latency_ms_after_warmup", "p90"))
            words = [] if verdict is None else [check.document() for check in checks(verdict)]
            found.append({"name": query.name, "checks": words, "p90_ms": p90})
        return found

    def _worth_asking(self) -> bool:
        if self._open_tail is None or self.files.over:
            return False
        step = self.files.step()
        return step is None or step[0] not in {"capture", "validate", "cleanup"}

    def _ask(self, history: History, batches: Any) -> None:
        address = self.files.broker()
        if address is None or self._open_tail is None or time.monotonic() < self._retry_s:
            return
        try:
            if self._tail is None:
                prefix = str(at(self.files.document, "config", "kafka", "prefix") or "espbench")
                run = run_of(self.files.run_id, history.query)
                self._tail = self._open_tail(address, history.query, prefix, run)
            seen = self._tail.look(batches)
        except EspbenchError as error:
            # Shown instead of the figures; the run goes on without us.
            self._note = error.cause
            self.close()
            self._retry_s = time.monotonic() + RETRY_S
            return
        self._note = None
        if seen is not None:
            history.take_topics(seen)
            if history.start_ms is not None:
                self._asked.add(seen.time_ms, self._asked_per_s(seen.time_ms - history.start_ms))

    def _asked_per_s(self, since_ms: float) -> float:
        """What the schedule asks of a stream, over the same seconds as the rates."""
        if self._schedule is None:
            try:
                load = LoadSettings.model_validate(at(self.files.document, "config", "load") or {})
            except ValidationError as error:
                raise UsageError(
                    f"{self.files.root / 'run.json'} garbles config.load", "see `espbench show`"
                ) from error
            profile = parse_profile(load.profile, rate=load.rate, duration_s=load.duration)
            self._schedule = Schedule(profile, load.duration)
        end_ms = max(1.0, since_ms)
        begin_ms = max(0.0, end_ms - RATE_S * 1_000)
        edges = np.array([begin_ms * NS_PER_MS, end_ms * NS_PER_MS], dtype=np.int64)
        due = self._schedule.due_before(edges)
        return float(due[1] - due[0]) / (end_ms - begin_ms) * 1_000


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None or not np.isfinite(value) else round(value, digits)
