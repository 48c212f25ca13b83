"""The process table and what is read of single processes."""

import os
import threading

import psutil
import pytest

from espbench.monitor import processes
from espbench.monitor.processes import parse_stat

pytestmark = pytest.mark.skipif(not processes.LINUX, reason="reads /proc")
TICKS = os.sysconf("SC_CLK_TCK")


def test_a_name_with_brackets_and_spaces_does_not_shift_the_fields() -> None:
    fields = [b"S", b"7", *[b"0"] * 9, b"100", b"50", b"20", b"30", b"0", b"0", b"9", b"0", b"500"]
    line = b"42 (od d) (name) " + b" ".join([*fields, b"0", b"3", *[b"0"] * 28])
    found = parse_stat(line)
    assert (found.pid, found.parent, found.name, found.threads) == (42, 7, "od d) (name", 9)
    assert found.cpu_s == pytest.approx(200 / TICKS)
    assert found.waited_s == pytest.approx(50 / TICKS)
    assert found.started == pytest.approx(500 / TICKS)
    assert found.rss_bytes == 3 * os.sysconf("SC_PAGE_SIZE")


def test_the_table_agrees_with_psutil_about_us() -> None:
    us = processes.table()[os.getpid()]
    theirs = psutil.Process()
    assert us.parent == theirs.ppid()
    assert us.threads == theirs.num_threads()
    assert us.rss_bytes == pytest.approx(theirs.memory_info().rss, rel=0.2)
    assert processes.shared_bytes(us.pid) == pytest.approx(theirs.memory_info().shared, rel=0.2)


def test_every_thread_counts_for_switches() -> None:
    begun, end = threading.Event(), threading.Event()

    def idle() -> None:
        begun.set()
        end.wait(30)

    thread = threading.Thread(target=idle)
    thread.start()
    begun.wait(30)
    found = processes.switches(os.getpid())
    end.set()
    thread.join()
    assert {os.getpid(), thread.native_id} <= set(found)
    assert all(voluntary >= 0 and forced >= 0 for voluntary, forced in found.values())


def test_what_is_gone_has_nothing_to_tell() -> None:
    gone = 2**22 + 1
    assert processes.disk_bytes(gone) is None
    assert processes.switches(gone) == {}
    assert processes.shared_bytes(gone) == 0
    assert processes.arguments(gone) == ()
