"""`PeerApplication`: serves requests of other enclaves on `--privacy-enclave-port`.

Everyone may send to this port. A request has the rights of the key that sealed it, and the response is sealed for that
key. All unknown senders share one rate limit. Each enclave at a configured URL has its own rate limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeAlias, TypeVar

import orjson

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.encoding import base64_text
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import KEY_SIZE
from ophion.enclave.payload_access import listed, readable_records
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_intake import MAX_RECORD_BYTES, UNKNOWN_GROUP
from ophion.enclave_http.envelope import Envelope, open_request, seal_answer
from ophion.enclave_http.http_peers import FETCH, LIST, PARTYINFO, PATHS
from ophion.enclave_http.pending_requests import PendingRequests
from ophion.enclave_http.rate_limits import MEMBER_BYTES, REQUEST_BYTES, RateExceeded, SenderRates
from ophion.enclave_http.tessera_peers import TesseraPeers
from ophion.enclave_http.tessera_requests import TesseraRequests
from ophion.enclave_http.unproven_work import SHORT_BYTES, UnprovenWork
from ophion.errors import DecodeError, OphionError
from ophion.native.enclave import read_sealed
from ophion.peers.priv import messages
from ophion.peers.priv.messages import MAX_LABELS, Ack
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import JSON, TEXT, Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, Result
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.clock import Clock, Entropy

_MAX_BODY_BYTES: Final = (MAX_RECORD_BYTES + 1024 * 1024) * 4 // 3 + 4096
_LIMITS: Final = HttpLimits(max_connections=256, max_body_bytes=_MAX_BODY_BYTES, idle_timeout_s=120.0)
MAX_HELD_BYTES: Final = 64 * 1024 * 1024
"""Memory budget of this port. Everyone may send to it, so its clients must not use up the budget of JSON-RPC."""
_MAX_OPEN: Final = 256
"""Maximum number of pending requests."""
_TIMEOUT_S: Final = 15.0

T = TypeVar("T")

Handler: TypeAlias = Callable[[bytes, bytes], Awaitable[bytes]]


class PeerApplication:
    """Handles the requests of other enclaves on `--privacy-enclave-port`."""

    host_refused: Final = Response(403, (b"Host not authorized.",), TEXT)

    def __init__(
        self,
        enclave: EmbeddedEnclave,
        clock: Clock,
        entropy: Entropy,
        loop: asyncio.AbstractEventLoop,
        tessera: TesseraPeers | None = None,
    ) -> None:
        """Create the request handlers. If `tessera` is given, enclaves of Tessera are served on the same port."""
        self.plain: Callable[..., Result] | None = None
        self._enclave = enclave
        self._entropy = entropy
        self._open = PendingRequests(loop, _MAX_OPEN)
        self._rates = SenderRates(enclave.directory, clock)
        self._unproven = UnprovenWork(enclave.lanes.peers)
        self._tessera = None if tessera is None else TesseraRequests(enclave, tessera, self._rates, self._unproven)
        self._posts: dict[bytes, Handler] = {
            PATHS[RecordKind.PAYLOAD].encode(): self._take_payloads,
            PATHS[RecordKind.GROUP].encode(): self._take_groups,
            FETCH.encode(): self._serve,
            LIST.encode(): self._list,
        }

    def respond(self, request: Request) -> Result:
        """Respond with `I'm up!` or the public keys, or start to handle a sealed request or a request of Tessera."""
        if request.path == b"/upcheck":
            return Response(200, (b"I'm up!",), TEXT)
        if self._tessera is not None and self._tessera.is_for_tessera(request):
            return Response(503) if self._open.is_full else self._open.begin(self._tessera.answer(request))
        if request.path == PARTYINFO.encode():
            return Response(200, (orjson.dumps({"keys": [base64_text(key) for key in self._enclave.keys]}),), JSON)
        if request.path not in self._posts:
            return Response(404)
        if request.method != b"POST":
            return Response(405, headers=b"Allow: POST\r\n")
        if self._open.is_full:
            return Response(503)
        return self._open.begin(self._answer(request))

    def close(self) -> None:
        """Cancel pending requests."""
        self._open.close()

    async def _answer(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                envelope = await self._unproven.run(request, partial(Envelope.decode, request.body))
                is_known, cost = envelope.sender in self._enclave.directory.known(), len(request.body) + REQUEST_BYTES
                if not is_known:
                    await self._rates.charge(envelope.sender, cost)
                opening = partial(open_request, self._enclave.keyring, request.path, envelope)
                asked = await self._unproven.run(request, opening)
                if asked is None:
                    return Response(403, (b"it does not open",), TEXT)
                if is_known:
                    # Charge a known sender only after its envelope decrypts, because any sender can write a member's
                    # key on an envelope.
                    await self._rates.charge(envelope.sender, cost)
                text = await self._posts[request.path](envelope.sender, asked)
        except (TimeoutError, RateExceeded):
            return Response(503)
        except DecodeError as error:
            return Response(400, (str(error).encode(),), TEXT)
        except OphionError:
            return Response(500)
        answer = seal_answer(self._enclave.keyring, self._entropy, envelope, text)
        return Response(200, (answer.encode(),), JSON)

    async def _run(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on the event loop, or in a worker thread if the request has many bytes (`size`)."""
        return work() if size <= SHORT_BYTES else await self._enclave.lanes.peers.run(work)

    # --- requests --------------------------------------------------------------------------------

    async def _take_payloads(self, sender: bytes, asked: bytes) -> bytes:
        entries = await self._run(len(asked), partial(messages.read_payloads, asked))
        proven = frozenset((sender,))
        sealed = [read_sealed(one.body) for one in entries]
        new_members = sum(one.members for one in sealed if not self._enclave.knows_group(one.group))
        await self._rates.charge(sender, new_members * MEMBER_BYTES)
        refusals = await self._enclave.take(entries, proven, is_peer=False)
        lines = self._enclave.directory.links(sender)
        orphans = [one for one, refusal in zip(entries, refusals, strict=True) if refusal == UNKNOWN_GROUP]
        if orphans and lines:
            # the groups of these payloads are unknown, so fetch the groups from the sender of the payloads
            labels = dict.fromkeys(RecordLabel(RecordKind.GROUP, read_sealed(one.body).group) for one in orphans)
            with suppress(EnclaveLinkLost):
                await self._enclave.take(await lines[0].fetch(list(labels)), proven, is_peer=False)
                refusals = await self._enclave.take(entries, proven, is_peer=False)
        return _acks(entries, refusals)

    async def _take_groups(self, sender: bytes, asked: bytes) -> bytes:
        await self._rates.charge(sender, len(asked) // KEY_SIZE * MEMBER_BYTES)
        bodies = messages.read_groups(asked)
        entries = [EnclaveRecord(RecordLabel(RecordKind.GROUP, GroupRecord.decode(body).id), body) for body in bodies]
        return _acks(entries, await self._enclave.take(entries, frozenset((sender,)), is_peer=False))

    async def _serve(self, sender: bytes, asked: bytes) -> bytes:
        request_id, labels = messages.read_request(asked)
        found = readable_records(self._enclave, labels, frozenset((sender,)))
        await self._rates.charge(sender, sum(len(entry.body) for entry in found))
        return messages.encode_records(request_id, found)

    async def _list(self, sender: bytes, asked: bytes) -> bytes:
        request = messages.read_list(asked)
        listing = listed(self._enclave, request.key, request.after, MAX_LABELS, frozenset((sender,)))
        await self._rates.charge(sender, 40 * len(listing.labels))
        return messages.encode_listing(request.request_id, listing)


def peer_service(
    enclave: EmbeddedEnclave,
    host: str,
    port: int,
    clock: Clock,
    entropy: Entropy,
    shared: SharedResources | None = None,
    tessera: TesseraPeers | None = None,
) -> HttpService:
    """Build the HTTP service for other enclaves. The service accepts any host name."""
    return HttpService(
        "Enclave peers",
        host,
        port,
        HostList(("*",)),
        OriginList(()),
        _LIMITS,
        lambda loop: PeerApplication(enclave, clock, entropy, loop, tessera),
        None,
        shared,
    )


def _acks(entries: list[EnclaveRecord], refusals: list[str | None]) -> bytes:
    return messages.encode_acks([Ack(one.label, refusal or "") for one, refusal in zip(entries, refusals, strict=True)])
