"""Clique: produces the blocks of one signer when they are due (consensus.md 1.7).

    head ─▶ may this node sign on it? ─ no ─▶ wait for another head
                  │ yes
                  ▼
        wait until parent + period, plus a random delay if out of turn ─▶ build, seal, commit
                  └─ another head meanwhile: begin again, except for an out-of-turn block while this signer is in turn

While the signer waits, `incremental_builder` builds an in-turn block with the transactions that arrive until it is due.
"""

from __future__ import annotations

import asyncio
import logging
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from ophion.chain.block import decode_block
from ophion.chain.block_builder import BuiltBlock
from ophion.chain.events import ChainEvent
from ophion.chainspec.consensus_parameters import CliqueParameters
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.clique_snapshot import Snapshot
from ophion.consensus.engine import BlockPreferences, Vote
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import DecodeError, InvalidBlock, SignerUnavailable
from ophion.native.executor import State
from ophion.pool.events import Added, PoolEvent
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32
from ophion.producer.block_assembly import Assembler
from ophion.producer.peer_height_guard import PeerHeightGuard
from ophion.producer.shared_seals import SealClaim, SharedSeals
from ophion.producer.shared_vote_store import VotesUnavailable

if TYPE_CHECKING:
    from ophion.consensus.bft.signatures import DigestSigner

log = logging.getLogger(__name__)

OUT_OF_TURN_DELAY_S: Final = 0.5
"""Seconds per signer in the random delay of an out-of-turn signer: the maximum is this value times the recency
limit.
"""
_EMPTY_RETRY_S: Final = 1.0
"""Seconds between attempts to build a block that must not be empty."""
_SIGNER_RETRY_S: Final = 1.0
"""Seconds between attempts to seal a block while the security module is unavailable."""
_PARTNER_WAIT_S: Final = 2.0
"""Seconds to wait for a block that another node of this signer has claimed."""
_STORE_RETRY_S: Final = 0.2
"""Seconds between attempts to seal a block while the vote store is unavailable."""
_MAX_WAIT_S: Final = 1.0
"""Maximum seconds until the clock is read again. During a longer wait, a clock that is set forward would go
unnoticed.
"""
_BUILD_SHARE: Final = 0.75
"""Fraction of the block period in which a block is filled. The remaining time is for writing the block."""
_MIN_BUILD_S: Final = 0.75
_GUARD_PERIODS: Final = 3
"""Number of block periods to wait for blocks of peers that report a higher head."""
_GUARD_INTERVAL_S: Final = 0.1
"""Seconds between two checks of the peers' heights while this signer must not sign."""


class _Turn(Struct, frozen=True):
    """The right of this signer to seal a block on one parent, in turn or out of turn."""

    parent: HashedHeader
    snapshot: Snapshot
    is_in_turn: bool
    period_s: int
    may_be_empty: bool

    @property
    def number(self) -> int:
        return self.parent.number + 1


class CliqueSealer:
    """Produces the blocks of one signer."""

    hashrate = 0

    def __init__(
        self,
        assembler: Assembler,
        engine: CliqueEngine,
        parameters: CliqueParameters,
        signer: DigestSigner,
        proposals: LocalProposals,
        randomness: Random,
        signs_in_thread: bool = False,
        shared_seals: SharedSeals | None = None,
        last: int | None = None,
    ) -> None:
        """Create the Clique sealer. `signs_in_thread` is set for a slow key in a security module. `shared_seals` is set
        if other nodes have the same key.

        `last` is the last Clique block of a chain that moves to QBFT.
        """
        self._assembler = assembler
        self._chain = assembler.chain
        self._clock = assembler.clock
        self._engine = engine
        self._parameters = parameters
        self._signer = signer
        self._me = signer.address
        self._proposals = proposals
        self._randomness = randomness
        self._signs_in_thread = signs_in_thread
        self._last = last
        self._shared_seals = shared_seals
        self.vote_store_problem: str | None = None
        """Why the shared vote store is unavailable; None if the store is available or not used."""
        self.guard = PeerHeightGuard(signer.address)
        self._woken = asyncio.Event()
        self._wants_transactions = False
        self._was_signer: bool | None = None

    async def run(self) -> None:
        """Produce blocks until cancelled."""
        ignore_chain = self._chain.events.listen(self._on_chain_event)
        ignore_pool = self._assembler.pool.events.listen(self._on_pool_event)
        try:
            while True:
                await self._extend(self._chain.head)
        finally:
            self._assembler.discard_early()
            ignore_pool()
            ignore_chain()
            if self._shared_seals is not None:
                self._shared_seals.close()

    def _on_chain_event(self, event: ChainEvent) -> None:
        self._woken.set()

    def _on_pool_event(self, event: PoolEvent) -> None:
        if self._wants_transactions and isinstance(event, Added):
            self._woken.set()

    # --- one turn -------------------------------------------------------------------------------

    async def _extend(self, parent: HashedHeader) -> None:
        """Produce a block on `parent`, or return when the head has changed."""
        turn = self._turn(parent)
        if turn is None:
            while self._chain.head.hash == parent.hash:
                await self._wake_up()
            return
        while (wait_s := self._guarded_s(turn)) > 0:
            await self._wake_up(min(wait_s, _GUARD_INTERVAL_S))
            if self._chain.head.hash != parent.hash:
                return
        self._assembler.check_clock(parent)
        due = max(float(parent.timestamp + turn.period_s), self._clock.now())
        if turn.is_in_turn:
            self._begin_early(turn, None, due)
        else:
            due += self._randomness.random() * turn.snapshot.limit * OUT_OF_TURN_DELAY_S
        is_ours = await self._wait_until(due, turn)
        while is_ours and not await self._make_block(turn):
            is_ours = await self._wait_until(self._clock.now() + _EMPTY_RETRY_S, turn, or_transactions=True)

    def _guarded_s(self, turn: _Turn) -> float:
        """Return the seconds for which this signer must not sign, because peers report a higher head."""
        self.guard.check_rules(turn.parent.number, turn.snapshot.signers)
        now, timeout_s = self._clock.now(), _GUARD_PERIODS * max(turn.period_s, 1)
        return self.guard.begins_at(turn.parent.number, turn.snapshot.signers, 1, timeout_s, now) - now

    def _turn(self, parent: HashedHeader) -> _Turn | None:
        """Return this signer's turn on a head, or None if the signer may not sign."""
        if self._last is not None and parent.number >= self._last:
            return None
        snapshot = self._engine.snapshot(parent, self._chain)
        number = parent.number + 1
        self._note_role(self._me in snapshot.signers, number)
        if not snapshot.may_sign(self._me, number):
            return None
        period = self._parameters.period_at(number)
        return _Turn(
            parent,
            snapshot,
            snapshot.in_turn(number) == self._me,
            period,
            # with period 0, a block is due only when the pool has a transaction
            period > 0 and self._parameters.creates_empty_blocks_at(number),
        )

    def _note_role(self, is_signer: bool, number: int) -> None:
        if is_signer != self._was_signer:
            self._was_signer = is_signer
            log.info("role changed role=%s block=%d address=0x%s", _ROLES[is_signer], number, self._me.hex())

    async def _make_block(self, turn: _Turn) -> bool:
        """Build, seal and commit a block. Returns False if no transaction can be included and empty blocks are
        disabled.
        """
        pool = self._assembler.pool
        if not turn.may_be_empty and not pool.has_executable:
            return False
        started_at = self._clock.monotonic()
        built = await self._assembler.assemble_on(
            turn.parent, self._preferences(turn, self._clock.now()), _build_time(turn)
        )
        if not turn.may_be_empty and not built.body.transaction_count:
            return False
        if not self._is_overtaken(turn):
            # check the peer rules again, because a peer may have connected while this block was built
            self.guard.check_rules(turn.parent.number, turn.snapshot.signers)
            await self._commit(built, started_at)
        return True

    def _preferences(self, turn: _Turn, at: float) -> BlockPreferences:
        """Return the preferences of a block produced at a given time."""
        return self._assembler.preferences(max(turn.parent.timestamp + turn.period_s, int(at)), self._vote(turn))

    def _begin_early(self, turn: _Turn, state: State | None, due: float) -> None:
        """Begin the block of this turn before it is due. `state` is given while the parent is not on disk yet."""
        wait_s = due - self._clock.now()
        if wait_s > 0:
            preferences = self._preferences(turn, due)
            self._assembler.begin_early(
                turn.parent, state, preferences, self._clock.monotonic() + wait_s, _build_time(turn)
            )

    async def _commit(self, built: BuiltBlock, started_at: float) -> None:
        if self._shared_seals is not None and not await self._claim(self._shared_seals, built):
            return
        header = await self._sealed(built.header)
        if header is None:
            return
        following = self._turn(self._engine.hashed(header))
        if following is not None and following.is_in_turn:
            self._begin_early(following, built.state, float(header.timestamp + following.period_s))
        try:
            await self._assembler.commit(header, built, started_at)
        except InvalidBlock as error:
            if not error.transient:
                raise
            # the clock was set back, so the block is in the future; the next attempt waits for the clock
            log.warning("block not imported number=%d error=%s", built.header.number, error)

    async def _sealed(self, header: Header) -> Header | None:
        """Return the header with its seal, or None if the security module is unavailable."""
        digest, sign = self._engine.signing_hash(header), self._signer.sign
        try:
            seal = await asyncio.to_thread(sign, digest) if self._signs_in_thread else sign(digest)
        except SignerUnavailable as error:
            log.error("block not sealed number=%d error=%s", header.number, error)
            await self._wake_up(_SIGNER_RETRY_S)
            return None
        return self._engine.attach(header, [seal])

    # --- nodes that share the key ---------------------------------------------------------------

    async def _claim(self, shared: SharedSeals, built: BuiltBlock) -> bool:
        """Claim a block before it is sealed. Returns False if the vote store is unavailable, or if another node of this
        signer has claimed another block. In the second case, waits for that block, and seals that block if it does not
        arrive.
        """
        header = built.header
        weight = self._chain.total_difficulty(header.parent_hash) or 0
        block = built.body.encode_block(header.encode())
        try:
            answer = await shared.claim(weight, self._engine.signing_hash(header), block)
            self._note_store(None)
            if answer.claim is SealClaim.OURS:
                return True
            # wait for the block that the other node has claimed; if that node has stopped without sending the block,
            # seal that block here
            await self._wake_up(_PARTNER_WAIT_S)
            if answer.claim is SealClaim.PARTNER and self._chain.head.hash == header.parent_hash:
                await self._adopt(shared, header.parent_hash, answer.digest)
        except VotesUnavailable as error:
            self._note_store(str(error))
            await self._wake_up(_STORE_RETRY_S)
        return False

    async def _adopt(self, shared: SharedSeals, parent: Hash32, digest: Hash32 | None) -> None:
        """Seal the block that another node with the same key has claimed, but not sent."""
        block = await shared.claimed_block()
        if block is None:
            return
        try:
            found = decode_block(block, self._engine)
        except DecodeError as error:
            log.error("claimed block unreadable error=%s", error)
            return
        header = found.header.header
        if header.parent_hash != parent or self._engine.signing_hash(header) != digest:
            return
        log.info("sealing the claimed block of another node number=%d", header.number)
        sealed = await self._sealed(header)
        if sealed is None:
            return
        try:
            await self._assembler.commit_sealed(sealed, found.body)
        except InvalidBlock as error:
            log.error("claimed block not imported number=%d error=%s", header.number, error)

    def _note_store(self, problem: str | None) -> None:
        if problem is not None and self.vote_store_problem is None:
            log.error("nothing is signed reason=the vote store is unavailable: %s", problem)
        elif problem is None and self.vote_store_problem is not None:
            log.info("signing again")
        self.vote_store_problem = problem

    def _vote(self, turn: _Turn) -> Vote | None:
        """Return a vote proposal of the operator that would change the signers and that this signer has not cast yet.
        Returns None for an epoch block.
        """
        if turn.number % self._parameters.epoch_length == 0:
            return None
        snapshot = turn.snapshot
        standing = {vote.target for vote in snapshot.votes if vote.voter == self._me}
        return self._proposals.next_vote(lambda vote: snapshot.is_meaningful(vote) and vote.target not in standing)

    # --- waiting --------------------------------------------------------------------------------

    def _is_overtaken(self, turn: _Turn) -> bool:
        """Whether a new head makes this block useless. An out-of-turn block does not make an in-turn block useless,
        because the in-turn block has the higher difficulty.
        """
        head = self._chain.head
        if head.hash == turn.parent.hash:
            return False
        is_competing = head.parent_hash == turn.parent.hash and self._engine.author(head) != self._me
        return not (turn.is_in_turn and is_competing)

    async def _wait_until(self, at: float, turn: _Turn, or_transactions: bool = False) -> bool:
        """Wait for a wall time or, with `or_transactions`, for a transaction. Returns False as soon as the turn is
        over.
        """
        self._wants_transactions = or_transactions
        try:
            while not self._is_overtaken(turn):
                left = at - self._clock.now()
                if left <= 0:
                    return True
                await self._wake_up(min(left, _MAX_WAIT_S))
                if or_transactions and self._assembler.pool.has_executable:
                    at = 0.0
            return False
        finally:
            self._wants_transactions = False

    async def _wake_up(self, limit_s: float | None = None) -> None:
        """Wait for a new head, or for a transaction if `_wants_transactions` is set, at most `limit_s` seconds."""
        self._woken.clear()
        try:
            async with asyncio.timeout(limit_s):
                await self._woken.wait()
        except TimeoutError:
            return


def _build_time(turn: _Turn) -> float:
    return max(turn.period_s * _BUILD_SHARE, _MIN_BUILD_S)


_ROLES: Final = {True: "signer", False: "follower"}
