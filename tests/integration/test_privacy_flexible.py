"""A flexible group of real nodes: C is added later and gets the history; B is removed and gets no later transaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ophion.native.privacy import PrivateLedger, private_contract_address
from ophion.native.store import open_store
from ophion.privacy.flexible_groups import PROXY
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.private_transactions import (
    GET,
    NUMBER_CONTRACT,
    PrivateClient,
    add_members,
    remove_member,
    set_number,
    text,
)
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for

LIMIT_S = 60.0
GROUP = bytes(range(32))
MANAGED = "0x" + PROXY.hex()
LOCK = bytes.fromhex("f83d08ba")


def test_members_come_and_go_and_those_who_are_there_agree(tmp_path: Path) -> None:
    options = ("--privacy-enabled", "--privacy-flexible-groups-enabled", "--privacy-delivery=queue")
    with TestNetwork(tmp_path, "qbft", validators=1, followers=2, options=options) as network:
        a, b, c = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False))
        for one in (a, b, c):
            wait_for(lambda one=one: len(one.node.rpc("priv_status")["peers"]) >= 2, LIMIT_S, "enclaves")
        contract = "0x" + private_contract_address(a.key.address, 1, GROUP).hex()

        def send(data: bytes, to: str | None = MANAGED) -> str:
            marker = a.send(data, to=to, group=GROUP)
            assert a.receipt(marker)["status"] == "0x1", a.node.rpc("priv_explain", marker)
            return marker

        def state(member: PrivateClient, marker: str) -> tuple[str, int, list[Any]]:
            """Return state root and value after a marker, and the member's receipts of all markers so far."""
            wait_for(lambda: member.node.rpc("priv_getTransactionReceipt", marker) is not None, LIMIT_S, "the receipt")
            number = a.node.rpc("priv_getTransactionReceipt", marker)["blockNumber"]
            root = member.node.rpc("priv_debugGetStateRoot", text(GROUP), number)
            value = member.node.rpc("priv_call", text(GROUP), {"to": contract, "data": GET}, number)
            return root, int(value, 16), [member.node.rpc("priv_getTransactionReceipt", one) for one in markers]

        def found(member: PrivateClient, *members: PrivateClient) -> list[str]:
            keys = [text(one.enclave_key) for one in members]
            groups = member.node.rpc("privx_findFlexiblePrivacyGroup", keys)
            return [group["privacyGroupId"] for group in groups]

        markers = [send(add_members(a.enclave_key, b.enclave_key)), send(NUMBER_CONTRACT, None)]
        markers.append(send(set_number(47), contract))
        assert state(a, markers[-1]) == state(b, markers[-1])
        assert state(a, markers[-1])[1] == 47
        assert c.node.rpc("priv_getTransactionReceipt", markers[-1]) is None
        assert found(b, a, b) == [text(GROUP)]
        assert found(c, a, b) == []
        # member c is added while it is offline, and then restarted
        c.node.stop()
        markers += [send(LOCK), send(add_members(c.enclave_key)), send(set_number(123), contract)]
        c.node.start()
        assert state(a, markers[-1]) == state(b, markers[-1]) == state(c, markers[-1])
        assert state(c, markers[2])[1] == 47, "also what was before its time"
        assert found(c, a, b, c) == [text(GROUP)]
        # the new member c sends a transaction
        marker = c.send(set_number(124), to=contract, group=GROUP)
        assert c.receipt(marker)["status"] == "0x1"
        markers.append(marker)
        assert state(a, marker) == state(b, marker) == state(c, marker)
        # member b is removed, so it sees its removal and no later transaction
        markers.append(send(remove_member(b.enclave_key)))
        assert state(a, markers[-1]) == state(b, markers[-1]) == state(c, markers[-1])
        last = send(set_number(125), contract)
        assert state(a, last)[:2] == state(c, last)[:2]
        wait_for(lambda: b.node.rpc("eth_getTransactionReceipt", last) is not None, LIMIT_S, "the block at B")
        assert b.node.rpc("priv_getTransactionReceipt", last) is None
        assert found(a, a, c) == found(c, a, c) == [text(GROUP)]
        # member b is added again and gets the transactions that it missed
        markers += [last, send(LOCK), send(add_members(b.enclave_key)), send(set_number(126), contract)]
        assert state(a, markers[-1]) == state(b, markers[-1]) == state(c, markers[-1])
        assert state(b, markers[-1])[1] == 126
        # member b is removed again
        send(remove_member(b.enclave_key))
        state(c, send(set_number(127), contract))
        # all private states are deleted and rebuilt from the payloads
        roots = [node.rpc("priv_debugGetStateRoot", text(GROUP), "latest") for node in network.nodes]
        assert roots[0] == roots[2] != roots[1]
        c.node.stop()
        store = open_store(c.node.data_path / "database")
        PrivateLedger(store).clear()
        store.close()
        c.node.start()
        assert c.node.rpc("priv_debugGetStateRoot", text(GROUP), "latest") == roots[0]
