"""`ValidatorNetwork`: validators in one thread, with virtual time and scripted faults, for tests of operations.

    net = ValidatorNetwork(validators=4, seed=1)
    net.run(blocks=3)
    net.stop(0)
    net.run(blocks=3)
    assert net.heights == [3, 6, 6, 6]

Consensus runs in the state machines of a real node. Blocks, keys and the network are cheap stand-ins, so that a minute
of the network takes milliseconds. The same seed and the same calls give the same run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ophion.abi.addresses import shortened
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.errors import OphionError
from ophion.sdk.arguments import UINT64, whole_number
from ophion.sdk.errors import ArgumentError
from ophion.testing.simulation.driver import NetworkSettings
from ophion.testing.simulation.fault_plan import LinkQuality
from ophion.testing.simulation.network import SimulatedNetwork
from ophion.testing.simulation.seed_runs import RULES
from ophion.testing.simulation.trace import Trace

_MAX_WAIT_S = 600.0


MAX_NODES = 1000


def _seconds(**durations: object) -> None:
    """Raise `ArgumentError` unless each duration is a finite number of at least 0."""
    for name, value in durations.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise ArgumentError(f"{name}: {shortened(value)} is not a number of seconds.")


class NetworkStalled(OphionError):
    """Raised when the network makes no block in time."""


class ConsensusViolation(OphionError):
    """Raised when validators have broken a rule of the protocol."""


class ValidatorNetwork:
    """A network of validators that has just started. Validators are named by their index."""

    def __init__(
        self,
        validators: int = 4,
        seed: int = 0,
        *,
        protocol: str = "qbft",
        standby: int = 0,
        block_period_s: float = 1.0,
        request_timeout_s: float = 2.0,
        max_request_timeout_s: float = 60.0,
    ) -> None:
        """Start a network. `standby` nodes follow the chain and can be voted in; their indexes come last."""
        if protocol not in tuple(RULES):
            raise ArgumentError(f"protocol: {shortened(protocol)} is not one of {', '.join(RULES)}.")
        whole_number("validators", validators, MAX_NODES, first=1)
        whole_number("standby", standby, MAX_NODES)
        whole_number("seed", seed, UINT64)
        _seconds(block_period_s=block_period_s, request_timeout_s=request_timeout_s)
        _seconds(max_request_timeout_s=max_request_timeout_s)
        timing = RoundTiming(block_period_s, request_timeout_s, max_request_timeout_s)
        self._trace = Trace(validators + standby)
        settings = NetworkSettings(RULES[protocol], validators, timing, standby=standby)
        self._world = SimulatedNetwork(settings, seed, trace=self._trace)
        self._world.start()

    # --- time -----------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """Seconds since the start of the network, in virtual time."""
        return self._world.now

    def run(self, seconds: float | None = None, *, blocks: int | None = None, timeout_s: float = _MAX_WAIT_S) -> float:
        """Run for some seconds, or until there are `blocks` more blocks. Returns the virtual seconds that have passed.

        Afterwards all running nodes have the blocks; in a partition, all running nodes of one group. Raises
        `NetworkStalled` when the blocks do not come in time, and `ConsensusViolation` when validators break a rule.
        """
        _seconds(timeout_s=timeout_s, seconds=1.0 if seconds is None else seconds)
        start = self.now
        if blocks is None:
            self._world.run(start + (1.0 if seconds is None else seconds))
            self.check()
            return self.now - start
        height = max(self.heights) + whole_number("blocks", blocks, UINT64)
        reached = self._world.run(start + timeout_s, lambda: self._have(height))
        self.check()
        if not reached:
            raise NetworkStalled(f"no block {height} after {timeout_s:g} s: heights are {self.heights}")
        return self.now - start

    def _check_nodes(self, nodes: Iterable[int]) -> None:
        for node in nodes:
            whole_number("node", node, len(self._world.members))

    def _have(self, height: int) -> bool:
        running = [member for member in self._world.members if member.machine is not None]
        group = next((member.group for member in running if member.height >= height), None)
        return group is not None and all(member.height >= height for member in running if member.group == group)

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Run an action at a virtual time, such as `net.at(5, lambda: net.stop(2))`."""
        self._world.at(time, action)

    # --- faults ---------------------------------------------------------------------------------

    def stop(self, *nodes: int) -> None:
        """Stop nodes at once, like a crash."""
        self._check_nodes(nodes)
        for node in nodes:
            self._world.crash(node)

    def start(self, *nodes: int, keeps_disk: bool = True) -> None:
        """Start stopped nodes again, with or without their database."""
        self._check_nodes(nodes)
        for node in nodes:
            self._world.restart(node, keeps_disk)
            if not keeps_disk:
                # a node without its vote store may contradict its earlier votes, so do not check its votes
                checker = self._world.checker
                checker.dishonest, checker.forgetful = checker.dishonest | {node}, checker.forgetful | {node}

    def partition(self, *groups: Sequence[int]) -> None:
        """Divide the network: only nodes of one group reach each other. Nodes that are not named form another group."""
        for group in groups:
            self._check_nodes(group)
        place = {node: number for number, group in enumerate(groups) for node in group}
        self._world.divide([place.get(node, len(groups)) for node in range(len(self._world.members))])

    def heal(self) -> None:
        """End a partition and restore the connections."""
        self._world.reunite()

    def set_links(
        self, min_delay_s: float = 0.002, max_delay_s: float = 0.02, loss: float = 0.0, duplication: float = 0.0
    ) -> None:
        """Set delay and loss of all messages from now on."""
        self._world.delivery.link = LinkQuality(min_delay_s, max_delay_s, 0.0, loss, duplication)

    def set_clock(self, node: int, ahead_s: float) -> None:
        """Set by how many seconds the clock of a node is ahead."""
        self._check_nodes([node])
        self._world.members[node].skew_s = ahead_s

    # --- votes ----------------------------------------------------------------------------------

    def vote(self, voters: Sequence[int], node: int, is_added: bool = True) -> None:
        """Let validators vote to add a node to the validators, or to remove it."""
        self._check_nodes([*voters, node])
        address = self._world.members[node].address
        for voter in voters:
            self._world.members[voter].proposals.propose(address, is_added)

    @property
    def validators(self) -> list[int]:
        """The current validators, according to the highest chain."""
        highest = max(self._world.members, key=lambda member: member.height)
        known = highest.head.tally.validators
        return [member.index for member in self._world.members if member.address in known]

    # --- observations ---------------------------------------------------------------------------

    @property
    def heights(self) -> list[int]:
        """Height of each node."""
        return self._world.heights()

    def rounds(self, node: int = 0) -> list[int]:
        """Round in which each block of a node's chain was decided; 0 means at the first attempt."""
        self._check_nodes([node])
        return [block.round for block in self._world.members[node].chain[1:]]

    def proposers(self, node: int = 0) -> list[int]:
        """Proposer of each block of a node's chain."""
        self._check_nodes([node])
        index = {member.address: member.index for member in self._world.members}
        return [index[block.builder] for block in self._world.members[node].chain[1:]]

    def check(self) -> None:
        """Raise `ConsensusViolation` when two nodes have different blocks, or another rule is broken."""
        found = self._world.checker.violations
        if found:
            raise ConsensusViolation("; ".join(map(str, found)))

    def diagram(self, last: int | None = 50) -> str:
        """Return the last messages, blocks and faults as a sequence diagram in text."""
        return self._trace.diagram(last)

    def __repr__(self) -> str:
        return f"<ValidatorNetwork {self.now:.1f} s heights={self.heights}>"
