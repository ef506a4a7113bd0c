"""Repeats the transactions of a block of another chain, up to one of them, as the first block of a fork."""

from __future__ import annotations

from typing import Any

from ophion.dev.block_json import decode_word
from ophion.dev.cheat_codes import DevNode
from ophion.dev.fork.remote_state import Fork
from ophion.errors import ForkSourceError
from ophion.native.exceptions import NativeError
from ophion.native.transactions import Transaction, decode_transactions
from ophion.primitives.hexcodec import data
from ophion.runtime.blocking_json_rpc import Failure


async def replay(dev: DevNode, transaction: bytes) -> None:
    """Repeat the block of the source chain that contains `transaction`: make a block with its transactions, in the same
    order, up to and including `transaction`.

    The new block has the time, the base fee and `prevRandao` of the source block. Raises `ForkSourceError` if the
    source does not return the transactions, or if they cannot be repeated.
    """
    fork = dev.fork
    assert fork is not None, "only a fork has a transaction to repeat"
    try:
        last = await _ask(fork, "eth_getTransactionByHash", data(transaction))
        block = await _ask(fork, "eth_getBlockByNumber", last["blockNumber"], False)
        names = block["transactions"][: int(last["transactionIndex"], 16) + 1]
        raws = [bytes.fromhex((await _ask(fork, "eth_getRawTransactionByHash", name))[2:]) for name in names]
        timestamp, prev_randao = int(block["timestamp"], 16), decode_word(block["mixHash"])
        base_fee = int(block["baseFeePerGas"], 16) if "baseFeePerGas" in block else None
        transactions = decode_transactions(raws)
    except (NativeError, LookupError, TypeError, ValueError) as error:
        raise ForkSourceError(
            f"The source of the fork, {fork.source.name}, sent no readable block with {data(transaction)}: {error}"
        ) from error
    decoded = [one for one in transactions if isinstance(one, Transaction)]
    await fork.run(lambda: fork.load((one.sender, None, None) for one in decoded))
    by_arrival = dev.pool.is_by_arrival
    async with dev.sealer.head_lock:
        dev.pool.order_by_arrival()
        try:
            dev.clock.set_next(timestamp)
            dev.engine.next.base_fee = base_fee
            dev.engine.next.prev_randao = prev_randao
            dev.announce()
            dev.pool.readmit(decoded)
            await dev.sealer.make_block_locked()
        finally:
            dev.pool.order_by_arrival(by_arrival)
    body = dev.chain.store.body(dev.chain.head.hash)
    if body is None or body.transaction_count != len(names):
        made = 0 if body is None else body.transaction_count
        raise ForkSourceError(f"Only {made} of {len(names)} transactions up to {data(transaction)} could be repeated")


async def _ask(fork: Fork, method: str, *params: Any) -> Any:
    answer = await fork.ask(method, list(params))
    if answer is None or isinstance(answer, Failure):
        reason = answer.message if isinstance(answer, Failure) else "no result"
        raise ForkSourceError(f"The source of the fork, {fork.source.name}, does not answer {method}: {reason}")
    return answer
