"""The command line: one file per command, errors caught in this one place.

Command modules import nothing heavy at the top, so that every command starts at once and works
without the extras it does not need.
"""

import errno
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Annotated, NoReturn

import typer

from espbench import __version__
from espbench.cli import context, outputs
from espbench.cli.background import background
from espbench.cli.capture import capture
from espbench.cli.clocks import clocks
from espbench.cli.compare import compare
from espbench.cli.config import config
from espbench.cli.databases import databases
from espbench.cli.datagen import datagen
from espbench.cli.doctor import doctor
from espbench.cli.down import down
from espbench.cli.list import list_runs
from espbench.cli.load import load
from espbench.cli.monitor import monitor
from espbench.cli.query import query
from espbench.cli.report import report
from espbench.cli.run import run
from espbench.cli.send import send
from espbench.cli.show import show
from espbench.cli.status import status
from espbench.cli.topics import topics
from espbench.cli.up import up
from espbench.cli.validate import validate
from espbench.cli.watch import watch
from espbench.errors import EspbenchError, ExitCode, Interrupted
from espbench.parent import die_with_run
from espbench.step_log import say_outside, write_to_log

# Not our bugs: what the machine refuses.
_MACHINE_PROBLEMS = {
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
    errno.EROFS,
    errno.EACCES,
    errno.EPERM,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.EMFILE,
    errno.ENOMEM,
}

app = typer.Typer(
    name="espbench",
    help="The enterprise stream processing benchmark: can this streaming system, joined with our "
    "database, keep up, and are its answers right? Example: espbench run --queries q3",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def everywhere(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version (works after any command too).")
    ] = False,
) -> None:
    """Options of the tool itself; `main` answers --version wherever it stands."""


for command in (
    run,
    doctor,
    up,
    down,
    status,
    datagen,
    load,
    send,
    query,
    capture,
    clocks,
    config,
    validate,
    report,
    compare,
    monitor,
    show,
    watch,
    databases,
):
    app.command()(command)
app.command("list")(list_runs)
app.add_typer(topics)
app.add_typer(background)


def main() -> NoReturn:
    """Run one command and leave with the documented exit code."""
    outputs.prepare()
    write_to_log()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _terminate)
    die_with_run()
    # Shells start background jobs deaf to it; our children and services must be ended all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if "--version" in sys.argv[1:]:
        _end(_version)
    _end(_run)


def _version() -> None:
    """What --version says."""
    sys.stdout.write(f"espbench {__version__}\n")


def _run() -> int:
    code = app(standalone_mode=False)
    if code == ExitCode.INTERRUPTED:  # the library turns Ctrl-C into this answer
        raise KeyboardInterrupt
    return code if isinstance(code, int) else 0


def _end(work: Callable[[], int | None]) -> NoReturn:
    """Do it, write out all that it said, and leave with its exit code."""
    verbose = "--verbose" in sys.argv[1:]
    code: str | int | None = None
    try:
        try:
            code = work()
        except SystemExit as error:
            code = error.code
        outputs.finish()
    except BaseException as error:  # noqa: BLE001 - the last place that can speak
        with suppress(OSError):
            outputs.finish()
        _leave(error, verbose=verbose)
    sys.exit(code)


def _leave(error: BaseException, *, verbose: bool) -> NoReturn:
    """Say what stopped the command, in one line, and leave with its exit code."""
    text, code = _cause(error)
    text = " ".join(text.split())
    if text:
        _say(text, verbose=verbose or code == ExitCode.BUG)
    if text and "--json" in sys.argv[1:] and outputs.is_silent():
        # Who asked for a document reads one, even of a command that came to none.
        with suppress(OSError):
            context.print_json({"error": text, "exit_code": code})
            outputs.finish()
    sys.exit(code)


def _cause(error: BaseException) -> tuple[str, int]:
    """What to say of an error, and the exit code that it is worth."""
    if isinstance(error, EspbenchError | Interrupted):
        return error.line(), int(error.exit_code)
    if isinstance(error, KeyboardInterrupt | typer.Abort):
        return "interrupted", int(ExitCode.INTERRUPTED)
    if isinstance(error, typer.TyperException):
        # Empty where no command was named and the help was shown.
        said = error.format_message().rstrip(".")
        return f"{said}; see {_command()} --help" if said else "", error.exit_code
    if isinstance(error, OSError) and error.errno in _MACHINE_PROBLEMS:
        place = f"{error.filename}: " if error.filename else ""
        remedy = "check path, disk space and permissions"
        return f"{place}{error.strerror}; {remedy}", int(ExitCode.SERVICE)
    said = f"{type(error).__name__}: {error}"
    return f"a bug of ours: {said}; please report it with what follows", int(ExitCode.BUG)


def _terminate(number: int, _frame: FrameType | None) -> NoReturn:
    raise Interrupted(f"stopped by {signal.Signals(number).name}")


def _command() -> str:
    """The command that was asked for, as far as there is one: `espbench topics delete`."""
    words, group = ["espbench"], app
    for word in sys.argv[1:]:
        commands = {
            command.name or command.callback.__name__
            for command in group.registered_commands
            if command.callback
        }
        groups = {each.typer_instance for each in group.registered_groups if each.typer_instance}
        inner = next((each for each in groups if each.info.name == word), None)
        if inner is None and word not in commands:
            break
        words.append(word)
        if inner is None:
            break
        group = inner
    return " ".join(words)


def _say(text: str, *, verbose: bool = False) -> None:
    sys.stderr.write(f"espbench: {text}\n")
    say_outside(f"espbench: {text}\n")
    if verbose:
        traceback.print_exc()
