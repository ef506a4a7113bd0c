"""Tests which nodes may be dialled and discovered. test_service.py tests the time limits of rules."""

from __future__ import annotations

from random import Random

import pytest

from ophion.native.crypto import PrivateKey
from ophion.peers.node_access import NodeAccess
from ophion.peers.peer_table import Peers
from ophion.peers.policy.addresses import read_subnet
from ophion.peers.policy.admission import Admission, PeerLimits
from ophion.peers.policy.bans import Bans
from ophion.peers.policy.dial_plan import DialPlan
from ophion.peers.settings import PeerSettings
from ophion.permissions.node_rules import Action, NodeRules
from ophion.primitives.enode import Enode
from ophion.runtime.clock import ManualClock


def node_id(number: int) -> bytes:
    return PrivateKey(bytes([number]) * 32).public_key


def enode(number: int) -> Enode:
    return Enode(node_id(number), f"10.0.0.{number}", 30303, 30303)


class Refusing(NodeRules):
    """Node rules that refuse one node."""

    def refusal_of(self, remote: Enode, action: Action) -> str | None:
        return "not listed" if remote.node_id == node_id(9) else None


def access(validator: bytes = b"") -> NodeAccess:
    settings = PeerSettings(
        static=(enode(2), enode(9)),
        bootnodes=(enode(3),),
        banned=frozenset({node_id(4)}),
        subnets=(read_subnet("10.0.0.0/24"),),
    )
    plan = DialPlan(node_id(1), Random(1), lambda one: one == validator)
    for static in settings.static:
        plan.add_static(static, 0.0)
    peers = Peers()
    admission = Admission(node_id(1), peers, PeerLimits(), Bans(), plan.has_reserved_slot, settings.banned)
    return NodeAccess(settings, Refusing(node_id(1)), plan, admission, peers, ManualClock())


def test_addresses_of_static_nodes_and_bootnodes_are_known() -> None:
    assert [access().is_known_address(f"10.0.0.{number}") for number in (2, 3, 5)] == [True, True, False]


def test_members_are_static_nodes_and_validators() -> None:
    assert [access(node_id(6)).has_own_quota(node_id(number)) for number in (2, 6, 7)] == [True, True, False]


def test_banned_nodes_and_other_subnets_are_neither_dialled_nor_discovered() -> None:
    elsewhere = Enode(node_id(5), "192.168.0.1", 30303, 30303)
    for one, is_allowed in ((enode(5), True), (enode(4), False), (elsewhere, False)):
        assert access().may_dial(one) is is_allowed
        assert access().may_discover(one, Action.ACCEPT_PING) is is_allowed


def test_a_static_node_that_the_rules_refuse_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    one = access()
    assert not any(one.may_dial(enode(9)) for _ in range(3))
    assert caplog.text.count("static node not dialled") == 1
    one.forget(node_id(9))
    one.may_dial(enode(9))
    assert caplog.text.count("static node not dialled") == 2
