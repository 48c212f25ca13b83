"""A command that a run started ends with that run, even if the run is killed."""

import ctypes
import os
import signal
import sys

VARIABLE = "ESPBENCH_DIE_WITH_PARENT"
_PR_SET_PDEATHSIG = 1


def die_with_parent() -> None:
    """Ask the kernel for SIGTERM when the parent dies, if the parent asked for that (Linux)."""
    wanted = os.environ.get(VARIABLE)
    if not wanted or not sys.platform.startswith("linux"):
        return
    if wanted == str(os.getppid()):
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if str(os.getppid()) != wanted and os.getppid() == 1:
        sys.exit(f"espbench: the run that started this command (pid {wanted}) is gone")
