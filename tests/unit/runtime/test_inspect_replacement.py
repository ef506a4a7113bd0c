"""Ophion's replacements for functions of `inspect` give the same results, and a start does not load the module
`inspect`.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from types import coroutine
from typing import Any

import pytest

from ophion.runtime.inspect_replacement import INSPECTIONS
from ophion.testing.node_process import environment


class Example:
    async def waiting(self) -> None:
        """Wait."""

    def plain(self) -> None:
        """Do nothing."""

    def __await__(self) -> Iterator[None]:
        yield


async def waiting() -> None:
    """Wait."""


def generator() -> Iterator[int]:
    yield 1


@coroutine
def old_style() -> Any:
    yield


@pytest.mark.parametrize("name", INSPECTIONS)
def test_agrees_with_inspect(name: str) -> None:
    started = waiting()
    values: list[Any] = [
        None, 1, waiting, started, generator, generator(), old_style, old_style(), Example, Example(),
        Example().waiting, Example().plain, Example.waiting, partial(waiting), partial(partial(waiting), 1), len,
    ]  # fmt: skip
    own: Any = INSPECTIONS[name]
    for value in values:
        assert own(value) == getattr(inspect, name)(value), value
    started.close()


def test_the_command_line_does_not_load_inspect() -> None:
    code = (
        "import sys; from ophion.__main__ import main; sys.argv = ['ophion', '--version']; main(); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True)
    assert "ophion.cli.main" in done.stdout.split()
    assert not {"ast", "dis"} & set(done.stdout.split())
