"""The schedule file: what a load profile asked for, drawn and kept beside the report.

CSV with a header: `stream,ms,due`. `due` is how many records of the stream are due before that many
milliseconds after the common start; the last row of a stream is the end of its schedule. Seeded
profiles are drawn by then, so the file shows what was asked even where nobody has this program.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from espbench.errors import MachineError
from espbench.paths import write_atomically
from sender.schedule import NS_PER_MS, Schedule

_STEP_MS = 100
# An hour by tenths of a second; longer schedules are drawn in coarser steps.
_MOST_ROWS = 36_000


def schedule_rows(schedule: Schedule) -> list[tuple[int, int]]:
    """(ms, records due before it) in even steps from 0 to the end of the schedule."""
    end_ms = round(schedule.duration_s * 1000)
    step_ms = max(_STEP_MS, -(-end_ms // _MOST_ROWS // _STEP_MS) * _STEP_MS)
    edges_ms = np.append(np.arange(0, end_ms, step_ms, dtype=np.int64), end_ms)
    due = schedule.due_before(edges_ms * NS_PER_MS)
    return list(zip(edges_ms.tolist(), due.tolist(), strict=True))


def write_schedule(path: Path, schedules: Mapping[int, Schedule]) -> None:
    """Write the schedules of all streams at once or not at all."""
    lines = ["stream,ms,due"]
    for stream, schedule in schedules.items():
        lines += [f"{stream},{ms},{due}" for ms, due in schedule_rows(schedule)]
    try:
        write_atomically(path, "\n".join(lines) + "\n")
    except OSError as error:
        raise MachineError(
            f"cannot write the schedule {path}: {error.strerror}",
            "check permissions and disk, or choose another --out or --schedule-out",
        ) from error
