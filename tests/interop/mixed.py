"""Networks with two BFT validators of each of two clients, and an Ophion follower."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.testing.network import TestNetwork, member_key
from tests.interop.partner import Partner, check_agreement, end_all, mixed_network

OURS = (0, 1, 4)
THEIRS = (2, 3)


class Mixed:
    """A running mixed network; a context manager that stops all processes."""

    def __init__(self, path: Path, engine: str, make: Callable[[TestNetwork, int], Partner]) -> None:
        self.network = mixed_network(TestNetwork(path, engine, 4, followers=1))
        self.theirs = [make(self.network, index) for index in THEIRS]
        self._prefix = "qbft" if engine == "qbft" else "ibft"

    def __enter__(self) -> Mixed:
        try:
            for one in self.theirs:
                one.start()
            for index in OURS:
                self.network.nodes[index].start()
            self.network.wait(lambda: min(self.network.heights(OURS)) >= 2, 120, "the second block")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *reason: object) -> None:
        end_all(self.network, OURS, self.theirs)

    def vote(self, candidate: str, adds: bool) -> None:
        """Let all four validators cast the same vote, and wait for its effect."""
        for index in OURS[:2]:
            self.network.nodes[index].rpc(f"{self._prefix}_proposeValidatorVote", candidate, adds)
        for one in self.theirs:
            one.propose(candidate, adds)
        self.network.wait(lambda: (candidate in self.validators()) is adds, 120, f"the vote ({adds})")

    def validators(self) -> list[str]:
        listed: list[str] = self.network.nodes[0].rpc(f"{self._prefix}_getValidatorsByBlockNumber", "latest")
        return listed

    def makers(self, first: int, count: int) -> Counter[str]:
        """Return the producers of these blocks."""
        blocks = (self.network.nodes[0].rpc("eth_getBlockByNumber", hex(first + n), False) for n in range(count))
        return Counter(block["miner"] for block in blocks)

    def later_rounds(self, first: int, count: int) -> Counter[str]:
        """Return the producers of the blocks that took more than one round."""
        protocol = Qbft() if self.network.engine == "qbft" else Ibft2()
        blocks = (self.network.nodes[0].rpc("eth_getBlockByNumber", hex(first + n), False) for n in range(count))
        extras = ((block["miner"], protocol.decode_extra(bytes.fromhex(block["extraData"][2:]))) for block in blocks)
        return Counter(miner for miner, extra in extras if extra.round > 0)

    def check_agreement(self) -> None:
        """Check that all six nodes have the same block at a recent height."""
        check_agreement(self.network, OURS, self.theirs, min(self.network.heights(OURS)) - 1)


def address_between(low: bytes, high: bytes) -> bytes:
    """Return an unused address that sorts between two given addresses."""
    return next(key.address for key in map(member_key, range(2000, 9999)) if low < key.address < high)
