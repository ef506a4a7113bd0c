"""Connects validators with real in-memory connections in one virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ophion.peers.consensus.identity import IdentityProtocol
from ophion.peers.consensus.protocol import ConsensusProtocol
from ophion.peers.consensus.validators import Validators
from ophion.producer.bft_driver import BftDriver
from ophion.runtime.clock import ManualClock
from ophion.testing.memory_connection import Host, MemoryConnection
from ophion.testing.node_core import TestCore
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, authority_genesis, open_network


class Party:
    """One validator with its connections."""

    def __init__(self, node: TestCore, index: int, clock: ManualClock, reports: bool = False) -> None:
        """Create a validator. With `reports`, the validator speaks `vid/2` and reports its connections."""
        assert node.core.bft is not None
        self.node = node
        self.driver: BftDriver = node.core.bft
        self.wanted: list[tuple[bytes | None, int]] = []
        self.validators = Validators(self.driver, clock, lambda peer, height: self.wanted.append((peer, height)))
        self.driver.join(self.validators)
        protocols = self.driver.engine.schedule.protocols
        self.protocols = [ConsensusProtocol(protocol, self.validators) for protocol in protocols]
        identity = IdentityProtocol(self.validators, b"\x0c" * 32, KEYS[index].public_key, None)
        offered = [*self.protocols, identity] if reports else self.protocols
        self.host = Host(KEYS[index], offered, clock, client_id=f"Ophion/{index}")
        self.address = KEYS[index].address


def meet(parties: list[Party]) -> list[MemoryConnection]:
    """Connect all validators with each other."""
    return [MemoryConnection(one.host, other.host) for i, one in enumerate(parties) for other in parties[:i]]


def told(
    tmp_path: Path,
    engine: str,
    story: Callable[[list[Party]], Awaitable[Any]],
    nodes: int = 4,
    reports: bool = False,
    validators: int | None = None,
    forks: dict[str, Any] | None = None,
    **parameters: Any,
) -> None:
    """Run a scenario with nodes that are not connected yet. The first `validators` nodes are validators, by default
    all.
    """
    clock = ManualClock()
    parameters = {"blockperiodseconds": 2, "requesttimeoutseconds": 4, **parameters}
    members = [key.address for key in KEYS[: nodes if validators is None else validators]]
    genesis = authority_genesis(engine, members, None, forks, **parameters)
    with open_network(tmp_path, genesis, KEYS[:nodes], clock) as opened:

        async def main() -> None:
            await story([Party(node, index, clock, reports) for index, node in enumerate(opened)])

        run_virtually(main(), clock)
