"""Ctrl-C while the program is being loaded."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest


def pressed(at: str, *words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """The command line, with Ctrl-C in the moment when a module is looked for."""
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
    "at", ["ophion.cli.main", "ophion.node.config", "ophion.cli.quickstart", "ophion.gateway.site"]
)
def test_it_ends_without_a_word_while_modules_are_loaded(at: str) -> None:
    done = pressed(at, "quickstart", "list", "--directory=/nowhere")
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_a_command_that_has_begun_hears_of_it() -> None:
    done = pressed("ophion.gateway.process", "quickstart", "proxy", "--site=/nowhere")
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def test_where_it_is_ignored_it_stays_ignored() -> None:
    ignored = "signal.signal(signal.SIGINT, signal.SIG_IGN)"
    done = pressed("ophion.cli.quickstart", "quickstart", "list", "--directory=/nowhere", before=ignored)
    assert (done.returncode, done.stderr.partition(":")[0]) == (1, "There is no network in /nowhere")
