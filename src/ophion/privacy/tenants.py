"""Several owners of enclave keys on one node: whoever asks is the owner of the key that the token names.

Without `--privacy-multi-tenancy-enabled` whoever may use the methods sees all that this node sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ophion.enclave.encoding import read_key
from ophion.enclave.interface import Enclave
from ophion.errors import PrivacyRefused
from ophion.native.privacy import PrivateReceiptRecord
from ophion.runtime.principal import TENANT

NO_KEY: Final = "The token names no privacy public key of this node"
NOT_A_MEMBER: Final = "Privacy group must contain the enclave public key"


class Tenants:
    """What of this node's private world belongs to whoever asks."""

    def __init__(
        self,
        enclave: Enclave,
        is_shared: bool,
        flexible: Callable[[bytes], Sequence[bytes] | None] = lambda group: None,
    ) -> None:
        """`flexible`: the members of a group whose contract keeps them."""
        self.is_shared = is_shared
        self._enclave = enclave
        self._flexible = flexible

    def key(self) -> bytes | None:
        """The key of whoever asks; None where all of them are his."""
        if not self.is_shared:
            return None
        named = TENANT.get()
        try:
            key = read_key(named)
        except ValueError:
            key = b""
        if key not in self._enclave.keys:
            raise PrivacyRefused(NO_KEY)
        return key

    def keys(self) -> tuple[bytes, ...]:
        """The keys in whose name transactions may be sent; the first is the default."""
        key = self.key()
        return self._enclave.keys if key is None else (key,)

    async def check_group(self, group_id: bytes) -> None:
        """Refuse what is asked about a group that is not his; a group that nobody has used is everybody's."""
        key = self.key()
        if key is None:
            return
        members = await self._members(group_id)
        if members is not None and key not in members:
            raise PrivacyRefused(NOT_A_MEMBER)

    async def may_see(self, record: PrivateReceiptRecord) -> bool:
        """Whether a result is for whoever asks."""
        key = self.key()
        if key is None or key == record.private_from:
            return True
        if record.private_for is not None:
            return key in record.private_for
        members = await self._members(record.group)
        return members is not None and key in members

    async def _members(self, group_id: bytes) -> Sequence[bytes] | None:
        found = self._flexible(group_id)
        if found is None:
            group = await self._enclave.group(group_id)
            found = None if group is None else group.members
        return found
