"""`EmbeddedNode`: the parts of a development node, without listeners and without threads.

It is built by `node/build.py` like every node. Its lanes run their jobs in the calling thread. Its time does not follow
the wall clock: each block is one second after its parent, so that runs are repeatable.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import finalize

import orjson
from msgspec.structs import replace

from ophion.abi.addresses import checksum_address
from ophion.chainspec.genesis import Genesis
from ophion.errors import PoolRejected, RpcError
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.executor import AccountOverride, BlockEnv, CallRequest, State, call, estimate_gas
from ophion.native.transactions import Transaction
from ophion.node.build import Core, build_core
from ophion.node.config import NodeConfig
from ophion.primitives import rlp
from ophion.primitives.types import BlockTag, Hash32
from ophion.runtime.clock import SystemClock, SystemEntropy
from ophion.runtime.lanes import InlineLanes
from ophion.sdk.backend import AccountEdit, Block, CallResult, CallSpec, SentTransaction
from ophion.sdk.database import close_database, open_database
from ophion.sdk.errors import ChainError, TransactionRefused
from ophion.sdk.loop_runner import LoopRunner
from ophion.wallet.unsigned import DYNAMIC_FEE, LEGACY, UnsignedTransaction

if TYPE_CHECKING:
    from ophion.dev.node import DevNode
    from ophion.sdk.branch import Branch
    from ophion.sdk.rpc_dispatch import RpcDispatch

_CALL_DEADLINE_S = 30.0
_PRIORITY_FEE = 1_000_000_000
_SHARES_OF_FAILING = 16
"""Share of a block for a pending transaction that would fail now: others must fit beside it."""


class ChainClock:
    """A clock whose wall time stands still. Monotonic time is real."""

    def __init__(self, wall: float) -> None:
        self._wall = wall

    def now(self) -> float:
        return self._wall

    monotonic = staticmethod(SystemClock().monotonic)


class EmbeddedNode:
    """A `Backend` in this process."""

    def __init__(
        self, config: NodeConfig, genesis: Genesis, path: Path | None, clock: ChainClock | SystemClock, interval: int
    ) -> None:
        self.config = config
        self.genesis = genesis
        self._is_on_disk = path is not None
        self.runner = LoopRunner()
        self.store, release = open_database(path)
        self._finalizer = finalize(self, close_database, self.runner, self.store, release)
        self.lanes = InlineLanes()
        self.clock = clock
        self.node_key = PrivateKey(b"\1" * 32)  # a public test key: this node has no peers
        self.core: Core = self.runner.run(self._build())
        dev = self.core.dev
        assert dev is not None, "the configuration enables the cheat codes"
        self.dev: DevNode = dev
        if isinstance(clock, ChainClock):
            dev.clock.interval = interval
        self._keys = {key.address: key for key in (PrivateKey(one.private_key) for one in config.accounts)}
        self._dispatch: RpcDispatch | None = None
        self._creation = threading.RLock()

    async def _build(self) -> Core:
        entropy = SystemEntropy()
        return build_core(self.config, self.genesis, self.store, self.node_key, self.lanes, self.clock, entropy)

    # --- calls ----------------------------------------------------------------------------------

    def call(self, spec: CallSpec, block: Block = None) -> CallResult:
        self.runner.check()
        state, env = self._state_and_env(block)
        gas = self.core.queries.head.header.gas_limit if spec.gas is None else spec.gas
        request = CallRequest(sender=spec.sender, to=spec.to, gas=gas, value=spec.value, input=spec.data)
        return call(state, env, request, (), _CALL_DEADLINE_S)

    def estimate_gas(self, spec: CallSpec) -> int:
        state, env = self._state_and_env(None)
        gas = self.core.queries.head.header.gas_limit if spec.gas is None else spec.gas
        request = CallRequest(sender=spec.sender, to=spec.to, gas=gas, value=spec.value, input=spec.data)
        found, outcome = estimate_gas(state, env, request, (), gas, _CALL_DEADLINE_S)
        if not found:
            from ophion.abi.interface import decode_error
            from ophion.sdk.errors import Reverted

            raise Reverted(outcome.reason or outcome.kind, decode_error(outcome.output), gas_used=outcome.gas_used)
        return found

    def _state_and_env(self, block: Block) -> tuple[State, BlockEnv]:
        queries = self.core.queries
        if block is None or block == "latest":
            view = queries.latest
            return view.state, view.free_env
        if block == "pending":
            return queries.head_state, queries.next_block().env
        found = queries.view(_reference(block))
        if found is None:
            raise ChainError(f"There is no block {block}; the latest is {queries.head_number}.")
        return found.state, found.free_env

    # --- transactions ---------------------------------------------------------------------------

    def send(self, spec: CallSpec) -> SentTransaction:
        return self.runner.run(self._send(spec))

    async def _send(self, spec: CallSpec) -> SentTransaction:
        transaction = self._signed(spec)
        dev, pool = self.dev, self.core.pool
        created = None if spec.to is not None else contract_address(spec.sender, transaction.nonce)
        if dev.sealer.is_automatic and not len(pool):
            built = await dev.add_block(transaction)
            if not built.skipped:
                succeeded, gas_used, output = built.execution.receipt_statuses()[0]
                head = self.core.chain.head
                position = head.hash, 0
                return SentTransaction(
                    transaction.hash, created, succeeded, gas_used, output, position, head.header.number
                )
        # the transaction was not mined: add it to the pool, which stores it or raises the reason
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

    def _signed(self, spec: CallSpec) -> Transaction:
        queries, pool, sender = self.core.queries, self.core.pool, spec.sender
        nonce = spec.nonce
        if nonce is None:
            nonce = pool.next_nonce(sender) if len(pool) else None
        if nonce is None:
            nonce = queries.head_state.nonce(sender)
        header = queries.next_block().header
        base_fee = header.base_fee_per_gas
        chain_id = self.core.chain.spec.chain_id
        gas = self._gas_of(spec, header.gas_limit) if spec.gas is None else spec.gas
        unsigned = UnsignedTransaction(
            type=LEGACY if base_fee is None else DYNAMIC_FEE,
            chain_id=chain_id,
            nonce=nonce,
            gas=gas,
            to=spec.to,
            value=spec.value,
            input=spec.data,
            gas_price=_PRIORITY_FEE,
            max_fee_per_gas=2 * (base_fee or 0) + _PRIORITY_FEE,
            max_priority_fee_per_gas=_PRIORITY_FEE,
        )
        key = self._keys.get(sender)
        if key is not None:
            # signed here, so the sender is known and need not be recovered
            return Transaction.impersonated(unsigned.signed_by(key), sender)
        if self.dev.impersonates(sender):
            return self.dev.unsigned(unsigned, sender)
        raise TransactionRefused(
            f"There is no key of {checksum_address(sender)}. Use one of chain.accounts, or chain.impersonate(address)."
        )

    def _gas_of(self, spec: CallSpec, block_limit: int) -> int:
        """Return a gas limit: that of the block if the transaction is mined alone, otherwise twice the estimate."""
        if self.dev.sealer.is_automatic:
            return block_limit
        state, env = self._state_and_env("pending")
        request = CallRequest(sender=spec.sender, to=spec.to, gas=block_limit, value=spec.value, input=spec.data)
        found, _ = estimate_gas(state, env, request, (), block_limit, _CALL_DEADLINE_S)
        return min(block_limit, found * 2) if found else block_limit // _SHARES_OF_FAILING

    def receipt(self, sent: SentTransaction) -> Mapping[str, Any] | None:
        self.runner.check()
        if sent.position is None:
            text = self.store.receipt_json(sent.hash, True)
        else:
            text = self.store.receipt_at_json(*sent.position, True)
        if text is None:
            return None
        found: Mapping[str, Any] = orjson.loads(text)
        return found

    # --- JSON-RPC -------------------------------------------------------------------------------

    @property
    def dispatch(self) -> RpcDispatch:
        """The methods of the node; created at first use."""
        self.runner.check()
        # a lock of its own: the runner's lock may be needed by the helper thread that this thread waits for
        with self._creation:
            if self._dispatch is None:
                # imported here: a chain that is used by its own methods starts faster
                from ophion.sdk.rpc_dispatch import RpcDispatch

                self._dispatch = RpcDispatch(self)
        return self._dispatch

    def request(self, method: str, params: Sequence[Any]) -> Any:
        reply = orjson.loads(self.dispatch.answer_request(method, params))
        error = reply.get("error")
        if error is not None:
            raise RpcError(error["code"], error["message"], error.get("data"))
        return reply["result"]

    # --- state ----------------------------------------------------------------------------------

    def accounts(self) -> Sequence[bytes]:
        return list(self._keys)

    def private_key(self, address: bytes) -> bytes | None:
        found = next((one for one in self.config.accounts if one.address == address), None)
        return None if found is None else found.private_key

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
        return self.core.queries.head_state if block is None else self._state_and_env(block)[0]

    def branch(self, block: int | None, is_writable: bool) -> Branch:
        """Return a branch at a block, the latest by default."""
        # imported here: few chains need it
        from ophion.sdk.branch import Branch

        self.runner.check()
        stored, latest = self.core.chain, self.core.queries.head_number
        number = latest if block is None else block
        header = stored.canonical(number) if 0 <= number <= latest else None
        if header is None:
            raise ChainError(f"There is no block {block}; the latest is {latest}.")
        return Branch(stored, header, self.accounts(), self.config.dev.is_merged, is_writable, self.request)

    def chain_id(self) -> int:
        self.runner.check()
        return self.core.chain.spec.chain_id

    def block_number(self) -> int:
        self.runner.check()
        return self.core.queries.head_number

    # --- cheat codes ----------------------------------------------------------------------------

    def next_timestamp(self) -> int:
        self.runner.check()
        return max(int(self.dev.clock.now()), self.core.queries.head.timestamp)

    def set_next_timestamp(self, timestamp: int) -> None:
        self.runner.check()
        self.runner.run(_synchronous(partial(self.dev.set_next_timestamp, timestamp)))

    def mine(self, count: int = 1, interval: int | None = None) -> None:
        self.runner.run(self._mine(count, interval))

    async def _mine(self, count: int, interval: int | None) -> None:
        clock, usual = self.dev.clock, self.dev.clock.interval
        if interval is not None and usual is not None:
            clock.interval, interval = interval, None
        try:
            await self.dev.mine(count, interval)
        finally:
            clock.interval = usual

    def snapshot(self) -> int:
        return self.runner.run(self.dev.snapshot())

    def revert(self, snapshot: int) -> bool:
        return self.runner.run(self.dev.revert(snapshot))

    def edit(self, change: AccountEdit) -> None:
        override = AccountOverride(
            address=change.address,
            balance=change.balance,
            nonce=change.nonce,
            code=change.code,
            state_diff=change.slots,
        )
        self.runner.run(self.dev.edit(override))

    def impersonate(self, address: bytes, is_on: bool) -> None:
        self.runner.check()
        (self.dev.impersonated.add if is_on else self.dev.impersonated.discard)(address)

    def set_automine(self, is_on: bool) -> None:
        self.runner.run(_synchronous(partial(self.dev.set_automine, is_on)))
        self.runner.run(self.dev.mine_pending())

    def close(self) -> None:
        """Close loop and database; a temporary database is deleted."""
        if self._dispatch is not None and self.runner.is_owner:
            self._dispatch.close()
        self._dispatch = None
        self._finalizer()
        # break the reference cycle now; otherwise states keep the database open until the garbage collector runs
        for part in ("core", "dev", "lanes"):
            self.__dict__.pop(part, None)
        if self._is_on_disk:
            gc.collect()


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
