"""Connections to enclaves over HTTP, for members whose nodes are not devp2p peers of this node (privacy.md 5.1, 15.2).

This node asks every URL of `--privacy-enclave-peers` for its keys. The first response sealed with a key proves that the
enclave holds that key. After that, the URL serves as an `EnclaveLink`, like a devp2p connection: this node pushes
payloads and groups over it, and fetches payloads and groups that it has missed. A URL that does not answer is retried
after 0.5 s; the pause doubles up to one minute.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha512
from itertools import groupby
from typing import Final, TypeVar

import orjson

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.encoding import read_key
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import MAX_KEYS, EnclaveUnreachable
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.remote.http import HttpClient
from ophion.enclave_http.envelope import Envelope, open_answer, seal_request
from ophion.errors import DecodeError
from ophion.native.enclave import read_sealed
from ophion.peers.priv import messages
from ophion.peers.priv.messages import MAX_LABELS, ListRequest
from ophion.peers.priv.payload_push import PayloadPush, Push
from ophion.runtime.clock import Clock, Entropy

log = logging.getLogger(__name__)

PARTYINFO: Final = "/partyinfo"
PATHS: Final = {RecordKind.PAYLOAD: "/push", RecordKind.GROUP: "/pushPrivacyGroup"}
FETCH: Final = "/getPayload"
LIST: Final = "/list"

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 60.0
_LOOK_S: Final = 30.0
_TIMEOUT_S: Final = 20.0
_JSON: Final = "application/json"
_OK: Final = 200
_ALL_SEEN: Final = 2**63 - 1
"""Cursor above every possible sequence number, so that a listing from this cursor is empty."""

T = TypeVar("T")


class HttpEnclaveLink:
    """The connection to one URL. It lasts from the first response to the first failed request."""

    is_fallback = False

    def __init__(
        self,
        client: HttpClient,
        enclave: EmbeddedEnclave,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self.name = client.url
        self.identity = sha512(client.url.encode()).digest()
        self.keys: frozenset[bytes] = frozenset()
        self.lost = asyncio.Event()
        self._client = client
        self._enclave = enclave
        self._entropy = entropy
        self._pushes = PayloadPush(self._push, clock.monotonic)
        self._tasks: set[asyncio.Task[None]] = set()
        self._request_id = 0

    # --- EnclaveLink -----------------------------------------------------------------------------

    def push(self, entry: EnclaveRecord) -> Push:
        """Push a payload or group. One request may carry several payloads and groups."""
        return self._pushes.put(entry)

    async def listing(self, key: bytes, after: int) -> RecordListing:
        """List the payloads and groups that arrived at the other enclave for a local key."""
        self._request_id += 1
        request = messages.encode_list(ListRequest(self._request_id, key, after))
        return (await self._ask(LIST, key, request, messages.read_listing))[1]

    async def fetch(self, labels: Sequence[RecordLabel]) -> list[EnclaveRecord]:
        """Fetch payloads and groups by id. Sends one request per local key until everything is found."""
        missing = dict.fromkeys(labels[:MAX_LABELS])
        found: list[EnclaveRecord] = []
        for key in self._enclave.keys:
            if not missing:
                break
            self._request_id += 1
            request = messages.encode_request(self._request_id, list(missing))
            for entry in (await self._ask(FETCH, key, request, messages.read_records))[1]:
                if entry.label in missing:
                    del missing[entry.label]
                    found.append(entry)
        return found

    # --- connect and close -----------------------------------------------------------------------

    async def introduce(self) -> None:
        """Request the keys of the enclave and a proof of each new key. Raises `EnclaveLinkLost`."""
        try:
            answer = await self._client.post(PARTYINFO, orjson.dumps({"keys": []}), _JSON)
            claimed = [read_key(key) for key in orjson.loads(answer.body)["keys"]] if answer.status == _OK else []
        except (EnclaveUnreachable, ValueError, KeyError, TypeError) as error:
            raise EnclaveLinkLost(str(error)) from None
        own = self._enclave.keys
        for key in claimed[:MAX_KEYS]:
            if key not in self.keys and key not in own:
                nothing_new = messages.encode_list(ListRequest(0, own[0], _ALL_SEEN))
                await self._ask(LIST, own[0], nothing_new, messages.read_listing, key)
                self.keys |= {key}
                self._enclave.directory.add(self, key)
        if not self.keys:
            raise EnclaveLinkLost("the URL serves no key of another enclave")

    def close(self) -> None:
        """Close the connection. Its unfinished pushes fail with `EnclaveLinkLost`."""
        self.lost.set()
        self._enclave.directory.remove(self)
        self._pushes.fail_all()
        for task in self._tasks:
            task.cancel()
        self._client.close()

    def _push(self, kind: RecordKind, entries: list[EnclaveRecord]) -> bool:
        if self.lost.is_set():
            return False
        task = asyncio.get_running_loop().create_task(self._deliver(kind, entries))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def _deliver(self, kind: RecordKind, entries: list[EnclaveRecord]) -> None:
        with suppress(EnclaveLinkLost):
            for sender, some in groupby(entries, self._sender):
                sent = list(some)
                acks = await self._ask(PATHS[kind], sender, messages.encode_bodies(sent), messages.read_acks)
                self._pushes.acknowledged(acks)
                if not {ack.label for ack in acks} >= {entry.label for entry in sent}:
                    self.lost.set()  # an acknowledgement is missing, so treat the connection as lost

    def _sender(self, entry: EnclaveRecord) -> bytes:
        """Return the local key with which a payload or group is sent."""
        own = self._enclave.keys
        if entry.label.kind is RecordKind.PAYLOAD:
            sender = read_sealed(entry.body).sender
            return sender if sender in own else own[0]
        members = GroupRecord.decode(entry.body).members
        return next((key for key in own if key in members), own[0])

    async def _ask(
        self, path: str, own: bytes, message: bytes, read: Callable[[bytes], T], other: bytes | None = None
    ) -> T:
        """Send a sealed request and return the decrypted response. Any failure ends the connection."""
        keyring = self._enclave.keyring
        recipient = min(self.keys) if other is None else other
        try:
            request = seal_request(keyring, self._entropy, own, recipient, path.encode(), message)
            answer = await self._client.post(path, request.encode(), _JSON)
            if answer.status != _OK:
                raise DecodeError(f"status {answer.status}", "envelope")
            text = open_answer(keyring, request, Envelope.decode(bytes(answer.body)))
            if text is None:
                raise DecodeError("the response does not open", "envelope")
            return read(text)
        except (EnclaveUnreachable, DecodeError) as error:
            self.lost.set()
            raise EnclaveLinkLost(str(error)) from None


class HttpEnclavePeers:
    """Keeps a connection to every URL of `--privacy-enclave-peers` while the node runs."""

    name = "distant enclaves"

    def __init__(self, urls: Sequence[str], enclave: EmbeddedEnclave, clock: Clock, entropy: Entropy) -> None:
        self._urls = urls
        self._enclave = enclave
        self._clock = clock
        self._entropy = entropy

    async def run(self, ready: Callable[[], None]) -> None:
        """Keep connections to all URLs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for url in self._urls:
                tasks.create_task(self._keep(url), name=f"enclave {url}")
            ready()

    async def _keep(self, url: str) -> None:
        pause, was_there = _FIRST_PAUSE_S, None
        tls = ssl.create_default_context() if url.startswith("https:") else None
        while True:
            client = HttpClient(url, tls, timeout_s=_TIMEOUT_S)
            link = HttpEnclaveLink(client, self._enclave, self._clock, self._entropy)
            problem = "no response"
            try:
                while not link.lost.is_set():
                    await link.introduce()
                    if was_there is not True:
                        log.info("enclave online url=%s keys=%d", url, len(link.keys))
                    pause, was_there = _FIRST_PAUSE_S, True
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_LOOK_S):
                            await link.lost.wait()
            except EnclaveLinkLost as lost:
                problem = str(lost)
            finally:
                link.close()
            if was_there is not False:
                log.warning("enclave offline url=%s reason=%s", url, problem)
                was_there = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
