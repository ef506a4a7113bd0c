"""Drives the BFT state machine: feeds events and runs effects.

    chain, timers, peers ── events ──▶ BftStateMachine.handle ── effects ──▶ timers, disk, peers, build lane, importer

One task takes events from the queue and runs the effects of each event in order, so a vote is on disk before its
message is sent. Slow effects (build, check, import) run as tasks and finish with an event; the machine handles messages
meanwhile. A block built or checked here is stored with its execution result until import, so it is executed only once.

`Gossip` is the interface to the peers. A network of one validator needs no peers and uses the same state machine.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.events import ChainBlock, ChainEvent
from ophion.chain.importer import Importer
from ophion.consensus.bft.client_profiles import ProfileChoice, chosen_profile, hides_round
from ophion.consensus.bft.durable_votes import DurableVotes
from ophion.consensus.bft.engine import DEFAULT_MAX_TIMEOUT_S, BftEngine
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
    ProposalChecked,
    RelayMessage,
    Remember,
    Repeat,
    SetTimer,
    Suspended,
    TaskFailed,
)
from ophion.consensus.bft.message_buffer import MessageCounts
from ophion.consensus.bft.message_codec import signatures_expected
from ophion.consensus.bft.message_encoding import MAX_BLOCK_ITEMS, WrongBody, check_roots
from ophion.consensus.bft.message_factory import BftProtocol, KeyMessageFactory
from ophion.consensus.bft.messages import BftMessage, Candidate, Proposal, RawMessage
from ophion.consensus.bft.signatures import DigestSigner
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.bft.status import BftStatus, MemberView, status_of
from ophion.consensus.bft.timeouts import RoundTiming
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.header_form import HeaderFormChoice, chosen_form
from ophion.consensus.voting import LocalProposals
from ophion.errors import DecodeError, InvalidBlock, UnknownParent
from ophion.native.crypto import keccak256
from ophion.native.executor import State
from ophion.primitives import rlp
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Address, Hash32
from ophion.producer.bft_timers import BftTimers
from ophion.producer.block_assembly import Assembler
from ophion.producer.executed_candidates import ExecutedCandidate, ExecutedCandidates
from ophion.producer.message_intake import MessageIntake
from ophion.producer.peer_height_guard import PeerHeightGuard
from ophion.producer.shared_votes import ProcessVotes, SharedVotes
from ophion.producer.validator_gossip import Gossip, NoPeers
from ophion.producer.vote_caster import VoteCaster
from ophion.producer.vote_store import VoteStore
from ophion.runtime.lanes import Lanes

log = logging.getLogger(__name__)

_BUILD_SHARE: Final = 0.75
"""Share of the block period for filling a block, so that a slow transaction cannot use up the round."""
_UNKNOWN_SHARE: Final = 4
"""Maximum share of the queue for messages of peers that are not validators."""
_RETRY_S: Final = 5.0
_GUARD_INTERVAL_S: Final = 0.1
"""Seconds between two checks of the peers' heights while this validator must not sign."""
_MAX_LEADS: Final = 256
"""Limit of validators whose clock offset is remembered."""
_REFUSALS: Final = (InvalidBlock, UnknownParent, DecodeError)
"""Errors of an invalid block. Other errors are failures of this node and stop the node."""


class BftTuning(Struct, frozen=True):
    """Operator settings of rounds. Further settings are in the genesis file."""

    max_timeout_s: float = DEFAULT_MAX_TIMEOUT_S
    """Maximum round timeout in seconds."""
    follows_others: bool = True
    """Whether to follow f + 1 validators to a later round at once."""
    passes_over: bool = True
    """Whether to request the next round at once if the proposer is absent."""
    profile: ProfileChoice = ProfileChoice.AUTO
    header_form: HeaderFormChoice = HeaderFormChoice.AUTO


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
        gossip: Gossip = _ALONE,
        tuning: BftTuning = _DEFAULT_TUNING,
        shared_votes: SharedVotes | None = None,
        signs_in_thread: bool = False,
        running_since: float | None = None,
    ) -> None:
        """Create the BFT driver. `shared_votes` is the vote store that all nodes with this validator key share, or
        None.

        `signs_in_thread` is set for a slow key in a security module. `running_since` is the start time of this node, if
        its chain may still be under another engine.
        """
        self.engine = engine
        self.proposals = proposals
        self._assembler = assembler
        self._chain = assembler.chain
        self._clock = assembler.clock
        self._importer = importer
        self._signer = signer
        self._gossip = gossip
        self._tuning = tuning
        self._running_since = running_since
        self._queue: deque[_Item] = deque()
        self._woken = asyncio.Event()
        self._timers = BftTimers(self._clock, self._post)
        self._tasks: asyncio.TaskGroup | None = None
        self._executed = ExecutedCandidates()
        self._block_priority = lanes.block_priority
        self._lanes = lanes
        self.guard = PeerHeightGuard(signer.address)
        self._vote_store = VoteStore(self._chain.store, lanes, signer.address)
        self._shares_key = shared_votes is not None
        self.caster: VoteCaster | None = None
        """Stores votes in a shared vote store, or signs with a slow key. None if neither is used."""
        if shared_votes is not None or signs_in_thread:
            votes = shared_votes or ProcessVotes()
            self.caster = VoteCaster(
                self._vote_store, votes, self._clock, self._post, self._is_in_round, signs_in_thread
            )
        self._problem: str | None = None
        self._was_validator: bool | None = None
        self._timing: RoundTiming | None = None
        self._leads: dict[Address, float] = {}
        self._intake = MessageIntake(self._take_later, self._take_large)
        self.malformed: Callable[[Address | None], None] = lambda peer: None
        """Called with the sender of a queued message that is invalid."""
        self._protocol = engine.protocol(self._chain.head.number + 1)
        self._factory, self._machine = self._enter(self._protocol, self._vote_store.recall(self._protocol))

    # --- status and peers ---------------------------------------------------------------------------

    def status(self) -> BftStatus:
        """Return what consensus is doing and what it waits for."""
        status = status_of(self._machine, self._clock.now(), self._gossip.connected())
        status = replace(status, members=tuple(self._views(status.validators)))
        if self._problem is not None:
            status = replace(status, explanation=(self._problem, *status.explanation))
        if self.vote_store_problem is not None:
            reason = f"Nothing is signed: {self.vote_store_problem}"
            status = replace(status, explanation=(reason, *status.explanation))
        return status

    @property
    def vote_store_problem(self) -> str | None:
        """Why the shared vote store or the security module is unavailable; None if both are available or not used."""
        return None if self.caster is None else self.caster.problem

    def _is_in_round(self, order: CastVote) -> bool:
        height = self._machine.height
        return height is not None and (height.validator_set.height, height.current) == (order.height, order.round)

    def _views(self, validators: Iterable[Address]) -> Iterator[MemberView]:
        """Yield what this node knows about each of the other validators."""
        liveness, validator_set = self._machine.liveness, self._machine.validator_set
        connected, now, me = self._gossip.connected(), self._clock.now(), self._signer.address
        absent = frozenset() if validator_set is None else liveness.absent(validator_set, me)
        for address in validators:
            if address != me:
                received_at = liveness.received_at.get(address)
                yield MemberView(
                    address,
                    address in connected,
                    self._gossip.client_of(address),
                    None if received_at is None else now - received_at,
                    address in absent,
                    self._leads.get(address),
                )

    def _note_clock(self, proposal: Proposal) -> None:
        """Compute the proposer's clock offset from its proposal: a block of round 0 is proposed exactly when due."""
        is_signed = proposal.signed.digest == proposal.block.digest
        if proposal.round == 0 and is_signed and proposal.author in self.validators:
            block = proposal.block.encoded
            start = rlp.head(block, 0)[1]
            header = Header.decode(block[start : rlp.item_end(block, start)])
            self._leads[proposal.author] = header.timestamp - self._clock.now()
            if len(self._leads) > _MAX_LEADS:
                del self._leads[next(iter(self._leads))]

    @property
    def protocol_name(self) -> str:
        """Name of the consensus protocol of the current height."""
        return self._protocol.name

    @property
    def validators(self) -> frozenset[Address]:
        """Validators of the current height. Empty before the first head."""
        validator_set = self._machine.validator_set
        return frozenset() if validator_set is None else validator_set.members

    def join(self, gossip: Gossip) -> None:
        """Set the gossip that connects this node to other validators."""
        self._gossip = gossip

    @property
    def counts(self) -> MessageCounts:
        """Counts of received consensus messages."""
        return self._machine.counts

    def received(self, raw: RawMessage, peer: Address | None) -> None:
        """Handle a message of a peer. An invalid message raises `DecodeError`, or calls `malformed` if it was queued
        before.

        Messages above the limit of the genesis file are dropped, and so are all messages while consensus is paused.
        """
        if self._tasks is None or self._machine.validator_set is None:
            return
        if not self._intake.must_wait(raw, peer):
            self._take(raw, peer)
        elif not self._intake.put(raw, peer, self._tasks):
            self._machine.counts.dropped += 1

    def _take(self, raw: RawMessage, peer: Address | None) -> None:
        if self._is_wanted(keccak256(raw.data), peer):
            with self._counting_malformed():
                message = self._protocol.decode(raw, self._max_signatures())
            self._hand_on(message, peer)

    def _take_later(self, raw: RawMessage, peer: Address | None) -> None:
        """Handle a queued message. If it is invalid, call `malformed`, because `received` can no longer raise."""
        try:
            self._take(raw, peer)
        except DecodeError:
            self.malformed(peer)

    async def _take_large(self, raw: RawMessage, peer: Address | None) -> None:
        """Hash and decode a large message in a worker thread."""
        lane, protocol = self._lanes.peers, self._protocol
        if not self._is_wanted(await lane.run(lambda: keccak256(raw.data)), peer):
            return
        max_signatures = self._max_signatures()
        try:
            with self._counting_malformed():
                message = await lane.run(lambda: protocol.decode(raw, max_signatures))
        except DecodeError:
            self.malformed(peer)
            return
        if protocol is self._protocol:  # the network may have moved to QBFT while the message was decoded
            self._hand_on(message, peer)

    def _is_wanted(self, fingerprint: Hash32, peer: Address | None) -> bool:
        machine = self._machine
        is_unknown = peer is not None and peer not in self.validators
        if machine.is_duplicate(fingerprint):
            machine.counts.duplicate += 1
            return False
        if len(self._queue) >= machine.limits.message_queue // (_UNKNOWN_SHARE if is_unknown else 1):
            machine.counts.dropped += 1
            return False
        return True

    def _max_signatures(self) -> int:
        validator_set = self._machine.validator_set
        return signatures_expected(0 if validator_set is None else len(validator_set))

    @contextmanager
    def _counting_malformed(self) -> Iterator[None]:
        try:
            yield
        except DecodeError:
            self._machine.counts.malformed += 1
            raise

    def _hand_on(self, message: BftMessage, peer: Address | None) -> None:
        if isinstance(message, Proposal):
            self._note_clock(message)
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
            self._intake.clear()
            if self.caster is not None:
                self.caster.clear()
            self._executed.clear()
            self._rest()

    def _rest(self) -> None:
        """Stop consensus. The state machine keeps its votes."""
        self._machine.handle(Suspended(), self._clock.now())
        self._timers.cancel_all()

    def _on_chain_event(self, event: ChainEvent) -> None:
        # ignore heads below the migration block, because Clique makes the next block there
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
                self._begin_early(item)

    def _as_new_head(self, head: HashedHeader) -> BftEvent:
        """Return the event for a new head, or `Suspended` if the validators of the next block cannot be computed."""
        self._executed.forget_decided(head.number)
        # list the clients before the protocol changes, because a new state machine does not know the validators yet
        clients = list(self._gossip.clients())
        protocol = self.engine.protocol(head.number + 1)
        if protocol is not self._protocol:
            # the network has moved from IBFT 2.0 to QBFT: start without votes, because stored votes belong to an
            # earlier height
            self._protocol = protocol
            self._rest()
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
            # try again without waiting for a new chain head, because a contract call that timed out may succeed later
            asyncio.get_running_loop().call_later(_RETRY_S, self._ask_again, head)
            return Suspended()
        self._problem = None
        event = self._guarded(event)
        self._warn(event.timing)
        self._assembler.check_clock(head)
        self._note_role(self._signer.address in event.validators, head.number + 1)
        return event

    def _choose_forms(self, clients: Sequence[str]) -> None:
        """Choose the message forms that the clients of the connected validators understand."""
        self._factory.profile = chosen_profile(self._tuning.profile, clients)
        self._factory.hides_round = hides_round(clients)

    def _guarded(self, event: NewHead) -> NewHead:
        """Set the time before which this validator must not sign, and schedule the next check of the peers."""
        head, validators, now = event.head, event.validators, self._clock.now()
        self.guard.check_rules(head.number, validators)
        needed = quorum_of(len(validators)) - 1
        begins_at = self.guard.begins_at(head.number, validators, needed, event.timing.timeout(0), now)
        if begins_at > now:
            if not self._machine.is_held:
                log.info("waiting for blocks of peers before signing height=%d", head.number + 1)
            asyncio.get_running_loop().call_later(_GUARD_INTERVAL_S, self._look_at_peers, head.hash)
        return replace(event, begins_at=begins_at)

    def _look_at_peers(self, head: Hash32) -> None:
        if self._tasks is not None and self._chain.head.hash == head and self._machine.is_held:
            self._post(self._chain.head)

    def _warn(self, timing: RoundTiming) -> None:
        """Warn once about periods and timeouts that are inconsistent."""
        if timing != self._timing:
            self._timing = timing
            for warning in timing.warnings(self._protocol.starts_on_block_timer):
                log.warning("%s", warning)

    def _ask_again(self, head: HashedHeader) -> None:
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

    def _enter(self, protocol: BftProtocol, memory: DurableVotes | None) -> tuple[KeyMessageFactory, BftStateMachine]:
        factory = KeyMessageFactory(protocol, self._signer)
        limits = self.engine.limits(self._chain.head.number + 1)
        tuning = self._tuning
        is_blank = self._vote_store.is_blank
        machine = BftStateMachine(
            protocol,
            factory,
            limits,
            tuning.follows_others,
            memory,
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
        elif isinstance(effect, Remember):
            await self._vote_store.remember(self._protocol, effect.memory)
        elif isinstance(effect, CastVote):
            assert self.caster is not None, "the state machine casts votes only with a caster"
            assert self._tasks is not None, "effects are carried out while the driver runs"
            self.caster.put(self._protocol, effect, self._tasks)
        elif isinstance(effect, Multicast):
            validator_set = self._machine.validator_set
            self._gossip.multicast(effect.message, validator_set.validators if validator_set is not None else ())
        elif isinstance(effect, Repeat):
            self._gossip.send(effect.message, effect.to)
        elif isinstance(effect, RelayMessage):
            self._gossip.relay(effect.message, effect.exclude)
        elif isinstance(effect, BuildProposal):
            self._block_priority.begin()
            self._begin(self._build(effect))
        elif isinstance(effect, CheckProposal):
            self._begin(self._check(effect))
        elif isinstance(effect, ImportBlock):
            self._begin(self._import(effect))
        elif isinstance(effect, CatchUp):
            self._gossip.catch_up(effect.peer, effect.height)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._tasks is not None, "effects are carried out while the driver runs"
        self._tasks.create_task(work)

    # --- blocks ---------------------------------------------------------------------------------

    async def _build(self, order: BuildProposal) -> None:
        self._block_priority.end()
        chain = self._chain
        parent = chain.header(order.parent)
        assert parent is not None, "the machine builds on a known head"
        started_at = self._clock.monotonic()
        try:
            vote = self.engine.next_vote(parent, self._signer.address, self.proposals, chain)
            deadline_s = self.engine.timing(parent).period_s * _BUILD_SHARE
            built = await self._assembler.assemble_on(
                parent, self._assembler.preferences(order.timestamp, vote), deadline_s
            )
        except _REFUSALS as error:
            self._fail(order.height, order.round, f"no block could be built: {error}")
            return
        block = self.engine.candidate(built.body.encode_block(built.header.encode()), order.round)
        self._executed.add(block.hash, ExecutedCandidate(order.height, built.body, built.execution, built, started_at))
        self._post(ProposalBuilt(order.height, order.round, block, not built.body.transaction_count))

    def _begin_early(self, parent: HashedHeader, state: State | None = None) -> None:
        """Begin our next proposal before it is due. `state` is given while the parent is not on disk yet."""
        now = self._clock.now()
        try:
            timing = self.engine.timing(parent)
            vote = self.engine.next_vote(parent, self._signer.address, self.proposals, self._chain)
        except _REFUSALS:
            return
        due = self._machine.block_due(parent.number, parent.timestamp, timing, now)
        if due > now:
            preferences = self._assembler.preferences(timing.timestamp(due), vote)
            share_s = timing.period_s * _BUILD_SHARE
            self._assembler.begin_early(parent, state, preferences, self._clock.monotonic() + due - now, share_s)

    async def _check(self, order: CheckProposal) -> None:
        proposal = order.proposal
        block, problem, is_body_wrong = proposal.block, None, False
        if block not in self._executed:
            started_at = self._clock.monotonic()
            try:
                decoded = await self._lanes.write.run(lambda: self._with_own_body(block))
                # the round timeout bounds the execution of a proposal, so the validator refuses a proposal that takes
                # longer
                limit_s = None if self._timing is None else self._timing.timeout(proposal.round)
                execution = await self._importer.check(decoded, self.engine.verify_proposal, limit_s)
                self._executed.add(
                    block.hash, ExecutedCandidate(proposal.height, decoded.body, execution, None, started_at)
                )
            except WrongBody as error:
                problem, is_body_wrong = str(error), True
                log.warning("proposal with a wrong body height=%d round=%d", proposal.height, proposal.round)
            except _REFUSALS as error:
                problem = str(error)
        self._post(ProposalChecked(proposal.height, proposal.round, block.digest, problem, is_body_wrong))

    def _with_own_body(self, block: Candidate) -> ChainBlock:
        """Return the decoded block. Raises `WrongBody` if its body does not match its header.

        The body caches the computed roots, so the importer does not compute them again.
        """
        try:
            decoded = decode_block(block.encoded, self.engine)
        except DecodeError as error:
            raise WrongBody(str(error)) from error
        check_roots(decoded.header.header, decoded.body)
        return decoded

    async def _import(self, order: ImportBlock) -> None:
        block = order.block
        kept = self._executed.get(block.hash)
        header = self.engine.attach(Header.decode(rlp.split_list(block.encoded, MAX_BLOCK_ITEMS)[0]), order.seals)
        try:
            if kept is not None and len(self.validators) == 1:
                # a single validator also makes the next block, so build that block while this block is written
                self._begin_early(self.engine.hashed(header), kept.execution.state)
            if kept is not None and kept.built is not None:
                await self._assembler.commit(header, kept.built, kept.started_at)
            else:
                await self._import_foreign(header, block, kept)
        except _REFUSALS as error:
            log.warning("decided block not imported number=%d error=%s", block.height, error)
            self._fail(block.height, order.round, f"the decided block could not be imported: {error}")

    async def _import_foreign(self, header: Header, block: Candidate, kept: ExecutedCandidate | None) -> None:
        hashed = self.engine.hashed(header)
        if kept is not None:
            body = kept.body
            importing = self._importer.import_built(hashed, body, kept.execution)
        else:
            body = decode_block(block.encoded, self.engine).body
            importing = self._importer.import_block(ChainBlock(hashed, body))
        task = asyncio.ensure_future(importing)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            # consensus has stopped: finish writing the block before this task ends
            await task
            raise
        log.info("Imported #%d / %d tx / (0x%s)", block.height, body.transaction_count, hashed.hash.hex())

    def _fail(self, height: int, round_number: int, problem: str) -> None:
        self._post(TaskFailed(height, round_number, problem))
