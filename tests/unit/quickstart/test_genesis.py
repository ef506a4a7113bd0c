"""Tests that a node can parse the genesis files of networks."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.permissions.contract_genesis import ACCOUNT_INGRESS
from ophion.primitives.types import ZERO_HASH
from ophion.quickstart.genesis import genesis_document
from ophion.quickstart.plan import CHAIN_IDS, Consensus, NetworkPlan

MEMBERS = [bytes([number]) * 20 for number in (3, 1, 2, 4)]


@pytest.mark.parametrize("consensus", [Consensus.QBFT, Consensus.IBFT2, Consensus.CLIQUE])
@pytest.mark.parametrize("is_free", [False, True])
def test_a_node_can_read_it(consensus: Consensus, is_free: bool) -> None:
    plan = NetworkPlan(consensus, 4, 3, None, is_free, False)
    genesis = parse_genesis(json.dumps(genesis_document(plan, MEMBERS)))
    assert genesis.spec.chain_id == CHAIN_IDS[consensus]
    assert genesis.spec.engine.value == consensus.value
    assert genesis.spec.zero_base_fee is is_free
    engine_for(genesis.spec).check_genesis(genesis.header(ZERO_HASH))
    assert genesis.warnings == ()


@pytest.mark.parametrize("consensus", [Consensus.QBFT, Consensus.IBFT2])
@pytest.mark.parametrize(("period_s", "timeout_s"), [(0.2, 1), (1.5, 3), (2.0, 4)])
def test_periods_with_a_fraction_are_written_in_milliseconds(
    consensus: Consensus, period_s: float, timeout_s: int
) -> None:
    plan = NetworkPlan(consensus, 4, period_s, None, False, False)
    genesis = parse_genesis(json.dumps(genesis_document(plan, MEMBERS)))
    parameters = genesis.spec.qbft if consensus is Consensus.QBFT else genesis.spec.ibft2
    assert parameters is not None
    assert parameters.block_period_ms == (round(1000 * period_s) if period_s % 1 else 0)
    assert parameters.block_period_s == max(1, int(period_s))
    assert parameters.request_timeout_s == timeout_s
    assert genesis.warnings == ()


def test_rules_for_accounts_are_in_it_when_asked_for() -> None:
    plan = NetworkPlan(Consensus.QBFT, 4, 3, None, False, True)
    assert ACCOUNT_INGRESS.hex() in genesis_document(plan, MEMBERS)["alloc"]
    assert "code" in genesis_document(plan, MEMBERS)["alloc"]["4e59b44847b379578588920ca78fbf26c0b4956c"]
    assert ACCOUNT_INGRESS.hex() not in genesis_document(replace(plan, has_permissions=False), MEMBERS)["alloc"]
