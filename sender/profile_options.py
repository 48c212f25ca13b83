"""Load profiles by name and parameters, as `--profile` gives them: `NAME:key=value,key=value`.

`rate` is the stream's `--rate`; a parameter that is not given takes the default written here.
"""

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import InputError, UsageError
from sender.profiles import (
    DEFAULT_SEED,
    BurstAtStart,
    Constant,
    Cosine,
    FromCsv,
    PeriodicBursts,
    Profile,
    Ramp,
    RandomWalk,
    Steps,
)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a maker of profiles gets: the stream's rate, the duration, the parameters as text."""

    rate: float
    duration_s: float
    given: Mapping[str, str]

    def number(self, key: str, default: float, *, positive: bool = False) -> float:
        text = self.given.get(key)
        try:
            value = default if text is None else float(text)
        except ValueError as error:
            raise UsageError(f"--profile: {key}={text} is not a number", "correct it") from error
        if not math.isfinite(value) or value < 0 or (positive and value == 0):
            bound = "above 0" if positive else "0 or more"
            raise UsageError(f"--profile: {key}={text} is not allowed", f"use a number {bound}")
        return value

    def whole(self, key: str, default: int, *, least: int = 1) -> int:
        value = self.number(key, default)
        if value != int(value) or value < least:
            raise UsageError(
                f"--profile: {key}={self.given[key]} is not allowed",
                f"use a whole number, {least} or more",
            )
        return int(value)

    def seed(self) -> int:
        return self.whole("seed", DEFAULT_SEED, least=0)


def _constant(asked: _Asked) -> Profile:
    return Constant(asked.rate)


def _increasing(asked: _Asked) -> Profile:
    return Ramp(asked.number("low", 0.0), asked.number("high", asked.rate), asked.duration_s)


def _decreasing(asked: _Asked) -> Profile:
    return Ramp(asked.number("high", asked.rate), asked.number("low", 0.0), asked.duration_s)


def _cosine(asked: _Asked) -> Profile:
    mean = asked.number("mean", asked.rate)
    amplitude = asked.number("amplitude", mean / 2)
    if amplitude > mean:
        raise UsageError(
            f"--profile: amplitude={amplitude:g} is above the mean rate {mean:g}",
            "a rate cannot be negative",
        )
    return Cosine(
        mean,
        amplitude,
        asked.number("period", asked.duration_s, positive=True),
        asked.number("noise", 0.0),
        seed=asked.seed(),
        duration_s=asked.duration_s,
    )


def _random_walk(asked: _Asked) -> Profile:
    step = asked.number("step", asked.rate / 20)
    return RandomWalk(asked.rate, step, asked.duration_s, asked.seed())


def _steps(asked: _Asked) -> Profile:
    steps = asked.whole("steps", 5)
    low, high = asked.number("low", asked.rate / steps), asked.number("high", asked.rate)
    return Steps(low, high, steps, asked.duration_s)


def _burst_at_start(asked: _Asked) -> Profile:
    burst = asked.number("burst", 5.0) * asked.rate
    return BurstAtStart(asked.rate, burst, asked.number("seconds", 5.0, positive=True))


def _periodic_bursts(asked: _Asked) -> Profile:
    period = asked.number("period", 10.0, positive=True)
    seconds = asked.number("seconds", 1.0, positive=True)
    if seconds >= period:
        raise UsageError("--profile: a burst is as long as its period", "use seconds < period")
    burst = asked.number("burst", 5.0) * asked.rate
    return PeriodicBursts(asked.rate, burst, seconds, period, asked.duration_s)


def _csv(asked: _Asked) -> Profile:
    """Rates from a file of `seconds,rate` rows without header: the rate from that second on."""
    path = Path(asked.given.get("file", ""))
    remedy = "write rows `seconds,rate`, the first at 0, seconds rising"
    starts: list[float] = []
    rates: list[float] = []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            for line, row in enumerate(csv.reader(file), start=1):
                try:
                    second, rate = map(float, row)
                except ValueError as error:
                    raise InputError(f"{path}, line {line}: not two numbers", remedy) from error
                later = second > starts[-1] if starts else second == 0
                if not later or not math.isfinite(second) or not 0 <= rate < math.inf:
                    raise InputError(f"{path}, line {line}: out of order or no rate", remedy)
                starts.append(second)
                rates.append(rate)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the load profile {path}: {error}", remedy) from error
    if not rates:
        raise InputError(f"the load profile {path} is empty", remedy)
    return FromCsv(starts, rates)


_Maker = Callable[[_Asked], Profile]
PROFILES: Mapping[str, tuple[_Maker, frozenset[str]]] = {
    "constant": (_constant, frozenset()),
    "increasing": (_increasing, frozenset({"low", "high"})),
    "decreasing": (_decreasing, frozenset({"low", "high"})),
    "cosine": (_cosine, frozenset({"mean", "amplitude", "period", "noise", "seed"})),
    "random-walk": (_random_walk, frozenset({"step", "seed"})),
    "steps": (_steps, frozenset({"low", "high", "steps"})),
    "burst-at-start": (_burst_at_start, frozenset({"burst", "seconds"})),
    "periodic-bursts": (_periodic_bursts, frozenset({"burst", "seconds", "period"})),
    "csv": (_csv, frozenset({"file"})),
}


def parse_profile(text: str, *, rate: float, duration_s: float) -> Profile:
    """The profile that `text` names; `UsageError` says what is wrong and what is allowed."""
    name, _, rest = text.partition(":")
    if name not in PROFILES:
        raise UsageError(f"there is no load profile {name!r}", f"there are: {', '.join(PROFILES)}")
    maker, known = PROFILES[name]
    given = {}
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        if key not in known or not value:
            allowed = ", ".join(sorted(known)) or "none"
            raise UsageError(f"--profile {name}: cannot use {part!r}", f"parameters: {allowed}")
        given[key] = value
    return maker(_Asked(rate, duration_s, given))
