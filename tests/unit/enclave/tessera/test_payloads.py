"""Payloads and groups keep their content in the encodings of Tessera; other bytes are refused."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.tessera.cbor import MAX_VALUES, decode_cbor
from ophion.enclave.tessera.groups import decode_group, encode_group
from ophion.enclave.tessera.payloads import TesseraPayload, decode_payload, encode_payload
from ophion.errors import DecodeError
from ophion.testing.old_enclaves import cbor

KEYS = tuple(bytes([n]) * 32 for n in (1, 2, 3))
PAYLOAD = TesseraPayload(KEYS[0], b"ciphertext", b"\x05" * 24, b"\x06" * 24, (b"\x07" * 48,), (KEYS[1],))
GROUP = GroupRecord(GroupType.PANTHEON, "name", "text", KEYS, bytes(range(20)), KEYS[0])


def fields(**changes: Any) -> bytes:
    content = {
        "sender": PAYLOAD.sender,
        "cipherText": PAYLOAD.ciphertext,
        "nonce": PAYLOAD.nonce,
        "recipientNonce": PAYLOAD.box_nonce,
        "recipientBoxes": list(PAYLOAD.boxes),
        "recipients": list(PAYLOAD.recipients),
    }
    # Tessera writes a map with a known number of members
    encoded = cbor(content | changes)[1:-1]
    return bytes([0xA0 + len(content)]) + encoded


def test_a_payload_is_read_as_it_was_written() -> None:
    encoded = encode_payload(PAYLOAD, b"g" * 32)
    assert decode_payload(encoded) == PAYLOAD
    assert encoded[:8] == (32).to_bytes(8, "big")
    # privacy mode, no affected contracts, group
    assert encoded[-57:] == bytes(7) + b"\x01\x00" + bytes(8) + bytes(7) + b"\x20" + b"g" * 32


def test_both_encodings_give_the_same_payload() -> None:
    assert decode_payload(fields()) == PAYLOAD


@pytest.mark.parametrize("cut", range(0, 200, 7))
def test_a_payload_that_is_cut_off_is_refused(cut: int) -> None:
    encoded = encode_payload(PAYLOAD, b"g" * 32)
    assert cut < encoded.index(PAYLOAD.recipients[0])
    with pytest.raises(DecodeError):
        decode_payload(encoded[:cut])


@pytest.mark.parametrize(
    "changes",
    [
        {"sender": "text"},
        {"nonce": b"short"},
        {"recipientBoxes": []},
        {"recipients": b""},
        {"recipientBoxes": ["text"]},
    ],
)
def test_a_map_with_another_field_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(DecodeError):
        decode_payload(fields(**changes))


def test_a_number_is_no_length_of_a_field() -> None:
    """A number in place of bytes must not make a buffer of that size."""
    number = b"\x1b" + (1 << 40).to_bytes(8, "big")
    encoded = fields().replace(b"\x58\x20" + PAYLOAD.sender, number)
    with pytest.raises(DecodeError, match="sender is missing"):
        decode_payload(encoded)


def test_cbor_has_a_bounded_number_of_values() -> None:
    count = MAX_VALUES + 1
    with pytest.raises(DecodeError, match="too many values"):
        decode_cbor(b"\x99" + count.to_bytes(2, "big") + b"\x01" * count)
    assert len(decode_cbor(b"\x99" + (1000).to_bytes(2, "big") + b"\x01" * 1000)) == 1000


@pytest.mark.parametrize("group", [GROUP, GROUP.deleted()])
def test_a_group_is_read_as_it_was_written(group: GroupRecord) -> None:
    found = decode_group(encode_group(group))
    assert found == group
    assert found.id == GROUP.id


@pytest.mark.parametrize(
    "data",
    [
        b"",
        encode_group(GROUP)[:-3],
        encode_group(GROUP).replace(b"PANTHEON", b"RESIDENT"),
        encode_group(GROUP).replace(b"name", b"\xff\xff\xff\xff"),
        encode_group(GroupRecord(GroupType.PANTHEON, "", "", (), bytes(20), KEYS[0])),
    ],
)
def test_other_groups_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_group(data)
