"""`espbench compare`: runs side by side, and gates for those who decide by them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from espbench import logs
from espbench.cli import context, options


def compare(
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            help="The base, then what stands beside it: ids, beginnings of ids, `last`, paths, "
            "names of baselines, a matrix's id (all its runs); several runs of one side with "
            "commas."
        ),
    ] = None,
    base: Annotated[
        str | None, typer.Option("--base", help="The base: runs with commas, or a baseline.")
    ] = None,
    new: Annotated[
        str | None, typer.Option("--new", help="The other side: runs with commas, or a baseline.")
    ] = None,
    fail: Annotated[
        list[str] | None,
        typer.Option(
            "--fail",
            help="A gate, exit code 6 where it is missed: p90:+10%, p99:+50ms, p90:500ms, "
            "rate:-1%, correctness, load, sustainability, slo. May be given several times.",
        ),
    ] = None,
    save_baseline: Annotated[
        str | None,
        typer.Option("--save-baseline", help="Give the named runs this name, and compare nothing."),
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", help="Write the comparison as Markdown, too.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write it as a page of one file, too.")
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare runs: differences, confidence where there are repetitions, gates.

    The first run is the base. Runs of equal conditions are repetitions of one another; from five
    a side on a rank test says whether a difference is real. Runs of another machine, rate or data
    are shown as not comparable. Example: espbench compare release last --fail p90:+10%
    """
    from espbench.compare.baselines import save_baseline as save
    from espbench.compare.choose import choose_sides, find_runs
    from espbench.compare.comparison import compare as compare_sides
    from espbench.compare.comparison import exit_code
    from espbench.compare.gates import parse_gate
    from espbench.compare.page import comparison_page
    from espbench.compare.show import comparison_markdown, print_comparison
    from espbench.reports.write import write

    settings = context.begin(config, quiet=quiet, verbose=verbose)
    named = runs or []
    if save_baseline is not None:
        chosen = find_runs(settings.results_dir, ",".join(named or ["last"]))
        path = save(settings.results_dir, save_baseline, chosen)
        saved = [run.root.name for run in chosen]
        if json:
            context.print_json({"baseline": save_baseline, "runs": saved})
        elif not quiet:
            sys.stdout.write(f"{save_baseline} is {', '.join(saved)} ({path})\n")
        return
    gates = [parse_gate(text) for text in fail or []]
    first, others = choose_sides(settings.results_dir, named, base, new)
    found = compare_sides(first, others, gates)
    code = exit_code(found)
    if markdown is not None:
        write(markdown, comparison_markdown(found))
    if html is not None:
        write(html, comparison_page(found, first, others))
    if json:
        context.print_json(found | {"exit_code": int(code)})
    elif not quiet or code:
        print_comparison(logs.stdout, found)
    context.finish(code)
