"""What another enclave may have of ours, by the keys that it has proven. The same over sessions and over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.parcels import Kind, Label, Listing, Parcel
from ophion.native.enclave import read_sealed

ANSWER_BYTES: Final = 1024 * 1024
"""An answer has room for so much; whoever asks for more asks again."""
_MAX_LOOKED_AT: Final = 4 * ANSWER_BYTES


def served(enclave: EmbeddedEnclave, labels: Sequence[Label], keys: frozenset[bytes]) -> list[Parcel]:
    """Those of these parcels that are here and for one of these keys, as many as fit.

    Whoever asks for what is for others is answered, but not looked up for without end.
    """
    found: list[Parcel] = []
    size = looked_at = 0
    for label in dict.fromkeys(labels):
        if looked_at > _MAX_LOOKED_AT:
            break
        body = enclave.load(label)
        if body is None:
            continue
        looked_at += len(body)
        if not _may_see(label, body, keys):
            continue
        if found and size + len(body) > ANSWER_BYTES:
            break
        found.append(Parcel(label, body))
        size += len(body)
    return found


def listed(enclave: EmbeddedEnclave, key: bytes, after: int, most: int, keys: frozenset[bytes]) -> Listing:
    """What came for a key after a number; nothing for whoever has not proven it."""
    arrived = enclave.arrivals(key, after, most) if key in keys else []
    last = arrived[-1][0] if arrived else after
    return Listing([label for _, label in arrived], last, len(arrived) == most)


def _may_see(label: Label, body: bytes, keys: frozenset[bytes]) -> bool:
    """Whether somebody with these keys is a participant."""
    if label.kind is Kind.PAYLOAD:
        return not keys.isdisjoint(read_sealed(body).recipients)
    return not keys.isdisjoint(GroupRecord.decode(body).members)
