"""What a data set is made of: equal parameters give equal bytes."""

import hashlib
import json
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Raised whenever a change of the generator changes a byte of any file.
GENERATOR = 1

Downtimes = Literal["run", "2021"]


class Parameters(BaseModel):
    """The parameters of a data set, as its manifest holds them.

    `sensor_1` and `sensor_2` are the SHA-256 sums of real sensor files, None for a look-alike.
    `sensor_rows` is the length of a look-alike, `real_rows` the most that is taken of a real file
    (None: all of it).
    `districts`, `customers` (per district) and `items` are TPC-C's cardinalities; smaller ones make
    data sets for tests.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    generator: int = GENERATOR
    scale: Annotated[int, Field(ge=1, le=2_000)] = 3
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 2021
    sensor_rows: Annotated[int, Field(ge=1)] = 600_011
    downtimes: Downtimes = "run"
    locale: str = "en_US"
    sensor_1: str | None = None
    sensor_2: str | None = None
    real_rows: Annotated[int, Field(ge=1)] | None = None
    districts: Annotated[int, Field(ge=1, le=10)] = 10
    customers: Annotated[int, Field(ge=10, le=3_000)] = 3_000
    items: Annotated[int, Field(ge=10, le=100_000)] = 100_000

    def fingerprint(self) -> str:
        """A short name of exactly these parameters."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def directory_name(self) -> str:
        """The data set's directory in the state directory."""
        return f"scale{self.scale}-seed{self.seed}-{self.fingerprint()}"


@dataclass(frozen=True, slots=True)
class District:
    """One block of the business data: a warehouse's district, both counted from 1."""

    warehouse: int
    district: int

    @property
    def base(self) -> int:
        """What a composite id adds to the id within the district."""
        return 10_000 * self.district + 1_000_000 * self.warehouse


def districts(parameters: Parameters) -> list[District]:
    """All districts in the order of composite ids."""
    return [
        District(warehouse, district)
        for warehouse in range(1, parameters.scale + 1)
        for district in range(1, parameters.districts + 1)
    ]


def first_undelivered(parameters: Parameters) -> int:
    """The first order id of a district without carrier and delivery: 2,101 of 3,000."""
    return parameters.customers * 7 // 10 + 1
