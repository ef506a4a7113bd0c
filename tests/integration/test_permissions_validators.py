"""Tests four validators that permit only each other, by files or by a contract, and a fifth node that tries to join."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path

import pytest

from ophion.permissions.contract_genesis import NODE_INGRESS, node_contracts
from ophion.primitives.enode import Enode
from ophion.testing import network as networks
from ophion.testing.node_process import NodeProcess
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS
from ophion.testing.wait_for import wait_for
from tests.integration.command import ophion
from tests.integration.test_permissions_nodes import peers

ADMIN = DEV_KEYS[0]
KEYS = [networks.member_key(index) for index in range(5)]
STRANGER = 4


class MethodAccess:
    """Four validators and a node without permission. The nodes find each other by discovery."""

    def __init__(self, folder: Path, by_contract: bool) -> None:
        self.folder = folder
        self.by_contract = by_contract
        self.ports = free_ports(len(KEYS))
        self.enodes = [
            f"enode://{key.public_key.hex()}@127.0.0.1:{port}" for key, port in zip(KEYS, self.ports, strict=True)
        ]
        genesis = networks.network_genesis("qbft", [key.address for key in KEYS[:STRANGER]])
        if by_contract:
            permitted = [Enode.parse(url) for url in self.enodes[:STRANGER]]
            for address, account in node_contracts([ADMIN.address], permitted).items():
                genesis["alloc"][address.hex()] = account
        (folder / "genesis.json").write_text(json.dumps(genesis))
        (folder / "admin.key").write_text(ADMIN.secret().hex())
        self.nodes = [self._node(index) for index in range(len(KEYS))]

    def _node(self, index: int) -> NodeProcess:
        (self.folder / f"{index}.key").write_text(KEYS[index].secret().hex())
        return NodeProcess(
            self.folder / f"node{index}",
            f"--genesis-file={self.folder}/genesis.json",
            f"--node-private-key-file={self.folder}/{index}.key",
            "--p2p-interface=127.0.0.1",
            f"--p2p-port={self.ports[index]}",
            f"--bootnodes={self.enodes[0] if index else ''}",
            "--remote-connections-limit-enabled=false",
            "--min-gas-price=0",
            "--rpc-http-api=ADMIN,NET,ETH,PERM,DEBUG",
            *(() if index == STRANGER else self._rules(index)),
        )

    def _rules(self, index: int) -> tuple[str, ...]:
        if self.by_contract:
            address = f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}"
            return ("--permissions-nodes-contract-enabled", address)
        file = self.folder / f"{index}.toml"
        file.write_text(f"nodes-whitelist={json.dumps(self.enodes[:STRANGER])}")
        return ("--permissions-nodes-config-file-enabled", f"--permissions-nodes-config-file={file}")

    def change(self, verb: str) -> int | None:
        """Permit the fifth node, or remove it. With a contract this takes one command, otherwise one call to each node.

        Returns the block of the change, or None for lists.
        """
        url = self.enodes[STRANGER]
        if self.by_contract:
            rpc = f"--rpc=http://127.0.0.1:{self.nodes[1].ports['json-rpc']}"
            done = ophion("permissions", verb, url, rpc, f"--key-file={self.folder}/admin.key").succeeded()
            found = re.search(r"permitted from block (\d+) on", done.out)
            assert found is not None
            return int(found[1])
        method = "perm_addNodesToWhitelist" if verb == "add" else "perm_removeNodesFromWhitelist"
        for node in self.nodes[:STRANGER]:
            assert node.rpc(method, [url]) == "Success"
        return None

    def farewells(self, index: int) -> list[str]:
        """Return a node's log lines about ended connections to the fifth node."""
        id = KEYS[STRANGER].public_key.hex()
        lines = self.nodes[index].output().splitlines()
        return [line for line in lines if "peer no longer permitted" in line and id in line]

    def knows(self, index: int) -> set[int]:
        """Return which of the five nodes a node is connected to."""
        ids = {"0x" + key.public_key.hex(): number for number, key in enumerate(KEYS)}
        return {ids[one] for one in peers(self.nodes[index])}

    def height(self, index: int) -> int:
        return self.nodes[index].height

    def are_complete(self) -> bool:
        everybody = set(range(STRANGER))
        return all(self.knows(index) - {STRANGER} == everybody - {index} for index in range(STRANGER))


@pytest.mark.parametrize("by_contract", [False, True], ids=["file", "contract"])
def test_a_fifth_node_is_refused_let_in_and_closed_while_validators_keep_each_other(
    tmp_path: Path, by_contract: bool
) -> None:
    network = MethodAccess(tmp_path, by_contract)
    unlisted = network.nodes[STRANGER]
    with ExitStack() as running:
        for node in network.nodes:
            running.enter_context(node)
        wait_for(network.are_complete)
        wait_for(lambda: network.height(0) >= 2)
        unlisted.rpc("admin_addPeer", network.enodes[1])
        wait_for(lambda: "peer refused" in network.nodes[1].output())
        assert all(STRANGER not in network.knows(index) for index in range(STRANGER)), "refused on TCP"
        wait_for(lambda: network.knows(STRANGER) == set())  # a refused peer counts as connected for a moment, so wait
        found = unlisted.rpc("debug_metrics")["network"]
        assert sum(found["discovery_messages_outbound_total"].values()) > 0
        assert found["discovery_nodes_current"] == 0, "refused in discovery: nobody answers it"
        network.change("add")
        unlisted.rpc("admin_removePeer", network.enodes[1])
        unlisted.rpc("admin_addPeer", network.enodes[1])
        wait_for(lambda: 1 in network.knows(STRANGER))
        goal = network.height(0) + 1
        wait_for(lambda: network.height(STRANGER) >= goal)
        # a validator stays permitted after a kill and a restart, before and after it has synchronised
        network.nodes[3].kill()
        network.nodes[3].start()
        wait_for(network.are_complete)
        connected = [index for index in range(STRANGER) if STRANGER in network.knows(index)]
        assert connected
        block = network.change("remove")
        if block is None:
            assert all(network.farewells(index) for index in connected), "at once: before the change was answered"
        wait_for(lambda: all(STRANGER not in network.knows(index) for index in range(STRANGER)))
        for index in connected:
            asked_at = [
                int(number) for line in network.farewells(index) for number in re.findall(r"at block (\d+)", line)
            ]
            assert asked_at == ([] if block is None else [block]), "closed by the block of the change itself"
        goal = network.height(0) + 2
        wait_for(lambda: min(network.height(index) for index in range(STRANGER)) >= goal)
        assert network.are_complete()
        for node in network.nodes[:STRANGER]:
            lines = node.output().splitlines()
            refusals = [line for line in lines if "peer refused" in line or "no longer permitted" in line]
            assert all(KEYS[STRANGER].public_key.hex() in line for line in refusals), "validators never lost each other"
