"""Tests the nine actions between two nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.permissions.allow_list import AllowList
from ophion.permissions.allow_list_file import RulesFile
from ophion.permissions.list_requests import NAMED_NODES, NODES
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import SystemClock
from ophion.runtime.host_name_resolver import HostNames

OWN, A, B = (Enode(bytes([number]) * 64, "127.0.0.1", 30300 + number, 30300 + number) for number in (1, 2, 3))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "rules.toml"
    file.write_text(f'nodes-whitelist=["{A.url}"]')
    return file


@pytest.fixture
def listed(path: Path) -> AllowList[Enode]:
    return AllowList(RulesFile(path, NODES))


@pytest.fixture
def rules(listed: AllowList[Enode]) -> NodeRules:
    return NodeRules(OWN.node_id, listed)


def test_without_rules_all_nodes_are_permitted() -> None:
    rules = NodeRules(OWN.node_id)
    assert not rules.is_on
    assert rules.refusal(A, B, Action.DIAL) is None


@pytest.mark.parametrize("action", list(Action))
def test_every_action_needs_a_listed_node(rules: NodeRules, path: Path, action: Action) -> None:
    assert rules.is_on
    assert rules.refusal_of(A, action) is None
    assert rules.refusal_of(B, action) == f"node {B.url} is not in the list of permitted nodes ({path})"


@pytest.mark.parametrize("action", list(Action))
def test_both_ends_must_be_permitted(rules: NodeRules, action: Action) -> None:
    assert rules.refusal(A, OWN, action) is None
    assert rules.refusal(OWN, A, action) is None
    assert rules.refusal(A, B, action) is not None
    assert rules.refusal(B, A, action) is not None


def test_a_node_matches_by_id_ip_and_tcp_port(rules: NodeRules) -> None:
    assert rules.refusal_of(Enode(A.node_id, A.ip, A.tcp_port, 0), Action.DIAL) is None, "the discovery port is ignored"
    assert rules.refusal_of(Enode(A.node_id, "127.0.0.2", A.tcp_port, A.udp_port), Action.DIAL) is not None
    assert rules.refusal_of(Enode(A.node_id, A.ip, 1, A.udp_port), Action.DIAL) is not None
    assert rules.refusal_of(Enode(B.node_id, A.ip, A.tcp_port, A.udp_port), Action.DIAL) is not None


def test_the_local_node_id_is_always_permitted(rules: NodeRules) -> None:
    assert rules.refusal(Enode(OWN.node_id, "10.0.0.1", 1, 1), A, Action.DIAL) is None


def test_an_empty_array_permits_only_this_node(path: Path) -> None:
    path.write_text("nodes-whitelist=[]")
    rules = NodeRules(OWN.node_id, AllowList(RulesFile(path, NODES)))
    assert rules.refusal_of(A, Action.ACCEPT) is not None
    assert rules.refusal(OWN, OWN, Action.DIAL) is None


def test_a_change_of_the_list_applies_at_once_and_is_published(rules: NodeRules, listed: AllowList[Enode]) -> None:
    refusals: list[str | None] = []
    rules.changed.listen(lambda _: refusals.append(rules.refusal_of(A, Action.KEEP_INBOUND)))
    listed.add([B])
    assert rules.refusal_of(B, Action.ACCEPT) is None
    listed.remove([A])
    assert refusals[0] is None
    assert refusals[1] is not None


def test_a_listed_host_name_permits_its_current_address(path: Path) -> None:
    named = Enode(A.node_id, "", A.tcp_port, A.tcp_port, "validator-1")
    path.write_text(f'nodes-allowlist = ["{named.url}"]\n')
    rules = NodeRules(OWN.node_id, AllowList(RulesFile(path, NAMED_NODES)))
    answers = {"validator-1": ["127.0.0.1"]}
    events: list[None] = []
    rules.changed.listen(events.append)

    async def run() -> None:
        names = HostNames(SystemClock(), answers.__getitem__)
        rules.use_host_names(names)
        assert rules.refusal_of(named, Action.DIAL) is None
        assert rules.refusal_of(A, Action.DIAL) is not None
        changed = asyncio.Event()
        rules.changed.listen(lambda _: changed.set())
        task = asyncio.create_task(names.run())
        await asyncio.wait_for(changed.wait(), 60)
        task.cancel()

    asyncio.run(run())
    assert events == [None]
    assert rules.refusal_of(A, Action.DIAL) is None
    assert rules.refusal_of(named, Action.DIAL) is None
    assert rules.refusal_of(A.at("127.0.0.2"), Action.DIAL) is not None
    assert rules.names(A.node_id)
