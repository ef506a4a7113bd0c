"""Payloads in the formats of Tessera and Orion open under their old keys after the import."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import GroupType
from ophion.enclave.store_writer import damaged_payloads
from ophion.enclave.tessera.groups import legacy_group
from ophion.enclave.tessera.payloads import decode_payload
from ophion.errors import CommandError, DecodeError
from ophion.migration.private.enclave_databases import OldEnclave, read_orion, read_tessera
from ophion.migration.private.orion_formats import decode_orion_row
from ophion.migration.private.payload_import import ImportedPayloads, PayloadImport
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import sign_private_transaction
from ophion.native.store import Store, open_store
from ophion.testing.old_enclaves import (
    orion_group,
    orion_payload,
    tessera_group,
    tessera_payload,
    write_tessera_database,
)

SENDER, RECIPIENT, OTHER = (EnclaveKeyring([bytes([seed]) * 32]) for seed in (1, 2, 3))
KEYS = tuple(ring.public_keys[0] for ring in (SENDER, RECIPIENT, OTHER))
LEGACY = legacy_group(KEYS[:2])
CREATED = GroupRecord(GroupType.PANTHEON, "name", "text", KEYS, bytes(range(20)), KEYS[0])


def seal(group: GroupRecord, nonce: int = 0, *, is_orion: bool = False) -> tuple[bytes, bytes, bytes]:
    """Return key, record and transaction of a private payload.

    In Orion's format, the nonce of the ciphertext is zero.
    """
    raw = sign_private_transaction(
        bytes([9]) * 32,
        nonce=nonce,
        gas_price=0,
        gas_limit=100_000,
        to=None,
        data=b"\x00",
        private_from=KEYS[0],
        private_for=list(group.members[1:]) if group is LEGACY else None,
        privacy_group_id=None if group is LEGACY else group.id,
        chain_id=1337,
    )
    randomness = bytes([nonce + 1]) * 32 + (bytes(48) if is_orion else bytes([nonce + 2]) * 48)
    key, record = SENDER.seal(b64encode(raw), KEYS[0], group.members, len(group.members), group.id, randomness)
    return key, record, b64encode(raw)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    (tmp_path / "data").mkdir()
    found = open_store(tmp_path / "data", create=True)
    yield found
    found.close()


def move(store: Store, ring: EnclaveKeyring, old: OldEnclave) -> ImportedPayloads:
    return PayloadImport(store, ring, old.groups).run(old.payloads)


@pytest.mark.parametrize("group", [LEGACY, CREATED], ids=["legacy", "created"])
@pytest.mark.parametrize("is_sender", [True, False], ids=["sender", "recipient"])
def test_payloads_of_tessera_open_under_their_keys(
    group: GroupRecord, is_sender: bool, store: Store, tmp_path: Path
) -> None:
    key, record, text = seal(group)
    ring = SENDER if is_sender else RECIPIENT
    content = tessera_payload(record, group.members if is_sender else KEYS[1:2])
    write_tessera_database(tmp_path / "tessera.db", [(key, content)], [CREATED])
    before = (tmp_path / "tessera.db").read_bytes()
    old = read_tessera(tmp_path / "tessera.db")
    report = move(store, ring, old)
    assert report.groups == {group.id: 1}
    assert ring.open_stored(store, [key]) == [(text, group.id, KEYS[0])]
    assert damaged_payloads(store, 9) == []
    assert move(store, ring, old).known == 1
    assert (tmp_path / "tessera.db").read_bytes() == before
    if is_sender:  # the sender's own record already has the boxes of all recipients, so the import does not change it
        assert store.row("payloads", key) == record


def test_exports_of_tessera_are_read(store: Store, tmp_path: Path) -> None:
    key, record, text = seal(CREATED)
    (tmp_path / "payloads.csv").write_text(
        f'"HASH","PAYLOAD"\n{key.hex()},{tessera_payload(record, KEYS[1:2]).hex()}\n'
    )
    (tmp_path / "groups.csv").write_text(f"\\x{CREATED.id.hex()},\\x{tessera_group(CREATED).hex()}\n")
    assert move(store, RECIPIENT, read_tessera(tmp_path)).groups == {CREATED.id: 1}
    assert RECIPIENT.open_stored(store, [key]) == [(text, CREATED.id, KEYS[0])]
    (tmp_path / "payloads.csv").write_text("aa,bb\nnothing\n")
    with pytest.raises(CommandError, match="line 2: expected two hexadecimal columns"):
        read_tessera(tmp_path)
    (tmp_path / "payloads.csv").unlink()
    with pytest.raises(CommandError, match="No such file"):
        read_tessera(tmp_path)


def varint(value: int) -> bytes:
    return bytes([value]) if value < 0x80 else bytes([value & 0x7F | 0x80]) + varint(value >> 7)


def write_orion(path: Path, rows: list[tuple[bytes, bytes]]) -> None:
    """Write a LevelDB database whose rows are all in the log."""
    path.mkdir()
    batch = bytes(12) + b"".join(b"\x01" + varint(len(key)) + key + varint(len(value)) + value for key, value in rows)
    name = b"leveldb.BytewiseComparator"
    for file, data in (("MANIFEST-000001", b"\x01" + varint(len(name)) + name + b"\x02\x03"), ("000003.log", batch)):
        (path / file).write_bytes(bytes(4) + len(data).to_bytes(2, "little") + b"\x01" + data)
    (path / "CURRENT").write_text("MANIFEST-000001\n")


def test_payloads_of_orion_open_under_their_keys(store: Store, tmp_path: Path) -> None:
    sealed = [seal(LEGACY, is_orion=True), seal(CREATED, 1, is_orion=True)]
    rows = [(b64encode(key), orion_payload(record, KEYS[1:2])) for key, record, _ in sealed]
    rows += [(b64encode(CREATED.id), orion_group(CREATED)), (b"query", b"\xbf\x61a\x01\xff")]
    write_orion(tmp_path / "routerdb", rows)
    old = read_orion(tmp_path)
    report = move(store, RECIPIENT, old)
    assert report.groups == {LEGACY.id: 1, CREATED.id: 1}
    assert [text for text, _, _ in filter(None, RECIPIENT.open_stored(store, [key for key, _, _ in sealed]))] == [
        text for _, _, text in sealed
    ]
    with pytest.raises(CommandError, match="There is no LevelDB of Orion"):
        read_orion(tmp_path / "nowhere")


def test_what_is_not_moved_is_counted_by_reason(store: Store) -> None:
    key, record, _ = seal(CREATED)
    content = decode_payload(tessera_payload(record, KEYS[1:2]))
    wrong = [
        (key, DecodeError("unreadable")),
        (bytes(64), decode_payload(tessera_payload(seal(LEGACY)[1], KEYS[:2]))),
        (key, content),
    ]
    report = PayloadImport(store, RECIPIENT, []).run(wrong)
    assert not report.groups
    assert sorted(report.refused) == [
        "its key is not SHA-512/256 of the ciphertext; Tessera must have run in orion mode",
        f"the old enclave has no group 0x{CREATED.id.hex()}",
        "unreadable",
    ]
    report = PayloadImport(store, OTHER, []).run([(key, content)])
    assert list(report.refused) == ["no key of this enclave opens it"]


@pytest.mark.parametrize("data", [b"", b"\xbf", bytes(8), (32).to_bytes(8, "big") + bytes(40)])
def test_other_encodings_are_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_payload(data)


@pytest.mark.parametrize(
    "data", [b"", b"\xbf", b"\x5f\x01\xff", b"\xa1\x01\x02", b"\x81" * 40, b"\xf9\x00\x00", b"\x01\x01"]
)
def test_other_cbor_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_orion_row(data)


def test_the_cbor_encoding_of_later_tesseras_is_read() -> None:
    def text(name: str) -> bytes:
        return bytes([0x60 + len(name)]) + name.encode()

    def data(value: bytes) -> bytes:
        return bytes([0x58, len(value)]) + value

    sender, nonce, box_nonce, box = b"\x01" * 32, b"\x02" * 24, b"\x03" * 24, b"\x04" * 48
    members = [
        (text("sender"), data(sender)),
        (text("cipherText"), data(b"secret")),
        (text("nonce"), data(nonce)),
        (text("recipientNonce"), data(box_nonce)),
        (text("recipientBoxes"), b"\x81" + data(box)),
        (text("recipients"), b"\x81" + data(KEYS[1])),
        (text("privacyFlag"), b"\x00"),
        (text("affected"), b"\xa0"),
        (text("execHash"), data(b"")),
    ]
    encoded = bytes([0xA0 + len(members)]) + b"".join(name + value for name, value in members)
    found = decode_payload(encoded)
    assert (found.sender, found.ciphertext, found.nonce) == (sender, b"secret", nonce)
    assert (found.box_nonce, found.boxes, found.recipients) == (box_nonce, (box,), (KEYS[1],))
    with pytest.raises(DecodeError, match="not a payload of Tessera"):
        decode_payload(b"\xa0")
