"""Tests Ctrl-C while the program is loading, and signals that a command waits for."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ophion.runtime.interrupts import StopSignals, stop_signals


def pressed(at: str, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the command, with Ctrl-C at the moment when a module is imported."""
    program = f"""
import os, signal, sys
{before}
class Presses:
    def find_spec(self, name, *rest):
        if name == {at!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Presses())
sys.argv = ["ophion", *{list(words)!r}]
from ophion.__main__ import main
sys.exit(main())
"""
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "at", ["ophion.cli.main", "ophion.node.config", "ophion.cli.quickstart", "ophion.gateway.backends"]
)
def test_it_ends_without_a_word_while_modules_are_loaded(at: str) -> None:
    done = pressed(at, "quickstart", "list", "--directory=/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_running_command_gets_the_exception() -> None:
    done = pressed("ophion.gateway.process", "quickstart", "proxy", "--site=/nowhere")
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_where_it_is_ignored_it_stays_ignored() -> None:
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = pressed("ophion.cli.quickstart", "quickstart", "list", "--directory=/nowhere", before=ignored)
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "There is no network in /nowhere")


def test_a_signal_that_is_held_back_comes_afterwards() -> None:
    # use a new process, because a thread of this process could handle the signal
    program = """
import os, signal
from ophion.runtime.interrupts import held_back
came = []
signal.signal(signal.SIGTERM, lambda number, frame: came.append(number))
with held_back():
    os.kill(os.getpid(), signal.SIGTERM)
    assert came == []
assert came == [signal.SIGTERM]
try:
    with held_back():
        1 / 0
except ZeroDivisionError:
    os.kill(os.getpid(), signal.SIGTERM)
assert came == [signal.SIGTERM] * 2
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_a_closed_terminal_stops_a_process_started_without_nohup() -> None:
    before = signal.getsignal(signal.SIGHUP)
    try:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        assert stop_signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert stop_signals() == [signal.SIGINT, signal.SIGTERM]
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("at", ["ophion.node.node", "ophion.node.build", "uvloop", "ophion.rpc.endpoints.services"])
def test_while_a_node_is_loaded_it_waits_and_everything_is_undone(
    at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    done = pressed(at, "dev", "--rpc-http-port=0", "--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-port=0")
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_the_entry_point_of_a_container_blocked_ends_the_process(number: signal.Signals) -> None:
    waiting = f"signal.pthread_sigmask(signal.SIG_BLOCK, [{number}]); os.kill(os.getpid(), {number})"
    done = pressed("none", "quickstart", "list", "--directory=/nowhere", before=waiting)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, "", "")


def test_a_command_after_such_an_entry_point_gets_ctrl_c() -> None:
    blocked = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])"
    done = pressed("ophion.gateway.process", "quickstart", "proxy", "--site=/nowhere", before=blocked)
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


@pytest.mark.skipif(shutil.which("unshare") is None or os.getuid() != 0, reason="only root can make a process 1")
def test_as_process_1_a_signal_ends_the_process() -> None:
    program = """
import os, signal
from ophion.runtime.interrupts import end_by_inherited_signals
end_by_inherited_signals()
os.kill(os.getpid(), signal.SIGTERM)
"""
    done = subprocess.run(["unshare", "--pid", "--fork", sys.executable, "-c", program], timeout=60)
    if done.returncode == 1:
        pytest.skip("this machine refuses namespaces")
    assert done.returncode == 128 + signal.SIGTERM


def test_a_signal_is_noted_once_and_for_all() -> None:
    before = signal.getsignal(signal.SIGALRM)
    try:
        ends = StopSignals(signal.SIGALRM)
        assert not ends.wait(0)
        signal.raise_signal(signal.SIGALRM)
        assert ends.wait(60)
        assert ends.wait(60)
    finally:
        signal.signal(signal.SIGALRM, before)


def test_signals_at_any_point_of_a_wait_do_not_hang_it() -> None:
    program = """
import signal
from ophion.runtime.interrupts import StopSignals
ends = StopSignals(signal.SIGALRM)
signal.setitimer(signal.ITIMER_REAL, 0.0001, 0.0001)
print(sum(ends.wait(0.001) for _ in range(20_000)) > 0)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.stdout == "True\n", done.stderr
