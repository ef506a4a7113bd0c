"""Drives the BFT state machine: feeds events and runs effects.

    chain, timers, peers ── events ──▶ BftStateMachine.handle ── effects ──▶ timers, disk, peers, build lane, importer

One task takes events from the queue and runs the effects of each in order, so a vote is on disk before its message is
sent. Slow effects (build, check, import) run as tasks and finish with an event; until then the machine handles further
messages (`BftBlocks`). `BftInbox` decodes the messages of peers.

`ValidatorGossip` is the interface to the peers. A network of one validator needs no peers and uses the same state
machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec.structs import replace

from ophion.chain.events import ChainEvent
from ophion.chain.importer import Importer
from ophion.consensus.bft.client_profiles import chosen_profile, hides_round
from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.events import (
    BftEffect,
    BftEvent,
    BlockTimer,
    BuildProposal,
    CancelTimer,
    CastVote,
    CatchUp,
    CheckProposal,
    Connected,
    Disconnected,
    ImportBlock,
    MessageReceived,
    Multicast,
    NewHead,
    ProposalBuilt,
    RelayMessage,
    ResendMessage,
    SetTimer,
    StoreVotes,
    Suspended,
)
from ophion.consensus.bft.message_buffer import MessageCounts
from ophion.consensus.bft.message_factory import BftProtocol, KeyMessageFactory
from ophion.consensus.bft.messages import BftMessage, Proposal, RawMessage
from ophion.consensus.bft.signatures import DigestSigner
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.bft.status import BftStatus, member_views, status_of
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.bft_header_form import chosen_form
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import InvalidBlock
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address
from ophion.producer.bft_blocks import BftBlocks
from ophion.producer.bft_inbox import BftInbox
from ophion.producer.bft_timers import BftTimers
from ophion.producer.bft_tuning import BftTuning
from ophion.producer.block_assembly import Assembler
from ophion.producer.clock_skew import ProposerClocks
from ophion.producer.peer_height_guard import PeerHeightGuard
from ophion.producer.shared_vote_store import MemoryVoteStore, SharedVoteStore
from ophion.producer.validator_gossip import NoPeers, ValidatorGossip
from ophion.producer.vote_caster import VoteCaster
from ophion.producer.vote_store import VoteStore
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

_RETRY_S: Final = 5.0
_GUARD_INTERVAL_S: Final = 0.1
"""Seconds between two checks of the peers' heights while this validator must not sign."""

_Item: TypeAlias = "BftEvent | HashedHeader"
"""An item of the queue. A new head is queued as a header, and its event is computed when the header leaves the
queue.
"""

_DEFAULT_TUNING: Final = BftTuning()
_ALONE: Final = NoPeers()


class BftDriver:
    """One validator of an IBFT 2.0 or QBFT network, or a node that may become a validator."""

    hashrate = 0

    def __init__(
        self,
        assembler: Assembler,
        importer: Importer,
        engine: BftEngine,
        signer: DigestSigner,
        proposals: LocalProposals,
        lanes: Lanes,
        gossip: ValidatorGossip = _ALONE,
        tuning: BftTuning = _DEFAULT_TUNING,
        shared_votes: SharedVoteStore | None = None,
        signs_in_thread: bool = False,
        running_since: float | None = None,
    ) -> None:
        """Create the BFT driver. `shared_votes` is the vote store that all nodes with this validator key share, or
        None.

        `signs_in_thread` is set for a slow key in a security module. `running_since` is the start time of this node,
        given only on a chain that moves from another engine to BFT.
        """
        self.engine = engine
        self.proposals = proposals
        self._assembler = assembler
        self._chain = assembler.chain
        self._clock = assembler.clock
        self._signer = signer
        self._gossip = gossip
        self._tuning = tuning
        self._running_since = running_since
        self._queue: deque[_Item] = deque()
        self._woken = asyncio.Event()
        self._timers = BftTimers(self._clock, self._post)
        self._tasks: asyncio.TaskGroup | None = None
        self._block_priority = lanes.block_priority
        self.guard = PeerHeightGuard(signer.address)
        shared = None if shared_votes is None else shared_votes.identity
        self._vote_store = VoteStore(self._chain.store, lanes, signer.address, shared)
        if self._vote_store.other_shared is not None:
            log.warning(
                "latest votes are in another vote store: waiting for a new block before voting store=%s",
                self._vote_store.other_shared,
            )
        self._shares_key = shared_votes is not None
        self.caster: VoteCaster | None = None
        """Stores votes in a shared vote store, or signs with a slow key. None if the node uses neither."""
        if shared_votes is not None or signs_in_thread:
            votes = shared_votes or MemoryVoteStore()
            self.caster = VoteCaster(
                self._vote_store, votes, self._clock, self._post, self._is_in_round, signs_in_thread
            )
        self._problem: str | None = None
        self._was_validator: bool | None = None
        self._clocks = ProposerClocks()
        self.inbox = BftInbox(
            lambda: (self._protocol, self._machine), lambda: len(self._queue), self._receive_message, lanes
        )
        self._blocks = BftBlocks(
            assembler, importer, engine, signer.address, proposals, lanes, lambda: self._machine, self._post
        )
        self._protocol = engine.protocol(self._chain.head.number + 1)
        self._factory, self._machine = self._enter(self._protocol, self._vote_store.recall(self._protocol))

    # --- status and peers ---------------------------------------------------------------------------

    def status(self) -> BftStatus:
        """Return what consensus is doing and what it waits for."""
        gossip, machine, now = self._gossip, self._machine, self._clock.now()
        connected = gossip.connected()
        status = status_of(machine, now, connected)
        views = member_views(machine, status.validators, connected, gossip.client_of, self._clocks.lead_of, now)
        status = replace(status, members=tuple(views))
        if self._problem is not None:
            status = replace(status, explanation=(self._problem, *status.explanation))
        if self.vote_store_problem is not None:
            reason = f"Nothing is signed: {self.vote_store_problem}"
            status = replace(status, explanation=(reason, *status.explanation))
        return status

    @property
    def vote_store_problem(self) -> str | None:
        """Why the shared vote store or the security module is unavailable; None if each is available or not used."""
        return None if self.caster is None else self.caster.problem

    def _is_in_round(self, order: CastVote) -> bool:
        height = self._machine.height
        return height is not None and (height.validator_set.height, height.current) == (order.height, order.round)

    @property
    def protocol_name(self) -> str:
        """Name of the consensus protocol of the current height."""
        return self._protocol.name

    @property
    def validators(self) -> frozenset[Address]:
        """Validators of the current height; no validators before the first head."""
        validator_set = self._machine.validator_set
        return frozenset() if validator_set is None else validator_set.members

    @property
    def current_height(self) -> int:
        """Height of the block that consensus decides now. 0 before the first head."""
        validator_set = self._machine.validator_set
        return 0 if validator_set is None else validator_set.height

    @property
    def period_s(self) -> float:
        """Block period of the current height in seconds."""
        return self._blocks.period_s

    def join(self, gossip: ValidatorGossip) -> None:
        """Set the `ValidatorGossip` through which this node sends messages to other validators."""
        self._gossip = gossip

    @property
    def counts(self) -> MessageCounts:
        """Counts of received consensus messages."""
        return self._machine.counts

    def received(self, raw: RawMessage, peer: Address | None) -> None:
        """Handle a message of a peer. Raises `DecodeError` for an invalid message. If the message is decoded later,
        `inbox.malformed` is called instead.

        Messages above the limit of the genesis file are dropped, and so are all messages while consensus is paused.
        """
        if self._tasks is None or self._machine.validator_set is None:
            return
        self.inbox.put(raw, peer, self._tasks)

    def _receive_message(self, message: BftMessage, peer: Address | None) -> None:
        if isinstance(message, Proposal):
            self._clocks.record(message, self.validators, self._clock.now())
        self._post(MessageReceived(message, peer))

    def connected(self, peer: Address) -> None:
        """Report that a peer which may be a validator has connected."""
        if self._tasks is not None:
            self._post(Connected(peer))

    def disconnected(self, peer: Address) -> None:
        """Report that the last connection to a peer has ended."""
        if self._tasks is not None:
            self._post(Disconnected(peer))

    # --- event loop task ------------------------------------------------------------------------

    async def run(self) -> None:
        """Take part in consensus until cancelled. Each call starts from the current head."""
        ignore_chain = self._chain.events.listen(self._on_chain_event)
        self._post(self._chain.head)
        try:
            async with asyncio.TaskGroup() as tasks:
                self._tasks = tasks
                while True:
                    await self._next_item()
        except BaseExceptionGroup as failures:
            # the first failure has cancelled the other tasks, so raise only the first failure
            raise failures.exceptions[0] from None
        finally:
            ignore_chain()
            self._assembler.discard_early()
            self._tasks = None
            self._queue.clear()
            self.inbox.clear()
            if self.caster is not None:
                self.caster.clear()
            self._blocks.executed.clear()
            self._suspend()

    def _suspend(self) -> None:
        """Stop consensus. The state machine keeps its votes."""
        self._machine.handle(Suspended(), self._clock.now())
        self._timers.cancel_all()

    def _on_chain_event(self, event: ChainEvent) -> None:
        # if Clique still makes the next block, ignore the head
        if event.head.number + 1 >= self.engine.schedule.first:
            self._post(event.head)

    def _post(self, item: _Item) -> None:
        self._queue.append(item)
        self._woken.set()

    async def _next_item(self) -> None:
        while not self._queue:
            self._woken.clear()
            await self._woken.wait()
        item = self._queue.popleft()
        event = self._as_new_head(item) if isinstance(item, HashedHeader) else item
        if isinstance(event, BlockTimer):
            event = replace(event, is_pool_empty=not self._assembler.pool.has_executable)
        if isinstance(event, Connected):
            # the new peer may run another client, so choose the message encoding again
            self._choose_forms(list(self._gossip.clients()))
        effects = self._machine.handle(event, self._clock.now())
        for effect in effects:
            await self._carry_out(effect)
        if isinstance(event, ProposalBuilt) and not any(isinstance(effect, ImportBlock) for effect in effects):
            self._block_priority.end()
        if isinstance(item, HashedHeader) and item.hash == self._chain.head.hash:
            validator_set = self._machine.validator_set
            if validator_set is not None and validator_set.proposer(0) == self._signer.address:
                self._blocks.begin_early(item)

    def _as_new_head(self, head: HashedHeader) -> BftEvent:
        """Prepare for the height after a head. Returns its event, or `Suspended` if its validators are unknown."""
        self._blocks.executed.forget_decided(head.number)
        # call `clients` before the new state machine starts, because `clients` needs the validators of the old one
        clients = list(self._gossip.clients())
        protocol = self.engine.protocol(head.number + 1)
        if protocol is not self._protocol:
            # the network has moved to QBFT: start without votes, because stored votes belong to an earlier height
            self._protocol = protocol
            self._suspend()
            self._factory, self._machine = self._enter(protocol, None)
        self._choose_forms(clients)
        network = self.engine.header_form(head.number + 1)
        self._assembler.settings.header_form = chosen_form(self._tuning.header_form, network, clients)
        try:
            event = self.engine.new_head(head, self._chain, self._tuning.max_timeout_s)
        except InvalidBlock as error:
            if self._problem is None:
                log.error("consensus paused height=%d reason=%s", head.number, error)
            self._problem = f"The validators of block {head.number + 1} cannot be found out: {error}"
            # retry without a new head, because a contract call that timed out may succeed later
            asyncio.get_running_loop().call_later(_RETRY_S, self._post_again, head)
            return Suspended()
        self._problem = None
        event = self._guarded(event, head)
        self._blocks.use_timing(event.timing, self._protocol.starts_on_block_timer)
        self._assembler.check_clock(head)
        self._note_role(self._signer.address in event.validators, head.number + 1)
        return event

    def _choose_forms(self, clients: Sequence[str]) -> None:
        """Choose the message forms that the clients of the connected validators understand."""
        self._factory.profile = chosen_profile(self._tuning.profile, clients)
        self._factory.hides_round = hides_round(clients)

    def _guarded(self, event: NewHead, head: HashedHeader) -> NewHead:
        """Return `event` with the time before which this validator must not sign. While it must not sign, schedule the
        next check of the peers' heights.
        """
        validators, now = event.validators, self._clock.now()
        self.guard.check_rules(head.number, validators)
        needed = quorum_of(len(validators)) - 1
        begins_at = self.guard.begins_at(head.number, validators, needed, event.timing.timeout(0), now)
        if begins_at > now:
            if not self._machine.is_held:
                log.info("waiting for blocks of peers before signing height=%d", head.number + 1)
            asyncio.get_running_loop().call_later(_GUARD_INTERVAL_S, self._look_at_peers, head)
        return replace(event, begins_at=begins_at)

    def _look_at_peers(self, head: HashedHeader) -> None:
        if self._machine.is_held:
            self._post_again(head)

    def _post_again(self, head: HashedHeader) -> None:
        if self._tasks is not None and self._chain.head.hash == head.hash:
            self._post(head)

    def _note_role(self, is_validator: bool, number: int) -> None:
        if is_validator != self._was_validator:
            self._was_validator = is_validator
            role = "validator" if is_validator else "follower"
            log.info("role changed role=%s block=%d address=0x%s", role, number, self._signer.address.hex())
            if not is_validator and self._vote_store.other is not None:
                log.warning(
                    "database of another validator: restore its key file or set --node-private-key-file validator=%s",
                    self._vote_store.other,
                )

    def _enter(
        self, protocol: BftProtocol, durable_votes: DurableVotes | None
    ) -> tuple[KeyMessageFactory, BftStateMachine]:
        factory = KeyMessageFactory(protocol, self._signer)
        limits = self.engine.limits(self._chain.head.number + 1)
        tuning = self._tuning
        is_blank = self._vote_store.is_blank
        machine = BftStateMachine(
            protocol,
            factory,
            limits,
            tuning.follows_others,
            durable_votes,
            tuning.passes_over,
            is_blank,
            self._running_since,
            defers_votes=self.caster is not None,
            shares_key=self._shares_key,
        )
        return factory, machine

    # --- effects --------------------------------------------------------------------------------

    async def _carry_out(self, effect: BftEffect) -> None:
        if isinstance(effect, SetTimer):
            self._timers.set(effect)
        elif isinstance(effect, CancelTimer):
            self._timers.cancel(effect.kind)
        elif isinstance(effect, StoreVotes):
            await self._vote_store.remember(self._protocol, effect.durable_votes)
        elif isinstance(effect, CastVote):
            assert self.caster is not None, "the state machine casts votes only with a caster"
            self.caster.put(self._protocol, effect, self._running_tasks)
        elif isinstance(effect, Multicast):
            validator_set = self._machine.validator_set
            self._gossip.multicast(effect.message, validator_set.validators if validator_set is not None else ())
        elif isinstance(effect, ResendMessage):
            self._gossip.send(effect.message, effect.to)
        elif isinstance(effect, RelayMessage):
            self._gossip.relay(effect.message, effect.exclude)
        elif isinstance(effect, BuildProposal):
            self._block_priority.begin()
            self._running_tasks.create_task(self._blocks.build(effect))
        elif isinstance(effect, CheckProposal):
            self._running_tasks.create_task(self._blocks.check(effect))
        elif isinstance(effect, ImportBlock):
            self._running_tasks.create_task(self._blocks.import_decided(effect))
        elif isinstance(effect, CatchUp):
            self._gossip.catch_up(effect.peer, effect.height)

    @property
    def _running_tasks(self) -> asyncio.TaskGroup:
        assert self._tasks is not None, "effects are carried out while the driver runs"
        return self._tasks
