"""TLS towards MariaDB: the options of the URL as the driver's arguments."""

import ssl
from typing import Any

from espbench.errors import ConfigError

_TLS_MODES = ("disable", "prefer", "require", "verify-ca", "verify-full")
_TLS_FILES = {"ssl-ca": "ca", "ssl-cert": "cert", "ssl-key": "key"}


def tls_options(options: dict[str, str]) -> tuple[dict[str, str], str]:
    """The URL's options, spelled with hyphens, and the mode that they ask for."""
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return given, given.get("sslmode", "verify-full" if "ssl-ca" in given else "prefer")


def tls_arguments(options: dict[str, str]) -> dict[str, Any]:
    """The driver's arguments for the URL's options; raises `ConfigError` for others.

    `sslmode` means what it means for PostgreSQL. Without it, `ssl-ca` asks for the full check, and
    nothing at all means "prefer": encrypted where the server can, unchecked.
    """
    given, mode = tls_options(options)
    given.pop("sslmode", None)
    files = {_TLS_FILES[name]: given.pop(name) for name in _TLS_FILES if name in given}
    if given or mode not in _TLS_MODES:
        wrong = f"option {min(given)}" if given else f"sslmode {mode!r}"
        raise ConfigError(
            f"database.url has an unknown {wrong}",
            f"there are sslmode ({', '.join(_TLS_MODES)}), {', '.join(_TLS_FILES)}",
        )
    if mode == "disable":
        return {"ssl_disabled": True}
    if mode == "prefer" and not files:
        return {}
    checked = mode in {"verify-ca", "verify-full"}
    _refuse_unusable(files)
    return {"ssl": {**files, "verify_mode": checked, "check_hostname": mode == "verify-full"}}


def _refuse_unusable(files: dict[str, str]) -> None:
    """The driver reads these when it connects, and has no words of its own for what is wrong."""
    try:
        if "ca" in files:
            ssl.create_default_context(cafile=files["ca"])
        if "cert" in files:
            ssl.create_default_context().load_cert_chain(files["cert"], files.get("key"))
    except OSError as error:
        names = ", ".join(
            f"{option} {files[ours]}" for option, ours in _TLS_FILES.items() if ours in files
        )
        reason = error.strerror or str(error)
        raise ConfigError(
            f"database.url names {names}, which cannot be used: {reason}", "check the files"
        ) from error
