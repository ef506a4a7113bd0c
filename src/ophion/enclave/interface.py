"""`Enclave`: the interface of the node to its enclave, embedded or remote.

An enclave stores sealed payloads under 32-byte keys (SHA-512/256 of the ciphertext), delivers them to participants and
knows the groups. Enclave keys are 32 raw bytes here; files, HTTP and JSON-RPC use base64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from ophion.errors import EnclaveError

KEY_SIZE: Final = 32
"""Size of an enclave's public key, a payload key and a group id."""
MAX_MEMBERS: Final = 256
"""Limit of members of a group, and of recipients of a payload."""
MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""Limit of one private transaction in bytes. Larger ones do not fit in a block."""
MAX_TEXT_BYTES: Final = (MAX_PAYLOAD_BYTES + 2) // 3 * 4
"""The same limit in base64. Enclaves store payloads in base64."""
MAX_KEYS: Final = 16
"""Limit of keys of one enclave. Each tenant of a node has one."""


class GroupType(StrEnum):
    """Type of a group."""

    LEGACY = "LEGACY"
    """Derived from privateFrom and privateFor."""
    PANTHEON = "PANTHEON"
    """Created with priv_createPrivacyGroup."""
    FLEXIBLE = "FLEXIBLE"
    """Flexible: a contract holds the member list."""


class DeliveryMode(StrEnum):
    """When a payload counts as sent."""

    ALL = "all"
    """Every recipient must have acknowledged the payload."""
    QUEUE = "queue"
    """An offline recipient gets the payload later."""


class Group(Struct, frozen=True):
    """Members that share a private state."""

    id: bytes
    name: str
    description: str
    type: GroupType
    members: tuple[bytes, ...]
    """Enclave keys in the order given."""
    active: bool = True
    """False for a deleted group. It accepts no new transactions, and its state stays."""


class Received(Struct, frozen=True):
    """A payload that this enclave could open.

    Only the sender's key is proven. The sender chose `group_id`, so the reader must check that the transaction names
    this sender and this group.
    """

    payload: bytes
    """RLP of the private transaction, without the two layers of base64."""
    group_id: bytes
    sender: bytes


class EnclaveAway(EnclaveError):
    """Raised when the remote enclave cannot be reached."""

    transient = True

    def __init__(self, message: str) -> None:
        super().__init__(message, code=None)


class Enclave(Protocol):
    """An enclave: embedded (`ophion.enclave.embedded`) or remote (`ophion.enclave.remote`).

    Operations raise `EnclaveError`, whose `code` is one of privacy.md 11.
    """

    name: str
    """Name of the service."""
    on_late: Callable[[Sequence[bytes]], None] | None
    """Reports arrived payloads.

    Called on the event loop with the keys of payloads from other enclaves, once they are durable. Called without keys
    when a remote enclave is online again, because any payload may have arrived there.
    """
    tells_late: bool
    """Whether `on_late` gets the keys of the payloads. A remote enclave does not report them: ask it again."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Own public keys. The first is the default."""

    async def send(
        self,
        payload: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Seal the RLP of a private transaction and send it to recipients or a group. Returns the 32-byte key.

        Returns when the payload is durable here and delivered as `--privacy-delivery` requires. Calls `sealed` with the
        key as soon as it is known, so that the caller can prepare the marker meanwhile.
        """

    async def receive_many(self, keys: Sequence[bytes]) -> list[Received | None]:
        """Return the payload of each key, in order. None if this node is no participant or has no such payload.

        A local lookup in the embedded enclave. Raises `EnclaveAway` when a remote enclave cannot be reached.
        """

    async def create_group(
        self, members: Sequence[bytes], sender: bytes, name: str = "", description: str = "", seed: bytes | None = None
    ) -> Group:
        """Create a group and send it to its members. `seed` (20 bytes) is random by default."""

    async def delete_group(self, group_id: bytes, sender: bytes) -> bytes:
        """Mark a group as deleted, here and at its members. Returns its id."""

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Return the active groups with exactly these members."""

    async def group(self, group_id: bytes) -> Group | None:
        """Return a group by its id, active or deleted. None when the id is unknown."""

    async def fetch_missing(self, group_id: bytes | None = None) -> int:
        """Ask the other members for missing payloads, of one group or of all. Returns how many arrived."""

    async def run(self, ready: Callable[[], None]) -> None:
        """Run background work until cancelled."""

    def status(self) -> dict[str, Any]:
        """Return keys, peers by key, groups, payloads and outbox, for priv_status."""
