"""Tests perm_explain and txpool_explain."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.permissions.contract_genesis import ACCOUNT_INGRESS, ACCOUNT_RULES, NODE_INGRESS
from ophion.permissions.options import PermissionConfig
from ophion.pool.options import PoolConfig
from ophion.primitives.enode import Enode
from ophion.testing.node_core import DEV_CONFIG
from ophion.testing.permissioned_network import calldata, permissioned_genesis
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.unit.rpc.interface import Interface, open_interface

ADMIN, LISTED, OTHER = DEV_KEYS
OWN = Enode(ADMIN.public_key, "127.0.0.1", 0, 0)
N1, N2 = (Enode(bytes([number]) * 64, "10.0.0.1", 30303, 30303) for number in (1, 2))


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "permissions_config.toml"
    accounts = ",\n".join(f'"{hexed(key.address)}"' for key in DEV_KEYS[:2])
    file.write_text(f'# rules\naccounts-whitelist=[\n{accounts}]\nnodes-whitelist=["{N1.url}"]\n')
    return file


@pytest.fixture
def listed(path: Path) -> Iterator[Interface]:
    config = replace(
        DEV_CONFIG,
        permissions=PermissionConfig(accounts_file_enabled=True, nodes_file_enabled=True),
        pool=PoolConfig(max_size=100),
    )
    with open_interface(path.parent, config=config) as opened:
        yield opened


@pytest.fixture
def ruled(tmp_path: Path) -> Iterator[Interface]:
    genesis = permissioned_genesis([ADMIN.address], [LISTED.address], [OWN, N1])
    rules = PermissionConfig(
        accounts_contract_enabled=True,
        accounts_contract=ACCOUNT_INGRESS,
        nodes_contract_enabled=True,
        nodes_contract=NODE_INGRESS,
    )
    with open_interface(tmp_path, genesis, replace(DEV_CONFIG, permissions=rules)) as opened:
        yield opened


@pytest.fixture
def both(path: Path) -> Iterator[Interface]:
    """A node with lists and contracts."""
    genesis = permissioned_genesis([ADMIN.address], [LISTED.address], [OWN, N1])
    rules = PermissionConfig(
        accounts_file_enabled=True,
        nodes_file_enabled=True,
        accounts_contract_enabled=True,
        accounts_contract=ACCOUNT_INGRESS,
        nodes_contract_enabled=True,
        nodes_contract=NODE_INGRESS,
    )
    config = replace(DEV_CONFIG, permissions=rules, pool=PoolConfig(max_size=100))
    with open_interface(path.parent, genesis, config=config) as opened:
        yield opened


def test_without_rules_everything_is_allowed(dev: Interface) -> None:
    answer = dev.ask("perm_explain", hexed(OTHER.address))
    assert answer == {
        "allowed": True, "block": "0x0", "reason": "there are no rules about this on this node", "rules": [],
    }  # fmt: skip


def test_an_account_by_its_line_in_the_file(listed: Interface, path: Path) -> None:
    answer = listed.ask("perm_explain", hexed(LISTED.address))
    [rule] = answer["rules"]
    assert (answer["allowed"], rule["source"], rule["place"]) == (True, "file", f"{path}:4")
    answer = listed.ask("perm_explain", {"from": hexed(OTHER.address), "to": hexed(bytes(20)), "value": "0x5"})
    assert answer["allowed"] is False
    assert answer["reason"] == f"account {hexed(OTHER.address)} is not listed"
    assert answer["rules"][0]["place"] == str(path)


def test_a_node_and_a_pair_of_nodes(listed: Interface, path: Path) -> None:
    answer = listed.ask("perm_explain", N1.url)
    assert (answer["allowed"], answer["rules"][0]["place"]) == (True, f"{path}:5")
    answer = listed.ask("perm_explain", [N1.url, N2.url])
    assert answer["allowed"] is False
    assert [rule["allowed"] for rule in answer["rules"]] == [True, False]


def test_a_contract_says_since_when(ruled: Interface) -> None:
    def change(nonce: int, method: str) -> bytes:
        call = calldata(f"{method}(address)", OTHER.address)
        return legacy_transaction(ADMIN, nonce, to=ACCOUNT_RULES, data=call, gas=500_000)

    ruled.run(ruled.node.seal())
    ruled.run(ruled.node.mine(change(0, "addAccount")))
    ruled.run(ruled.node.seal())
    answer = ruled.ask("perm_explain", hexed(OTHER.address))
    assert (answer["allowed"], answer["block"]) == (True, "0x3")
    assert answer["rules"] == [
        {
            "source": "contract",
            "place": hexed(ACCOUNT_INGRESS),
            "allowed": True,
            "reason": f"contract {hexed(ACCOUNT_INGRESS)} at block 3 says yes",
            "since": "0x2",
        }
    ]
    before = ruled.ask("perm_explain", hexed(OTHER.address), "0x1")
    assert (before["allowed"], before["rules"][0]["since"]) == (False, "0x0")
    ruled.run(ruled.node.mine(change(1, "removeAccount")))
    assert ruled.ask("perm_explain", hexed(OTHER.address))["rules"][0]["since"] == "0x4"


def test_nodes_by_contract(ruled: Interface) -> None:
    assert ruled.ask("perm_explain", [OWN.url, N1.url])["allowed"] is True
    answer = ruled.ask("perm_explain", [OWN.url, N2.url])
    assert answer["allowed"] is False
    assert f"contract {hexed(NODE_INGRESS)} at block 0 says no" in answer["reason"]


@pytest.mark.parametrize(
    "subject",
    [
        5,
        None,
        [],
        [N1.url],
        {},
        {"to": hexed(bytes(20))},
        "enode://12",
        ["a", "b"],
        {"from": hexed(bytes(20)), "value": 2**256},
    ],
)
def test_other_subjects_are_refused(dev: Interface, subject: Any) -> None:
    assert dev.error("perm_explain", subject)[0] == -32602


def test_a_block_that_is_not_there(dev: Interface) -> None:
    assert dev.error("perm_explain", hexed(bytes(20)), "0x99") == (-32000, "Block not found")


# --- txpool_explain -------------------------------------------------------------------------------


def sent(node: Interface, raw: bytes) -> str:
    [hash] = node.run(node.node.send(raw))
    return hexed(hash)


def test_where_a_transaction_is(dev: Interface) -> None:
    assert dev.ask("txpool_explain", "0x" + "11" * 32)["state"] == "unknown"
    first = sent(dev, legacy_transaction(LISTED, 0))
    behind = sent(dev, legacy_transaction(LISTED, 3))
    assert dev.ask("txpool_explain", first)["state"] == "waiting"
    assert dev.ask("txpool_explain", behind) == {
        "state": "queued", "reason": "it waits for nonce 1 of its sender", "missingNonce": "0x1",
    }  # fmt: skip
    dev.run(dev.node.seal())
    mined = dev.ask("txpool_explain", first)
    assert (mined["state"], mined["blockNumber"]) == ("mined", "0x1")


def test_a_lonely_transaction_beyond_a_gap(dev: Interface) -> None:
    assert dev.ask("txpool_explain", sent(dev, legacy_transaction(LISTED, 2)))["missingNonce"] == "0x0"


def test_a_replaced_transaction(dev: Interface) -> None:
    old = sent(dev, fee_transaction(LISTED, 0))
    sent(dev, fee_transaction(LISTED, 0, max_fee=10**10, tip=10**10))
    answer = dev.ask("txpool_explain", old)
    assert (answer["state"], answer["kind"]) == ("dropped", "replaced")
    assert answer["droppedAt"].endswith("Z")


def test_too_cheap(dev: Interface) -> None:
    hash = sent(dev, legacy_transaction(LISTED, 0, gas_price=10**9))
    dev.ask("miner_setMinGasPrice", hex(2 * 10**9))
    answer = dev.ask("txpool_explain", hash)
    assert answer["state"] == "too-cheap"
    assert answer["reason"] == "its maximum fee is 1000000000 wei per gas; the next block requires 2000000000"


def test_a_sender_that_is_not_permitted(ruled: Interface) -> None:
    hash = sent(ruled, legacy_transaction(OTHER, 0))
    answer = ruled.ask("txpool_explain", hash)
    assert answer["state"] == "not-permitted"
    assert "says no" in answer["reason"]
    ruled.run(ruled.node.seal())
    answer = ruled.ask("txpool_explain", hash)
    assert (answer["state"], answer["kind"]) == ("dropped", "not permitted")
    assert f"account {hexed(OTHER.address)} may not send this transaction" in answer["reason"]


# --- perm_dryRun ----------------------------------------------------------------------------------


def test_a_dry_run_lists_removed_peers_and_changes_nothing(listed: Interface, path: Path) -> None:
    sent(listed, legacy_transaction(LISTED, 0))
    sent(listed, legacy_transaction(LISTED, 1))
    before = path.read_bytes()
    answer = listed.ask("perm_dryRun", {"removeAccounts": [hexed(LISTED.address)], "removeNodes": [N1.url]})
    assert answer == {
        "problem": None,
        "connectionsClosed": [],
        "validators": {"total": 0, "quorum": 0, "reachable": 0, "reachableAfter": 0, "losesQuorum": False},
        "sendersShutOut": {hexed(LISTED.address): 2},
    }
    assert path.read_bytes() == before
    assert hexed(LISTED.address) in listed.ask("perm_getAccountsWhitelist")


def test_a_call_to_a_rules_contract_gets_a_dry_run(ruled: Interface) -> None:
    sent(ruled, legacy_transaction(LISTED, 0))
    call = {"to": hexed(ACCOUNT_RULES), "data": hexed(calldata("removeAccount(address)", LISTED.address))}
    assert ruled.ask("perm_dryRun", call)["sendersShutOut"] == {hexed(LISTED.address): 1}
    call["data"] = hexed(calldata("addAccount(address)", LISTED.address))
    assert ruled.ask("perm_rehearse", call)["sendersShutOut"] == {}, "the earlier name of the method"


def test_calls_to_rules_contracts_get_a_dry_run_together(ruled: Interface) -> None:
    """A dry run simulates the calls of one request together. If several calls concern the same account, the last call
    counts.
    """
    sent(ruled, legacy_transaction(LISTED, 0))
    remove, add = (
        {"to": hexed(ACCOUNT_RULES), "data": hexed(calldata(f"{verb}Account(address)", LISTED.address))}
        for verb in ("remove", "add")
    )
    other = {"data": hexed(calldata("removeAccount(address)", b"\7" * 20))}
    many = {"data": hexed(calldata("addAccounts(address[])", 32, 1, LISTED.address))}
    for calls, is_shut_out in (
        ([remove], True),
        ([other, remove], True),
        ([add, remove, other], True),
        ([remove, add], False),
        ([remove, many], False),
    ):
        assert bool(ruled.ask("perm_dryRun", calls)["sendersShutOut"]) is is_shut_out
    assert ruled.error("perm_dryRun", [remove, {}])[0] == -32602
    assert ruled.error("perm_dryRun", [remove, {"addNodes": []}])[0] == -32602


def test_calls_to_rules_contracts_leave_the_lists_out(both: Interface) -> None:
    """A node may have lists and contracts. A call changes the contracts, whatever the lists say."""
    sent(both, legacy_transaction(LISTED, 0))
    call = {"to": hexed(ACCOUNT_RULES), "data": hexed(calldata("removeAccount(address)", LISTED.address))}
    again = {"to": hexed(ACCOUNT_RULES), "data": hexed(calldata("removeAccount(address)", b"\7" * 20))}
    assert both.ask("perm_dryRun", call)["sendersShutOut"] == {hexed(LISTED.address): 1}
    assert both.ask("perm_dryRun", [call, again])["problem"] is None


def test_a_dry_run_returns_why_a_change_would_be_refused(listed: Interface) -> None:
    answer = listed.ask("perm_dryRun", {"addNodes": [N1.url]})
    assert answer["problem"] == "Cannot add an existing node to whitelist"


@pytest.mark.parametrize(
    "change",
    [None, [], {}, {"add": []}, {"addNodes": "x"}, {"addNodes": ["x"]}, {"addAccounts": [5]}, {"data": "0x12345678"}],
)
def test_other_changes_are_refused(dev: Interface, change: Any) -> None:
    assert dev.error("perm_dryRun", change)[0] == -32602
