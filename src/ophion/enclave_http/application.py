"""`EnclaveApplication`: serves the HTTP API of the embedded enclave to tools (privacy.md 5)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

import orjson

from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.encoding import base64_text, group_object
from ophion.enclave.interface import MAX_TEXT_BYTES, GroupType
from ophion.enclave.payload_exchange import RecordKind, RecordLabel
from ophion.enclave_http.pending_requests import PendingRequests
from ophion.enclave_http.request_bodies import BadRequestBody, RequestBody, header_keys
from ophion.errors import EnclaveError, OphionError
from ophion.native.enclave import read_sealed
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.messages import JSON, TEXT, Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, Result
from ophion.rpc.transport.http.service import HttpService
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import PendingReply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.version import client_version

log = logging.getLogger(__name__)

_LIMITS: Final = HttpLimits(max_connections=256, max_body_bytes=2 * MAX_TEXT_BYTES, idle_timeout_s=120.0)
_MAX_OPEN: Final = 1024
"""Maximum number of concurrent requests on the port for tools."""
_TIMEOUT_S: Final = 60.0
_RAW: Final = b"application/octet-stream"
_NOT_FOUND: Final = frozenset({"EnclavePayloadNotFound", "PrivacyGroupNotFound"})
_PAYLOAD_NOT_FOUND: Final = EnclaveError("no such payload", "EnclavePayloadNotFound")

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class EnclaveApplication:
    """Handles the requests on the enclave's HTTP port for tools."""

    host_refused: Final = Response(403, (b"Host not authorized.",), TEXT)

    def __init__(self, enclave: EmbeddedEnclave, loop: asyncio.AbstractEventLoop) -> None:
        self.plain: Callable[..., Result] | None = None
        self._enclave = enclave
        self._open = PendingRequests(loop, _MAX_OPEN)
        self._turn = asyncio.Lock()
        self._posts: dict[bytes, Handler] = {
            b"/send": self._send,
            b"/receive": self._receive,
            b"/sendraw": self._send_raw,
            b"/receiveraw": self._receive_raw,
            b"/createPrivacyGroup": self._create_group,
            b"/deletePrivacyGroup": self._delete_group,
            b"/findPrivacyGroup": self._find_group,
            b"/retrievePrivacyGroup": self._retrieve_group,
        }

    def respond(self, request: Request) -> Result:
        """Respond to a GET at once, and to a POST after its operation has finished."""
        if request.path in self._posts:
            if request.method != b"POST":
                return Response(405, headers=b"Allow: POST\r\n")
            return self._later(request)
        if request.method != b"GET":
            return Response(404)
        return self._get(request.path)

    def close(self) -> None:
        """Cancel pending requests."""
        self._open.close()

    # --- GET -------------------------------------------------------------------------------------

    def _get(self, path: bytes) -> Response:
        enclave = self._enclave
        own = [{"key": base64_text(key)} for key in enclave.keys]
        if path == b"/upcheck":
            return Response(200, (b"I'm up!",), TEXT)
        if path == b"/version":
            return Response(200, (client_version().encode(),), TEXT)
        lines = {line.name: line for known in enclave.directory.known().values() for line in known}
        if path == b"/peercount":
            return Response(200, (str(len(lines)).encode(),), TEXT)
        if path == b"/knownnodes":
            nodes = [{"nodeURL": name, "publicKeys": sorted(map(base64_text, lines[name].keys))} for name in lines]
            return _json(nodes)
        if path == b"/keys":
            return _json({"keys": own})
        if path == b"/partyinfo/keys":
            others = [
                {"key": base64_text(key), "url": known[0].name} for key, known in enclave.directory.known().items()
            ]
            return _json({"keys": [*({**one, "url": ""} for one in own), *others]})
        if path.startswith(b"/groups/"):
            kind = path.removeprefix(b"/groups/").decode("latin-1").upper()
            wanted = GroupType.LEGACY if kind == "LEGACY" else GroupType.PANTHEON
            return _json([group_object(one) for one in enclave.groups(wanted) if one.active])
        return Response(404)

    # --- POST ------------------------------------------------------------------------------------

    async def _send(self, request: Request) -> Response:
        form = RequestBody(request.body)
        sender = form.optional_key("from") or self._enclave.keys[0]
        if form.has("privacyGroupId"):
            key = await self._enclave.send_text(form.data("payload"), sender, group_id=form.key("privacyGroupId"))
        else:
            key = await self._enclave.send_text(form.data("payload"), sender, form.keys("to"))
        return _json({"key": base64_text(key)})

    async def _receive(self, request: Request) -> Response:
        form = RequestBody(request.body)
        payload, group_id, sender = self._payload(form.key("key"), form.optional_key("to"))
        return _json(
            {"payload": base64_text(payload), "privacyGroupId": base64_text(group_id), "senderKey": base64_text(sender)}
        )

    async def _send_raw(self, request: Request) -> Response:
        senders = header_keys(request.headers.get(b"c11n-from"))
        sender = senders[0] if senders else self._enclave.keys[0]
        key = await self._enclave.send_text(request.body, sender, header_keys(request.headers.get(b"c11n-to")))
        return Response(200, (base64_text(key).encode(),), TEXT)

    async def _receive_raw(self, request: Request) -> Response:
        keys, to = header_keys(request.headers.get(b"c11n-key")), header_keys(request.headers.get(b"c11n-to"))
        if len(keys) != 1:
            raise BadRequestBody("EnclaveDecodePublicKey")
        payload, _, _ = self._payload(keys[0], to[0] if to else None)
        return Response(200, (payload,), _RAW)

    async def _create_group(self, request: Request) -> Response:
        form = RequestBody(request.body)
        sender = form.optional_key("from") or self._enclave.keys[0]
        seed = form.data("seed") if form.has("seed") else None
        members = form.keys("addresses")
        group = await self._enclave.create_group(members, sender, form.text("name"), form.text("description"), seed)
        return _json(group_object(group))

    async def _delete_group(self, request: Request) -> Response:
        form = RequestBody(request.body)
        sender = form.optional_key("from") or self._enclave.keys[0]
        return _json(base64_text(await self._enclave.delete_group(form.key("privacyGroupId"), sender)))

    async def _find_group(self, request: Request) -> Response:
        groups = await self._enclave.find_groups(RequestBody(request.body).keys("addresses"))
        return _json([group_object(group) for group in groups])

    async def _retrieve_group(self, request: Request) -> Response:
        group = await self._enclave.group(RequestBody(request.body).key("privacyGroupId"))
        if group is None or not group.active:
            raise EnclaveError("no such group", "PrivacyGroupNotFound")
        return _json(group_object(group))

    def _payload(self, key: bytes, to: bytes | None) -> tuple[bytes, bytes, bytes]:
        """Decrypt a payload with any local key.

        If `to` is given, `to` must be a local key and a recipient of the payload. After this call, the payload no
        longer counts against its sender's quota.
        """
        [opened] = self._enclave.open_many([key])
        if opened is None:
            raise _PAYLOAD_NOT_FOUND
        if to is not None:
            record = self._enclave.load(RecordLabel(RecordKind.PAYLOAD, key))
            if to not in self._enclave.keys or record is None or to not in read_sealed(record).recipients:
                raise _PAYLOAD_NOT_FOUND
        self._enclave.settle([key], [opened])
        return opened

    # --- pending requests ------------------------------------------------------------------------

    def _later(self, request: Request) -> Response | PendingReply[Response]:
        if self._open.is_full:
            return _failed(503, "NodePropagatingToAllPeers")
        return self._open.begin(self._answer(request))

    async def _answer(self, request: Request) -> Response:
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                async with self._turn:
                    # encrypting or decrypting a payload blocks the event loop for milliseconds, so handle one payload
                    # per loop iteration
                    await asyncio.sleep(0)
                return await self._posts[request.path](request)
        except BadRequestBody as error:
            return _failed(400, error.code)
        except EnclaveError as error:
            return _failed(404 if error.code in _NOT_FOUND else 500, error.code or "NodePushingToPeer")
        except TimeoutError:
            return _failed(500, "NodePropagatingToAllPeers")
        except OphionError as error:
            log.error("enclave request failed path=%s error=%s", request.path.decode("latin-1"), error)
            return _failed(500, "EnclaveStorageDecrypt")


def enclave_service(
    enclave: EmbeddedEnclave, host: str, port: int, hosts: tuple[str, ...], shared: SharedResources | None = None
) -> HttpService:
    """Build the HTTP service that offers the enclave's API to tools."""
    return HttpService(
        "Enclave service",
        host,
        port,
        HostList(hosts),
        OriginList(()),
        _LIMITS,
        lambda loop: EnclaveApplication(enclave, loop),
        None,
        shared,
    )


def _json(value: Any) -> Response:
    return Response(200, (orjson.dumps(value),), JSON)


def _failed(status: int, code: str) -> Response:
    return Response(status, (orjson.dumps({"error": code}),), JSON)
