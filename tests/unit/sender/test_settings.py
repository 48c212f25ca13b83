"""Producer settings that Kafka would refuse are refused in words of ours."""

import math
from typing import Any

import pytest

from espbench.errors import MachineError, UsageError
from sender.clients import make_client
from sender.settings import RANGES, ProducerSettings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"acks": "1"}, "idempotence needs acks=all"),
        ({"acks": "2", "idempotence": False}, "there is no --acks 2"),
        ({"compression": "rar"}, "there is no compression 'rar'"),
        ({"tick_ms": 0}, "tick_ms = 0"),
        ({"linger_ms": -1}, "linger_ms = -1"),
        ({"linger_ms": math.nan}, "linger_ms = nan"),
        ({"linger_ms": 900_001}, "linger_ms = 900001"),
        ({"linger_ms": 5_000, "delivery_timeout_s": 5}, "linger_ms = 5000"),
        ({"batch_bytes": 10**12}, "batch_bytes = 1e\\+12"),
        ({"tick_ms": math.inf}, "tick_ms = inf"),
        ({"delivery_timeout_s": 1e12}, "delivery_timeout_s = 1e\\+12"),
        ({"delivery_timeout_s": 1e-4}, "delivery_timeout_s = 0.0001"),
    ],
)
def test_wrong_settings(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ProducerSettings(**change)


@pytest.mark.parametrize("name", RANGES)
@pytest.mark.parametrize("end", [0, 1])
def test_what_is_allowed_is_what_librdkafka_takes(name: str, end: int) -> None:
    change: dict[str, Any] = {name: RANGES[name][end]}
    if name == "linger_ms":  # which must stay below the timeout
        change["delivery_timeout_s"] = 1_000
    settings = ProducerSettings(**change)
    assert make_client("127.0.0.1:1", settings).failure is None


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the library's import
def test_a_codec_that_kafka_python_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(**_settings: object) -> None:
        raise RuntimeError("Libraries for zstd compression codec not found")

    monkeypatch.setattr("kafka.KafkaProducer", lacking)
    wanted = ProducerSettings(client="kafka-python", compression="zstd")
    with pytest.raises(MachineError, match="cannot compress with zstd"):
        make_client("127.0.0.1:1", wanted)


def test_an_unknown_client() -> None:
    with pytest.raises(UsageError, match="there is no client 'carrier-pigeon'"):
        make_client("127.0.0.1:1", ProducerSettings(client="carrier-pigeon"))


def test_the_settings_of_2021_by_name() -> None:
    settings = ProducerSettings.of("2021", compression=None)
    assert (settings.acks, settings.batch_bytes, settings.linger_ms) == ("1", 16_384, 0.0)
    assert not settings.idempotence
    assert ProducerSettings.of("2021", acks="0").acks == "0"
    assert ProducerSettings.of("default") == ProducerSettings()
    with pytest.raises(UsageError, match="there is no preset '1999'"):
        ProducerSettings.of("1999")


def test_fewer_acknowledgements_give_up_idempotence_unless_it_is_asked_for() -> None:
    assert not ProducerSettings.of("default", acks="1").idempotence
    with pytest.raises(UsageError, match="idempotence needs acks=all"):
        ProducerSettings.of("default", acks="1", idempotence=True)
