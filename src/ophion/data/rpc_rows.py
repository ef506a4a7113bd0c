"""Converts JSON objects of a node to rows of a dataset.

The rows equal the rows that the Rust extension reads from a database.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from ophion.data.selection import Rows
from ophion.native.crypto import keccak256

Row = dict[str, Any]
Json = dict[str, Any]

TRANSFER: Final = keccak256(b"Transfer(address,address,uint256)")
_ZERO: Final = bytes(20)
_CALL_TYPES: Final = {"callcode": "call_code", "delegatecall": "delegate_call", "staticcall": "static_call"}
_MAX_DECIMAL: Final = 10**38


def _number(text: str | None) -> int:
    return 0 if text is None else int(text, 16)


def _maybe_number(text: str | None) -> int | None:
    return None if text is None else int(text, 16)


def _price(text: str | None) -> int | None:
    found = _maybe_number(text)
    return None if found is None or found >= 2**64 else found


def narrow(text: str | None) -> int | None:
    """Parse a hex quantity for a 32-bit column. Returns None if the number is missing or needs more bits."""
    found = _maybe_number(text)
    return None if found is None or found >= 2**32 else found


def _data(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text[2:])


def _wide(name: str, value: int) -> Row:
    return {
        f"{name}_binary": value.to_bytes(32, "big"),
        f"{name}_string": str(value),
        f"{name}_f64": float(value),
        f"{name}_decimal": value if value < _MAX_DECIMAL else None,
    }


def block_row(block: Json, chain_id: int) -> Row:
    """Return the row of a block."""
    return {
        "block_hash": _data(block["hash"]),
        "parent_hash": _data(block["parentHash"]),
        "author": _data(block["miner"]),
        "state_root": _data(block["stateRoot"]),
        "transactions_root": _data(block["transactionsRoot"]),
        "receipts_root": _data(block["receiptsRoot"]),
        "block_number": _number(block["number"]),
        "gas_used": _number(block["gasUsed"]),
        "gas_limit": _number(block["gasLimit"]),
        "extra_data": _data(block["extraData"]),
        "logs_bloom": _data(block["logsBloom"]),
        "timestamp": narrow(block["timestamp"]),
        **_wide("total_difficulty", _number(block.get("totalDifficulty"))),
        "size": _number(block.get("size")),
        "n_transactions": len(block["transactions"]),
        "base_fee_per_gas": _maybe_number(block.get("baseFeePerGas")),
        "chain_id": chain_id,
    }


def transaction_rows(
    block: Json, receipts: Iterable[Json], sizes: Iterable[int], rows: Rows, chain_id: int
) -> Iterator[Row]:
    """Yield the rows of a block's transactions. Receipts and sizes have the order of the transactions."""
    for tx, receipt, size in zip(block["transactions"], receipts, sizes, strict=True):
        sender, recipient = _data(tx["from"]), _data(tx.get("to"))
        if not selects(rows, sender, recipient):
            continue
        input = _data(tx["input"]) or b""
        status, zeros = receipt.get("status"), input.count(0)
        is_dynamic = tx.get("maxFeePerGas") is not None
        price = _price(receipt.get("effectiveGasPrice") or tx.get("gasPrice"))
        yield {
            "block_number": _number(tx["blockNumber"]),
            "transaction_index": _number(tx["transactionIndex"]),
            "transaction_hash": _data(tx["hash"]),
            "nonce": _number(tx["nonce"]),
            "from_address": sender,
            "to_address": recipient,
            **_wide("value", _number(tx["value"])),
            "input": input,
            "gas_limit": _number(tx["gas"]),
            "gas_used": _number(receipt["gasUsed"]),
            "gas_price": price,
            "effective_gas_price": price,
            "transaction_type": _number(tx.get("type")),
            "max_priority_fee_per_gas": _price(tx.get("maxPriorityFeePerGas")) if is_dynamic else None,
            "max_fee_per_gas": _price(tx.get("maxFeePerGas")) if is_dynamic else None,
            "success": None if status is None else _number(status) == 1,
            "contract_address": _data(receipt.get("contractAddress")),
            "revert_reason": _data(receipt.get("revertReason")),
            "n_logs": len(receipt["logs"]),
            "n_input_bytes": len(input),
            "n_input_zero_bytes": zeros,
            "n_input_nonzero_bytes": len(input) - zeros,
            "n_rlp_bytes": size,
            "block_hash": _data(tx["blockHash"]),
            "timestamp": narrow(block["timestamp"]),
            "chain_id": chain_id,
        }


def private_transaction_row(block: Json, receipt: Json, transaction: Json | None, chain_id: int) -> Row:
    """Return the row of a private transaction; `transaction` is None if the payload is deleted."""
    private = transaction or {}
    recipients = receipt.get("privateFor")
    return {
        "block_number": _number(block["number"]),
        "block_hash": _data(block["hash"]),
        "timestamp": narrow(block["timestamp"]),
        "transaction_index": _number(receipt["transactionIndex"]),
        "transaction_hash": _data(receipt["transactionHash"]),
        "private_hash": _data(private.get("hash")),
        "privacy_group_id": receipt["privacyGroupId"],
        "private_from": receipt["privateFrom"],
        "private_for": None if recipients is None else ",".join(recipients),
        "restriction": private.get("restriction"),
        "nonce": _maybe_number(private.get("nonce")),
        "from_address": _data(receipt["from"]),
        "to_address": _data(receipt["to"]),
        **_wide("value", _number(private.get("value"))),
        "input": _data(private.get("input")),
        "gas_limit": _maybe_number(private.get("gas")),
        "gas_price": _price(private.get("gasPrice")),
        "status": _number(receipt["status"]),
        "contract_address": _data(receipt["contractAddress"]),
        "output": _data(receipt["output"]),
        "revert_reason": _data(receipt.get("revertReason")),
        "n_logs": len(receipt["logs"]),
        "chain_id": chain_id,
    }


def log_row(log: Json, timestamp: int | None, chain_id: int) -> Row:
    """Return the row of a log."""
    topics = [_data(topic) for topic in log["topics"]]
    data = _data(log["data"]) or b""
    return {
        **_log_place(log, timestamp),
        "address": _data(log["address"]),
        **{f"topic{at}": topics[at] if at < len(topics) else None for at in range(4)},
        "data": data,
        "n_data_bytes": len(data),
        "chain_id": chain_id,
    }


def _log_place(log: Json, timestamp: int | None) -> Row:
    return {
        "block_number": _number(log["blockNumber"]),
        "block_hash": _data(log["blockHash"]),
        "timestamp": timestamp,
        "transaction_index": _number(log["transactionIndex"]),
        "log_index": _number(log["logIndex"]),
        "transaction_hash": _data(log["transactionHash"]),
    }


def erc20_row(log: Json, timestamp: int | None, chain_id: int) -> Row | None:
    """Return the row of an ERC-20 transfer, or None for other logs."""
    topics, data = [_data(topic) or b"" for topic in log["topics"]], _data(log["data"]) or b""
    if len(topics) != 3 or topics[0] != TRANSFER or len(data) != 32:
        return None
    return _transfer(log, topics, _wide("value", int.from_bytes(data, "big")), timestamp, chain_id)


def erc721_row(log: Json, timestamp: int | None, chain_id: int) -> Row | None:
    """Return the row of an ERC-721 transfer, or None for other logs."""
    topics = [_data(topic) or b"" for topic in log["topics"]]
    if len(topics) != 4 or topics[0] != TRANSFER or log["data"] != "0x":
        return None
    return _transfer(log, topics, _wide("token_id", int.from_bytes(topics[3], "big")), timestamp, chain_id)


def _transfer(log: Json, topics: list[bytes], value: Row, timestamp: int | None, chain_id: int) -> Row:
    return {
        **_log_place(log, timestamp),
        "erc20": _data(log["address"]),
        "from_address": topics[1][12:],
        "to_address": topics[2][12:],
        **value,
        "chain_id": chain_id,
    }


def selects(rows: Rows, sender: bytes | None, recipient: bytes | None) -> bool:
    """Return whether the conditions `rows` select a row with this sender and recipient."""
    return (not rows.senders or sender in rows.senders) and (not rows.recipients or recipient in rows.recipients)


def trace_rows(traces: Iterable[Json], rows: Rows, chain_id: int) -> Iterator[Row]:
    """Yield a row for each entry of a trace_block result."""
    for trace in traces:
        action, result, kind = trace["action"], trace.get("result") or {}, trace["type"]
        sender, recipient, value = _parties(trace)
        if kind == "reward":
            sender, recipient = recipient, None
        elif kind == "create":
            recipient = None
        if not selects(rows, sender, recipient):
            continue
        call_type = action.get("callType")
        reward = {"block": "reward", "uncle": "uncle"}.get(action.get("rewardType", ""))
        yield {
            "action_from": sender,
            "action_to": recipient,
            "action_value": str(value),
            "action_gas": narrow(action.get("gas")),
            "action_input": _data(action.get("input")),
            "action_call_type": None if call_type is None else _CALL_TYPES.get(call_type, call_type),
            "action_init": _data(action.get("init")),
            "action_reward_type": reward,
            "action_type": kind,
            "result_gas_used": narrow(result.get("gasUsed")),
            "result_output": _data(result.get("output")),
            "result_code": _data(result.get("code")),
            "result_address": _data(result.get("address")),
            "trace_address": "_".join(str(at) for at in trace["traceAddress"]),
            "subtraces": trace["subtraces"],
            "transaction_index": trace.get("transactionPosition"),
            "transaction_hash": _data(trace.get("transactionHash")),
            "block_number": trace["blockNumber"],
            "block_hash": _data(trace["blockHash"]),
            "error": trace.get("error"),
            "chain_id": chain_id,
        }


def _parties(trace: Json) -> tuple[bytes | None, bytes | None, int]:
    """Return sender, recipient and value of a trace. The recipient of a creation is the new contract."""
    action, kind = trace["action"], trace["type"]
    if kind == "create":
        created = (trace.get("result") or {}).get("address")
        return _data(action["from"]), _data(created), _number(action["value"])
    if kind == "suicide":
        return _data(action["address"]), _data(action["refundAddress"]), _number(action["balance"])
    if kind == "reward":
        return _ZERO, _data(action["author"]), _number(action["value"])
    return _data(action["from"]), _data(action["to"]), _number(action["value"])


def native_transfer_rows(traces: Iterable[Json], rows: Rows, chain_id: int) -> Iterator[Row]:
    """Yield the rows of a block's transfers of the native currency."""
    for index, trace in enumerate(traces):
        sender, recipient, value = _parties(trace)
        recipient = _ZERO if recipient is None else recipient
        if selects(rows, sender, recipient):
            yield {
                "block_number": trace["blockNumber"],
                "block_hash": _data(trace["blockHash"]),
                "transaction_index": trace.get("transactionPosition"),
                "transfer_index": index,
                "transaction_hash": _data(trace.get("transactionHash")),
                "from_address": sender,
                "to_address": recipient,
                **_wide("value", value),
                "chain_id": chain_id,
            }


def contract_rows(traces: Iterable[Json], rows: Rows, chain_id: int) -> Iterator[Row]:
    """Yield the rows of contracts that a block creates."""
    deployer, index = None, 0
    for trace in traces:
        sender, address, _ = _parties(trace)
        if not trace["traceAddress"]:
            deployer = sender
        result = trace.get("result")
        if trace["type"] != "create" or not result:
            continue
        init, code = _data(trace["action"]["init"]) or b"", _data(result.get("code")) or b""
        if selects(rows, sender, address):
            yield {
                "block_number": trace["blockNumber"],
                "block_hash": _data(trace["blockHash"]),
                "create_index": index,
                "transaction_hash": _data(trace["transactionHash"]),
                "contract_address": address,
                "deployer": deployer,
                "factory": sender,
                "init_code": init,
                "code": code,
                "init_code_hash": keccak256(init),
                "n_init_code_bytes": len(init),
                "n_code_bytes": len(code),
                "code_hash": keccak256(code),
                "chain_id": chain_id,
            }
        index += 1


TRACE_ROWS: Final[dict[str, Callable[[Iterable[Json], Rows, int], Iterator[Row]]]] = {
    "traces": trace_rows,
    "native_transfers": native_transfer_rows,
    "contracts": contract_rows,
}
"""Datasets whose rows come from the method trace_block."""


def diff_rows(dataset: str, number: int, index: int, replayed: Json, rows: Rows, chain_id: int) -> Iterator[Row]:
    """Yield the state changes of one transaction, from a result of trace_replayBlockTransactions."""
    for address, diff in sorted((replayed.get("stateDiff") or {}).items()):
        account = _data(address)
        if rows.addresses and account not in rows.addresses:
            continue
        place = {
            "block_number": number,
            "transaction_index": index,
            "transaction_hash": _data(replayed.get("transactionHash")),
            "address": account,
            "chain_id": chain_id,
        }
        if dataset == "storage_diffs":
            for slot, delta in sorted(diff["storage"].items()):
                before, after = _delta(delta, "0x" + "00" * 32)
                yield {**place, "slot": _data(slot), "from_value": _data(before), "to_value": _data(after)}
            continue
        key = dataset.removesuffix("_diffs")
        if diff[key] == "=":
            continue
        before, after = _delta(diff[key], "0x" if key == "code" else "0x0")
        if key == "code" and before == after:
            continue  # creating or deleting an account that has no code is not a code change
        if key == "balance":
            yield {**place, **_wide("from_value", _number(before)), **_wide("to_value", _number(after))}
        elif key == "nonce":
            yield {**place, "from_value": _number(before), "to_value": _number(after)}
        else:
            yield {**place, "from_value": _data(before), "to_value": _data(after)}


def _delta(delta: Any, nothing: str) -> tuple[str, str]:
    """Return the old and the new value in a `stateDiff` entry. `nothing` is returned in place of the missing value of a
    created or deleted item.
    """
    if "+" in delta:
        return nothing, delta["+"]
    if "-" in delta:
        return delta["-"], nothing
    return delta["*"]["from"], delta["*"]["to"]
