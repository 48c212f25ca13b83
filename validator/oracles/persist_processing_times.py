"""Query 5, persist-processing-times: the table is the output.

Every production time sets the start (is_end 0) or the end (is_end 1) of the row with its keys to
the database's time, once: a second one of the same kind changes nothing. Counts are per input.

    missing   the stamp is not there
    wrong     the stamp is earlier than its (first) input by more than the tolerance, or the end of
              a row is earlier than its start
    extra     a stamp that no input calls for
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from validator.matching import dense
from validator.oracles.base import Inputs, Oracle, Table
from validator.outcome import UNKNOWN_MS, WITNESSES_PER_KIND, Answers, Outcome, Witness
from validator.records import Bools, Ints
from validator.streams import Columns, Stream

TABLE = "production_order_line"
TOLERANCE_US = 5_000
KEYS = ("pol_o_id", "pol_ol_number", "pol_number")
INPUT_KEYS = ("o_id", "ol_number", "pol_number")
NO_STAMP = np.iinfo(np.int64).min
NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Lines:
    """The table: stamps and commit times in microseconds by is_end (0, 1), `NO_STAMP` for null."""

    keys: list[Ints]
    stamp: list[Ints]
    commit: list[Ints]
    has_commits: bool

    def __len__(self) -> int:
        return len(self.keys[0])


def lines(table: Table) -> Lines | None:
    """The table as columns; None where it cannot be used."""
    rows = table.rows
    if rows is None:
        return None
    if any(rows.column(name).null_count for name in KEYS):
        table.evidence.add("a row without its keys")
        return None

    def times(name: str) -> Ints:
        return np.asarray(rows.column(name).fill_null(NO_STAMP).to_numpy(), dtype=np.int64)

    again = _repeated([rows.column(name).to_numpy() for name in KEYS])
    if again is not None:
        shown = ", ".join(f"{name} {rows.column(name)[again].as_py()}" for name in KEYS)
        table.evidence.add(f"a row occurs twice, not a table as it stood at one time: {shown}")
        return None
    commits = [times("start_commit_ts"), times("end_commit_ts")]
    return Lines(
        keys=[rows.column(name).to_numpy() for name in KEYS],
        stamp=[times("pol_start_ts"), times("pol_end_ts")],
        commit=commits,
        has_commits=any((commit != NO_STAMP).any() for commit in commits),
    )


def _repeated(keys: list[Ints]) -> int | None:
    """A row whose keys stand in another row as well."""
    code = packed(keys)
    order = np.argsort(code, kind="stable")
    again = np.flatnonzero(np.diff(code[order]) == 0)
    return int(order[again[0] + 1]) if len(again) else None


def rows_of(stream: Stream, inputs: Ints, table: Lines) -> Ints:
    """The table's row of each input, or -1."""
    ours = [stream[name][inputs] for name in INPUT_KEYS]
    code = packed([np.concatenate(pair) for pair in zip(ours, table.keys, strict=True)])
    wanted, have = code[: len(inputs)], code[len(inputs) :]
    if not len(have):
        return np.full(len(inputs), NO_ROW, dtype=np.int64)
    order = np.argsort(have, kind="stable")
    place = np.minimum(np.searchsorted(have[order], wanted), len(have) - 1)
    row = order[place]
    return np.where(have[row] == wanted, row, NO_ROW)


def packed(keys: list[Ints]) -> Ints:
    """One number for the keys of each row, equal where all of them are."""
    code = np.zeros(len(keys[0]), dtype=np.int64)
    size = 1
    for key in keys:
        place, places = dense(key)
        if size * places >= 2**62:
            # Made dense, so that no key can make the number overflow.
            distinct, code = np.unique(code, return_inverse=True)
            size = len(distinct)
        code, size = code * places + place, size * places
    return code


def _judge(inputs: Inputs) -> Outcome:
    (stream,) = inputs.streams
    captured = inputs.tables.get(TABLE)
    table = lines(captured) if captured else None
    if captured is None or table is None:
        return Outcome(reasons=["without the table nothing can be judged"])
    rows = np.flatnonzero(stream["well_formed"])
    topic = stream.topic
    rows = rows[np.lexsort((topic.offset[rows], topic.partition[rows], topic.timestamp_ms[rows]))]
    row = rows_of(stream, rows, table)
    unknown_keys = int((row == NO_ROW).sum())
    rows, row = rows[row != NO_ROW], row[row != NO_ROW]
    is_end = stream["is_end"][rows]
    stamp = np.where(is_end == 0, table.stamp[0][row], table.stamp[1][row])
    # Inputs are in the order of their arrival: the first of a kind is the one that counts.
    _, first, group = np.unique(row * 2 + is_end, return_index=True, return_inverse=True)
    is_first = np.zeros(len(rows), dtype=np.bool_)
    is_first[first] = True
    arrived_us = topic.timestamp_ms[rows[first]][group] * 1_000
    given = stamp != NO_STAMP
    backwards = given & _backwards(table)[row] & (is_end == 1)
    wrong = backwards.copy()
    if topic.stamped:
        wrong |= given & (stamp < arrived_us - TOLERANCE_US)
    named = [np.zeros(len(table), dtype=np.bool_) for _ in range(2)]
    for kind in (0, 1):
        named[kind][row[is_end == kind]] = True
    extra = [(table.stamp[kind] != NO_STAMP) & ~named[kind] for kind in (0, 1)]

    outcome = Outcome()
    outcome.counts = {
        "expected": len(rows),
        "actual": int(sum((table.stamp[kind] != NO_STAMP).sum() for kind in (0, 1))),
        "matched": int((given & ~wrong).sum()),
        "missing": int((~given).sum()),
        "extra": int(extra[0].sum() + extra[1].sum()),
        "wrong": int(wrong.sum()),
        "duplicate": 0,
        "out_of_order": 0,
        "surplus": 0,
        "borderline": 0,
    }
    outcome.extras = {"unknown_keys": unknown_keys}
    _decide(stream, captured, int(backwards.sum()), outcome)
    outcome.answers = _answers(stream, rows, stamp, given, given & ~wrong & is_first)
    if table.has_commits:
        commit = np.where(is_end == 0, table.commit[0][row], table.commit[1][row])
        known = (commit != NO_STAMP) & given & ~wrong & is_first
        outcome.commit_ms = np.where(known, commit / 1_000, UNKNOWN_MS)
    outcome.witnesses = _witnesses(stream, rows, stamp, given, wrong, table, extra)
    return outcome


def _backwards(table: Lines) -> Bools:
    """Rows whose end is before their start."""
    both = (table.stamp[0] != NO_STAMP) & (table.stamp[1] != NO_STAMP)
    return np.asarray(both & (table.stamp[1] < table.stamp[0]), dtype=np.bool_)


def _decide(stream: Stream, captured: Table, backwards: int, outcome: Outcome) -> None:
    """An input that was not captured may have set any stamp, but no row's end before its start."""
    counts = outcome.counts
    table_whole = captured.evidence.complete
    source_whole = stream.topic.evidence.complete
    (outcome.hold_against if table_whole else outcome.leave_open)("missing", counts["missing"])
    surely = counts["wrong"] if source_whole else backwards
    outcome.hold_against("wrong", surely)
    outcome.leave_open("wrong", counts["wrong"] - surely)
    (outcome.hold_against if source_whole else outcome.leave_open)("extra", counts["extra"])


def _answers(stream: Stream, rows: Ints, stamp: Ints, given: Bools, matched: Bools) -> Answers:
    topic = stream.topic
    return Answers(
        stream=np.full(len(rows), stream.number, dtype=np.int64),
        partition=topic.partition[rows],
        offset=topic.offset[rows],
        id=stream["id"][rows],
        owed_ms=topic.timestamp_ms[rows],
        given_ms=np.where(given, stamp / 1_000, UNKNOWN_MS),
        due_ms=stream["due_ms"][rows],
        given=given,
        matched=matched,
    )


def _witnesses(
    stream: Stream,
    rows: Ints,
    stamp: Ints,
    given: Bools,
    wrong: Bools,
    table: Lines,
    extra: list[Bools],
) -> list[Witness]:
    shown = []
    for kind, mask in (("wrong", wrong), ("missing", ~given)):
        for place in np.flatnonzero(mask)[:WITNESSES_PER_KIND]:
            row = int(rows[place])
            what = "pol_end_ts" if stream["is_end"][row] else "pol_start_ts"
            keys = "\t".join(str(stream[name][row]) for name in INPUT_KEYS)
            arrived = _time(int(stream.topic.timestamp_ms[row]) * 1_000)
            shown.append(
                Witness(
                    kind=kind,
                    topic=stream.topic.name,
                    partition=int(stream.topic.partition[row]),
                    offset=int(stream.topic.offset[row]),
                    expected=f"{what} of {keys}, not before {arrived}",
                    actual=_time(int(stamp[place])) if kind == "wrong" else None,
                )
            )
    for which, name in enumerate(("pol_start_ts", "pol_end_ts")):
        for line in np.flatnonzero(extra[which])[:WITNESSES_PER_KIND]:
            keys = "\t".join(str(key[line]) for key in table.keys)
            at = _time(int(table.stamp[which][line]))
            shown.append(Witness("extra", TABLE, None, None, None, f"{name} of {keys}: {at}"))
    return shown


def _time(epoch_us: int) -> str:
    return str(np.datetime64(epoch_us, "us"))


def _keeps(columns: Columns) -> Bools:
    return np.zeros(len(columns["id"]), dtype=np.bool_)


def _reads(_keys: pa.Array, _values: pa.Array) -> Columns:
    return {}


ORACLE = Oracle("persist-processing-times", _keeps, _reads, _judge)
