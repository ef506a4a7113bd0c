"""`PrivPeer`: priv/1 on one connection, and a `Line` for the enclave."""

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
from ophion.enclave.parcels import Kind, Label, LineLost, Listing, Parcel
from ophion.enclave.payload_intake import UNKNOWN_GROUP
from ophion.enclave.serving import listed, served
from ophion.native.enclave import read_sealed
from ophion.peers.disconnect_reasons import DisconnectReason, PeerMisbehaved
from ophion.peers.peer import Peer
from ophion.peers.priv import messages
from ophion.peers.priv.key_proofs import KeyProver
from ophion.peers.priv.messages import MAX_LABELS, Ack, Code, ListRequest
from ophion.peers.priv.pushes import Push, Pushes
from ophion.peers.token_bucket import TokenBucket
from ophion.runtime.clock import Clock, Entropy

NAME: Final = "priv"
_MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""What a peer may send ahead of our work: more than it has under way when it keeps to its window."""
_MAX_WAITING: Final = 512
_BURST_BYTES: Final = 64 * 1024 * 1024
_BYTES_A_SECOND: Final = 8 * 1024 * 1024
"""What is judged and stored for one peer: beyond it, it waits for its acknowledgements."""
_COST_BYTES: Final = 4096
"""What a message costs beside its bytes: a database is asked, an answer is made."""
_MEMBER_BYTES: Final = 4096
"""What a member of a group that is new here costs: its key is looked at, which takes a tenth of a millisecond."""
_SHORT_BYTES: Final = 32 * 1024
_TAKEN_AT_ONCE_BYTES: Final = 256 * 1024
_TIMEOUT_S: Final = 20.0
_MAX_PROOFS: Final = 4
"""How often a peer may announce, challenge and prove on one connection."""
_UNHURRIED: Final = frozenset({Code.PUSH_PAYLOAD, Code.PUSH_GROUP, Code.GET_PAYLOAD, Code.LIST})

_UNWANTED: Final = object()

T = TypeVar("T")


class PrivPeer:
    """What another enclave says and hears on one connection."""

    def __init__(self, peer: Peer, enclave: EmbeddedEnclave, own_id: bytes, clock: Clock, entropy: Entropy) -> None:
        self.name = peer.enode.url
        self.identity = peer.id
        self.keys: frozenset[bytes] = frozenset()
        self._peer = peer
        self._enclave = enclave
        self._clock = clock
        self._examiner = KeyProver(enclave.keyring, own_id, peer.id, entropy)
        self._pushes = Pushes(self._push, clock.monotonic)
        self._requests: dict[int, tuple[Code, asyncio.Future[object]]] = {}
        """What was asked for, by the code of its answer."""
        self._request_id = 0
        self._inbox: deque[tuple[Code, bytes]] = deque()
        self._inbox_bytes = 0
        self._is_working = False
        self._introductions = 0
        self._allowance = TokenBucket(_BURST_BYTES, _BYTES_A_SECOND)
        self._watch: asyncio.TimerHandle | None = None
        self._is_closed = False

    # --- Line ------------------------------------------------------------------------------------

    def push(self, parcel: Parcel) -> Push:
        """Hand a parcel over; many go in one message."""
        return self._pushes.put(parcel)

    async def listing(self, key: bytes, after: int) -> Listing:
        """What came there for a key of ours."""
        request_id = self._next_id()
        request = messages.encode_list(ListRequest(request_id, key, after))
        return cast(Listing, await self._ask(request_id, Code.LIST, request, Code.LISTED))

    async def fetch(self, labels: Sequence[Label]) -> list[Parcel]:
        """Parcels by label, each once; an answer has room for some."""
        request_id = self._next_id()
        request = messages.encode_request(request_id, labels[:MAX_LABELS])
        answer = cast(list[Parcel], await self._ask(request_id, Code.GET_PAYLOAD, request, Code.PAYLOAD))
        wanted = dict.fromkeys(labels)
        return [parcel for parcel in answer if wanted.pop(parcel.label, _UNWANTED) is not _UNWANTED]

    # --- Attached --------------------------------------------------------------------------------

    def announce(self) -> None:
        """Say which keys are here."""
        self._send(Code.ANNOUNCE, messages.encode_keys(self._enclave.keys[:MAX_KEYS]))

    def received(self, code: int, payload: bytes) -> None:
        """One message; what takes long waits for its turn in a task."""
        known = Code(code)
        if len(payload) > messages.MAX_BYTES[known]:
            self.oversized(code, len(payload))
        if known in _UNHURRIED:
            self._queue(known, payload)
        elif known is Code.ACK:
            self._pushes.acknowledged(messages.read_acks(payload))
        elif known in (Code.PAYLOAD, Code.LISTED):
            if not self._expects(known, messages.response_id(payload)):
                return  # too late or unsolicited: its items are not decoded
            read = messages.read_parcels if known is Code.PAYLOAD else messages.read_listing
            self._answered(*read(payload))
        else:
            self._introduced(known, payload)

    def oversized(self, code: int, size: int) -> None:
        """A message over its size limit."""
        raise PeerMisbehaved(DisconnectReason.BREACH, f"priv {Code(code).name.lower()} of {size} bytes")

    def closed(self) -> None:
        """Whoever waits for this peer learns that it is gone."""
        self._is_closed = True
        if self._watch is not None:
            self._watch.cancel()
        self._enclave.directory.left(self)
        self._pushes.lose()
        for _, request in self._requests.values():
            if not request.done():
                request.set_exception(LineLost())
                request.exception()
        self._requests.clear()
        self._inbox.clear()

    # --- introductions ---------------------------------------------------------------------------

    def _introduced(self, code: Code, payload: bytes) -> None:
        self._introductions += 1
        if self._introductions > 3 * _MAX_PROOFS:
            raise PeerMisbehaved(DisconnectReason.BREACH, "it keeps announcing enclave keys")
        if code is Code.ANNOUNCE:
            claimed = messages.read_keys(payload)
            self._send(Code.CHALLENGE, messages.encode_challenges(self._examiner.challenge(claimed)))
        elif code is Code.CHALLENGE:
            proofs = self._examiner.prove(messages.read_challenges(payload))
            self._send(Code.PROOF, messages.encode_proofs(proofs))
        else:
            for key in self._examiner.check(messages.read_proofs(payload)):
                self.keys |= {key}
                self._enclave.directory.came(self, key)

    # --- what the peer asks and brings -----------------------------------------------------------

    def _queue(self, code: Code, payload: bytes) -> None:
        if not self.keys:
            raise PeerMisbehaved(DisconnectReason.BREACH, f"priv {code.name.lower()} before a key was proven")
        self._inbox.append((code, payload))
        self._inbox_bytes += len(payload)
        if self._inbox_bytes > _MAX_WAITING_BYTES or len(self._inbox) > _MAX_WAITING:
            raise PeerMisbehaved(DisconnectReason.BREACH, "it sends ahead of its acknowledgements")
        if not self._is_working:
            self._is_working = self._peer.spawn(self._work())

    async def _work(self) -> None:
        """One after the other: a payload is judged by the group that came before it."""
        try:
            while self._inbox:
                code, payload = self._inbox.popleft()
                self._inbox_bytes -= len(payload)
                await self._pay(len(payload) + _COST_BYTES)
                match code:
                    case Code.PUSH_PAYLOAD:
                        parcels = await self._payloads(payload)
                        # what has come meanwhile goes along: one commit for all of it, and nobody waits for several
                        size = len(payload)
                        while self._inbox and self._inbox[0][0] is code and size < _TAKEN_AT_ONCE_BYTES:
                            _, payload = self._inbox.popleft()
                            self._inbox_bytes -= len(payload)
                            size += len(payload)
                            await self._pay(len(payload) + _COST_BYTES)
                            parcels += await self._payloads(payload)
                        await self._take(parcels)
                    case Code.PUSH_GROUP:
                        await self._pay(len(payload) // KEY_SIZE * _MEMBER_BYTES)
                        await self._take(await self._read(_groups, payload))
                    case Code.GET_PAYLOAD:
                        await self._serve(*messages.read_request(payload))
                    case _:
                        await self._list(messages.read_list(payload))
        finally:
            self._is_working = False

    async def _payloads(self, payload: bytes) -> list[Parcel]:
        parcels = await self._read(_payloads, payload)
        strangers = sum(count for _, group, count in parcels if not self._enclave.knows_group(group))
        await self._pay(strangers * _MEMBER_BYTES)
        return [parcel for parcel, _, _ in parcels]

    async def _read(self, read: Callable[[bytes], list[T]], payload: bytes) -> list[T]:
        """Decode a message, in a lane when it is long."""
        if len(payload) <= _SHORT_BYTES:
            return read(payload)
        return await self._enclave.lanes.peers.run(partial(read, payload))

    async def _pay(self, amount: int) -> None:
        now = self._clock.monotonic()
        if not self._allowance.spend(amount, now):
            await asyncio.sleep(-self._allowance.left(now) / _BYTES_A_SECOND)

    async def _take(self, parcels: list[Parcel]) -> None:
        refusals = await self._enclave.take(parcels, self.keys)
        orphans = [one for one, refusal in zip(parcels, refusals, strict=True) if refusal == UNKNOWN_GROUP]
        # in a task of its own: what the peer asks meanwhile is answered, and it may ask for groups too
        if orphans and self._peer.spawn(self._take_orphans(orphans)):
            settled = [
                (one, refusal) for one, refusal in zip(parcels, refusals, strict=True) if refusal != UNKNOWN_GROUP
            ]
            parcels, refusals = [one for one, _ in settled], [refusal for _, refusal in settled]
        self._acknowledge(parcels, refusals)

    async def _take_orphans(self, parcels: list[Parcel]) -> None:
        """Payloads whose groups were lost here: their sender has them."""
        groups = dict.fromkeys(Label(Kind.GROUP, read_sealed(parcel.body).group) for parcel in parcels)
        refusals: list[str | None] = [UNKNOWN_GROUP] * len(parcels)
        with suppress(LineLost):
            await self._enclave.take(await self.fetch(list(groups)), self.keys)
            refusals = await self._enclave.take(parcels, self.keys)
        self._acknowledge(parcels, refusals)

    def _acknowledge(self, parcels: list[Parcel], refusals: list[str | None]) -> None:
        acks = [Ack(parcel.label, refusal or "") for parcel, refusal in zip(parcels, refusals, strict=True)]
        self._send(Code.ACK, messages.encode_acks(acks))

    async def _serve(self, request_id: int, labels: list[Label]) -> None:
        found = served(self._enclave, labels, self.keys)
        await self._pay(sum(len(parcel.body) for parcel in found))
        self._send(Code.PAYLOAD, messages.encode_parcels(request_id, found))

    async def _list(self, request: ListRequest) -> None:
        listing = listed(self._enclave, request.key, request.after, MAX_LABELS, self.keys)
        await self._pay(40 * len(listing.labels))
        self._send(Code.LISTED, messages.encode_listing(request.request_id, listing))

    # --- requests and answers --------------------------------------------------------------------

    def _next_id(self) -> int:
        self._request_id += 1
        return self._request_id

    async def _ask(self, request_id: int, code: Code, request: bytes, expected: Code) -> object:
        if self._is_closed:
            raise LineLost
        answer: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._requests[request_id] = (expected, answer)
        try:
            if not self._send(code, request):
                raise LineLost
            async with asyncio.timeout(_TIMEOUT_S):
                return await answer
        except TimeoutError:
            raise LineLost from None
        finally:
            self._requests.pop(request_id, None)

    def _expects(self, code: Code, request_id: int) -> bool:
        """Whether a request waits for this response; `PeerMisbehaved` when it waits for one of another kind."""
        expected, waiting = self._requests.get(request_id, (code, None))
        if code is not expected:
            raise PeerMisbehaved(
                DisconnectReason.BREACH, f"priv {code.name.lower()} where another answer was asked for"
            )
        return waiting is not None

    def _answered(self, request_id: int, answer: object) -> None:
        _, waiting = self._requests[request_id]
        if not waiting.done():
            waiting.set_result(answer)

    def _push(self, kind: Kind, parcels: list[Parcel]) -> bool:
        code = Code.PUSH_PAYLOAD if kind is Kind.PAYLOAD else Code.PUSH_GROUP
        if self._watch is None:
            self._watch = asyncio.get_running_loop().call_later(_TIMEOUT_S / 2, self._look)
        return self._send(code, messages.encode_bodies(parcels))

    def _look(self) -> None:
        """Whether the peer acknowledges at all."""
        self._watch = None
        oldest = self._pushes.oldest_s()
        if oldest > _TIMEOUT_S:
            self._peer.disconnect(DisconnectReason.TIMEOUT, "it does not acknowledge payloads")
        elif oldest > 0:
            self._watch = asyncio.get_running_loop().call_later(_TIMEOUT_S / 2, self._look)

    def _send(self, code: Code, payload: bytes) -> bool:
        return self._peer.send(NAME, code, payload)


def _payloads(payload: bytes) -> list[tuple[Parcel, bytes, int]]:
    """Parcels with their groups, and how many members those have."""
    parcels = messages.read_payloads(payload)
    sealed = [read_sealed(parcel.body) for parcel in parcels]
    return [(parcel, one.group, one.members) for parcel, one in zip(parcels, sealed, strict=True)]


def _groups(payload: bytes) -> list[Parcel]:
    return [Parcel(Label(Kind.GROUP, GroupRecord.decode(body).id), body) for body in messages.read_groups(payload)]
