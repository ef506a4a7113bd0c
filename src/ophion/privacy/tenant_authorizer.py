"""`TenantAuthorizer`: which private groups and results a tenant may see.

With `--privacy-multi-tenancy-enabled` the token contains an enclave key, and the tenant sees only the groups of this
key. A group that this node does not know is refused with the same text as a group of other tenants. Without the option
every client that may call the methods sees everything that this node sees.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ophion.enclave.encoding import read_key
from ophion.enclave.group_ids import legacy_id
from ophion.enclave.interface import Enclave
from ophion.errors import PrivacyRefused
from ophion.native.privacy import PrivateReceiptRecord
from ophion.runtime.principal import TENANT

NO_KEY: Final = "The token names no privacy public key of this node"
NOT_A_MEMBER: Final = "Privacy group must contain the enclave public key"


class TenantAuthorizer:
    """Checks membership for every method, filter, subscription and trace of private transactions."""

    def __init__(
        self,
        enclave: Enclave,
        is_shared: bool,
        flexible_members: Callable[[bytes], Sequence[bytes] | None] = lambda group: None,
    ) -> None:
        """Create the tenant authorizer. `flexible_members` returns the members of a flexible group from its contract,
        or None for another group.
        """
        self.is_shared = is_shared
        self._enclave = enclave
        self._flexible_members = flexible_members

    def key(self) -> bytes | None:
        """Return the enclave key of the tenant that sent the request, or None without multi-tenancy.

        Raises `PrivacyRefused` when the token contains no key of this node. If only a remote enclave knows the keys,
        the issuer of the tokens decides which keys are used, as in Besu.
        """
        if not self.is_shared:
            return None
        try:
            key = read_key(TENANT.get())
        except ValueError:
            key = b""
        is_own = key in self._enclave.keys if self._enclave.keys else bool(key)
        if not is_own:
            raise PrivacyRefused(NO_KEY)
        return key

    def keys(self) -> tuple[bytes, ...]:
        """Return the keys that a transaction of this request may use as privateFrom. The first is the default."""
        key = self.key()
        return self._enclave.keys if key is None else (key,)

    async def authorize(self, group_id: bytes, named: Sequence[bytes] = ()) -> None:
        """Raise `PrivacyRefused` unless the tenant is currently a member of the group. Without multi-tenancy, every
        client is allowed.

        `named` are the keys from which the id was computed. If the group does not exist yet, these keys are its
        members.
        """
        key = self.key()
        if key is not None and not await self.is_member(key, group_id, named):
            raise PrivacyRefused(NOT_A_MEMBER)

    async def is_member(self, key: bytes, group_id: bytes, named: Sequence[bytes] = ()) -> bool:
        """Whether a key is currently a member of a group. `named` are the members if this node does not know the group.
        True for an unknown legacy group of only this key.
        """
        members = self._flexible_members(group_id)
        if members is None:
            group = await self._enclave.group(group_id)
            if group is None and group_id == legacy_id([key]):
                return True  # the legacy group contains only this key, and has no transaction yet
            members = named if group is None else group.members
        return key in members

    async def may_see(self, record: PrivateReceiptRecord) -> bool:
        """Whether the tenant may see a result: as sender, recipient or current member. True without multi-tenancy."""
        key = self.key()
        if key is None:
            return True
        if record.private_for is not None:
            return key == record.private_from or key in record.private_for
        # a remote enclave forgets the members of a deleted group, but the sender still sees its own transactions
        named = (record.private_from,)
        return await self.is_member(key, record.group, named)
