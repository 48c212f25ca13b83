"""What is measured of one profile, step by step."""

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
from sqlalchemy import false, func, select

from espbench.databases.feed import Feed
from espbench.databases.replay import Pace, Replayed, replay
from espbench.databases.search import Found, is_sustained, search
from espbench.databases.servers import Served
from espbench.databases.usage import Meter, Spent
from espbench.databases.work import Work
from espbench.errors import ServiceError
from espbench.logs import LOGGER
from espbench.timestamps import now_ms
from queries.stamping import PassingError, StampingSession
from schema.contract import Database
from schema.dataset import DataSet
from schema.load import load
from schema.reset import reset
from schema.tables import PLACED, STAMPED
from sender.clock import SystemClock
from validator.latency import statistics

LOOKUPS = 30
_CLOCK_TRIES = 5
_WARM_UP_LINES = 200
_PATIENCE_S = 60.0
# Beyond what one connection of one client could send.
MOST_RATE = 2_000_000.0


class Patient:
    """A stamping session that tries again where query 5 would."""

    def __init__(self, session: StampingSession) -> None:
        self._session = session
        self.retries = 0

    @property
    def update_s(self) -> float:
        """What the last update took."""
        return self._session.update_s

    @property
    def commit_s(self) -> float:
        """What the last commit took."""
        return self._session.commit_s

    def stamp(self, lines: bytes) -> int:
        """Stamp and commit, again until it is done."""
        give_up = time.monotonic() + _PATIENCE_S
        while True:
            try:
                return self._session.stamp(lines)
            except PassingError:
                if time.monotonic() > give_up:
                    raise
                self.retries += 1
                time.sleep(0.2)


class Measurement:
    """One profile's figures, in `document` as they come, so that an interruption keeps them."""

    def __init__(self, served: Served, data: DataSet, work: Work, document: dict[str, Any]) -> None:
        self._database: Database = served.database
        self._data = data
        self._work = work
        self._document = document
        self._observer = served.database.observer()
        self._meter = Meter(served.record, self._observer)

    def all(self) -> None:
        """Load, look at the server, look up, write at the asked rate, search the highest one."""
        name = self._document["name"]
        server = self._database.server()
        self._document["server"] = {"product": server.product, "version": server.version}
        LOGGER.info("%s: %s %s; loading", name, server.product, server.version)
        self._document["load"] = self._load()
        observer = self._observer
        self._document["settings"] = observer.settings() if observer else server.settings
        self._document["size_bytes"] = observer.sizes() if observer else None
        LOGGER.info("%s: looking up", name)
        self._document["lookup"] = self._lookups()
        session = StampingSession(self._database)
        try:
            self._write(name, Patient(session))
        finally:
            session.close()
        self._document["size_bytes_after"] = observer.sizes() if observer else None

    def _write(self, name: str, session: Patient) -> None:
        feed = Feed(self._data.production_times.path, self._renew)
        # Prepared statements, caches, and the client's own code.
        warm = feed.take(min(_WARM_UP_LINES, len(feed)))
        session.stamp(feed.lines(warm.start, warm.stop))
        first = feed.lines(0, min(100, len(feed)))
        plans = self._observer.plans(first) if self._observer else []
        self._document["plans"] = [asdict(plan) for plan in plans]
        work = self._work
        LOGGER.info("%s: writing %g/s for %g s", name, work.rate, work.duration_s)
        self._document["writes"] = self._at_rate(session, feed)
        if work.step_s:
            LOGGER.info("%s: searching the highest rate", name)
            self._document["search"] = self._search(name, session, feed)

    def _load(self) -> dict[str, Any]:
        with self._meter.measured() as spent:
            report = load(
                self._database, self._data, start_ms=now_ms(), duration_s=self._work.duration_s
            )
        return {
            "rows": report.rows,
            "seconds": round(report.seconds, 3),
            "rows_per_s": round(report.rows / report.seconds),
            "tables": {
                table: {
                    "rows": one.rows,
                    "seconds": round(one.seconds, 3),
                    "rows_per_s": round(one.rows_per_s),
                    "keys_s": round(report.keys.get(table, 0.0), 3),
                }
                for table, one in report.tables.items()
            },
            "steps": {step: round(seconds, 3) for step, seconds in report.steps.items()},
            **_rounded(spent),
        }

    def _lookups(self) -> dict[str, Any]:
        """As Spark reads a table by JDBC: ask for its columns, then for its rows, anew each."""
        table = self._database.table(PLACED)
        columns, rows = select(table).where(false()), select(table)
        took, count = [], 0
        with self._meter.measured() as spent:
            for _ in range(LOOKUPS):
                begun = time.perf_counter()
                with self._database.reading() as connection:
                    connection.execute(columns).all()
                with self._database.reading() as connection:
                    count = len(connection.execute(rows).all())
                took.append((time.perf_counter() - begun) * 1_000)
        return {"reads": LOOKUPS, "rows": count, "ms": figures(np.array(took)), **_rounded(spent)}

    def _at_rate(self, session: Patient, feed: Feed) -> dict[str, Any]:
        work = self._work
        feed.restart()
        lines = feed.take(min(len(feed), max(1, int(work.rate * work.duration_s))))
        ahead_s = self._clock_ahead_s()
        with self._meter.measured() as spent:
            outcome = replay(session, feed, lines, self._pace(work.rate), SystemClock())
        stamps, stamped = self._stamps_s(outcome, feed, ahead_s)
        return {
            "asked_rate": work.rate,
            "achieved_rate": round(outcome.written / float(outcome.committed_s()[-1]), 1),
            "records": outcome.written,
            "stamped": stamped,
            "unknown": outcome.unknown,
            "retries": session.retries,
            "batches": len(outcome.batches),
            "sustained": is_sustained(outcome),
            "update_latency_ms": figures((stamps - outcome.due_s()) * 1_000),
            "commit_latency_ms": figures(outcome.commit_latency_ms()),
            "update_ms": figures(outcome.update_ms()),
            "commit_ms": figures(outcome.commit_ms()),
            "clock_ahead_ms": round(ahead_s * 1_000, 3),
            **_rounded(spent),
            "log_bytes_per_record": (
                None if spent.log_bytes is None else round(spent.log_bytes / outcome.written, 1)
            ),
        }

    def _search(self, name: str, session: Patient, feed: Feed) -> dict[str, Any]:
        work = self._work
        rounds: list[int] = []

        def holds(rate: float) -> bool:
            lines = feed.take(max(1, int(rate * work.step_s)))
            pace = self._pace(rate, give_up_s=1.5)
            outcome = replay(session, feed, lines, pace, SystemClock())
            rounds.append(outcome.rounds)
            held = is_sustained(outcome)
            LOGGER.info("%s: %s/s %s", name, f"{rate:,.0f}", "held" if held else "not held")
            return held

        with self._meter.measured() as spent:
            found: Found = search(work.rate, MOST_RATE, holds)
        return {
            "sustained_rate": found.sustained and round(found.sustained),
            "failed_rate": found.failed and round(found.failed),
            "limited": found.limited,
            # How often a step went through the data; more than once where they are few.
            "most_rounds": max(rounds),
            "step_s": work.step_s,
            "tried": [{"rate": round(rate), "held": held} for rate, held in found.tried],
            **_rounded(spent),
        }

    def _pace(self, rate: float, give_up_s: float | None = None) -> Pace:
        single = self._database.address.writes == "single"
        return Pace(rate, self._work.batch_s, give_up_s, at_most=1 if single else None)

    def _renew(self) -> None:
        reset(self._database, now_ms(), self._work.duration_s, self._data.tables_sha256)

    def _clock_ahead_s(self) -> float:
        """How far the database's clock is ahead of ours: the quickest of some answers counts."""
        best = (float("inf"), 0.0)
        with self._database.reading() as connection:
            for _ in range(_CLOCK_TRIES):
                before = time.time()
                theirs = connection.scalar(select(self._database.now()))
                after = time.time()
                if not isinstance(theirs, datetime):
                    raise ServiceError("the database tells no time", "see its log")
                ahead = theirs.replace(tzinfo=UTC).timestamp() - (before + after) / 2
                best = min(best, (after - before, ahead))
        return best[1]

    def _stamps_s(
        self, outcome: Replayed, feed: Feed, ahead_s: float
    ) -> tuple["np.typing.NDArray[np.float64]", int]:
        """When each record was stamped, in seconds of our clock from the start; how many are."""
        table = self._database.table(STAMPED)
        keys = (table.c.pol_o_id, table.c.pol_ol_number, table.c.pol_number)
        stamps = (table.c.pol_start_ts, table.c.pol_end_ts)
        with self._database.reading() as connection:
            rows = connection.execute(
                select(*keys, *stamps).where(table.c.pol_start_ts.is_not(None))
            )
            found = {tuple(row[:3]): row[3:] for row in rows}
            stamped = int(
                connection.scalar(select(func.count(stamps[0]) + func.count(stamps[1]))) or 0
            )
        start_s = outcome.start_ns / 1e9 + ahead_s
        text = feed.lines(outcome.lines.start, outcome.lines.start + outcome.written)
        times = []
        for line in text.splitlines():
            *key, is_end = map(int, line.split(b"\t"))
            stamp = found[tuple(key)][is_end]
            times.append(stamp.replace(tzinfo=UTC).timestamp() - start_s)
        return np.array(times), stamped


def figures(values: "np.typing.NDArray[np.float64]") -> dict[str, Any]:
    """The statistics of a sample in ms, rounded to the microsecond."""
    return {
        name: round(value, 3) if isinstance(value, float) else value
        for name, value in statistics(values).items()
    }


def _rounded(spent: Spent) -> dict[str, Any]:
    cpu = None if spent.cpu_s is None else round(spent.cpu_s, 2)
    return {"server_cpu_s": cpu, "log_bytes": spent.log_bytes}
