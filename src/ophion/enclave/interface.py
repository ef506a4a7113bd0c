"""`Enclave`: the interface of the node to its enclave, embedded or remote.

An enclave stores sealed payloads under 32-byte keys (SHA-512/256 of the ciphertext), delivers them to participants and
knows the groups. This interface passes enclave keys as 32 raw bytes; files, HTTP and JSON-RPC use base64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from ophion.errors import EnclaveError

KEY_SIZE: Final = 32
"""Size in bytes of an enclave's public key, of a payload key and of a group id."""
MAX_MEMBERS: Final = 256
"""Maximum number of members of a group and of recipients of a payload."""
MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""Maximum size of one private transaction in bytes. A larger transaction does not fit in a block."""
MAX_TEXT_BYTES: Final = (MAX_PAYLOAD_BYTES + 2) // 3 * 4
"""Size in base64 of `MAX_PAYLOAD_BYTES` bytes. Enclaves store payloads in base64."""
MAX_KEYS: Final = 16
"""Maximum number of keys of one enclave. Each tenant of a node has one key."""


class GroupType(StrEnum):
    """Type of a privacy group: how its members are defined."""

    LEGACY = "LEGACY"
    """A group derived from privateFrom and privateFor."""
    PANTHEON = "PANTHEON"
    """A group created with priv_createPrivacyGroup."""
    FLEXIBLE = "FLEXIBLE"
    """A group whose member list is in a contract."""


class Group(Struct, frozen=True):
    """Members that share a private state."""

    id: bytes
    name: str
    description: str
    type: GroupType
    members: tuple[bytes, ...]
    """Enclave keys of the members, in the order given."""
    active: bool = True
    """False for a deleted group, which keeps its state but accepts no new transactions."""


class OpenedPayload(Struct, frozen=True):
    """A payload that this enclave could open.

    Only the sender's key is proven. The sender chose `group_id`, so the reader must check that the transaction names
    this sender and this group.
    """

    payload: bytes
    """RLP of the private transaction, decoded from the two layers of base64."""
    group_id: bytes
    sender: bytes


class EnclaveUnreachable(EnclaveError):
    """The remote enclave cannot be reached."""

    transient = True

    def __init__(self, message: str) -> None:
        super().__init__(message, code=None)


class Enclave(Protocol):
    """An enclave: embedded (`ophion.enclave.embedded`) or remote (`ophion.enclave.remote`).

    Operations raise `EnclaveError` with a `code` of privacy.md 11.
    """

    name: str
    """Name of the background service that `run` provides."""
    on_late: Callable[[Sequence[bytes]], None] | None
    """Listener for payloads that have arrived.

    The enclave calls the listener on the event loop with the keys of payloads from other enclaves, once the payloads
    are durable. When a remote enclave is online again, the listener is called without keys, because any payload may
    have arrived.
    """
    reports_late_payloads: bool
    """Whether `on_late` gets the keys of arrived payloads. A remote enclave does not report keys, so callers must ask
    again.
    """

    @property
    def keys(self) -> tuple[bytes, ...]:
        """The enclave's own public keys. The first key is the default.

        Empty if only a remote enclave knows the keys. Each request must then name a key, and the enclave refuses a key
        that it does not have.
        """

    async def send(
        self,
        payload: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Seal the RLP of a private transaction and send it to recipients or a group. Returns the 32-byte payload key.

        The method returns when the payload is durable in this enclave and delivered as `--privacy-delivery` requires.
        It calls `sealed` with the payload key before delivery, so that the caller can already prepare the marker
        transaction.
        """

    async def receive_many(self, keys: Sequence[bytes]) -> list[OpenedPayload | None]:
        """Return the payload of each key, in order. An item is None if this node does not have the payload or is no
        participant.

        The embedded enclave reads its database. Raises `EnclaveUnreachable` when a remote enclave cannot be reached.
        """

    async def create_group(
        self, members: Sequence[bytes], sender: bytes, name: str = "", description: str = "", seed: bytes | None = None
    ) -> Group:
        """Create a group and send it to its members. `seed` has 20 bytes and is random by default."""

    async def delete_group(self, group_id: bytes, sender: bytes) -> bytes:
        """Record a group as deleted in this enclave and in the enclaves of its members. Returns the group id."""

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the active groups with exactly these members."""

    async def group(self, group_id: bytes) -> Group | None:
        """Return a group by its id, active or deleted, or None if the id is unknown."""

    async def fetch_missing(self, group_id: bytes | None = None) -> int:
        """Ask the other members for missing payloads of one group or of all groups. Returns the number of new
        payloads.
        """

    async def run(self, ready: Callable[[], None]) -> None:
        """Run the background work of the enclave until cancelled."""

    def status(self) -> dict[str, Any]:
        """Return keys, peers by key, groups, payloads and outbox, for priv_status."""
