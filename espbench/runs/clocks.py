"""How far the clocks of other hosts are from ours, asked over a connection that stays open."""

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from espbench.errors import ServiceError

# Answers every line with its clock; needs nothing but Python, on the other host.
PROGRAM = "import sys,time\nfor _ in sys.stdin: print(time.time_ns(),flush=True)"
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Round:
    """One question: our clock before and after, theirs in between; nanoseconds."""

    asked_ns: int
    theirs_ns: int
    answered_ns: int


@dataclass(frozen=True, slots=True)
class Offset:
    """Their clock minus ours, and how wrong this can be at most."""

    offset_ms: float
    uncertainty_ms: float


def offset(rounds: Sequence[Round]) -> Offset:
    """The estimate of the quickest round: the answer was written somewhere in between."""
    best = min(rounds, key=lambda each: each.answered_ns - each.asked_ns)
    middle = (best.asked_ns + best.answered_ns) / 2
    half = (best.answered_ns - best.asked_ns) / 2
    return Offset(round((best.theirs_ns - middle) / 1e6, 3), round(half / 1e6, 3))


def ask(command: Sequence[str], clock: Callable[[], int] = time.time_ns) -> Offset:
    """Ask the program at the other end of this command (ssh … python3 …) for its clock."""
    with _started(command) as child:
        if child.stdin is None or child.stdout is None or child.stderr is None:
            raise TypeError("pipes were asked for")
        rounds = []
        try:
            for _ in range(ROUNDS):
                asked = clock()
                child.stdin.write("\n")
                child.stdin.flush()
                theirs = int(child.stdout.readline())
                rounds.append(Round(asked, theirs, clock()))
            child.stdin.close()
        except (OSError, ValueError) as error:
            child.kill()
            # What it did not take is nobody's loss, and closing would try to hand it over again.
            with suppress(OSError):
                child.stdin.close()
            said = child.stderr.read().strip().splitlines()
            raise ServiceError(
                f"the clock of the other host cannot be read: {said[-1] if said else error}",
                f"try: {' '.join(command[:-1])}",
            ) from error
        except BaseException:
            # Stopped while it waited; leaving would wait for the other end.
            child.kill()
            raise
    return offset(rounds)


def _started(command: Sequence[str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    except OSError as error:
        raise ServiceError(
            f"{command[0]} cannot be started: {error.strerror}", "check the command of --host"
        ) from error
