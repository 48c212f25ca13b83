"""What cannot be known is unknown, and what is wrong in spite of it incorrect."""

import gzip
from dataclasses import replace

from tests.unit.validator.given import ECHO, ERRORS, INPUT, PLAN, Judged, changed, with_value
from validator.synthetic import Plan, Topic, errors_sink, sensor_line, source
from validator.topics import Claim


def test_an_empty_sink_is_complete_evidence(judged: Judged) -> None:
    for empty in (b"", gzip.compress(b"")):
        found = judged("q3", INPUT, empty)
        assert (found["correctness"], found["exit"]) == ("incorrect", 4)
        assert found["counts"]["missing"] == 199
        assert found["slo"]["met"] is None
        assert found["latency_ms"]["n"] == 0


def test_nothing_expected_is_unknown(judged: Judged) -> None:
    found = judged("q3", b"", b"")
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    calm = source(Plan(error_share=0))
    assert judged("q3", calm, b"")["correctness"] == "unknown"
    assert judged("q3", calm, ERRORS)["correctness"] == "incorrect"


def test_a_torn_sink_proves_no_absence(judged: Judged) -> None:
    torn = ERRORS.json_lines()[:-700]
    found = judged("q3", INPUT, torn)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert any("sink.jsonl, line" in problem and "torn" in problem for problem in found["problems"])
    wrong = with_value(ERRORS, 3, (ERRORS.records[3].value or b"").replace(b"0193", b"0194"))
    found = judged("q3", INPUT, wrong.json_lines()[:-700])
    assert (found["correctness"], found["exit"]) == ("incorrect", 4)
    garbage = with_value(ERRORS, 3, b"garbage")
    assert judged("q3", INPUT, garbage.json_lines()[:-700])["exit"] == 4


def test_a_torn_sink_is_unknown_even_if_nothing_is_missing(judged: Judged) -> None:
    assert judged("q3", INPUT, ERRORS.json_lines() + b'{"topic')["exit"] == 5


def test_a_torn_source_leaves_later_outputs_undecided(judged: Judged) -> None:
    content = INPUT.json_lines()
    torn = content[: len(content) // 2 + 7]
    for query, sink in (("q3", ERRORS), ("q0", ECHO)):
        found = judged(query, torn, sink)
        assert (found["correctness"], found["exit"]) == ("unknown", 5)
        assert found["undecided"]["extra"] == found["counts"]["extra"] > 0
    lost = changed(ERRORS, lambda records: records.pop(3))
    assert judged("q3", torn, lost)["correctness"] == "incorrect"
    impossible = changed(
        ERRORS,
        lambda r: r.append(
            replace(r[-1], value=f"1999;{sensor_line(1999, 14_000, 1, 1)}".encode())
        ),
    )
    assert judged("q3", torn, impossible)["correctness"] == "incorrect"


def test_a_gap_in_offsets_is_missing_evidence(judged: Judged) -> None:
    gap = Topic(ERRORS.name, ERRORS.records[:80] + ERRORS.records[81:])
    found = judged("q3", INPUT, gap)
    assert (found["correctness"], found["counts"]["missing"]) == ("unknown", 1)
    assert "partition 0: offset 80 is missing" in found["problems"][0]
    said = judged("q3", INPUT, gap, {"sink": Claim(complete=True)})
    assert said["correctness"] == "incorrect"
    said = judged("q3", INPUT, gap, {"sink": Claim(transactional=True)})
    assert (said["correctness"], said["latency_label"]) == ("incorrect", "append, not commit")
    spaced = Topic(ERRORS.name, [replace(r, offset=2 * r.offset) for r in ERRORS.records])
    assert judged("q3", INPUT, spaced)["correctness"] == "unknown"
    assert judged("q3", INPUT, spaced, {"sink": Claim(transactional=True)})["exit"] == 0
    assert judged("q3", INPUT, spaced, {"sink": Claim(complete=True)})["exit"] == 0


def test_the_head_of_a_sink_file_cut_off_proves_no_absence(judged: Judged) -> None:
    found = judged("q3", INPUT, Topic(ERRORS.name, ERRORS.records[10:]))
    assert (found["correctness"], found["counts"]["missing"]) == ("unknown", 10)
    later = Topic(ERRORS.name, [replace(r, offset=r.offset + 500) for r in ERRORS.records])
    assert judged("q3", INPUT, later)["correctness"] == "correct"


def test_a_declared_range_must_be_there(judged: Judged) -> None:
    for ranges in ({0: (0, 200)}, {0: (0, 199), 1: (0, 5)}):
        found = judged("q3", INPUT, ERRORS, {"sink": Claim(ranges=ranges)})
        assert (found["correctness"], found["exit"]) == ("unknown", 5)
    found = judged("q3", INPUT, ERRORS, {"sink": Claim(ranges={0: (0, 199), 1: (7, 7)})})
    assert found["correctness"] == "correct"
    found = judged("q3", INPUT, ERRORS, {"sink": Claim(complete=False)})
    assert found["correctness"] == "unknown"
    found = judged("q3", INPUT, ERRORS, {"source-1": Claim(complete=False)})
    assert found["correctness"] == "unknown"


def test_a_source_gap_is_missing_evidence(judged: Judged) -> None:
    calm = next(
        n for n, r in enumerate(INPUT.records) if int((r.value or b"").split(b"\t")[2]) < 14_963
    )
    gap = Topic(INPUT.name, INPUT.records[:calm] + INPUT.records[calm + 1 :])
    assert judged("q3", gap, ERRORS)["correctness"] == "unknown"


def test_ids_must_run_from_zero(judged: Judged) -> None:
    calm = next(
        n for n, r in enumerate(INPUT.records) if int((r.value or b"").split(b"\t")[2]) < 14_963
    )
    lacking = changed(INPUT, lambda records: records.pop(calm))
    found = judged("q3", lacking, ERRORS)
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert f"the first is {calm}" in found["problems"][0]
    report = {"streams": [{"stream": 1, "handed": 2000, "acknowledged": 1999, "failed": 1}]}
    found = judged("q3", lacking, ERRORS, sender_report=report)
    assert found["correctness"] == "correct"
    assert (found["load"]["valid"], found["exit"]) == (False, 5)
    silent = {"streams": [{"stream": 1, "acknowledged": 1999, "failed": 0}]}
    assert judged("q3", lacking, ERRORS, sender_report=silent)["correctness"] == "unknown"
    late = changed(INPUT, lambda records: records.__delitem__(slice(0, calm + 1)))
    assert judged("q3", late, ERRORS)["correctness"] != "correct"


def test_the_senders_report_notices_a_source_cut_at_a_line(judged: Judged) -> None:
    cut = Topic(INPUT.name, INPUT.records[:1_000])
    sink = errors_sink(cut, PLAN)
    assert judged("q3", cut, sink)["correctness"] == "correct"
    report = {"streams": [{"stream": 1, "acknowledged": 2000, "failed": 0}]}
    found = judged("q3", cut, ERRORS, sender_report=report)
    assert found["correctness"] == "unknown"


def test_repeated_offsets_are_no_file_of_one_topic(judged: Judged) -> None:
    found = judged("q3", INPUT, ERRORS.json_lines() * 2)
    assert (found["correctness"], found["counts"]["duplicate"]) == ("unknown", 0)
    found = judged("q3", INPUT.json_lines() * 2, ERRORS)
    assert (found["correctness"], found["counts"]["input"]) == ("unknown", 2_000)


def test_foreign_files_are_named(judged: Judged) -> None:
    found = judged("q3", INPUT, b"id;line\n1;2\n")
    assert (found["correctness"], found["exit"]) == ("unknown", 5)
    assert "sink.jsonl, line 1: not JSON" in found["problems"][0]
    assert judged("q3", b"\x89PNG\r\n\x1a\n" + bytes(100), ERRORS)["exit"] == 5
