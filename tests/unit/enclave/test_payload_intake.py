"""Payloads of hostile members are refused with a reason, cost little, and change nothing."""

from __future__ import annotations

import asyncio
import os
import time
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path

import pytest

from ophion.enclave import payload_quota
from ophion.enclave import privacy_groups as group_limits
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import MAX_PAYLOAD_BYTES, GroupType
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_intake import TOO_MANY_GROUPS
from ophion.native.enclave import EnclaveKeyring
from ophion.primitives import rlp
from ophion.runtime.clock import SystemEntropy
from ophion.testing.enclaves import EnclaveMember

ENTROPY = SystemEntropy()


class Hostile:
    """A hostile enclave with its own keys that can seal any payload."""

    def __init__(self) -> None:
        self.ring = EnclaveKeyring([b"\x66" * 32])
        [self.key] = self.ring.public_keys
        self.proven = frozenset([self.key])

    def seal(
        self, text: bytes, recipients: Sequence[bytes], group: bytes | None = None, members: int = -1
    ) -> EnclaveRecord:
        count = len(recipients) if members < 0 else members
        group = legacy_id(recipients[:count]) if group is None else group
        key, record = self.ring.seal(text, self.key, recipients, count, group, ENTROPY.token(80))
        return EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record)


def taken(member: EnclaveMember, *entries: EnclaveRecord, proven: frozenset[bytes]) -> list[str | None]:
    return asyncio.run(member.enclave.take(entries, proven))


def is_untouched(member: EnclaveMember) -> bool:
    tables = ("payloads", "arrivals", "groups", "lookup", "outbox", "cursors")
    return all(member.store.rows(table, b"", b"", 1) == [] for table in tables) and not member.late


def transaction(private_from: bytes, to: list[bytes] | bytes) -> bytes:
    """Return base64 of bytes in the form of a private transaction."""
    return b64encode(rlp.encode([b""] * 9 + [private_from, to, b"restricted"]))


def test_an_honest_payload_is_taken_once(tmp_path: Path) -> None:
    member, other = EnclaveMember(tmp_path, 1), Hostile()
    entry = other.seal(transaction(other.key, [member.key]), [member.key, other.key])
    assert taken(member, entry, entry, proven=other.proven) == [None, None]
    assert taken(member, entry, proven=other.proven) == [None]
    assert member.late == [entry.label.id]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    member, outsider = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)
    evil = Hostile()
    both = [member.key, evil.key]
    good = evil.seal(b"text", both)
    flipped = bytes([good.body[-1] ^ 1])
    cases = {
        "does not open": evil.seal(b"text", [outsider.key, evil.key]),
        "not what its label says": EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, bytes(32)), good.body),
        "its group is unknown": evil.seal(b"text", both, bytes(32)),
        "its sender is no member": evil.seal(b"text", [member.key]),
        "another sender or group": evil.seal(transaction(member.key, [evil.key]), both),
        "too large": evil.seal(bytes(4 * MAX_PAYLOAD_BYTES), both),
    }
    for reason, entry in cases.items():
        [refusal] = taken(member, entry, proven=evil.proven)
        assert refusal is not None
        assert reason in refusal
    [refusal] = taken(member, EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, bytes(32)), b"nothing"), proven=evil.proven)
    assert refusal == "it is no sealed payload"
    [refusal] = taken(member, good, proven=frozenset([outsider.key]))
    assert refusal == "its sender's key is not proven"
    changed = good.body[:-1] + flipped
    key = evil.ring.judge([changed])[0]
    assert key is not None
    [refusal] = taken(member, EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key.key), changed), proven=evil.proven)
    assert refusal == "it does not open"
    assert is_untouched(member)


def test_a_payload_is_not_replayed_under_another_group_or_name(tmp_path: Path) -> None:
    """A member forwards another member's transaction. The enclave refuses the transaction, because the signature covers
    sender and group.
    """
    victim, author, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2), Hostile()
    honest = transaction(author.key, [evil.key])
    for group_text in (honest, transaction(evil.key, legacy_id([author.key, evil.key]))):
        [refusal] = taken(victim, evil.seal(group_text, [victim.key, evil.key]), proven=evil.proven)
        assert refusal == "the transaction in it names another sender or group"
    assert is_untouched(victim)


def test_a_stored_payload_cannot_be_replaced(tmp_path: Path) -> None:
    """A record with the ciphertext of a stored payload but another header has the same key. The enclave refuses this
    record.
    """
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    first = evil.seal(b"text", [member.key, evil.key])
    assert taken(member, first, proven=evil.proven) == [None]
    other_head = bytearray(first.body)
    other_head[112] ^= 1  # this byte is the last byte of the group id
    second = EnclaveRecord(first.label, bytes(other_head))
    assert taken(member, second, proven=evil.proven) == ["another record has its key"]
    assert member.store.row("payloads", first.label.id) == first.body


def test_a_group_is_what_its_id_says_and_comes_from_a_member(tmp_path: Path) -> None:
    member, outsider, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2), Hostile()

    def group(members: tuple[bytes, ...], **changes: object) -> EnclaveRecord:
        fields = {"type": GroupType.PANTHEON, "name": "", "description": "", "seed": b"s" * 20, "maker": evil.key}
        record = GroupRecord(members=members, **{**fields, **changes})  # type: ignore[arg-type]
        return EnclaveRecord(RecordLabel(RecordKind.GROUP, record.id), record.encode())

    both = (member.key, evil.key)
    cases = {
        "this enclave is no member": group((outsider.key, evil.key)),
        "a member's key is not sound": group((*both, bytes(32))),
        "it comes from no member": group((member.key, outsider.key)),
        "groups of this type": group(both, type=GroupType.FLEXIBLE),
        "not what its label says": EnclaveRecord(RecordLabel(RecordKind.GROUP, bytes(32)), group(both).body),
        "malformed": EnclaveRecord(RecordLabel(RecordKind.GROUP, bytes(32)), b"\xff"),
        "a text of at most": group(both, name="x" * 2000),
    }
    for reason, entry in cases.items():
        [refusal] = taken(member, entry, proven=evil.proven)
        assert refusal is not None
        assert reason in refusal
    assert is_untouched(member)


def test_a_deleted_group_stays_deleted_and_takes_nothing_more(tmp_path: Path) -> None:
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    both = (member.key, evil.key)
    record = GroupRecord(GroupType.PANTHEON, "", "", both, b"s" * 20, evil.key)
    made = EnclaveRecord(RecordLabel(RecordKind.GROUP, record.id), record.encode())
    deleted = EnclaveRecord(made.label, record.deleted().encode())
    late = evil.seal(b"text", both, record.id)
    assert taken(member, made, deleted, made, late, proven=evil.proven) == [None, None, None, "its group was deleted"]
    group = asyncio.run(member.enclave.group(record.id))
    assert group is not None
    assert not group.active


def test_recipients_must_be_exactly_the_group(tmp_path: Path) -> None:
    """The recipients must be exactly the members of the group. Otherwise a member would miss a payload that others
    execute.
    """
    member, third, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2), Hostile()
    all_three = (member.key, third.key, evil.key)
    record = GroupRecord(GroupType.PANTHEON, "", "", all_three, b"s" * 20, evil.key)
    made = EnclaveRecord(RecordLabel(RecordKind.GROUP, record.id), record.encode())
    without_third = evil.seal(b"text", [member.key, evil.key], record.id)
    hidden = evil.seal(b"text", [member.key, evil.key, third.key], record.id, members=2)
    refusals = taken(member, made, without_third, hidden, proven=evil.proven)
    assert refusals == [None, "its recipients are not its group", "its recipients are not its group"]


def test_very_many_groups_of_one_maker_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_limits, "MAX_GROUPS_OF_ONE", 20)
    member, honest, evil = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2), Hostile()
    both = (member.key, evil.key)

    def groups(first: int, maker: bytes) -> list[EnclaveRecord]:
        made = [
            GroupRecord(GroupType.PANTHEON, "", "", both, number.to_bytes(20, "big"), maker)
            for number in range(first, first + 30)
        ]
        return [EnclaveRecord(RecordLabel(RecordKind.GROUP, one.id), one.encode()) for one in made]

    refusals = taken(member, *groups(0, evil.key), proven=evil.proven)
    assert [one is None for one in refusals] == [True] * 20 + [False] * 10
    # neither another creator, nor a restart, nor legacy groups raise the limit
    assert None not in taken(member, *groups(100, honest.key), proven=evil.proven)
    member.close()
    member.open()
    assert None not in taken(member, *groups(200, evil.key), proven=evil.proven)
    assert None not in taken(member, evil.seal(b"text", [member.key, honest.key, evil.key]), proven=evil.proven)
    # existing groups still accept payloads, and other members can create groups
    assert taken(member, evil.seal(b"text", both, groups(0, evil.key)[0].label.id), proven=evil.proven) == [None]
    theirs = GroupRecord(GroupType.PANTHEON, "", "", (member.key, honest.key), bytes(20), honest.key)
    entry = EnclaveRecord(RecordLabel(RecordKind.GROUP, theirs.id), theirs.encode())
    assert taken(member, entry, proven=frozenset([honest.key])) == [None]


def test_payloads_without_markers_are_bounded_until_a_marker_refers_to_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_quota, "MAX_BYTES", 100 * payload_quota.MAX_BYTES // payload_quota.MAX_PAYLOADS)
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    both = [member.key, evil.key]
    entries = [evil.seal(b"text %d" % number, both) for number in range(250)]
    refusals = taken(member, *entries, proven=evil.proven)
    assert [one is None for one in refusals] == [True] * 100 + [False] * 150
    assert refusals[-1] == "too many payloads of its sender wait for their markers"
    # after markers for fifty payloads, the sender is known, and its other fifty payloads count against its own budget
    assert None not in asyncio.run(member.enclave.receive_many([one.label.id for one in entries[:50]]))
    refusals = taken(member, *entries[100:], proven=evil.proven)
    assert sum(one is None for one in refusals) == 50


LOW_ORDER = [bytes(32), b"\1" + bytes(31), *(bytes.fromhex(low + "ff" * 30 + "7f") for low in ("ec", "ed", "ee"))]


@pytest.mark.parametrize("low", LOW_ORDER)
def test_points_of_low_order_are_refused_as_senders_recipients_and_members(tmp_path: Path, low: bytes) -> None:
    """Keys of low order are refused, because every party can compute the shared secret with such a key."""
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    good = evil.seal(b"text", [member.key, evil.key])
    sender = good.body.replace(evil.key, low)
    assert taken(member, EnclaveRecord(good.label, sender), proven=evil.proven | {low}) == ["it does not open"]
    third = EnclaveKeyring([b"\x44" * 32]).public_keys[0]
    wide = evil.seal(b"text", [member.key, evil.key, third], legacy_id([member.key, evil.key, low]))
    recipient = EnclaveRecord(wide.label, wide.body.replace(third, low))
    assert taken(member, recipient, proven=evil.proven) == ["a member's key is not sound"]
    record = GroupRecord(GroupType.PANTHEON, "", "", (member.key, evil.key, low), b"s" * 20, evil.key)
    group = EnclaveRecord(RecordLabel(RecordKind.GROUP, record.id), record.encode())
    assert taken(member, group, proven=evil.proven) == ["a member's key is not sound"]
    assert is_untouched(member)


def test_a_payload_of_16_mib_is_refused(tmp_path: Path) -> None:
    member, evil = EnclaveMember(tmp_path, 1), Hostile()
    large = evil.seal(bytes(16 * 1024 * 1024), [member.key, evil.key])
    assert taken(member, large, proven=evil.proven) == ["it is too large"]
    assert is_untouched(member)


def test_a_million_groups_are_refused_and_bounded(tmp_path: Path) -> None:
    """The enclave stores a bounded number of groups from unknown senders. OPHION_GROUPS=1000000 sends a million."""
    wanted = int(os.environ.get("OPHION_GROUPS", "12000"))
    member, honest = EnclaveMember(tmp_path, 1), EnclaveMember(tmp_path, 2)
    before, began, accepted = resident(), time.perf_counter(), 0
    makers = [EnclaveKeyring([bytes([0x80 + number]) * 32]).public_keys[0] for number in range(50)]
    for first in range(0, wanted, 1000):
        # the first 21,000 groups come from one creator, and then the creator changes every 1,000 groups
        maker = makers[max(0, first - 20_000) // 1000 % len(makers)]
        records = [
            GroupRecord(GroupType.PANTHEON, "n", "d", (member.key, maker), number.to_bytes(20, "big"), maker)
            for number in range(first, first + 1000)
        ]
        entries = [EnclaveRecord(RecordLabel(RecordKind.GROUP, one.id), one.encode()) for one in records]
        accepted += taken(member, *entries, proven=frozenset([maker])).count(None)
    seconds, growth_bytes = time.perf_counter() - began, resident() - before
    print(f"{wanted} groups: {accepted} kept, {seconds:.1f} s, {growth_bytes >> 20} MiB more in memory")
    assert accepted == min(wanted, payload_quota.MAX_UNKNOWN_GROUPS)
    assert member.enclave.status()["groups"] == accepted
    assert growth_bytes < 256 << 20
    # after the attack, this member and an honest member can still create groups
    own = asyncio.run(member.enclave.create_group([member.key], member.key))
    assert asyncio.run(member.enclave.group(own.id)) == own
    theirs = GroupRecord(GroupType.PANTHEON, "", "", (member.key, honest.key), bytes(20), honest.key)
    entry = EnclaveRecord(RecordLabel(RecordKind.GROUP, theirs.id), theirs.encode())
    is_full = accepted == payload_quota.MAX_UNKNOWN_GROUPS
    assert taken(member, entry, proven=frozenset([honest.key])) == [TOO_MANY_GROUPS if is_full else None]
    # a sender with a marker on the chain has its own budget, even after a restart
    asyncio.run(marked(member, honest.key))
    member.close()
    member.open()
    assert taken(member, entry, proven=frozenset([honest.key])) == [None]


async def marked(member: EnclaveMember, sender: bytes) -> None:
    """Send a marker for a payload of this sender."""
    member.enclave.settle([bytes(32)], [(b"", bytes(32), sender)])
    await asyncio.sleep(0.01)


def resident() -> int:
    """Return the resident memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
