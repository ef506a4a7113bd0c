"""`PayloadHandover`: gives new members the earlier transactions of a flexible group (privacy.md 4.5).

The second key in the marker refers to a payload for the new members. This payload is an index of further payloads. Each
further payload holds transactions of the group with their payload keys. The new member stores these transactions as
late payloads, and the private executor runs the group from its beginning. New members must trust the adding member to
send the real transactions; they can compare state roots. A node that is a member already ignores a handover. A member
that was removed and added again accepts only transactions after its last executed transaction.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from ophion.enclave.interface import KEY_SIZE, MAX_PAYLOAD_BYTES, Enclave
from ophion.errors import DecodeError
from ophion.native.exceptions import NativeError, translated
from ophion.native.privacy import PrivateLedger, decode_versioned
from ophion.native.store import Store
from ophion.primitives import rlp
from ophion.primitives.types import EMPTY_TRIE_ROOT, Hash32
from ophion.privacy.payloads import HANDED, MarkerPosition, Payloads
from ophion.runtime.thread_pools import Lanes

_CHUNK_BYTES: Final = MAX_PAYLOAD_BYTES // 2
_ALL_BLOCKS: Final = 1 << 62
_READ_AT_ONCE: Final = 256
_NOWHERE: Final = (-1, -1)
"""Position before all markers of the chain."""
_INVALID: Final = 2
"""`PrivateReceiptRecord.status` of a transaction that could not be executed."""


class PayloadHandover:
    """Sends earlier transactions of a flexible group to new members, and stores received transactions."""

    def __init__(self, store: Store, ledger: PrivateLedger, payloads: Payloads, lanes: Lanes) -> None:
        self._store = store
        self._ledger = ledger
        self._payloads = payloads
        self._lanes = lanes

    async def take(self, blocks: Iterable[Hash32]) -> bool:
        """Store the payloads that markers of these blocks hand over to this node. Returns whether any payload was new.

        If the executor has already passed the marker of a payload, the payload is recorded as late in the same write.
        """
        rows: list[tuple[str, bytes, bytes]] = []
        for keys in [keys for block in dict.fromkeys(blocks) for keys in self._ledger.hand_overs_in(block)]:
            adding, index = await self._payloads.read(keys)
            if adding is None or index is None or adding.sender != index.sender or adding.version is None:
                continue
            after = self._last_run(adding.group)
            if after != _NOWHERE and self._is_member(adding.group):
                continue
            for chunk in await self._payloads.read(keys_of(index.payload)):
                if chunk is not None and chunk.sender == adding.sender:
                    rows += await self._new_rows(adding.group, chunk.payload, after)
        if rows:
            await self._lanes.write.run(lambda: self._write(rows))
        return bool(rows)

    def places(self, markers: Sequence[MarkerPosition]) -> list[MarkerPosition]:
        """Return the payloads that are handed over with these markers, each at the position of its marker. The payloads
        may arrive later.
        """
        handed = {
            (block, adding): index
            for block in dict.fromkeys(place.block for place in markers)
            for adding, index in self._ledger.hand_overs_in(block)
        }
        keys = [(place, handed.get((place.block, place.payload_key))) for place in markers]
        return [replace(place, payload_key=key) for place, key in keys if key is not None]

    def _last_run(self, group: bytes) -> tuple[int, int]:
        """Return block and index of the last executed marker of a group. Ignores transactions that could not run."""
        if self._ledger.root(group, _ALL_BLOCKS) == EMPTY_TRIE_ROOT:
            return _NOWHERE
        for number, block in reversed(self._ledger.blocks(group, 0, _ALL_BLOCKS)):
            for marker, _ in reversed(self._ledger.roots(group, number, block)):
                record = self._ledger.receipt(block, marker)
                if record is not None and record.status != _INVALID:
                    return number, record.index
        return _NOWHERE

    def _is_member(self, group: bytes) -> bool:
        """Whether this node is a member of a group in its latest known state. True if the members are not known."""
        found = self._ledger.membership(group, _ALL_BLOCKS)
        return found is None or not self._payloads.own_keys.isdisjoint(found[2])

    async def _new_rows(self, group: bytes, chunk: bytes, after: tuple[int, int]) -> list[tuple[str, bytes, bytes]]:
        """Return database rows of the transactions in a handed-over payload. Leaves out transactions whose payload is
        stored already, and transactions up to position `after`.
        """
        items = [
            (key, row)
            for key, row, payload in items_of(chunk)
            if _group_of(payload) == group
            and all((number, index) > after for _, number, index, _, _ in self._ledger.markers_of(key))
        ]
        known = await self._payloads.read([key for key, _ in items])
        return [(HANDED, key, row) for (key, row), one in zip(items, known, strict=True) if one is None]

    def _write(self, rows: Sequence[tuple[str, bytes, bytes]]) -> None:
        with translated():
            self._store.write_rows(rows)

    async def give(self, group: bytes, enclave: Enclave, sender: bytes, to: Sequence[bytes]) -> bytes:
        """Send all executed transactions of a group to its new members. Returns the payload key of the index, which
        lists the sent payloads.
        """
        keys = [await enclave.send(chunk, sender, to) async for chunk in self._chunks(group)]
        return await enclave.send(rlp.encode([keys]), sender, to)

    async def _chunks(self, group: bytes) -> AsyncIterator[bytes]:
        waiting: list[rlp.Item] = []
        size = 0
        keys = self._keys_of(group)
        for start in range(0, len(keys), _READ_AT_ONCE):
            page = keys[start : start + _READ_AT_ONCE]
            for key, found in zip(page, await self._payloads.read(page), strict=True):
                if found is None or found.version is None:
                    continue
                recipients = await self._payloads.recipients_of(found)
                item: rlp.Item = [key, found.sender, list(recipients), found.payload]
                length = len(found.payload) + KEY_SIZE * (2 + len(recipients)) + 64
                if waiting and size + length > _CHUNK_BYTES:
                    yield rlp.encode(waiting)
                    waiting, size = [], 0
                waiting.append(item)
                size += length
        if waiting:
            yield rlp.encode(waiting)

    def _keys_of(self, group: bytes) -> list[bytes]:
        """Return the payload keys of a group in marker order, without duplicates."""
        found: dict[bytes, None] = {}
        for number, block in self._ledger.blocks(group, 0, _ALL_BLOCKS):
            for marker, _ in self._ledger.roots(group, number, block):
                record = self._ledger.receipt(block, marker)
                if record is not None:
                    found[record.payload_key] = None
        return list(found)


def keys_of(index: bytes) -> list[bytes]:
    """Return the payload keys in a handover index, or an empty list if the data is not an index."""
    try:
        (keys,) = rlp.decode_list(index)
    except (DecodeError, ValueError):
        return []
    return [key for key in keys if isinstance(key, bytes) and len(key) == KEY_SIZE] if isinstance(keys, list) else []


def _group_of(payload: bytes) -> bytes | None:
    try:
        return decode_versioned(payload)[2]
    except NativeError:
        return None


def items_of(chunk: bytes) -> list[tuple[bytes, bytes, bytes]]:
    """Return (payload key, database row, payload) of each transaction in one of the handed-over payloads. Returns an
    empty list for other data.
    """
    found: list[tuple[bytes, bytes, bytes]] = []
    try:
        items = rlp.decode_list(chunk)
    except DecodeError:
        return []
    for item in items:
        match item:
            case [bytes() as key, bytes() as sender, list() as recipients, bytes() as payload] if len(key) == KEY_SIZE:
                found.append((key, rlp.encode([sender, recipients, payload]), payload))
            case _:
                return []
    return found
