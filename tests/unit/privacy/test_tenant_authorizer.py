"""Tenants: no method, filter, subscription or trace shows a group to a tenant that is not currently a member.

The test compares the table of requests with the registry of methods, so a new method fails until it has an entry.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from ophion.enclave.embedded import EnclaveSettings
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.options import DeliveryMode
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.native.privacy import private_contract_address
from ophion.privacy.tenant_authorizer import NO_KEY, NOT_A_MEMBER
from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import WEBSOCKET
from ophion.runtime.principal import TENANT
from ophion.testing.enclaves import EnclaveMember
from ophion.testing.private_transactions import add_members, remove_member, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.privacy.test_flexible_groups import FLEXIBLE, LOCK, UNLOCK, Flexible
from tests.unit.privacy.test_flexible_groups import GROUP as FLEXIBLE_GROUP
from tests.unit.rpc.interface import GROUPS
from tests.unit.rpc.methods.test_priv_state import LOGGER, Listening, word
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, THIRD, PrivateInterface, open_private

ACCOUNT = "0x" + DEV_KEYS[0].address.hex()
FOREIGN = legacy_id([FROM, FOR])
UNKNOWN = b"\x5a" * 32
SHOWN = "0x" + private_contract_address(DEV_KEYS[0].address, 0, FOREIGN).hex()
TENANTS = replace(PRIVACY, multi_tenancy=True)
PRIVATE_GROUPS = ("eea", "priv", "privx")


class About(NamedTuple):
    """The group and the transactions that a request names."""

    group: bytes
    members: tuple[bytes, ...]
    """Keys from which a client computes or finds the group."""
    marker: str
    filter_id: str
    subscription: str


def _signed(private: PrivateInterface, about: About) -> str:
    return private.signed(nonce=9, private_from=THIRD, privacy_group_id=about.group)


REQUESTS: dict[str, Callable[[PrivateInterface, About], list[Any]]] = {
    "eea_getTransactionCount": lambda _, a: [ACCOUNT, text(a.members[0]), [text(key) for key in a.members[1:]]],
    "eea_getTransactionReceipt": lambda _, a: [a.marker],
    "eea_sendRawTransaction": lambda private, a: [_signed(private, a)],
    "priv_call": lambda _, a: [text(a.group), {"to": SHOWN}],
    "priv_catchUp": lambda _, a: [text(a.group)],
    "priv_createPrivacyGroup": lambda _, a: [{"addresses": [text(key) for key in a.members]}],
    "priv_debugGetStateRoot": lambda _, a: [text(a.group), "latest"],
    "priv_deletePrivacyGroup": lambda _, a: [text(a.group)],
    "priv_distributeRawTransaction": lambda private, a: [_signed(private, a)],
    "priv_explain": lambda _, a: [a.marker],
    "priv_findPrivacyGroup": lambda _, a: [[text(key) for key in a.members]],
    "priv_getCode": lambda _, a: [text(a.group), SHOWN],
    "priv_getEeaTransactionCount": lambda _, a: [ACCOUNT, text(a.members[0]), [text(key) for key in a.members[1:]]],
    "priv_getFilterChanges": lambda _, a: [text(a.group), a.filter_id],
    "priv_getFilterLogs": lambda _, a: [text(a.group), a.filter_id],
    "priv_getLogs": lambda _, a: [text(a.group), {}],
    "priv_getPrivacyPrecompileAddress": lambda _, a: [],
    "priv_getPrivateTransaction": lambda _, a: [a.marker],
    "priv_getTransactionCount": lambda _, a: [ACCOUNT, text(a.group)],
    "priv_getTransactionReceipt": lambda _, a: [a.marker],
    "priv_newFilter": lambda _, a: [text(a.group), {}],
    "priv_status": lambda _, a: [],
    "priv_subscribe": lambda _, a: [text(a.group), "logs"],
    "priv_traceTransaction": lambda _, a: [a.marker],
    "priv_uninstallFilter": lambda _, a: [text(a.group), a.filter_id],
    "priv_unsubscribe": lambda _, a: [text(a.group), a.subscription],
    "privx_findFlexiblePrivacyGroup": lambda _, a: [[text(key) for key in a.members]],
    "privx_findOnChainPrivacyGroup": lambda _, a: [[text(key) for key in a.members]],
    "privx_findOnchainPrivacyGroup": lambda _, a: [[text(key) for key in a.members]],
    # these public methods accept ids of private filters or hashes of markers
    "eth_getFilterChanges": lambda _, a: [a.filter_id],
    "eth_getFilterLogs": lambda _, a: [a.filter_id],
    "eth_uninstallFilter": lambda _, a: [a.filter_id],
}


def test_every_method_of_private_transactions_is_in_the_table() -> None:
    names = {name for spec in all_methods().specs for name in spec.names if spec.group in PRIVATE_GROUPS}
    assert names == {name for name in REQUESTS if not name.startswith("eth_")}


@pytest.fixture(autouse=True)
def as_operator() -> Iterator[None]:
    before = TENANT.set(None)
    yield
    TENANT.reset(before)


def as_tenant(key: bytes | None) -> None:
    TENANT.set(None if key is None else text(key))


class Connection:
    """A WebSocket connection of a tenant."""

    def __init__(self, private: PrivateInterface) -> None:
        self.caller = Listening()
        self._private = private
        self._dispatcher = private.dispatcher_for(WEBSOCKET, (*GROUPS, "eea", "priv", "privx"))

    def ask(self, name: str, params: list[Any]) -> dict[str, Any]:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}).encode()
        found: dict[str, Any] = self._private.message(body, self._dispatcher, self.caller)
        return found

    def result(self, name: str, *params: Any) -> Any:
        return self.ask(name, list(params))["result"]


def marker_of_nothing(private: PrivateInterface, precompile: int, nonce: int = 0) -> str:
    """Send a marker whose payload is missing, and wait until the marker is mined."""
    to = precompile.to_bytes(20, "big")
    raw = legacy_transaction(DEV_KEYS[2], nonce, to=to, data=b"\x11" * 32, gas=100_000, gas_price=10**9)
    marker: str = private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    return marker


def differing(connection: Connection, private: PrivateInterface, foreign: About, unknown: About) -> list[str]:
    """Return the methods whose answers differ between a foreign and an unknown group."""
    found = []
    for name, params in REQUESTS.items():
        answers = []
        for about in (foreign, unknown):
            answer = connection.ask(name, params(private, about))
            if isinstance(answer.get("result"), dict):  # remove the public facts from the result of priv_explain
                for member in ("marker", "payloadKey", "blockNumber", "blockHash"):
                    answer["result"].pop(member, None)
            answers.append(answer)
        if answers[0] != answers[1]:
            found.append(f"{name}: {answers}")
    return found


def test_a_foreign_group_looks_like_an_unknown_one(tmp_path: Path) -> None:
    with open_private(tmp_path, TENANTS, keys=3) as private:
        mine, other = Connection(private), Connection(private)
        as_tenant(FROM)
        marker = private.send(LOGGER)
        filter_id = mine.result("priv_newFilter", text(FOREIGN), {})
        subscription = mine.result("priv_subscribe", text(FOREIGN), "logs")
        unknown_marker = marker_of_nothing(private, 126)
        assert mine.result("priv_getTransactionReceipt", marker)["contractAddress"] == SHOWN
        foreign = About(FOREIGN, (FROM, FOR), marker, filter_id, subscription)
        unknown = About(UNKNOWN, (FROM, bytes([9]) * 32), unknown_marker, "0x77", "0x99")
        as_tenant(THIRD)
        assert differing(other, private, foreign, unknown) == []
        for name in ("priv_call", "priv_getCode", "priv_getLogs", "priv_subscribe", "priv_newFilter"):
            answer = other.ask(name, REQUESTS[name](private, unknown))
            assert answer["error"]["message"] == NOT_A_MEMBER, name
        as_tenant(FROM)
        assert mine.result("priv_uninstallFilter", text(FOREIGN), filter_id) is True, "still there"


def test_a_subscription_to_a_computable_group_that_does_not_exist_yet_is_refused(tmp_path: Path) -> None:
    with open_private(tmp_path, TENANTS, keys=3) as private:
        other = Connection(private)
        as_tenant(THIRD)
        assert other.ask("priv_subscribe", [text(FOREIGN), "logs"])["error"]["message"] == NOT_A_MEMBER
        as_tenant(FROM)
        private.ask("priv_getTransactionReceipt", private.send(LOGGER))
        marker = private.send(bytes.fromhex(word(1)[2:]), nonce=1, to=bytes.fromhex(SHOWN[2:]))
        assert private.ask("priv_getTransactionReceipt", marker)["logs"]
        assert other.caller.told == []


def test_a_new_group_of_ones_own_has_no_transactions_yet(tmp_path: Path) -> None:
    with open_private(tmp_path, TENANTS, keys=3) as private:
        as_tenant(FROM)
        assert private.ask("priv_getEeaTransactionCount", ACCOUNT, text(FROM), [text(FOR)]) == "0x0"
        as_tenant(THIRD)
        refused = (-50100, NOT_A_MEMBER)
        assert private.error("priv_getEeaTransactionCount", ACCOUNT, text(FROM), [text(FOR)]) == refused


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("priv_findPrivacyGroup", "Error finding privacy group"),
        ("privx_findFlexiblePrivacyGroup", "Error finding flexible privacy group"),
        ("privx_findOnchainPrivacyGroup", "Error finding flexible privacy group"),
    ],
)
def test_a_tenant_finds_groups_with_its_own_key_only(tmp_path: Path, method: str, message: str) -> None:
    with open_private(tmp_path, TENANTS, keys=3) as private:
        as_tenant(THIRD)
        assert private.ask(method, [text(FROM), text(THIRD)]) == []
        assert private.error(method, [text(FROM), text(FOR)]) == (-50100, message)


def test_a_former_member_of_a_flexible_group_sees_what_a_stranger_sees(tmp_path: Path) -> None:
    with open_private(tmp_path, replace(FLEXIBLE, multi_tenancy=True), keys=3) as private:
        as_tenant(FROM)
        group = Flexible(private)
        added = group.send(add_members(FROM, THIRD))
        former, member = Connection(private), Connection(private)
        as_tenant(THIRD)
        assert former.result("priv_getTransactionReceipt", added["transactionHash"]) is not None
        subscription = former.result("priv_subscribe", text(FLEXIBLE_GROUP), "logs")
        filter_id = former.result("priv_newFilter", text(FLEXIBLE_GROUP), {})
        as_tenant(FROM)
        member.result("priv_subscribe", text(FLEXIBLE_GROUP), "logs")
        assert group.send(LOGGER, to=None)["status"] == "0x1"
        contract = private_contract_address(DEV_KEYS[0].address, group.nonce - 1, FLEXIBLE_GROUP)
        assert group.send(bytes.fromhex(word(1)[2:]), to=contract)["logs"]
        private.run(until(lambda: bool(former.caller.told and member.caller.told)))
        assert group.send(remove_member(THIRD))["status"] == "0x1"
        notified_before = len(former.caller.told)
        for data in (LOCK, UNLOCK):
            group.send(data)
        marker = group.send(bytes.fromhex(word(2)[2:]), to=contract)
        assert marker["logs"]
        private.run(until(lambda: len(member.caller.told) > 1))
        assert len(former.caller.told) == notified_before, "nothing after the removal"
        assert len(private.subscriptions) == 1, "the subscription of the former member has ended"
        unknown_marker = marker_of_nothing(private, 125)
        foreign = About(FLEXIBLE_GROUP, (FROM, FOR), marker["transactionHash"], filter_id, subscription)
        unknown = About(UNKNOWN, (FROM, bytes([9]) * 32), unknown_marker, "0x77", "0x99")
        as_tenant(THIRD)
        assert differing(former, private, foreign, unknown) == []


def test_a_copy_of_every_payload_gives_no_tenant_the_group(tmp_path: Path) -> None:
    """A node that gets copies by `--privacy-always-send-to` executes groups without being a member. No tenant may see
    these groups.
    """
    with open_private(tmp_path, TENANTS, keys=2) as private:
        as_tenant(FROM)
        sender = EnclaveMember(tmp_path / "sender", 1)
        sender.close()
        sender.open(EnclaveSettings(DeliveryMode.QUEUE, (FROM,)))
        group = legacy_id([sender.key])
        raw = bytes.fromhex(private.signed(LOGGER, private_from=sender.key, private_for=[sender.key])[2:])

        async def sent() -> bytes:
            key = await sender.enclave.send(raw, sender.key, [sender.key])
            label = RecordLabel(RecordKind.PAYLOAD, key)
            body = sender.enclave.load(label)
            assert body is not None
            assert await private.enclave.take([EnclaveRecord(label, body)], frozenset({sender.key})) == [None]
            return key

        key = private.run(sent())
        assert private.enclave.open_many([key])[0] is not None, "the copy is here"
        marker = legacy_transaction(
            DEV_KEYS[2], 0, to=(126).to_bytes(20, "big"), data=key, gas=100_000, gas_price=10**9
        )
        hash = private.ask("eth_sendRawTransaction", "0x" + marker.hex())
        private.seal()
        sender.close()
        for tenant in (FROM, FOR):
            as_tenant(tenant)
            assert private.error("priv_getTransactionCount", ACCOUNT, text(group)) == (-50100, NOT_A_MEMBER)
            assert private.error("priv_getCode", text(group), SHOWN) == (-50100, NOT_A_MEMBER)
            assert private.error("priv_debugGetStateRoot", text(group)) == (-50100, NOT_A_MEMBER)
            assert private.ask("priv_getTransactionReceipt", hash) is None


def test_a_token_without_a_key_calls_nothing_about_groups(tmp_path: Path) -> None:
    with open_private(tmp_path, TENANTS, keys=3) as private:
        connection = Connection(private)
        about = About(FOREIGN, (FROM, FOR), "0x" + "11" * 32, "0x77", "0x99")
        for key in (None, bytes(32)):
            as_tenant(key)
            for name, params in REQUESTS.items():
                if name.startswith("eth_") or name == "priv_getPrivacyPrecompileAddress":
                    continue
                answer = connection.ask(name, params(private, about))
                if name == "priv_status":
                    assert answer["error"]["code"] == -50100
                elif name in ("eea_getTransactionReceipt", "priv_getTransactionReceipt", "priv_getPrivateTransaction"):
                    assert answer.get("error", {}).get("message", NO_KEY) == NO_KEY, answer
                    assert answer.get("result") is None
                else:
                    assert "error" in answer or answer["result"] in (None, {}) or name == "priv_explain", name
