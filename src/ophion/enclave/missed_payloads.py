"""`MissedPayloadFetcher`: fetches from another enclave the payloads and groups that this enclave has missed."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from ophion.enclave.payload_exchange import EnclaveLink, EnclaveLinkLost, EnclaveRecord, RecordKind
from ophion.enclave.payload_intake import BUDGET_EXCEEDED, PayloadIntake
from ophion.enclave.store_writer import CURSORS, StoreWriter
from ophion.native.store import Store

log = logging.getLogger(__name__)

_FETCHED_AT_ONCE: Final = 128
_MAX_REFUSED: Final = 1000
"""Number of refused payloads and groups after which this node stops fetching from a peer, because each decryption costs
time.
"""
_MAX_PAGES: Final = 10_000
"""Maximum number of listing pages that are read from one peer at a time. These pages list about ten million payloads.
"""


class MissedPayloadFetcher:
    """Fetches missed payloads and groups from peers. For each peer, a cursor is stored: the position in the peer's
    listing at which the next fetch begins.
    """

    def __init__(
        self,
        store: Store,
        keys: Sequence[bytes],
        intake: PayloadIntake,
        writer: StoreWriter,
        take: Callable[[Sequence[EnclaveRecord], frozenset[bytes], bool], Awaitable[list[str | None]]],
    ) -> None:
        """Create the fetcher. `take` stores payloads and groups of a peer that has proven these keys. It returns None
        for each stored item, and the reason for each refused item.
        """
        self._store = store
        self._keys = keys
        self._intake = intake
        self._writer = writer
        self._take = take

    async def fetch_all(self, link: EnclaveLink) -> list[bytes]:
        """Fetch every payload that a peer has for this node's keys. Returns the keys of new payloads."""
        fetched: list[bytes] = []
        try:
            for key in self._keys:
                fetched += await self._fetch(link, key, 0)
        except EnclaveLinkLost:
            log.info("enclave disconnected during catch-up peer=%s", link.name)
        return fetched

    async def fetch_new(self, link: EnclaveLink) -> None:
        """Fetch payloads for this node's keys that arrived at a peer since the last fetch. A stored cursor holds the
        position in the peer's listing up to which this node has read.
        """
        for key in self._keys:
            row = self._store.row(CURSORS, link.identity + key)
            await self._fetch(link, key, 0 if row is None else int.from_bytes(row, "big"))

    async def _fetch(self, link: EnclaveLink, key: bytes, after: int) -> list[bytes]:
        """For one of this node's keys, fetch the peer's groups, and the payloads that this node lacks.

        Returns the keys of new payloads.
        """
        fetched: list[bytes] = []
        refused = 0
        for _ in range(_MAX_PAGES):
            listing = await link.listing(key, after)
            missing = [
                label for label in listing.labels if label.kind is RecordKind.GROUP or not self._intake.has(label.id)
            ]
            # fetch groups before payloads, because payloads are validated against their groups
            missing.sort(key=lambda label: label.kind is RecordKind.PAYLOAD)
            while missing:
                entries = await link.fetch(missing[:_FETCHED_AT_ONCE])
                # a response may lack requested payloads and groups: request these again, or skip them after an empty
                # response
                got = {entry.label for entry in entries}
                missing = [label for label in missing if label not in got] if got else missing[_FETCHED_AT_ONCE:]
                refusals = await self._take(entries, link.keys, False)
                refused += sum(refusal is not None for refusal in refusals)
                fetched += [
                    entry.label.id
                    for entry, refusal in zip(entries, refusals, strict=True)
                    if refusal is None and entry.label.kind is RecordKind.PAYLOAD
                ]
                if refused > _MAX_REFUSED:
                    log.warning("too many rejected payloads peer=%s", link.name)
                    return fetched
                if BUDGET_EXCEEDED in refusals:
                    # do not advance the stored cursor, so that the next fetch requests the refused payloads again
                    log.warning("budget for payloads without a marker is used up peer=%s", link.name)
                    return fetched
            # store a cursor only for peers that delivered a payload for this node, because any peer can invent a
            # listing
            if listing.last > after and any(self._intake.has(label.id) for label in listing.labels):
                await self._writer.write([(CURSORS, link.identity + key, listing.last.to_bytes(8, "big"))])
            if not listing.has_more or listing.last <= after:
                break
            after = listing.last
        if fetched:
            log.info("enclave caught up peer=%s payloads=%d", link.name, len(fetched))
        return fetched
