"""Detects that the network has moved to QBFT, but this node's genesis file has no such migration.

A node with the old genesis file refuses the first QBFT block as malformed. If a quorum of the validators that the node
knows has sealed this block under QBFT, the network has migrated. The node must stop: it must neither wait nor seal
alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ophion.consensus.engine import Engine, HeaderReader
from ophion.errors import DecodeError, OphionError
from ophion.primitives.header import Header
from ophion.primitives.types import Address


class MissedMigration(OphionError):
    """Raised when the network has moved to QBFT at a block, but this node's genesis file has no migration."""

    def __init__(self, number: int, engine: str) -> None:
        self.number = number
        super().__init__(
            f"The network has moved from {engine} to QBFT at block {number}: a quorum of its validators has sealed that"
            " block. The genesis file of this node has no such migration. Get the genesis file with"
            f" config.qbft.startBlock {number} from the operators, and start again with it; the data stays valid."
        )


class UnknownRules(OphionError):
    """Raised when validators announce rules that this node's genesis file does not have."""

    def __init__(self, number: int, announcers: int, members: int) -> None:
        self.number = number
        super().__init__(
            f"{announcers} of {members} validators announce new rules from block {number} on or before, and the genesis"
            " file of this node does not have them. Without them it cannot follow the chain, and signing would start a"
            " fork. Get the current genesis file from the operators, and start again with it; the data stays valid."
        )


def unknown_rules(
    announced: Iterable[tuple[Address, int]], members: Collection[Address], number: int
) -> UnknownRules | None:
    """Return an error if more than f validators announce unknown rules for block `number`, otherwise None.

    `announced` contains, for each peer that announced a fork unknown to this node, the peer's validator address and the
    block number of the fork. The number is 0 if the peer's head is already past the fork. f is the number of validators
    that may be faulty, so a single validator or an unknown peer cannot stop this node.
    """
    blocks = [block for address, block in announced if address in members and block <= number]
    if len(blocks) <= max(0, (len(members) - 1) // 3):
        return None
    return UnknownRules(max(blocks) or number, len(blocks), len(members))


def missed_migration(header: Header, engine: Engine, chain: HeaderReader) -> MissedMigration | None:
    """Return an error if a quorum of the known validators has sealed a refused header under QBFT, otherwise None."""
    # lazy import: only a refused block needs this module
    from ophion.consensus.bft.extra_data import ExtraForm
    from ophion.consensus.bft.qbft_messages import Qbft
    from ophion.consensus.bft.signed_parts import header_digest
    from ophion.consensus.bft.validator_set import quorum_of
    from ophion.native.crypto import recover_addresses

    protocol = Qbft()
    if engine.name == protocol.name:
        return None
    try:
        extra = protocol.decode_extra(header.extra_data)
        parent = chain.header(header.parent_hash)
        members: tuple[Address, ...] = () if parent is None else engine.members(parent, chain)
    except (DecodeError, OphionError):
        return None
    if not members or not quorum_of(len(members)) <= len(extra.seals) <= len(members):
        return None
    digest = header_digest(protocol, header, extra, ExtraForm.FOR_SEAL)
    sealers = set(recover_addresses([(digest, seal) for seal in extra.seals])) & set(members)
    return MissedMigration(header.number, engine.name) if len(sealers) >= quorum_of(len(members)) else None
