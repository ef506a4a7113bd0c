"""Decides which payloads and groups another enclave may read, by the keys that it has proven. Devp2p and HTTP use the
same rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.tessera.sealed_payloads import with_box
from ophion.native.enclave import read_sealed

ANSWER_BYTES: Final = 1024 * 1024
"""Maximum size of a response in bytes. The peer requests the remaining payloads and groups again."""
_MAX_EXAMINED_BYTES: Final = 4 * ANSWER_BYTES


def readable_records(
    enclave: EmbeddedEnclave, labels: Sequence[RecordLabel], keys: frozenset[bytes]
) -> list[EnclaveRecord]:
    """Return the stored payloads and groups with these labels, if one of the keys is a participant. The result is
    limited to the size of a response.

    The bytes that are read are bounded too, so requests for payloads of other participants cause little work.
    """
    found: list[EnclaveRecord] = []
    size = examined = 0
    for label in dict.fromkeys(labels):
        if examined > _MAX_EXAMINED_BYTES:
            break
        body = enclave.load(label)
        if body is None:
            continue
        examined += len(body)
        if not _may_see(label, body, keys):
            continue
        if found and size + len(body) > ANSWER_BYTES:
            break
        found.append(EnclaveRecord(label, body))
        size += len(body)
    return found


def listed(enclave: EmbeddedEnclave, key: bytes, after: int, most: int, keys: frozenset[bytes]) -> RecordListing:
    """Return the ids of payloads and groups that arrived for a key after a sequence number, at most `most`. The result
    is empty if the peer has not proven the key.
    """
    arrived = enclave.arrivals(key, after, most) if key in keys else []
    last = arrived[-1][0] if arrived else after
    return RecordListing([label for _, label in arrived], last, len(arrived) == most)


def _may_see(label: RecordLabel, body: bytes, keys: frozenset[bytes]) -> bool:
    """Whether one of these keys is a participant of the payload or a member of the group."""
    if label.kind is RecordKind.PAYLOAD:
        return not keys.isdisjoint(with_box(body, read_sealed(body).recipients))
    return not keys.isdisjoint(GroupRecord.decode(body).members)
