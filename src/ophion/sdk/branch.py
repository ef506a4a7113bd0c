"""`Branch`: a block of a chain as a `Backend`, read-only or with blocks of its own on top.

State is addressed by its root, so that a branch copies nothing: it holds a state and a header. Blocks on top are
executed in memory and never committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NoReturn

import orjson
from msgspec import Struct
from msgspec.structs import replace

from ophion.abi.addresses import checksum_address
from ophion.abi.interface import decode_error
from ophion.chain.ancestor_hashes import MAX_ANCESTORS, MAX_BYTES
from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_environment import EnvOverrides, block_env, chain_rules
from ophion.chain.chain import Chain as StoredChain
from ophion.consensus.engine import BlockPreferences
from ophion.dev.engine import DevEngine
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State, call, estimate_gas
from ophion.native.simulation import simulate_block
from ophion.native.tracing import TracedBlock, TraceKind, trace_transaction
from ophion.native.transactions import Transaction
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import ZERO_ADDRESS
from ophion.sdk.backend import AccountEdit, Block, CallResult, CallSpec, SentTransaction
from ophion.sdk.errors import ChainError, Reverted, TransactionRefused
from ophion.sdk.uncommitted_blocks import UncommittedBlock
from ophion.wallet.unsigned_transaction import LEGACY, UnsignedTransaction

_DEADLINE_S = 30.0
_PRIORITY_FEE = 1_000_000_000
_HASH_DIGITS = 2 + 2 * 32


class BranchBlock(UncommittedBlock):
    """A block of a branch, with the state before the block."""

    parent: State | None = None
    transaction: Transaction | None = None


class _Position(Struct, frozen=True):
    header: HashedHeader
    state: State
    blocks: tuple[BranchBlock, ...]
    timestamp: int | None


class Branch:
    """A block of a chain, and the blocks executed on top of it in memory."""

    def __init__(
        self,
        chain: StoredChain,
        header: HashedHeader,
        accounts: Sequence[bytes],
        is_merged: bool,
        is_writable: bool,
        ask_parent: Callable[[str, Sequence[Any]], Any] | None = None,
        check_parent: Callable[[], None] | None = None,
    ) -> None:
        self._chain = chain
        self._is_writable = is_writable
        self._is_merged = is_merged
        self._accounts = list(accounts)
        self._ask_parent = ask_parent
        self._check_parent = check_parent
        """Raises `ChainError` when the chain from which the branch starts is closed."""
        self._engine = DevEngine(chain.spec, equal_timestamps=False, is_merged=is_merged)
        self._rules = chain_rules(chain.spec, is_relaxed=True)
        self._lock = threading.RLock()
        self._position = _Position(header, chain.state(header.header), (), None)
        self._first = header.number
        self._saved: list[_Position] = []
        self._impersonated: set[bytes] = set(accounts)
        self._builder = BlockBuilder(chain, keeps_revert_data=True)
        self._env: tuple[bytes, BlockEnv] | None = None
        """Cached environment of calls at one block, with the hash of this block."""

    def branch(self, block: int | None, is_writable: bool) -> Branch:
        """Return a branch that starts at a block of this branch (default: the latest) and shares all blocks up to that
        block.
        """
        position = self._position
        number = position.header.number if block is None else block
        if number <= self._first:
            header = self._chain.canonical(number) if number >= 0 else None
        else:
            header = self._chain.canonical(self._first)
        if header is None or number > position.header.number:
            raise ChainError(f"There is no block {block}; the latest is {position.header.number}.")
        made = Branch(
            self._chain, header, self._accounts, self._is_merged, is_writable, self._ask_parent, self._check_parent
        )
        if number == position.header.number:
            made._position = replace(position, timestamp=None)
        elif number > self._first:
            kept = position.blocks[: number - self._first]
            made._position = _Position(kept[-1].header, kept[-1].state, kept, None)
        made._first = min(number, self._first)
        return made

    # --- calls ----------------------------------------------------------------------------------

    def call(self, spec: CallSpec, block: Block = None) -> CallResult:
        state, env = self._state_and_env(block)
        return call(state, env, self._request(spec), (), _DEADLINE_S)

    def estimate_gas(self, spec: CallSpec) -> int:
        state, env = self._state_and_env(None)
        request = self._request(spec)
        found, outcome = estimate_gas(state, env, request, (), self._gas(spec), _DEADLINE_S)
        if not found:
            raise Reverted(outcome.reason or outcome.kind, decode_error(outcome.output), gas_used=outcome.gas_used)
        return found

    def latest(self) -> tuple[State, BlockEnv, int]:
        """Return state, environment of calls and gas limit of the latest block."""
        state, env = self._state_and_env(None)
        return state, env, self._position.header.header.gas_limit

    def _gas(self, spec: CallSpec) -> int:
        return self._position.header.header.gas_limit if spec.gas is None else spec.gas

    def _request(self, spec: CallSpec) -> CallRequest:
        return CallRequest(sender=spec.sender, to=spec.to, gas=self._gas(spec), value=spec.value, input=spec.data)

    def _state_and_env(self, block: Block) -> tuple[State, BlockEnv]:
        header, state = self._at(block)
        known = self._env
        if known is None or known[0] != header.hash:
            known = self._env = header.hash, self._call_env(header)
        return state, known[1]

    def _call_env(self, header: HashedHeader) -> BlockEnv:
        fields = header.header
        free = EnvOverrides(base_fee=None if fields.base_fee_per_gas is None else 0)
        above = fields.number - self._first - 1
        hashes = self._position.blocks[above].parent_hashes if above >= 0 else None
        return block_env(self._chain.spec, self._rules, fields, fields.coinbase, hashes, free)

    def _at(self, block: Block) -> tuple[HashedHeader, State]:
        if self._check_parent is not None:
            self._check_parent()
        position = self._position
        if block is None or block in ("latest", "pending"):
            return position.header, position.state
        number = self._number(block)
        if number == position.header.number:
            return position.header, position.state
        if self._first < number < position.header.number:
            # return the parent state of the next block, because it includes the edits that were made after this block
            state = position.blocks[number - self._first].parent
            assert state is not None, "set for each block"
            return position.blocks[number - self._first - 1].header, state
        header = self._chain.canonical(number) if 0 <= number <= self._first else None
        if header is None:
            raise ChainError(f"There is no block {block} on this branch; the latest is {position.header.number}.")
        return header, self._chain.state(header.header)

    def _number(self, block: int | str) -> int:
        if isinstance(block, int):
            return block
        if block == "earliest":
            return 0
        if not block.startswith("0x") or len(block) == _HASH_DIGITS:
            raise ChainError(f"A branch has no block '{block}'. Use a number, 'latest' or 'earliest'.")
        return int(block, 16)

    # --- transactions ---------------------------------------------------------------------------

    def send(self, spec: CallSpec) -> SentTransaction:
        with self._lock:
            self._check_writable()
            draft = self._draft()
            transaction = self._unsigned(spec, draft)
            block = self._add(draft, transaction)
        succeeded, gas_used, output = block.built.execution.receipt_statuses()[0]
        from ophion.sdk.embedded_node import contract_address

        created = contract_address(spec.sender, transaction.nonce) if spec.to is None else None
        header = block.header
        return SentTransaction(
            transaction.hash, created, succeeded, gas_used, output, (header.hash, 0), header.header.number
        )

    def _unsigned(self, spec: CallSpec, draft: Header) -> Transaction:
        position, sender = self._position, spec.sender
        if sender not in self._impersonated:
            raise TransactionRefused(
                f"{checksum_address(sender)} is not an account of this branch. Use chain.impersonate(address)."
            )
        base_fee = draft.base_fee_per_gas
        chain_id = self._chain.spec.chain_id
        nonce = position.state.nonce(sender) if spec.nonce is None else spec.nonce
        if base_fee is not None:
            fee = 2 * base_fee + _PRIORITY_FEE
            return Transaction.dynamic_fee(
                None, sender, chain_id, nonce, self._gas(spec), spec.to, spec.value, spec.data, fee, _PRIORITY_FEE
            )
        unsigned = UnsignedTransaction(
            type=LEGACY,
            chain_id=chain_id,
            nonce=nonce,
            gas=self._gas(spec),
            to=spec.to,
            value=spec.value,
            input=spec.data,
            gas_price=_PRIORITY_FEE,
        )
        # use the sender as a fake signature, so that transactions of different senders have different hashes
        signature = sender.rjust(32, b"\0") + b"\1".rjust(32, b"\0") + b"\0"
        return Transaction.impersonated(unsigned.with_signature(signature), sender)

    def _draft(self) -> Header:
        preferences = BlockPreferences(timestamp=self.next_timestamp(), author=ZERO_ADDRESS)
        return self._engine.prepare(self._position.header, preferences, self._chain)

    def _add(self, draft: Header, transaction: Transaction | None) -> BranchBlock:
        position, hashes = self._position, self._child_hashes()
        candidates = () if transaction is None else (transaction,)
        built = self._builder.fill(draft, position.state, candidates, _DEADLINE_S, draft.coinbase, hashes)
        if built.body.transaction_count < len(candidates):
            reason = built.skipped[0][1] if built.skipped else "it does not fit a block, or its nonce is too high"
            raise TransactionRefused(f"The transaction is invalid: {reason}")
        header, state = self._engine.hashed(built.header), built.state.merged()
        added = BranchBlock(header, built, state, hashes, parent=position.state, transaction=transaction)
        self._position = _Position(header, state, (*position.blocks, added), None)
        return added

    def _child_hashes(self) -> bytes | None:
        """Return the ancestor hashes of the next block. None if the branch has no blocks, so that all ancestors are in
        the database.
        """
        blocks = self._position.blocks
        if not blocks:
            return None
        parents = blocks[-1].parent_hashes
        return (blocks[-1].header.hash + (self._ancestors if parents is None else parents))[:MAX_BYTES]

    @cached_property
    def _ancestors(self) -> bytes:
        """Hashes of the blocks below the branch, newest first, for BLOCKHASH."""
        last = max(-1, self._first - MAX_ANCESTORS)
        found = (self._chain.store.canonical_hash(number) for number in range(self._first, last, -1))
        return b"".join(one for one in found if one is not None)

    def _check_writable(self) -> None:
        if self._check_parent is not None:
            self._check_parent()
        if not self._is_writable:
            raise ChainError("This view is read-only. Use chain.fork_at(block) for a branch that can be changed.")

    # --- JSON-RPC -------------------------------------------------------------------------------

    def request(self, method: str, params: Sequence[Any]) -> Any:
        """Answer the few methods that a branch needs. A branch without blocks of its own passes other methods to the
        chain from which it starts, if there is one.
        """
        if method == "debug_traceTransaction" and (found := self._find(params[0])) is not None:
            return self._traced(found)
        if method == "eth_blockNumber":
            return hex(self.block_number())
        if self._ask_parent is None or self._position.blocks:
            raise ChainError(f"{method} is not available on a branch. Use the methods of the chain object.")
        return self._ask_parent(method, self._up_to_here(method, params))

    def _up_to_here(self, method: str, params: Sequence[Any]) -> Sequence[Any]:
        """Return the parameters of a request, with block numbers limited to this branch's latest block."""
        if method == "eth_getBlockByNumber" and params:
            return [self._limited(params[0]), *params[1:]]
        if method == "eth_getLogs" and params and isinstance(params[0], Mapping) and "blockHash" not in params[0]:
            return [{**params[0], "toBlock": self._limited(params[0].get("toBlock"), is_last=True)}]
        return params

    def _limited(self, block: Any, is_last: bool = False) -> Any:
        latest = self.block_number()
        if block in (None, "latest", "pending", "safe", "finalized"):
            return hex(latest)
        number = self._number(block) if isinstance(block, int | str) else 0
        if number <= latest:
            return block
        if is_last:
            return hex(latest)
        raise ChainError(f"There is no block {number}; the latest is {latest}.")

    def _find(self, hash: str) -> BranchBlock | None:
        raw = bytes.fromhex(hash[2:])
        blocks = (one for one in self._position.blocks if one.transaction is not None)
        return next((one for one in blocks if one.transaction is not None and one.transaction.hash == raw), None)

    def _traced(self, block: BranchBlock) -> Any:
        assert block.parent is not None, "set for each block"
        traced = TracedBlock(parent=block.parent, env=block.built.env, body=block.built.body, hash=block.header.hash)
        stream = trace_transaction(traced, 0, TraceKind.calls(with_log=True), _DEADLINE_S)
        parts = []
        while (part := stream.next()) is not None:
            parts.append(part)
        return orjson.loads(b"".join(parts))

    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None:
        text = None if (block := self._find("0x" + sent.hash.hex())) is None else block.receipt_json()
        found: Mapping[str, Any] | None = None if text is None else orjson.loads(text)
        return found

    # --- state ----------------------------------------------------------------------------------

    def accounts(self) -> Sequence[bytes]:
        return self._accounts

    def private_key(self, address: bytes) -> bytes | None:
        return None

    def balance(self, address: bytes, block: Block = None) -> int:
        return self._at(block)[1].balance(address)

    def nonce(self, address: bytes, block: Block = None) -> int:
        return self._at(block)[1].nonce(address)

    def code(self, address: bytes, block: Block = None) -> bytes:
        return self._at(block)[1].code(address)

    def storage(self, address: bytes, slot: bytes, block: Block = None) -> bytes:
        return self._at(block)[1].storage(address, slot)

    def chain_id(self) -> int:
        return self._chain.spec.chain_id

    def block_number(self) -> int:
        return self._position.header.number

    # --- cheat codes ----------------------------------------------------------------------------

    def next_timestamp(self) -> int:
        chosen = self._position.timestamp
        return self._position.header.timestamp + 1 if chosen is None else chosen

    def set_next_timestamp(self, timestamp: int) -> None:
        with self._lock:
            self._check_writable()
            if timestamp <= self._position.header.timestamp:
                raise ChainError(f"{timestamp} is not after the latest block ({self._position.header.timestamp}).")
            self._position = replace(self._position, timestamp=timestamp)

    def mine(self, count: int = 1, interval: int | None = None) -> None:
        with self._lock:
            self._check_writable()
            for number in range(count):
                if interval is not None and number:
                    self.set_next_timestamp(self._position.header.timestamp + interval)
                self._add(self._draft(), None)

    def snapshot(self) -> int:
        with self._lock:
            self._saved.append(self._position)
            return len(self._saved) - 1

    def revert(self, snapshot: int) -> bool:
        with self._lock:
            if not 0 <= snapshot < len(self._saved):
                return False
            self._position = self._saved[snapshot]
            del self._saved[snapshot:]
            return True

    def edit(self, change: AccountEdit) -> None:
        override = AccountOverride(
            address=change.address,
            balance=change.balance,
            nonce=change.nonce,
            code=change.code,
            state_diff=change.slots,
        )
        with self._lock:
            self._check_writable()
            state, env = self._state_and_env(None)
            edited = simulate_block(
                state,
                env,
                [],
                overrides=[override],
                withdrawals=None,
                rewards=[],
                validation=False,
                transfers=False,
                gas_left=self._position.header.header.gas_limit,
                deadline_s=_DEADLINE_S,
            )
            self._position = replace(self._position, state=edited.execution.state)

    def impersonate(self, address: bytes, is_on: bool) -> None:
        self._check_writable()
        (self._impersonated.add if is_on else self._impersonated.discard)(address)

    def set_automine(self, is_on: bool) -> NoReturn:
        raise ChainError("A branch mines each transaction at once.")

    def close(self) -> None:
        """Release the states of this branch. The chain from which the branch starts stays open."""
        self._saved.clear()
