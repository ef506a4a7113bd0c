"""Tests perm_*: every row of operations.md 10.3, under both names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.importer import ImportOutcome
from ophion.permissions.options import PermissionConfig
from ophion.primitives.enode import Enode
from ophion.runtime.thread_pools import InlineLane
from ophion.testing.node_core import DEV_CONFIG, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface, open_interface

T = TypeVar("T")

A, B = ("0x" + key.address.hex() for key in DEV_KEYS[1:3])
C = "0x" + "ab" * 20
SPELLINGS = ["Whitelist", "Allowlist"]
NOT_PERSISTED = "Unable to persist changes to whitelist configuration file. Changes reverted"
OUT_OF_SYNC = (
    "The permissioning whitelist configuration file is out of sync.  The changes have been applied, but not persisted"
    " to disk"
)


def worded(message: str, spelling: str) -> str:
    """Return a message in the wording that the method name selects (json-rpc.md 7.1)."""
    return message.replace("whitelist", spelling.lower())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "permissions_config.toml"
    file.write_text(f'accounts-whitelist=["{A}"]\n')
    return file


@pytest.fixture
def node(path: Path) -> Iterator[Interface]:
    config = replace(DEV_CONFIG, permissions=PermissionConfig(accounts_file_enabled=True))
    with open_interface(path.parent, config=config) as opened:
        yield opened


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_accounts_come_and_go_under_both_names(node: Interface, path: Path, spelling: str) -> None:
    assert node.ask(f"perm_addAccountsTo{spelling}", [B.upper().replace("X", "x"), C]) == "Success"
    assert node.ask(f"perm_getAccounts{spelling}") == [A, B, C]
    assert node.ask(f"perm_removeAccountsFrom{spelling}", [A, C]) == "Success"
    assert node.ask(f"perm_getAccounts{spelling}") == [B]
    assert path.read_text() == f'accounts-whitelist=["{B}"]\n'


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("method", "accounts", "message"),
    [
        ("addAccountsTo", [], "Request contains an empty list of accounts"),
        ("addAccountsTo", ["0x12"], "Request contains an invalid account"),
        ("addAccountsTo", [C[2:]], "Request contains an invalid account"),
        ("addAccountsTo", [C, C], "Request contains duplicate accounts"),
        ("addAccountsTo", [C, A], "Cannot add an existing account to whitelist"),
        ("removeAccountsFrom", [], "Request contains an empty list of accounts"),
        ("removeAccountsFrom", ["0x12"], "Request contains an invalid account"),
        ("removeAccountsFrom", [A, A], "Request contains duplicate accounts"),
        ("removeAccountsFrom", [A, C], "Cannot remove an absent account from whitelist"),
    ],
)
def test_a_bad_request_changes_nothing(
    node: Interface, path: Path, spelling: str, method: str, accounts: list[str], message: str
) -> None:
    before = path.read_bytes()
    assert node.error(f"perm_{method}{spelling}", accounts) == (-32000, worded(message, spelling))
    assert node.ask("perm_getAccountsWhitelist") == [A]
    assert path.read_bytes() == before


@pytest.mark.parametrize("params", [[], [A], [None], [{}], [[5]]])
def test_a_parameter_that_is_no_array_of_texts(node: Interface, params: list[object]) -> None:
    assert node.error("perm_addAccountsToWhitelist", *params) == (-32602, "Invalid params")


class Gate(InlineLane):
    """A lane (job queue) whose jobs wait for the test."""

    def __init__(self) -> None:
        super().__init__("read")
        self.jobs: asyncio.Queue[Callable[[], None]] = asyncio.Queue()

    async def run(self, job: Callable[[], T], deadline_s: float | None = None) -> T:
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.jobs.put_nowait(lambda: waiting.set_result(None))
        await waiting
        return job()


def test_a_long_change_does_not_hold_the_loop_and_ends_though_its_client_has_gone(node: Interface, path: Path) -> None:
    gate = Gate()
    many = [f"0x{number:040x}" for number in range(10_000)]

    async def story() -> None:
        permissions = node.context.permissions
        first = asyncio.create_task(permissions.change(gate, lambda: permissions.accounts.prepare(_read(many), ())))
        second = asyncio.create_task(permissions.change(gate, lambda: permissions.accounts.prepare((), _read([A]))))
        begin = await gate.jobs.get()
        await asyncio.sleep(0)
        assert gate.jobs.empty(), "one after the other"
        assert len(permissions.accounts.entries) == 1
        first.cancel()
        begin()
        (await gate.jobs.get())()
        await second

    node.run(story())
    assert node.ask("perm_getAccountsWhitelist") == many
    assert path.read_text().count("0x") == len(many)


def _read(texts: list[str]) -> list[bytes]:
    return [bytes.fromhex(text[2:]) for text in texts]


def test_feature_off(dev: Interface) -> None:
    expected = (-32000, "Account whitelisting has not been enabled")
    assert dev.error("perm_addAccountsToWhitelist", []) == expected
    assert dev.error("perm_removeAccountsFromWhitelist", []) == expected
    assert dev.error("perm_getAccountsWhitelist") == expected
    assert dev.error("perm_addAccountsToWhitelist", A) == (-32602, "Invalid params")
    later = (-32000, "Account allowlist has not been enabled")
    assert dev.error("perm_addAccountsToAllowlist", []) == later
    assert dev.error("perm_removeAccountsFromAllowlist", []) == later
    assert dev.error("perm_getAccountsAllowlist") == later
    assert dev.error("perm_addAccountsToAllowlist", A) == (-32602, "Invalid params")


def test_write_failed(node: Interface, path: Path) -> None:
    path.chmod(0o444)
    answer = node.request("perm_addAccountsToWhitelist", [C])
    assert answer["error"] == {"code": -32000, "message": NOT_PERSISTED, "data": f"{path} is read-only"}
    answer = node.request("perm_addAccountsToAllowlist", [C])
    later = worded(NOT_PERSISTED, "Allowlist")
    assert answer["error"] == {"code": -32000, "message": later, "data": f"{path} is read-only"}
    assert node.ask("perm_getAccountsWhitelist") == [A]


def test_file_edited_behind_the_nodes_back(node: Interface, path: Path) -> None:
    path.write_text(f'accounts-whitelist=["{B}"]')
    assert node.error("perm_addAccountsToWhitelist", [C]) == (-32000, OUT_OF_SYNC)
    assert node.ask("perm_getAccountsWhitelist") == [A, C]
    assert node.error("perm_removeAccountsFromAllowlist", [C]) == (-32000, worded(OUT_OF_SYNC, "Allowlist"))
    assert node.ask("perm_getAccountsWhitelist") == [A]
    assert path.read_text() == f'accounts-whitelist=["{B}"]'


def test_reload(node: Interface, path: Path) -> None:
    path.write_text(f'accounts-whitelist=["{C}", "{B}"]')
    assert node.ask("perm_reloadPermissionsFromFile") == "Success"
    assert node.ask("perm_getAccountsWhitelist") == [C, B]


def test_reload_failed(node: Interface, path: Path) -> None:
    path.write_text("accounts-whitelist=[")
    assert node.error("perm_reloadPermissionsFromFile") == (
        -32000,
        "Error reloading permissions file. Please use perm_getAccountsWhitelist and perm_getNodesWhitelist to review"
        " the current state of the whitelists",
    )
    assert node.ask("perm_getAccountsWhitelist") == [A]


def test_reload_nothing_enabled(dev: Interface) -> None:
    expected = (-32000, "Node/Account whitelisting has not been enabled")
    assert dev.error("perm_reloadPermissionsFromFile") == expected


def test_pool_admission_refuses_an_unlisted_sender_and_says_why(node: Interface, path: Path) -> None:
    listed, unlisted = (legacy_transaction(key, 0) for key in DEV_KEYS[1:3])
    assert "result" in node.request("eth_sendRawTransaction", "0x" + listed.hex())
    answer = node.request("eth_sendRawTransaction", "0x" + unlisted.hex())
    assert answer["error"] == {
        "code": -32007,
        "message": "Sender account not authorized to send transactions",
        "data": f"account {B} is not in the list of permitted accounts ({path})",
    }
    node.ask("perm_addAccountsToWhitelist", [B])
    assert "result" in node.request("eth_sendRawTransaction", "0x" + unlisted.hex())
    node.ask("perm_removeAccountsFromWhitelist", [B])
    next = legacy_transaction(DEV_KEYS[2], 1)
    assert node.request("eth_sendRawTransaction", "0x" + next.hex())["error"]["code"] == -32007, "at the same head"
    path.write_text(f'accounts-whitelist=["{B}"]\n')
    node.ask("perm_reloadPermissionsFromFile")
    assert "result" in node.request("eth_sendRawTransaction", "0x" + next.hex())


def test_a_removed_sender_is_dropped_when_a_block_is_built(node: Interface) -> None:
    node.ask("perm_addAccountsToWhitelist", [B])
    first, second, other = (
        legacy_transaction(DEV_KEYS[2], 0),
        legacy_transaction(DEV_KEYS[2], 1),
        legacy_transaction(DEV_KEYS[1], 0),
    )
    node.run(node.node.send(first, second, other))
    node.ask("perm_removeAccountsFromWhitelist", [B])
    node.run(node.node.seal())
    block = node.ask("eth_getBlockByNumber", "latest", True)
    assert [transaction["from"] for transaction in block["transactions"]] == [A]
    assert node.ask("txpool_status") == {"pending": "0x0", "queued": "0x0"}


def test_importing_blocks_made_by_others_is_not_checked_against_the_file(node: Interface, tmp_path: Path) -> None:
    with open_core(tmp_path / "other") as other:
        node.run(other.mine(legacy_transaction(DEV_KEYS[2], 0)))
        raw = other.chain.store.block(other.chain.head.hash)
    assert raw is not None
    node.node.clock.advance(10)
    block = decode_block(raw, node.node.chain.engine)
    imported = node.run(node.node.core.importer.import_block(block))
    assert imported.outcome is ImportOutcome.HEAD


# --- nodes ----------------------------------------------------------------------------------------

N1, N2, N3 = (f"enode://{number * 64}@127.0.0.1:3030{number[1]}" for number in ("01", "02", "03"))


@pytest.fixture
def nodes_path(tmp_path: Path) -> Path:
    file = tmp_path / "permissions_config.toml"
    file.write_text(f'nodes-whitelist=["{N1}"]\n')
    return file


@pytest.fixture
def guarded(nodes_path: Path) -> Iterator[Interface]:
    config = replace(DEV_CONFIG, permissions=PermissionConfig(nodes_file_enabled=True))
    with open_interface(nodes_path.parent, config=config) as opened:
        yield opened


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_nodes_come_and_go_under_both_names(guarded: Interface, nodes_path: Path, spelling: str) -> None:
    assert guarded.ask(f"perm_addNodesTo{spelling}", [N2, N3]) == "Success"
    assert guarded.ask(f"perm_getNodes{spelling}") == [N1, N2, N3]
    assert guarded.ask(f"perm_removeNodesFrom{spelling}", [N1]) == "Success"
    assert guarded.ask(f"perm_getNodes{spelling}") == [N2, N3]
    assert nodes_path.read_text() == f'nodes-whitelist=["{N2}","{N3}"]\n'


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    ("method", "nodes", "message"),
    [
        ("addNodesTo", [], "Request contains an empty list of nodes"),
        ("addNodesTo", [N2, N2], "Request contains duplicate nodes"),
        ("addNodesTo", ["enode://12@127.0.0.1:1"], "Request contains an invalid node"),
        ("addNodesTo", [N2, N1], "Cannot add an existing node to whitelist"),
        ("removeNodesFrom", [], "Request contains an empty list of nodes"),
        ("removeNodesFrom", [N1, N1], "Request contains duplicate nodes"),
        ("removeNodesFrom", ["http://a"], "Request contains an invalid node"),
        ("removeNodesFrom", [N2], "Cannot remove an absent node from whitelist"),
        ("removeNodesFrom", [N1 + "?discport=5"], "Cannot remove an absent node from whitelist"),
    ],
)
def test_a_bad_request_about_nodes_changes_nothing(
    guarded: Interface, nodes_path: Path, spelling: str, method: str, nodes: list[str], message: str
) -> None:
    before = nodes_path.read_bytes()
    assert guarded.error(f"perm_{method}{spelling}", nodes) == (-32000, worded(message, spelling))
    assert guarded.ask("perm_getNodesWhitelist") == [N1]
    assert nodes_path.read_bytes() == before


def test_remove_nodes_fixed(guarded: Interface) -> None:
    guarded.node.core.permissions._fixed = (Enode.parse(N1),)
    assert guarded.error("perm_removeNodesFromWhitelist", [N1]) == (
        -32000,
        "Cannot remove a fixed node (bootnode or static node) from whitelist",
    )
    assert guarded.error("perm_removeNodesFromAllowlist", [N1]) == (
        -32000,
        "Cannot remove a fixed node (bootnode or static node) from allowlist",
    )


def test_node_feature_off(dev: Interface) -> None:
    expected = (-32000, "Node whitelisting has not been enabled")
    assert dev.error("perm_addNodesToWhitelist", []) == expected
    assert dev.error("perm_removeNodesFromWhitelist", []) == expected
    assert dev.error("perm_getNodesWhitelist") == expected
    assert dev.error("perm_addNodesToWhitelist", N1) == (-32602, "Invalid params")
    later = (-32000, "Node allowlist has not been enabled")
    assert dev.error("perm_addNodesToAllowlist", []) == later
    assert dev.error("perm_removeNodesFromAllowlist", []) == later
    assert dev.error("perm_getNodesAllowlist") == later


def test_p2p_off(guarded: Interface) -> None:
    guarded.context = replace(guarded.context, peers=None)
    guarded.dispatcher = guarded.dispatcher_for("http")
    expected = (-32000, "P2P has been disabled. This functionality is not available")
    assert guarded.error("perm_addNodesToWhitelist", [N2]) == expected
    assert guarded.error("perm_removeNodesFromWhitelist", [N1]) == expected
    assert guarded.error("perm_getNodesWhitelist") == expected


def test_admin_addPeer_of_a_node_that_is_not_permitted(guarded: Interface, nodes_path: Path) -> None:
    answer = guarded.request("admin_addPeer", N2)
    assert answer["error"] == {
        "code": -32000,
        "message": "Cannot add a non-permitted node as a peer",
        "data": f"node {N2} is not in the list of permitted nodes ({nodes_path})",
    }
    assert guarded.ask("admin_addPeer", N1) is True
