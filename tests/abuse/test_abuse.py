"""Every attack at a small scale, against nodes of their own: what is refused and what is held, but no times."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator

import pytest

from tests.abuse import abuse

SCALE = 0.02
LIMITS = abuse.Limits(p99_s=math.inf, worst_s=math.inf, rest_share=math.inf)
FEW = ("--rpc-http-max-active-connections=80", "--rpc-ws-max-active-connections=60")
"""Low enough to be reached at a small scale."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[abuse.Stage]:
    with contextlib.closing(abuse.Stage(tmp_path_factory.mktemp("abuse"), SCALE, *FEW)) as opened:
        yield opened


ELSEWHERE = {
    f"peers.{name}" for name in ("wrong_handshakes", "half_open", "large_frames", "flooded_door", "packet_flood")
}
"""In their short form: test_hostile_peers.py."""
NAMES = [attack.name for attack in abuse.ATTACKS if attack.name not in ELSEWHERE]


@pytest.mark.parametrize("name", NAMES)
def test_a_node_stands(name: str, stage: abuse.Stage) -> None:
    (row,) = asyncio.run(abuse.run(stage, [name], 0.0, LIMITS))
    assert row.failures == []
