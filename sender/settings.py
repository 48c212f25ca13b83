"""What the producer is told, in Kafka's own words, whichever client library carries it out."""

from dataclasses import asdict, dataclass
from typing import Any

from espbench.errors import UsageError

ACKS = ("0", "1", "all")
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
# What both clients take.
RANGES = {
    "linger_ms": (0, 900_000),
    "batch_bytes": (1, 100_000_000),
    "tick_ms": (0.001, 60_000),
    "delivery_timeout_s": (0.1, 86_400),
    "queue_records": (1, 10_000_000),
}


# Named settings. 2021: as the published configuration of that study's data sender has them
# (acks 1, 16 KiB batches, 32 MiB of buffer, no lingering, no idempotence).
PRESETS: dict[str, dict[str, Any]] = {
    "default": {},
    "2021": {
        "acks": "1",
        "idempotence": False,
        "linger_ms": 0.0,
        "batch_bytes": 16_384,
        "compression": "none",
        "queue_bytes": 32 * 1024 * 1024,
    },
}


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """Settings of one sender. The defaults are durable and on time.

    Records are handed over in ticks, `tick_ms` apart at most as often as something is due, so a
    tick is a batch already and lingering only adds lateness. `delivery_timeout_s` bounds how long
    a record may wait for its acknowledgement before it has failed, and with it the run.
    """

    client: str = "confluent-kafka"
    acks: str = "all"
    idempotence: bool = True
    linger_ms: float = 0.0
    batch_bytes: int = 1_000_000
    compression: str = "none"
    tick_ms: float = 1.0
    delivery_timeout_s: float = 30.0
    queue_records: int = 500_000
    queue_bytes: int = 512 * 1024 * 1024

    def __post_init__(self) -> None:
        """Refuse what Kafka would refuse, in words of ours."""
        if self.idempotence and self.acks != "all":
            raise UsageError(
                f"idempotence needs acks=all, not {self.acks}",
                "add --no-idempotence or drop --acks",
            )
        if self.acks not in ACKS:
            raise UsageError(f"there is no --acks {self.acks}", "use 0, 1 or all")
        if self.compression not in COMPRESSIONS:
            raise UsageError(
                f"there is no compression {self.compression!r}", f"use {', '.join(COMPRESSIONS)}"
            )
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            # Also refuses what is not a number at all: it compares with nothing.
            if not least <= value <= most:
                raise UsageError(
                    f"{name} = {value:g} is not allowed", f"use a number from {least:g} to {most:g}"
                )
        if self.linger_ms >= 1_000 * self.delivery_timeout_s:
            raise UsageError(
                f"linger_ms = {self.linger_ms:g} is not allowed",
                f"wait for less than the delivery timeout, {self.delivery_timeout_s:g} s",
            )

    @classmethod
    def of(cls, preset: str, **given: Any) -> "ProducerSettings":
        """The settings of a preset, changed by what is given; None means not given.

        Asking for fewer acknowledgements gives up idempotence with them, unless it is asked for.
        """
        if preset not in PRESETS:
            raise UsageError(f"there is no preset {preset!r}", f"use {' or '.join(PRESETS)}")
        chosen = {key: value for key, value in given.items() if value is not None}
        if chosen.get("acks", "all") != "all":
            chosen.setdefault("idempotence", False)
        return cls(**{**PRESETS[preset], **chosen})

    def public(self) -> dict[str, Any]:
        """The settings for the report."""
        return asdict(self)
