import logging
from importlib.util import find_spec
from pathlib import Path

import pytest

from queries.runner import _not_of_py4j, _silence_py4j


def test_what_py4j_logs_without_a_name_is_not_shown(caplog: pytest.LogCaptureFixture) -> None:
    spec = find_spec("py4j")
    assert spec is not None
    assert spec.origin is not None
    gateway = str(Path(spec.origin).parent / "java_gateway.py")
    root = logging.getLogger()
    _silence_py4j()
    try:
        for path, text in ((gateway, "reset by peer"), (__file__, "from elsewhere")):
            root.handle(logging.LogRecord("root", logging.ERROR, path, 1, text, None, None))
    finally:
        root.removeFilter(_not_of_py4j)
    assert caplog.messages == ["from elsewhere"]
