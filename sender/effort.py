"""How busy the sender and the machine were while sending: the evidence for naming the brake."""

from collections.abc import Sequence
from typing import Any

import psutil

from sender.share import Share
from sender.verdict import Effort


class MachineLoad:
    """The machine's times from now on."""

    def __init__(self) -> None:
        self._before: Any = psutil.cpu_times()

    def effort(self, shares: Sequence[Share]) -> Effort:
        """What everybody used since; of several senders the busiest counts."""
        after: Any = psutil.cpu_times()
        spent = {name: getattr(after, name) - getattr(self._before, name) for name in after._fields}
        # Linux counts guests' time in user's as well.
        total = sum(value for name, value in spent.items() if not name.startswith("guest"))
        idle = spent["idle"] + spent.get("iowait", 0.0)
        stolen = spent.get("steal")
        return Effort(
            loop=max(each.loop_cpu_s / each.wall_s for each in shares),
            client=max((each.cpu_s - each.loop_cpu_s) / each.wall_s for each in shares),
            busy=1 - idle / total if total > 0 else None,
            stolen=stolen / total if stolen is not None and total > 0 else None,
        )
