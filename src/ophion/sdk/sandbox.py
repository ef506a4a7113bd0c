"""`SandboxBackend`: a chain without blocks, for searches that make thousands of calls.

Transactions change the state in memory, as if they were all in one block: block number and time stand still, and fees
are zero. There are no blocks, receipts or traces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from ophion.native.executor import CallRequest, Sandbox
from ophion.primitives.hexcodec import data as hex_text
from ophion.sdk.backend import AccountEdit, Block, CallResult, CallSpec, SentTransaction
from ophion.sdk.branch import Branch
from ophion.sdk.embedded_node import EmbeddedNode, contract_address
from ophion.sdk.errors import ChainError, TransactionRefused

if TYPE_CHECKING:
    from ophion.sdk.chain import Chain

_DEADLINE_S = 30.0


class SandboxBackend:
    """A `Backend` on the latest state of another backend."""

    def __init__(self, below: EmbeddedNode | Branch) -> None:
        self._below = below
        state, env, self._gas_limit = below.latest()
        self._sandbox = Sandbox(state, env)
        self._sent = 0

    def _run(self, spec: CallSpec, keep_effects: bool) -> CallResult:
        gas = self._gas_limit if spec.gas is None else spec.gas
        request = CallRequest(sender=spec.sender, to=spec.to, gas=gas, value=spec.value, input=spec.data)
        return self._sandbox.run(request, keep_effects, _DEADLINE_S)

    # --- calls and transactions -----------------------------------------------------------------

    def call(self, spec: CallSpec, block: Block) -> CallResult:
        if block not in (None, "latest", "pending"):
            self._refuse("a call at an earlier block")
        return self._run(spec, keep_effects=False)

    def send(self, spec: CallSpec) -> SentTransaction:
        created = None if spec.to is not None else contract_address(spec.sender, self.nonce(spec.sender, None))
        outcome = self._run(spec, keep_effects=True)
        if outcome.kind == "invalid":
            raise TransactionRefused(outcome.reason)
        self._sent += 1
        succeeded = outcome.kind == "returned"
        output = b"" if succeeded else outcome.output
        return SentTransaction(self._sent.to_bytes(32, "big"), created, succeeded, outcome.gas_used, output)

    # --- state ----------------------------------------------------------------------------------

    def balance(self, address: bytes, block: Block) -> int:
        return self._sandbox.account(address)[1]

    def nonce(self, address: bytes, block: Block) -> int:
        return self._sandbox.account(address)[0]

    def code(self, address: bytes, block: Block) -> bytes:
        return self._sandbox.account(address)[2]

    def storage(self, address: bytes, slot: bytes, block: Block) -> bytes:
        return self._sandbox.storage(address, slot)

    def accounts(self) -> Sequence[bytes]:
        return self._below.accounts()

    def private_key(self, address: bytes) -> bytes | None:
        return self._below.private_key(address)

    def chain_id(self) -> int:
        return self._below.chain_id()

    def block_number(self) -> int:
        return self._below.block_number()

    def next_timestamp(self) -> int:
        return self._below.next_timestamp()

    def snapshot(self) -> int:
        return self._sandbox.save()

    def revert(self, snapshot: int) -> bool:
        return self._sandbox.revert(snapshot)

    def impersonate(self, address: bytes, is_on: bool) -> None:
        """Do nothing: every account may send."""

    def close(self) -> None:
        """Do nothing: the chain that the sandbox uses stays open."""

    # --- what a sandbox does not have -----------------------------------------------------------

    def _refuse(self, what: str) -> NoReturn:
        raise ChainError(f"A chain without blocks does not support {what}. Use check_invariants(..., has_blocks=True).")

    def request(self, method: str, params: Sequence[Any]) -> NoReturn:
        self._refuse(method)

    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None:
        self._refuse(f"the receipt of {hex_text(sent.hash)}")

    def estimate_gas(self, spec: CallSpec) -> NoReturn:
        self._refuse("gas estimates")

    def set_next_timestamp(self, timestamp: int) -> NoReturn:
        self._refuse("another time")

    def mine(self, count: int, interval: int | None) -> NoReturn:
        self._refuse("blocks")

    def edit(self, change: AccountEdit) -> NoReturn:
        self._refuse("changes of accounts")

    def set_automine(self, is_on: bool) -> NoReturn:
        self._refuse("paused mining")


@contextmanager
def without_blocks(chain: Chain) -> Iterator[None]:
    """Context manager in which a chain executes transactions without making blocks. All effects are undone at the end
    of the `with` block. Has no effect on a chain behind a URL.
    """
    below = chain.backend
    if not isinstance(below, EmbeddedNode | Branch):
        yield
        return
    chain.backend = SandboxBackend(below)
    try:
        yield
    finally:
        chain.backend = below
