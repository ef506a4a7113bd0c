"""`ExecutionObserver`: receives calls and blocks of a development node, for terminal output and error texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ophion.chain.block_builder import BuiltBlock
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import Address


class ObservedCall(Struct, frozen=True):
    """A call that failed or wrote to the console, or any call if the observer asks for all."""

    method: str
    state: State
    env: BlockEnv
    request: CallRequest
    overrides: Sequence[AccountOverride]


class ExecutionObserver(Protocol):
    """Receives executions. Unless noted, methods run on the event loop and return at once."""

    @property
    def shows_all(self) -> bool:
        """Whether calls that succeed are reported too."""

    def reason(self, output: bytes) -> str | None:
        """Return the decoded custom error of a reverted call, or None if its ABI is unknown."""

    def call_tree(self, frame: Mapping[str, Any], code_of: Callable[[Address], bytes]) -> dict[str, Any]:
        """Return the tree of a traced transaction with names, decoded values and source lines. Runs in any thread."""

    def source_steps(
        self, rows: Sequence[Mapping[str, Any]], frame: Mapping[str, Any], code_of: Callable[[Address], bytes]
    ) -> dict[str, Any]:
        """Return the source lines that a traced transaction visits, given its struct logs. Runs in any thread."""

    def on_call(self, call: ObservedCall) -> None:
        """Receive a call that failed or wrote to the console."""

    def on_block(self, header: HashedHeader, built: BuiltBlock) -> None:
        """Receive the transactions of a new block."""
