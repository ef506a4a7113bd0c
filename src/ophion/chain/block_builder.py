"""Builds a block without its seal, from a draft header and candidate transactions.

The engine prepares the header, Rust executes the transactions, and the results complete the header. `fill` builds a
whole block in one call. `open` opens a block that takes transactions as they arrive (`DraftBlock.take`, then
`DraftBlock.complete`). A built block holds its execution result, so that its commit does not execute it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.chain.block_environment import block_env
from ophion.chain.chain import Chain
from ophion.consensus.engine import BlockPreferences
from ophion.native.executor import BlockEnv, Execution, OpenBlock, State, TakeResult, build_block, execute
from ophion.native.transactions import Body, Transaction, Withdrawal
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address

TOO_LONG: Final = "it runs longer than a block may take to build"


class BuiltBlock(Struct, frozen=True):
    """A block without its seal."""

    header: Header
    """Header that is complete except for the fields that the seal adds."""
    body: Body
    execution: Execution
    env: BlockEnv
    skipped: tuple[tuple[int, str], ...] = ()
    """Candidate transactions that no block can include now, by position, with the reason. Only `fill` sets this field.
    """

    @property
    def state(self) -> State:
        """The state after the block."""
        return self.execution.state


class BlockBuilder:
    """Builds blocks on any parent with an available state."""

    def __init__(self, chain: Chain, keeps_revert_data: bool) -> None:
        self._chain = chain
        self._keeps_revert_data = keeps_revert_data

    def draft(self, parent: HashedHeader, preferences: BlockPreferences) -> Header:
        """Return the header of the next block. Gas limit and base fee are set, roots are not."""
        return self._chain.engine.prepare(parent, preferences, self._chain)

    def fill(
        self,
        draft: Header,
        state: State,
        candidates: Sequence[Transaction],
        deadline_s: float,
        beneficiary: Address | None = None,
        block_hashes: bytes | None = None,
    ) -> BuiltBlock:
        """Execute candidates on the parent's state until gas or time is used up. Must run in a worker thread, because
        execution takes long.

        `beneficiary` earns the fees; if None, the header's coinbase. A transaction that is running at the deadline
        waits for the next block. A transaction that alone needs more than the whole time is skipped permanently.
        `block_hashes` are the ancestor hashes, newest first, for a parent that is not committed yet.
        """
        env = self._env(draft, beneficiary, block_hashes)
        withdrawals, rewards = _credits(self._chain, draft)
        result, body, execution = build_block(
            state, env, candidates, self._keeps_revert_data, withdrawals, rewards, deadline_s
        )
        skipped = tuple(result.skipped)
        if result.unfinished is not None and not result.included:
            skipped += ((result.unfinished, TOO_LONG),)
        return BuiltBlock(completed(draft, body, execution), body, execution, env, skipped)

    def empty(self, draft: Header, state: State) -> BuiltBlock:
        """Build a block without transactions, faster than `open` and `complete`. Must run in a worker thread."""
        chain = self._chain
        env = block_env(chain.spec, chain.rules, draft, draft.coinbase)
        body = Body.of([], [], None if draft.withdrawals_root is None else [])
        rewards = chain.engine.rewards(HashedHeader(draft, draft.parent_hash), ())
        execution = execute(state, env, body, rewards, self._keeps_revert_data, None)
        return BuiltBlock(completed(draft, body, execution), body, execution, env)

    def open(
        self, draft: Header, state: State, beneficiary: Address | None = None, block_hashes: bytes | None = None
    ) -> DraftBlock:
        """Open an empty block that takes transactions later. Must run in a worker thread.

        `block_hashes` are the ancestor hashes, newest first, needed if the parent is not committed yet.
        """
        env = self._env(draft, beneficiary, block_hashes)
        return DraftBlock(self._chain, env, OpenBlock(state, env, self._keeps_revert_data))

    def _env(self, draft: Header, beneficiary: Address | None, block_hashes: bytes | None) -> BlockEnv:
        chain = self._chain
        coinbase = draft.coinbase if beneficiary is None else beneficiary
        return block_env(chain.spec, chain.rules, draft, coinbase, block_hashes)


class DraftBlock:
    """A block under construction, to which transactions are added until it is complete. Only one thread at a time may
    use the object, and it must be a worker thread.
    """

    def __init__(self, chain: Chain, env: BlockEnv, block: OpenBlock) -> None:
        self._chain = chain
        self._env = env
        self._block = block

    def take(self, candidates: Sequence[Transaction], deadline_s: float) -> TakeResult:
        """Execute candidates after the transactions in the block, until gas or time is used up."""
        return self._block.take(candidates, deadline_s)

    def settle(self) -> None:
        """Hash the state changes of the transactions added so far, so that `complete` takes less time."""
        self._block.settle()

    def complete(self, draft: Header) -> BuiltBlock:
        """Complete the block with the header `draft`. Only fields that execution does not read may differ from the
        first draft.
        """
        body, execution = self._block.seal(*_credits(self._chain, draft))
        return BuiltBlock(completed(draft, body, execution), body, execution, self._env)


def _credits(chain: Chain, draft: Header) -> tuple[tuple[Withdrawal, ...] | None, Sequence[tuple[Address, int]]]:
    """Return the withdrawals and the block rewards that are credited after the transactions of a block."""
    withdrawals = None if draft.withdrawals_root is None else ()
    return withdrawals, chain.engine.rewards(HashedHeader(draft, draft.parent_hash), ())


def completed(draft: Header, body: Body, execution: Execution) -> Header:
    """Return the header of a block, completed with the results of its execution."""
    return replace(
        draft,
        state_root=execution.state_root,
        transactions_root=body.transactions_root,
        receipts_root=execution.receipts_root,
        logs_bloom=execution.logs_bloom,
        gas_used=execution.gas_used,
        blob_gas_used=None if draft.blob_gas_used is None else execution.blob_gas_used,
        requests_hash=None if draft.requests_hash is None else execution.requests_hash,
    )
