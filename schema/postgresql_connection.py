"""What can be wrong with a connection to PostgreSQL, and what to do about it."""

import psycopg
from psycopg import errors
from psycopg.conninfo import make_conninfo

from espbench.errors import ConfigError

_PASSWORD = "check ESPBENCH_DATABASE__PASSWORD or database.password_file"  # noqa: S105 - no secret
# Failures to connect have no number, only the words of libpq or of the server; the first that fits.
_WORDS = {
    "password": _PASSWORD,
    "certificate": "check sslmode and sslrootcert of the URL",
    "SSL": "check sslmode of the URL, and whether the server has TLS",
    "does not exist": "check user and database of the URL",
}


def remedy_of(error: BaseException) -> str | None:
    """What a user of `espbench load` can do, where more is known than "see its log"."""
    match error:
        case errors.DependentObjectsStillExist():
            return "drop what depends on the tables yourself"
        case errors.InsufficientPrivilege():
            return "the user needs the right to do this"
        case errors.InvalidPassword():
            return _PASSWORD
        case errors.DiskFull():
            return "make room on the server's disk"
        case psycopg.OperationalError(sqlstate=None):
            message = str(error)
            return next((remedy for words, remedy in _WORDS.items() if words in message), None)
    return None


def refuse_unknown(options: dict[str, str]) -> None:
    """Raises `ConfigError` for options of a URL that libpq does not know."""
    try:
        make_conninfo("", **options)
    except psycopg.ProgrammingError as error:
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"database.url has an unknown option: {reason}",
            "use those of libpq, as in ?sslmode=verify-full&sslrootcert=ca.pem",
        ) from error
