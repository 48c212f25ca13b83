"""The comparison: every profile in turn, the same work, one document."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from datagen.generate import generate
from datagen.locate import data_directory, parameters_of
from espbench.config import Settings, without_password
from espbench.databases.around import load_average, versions
from espbench.databases.measure import Measurement
from espbench.databases.page import page
from espbench.databases.profiles import BUILT_IN, Profile
from espbench.databases.servers import served, sweep
from espbench.databases.work import Work
from espbench.datasets import data_set_in
from espbench.errors import EspbenchError, ExitCode, Interrupted, MachineError, ServiceError, worst
from espbench.logs import LOGGER
from espbench.names import parse_queries
from espbench.paths import StateDir, locked, make_dir, write_atomically
from espbench.runs.machine import machine
from espbench.runs.run import run_benchmark
from espbench.timestamps import new_run_id

FORMAT = "espbench-databases/1"
QUERIES = "q4,q5"


class Comparison:
    """A comparison in progress, kept in `root` after every step."""

    def __init__(self, settings: Settings, profiles: tuple[Profile, ...], work: Work) -> None:
        self._settings = settings
        self._profiles = profiles
        self._work = work
        self.id = new_run_id()
        self.root = settings.results_dir.expanduser().resolve() / f"databases-{self.id}"
        self.document: dict[str, Any] = {
            "format": FORMAT,
            "id": self.id,
            "state": "running",
            "started": _now(),
            "ended": None,
            "scale": settings.data.scale,
            "seed": settings.data.seed,
            "work": work.document(),
            "machine": machine(),
            "versions": versions(),
            "load_average": {"before": load_average(), "after": None},
            "profiles": [],
        }

    def run(self) -> ExitCode:
        """Measure every profile; one that fails is noted and the others go on."""
        state = make_dir(StateDir.of(self._settings).root)
        with locked(state / "databases.lock", f"another comparison is going on in {state}"):
            sweep(self._settings)
            make_dir(self.root)
            self._announce()
            ended = "failed"
            try:
                data = self._generate()
                codes = [self._one(profile, data) for profile in self._profiles]
                ended = "finished"
            except (KeyboardInterrupt, Interrupted):
                ended = "interrupted"
                raise
            finally:
                self._end(ended)
        if any(profile["state"] == "failed" for profile in self.document["profiles"]):
            return ExitCode.SERVICE
        return worst(codes)

    def _announce(self) -> None:
        count = len(self._profiles)
        seconds, size = self._work.estimate(count, self._settings.data.scale)
        LOGGER.info(
            "comparison %s: %d profiles; about %.0f s and %.0f MB while one is at work",
            *(self.id, count, seconds, size / 1e6),
        )

    def _generate(self) -> Path:
        parameters, directory = parameters_of(self._settings), data_directory(self._settings)
        LOGGER.info("data: scale %d, seed %d", parameters.scale, parameters.seed)
        return generate(parameters, directory).directory

    def _one(self, profile: Profile, data: Path) -> ExitCode:
        entry: dict[str, Any] = {
            "name": profile.name,
            "state": "running",
            "profile": _public(profile),
            "error": None,
        }
        self.document["profiles"].append(entry)
        self._save()
        code, entry["state"] = ExitCode.DONE, "interrupted"
        try:
            with served(profile, self._settings, data) as running:
                Measurement(running, data_set_in(data), self._work, entry).all()
                self._save()
                if self._work.queries:
                    code = self._queries(running.settings, entry)
            entry["state"] = "done"
        except (ServiceError, MachineError) as error:
            # A built-in profile whose server this machine cannot have is no failure.
            missing = isinstance(error, MachineError) and profile in BUILT_IN
            entry["state"], entry["error"] = "skipped" if missing else "failed", error.line()
            LOGGER.warning("%s: %s: %s", profile.name, entry["state"], error.line())
        except EspbenchError as error:
            entry["state"], entry["error"] = "failed", error.line()
            raise
        finally:
            self._save()
        return code

    def _queries(self, settings: Settings, entry: dict[str, Any]) -> ExitCode:
        """The full queries 4 and 5, as `espbench run` does them."""
        run_id = new_run_id()
        LOGGER.info("%s: run %s of queries 4 and 5", entry["name"], run_id)
        run, code = run_benchmark(settings, parse_queries(QUERIES), run_id, quiet=True)
        entry["run"] = run_id
        entry["queries"] = [
            {
                name: verdict.get(name)
                for name in (
                    "query",
                    "correctness",
                    "latency_ms_after_warmup",
                    "commit_latency_ms",
                    "load",
                    "sustainability",
                    "slo",
                )
            }
            for verdict in run.document["queries"]
        ]
        return code

    def _end(self, state: str) -> None:
        self.document["state"], self.document["ended"] = state, _now()
        self.document["load_average"]["after"] = load_average()
        self._save()
        write_atomically(self.root / "databases.html", page(self.document))

    def _save(self) -> None:
        text = json.dumps(self.document, indent=2, allow_nan=False)
        write_atomically(self.root / "databases.json", text + "\n")


def _public(profile: Profile) -> dict[str, Any]:
    shown = profile.model_dump(mode="json", exclude_defaults=True)
    if profile.url:
        shown["url"] = without_password(profile.url)
    return shown


def _now() -> str:
    return datetime.now(UTC).isoformat()
