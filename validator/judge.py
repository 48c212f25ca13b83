"""From files to a verdict: read, compute what was expected, compare, measure."""

import time
from dataclasses import replace

import numpy as np

from espbench.logs import LOGGER
from validator.evidence import Evidence
from validator.latency import elapsed_ms, percentile, statistics
from validator.load import judge_stream, load_document
from validator.oracles import Inputs, Oracle, oracle_of
from validator.oracles.base import Table
from validator.outcome import UNKNOWN_MS, Answers, Outcome, Witness
from validator.outputs import Outputs, read_outputs
from validator.records import Bools, text
from validator.request import EXACTLY_ONCE, Request
from validator.streams import Stream, check_ids, check_partitions, read_stream
from validator.sustainability import (
    Lag,
    Sending,
    Sustainability,
    judge_sustainability,
    sample_lag,
)
from validator.tables import read_table
from validator.verdict import CORRECT, INCORRECT, UNKNOWN, Clock, Latency, Verdict

CLOCK_TOLERANCE_MS = 5.0
APPEND_NOT_COMMIT = "append, not commit"


def judge(request: Request) -> Verdict:
    """Judge one query. Missing evidence is part of the verdict; nothing is raised for it."""
    begun = time.perf_counter()
    oracle = oracle_of(request.query)
    streams = [
        read_stream(
            number, request.sources[number], oracle.keeps, oracle.answering, oracle.measured
        )
        for number in request.query.streams
        if number in request.sources
    ]
    for stream in streams:
        check_ids(stream, request.sent(stream.number))
        check_partitions(stream)
    outputs = read_outputs(request.sink, oracle.reads) if request.sink else None
    tables = {name: read_table(name, path) for name, path in request.tables.items()}
    outcome, failure = _ask(oracle, request, streams, outputs, tables, whole=not request.problems)
    problems, notes = _problems(request, streams, outputs, tables)
    problems += failure

    verdict = _measure(request, streams, outputs, outcome, whole=not problems)
    verdict.problems = problems
    verdict.notes = notes
    verdict.correctness = _correctness(verdict, outcome)
    verdict.validator_s = time.perf_counter() - begun
    return verdict


def _problems(
    request: Request, streams: list[Stream], outputs: Outputs | None, tables: dict[str, Table]
) -> tuple[list[str], list[str]]:
    found: list[Evidence] = [stream.topic.evidence for stream in streams]
    if outputs is not None:
        found.append(outputs.topic.evidence)
    found.extend(table.evidence for table in tables.values())
    problems = list(request.problems)
    problems.extend(line for evidence in found for line in evidence.lines())
    notes = [note for evidence in found for note in evidence.notes]
    return problems, notes


def _ask(
    oracle: Oracle,
    request: Request,
    streams: list[Stream],
    outputs: Outputs | None,
    tables: dict[str, Table],
    *,
    whole: bool,
) -> tuple[Outcome, list[str]]:
    """The oracle's outcome; an oracle that fails is missing evidence, not a crash."""
    if not whole and (
        len(streams) < len(request.query.streams) or (request.query.sink and outputs is None)
    ):
        return Outcome(), []
    inputs = Inputs(
        streams=streams,
        outputs=outputs,
        exactly_once=request.guarantee == EXACTLY_ONCE,
        tables=tables,
        freshness_s=request.freshness_s,
    )
    try:
        return oracle.judge(inputs), []
    except Exception as error:  # noqa: BLE001 - the specification wants `unknown` for it
        LOGGER.debug("the oracle failed", exc_info=True)
        return Outcome(), [f"the oracle failed: {type(error).__name__}: {error}"]


def _correctness(verdict: Verdict, outcome: Outcome) -> str:
    """Incorrect beats unknown; unknown is for missing evidence."""
    if outcome.against:
        return INCORRECT
    if outcome.counts.get("expected") == 0 and not outcome.reasons:
        verdict.problems.append("nothing was expected, so that nothing is proved")
    verdict.problems.extend(outcome.reasons)
    if verdict.problems or outcome.undecided:
        return UNKNOWN
    return CORRECT


def _measure(
    request: Request,
    streams: list[Stream],
    outputs: Outputs | None,
    outcome: Outcome,
    *,
    whole: bool,
) -> Verdict:
    verdict = Verdict(query=request.query.name, request=request)
    verdict.counts.update(outcome.counts)
    verdict.counts["input"] = sum(len(stream) for stream in streams)
    verdict.counts["malformed"] = sum(stream.malformed for stream in streams)
    verdict.counts["actual"] = (
        len(outputs) if outputs is not None else outcome.counts.get("actual", 0)
    )
    verdict.against, verdict.undecided = outcome.against, outcome.undecided
    verdict.extras = outcome.extras
    verdict.witnesses = outcome.witnesses + _malformed(streams)
    verdict.load = load_document(
        [
            judge_stream(
                stream,
                _asked(request, stream.number),
                request.duration_s,
                request.slo.limit_ms,
                request.sent(stream.number),
            )
            for stream in streams
        ]
    )
    topics = [stream.topic for stream in streams] + ([outputs.topic] if outputs else [])
    verdict.clock = Clock(
        backwards={topic.name: topic.backwards for topic in topics if topic.backwards},
        before_input=_early(outcome, topics_stamped(streams, outputs)),
        offsets_ms=[
            offset for offset in request.clock_offsets_ms if abs(offset) > CLOCK_TOLERANCE_MS
        ],
        not_log_append_time=[topic.name for topic in topics if len(topic) and not topic.stamped],
    )
    if outputs is not None and outputs.topic.transactional:
        verdict.latency_label = APPEND_NOT_COMMIT
    sending = _sending(streams)
    if not topics_stamped(streams, outputs):
        verdict.sustainability = Sustainability(
            "unknown", reasons=["a topic is not stamped by LogAppendTime"]
        )
        verdict.answers = outcome.answers
        return verdict
    verdict.answers = outcome.answers
    first_ms = sending.first_ms if sending else 0
    verdict.after_warmup = outcome.answers.owed_ms >= first_ms + request.warmup_s * 1_000
    verdict.latency = _latency(outcome, verdict.after_warmup, request)
    if sending is None:
        verdict.sustainability = Sustainability("unknown", reasons=["there is no input"])
        return verdict
    verdict.lag = sample_lag(outcome.answers, sending, request.warmup_s)
    verdict.sustainability = _sustained(request, outcome.answers, sending, verdict.lag, whole=whole)
    return verdict


def _sustained(
    request: Request, answers: Answers, sending: Sending, lag: Lag, *, whole: bool
) -> Sustainability:
    found = judge_sustainability(answers, sending, request.warmup_s, lag)
    if whole:
        return found
    return replace(found, verdict="unknown", reasons=["evidence is missing", *found.reasons])


def topics_stamped(streams: list[Stream], outputs: Outputs | None) -> bool:
    """Whether every record of every topic has its LogAppendTime."""
    return all(stream.topic.stamped for stream in streams) and (
        outputs is None or outputs.topic.stamped
    )


def _asked(request: Request, stream: int) -> float | None:
    if request.rate is not None:
        return request.rate
    report = request.sent(stream)
    return report.asked_rate if report else None


def _early(outcome: Outcome, stamped: bool) -> int:
    """How many answers are stamped before what they answer."""
    answers = outcome.answers
    if not stamped:
        return 0
    given = answers.matched & (answers.given_ms != UNKNOWN_MS)
    needs_ms = answers.owed_ms if outcome.needs_ms is None else outcome.needs_ms
    return int((answers.given_ms[given] < needs_ms[given]).sum())


def _latency(outcome: Outcome, after: Bools, request: Request) -> Latency:
    answers = outcome.answers
    matched = answers.matched
    has_due = matched & (answers.due_ms != UNKNOWN_MS)
    taken = elapsed_ms(answers.owed_ms, answers.given_ms)
    end_to_end = elapsed_ms(answers.due_ms, answers.given_ms)
    headline = taken[matched & after]
    commit = commit_after = None
    if outcome.commit_ms is not None:
        known = outcome.commit_ms != UNKNOWN_MS
        committed = elapsed_ms(answers.owed_ms, outcome.commit_ms)
        commit, commit_after = statistics(committed[known]), statistics(committed[known & after])
        if known.any():
            headline = committed[known & after]
    return Latency(
        all=statistics(taken[matched]),
        after_warmup=statistics(taken[matched & after]),
        end_to_end=statistics(end_to_end[has_due]),
        end_to_end_after_warmup=statistics(end_to_end[has_due & after]),
        commit=commit,
        commit_after_warmup=commit_after,
        slo_figure_ms=percentile(headline, request.slo.percentile),
    )


def _sending(streams: list[Stream]) -> Sending | None:
    spans = []
    for stream in streams:
        stamps = stream.topic.timestamp_ms
        if len(stamps):
            first, last = int(stamps.min()), int(stamps.max())
            interval = (last - first) / (len(stamps) - 1) if len(stamps) > 1 else 0.0
            spans.append((first, last, last + interval))
    if not spans:
        return None
    return Sending(
        first_ms=min(first for first, _, _ in spans),
        last_ms=max(last for _, last, _ in spans),
        end_ms=max(end for _, _, end in spans),
    )


def _malformed(streams: list[Stream]) -> list[Witness]:
    return [
        Witness(
            kind="malformed",
            topic=stream.topic.name,
            partition=int(stream.topic.partition[row]),
            offset=int(stream.topic.offset[row]),
            expected=None,
            actual=text(value),
        )
        for stream in streams
        for row, value in zip(
            np.asarray(stream.malformed_rows), stream.malformed_values, strict=True
        )
    ]
