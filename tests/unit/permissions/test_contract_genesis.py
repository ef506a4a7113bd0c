"""Contracts in a genesis equal deployed contracts, and their code is compiled from the sources."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ophion.native.crypto import keccak256
from ophion.permissions.contract_abi import ADMIN, RULES, named_node, packed_ip
from ophion.permissions.contract_genesis import (
    ACCOUNT_INGRESS,
    ACCOUNT_RULES,
    ADMINISTRATION,
    NODE_INGRESS,
    NODE_RULES,
    account_contracts,
    code,
    node_contracts,
)
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.permissioned_network import calldata
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.conftest import ROOT

KEY, SECOND = DEV_KEYS[:2]
NODES = [Enode(bytes([number]) * 64, f"10.0.0.{number}", 30300 + number, 0) for number in (1, 2)]


def created(nonce: int) -> bytes:
    return keccak256(rlp.encode([KEY.address, rlp.scalar(nonce)]))[12:]


def storage_of(core: TestCore, address: bytes) -> dict[str, str]:
    state = core.chain.store.state(core.chain.head.header.state_root)
    found, more = state.storage_range(address, bytes(32), 1000)
    assert more is None
    return {f"0x{(slot or b'').hex()}": f"0x{int.from_bytes(value, 'big'):064x}" for _, slot, value in found}


def renamed(storage: dict[str, str], names: dict[bytes, bytes]) -> dict[str, str]:
    """Return storage in which other addresses replace some addresses."""
    text = json.dumps(storage)
    for old, new in names.items():
        text = text.replace(old.hex(), new.hex())
    return dict(json.loads(text))


def add_node(enode: Enode) -> bytes:
    high, low, ip = enode.node_id[:32], enode.node_id[32:], packed_ip(enode.ip).ljust(32, b"\0")
    return calldata("addEnode(bytes32,bytes32,bytes16,uint16)", high, low, ip, enode.tcp_port)


def test_storage_is_that_of_deployed_contracts(tmp_path: Path) -> None:
    admin, accounts, account_rules, nodes, node_rules = (created(nonce) for nonce in range(5))
    register = "setContractAddress(bytes32,address)"
    steps: list[tuple[bytes | None, bytes]] = [
        (None, code("Administration", "creation")),
        (None, code("AccountIngress", "creation")),
        (None, code("AccountRules", "creation") + accounts.rjust(32, b"\0")),
        (None, code("NodeIngress", "creation")),
        (None, code("NodeRules", "creation") + nodes.rjust(32, b"\0")),
        (accounts, calldata(register, RULES, account_rules)),
        (accounts, calldata(register, ADMIN, admin)),
        (nodes, calldata(register, RULES, node_rules)),
        (nodes, calldata(register, ADMIN, admin)),
        (account_rules, calldata("addAccount(address)", SECOND.address)),
        *((node_rules, add_node(enode)) for enode in NODES),
    ]

    async def story(core: TestCore) -> None:
        for nonce, (to, data) in enumerate(steps):
            await core.mine(legacy_transaction(KEY, nonce, to=to, data=data, gas=3_000_000))

    names = {
        admin: ADMINISTRATION,
        accounts: ACCOUNT_INGRESS,
        account_rules: ACCOUNT_RULES,
        nodes: NODE_INGRESS,
        node_rules: NODE_RULES,
    }
    expected = account_contracts([KEY.address], [SECOND.address]) | node_contracts([KEY.address], NODES)
    with open_core(tmp_path) as core:
        asyncio.run(story(core))
        state = core.chain.store.state(core.chain.head.header.state_root)
        for made, fixed in names.items():
            assert f"0x{state.code(made).hex()}" == expected[fixed]["code"]
            assert renamed(storage_of(core, made), names) == expected[fixed]["storage"], fixed.hex()


def test_nodes_by_name_lie_where_deploying_would_put_them(tmp_path: Path) -> None:
    nodes, rules = created(0), created(1)
    # the IPv6 address as text is longer than 32 bytes
    named = [*NODES, Enode(b"\7" * 64, "2001:db8:1111:2222:3333:4444:5555:6666", 7, 7)]
    steps: list[tuple[bytes | None, bytes]] = [
        (None, code("NodeIngress", "creation")),
        (None, code("NodeRulesByName", "creation") + nodes.rjust(32, b"\0")),
        (nodes, calldata("setContractAddress(bytes32,address)", RULES, rules)),
        *((rules, calldata("addEnode(string,string,uint16)") + named_node(enode)) for enode in named),
    ]

    async def story(core: TestCore) -> None:
        for nonce, (to, data) in enumerate(steps):
            await core.mine(legacy_transaction(KEY, nonce, to=to, data=data, gas=3_000_000))

    expected = node_contracts([KEY.address], named, version=2)
    with open_core(tmp_path) as core:
        asyncio.run(story(core))
        state = core.chain.store.state(core.chain.head.header.state_root)
        assert f"0x{state.code(rules).hex()}" == expected[NODE_RULES]["code"]
        assert renamed(storage_of(core, rules), {nodes: NODE_INGRESS}) == expected[NODE_RULES]["storage"]


def test_customary_slots_of_the_ingress() -> None:
    for contracts, ingress in ((account_contracts([], []), ACCOUNT_INGRESS), (node_contracts([], []), NODE_INGRESS)):
        storage = contracts[ingress]["storage"]
        assert ingress.hex().lstrip("0") in ("8888", "9999")
        assert storage[f"0x{0:064x}"] == "0x" + b"rules".hex().ljust(64, "0")
        assert storage[f"0x{1:064x}"] == "0x" + b"administration".hex().ljust(64, "0")
        assert storage[f"0x{4:064x}"] == f"0x{0x0F4240:064x}"


@pytest.mark.parametrize(
    ("name", "signatures"),
    [
        ("Administration", ["addAdmin(address)", "removeAdmin(address)", "isAuthorized(address)", "getAdmins()"]),
        (
            "AccountRules",
            ["addAccount(address)", "removeAccount(address)", "getByIndex(uint256)", "getSize()", "enterReadOnly()"],
        ),
        (
            "NodeRules",
            [
                "addEnode(bytes32,bytes32,bytes16,uint16)",
                "removeEnode(bytes32,bytes32,bytes16,uint16)",
                "getByIndex(uint256)",
                "getSize()",
                "exitReadOnly()",
            ],
        ),
    ],
)
def test_customary_functions_are_there(name: str, signatures: list[str]) -> None:
    for signature in signatures:
        assert keccak256(signature.encode())[:4] in code(name), signature


def test_no_instruction_is_newer_than_the_oldest_network() -> None:
    compile_script = (ROOT / "scripts" / "compile-contracts.js").read_text()
    assert re.search(r'evmVersion: "byzantium"', compile_script)


@pytest.mark.parametrize("folder", ["src/ophion/permissions/contracts", "native/privacy/contracts"])
def test_compiling_the_sources_gives_the_same_bytes(folder: str) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no Node.js here to run the compiler")
    script = ROOT / "scripts" / "compile-contracts.js"
    command = [node, script, "--print", folder]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=dict(os.environ))
    if "Cannot find module 'solc'" in done.stderr:
        pytest.skip("the npm package solc is not installed (NODE_PATH)")
    assert done.returncode == 0, done.stderr
    compiled = (ROOT / folder / "compiled.json").read_text()
    if json.loads(done.stdout)["compiler"] != json.loads(compiled)["compiler"]:
        pytest.skip(f"another version of solc is installed than {json.loads(compiled)['compiler']}")
    assert done.stdout == compiled
