"""`Backend`: the operations of a chain in this process, of a branch in memory, or of a node behind a URL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

Block: TypeAlias = int | str | None
"""A block: its number, a tag such as `pending`, or None for the latest block."""


class CallResult(Protocol):
    """Outcome of a call without lasting effects."""

    @property
    def kind(self) -> str:
        """Kind of outcome: `returned`, `reverted`, `halted`, `invalid` or `timeout`."""

    @property
    def output(self) -> bytes: ...
    @property
    def gas_used(self) -> int: ...
    @property
    def reason(self) -> str: ...


class PlainResult(Struct, frozen=True):
    """A `CallResult` that Python code creates, not the Rust extension."""

    kind: str
    output: bytes
    gas_used: int = 0
    reason: str = ""


class CallSpec(Struct, frozen=True):
    """A call or a transaction before it has gas, nonce and price."""

    sender: bytes
    to: bytes | None
    """Target address; None for the creation of a contract."""
    data: bytes
    value: int = 0
    gas: int | None = None
    """Gas limit; if None, the gas limit of a block."""
    nonce: int | None = None


class SentTransaction(Struct, frozen=True):
    """A transaction that the chain has accepted."""

    hash: bytes
    created: bytes | None = None
    """Address of the contract that the transaction created."""
    succeeded: bool | None = None
    """Whether the transaction succeeded. None while the transaction is pending."""
    gas_used: int = 0
    output: bytes = b""
    """Revert data of a failed transaction."""
    position: tuple[bytes, int] | None = None
    """Hash of the block, and the index of the transaction in the block."""
    block_number: int | None = None


class AccountEdit(Struct, frozen=True):
    """New values of an account. A value that is None does not change."""

    address: bytes
    balance: int | None = None
    nonce: int | None = None
    code: bytes | None = None
    slots: Sequence[tuple[bytes, bytes]] | None = None


class Backend(Protocol):
    """The operations on which `Chain` is built."""

    def request(self, method: str, params: Sequence[Any]) -> Any:
        """Return the result of a JSON-RPC method; raises `RpcError`."""

    def call(self, spec: CallSpec, block: Block) -> CallResult: ...
    def send(self, spec: CallSpec) -> SentTransaction: ...
    def estimate_gas(self, spec: CallSpec) -> int: ...
    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None: ...
    def accounts(self) -> Sequence[bytes]: ...
    def private_key(self, address: bytes) -> bytes | None: ...
    def balance(self, address: bytes, block: Block) -> int: ...
    def nonce(self, address: bytes, block: Block) -> int: ...
    def code(self, address: bytes, block: Block) -> bytes: ...
    def storage(self, address: bytes, slot: bytes, block: Block) -> bytes: ...
    def chain_id(self) -> int: ...
    def block_number(self) -> int: ...
    def next_timestamp(self) -> int: ...
    def set_next_timestamp(self, timestamp: int) -> None: ...
    def mine(self, count: int, interval: int | None) -> None: ...
    def snapshot(self) -> int: ...
    def revert(self, snapshot: int) -> bool: ...
    def edit(self, change: AccountEdit) -> None: ...
    def impersonate(self, address: bytes, is_on: bool) -> None: ...
    def set_automine(self, is_on: bool) -> None: ...
    def close(self) -> None: ...


def block_tag(block: Block) -> str:
    """Return the JSON-RPC block parameter for a block."""
    return "latest" if block is None else hex(block) if isinstance(block, int) else block
