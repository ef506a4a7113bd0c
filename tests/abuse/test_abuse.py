"""Runs every attack at a small scale against new nodes. The test checks refusals and memory, but no times."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator

import pytest

from tests.abuse import abuse
from tests.abuse.watch import Seen

SCALE = 0.02
LIMITS = abuse.Limits(p99_s=math.inf, worst_s=math.inf, rest_share=math.inf)
FEW = ("--rpc-http-max-active-connections=80", "--rpc-ws-max-active-connections=60")
"""Limits low enough to be reached at a small scale."""


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[abuse.Stage]:
    with contextlib.closing(abuse.Stage(tmp_path_factory.mktemp("abuse"), SCALE, *FEW)) as opened:
        yield opened


ELSEWHERE = (
    {f"peers.{name}" for name in ("wrong_handshakes", "half_open", "large_frames", "connection_flood", "packet_flood")}
    | {f"{engine}.strangers" for engine in ("qbft", "ibft2", "clique")}
    | {
        "peers.byzantine_ibft2",
        "peers.byzantine_qbft",
        "peers.eclipse",
        "peers.contract_rules",
        "peers.slow_sync_peers",
        "peers.reconnects",
    }
)
"""Attacks whose short form is in test_hostile_peers.py, in tests/faults/test_byzantine_validators.py or in unit tests.
Attacks on networks take minutes. Reconnecting peers meet time limits on a busy machine.
"""
NAMES = [attack.name for attack in abuse.ATTACKS if attack.name not in ELSEWHERE]


@pytest.mark.parametrize("name", NAMES)
def test_a_node_stands(name: str, stage: abuse.Stage) -> None:
    (row,) = asyncio.run(abuse.run(stage, [name], 0.0, LIMITS))
    assert row.failures == []


def test_the_verdict_names_each_attack_that_exceeded_a_limit(capsys: pytest.CaptureFixture[str]) -> None:
    good = abuse.Row("nested", 3.0, Seen(300, 0, 0.1, 1.0, 0.01, 0.02, 0.0, 0.0, 512, 60), 50, 60, 10.0)
    slow = abuse.Row("proofs", 3.0, Seen(300, 1, 0.101, 1.01, 0.01, 0.02, 0.0, 0.0, 513, 61), 50, 61, 10.0)
    for row in (good, slow):
        row.failures += abuse.Limits().broken_by(row)
    assert abuse.verdict([good], 60) == 0
    assert abuse.verdict([good, slow], 60) == 1
    assert abuse.verdict([], 0) == 1, "nothing was tried"
    output = capsys.readouterr().out
    assert "1 attacks in 1.0 minutes: no limit exceeded" in output
    assert "2 attacks in 1.0 minutes: 1 EXCEEDED A LIMIT" in output
    assert output.count("  proofs: ") == 5
    assert "  nested: " not in output


def test_names_choose_attacks_and_what_is_attacked() -> None:
    def chosen(*names: str) -> set[str]:
        return {attack.scene for attack in abuse.ATTACKS if attack.is_one_of(list(names))}

    assert chosen() == set(abuse.SCENES)
    assert chosen("tls", "proofs") == {"tls", "open"}
    assert [one.name for one in abuse.ATTACKS if one.is_one_of(["gateway.wide_heads"])] == ["gateway.wide_heads"]
