"""The private executor handles reorganisations and late payloads."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from ophion.chain.events import ChainBlock
from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import OpenedPayload
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import private_contract_address
from ophion.native.store import open_store
from ophion.privacy import payload_retries
from ophion.privacy import payloads as module
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import InlineLanes
from ophion.testing.node_core import open_core
from ophion.testing.ports import free_ports
from ophion.testing.private_transactions import ENCLAVE_SECRETS, set_number, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, PrivateInterface, open_private

GROUP = legacy_id([FROM, FOR])
CONTRACT = private_contract_address(DEV_KEYS[0].address, 0, GROUP)
T = TypeVar("T")
GET = {"to": "0x" + CONTRACT.hex(), "data": "0x6d4ce63c"}


def root(private: PrivateInterface) -> str:
    found: str = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    return found


def test_a_late_payload_is_executed_at_its_position(tmp_path: Path) -> None:
    with open_private(tmp_path) as private:
        markers = [private.send()]
        markers += [private.send(set_number(n), nonce=n, to=CONTRACT) for n in (1, 2, 3)]
        expected = root(private)
        keys = [private.ask("eth_getTransactionByHash", marker)["input"] for marker in markers]
        store = private.node.chain.store
        payloads = {key: store.row("payloads", bytes.fromhex(key[2:])) for key in keys}
    # open the node again with the same chain, but without the second payload and all private states
    with open_private(tmp_path) as private:
        store = private.node.chain.store
        late = bytes.fromhex(keys[1][2:])
        store.write_rows([("payloads", late, None)])
        private.privacy.ledger.clear()
    with open_private(tmp_path) as private:
        assert root(private) != expected
        statuses = [private.ask("priv_getTransactionReceipt", marker) for marker in markers]
        assert [one and one["status"] for one in statuses] == ["0x1", None, "0x2", "0x2"]
        assert private.ask("priv_explain", markers[1])["state"] == "no payload"
        private.node.chain.store.write_rows([("payloads", late, payloads[keys[1]])])
        assert private.privacy.ledger.late(b"", 10) == [late], "noted by the database itself, so it survives a crash"
    with open_private(tmp_path) as private:
        private.run(until(lambda: not private.privacy.ledger.late(b"", 1)))
        assert root(private) == expected
        assert [private.ask("priv_getTransactionReceipt", one)["status"] for one in markers] == ["0x1"] * 4
        assert int(private.ask("priv_call", text(GROUP), GET), 16) == 3
        assert private.privacy.ledger.late(b"", 10) == []


def test_a_payload_that_comes_while_its_block_is_followed_is_executed(tmp_path: Path) -> None:
    """The payload arrives after the executor has requested it and before the marker is recorded."""
    with open_private(tmp_path) as private:
        marker = private.send()
        expected, receipt = root(private), private.ask("priv_getTransactionReceipt", marker)
        key = bytes.fromhex(private.ask("eth_getTransactionByHash", marker)["input"][2:])
        store = private.node.chain.store
        record = store.row("payloads", key)
        store.write_rows([("payloads", key, None)])
        private.privacy.ledger.clear()
    with open_private(tmp_path) as private:
        enclave, store = private.privacy.enclave, private.node.chain.store
        look = enclave.receive_many

        async def look_too_early(keys: Sequence[bytes]) -> list[OpenedPayload | None]:
            found = await look(keys)
            if store.row("payloads", key) is None:
                store.write_rows([("payloads", key, record)])
            return found

        enclave.receive_many = look_too_early  # type: ignore[method-assign]
        private.run(until(lambda: private.privacy.executor.is_at_head and not private.privacy.ledger.late(b"", 1)))
        assert private.ask("priv_getTransactionReceipt", marker) == receipt
        assert root(private) == expected


def test_a_rebuilt_node_has_the_same_state(tmp_path: Path) -> None:
    with open_private(tmp_path) as private:
        marker = private.send()
        private.send(set_number(8), nonce=1, to=CONTRACT)
        expected, receipt = root(private), private.ask("priv_getTransactionReceipt", marker)
        private.privacy.ledger.clear()
        assert private.privacy.ledger.followed() is None
    with open_private(tmp_path) as private:
        assert root(private) == expected
        assert private.ask("priv_getTransactionReceipt", marker) == receipt


def test_what_was_passed_with_other_keys_is_executed_when_the_right_one_is_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with open_private(tmp_path) as private:
        marker = private.send(private_from=FOR, private_for=[])
        expected = private.ask("priv_getTransactionReceipt", marker)
        assert expected["status"] == "0x1"
        private.privacy.ledger.clear()
    assert "enclave keys are missing" not in caplog.text
    with open_private(tmp_path, keys=1) as private:
        assert private.ask("priv_getTransactionReceipt", marker) is None
        assert private.privacy.executor.is_at_head
    assert f"private transactions are not executed keys={text(FOR)}" in caplog.text
    with open_private(tmp_path) as private:
        private.run(until(lambda: private.privacy.executor.counts.late == 1))
        assert private.ask("priv_getTransactionReceipt", marker) == expected


def test_options_that_hid_markers_are_pointed_out_until_all_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flexible = replace(PRIVACY, flexible=True)
    with open_private(tmp_path) as private:
        private.send()
        root(private)
    for _ in range(2):
        with open_private(tmp_path, flexible) as private:
            private.run(private.privacy.settled())
        assert "`ophion privacy rebuild`" in caplog.text
        caplog.clear()
    with open_private(tmp_path) as private:
        private.run(private.privacy.settled())
        private.privacy.ledger.clear()
    for _ in range(2):
        with open_private(tmp_path, flexible) as private:
            private.run(private.privacy.settled())
    assert "`ophion privacy rebuild`" not in caplog.text


def test_an_enclave_that_is_away_holds_up_nothing_but_private_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.01)
    monkeypatch.setattr("ophion.privacy.service.FOLLOW_LIMIT_S", 0.05)
    (port,) = free_ports(1)
    with open_private(tmp_path, outside=port) as private:
        with private.serving(port):
            marker = private.ask("eea_sendRawTransaction", private.signed())
        private.seal()
        private.seal()
        assert private.ask("eth_blockNumber") == "0x2", "blocks go on"
        assert private.ask("priv_getTransactionReceipt", marker) is None
        assert private.ask("priv_status")["waitsForEnclave"] is True
        monkeypatch.setattr("ophion.privacy.service.FOLLOW_LIMIT_S", 10.0)
        with private.serving(port):
            assert private.ask("priv_getTransactionReceipt", marker)["status"] == "0x1"
            assert private.ask("priv_status")["waitsForEnclave"] is False


def test_transactions_of_a_group_before_its_deletion_are_executed_by_later_members(tmp_path: Path) -> None:
    """A remote enclave drops a deleted group.

    A node that later executes the earlier transactions of the group gets the same result.
    """
    (port,) = free_ports(1)
    with open_private(tmp_path, outside=port) as private, private.serving(port):
        group: str = private.ask("priv_createPrivacyGroup", {"addresses": [text(FROM), text(FOR)]})
        marker = private.send(privacy_group_id=b64decode(group))
        expected = private.ask("priv_getTransactionReceipt", marker)
        assert expected["status"] == "0x1"
        private.ask("priv_deletePrivacyGroup", group)
        private.privacy.ledger.clear()
    with open_private(tmp_path, outside=port) as private, private.serving(port):
        assert private.ask("priv_getTransactionReceipt", marker) == expected


def test_blocks_without_markers_cost_no_write(tmp_path: Path) -> None:
    with open_private(tmp_path) as private:
        for nonce in range(3):
            private.run(private.node.mine(legacy_transaction(DEV_KEYS[2], nonce)))
        private.run(private.privacy.settled())
        assert private.privacy.executor.number == 3
        assert private.privacy.ledger.followed() is None


def test_a_reorganisation_is_followed_and_undoes_nothing_that_stays(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with open_private(tmp_path / "here") as private, open_core(tmp_path / "there") as other:
        filter_id = private.ask("priv_newFilter", text(GROUP), {})
        markers = [private.send(), private.send(set_number(5), nonce=1, to=CONTRACT)]
        expected = root(private)
        assert private.ask("priv_getTransactionReceipt", markers[0])["blockNumber"] == "0x1"
        raws = [bytes.fromhex(private.ask("eth_getRawTransactionByHash", marker)[2:]) for marker in markers]
        # on the other branch, the first marker is in a later block and the second marker is missing
        blocks = [private.run(other.mine()), private.run(other.mine(raws[0])), private.run(other.mine())]
        for header, _ in blocks:
            body = other.chain.store.body(header.hash)
            assert body is not None
            private.run(private.node.core.importer.import_block(ChainBlock(header, body)))
        assert private.ask("eth_blockNumber") == "0x3"
        assert private.ask("priv_getTransactionReceipt", markers[0])["blockNumber"] == "0x2"
        assert private.ask("priv_getTransactionReceipt", markers[1]) is None
        assert int(private.ask("priv_call", text(GROUP), GET), 16) == 0
        assert private.ask("priv_getTransactionCount", "0x" + DEV_KEYS[0].address.hex(), text(GROUP)) == "0x1"
        assert private.ask("priv_getCode", text(GROUP), GET["to"], "0x1") == "0x"
        assert private.ask("priv_getFilterChanges", text(GROUP), filter_id) == []
        private.run(private.node.seal(10.0))  # the second marker is back in the pool, and this block contains it
        assert root(private) == expected
        assert private.ask("priv_getTransactionReceipt", markers[1])["blockNumber"] == "0x4"
        assert int(private.ask("priv_call", text(GROUP), GET), 16) == 5


def test_a_reorganisation_between_two_looks_at_the_chain_leaves_no_block_out(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    with open_private(tmp_path / "here") as private, open_core(tmp_path / "there") as other:
        marker = private.send()
        expected = root(private)
        raw = bytes.fromhex(private.ask("eth_getRawTransactionByHash", marker)[2:])
        # on the other branch, the first block contains the marker and another transaction
        company = legacy_transaction(DEV_KEYS[2], 0)
        blocks = [private.run(other.mine(raw, company)), private.run(other.mine()), private.run(other.mine())]
        lane = private.privacy.executor._lanes.private
        look = lane.run

        async def look_too_late(job: Callable[[], T], deadline_s: float | None = None) -> T:
            while blocks:
                header, _ = blocks.pop(0)
                body = other.chain.store.body(header.hash)
                assert body is not None
                await private.node.core.importer.import_block(ChainBlock(header, body))
            return await look(job, deadline_s)

        lane.run = look_too_late  # type: ignore[method-assign]
        private.run(private.node.mine())
        private.run(until(lambda: private.privacy.executor.is_at_head and not blocks))
        assert private.ask("eth_blockNumber") == "0x3"
        assert private.ask("priv_getTransactionReceipt", marker)["status"] == "0x1"
        assert root(private) == expected


def test_a_payload_that_an_enclave_outside_gets_while_its_block_is_followed_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The payload arrives after it was found missing and before the marker is recorded."""
    monkeypatch.setattr(payload_retries, "FIRST_PAUSE_S", 0.01)
    (port,) = free_ports(1)
    with open_private(tmp_path, outside=port) as private, closing(open_store(tmp_path / "outside")) as store:
        keyring = EnclaveKeyring(ENCLAVE_SECRETS[:2])
        private.enclave = EmbeddedEnclave(store, keyring, InlineLanes(), SystemEntropy())
        enclave, executor = private.privacy.enclave, private.privacy.executor
        look, write, looks = enclave.receive_many, executor._lanes.write.run, list[int]()

        async def look_too_early(keys: Sequence[bytes]) -> list[OpenedPayload | None]:
            looks.append(len(keys))
            return [None] * len(keys) if len(looks) == 1 else await look(keys)

        async def write_too_late(job: Callable[[], T], deadline_s: float | None = None) -> T:
            if len(looks) == 1:  # delay the write until no retry is queued
                await until(lambda: not len(executor._retries))
            return await write(job, deadline_s)

        enclave.receive_many = look_too_early  # type: ignore[method-assign]
        with private.serving(port):
            marker = private.ask("eea_sendRawTransaction", private.signed())
            executor._lanes.write.run = write_too_late  # type: ignore[method-assign]
            private.seal()
            private.run(until(lambda: executor.counts.late == 1))
            assert private.ask("priv_getTransactionReceipt", marker)["status"] == "0x1"
