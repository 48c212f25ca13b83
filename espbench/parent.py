"""A command that a run started ends with that run, even if the run is killed.

Between a run and its commands stand Ansible's own processes, so the parent's death says nothing:
a command watches the process of the run itself. The same variable marks everything that belongs to
a run, so that nothing of it can be left behind unseen.
"""

import contextlib
import os
import select
import signal
import sys
import threading

import psutil

from espbench.services.process import ProcessRecord, started_at

# Holds `<pid>@<start>` of the process that the command must not survive; empty: none.
VARIABLE = "ESPBENCH_RUN_PROCESS"


def mark(pid: int | None = None) -> str:
    """The variable's value for what must end with this process (default: our own)."""
    record = ProcessRecord.of(os.getpid() if pid is None else pid)
    return f"{record.pid}@{record.started}"


def die_with_run() -> None:
    """Ask for SIGTERM when the run's process dies, if the environment names one (Linux)."""
    wanted = os.environ.get(VARIABLE)
    if not wanted or not hasattr(os, "pidfd_open"):
        return
    pid, _, started = wanted.partition("@")
    try:
        descriptor = os.pidfd_open(int(pid))
    except (OSError, ValueError):
        descriptor = None
    # Asked after the descriptor was taken, so that it is of the same process.
    if descriptor is None or started_at(int(pid)) != started:
        sys.exit(f"espbench: the run that started this command (process {pid}) is gone")
    threading.Thread(target=_end_with, args=(descriptor,), daemon=True).start()


def marked(value: str) -> list[psutil.Process]:
    """The living processes that carry this mark, the one that gives it excepted."""
    giver = value.partition("@")[0]
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if str(process.pid) != giver and process.environ().get(VARIABLE) == value:
                found.append(process)
    return found


def _end_with(descriptor: int) -> None:
    # A descriptor of a process becomes readable when the process ends; until then this costs
    # nothing.
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)
