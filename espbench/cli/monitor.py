"""`espbench monitor`: what each component and the host use, every second, into a Parquet file."""

import os
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from espbench import logs, names
from espbench.cli import context, options
from espbench.config import Settings
from espbench.paths import make_dir


def monitor(
    out: Annotated[Path, typer.Option("--out", help="The Parquet file to write.")],
    interval: Annotated[
        float,
        typer.Option(
            "--interval",
            min=0.05,
            max=3_600,
            callback=options.finite,
            help="Seconds between two samples.",
        ),
    ] = 1.0,
    process: Annotated[
        list[str] | None,
        typer.Option(
            "--process",
            metavar="NAME=PID|PIDFILE",
            help="A component: this process and all below it. Several allowed.",
        ),
    ] = None,
    auto: Annotated[
        bool,
        typer.Option(
            "--auto",
            help="Find the embedded services and, unless --run or --tree says which, all running "
            "espbench commands.",
        ),
    ] = False,
    run: Annotated[
        str | None,
        typer.Option("--run", help="Find the espbench commands whose arguments hold this run id."),
    ] = None,
    tree: Annotated[
        int | None,
        typer.Option("--tree", help="Find the espbench commands below this pid; end with it."),
    ] = None,
    query: Annotated[
        str | None, typer.Option("--query", help="The query that runs, noted in every row.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", help="This host's name in the rows (default: its own).")
    ] = None,
    duration: Annotated[
        float | None, typer.Option("--duration", help="End by itself after so many seconds.")
    ] = None,
    pid_file: Annotated[
        Path | None, typer.Option("--pid-file", help="Write our pid and start there while we run.")
    ] = None,
    prometheus: Annotated[
        int | None,
        typer.Option(
            "--prometheus",
            min=0,
            max=65_535,
            help="Serve the latest sample on this port of 127.0.0.1, at /metrics (0: a free one).",
        ),
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Sample CPU, memory, disk, network, threads, switches, GC until stopped (Ctrl-C, SIGTERM).

    One row per component and second; a component is a process with all below it, and may come and
    go. Being stopped is the normal end (exit code 0). If it is killed, all but the last seconds
    stand in a draft beside the file. Examples: espbench monitor --auto --out system.parquet

    espbench monitor --process mine=4711 --process db=/run/db.pid --out system.parquet
    """
    settings = context.begin(
        config, quiet=quiet, verbose=verbose, options={"load.duration": duration}
    )
    from espbench.monitor import prometheus as endpoint
    from espbench.monitor.components import Finder, parse_process
    from espbench.monitor.sampler import Sampler
    from espbench.monitor.store import SampleWriter
    from espbench.monitor.watch import until_signal, watch
    from espbench.services.process import ProcessRecord

    named = dict(parse_process(text) for text in process or [])
    if auto:
        named = _services(settings) | named
    finder = Finder(named, tree, run, everything=auto and run is None and tree is None)
    chosen = names.find_query(query).name if query else None
    sampler = Sampler(finder, host or socket.gethostname(), chosen)
    make_dir(out.parent)
    with ExitStack() as cleanup:
        pause = cleanup.enter_context(until_signal())
        if pid_file:
            make_dir(pid_file.parent)
            ProcessRecord.of(os.getpid()).write(pid_file)
            cleanup.callback(pid_file.unlink, missing_ok=True)
        served = None
        if prometheus is not None:
            served = cleanup.enter_context(endpoint.serve(prometheus))
            logs.LOGGER.info("metrics at http://%s:%d/metrics", endpoint.ADDRESS, served.port)
        cleanup.callback(sampler.close)
        seen: set[str] = set()
        writer = cleanup.enter_context(SampleWriter(out))

        def keep(rows: list[dict[str, object]]) -> None:
            writer.add(rows)
            seen.update(str(row["component"]) for row in rows)
            if served:
                served.show(rows)

        samples = watch(
            *(sampler, pause, keep), interval_s=interval, duration_s=duration, ends_with=tree
        )
    document = {"out": str(out), "samples": samples, "components": sorted(seen)}
    if json:
        context.print_json(document)
    else:
        logs.LOGGER.info("%d samples of %s in %s", samples, ", ".join(sorted(seen)), out)


def _services(settings: Settings) -> "dict[str, int | Path]":
    from espbench import services

    return {one.name: one.pid_file for one in services.select(settings, list(services.KINDS))}
