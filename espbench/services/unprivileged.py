"""Servers that refuse to run as root are run as `nobody`, wherever the checkout lies.

As root, PostgreSQL must give up its rights; but then it may be unable to enter the directory that
holds its own program and data (a home that others cannot enter). In that case it keeps exactly
one right: to pass directories.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

from espbench.errors import MachineError

USER = "nobody"
# (name for setpriv, bit in the bounding set), the lesser right first.
_PASS_DIRECTORIES = (("dac_read_search", 2), ("dac_override", 1))


def is_root() -> bool:
    """Whether this process has root's id."""
    return os.geteuid() == 0


def owner() -> tuple[int, int]:
    """User and group id for files that the unprivileged server must own."""
    try:
        entry = pwd.getpwnam(USER)
    except KeyError as error:
        raise MachineError(
            f"there is no user {USER!r} to run PostgreSQL as, and it refuses to run as root",
            "run as a normal user",
        ) from error
    return entry.pw_uid, entry.pw_gid


def prefix(program: Path, directory: Path) -> list[str]:
    """What to put before a command so that it runs without root's rights; empty for others.

    `program` must be executable and `directory` enterable after the change of user.
    """
    if not is_root():
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise MachineError(
            "the program setpriv (util-linux) is missing, which PostgreSQL needs under root",
            "install util-linux, or run as a normal user",
        )
    uid, gid = owner()
    plain = [setpriv, "--reuid", str(uid), "--regid", str(gid), "--clear-groups"]
    if _works(plain, program, directory):
        return plain
    for name, bit in _PASS_DIRECTORIES:
        if _may_grant(bit):
            # Programs ask access(2) whether they may; without this bit it would not count rights
            # that are granted beside the user's own.
            granted = [*plain, "--securebits", "+no_setuid_fixup"]
            granted += ["--inh-caps", f"+{name}", "--ambient-caps", f"+{name}"]
            if _works(granted, program, directory):
                return granted
    raise MachineError(
        f"{USER} cannot enter {program.parent} and {directory}, and PostgreSQL refuses root",
        "run as a normal user, or from a directory that others can enter (chmod o+x)",
    )


def _works(command: list[str], program: Path, directory: Path) -> bool:
    return all(
        subprocess.run(
            [*command, "test", "-x", str(path)], capture_output=True, check=False, cwd="/"
        ).returncode
        == 0
        for path in (program, directory)
    )


def _may_grant(bit: int) -> bool:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("CapBnd:"):
            return bool(int(line.split()[1], 16) >> bit & 1)
    return False
