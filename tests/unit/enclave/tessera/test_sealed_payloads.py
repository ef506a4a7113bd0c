"""A payload of Tessera becomes a record that its recipient opens, and gives away nothing to others."""

from __future__ import annotations

from base64 import b64encode

import pytest

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.tessera.groups import legacy_group
from ophion.enclave.tessera.payloads import TesseraPayload
from ophion.enclave.tessera.sealed_payloads import (
    ABSENT_BOX,
    boxes_of,
    group_in,
    has_absent_boxes,
    is_same_payload,
    opened,
    payload_for,
    record_for_member,
    with_box,
)
from ophion.errors import DecodeError
from ophion.native.enclave import EnclaveKeyring, read_sealed
from ophion.primitives import rlp

RINGS = [EnclaveKeyring([bytes([seed]) * 32]) for seed in (1, 2, 3, 4)]
A, B, C, D = KEYS = [ring.public_keys[0] for ring in RINGS]
GROUP = legacy_id([A, B, C])
TEXT = b64encode(rlp.encode([b""] * 9 + [A, [B, C], b"restricted"]))
KEY, RECORD = RINGS[0].seal(TEXT, A, [B, C, A], 3, GROUP, bytes(range(80)))


def payload_of(recipient: bytes) -> TesseraPayload:
    found = payload_for(RECORD, recipient)
    assert found is not None
    return found


def refuse(group_id: bytes) -> GroupRecord:
    raise DecodeError("unknown")


def test_a_recipient_gets_its_own_box_alone() -> None:
    found = payload_of(B)
    assert (found.sender, found.recipients) == (A, (B,))
    assert found.boxes == (boxes_of(RECORD)[B],)
    assert payload_for(RECORD, D) is None


def test_the_record_of_a_recipient_opens_and_names_the_group() -> None:
    own, box, text = opened(RINGS[1], payload_of(B))
    assert (own, text) == (B, TEXT)
    record = record_for_member(payload_of(B), group_in(text, refuse), own, box)
    [judged] = RINGS[1].judge([record])
    assert judged is not None
    assert judged.agrees
    assert (judged.key, judged.group, judged.members) == (KEY, GROUP, 3)
    assert judged.is_legacy
    assert RINGS[2].open(record) is None
    assert with_box(record, read_sealed(record).recipients) == [B]
    assert payload_for(record, C) is None, "a box that is absent cannot be passed on"
    assert is_same_payload(RECORD, record)


def test_a_key_outside_of_the_group_keeps_its_copy() -> None:
    _, full = RINGS[0].seal(TEXT, A, [B, C, A, D], 3, GROUP, bytes(80))
    copy = payload_for(full, D)
    assert copy is not None
    own, box, text = opened(RINGS[3], copy)
    record = record_for_member(copy, group_in(text, refuse), own, box)
    assert RINGS[3].open(record) == TEXT
    assert read_sealed(record).members == 3
    assert read_sealed(record).recipients[3:] == [D]


def test_all_boxes_are_there_in_a_record_of_ophion() -> None:
    assert not has_absent_boxes(RECORD)
    assert with_box(RECORD, KEYS[:3]) == KEYS[:3]
    assert not is_same_payload(RECORD, RECORD)
    assert bytes(48) == ABSENT_BOX


def test_others_do_not_open_it() -> None:
    with pytest.raises(DecodeError, match="no key of this enclave opens it"):
        opened(RINGS[2], payload_of(B))


@pytest.mark.parametrize("text", [b"", b"not base64!", b64encode(b"text"), b64encode(rlp.encode([b""] * 11))])
def test_other_content_has_no_group(text: bytes) -> None:
    with pytest.raises(DecodeError):
        group_in(text, refuse)


def test_a_created_group_is_looked_up() -> None:
    text = b64encode(rlp.encode([b""] * 9 + [A, b"i" * 32, b"restricted"]))
    assert group_in(text, lambda id: legacy_group((A, B))).members == (A, B)
    with pytest.raises(DecodeError, match="unknown"):
        group_in(text, refuse)
