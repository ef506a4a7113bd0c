"""`OwnMessages`: signs, stores and sends the messages of this validator at one height.

The vote in a message is stored (`DurableVotes`) before the message is sent and counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import BftEffect, CastVote, Multicast, ResendMessage, StoreVotes, VoteStored
from ophion.consensus.bft.messages import BftMessage, PreparedRound
from ophion.consensus.bft.validator_set import ValidatorSet
from ophion.primitives.types import Address, Hash32

_Message = TypeVar("_Message", bound=BftMessage)


class OwnMessages:
    """The messages and votes of this validator."""

    def __init__(
        self,
        validator_set: ValidatorSet,
        durable_votes: DurableVotes | None,
        emit: Callable[[BftEffect], None],
        defers_votes: bool,
    ) -> None:
        """Create the messages of one height. With `defers_votes`, a message counts only after `VoteStored`.

        The driver then signs or stores votes asynchronously.
        """
        self.durable_votes = durable_votes or DurableVotes(validator_set.height)
        self.defers_votes = defers_votes
        self._height = validator_set.height
        self._emit = emit
        self._is_alone = len(validator_set) == 1
        self._sent: dict[type[BftMessage], BftMessage] = {}
        """Own messages of the current round, by type."""
        # `_remembered` holds the last votes that this process has written. The value starts as None, even if
        # `durable_votes` was read from disk, so the first vote is always written.
        self._remembered: DurableVotes | None = None

    def cast(
        self,
        round_number: int,
        sign: Callable[[], _Message],
        votes: Callable[[_Message], DurableVotes],
        then: Callable[[_Message], None],
    ) -> None:
        """Sign a message, store its votes and send the message. Finally call `then`, which counts the message. With
        `defers_votes`, the driver and `on_stored` do this.

        The only validator of a network stores and sends nothing, unless several nodes share its key.
        """
        if self.defers_votes:
            order = CastVote(
                self._height,
                round_number,
                sign,
                cast("Callable[[BftMessage], DurableVotes]", votes),
                cast("Callable[[BftMessage], None]", then),
            )
            self._emit(order)
            return
        message = sign()
        self.durable_votes = votes(message)
        if not self._is_alone:
            if self.durable_votes is not self._remembered:
                self._remembered = self.durable_votes
                self._emit(StoreVotes(self.durable_votes))
            self._send(message)
        then(message)

    def on_stored(self, event: VoteStored, round_number: int) -> None:
        """Note the stored votes, then send and count their message, unless the round of the message has ended."""
        message, votes, known = event.message, event.votes, self.durable_votes.prepared
        if known is not None and (votes.prepared is None or votes.prepared.round < known.round):
            # while this message was being stored, another message of this validator has stored a block that was
            # prepared in a later round: keep that block
            votes = DurableVotes(votes.height, votes.round, votes.vote, known)
        self.durable_votes = votes
        if message.round == round_number:
            self._send(message)
            event.order.then(message)

    def with_vote(self, round_number: int, digest: Hash32) -> DurableVotes:
        """Return a copy of the stored votes, with a further vote for a digest in a round."""
        durable_votes = self.durable_votes
        if durable_votes.round == round_number and durable_votes.vote == digest:
            return durable_votes
        return DurableVotes(self._height, round_number, digest, durable_votes.prepared)

    def note_prepared(self, prepared: PreparedRound) -> None:
        """Keep a proof of preparation for later round changes, before it is known whether the commit of this validator
        is stored.

        A shared vote store may have stored the commit although the store's reply was lost. The store then refuses every
        round change of this validator that lacks the proof.
        """
        votes = self.durable_votes
        self.durable_votes = DurableVotes(votes.height, votes.round, votes.vote, prepared)

    def start_round(self) -> None:
        """Forget the messages of the round that ends."""
        self._sent.clear()

    def repeat(self, peer: Address) -> None:
        """Send the messages of this round again to a validator that may have missed them."""
        for message in self._sent.values():
            self._emit(ResendMessage(message, peer))

    def _send(self, message: BftMessage) -> None:
        self._sent[type(message)] = message
        self._emit(Multicast(message))
