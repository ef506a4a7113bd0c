"""Two real nodes per validator key with a real etcd cluster: under random faults, no key signs contradictory messages.

SHARED_KEY_FAULTS sets the number of faults, SHARED_KEY_SEED their order, SHARED_KEY_ENGINES the consensus engines.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from ophion.testing.network import TestNetwork
from ophion.testing.node_process import COMMAND
from tests.faults.etcd_cluster import ETCD, REASON, EtcdCluster
from tests.faults.recording_validator import recorded, recording_command

FAULTS = int(os.environ.get("SHARED_KEY_FAULTS", "6"))
SEED = int(os.environ.get("SHARED_KEY_SEED", "36"))
KEYS = 4
PAIRS = [(index, KEYS + index) for index in range(KEYS)]

pytestmark = pytest.mark.skipif(ETCD is None, reason=REASON)


def _network(path: Path, engine: str, store: str, relayed: bool = True) -> TestNetwork:
    """Return a network of four keys. Nodes 4 to 7 have their own node keys and share the validator keys of nodes 0 to
    3.
    """
    own = {KEYS + key: (f"--validator-private-key-file={path / f'node{key}' / 'key'}",) for key in range(KEYS)}
    # two nodes have wrong clocks, so that nodes with the same key disagree about the time
    clocks = {1: 0.4, KEYS + 2: -0.4}
    launchers = {index: recording_command(path / f"signed{index}", clocks.get(index, 0.0)) for index in range(2 * KEYS)}
    return TestNetwork(
        path,
        engine,
        KEYS,
        KEYS,
        timeout_s=1,
        relayed=relayed,
        options=(f"--vote-store={store}",),
        own=own,
        launchers=launchers,
    )


def _conflicts(path: Path) -> list[str]:
    """Return all messages with different contents that the two nodes of a key signed for one round."""
    found = []
    for pair in PAIRS:
        known: dict[tuple[str, int, int], str] = {}
        for index in pair:
            for one in recorded(path / f"signed{index}"):
                if known.setdefault((one.kind, one.height, one.round), one.digest) != one.digest:
                    found.append(f"nodes {pair}: two of {one.kind} {one.height}/{one.round}")
    return found


def _restart(network: TestNetwork, index: int) -> None:
    network.kill(index)
    network.nodes[index].start()


@pytest.mark.parametrize("engine", os.environ.get("SHARED_KEY_ENGINES", "qbft").split())
def test_random_faults_cause_no_conflicting_messages(tmp_path: Path, engine: str) -> None:
    chance = random.Random(SEED)
    with EtcdCluster(tmp_path / "etcd", 3) as etcd, _network(tmp_path, engine, etcd.address) as network:
        network.wait(lambda: min(network.heights()) >= 2, 120, "the second block")

        def kill() -> None:
            _restart(network, chance.randrange(2 * KEYS))

        def freeze() -> None:
            process = network.nodes[chance.randrange(2 * KEYS)].pid
            os.kill(process, signal.SIGSTOP)
            time.sleep(chance.uniform(0.2, 2))
            os.kill(process, signal.SIGCONT)

        def partition() -> None:
            """Separate the two nodes of each key, or isolate one node."""
            if chance.random() < 0.5:
                alone = chance.randrange(2 * KEYS)
                network.divide([alone], [index for index in range(2 * KEYS) if index != alone])
            else:
                side = [chance.choice(pair) for pair in PAIRS]
                network.divide(side, [index for index in range(2 * KEYS) if index not in side])
            time.sleep(chance.uniform(0.5, 3))
            network.heal()

        def kill_member() -> None:
            member = chance.randrange(3)
            etcd.stop(member)
            time.sleep(chance.uniform(0, 2))
            etcd.start(member)

        def freeze_cluster() -> None:
            for member in range(3):
                etcd.signal(signal.SIGSTOP, member)
            time.sleep(chance.uniform(0.2, 2))
            for member in range(3):
                etcd.signal(signal.SIGCONT, member)

        faults: list[Callable[[], None]] = [kill, freeze, partition, kill_member, freeze_cluster]
        for number in range(FAULTS):
            # every kind of fault occurs once, and then faults are chosen at random
            (faults[number] if number < len(faults) else chance.choice(faults))()
            time.sleep(chance.uniform(0, 1))
            assert _conflicts(tmp_path) == [], f"after {number + 1} faults"
        network.grow(3, 120)
        assert network.agrees()
        assert _conflicts(tmp_path) == []
        kinds = {one.kind for index in range(2 * KEYS) for one in recorded(tmp_path / f"signed{index}")}
        assert kinds >= {"Proposal", "Prepare", "Commit", "RoundChange"}


def test_partners_take_over_when_half_of_the_nodes_die(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path / "etcd") as etcd, _network(tmp_path, "qbft", etcd.address, relayed=False) as network:
        network.wait(lambda: min(network.heights()) >= 3, 120, "the third block")
        network.kill(0, 1, 2, 3)
        network.grow(4, 60, range(KEYS, 2 * KEYS))
        partner = network.nodes[KEYS]
        block = partner.rpc("eth_getBlockByNumber", "latest", False)
        assert block["miner"] in {f"0x{key.address.hex()}" for key in network.keys[:KEYS]}
        etcd.stop()
        status = "qbft_getStatus"
        network.wait(lambda: "vote store" in partner.rpc(status)["explanation"][0], 60, "the status")
        height = network.height(KEYS)
        etcd.start()
        network.wait(lambda: network.height(KEYS) > height, 60, "a block after the return of etcd")
        assert _conflicts(tmp_path) == []


def test_partners_of_clique_signers_take_over(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path / "etcd") as etcd, _network(tmp_path, "clique", etcd.address, relayed=False) as network:
        network.wait(lambda: min(network.heights()) >= 3, 120, "the third block")
        network.kill(0, 1, 2, 3)
        partners = range(KEYS, 2 * KEYS)
        network.grow(4, 60, partners)
        etcd.stop()
        height = network.height(KEYS)

        def is_reported() -> bool:
            """Return whether an in-turn signer has reported the outage."""
            return any("nothing is signed" in network.nodes[index].output() for index in partners)

        network.wait(is_reported, 60, "the log line")
        etcd.start()
        network.wait(lambda: min(network.heights(partners)) > height + 2, 60, "blocks after the return of etcd")


def test_validators_leave_the_vote_store_one_after_another(tmp_path: Path) -> None:
    with EtcdCluster(tmp_path / "etcd") as etcd:
        own: dict[int, Sequence[str]] = dict.fromkeys(range(KEYS), (f"--vote-store={etcd.address}",))
        with TestNetwork(tmp_path, "qbft", KEYS, own=own) as network:
            network.wait(lambda: min(network.heights()) >= 3, 120, "the third block")
            for index in range(KEYS):
                network.kill(index)
                del own[index]
                network.replace_program(index, COMMAND)
                network.nodes[index].start()
                assert "latest votes are in another vote store" in network.nodes[index].output()
                own_address, height = f"0x{network.keys[index].address.hex()}", network.height(index)

                def proposes(own_address: str = own_address, height: int = height) -> bool:
                    block = network.nodes[0].rpc("eth_getBlockByNumber", "latest", False)
                    return int(block["number"], 16) > height + 1 and block["miner"] == own_address

                network.wait(proposes, 120, "a block of a validator that has left the vote store")
            etcd.stop()
            network.grow(KEYS, 60)
            assert network.agrees()
