"""`Payloads`: reads the payloads of markers from the enclave, in the form that the Rust extension executes.

While a remote enclave is offline, reads are repeated until the enclave answers; block import does not wait for these
reads. Payloads of flexible groups carry more data than a transaction. Some payloads come from a handover instead of the
enclave.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from ophion.enclave.interface import Enclave, OpenedPayload
from ophion.errors import DecodeError, EnclaveError
from ophion.native.exceptions import NativeError
from ophion.native.privacy import decode_versioned
from ophion.native.store import Store
from ophion.primitives import rlp
from ophion.primitives.types import Hash32

log = logging.getLogger(__name__)

T = TypeVar("T")

_RETRY_S: Final = 1.0
_GROUPS_KEPT: Final = 4096
_RECIPIENTS: Final = 10
"""Position of the recipients in the RLP of a private transaction. A group id may replace the recipients."""
_DYNAMIC_FEE_TYPE: Final = b"\x02"
"""First byte of an EIP-1559 transaction, which has two more items before its recipients."""
HANDED: Final = "handed"
"""Table of payloads from a handover. Maps a payload key to sender, recipients and payload."""

Payload: TypeAlias = tuple[bytes, int, bytes, bytes, bytes, bytes, list[bytes] | None, bytes | None]
"""A payload as a tuple: marker, index, key, group, sender's key, RLP, members of the group, version of a flexible
group's member list.
"""


class MarkerPosition(Struct, frozen=True):
    """Position of a privacy marker transaction on the canonical chain."""

    payload_key: bytes
    number: int
    index: int
    block: Hash32
    hash: Hash32

    def row(self) -> tuple[bytes, int, int, bytes, bytes]:
        """The marker as the tuple that the Rust extension expects."""
        return (self.payload_key, self.number, self.index, self.block, self.hash)


class ReadablePayload(Struct, frozen=True):
    """A payload that this node can read."""

    payload: bytes
    transaction: bytes
    """RLP of the private transaction in the payload."""
    group: bytes
    sender: bytes
    sealed_for: bytes
    """The group of the payload in the enclave. For a flexible group, this group consists of all recipients of the
    payload.
    """
    version: bytes | None = None
    recipients: tuple[bytes, ...] | None = None
    """The recipients, if known. Otherwise the members of `sealed_for` are the recipients."""


class Payloads:
    """Reads payloads for the private executor."""

    def __init__(self, store: Store, enclave: Enclave, is_flexible: bool) -> None:
        self.is_waiting = False
        """Whether reads wait for an enclave that is offline."""
        self.retries = 0
        self.is_flexible = is_flexible
        self._store = store
        self._enclave = enclave
        self._members: dict[bytes, tuple[bytes, ...]] = {}

    @property
    def own_keys(self) -> frozenset[bytes]:
        """Keys of this node's enclave."""
        return frozenset(self._enclave.keys)

    async def read(self, keys: Sequence[bytes]) -> list[ReadablePayload | None]:
        """Return payloads by key. Waits for the enclave. An item is None if this node has no such payload or is no
        participant of it.
        """
        received = await self._answer(lambda: self._enclave.receive_many(keys)) if keys else []
        return [self._opened(key, one) for key, one in zip(keys, received, strict=True)]

    async def read_now(self, keys: Sequence[bytes]) -> list[ReadablePayload | None]:
        """Return payloads by key. Raises `EnclaveError` at once if the enclave is offline."""
        received = await self._enclave.receive_many(keys) if keys else []
        return [self._opened(key, one) for key, one in zip(keys, received, strict=True)]

    async def prepared(self, place: MarkerPosition, found: ReadablePayload) -> Payload:
        """Return the tuple with which the Rust extension executes a payload."""
        recipients = found.recipients
        members = list(recipients) if recipients is not None else await self._members_for(found)
        key, group = place.payload_key, found.group
        return (place.hash, place.index, key, group, found.sender, found.transaction, members, found.version)

    async def recipients_of(self, found: ReadablePayload) -> list[bytes]:
        """Return all recipients of a payload."""
        if found.recipients is not None:
            return list(found.recipients)
        return await self._members_of(found.sealed_for) or []

    def _opened(self, key: bytes, received: OpenedPayload | None) -> ReadablePayload | None:
        recipients: tuple[bytes, ...] | None = None
        if received is None:
            row = self._store.row(HANDED, key) if self.is_flexible else None
            if row is None:
                return None
            sender, recipients, payload = read_handed(row)
            received = OpenedPayload(payload, b"", sender)
        if self.is_flexible:
            try:
                transaction, version, group = decode_versioned(received.payload)
            except NativeError:
                pass  # the payload belongs to a group of another type, or is not a transaction
            else:
                sender, sealed_for = received.sender, received.group_id
                return ReadablePayload(received.payload, transaction, group, sender, sealed_for, version, recipients)
        return ReadablePayload(
            received.payload, received.payload, received.group_id, received.sender, received.group_id
        )

    async def _members_for(self, found: ReadablePayload) -> list[bytes] | None:
        """Return the keys that may send to the group of a payload. None if the keys are not known, such as those of a
        `privateFor` group with a remote enclave.
        """
        if self._enclave.reports_late_payloads or found.version is not None:
            return await self._members_of(found.sealed_for)
        if _names_recipients(found.transaction):
            # privateFor defines this group: return no member list, because a remote enclave may not know the group
            return None
        # a remote enclave forgets the members of a deleted group, so only the sender counts as a member
        return await self._members_of(found.sealed_for) or [found.sender]

    async def _members_of(self, group_id: bytes) -> list[bytes] | None:
        known = self._members.get(group_id)
        if known is None:
            group = await self._answer(lambda: self._enclave.group(group_id))
            if group is None:
                return None
            if len(self._members) >= _GROUPS_KEPT:
                self._members.clear()
            known = self._members[group_id] = group.members
        return list(known)

    async def _answer(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Send a request to the enclave, and repeat it until the enclave answers."""
        while True:
            try:
                answer = await ask()
            except EnclaveError as error:
                if not self.is_waiting:
                    log.warning("private execution waits for the enclave error=%s", error)
                self.is_waiting = True
                self.retries += 1
                await asyncio.sleep(_RETRY_S)
                continue
            if self.is_waiting:
                log.info("private execution resumed")
                self.is_waiting = False
            return answer


def _names_recipients(transaction: bytes) -> bool:
    is_dynamic_fee = transaction[:1] == _DYNAMIC_FEE_TYPE
    place = _RECIPIENTS + 2 if is_dynamic_fee else _RECIPIENTS
    try:
        return isinstance(rlp.decode_list(transaction[1:] if is_dynamic_fee else transaction)[place], list)
    except (DecodeError, IndexError):
        return False


def read_handed(row: bytes) -> tuple[bytes, tuple[bytes, ...], bytes]:
    """Decode a row of the table of handed-over payloads: sender, recipients and payload."""
    match rlp.decode_list(row):
        case [bytes() as sender, list() as recipients, bytes() as payload]:
            return sender, tuple(one for one in recipients if isinstance(one, bytes)), payload
    raise DecodeError("not a handed over payload", HANDED)
