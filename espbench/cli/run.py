"""`espbench run`: the whole benchmark, from data to verdict."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import ExitCode, UsageError
from espbench.logs import LOGGER

if TYPE_CHECKING:
    from espbench.config import Settings
    from espbench.runs.store import RunDir


def run(
    queries: options.Queries = None,
    rate: options.Rate = None,
    duration: options.Duration = None,
    warmup: options.Warmup = None,
    scale: options.Scale = None,
    seed: options.Seed = None,
    partitions: options.Partitions = None,
    engine: options.Engine = None,
    master: options.Master = None,
    bootstrap_servers: options.BootstrapServers = None,
    db: options.Db = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Where results go (default: results).")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            metavar="RUN",
            help="Go on with a run or a matrix that failed or was interrupted, as it was begun.",
        ),
    ] = None,
    from_step: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="STEP",
            help="With --resume: where the interrupted query goes on (capture, validate); "
            "by default it is begun anew.",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", help="Only these steps (tags of the playbook), with commas."),
    ] = None,
    skip_steps: Annotated[
        str | None, typer.Option("--skip-steps", help="All steps but these, with commas.")
    ] = None,
    keep: Annotated[
        str | None,
        typer.Option("--keep", help="What stays at the end: topics, services, hosts, with commas."),
    ] = None,
    inventory: Annotated[
        Path | None,
        typer.Option(
            "--inventory",
            exists=True,
            dir_okay=False,
            help="Ansible inventory of other hosts that take part (playbooks/inventories).",
        ),
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(
            "--wheel",
            exists=True,
            dir_okay=False,
            help="With --inventory: this project's wheel, for hosts without it.",
        ),
    ] = None,
    wheelhouse: Annotated[
        Path | None,
        typer.Option(
            "--wheelhouse",
            exists=True,
            file_okay=False,
            help="With --wheel: wheels of what it needs, for hosts that reach no package index.",
        ),
    ] = None,
    prepare: Annotated[
        bool,
        typer.Option("--prepare", help="Only make the run's directory, for ansible-playbook."),
    ] = False,
    matrix: Annotated[
        Path | None,
        typer.Option("--matrix", help="Run all cells of this file (docs/matrix.md); one table."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="The experiment of 2021: 5 queries, 2 rates, 3 x 300 s each."),
    ] = False,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run the benchmark: services, data, load, then per query send, drain, capture, validate.

    Without options it uses embedded services on this machine. Ends with one table and the path
    of the results. Example: espbench run --queries q3 --rate 1000 --duration 60
    """
    from espbench.cli.precheck import check_run
    from espbench.names import parse_queries
    from espbench.runs.estimate import estimate
    from espbench.runs.plan import KEEPABLE, QUERY_STEPS, RUN_STEPS, Wishes, chosen
    from espbench.runs.run import prepare_run, resume_run, run_benchmark
    from espbench.runs.store import find_run
    from espbench.timestamps import new_run_id

    given = {
        "queries": queries,
        "load.rate": rate,
        "load.duration": duration,
        "load.warmup": warmup,
        "data.scale": scale,
        "data.seed": seed,
        "kafka.partitions": partitions,
        "spark.engine": engine,
        "spark.master": master,
        "kafka.bootstrap_servers": bootstrap_servers,
        "database.url": db,
        "results_dir": out,
    }
    every_step = (*RUN_STEPS, *QUERY_STEPS)
    wishes = Wishes(
        keep=chosen(keep, KEEPABLE, "part that can be kept"),
        steps=chosen(steps, every_step, "step"),
        skip=chosen(skip_steps, every_step, "step"),
        inventory=inventory,
        wheel=wheel,
        wheelhouse=wheelhouse,
    )
    if matrix or full:
        from espbench.cli.matrix import run_matrix

        if steps or skip_steps or from_step or prepare:
            raise UsageError(
                "the runs of a matrix are whole ones",
                "leave out --steps, --skip-steps, --from and --prepare",
            )
        begun = (matrix, full, resume, config, given, wishes)
        run_matrix(*begun, json=json, quiet=quiet, verbose=verbose)
        return
    settings = context.begin(config, quiet=quiet, verbose=verbose, options=given)
    if from_step and not resume:
        raise UsageError("--from needs --resume", "say which run to go on with")
    if resume:
        old = find_run(settings.results_dir, resume)
        settings = context.begin(old.root / "config.yml", quiet=quiet, verbose=verbose)
        LOGGER.info("run %s: going on", old.document["run_id"])
        todo = parse_queries(settings.queries)
        with _told(settings, old.document["run_id"], json=json):
            done = resume_run(settings, todo, old, quiet=quiet, from_step=from_step, wishes=wishes)
        _show(*done, json=json)
        return
    todo = parse_queries(settings.queries)
    check_run(settings, todo)
    run_id = new_run_id()
    if prepare:
        made = prepare_run(settings, todo, run_id, wishes=wishes)
        _show_prepared(made, json=json)
        return
    seconds, size = estimate(settings, todo)
    LOGGER.info(
        "run %s: %s at %g/s for %g s each; about %.0f s and %.0f MB",
        *(run_id, ", ".join(query.name for query in todo)),
        *(settings.load.rate, settings.load.duration, seconds, size / 1e6),
    )
    _warn_if_short(settings)
    with _told(settings, run_id, json=json):
        done = run_benchmark(settings, todo, run_id, quiet=quiet, wishes=wishes)
    _show(*done, json=json)


def _warn_if_short(settings: "Settings") -> None:
    """Say beforehand that a short run will end without a verdict on sustainability."""
    from validator.sustainability import MIN_SPAN_S

    left_s = max(0.0, settings.load.duration - settings.load.warmup)
    if left_s < MIN_SPAN_S:
        LOGGER.warning(
            "only %g s are left after the warm-up; sustainability needs %g, else it is unknown "
            "(exit code 5): choose a longer --duration or a shorter --warmup",
            *(left_s, MIN_SPAN_S),
        )


@contextmanager
def _told(settings: "Settings", run_id: str, *, json: bool) -> Iterator[None]:
    """With --json a run that fails or is stopped tells the verdicts that it has, and its error."""
    from espbench.runs.store import find_run

    try:
        yield
    except BaseException:
        # One that is refused before it begins has no directory, and nothing to tell.
        if json and (settings.results_dir / run_id).exists():
            document = find_run(settings.results_dir, run_id).document
            if document["state"] in {"failed", "interrupted"}:
                context.print_json(_document(settings.results_dir / run_id, document))
        raise


def _document(root: Path, found: dict[str, Any]) -> dict[str, Any]:
    own = {"run": found["run_id"], "results": str(root), "queries": found["queries"]}
    return own | ({"error": found["error"]} if "error" in found else {})


def _show(run_dir: "RunDir", code: ExitCode, *, json: bool) -> None:
    from espbench.runs.table import print_results, reasons

    verdicts = run_dir.document["queries"]
    if json:
        context.print_json(_document(run_dir.root, run_dir.document))
    else:
        print_results(logs.stdout, verdicts)
        for line in reasons(verdicts):
            sys.stdout.write(f"{line}\n")
        sys.stdout.write(f"verdict: {_word(code)}\nresults: {run_dir.root}\n")
    context.finish(code)


def _show_prepared(run_dir: "RunDir", *, json: bool) -> None:
    if json:
        run_id = run_dir.document["run_id"]
        context.print_json({"run": run_id, "results": str(run_dir.root), "queries": []})
    else:
        sys.stdout.write(f"prepared: {run_dir.root}\n")


def _word(code: ExitCode) -> str:
    return {
        ExitCode.DONE: "correct, valid, sustained, objective met",
        ExitCode.INCORRECT: "incorrect results",
        ExitCode.UNKNOWN: "unknown, or the load was invalid",
        ExitCode.GATE_MISSED: "correct, but a gate is missed",
    }[code]
