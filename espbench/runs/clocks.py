"""How far the clocks of other hosts are from ours, asked over a connection that stays open."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from espbench.errors import ServiceError

# Answers every line with its clock, and at the end tells what chrony thinks of it, where there is
# one; needs nothing but Python, on the other host.
PROGRAM = (
    "import shutil,subprocess,sys,time\n"
    "for _ in sys.stdin: print(time.time_ns(),flush=True)\n"
    "if shutil.which('chronyc'):\n"
    " r=subprocess.run(['chronyc','-c','tracking'],capture_output=True,text=True)\n"
    " print(r.stdout if r.returncode==0 else '')\n"
)
ROUNDS = 30
# Of `chronyc -c tracking`: which field holds what; seconds.
_CHRONY_FIELDS = 14
_REFERENCE, _STRATUM, _CORRECTION, _ROOT_DELAY, _ROOT_DISPERSION, _LEAP = 1, 2, 4, 10, 11, 13


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The other clock against ours, and what chrony says there; None where there is no chrony."""

    offset_ms: float
    uncertainty_ms: float
    chrony: dict[str, Any] | None


def chrony_of(line: str) -> dict[str, Any] | None:
    """What `chronyc -c tracking` tells; None where it is no such line.

    `correction_ms` is what chrony still has to correct, `error_ms` how wrong the clock can be at
    most against the true time.
    """
    fields = line.strip().split(",")
    if len(fields) != _CHRONY_FIELDS:
        return None
    try:
        correction, delay, dispersion = (
            float(fields[each]) for each in (_CORRECTION, _ROOT_DELAY, _ROOT_DISPERSION)
        )
        stratum = int(fields[_STRATUM])
    except ValueError:
        return None
    error = abs(correction) + dispersion + delay / 2
    return {
        "synchronised": fields[_LEAP] != "Not synchronised",
        "reference": fields[_REFERENCE] or None,
        "stratum": stratum,
        "correction_ms": round(correction * 1e3, 6),
        "error_ms": round(error * 1e3, 6),
    }


def against_first(offsets: Mapping[str, Offset | Answer], brokers: Sequence[str]) -> list[Any]:
    """The brokers' clocks against the first broker's, in the order of their node ids from 1."""
    first = offsets[brokers[0]]
    return [
        {
            "node_id": number,
            "host": name,
            "against": brokers[0],
            "offset_ms": round(offsets[name].offset_ms - first.offset_ms, 3),
            "uncertainty_ms": round(offsets[name].uncertainty_ms + first.uncertainty_ms, 3),
        }
        for number, name in enumerate(brokers[1:], 2)
    ]


def offset(rounds: Sequence[Round]) -> Offset:
    """The estimate of the quickest round: the answer was written somewhere in between."""
    best = min(rounds, key=lambda each: each.answered_ns - each.asked_ns)
    middle = (best.asked_ns + best.answered_ns) / 2
    half = (best.answered_ns - best.asked_ns) / 2
    return Offset(round((best.theirs_ns - middle) / 1e6, 3), round(half / 1e6, 3))


def ask(command: Sequence[str], clock: Callable[[], int] = time.time_ns) -> Answer:
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
            chrony = chrony_of(child.stdout.read())
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
    found = offset(rounds)
    return Answer(found.offset_ms, found.uncertainty_ms, chrony)


def _started(command: Sequence[str]) -> "subprocess.Popen[str]":
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
    except OSError as error:
        raise ServiceError(
            f"{command[0]} cannot be started: {error.strerror}", "check the command of --host"
        ) from error
