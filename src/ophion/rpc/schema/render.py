"""Renders domain values as JSON objects.

The Rust extension renders blocks, receipts and logs of the chain. This module renders objects that exist only in
Python: the pending block, uncles, node information and pool entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from ophion.chain.fee_oracle import FeeHistory
from ophion.chain.queries import BlockView
from ophion.chainspec.spec import ChainSpec
from ophion.native.crypto import keccak256
from ophion.native.transactions import Body, Transaction, Withdrawal
from ophion.pool.queue import PooledTransaction
from ophion.primitives.header import Header
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import Address, Hash32, Signature
from ophion.wallet.unsigned_transaction import BLOB, DYNAMIC_FEE, LEGACY, SET_CODE, UnsignedTransaction


def block_object(
    header: Header,
    block_hash: Hash32 | None,
    total_difficulty: int | None,
    size: int,
    uncles: Iterable[Hash32],
    transactions: Sequence[Any],
    withdrawals: Sequence[Withdrawal] | None,
) -> dict[str, Any]:
    """Return a block object. A pending block has neither hash nor nonce. Fields of later forks appear only when set."""
    block: dict[str, Any] = {
        "number": quantity(header.number),
        "hash": None if block_hash is None else data(block_hash),
        "mixHash": data(header.mix_hash),
        "parentHash": data(header.parent_hash),
        "nonce": None if block_hash is None else data(header.nonce),
        "sha3Uncles": data(header.ommers_hash),
        "logsBloom": data(header.logs_bloom),
        "transactionsRoot": data(header.transactions_root),
        "stateRoot": data(header.state_root),
        "receiptsRoot": data(header.receipts_root),
        "miner": data(header.coinbase),
        "difficulty": quantity(header.difficulty),
    }
    if total_difficulty is not None:
        block["totalDifficulty"] = quantity(total_difficulty)
    block |= {
        "extraData": data(header.extra_data),
        "size": quantity(size),
        "gasLimit": quantity(header.gas_limit),
        "gasUsed": quantity(header.gas_used),
        "timestamp": quantity(header.timestamp),
        "uncles": [data(uncle) for uncle in uncles],
        "transactions": transactions,
    }
    if header.base_fee_per_gas is not None:
        block["baseFeePerGas"] = quantity(header.base_fee_per_gas)
    if header.withdrawals_root is not None:
        block["withdrawalsRoot"] = data(header.withdrawals_root)
        block["withdrawals"] = [_withdrawal(withdrawal) for withdrawal in withdrawals or ()]
    if header.blob_gas_used is not None and header.excess_blob_gas is not None:
        block["blobGasUsed"] = quantity(header.blob_gas_used)
        block["excessBlobGas"] = quantity(header.excess_blob_gas)
    if header.parent_beacon_block_root is not None:
        block["parentBeaconBlockRoot"] = data(header.parent_beacon_block_root)
    if header.requests_hash is not None:
        block["requestsHash"] = data(header.requests_hash)
    return block


def pending_block(view: BlockView, in_full: bool, parent_difficulty: int | None) -> bytes:
    """Return the pending block as JSON text."""
    header, body = view.header, view.body
    transactions = body.transactions
    shown = [orjson.Fragment(one.json()) if in_full else data(one.hash) for one in transactions]
    total = None if parent_difficulty is None else parent_difficulty + header.difficulty
    size = len(body.encode_block(header.encode()))
    return orjson.dumps(block_object(header, None, total, size, (), shown, body.withdrawals))


def uncle(header: Header, block_hash: Hash32, total_difficulty: int | None) -> bytes:
    """Return a block object from a header alone: no transactions, no uncles."""
    empty = Body.of([], [], None if header.withdrawals_root is None else [])
    size = len(empty.encode_block(header.encode()))
    return orjson.dumps(block_object(header, block_hash, total_difficulty, size, (), (), None))


def _withdrawal(withdrawal: Withdrawal) -> dict[str, str]:
    return {
        "index": quantity(withdrawal.index),
        "validatorIndex": quantity(withdrawal.validator),
        "address": data(withdrawal.address),
        "amount": quantity(withdrawal.amount_gwei),
    }


def fee_history(history: FeeHistory) -> dict[str, Any]:
    """Return the result of `eth_feeHistory`."""
    shown: dict[str, Any] = {
        "oldestBlock": quantity(history.oldest),
        "baseFeePerGas": [quantity(fee) for fee in history.base_fees],
        "gasUsedRatio": history.gas_used_ratios,
        "baseFeePerBlobGas": [quantity(fee) for fee in history.blob_base_fees],
        "blobGasUsedRatio": history.blob_gas_used_ratios,
    }
    if history.rewards is not None:
        shown["reward"] = [[quantity(max(fee, 0)) for fee in block] for block in history.rewards]
    return shown


def access_list(entries: Iterable[tuple[Address, Iterable[Hash32]]]) -> list[dict[str, Any]]:
    """Return an access list as JSON objects."""
    return [{"address": data(address), "storageKeys": [data(slot) for slot in slots]} for address, slots in entries]


def unsigned_transaction(
    transaction: UnsignedTransaction, sender: Address | None, hash: Hash32, signature: Signature
) -> dict[str, Any]:
    """Return an unsigned transaction as a JSON object. Fees that its transaction type does not have are null."""
    kind = transaction.type
    price, has_fees = transaction.gas_price, kind >= DYNAMIC_FEE
    parity, chain_id = signature[64], transaction.chain_id
    has_signature = any(signature)
    protected = 27 if chain_id is None else 35 + 2 * chain_id
    shown: dict[str, Any] = {
        "type": quantity(kind),
        "chainId": None if chain_id is None else quantity(chain_id),
        "nonce": quantity(transaction.nonce),
        "to": None if transaction.to is None else data(transaction.to),
        "gas": quantity(transaction.gas),
        "gasPrice": None if has_fees else quantity(price),
        "maxFeePerGas": quantity(transaction.max_fee_per_gas) if has_fees else None,
        "maxPriorityFeePerGas": quantity(transaction.max_priority_fee_per_gas) if has_fees else None,
        "value": quantity(transaction.value),
        "input": data(transaction.input),
        "v": quantity(parity + protected if kind == LEGACY and has_signature else parity),
        "r": quantity(int.from_bytes(signature[:32], "big")),
        "s": quantity(int.from_bytes(signature[32:64], "big")),
        "hash": data(hash),
    }
    if sender is not None:
        shown["from"] = data(sender)
    if kind != LEGACY:
        shown["yParity"] = quantity(parity)
        shown["accessList"] = access_list(transaction.access_list)
    if kind == BLOB:
        shown["maxFeePerBlobGas"] = quantity(transaction.max_fee_per_blob_gas)
        shown["blobVersionedHashes"] = [data(one) for one in transaction.blob_hashes]
    if kind == SET_CODE:
        shown["authorizationList"] = [
            {
                "chainId": quantity(chain),
                "address": data(address),
                "nonce": quantity(nonce),
                "yParity": quantity(y_parity),
                "r": quantity(r),
                "s": quantity(s),
            }
            for chain, address, nonce, y_parity, r, s in transaction.authorizations
        ]
    return shown


def checksum_address(address: Address) -> str:
    """Return the address with the mixed-case checksum of EIP-55."""
    digits = address.hex()
    digest = keccak256(digits.encode()).hex()
    return "0x" + "".join(
        letter.upper() if int(nibble, 16) > 7 else letter for letter, nibble in zip(digits, digest, strict=False)
    )


def pool_entry(item: PooledTransaction) -> dict[str, Any]:
    """Return one entry of `txpool_clientTransactions`. The arrival time has no trailing zeros."""
    arrived = datetime.fromtimestamp(item.added_at, UTC)
    fraction = f".{arrived.microsecond:06d}".rstrip("0").rstrip(".")
    return {
        "hash": data(item.hash),
        "isReceivedFromLocalSource": item.is_local,
        "addedToPoolAt": f"{arrived:%Y-%m-%dT%H:%M:%S}{fraction}Z",
    }


def pool_summary(transaction: Transaction) -> str:
    """Return a transaction as one line of text for `txpool_inspect`."""
    to = "contract creation" if transaction.to is None else checksum_address(transaction.to)
    return f"{to}: {transaction.value} wei + {transaction.gas_limit} gas × {transaction.max_fee_per_gas} wei"


_ENGINES = ("ethash", "clique", "ibft2", "qbft")
_ENGINE_MEMBERS = {
    "fixeddifficulty": "fixeddifficulty",
    "epochlength": "epochLength",
    "blockperiodseconds": "blockPeriodSeconds",
    "requesttimeoutseconds": "requestTimeoutSeconds",
    "gossipedhistorylimit": "gossipedHistoryLimit",
    "messagequeuelimit": "messageQueueLimit",
    "duplicatemesagelimit": "duplicateMessageLimit",
    "duplicatemessagelimit": "duplicateMessageLimit",
    "futuremessageslimit": "futureMessagesLimit",
    "futuremessagesmaxdistance": "futureMessagesMaxDistance",
}
_FORK_MEMBERS = (
    "chainId",
    "homesteadBlock",
    "daoForkBlock",
    "eip150Block",
    "eip150Hash",
    "eip155Block",
    "eip158Block",
    "byzantiumBlock",
    "constantinopleBlock",
    "constantinopleFixBlock",
    "petersburgBlock",
    "istanbulBlock",
    "muirGlacierBlock",
    "berlinBlock",
    "londonBlock",
    "arrowGlacierBlock",
    "grayGlacierBlock",
    "mergeNetSplitBlock",
    "terminalTotalDifficulty",
    "shanghaiTime",
    "cancunTime",
    "pragueTime",
    "osakaTime",
    "contractSizeLimit",
    "evmStackSize",
    "zeroBaseFee",
)


def chain_config(spec: ChainSpec) -> dict[str, Any]:
    """Return the fork settings of the genesis file, with the section of its consensus engine (json-rpc.md 5.1)."""
    given: Mapping[str, Any] = {name.lower(): value for name, value in spec.config.items()}
    config: dict[str, Any] = {}
    for name in _FORK_MEMBERS:
        if name.lower() in given:
            config["evmstacksize" if name == "evmStackSize" else name] = given[name.lower()]
            if name == "daoForkBlock":
                config["daoForkSupport"] = True
    for engine in _ENGINES:
        if isinstance(given.get(engine), Mapping):
            members = given[engine].items()
            config[engine] = {
                _ENGINE_MEMBERS[name.lower()]: value for name, value in members if name.lower() in _ENGINE_MEMBERS
            }
            break
    if spec.migration_block is not None:
        config["qbft"] = {**config.get("qbft", {}), "startBlock": spec.migration_block}
    return config
