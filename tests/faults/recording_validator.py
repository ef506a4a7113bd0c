"""A real node that records its signatures. `recording_command` replaces the `ophion` command.

The node records a message when it sends the message, after the votes are on disk. It records a Clique block when it
announces the block, after the block is on disk. Each line is written at once, so that it survives a kill.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from ophion.chain.block_builder import BuiltBlock
from ophion.consensus.bft.messages import BftMessage, Proposal, RoundChange
from ophion.primitives.types import Address
from ophion.producer.bft_driver import BftDriver
from ophion.producer.clique_sealer import CliqueSealer
from ophion.producer.validator_gossip import ValidatorGossip
from ophion.runtime.clock import SystemClock
from tests.faults.gossip_tap import GossipTap


class Signed(NamedTuple):
    """One signature, over a message or over a Clique block (kind `seal`, round 0)."""

    kind: str
    height: int
    round: int
    digest: str


def recording_command(file: Path, clock_ahead_s: float = 0.0) -> tuple[str, ...]:
    """Return the command that starts a recording node, with a clock that is ahead by some seconds."""
    root = Path(__file__).parents[2]
    script = f"import sys; sys.path.insert(0, {str(root)!r}); import tests.faults.recording_validator as it; "
    script += f"it.main({clock_ahead_s!r})"
    return sys.executable, "-c", script, str(file)


def recorded(file: Path) -> list[Signed]:
    """Return everything that a node has signed so far, in all its runs."""
    lines = file.read_text().splitlines() if file.exists() else []
    return [Signed(*json.loads(line)) for line in lines]


def contradictions(signed: list[Signed]) -> list[str]:
    """Return contradictions: two blocks in one round, votes in an earlier round, two seals at one height."""
    found: list[str] = []
    known: dict[tuple[str, int, int], str] = {}
    left: dict[int, int] = {}
    for one in signed:
        if one.kind == "RoundChange":
            left[one.height] = max(one.round, left.get(one.height, 0))
            continue
        if known.setdefault((one.kind, one.height, one.round), one.digest) != one.digest:
            found.append(f"two of {one.kind} {one.height}/{one.round}")
        if one.round < left.get(one.height, 0):
            found.append(f"{one.kind} {one.height}/{one.round} after a request for round {left[one.height]}")
    return found


class RecordingTap(GossipTap):
    """Records the node's own messages."""

    def __init__(self, gossip: ValidatorGossip, file: str) -> None:
        super().__init__(gossip)
        self._file = file

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        digest = _claim(message) if isinstance(message, RoundChange) else _digest(message)
        record(self._file, Signed(type(message).__name__, message.height, message.round, digest.hex()))
        super().multicast(message, validators)


def _claim(message: RoundChange) -> bytes:
    claim = message.signed.claim
    return b"" if claim is None else claim.round.to_bytes(4) + claim.digest


def _digest(message: BftMessage) -> bytes:
    return message.block.digest if isinstance(message, Proposal) else getattr(message, "digest", b"")


def record(file: str, signed: Signed) -> None:
    handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(handle, json.dumps(signed).encode() + b"\n")
    finally:
        os.close(handle)


def main(clock_ahead_s: float) -> None:
    """Record the signatures of the node in this process."""
    file = sys.argv.pop(1)
    if clock_ahead_s:
        SystemClock.now = staticmethod(lambda: time.time() + clock_ahead_s)  # type: ignore[method-assign, assignment]
    join, commit = BftDriver.join, CliqueSealer._commit

    async def recording_commit(sealer: CliqueSealer, built: BuiltBlock, started_at: float) -> None:
        await commit(sealer, built, started_at)
        head = sealer._chain.head
        if head.number == built.header.number and sealer._engine.author(head) == sealer._me:
            record(file, Signed("seal", head.number, 0, head.hash.hex()))

    BftDriver.join = lambda driver, gossip: join(driver, RecordingTap(gossip, file))  # type: ignore[method-assign]
    CliqueSealer._commit = recording_commit  # type: ignore[method-assign]
    sys.argv[0] = "ophion"
    runpy.run_module("ophion", None, "__main__", alter_sys=True)
