"""Tests node rules in contracts: every case of operations.md 11 about connections."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import Genesis
from ophion.errors import ConfigError
from ophion.native.crypto import keccak256
from ophion.node.config import NodeConfig
from ophion.permissions.contract_abi import packed_ip
from ophion.permissions.contract_genesis import ADMINISTRATION, NODE_INGRESS, NODE_RULES, RULES, code
from ophion.permissions.node_contract import NodeContract
from ophion.permissions.node_rules import Action, NodeRules
from ophion.permissions.options import PermissionConfig
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ADMIN = DEV_KEYS[0]
OWN, A, B, BOOT = (Enode(bytes([number]) * 64, f"10.0.0.{number}", 30303, 30303) for number in (1, 2, 3, 4))
LINKED = [action for action in Action if "neighbours" not in action.value]
NEIGHBOURS = [action for action in Action if "neighbours" in action.value]


def ruled(contract: bytes = NODE_INGRESS, **more: Any) -> NodeConfig:
    rules = PermissionConfig(nodes_contract_enabled=True, nodes_contract=contract, **more)
    return replace(DEV_CONFIG, permissions=rules)


def genesis(nodes: Sequence[Enode] = (OWN, A), fork: str = "osaka") -> Genesis:
    return permissioned_genesis([ADMIN.address], nodes=nodes, fork=fork)


def play(
    path: Path,
    story: Callable[[TestCore, NodeRules], Coroutine[Any, Any, None]],
    config: NodeConfig | None = None,
    network: Genesis | None = None,
) -> None:
    with open_core(path, config or ruled(), network or genesis()) as core:
        rules = core.core.permissions.node_rules
        rules.local = OWN
        asyncio.run(story(core, rules))


def change(nonce: int, call: bytes, to: bytes | None = NODE_RULES) -> bytes:
    return legacy_transaction(ADMIN, nonce, to=to, data=call, gas=3_000_000)


def about(method: str, enode: Enode) -> bytes:
    high, low, ip = enode.node_id[:32], enode.node_id[32:], packed_ip(enode.ip).ljust(32, b"\0")
    return calldata(f"{method}(bytes32,bytes32,bytes16,uint16)", high, low, ip, enode.tcp_port)


@pytest.mark.parametrize("fork", ["petersburg", "osaka"])
def test_both_ends_must_be_permitted_for_every_action(tmp_path: Path, fork: str) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        for action in Action:
            assert rules.refusal_of(A, action) is None
            refusal = rules.refusal_of(B, action)
            assert refusal is not None
            assert refusal.endswith(f"contract 0x{NODE_INGRESS.hex()} at block 0 says no")
            assert B.url in refusal

    play(tmp_path, story, network=genesis(fork=fork))


def test_a_node_is_let_in_and_put_out_by_the_administrator(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        refusals: list[str | None] = []
        rules.changed.listen(lambda _: refusals.append(rules.refusal_of(B, Action.KEEP_INBOUND)))
        await core.mine(change(0, about("addEnode", B)))
        await asyncio.sleep(0)
        assert refusals == [None], "every new block re-evaluates existing connections"
        await core.mine(change(1, about("removeEnode", B)))
        await asyncio.sleep(0)
        assert refusals[1] is not None
        assert rules.refusal_of(A, Action.DIAL) is None

    play(tmp_path, story)


def test_node_contract_absent_fails_startup_validation(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        raise AssertionError("not started")

    with pytest.raises(ConfigError, match="Error validating onchain node permissioning smart contract configuration"):
        play(tmp_path, story, ruled(b"\x55" * 20))


def test_a_contract_that_does_not_answer_fails_startup_validation(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        raise AssertionError("not started")

    with pytest.raises(ConfigError, match="Error validating onchain node permissioning smart contract configuration"):
        play(tmp_path, story, ruled(ADMINISTRATION))


def test_node_ingress_without_rules_registered_denies(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        await core.mine(change(0, calldata("removeContract(bytes32)", RULES), NODE_INGRESS))
        assert rules.refusal_of(A, Action.DIAL) is not None

    play(tmp_path, story)


def test_result_of_wrong_form_is_not_permitted(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        # the new address is not a rules contract, so the call reverts and the ingress contract forwards the revert
        await core.mine(change(0, calldata("setContractAddress(bytes32,address)", RULES, ADMINISTRATION), NODE_INGRESS))
        refusal = rules.refusal_of(A, Action.DIAL)
        assert refusal is not None
        assert "reverted" in refusal

    play(tmp_path, story)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("6001600052602060 00f3", "neither yes nor no"),
        ("60ff600052604060 00f3", "64 bytes instead of 32"),
        ("00", "0 bytes instead of 32"),
        ("60006000fd", "reverted: without a reason"),
        ("fe", "did not answer"),
    ],
)
def test_result_of_wrong_size_or_form_or_a_revert_is_not_permitted(tmp_path: Path, code: str, reason: str) -> None:
    made = keccak256(rlp.encode([ADMIN.address, b""]))[12:]
    code = code.replace(" ", "")
    create = bytes.fromhex(f"60{len(code) // 2:02x}80600b6000396000f3{code}")

    async def story(core: TestCore, rules: NodeRules) -> None:
        await core.mine(change(0, create, None))
        assert rules.contract is not None
        asked = NodeContract(core.chain, made, 1)
        refusal = asked.refusal(OWN, A)
        assert refusal is not None
        assert reason in refusal

    play(tmp_path, story)


def test_node_still_syncing_with_bootnodes_configured(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        rules._bootnodes = frozenset({BOOT.node_id})
        rules.is_in_sync = lambda: False
        for action in LINKED:
            assert rules.refusal_of(BOOT, action) is None
            assert rules.refusal_of(A, action) == "only bootnodes are permitted before this node has caught up"
        for action in NEIGHBOURS:
            assert rules.refusal_of(BOOT, action) is not None
        asked = rules.sync_verdicts
        assert (asked.permitted, asked.refused) == (len(LINKED), len(LINKED) + len(NEIGHBOURS))
        rules.is_in_sync = lambda: True
        assert rules.contract is not None
        assert rules.contract.verdicts.asked == 0
        assert rules.refusal_of(A, Action.DIAL) is None
        assert asked.permitted == len(LINKED) + 1
        assert rules.contract.verdicts.permitted == 1

    play(tmp_path, story)


def test_zero_non_bootnode_peers(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        rules._bootnodes = frozenset({BOOT.node_id})
        rules.peer_ids = lambda: [BOOT.node_id]
        assert rules.refusal_of(BOOT, Action.DIAL) is None, "bootnodes and self, whatever the contract says"
        assert rules.refusal_of(B, Action.DIAL) is not None
        rules.peer_ids = lambda: [BOOT.node_id, A.node_id]
        assert rules.refusal_of(BOOT, Action.DIAL) is not None

    play(tmp_path, story)


def test_local_and_on_chain_rules_combine_with_and(tmp_path: Path) -> None:
    file = tmp_path / "rules.toml"
    file.write_text(f'nodes-whitelist=["{B.url}"]')

    async def story(core: TestCore, rules: NodeRules) -> None:
        refusals = [rules.refusal_of(enode, Action.DIAL) for enode in (A, B)]
        assert refusals[0] is not None
        assert refusals[1] is not None
        assert str(file) in refusals[0]
        assert "contract" in refusals[1]
        await core.mine(change(0, about("addEnode", B)))
        assert rules.refusal_of(B, Action.DIAL) is None

    play(tmp_path, story, ruled(nodes_file_enabled=True, nodes_file=file))


def test_many_inbound_connections_do_not_cause_many_calls(tmp_path: Path) -> None:
    async def story(core: TestCore, rules: NodeRules) -> None:
        assert rules.contract is not None
        before = rules.contract.asked
        for _ in range(1000):
            rules.refusal_of(B, Action.ACCEPT)
        assert rules.contract.asked == before + 1

    play(tmp_path, story)


def test_a_revert_with_a_huge_reason_is_reported_in_one_line(tmp_path: Path) -> None:
    # the code reverts with an Error(string) of a million bytes: "no", a line feed, and zeros
    code = "6308c379a060e01b600052" + "6020600452" + "620f4240602452" + "626e6f0a60e81b604452" + "620f42846000fd"
    made = keccak256(rlp.encode([ADMIN.address, b""]))[12:]
    create = bytes.fromhex(f"60{len(code) // 2:02x}80600b6000396000f3{code}")

    async def story(core: TestCore, rules: NodeRules) -> None:
        await core.mine(change(0, create, None))
        refusal = NodeContract(core.chain, made, 1).refusal(OWN, A)
        assert refusal is not None
        assert refusal.endswith("at block 1 reverted: no")

    play(tmp_path, story)


def test_a_contract_that_burns_its_gas_is_run_once_per_block(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # this contract returns true before block 3, and loops from block 3 on
    burning = "43600311600b575b6007565b60001960005260206000f3"
    made = keccak256(rlp.encode([ADMIN.address, b""]))[12:]
    create = bytes.fromhex(f"60{len(burning) // 2:02x}80600b6000396000f3{burning}")

    async def story(core: TestCore, rules: NodeRules) -> None:
        await core.mine(change(0, create, None))
        asked = NodeContract(core.chain, made, 1)
        assert asked.refusal(OWN, A) is None
        assert asked.refusal(OWN, B) is None
        assert asked.asked == 2
        await core.seal()
        await core.seal()
        for number in range(10):
            refusal = asked.refusal(OWN, Enode(bytes([9]) * 64, "10.0.0.9", 1 + number, 0))
            assert refusal is not None
            assert "10.0.0.9" in refusal
            assert refusal.endswith("at block 3 did not answer: out of gas")
        assert asked.asked == 3
        await core.seal()
        assert "at block 4" in (asked.refusal(OWN, A) or "")
        assert asked.asked == 4
        assert caplog.text.count("node rules contract does not answer") == 1

    play(tmp_path, story)


def test_the_second_interface_is_asked_about_each_end(tmp_path: Path) -> None:
    creation = code("NodeRulesByName", "creation") + NODE_INGRESS.rjust(32, b"\0")
    made = keccak256(rlp.encode([ADMIN.address, b""]))[12:]

    def named(method: str, enode: Enode) -> bytes:
        node_id, host = enode.node_id.hex().encode(), enode.ip.encode()
        words = [96, 96 + 32 + 128, enode.tcp_port, 128, *(node_id[at : at + 32] for at in range(0, 128, 32))]
        return calldata(f"{method}(string,string,uint16)", *words, len(host), host.ljust(32, b"\0"))

    async def deploy(core: TestCore) -> None:
        await core.mine(change(0, creation, None))
        await core.mine(change(1, calldata("setContractAddress(bytes32,address)", RULES, made), NODE_INGRESS))

    async def story(core: TestCore, rules: NodeRules) -> None:
        refusal = rules.refusal_of(A, Action.DIAL)
        assert refusal is not None
        assert refusal.startswith(f"node {OWN.url} may not connect: contract")
        await core.mine(change(2, named("addEnode", OWN), made), change(3, named("addEnode", A), made))
        assert rules.refusal_of(A, Action.DIAL) is None
        assert rules.refusal_of(B, Action.DIAL) is not None
        await core.mine(change(4, named("removeEnode", OWN), made))
        assert rules.refusal_of(A, Action.DIAL) is not None

    with open_core(tmp_path, genesis=genesis()) as core:
        asyncio.run(deploy(core))
    del core
    gc.collect()  # free the states of the first run, because they would keep the database open
    play(tmp_path, story, ruled(nodes_contract_version=2))


def test_the_second_interface_may_list_host_names(tmp_path: Path) -> None:
    """The contract is asked about the address first, then about its host names, as in Besu."""
    named = Enode(A.node_id, "", 30303, 30303, "a.nodes")
    own = Enode(OWN.node_id, "", 30303, 30303, "own.nodes")
    network = permissioned_genesis([ADMIN.address], nodes=(own, named, B), version=2)
    names = {OWN.ip: ["own.nodes"]}

    async def story(core: TestCore, rules: NodeRules) -> None:
        contract = rules.contract
        assert contract is not None
        refusal = rules.refusal_of(B, Action.DIAL)
        assert refusal is not None
        assert refusal.startswith(f"node {OWN.url} may not connect")
        contract.names_at = lambda address: names.get(address, ())
        assert rules.refusal_of(B, Action.DIAL) is None
        # a static node has its name, other nodes have the names of their addresses
        assert rules.refusal_of(named.at(A.ip), Action.DIAL) is None
        assert rules.refusal_of(A, Action.ACCEPT) is not None
        names[A.ip] = ["other.nodes", "a.nodes"]
        assert rules.refusal_of(A, Action.ACCEPT) is None
        # another node at the same address has another id
        assert rules.refusal_of(Enode(BOOT.node_id, A.ip, 30303, 30303), Action.ACCEPT) is not None
        assert rules.refusal_of(Enode(A.node_id, A.ip, 30304, 30304), Action.ACCEPT) is not None

    play(tmp_path, story, ruled(nodes_contract_version=2), network)
