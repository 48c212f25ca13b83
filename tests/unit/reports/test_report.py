"""The report of a run: what it says, whatever the run's files hold."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from espbench.reports.collect import collect
from espbench.reports.counts import added_up
from espbench.reports.fairness import changed, durability, samples
from espbench.reports.junit import junit
from espbench.reports.markdown import markdown
from espbench.reports.page import report_page
from espbench.reports.published import beside, published
from espbench.reports.sentences import checks, show_ms
from espbench.reports.timeseries import Usage, everything_else, peaks
from espbench.reports.write import write_reports
from espbench.runs.store import RunDir

MakeRun = Callable[..., RunDir]
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x00\u2028|`*"


class Tags(HTMLParser):
    """The elements of a page, and what stands in its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def charts_of(report: dict[str, Any], query: int = 0) -> dict[str, Any]:
    return {chart["name"]: chart for chart in report["queries"][query]["charts"]}


def test_a_good_run_is_called_so(make_run: MakeRun) -> None:
    report = collect(make_run())
    assert report["verdict"]["status"] == "passed"
    assert [query["name"] for query in report["queries"]] == [
        "identify-errors",
        "persist-processing-times",
    ]
    assert set(charts_of(report)) == {
        "latency",
        "distribution",
        "lag",
        "answers",
        "rates",
        "lateness",
        "batches",
    }
    assert any("system.parquet" in text for text in report["queries"][0]["absent"])
    assert not report["problems"]


def test_components_are_drawn_where_they_were_recorded(
    make_run: MakeRun, add_system: Callable[[RunDir], None]
) -> None:
    run = make_run()
    add_system(run)
    report = collect(run)
    charts = charts_of(report)
    assert [each["name"] for each in charts["cpu"]["series"]] == ["spark", "kafka"]
    assert charts["memory"]["series"][1]["y"][0] == 400
    # A component has its colour in every chart of every query.
    tones = [
        {each["name"]: each["tone"] for each in charts[kind]["series"]}
        for kind in ("cpu", "memory")
    ]
    assert tones[0] == tones[1] == {"spark": 1, "kafka": 2}
    assert not report["queries"][0]["absent"]


def usage(name: str, cpu_percent: list[float]) -> Usage:
    values = np.array(cpu_percent)
    return Usage(name, np.arange(float(len(values))), values, values)


def test_what_no_component_used_is_told_by_host() -> None:
    late = Usage("kafka on b", np.array([1.0]), np.array([30.0]), np.array([0.0]))
    found = [usage("host on a", [50, 60]), usage("spark on a", [40, 70]), late]
    a, b = everything_else([*found, usage("host on b", [10, 80])])
    assert (a.component, a.cpu_percent.tolist()) == ("everything else on a", [10, 0])
    assert (b.component, b.cpu_percent.tolist()) == ("everything else on b", [10, 50])
    # All processes by their own counters are known better than the host by its ticks.
    host = replace(usage("host", [90, 90]), processes_percent=np.array([45.0, 20.0]))
    (rest,) = everything_else([host, usage("spark", [40, 30])])
    assert rest.cpu_percent.tolist() == [5, 0]


def test_much_work_of_others_is_marked(
    make_run: MakeRun, add_system: Callable[[RunDir], None]
) -> None:
    run = make_run()
    add_system(run)
    for query in ("identify-errors", "persist-processing-times"):
        path = run.root / "logs" / f"{query}-sender.json"
        sender = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(sender | {"end_ms": sender["start_ms"] + 30_000}), "utf-8")
    table = pq.read_table(run.root / "system.parquet")
    kafka = pc.equal(table["component"], "kafka")
    for percent, status in ((90.0 + 25.0, "unknown"), (90.0 + 15.0, None)):
        names = pc.if_else(kafka, "host", table["component"])
        cpu = pc.if_else(kafka, percent, table["cpu_percent"])
        changed = table.set_column(2, "component", names).set_column(4, "cpu_percent", cpu)
        pq.write_table(changed, run.root / "system.parquet")
        groups = {each["name"]: each["rows"] for each in collect(run)["fairness"]}
        (row,) = groups["Other work on the machine"]
        assert row.get("status") == status
        assert f"{percent - 90:.0f} % of a core" in row["value"]


def test_the_highest_lag_of_a_second_is_between_its_samples() -> None:
    # Two wait from 0.2 s and one of them to 2.5 s; what is given at once is never owed.
    seconds, highest = peaks(np.array([0.2, 0.2, 3.1]), np.array([0.9, 2.5, 3.1]))
    assert seconds.tolist() == [0.5, 1.5, 2.5, 3.5]
    assert highest.tolist() == [2, 1, 1, 0]


def test_peaks_of_the_lag_are_drawn_only_where_all_answers_are_known(make_run: MakeRun) -> None:
    run = make_run(queries=("identify-errors",))
    assert len(charts_of(collect(run))["lag"]["series"]) == 2
    run.document["queries"][0]["counts"]["expected"] += 1
    assert len(charts_of(collect(run))["lag"]["series"]) == 1


def test_the_caption_counts_the_batches_that_are_drawn(make_run: MakeRun) -> None:
    run = make_run(queries=("identify-errors",))
    path = run.root / "logs" / "identify-errors-query-progress.jsonl"
    late = datetime.fromtimestamp(1_700_000_000 + 90, UTC).isoformat()
    line = {"timestamp": late, "batchDuration": 200, "numInputRows": 5}
    path.write_text(f"{path.read_text(encoding='utf-8')}\n{json.dumps(line)}", "utf-8")
    chart = charts_of(collect(run))["batches"]
    (dots,) = chart["series"]
    assert max(dots["x"]) <= chart["x"][1]
    assert f": {len(dots['x'])}." in chart["text"]


def test_queries_through_python_are_said_to_answer_in_groups(make_run: MakeRun) -> None:
    run = make_run(queries=("identify-errors",))
    path = run.root / "logs" / "identify-errors-query.json"
    report = {"engine": "real-time", "trigger_ms": 3_000, "settings": {}}
    path.write_text(json.dumps(report), encoding="utf-8")
    assert "as it comes" in collect(run)["queries"][0]["engine"]
    report["settings"] = {
        "spark.python.udf.pipelined.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "16",
    }
    path.write_text(json.dumps(report), encoding="utf-8")
    told = collect(run)["queries"][0]["engine"]
    assert "groups of up to 16" in told
    assert "interval of 3,000 ms" in told


def test_evidence_stands_beside_its_limits() -> None:
    found = {
        "verdict": "sustained",
        "lag_slope_per_s": -0.0949,
        "latency_slope_ms_per_s": 11.66,
        "drain_s": 2.222,
        "expected_per_s": 78.96,
    }
    text = checks({"sustainability": found})[2].text
    assert text == (
        "Lag \u22120.09 answers/s (limit +3.95), latency +11.7 ms/s (limit +50), last answer 2.2 s "
        "after the sender's end (limit 5 s)."
    )


def test_counts_add_up_or_are_not_said_to() -> None:
    counts = {"actual": 100, "matched": 3, "surplus": 90}
    assert not added_up({"counts": counts})
    told = added_up({"counts": counts, "not_judged": 7})
    assert told == "3 matched + 90 surplus + 7 not judged = 100 actual"
    told = added_up({"counts": {"actual": 12, "matched": 10, "borderline": 5}})
    assert told == "10 matched + 2 of the 5 borderline = 12 actual"
    assert not added_up({"counts": {"actual": 9, "matched": 10}})


@pytest.mark.parametrize(
    ("value", "whole", "shown"),
    [
        (0, True, "< 1"),
        (7.9, True, "8"),
        (-1, True, "\u22121"),
        (7.94, False, "7.9"),
        (-0.04, False, "0.0"),
    ],
)
def test_whole_milliseconds_have_no_decimals(value: float, whole: bool, shown: str) -> None:
    assert show_ms(value, whole=whole) == shown


def test_the_objective_of_query_5_is_that_of_the_commit(make_run: MakeRun) -> None:
    run = make_run()
    verdict = run.document["queries"][1]
    verdict["commit_latency_ms"] = verdict["latency_ms"]
    verdict["commit_latency_ms_after_warmup"] = verdict["latency_ms"] | {"p50": 4_321}
    page = report_page(collect(run))
    assert "of persist-processing-times until the commit" in page
    assert page.count("4,321") == 2


def test_a_long_witness_keeps_its_end(make_run: MakeRun) -> None:
    run = make_run(queries=("identify-errors",))
    long = {"kind": "wrong", "expected": f"begin{'x' * 500},0.50", "actual": "short"}
    run.document["queries"][0]["witnesses"] = [long]
    page = report_page(collect(run))
    assert re.search(r"begin[x]+ … [x]+,0\.50<", page)


def test_the_page_says_what_was_tested_beside_what(make_run: MakeRun) -> None:
    run = make_run()
    services = [{"name": "kafka"}, {"name": "mariadb", "settings": {"version": "11.4.5"}}]
    run.document |= {"services": services}
    run.document["versions"]["kafka_2.13"] = "4.3.1"
    report = collect(run)
    assert report["tested"] == "Spark 4.3.0 (PySpark), micro-batches"
    assert report["beside"] == "Kafka 4.3.1, MariaDB 11.4.5"
    run.document["config"]["kafka"]["bootstrap_servers"] = "far:9092"
    run.document["config"]["database"]["url"] = "postgresql://far/x"
    run.document["services"] = []
    assert collect(run)["beside"] == "Kafka by address, a database by address"


def test_a_system_without_a_published_result_is_named(make_run: MakeRun) -> None:
    run = make_run(queries=("determine-outliers",))
    (chart,) = collect(run)["published"]["charts"]
    strips = {each["name"]: each for each in chart["series"]}
    assert strips["Spark 2.4.4 at 1,000/s"]["values"] == []
    assert len(strips["Flink 1.8.2 at 1,000/s"]["values"]) == 3


def test_the_default_objective_is_called_so(make_run: MakeRun) -> None:
    assert collect(make_run())["slo"]["is_default"]
    assert not collect(make_run("r2", config={"slo.limit_ms": 5.0}))["slo"]["is_default"]


def test_answers_are_owed_and_given_by_the_second(make_run: MakeRun) -> None:
    owed, given = charts_of(collect(make_run()))["answers"]["series"]
    assert (owed["name"], given["name"]) == ("owed", "given")
    assert set(owed["y"]) == {50.0}
    # The first five came a second late.
    assert given["y"][:2] == [45.0, 50.0]


def test_the_second_in_which_the_sender_ended_is_no_drop_of_the_rate(make_run: MakeRun) -> None:
    run = make_run(queries=("identify-errors",))
    path = run.root / "logs" / "identify-errors-sender.json"
    sender = json.loads(path.read_text(encoding="utf-8"))
    sender["streams"][0]["per_second"].append(2)
    path.write_text(json.dumps(sender), encoding="utf-8")
    _, sent = charts_of(collect(run))["rates"]["series"]
    assert min(sent["y"]) == 50.0


def test_our_machines_are_named_beside_those_of_2021(make_run: MakeRun) -> None:
    run = make_run()
    told = collect(run)["published"]["ours"]
    assert told.startswith("on 2 cores of P with 16.0 GiB")
    assert "shared" in told
    run.document["config"]["kafka"]["bootstrap_servers"] = "far:9092"
    assert "Kafka by address" in collect(run)["published"]["ours"]


def test_settings_that_differ_between_queries_name_them(make_run: MakeRun) -> None:
    run = make_run()
    path = run.root / "logs" / "persist-processing-times-query.json"
    path.write_text(json.dumps({"engine": "real-time", "settings": {"spark.x": "2"}}), "utf-8")
    groups = {each["name"]: each["rows"] for each in collect(run)["fairness"]}
    (row,) = groups["Spark settings that espbench sets"]
    assert row["value"] == "1; 2 for persist-processing-times"


def test_every_chart_says_what_it_shows(make_run: MakeRun) -> None:
    report = collect(make_run())
    for query in report["queries"]:
        for chart in query["charts"]:
            assert chart["text"].endswith(".")
            assert len(chart["text"]) > 30


@pytest.mark.parametrize(
    ("change", "status", "word"),
    [
        ({"correctness": "incorrect"}, "failed", "Incorrect"),
        ({"correctness": "unknown"}, "unknown", "Unknown"),
        ({"load": {"valid": False, "reasons": ["too slow"]}}, "unknown", "Unknown"),
        ({"sustainability": {"verdict": "unknown"}}, "unknown", "Unknown"),
        ({"sustainability": {"verdict": "not sustained"}}, "failed", "gate"),
        ({"slo": {"met": False, "percentile": 90, "limit_ms": 1}}, "failed", "gate"),
    ],
)
def test_the_verdict_names_the_query(
    make_run: MakeRun, change: dict[str, Any], status: str, word: str
) -> None:
    run = make_run()
    run.document["queries"][1] |= change
    report = collect(run)
    assert report["verdict"]["status"] == status
    assert word in report["verdict"]["word"]
    assert "persist-processing-times" in report["verdict"]["text"]
    assert "identify-errors" not in report["verdict"]["text"]


def test_an_interrupted_run_gives_a_report_that_says_so(make_run: MakeRun) -> None:
    run = make_run(state="interrupted", error="stopped by SIGTERM", queries=("identify-errors",))
    run.document["queries"] = []
    for path in [*run.root.glob("*.parquet"), *(run.root / "logs").iterdir()]:
        path.unlink()
    report, page = write_reports(run)
    assert report["verdict"]["word"] == "Interrupted"
    assert "stopped by SIGTERM" in report["verdict"]["text"]
    assert "identify-errors" in report["verdict"]["text"]
    assert len(report["queries"][0]["absent"]) == 6
    text = page.read_text(encoding="utf-8")
    assert "this query was not judged" in text
    root = ET.fromstring((run.root / "junit.xml").read_text(encoding="utf-8"))  # noqa: S314 - ours
    assert root.get("errors") == "4"


def test_a_run_document_without_anything_gives_a_report(make_run: MakeRun) -> None:
    run = make_run()
    run.document = {"format": run.document["format"], "run_id": "r1"}
    assert "no query" in report_page(collect(run)) or "marked unknown" in report_page(collect(run))


def test_damaged_files_become_sentences(make_run: MakeRun) -> None:
    run = make_run()
    (run.root / "latencies-identify-errors.parquet").write_bytes(b"PAR1 torn")
    (run.root / "logs" / "identify-errors-sender.json").write_text("{", encoding="utf-8")
    pq.write_table(pa.table({"other": [1]}), run.root / "lag-identify-errors.parquet")
    report = collect(run)
    told = " ".join(report["problems"])
    for name in ("latencies-identify-errors.parquet", "sender.json", "lag-identify-errors"):
        assert name in told
    assert "latency" in charts_of(report, 1)


def test_hostile_texts_stay_texts(make_run: MakeRun) -> None:
    run = make_run()
    run.document["run_id"] = HOSTILE
    run.document["error"] = HOSTILE
    run.document["machine"]["processor"] = HOSTILE
    run.document["versions"][HOSTILE] = HOSTILE
    run.document["services"][0]["settings"][HOSTILE] = HOSTILE
    verdict = run.document["queries"][0]
    verdict["query"] = HOSTILE
    verdict["correctness"] = HOSTILE
    verdict["problems"] = [HOSTILE]
    verdict["witnesses"] = [{"kind": HOSTILE, "topic": HOSTILE, "expected": HOSTILE}]
    verdict["counts"][HOSTILE] = HOSTILE
    report = collect(run)
    page = report_page(report)
    tags = Tags(page).found
    assert [tag for tag, _ in tags].count("script") == 2
    assert "img" not in [tag for tag, _ in tags]
    assert not [key for _, attributes in tags for key in attributes if key.startswith("on")]
    ET.fromstring(junit(report))  # noqa: S314 - ours
    text = markdown(report)
    assert "<script>" not in text
    assert "\n|" not in text.replace("\n| ", "")


def test_the_page_needs_no_network_and_allows_only_its_own_script(make_run: MakeRun) -> None:
    tags = Tags(report_page(collect(make_run()))).found
    for tag, attributes in tags:
        for key in ("src", "href", "srcset", "action", "data"):
            value = attributes.get(key) or "#"
            assert value.startswith("#") or value == "data:,", (tag, value)
        assert "style" not in attributes  # the policy would refuse it
    policy = next(each["content"] for tag, each in tags if each.get("http-equiv"))
    assert "default-src 'none'" in (policy or "")
    assert "unsafe" not in (policy or "")


def test_a_huge_run_makes_a_small_page(make_run: MakeRun) -> None:
    run = make_run(queries=("persist-processing-times",))
    rng = np.random.default_rng(1)
    count = 3_000_000
    in_ms = 1_700_000_000_000 + np.arange(count) // 10
    latency = rng.lognormal(3, 1.5, count)
    pq.write_table(
        pa.table(
            {
                "in_ms": in_ms,
                "due_ms": in_ms,
                "latency_ms": latency,
                "end_to_end_ms": latency,
                "after_warmup": in_ms > in_ms[0] + 10_000,
            }
        ),
        run.root / "latencies-persist-processing-times.parquet",
    )
    assert len(report_page(collect(run))) < 1_000_000


def test_junit_tells_failures_from_errors(make_run: MakeRun) -> None:
    run = make_run()
    run.document["queries"][0]["correctness"] = "incorrect"
    run.document["queries"][0]["counts"]["missing"] = 3
    run.document["queries"][1]["sustainability"] = {"verdict": "unknown", "reasons": ["short"]}
    root = ET.fromstring(junit(collect(run)))  # noqa: S314 - ours
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("8", "1", "1")
    failure = root.find(".//testcase[@name='correctness']/failure")
    assert failure is not None
    assert "3 missing" in (failure.text or "")
    error = root.find(".//testcase[@name='sustainability']/error")
    assert error is not None
    assert "short" in (error.text or "")


def test_the_summary_has_a_row_per_query_and_a_reason_per_fault(make_run: MakeRun) -> None:
    run = make_run()
    run.document["queries"][0]["load"] = {"valid": False, "reasons": ["rate missed"]}
    text = markdown(collect(run))
    assert text.startswith("## ⚠️ Unknown")
    assert len(re.findall(r"^\| (identify|persist)", text, re.MULTILINE)) == 2
    assert "rate missed" in text


def test_the_report_is_json(make_run: MakeRun) -> None:
    text = json.dumps(collect(make_run()), allow_nan=False)
    assert json.loads(text)["format"] == "espbench-report/1"


def test_published_results_stand_beside_the_same_rate() -> None:
    rows = beside(["identify-errors"], 1_000.0)
    assert {row["rate"] for row in rows} == {1_000}
    assert {row["rate"] for row in beside(["identify-errors"], 777.0)} == {1_000, 10_000}
    assert not beside(["identity"], 1_000.0)
    for each in published():
        assert each.lowest_ms <= each.median_ms <= each.highest_ms
        assert each.correct_runs <= each.runs


def test_the_sheet_shows_what_is_not_the_default(make_run: MakeRun) -> None:
    run = make_run()
    rows = {row["name"]: row for row in changed(run.document["config"])}
    assert rows["load.rate"]["value"] == "50.0"
    assert rows["load.rate"]["note"] == "default: 1000.0"
    assert "data.seed" not in rows
    assert changed(None)[0]["name"] == "none"


def test_a_database_made_less_durable_is_named(make_run: MakeRun) -> None:
    run = make_run()
    assert not durability(run.document)
    run.document["services"][0]["settings"] = {"fsync": "off"}
    assert durability(run.document) == ["postgresql: fsync = off"]
    assert "fsync = off" in report_page(collect(run))


def test_samples_say_what_they_carry() -> None:
    verdicts: list[dict[str, Any]] = [
        {"query": "a", "latency_ms": {"n": 40}, "latency_ms_after_warmup": {"n": 30}},
        {"query": "b", "latency_ms": None, "latency_ms_after_warmup": None},
    ]
    assert [row["highest"] for row in samples(verdicts)] == ["p95", "none"]
