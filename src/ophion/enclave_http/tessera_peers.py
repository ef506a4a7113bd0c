"""Connections to enclaves of Tessera, for members that have not moved to Ophion (decision 188).

This node requests the enclave keys of every Tessera from its P2P server (`GET /partyinfo`). For each key, this node
sends a random UUID that is encrypted for the key (`POST /partyinfo/validate`). If Tessera returns the UUID, it holds
the key. Then the URL serves as an `EnclaveLink` for that key: this node pushes payloads to `/push` and groups to
`/pushPrivacyGroup`. `POST /partyinfo` tells Tessera the keys of this node. URLs of further enclaves come only from the
configured enclaves, never from an enclave that calls this node.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from hashlib import sha512
from typing import Final
from urllib.parse import urlsplit
from uuid import UUID

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_record import GroupRecord
from ophion.enclave.interface import KEY_SIZE, MAX_KEYS
from ophion.enclave.payload_exchange import EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel, RecordListing
from ophion.enclave.tessera.groups import encode_group
from ophion.enclave.tessera.party_info import MAX_INFO_BYTES, PartyInfo, normal_url
from ophion.enclave.tessera.payloads import encode_payload
from ophion.enclave.tessera.sealed_payloads import boxes_of, payload_for
from ophion.errors import DecodeError
from ophion.native.enclave import read_sealed
from ophion.native.exceptions import NativeError
from ophion.runtime.clock import Entropy
from ophion.runtime.http_client import HttpClient, HttpError, HttpReply

log = logging.getLogger(__name__)

PARTYINFO: Final = "/partyinfo"
VALIDATE: Final = "/partyinfo/validate"
PUSH: Final = "/push"
PUSH_GROUP: Final = "/pushPrivacyGroup"
API_VERSIONS: Final = ("v1", "3.0")
"""API versions of Tessera that this node speaks: payloads in the binary encoding, and privacy groups. A Tessera that
knows CBOR (5.0) uses the binary encoding for enclaves that do not announce 5.0.
"""
MAX_FOUND_URLS: Final = 256
"""Maximum number of enclaves whose URLs this node learns from the configured enclaves."""

_OCTETS: Final = "application/octet-stream"
_HEADERS: Final = {"Content-Type": _OCTETS, "tesseraSupportedApiVersions": ",".join(API_VERSIONS)}
_STORED: Final = (200, 201)
_SERVER_ERROR: Final = 500
_MAX_TRIES: Final = 3
_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 60.0
_LOOK_S: Final = 10.0
"""Seconds between two requests for the keys of one Tessera. The requests also announce this node again, because Tessera
forgets this node after a failed request.
"""
_REFRESH_S: Final = 5.0
"""Minimum seconds between two key requests to a URL, if calls from this URL cause the requests. Without this limit, two
Ophion nodes would cause each other's requests in a loop.
"""
_MAX_FAILURES: Final = 8
"""Number of failed attempts after which a URL that is not configured is dropped. A configured enclave can name the URL
again.
"""
_TIMEOUT_S: Final = 20.0
_RANDOMNESS: Final = 80


class TesseraLink:
    """The connection to one Tessera enclave. The connection lasts from the first proven key to the first failed
    request.
    """

    is_fallback = True

    def __init__(
        self,
        client: HttpClient,
        enclave: EmbeddedEnclave,
        entropy: Entropy,
        own_url: str,
        on_lost: Callable[[], None],
        may_hold: Callable[[bytes], bool] = lambda key: True,
    ) -> None:
        """Create a connection. `own_url` is the URL that this node sends to Tessera as its own.

        `may_hold` returns whether this connection may serve a key. It returns False if a configured URL has proven the
        key and the URL of this connection is not configured.
        """
        self.name = client.url
        self.identity = sha512(client.url.encode()).digest()
        self.keys: frozenset[bytes] = frozenset()
        self.is_lost = False
        self._client = client
        self._enclave = enclave
        self._entropy = entropy
        self._own_url = own_url
        self._on_lost = on_lost
        self._may_hold = may_hold
        self._pushes: dict[asyncio.Future[str | None], asyncio.Task[None]] = {}

    # --- EnclaveLink -----------------------------------------------------------------------------

    def push(self, entry: EnclaveRecord) -> asyncio.Future[str | None]:
        """Push a payload or group to the keys of this Tessera. Each recipient gets only its own box of a payload."""
        loop = asyncio.get_running_loop()
        push: asyncio.Future[str | None] = loop.create_future()
        if self.is_lost:
            push.set_exception(EnclaveLinkLost())
            return push
        self._pushes[push] = loop.create_task(self._deliver(entry, push))
        push.add_done_callback(self._settled)
        return push

    async def listing(self, key: bytes, after: int) -> RecordListing:
        """Return an empty listing, because Tessera cannot list payloads."""
        return RecordListing([], after, False)

    async def fetch(self, labels: Sequence[RecordLabel]) -> list[EnclaveRecord]:
        """Return an empty list, because Tessera only pushes new payloads and serves no stored ones."""
        return []

    # --- connect and close -----------------------------------------------------------------------

    async def introduce(self) -> PartyInfo:
        """Tell Tessera the keys of this node, and verify the keys of Tessera. Returns the party info of Tessera. Raises
        `EnclaveLinkLost`.
        """
        own = self._enclave.keys
        info = PartyInfo(self._own_url, tuple((key, self._own_url) for key in own), (self._own_url,))
        try:
            answer = await self._ask("POST", PARTYINFO, info.encode())
            if answer.status not in _STORED:
                raise EnclaveLinkLost(f"POST {PARTYINFO} gives status {answer.status}")
            answer = await self._ask("GET", PARTYINFO)
            if answer.status not in _STORED:
                raise EnclaveLinkLost(f"GET {PARTYINFO} gives status {answer.status}")
            body = bytes(answer.body)
            info = await self._enclave.lanes.peers.run(partial(PartyInfo.decode_json, body))
        except (HttpError, DecodeError) as error:
            raise EnclaveLinkLost(str(error)) from None
        for key in info.keys_of(info.url)[:MAX_KEYS]:
            if key in own or not self._may_hold(key):
                continue
            if key in self.keys or await self._is_proven(key):
                self.keys |= {key}
                self._enclave.directory.add(self, key)
        if not self.keys:
            raise EnclaveLinkLost("the URL proves no key of another enclave")
        return info

    def mark_lost(self) -> None:
        """Mark this connection as lost, because a request failed or a configured URL has proven one of the connection's
        keys. `TesseraPeers` closes the connection soon.
        """
        self.is_lost = True
        self._on_lost()

    def close(self) -> None:
        """Close the connection. Its unfinished pushes fail with `EnclaveLinkLost`."""
        self.is_lost = True
        self._enclave.directory.remove(self)
        for push in tuple(self._pushes):
            _fail(push)
        self._client.close()

    async def _is_proven(self, key: bytes) -> bool:
        """Whether the Tessera enclave holds a key: it must decrypt a random UUID that is sealed for the key."""
        uuid = str(UUID(bytes=self._entropy.token(16), version=4)).encode()
        sender = self._enclave.keys[0]
        try:
            randomness = self._entropy.token(_RANDOMNESS)
            _, record = self._enclave.keyring.seal(uuid, sender, [key], 1, bytes(KEY_SIZE), randomness)
            question = payload_for(record, key)
            assert question is not None, "the record is sealed for this key"
            answer = await self._ask("POST", VALIDATE, encode_payload(question, b""))
        except (NativeError, HttpError):
            return False
        return answer.status in _STORED and bytes(answer.body) == uuid

    async def _deliver(self, entry: EnclaveRecord, push: asyncio.Future[str | None]) -> None:
        try:
            outcome = await (self._deliver_group if entry.label.kind is RecordKind.GROUP else self._deliver_payload)(
                entry
            )
        except (HttpError, DecodeError) as error:
            log.debug("push to Tessera failed url=%s reason=%s", self.name, error)
            self.mark_lost()
            _fail(push)
            return
        if not push.done():
            push.set_result(outcome)

    async def _deliver_payload(self, entry: EnclaveRecord) -> str | None:
        """Push a payload to every key of this Tessera for which the payload has a box. Returns None, or the first
        refusal.
        """
        group_id = read_sealed(entry.body).group
        recipients = [key for key in boxes_of(entry.body) if key in self.keys]
        refusal: str | None = "no key of this enclave is a recipient"
        for recipient in recipients:
            payload = payload_for(entry.body, recipient)
            if payload is not None:
                refusal = await self._push(PUSH, encode_payload(payload, group_id))
            if refusal is not None:
                break
        return refusal

    async def _deliver_group(self, entry: EnclaveRecord) -> str | None:
        group = GroupRecord.decode(entry.body)
        if self.keys.isdisjoint(group.members):
            return "no key of this enclave is a member"
        return await self._push(PUSH_GROUP, encode_group(group))

    async def _push(self, path: str, body: bytes) -> str | None:
        """Send a request until Tessera accepts or refuses it. Retries after a server error, which may be transient.
        Returns None, or the refusal.
        """
        pause = _FIRST_PAUSE_S
        for tries in range(1, _MAX_TRIES + 1):
            answer = await self._ask("POST", path, body)
            if answer.status in _STORED:
                return None
            if answer.status < _SERVER_ERROR or tries == _MAX_TRIES:
                break
            await asyncio.sleep(pause)
            pause *= 2
        return f"Tessera answered with status {answer.status}"

    async def _ask(self, method: str, path: str, body: bytes = b"") -> HttpReply:
        return await self._client.request(method, path, body, _HEADERS)

    def _settled(self, push: asyncio.Future[str | None]) -> None:
        task = self._pushes.pop(push, None)
        if task is not None:
            task.cancel()


class TesseraPeers:
    """Keeps a connection to every Tessera enclave while the node runs: to the configured URLs, and to URLs that the
    configured enclaves name.
    """

    name = "Tessera enclaves"

    def __init__(self, urls: Sequence[str], own_url: str, enclave: EmbeddedEnclave, entropy: Entropy) -> None:
        self.own_url = normal_url(own_url)
        self._configured = frozenset(map(normal_url, urls))
        self._enclave = enclave
        self._entropy = entropy
        self._wakes: dict[str, asyncio.Event] = {}
        self._refreshed: dict[str, float] = {}
        """Time of the last key request that a call from the URL caused, by URL."""
        self._links: dict[str, tuple[TesseraLink, frozenset[str]]] = {}
        """Connections by URL, each with the IP addresses of the URL."""
        self._held: frozenset[bytes] = frozenset()
        """Keys that configured URLs have proven. They are reserved for these URLs, because another URL could pass off a
        key as its own by forwarding the UUID to the key's owner.
        """
        self._tasks: asyncio.TaskGroup | None = None

    async def run(self, ready: Callable[[], None]) -> None:
        """Connect to all URLs until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            for url in self._configured:
                self._add(url)
            ready()

    def refresh(self, url: str) -> None:
        """Request the keys of an enclave soon, because this enclave may just have called this node. Ignores an unknown
        URL.

        Any caller can send any URL, so a URL is refreshed at most once in `_REFRESH_S` seconds.
        """
        wake, now = self._wakes.get(url), asyncio.get_running_loop().time()
        if wake is not None and now - self._refreshed.get(url, -_REFRESH_S) >= _REFRESH_S:
            self._refreshed[url] = now
            wake.set()

    def keys_at(self, address: str) -> frozenset[bytes]:
        """Return the proven keys of the enclaves whose URLs have this IP address."""
        found = (link.keys for link, addresses in self._links.values() if address in addresses)
        return frozenset(key for keys in found for key in keys)

    def _add(self, url: str) -> None:
        if url not in self._wakes and url != self.own_url and self._tasks is not None:
            self._wakes[url] = asyncio.Event()
            self._tasks.create_task(self._keep(url), name=f"Tessera {url}")

    def _find_more(self, info: PartyInfo) -> None:
        for url in dict.fromkeys(owner for _, owner in info.keys):
            if len(self._wakes) - len(self._configured) >= MAX_FOUND_URLS:
                return
            self._add(url)

    def _may_hold(self, is_configured: bool, key: bytes) -> bool:
        return is_configured or key not in self._held

    def _hold(self, keys: frozenset[bytes]) -> None:
        """Reserve the keys that a configured URL has proven. Connections of other URLs that serve such a key are closed
        and opened again without the key.
        """
        if not keys.issubset(self._held):
            self._held |= keys
            for url, (link, _) in self._links.items():
                if url not in self._configured and not link.keys.isdisjoint(keys):
                    link.mark_lost()

    async def _keep(self, url: str) -> None:
        pause, failures, was_there, wake = _FIRST_PAUSE_S, 0, None, self._wakes[url]
        is_configured = url in self._configured
        tls = ssl.create_default_context() if url.startswith("https:") else None
        while is_configured or failures < _MAX_FAILURES:
            client = HttpClient(url, tls, timeout_s=_TIMEOUT_S, max_reply_bytes=MAX_INFO_BYTES)
            may_hold = partial(self._may_hold, is_configured)
            link = TesseraLink(client, self._enclave, self._entropy, self.own_url, wake.set, may_hold)
            problem = "a request failed"
            try:
                while not link.is_lost:
                    wake.clear()
                    info = await link.introduce()
                    self._links[url] = (link, await _addresses(url))
                    if is_configured:
                        self._hold(link.keys)
                        self._find_more(info)
                    if was_there is not True:
                        log.info("Tessera online url=%s keys=%d", url, len(link.keys))
                    pause, failures, was_there = _FIRST_PAUSE_S, 0, True
                    await _wait(wake, _LOOK_S)
            except EnclaveLinkLost as lost:
                problem = str(lost)
            finally:
                link.close()
                self._links.pop(url, None)
            failures += 1
            if was_there or (was_there is None and is_configured):
                log.warning("Tessera offline url=%s reason=%s", url, problem)
            was_there = False
            wake.clear()
            await _wait(wake, pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)
        del self._wakes[url]
        self._refreshed.pop(url, None)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


async def _addresses(url: str) -> frozenset[str]:
    """Return the IP addresses of the host in a URL; empty if the name does not resolve."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(urlsplit(url).hostname, None, type=socket.SOCK_STREAM)
    except OSError:
        return frozenset()
    return frozenset(str(address[0]) for *_, address in found)


def _fail(push: asyncio.Future[str | None]) -> None:
    if not push.done():
        push.set_exception(EnclaveLinkLost())
        push.exception()  # mark the exception as retrieved, because the caller may no longer wait for the push
