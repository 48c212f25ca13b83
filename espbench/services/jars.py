"""Jars: pinned in `jars.toml`, fetched once by the Ivy that pyspark brings, checked by SHA-256."""

import hashlib
import subprocess
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib import resources
from importlib.util import find_spec
from pathlib import Path

from espbench.config import Settings
from espbench.errors import MachineError, MissingExtra
from espbench.logs import LOGGER
from espbench.paths import StateDir, locked, make_dir
from espbench.services.java import find_java
from espbench.services.trust import proxy_options, trust_options

GROUPS = ("kafka", "spark")


@dataclass(frozen=True, slots=True)
class Jar:
    """One pinned jar."""

    organisation: str
    name: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Its name in the cache."""
        return f"{self.name}-{self.version}.jar"


def pinned(group: str) -> tuple[Jar, ...]:
    """The jars of one class path, as pinned."""
    text = resources.files("espbench.services").joinpath("jars.toml").read_text(encoding="utf-8")
    jars = []
    for coordinate, sha256 in tomllib.loads(text)[group].items():
        organisation, name, version = coordinate.split(":")
        jars.append(Jar(organisation, name, version, sha256))
    return tuple(jars)


def class_path(settings: Settings, group: str) -> list[Path]:
    """The checked jars of a class path; fetched where one is missing or damaged."""
    directory = StateDir.of(settings).jars / group
    jars = pinned(group)
    if not _missing(directory, jars):
        return [directory / jar.file_name for jar in jars]
    make_dir(directory.parent)
    with locked(directory.parent / f"{group}.lock"):
        if missing := _missing(directory, jars):
            LOGGER.info("fetching %d jars for %s (once)", len(missing), group)
            _fetch(settings, directory, missing)
            _remove_others(directory, jars)
    return [directory / jar.file_name for jar in jars]


def is_cached(settings: Settings, group: str) -> bool:
    """Whether every jar of the class path is here and undamaged."""
    return not _missing(StateDir.of(settings).jars / group, pinned(group))


def _missing(directory: Path, jars: tuple[Jar, ...]) -> list[Jar]:
    return [jar for jar in jars if sha256(directory / jar.file_name) != jar.sha256]


def sha256(path: Path) -> str | None:
    """The checksum of a file; None where it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def _fetch(settings: Settings, directory: Path, jars: list[Jar]) -> None:
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="fetch-") as name:
        work = Path(name)
        fetch_unchecked(settings, work, jars)
        for jar in jars:
            fetched = work / "jars" / jar.file_name
            actual = sha256(fetched)
            if actual != jar.sha256:
                found = "is missing" if actual is None else f"has the checksum {actual}"
                raise MachineError(
                    f"the fetched jar {jar.file_name} {found}, expected {jar.sha256}",
                    "do not use it; check the network path to the repository and try again",
                )
        make_dir(directory)
        for jar in jars:
            (work / "jars" / jar.file_name).replace(directory / jar.file_name)


def fetch_unchecked(settings: Settings, work: Path, jars: list[Jar]) -> None:
    """Fetch jars into `work`/jars; nobody has looked at their checksums yet."""
    _write_ivy_files(work, jars)
    _run_ivy(settings, work)


def _remove_others(directory: Path, jars: tuple[Jar, ...]) -> None:
    """A jar of an older pin would shadow the new one on the class path."""
    wanted = {jar.file_name for jar in jars}
    for path in directory.glob("*.jar"):
        if path.name not in wanted:
            path.unlink()


def _write_ivy_files(work: Path, jars: list[Jar]) -> None:
    module = ET.Element("ivy-module", version="2.0")
    ET.SubElement(module, "info", organisation="espbench", module="jars")
    configurations = ET.SubElement(module, "configurations")
    ET.SubElement(configurations, "conf", name="default")
    dependencies = ET.SubElement(module, "dependencies", defaultconfmapping="default->default")
    for jar in jars:
        ET.SubElement(
            dependencies,
            "dependency",
            org=jar.organisation,
            name=jar.name,
            rev=jar.version,
            transitive="false",
        )
    ET.ElementTree(module).write(work / "ivy.xml", encoding="utf-8")
    # The list is complete, so poms need not be read: that is what takes Ivy its time.
    settings = ET.Element("ivysettings")
    ET.SubElement(settings, "settings", defaultResolver="central")
    resolvers = ET.SubElement(settings, "resolvers")
    ET.SubElement(resolvers, "ibiblio", name="central", m2compatible="true", usepoms="false")
    ET.ElementTree(settings).write(work / "ivysettings.xml", encoding="utf-8")


def _run_ivy(settings: Settings, work: Path) -> None:
    own_settings = settings.ivy_settings or work / "ivysettings.xml"
    java = find_java(settings)
    command = [
        str(java.executable),
        *(trust_options(work) if java.from_wheel else []),
        *proxy_options(),
        f"-Divy.default.ivy.user.dir={work / 'ivy'}",
        *("-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", str(own_settings), "-ivy", str(work / "ivy.xml")),
        *("-cache", str(work / "cache"), "-confs", "default"),
        *("-retrieve", f"{work}/jars/[artifact]-[revision].[ext]", "-types", "jar"),
    ]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        log = make_dir(StateDir.of(settings).logs) / "ivy.log"
        log.write_text(answer.stdout + answer.stderr, encoding="utf-8")
        raise MachineError(
            f"the jars could not be fetched from Maven Central (log: {log})",
            "check the network; behind a mirror set ESPBENCH_IVY_SETTINGS to an ivysettings.xml",
        )


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("pyspark", "spark")
    found = sorted((Path(spec.submodule_search_locations[0]) / "jars").glob("ivy-*.jar"))
    if not found:
        raise MachineError("pyspark lacks its Ivy jar", "reinstall pyspark")
    return found[-1]
