"""A contract creates, locks, extends and reduces flexible groups, with the same result at every member."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import keccak256
from ophion.native.privacy import decode_versioned, encode_versioned, private_contract_address
from ophion.primitives import rlp
from ophion.privacy import payload_handover
from ophion.privacy.flexible_groups import PRECOMPILE, PROXY
from ophion.runtime.principal import TENANT
from ophion.testing.private_transactions import NUMBER_CONTRACT, add_members, remove_member, set_number, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import until
from tests.unit.rpc.private_interface import FOR, FROM, PRIVACY, THIRD, PrivateInterface, open_private

GROUP = b"\x17" * 32
"""Group id, which the creator of the group chooses."""
CONTRACT = private_contract_address(DEV_KEYS[0].address, 1, GROUP)
LOCK, UNLOCK = bytes.fromhex("f83d08ba"), bytes.fromhex("a69df4b5")
GET = {"to": "0x" + CONTRACT.hex(), "data": "0x6d4ce63c"}
FLEXIBLE = replace(PRIVACY, flexible=True)


class Flexible:
    """The creator of a group. The object counts the creator's nonces."""

    def __init__(self, private: PrivateInterface) -> None:
        self.private = private
        self.nonce = 0

    def send(self, data: bytes, to: bytes | None = PROXY, **members: Any) -> dict[str, Any]:
        marker = self.private.send(data, nonce=self.nonce, to=to, privacy_group_id=GROUP, **members)
        receipt: dict[str, Any] = self.private.ask("priv_getTransactionReceipt", marker)
        self.nonce += receipt["status"] == "0x1"
        return receipt

    def read(self, selector: str) -> str:
        call = {"to": "0x" + PROXY.hex(), "data": selector}
        found: str = self.private.ask("priv_call", text(GROUP), call)
        return found

    def members(self) -> list[str]:
        """Return the members from the RPC interface, which must match the contract."""
        content = bytes.fromhex(self.read("0x5aa68ac0")[2:])
        count = int.from_bytes(content[32:64], "big")
        starts = [64 + int.from_bytes(content[64 + 32 * n : 96 + 32 * n], "big") for n in range(count)]
        keys = [text(content[start + 32 : start + 64]) for start in starts]
        (found,) = self.private.ask("privx_findFlexiblePrivacyGroup", keys)
        for older in ("privx_findOnchainPrivacyGroup", "privx_findOnChainPrivacyGroup"):
            assert self.private.ask(older, keys) == [found | {"type": "ONCHAIN"}]
        assert found == {
            "privacyGroupId": text(GROUP),
            "name": "",
            "description": "",
            "type": "FLEXIBLE",
            "members": keys,
        }
        return keys


@pytest.fixture
def private(tmp_path: Path) -> Iterator[PrivateInterface]:
    with open_private(tmp_path, FLEXIBLE, keys=3) as opened:
        yield opened


def test_selectors_are_those_of_the_reference() -> None:
    names = {
        "addParticipants(bytes[])": "965a25ef",
        "removeParticipant(bytes)": "1f52a8ee",
        "getParticipants()": "5aa68ac0",
        "canExecute()": "78b90337",
        "lock()": "f83d08ba",
        "unlock()": "a69df4b5",
        "getVersion()": "0d8e6e2c",
        "addParticipants(bytes32[])": "b4926e25",
        "removeParticipant(bytes32)": "fd017797",
    }
    assert {name: keccak256(name.encode())[:4].hex() for name in names} == names


def test_a_group_is_made_used_locked_widened_and_narrowed(private: PrivateInterface) -> None:
    group = Flexible(private)
    receipt = group.send(add_members(FROM, FOR))
    assert (receipt["status"], receipt["privacyGroupId"], receipt["to"]) == ("0x1", text(GROUP), "0x" + PROXY.hex())
    marker = private.ask("eth_getTransactionByHash", receipt["transactionHash"])
    assert (marker["to"], len(marker["input"])) == ("0x" + PRECOMPILE.hex(), 66)
    assert group.members() == [text(FROM), text(FOR)]
    assert int(group.read("0x78b90337"), 16) == 1, "canExecute"
    version = group.read("0x0d8e6e2c")
    created = group.send(NUMBER_CONTRACT, to=None)
    assert (created["status"], created["contractAddress"]) == ("0x1", GET["to"])
    assert group.send(set_number(47), to=CONTRACT)["status"] == "0x1"
    assert int(private.ask("priv_call", text(GROUP), GET), 16) == 47
    # the group is locked and accepts only management transactions
    assert private.error("eea_sendRawTransaction", signed(private, add_members(THIRD), 3)) == (
        -50100,
        "The privacy group must be locked before members are added",
    )
    assert group.send(LOCK)["status"] == "0x1"
    assert int(group.read("0x78b90337"), 16) == 0
    assert private.error("eea_sendRawTransaction", signed(private, set_number(1), 4, to=CONTRACT)) == (
        -50100,
        "The privacy group is locked",
    )
    # adding a member makes a marker with two keys
    receipt = group.send(add_members(THIRD))
    assert receipt["status"] == "0x1"
    assert len(private.ask("eth_getTransactionByHash", receipt["transactionHash"])["input"]) == 130
    assert group.members() == [text(FROM), text(FOR), text(THIRD)]
    assert group.read("0x0d8e6e2c") != version
    assert int(group.read("0x78b90337"), 16) == 1, "adding unlocks"
    assert group.send(set_number(48), to=CONTRACT)["status"] == "0x1"
    # remove the member FOR from the group
    assert group.send(remove_member(FOR))["status"] == "0x1"
    assert set(group.members()) == {text(FROM), text(THIRD)}
    assert private.ask("privx_findOnchainPrivacyGroup", [text(FROM), text(FOR)]) == []
    assert group.send(set_number(49), to=CONTRACT)["status"] == "0x1"
    assert int(private.ask("priv_call", text(GROUP), GET), 16) == 49
    assert group.send(LOCK)["status"] == group.send(UNLOCK)["status"] == "0x1"
    assert private.ask("priv_getTransactionCount", "0x" + DEV_KEYS[0].address.hex(), text(GROUP)) == hex(group.nonce)
    shown = private.ask("priv_getPrivateTransaction", receipt["transactionHash"])
    assert (shown["privacyGroupId"], shown["to"]) == (text(GROUP), "0x" + PROXY.hex())
    (entry,) = [
        one for one in private.ask("priv_traceTransaction", created["transactionHash"]) if one["traceAddress"] == []
    ]
    assert entry["type"] == "create"


def signed(private: PrivateInterface, data: bytes, nonce: int, to: bytes | None = PROXY, **members: Any) -> str:
    return private.signed(data, nonce=nonce, to=to, **({"privacy_group_id": GROUP} | members))


def test_only_the_creator_of_a_group_manages_it(private: PrivateInterface) -> None:
    group = Flexible(private)
    group.send(add_members(FROM, FOR))
    marker = private.send(LOCK, nonce=0, to=PROXY, privacy_group_id=GROUP, key=DEV_KEYS[2])
    receipt = private.ask("priv_getTransactionReceipt", marker)
    assert receipt["status"] == "0x0"
    assert "Only whoever made the group may do this" in private.ask("priv_explain", marker)["reason"]
    # a call that bypasses the proxy contract also fails
    direct = group.send(LOCK, to=(0x7B).to_bytes(20, "big"))
    assert direct["status"] == "0x0"
    assert group.members() == [text(FROM), text(FOR)]


def test_what_is_refused(private: PrivateInterface) -> None:
    no_group = (-50100, "Flexible Privacy group does not exist.")
    assert private.error("eea_sendRawTransaction", signed(private, set_number(1), 0, to=CONTRACT)) == no_group
    assert private.error("eea_sendRawTransaction", signed(private, add_members(FOR), 0)) == (
        -50100,
        "addParticipants must include the key of privateFrom: the creator of a flexible group is a member",
    )
    assert private.error("eea_sendRawTransaction", private.signed()) == (
        -50100,
        "Flexible privacy groups are addressed by privacyGroupId",
    )
    for broken in (add_members(FROM)[:-1], add_members(FROM)[:40], add_members(FROM)[:4], add_members(FROM[:31])):
        assert private.error("eea_sendRawTransaction", signed(private, broken, 0))[0] == -50100
    members = [text(FROM), text(FOR)]
    assert private.error("priv_createPrivacyGroup", members) == (-50100, "Error creating privacy group")
    assert private.error("priv_deletePrivacyGroup", text(GROUP)) == (-50100, "Error deleting privacy group")
    assert private.ask("privx_findFlexiblePrivacyGroup", members) == []
    assert private.ask("priv_getPrivacyPrecompileAddress") == "0x" + PRECOMPILE.hex()
    assert private.node.chain.store.rows("payloads", b"", b"", 1) == []
    Flexible(private).send(add_members(FOR, FROM))
    assert private.error("eea_sendRawTransaction", signed(private, LOCK, 1, private_from=THIRD)) == no_group


def marked(private: PrivateInterface, payload: bytes, sender: bytes, to: list[bytes], nonce: int) -> str:
    """Send any payload to any recipients with a marker, as a hostile member could."""
    key = private.run(private.enclave.send(payload, sender, to))
    raw = legacy_transaction(DEV_KEYS[2], nonce, to=PRECOMPILE, data=key, gas=100_000, gas_price=10**9)
    marker: str = private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    return marker


def test_a_payload_of_other_members_or_another_version_is_not_run(private: PrivateInterface) -> None:
    group = Flexible(private)
    group.send(add_members(FROM, FOR))
    version = bytes.fromhex(group.read("0x0d8e6e2c")[2:])
    raw = bytes.fromhex(signed(private, LOCK, 1)[2:])
    cases = {
        "it was not sent to every member": (encode_versioned(raw, version), FROM, [THIRD]),
        "the members of its group have changed since it was sent": (encode_versioned(raw, bytes(32)), FROM, [FOR]),
        "privateFrom is not the key that sealed it": (encode_versioned(raw, version), FOR, [FROM]),
        "privateFrom is not a member of the group": (
            encode_versioned(bytes.fromhex(signed(private, LOCK, 1, private_from=THIRD)[2:]), version),
            THIRD,
            [FROM, FOR],
        ),
    }
    for nonce, (reason, (payload, sender, to)) in enumerate(cases.items()):
        marker = marked(private, payload, sender, to, nonce)
        explained = private.ask("priv_explain", marker)
        assert (explained["state"], explained["reason"]) == ("invalid", reason)
    # the transaction adds a member, but its payload is not sent to this member
    assert group.send(LOCK)["status"] == "0x1"
    adding = bytes.fromhex(signed(private, add_members(THIRD), 2)[2:])
    explained = private.ask("priv_explain", marked(private, encode_versioned(adding, version), FROM, [FOR], 4))
    assert (explained["state"], explained["reason"]) == ("failed", "it was not sent to every member")
    assert group.members() == [text(FROM), text(FOR)]
    # a flexible group cannot take over the state of a group of another type
    first = bytes.fromhex(private.signed()[2:])
    assert private.ask("priv_explain", marked(private, first, FROM, [FOR], 5))["state"] == "executed"
    other = legacy_id([FROM, FOR])
    taking = bytes.fromhex(signed(private, add_members(FROM, FOR), 1, privacy_group_id=other)[2:])
    explained = private.ask("priv_explain", marked(private, encode_versioned(taking, bytes(32)), FROM, [FOR], 6))
    assert (explained["state"], explained["reason"]) == ("invalid", "its group does not exist")


def test_versioned_payloads_are_read_strictly() -> None:
    raw = b"\xc0"
    payload = encode_versioned(raw, bytes(32))
    for broken in (b"", b"\xc0", payload, payload[:-1], payload + b"\0", b"\xff" * 40):
        with pytest.raises(Exception, match=r".+"):
            decode_versioned(broken)


def test_a_member_rebuilds_what_was_before_its_time_from_what_it_was_handed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An added member lacks the original payloads. It rebuilds the earlier states from the handover, which has several
    chunks.
    """
    monkeypatch.setattr(payload_handover, "_CHUNK_BYTES", 1000)
    with open_private(tmp_path, FLEXIBLE, keys=3) as private:
        group = Flexible(private)
        receipts = [group.send(add_members(FROM, FOR)), group.send(NUMBER_CONTRACT, to=None)]
        receipts += [group.send(set_number(value), to=CONTRACT) for value in range(1, 8)]
        receipts += [group.send(LOCK), group.send(add_members(THIRD))]
        expected = [private.ask("priv_getTransactionReceipt", one["transactionHash"]) for one in receipts]
        root = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
        store = private.node.chain.store
        keys = [private.ask("eth_getTransactionByHash", one["transactionHash"])["input"][2:66] for one in receipts]
        store.write_rows([("payloads", bytes.fromhex(key), None) for key in keys[:-1]])
        private.privacy.ledger.clear()
        assert store.rows("handed", b"", b"", 100) == []
    with open_private(tmp_path, FLEXIBLE, keys=3) as private:
        assert private.ask("priv_debugGetStateRoot", text(GROUP), "latest") == root
        found = [private.ask("priv_getTransactionReceipt", one["transactionHash"]) for one in receipts]
        assert found == expected
        assert len(private.node.chain.store.rows("handed", b"", b"", 100)) == len(receipts) - 1
        assert Flexible(private).members() == [text(FROM), text(FOR), text(THIRD)]


def test_what_is_handed_over_may_come_after_the_member_was_added(tmp_path: Path) -> None:
    """The handover may arrive after the member was added, for example if the adding member is killed."""
    with open_private(tmp_path, FLEXIBLE, keys=3) as private:
        group = Flexible(private)
        receipts = [group.send(add_members(FROM, FOR)), group.send(NUMBER_CONTRACT, to=None), group.send(LOCK)]
        receipts += [group.send(add_members(THIRD)), group.send(set_number(47), to=CONTRACT)]
        expected = [private.ask("priv_getTransactionReceipt", one["transactionHash"]) for one in receipts]
        root = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
        store = private.node.chain.store
        inputs = [private.ask("eth_getTransactionByHash", one["transactionHash"])["input"] for one in receipts]
        index = bytes.fromhex(inputs[3][66:])
        record = store.row("payloads", index)
        store.write_rows([("payloads", bytes.fromhex(one[2:66]), None) for one in inputs[:3]])
        store.write_rows([("payloads", index, None)])
        private.privacy.ledger.clear()
    with open_private(tmp_path, FLEXIBLE, keys=3) as private:
        assert private.ask("priv_debugGetStateRoot", text(GROUP), "latest") != root
        found = [private.ask("priv_getTransactionReceipt", one["transactionHash"]) for one in receipts]
        assert [one and one["status"] for one in found] == [None, None, None, "0x2", "0x2"]
        private.node.chain.store.write_rows([("payloads", index, record)])
        assert private.privacy.ledger.late(b"", 10) == [index], "noted by the database itself, so it survives a crash"
    with open_private(tmp_path, FLEXIBLE, keys=3) as private:
        private.run(until(lambda: not private.privacy.ledger.late(b"", 1)))
        assert private.ask("priv_debugGetStateRoot", text(GROUP), "latest") == root
        assert [private.ask("priv_getTransactionReceipt", one["transactionHash"]) for one in receipts] == expected


def test_a_handover_does_not_change_the_past_of_a_group(private: PrivateInterface) -> None:
    """A handover does not make a marker of another group count as a transaction of this group."""
    group = Flexible(private)
    group.send(add_members(FROM, FOR))
    before = private.ask("priv_debugGetStateRoot", text(GROUP), "latest")
    foreign = b"\x99" * 32
    raw = legacy_transaction(DEV_KEYS[2], 0, to=PRECOMPILE, data=foreign, gas=100_000, gas_price=10**9)
    private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    version = bytes.fromhex(group.read("0x0d8e6e2c")[2:])
    forged = encode_versioned(bytes.fromhex(signed(private, LOCK, 1)[2:]), version)
    adding = encode_versioned(bytes.fromhex(signed(private, add_members(FROM), 1, private_from=THIRD)[2:]), version)

    async def sent() -> bytes:
        chunk = await private.enclave.send(rlp.encode([[foreign, FROM, [FROM, FOR], forged]]), THIRD, [FROM])
        index = await private.enclave.send(rlp.encode([[chunk]]), THIRD, [FROM])
        return await private.enclave.send(adding, THIRD, [FROM, FOR]) + index

    data = private.run(sent())
    raw = legacy_transaction(DEV_KEYS[2], 1, to=PRECOMPILE, data=data, gas=100_000, gas_price=10**9)
    private.ask("eth_sendRawTransaction", "0x" + raw.hex())
    private.seal()
    assert private.ask("priv_debugGetStateRoot", text(GROUP), "latest") == before
    assert private.node.chain.store.rows("handed", b"", b"", 1) == []
    assert group.members() == [text(FROM), text(FOR)]


def test_tenants_see_the_flexible_groups_that_they_belong_to(tmp_path: Path) -> None:
    with open_private(tmp_path, replace(FLEXIBLE, multi_tenancy=True), keys=3) as private:
        TENANT.set(text(FROM))
        receipt = Flexible(private).send(add_members(FROM, FOR))
        keys = [text(FROM), text(FOR)]
        for key, is_member in ((FROM, True), (FOR, True), (THIRD, False)):
            TENANT.set(text(key))
            shown = private.ask("priv_getTransactionReceipt", receipt["transactionHash"])
            assert (shown is not None) is is_member
            call = ("priv_getCode", text(GROUP), "0x" + PROXY.hex())
            if is_member:
                assert len(private.ask("privx_findFlexiblePrivacyGroup", keys)) == 1
                assert private.ask(*call) != "0x"
            else:
                refused = (-50100, "Error finding flexible privacy group")
                assert private.error("privx_findFlexiblePrivacyGroup", keys) == refused
                assert private.error(*call) == (-50100, "Privacy group must contain the enclave public key")
