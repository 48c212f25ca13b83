"""`espbench clocks`: how far the clocks of other hosts are from this one's."""

import json as jsonlib
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from espbench.cli import context, options
from espbench.errors import UsageError
from espbench.logs import LOGGER
from espbench.paths import make_dir, write_atomically

if TYPE_CHECKING:
    from espbench.runs.clocks import Answer


def clocks(
    host: Annotated[
        list[str],
        typer.Option(
            "--host",
            metavar="NAME=COMMAND",
            help="A host and the command that starts a program there, without the program: "
            "'sender=ssh me@10.0.0.3 python3'. Several allowed.",
        ),
    ],
    broker: Annotated[
        list[str] | None,
        typer.Option(
            "--broker",
            metavar="NAME",
            help="A host that is a broker; several, in the order of their node ids, are also "
            "compared with the first.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the JSON here too, for `capture --clocks`.")
    ] = None,
    config: options.ConfigFile = None,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare the clocks of other hosts with this one's, to a fraction of a millisecond.

    Latency by the broker's time stamps needs no common clock; the sender's lateness and the
    database's stamps do. Example: espbench clocks --host 'db=ssh me@10.0.0.2 python3'
    """
    from espbench.runs.clocks import PROGRAM, Answer, against_first, ask

    context.begin(config, quiet=quiet, verbose=verbose)
    found: dict[str, Answer] = {}
    for each in host:
        name, equals, command = each.partition("=")
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise UsageError(f"--host {each}: {error}", "write it as NAME=COMMAND") from error
        if not equals or not name or not words:
            raise UsageError(f"--host {each} names no command", "write it as NAME=COMMAND")
        # ssh joins its words by spaces and hands them to a shell.
        program = shlex.quote(PROGRAM) if words[0].endswith("ssh") else PROGRAM
        found[name] = ask([*words, "-c", program])
        LOGGER.info("%s: %s", name, _line(found[name]))
    if lost := sorted(set(broker or []) - set(found)):
        raise UsageError(f"--broker {lost[0]} is none of the hosts", "name it by --host as well")
    document = {
        "hosts": {name: asdict(answer) for name, answer in found.items()},
        "brokers": against_first(found, broker) if broker else [],
    }
    if out:
        make_dir(out.parent)
        write_atomically(out, jsonlib.dumps(document, indent=2) + "\n")
    if json:
        context.print_json(document)


def _line(answer: "Answer") -> str:
    said = f"{answer.offset_ms:+.3f} ms (± {answer.uncertainty_ms:.3f})"
    if (chrony := answer.chrony) is None:
        return f"{said}; no chrony there"
    if not chrony["synchronised"]:
        return f"{said}; chrony has no source there"
    return f"{said}; chrony: within {chrony['error_ms']:.3f} ms of {chrony['reference']}"
