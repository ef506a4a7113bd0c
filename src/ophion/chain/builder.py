"""From a draft header and candidates to a block that only lacks its seal.

The engine prepares the header, Rust fills the block and executes it, and the results go into the header. The
execution is kept beside the block, so that committing it later does not run anything twice; whoever drops it loses
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ophion.chain.chain import Chain
from ophion.chain.environment import block_env
from ophion.consensus.engine import Wishes
from ophion.native.executor import BlockEnv, Built, Execution, State, build
from ophion.native.transactions import Body, Transaction
from ophion.primitives.block import HashedHeader, Header
from ophion.primitives.types import Address


@dataclass(frozen=True, slots=True)
class BuiltBlock:
    """A block without its seal."""

    header: Header
    """Complete but for what the seal adds."""
    body: Body
    execution: Execution
    env: BlockEnv
    skipped: tuple[tuple[int, str], ...]
    """Positions of candidates that no block can hold as things stand, and why."""

    @property
    def state(self) -> State:
        """The world after the block."""
        return self.execution.state


class Builder:
    """Builds blocks on any parent whose state is at hand."""

    def __init__(self, chain: Chain, keeps_revert_data: bool) -> None:
        self._chain = chain
        self._keeps_revert_data = keeps_revert_data

    def draft(self, parent: HashedHeader, wishes: Wishes) -> Header:
        """The header of the block to be built: gas limit and base fee are known, roots are not."""
        return self._chain.engine.prepare(parent, wishes, self._chain)

    def fill(
        self,
        draft: Header,
        state: State,
        candidates: Sequence[Transaction],
        deadline_s: float,
        beneficiary: Address | None = None,
    ) -> BuiltBlock:
        """Execute candidates on the parent's state until gas or time is used up. Blocks: call it through a lane.

        `beneficiary` earns the fees where that is not the coinbase of the header.
        """
        chain = self._chain
        env = block_env(chain.spec, chain.rules, draft, draft.coinbase if beneficiary is None else beneficiary)
        built = build(
            state,
            env,
            candidates,
            None if draft.withdrawals_root is None else (),
            chain.engine.rewards(HashedHeader(draft, draft.parent_hash), ()),
            self._keeps_revert_data,
            deadline_s,
        )
        return BuiltBlock(_completed(draft, built), built.body, built.execution, env, tuple(built.skipped))


def _completed(draft: Header, built: Built) -> Header:
    execution = built.execution
    return replace(
        draft,
        state_root=execution.state_root,
        transactions_root=built.body.transactions_root,
        receipts_root=execution.receipts_root,
        logs_bloom=execution.logs_bloom,
        gas_used=execution.gas_used,
        blob_gas_used=None if draft.blob_gas_used is None else execution.blob_gas_used,
        requests_hash=None if draft.requests_hash is None else execution.requests_hash,
    )
