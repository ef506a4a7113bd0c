"""`SentMessages`: distinguishes own messages that a peer returns from messages of another node with the same key."""

from __future__ import annotations

from typing import TypeAlias

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.messages import BftMessage, Proposal, RoundChange
from ophion.primitives.types import Hash32

_Statement: TypeAlias = tuple[type[BftMessage], int, int, Hash32]
"""Kind, height and round of a message, and the digest of its block."""


class SentMessages:
    """The messages that this validator has sent at the current height."""

    def __init__(self, earlier: DurableVotes | None) -> None:
        """Create the record of sent messages. `earlier` holds the votes that this validator stored before a restart."""
        self._earlier = earlier
        self._sent: set[_Statement] = set()

    def add(self, message: BftMessage) -> None:
        """Record a message that this validator has sent."""
        self._sent.add(_statement(message))

    def clear(self) -> None:
        """Forget all messages. Called when another height begins."""
        self._sent.clear()

    def may_include(self, message: BftMessage, has_lost_votes: bool) -> bool:
        """Whether a message signed with our key may be one of our own messages.

        An earlier run may have sent the messages that its stored votes allow. If those votes are lost, the earlier run
        may have sent any message.
        """
        if _statement(message) in self._sent or has_lost_votes:
            return True
        votes = self._earlier
        if votes is None or votes.height != message.height or message.round > votes.round:
            return False
        return message.round < votes.round or isinstance(message, RoundChange) or votes.vote == _digest(message)


def _statement(message: BftMessage) -> _Statement:
    return type(message), message.height, message.round, _digest(message)


def _digest(message: BftMessage) -> Hash32:
    """Return the digest of the block in a message, or empty bytes for a round change without a prepared block."""
    if isinstance(message, RoundChange):
        return b"" if message.signed.claim is None else message.signed.claim.digest
    return message.signed.digest if isinstance(message, Proposal) else message.digest
