"""Private gas: a transaction runs with its signed gas limit, and an expensive group delays only itself."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.enclave.group_ids import legacy_id
from ophion.privacy import backlog
from ophion.privacy.backlog import HALF_LIFE_S, Backlog, TimeBudget
from ophion.privacy.payloads import Payload
from ophion.privacy.submission import GAS_TOO_HIGH
from ophion.runtime.clock import ManualClock
from ophion.testing.private_transactions import text
from ophion.testing.wait_for import until
from tests.unit.rpc.methods.test_priv import SHOWN, deploying
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, THIRD, open_private

LOOP = deploying("5b600056")
"""Code that runs until its gas is used up."""
HEAVY = legacy_id([FROM, FOR])
LIGHT = legacy_id([FROM])


def test_a_private_transaction_has_the_gas_that_it_names(tmp_path: Path) -> None:
    with open_private(tmp_path) as private:
        assert private.ask("priv_getTransactionReceipt", private.send(LOOP))["status"] == "0x1"
        marker = private.send(b"", nonce=1, to=bytes.fromhex(SHOWN[2:]), gas_limit=30_000)
        receipt = private.ask("priv_getTransactionReceipt", marker)
        assert receipt["status"] == "0x0"
        assert "gas" in private.ask("priv_explain", marker)["reason"].lower()
        assert private.ask("priv_getTransactionReceipt", private.send(nonce=1, gas_limit=60_000))["status"] == "0x0"


def test_more_gas_than_the_node_executes_is_refused_at_once(tmp_path: Path) -> None:
    with open_private(tmp_path, replace(PRIVACY, max_gas=1_000_000)) as private:
        refused = private.error("eea_sendRawTransaction", private.signed(gas_limit=1_000_001))
        assert refused == (-50100, f"{GAS_TOO_HIGH} (1000000)")
        private.ask("eea_sendRawTransaction", private.signed(gas_limit=1_000_000))


def test_a_heavy_transaction_is_executed_in_the_backlog_with_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = []
    for limit in (backlog.MAX_WALK_GAS, 1_000_000):
        monkeypatch.setattr(backlog, "MAX_WALK_GAS", limit)
        path = tmp_path / str(limit)
        path.mkdir()
        with open_private(path) as private:
            markers = []
            for nonce in range(4):
                markers.append(private.ask("eea_sendRawTransaction", private.signed(nonce=nonce)))
                if nonce % 2:
                    private.seal()
            statuses = [private.ask("priv_getTransactionReceipt", marker)["status"] for marker in markers]
            assert statuses == ["0x1"] * 4
            roots.append(private.ask("priv_debugGetStateRoot", text(HEAVY)))
            assert private.privacy.ledger.late(b"", 10) == [], "nothing is left to do"
            assert private.privacy.executor.backlog.groups == {}
    assert roots[0] == roots[1]


def test_a_group_with_too_much_gas_is_suspended_and_goes_on_when_the_limit_is_raised(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_private(tmp_path) as private:
        markers = [private.send(), private.send(nonce=1, gas_limit=5_000_000), private.send(nonce=2)]
        expected = private.ask("priv_debugGetStateRoot", text(HEAVY))
        first = private.ask("priv_debugGetStateRoot", text(HEAVY), "0x1")
        private.privacy.ledger.clear()
    with caplog.at_level(logging.WARNING), open_private(tmp_path, replace(PRIVACY, max_gas=4_000_000)) as private:
        statuses = [private.ask("priv_getTransactionReceipt", marker) for marker in markers]
        assert [one and one["status"] for one in statuses] == ["0x1", None, None]
        assert private.ask("priv_debugGetStateRoot", text(HEAVY)) == first, "not a state that other members never had"
        assert private.ask("priv_explain", markers[1])["state"] == "suspended"
        light = private.send(private_for=[])
        assert private.ask("priv_getTransactionReceipt", light)["status"] == "0x1", "other groups go on"
    assert any("--privacy-max-transaction-gas" in one.getMessage() for one in caplog.records)
    with open_private(tmp_path) as private:
        statuses = [private.ask("priv_getTransactionReceipt", marker) for marker in markers]
        assert [one["status"] for one in statuses] == ["0x1"] * 3
        assert private.ask("priv_debugGetStateRoot", text(HEAVY)) == expected


def test_a_node_that_stops_with_a_backlog_goes_on_from_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(self: object) -> None:
        await asyncio.Event().wait()

    with open_private(tmp_path) as private:
        marker = private.send()
        expected = private.ask("priv_debugGetStateRoot", text(HEAVY))
        private.privacy.ledger.clear()
    monkeypatch.setattr(backlog, "MAX_WALK_GAS", 1_000_000)
    with monkeypatch.context() as patch:
        patch.setattr("ophion.privacy.backlog_executor.BacklogExecutor.run", nothing)
        patch.setattr("ophion.privacy.service.FOLLOW_LIMIT_S", 0.2)
        with open_private(tmp_path) as private:
            assert private.ask("priv_getTransactionReceipt", marker) is None
            assert private.privacy.executor.is_at_head
    with open_private(tmp_path) as private:
        private.run(until(lambda: not private.privacy.ledger.late(b"", 1)))
        assert private.ask("priv_getTransactionReceipt", marker)["status"] == "0x1"
        assert private.ask("priv_debugGetStateRoot", text(HEAVY)) == expected


def payload(group: bytes, sender: bytes) -> Payload:
    return (bytes(32), 0, bytes(32), group, sender, b"", None, None)


def test_used_time_is_shared_by_gas_and_forgotten() -> None:
    clock = ManualClock()
    budget = TimeBudget(clock)
    budget.charge([payload(HEAVY, FROM), payload(HEAVY, FROM), payload(LIGHT, FOR)], 3.0)
    assert (round(budget.used_s(FROM), 3), round(budget.used_s(FOR), 3)) == (2.0, 1.0)
    clock.elapsed += HALF_LIFE_S
    assert round(budget.used_s(FROM), 3) == 1.0
    assert budget.used_s(THIRD) == 0.0


def test_the_sender_that_has_used_the_least_time_is_next_and_established_groups_are_apart() -> None:
    found = Backlog(ManualClock(), 10**9)
    found.put(1, [payload(HEAVY, FROM)], False)
    found.put(1, [(*payload(LIGHT, FOR)[:2], b"\1" * 32, *payload(LIGHT, FOR)[3:])], False)
    found.budget.charge([payload(HEAVY, FROM)], 1.0)
    assert found.next(1, False) == (LIGHT, found.groups[LIGHT])
    assert found.next(0, False) is None
    assert found.next(1, True) is None
    found.groups[HEAVY].is_established = True
    assert found.next(1, True) == (HEAVY, found.groups[HEAVY])
