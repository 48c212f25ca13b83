"""Producer settings that Kafka would refuse are refused in words of ours."""

from typing import Any

import pytest

from espbench.errors import UsageError
from sender.clients import make_client
from sender.settings import ProducerSettings


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"acks": "1"}, "idempotence needs acks=all"),
        ({"acks": "2", "idempotence": False}, "there is no --acks 2"),
        ({"compression": "rar"}, "there is no compression 'rar'"),
        ({"tick_ms": 0}, "tick_ms = 0"),
        ({"linger_ms": -1}, "linger_ms = -1"),
    ],
)
def test_wrong_settings(change: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ProducerSettings(**change)


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
