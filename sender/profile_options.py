"""Load profiles by name and parameters, as `--profile` gives them: `NAME:key=value,key=value`.

`rate` is the stream's `--rate`; a parameter that is not given takes the default written here.
"""

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from espbench.errors import InputError, UsageError
from sender.profiles import Constant, Cosine, Piecewise, Profile, Ramp


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


def _constant(asked: _Asked) -> Profile:
    return Constant(asked.rate)


def _increasing(asked: _Asked) -> Profile:
    return Ramp(asked.number("low", 0.0), asked.number("high", asked.rate), asked.duration_s)


def _decreasing(asked: _Asked) -> Profile:
    return Ramp(asked.number("high", asked.rate), asked.number("low", 0.0), asked.duration_s)


def _cosine(asked: _Asked) -> Profile:
    amplitude = asked.number("amplitude", asked.rate / 2)
    if amplitude > asked.rate:
        raise UsageError(
            f"--profile: amplitude={amplitude:g} is above the mean rate {asked.rate:g}",
            "a rate cannot be negative",
        )
    return Cosine(asked.rate, amplitude, asked.number("period", asked.duration_s, positive=True))


def _random_walk(asked: _Asked) -> Profile:
    """Every second one step up or down, each as likely, between 0 and twice the rate."""
    step = asked.number("step", asked.rate / 20)
    seconds = math.ceil(asked.duration_s)
    random = np.random.default_rng(int(asked.number("seed", 2021)))
    rates = [asked.rate]
    for direction in random.choice((-1.0, 1.0), size=seconds - 1):
        rates.append(min(max(rates[-1] + direction * step, 0.0), 2 * asked.rate))
    return Piecewise("random-walk", range(seconds), rates)


def _steps(asked: _Asked) -> Profile:
    """From `low` to `high` in so many `steps` of equal length."""
    steps = max(1, round(asked.number("steps", 5)))
    low, high = asked.number("low", asked.rate / steps), asked.number("high", asked.rate)
    rates = np.linspace(low, high, steps).tolist()
    return Piecewise("steps", [step * asked.duration_s / steps for step in range(steps)], rates)


def _burst_at_start(asked: _Asked) -> Profile:
    """`burst` times the rate for the first `seconds`, then the rate."""
    burst = asked.number("burst", 5.0) * asked.rate
    return Piecewise(
        "burst-at-start", [0.0, asked.number("seconds", 5.0, positive=True)], [burst, asked.rate]
    )


def _periodic_bursts(asked: _Asked) -> Profile:
    """`burst` times the rate for `seconds` at the end of every `period`."""
    period = asked.number("period", 10.0, positive=True)
    seconds = asked.number("seconds", 1.0, positive=True)
    if seconds >= period:
        raise UsageError("--profile: a burst is as long as its period", "use seconds < period")
    burst = asked.number("burst", 5.0) * asked.rate
    starts, rates = [], []
    for begin in np.arange(math.ceil(asked.duration_s / period)) * period:
        starts += [float(begin), float(begin + period - seconds)]
        rates += [asked.rate, burst]
    return Piecewise("periodic-bursts", starts, rates)


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
    return Piecewise("csv", starts, rates)


_Maker = Callable[[_Asked], Profile]
PROFILES: Mapping[str, tuple[_Maker, frozenset[str]]] = {
    "constant": (_constant, frozenset()),
    "increasing": (_increasing, frozenset({"low", "high"})),
    "decreasing": (_decreasing, frozenset({"low", "high"})),
    "cosine": (_cosine, frozenset({"amplitude", "period"})),
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
