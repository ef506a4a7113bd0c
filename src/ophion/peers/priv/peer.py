"""`PrivPeer`: the sub-protocol priv/1 on one connection. Implements `EnclaveLink` for the enclave."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar, cast

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import KEY_SIZE, MAX_KEYS
from ophion.enclave.payload_access import listed, readable_records
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.payload_intake import UNKNOWN_GROUP
from ophion.native.enclave import read_sealed
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.fair_worker_queue import FairWorkerQueue
from ophion.peers.peer import Peer
from ophion.peers.priv import messages
from ophion.peers.priv.key_proofs import KeyProver
from ophion.peers.priv.messages import MAX_LABELS, Ack, Code, ListRequest
from ophion.peers.priv.payload_push import PayloadPush, Push
from ophion.peers.token_bucket import TokenBucket
from ophion.runtime.clock import Clock, Entropy

NAME: Final = "priv"
_MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""Limit of received bytes that wait to be processed. The send window of an honest peer is smaller."""
_MAX_WAITING: Final = 512
_BURST_BYTES: Final = 64 * 1024 * 1024
_BYTES_A_SECOND: Final = 8 * 1024 * 1024
"""Limit of bytes per second that are validated and stored for one peer. Above this rate, acknowledgements are
delayed.
"""
_COST_BYTES: Final = 4096
"""Bytes added to the size of each message in the rate limit, for its database read and response."""
_MEMBER_BYTES: Final = 4096
"""Bytes added in the rate limit for each member of an unknown group. Checking a member's key takes 0.1 ms."""
_MAX_INLINE_BYTES: Final = 32 * 1024
_BATCH_BYTES: Final = 256 * 1024
_TIMEOUT_S: Final = 20.0
_MAX_PROOFS: Final = 4
"""Limit of key messages (Announce, Challenge, Proof) that a peer may send on one connection."""
_QUEUED_CODES: Final = frozenset({Code.PUSH_PAYLOAD, Code.PUSH_GROUP, Code.GET_PAYLOAD, Code.LIST})

_ABSENT: Final = object()

T = TypeVar("T")


class PrivPeer:
    """Exchanges keys and payloads with the enclave of one peer."""

    is_fallback = False

    def __init__(
        self,
        peer: Peer,
        enclave: EmbeddedEnclave,
        own_id: bytes,
        clock: Clock,
        entropy: Entropy,
        lane: FairWorkerQueue[Peer],
    ) -> None:
        self.name = peer.enode.url
        self.identity = peer.id
        self.keys: frozenset[bytes] = frozenset()
        self._peer = peer
        self._enclave = enclave
        self._lane = lane
        self._clock = clock
        self._prover = KeyProver(enclave.keyring, own_id, peer.id, entropy)
        self._pushes = PayloadPush(self._push, clock.monotonic)
        self._requests: dict[int, tuple[Code, asyncio.Future[object]]] = {}
        """Open requests by id: the code of the expected response, and its future."""
        self._request_id = 0
        self._inbox: deque[tuple[Code, bytes]] = deque()
        self._inbox_bytes = 0
        self._is_working = False
        self._key_messages = 0
        self._allowance = TokenBucket(_BURST_BYTES, _BYTES_A_SECOND)
        self._watch: asyncio.TimerHandle | None = None
        self._is_closed = False

    # --- EnclaveLink (called by the enclave) --------------------------------------------------------

    def push(self, entry: EnclaveRecord) -> Push:
        """Queue a payload or group for the peer. One message may have several payloads or groups."""
        return self._pushes.put(entry)

    async def listing(self, key: bytes, after: int) -> RecordListing:
        """List the records that the peer has for a local enclave key, after the sequence number `after`."""
        request_id = self._next_id()
        request = messages.encode_list(ListRequest(request_id, key, after))
        return cast(RecordListing, await self._ask(request_id, Code.LIST, request, Code.LISTED))

    async def fetch(self, labels: Sequence[RecordLabel]) -> list[EnclaveRecord]:
        """Fetch records of payloads and groups by label. The peer may return only some records. Duplicates are
        dropped.
        """
        request_id = self._next_id()
        request = messages.encode_request(request_id, labels[:MAX_LABELS])
        answer = cast(list[EnclaveRecord], await self._ask(request_id, Code.GET_PAYLOAD, request, Code.PAYLOAD))
        missing = dict.fromkeys(labels)
        return [entry for entry in answer if missing.pop(entry.label, _ABSENT) is not _ABSENT]

    # --- Attached (called by the connection) -----------------------------------------------------

    def announce(self) -> None:
        """Announce the local enclave keys to the peer."""
        self._send(Code.ANNOUNCE, messages.encode_keys(self._enclave.keys[:MAX_KEYS]))

    def received(self, code: int, payload: bytes) -> None:
        """Handle one message. Pushes and requests are queued for a task."""
        known = Code(code)
        if len(payload) > messages.MAX_BYTES[known]:
            self.oversized(code, len(payload))
        if known in _QUEUED_CODES:
            self._queue(known, payload)
        elif known is Code.ACK:
            self._pushes.acknowledged(messages.read_acks(payload))
        elif known in (Code.PAYLOAD, Code.LISTED):
            if not self._expects(known, messages.response_id(payload)):
                return  # the response is late or unsolicited, so do not decode it
            read = messages.read_records if known is Code.PAYLOAD else messages.read_listing
            self._answered(*read(payload))
        else:
            self._on_key_message(known, payload)

    def oversized(self, code: int, size: int) -> None:
        """Disconnect a peer that sends a message above its size limit."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"priv {Code(code).name.lower()} of {size} bytes")

    def closed(self) -> None:
        """Fail all pushes and requests with `EnclaveLinkLost`, because the connection has ended."""
        self._is_closed = True
        if self._watch is not None:
            self._watch.cancel()
        self._enclave.directory.remove(self)
        self._pushes.fail_all()
        for _, request in self._requests.values():
            if not request.done():
                request.set_exception(EnclaveLinkLost())
                request.exception()
        self._requests.clear()
        self._inbox.clear()

    # --- key proofs ---------------------------------------------------------------------------

    def _on_key_message(self, code: Code, payload: bytes) -> None:
        self._key_messages += 1
        if self._key_messages > 3 * _MAX_PROOFS:
            raise PeerMisbehaved(DisconnectReason.BREACH, "too many announcements of enclave keys")
        if code is Code.ANNOUNCE:
            claimed = messages.read_keys(payload)
            self._send(Code.CHALLENGE, messages.encode_challenges(self._prover.challenge(claimed)))
        elif code is Code.CHALLENGE:
            proofs = self._prover.prove(messages.read_challenges(payload))
            self._send(Code.PROOF, messages.encode_proofs(proofs))
        else:
            for key in self._prover.check(messages.read_proofs(payload)):
                self.keys |= {key}
                self._enclave.directory.add(self, key)

    # --- pushes and requests of the peer -----------------------------------------------------------

    def _queue(self, code: Code, payload: bytes) -> None:
        if not self.keys:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"priv {code.name.lower()} before a proven key")
        self._inbox.append((code, payload))
        self._inbox_bytes += len(payload)
        if self._inbox_bytes > _MAX_WAITING_BYTES or len(self._inbox) > _MAX_WAITING:
            raise PeerMisbehaved(DisconnectReason.BREACH, "too many unacknowledged messages")
        if not self._is_working:
            self._is_working = self._peer.spawn(self._work())

    async def _work(self) -> None:
        """Process the queue in order, because a payload can only be validated after its group has arrived."""
        try:
            while self._inbox:
                code, payload = self._inbox.popleft()
                self._inbox_bytes -= len(payload)
                await self._pay(len(payload) + _COST_BYTES)
                match code:
                    case Code.PUSH_PAYLOAD:
                        entries = await self._payloads(payload)
                        # take all queued payloads together, so that they share one database commit
                        size = len(payload)
                        while self._inbox and self._inbox[0][0] is code and size < _BATCH_BYTES:
                            _, payload = self._inbox.popleft()
                            self._inbox_bytes -= len(payload)
                            size += len(payload)
                            await self._pay(len(payload) + _COST_BYTES)
                            entries += await self._payloads(payload)
                        await self._take(entries)
                    case Code.PUSH_GROUP:
                        await self._pay(len(payload) // KEY_SIZE * _MEMBER_BYTES)
                        await self._take(await self._read(_groups, payload))
                    case Code.GET_PAYLOAD:
                        await self._serve(*messages.read_request(payload))
                    case _:
                        await self._list(messages.read_list(payload))
        finally:
            self._is_working = False

    async def _payloads(self, payload: bytes) -> list[EnclaveRecord]:
        entries = await self._read(_payloads, payload)
        members = sum(count for _, group, count in entries if not self._enclave.knows_group(group))
        await self._pay(members * _MEMBER_BYTES)
        return [entry for entry, _, _ in entries]

    async def _read(self, read: Callable[[bytes], list[T]], payload: bytes) -> list[T]:
        """Decode a message, in a worker thread if the message is large."""
        if len(payload) <= _MAX_INLINE_BYTES:
            return read(payload)
        return await self._lane.run(self._peer, partial(read, payload))

    async def _pay(self, amount: int) -> None:
        now = self._clock.monotonic()
        if not self._allowance.spend(amount, now):
            await asyncio.sleep(-self._allowance.left(now) / _BYTES_A_SECOND)

    async def _take(self, entries: list[EnclaveRecord]) -> None:
        refusals = await self._enclave.take(entries, self.keys)
        orphans = [one for one, refusal in zip(entries, refusals, strict=True) if refusal == UNKNOWN_GROUP]
        # fetch the unknown groups in a separate task, so that this task still answers requests of the peer
        if orphans and self._peer.spawn(self._take_orphans(orphans)):
            settled = [
                (one, refusal) for one, refusal in zip(entries, refusals, strict=True) if refusal != UNKNOWN_GROUP
            ]
            entries, refusals = [one for one, _ in settled], [refusal for _, refusal in settled]
        self._acknowledge(entries, refusals)

    async def _take_orphans(self, entries: list[EnclaveRecord]) -> None:
        """Fetch unknown groups from the sender of the payloads, then store the payloads."""
        groups = dict.fromkeys(RecordLabel(RecordKind.GROUP, read_sealed(entry.body).group) for entry in entries)
        refusals: list[str | None] = [UNKNOWN_GROUP] * len(entries)
        with suppress(EnclaveLinkLost):
            await self._enclave.take(await self.fetch(list(groups)), self.keys)
            refusals = await self._enclave.take(entries, self.keys)
        self._acknowledge(entries, refusals)

    def _acknowledge(self, entries: list[EnclaveRecord], refusals: list[str | None]) -> None:
        acks = [Ack(entry.label, refusal or "") for entry, refusal in zip(entries, refusals, strict=True)]
        self._send(Code.ACK, messages.encode_acks(acks))

    async def _serve(self, request_id: int, labels: list[RecordLabel]) -> None:
        found = readable_records(self._enclave, labels, self.keys)
        await self._pay(sum(len(entry.body) for entry in found))
        self._send(Code.PAYLOAD, messages.encode_records(request_id, found))

    async def _list(self, request: ListRequest) -> None:
        listing = listed(self._enclave, request.key, request.after, MAX_LABELS, self.keys)
        await self._pay(40 * len(listing.labels))
        self._send(Code.LISTED, messages.encode_listing(request.request_id, listing))

    # --- our requests --------------------------------------------------------------------

    def _next_id(self) -> int:
        self._request_id += 1
        return self._request_id

    async def _ask(self, request_id: int, code: Code, request: bytes, expected: Code) -> object:
        if self._is_closed:
            raise EnclaveLinkLost
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._requests[request_id] = (expected, answer)
        try:
            if not self._send(code, request):
                raise EnclaveLinkLost
            async with asyncio.timeout(_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise EnclaveLinkLost from None
        finally:
            self._requests.pop(request_id, None)

    def _expects(self, code: Code, request_id: int) -> bool:
        """Whether a request with this id is open and waits for this response. Raises `PeerMisbehaved` if the request
        expects another type of response.
        """
        expected, waiting = self._requests.get(request_id, (code, None))
        if code is not expected:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"priv {code.name.lower()} does not match its request")
        return waiting is not None

    def _answered(self, request_id: int, answer: object) -> None:
        _, waiting = self._requests[request_id]
        if not waiting.done():
            waiting.set_result(answer)

    def _push(self, kind: RecordKind, entries: list[EnclaveRecord]) -> bool:
        code = Code.PUSH_PAYLOAD if kind is RecordKind.PAYLOAD else Code.PUSH_GROUP
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(_TIMEOUT_S / 2, self._check_acks)
        return self._send(code, messages.encode_bodies(entries))

    def _check_acks(self) -> None:
        """Disconnect a peer that does not acknowledge before the timeout."""
        self._watch = None
        oldest = self._pushes.oldest_s()
        if oldest > _TIMEOUT_S:
            self._peer.disconnect(DisconnectReason.TIMEOUT, "payloads not acknowledged in time")
        elif oldest > 0:
            self._watch = asyncio.get_running_loop().call_later(_TIMEOUT_S / 2, self._check_acks)

    def _send(self, code: Code, payload: bytes) -> bool:
        return self._peer.send(NAME, code, payload)


def _payloads(payload: bytes) -> list[tuple[EnclaveRecord, bytes, int]]:
    """Decode a `PushPayload` message. Returns each record with its group id and member count."""
    entries = messages.read_payloads(payload)
    sealed = [read_sealed(entry.body) for entry in entries]
    return [(entry, one.group, one.members) for entry, one in zip(entries, sealed, strict=True)]


def _groups(payload: bytes) -> list[EnclaveRecord]:
    return [
        EnclaveRecord(RecordLabel(RecordKind.GROUP, GroupRecord.decode(body).id), body)
        for body in messages.read_groups(payload)
    ]
