"""`Delivery`: parcels on their way to recipients, as `--privacy-delivery` says.

all     every recipient must acknowledge, or the send fails: what the original enclaves did
queue   whoever is away, or does not acknowledge in time, gets it from the outbox when it is back
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from ophion.enclave.encoding import base64_text, printable
from ophion.enclave.interface import DeliveryMode
from ophion.enclave.outbox import Outbox
from ophion.enclave.parcels import Kind, Label, LineLost, Parcel
from ophion.enclave.peer_directory import Directory
from ophion.enclave.store_writer import Change, StoreWriter
from ophion.errors import EnclaveError

log = logging.getLogger(__name__)

_PAGE: Final = 256
"""Rows of the outbox that are under way at a time."""
_PAGE_BYTES: Final = 4 * 1024 * 1024


Started: TypeAlias = list[tuple[bytes, list[asyncio.Future[str | None]]]]
"""Recipients, and what is under way to each."""


class Delivery:
    """Pushes over the lines of a directory."""

    def __init__(
        self,
        mode: DeliveryMode,
        directory: Directory,
        outbox: Outbox,
        writer: StoreWriter,
        load: Callable[[Label], bytes | None],
        drain_soon: Callable[[bytes], None],
    ) -> None:
        """`drain_soon` sees to it that somebody's part is handed over, if it is there."""
        self.mode = mode
        self._directory = directory
        self._outbox = outbox
        self._writer = writer
        self._load = load
        self._drain_soon = drain_soon
        self._draining: set[bytes] = set()

    def check(self, recipients: Sequence[bytes], kind: Kind) -> None:
        """Before anything is stored: `EnclaveError` where delivery could not succeed."""
        for recipient in recipients:
            if self.mode is DeliveryMode.ALL and not self._directory.lines(recipient):
                if kind is Kind.GROUP:
                    raise EnclaveError(
                        f"the enclave of member {base64_text(recipient)} is away", "PrivacyGroupNotPushed"
                    )
                raise EnclaveError(f"the enclave of {base64_text(recipient)} is away", "NodeMissingPeerUrl")
            if self._outbox.is_full(recipient):
                raise EnclaveError(f"too much is kept for {base64_text(recipient)}", "NodePropagatingToAllPeers")

    def start(self, parcel: Parcel, recipients: Sequence[bytes]) -> Started:
        """Begin to hand a parcel to everybody else; `finish` waits for them."""
        return [(recipient, self._push(parcel, recipient)) for recipient in recipients]

    async def finish(self, parcel: Parcel, pushed: Started) -> None:
        """Returns when the mode says that a parcel is sent, which must be stored here by now."""
        late: list[bytes] = []
        for recipient, pushes in pushed:
            refusal = await _outcome(pushes)
            if refusal is None:
                continue
            if refusal is not LOST:
                raise EnclaveError(
                    f"the enclave of {base64_text(recipient)} refused it: {printable(refusal)}", _code(parcel)
                )
            if self.mode is DeliveryMode.ALL:
                raise EnclaveError(f"the enclave of {base64_text(recipient)} did not acknowledge it", _code(parcel))
            late.append(recipient)
        if late:
            await self._writer.write([self._outbox.put(recipient, parcel.label) for recipient in late])
            # It may have come back while the row was written. Not here: whoever gives up waiting for this send would
            # take the outbox from everybody.
            for recipient in late:
                self._drain_soon(recipient)

    async def drain(self, recipient: bytes) -> None:
        """Hand over what waits for a recipient that is back."""
        if recipient in self._draining:
            return
        self._draining.add(recipient)
        try:
            while (rows := self._outbox.page(recipient, _PAGE)) and (lines := self._directory.lines(recipient)):
                is_settled = await self._hand_over(recipient, rows)
                # it may be back already, over a line that is new: whoever came to drain it then was sent away above
                if not is_settled and set(lines).issuperset(self._directory.lines(recipient)):
                    return
        finally:
            self._draining.discard(recipient)

    async def _hand_over(self, recipient: bytes, rows: Sequence[tuple[bytes, Label]]) -> bool:
        """Whether all of these rows are settled."""
        pushed: list[tuple[bytes, Label, list[asyncio.Future[str | None]]]] = []
        settled: list[Change] = []
        size = 0
        for key, label in rows:
            if size > _PAGE_BYTES:
                break
            body = self._load(label)
            size += len(body or b"")
            if body is None:  # its table was emptied: nobody can send it any more
                settled.append(self._outbox.take(recipient, key))
            else:
                pushed.append((key, label, self._push(Parcel(label, body), recipient)))
        is_lost = False
        for key, label, pushes in pushed:
            refusal = await _outcome(pushes)
            if refusal is LOST:
                is_lost = True
                continue
            if refusal is not None:
                log.warning(
                    "enclave refused a parcel recipient=%s id=0x%s reason=%s",
                    base64_text(recipient),
                    label.id.hex(),
                    printable(refusal),
                )
            settled.append(self._outbox.take(recipient, key))
        await self._writer.write(settled)
        return not is_lost

    def _push(self, parcel: Parcel, recipient: bytes) -> list[asyncio.Future[str | None]]:
        return [line.push(parcel) for line in self._directory.lines(recipient)]


LOST: Final = "the line was lost"


async def _outcome(pushes: Sequence[asyncio.Future[str | None]]) -> str | None:
    """None when some copy was acknowledged; otherwise why not, and `LOST` where nobody answered."""
    refusal = LOST
    for push in pushes:
        try:
            answer = await push
        except LineLost:
            continue
        if answer is None:
            return None
        refusal = answer
    return refusal


def _code(parcel: Parcel) -> str:
    return "PrivacyGroupNotPushed" if parcel.label.kind is Kind.GROUP else "NodePushingToPeer"
