"""A server for each profile, with a state directory of its own, gone when the profile is done."""

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from espbench import services
from espbench.config import Settings
from espbench.databases.profiles import Profile
from espbench.logs import LOGGER
from espbench.paths import StateDir, make_dir
from espbench.services.endpoints import database_address, embedded_database
from espbench.services.process import ProcessRecord
from schema.contract import Database
from schema.registry import open_database


@dataclass(frozen=True, slots=True)
class Served:
    """A database that answers; `record` is its server's process where it is an embedded one."""

    settings: Settings
    database: Database
    record: ProcessRecord | None


def home(settings: Settings) -> Path:
    """Where the servers of profiles live."""
    return StateDir.of(settings).root / "databases"


@contextmanager
def served(profile: Profile, settings: Settings, data: Path) -> Iterator[Served]:
    """Start what the profile needs; at the end, however it comes, stop and remove it."""
    state = home(settings) / profile.name
    own = profile.within(settings, state, data)
    with ExitStack() as cleanup:
        cleanup.callback(sweep, settings, profile.name)
        make_dir(state)
        # The jars are large, checked, and the same for everybody.
        jars = make_dir(StateDir.of(settings).jars)
        (state / "jars").symlink_to(jars)
        record = None
        kind = embedded_database(own)
        if kind is not None:
            (service,) = services.select(own, [kind])
            LOGGER.info("%s: starting %s", profile.name, kind)
            service.start()
            record = service.record()
        database = cleanup.enter_context(open_database(database_address(own)))
        yield Served(own, database, record)


def sweep(settings: Settings, name: str | None = None) -> None:
    """Stop and remove the servers of one profile, or of all: what a killed comparison left."""
    root = home(settings)
    for state in [root / name] if name else sorted(root.glob("*")):
        if not state.is_dir():
            continue
        for service in services.present(settings.model_copy(update={"state_dir": state})):
            service.stop()
        shutil.rmtree(state, ignore_errors=True)
