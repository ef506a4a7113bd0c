"""`ExecutionObserver`: receives calls and blocks of a development node, for terminal output and error texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ophion.chain.builder import BuiltBlock
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State
from ophion.primitives.block import HashedHeader


class ObservedCall(Struct, frozen=True):
    """A call that failed or wrote to the console."""

    method: str
    state: State
    env: BlockEnv
    request: CallRequest
    overrides: Sequence[AccountOverride]


class ExecutionObserver(Protocol):
    """Receives executions. All methods run on the event loop and return at once."""

    def reason(self, output: bytes) -> str | None:
        """Return the decoded custom error of a reverted call, or None if its ABI is unknown."""

    def on_call(self, call: ObservedCall) -> None:
        """Receive a call that failed or wrote to the console."""

    def on_block(self, header: HashedHeader, built: BuiltBlock) -> None:
        """Receive the transactions of a new block."""
