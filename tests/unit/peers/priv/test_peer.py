"""Tests priv/1 between enclaves over real sessions: key proofs, delivery, outbox, catch-up, and access."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ophion.enclave import embedded, payload_quota
from ophion.enclave.embedded import EnclaveSettings
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import OpenedPayload
from ophion.enclave.options import DeliveryMode
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.errors import EnclaveError
from ophion.runtime.clock import SystemEntropy
from ophion.testing.enclaves import EnclaveMember, at_work, met, part
from ophion.testing.wait_for import until

SECRET = b"47 pieces, and nobody else shall know"


def test_a_recipient_has_a_payload_when_its_sender_has_the_key(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with at_work(a, b, c):
            meetings = await met(a, b, c)
            key = await a.enclave.send(SECRET, a.key, [b.key])
            expected = [OpenedPayload(SECRET, legacy_id([a.key, b.key]), a.key)]
            assert await b.enclave.receive_many([key]) == expected
            assert await a.enclave.receive_many([key]) == expected
            assert await c.enclave.receive_many([key]) == [None]
            assert b.late == [key]
            assert c.store.rows("payloads", b"", b"", 1) == []
            await part(meetings)

    asyncio.run(story())


def test_many_payloads_travel_together(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            keys = await asyncio.gather(*(a.enclave.send(SECRET + bytes([n]), a.key, [b.key]) for n in range(200)))
            received = await b.enclave.receive_many(keys)
            assert [one.payload for one in received if one is not None] == [SECRET + bytes([n]) for n in range(200)]
            await part(meetings)

    asyncio.run(story())


def test_groups_reach_their_members_before_their_payloads(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            group = await a.enclave.create_group([a.key, b.key], a.key, "ours", "both of us")
            assert await b.enclave.group(group.id) == group
            key = await b.enclave.send(SECRET, b.key, group_id=group.id)
            assert await a.enclave.receive_many([key]) == [OpenedPayload(SECRET, group.id, b.key)]
            await b.enclave.delete_group(group.id, b.key)
            known = await a.enclave.group(group.id)
            assert known is not None
            assert not known.active
            await part(meetings)

    asyncio.run(story())


def test_who_is_away_gets_it_from_the_outbox_after_restarts_of_both(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1, DeliveryMode.QUEUE), EnclaveMember(tmp_path, 2, DeliveryMode.QUEUE)

    async def send() -> list[bytes]:
        async with at_work(a):
            group = await a.enclave.create_group([a.key, b.key], a.key)
            by_group = [await a.enclave.send(SECRET, a.key, group_id=group.id) for _ in range(3)]
            return [*by_group, *[await a.enclave.send(SECRET, a.key, [b.key]) for _ in range(3)]]

    async def hand_over(keys: list[bytes]) -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            await until(lambda: not a.enclave.status()["outbox"])
            assert None not in await b.enclave.receive_many(keys)
            assert sorted(b.late) == sorted(keys)
            await part(meetings)

    keys = asyncio.run(send())
    for member in (a, b):
        member.close()
        member.open()
    assert sum(a.enclave.status()["outbox"].values()) == 7
    asyncio.run(hand_over(keys))
    a.close()
    a.open()
    assert a.enclave.status()["outbox"] == {}


def test_a_restored_member_catches_up_by_itself_from_any_holder(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def fill() -> list[bytes]:
        async with at_work(a, b, c):
            meetings = await met(a, b, c)
            group = await a.enclave.create_group([a.key, b.key, c.key], a.key)
            keys = [await a.enclave.send(SECRET, a.key, group_id=group.id) for _ in range(5)]
            foreign = await a.enclave.send(SECRET, a.key, [c.key])
            await part(meetings)
        return [*keys, foreign]

    async def restore(keys: list[bytes]) -> None:
        async with at_work(b, c):
            meetings = await met(b, c)
            await until(lambda: len(b.late) >= 5)
            assert None not in await b.enclave.receive_many(keys)
            await part(meetings)

    *keys, foreign = asyncio.run(fill())
    b.store.clear_rows(["payloads", "arrivals", "groups", "lookup", "outbox", "cursors"])
    b.close()
    b.open()
    b.late.clear()
    asyncio.run(restore(keys))
    assert sorted(b.late) == sorted(keys)
    assert asyncio.run(b.enclave.receive_many([foreign])) == [None]
    assert b.store.row("payloads", foreign) is None


def test_refused_payloads_are_requested_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def fill() -> list[bytes]:
        async with at_work(a, b):
            meetings = await met(a, b)
            keys = [await a.enclave.send(SECRET, a.key, [b.key]) for _ in range(5)]
            await part(meetings)
        return keys

    async def restore(count: int) -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            await until(lambda: len(b.late) == count)
            [line] = b.enclave.directory.links(a.key)
            await line.listing(b.key, 0)  # when this request is answered, all earlier requests are answered too
            await part(meetings)

    keys = asyncio.run(fill())
    record = b.store.row("payloads", keys[0])
    assert record is not None
    b.store.clear_rows(["payloads", "arrivals", "groups", "lookup", "outbox", "cursors"])
    for count, room in ((2, 2 * len(record)), (5, 1 << 30)):
        monkeypatch.setattr(payload_quota, "MAX_FETCHED_BYTES", room)
        b.close()
        b.open()
        if count == 2:
            b.late.clear()
        asyncio.run(restore(count))
    assert sorted(b.late) == sorted(keys)


def test_fetch_missing_asks_all_enclaves_again(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            keys = [await a.enclave.send(SECRET, a.key, [b.key]) for _ in range(4)]
            b.store.clear_rows(["payloads"])
            assert await b.enclave.receive_many(keys) == [None] * 4
            assert await b.enclave.fetch_missing(legacy_id([a.key, b.key])) == 4
            assert None not in await b.enclave.receive_many(keys)
            assert await b.enclave.fetch_missing() == 0
            await part(meetings)

    asyncio.run(story())


def test_only_participants_learn_of_a_payload(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with at_work(a, b, c):
            meetings = await met(a, b, c)
            key = await a.enclave.send(SECRET, a.key, [b.key])
            group = legacy_id([a.key, b.key])
            [line] = c.enclave.directory.links(a.key)
            assert await line.fetch([RecordLabel(RecordKind.PAYLOAD, key), RecordLabel(RecordKind.GROUP, group)]) == []
            assert (await line.listing(b.key, 0)).labels == []
            assert (await line.listing(c.key, 0)).labels == []
            [line] = b.enclave.directory.links(a.key)
            assert (
                len(await line.fetch([RecordLabel(RecordKind.PAYLOAD, key), RecordLabel(RecordKind.GROUP, group)])) == 2
            )
            await part(meetings)

    asyncio.run(story())


def test_a_connection_that_ends_fails_what_is_under_way(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            sending = asyncio.create_task(a.enclave.send(SECRET, a.key, [b.key]))
            await part(meetings)
            with pytest.raises(EnclaveError) as lost:
                await sending
            assert lost.value.code in ("NodePushingToPeer", "NodeMissingPeerUrl")
            assert not a.enclave.directory.links(b.key)

    asyncio.run(story())


def test_an_always_send_to_key_gets_a_copy_and_is_no_member(tmp_path: Path) -> None:
    a, b, c = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))
    a.close()
    a.open(EnclaveSettings(DeliveryMode.ALL, (c.key,)))

    async def story() -> None:
        async with at_work(a, b, c):
            meetings = await met(a, b, c)
            key = await a.enclave.send(SECRET, a.key, [b.key])
            group = legacy_id([a.key, b.key])
            assert await c.enclave.receive_many([key]) == [OpenedPayload(SECRET, group, a.key)]
            assert await c.enclave.group(group) is None
            await part(meetings)

    asyncio.run(story())


def test_a_group_that_was_lost_is_asked_for_when_a_payload_comes(tmp_path: Path) -> None:
    a, b = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)

    async def story() -> None:
        async with at_work(a, b):
            meetings = await met(a, b)
            group = await a.enclave.create_group([a.key, b.key], a.key, "ours")
            await part(meetings)
            b.store.clear_rows(["groups", "lookup", "arrivals"])
            b.close()
            b.open()
        async with at_work(a):  # the service of member b does not run, so b does not catch up by itself
            meetings = await met(a, b)
            assert await b.enclave.group(group.id) is None
            key = await a.enclave.send(SECRET, a.key, group_id=group.id)
            assert await b.enclave.group(group.id) == group
            assert await b.enclave.receive_many([key]) == [OpenedPayload(SECRET, group.id, a.key)]
            await part(meetings)

    asyncio.run(story())


def test_what_a_sender_keeps_from_a_member_comes_from_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile member sends a payload to only one of two members. The second member gets the payload from the first,
    so that states agree.
    """
    monkeypatch.setattr(embedded, "LOOK_AGAIN_S", 0.05)
    a, b, evil = (EnclaveMember(tmp_path, number) for number in (1, 2, 3))

    async def story() -> None:
        async with at_work(a, b, evil):
            meetings = [*await met(a, b), *await met(a, evil)]
            members = [a.key, b.key, evil.key]
            key, record = evil.enclave.keyring.seal(
                b"text", evil.key, members, 3, legacy_id(members), SystemEntropy().token(80)
            )
            [line] = evil.enclave.directory.links(a.key)
            assert await line.push(EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record)) is None
            await until(lambda: b.late == [key])
            await part(meetings)

    asyncio.run(story())
