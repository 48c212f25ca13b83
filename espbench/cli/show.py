"""`espbench show`: one run, whole."""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from espbench import logs
from espbench.cli import context, options
from espbench.cli.list import Results
from espbench.errors import UsageError

if TYPE_CHECKING:
    from espbench.runs.store import RunDir


def show(
    run: Annotated[
        str, typer.Argument(help="A run: its id, the beginning of one, last, or its directory.")
    ] = "last",
    out: Results = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Show one run: its table, what was amiss, machine, versions, steps, files.

    Example: espbench show last
    """
    from espbench.runs.listing import files
    from espbench.runs.store import find_run

    settings = context.begin(config, quiet=quiet, verbose=verbose, options={"results_dir": out})
    found = find_run(settings.results_dir, run)
    own = files(found.root)
    size = sum(file["bytes"] for file in own)
    if json:
        context.print_json(
            found.document | {"directory": str(found.root), "files": own, "bytes": size}
        )
        return
    try:
        _print(found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(
            f"{found.root / 'run.json'} lacks or garbles {error}", "see what is there with --json"
        ) from error
    _print_files(own, size)


def _print(found: "RunDir") -> None:
    from espbench.runs.table import print_results, reasons

    document = found.document
    _say(f"run {document['run_id']}: {document.get('state', '?')}", f"in {found.root}")
    _say("started", document.get("started"), "ended", document.get("ended") or "-")
    if document.get("error"):
        _say("error:", document["error"])
    verdicts = document.get("queries", [])
    if verdicts:
        print_results(logs.stdout, verdicts)
        for line in reasons(verdicts):
            _say(line)
    _print_steps(document.get("steps", []))
    _print_pairs("machine", document.get("machine", {}))
    _print_pairs("versions", document.get("versions", {}))


def _print_steps(steps: list[dict[str, Any]]) -> None:
    if steps:
        _say("\nsteps")
    for step in steps:
        _say(f"  {step['seconds']:9.1f} s  {step['step']:<14} {step['query'] or ''}".rstrip())


def _print_pairs(title: str, pairs: dict[str, Any]) -> None:
    if pairs:
        _say(f"\n{title}")
    for name, value in pairs.items():
        shown = f"{value / 2**30:.1f} GiB" if name == "memory_bytes" else value
        _say(f"  {name.removesuffix('_bytes'):<18} {shown}")


def _print_files(own: list[dict[str, Any]], size: int) -> None:
    from espbench.runs.listing import size_text

    _say(f"\nfiles ({size_text(size)})")
    for file in own:
        _say(f"  {size_text(file['bytes']):>10}  {file['file']}")


def _say(*words: object) -> None:
    sys.stdout.write(" ".join(str(word) for word in words) + "\n")
