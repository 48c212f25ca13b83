"""`espbench run`: the whole benchmark, from data to verdict."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.errors import ExitCode
from espbench.logs import LOGGER


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
    matrix: Annotated[
        Path | None,
        typer.Option("--matrix", help="Run all cells of this file (docs/matrix.md); one table."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="The experiment of 2021: 5 queries, 2 rates, 3 x 300 s each."),
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option("--resume", help="Go on with this matrix: its id, or last."),
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Run the benchmark: services, data, load, then per query send, drain, capture, validate.

    Without options it uses embedded services on this machine. Ends with one table and the path
    of the results. Example: espbench run --queries q3 --rate 1000 --duration 60
    """
    from espbench.names import parse_queries
    from espbench.runs.estimate import estimate
    from espbench.runs.run import run_benchmark
    from espbench.runs.table import print_results, reasons
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
    if matrix or full or resume:
        from espbench.cli.matrix import run_matrix

        run_matrix(*(matrix, full, resume, config, given), json=json, quiet=quiet, verbose=verbose)
        return
    settings = context.begin(config, quiet=quiet, verbose=verbose, options=given)
    chosen = parse_queries(settings.queries)
    seconds, size = estimate(settings, chosen)
    run_id = new_run_id()
    LOGGER.info(
        "run %s: %s at %g/s for %g s each; about %.0f s and %.0f MB",
        *(run_id, ", ".join(query.name for query in chosen)),
        *(settings.load.rate, settings.load.duration, seconds, size / 1e6),
    )
    run_dir, code = run_benchmark(settings, chosen, run_id, quiet=quiet)
    verdicts = run_dir.document["queries"]
    if json:
        context.print_json({"run": run_id, "results": str(run_dir.root), "queries": verdicts})
    else:
        print_results(logs.stdout, verdicts)
        for line in reasons(verdicts):
            sys.stdout.write(f"{line}\n")
        sys.stdout.write(f"verdict: {_word(code)}\nresults: {run_dir.root}\n")
    context.finish(code)


def _word(code: ExitCode) -> str:
    return {
        ExitCode.DONE: "correct, valid, sustained, objective met",
        ExitCode.INCORRECT: "incorrect results",
        ExitCode.UNKNOWN: "unknown, or the load was invalid",
        ExitCode.GATE_MISSED: "correct, but a gate is missed",
    }[code]
