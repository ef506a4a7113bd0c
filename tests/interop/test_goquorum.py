"""QBFT with GoQuorum: two validators of each client on one chain. Needs GOQUORUM=path/to/its/geth.

Tests turns, a killed validator of each client, votes of both clients, and a voted-in validator that is offline.
`OPHION_FAULTS=long` makes 200 blocks.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.interop.goquorum import GoQuorum, needs_goquorum
from tests.interop.mixed import OURS, Mixed, address_between
from tests.interop.partner import BLOCKS

pytestmark = needs_goquorum


def test_two_of_each_make_one_chain(tmp_path: Path) -> None:
    with Mixed(tmp_path, "qbft", GoQuorum) as mixed:
        network, ours, theirs = mixed.network, OURS, mixed.theirs
        first = network.height(0)
        network.grow(BLOCKS, 60 + 3 * BLOCKS, ours)
        made = mixed.makers(first, BLOCKS)
        assert len(made) == 4
        assert max(made.values()) - min(made.values()) <= max(2, BLOCKS // 20), made
        # one validator of each client is killed and restarted
        network.kill(1)
        network.grow(5, 60, (0,))
        network.nodes[1].start()
        network.grow(3, 60, ours)
        theirs[0].kill()
        network.grow(5, 60, ours)
        theirs[0].start()
        network.grow(4, 60, ours)
        # votes of both clients count: together both clients add the follower, and remove the follower again
        fifth = "0x" + network.keys[4].address.hex()
        mixed.vote(fifth, True)
        mixed.vote(fifth, False)
        mixed.check_agreement()


@pytest.mark.parametrize(("successor", "whose"), [(1, "ours"), (2, "theirs")])
def test_a_validator_that_is_voted_in_and_never_comes(tmp_path: Path, successor: int, whose: str) -> None:
    """The validators vote in a fifth validator that stays offline. A quorum then needs all four others, and the next
    proposer takes over the rounds of the offline validator.
    """
    with Mixed(tmp_path, "qbft", GoQuorum) as mixed:
        network = mixed.network
        absent = "0x" + address_between(network.keys[successor - 1].address, network.keys[successor].address).hex()
        mixed.vote(absent, True)
        first, began = network.height(0), time.monotonic()
        network.grow(BLOCKS, 60 + 5 * BLOCKS, OURS)
        took = time.monotonic() - began
        made = mixed.makers(first + 1, BLOCKS)
        print(f"{BLOCKS} blocks with an absent validator in {took:.1f} s, made by {sorted(made.values())}")
        assert len(made) == 4
        mixed.vote(absent, False)
        network.grow(4, 60, OURS)
        mixed.check_agreement()
