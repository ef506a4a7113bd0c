"""A member moves from Tessera to the embedded enclave while the others keep Tessera (decision 188).

The embedded enclave takes over the P2P port of the old Tessera. Needs TESSERA and TESSERA_H2, as test_tessera_move.py.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_process import RpcFailure
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import GET, NUMBER_CONTRACT, PrivateClient, set_number, text
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for
from tests.interop.test_tessera import LIMIT_S, Story, Tessera
from tests.interop.test_tessera_move import move_member
from tests.interop.test_tessera_move import pytestmark as needs_tessera

pytestmark = needs_tessera


@pytest.fixture(params=[False, True], ids=["plain", "key-validation"])
def enclaves(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[list[Tessera]]:
    numbers = free_ports(6)
    ports = list(zip(numbers[::2], numbers[1::2], strict=True))
    made = [Tessera(tmp_path / f"tessera{index}", index, ports, validates_keys=request.param) for index in range(3)]
    try:
        for one in made:
            one.start()
        for one in made:
            wait_for(one.is_up, 3 * LIMIT_S, "Tessera")
        yield made
    finally:
        for one in made:
            one.kill()


class Group:
    """Some members that share a private contract."""

    def __init__(self, members: list[PrivateClient], others: list[PrivateClient], **recipients: Any) -> None:
        self.members = members
        self.others = others
        self.recipients = recipients
        self.id = text(recipients.get("group") or legacy_id([one.enclave_key for one in members]))
        self.contract = members[0].receipt(self._sent(members[0], NUMBER_CONTRACT))["contractAddress"]

    def set(self, value: int, sender: PrivateClient) -> None:
        """Store a number; check that all members have it and that others have nothing."""
        marker = self._sent(sender, set_number(value), to=self.contract)
        receipts = [one.receipt(marker, LIMIT_S) for one in self.members]
        assert {one["status"] for one in receipts} == {"0x1"}
        assert len({json.dumps(one, sort_keys=True) for one in receipts}) == 1
        call = {"to": self.contract, "data": GET}
        assert {int(one.node.rpc("priv_call", self.id, call, "latest"), 16) for one in self.members} == {value}
        number = receipts[0]["blockNumber"]
        assert len({one.node.rpc("priv_debugGetStateRoot", self.id, number) for one in self.members}) == 1
        for other in self.others:
            wait_for(lambda: other.node.rpc("eth_getTransactionReceipt", marker), LIMIT_S, "the block")  # noqa: B023
            assert other.node.rpc("priv_getTransactionReceipt", marker) is None

    def _sent(self, sender: PrivateClient, data: bytes, **more: Any) -> str:
        recipients = dict(self.recipients)
        if "group" not in recipients:
            recipients["private_for"] = tuple(one.enclave_key for one in self.members if one is not sender)
        markers: list[str] = []

        def is_sent() -> bool:
            # the enclave of a recipient is unknown until both enclaves have exchanged their keys
            try:
                markers.append(sender.send(data, **recipients, **more))
            except RpcFailure as failure:
                print(failure)
                return False
            return True

        wait_for(is_sent, LIMIT_S, "a private transaction")
        return markers[0]


def test_moved_and_unmoved_members_exchange_private_transactions(enclaves: list[Tessera], tmp_path: Path) -> None:
    own = {
        index: (f"--privacy-url=http://127.0.0.1:{one.port}", f"--privacy-public-key-file={one.key_file}")
        for index, one in enumerate(enclaves)
    }
    network = TestNetwork(tmp_path, "qbft", validators=1, followers=2, options=("--privacy-enabled",), own=own)
    with network:
        story = Story(network, enclaves)
        markers = [story.set(value) for value in (47, 5)]
        story.agree(markers[-1], 5)
        before = [story.receipt(story.a, marker) for marker in markers]
        port = enclaves[0].peer_port
        move_member(
            network,
            enclaves[0],
            0,
            own[0],
            (
                f"--privacy-enclave-port={port}",
                f"--privacy-enclave-tessera-url=http://127.0.0.1:{port}",
                # the third member is found through the second one
                f"--privacy-enclave-tessera-peers=http://127.0.0.1:{enclaves[1].peer_port}",
            ),
        )
        a, b, c = [PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False)]
        wait_for(lambda: [story.receipt(a, marker) for marker in markers] == before, LIMIT_S, "the old receipts")
        pair, every = Group([a, b], [c]), Group([b, a, c], [])
        for group in (pair, every):
            for number, sender in enumerate([*group.members, *group.members]):
                group.set(100 + number, sender)
        members = [text(one.enclave_key) for one in (a, c)]
        for maker in (a, c):
            id = maker.node.rpc("priv_createPrivacyGroup", {"addresses": members, "name": "n", "description": "d"})
            found = [one.node.rpc("priv_findPrivacyGroup", members) for one in (a, c)]
            assert all(id in [each["privacyGroupId"] for each in some] for some in found)
            created = Group([maker, c if maker is a else a], [b], group=b64decode(id))
            for number, sender in enumerate(created.members):
                created.set(200 + number, sender)
            assert maker.node.rpc("priv_deletePrivacyGroup", id) == id
            found = [one.node.rpc("priv_findPrivacyGroup", members) for one in (a, c)]
            assert not any(id in [each["privacyGroupId"] for each in some] for some in found)
        # a restarted Tessera and a restarted Ophion find each other again
        enclaves[1].kill()
        enclaves[1].start()
        enclaves[1].wait()
        pair.set(7, b)
        network.nodes[0].kill()
        network.nodes[0].start()
        for sender in (a, b):
            pair.set(8, sender)
        for status in (a.node.rpc("priv_status"),):
            print(json.dumps(status))
