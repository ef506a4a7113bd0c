"""`BftBlocks`: builds, checks and imports the blocks of consensus.

Each task ends with an event for the state machine. A block built or checked here is stored with its execution result
until import, so it is executed only once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from ophion.chain.block import decode_block
from ophion.chain.events import ChainBlock
from ophion.chain.importer import Importer
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.events import (
    BuildProposal,
    CheckProposal,
    ImportBlock,
    ProposalBuilt,
    ProposalChecked,
    TaskFailed,
)
from ophion.consensus.bft.messages import ProposedBlock
from ophion.consensus.bft.round_timing import RoundTiming
from ophion.consensus.bft.signed_parts import MAX_BLOCK_ITEMS, WrongBody, check_roots
from ophion.consensus.bft.state_machine import BftStateMachine
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import DecodeError, InvalidBlock, UnknownParent
from ophion.native.executor import State
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address
from ophion.producer.block_assembly import Assembler
from ophion.producer.executed_candidates import ExecutedCandidate, ExecutedCandidates
from ophion.runtime.thread_pools import Lanes

log = logging.getLogger(__name__)

_BUILD_SHARE: Final = 0.75
"""Fraction of the block period in which a block is filled, so that a slow transaction cannot use up the round."""
_REFUSALS: Final = (InvalidBlock, UnknownParent, DecodeError)
"""Errors of an invalid block. Other errors are failures of this node and stop the node."""


class BftBlocks:
    """Blocks of one validator, from proposal to import."""

    def __init__(
        self,
        assembler: Assembler,
        importer: Importer,
        engine: BftEngine,
        address: Address,
        proposals: LocalProposals,
        lanes: Lanes,
        machine: Callable[[], BftStateMachine],
        post: Callable[[ProposalBuilt | ProposalChecked | TaskFailed], None],
    ) -> None:
        """Create the block tasks of a validator. `machine` returns the running state machine. `post` passes the event
        that ends a task to the state machine.
        """
        self.executed = ExecutedCandidates()
        self._assembler = assembler
        self._chain = assembler.chain
        self._clock = assembler.clock
        self._importer = importer
        self._engine = engine
        self._address = address
        self._proposals = proposals
        self._lanes = lanes
        self._machine = machine
        self._post = post
        self._timing: RoundTiming | None = None

    @property
    def period_s(self) -> float:
        """Block period of the current height in seconds; one second before the first height."""
        return 1.0 if self._timing is None else self._timing.period_s

    def use_timing(self, timing: RoundTiming, starts_on_block_timer: bool) -> None:
        """Set periods and timeouts of the current height. Warns once about inconsistent values."""
        if timing != self._timing:
            self._timing = timing
            for warning in timing.warnings(starts_on_block_timer):
                log.warning("%s", warning)

    async def build(self, order: BuildProposal) -> None:
        """Build a block for a proposal."""
        self._lanes.block_priority.end()
        chain = self._chain
        parent = chain.header(order.parent)
        assert parent is not None, "the machine builds on a known head"
        started_at = self._clock.monotonic()
        try:
            vote = self._engine.next_vote(parent, self._address, self._proposals, chain)
            deadline_s = self._engine.timing(parent).period_s * _BUILD_SHARE
            built = await self._assembler.assemble_on(
                parent, self._assembler.preferences(order.timestamp, vote), deadline_s
            )
        except _REFUSALS as error:
            self._fail(order.height, order.round, f"no block could be built: {error}")
            return
        block = self._engine.candidate(built.body.encode_block(built.header.encode()), order.round)
        self.executed.add(block.hash, ExecutedCandidate(order.height, built.body, built.execution, built, started_at))
        self._post(ProposalBuilt(order.height, order.round, block, not built.body.transaction_count))

    def begin_early(self, parent: HashedHeader, state: State | None = None) -> None:
        """Begin to build this node's next proposal before it is due. `state` is the state after the parent; None if the
        parent is already on disk.
        """
        now = self._clock.now()
        try:
            timing = self._engine.timing(parent)
            vote = self._engine.next_vote(parent, self._address, self._proposals, self._chain)
        except _REFUSALS:
            return
        due = self._machine().block_due(parent.number, parent.timestamp, timing, now)
        if due > now:
            preferences = self._assembler.preferences(timing.timestamp(due), vote)
            share_s = timing.period_s * _BUILD_SHARE
            self._assembler.begin_early(parent, state, preferences, self._clock.monotonic() + due - now, share_s)

    async def check(self, order: CheckProposal) -> None:
        """Execute a proposed block, and report to the state machine whether it is valid."""
        proposal = order.proposal
        block, problem, is_body_wrong = proposal.block, None, False
        if block not in self.executed:
            started_at = self._clock.monotonic()
            try:
                decoded = await self._lanes.write.run(lambda: self._with_own_body(block))
                # the round timeout bounds the execution of a proposal; a slower proposal is refused
                limit_s = None if self._timing is None else self._timing.timeout(proposal.round)
                execution = await self._importer.check(decoded, self._engine.verify_proposal, limit_s)
                self.executed.add(
                    block.hash, ExecutedCandidate(proposal.height, decoded.body, execution, None, started_at)
                )
            except WrongBody as error:
                problem, is_body_wrong = str(error), True
                log.warning("proposal with a wrong body height=%d round=%d", proposal.height, proposal.round)
            except _REFUSALS as error:
                problem = str(error)
        self._post(ProposalChecked(proposal.height, proposal.round, block.digest, problem, is_body_wrong))

    def _with_own_body(self, block: ProposedBlock) -> ChainBlock:
        """Return the decoded block. Raises `WrongBody` if its body does not match its header.

        The body caches the computed roots, so the importer does not compute them again.
        """
        try:
            decoded = decode_block(block.encoded, self._engine)
        except DecodeError as error:
            raise WrongBody(str(error)) from error
        check_roots(decoded.header.header, decoded.body)
        return decoded

    async def import_decided(self, order: ImportBlock) -> None:
        """Import a decided block with its seals."""
        block = order.block
        kept = self.executed.get(block.hash)
        header = self._engine.attach(Header.decode(rlp.split_list(block.encoded, MAX_BLOCK_ITEMS)[0]), order.seals)
        validator_set = self._machine().validator_set
        try:
            if kept is not None and validator_set is not None and len(validator_set) == 1:
                # a single validator proposes the next block too: begin it while the decided block is written
                self.begin_early(self._engine.hashed(header), kept.execution.state)
            if kept is not None and kept.built is not None:
                await self._assembler.commit(header, kept.built, kept.started_at)
            else:
                await self._import_foreign(header, block, kept)
        except _REFUSALS as error:
            log.warning("decided block not imported number=%d error=%s", block.height, error)
            self._fail(block.height, order.round, f"the decided block could not be imported: {error}")

    async def _import_foreign(self, header: Header, block: ProposedBlock, kept: ExecutedCandidate | None) -> None:
        hashed = self._engine.hashed(header)
        if kept is not None:
            body = kept.body
            importing = self._importer.import_built(hashed, body, kept.execution)
        else:
            body = decode_block(block.encoded, self._engine).body
            importing = self._importer.import_block(ChainBlock(hashed, body))
        task = asyncio.ensure_future(importing)
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            # consensus was stopped: finish the block that is being written
            await task
            raise
        log.info("Imported #%d / %d tx / (0x%s)", block.height, body.transaction_count, hashed.hash.hex())

    def _fail(self, height: int, round_number: int, problem: str) -> None:
        self._post(TaskFailed(height, round_number, problem))
