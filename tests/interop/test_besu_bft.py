"""IBFT 2.0 and QBFT with Besu: two validators of each client on one chain. Needs BESU=path/to/its/start/script.

Tests turns, gossip of transactions, a killed validator of each client, votes of both clients, an offline validator, and
the replacement of the Besu nodes one by one. `OPHION_FAULTS=long` makes 200 blocks.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.besu import Besu, needs_besu
from tests.interop.mixed import OURS, Mixed, address_between
from tests.interop.partner import BLOCKS

pytestmark = needs_besu
ENGINES = ("ibft2", "qbft")
REPLACEMENT = 4


@pytest.mark.parametrize("engine", ENGINES)
def test_two_of_each_make_one_chain(tmp_path: Path, engine: str) -> None:
    with Mixed(tmp_path, engine, Besu) as mixed:
        network, theirs = mixed.network, mixed.theirs
        first, began = network.height(0), time.monotonic()
        network.grow(BLOCKS, 90 + 3 * BLOCKS, OURS)
        made = mixed.makers(first, BLOCKS)
        print(f"{engine}: {BLOCKS} blocks in {time.monotonic() - began:.1f} s, made by {sorted(made.values())}")
        assert len(made) == 4
        assert max(made.values()) - min(made.values()) <= max(2, BLOCKS // 20), made
        check_transactions(mixed)
        check_statuses(mixed)
        # one validator of each client is killed and restarted
        network.kill(1)
        network.grow(5, 90, (0,))
        network.nodes[1].start()
        network.grow(3, 90, OURS)
        theirs[0].kill()
        network.grow(5, 90, OURS)
        theirs[0].start()
        wait_for(lambda: has_joined(network, theirs[0]), 180, "the return of Besu")
        # votes of both clients count: together both clients add the follower, and remove the follower again
        fifth = "0x" + network.keys[REPLACEMENT].address.hex()
        mixed.vote(fifth, True)
        mixed.vote(fifth, False)
        mixed.check_agreement()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("successor", "whose"), [(1, "ours"), (2, "theirs")])
def test_a_validator_that_is_voted_in_and_never_comes(tmp_path: Path, engine: str, successor: int, whose: str) -> None:
    """The validators vote in a fifth validator that stays offline. A quorum then needs all four others, and the next
    proposer takes over the rounds of the offline validator.
    """
    with Mixed(tmp_path, engine, Besu) as mixed:
        network = mixed.network
        absent = "0x" + address_between(network.keys[successor - 1].address, network.keys[successor].address).hex()
        mixed.vote(absent, True)
        first, began = network.height(0), time.monotonic()
        network.grow(BLOCKS, 60 + 6 * BLOCKS, OURS)
        took = time.monotonic() - began
        made = mixed.makers(first + 1, BLOCKS)
        print(f"{engine}: {BLOCKS} blocks with an absent validator in {took:.1f} s, made by {sorted(made.values())}")
        assert len(made) == 4
        assert mixed.later_rounds(first + 1, BLOCKS)["0x" + network.keys[successor].address.hex()] > 0, whose
        mixed.vote(absent, False)
        network.grow(4, 60, OURS)
        mixed.check_agreement()


@pytest.mark.parametrize("engine", ENGINES)
def test_its_nodes_are_replaced_one_by_one(tmp_path: Path, engine: str) -> None:
    """One Besu node is replaced by a vote for a new address, the other by a node with the same address."""
    with Mixed(tmp_path, engine, Besu) as mixed:
        network, (first, second) = mixed.network, mixed.theirs
        mixed.vote("0x" + network.keys[REPLACEMENT].address.hex(), True)
        mixed.vote("0x" + network.keys[2].address.hex(), False)
        first.kill()
        network.grow(4, 60, OURS)
        second.kill()
        heir = network.nodes[3]
        heir.start()
        try:
            wait_for(lambda: heir.height >= network.height(0) > 0, 60, "the chain at the heir")
            network.grow(8, 90, (*OURS, 3))
            made = mixed.makers(network.height(0) - 4, 4)
            assert set(made) == {"0x" + network.keys[index].address.hex() for index in (*OURS, 3)}
        finally:
            heir.kill()


def check_transactions(mixed: Mixed) -> None:
    """Check that each client mines transactions that the other client has received."""
    nodes, theirs = mixed.network.nodes, mixed.theirs
    sent: dict[str, bool] = {}
    for nonce in range(20):
        for to_us, member, key in ((True, nodes[0], DEV_KEYS[0]), (False, theirs[0], DEV_KEYS[1])):
            raw = legacy_transaction(key, nonce, chain_id=CHAIN_ID, gas_price=1)
            sent[member.rpc("eth_sendRawTransaction", "0x" + raw.hex())] = to_us
        time.sleep(0.3)
    own = {"0x" + mixed.network.keys[index].address.hex() for index in OURS}
    ways: Counter[tuple[bool, bool]] = Counter()
    for hash, to_us in sent.items():
        receipt = nodes[4].receipt(hash)
        wait_for(lambda hash=hash: theirs[1].rpc("eth_getTransactionReceipt", hash), 30, "the receipt")  # type: ignore[misc]
        block = nodes[4].rpc("eth_getBlockByHash", receipt["blockHash"], False)
        ways[to_us, block["miner"] in own] += 1
    print(f"transactions (sent to us, mined by us): {dict(ways)}")
    assert len(ways) == 4, ways


def check_statuses(mixed: Mixed) -> None:
    """Check that peers, status and doctor show all nodes and their clients."""
    nodes, keys = mixed.network.nodes, mixed.network.keys
    peers = {peer["name"].split("/")[0].lower() for peer in nodes[0].rpc("admin_peers")}
    assert peers == {"besu", "ophion"}
    prefix = "qbft" if mixed.network.engine == "qbft" else "ibft"
    members = {one["address"]: one for one in nodes[0].rpc(f"{prefix}_getStatus")["members"]}
    for index in (2, 3):
        member = members["0x" + keys[index].address.hex()]
        assert member["isConnected"], member
        assert not member["isPassedOver"], member
        assert member["client"].startswith("besu/"), member
    urls = [f"http://127.0.0.1:{nodes[index].ports['json-rpc']}" for index in OURS]
    urls += [f"http://127.0.0.1:{one.rpc_port}" for one in mixed.theirs]
    said = ophion("doctor", f"--rpc={','.join(urls)}", "--wait=20").succeeded().out
    assert "The network is producing blocks." in said
    assert said.count("besu/") == len(mixed.theirs)


def has_joined(network: TestNetwork, besu: Besu) -> bool:
    """Return whether a restarted node has all blocks except possibly the last."""
    try:
        return besu.height >= network.height(0) - 1
    except (OSError, ValueError, TypeError):
        return False
