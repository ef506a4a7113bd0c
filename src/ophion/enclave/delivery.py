"""`Delivery`: pushes payloads and groups to their recipients. `--privacy-delivery` sets the mode:

all     the send fails unless every recipient acknowledges; Orion and Tessera work like this
queue   a recipient that is offline, or does not acknowledge in time, gets the payload or group from the outbox later
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ophion.enclave.encoding import base64_text, printable
from ophion.enclave.options import DeliveryMode
from ophion.enclave.outbox import Outbox
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.peer_directory import PeerDirectory
from ophion.enclave.store_writer import Change, StoreWriter
from ophion.errors import EnclaveError

log = logging.getLogger(__name__)

_PAGE: Final = 256
"""Maximum number of outbox rows that are pushed at a time without acknowledgement."""
_PAGE_BYTES: Final = 4 * 1024 * 1024


Started: TypeAlias = list[tuple[bytes, list[asyncio.Future[str | None]]]]
"""Unfinished pushes of one payload or group, by recipient."""


class Delivery:
    """Pushes payloads and groups (`EnclaveRecord`) to connected enclaves."""

    def __init__(
        self,
        mode: DeliveryMode,
        directory: PeerDirectory,
        outbox: Outbox,
        writer: StoreWriter,
        load: Callable[[RecordLabel], bytes | None],
        drain_soon: Callable[[bytes], None],
    ) -> None:
        """Create the delivery. `drain_soon` starts a task that delivers a recipient's outbox, if the recipient is
        connected.
        """
        self.mode = mode
        self._directory = directory
        self._outbox = outbox
        self._writer = writer
        self._load = load
        self._drain_soon = drain_soon
        self._draining: set[bytes] = set()

    def check(self, recipients: Sequence[bytes], kind: RecordKind) -> None:
        """Raise `EnclaveError` if delivery to these recipients cannot succeed. Callers check this before they store a
        payload or group.
        """
        for recipient in recipients:
            if self.mode is DeliveryMode.ALL and not self._directory.links(recipient):
                if kind is RecordKind.GROUP:
                    raise EnclaveError(
                        f"the enclave of member {base64_text(recipient)} is offline", "PrivacyGroupNotPushed"
                    )
                raise EnclaveError(f"the enclave of {base64_text(recipient)} is offline", "NodeMissingPeerUrl")
            if self._outbox.is_full(recipient):
                raise EnclaveError(f"the outbox of {base64_text(recipient)} is full", "NodePropagatingToAllPeers")

    def start(self, entry: EnclaveRecord, recipients: Sequence[bytes]) -> Started:
        """Begin to push a payload or group to each recipient. `finish` waits for the pushes."""
        return [(recipient, self._push(entry, recipient)) for recipient in recipients]

    async def finish(self, entry: EnclaveRecord, pushed: Started) -> None:
        """Wait until a stored payload or group counts as sent in this delivery mode. Raises `EnclaveError` if sending
        fails.
        """
        late: list[bytes] = []
        for recipient, pushes in pushed:
            refusal = await _outcome(pushes)
            if refusal is None:
                continue
            if refusal is not LOST:
                raise EnclaveError(
                    f"the enclave of {base64_text(recipient)} refused it: {printable(refusal)}", _code(entry)
                )
            if self.mode is DeliveryMode.ALL:
                raise EnclaveError(f"the enclave of {base64_text(recipient)} did not acknowledge it", _code(entry))
            late.append(recipient)
        if late:
            await self._writer.write([self._outbox.put(recipient, entry.label) for recipient in late])
            # A recipient may have reconnected while its outbox row was written. Send in a separate task, because
            # cancelling this call must not stop the outbox.
            for recipient in late:
                self._drain_soon(recipient)

    async def drain(self, recipient: bytes) -> None:
        """Deliver the outbox rows of a recipient that has reconnected."""
        if recipient in self._draining:
            return
        self._draining.add(recipient)
        try:
            while (rows := self._outbox.page(recipient, _PAGE)) and (links := self._directory.links(recipient)):
                is_settled = await self._hand_over(recipient, rows)
                # stop only if the recipient has opened no new connection: while this task runs, no second task starts
                # for the recipient
                if not is_settled and set(links).issuperset(self._directory.links(recipient)):
                    return
        finally:
            self._draining.discard(recipient)

    async def _hand_over(self, recipient: bytes, rows: Sequence[tuple[bytes, RecordLabel]]) -> bool:
        """Push outbox rows to a recipient, and remove the answered rows. Returns whether every push was answered."""
        pushed: list[tuple[bytes, RecordLabel, list[asyncio.Future[str | None]]]] = []
        settled: list[Change] = []
        size = 0
        for key, label in rows:
            if size > _PAGE_BYTES:
                break
            body = self._load(label)
            size += len(body or b"")
            if body is None:  # this node has deleted the payload or group, so it cannot be sent
                settled.append(self._outbox.take(recipient, key))
            else:
                pushed.append((key, label, self._push(EnclaveRecord(label, body), recipient)))
        is_lost = False
        for key, label, pushes in pushed:
            refusal = await _outcome(pushes)
            if refusal is LOST:
                is_lost = True
                continue
            if refusal is not None:
                log.warning(
                    "enclave refused a payload recipient=%s id=0x%s reason=%s",
                    base64_text(recipient),
                    label.id.hex(),
                    printable(refusal),
                )
            settled.append(self._outbox.take(recipient, key))
        await self._writer.write(settled)
        return not is_lost

    def _push(self, entry: EnclaveRecord, recipient: bytes) -> list[asyncio.Future[str | None]]:
        return [link.push(entry) for link in self._directory.links(recipient)]


LOST: Final = "the connection was lost"


async def _outcome(pushes: Sequence[asyncio.Future[str | None]]) -> str | None:
    """Return None if the recipient has acknowledged one of the pushed copies. Otherwise return the recipient's refusal,
    or `LOST` if all connections were lost.
    """
    refusal = LOST
    for push in pushes:
        try:
            answer = await push
        except EnclaveLinkLost:
            continue
        if answer is None:
            return None
        refusal = answer
    return refusal


def _code(entry: EnclaveRecord) -> str:
    return "PrivacyGroupNotPushed" if entry.label.kind is RecordKind.GROUP else "NodePushingToPeer"
