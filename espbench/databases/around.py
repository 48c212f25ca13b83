"""What stands beside the figures: versions of the client's side, and how busy the machine was."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version

from espbench import __version__

_PACKAGES = ("sqlalchemy", "psycopg", "pymysql", "numpy", "pyarrow")


def versions() -> dict[str, str]:
    """Versions of espbench, Python and the drivers."""
    found = {"espbench": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def load_average() -> float:
    """Of the last minute: how many processes wanted to run."""
    return round(os.getloadavg()[0], 2)
