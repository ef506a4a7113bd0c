"""Tests the embedded enclave of one node."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import MAX_PAYLOAD_BYTES, GroupType, OpenedPayload
from ophion.enclave.options import DeliveryMode
from ophion.enclave.payload_access import readable_records
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.errors import EnclaveError
from ophion.testing.enclaves import EnclaveMember, at_work
from ophion.testing.wait_for import until

SECRET = b"the price is 47 and nobody else shall know"


def test_a_payload_for_oneself_is_read_again_also_after_a_restart(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    key = asyncio.run(member.enclave.send(SECRET, member.key, []))
    expected = OpenedPayload(SECRET, legacy_id([member.key]), member.key)
    assert asyncio.run(member.enclave.receive_many([key, bytes(32)])) == [expected, None]
    member.close()
    member.open()
    assert asyncio.run(member.enclave.receive_many([key])) == [expected]


def test_the_first_payload_makes_the_legacy_group(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    first, second = member.enclave.keys

    async def story() -> None:
        await member.enclave.send(SECRET, first, [second])
        group = await member.enclave.group(legacy_id([first, second]))
        assert group is not None
        assert (group.type, group.name, group.members) == (GroupType.LEGACY, "legacy", (second, first))
        assert await member.enclave.find_groups([first, second]) == [group]
        assert await member.enclave.find_groups([first]) == []

    asyncio.run(story())


def test_groups_are_made_found_and_deleted(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1, keys=2)
    first, second = member.enclave.keys

    async def story() -> bytes:
        enclave = member.enclave
        group = await enclave.create_group([first, second], first, "name", "what for")
        other = await enclave.create_group([first, second], first)
        assert group.id != other.id
        assert await enclave.group(group.id) == group
        assert {one.id for one in await enclave.find_groups([second, first])} == {group.id, other.id}
        key = await enclave.send(SECRET, second, group_id=group.id)
        [received] = await enclave.receive_many([key])
        assert received == OpenedPayload(SECRET, group.id, second)
        assert await enclave.delete_group(group.id, first) == group.id
        with pytest.raises(EnclaveError) as refused:
            await enclave.send(SECRET, first, group_id=group.id)
        assert refused.value.code == "PrivacyGroupNotFound"
        assert [one.id for one in await enclave.find_groups([first, second])] == [other.id]
        return group.id

    group_id = asyncio.run(story())
    member.close()
    member.open()
    group = asyncio.run(member.enclave.group(group_id))
    assert group is not None
    assert not group.active


LOW_ORDER = [bytes(32), b"\1" + bytes(31), bytes.fromhex("ed" + "ff" * 30 + "7f")]


@pytest.mark.parametrize("key", LOW_ORDER)
def test_keys_of_low_order_are_refused_everywhere(tmp_path: Path, key: bytes) -> None:
    member = EnclaveMember(tmp_path, 1)
    for work in (
        member.enclave.send(SECRET, member.key, [key]),
        member.enclave.create_group([member.key, key], member.key),
    ):
        with pytest.raises(EnclaveError) as refused:
            asyncio.run(work)
        assert refused.value.code in ("EnclaveDecodePublicKey", "NodeMissingPeerUrl")
    assert member.store.rows("payloads", b"", b"", 1) == []
    assert member.store.rows("groups", b"", b"", 1) == []


def test_what_cannot_be_sent_is_refused_with_the_word_for_it(tmp_path: Path) -> None:
    member, other = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)
    stories = [
        (member.enclave.send(SECRET, other.key, []), "EnclaveNoMatchingPrivateKey"),
        (member.enclave.send(SECRET, member.key, [other.key]), "NodeMissingPeerUrl"),
        (member.enclave.send(SECRET, member.key, group_id=bytes(32)), "PrivacyGroupNotFound"),
        (member.enclave.send(bytes(MAX_PAYLOAD_BYTES + 3), member.key, []), "InvalidPayload"),
        (member.enclave.send(SECRET, member.key, [b"short"]), "EnclaveDecodePublicKey"),
        (member.enclave.create_group([other.key], member.key), "CreatePrivacyGroupShouldIncludeSelf"),
        (member.enclave.create_group([member.key, other.key], member.key), "PrivacyGroupNotPushed"),
        (member.enclave.delete_group(bytes(32), member.key), "PrivacyGroupNotFound"),
        (member.enclave.create_group([member.key], member.key, "x" * 2000), "EnclavePrivacyGroupIdCreation"),
    ]
    for work, code in stories:
        with pytest.raises(EnclaveError) as refused:
            asyncio.run(work)
        assert refused.value.code == code
    assert member.store.rows("payloads", b"", b"", 1) == []


def test_nothing_readable_lies_in_the_database(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    asyncio.run(member.enclave.send(SECRET, member.key, []))
    member.close()
    content = (member.path / "data.mdb").read_bytes()
    assert SECRET not in content
    assert SECRET[:12] not in content


def test_status_says_who_and_what_waits(tmp_path: Path) -> None:
    member, other = EnclaveMember(tmp_path, 1, DeliveryMode.QUEUE), EnclaveMember(tmp_path, 2)
    asyncio.run(member.enclave.send(SECRET, member.key, [other.key]))
    status = member.enclave.status()
    assert status["delivery"] == "queue"
    assert status["groups"] == 1
    assert list(status["outbox"].values()) == [1]
    assert status["peers"] == {}


class Elsewhere:
    """A connection to an enclave that has no payloads and may answer slowly."""

    name = "elsewhere"
    keys: frozenset[bytes] = frozenset()
    is_fallback = False

    def __init__(self, identity: bytes, answers: bool) -> None:
        self.identity = identity
        self.answers = answers
        self.asked = 0

    def push(self, entry: EnclaveRecord) -> asyncio.Future[str | None]:
        raise AssertionError("nothing is sent here")

    async def listing(self, key: bytes, after: int) -> RecordListing:
        self.asked += 1
        if not self.answers:
            await asyncio.Event().wait()
        return RecordListing([], 0, False)

    async def fetch(self, labels: Sequence[RecordLabel]) -> list[EnclaveRecord]:
        raise AssertionError("nothing is listed here")


def test_no_line_waits_for_another_that_takes_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.enclave.embedded.LOOK_AGAIN_S", 0.001)
    member = EnclaveMember(tmp_path, 1)
    slow, quick = Elsewhere(b"s" * 64, False), Elsewhere(b"q" * 64, True)

    async def story() -> None:
        async with at_work(member):
            member.enclave.directory.add(slow, b"s" * 32)
            member.enclave.directory.add(quick, b"q" * 32)
            await until(lambda: quick.asked > 5)
            assert slow.asked == 1, "it is not asked twice at a time"

    asyncio.run(story())


def test_a_record_is_served_once_however_often_it_is_asked_for(tmp_path: Path) -> None:
    member = EnclaveMember(tmp_path, 1)
    key = asyncio.run(member.enclave.send(SECRET, member.key, []))
    label = RecordLabel(RecordKind.PAYLOAD, key)
    assert [entry.label for entry in readable_records(member.enclave, [label] * 1000, frozenset({member.key}))] == [
        label
    ]
    assert readable_records(member.enclave, [label] * 1000, frozenset({b"x" * 32})) == []
    member.close()
