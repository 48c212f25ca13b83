"""Make the local environment `.venv` from the locked requirements; standard library only.

Run by make. Builds into the final place and marks it `ready` last, so that an interrupted set-up
is done again and a finished one is not.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
LOCK = ROOT / "requirements.lock"
OLDEST = (3, 11)
# Spark comes as a source archive; what builds it is installed first, locked like the rest.
BUILD_TOOLS = ("setuptools",)


def main() -> None:
    """Set up the environment, or write the lock file anew."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--lock", action="store_true", help="write requirements.lock anew")
    if options.parse_args().lock:
        write_lock()
        return
    if sys.version_info < OLDEST:
        stop(
            f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed, this is "
            f"{sys.version.split()[0]}; say which: make PYTHON=/path/to/python3.11"
        )
    say("setting up the environment in .venv (once; about 1.5 GB, some minutes)")
    make_venv()
    with tempfile.TemporaryDirectory() as name:
        first = Path(name) / "build-tools.txt"
        first.write_text(locked_lines(BUILD_TOOLS), encoding="utf-8")
        pip("install", "--require-hashes", "--only-binary=:all:", "-r", str(first))
    pip("install", "--require-hashes", "--no-build-isolation", "-r", str(LOCK))
    pip("install", "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    (VENV / "ready").write_text(f"{ROOT}\n", encoding="utf-8")
    say("the environment is ready")


def make_venv() -> None:
    """A virtual environment with pip; an unusable one is replaced."""
    python = VENV / "bin" / "python"
    usable = python.exists() and run([str(python), "-m", "pip", "--version"]).returncode == 0
    if usable and (VENV / "place").exists() and (VENV / "place").read_text("utf-8") == str(ROOT):
        return
    shutil.rmtree(VENV, ignore_errors=True)
    answer = run([sys.executable, "-m", "venv", str(VENV)])
    if answer.returncode != 0:
        shutil.rmtree(VENV, ignore_errors=True)
        reason = (answer.stdout + answer.stderr).strip().splitlines()
        stop(
            f"cannot make .venv with {sys.executable}: {reason[0] if reason else 'no reason given'}"
            "; on Debian and Ubuntu install python3-venv, or say: make PYTHON=/path/to/python3"
        )
    # Scripts in it name this place; a moved environment must be made anew.
    (VENV / "place").write_text(str(ROOT), encoding="utf-8")


def locked_lines(names: tuple[str, ...]) -> str:
    """The entries of the lock file for these packages, with their hashes."""
    text = LOCK.read_text(encoding="utf-8")
    entries = re.findall(r"^[A-Za-z0-9](?:[^\n]*\\\n)*[^\n]*", text, flags=re.MULTILINE)
    return "\n".join(entry for entry in entries if entry.split("==")[0] in names) + "\n"


def pip(*arguments: str) -> None:
    """Run the environment's pip; its own words on failure."""
    command = [str(VENV / "bin" / "python"), "-m", "pip", "--quiet", *arguments]
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode != 0:
        stop("pip could not install the locked packages (see above); check network and disk")


def write_lock() -> None:
    """Resolve for every supported Python and platform; hashes, no addresses."""
    with tempfile.TemporaryDirectory() as name:
        run([sys.executable, "-m", "venv", name], check=True)
        run([f"{name}/bin/python", "-m", "pip", "install", "--quiet", "uv"], check=True)
        command = [f"{name}/bin/uv", "pip", "compile", "--quiet", "--universal", "--upgrade"]
        command += ["--generate-hashes", "--no-header", "--no-annotate", "--no-emit-index-url"]
        command += ["--python-version", ".".join(map(str, OLDEST)), "--all-extras"]
        command += ["--group", "dev", "pyproject.toml", "-o", str(LOCK)]
        run(command, check=True)
    say(f"wrote {LOCK.name}")


def run(command: list[str], *, check: bool = False) -> "subprocess.CompletedProcess[str]":
    """Run a program quietly."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=check)


def say(text: str) -> None:
    """One line for the person who waits."""
    sys.stderr.write(f"espbench: {text}\n")


def stop(text: str) -> None:
    """One line, and the exit code for a missing environment."""
    say(text)
    sys.exit(3)


if __name__ == "__main__":
    main()
