"""`TesseraRequests`: serves enclaves of Tessera on `--privacy-enclave-port` (decision 188).

The protocol of Tessera has no authentication of callers. The encryption of a payload proves the key of its sender, so a
payload has the rights of that key. A group contains no such proof. A group is accepted only from the IP address of a
Tessera that has proven the key of a group member.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import orjson

from ophion import __version__
from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.encoding import base64_text
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.payload_exchange import EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_intake import BUDGET_EXCEEDED, TOO_MANY_GROUPS
from ophion.enclave.tessera.groups import decode_group
from ophion.enclave.tessera.party_info import PartyInfo
from ophion.enclave.tessera.payloads import TesseraPayload, decode_payload
from ophion.enclave.tessera.sealed_payloads import group_in, opened, record_for_member
from ophion.enclave_http.rate_limits import MEMBER_BYTES, REQUEST_BYTES, UNKNOWN_SENDERS, RateExceeded, SenderRates
from ophion.enclave_http.tessera_peers import API_VERSIONS, PARTYINFO, PUSH, PUSH_GROUP, VALIDATE, TesseraPeers
from ophion.enclave_http.unproven_work import SHORT_BYTES, UnprovenWork
from ophion.errors import DecodeError, OphionError
from ophion.native.enclave import read_sealed
from ophion.rpc.transport.http.messages import JSON, TEXT, Request, Response, media_type

log = logging.getLogger(__name__)

_OCTETS: Final = b"application/octet-stream"
_TIMEOUT_S: Final = 15.0
_MAX_QUESTION_BYTES: Final = 4096
"""Maximum size in bytes of an encrypted UUID that Tessera sends to verify a key of this enclave."""
_UUID: Final = re.compile(rb"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BUSY: Final = frozenset((BUDGET_EXCEEDED, TOO_MANY_GROUPS))
_MAX_NAMED: Final = 64
"""Maximum number of unknown addresses that are logged, each once."""

T = TypeVar("T")


class TesseraRequests:
    """Handles the requests of Tessera enclaves."""

    def __init__(
        self, enclave: EmbeddedEnclave, peers: TesseraPeers, rates: SenderRates, unproven: UnprovenWork
    ) -> None:
        self._enclave = enclave
        self._peers = peers
        self._rates = rates
        self._unproven = unproven
        self._own = frozenset(enclave.keys)
        self._named: set[str] = set()
        self._posts: dict[bytes, Callable[[Request], Awaitable[Response]]] = {
            PARTYINFO.encode(): self._take_party_info,
            VALIDATE.encode(): self._prove,
            PUSH.encode(): self._take_payload,
            PUSH_GROUP.encode(): self._take_group,
        }
        self._gets: dict[bytes, Response] = {
            PARTYINFO.encode(): Response(200, (self._info().encode_json(),), JSON),
            b"/version": Response(200, (__version__.encode(),), TEXT),
            b"/version/distribution": Response(200, (__version__.encode(),), TEXT),
            b"/version/api": Response(200, (orjson.dumps([one.removeprefix("v") for one in API_VERSIONS]),), JSON),
        }

    def is_for_tessera(self, request: Request) -> bool:
        """Whether a request uses the protocol of Tessera. Enclaves of Ophion send JSON to the same paths."""
        if request.method == b"GET":
            return request.path in self._gets
        return request.path in self._posts and media_type(request.headers) == _OCTETS

    async def answer(self, request: Request) -> Response:
        """Handle a request of a Tessera enclave and return the response."""
        if request.method == b"GET":
            return self._gets[request.path]
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                return await self._posts[request.path](request)
        except (TimeoutError, RateExceeded):
            return Response(503)
        except DecodeError as error:
            return _text(400, str(error))
        except OphionError:
            return Response(500)

    # --- requests --------------------------------------------------------------------------------

    async def _take_party_info(self, request: Request) -> Response:
        """Request the keys of the calling enclave soon, because the keys in its party info are not proven."""
        await self._rates.charge(self._account(request.address), len(request.body) + REQUEST_BYTES)
        info = await self._run(len(request.body), partial(PartyInfo.decode, request.body))
        self._peers.refresh(info.url)
        return Response(200, (PartyInfo(self._peers.own_url, (), ()).encode(),), _OCTETS)

    async def _prove(self, request: Request) -> Response:
        """Decrypt a random UUID and return it, which proves that this enclave holds the key. A decrypted text that is
        no UUID is not returned.
        """
        await self._rates.charge(self._account(request.address), len(request.body) + REQUEST_BYTES)
        if len(request.body) > _MAX_QUESTION_BYTES:
            return _text(400, "it is too large")
        _, _, text = opened(self._enclave.keyring, self._for_this_enclave(decode_payload(request.body)))
        return Response(200, (text,), TEXT) if _UUID.fullmatch(text) else _text(400, "it holds no UUID")

    async def _take_payload(self, request: Request) -> Response:
        size = len(request.body)
        payload = self._for_this_enclave(await self._unproven.run(request, partial(decode_payload, request.body)))
        sender, is_known = payload.sender, payload.sender in self._enclave.directory.known()
        if sender in self._own:
            return _text(403, "its sender is this enclave")
        if not is_known:
            await self._rates.charge(UNKNOWN_SENDERS, size + REQUEST_BYTES)
        try:
            own, box, text = await self._unproven.run(request, partial(opened, self._enclave.keyring, payload))
        except DecodeError:
            # charge the shared limit of unknown senders for a payload that does not decrypt, because any caller can
            # name a known sender
            if is_known:
                await self._rates.charge(UNKNOWN_SENDERS, size + REQUEST_BYTES)
            raise
        if is_known:
            await self._rates.charge(sender, size + REQUEST_BYTES)
        group = await self._run(len(text), partial(group_in, text, self._known_group))
        if not self._enclave.knows_group(group.id):
            await self._rates.charge(sender, len(group.members) * MEMBER_BYTES)
        record = await self._run(size, partial(record_for_member, payload, group, own, box))
        key = (await self._run(size, partial(read_sealed, record))).key
        entry = EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record)
        [refusal] = await self._enclave.take([entry], frozenset((sender,)), is_peer=False)
        return Response(201, (base64_text(key).encode(),), TEXT) if refusal is None else _refused(refusal)

    async def _take_group(self, request: Request) -> Response:
        await self._rates.charge(self._account(request.address), len(request.body) * MEMBER_BYTES // 40 + REQUEST_BYTES)
        group = await self._run(len(request.body), partial(decode_group, request.body))
        proven = self._peers.keys_at(request.address).intersection(group.members)
        if not proven:
            self._name(request.address)
            return _text(403, "its caller is not the enclave of a member")
        entry = EnclaveRecord(RecordLabel(RecordKind.GROUP, group.id), group.encode())
        [refusal] = await self._enclave.take([entry], proven, is_peer=False)
        return Response(200) if refusal is None else _refused(refusal)

    # --- helpers ---------------------------------------------------------------------------------

    def _for_this_enclave(self, payload: TesseraPayload) -> TesseraPayload:
        """Return the payload unchanged if it names a local key as recipient, or has only one box and names no
        recipient. Otherwise raises `DecodeError`.
        """
        if payload.recipients and self._own.isdisjoint(payload.recipients):
            raise DecodeError("no recipient is a key of this enclave")
        if not payload.recipients and len(payload.boxes) > 1:
            raise DecodeError("the recipients are not named")
        return payload

    def _known_group(self, group_id: bytes) -> GroupRecord:
        group = self._enclave.group_record(group_id)
        if group is None:
            raise DecodeError("its group is unknown")
        return group

    def _account(self, address: str) -> bytes:
        """Return the key whose rate limit is charged for a request from this IP address, if the request does not prove
        its sender.
        """
        return min(self._peers.keys_at(address), default=UNKNOWN_SENDERS)

    def _name(self, address: str) -> None:
        if address not in self._named and len(self._named) < _MAX_NAMED:
            self._named.add(address)
            log.warning("refused a privacy group of an unknown Tessera address=%s", address)

    def _info(self) -> PartyInfo:
        own_url = self._peers.own_url
        return PartyInfo(own_url, tuple((key, own_url) for key in self._enclave.keys), ())

    async def _run(self, size: int, work: Callable[[], T]) -> T:
        """Run `work` on the event loop, or in a worker thread if the request has many bytes (`size`)."""
        return work() if size <= SHORT_BYTES else await self._enclave.lanes.peers.run(work)


def _text(status: int, text: str) -> Response:
    return Response(status, (text.encode(),), TEXT)


def _refused(refusal: str) -> Response:
    return _text(503 if refusal in _BUSY else 403, refusal)
