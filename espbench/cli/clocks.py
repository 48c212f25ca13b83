"""`espbench clocks`: how far the clocks of other hosts are from this one's."""

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from espbench.cli import context, options
from espbench.errors import UsageError
from espbench.logs import LOGGER


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
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Compare the clocks of other hosts with this one's, to a fraction of a millisecond.

    Latency by the broker's time stamps needs no common clock; the sender's lateness and the
    database's stamps do. Example: espbench clocks --host 'db=ssh me@10.0.0.2 python3'
    """
    from espbench.runs.clocks import PROGRAM, ask

    context.begin(quiet=quiet, verbose=verbose)
    found = {}
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
        found[name] = asdict(ask([*words, "-c", program]))
        LOGGER.info("%s: %+.3f ms (± %.3f)", name, *found[name].values())
    if json:
        context.print_json({"hosts": found})
