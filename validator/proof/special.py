"""Seeded mutations of what is particular to queries 1, 2, 4 and 5."""

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

from validator.proof.case import Case, Mutation, low_and_up, time
from validator.proof.recordwise import within_a_line
from validator.synthetic import START_MS, Record, Topic

TABLE = "production_order_line"
STAMPS = ("pol_start_ts", "pol_end_ts")


def _judged_row(case: Case, random: Random) -> int:
    """An output of query 1 whose window is judged: not the last."""
    last = max(int(record.key or b"0") for record in case.sink.records)
    rows = [n for n, record in enumerate(case.sink.records) if int(record.key or b"0") < last]
    return random.choice(rows)


def _replace(case: Case, row: int, **changes: Any) -> None:
    records = list(case.sink.records)
    records[row] = replace(records[row], **changes)
    case.set_sink(records)


def lose_a_window(case: Case, random: Random) -> None:
    """A window without an output, with keys or without."""
    row = _judged_row(case, random)
    records = sorted(case.sink.records, key=lambda record: record.timestamp_ms)
    gone = case.sink.records[row]
    records = [record for record in records if record != gone]
    if random.random() < 0.5:
        records = [replace(record, key=None) for record in records]
    case.set_sink(records)
    case.become("incorrect", missing=1, wrong=0, extra=0, surplus=0)


def lose_the_last_window(case: Case, random: Random) -> None:
    """The last window is not judged: absent or wrong."""
    last = max(case.sink.records, key=lambda record: int(record.key or b"0"))
    row = case.sink.records.index(last)
    if random.random() < 0.5:
        case.set_sink([*case.sink.records[:row], *case.sink.records[row + 1 :]])
    else:
        _replace(case, row, value=b"1.000,1,1,1")
    case.become("correct", missing=0, wrong=0, extra=0, surplus=0)


def alter_a_figure(case: Case, random: Random) -> None:
    """Average, minimum, maximum or count of a window."""
    row = _judged_row(case, random)
    figures = (case.sink.records[row].value or b"").split(b",")
    which = random.randrange(4)
    off = random.choice([0.002, -0.002, 1.0]) if which == 0 else random.choice([1, -1])
    figures[which] = (b"%.4f" if which == 0 else b"%d") % (float(figures[which]) + off)
    _replace(case, row, value=b",".join(figures))
    case.become("incorrect", wrong=1, missing=0, extra=0)


def round_the_average(case: Case, random: Random) -> None:
    """An average that is off by less than half of its third decimal, or has more of them."""
    row = _judged_row(case, random)
    average, rest = (case.sink.records[row].value or b"").split(b",", 1)
    _replace(case, row, value=average + b"0" * random.randint(0, 9) + b"," + rest)
    case.become("correct", wrong=0, missing=0, extra=0)


def shift_a_window(case: Case, random: Random) -> None:
    """A key that is the start of no window."""
    row = _judged_row(case, random)
    start = int(case.sink.records[row].key or b"0") + random.choice([500, -1, 10**7, -(10**7)])
    _replace(case, row, key=b"%d" % start)
    case.become("incorrect", missing=1, extra=1, wrong=0)


def update_a_window(case: Case, random: Random) -> None:
    """An update before the final output is surplus; one after it counts."""
    row = _judged_row(case, random)
    final = case.sink.records[row]
    count = int((final.value or b"").rsplit(b",", 1)[1])
    update = replace(final, value=(final.value or b"").rsplit(b",", 1)[0] + b",%d" % (count - 1))
    records = list(case.sink.records)
    before = random.random() < 0.5
    records.insert(row if before else row + 1, update)
    case.set_sink(records)
    verdict = "correct" if before else "incorrect"
    case.become(verdict, surplus=1, wrong=0 if before else 1, missing=0, extra=0)


def garble_a_window(case: Case, random: Random) -> None:
    """An output that cannot be read."""
    records = list(case.sink.records)
    value = random.choice([None, b"", b"1,2,3", b"a,b,c,d", b"nan,1,2,3", b"1;2;3;4", b"\xff"])
    key = random.choice([None, records[0].key, b"x"])
    records.append(replace(records[0], value=value, key=key))
    case.set_sink(records)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def lose_an_input(case: Case, random: Random) -> None:
    """Of windows, nothing is certain when an input was not captured."""
    records = list(case.source.records)
    records.pop(random.randrange(1, len(records) - 1))
    case.set_source(records)
    case.become("unknown")


def alter_a_probability(case: Case, random: Random) -> None:
    """More than the tolerance, or less."""
    row = random.randrange(len(case.sink.records))
    line, probability = (case.sink.records[row].value or b"").rsplit(b",", 1)
    wrong = random.random() < 0.5
    # Two decimals are off by 0.005 at most, and as much again is left or exceeded.
    off = random.choice([0.02, -0.02, 0.5, -0.3]) if wrong else random.choice([0.0001, -0.0001])
    _replace(case, row, value=line + b",%.4f" % (float(probability) + off))
    case.become("incorrect" if wrong else "correct", wrong=int(wrong), missing=0, extra=0)


def answer_in_a_downtime(case: Case, random: Random) -> None:
    """A low record during a downtime of its workplace is not to be answered."""
    free = {value for _, _, value in low_and_up(case)}
    kept = case.tables["workplace"]
    case.tables["workplace"] = [row | {"wp_id": 9} for row in kept]
    down = [(r, value) for _, r, value in low_and_up(case) if value not in free]
    case.tables["workplace"] = kept
    if not down:
        return
    record, value = random.choice(down)
    case.set_sink([*case.sink.records, Record(0, 0, record.timestamp_ms + 50, value)])
    case.become("incorrect", extra=1, missing=0, wrong=0)


def move_a_downtime_to_a_record(case: Case, random: Random) -> None:
    """At the borderline an output may be there or not."""
    answered = list(low_and_up(case))
    stream, record, value = random.choice(answered)
    off = random.choice([-1, 0, 1])
    when = time(record.timestamp_ms + off)
    workplace = 1 if stream is case.source else 2
    row = {"wp_id": workplace, "wp_dt_id": 7, "wp_downtime_start": when, "wp_downtime_end": when}
    case.tables["workplace"] = [*case.tables["workplace"], row]
    if random.random() < 0.5:
        case.set_sink([output for output in case.sink.records if output.value != value])
    case.become("correct", borderline=1, missing=0, extra=0, wrong=0)


def forget_the_downtimes(case: Case, _random: Random) -> None:
    """The table says nothing of these workplaces: there is no downtime, and outputs are missing."""
    before = len(list(low_and_up(case)))
    case.tables["workplace"] = [row | {"wp_id": 9} for row in case.tables["workplace"]]
    missing = len(list(low_and_up(case))) - before
    case.become("incorrect" if missing else "correct", missing=missing, extra=0, wrong=0)


def change_the_downtimes(case: Case, random: Random) -> None:
    """A change that is fresh for the whole run leaves everything at the borderline."""
    rows = [row | {"valid_from": None, "valid_to": None} for row in case.tables["workplace"]]
    for workplace in (1, 2):
        far = {"wp_downtime_start": time(0), "wp_downtime_end": time(1)}
        change = {"valid_from": time(START_MS - 100), "valid_to": None}
        rows.append({"wp_id": workplace, "wp_dt_id": 8} | far | change)
    case.tables["workplace"] = rows
    records = list(case.sink.records)
    records.pop(random.randrange(len(records)))
    case.set_sink(records)
    # Nothing but the borderline is left, so that nothing is expected.
    case.become("unknown", expected=0, missing=0, extra=0)


def _line(case: Case, random: Random) -> tuple[int, dict[str, Any]]:
    place = random.randrange(len(case.tables[TABLE]) - 1)
    return place, case.tables[TABLE][place]


def lose_a_stamp(case: Case, random: Random) -> None:
    """A start or an end that was never set."""
    _, row = _line(case, random)
    row[random.choice(STAMPS)] = None
    case.become("incorrect", missing=1, wrong=0, extra=0)


def stamp_before_the_input(case: Case, random: Random) -> None:
    """Up to 5 ms are the clock's, more is wrong."""
    place, row = _line(case, random)
    arrived = time(case.source.records[2 * place].timestamp_ms)
    early = random.choice([1, 4.9, 5, 5.001, 6, 1_000])
    row["pol_start_ts"] = arrived - timedelta(milliseconds=early)
    wrong = int(early > 5)
    case.become("incorrect" if wrong else "correct", wrong=wrong, missing=0, extra=0)


def end_before_the_start(case: Case, random: Random) -> None:
    """Start later than end."""
    _, row = _line(case, random)
    row["pol_start_ts"] = row["pol_end_ts"] + timedelta(microseconds=random.choice([1, 10**6]))
    case.become("incorrect", wrong=1, missing=0, extra=0)


def stamp_another_row(case: Case, random: Random) -> None:
    """A row that no input names."""
    row = case.tables[TABLE][-1]
    row[random.choice(STAMPS)] = time(START_MS + 5_000)
    case.become("incorrect", extra=1, missing=0, wrong=0)


def replay_an_input(case: Case, random: Random) -> None:
    """A second delivery changes nothing; its own stamp need not come after it."""
    records = list(case.source.records)
    again = random.choice(records)
    late = max(record.timestamp_ms for record in records) + 500
    case.set_source([*records, replace(again, timestamp_ms=late)])
    case.become("correct", missing=0, wrong=0, extra=0, expected=len(records) + 1)


def name_an_unknown_row(case: Case, random: Random) -> None:
    """An input whose keys are not in the table."""
    records = list(case.source.records)
    keys = random.choice(["777\t1\t1", "1\t77\t1", "1\t1\t7"])
    late = max(record.timestamp_ms for record in records)
    value = f"{len(records)};{late};{keys}\t0".encode()
    case.set_source([*records, Record(0, 0, late, value)])
    case.become("correct", missing=0, wrong=0, extra=0, expected=len(records))


def tear_the_table(case: Case, random: Random) -> None:
    """The end of the table's file is cut off."""
    case.cut_table = random.randint(1, 400)
    case.become("unknown")


def keep_an_older_run(case: Case, _random: Random) -> None:
    """All stamps are those of an earlier run."""
    for row in case.tables[TABLE]:
        for name in STAMPS:
            row[name] = row[name] and row[name] - timedelta(hours=1)
    expected = len(case.source.records)
    case.become("incorrect", wrong=expected, missing=0, extra=0, expected=expected)


def stamp_nothing(case: Case, _random: Random) -> None:
    """The system under test did nothing."""
    case.tables[TABLE] = [row | dict.fromkeys(STAMPS) for row in case.tables[TABLE]]
    case.tables[TABLE][-1]["pol_start_ts"] = None
    case.become("incorrect", missing=len(case.source.records), extra=0, wrong=0)


def cut_the_production_times(case: Case, random: Random) -> None:
    """Stamps whose input was not captured prove nothing."""
    case.cut_source = within_a_line(case.source, random)
    case.become("unknown", missing=0, wrong=0)


def cut_the_windows(case: Case, random: Random) -> None:
    """The end of query 1's sink is cut off."""
    case.cut_sink = within_a_line(case.sink, random)
    case.become("unknown", extra=0, wrong=0)


def empty_the_windows(case: Case, _random: Random) -> None:
    """No output at all."""
    count = len(case.sink.records) - 1
    case.sink = Topic(case.sink.name)
    case.become("incorrect", missing=count, matched=0)


STATUS: list[Mutation] = [
    lose_a_window,
    lose_the_last_window,
    alter_a_figure,
    round_the_average,
    shift_a_window,
    update_a_window,
    garble_a_window,
    lose_an_input,
    cut_the_windows,
    empty_the_windows,
]
OUTLIERS: list[Mutation] = [alter_a_probability, lose_an_input]
POWER: list[Mutation] = [
    answer_in_a_downtime,
    move_a_downtime_to_a_record,
    forget_the_downtimes,
    change_the_downtimes,
    tear_the_table,
]
STAMPING: list[Mutation] = [
    lose_a_stamp,
    stamp_before_the_input,
    end_before_the_start,
    stamp_another_row,
    replay_an_input,
    name_an_unknown_row,
    tear_the_table,
    keep_an_older_run,
    stamp_nothing,
    cut_the_production_times,
]
