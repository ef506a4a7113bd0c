"""Private transactions between Ophion and Besu, each with its own Tessera in orion mode.

So a member may exchange its node while the other members keep Besu. Needs BESU=path/to/its/start/script of a version
with private transactions, and TESSERA=command (see test_tessera.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import RpcFailure
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import ENCLAVE_KEYS, GET, NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.interop.besu import Besu, needs_besu
from tests.interop.partner import end_all, mixed_network
from tests.interop.test_tessera import LIMIT_S, Tessera
from tests.interop.test_tessera import pytestmark as needs_tessera

pytestmark = [needs_besu, needs_tessera]


class BesuClient(PrivateClient):
    """Sends private transactions to Besu, which does not report the key of its enclave."""

    def __init__(self, besu: Besu, index: int) -> None:
        self.node = besu  # type: ignore[assignment]
        self.key = DEV_KEYS[index]
        self.chain_id = CHAIN_ID
        self.enclave_key = ENCLAVE_KEYS[index]

    def _private_receipt(self, marker: str) -> dict[str, Any]:
        found: dict[str, Any] = self.node.rpc("priv_getTransactionReceipt", marker)
        return found


@pytest.fixture
def enclaves(tmp_path: Path) -> Iterator[list[Tessera]]:
    numbers = free_ports(4)
    ports = list(zip(numbers[::2], numbers[1::2], strict=True))
    made = [Tessera(tmp_path / f"tessera{index}", index, ports) for index in range(2)]
    try:
        for one in made:
            one.start()
        for one in made:
            wait_for(one.is_up, 3 * LIMIT_S, "Tessera")
        yield made
    finally:
        for one in made:
            one.kill()


class Members:
    """Two members of a group and the private contract that they share."""

    def __init__(self, first: PrivateClient, second: PrivateClient) -> None:
        self.clients = (first, second)
        self.group = text(legacy_id([first.enclave_key, second.enclave_key]))
        self.markers: list[str] = []
        # a recipient is unknown until the enclaves have exchanged their keys
        wait_for(self._is_created, LIMIT_S, "a contract")
        self.contract: str = first.receipt(self.markers[0])["contractAddress"]

    def _is_created(self) -> bool:
        first, second = self.clients
        try:
            marker: str | None = first.send(NUMBER_CONTRACT, private_for=(second.enclave_key,))
        except RpcFailure:
            return False
        if marker is None:
            return False
        self.markers.append(marker)
        return True

    def set(self, value: int, sender: int) -> None:
        """Store a number, and check that both members have it."""
        author, other = self.clients[sender], self.clients[1 - sender]
        marker = author.send(set_number(value), to=self.contract, private_for=(other.enclave_key,))
        self.markers.append(marker)
        assert [client.receipt(marker, LIMIT_S)["status"] for client in self.clients] == ["0x1", "0x1"]
        self.check(value)

    def check(self, value: int) -> None:
        """Check that both members have a number and the same code."""
        call = {"to": self.contract, "data": GET}
        for client in self.clients:
            found = wait_for(
                lambda client=client: client.node.rpc("priv_call", self.group, call, "latest"), LIMIT_S, "it"
            )  # type: ignore[misc]
            assert int(found, 16) == value
        assert (
            len({client.node.rpc("priv_getCode", self.group, self.contract, "latest") for client in self.clients}) == 1
        )

    def outcomes(self, client: PrivateClient) -> list[tuple[Any, ...]]:
        """Return what a member reports about every transaction so far."""
        receipts = [client.receipt(marker, LIMIT_S) for marker in self.markers]
        return [
            tuple(one.get(name) for name in ("status", "output", "contractAddress", "from", "to")) for one in receipts
        ]


def _options(enclave: Tessera) -> tuple[str, ...]:
    url = f"--privacy-url=http://127.0.0.1:{enclave.port}"
    return ("--privacy-enabled", url, f"--privacy-public-key-file={enclave.key_file}")


def _besu(network: TestNetwork, index: int, enclave: Tessera) -> Besu:
    # Besu refuses private transactions with Bonsai, which is its default from 23.10 on
    return Besu(network, index, (*_options(enclave), "--data-storage-format=FOREST"), ("EEA", "PRIV"))


def _start(besu: Besu) -> None:
    besu.start()
    besu.wait()
    if besu.rpc("priv_getTransactionCount", "0x" + bytes(20).hex(), text(bytes(32))) is None:
        pytest.skip("this Besu has no private transactions")


def test_members_with_ophion_and_besu_agree(enclaves: list[Tessera], tmp_path: Path) -> None:
    network = mixed_network(TestNetwork(tmp_path, "qbft", validators=1, followers=1, own={0: _options(enclaves[0])}))
    besu = _besu(network, 1, enclaves[1])
    try:
        network.nodes[0].start()
        _start(besu)
        wait_for(lambda: besu.height >= 2, LIMIT_S, "blocks at Besu")
        members = Members(PrivateClient(network.nodes[0], DEV_KEYS[0], CHAIN_ID), BesuClient(besu, 1))
        for value, sender in ((47, 0), (5, 1), (9, 0)):
            members.set(value, sender)
    finally:
        end_all(network, (0,), [besu])


def test_a_member_exchanges_its_node_and_keeps_its_enclave(enclaves: list[Tessera], tmp_path: Path) -> None:
    """`ophion migrate --from-besu` moves the chain. Ophion rebuilds the private state with payloads from Tessera."""
    pytest.importorskip("rocksdict", reason="the extra ophion[migrate] is not installed")
    network = mixed_network(TestNetwork(tmp_path, "qbft", validators=1, followers=1, own={0: _options(enclaves[0])}))
    besus = [_besu(network, index, enclaves[index]) for index in range(2)]
    ours: list[int] = []
    try:
        for besu in besus:
            _start(besu)
        wait_for(lambda: besus[1].height >= 2, LIMIT_S, "blocks of Besu")
        members = Members(BesuClient(besus[0], 0), BesuClient(besus[1], 1))
        for value, sender in ((47, 0), (5, 1)):
            members.set(value, sender)
        before = members.outcomes(members.clients[0])
        besus[0].stop()
        ophion(
            "migrate",
            f"--from-besu={besus[0].path}",
            f"--data-path={network.data_path(0)}",
            f"--genesis-file={network.genesis_file}",
        ).succeeded()
        network.nodes[0].start()
        ours.append(0)
        members.clients = (PrivateClient(network.nodes[0], DEV_KEYS[0], CHAIN_ID), members.clients[1])
        members.check(5)
        assert members.outcomes(members.clients[0]) == before
        for value, sender in ((9, 0), (11, 1)):
            members.set(value, sender)
        print(f"private transactions: {len(before)} before, {len(members.markers) - len(before)} after the exchange")
    finally:
        end_all(network, ours, besus)
