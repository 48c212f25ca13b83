"""The comparison as one plain document, `espbench-comparison/1`."""

import statistics
from collections.abc import Sequence
from typing import Any

from espbench.compare.figures import FIGURES, Figure
from espbench.compare.gates import (
    REPETITIONS,
    SIGNIFICANT,
    Gate,
    judge,
    percent_of,
    values,
)
from espbench.compare.ranktest import mann_whitney
from espbench.compare.sides import Side, differences, reasons_against, system_of
from espbench.errors import ExitCode
from espbench.reports.sentences import CHECKS, checks

FORMAT = "espbench-comparison/1"
TOO_FEW = "too few to tell"
WORSE = {1: "slower", -1: "lower"}
BETTER = {1: "faster", -1: "higher"}


def compare(base: Side, sides: Sequence[Side], gates: Sequence[Gate]) -> dict[str, Any]:
    """Every side beside the base, and what the gates say."""
    compared = [_side(base, side, gates) for side in sides]
    return {
        "format": FORMAT,
        "repetitions_for_a_test": REPETITIONS,
        "base": _named(base),
        "sides": compared,
        "gates": [each for side in compared for each in side["gates"]],
    }


def exit_code(comparison: dict[str, Any]) -> ExitCode:
    """6 where a gate is missed; 5 where one could not be judged because runs do not compare."""
    statuses = {each["status"] for each in comparison["gates"]}
    if "missed" in statuses:
        return ExitCode.GATE_MISSED
    return ExitCode.UNKNOWN if "not comparable" in statuses else ExitCode.DONE


def _side(base: Side, side: Side, gates: Sequence[Gate]) -> dict[str, Any]:
    reasons = reasons_against(base, side)
    shared = [query for query in base.queries if query in side.queries]
    judged: list[dict[str, Any]] = []
    for gate in gates:
        if reasons:
            text = f"not comparable: {'; '.join(reasons)}"
            names = {"gate": gate.text, "side": side.name, "query": ""}
            judged.append(names | {"status": "not comparable", "text": text})
        else:
            # A query that the base has and the new side lacks must not slip through.
            judged += [judge(gate, base, side, query).document() for query in base.queries]
    return _named(side) | {
        "comparable": not reasons,
        "reasons": reasons,
        "changed": differences(system_of(base.runs[0]), system_of(side.runs[0])),
        "queries": [
            {
                "query": query,
                "checks": _checks(base, side, query),
                "figures": [_figure(each, base, side, query) for each in FIGURES],
            }
            for query in shared
        ],
        "only_in_base": [query for query in base.queries if query not in side.queries],
        "gates": judged,
    }


def _named(side: Side) -> dict[str, Any]:
    runs = [str(run.document.get("run_id", run.root.name)) for run in side.runs]
    return {"name": side.name, "runs": runs}


def _checks(base: Side, side: Side, query: str) -> list[dict[str, Any]]:
    """How many runs of each side passed each check."""
    counted = []
    for at, name in enumerate(CHECKS):
        passed = [
            [checks(verdict)[at].status == "passed" for verdict in each.verdicts(query)]
            for each in (base, side)
        ]
        counts = [f"{sum(found)} of {len(found)}" for found in passed]
        worse = all(passed[0]) and not all(passed[1])
        counted.append({"name": name, "base": counts[0], "new": counts[1], "worse": worse})
    return counted


def _figure(measured: Figure, base: Side, side: Side, query: str) -> dict[str, Any]:
    before, after = values(measured, base, query), values(measured, side, query)
    found: dict[str, Any] = {
        "name": measured.name,
        "title": measured.title,
        "unit": measured.unit,
        "base": _spread(before),
        "new": _spread(after),
        "change": None,
        "change_percent": None,
        "change_text": "",
        "p_value": None,
        "word": "not known",
        "worse": None,
    }
    if not before or not after:
        return found
    was, now = statistics.median(before), statistics.median(after)
    percent = 100 * (now - was) / was if was else None
    found |= {"change": now - was, "change_percent": percent, "change_text": percent_of(was, now)}
    if min(len(before), len(after)) < REPETITIONS:
        return found | {"word": TOO_FEW}
    _, differ = mann_whitney(before, after)
    found["p_value"] = differ
    if differ >= SIGNIFICANT or now == was:
        return found | {"word": "no difference found"}
    worse = (now - was) * measured.sign > 0
    return found | {"word": (WORSE if worse else BETTER)[measured.sign], "worse": worse}


def _spread(found: list[float]) -> dict[str, Any] | None:
    if not found:
        return None
    low, high = min(found), max(found)
    return {"median": statistics.median(found), "min": low, "max": high, "n": len(found)}
