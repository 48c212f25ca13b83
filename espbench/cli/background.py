"""`espbench background start|stop`: a command that goes on while others work."""

from pathlib import Path
from typing import Annotated

import typer

from espbench.cli import context, options
from espbench.logs import LOGGER

background = typer.Typer(
    name="background",
    help="Start an espbench command in the background, and end it. "
    "Example: espbench background start --pid-file up.pid --log up.log -- up kafka",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

PidFile = Annotated[
    Path, typer.Option("--pid-file", help="Names the process; `<file>.end` says how it ended.")
]
Log = Annotated[Path, typer.Option("--log", help="Where its output goes, appended.")]


@background.command(context_settings={"ignore_unknown_options": True})
def start(
    command: Annotated[
        list[str], typer.Argument(help="The command without `espbench`, after two dashes.")
    ],
    pid_file: PidFile,
    log: Log,
    until_file: Annotated[
        Path | None,
        typer.Option(
            "--until-file",
            help="Return once the command has made this file; an old one is removed first.",
        ),
    ] = None,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout", min=0, callback=options.finite, help="Seconds to wait for that file."
        ),
    ] = 180.0,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Start a command in a session of its own and return, at once or when it is ready.

    Where it ends before it is ready, its own message and exit code are those of this command;
    where the time is over first, it is stopped (exit code 3).

    Example: espbench background start --pid-file q3.pid --log q3.log --until-file ready.json --
    query q3 --run trial-q3 --ready-file ready.json --until sent.json
    """
    from espbench.background import Background

    context.begin(quiet=quiet, verbose=verbose)
    each = Background(pid_file.resolve(), log.resolve())
    if until_file:
        until_file.unlink(missing_ok=True)
    each.start(command)
    if until_file:
        try:
            each.wait_for_file(until_file, timeout)
        except BaseException:
            each.stop()
            raise


@background.command()
def stop(
    pid_file: PidFile,
    log: Log,
    patience: Annotated[
        float,
        typer.Option(
            "--patience",
            min=0,
            callback=options.finite,
            help="Seconds to wait for its own end before that.",
        ),
    ] = 0.0,
    json: options.Json = False,
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """End a background command with all that it started; nothing where it never began.

    With --patience it may come to its end by itself first; where it then ends badly, its own
    message and exit code are those of this command.

    Example: espbench background stop --pid-file q3.pid --log q3.log --patience 120
    """
    from espbench.background import Background

    context.begin(quiet=quiet, verbose=verbose)
    each = Background(pid_file.resolve(), log.resolve())
    ended = True
    if patience:
        ended = each.wait_for_end(patience)
        if not ended:
            LOGGER.warning("it had not ended after %g s; stopping it", patience)
    stopped = each.stop()
    if json:
        context.print_json({"ended": ended, "stopped": stopped})
