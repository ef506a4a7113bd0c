"""`EmbeddedEnclave`: the enclave in the process of the node.

    send      seal ─> commit, and push to the recipients ─> acknowledged, or in the outbox
    take      validate and commit payloads and groups of other enclaves; acknowledge after the commit
    receive   local lookup, without the network

Payloads stay sealed in the database and are opened when they are read. Payloads are never logged.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakSet

from msgspec import Struct

from ophion.enclave.delivery import Delivery
from ophion.enclave.encoding import base64_text
from ophion.enclave.group_ids import SEED_SIZE, legacy_id
from ophion.enclave.group_record import MAX_NAME_BYTES, GroupRecord
from ophion.enclave.interface import (
    KEY_SIZE,
    MAX_MEMBERS,
    MAX_PAYLOAD_BYTES,
    MAX_TEXT_BYTES,
    Group,
    GroupType,
    OpenedPayload,
)
from ophion.enclave.missed_payloads import MissedPayloadFetcher
from ophion.enclave.options import DeliveryMode
from ophion.enclave.outbox import Outbox
from ophion.enclave.payload_exchange import EnclaveLink, EnclaveLinkLost, EnclaveRecord, RecordKind, RecordLabel
from ophion.enclave.payload_intake import PayloadIntake, group_id_of
from ophion.enclave.peer_directory import PeerDirectory
from ophion.enclave.privacy_groups import NOT_ACCEPTED, GroupRegistry
from ophion.enclave.store_writer import ARRIVALS, PAYLOADS, StoreWriter, number_of, numbered
from ophion.errors import EnclaveError
from ophion.native.enclave import EnclaveKeyring, is_sound_enclave_key
from ophion.native.exceptions import NativeError, translated
from ophion.native.store import Store
from ophion.runtime.clock import Clock, Entropy, SystemClock
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

_RANDOMNESS: Final = 80
_MAX_SHOWN: Final = 1000
_OPENED_AT_ONCE: Final = 4
"""Maximum number of payloads that are decrypted on the event loop; more payloads are decrypted in a worker thread."""
LOOK_AGAIN_S: Final = 60.0
"""Seconds between two requests to all peers for missed payloads."""


class EnclaveSettings(Struct, frozen=True):
    """Settings of an embedded enclave, from the options."""

    mode: DeliveryMode = DeliveryMode.ALL
    always_send_to: tuple[bytes, ...] = ()
    """Keys that get a copy of every payload that this enclave sends."""
    accept_groups_from: frozenset[bytes] | None = None
    """Enclave keys whose new groups are accepted. If None, all new groups are accepted."""
    max_gas: int | None = None
    """Maximum accepted gas limit of a private transaction from another enclave."""
    is_restricted: bool = False
    """Whether node permissions are on. If so, only keys in the directory may create groups over HTTP."""


class EmbeddedEnclave:
    """The enclave inside the node: keys, payloads, groups and their delivery. Runs on the event loop."""

    name = "enclave"
    reports_late_payloads = True

    def __init__(
        self,
        store: Store,
        keyring: EnclaveKeyring,
        lanes: Lanes,
        entropy: Entropy,
        settings: EnclaveSettings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.keyring = keyring
        self.lanes = lanes
        self.keys: tuple[bytes, ...] = tuple(keyring.public_keys)
        self.on_late: Callable[[Sequence[bytes]], None] | None = None
        self.directory = PeerDirectory()
        self._store = store
        self._entropy = entropy
        self._settings = settings or EnclaveSettings()
        self._own = frozenset(self.keys)
        self._writer = StoreWriter(store, lanes)
        self._groups = GroupRegistry(store, self.keys, self._settings.accept_groups_from)
        self._outbox = Outbox(store)
        self._intake = PayloadIntake(
            store, keyring, lanes, self._groups, self._writer, clock or SystemClock(), self._settings.max_gas
        )
        self._delivery = Delivery(
            self._settings.mode, self.directory, self._outbox, self._writer, self.load, self._drain_soon
        )
        self._catch_up = MissedPayloadFetcher(store, self.keys, self._intake, self._writer, self._take)
        self._tasks: asyncio.TaskGroup | None = None
        self._asked: WeakSet[EnclaveLink] = WeakSet()
        self._catching_up: set[EnclaveLink] = set()
        """Connections to peers from which missed payloads are being fetched."""
        self.directory.on_came = self._connected

    # --- Enclave ---------------------------------------------------------------------------------

    async def send(
        self,
        payload: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Seal, store and deliver a payload, as `Enclave.send` specifies."""
        return await self.send_text(b64encode(payload), sender, to, group_id, sealed)

    async def send_text(
        self,
        text: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Seal, store and deliver a payload that is already in base64. Enclaves store payloads in two layers of
        base64.
        """
        if len(text) > MAX_TEXT_BYTES:
            raise EnclaveError(f"a payload has at most {MAX_PAYLOAD_BYTES} bytes", "InvalidPayload")
        self._check_sender(sender)
        group = self._group_of(sender, to, group_id)
        members = group.members
        extras = tuple(key for key in self._settings.always_send_to if key not in members)
        recipients, others = members + extras, [key for key in members + extras if key not in self._own]
        self._delivery.check(others, RecordKind.PAYLOAD)
        try:
            key, record = self.keyring.seal(
                text, sender, recipients, len(members), group.id, self._entropy.token(_RANDOMNESS)
            )
        except NativeError as error:
            raise EnclaveError(str(error), "EnclaveEncryptCombineKeys") from error
        entry = EnclaveRecord(RecordLabel(RecordKind.PAYLOAD, key), record)
        # send the payload while this node stores it: a crash loses nothing, because the marker transaction is sent
        # later
        pushed = self._delivery.start(entry, others)
        if sealed is not None:
            sealed(key)
        await self._intake.keep(key, record, recipients, group)
        await self._delivery.finish(entry, pushed)
        return key

    async def receive_many(self, keys: Sequence[bytes]) -> list[OpenedPayload | None]:
        """Look up payloads of markers on the chain, in one snapshot. Stops counting these payloads against quotas."""
        if len(keys) <= _OPENED_AT_ONCE:
            opened = self.open_many(keys)
        else:
            opened = await self.lanes.private.run(lambda: self.open_many(keys))
        self.settle(keys, opened)
        return [one and _received(*one) for one in opened]

    def settle(self, keys: Sequence[bytes], opened: Sequence[tuple[bytes, bytes, bytes] | None]) -> None:
        """Stop counting payloads against the quotas of their senders, because a marker transaction refers to each
        payload.
        """
        found = [(key, *one[1:]) for key, one in zip(keys, opened, strict=True) if one is not None]
        if found:
            payloads, groups, senders = zip(*found, strict=True)
            self._intake.mark(payloads, set(groups), set(senders))

    def open_many(self, keys: Sequence[bytes]) -> list[tuple[bytes, bytes, bytes] | None]:
        """Return (content in base64, group, sender) of each payload; None if no local key can decrypt the payload."""
        with translated():
            return self.keyring.open_stored(self._store, keys)

    async def create_group(
        self, members: Sequence[bytes], sender: bytes, name: str = "", description: str = "", seed: bytes | None = None
    ) -> Group:
        """Create a group of these members. The sender must be a member."""
        self._check_sender(sender)
        keys = tuple(dict.fromkeys(members))
        if sender not in keys:
            raise EnclaveError("the sender must be a member", "CreatePrivacyGroupShouldIncludeSelf")
        if len(keys) > MAX_MEMBERS or any(len(text.encode()) > MAX_NAME_BYTES for text in (name, description)):
            raise EnclaveError("too many members, or too long a text", "EnclavePrivacyGroupIdCreation")
        _check_keys(keys)
        chosen = self._entropy.token(SEED_SIZE) if seed is None else seed
        if len(chosen) != SEED_SIZE:
            raise EnclaveError(f"a seed has {SEED_SIZE} bytes", "EnclavePrivacyGroupIdCreation")
        record = GroupRecord(GroupType.PANTHEON, name, description, keys, chosen, sender)
        if self._groups.get(record.id) is None:
            await self._publish(record)
        return record.group()

    async def delete_group(self, group_id: bytes, sender: bytes) -> bytes:
        """Delete a group in this enclave and, depending on the delivery mode, in the enclaves of its members."""
        self._check_sender(sender)
        record = self._groups.get(group_id)
        if record is None or not record.active or sender not in record.members:
            raise EnclaveError("no such group", "PrivacyGroupNotFound")
        await self._publish(record.deleted())
        return group_id

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the active groups with exactly these members."""
        return [record.group() for record in self._groups.find(members)]

    async def group(self, group_id: bytes) -> Group | None:
        """Return a group, active or deleted, or None if the id is unknown."""
        record = self._groups.get(group_id)
        return None if record is None else record.group()

    def groups(self, kind: GroupType) -> list[Group]:
        """Return a bounded number of groups of a type, active or deleted."""
        return [record.group() for record in self._groups.all(_MAX_SHOWN) if record.type is kind]

    async def fetch_missing(self, group_id: bytes | None = None) -> int:
        """Ask every connected enclave for all payloads that were sealed for this node's keys."""
        found = await asyncio.gather(*(self._catch_up.fetch_all(link) for link in self._links()))
        fetched = list(dict.fromkeys(key for keys in found for key in keys))
        if group_id is None:
            return len(fetched)
        return sum(one is not None and one[1] == group_id for one in self.open_many(fetched))

    def status(self) -> dict[str, Any]:
        """Return enclave keys, connected peers, number of groups and sizes of the outboxes, for priv_status."""
        known = self.directory.known()
        return {
            "mode": "internal",
            "delivery": self._settings.mode.value,
            "keys": [base64_text(key) for key in self.keys],
            "peers": {base64_text(key): [link.name for link in links] for key, links in known.items()},
            "groups": self._groups.count,
            "outbox": {base64_text(key): count for key, count in self._outbox.waiting.items()},
        }

    # --- requests of other enclaves --------------------------------------------------------------

    async def take(
        self, entries: Sequence[EnclaveRecord], proven: frozenset[bytes], is_peer: bool = True
    ) -> list[str | None]:
        """Store payloads and groups that another enclave pushes. `proven` are the enclave keys that the sender has
        proven. Returns None for each stored item, and the reason for each refused item.

        With `is_peer`, the sender is a peer of the node, so node permissions have already admitted the sender.
        """
        if is_peer or not self._settings.is_restricted or proven.intersection(self.directory.known()):
            return await self._take(entries, proven, is_pushed=True)
        known = [entry for entry in entries if self.knows_group(group_id_of(entry))]
        refusals = iter(await self._take(known, proven, is_pushed=True))
        return [next(refusals) if entry in known else NOT_ACCEPTED for entry in entries]

    async def expire(self) -> int:
        """Delete expired payloads and groups that other enclaves sent and that have no marker transaction. Returns the
        number of deleted items.
        """
        return await self._intake.expire()

    def knows_group(self, group_id: bytes) -> bool:
        """Whether this enclave knows a group, active or deleted."""
        return self._groups.get(group_id) is not None

    def group_record(self, group_id: bytes) -> GroupRecord | None:
        """Return a group with its creator and seed, active or deleted, or None if the id is unknown."""
        return self._groups.get(group_id)

    def load(self, label: RecordLabel) -> bytes | None:
        """Return the bytes of a stored payload or group, or None if it is unknown."""
        if label.kind is RecordKind.PAYLOAD:
            return self._store.row(PAYLOADS, label.id)
        record = self._groups.get(label.id)
        return None if record is None else record.encode()

    def arrivals(self, key: bytes, after: int, limit: int) -> list[tuple[int, RecordLabel]]:
        """Return (sequence number, id) of the payloads and groups that arrived for a key after a sequence number, in
        order.
        """
        rows = self._store.rows(ARRIVALS, key, numbered(key, after), limit)
        return [(number_of(row), RecordLabel.decode(value)) for row, value in rows]

    async def run(self, ready: Callable[[], None]) -> None:
        """Deliver the outbox, fetch missed payloads and delete expired payloads, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            ready()
            await self._intake.upgrade()
            while True:
                await asyncio.sleep(LOOK_AGAIN_S)
                await self._intake.expire()
                # ask all peers for missed payloads, because a dishonest sender may withhold a payload from this node
                # only
                for link in self._links():
                    self._catch_up_soon(link)

    def _connected(self, link: EnclaveLink, key: bytes) -> None:
        """Handle a connection that has proven a key: deliver the outbox of this key and fetch missed payloads."""
        self._drain_soon(key)
        if link not in self._asked:
            self._asked.add(link)
            self._catch_up_soon(link)

    def _catch_up_soon(self, link: EnclaveLink) -> None:
        """Start to fetch missed payloads from one peer, unless such a fetch from this peer is running."""
        if self._tasks is None or link in self._catching_up:
            return
        self._catching_up.add(link)
        task = self._tasks.create_task(
            self._until_lost(partial(self._catch_up.fetch_new, link)), name="enclave catch-up"
        )
        task.add_done_callback(lambda _: self._catching_up.discard(link))

    def _drain_soon(self, key: bytes) -> None:
        if self._tasks is not None and self._outbox.waiting[key]:
            self._tasks.create_task(self._delivery.drain(key), name="enclave outbox")

    async def _until_lost(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work`, which uses a connection to a peer. If the connection is lost, return without an error."""
        try:
            await work()
        except EnclaveLinkLost:
            log.debug("enclave connection lost")

    def _links(self) -> list[EnclaveLink]:
        return list(dict.fromkeys(link for links in self.directory.known().values() for link in links))

    async def _take(
        self, entries: Sequence[EnclaveRecord], proven: frozenset[bytes], is_pushed: bool
    ) -> list[str | None]:
        return await self._intake.take(entries, proven, is_pushed, self._arrived)

    def _arrived(self, keys: Sequence[bytes]) -> None:
        if self.on_late is not None:
            self.on_late(keys)

    def _check_sender(self, sender: bytes) -> None:
        if sender not in self._own:
            raise EnclaveError("the sender's key is not one of this enclave", "EnclaveNoMatchingPrivateKey")

    def _group_of(self, sender: bytes, to: Sequence[bytes] | None, group_id: bytes | None) -> GroupRecord:
        """Return the group to which a payload is sent. The first payload of a legacy group creates the group."""
        if group_id is not None:
            known = self._groups.get(group_id)
            if known is None or not known.active or sender not in known.members:
                raise EnclaveError("no such group", "PrivacyGroupNotFound")
            return known
        members = tuple(dict.fromkeys((*(key for key in to or () if key != sender), sender)))
        known = self._groups.get(legacy_id(members)) if all(len(key) == KEY_SIZE for key in members) else None
        if known is not None:
            if not known.active:
                raise EnclaveError("the group was deleted", "PrivacyGroupNotFound")
            return known
        if len(members) > MAX_MEMBERS:
            raise EnclaveError(f"at most {MAX_MEMBERS} recipients", "EnclaveEncryptCombineKeys")
        _check_keys(members)
        return GroupRecord.legacy(members, sender)

    async def _publish(self, record: GroupRecord) -> None:
        others = [member for member in record.members if member not in self._own]
        self._delivery.check(others, RecordKind.GROUP)
        await self._intake.keep_group(record)
        entry = EnclaveRecord(RecordLabel(RecordKind.GROUP, record.id), record.encode())
        await self._delivery.finish(entry, self._delivery.start(entry, others))


def _check_keys(keys: Sequence[bytes]) -> None:
    for key in keys:
        if not is_sound_enclave_key(key):
            raise EnclaveError("a member key is not a valid enclave key", "EnclaveDecodePublicKey")


def _received(text: bytes, group_id: bytes, sender: bytes) -> OpenedPayload:
    try:
        payload = b64decode(text, validate=True)
    except Base64Error:
        # a payload that is not base64 is no private transaction: another tool has stored it in this enclave
        payload = text
    return OpenedPayload(payload, group_id, sender)
