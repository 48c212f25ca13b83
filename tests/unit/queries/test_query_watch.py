import threading
import time

from espbench.errors import ServiceError
from queries.bounded import bounded
from queries.watch import BrokerWatch

DEADLINE_S = 30.0


def dead() -> None:
    raise ServiceError("Kafka does not answer", "start it")


def wait_for(condition: threading.Event) -> None:
    assert condition.wait(DEADLINE_S)


def test_a_broker_that_stays_dead_is_a_failure() -> None:
    with BrokerWatch(dead, patience_s=0.02, interval_s=0.01) as watch:
        deadline = time.monotonic() + DEADLINE_S
        while watch.failure is None and time.monotonic() < deadline:
            time.sleep(0.01)
    assert watch.failure is not None
    assert watch.failure.cause.startswith("Kafka does not answer (for")


def test_a_broker_that_comes_back_is_none() -> None:
    answers = iter([dead, dead])
    asked_again = threading.Event()

    def ask() -> None:
        answer = next(answers, None)
        if answer:
            answer()
        asked_again.set()

    with BrokerWatch(ask, patience_s=1_000, interval_s=0.01) as watch:
        wait_for(asked_again)
    assert watch.failure is None


def test_a_call_is_waited_for_only_so_long() -> None:
    forever = threading.Event()
    assert not bounded(forever.wait, 0.01)
    forever.set()
    assert not bounded(dead, DEADLINE_S)
    assert bounded(lambda: None, DEADLINE_S)
