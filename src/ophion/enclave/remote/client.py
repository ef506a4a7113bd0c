"""`RemoteEnclave`: client of an enclave in another process over HTTP (privacy.md 5)."""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

import orjson

from ophion.enclave.encoding import base64_text, read_base64, read_key
from ophion.enclave.interface import EnclaveUnreachable, Group, GroupType, OpenedPayload
from ophion.enclave.remote.error_responses import refusal
from ophion.enclave.remote.http import Answer, HttpClient
from ophion.errors import DecodeError, EnclaveError
from ophion.primitives import rlp

log = logging.getLogger(__name__)

_JSON: Final = "application/json"
_ORION: Final = "application/vnd.orion.v1+json"
_NOT_OURS: Final = frozenset({"EnclavePayloadNotFound", "EnclaveKeysCannotDecryptPayload"})
_AWAY: Final = frozenset({502, 503, 504})
_LOOK_S: Final = 10.0
_READ_AT_ONCE: Final = 6
"""Maximum number of concurrent payload requests. The limit leaves connections for other requests."""
_MISSING: Final = 404
_PRIVATE_FROM: Final = 9
"""Position of privateFrom in the RLP of a private transaction."""


class RemoteEnclave:
    """Sends the operations of `Enclave` as HTTP requests."""

    name = "remote enclave"
    reports_late_payloads = False

    def __init__(self, client: HttpClient, key: bytes | None) -> None:
        """Create the client. `key` is this node's key in the enclave, or None if every request names a key."""
        self.keys: tuple[bytes, ...] = () if key is None else (key,)
        self.on_late: Callable[[Sequence[bytes]], None] | None = None
        self.is_up: bool | None = None
        """Whether the remote enclave answered the last request; None before the first request."""
        self._client = client
        self._reads = asyncio.Semaphore(_READ_AT_ONCE)

    async def send(
        self,
        payload: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Send a payload. The remote enclave chooses the payload key and decides when the payload counts as sent."""
        # encode the payload as base64 twice like Besu, because the other members decode it twice
        form: dict[str, Any] = {"payload": base64_text(b64encode(payload)), "from": base64_text(sender)}
        if group_id is not None:
            form["privacyGroupId"] = base64_text(group_id)
        else:
            form["to"] = [base64_text(key) for key in to or (sender,)]
        answer = await self._asked("/send", form)
        return _key(_member(answer, "key"))

    async def receive_many(self, keys: Sequence[bytes]) -> list[OpenedPayload | None]:
        """Return the payload of each key. Sends one request per key, a bounded number at a time."""
        return await asyncio.gather(*(self._received(key) for key in keys))

    async def create_group(
        self, members: Sequence[bytes], sender: bytes, name: str = "", description: str = "", seed: bytes | None = None
    ) -> Group:
        """Create a group at the remote enclave, which sends the group to the members."""
        form = {
            "addresses": [base64_text(member) for member in members],
            "from": base64_text(sender),
            "name": name,
            "description": description,
        }
        if seed is not None:
            form["seed"] = base64_text(seed)
        return _group(await self._asked("/createPrivacyGroup", form))

    async def delete_group(self, group_id: bytes, sender: bytes) -> bytes:
        """Delete a group at the remote enclave. The remote enclave informs the members."""
        answer = await self._asked(
            "/deletePrivacyGroup", {"privacyGroupId": base64_text(group_id), "from": base64_text(sender)}
        )
        return _key(answer)

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the active groups with exactly these members."""
        answer = await self._asked("/findPrivacyGroup", {"addresses": [base64_text(member) for member in members]})
        if not isinstance(answer, list):
            raise _unreadable()
        return [_group(one) for one in answer]

    async def group(self, group_id: bytes) -> Group | None:
        """Return a group. Returns None if the group is unknown or deleted; a remote enclave does not distinguish these
        cases.
        """
        answer = await self._exchange("/retrievePrivacyGroup", {"privacyGroupId": base64_text(group_id)}, _JSON)
        return None if answer.status == _MISSING else _group(_success(answer))

    async def fetch_missing(self, group_id: bytes | None = None) -> int:
        """Return 0, because the remote enclave fetches its missing payloads itself."""
        return 0

    def status(self) -> dict[str, Any]:
        """Return the URL of the remote enclave, whether it answers, and this node's keys, for priv_status."""
        return {
            "mode": "external",
            "url": self._client.url,
            "isUp": self.is_up,
            "keys": [base64_text(key) for key in self.keys],
        }

    async def run(self, ready: Callable[[], None]) -> None:
        """Check at intervals whether the enclave answers, and log every change."""
        ready()
        try:
            while True:
                await self._look()
                await asyncio.sleep(_LOOK_S)
        finally:
            self._client.close()

    async def _look(self) -> None:
        was_up = self.is_up
        try:
            answer = await self._client.get("/upcheck")
            self.is_up = answer.status == 200
            problem = f"status {answer.status}"
        except EnclaveUnreachable as error:
            self.is_up, problem = False, str(error)
        if self.is_up == was_up:
            return
        if not self.is_up:
            log.warning("enclave offline url=%s reason=%s", self._client.url, problem)
            return
        log.info("enclave online url=%s", self._client.url)
        if was_up is False and self.on_late is not None:
            self.on_late(())
        await self._look_for_key()

    async def _look_for_key(self) -> None:
        """Warn if the remote enclave lists its keys and this node's enclave key is not among them."""
        try:
            answer = await self._client.get("/keys")
            members = orjson.loads(answer.body)["keys"] if answer.status == 200 else None
            known = None if members is None else {member["key"] for member in members}
        except (EnclaveUnreachable, ValueError, KeyError, TypeError):
            return  # nothing to compare: the enclave is offline, or does not list its keys
        missing = [] if known is None else [text for text in map(base64_text, self.keys) if text not in known]
        if missing:
            log.warning("enclave does not hold the key of this node key=%s", missing[0])

    async def _received(self, key: bytes) -> OpenedPayload | None:
        """Return a payload, or None if this node is no participant.

        All members must get the same result. So other errors raise `EnclaveUnreachable`, and the request is repeated.
        """
        try:
            return await self._opened(key)
        except EnclaveError as error:
            raise EnclaveUnreachable(error.message) from None

    async def _opened(self, key: bytes) -> OpenedPayload | None:
        form = {"key": base64_text(key)}
        if self.keys:  # name the key, because otherwise the enclave tries all its keys
            form["to"] = base64_text(self.keys[0])
        async with self._reads:
            answer = await self._exchange("/receive", form, _ORION)
        if answer.status == _MISSING:
            return None
        if answer.status != 200:
            error = refusal(answer.status, bytes(answer.body))
            if error.code in _NOT_OURS:
                return None
            raise error
        content = _content(answer)
        text, sender = _member(content, "payload"), content.get("senderKey")
        try:
            payload = read_base64(read_base64(text).decode("ascii"))
            group = read_key(content.get("privacyGroupId"))
            return OpenedPayload(payload, group, read_key(sender) if sender else _named_sender(payload))
        except ValueError:
            # another tool stored this payload, or the payload has no group, so no member executes it
            return None

    async def _asked(self, path: str, form: dict[str, Any]) -> Any:
        return _success(await self._exchange(path, form, _JSON))

    async def _exchange(self, path: str, form: dict[str, Any], content_type: str) -> Answer:
        try:
            answer = await self._client.post(path, orjson.dumps(form), content_type)
        except EnclaveUnreachable:
            self.is_up = False
            raise
        if answer.status in _AWAY:
            raise EnclaveUnreachable(f"the enclave at {self._client.url} answers with status {answer.status}")
        return answer


def _success(answer: Answer) -> Any:
    if answer.status != 200:
        raise refusal(answer.status, bytes(answer.body))
    return _content(answer)


def _content(answer: Answer) -> Any:
    try:
        return orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        raise _unreadable() from None


def _member(content: Any, name: str) -> Any:
    if not isinstance(content, dict) or name not in content:
        raise _unreadable()
    return content[name]


def _key(text: object) -> bytes:
    try:
        return read_key(text)
    except ValueError:
        raise _unreadable() from None


def _group(content: Any) -> Group:
    members = _member(content, "members")
    try:
        kind = GroupType(_member(content, "type"))
    except ValueError:
        raise _unreadable() from None
    if not isinstance(members, list):
        raise _unreadable()
    return Group(
        _key(_member(content, "privacyGroupId")),
        str(content.get("name") or ""),
        str(content.get("description") or ""),
        kind,
        tuple(_key(member) for member in members),
    )


def _named_sender(payload: bytes) -> bytes:
    """Return the privateFrom of a transaction, or empty bytes. Older enclaves check the sender but do not report it."""
    try:
        sender = rlp.decode_list(payload)[_PRIVATE_FROM]
    except (DecodeError, IndexError):
        return b""
    return sender if isinstance(sender, bytes) else b""


def _unreadable() -> EnclaveError:
    return EnclaveError("the response of the enclave cannot be parsed", None)
