"""Tests changes by transactions to permission contracts, in both interface versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.events import ChainBlock
from ophion.permissions.contract_abi import RULES, named_node, packed_node
from ophion.permissions.contract_changes import ContractChanges, in_bloom
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, ADMINISTRATION, NODE_INGRESS, NODE_RULES
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ADMIN, OTHER = DEV_KEYS[:2]
NODE, SIX = Enode(b"\1" * 64, "10.0.0.1", 30303, 30303), Enode(b"\2" * 64, "2001:db8::1", 7, 7)
PACKED, NAMED = "Enode(bytes32,bytes32,bytes16,uint16)", "Enode(string,string,uint16)"


def changes_of(path: Path, version: int, *calls: tuple[Address, bytes]) -> list[list[dict[str, Any]]]:
    """Make one block for each call, and return the rule changes that these blocks contain."""

    async def story(core: TestCore) -> list[list[dict[str, Any]]]:
        changes = ContractChanges(core.chain, {"nodes": NODE_INGRESS})
        found = []
        for nonce, (to, data) in enumerate(calls):
            header, _ = await core.mine(legacy_transaction(ADMIN, nonce, to=to, data=data, gas=1_000_000))
            body = core.chain.store.body(header.hash)
            assert body is not None
            block = ChainBlock(header, body)
            records = changes.of(block)
            assert changes.may_be_in(block) >= bool(records)
            found.append(records)
        return found

    genesis = permissioned_genesis([ADMIN.address], None, [NODE], version=version)
    with open_core(path, replace(DEV_CONFIG), genesis) as core:
        return asyncio.run(story(core))


@pytest.mark.parametrize(("version", "method", "encode"), [(1, PACKED, packed_node), (2, NAMED, named_node)])
def test_nodes_of_either_interface(tmp_path: Path, version: int, method: str, encode: Callable[[Enode], bytes]) -> None:
    found = changes_of(
        tmp_path,
        version,
        (NODE_RULES, calldata(f"add{method}") + encode(SIX)),
        (NODE_RULES, calldata(f"add{method}") + encode(SIX)),
        (NODE_RULES, calldata(f"remove{method}") + encode(NODE)),
    )
    assert [len(records) for records in found] == [1, 0, 1]
    (added,), _, (removed,) = found
    assert (added["added"], added["removed"], added["before"], added["after"]) == ([SIX.url], [], 1, 2)
    assert (removed["added"], removed["removed"], removed["before"], removed["after"]) == ([], [NODE.url], 2, 1)
    assert {added["by"], removed["by"]} == {f"0x{ADMIN.address.hex()}"}
    assert (added["rules"], added["contract"], added["block"]) == ("nodes", f"0x{NODE_INGRESS.hex()}", 1)


def test_administrators_and_other_rules(tmp_path: Path) -> None:
    found = changes_of(
        tmp_path,
        1,
        (ADMINISTRATION, calldata("addAdmin(address)", OTHER.address)),
        (NODE_INGRESS, calldata("setContractAddress(bytes32,address)", RULES, OTHER.address)),
        (ADMINISTRATION, calldata("removeAdmin(address)", OTHER.address)),
    )
    (more,), (other,), (less,) = found
    account = f"0x{OTHER.address.hex()}"
    assert (more["rules"], more["added"], more["before"], more["after"]) == ("admins", [account], 1, 2)
    assert (less["rules"], less["removed"], less["before"], less["after"]) == ("admins", [account], 2, 1)
    assert other["registered"] == {"rules": account}
    assert (other["rules"], other["before"], other["after"]) == ("nodes", 1, None), "these rules tell no size"


def test_bloom() -> None:
    assert not in_bloom(bytes(256), ACCOUNT_INGRESS)
    assert in_bloom(b"\xff" * 256, ACCOUNT_INGRESS)
