"""Payloads and groups without a marker are bounded, expire, and count across restarts. They do not use the budget of
known senders.
"""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

import pytest

from ophion.enclave import payload_quota
from ophion.enclave.embedded import EnclaveSettings
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.options import DeliveryMode
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_intake import BUDGET_EXCEEDED, TOO_MANY_GROUPS
from ophion.enclave.privacy_groups import NOT_ACCEPTED
from ophion.enclave.purge_unreferenced import purge_unmarked
from ophion.native.enclave import EnclaveKeyring
from ophion.runtime.clock import ManualClock
from ophion.testing.enclaves import EnclaveMember
from tests.unit.enclave.test_payload_intake import Hostile, marked, taken

TABLES = ("payloads", "arrivals", "groups", "lookup", "outbox")


def counted(member: EnclaveMember) -> list[int]:
    return [len(member.store.rows(table, b"", b"", 1_000_000)) for table in TABLES]


def groups_of(member: EnclaveMember, maker: bytes, first: int, count: int) -> list[EnclaveRecord]:
    records = [
        GroupRecord(GroupType.PANTHEON, "", "", (member.key, maker), number.to_bytes(20, "big"), maker)
        for number in range(first, first + count)
    ]
    return [EnclaveRecord(RecordLabel(RecordKind.GROUP, one.id), one.encode()) for one in records]


def with_clock(path: Path) -> tuple[EnclaveMember, ManualClock]:
    member = EnclaveMember(path, 1)
    member.close()
    clock = member.clock = ManualClock()
    member.open()
    return member, clock


def test_payloads_of_unknown_senders_count_across_restarts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_quota, "MAX_BYTES", 10 * payload_quota.MAX_BYTES // payload_quota.MAX_PAYLOADS)
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    for _ in range(3):
        taken(member, *(evil.seal(b"text", [member.key, evil.key]) for _ in range(20)), proven=evil.proven)
        assert counted(member)[0] == 10
        member.close()
        member.open()


def test_fetched_payloads_count_across_restarts_and_for_a_period(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (member, clock), other = with_clock(tmp_path), Hostile()
    clock.advance(payload_quota.FETCHED_PERIOD_S + 1)
    entries = [other.seal(b"text", [member.key, other.key]) for _ in range(6)]
    monkeypatch.setattr(payload_quota, "MAX_FETCHED_BYTES", 2 * len(entries[0].body))
    for _ in range(3):
        asyncio.run(member.enclave.take(entries, None))
        assert counted(member)[0] == 2
        member.close()
        member.open()
    clock.advance(payload_quota.FETCHED_PERIOD_S + 1)
    asyncio.run(member.enclave.take(entries, None))
    assert counted(member)[0] == 4


def test_a_known_sender_is_not_refused_because_of_strangers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(payload_quota, "MAX_BYTES", 10 * payload_quota.MAX_BYTES // payload_quota.MAX_PAYLOADS)
    member, evil, honest = EnclaveMember(tmp_path, 1), Hostile(), Hostile()
    honest.ring = EnclaveKeyring([b"\x67" * 32])
    [honest.key] = honest.ring.public_keys
    asyncio.run(marked(member, honest.key))
    member.close()
    member.open()
    refusals = taken(member, *(evil.seal(b"text", [member.key, evil.key]) for _ in range(20)), proven=evil.proven)
    assert refusals.count(BUDGET_EXCEEDED) == 10
    entry = honest.seal(b"text", [member.key, honest.key])
    assert taken(member, entry, proven=frozenset([honest.key])) == [None], "known from before the restart"


def test_groups_of_unknown_makers_share_a_budget_that_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(payload_quota, "MAX_UNKNOWN_GROUPS", 10)
    member, clock = with_clock(tmp_path)
    makers = [EnclaveKeyring([bytes([0x80 + number]) * 32]).public_keys[0] for number in range(4)]
    with caplog.at_level(logging.WARNING):
        for index, maker in enumerate(makers):
            taken(member, *groups_of(member, maker, 100 * index, 5), proven=frozenset([maker]))
    assert member.enclave.status()["groups"] == 10
    [warning] = [one.getMessage() for one in caplog.records if "budget is used up" in one.getMessage()]
    assert "ophion privacy purge" in warning
    member.close()
    member.open()
    refused = taken(member, *groups_of(member, makers[3], 900, 1), proven=frozenset([makers[3]]))
    assert refused == [TOO_MANY_GROUPS]
    clock.elapsed += payload_quota.UNKNOWN_EXPIRY_S + 1
    assert asyncio.run(member.enclave.expire()) == 10
    assert counted(member) == [0, 0, 0, 0, 0]
    assert member.enclave.status()["groups"] == 0
    assert taken(member, *groups_of(member, makers[3], 900, 1), proven=frozenset([makers[3]])) == [None]


def test_what_a_marker_refers_to_does_not_expire(tmp_path: Path) -> None:
    member, clock = with_clock(tmp_path)
    evil = Hostile()
    referenced, dead = evil.seal(b"kept", [member.key, evil.key]), evil.seal(b"dead", [member.key, evil.key])
    assert taken(member, referenced, dead, proven=evil.proven) == [None, None]
    assert asyncio.run(member.enclave.receive_many([referenced.label.id])) != [None]
    member.close()
    member.open()
    clock.elapsed += payload_quota.KNOWN_EXPIRY_S + 1
    assert asyncio.run(member.enclave.expire()) == 1
    assert [key for key, _ in member.store.rows("payloads", b"", b"", 10)] == [referenced.label.id]
    assert asyncio.run(member.enclave.receive_many([referenced.label.id])) != [None], "with its group"


def test_a_payload_keeps_its_group_alive(tmp_path: Path) -> None:
    member, clock = with_clock(tmp_path)
    evil = Hostile()
    [group] = groups_of(member, evil.key, 1, 1)
    assert taken(member, group, proven=evil.proven) == [None]
    clock.elapsed += payload_quota.UNKNOWN_EXPIRY_S - 1
    assert taken(member, evil.seal(b"x", [member.key, evil.key], group.label.id), proven=evil.proven) == [None]
    clock.elapsed += 2
    assert asyncio.run(member.enclave.expire()) == 0


def test_a_purge_deletes_everything_without_a_marker(tmp_path: Path) -> None:
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    own = asyncio.run(member.enclave.create_group([member.key], member.key))
    taken(member, *groups_of(member, evil.key, 1, 20), proven=evil.proven)
    taken(member, *(evil.seal(b"text", [member.key, evil.key]) for _ in range(5)), proven=evil.proven)
    assert purge_unmarked(member.store, frozenset([member.key])) == (5, 21)
    member.close()
    member.open()
    assert member.enclave.status()["groups"] == 1
    assert asyncio.run(member.enclave.group(own.id)) == own


def test_groups_of_makers_that_are_not_named_are_refused(tmp_path: Path) -> None:
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    member.close()
    member.open(EnclaveSettings(DeliveryMode.ALL, (), frozenset([bytes([7]) * 32])))
    entries = (*groups_of(member, evil.key, 1, 1), evil.seal(b"text", [member.key, evil.key]))
    assert taken(member, *entries, proven=evil.proven) == [NOT_ACCEPTED] * 2
    member.close()
    member.open(EnclaveSettings(DeliveryMode.ALL, (), frozenset([evil.key])))
    assert taken(member, *entries, proven=evil.proven) == [None] * 2


def test_with_node_permissions_new_groups_over_http_come_from_known_enclaves(tmp_path: Path) -> None:
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    member.close()
    member.open(EnclaveSettings(is_restricted=True))
    [group] = groups_of(member, evil.key, 1, 1)

    async def pushed(is_peer: bool) -> list[str | None]:
        return await member.enclave.take([group], evil.proven, is_peer=is_peer)

    assert asyncio.run(pushed(False)) == [NOT_ACCEPTED]
    assert asyncio.run(pushed(True)) == [None]
