"""The one error tree, and the exit codes.

    EspbenchError              every expected failure: a cause and a remedy, shown as one line
    ├── UsageError        2    wrong option or argument
    ├── ConfigError       2    wrong key or value in the file, the environment or an option
    ├── InputError        2    a file that the user gave cannot be used
    ├── ServiceError      3    a broker, database, Spark or Java failed or cannot be reached
    └── MachineError      3    the machine lacks something: disk, permission, a port, a program
        └── MissingExtra  3    an optional part of the package is not installed

    Interrupted         130    stopped from outside; beside the tree, like KeyboardInterrupt:
                               no `except Exception` on its way may swallow it

Anything else that reaches the command line is a bug of ours (exit code 1).
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the process's exit status means; verdicts combine by `worst`."""

    DONE = 0
    BUG = 1
    USAGE = 2
    SERVICE = 3
    INCORRECT = 4
    UNKNOWN = 5
    GATE_MISSED = 6
    INTERRUPTED = 130


_VERDICTS = (ExitCode.INCORRECT, ExitCode.UNKNOWN, ExitCode.GATE_MISSED)


def worst(codes: list[ExitCode]) -> ExitCode:
    """The code of several verdicts together: 4 beats 5 beats 6 beats 0."""
    return next((code for code in _VERDICTS if code in codes), ExitCode.DONE)


class EspbenchError(Exception):
    """An expected failure. `cause` says what is wrong, `remedy` what to do about it."""

    exit_code = ExitCode.BUG

    def __init__(self, cause: str, remedy: str = "") -> None:
        super().__init__(cause)
        self.cause = cause
        self.remedy = remedy

    def line(self) -> str:
        """Cause and remedy on one line, as the command line shows it."""
        text = f"{self.cause}; {self.remedy}" if self.remedy else self.cause
        return " ".join(text.split())


class UsageError(EspbenchError):
    """A wrong option or argument."""

    exit_code = ExitCode.USAGE


class ConfigError(EspbenchError):
    """A wrong key or value in the configuration."""

    exit_code = ExitCode.USAGE


class InputError(EspbenchError):
    """A file that the user gave cannot be used; the cause names file and line."""

    exit_code = ExitCode.USAGE


class ServiceError(EspbenchError):
    """A service failed or cannot be reached."""

    exit_code = ExitCode.SERVICE


class MachineError(EspbenchError):
    """The machine lacks something that is needed."""

    exit_code = ExitCode.SERVICE


class MissingExtra(MachineError):
    """An optional part of the package is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is not installed", f"install it with: pip install 'espbench[{extra}]'"
        )


class Interrupted(BaseException):
    """Stopped from outside; what was done so far is kept and marked."""

    exit_code = ExitCode.INTERRUPTED

    def line(self) -> str:
        """What was stopped, on one line."""
        return " ".join(str(self).split())
