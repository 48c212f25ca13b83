"""What is compared: profiles, each a database and how it is set and used."""

import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from espbench.config import (
    DatabaseSettings,
    Identifier,
    Isolation,
    ServerSettings,
    Settings,
    without_password,
)
from espbench.errors import ConfigError

ProfileName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$")]


class Profile(BaseModel):
    """One database: an embedded server with settings of its own, or any by URL.

    `settings` are the embedded server's; `session` those of every session of ours, which also
    reach servers that others run. A password stands in a variable or a file, never here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: ProfileName
    note: str = ""
    server: Literal["postgresql", "mariadb"] | None = None
    url: str | None = None
    password_env: Annotated[str, Field(min_length=1)] | None = None
    password_file: Path | None = None
    schema_name: Identifier = "espbench"
    settings: ServerSettings = {}
    session: ServerSettings = {}
    isolation: Isolation | None = None
    writes: Literal["bulk", "single"] = "bulk"

    @field_validator("url")
    @classmethod
    def _no_password(cls, url: str | None) -> str | None:
        if url != without_password(url):
            raise ValueError("name a variable (password_env) or a file (password_file) instead")
        return url

    @model_validator(mode="after")
    def _one_server(self) -> Self:
        if (self.server is None) == (self.url is None):
            raise ValueError("give either server (an embedded one) or url")
        if self.url is None and (self.password_env or self.password_file):
            raise ValueError("an embedded server makes its own password")
        if self.url is not None and self.settings:
            raise ValueError(
                "settings are for embedded servers; use session, or set them at the server"
            )
        return self

    def database(self) -> DatabaseSettings:
        """The configuration of this database, with its password."""
        password = None
        if self.password_env is not None:
            if self.password_env not in os.environ:
                raise ConfigError(
                    f"the variable {self.password_env} of the profile {self.name} is not set",
                    "put the database's password into it",
                )
            password = SecretStr(os.environ[self.password_env])
        own: dict[str, Any] = {
            "url": self.url or self.server,
            "password": password,
            "password_file": self.password_file,
            "server_settings": self.settings,
            "session_settings": self.session,
            "isolation": self.isolation,
            "writes": self.writes,
        }
        if self.schema_name != "espbench":
            own["schema_name"] = self.schema_name
        return DatabaseSettings(**own)

    def within(self, settings: Settings, state_dir: Path, data: Path) -> Settings:
        """The configuration for this profile: its database, a state directory of its own."""
        return settings.model_copy(
            update={
                "state_dir": state_dir,
                "database": self.database(),
                "data": settings.data.model_copy(update={"directory": data}),
            }
        )


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    profiles: Annotated[tuple[Profile, ...], Field(min_length=1, max_length=20)]


BUILT_IN = (
    Profile(name="postgresql", server="postgresql", note="as espbench starts it: durable"),
    Profile(
        name="postgresql-async",
        server="postgresql",
        settings={"synchronous_commit": "off"},
        note="a commit does not wait for the disk; a crash may lose the last ones",
    ),
    Profile(name="mariadb", server="mariadb", note="as espbench starts it: durable"),
)


def read_profiles(file: Path | None) -> tuple[Profile, ...]:
    """The profiles of a YAML file, else the built-in ones; raises `ConfigError`."""
    if file is None:
        return BUILT_IN
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"cannot read the profiles {file}: {error.strerror}", "check the path"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} is not YAML: {' '.join(str(error).split())}", "correct the file"
        ) from error
    try:
        profiles = _File.model_validate(content).profiles
    except ValidationError as error:
        raise ConfigError(*_explain(error, file)) from error
    names = [profile.name for profile in profiles]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"two profiles of {file} are called {name}", "give each its own name")
    return profiles


def _explain(error: ValidationError, file: Path) -> tuple[str, str]:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]")
    if first["type"] == "extra_forbidden":
        known = ", ".join(Profile.model_fields)
        return f"unknown key {key} in {file}", f"a profile has: {known}"
    if first["type"] == "missing":
        return f"{key} is missing in {file}", "add it"
    reason = first["msg"].removeprefix("Value error, ")
    return f"{key or 'the file'} is not allowed in {file}", reason[:1].lower() + reason[1:]
