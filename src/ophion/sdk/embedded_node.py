"""`EmbeddedNode`: the operations of a development node for synchronous callers.

A transaction of a chain in memory takes the fast path: it is executed in the calling thread, without event loop, pool
and database (uncommitted_blocks.py). Every other operation first commits these blocks and then runs on the event loop.
`tests/unit/sdk/test_uncommitted_blocks.py` compares both paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from msgspec.structs import replace

from ophion.abi.addresses import checksum_address
from ophion.errors import PoolRejected, RpcError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State, call, estimate_gas
from ophion.native.transactions import Transaction
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.types import BlockTag, Hash32
from ophion.sdk.backend import AccountEdit, Block, CallResult, CallSpec, SentTransaction
from ophion.sdk.embedded_core import EmbeddedCore
from ophion.sdk.errors import ChainError, TransactionRefused
from ophion.wallet.unsigned_transaction import LEGACY, UnsignedTransaction

if TYPE_CHECKING:
    from ophion.sdk.branch import Branch

_CALL_DEADLINE_S = 30.0
_PRIORITY_FEE = 1_000_000_000
_SHARES_OF_FAILING = 16
"""If the gas estimate of a pending transaction fails, its gas limit is the block gas limit divided by this number."""


class EmbeddedNode(EmbeddedCore):
    """A `Backend` in this process."""

    # --- calls ----------------------------------------------------------------------------------

    def call(self, spec: CallSpec, block: Block = None) -> CallResult:
        self.runner.check()
        state, env = self._state_and_env(block)
        gas = self._blocks.head.header.gas_limit if spec.gas is None else spec.gas
        request = CallRequest(sender=spec.sender, to=spec.to, gas=gas, value=spec.value, input=spec.data)
        return call(state, env, request, (), _CALL_DEADLINE_S)

    def estimate_gas(self, spec: CallSpec) -> int:
        self.runner.check()
        state, env = self._state_and_env(None)
        gas = self._blocks.head.header.gas_limit if spec.gas is None else spec.gas
        request = CallRequest(sender=spec.sender, to=spec.to, gas=gas, value=spec.value, input=spec.data)
        found, outcome = estimate_gas(state, env, request, (), gas, _CALL_DEADLINE_S)
        if not found:
            from ophion.abi.interface import decode_error
            from ophion.sdk.errors import Reverted

            raise Reverted(outcome.reason or outcome.kind, decode_error(outcome.output), gas_used=outcome.gas_used)
        return found

    def _state_and_env(self, block: Block) -> tuple[State, BlockEnv]:
        queries, blocks = self.core.queries, self._blocks
        if block is None or block == "latest":
            top = blocks.top
            if top is not None:
                return top.state, blocks.call_env(top)
            view = queries.latest
            return view.state, view.free_env
        if isinstance(block, int):
            uncommitted = blocks.find(block)
            if uncommitted is not None:
                return uncommitted.state, blocks.call_env(uncommitted)
        else:
            self.commit_blocks()
        if block == "pending":
            return queries.head_state, queries.next_block().env
        found = queries.view(_reference(block))
        if found is None:
            raise ChainError(f"There is no block {block}; the latest is {queries.head_number}.")
        return found.state, found.free_env

    # --- transactions ---------------------------------------------------------------------------

    def send(self, spec: CallSpec) -> SentTransaction:
        self.runner.check()
        with self._lock:
            sent = self._send_directly(spec) if self._is_direct else None
        # the slow path reports why a transaction cannot be included
        return self.run(self._send(spec)) if sent is None else sent

    def _send_directly(self, spec: CallSpec) -> SentTransaction | None:
        blocks, sender = self._blocks, spec.sender
        draft = blocks.draft()
        nonce = blocks.state.nonce(sender) if spec.nonce is None else spec.nonce
        transaction = self._signed(spec, nonce, draft.gas_limit if spec.gas is None else spec.gas, draft)
        block = blocks.add(draft, transaction)
        if block is None:
            return None
        if blocks.is_full:
            self.commit_blocks()
        succeeded, gas_used, output = block.built.execution.receipt_statuses()[0]
        created = None if spec.to is not None else contract_address(sender, nonce)
        position = block.header.hash, 0
        return SentTransaction(
            transaction.hash, created, succeeded, gas_used, output, position, block.header.header.number
        )

    async def _send(self, spec: CallSpec) -> SentTransaction:
        dev, pool, queries = self.dev, self.core.pool, self.core.queries
        nonce = spec.nonce
        if nonce is None:
            nonce = pool.next_nonce(spec.sender) if len(pool) else None
        if nonce is None:
            nonce = queries.head_state.nonce(spec.sender)
        header = queries.next_block().header
        gas = self._gas_of(spec, header.gas_limit) if spec.gas is None else spec.gas
        transaction = self._signed(spec, nonce, gas, header)
        created = None if spec.to is not None else contract_address(spec.sender, nonce)
        if dev.sealer.is_automatic and not len(pool):
            built = await dev.add_block(transaction)
            if built.body.transaction_count:
                succeeded, gas_used, output = built.execution.receipt_statuses()[0]
                head = self.core.chain.head
                position = head.hash, 0
                return SentTransaction(
                    transaction.hash, created, succeeded, gas_used, output, position, head.header.number
                )
        # the transaction was not mined, so add it to the pool, which stores it, or raises an error with the reason
        try:
            await pool.send_decoded(transaction)
        except PoolRejected as error:
            raise TransactionRefused(str(error)) from error
        await dev.mine_pending()
        return self._position(SentTransaction(transaction.hash, created))

    def _position(self, sent: SentTransaction) -> SentTransaction:
        found = self.store.transaction_position(sent.hash)
        if found is None:
            return sent
        block, number, index = found
        text = self.store.receipt_json(sent.hash, True)
        receipt = {} if text is None else orjson.loads(text)
        return replace(
            sent,
            succeeded=receipt.get("status") == "0x1",
            gas_used=int(receipt.get("gasUsed", "0x0"), 16),
            output=bytes.fromhex((receipt.get("revertReason") or "0x")[2:]),
            position=(block, index),
            block_number=number,
        )

    def _signed(self, spec: CallSpec, nonce: int, gas: int, header: Header) -> Transaction:
        """Return the transaction, signed with the key of its sender. An impersonated sender needs no key; for any other
        sender without a key, raises `TransactionRefused`.
        """
        sender, base_fee = spec.sender, header.base_fee_per_gas
        secret, chain_id = self._secrets.get(sender), self.core.chain.spec.chain_id
        if secret is None and not self.dev.impersonates(sender):
            raise TransactionRefused(
                f"There is no key of {checksum_address(sender)}."
                " Use one of chain.accounts, or chain.impersonate(address)."
            )
        if base_fee is not None:
            max_fee = 2 * base_fee + _PRIORITY_FEE
            return Transaction.dynamic_fee(
                secret, sender, chain_id, nonce, gas, spec.to, spec.value, spec.data, max_fee, _PRIORITY_FEE
            )
        unsigned = UnsignedTransaction(
            type=LEGACY,
            chain_id=chain_id,
            nonce=nonce,
            gas=gas,
            to=spec.to,
            value=spec.value,
            input=spec.data,
            gas_price=_PRIORITY_FEE,
        )
        if secret is None:
            return self.dev.unsigned(unsigned, sender)
        return Transaction.impersonated(unsigned.signed_by(PrivateKey(secret)), sender)

    def _gas_of(self, spec: CallSpec, block_limit: int) -> int:
        """Return the gas limit for a transaction: the block gas limit if the transaction is mined alone, otherwise
        twice the estimate.
        """
        if self.dev.sealer.is_automatic:
            return block_limit
        queries = self.core.queries
        state, env = queries.head_state, queries.next_block().env
        request = CallRequest(sender=spec.sender, to=spec.to, gas=block_limit, value=spec.value, input=spec.data)
        found, _ = estimate_gas(state, env, request, (), block_limit, _CALL_DEADLINE_S)
        return min(block_limit, found * 2) if found else block_limit // _SHARES_OF_FAILING

    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None:
        self.runner.check()
        block = None if sent.position is None else self._blocks.by_hash(sent.position[0])
        if block is not None:
            text = block.receipt_json()
        elif sent.position is None:
            text = self.store.receipt_json(sent.hash, True)
        else:
            text = self.store.receipt_at_json(*sent.position, True)
        if text is None:
            return None
        found: Mapping[str, Any] = orjson.loads(text)
        return found

    # --- JSON-RPC -------------------------------------------------------------------------------

    def request(self, method: str, params: Sequence[Any]) -> Any:
        reply = orjson.loads(self.dispatch.answer_request(method, params))
        error = reply.get("error")
        if error is not None:
            raise RpcError(error["code"], error["message"], error.get("data"))
        return reply["result"]

    # --- state ----------------------------------------------------------------------------------

    def accounts(self) -> Sequence[bytes]:
        return list(self._secrets)

    def private_key(self, address: bytes) -> bytes | None:
        return self._secrets.get(address)

    def add_key(self, secret: bytes) -> bytes:
        """Let the chain sign for one more account. Returns the address of the account."""
        address = PrivateKey(secret).address
        self._secrets[address] = secret
        accounts = self.dispatch.interface.context.accounts
        assert accounts is not None, "a development chain has accounts"
        accounts.add(PrivateKey(secret))
        return address

    def balance(self, address: bytes, block: Block = None) -> int:
        return self._state(block).balance(address)

    def nonce(self, address: bytes, block: Block = None) -> int:
        return self._state(block).nonce(address)

    def code(self, address: bytes, block: Block = None) -> bytes:
        return self._state(block).code(address)

    def storage(self, address: bytes, slot: bytes, block: Block = None) -> bytes:
        return self._state(block).storage(address, slot)

    def _state(self, block: Block) -> State:
        self.runner.check()
        return self._blocks.state if block is None else self._state_and_env(block)[0]

    def latest(self) -> tuple[State, BlockEnv, int]:
        """Return state, environment of calls and gas limit of the latest block."""
        self.runner.check()
        state, env = self._state_and_env(None)
        return state, env, self._blocks.head.header.gas_limit

    def branch(self, block: int | None, is_writable: bool) -> Branch:
        """Return a branch at a block, the latest by default."""
        # lazy import: few chains need this module
        from ophion.sdk.branch import Branch

        self.runner.check()
        self.commit_blocks()
        stored, latest = self.core.chain, self.core.queries.head_number
        number = latest if block is None else block
        header = stored.canonical(number) if 0 <= number <= latest else None
        if header is None:
            raise ChainError(f"There is no block {block}; the latest is {latest}.")
        return Branch(
            stored, header, self.accounts(), self.config.dev.is_merged, is_writable, self.request, self.runner.check
        )

    def chain_id(self) -> int:
        self.runner.check()
        return self.core.chain.spec.chain_id

    def block_number(self) -> int:
        self.runner.check()
        return self._blocks.head.header.number

    # --- cheat codes ----------------------------------------------------------------------------

    def next_timestamp(self) -> int:
        self.runner.check()
        return max(int(self.dev.clock.now()), self._blocks.head.timestamp)

    def set_next_timestamp(self, timestamp: int) -> None:
        self.runner.check()
        self.run(_synchronous(partial(self.dev.set_next_timestamp, timestamp)))

    def mine(self, count: int = 1, interval: int | None = None) -> None:
        self.run(self._mine(count, interval))

    async def _mine(self, count: int, interval: int | None) -> None:
        clock, default_interval = self.dev.clock, self.dev.clock.interval
        if interval is not None and default_interval is not None:
            clock.interval, interval = interval, None
        try:
            await self.dev.mine(count, interval)
        finally:
            clock.interval = default_interval

    def snapshot(self) -> int:
        self.runner.check()
        with self._lock:
            if self._is_direct:
                saved = self._blocks.save()
                self._saved_runs[saved] = self._runs
                return saved
        return self.run(self.dev.snapshot())

    def revert(self, snapshot: int) -> bool:
        self.runner.check()
        with self._lock:
            saved = self.dev.saved(snapshot)
            # if the event loop has not run since the snapshot, only blocks and clock have changed: take the fast path
            is_unchanged = self._saved_runs.pop(snapshot, None) == self._runs
            if saved is not None and is_unchanged and self._is_direct and self._blocks.revert(snapshot, saved):
                return True
        return self.run(self.dev.revert(snapshot))

    def edit(self, change: AccountEdit) -> None:
        self.runner.check()
        override = AccountOverride(
            address=change.address,
            balance=change.balance,
            nonce=change.nonce,
            code=change.code,
            state_diff=change.slots,
        )
        self.run(self.dev.edit(override))

    def impersonate(self, address: bytes, is_on: bool) -> None:
        self.runner.check()
        (self.dev.impersonated.add if is_on else self.dev.impersonated.discard)(address)

    def set_automine(self, is_on: bool) -> None:
        self.runner.check()
        self.run(_synchronous(partial(self.dev.set_automine, is_on)))
        self.run(self.dev.mine_pending())


async def _synchronous(work: Any) -> Any:
    return work()


def contract_address(sender: bytes, nonce: int) -> bytes:
    """Return the address of the contract that a transaction creates."""
    return keccak256(rlp.encode([sender, rlp.scalar(nonce)]))[12:]


def _reference(block: int | str) -> int | BlockTag | Hash32:
    if isinstance(block, int):
        return block
    if block.startswith("0x"):
        return bytes.fromhex(block[2:]) if len(block) == 66 else int(block, 16)
    try:
        return BlockTag(block)
    except ValueError:
        raise ChainError(
            f"'{block}' is not a block: use a number, a hash, or 'latest', 'pending', 'earliest'"
        ) from None
