"""`VoteCaster`: signs own messages and stores their votes, one after another, outside of the state machine.

    CastVote ─▶ sign (in a thread if the key is slow) ─▶ database ─▶ shared votes ─▶ VoteStored or VoteRefused

Without a shared store, the database gets each vote. With a shared store, the shared votes alone decide which message is
allowed. A proof of preparation with a small block is stored with the shared vote, so a commit does not wait for the
disk of this node. The database then gets only a new proof with a large block and, with the first vote of this process,
the name of the store.

While the shared votes are unavailable, the caster repeats the latest order. The caster signs and stores nothing for
rounds that the state machine has left. The state machine continues: it follows the chain and changes rounds without
sending.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.events import CastVote, VoteRefused, VoteStored
from ophion.consensus.bft.message_factory import BftProtocol
from ophion.consensus.bft.messages import BftMessage, PreparedRound, RoundChange
from ophion.consensus.bft.vote_record import VoteRecord
from ophion.errors import DecodeError, SignerUnavailable
from ophion.producer.shared_vote_store import SharedVoteStore, VotesUnavailable
from ophion.producer.vote_store import VoteStore
from ophion.runtime.clock import Clock
from ophion.runtime.metrics_registry import DurationHistogram

log = logging.getLogger(__name__)

RETRY_S: Final = 0.2
"""Seconds between two attempts while the shared votes are unavailable."""
MAX_SHARED_PROOF_BLOCK_BYTES: Final = 8192
"""Maximum size in bytes of a block whose proof is stored with the vote, because etcd keeps old revisions."""

_Result: TypeAlias = "VoteStored | VoteRefused"


class VoteCaster:
    """Signs and stores the votes that one BFT driver requests with `CastVote`."""

    def __init__(
        self,
        database: VoteStore,
        shared: SharedVoteStore,
        clock: Clock,
        post: Callable[[_Result], None],
        is_wanted: Callable[[CastVote], bool],
        signs_in_thread: bool = False,
    ) -> None:
        """Create the vote caster. `is_wanted` returns whether the state machine is still in the round of a `CastVote`
        order.
        """
        self.durations = DurationHistogram()
        """Time to store one vote, in seconds."""
        self.refused = 0
        """Number of votes that conflict with a vote of another node with the same key."""
        self.problem: str | None = None
        """Why the caster cannot sign. None if the shared votes and the security module are available."""
        self._database = database
        self._shared = shared
        self._clock = clock
        self._post = post
        self._is_wanted = is_wanted
        self._signs_in_thread = signs_in_thread
        self._orders: deque[tuple[BftProtocol, CastVote]] = deque()
        self._is_working = False
        self._written: DurableVotes | None = None
        self._durable_proof: PreparedRound | None = None
        """The latest proof that the database or the shared vote store has."""
        self._failed_at = 0.0

    def put(self, protocol: BftProtocol, order: CastVote, tasks: asyncio.TaskGroup) -> None:
        """Queue a `CastVote` order."""
        self._orders.append((protocol, order))
        if not self._is_working:
            self._is_working = True
            tasks.create_task(self._work())

    def clear(self) -> None:
        """Drop all `CastVote` orders and close the shared vote store, after consensus has stopped."""
        self._orders.clear()
        self._shared.close()

    async def _work(self) -> None:
        try:
            while self._orders:
                protocol, order = self._orders.popleft()
                result = await self._cast(protocol, order)
                if result is not None:
                    self._post(result)
        finally:
            self._is_working = False

    async def _cast(self, protocol: BftProtocol, order: CastVote) -> _Result | None:
        if not self._is_wanted(order):
            return None
        message = await self._signed(order)
        if message is None:
            return None
        votes = order.votes(message)
        started_at = self._clock.monotonic()
        proof = self._shareable_proof(votes)
        if self._needs_database(votes, proof):
            await self._write(protocol, votes)
        wanted = VoteRecord.of(votes, isinstance(message, RoundChange))
        stored, is_promised = await self._promise(order, wanted, proof)
        if stored is not None:
            self.refused += 1
            log.debug("vote refused kind=%s %s", _kind(message), stored)
            return VoteRefused(order, stored, await self._stored_proof(protocol, wanted, stored))
        if not is_promised:
            return None
        if proof is not None:
            await self._keep(protocol, votes, proof)
        self.durations.record(self._clock.monotonic() - started_at)
        return VoteStored(order, message, votes)

    def _shareable_proof(self, votes: DurableVotes) -> bytes | None:
        """Return the proof in the votes if it is new and the shared vote store can keep it, otherwise None."""
        new = votes.prepared
        if new is None or new is self._durable_proof or not self._shared.keeps_proofs:
            return None
        return votes.encode() if len(new.block.encoded) <= MAX_SHARED_PROOF_BLOCK_BYTES else None

    def _needs_database(self, votes: DurableVotes, shareable: bytes | None) -> bool:
        """Whether the database must have these votes before the shared vote store decides."""
        if self._written is None or self._shared.identity is None:
            return votes is not self._written
        return votes.prepared is not None and votes.prepared is not self._durable_proof and shareable is None

    async def _keep(self, protocol: BftProtocol, votes: DurableVotes, proof: bytes) -> None:
        """Write a proof to the database, unless the shared vote store has it from this node.

        If another node with the same key has stored an equal vote, the proof may exist only in the database of that
        node.
        """
        if self._shared.kept_proof is proof:
            self._durable_proof = votes.prepared
        elif votes.prepared is not self._durable_proof:
            await self._write(protocol, votes)

    async def _stored_proof(
        self, protocol: BftProtocol, wanted: VoteRecord, stored: VoteRecord
    ) -> PreparedRound | None:
        """Return the proof from the shared vote store if it is the reason for a refusal."""
        if stored.height != wanted.height or stored.prepared_round <= wanted.prepared_round:
            return None
        try:
            encoded = await self._shared.proof()
            votes = None if encoded is None else DurableVotes.decode(encoded, protocol)
        except (DecodeError, VotesUnavailable) as error:
            log.debug("no proof in the vote store reason=%s", error)
            return None
        return votes.prepared if votes is not None and votes.height == wanted.height else None

    async def _write(self, protocol: BftProtocol, votes: DurableVotes) -> None:
        """Write the votes to the database. A proof that the shared vote store cannot keep is written before the store
        decides: a node that is killed in between must not lack a proof that the record names.

        If the vote is refused, the database holds a vote that was not sent. After a restart the validator then begins
        with the next round, which is always allowed.
        """
        await self._database.remember(protocol, votes)
        self._written, self._durable_proof = votes, votes.prepared

    async def _signed(self, order: CastVote) -> BftMessage | None:
        """Sign a message. Returns None if the round of the message ends before the security module has signed."""
        if not self._signs_in_thread:
            return order.sign()
        while self._is_wanted(order):
            try:
                return await asyncio.to_thread(order.sign)
            except SignerUnavailable as error:
                self._note_failure(f"the security module is unavailable: {error}")
                await asyncio.sleep(RETRY_S)
        return None

    async def _promise(
        self, order: CastVote, wanted: VoteRecord, proof: bytes | None
    ) -> tuple[VoteRecord | None, bool]:
        """Store a record. Returns the conflicting record, if any, and whether the new record is stored."""
        while self._is_wanted(order):
            try:
                stored = await self._shared.promise(wanted, proof=proof)
            except VotesUnavailable as error:
                self._note_failure(f"the vote store is unavailable: {error}")
                await asyncio.sleep(RETRY_S)
                continue
            self._note_success()
            return stored, stored is None
        return None, False

    def _note_failure(self, reason: str) -> None:
        if self.problem is None:
            self._failed_at = self._clock.monotonic()
            log.error("nothing is signed reason=%s", reason)
        self.problem = reason

    def _note_success(self) -> None:
        if self.problem is not None:
            self.problem = None
            log.info("signing again outage_s=%.1f", self._clock.monotonic() - self._failed_at)


def _kind(message: BftMessage) -> str:
    return type(message).__name__
