"""From the plan of downtimes to the times of one run.

The plan's time scale: the epoch is the announced start of the sender, and the run lasts
`nominal_run_s` seconds from there.
"""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the tables hold UTC without a zone


def place(
    planned: datetime, start: datetime, duration: timedelta, nominal_run: timedelta
) -> datetime:
    """When something planned happens in a run that starts at `start` and lasts `duration`.

    What lies within the run is stretched with it; what lies before or after is only shifted, so a
    downtime that began a day before the run still does.
    """
    offset = planned - EPOCH
    if offset <= timedelta(0):
        return start + offset
    if offset >= nominal_run:
        return start + duration + (offset - nominal_run)
    return start + offset * (duration / timedelta(microseconds=1)) / (
        nominal_run / timedelta(microseconds=1)
    )


def utc_without_zone(epoch_ms: int) -> datetime:
    """An epoch millisecond as the tables hold it."""
    return datetime.fromtimestamp(epoch_ms / 1_000, UTC).replace(tzinfo=None)
