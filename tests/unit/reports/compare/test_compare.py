"""Runs beside runs: what is compared, what is refused, and what misses a gate."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from espbench.compare.baselines import baselines, save_baseline
from espbench.compare.choose import choose_sides, find_runs
from espbench.compare.comparison import TOO_FEW, compare, exit_code
from espbench.compare.gates import Gate, parse_gate
from espbench.compare.noise import BETWEEN_RUNS, explained, spread, within
from espbench.compare.page import comparison_page
from espbench.compare.show import comparison_markdown
from espbench.compare.sides import Side, grouped, mixed
from espbench.errors import UsageError
from espbench.runs.store import RunDir

MakeRun = Callable[..., RunDir]
QUERIES = ("identify-errors",)


def side(*runs: RunDir) -> Side:
    return Side("side", runs)


def figures(comparison: dict[str, Any], name: str, query: int = 0) -> dict[str, Any]:
    rows = comparison["sides"][0]["queries"][query]["figures"]
    return next(row for row in rows if row["name"] == name)


def statuses(base: Side, new: Side, *gates: str) -> set[str]:
    found = compare(base, [new], [parse_gate(text) for text in gates])
    return {each["status"] for each in found["gates"]}


def test_an_equal_rerun_passes_and_a_slowdown_of_30_percent_does_not(make_run: MakeRun) -> None:
    base, again = make_run("r1", seed=1), make_run("r2", seed=2)
    slow = make_run("r3", seed=3, slower=1.3)
    gates = [parse_gate("p90:+10%"), parse_gate("p50:+10%"), parse_gate("correctness")]
    equal = compare(side(base), [side(again)], gates)
    assert exit_code(equal) == 0
    slower = compare(side(base), [side(slow)], gates)
    assert exit_code(slower) == 6
    missed = [each for each in slower["gates"] if each["status"] == "missed"]
    assert {each["gate"] for each in missed} == {"p90:+10%", "p50:+10%"}
    assert "more than equal runs differ by" in missed[0]["text"]
    # And faster is no fault.
    assert exit_code(compare(side(slow), [side(base)], gates)) == 0


def test_hardly_any_equal_rerun_is_flagged(make_run: MakeRun) -> None:
    runs = [make_run(f"r{seed}", seed=seed, queries=QUERIES) for seed in range(12)]
    flagged = [
        "missed" in statuses(side(one), side(other), "p90:+5%")
        for one in runs
        for other in runs
        if one is not other
    ]
    assert sum(flagged) <= 2


def test_one_run_a_side_is_too_few_to_tell(make_run: MakeRun) -> None:
    found = compare(side(make_run("r1")), [side(make_run("r2", slower=3.0))], [])
    row = figures(found, "p90")
    assert row["word"] == TOO_FEW
    assert row["p_value"] is None
    assert row["change_percent"] == pytest.approx(200, abs=10)
    assert row["base"]["n"] == 1


def test_five_repetitions_a_side_are_tested(make_run: MakeRun) -> None:
    bases = [make_run(f"b{seed}", seed=seed, queries=QUERIES) for seed in range(5)]
    slows = [make_run(f"s{seed}", seed=seed + 9, slower=1.3, queries=QUERIES) for seed in range(5)]
    sames = [make_run(f"e{seed}", seed=seed + 99, queries=QUERIES) for seed in range(5)]
    slower = compare(side(*bases), [side(*slows)], [parse_gate("p90:+10%")])
    row = figures(slower, "p90")
    assert (row["word"], row["worse"]) == ("slower", True)
    assert row["p_value"] == pytest.approx(2 / 252)
    assert row["base"]["min"] <= row["base"]["median"] <= row["base"]["max"]
    assert exit_code(slower) == 6
    same = compare(side(*bases), [side(*sames)], [parse_gate("p90:+10%")])
    assert figures(same, "p90")["word"] == "no difference found"
    assert exit_code(same) == 0
    faster = compare(side(*slows), [side(*bases)], [])
    assert figures(faster, "p90")["word"] == "faster"


def test_five_repetitions_find_what_one_cannot(make_run: MakeRun) -> None:
    bases = [make_run(f"b{seed}", seed=seed, queries=QUERIES) for seed in range(5)]
    slows = [make_run(f"s{seed}", seed=seed + 9, slower=1.1, queries=QUERIES) for seed in range(5)]
    assert statuses(side(bases[0]), side(slows[0]), "p50:+5%") == {"unsure"}
    assert statuses(side(*bases), side(*slows), "p50:+5%") == {"missed"}


@pytest.mark.parametrize(
    ("change", "gate"),
    [
        ({"correctness": "incorrect"}, "correctness"),
        ({"correctness": "unknown"}, "correctness"),
        ({"load": {"valid": False}}, "load"),
        ({"sustainability": {"verdict": "not sustained"}}, "sustainability"),
        ({"slo": {"met": False}}, "slo"),
    ],
)
def test_checks_are_gates(make_run: MakeRun, change: dict[str, Any], gate: str) -> None:
    base, new = make_run("r1", queries=QUERIES), make_run("r2", queries=QUERIES)
    assert statuses(side(base), side(new), gate) == {"met"}
    new.document["queries"][0] |= change
    assert statuses(side(base), side(new), gate) == {"missed"}


def test_a_handful_of_answers_is_no_proof(make_run: MakeRun) -> None:
    runs = [make_run("r1"), make_run("r2", slower=1.5)]
    for run in runs:
        path = run.root / "latencies-identify-errors.parquet"
        pq.write_table(pq.read_table(path).slice(0, 29), path)
    gate = parse_gate("p90:+10%")
    found = {
        each["query"]: each for each in compare(side(runs[0]), [side(runs[1])], [gate])["gates"]
    }
    assert found["identify-errors"]["status"] == "unsure"
    assert "too few answers" in found["identify-errors"]["text"]
    assert found["persist-processing-times"]["status"] == "missed"


def test_a_ceiling_needs_no_base(make_run: MakeRun) -> None:
    run = make_run("r1", queries=QUERIES)
    assert statuses(side(run), side(run), "p90:9999ms") == {"met"}
    assert statuses(side(run), side(run), "p90:1ms") == {"missed"}


def test_a_step_of_the_clock_is_no_difference(make_run: MakeRun) -> None:
    base, new = make_run("r1", queries=QUERIES), make_run("r2", queries=QUERIES)
    base.document["queries"][0]["latency_ms_after_warmup"]["p90"] = 1.0
    new.document["queries"][0]["latency_ms_after_warmup"]["p90"] = 2.0
    assert statuses(side(base), side(new), "p90:+10%") == {"met"}


def test_a_lower_rate_misses_its_gate(make_run: MakeRun) -> None:
    base, new = make_run("r1", queries=QUERIES), make_run("r2", queries=QUERIES)
    new.document["queries"][0]["load"]["achieved_rate"] = 40.0
    assert statuses(side(base), side(new), "rate:-1%") == {"missed"}
    assert statuses(side(new), side(base), "rate:-1%") == {"met"}


def test_a_query_that_got_lost_is_not_passed_over(make_run: MakeRun) -> None:
    base, new = make_run("r1"), make_run("r2", queries=QUERIES)
    found = compare(side(base), [side(new)], [parse_gate("correctness")])
    by_query = {each["query"]: each["status"] for each in found["gates"]}
    assert by_query == {"identify-errors": "met", "persist-processing-times": "unsure"}
    assert found["sides"][0]["only_in_base"] == ["persist-processing-times"]


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ({"load.rate": 99.0}, "rate: 50 and 99"),
        ({"load.duration": 5.0}, "duration: 60 and 5"),
        ({"data.scale": 9}, "scale: 3 and 9"),
        ({"kafka.partitions": 4}, "partitions: 1 and 4"),
    ],
)
def test_another_task_is_not_comparable(
    make_run: MakeRun, config: dict[str, Any], reason: str
) -> None:
    base, new = make_run("r1"), make_run("r2", config=config)
    found = compare(side(base), [side(new)], [parse_gate("p90:+10%")])
    assert found["sides"][0]["reasons"] == [reason]
    assert exit_code(found) == 5
    assert exit_code(compare(side(base), [side(new)], [])) == 0


def test_another_machine_is_not_comparable(make_run: MakeRun) -> None:
    base, new = make_run("r1"), make_run("r2")
    new.document["machine"] = new.document["machine"] | {"cores": 64}
    found = compare(side(base), [side(new)], [])
    assert found["sides"][0]["reasons"] == ["cores: 2 and 64"]


def test_another_system_is_compared_and_named(make_run: MakeRun) -> None:
    base, new = make_run("r1"), make_run("r2", config={"spark.engine": "real-time"})
    found = compare(side(base), [side(new)], [])["sides"][0]
    assert found["comparable"]
    assert found["changed"] == ["spark.engine: auto and real-time"]


def test_repetitions_are_found(make_run: MakeRun) -> None:
    one, two = make_run("r1"), make_run("r2")
    other = make_run("r3", config={"spark.engine": "real-time"})
    sides = grouped([one, other, two])
    assert [len(each.runs) for each in sides] == [2, 1]
    assert sides[0].name == "r1 and 1 more"
    assert mixed([one, two]) == []


@pytest.mark.parametrize(
    ("text", "gate"),
    [
        ("p90:+10%", ("p90", "change", 10.0, True)),
        ("p99.9:+0.5ms", ("p99_9", "change", 0.5, False)),
        ("P50: 20ms", ("p50", "ceiling", 20.0, False)),
        ("rate:-1%", ("rate", "change", 1.0, True)),
    ],
)
def test_the_grammar_of_gates(text: str, gate: tuple[str, str, float, bool]) -> None:
    found: Gate = parse_gate(text)
    assert found.figure is not None
    assert (found.figure.name, found.kind, found.amount, found.percent) == gate


@pytest.mark.parametrize(
    "text", ["p90", "p91:+1%", "p90:10%", "p90:-10%", "rate:+1%", "rate:-5ms", "p90:+x%", ""]
)
def test_what_is_no_gate_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_gate(text)


def test_noise_inside_a_run_grows_with_its_moods() -> None:
    rng = np.random.default_rng(1)
    time_ms = np.arange(30_000.0)
    steady = rng.lognormal(4, 0.3, 30_000)
    moody = steady * np.repeat(rng.lognormal(0, 0.5, 30), 1_000)
    calm, wild = within(time_ms, steady, 0.9), within(time_ms, moody, 0.9)
    assert calm is not None
    assert wild is not None
    assert calm < 0.02
    assert wild > 0.05
    assert within(time_ms[:10], steady[:10], 0.9) is None


def test_more_runs_make_surer() -> None:
    one = spread([1.0], [0.0])
    assert one == pytest.approx(BETWEEN_RUNS)
    assert spread([1.0] * 4, [0.0] * 4) == pytest.approx(one / 2)
    # Runs that lie further apart than the allowance speak for themselves.
    assert spread([0.0, 2.0], [None, None]) > 0.9
    assert 0.15 < explained(one, one) < 0.25


def test_baselines_are_kept_by_name(make_run: MakeRun, tmp_path: Path) -> None:
    store = tmp_path / "results"
    runs = [make_run("r1"), make_run("r2")]
    save_baseline(store, "release", runs)
    save_baseline(store, "other", runs[:1])
    save_baseline(store, "release", runs[1:])
    assert baselines(store) == {"other": ["r1"], "release": ["r2"]}
    assert [run.root.name for run in find_runs(store, "other,release")] == ["r1", "r2"]
    base, sides = choose_sides(store, ["release", "r1"], None, None)
    assert (base.name, sides[0].name) == ("release", "r1")
    for name in ("last", "", "a/b", "1st"):
        with pytest.raises(UsageError, match="no name"):
            save_baseline(store, name, runs)


def test_a_damaged_file_of_baselines_is_named(tmp_path: Path) -> None:
    (tmp_path / "baselines.json").write_text("[]", encoding="utf-8")
    with pytest.raises(UsageError, match="damaged"):
        baselines(tmp_path)


def test_sides_are_chosen_by_options_too(make_run: MakeRun, tmp_path: Path) -> None:
    store = tmp_path / "results"
    for run_id in ("r1", "r2", "r3"):
        make_run(run_id)
    base, sides = choose_sides(store, [], "r1,r2", "r3")
    assert [len(base.runs), len(sides[0].runs)] == [2, 1]
    make_run("r4", config={"load.rate": 7.0})
    with pytest.raises(UsageError, match="no repetitions"):
        choose_sides(store, ["r1,r4", "r2"], None, None)
    for arguments in ([], ["r1"]):
        with pytest.raises(UsageError):
            choose_sides(store, arguments, None, None)


def test_a_matrix_stands_for_its_finished_runs(make_run: MakeRun, tmp_path: Path) -> None:
    store = tmp_path / "results"
    for run_id in ("r1", "r2", "r3"):
        make_run(run_id)
    cells = [
        {"state": "finished", "runs": ["r9", "r1"]},
        {"state": "failed", "runs": ["r3"]},
        {"state": "finished", "runs": ["r2"]},
    ]
    (store / "matrix-a1").mkdir()
    path = store / "matrix-a1" / "matrix.json"
    path.write_text(json.dumps({"cells": cells}), encoding="utf-8")
    base, sides = choose_sides(store, ["matrix-a", "r3"], None, None)
    assert [run.root.name for run in base.runs] == ["r1", "r2"]
    assert (base.name, sides[0].name) == ("matrix-a1", "r3")
    _, sides = choose_sides(store, ["r3", "matrix-a1"], None, None)
    assert sides[0].name == "matrix-a1"
    path.write_text("{}", encoding="utf-8")
    with pytest.raises(UsageError, match="cannot be read"):
        find_runs(store, "matrix-a1")


def test_markdown_and_page_hold_the_same_verdict(make_run: MakeRun) -> None:
    base, slow = side(make_run("r1")), side(make_run("r<2>", slower=2.0))
    found = compare(base, [slow], [parse_gate("p90:+10%")])
    text = comparison_markdown(found)
    assert text.count("❌") == 2
    assert "| identify-errors | p50 |" in text
    page = comparison_page(found, base, [slow])
    assert "A gate is missed" in page
    assert "r<2>" not in page
    assert page.count("<figure") == 2


def espbench(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "espbench", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=directory, check=False)


def test_the_command_line_says_it_by_exit_code(make_run: MakeRun, tmp_path: Path) -> None:
    for run_id, slower in (("r1", 1.0), ("r2", 1.0), ("r3", 1.5)):
        make_run(run_id, seed=int(run_id[1]), slower=slower)
    answer = espbench(tmp_path, "compare", "--save-baseline", "good", "r1")
    assert answer.returncode == 0
    answer = espbench(tmp_path, "compare", "good", "r2", "--fail", "p90:+10%", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["format"] == "espbench-comparison/1"
    files = [tmp_path / "c.md", tmp_path / "c.html"]
    answer = espbench(
        *(tmp_path, "compare", "good", "r3", "--fail", "p90:+10%"),
        *("--markdown", str(files[0]), "--html", str(files[1])),
    )
    assert answer.returncode == 6
    assert "missed: p90:+10% of identify-errors" in answer.stdout
    assert "too few to tell" in answer.stdout
    assert all(file.stat().st_size > 500 for file in files)
    answer = espbench(tmp_path, "compare", "good", "r9")
    assert answer.returncode == 2
    assert len(answer.stderr.splitlines()) == 1


def test_the_report_command_writes_its_files(make_run: MakeRun, tmp_path: Path) -> None:
    run = make_run("r1")
    answer = espbench(tmp_path, "report", "--json")
    assert answer.returncode == 0, answer.stderr
    assert json.loads(answer.stdout)["run_id"] == "r1"
    for name in ("report.html", "junit.xml", "summary.md"):
        assert (run.root / name).stat().st_size > 300
    shutil.rmtree(run.root / "logs")
    answer = espbench(tmp_path, "report", "r1", "--out", "x/page.html")
    assert answer.returncode == 0, answer.stderr
    assert (tmp_path / "x" / "junit.xml").exists()
