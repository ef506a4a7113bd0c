"""What the node knows of its enclave, whether it runs inside or is another process.

An enclave keeps sealed payloads under 32-byte keys (SHA-512/256 of the ciphertext), hands them to the participants,
and knows groups. All keys of enclaves are 32 raw bytes here; base64 is for files, HTTP and JSON-RPC.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Final, Protocol

from msgspec import Struct

from ophion.errors import EnclaveError

KEY_SIZE: Final = 32
"""Bytes of an enclave's public key, of a payload's key and of a group's id."""
MAX_MEMBERS: Final = 256
"""Members of one group, and recipients of one payload."""
MAX_PAYLOAD_BYTES: Final = 1024 * 1024
"""Bytes of one private transaction: above the largest one that a block would take."""
MAX_TEXT_BYTES: Final = (MAX_PAYLOAD_BYTES + 2) // 3 * 4
"""The same in base64, which is what enclaves keep."""
MAX_KEYS: Final = 16
"""Identities of one enclave: tenants of a node."""


class GroupType(StrEnum):
    """How a group came to be."""

    LEGACY = "LEGACY"
    """Derived from privateFrom and privateFor."""
    PANTHEON = "PANTHEON"
    """Created beforehand."""
    FLEXIBLE = "FLEXIBLE"
    """Its members are kept by a contract."""


class DeliveryMode(StrEnum):
    """When a payload counts as sent."""

    ALL = "all"
    """Every recipient must have acknowledged it."""
    QUEUE = "queue"
    """Who is away gets it later."""


class Group(Struct, frozen=True):
    """Members that share a private state."""

    id: bytes
    name: str
    description: str
    type: GroupType
    members: tuple[bytes, ...]
    """In the order in which they were given."""
    active: bool = True
    """False: deleted. Nothing more is sent to it; its state stays."""


class Received(Struct, frozen=True):
    """A payload that this enclave could open.

    Whoever sent it chose `group_id`, and only the sender's key is proven: that the transaction inside names this sender
    and this group is for its reader to check.
    """

    payload: bytes
    """RLP of the private transaction; both layers of base64 are undone."""
    group_id: bytes
    sender: bytes


class EnclaveAway(EnclaveError):
    """An enclave outside cannot be reached now."""

    transient = True

    def __init__(self, message: str) -> None:
        super().__init__(message, code=None)


class Enclave(Protocol):
    """Inside (`ophion.enclave.embedded`) or outside (`ophion.enclave.remote`).

    Whatever is refused raises `EnclaveError`, whose `code` is one of the words of privacy.md 11.
    """

    name: str
    """Of the service that it is."""
    on_late: Callable[[Sequence[bytes]], None] | None
    """Called on the loop with the keys of payloads that arrived from others, after they are durable here; without any
    when an enclave outside is back and may have got whatever it likes."""
    tells_late: bool
    """Whether `on_late` names what arrived. One outside does not: it has to be asked again."""

    @property
    def keys(self) -> tuple[bytes, ...]:
        """Own public keys; the first is the default."""

    async def send(
        self,
        payload: bytes,
        sender: bytes,
        to: Sequence[bytes] | None = None,
        group_id: bytes | None = None,
        sealed: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Seal the RLP of a private transaction and hand it to recipients or a group; the 32-byte key.

        It returns when the payload is durable here and delivered as `--privacy-delivery` says. `sealed` is told the key
        where it is known before that, for what can be prepared meanwhile.
        """

    async def receive_many(self, keys: Sequence[bytes]) -> list[Received | None]:
        """Payloads by their keys, each at its place; None where this node is no participant or knows nothing.

        Inside it is a local lookup. `EnclaveAway` when an outside one cannot be reached.
        """

    async def create_group(
        self, members: Sequence[bytes], sender: bytes, name: str = "", description: str = "", seed: bytes | None = None
    ) -> Group:
        """Make a group and tell its members; `seed` (20 bytes) is drawn where it is not given."""

    async def delete_group(self, group_id: bytes, sender: bytes) -> bytes:
        """Mark a group as deleted, here and at its members; its id."""

    async def find_groups(self, members: Sequence[bytes]) -> list[Group]:
        """Active groups of exactly these members."""

    async def group(self, group_id: bytes) -> Group | None:
        """A group by its id, also a deleted one; None where it is unknown."""

    async def fetch_missing(self, group_id: bytes | None = None) -> int:
        """Ask the other members for payloads that are not here, of one group or of all; how many came."""

    async def run(self, ready: Callable[[], None]) -> None:
        """Its work beside requests, for as long as the node runs."""

    def status(self) -> dict[str, Any]:
        """Keys, peers by key, groups, payloads, outbox: for people."""
