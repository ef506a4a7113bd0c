"""Fuzz targets of the enclave: every input of another enclave, a tool or a file gives a value or one clear error."""

from __future__ import annotations

import asyncio
import json
import tempfile
from base64 import b64encode
from collections.abc import Callable
from functools import cache
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ophion.enclave.group_ids import legacy_id
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.keyfile import read_pair, read_public
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.remote.error_responses import refusal
from ophion.enclave.tessera.groups import decode_group, encode_group
from ophion.enclave.tessera.party_info import PartyInfo
from ophion.enclave.tessera.payloads import decode_payload, encode_payload
from ophion.enclave.tessera.sealed_payloads import boxes_of, group_in, opened, payload_for, record_for_member
from ophion.enclave_http.envelope import Envelope, open_request, seal_request
from ophion.enclave_http.request_bodies import BadRequestBody, RequestBody
from ophion.errors import DecodeError, KeyFileError
from ophion.native.enclave import EnclaveKeyring, read_sealed
from ophion.native.exceptions import DecodeError as NativeDecodeError
from ophion.native.privacy import decode_versioned, encode_versioned, sign_private_transaction
from ophion.peers.priv import messages
from ophion.peers.priv.messages import Ack, Challenge, ListRequest
from ophion.primitives import rlp
from ophion.privacy import payload_handover
from ophion.privacy.payloads import read_handed
from ophion.runtime.clock import SystemEntropy
from ophion.testing.enclaves import EnclaveMember
from ophion.testing.old_enclaves import cbor_payload
from tests.fuzz.mutate import mutated, mutated_json, target
from tests.fuzz.test_decoders import is_clear

A, B = EnclaveKeyring([b"\1" * 32]), EnclaveKeyring([b"\1\0" * 16])
[KEY_A], [KEY_B] = A.public_keys, B.public_keys
GROUP = legacy_id([KEY_A, KEY_B])
TRANSACTION = b64encode(rlp.encode([b""] * 9 + [KEY_A, [KEY_B], b"restricted"]))
RECORDS = [
    A.seal(text, KEY_A, [KEY_B, KEY_A], 2, GROUP, bytes([number]) * 80)[1]
    for number, text in enumerate((TRANSACTION, b"text", b""))
]
GROUPS = [
    GroupRecord.legacy((KEY_B, KEY_A), KEY_A).encode(),
    GroupRecord(GroupType.PANTHEON, "name", "what for", (KEY_A, KEY_B), b"s" * 20, KEY_A, False).encode(),
]
INFO = PartyInfo("http://a:1/", ((KEY_A, "http://a:1/"), (KEY_B, "https://b:2/x")), ("http://c/",))
LABELS = [RecordLabel(RecordKind.PAYLOAD, b"p" * 32), RecordLabel(RecordKind.GROUP, b"g" * 32)]
MESSAGES = [
    (messages.read_keys, messages.encode_keys([KEY_A, KEY_B])),
    (messages.read_challenges, messages.encode_challenges([Challenge(KEY_A, KEY_B, bytes(24), b"boxed" * 20)])),
    (messages.read_proofs, messages.encode_proofs([(KEY_A, b"s" * 32)])),
    (messages.read_payloads, rlp.encode(RECORDS)),
    (messages.read_groups, rlp.encode(GROUPS)),
    (messages.read_acks, messages.encode_acks([Ack(LABELS[0], ""), Ack(LABELS[1], "why not")])),
    (messages.read_request, messages.encode_request(7, LABELS)),
    (messages.read_records, messages.encode_records(7, [EnclaveRecord(LABELS[0], RECORDS[0])])),
    (messages.read_list, messages.encode_list(ListRequest(7, KEY_A, 300))),
    (messages.read_listing, messages.encode_listing(7, RecordListing(LABELS, 300, True))),
]
LEGACY = GroupRecord.legacy((KEY_B, KEY_A), KEY_A)
PAYLOADS_OF_TESSERA = [
    form
    for record in RECORDS
    if (payload := payload_for(record, KEY_B)) is not None
    for form in (encode_payload(payload, GROUP), cbor_payload(payload))
]
OF_TESSERA: list[tuple[Callable[[bytes], object], bytes]] = [
    (decode_payload, PAYLOADS_OF_TESSERA[0]),
    (decode_payload, PAYLOADS_OF_TESSERA[1]),
    (decode_group, encode_group(GroupRecord.decode(GROUPS[1]))),
    (PartyInfo.decode, INFO.encode()),
    (PartyInfo.decode_json, INFO.encode_json()),
]
KEY_FILE = json.dumps({"type": "unlocked", "data": {"bytes": b64encode(b"\1" * 32).decode()}}).encode()
LOCKED = json.dumps(
    {
        "type": "argon2sbox",
        "data": {
            "aopts": {"variant": "id", "memory": "8", "iterations": "1", "parallelism": "1"},
            "asalt": b64encode(bytes(16)).decode(),
            "snonce": b64encode(bytes(24)).decode(),
            "sbox": b64encode(bytes(48)).decode(),
        },
    }
).encode()


@target(300)
@given(mutated(RECORDS))
def test_sealed_records(record: bytes) -> None:
    try:
        sealed = read_sealed(record)
    except NativeDecodeError as error:
        assert is_clear(error)
        assert B.judge([record]) == [None]
        return
    [judged] = B.judge([record])
    assert judged is not None
    assert judged.key == sealed.key
    assert (B.open(record) is not None) == judged.opens


@target(300)
@given(mutated(GROUPS))
def test_group_records(encoded: bytes) -> None:
    try:
        record = GroupRecord.decode(encoded)
    except DecodeError as error:
        assert is_clear(error)
        return
    assert record.encode() == encoded, "one record has one encoding"
    assert len(record.id) == 32


@target(500)
@given(st.data())
def test_messages_between_enclaves(data: st.DataObject) -> None:
    read, sample = data.draw(st.sampled_from(MESSAGES))
    message = data.draw(mutated([sample]))
    try:
        read(message)
    except DecodeError as error:
        assert is_clear(error)


@target(500)
@given(st.data())
def test_messages_of_tessera(data: st.DataObject) -> None:
    read, sample = data.draw(st.sampled_from(OF_TESSERA))
    message = data.draw(mutated([sample]))
    try:
        read(message)
    except DecodeError as error:
        assert is_clear(error)


@target(300)
@given(mutated(PAYLOADS_OF_TESSERA))
def test_payloads_of_tessera(message: bytes) -> None:
    """A payload gives one clear error, or a record that this enclave judges without a failure."""
    try:
        payload = decode_payload(message)
        own, box, text = opened(B, payload)
        record = record_for_member(payload, group_in(text, lambda id: LEGACY), own, box)
    except DecodeError as error:
        assert is_clear(error)
        return
    [judged] = B.judge([record])
    assert judged is not None
    assert judged.opens
    assert boxes_of(record)[KEY_B] == box


@cache
def member() -> EnclaveMember:
    return EnclaveMember(Path(tempfile.mkdtemp()), 1)


@target(200)
@given(st.lists(mutated(RECORDS + GROUPS), max_size=4), st.sampled_from(RecordKind))
def test_what_others_push(bodies: list[bytes], kind: RecordKind) -> None:
    """A pushed body is refused with a reason, or it is stored and readable."""
    entries = []
    for body in bodies:
        try:
            own = read_sealed(body).key if kind is RecordKind.PAYLOAD else GroupRecord.decode(body).id
        except (NativeDecodeError, DecodeError):
            own = bytes(32)
        entries.append(EnclaveRecord(RecordLabel(kind, own), body))
    refusals = asyncio.run(member().enclave.take(entries, frozenset([KEY_A])))
    for entry, refusal_text in zip(entries, refusals, strict=True):
        if refusal_text is not None:
            assert is_clear(Exception(refusal_text))
        else:
            assert member().enclave.load(entry.label) is not None


@target(200)
@given(mutated_json([KEY_FILE, LOCKED]))
def test_key_files_of_enclaves(content: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(content)
        file.flush()
        for read in (lambda path: read_pair(path, b"password"), read_public):
            try:
                read(Path(file.name))
            except KeyFileError as error:
                assert is_clear(error)


@target(200)
@given(mutated_json([json.dumps({"payload": "AAAA", "from": "AAAA", "to": ["AAAA"], "name": "x"}).encode()]))
def test_forms_of_tools(body: bytes) -> None:
    try:
        form = RequestBody(body)
        for read in (form.key, form.keys, form.data, form.text, form.optional_key):
            for name in ("payload", "from", "to", "name"):
                try:
                    read(name)
                except BadRequestBody as error:
                    assert error.code in ("InvalidPayload", "EnclaveDecodePublicKey")
    except BadRequestBody as error:
        assert error.code == "InvalidPayload"


@target(200)
@given(mutated([b'{"error":"EnclavePayloadNotFound"}', b"Privacy group " + b64encode(KEY_A) + b" not found"]))
def test_refusals_of_enclaves_outside(body: bytes) -> None:
    error = refusal(500, body)
    assert error.message.isprintable()
    assert len(error.message) < 1000


ENVELOPE = seal_request(A, SystemEntropy(), KEY_A, KEY_B, b"/push", b"\xc0").encode()


@target(200)
@given(mutated_json([ENVELOPE]))
def test_envelopes_between_enclaves(body: bytes) -> None:
    """An envelope is decoded or refused with one clear error. No changed envelope opens with another content."""
    try:
        envelope = Envelope.decode(body)
    except DecodeError as error:
        assert is_clear(error)
        return
    assert open_request(B, b"/push", envelope) in (None, b"\xc0")


FLEXIBLE = sign_private_transaction(
    b"\1" * 32,
    nonce=0,
    gas_price=0,
    gas_limit=1,
    to=None,
    data=b"data",
    private_from=KEY_A,
    privacy_group_id=bytes(32),
)


@target(300)
@given(mutated([encode_versioned(FLEXIBLE, b"v" * 32)]))
def test_payloads_of_flexible_groups(payload: bytes) -> None:
    try:
        transaction, version, group = decode_versioned(payload)
    except NativeDecodeError as error:
        assert is_clear(error)
        return
    assert encode_versioned(transaction, version) == payload, "one payload has one encoding"
    assert len(group) == 32


CHUNK = rlp.encode([[b"k" * 32, KEY_A, [KEY_A, KEY_B], encode_versioned(FLEXIBLE, b"v" * 32)]] * 2)


@target(200)
@given(mutated([CHUNK, rlp.encode([[b"k" * 32] * 3])]))
def test_what_is_handed_over(payload: bytes) -> None:
    for key in payload_handover.keys_of(payload):
        assert len(key) == 32
    for key, row, inner in payload_handover.items_of(payload):
        assert len(key) == 32
        assert read_handed(row)[2] == inner
