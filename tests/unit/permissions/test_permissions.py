"""Tests the rules of a node: loaded from options, reloaded, queried."""

from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pytest

from ophion.errors import ConfigError, RulesError
from ophion.permissions.options import PermissionConfig
from ophion.permissions.permissions import RELOAD_FAILED, Permissions
from ophion.primitives.enode import Enode
from ophion.runtime.thread_pools import InlineLane

A, B = bytes([1]) * 20, bytes([2]) * 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "permissions_config.toml"
    file.write_text(f'accounts-whitelist=["0x{A.hex()}"]\nnodes-whitelist=[]')
    return file


@pytest.fixture
def permissions(path: Path) -> Permissions:
    return Permissions.open(PermissionConfig(accounts_file_enabled=True), path.parent)


def test_without_rules_all_accounts_are_permitted() -> None:
    permissions = Permissions()
    assert permissions.account_refusal(A) is None
    with pytest.raises(RulesError, match="Account whitelisting has not been enabled"):
        _ = permissions.accounts
    with pytest.raises(RulesError, match="Node/Account whitelisting has not been enabled"):
        permissions.reloading()()


def test_a_refusal_names_account_and_file(permissions: Permissions, path: Path) -> None:
    assert permissions.account_refusal(A) is None
    assert permissions.account_refusal(B) == (f"account 0x{B.hex()} is not in the list of permitted accounts ({path})")


def test_an_empty_array_permits_no_account(path: Path) -> None:
    path.write_text("accounts-whitelist=[]")
    permissions = Permissions.open(PermissionConfig(accounts_file_enabled=True), path.parent)
    assert permissions.account_refusal(A) is not None


def test_the_file_may_lie_elsewhere(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(f'accounts-allowlist=["0x{B.hex()}"]')
    config = PermissionConfig(accounts_file_enabled=True, accounts_file=other)
    assert Permissions.open(config, path.parent).account_refusal(B) is None


def test_a_file_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Unable to read permissioning TOML config file"):
        Permissions.open(PermissionConfig(accounts_file_enabled=True), tmp_path)


def test_reload_reads_the_file_anew(permissions: Permissions, path: Path) -> None:
    path.write_text(f'accounts-whitelist=["0x{B.hex()}"]')
    permissions.reloading()()
    assert list(permissions.accounts) == [B]


def test_a_reload_that_fails_keeps_the_old_rules(permissions: Permissions, path: Path) -> None:
    path.write_text("accounts-whitelist=[")
    with pytest.raises(RulesError) as raised:
        permissions.reloading()()
    assert raised.value.message == RELOAD_FAILED
    assert raised.value.detail is not None
    assert "Unable to read permissioning TOML config file" in raised.value.detail
    assert list(permissions.accounts) == [A]


ENODE = Enode(b"\1" * 64, "127.0.0.1", 30303, 30303)
OTHER = Enode(b"\2" * 64, "127.0.0.1", 30303, 30303)
THIRD = Enode(b"\4" * 64, "127.0.0.1", 30303, 30303)
NODES_FILE = PermissionConfig(nodes_file_enabled=True)


def test_startup_bootnodes_and_static_nodes_must_be_listed(path: Path) -> None:
    path.write_text(f'nodes-allowlist=["{ENODE.url}"]')
    assert list(Permissions.open(NODES_FILE, path.parent, b"\3" * 64, [ENODE]).nodes) == [ENODE]
    with pytest.raises(ConfigError) as raised:
        Permissions.open(NODES_FILE, path.parent, b"\3" * 64, [ENODE, OTHER, THIRD])
    [problem] = raised.value.problems
    assert problem.startswith(f"Specified node(s) not in nodes-whitelist [{OTHER.url}, {THIRD.url}]. Bootnodes")
    assert problem.endswith(f"add them to {path}.")


def test_fixed_nodes_cannot_be_removed(path: Path) -> None:
    path.write_text(f'nodes-whitelist=["{ENODE.url}","{OTHER.url}"]')
    permissions = Permissions.open(NODES_FILE, path.parent, b"\3" * 64, [ENODE])
    with pytest.raises(RulesError, match="Cannot remove a fixed node"):
        permissions.remove_nodes([OTHER, ENODE])
    permissions.remove_nodes([OTHER])
    assert list(permissions.nodes) == [ENODE]


def test_everything_wrong_with_the_files_is_said_together(path: Path) -> None:
    path.write_text("a=1")
    config = PermissionConfig(nodes_file_enabled=True, accounts_file_enabled=True)
    with pytest.raises(ConfigError) as raised:
        Permissions.open(config, path.parent)
    assert [problem[:10] for problem in raised.value.problems] == ["accounts-w", "nodes-whit"]


def test_a_reload_swaps_both_lists_or_none(path: Path, tmp_path: Path) -> None:
    nodes_file = tmp_path / "nodes.toml"
    nodes_file.write_text(f'nodes-whitelist=["{ENODE.url}"]')
    config = PermissionConfig(accounts_file_enabled=True, nodes_file_enabled=True, nodes_file=nodes_file)
    permissions = Permissions.open(config, path.parent)
    path.write_text(f'accounts-whitelist=["0x{B.hex()}"]')
    nodes_file.write_text('nodes-whitelist=["enode://no"]')
    with pytest.raises(RulesError):
        permissions.reloading()()
    assert (list(permissions.accounts), list(permissions.nodes)) == ([A], [ENODE])
    nodes_file.write_text(f'nodes-whitelist=["{OTHER.url}"]')
    permissions.reloading()()
    assert (list(permissions.accounts), list(permissions.nodes)) == ([B], [OTHER])


@pytest.mark.parametrize("turns", range(6))
def test_a_refusal_without_a_waiting_caller_is_ignored(permissions: Permissions, turns: int) -> None:
    """The caller may be cancelled at any moment, even while the change is refused. The node logs nothing."""
    received: list[object] = []

    def refuse() -> None:
        raise RulesError("no")

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda loop, context: received.append(context))
        asked = loop.create_task(permissions.change(InlineLane("read"), lambda: refuse))
        for _ in range(turns):
            await asyncio.sleep(0)
        asked.cancel()
        await asyncio.wait({asked})
        if not asked.cancelled():
            assert isinstance(asked.exception(), RulesError)
        for _ in range(6):
            await asyncio.sleep(0)

    asyncio.run(story())
    gc.collect()
    assert received == []
