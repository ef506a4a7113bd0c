"""Flexible groups: a contract in the group's own state holds the member list (privacy.md 4.5).

    addParticipants     creates a group, or adds members to a locked group; new members get earlier transactions
    lock, unlock        a locked group runs management transactions only
    removeParticipant   is also sent to the removed member, as the last transaction for this member

With flexible groups, transactions refer to a group only by its id. The creator of the group chooses the id at random.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from ophion.enclave.interface import KEY_SIZE, MAX_MEMBERS, Enclave, Group, GroupType
from ophion.errors import PrivacyRefused
from ophion.native.privacy import PrivateLedger, PrivateTransaction, encode_versioned
from ophion.primitives.types import Address
from ophion.privacy.payload_handover import PayloadHandover
from ophion.runtime.thread_pools import Lanes

PRECOMPILE: Final[Address] = (0x7D).to_bytes(20, "big")
"""Address of the privacy precompile that marker transactions of flexible groups call."""
PROXY: Final[Address] = (0x7C).to_bytes(20, "big")
"""Address of the proxy contract that members of a flexible group call."""

NO_GROUP: Final = "Flexible Privacy group does not exist."
NOT_ONESELF: Final = "addParticipants must include the key of privateFrom: the creator of a flexible group is a member"
BY_ID_ALONE: Final = "Flexible privacy groups are addressed by privacyGroupId"
LOCKED: Final = "The privacy group is locked"
NOT_LOCKED: Final = "The privacy group must be locked before members are added"

_ADD_BYTES: Final = bytes.fromhex("965a25ef")
_ADD_WORDS: Final = bytes.fromhex("b4926e25")
_WORD: Final = 32
_PAGE: Final = 256
_MAX_LOOKED_AT: Final = 100_000


class Membership(Struct, frozen=True):
    """The current members of a group."""

    is_open: bool
    version: bytes
    members: tuple[bytes, ...]


class FlexibleGroups:
    """Reads the members of flexible groups and sends transactions to the members."""

    def __init__(
        self,
        ledger: PrivateLedger,
        hand_overs: PayloadHandover,
        enclave: Enclave,
        lanes: Lanes,
        head_number: Callable[[], int],
    ) -> None:
        self._ledger = ledger
        self._hand_overs = hand_overs
        self._enclave = enclave
        self._lanes = lanes
        self._head_number = head_number

    def membership(self, group: bytes) -> Membership | None:
        """Return the members of a group at the head, or None for an unknown group."""
        found = self._ledger.membership(group, self._head_number())
        return None if found is None else Membership(found[0], found[1], tuple(found[2]))

    def members(self, group: bytes) -> tuple[bytes, ...] | None:
        """Return the member keys of a group, or None for an unknown group."""
        found = self.membership(group)
        return None if found is None else found.members

    async def find(self, members: Sequence[bytes]) -> list[Group]:
        """Return the groups with exactly these members."""
        return await self._lanes.private.run(lambda: self._found(members))

    def _found(self, members: Sequence[bytes]) -> list[Group]:
        wanted, found, start = set(members), list[Group](), bytes(KEY_SIZE)
        for _ in range(_MAX_LOOKED_AT // _PAGE):
            page = self._ledger.groups(start, _PAGE)
            for group in page:
                known = self.members(group)
                if known is not None and set(known) == wanted:
                    found.append(Group(group, "", "", GroupType.FLEXIBLE, known))
            if len(page) < _PAGE:
                break
            start = (int.from_bytes(page[-1], "big") + 1).to_bytes(KEY_SIZE, "big")
        return found

    def check(self, transaction: PrivateTransaction) -> bytes:
        """Check that the members would execute a transaction. Returns its group, or raises `PrivacyRefused`."""
        if transaction.private_for is not None:
            raise PrivacyRefused(BY_ID_ALONE)
        group = transaction.group
        if group is None:
            raise PrivacyRefused(NO_GROUP)
        known, added = self.membership(group), _added(transaction)
        if known is None:
            if added is None:
                raise PrivacyRefused(NO_GROUP)
            if transaction.private_from not in added:
                raise PrivacyRefused(NOT_ONESELF)
            return group
        if transaction.private_from not in known.members:
            raise PrivacyRefused(NO_GROUP)
        if added is not None and known.is_open:
            raise PrivacyRefused(NOT_LOCKED)
        if not known.is_open and transaction.to != PROXY:
            raise PrivacyRefused(LOCKED)
        return group

    async def distribute(self, transaction: PrivateTransaction, group: bytes) -> bytes:
        """Send a checked transaction to old and new members. Returns the data of its marker."""
        sender, known = transaction.private_from, self.membership(group)
        members = () if known is None else known.members
        new = [key for key in _added(transaction) or () if key not in members]
        version = bytes(KEY_SIZE) if known is None else known.version
        # send the group's earlier transactions first, so that new members get all transactions in order
        handed = b"" if known is None or not new else await self._hand_overs.give(group, self._enclave, sender, new)
        recipients = [key for key in dict.fromkeys((*members, *new)) if key != sender]
        payload = encode_versioned(transaction.raw, version)
        return await self._enclave.send(payload, sender, recipients or [sender]) + handed


def _added(transaction: PrivateTransaction) -> list[bytes] | None:
    """Return the keys that a transaction adds to its group, or None if it adds none. Raises `PrivacyRefused`."""
    data = transaction.data
    if transaction.to != PROXY or data[:4] not in (_ADD_BYTES, _ADD_WORDS):
        return None
    is_words, content = data[:4] == _ADD_WORDS, data[4:]
    start = _number(content, 0)
    count = _number(content, start)
    if count > MAX_MEMBERS:
        raise PrivacyRefused(f"A group has at most {MAX_MEMBERS} members")
    first = start + _WORD
    if is_words:
        return [_word(content, first + index * _WORD) for index in range(count)]
    keys = []
    for index in range(count):
        place = first + _number(content, first + index * _WORD)
        if _number(content, place) != KEY_SIZE:
            raise PrivacyRefused(f"A key of a member has {KEY_SIZE} bytes")
        keys.append(_word(content, place + _WORD))
    return keys


def _word(content: bytes, place: int) -> bytes:
    word = content[place : place + _WORD]
    if len(word) != _WORD:
        raise PrivacyRefused("The members to add cannot be decoded")
    return word


def _number(content: bytes, place: int) -> int:
    return int.from_bytes(_word(content, place), "big")
