"""A dry run predicts the exact effect of a change."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from random import Random

import pytest
from msgspec.structs import replace

from ophion.errors import RulesError
from ophion.permissions.contract_abi import named_node, packed_node
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, ACCOUNT_RULES, NODE_INGRESS, NODE_RULES
from ophion.permissions.dry_run import Change, DryRun, PeerConnection, dry_run, reachable
from ophion.permissions.node_rules import Action
from ophion.permissions.options import PermissionConfig
from ophion.permissions.permissions import Permissions
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address
from ophion.testing.node_core import DEV_CONFIG, TestCore, open_core
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import DEV_KEYS, legacy_transaction

ADMIN = DEV_KEYS[0]
NODES = [Enode(bytes([number]) * 64, f"10.0.0.{number}", 30303, 30303) for number in range(1, 13)]
ACCOUNTS = [bytes([number]) * 20 for number in range(1, 13)]
OWN = NODES[0]
CONTRACT_CHANGES = 200
"""Number of changes for each interface version of the contracts. The test makes a thousand more for lists."""


def some(random: Random, items: list[Enode] | list[Address], most: int) -> list[Enode] | list[Address]:
    return random.sample(items, random.randint(0, most))  # type: ignore[arg-type]


def texts(items: list[Enode] | list[Address]) -> str:
    """Return an allow-list as TOML text."""
    return json.dumps([item.url if isinstance(item, Enode) else f"0x{item.hex()}" for item in items])


def connection(enode: Enode, random: Random) -> PeerConnection:
    return PeerConnection(enode, enode.node_id[:20], random.random() < 0.5)


def may_stay(permissions: Permissions, one: PeerConnection) -> bool:
    action = Action.KEEP_INBOUND if one.is_inbound else Action.KEEP_OUTBOUND
    return permissions.node_rules.refusal_of(one.enode, action) is None


def make(permissions: Permissions, change: Change) -> str | None:
    """Apply a change to the lists. Returns its refusal, if any."""
    try:
        if change.add_accounts:
            permissions.accounts.add(change.add_accounts)
        if change.remove_accounts:
            permissions.accounts.remove(change.remove_accounts)
        if change.remove_nodes:
            permissions.remove_nodes(change.remove_nodes)
        if change.add_nodes:
            permissions.nodes.add(change.add_nodes)
    except RulesError as error:
        return error.message
    return None


def test_a_thousand_changes_of_lists(tmp_path: Path) -> None:
    random = Random(7)
    file = tmp_path / "permissions_config.toml"
    config = PermissionConfig(accounts_file_enabled=True, nodes_file_enabled=True)
    closed = refused = shut_out = 0
    with open_core(tmp_path / "chain") as core:
        head, state = core.chain.head, core.queries.head_state
        for _ in range(100):
            nodes, accounts = some(random, NODES[1:], 11), some(random, ACCOUNTS, 12)
            file.write_text(f"accounts-whitelist={texts(accounts)}\nnodes-whitelist={texts(nodes)}")
            fixed = [enode for enode in nodes[:2] if isinstance(enode, Enode)]
            permissions = Permissions.open(config, tmp_path, OWN.node_id, fixed)
            for _ in range(10):
                kind = random.randrange(4)
                change = Change(
                    *[
                        some(random, ACCOUNTS if place < 2 else NODES[1:], 3) if place == kind else []
                        for place in range(4)
                    ]  # type: ignore[arg-type]
                )
                connections = [
                    connection(one, random) for one in NODES[1:] if may_stay(permissions, connection(one, random))
                ]
                senders = [one for one in ACCOUNTS if permissions.account_refusal(one) is None]
                prediction = dry_run(permissions, change, connections, ACCOUNTS, head, state)
                problem = make(permissions, change)
                happened = DryRun(
                    problem,
                    tuple(one for one in connections if not may_stay(permissions, one)),
                    tuple(one for one in senders if permissions.account_refusal(one) is not None),
                )
                assert prediction == happened, change
                # the dry run also predicts which validators stay reachable
                members = [one.node_id[:20] for one in NODES[:7]]
                staying = [one.address for one in connections if one not in prediction.closed]
                left = [one.address for one in connections if may_stay(permissions, one)]
                own = OWN.node_id[:20]
                assert reachable(members, own, staying) == reachable(members, own, left)
                closed += len(happened.closed)
                shut_out += len(happened.shut_out)
                refused += problem is not None
    assert min(closed, shut_out, refused) > 50, "the changes were worth a dry run"


@pytest.mark.parametrize("version", [1, 2])
def test_changes_of_contracts(tmp_path: Path, version: int) -> None:
    random = Random(11 + version)
    rules = PermissionConfig(
        accounts_contract_enabled=True,
        accounts_contract=ACCOUNT_INGRESS,
        nodes_contract_enabled=True,
        nodes_contract=NODE_INGRESS,
        nodes_contract_version=version,
    )
    genesis = permissioned_genesis([ADMIN.address], ACCOUNTS[:6], NODES[:6], version=version)

    def about(verb: str, one: Enode | Address) -> tuple[Address, bytes]:
        """Return contract and call data of a change."""
        if isinstance(one, bytes):
            return ACCOUNT_RULES, calldata(f"{verb}Account(address)", one)
        if version == 2:
            return NODE_RULES, calldata(f"{verb}Enode(string,string,uint16)") + named_node(one)
        return NODE_RULES, calldata(f"{verb}Enode(bytes32,bytes32,bytes16,uint16)") + packed_node(one)

    async def story(core: TestCore) -> None:
        permissions = core.core.permissions
        permissions.node_rules.local = OWN
        contract = permissions.account_contract
        assert contract is not None
        nonce = 0
        for _ in range(CONTRACT_CHANGES):
            # the change may also remove this node, which then has no connections
            changed = random.sample([*NODES, *ACCOUNTS], random.randint(1, 4))
            verbs = {one: random.choice(["add", "remove"]) for one in changed}
            change = Change(
                *(
                    [one for one in changed if verbs[one] == verb and isinstance(one, kind)]
                    for kind in (bytes, Enode)
                    for verb in ("add", "remove")
                )
            )
            head, state = core.chain.head, core.queries.head_state
            connections = [connection(one, random) for one in NODES[1:]]
            connections = [one for one in connections if may_stay(permissions, one)]
            senders = [one for one in ACCOUNTS if contract.refusal(head, state, one) is None]
            prediction = dry_run(permissions, change, connections, ACCOUNTS, head, state)
            sent = []
            for one in changed:
                to, call = about(verbs[one], one)
                sent.append(legacy_transaction(ADMIN, nonce, to=to, data=call, gas=1_000_000))
                nonce += 1
            await core.mine(*sent)
            head, state = core.chain.head, core.queries.head_state
            assert prediction == DryRun(
                None,
                tuple(one for one in connections if not may_stay(permissions, one)),
                tuple(one for one in senders if contract.refusal(head, state, one) is not None),
            ), (change, prediction)

    with open_core(tmp_path, replace(DEV_CONFIG, permissions=rules), genesis) as core:
        asyncio.run(story(core))


def test_members_within_reach() -> None:
    a, b, c, d = ACCOUNTS[:4]
    assert reachable([a, b, c], a, [b, d]) == 2
    assert reachable([a, b, c], d, []) == 0
    assert reachable([], d, [a]) == 0
