"""The door to the Kafka client library: a missing extra and the library's own log, in one place."""

import logging
from types import ModuleType
from typing import Any

from espbench.errors import MissingExtra, ServiceError

# librdkafka repeats "connection refused" many times a second; our own errors say it once.
_LOGGER = logging.getLogger("espbench.kafka")


def library() -> ModuleType:
    """The `confluent_kafka` package; raises `MissingExtra` where it is not installed."""
    try:
        import confluent_kafka  # noqa: PLC0415 - an extra: needed only by those who talk to Kafka
        import confluent_kafka.admin  # noqa: PLC0415 - likewise
    except ImportError as error:
        raise MissingExtra("confluent-kafka", "kafka") from error
    return confluent_kafka


def logger() -> logging.Logger:
    """Where the library's own log lines go: shown with --verbose only."""
    if not any(isinstance(each, _DebugOnly) for each in _LOGGER.filters):
        _LOGGER.addFilter(_DebugOnly())
    return _LOGGER


class _DebugOnly(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002 - the level decides alone
        return logging.getLogger("espbench").isEnabledFor(logging.DEBUG)


def reason(error: Any) -> str:
    """What a `KafkaException` or `KafkaError` says, on one line, with the error's name."""
    inner = error.args[0] if isinstance(error, Exception) and error.args else error
    name = inner.name() if hasattr(inner, "name") else type(error).__name__
    text = inner.str() if hasattr(inner, "str") else str(error)
    return f"{' '.join(str(text).split())} ({name})"


def unreachable(bootstrap_servers: str, why: str) -> ServiceError:
    """The error for a broker that does not answer."""
    return ServiceError(
        f"Kafka at {bootstrap_servers} does not answer: {why}",
        "check that it runs (`espbench status`), the address (--bootstrap-servers) and, where it "
        "asks who you are, kafka.options",
    )
