"""Answers of `ophion sql` to twenty analyst questions equal the answers computed from JSON-RPC objects."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ophion.data import open_chain
from ophion.testing.node_process import MINING, NodeProcess
from ophion.testing.signing import DEV_KEYS, legacy_transaction

pytest.importorskip("duckdb", reason="the extra ophion[data] is not installed")
from ophion.data.sql import connect, run_queries
from ophion.errors import OphionError
from tests.integration.test_cli_export import TRANSFER, token_transfer

SENDERS = DEV_KEYS[1:4]
TOKEN_OWNER = DEV_KEYS[1].address  # the log of `token_transfer` names this address as the previous owner


class Rpc:
    """The chain as JSON-RPC objects."""

    def __init__(self, node: NodeProcess) -> None:
        self.head = node.height
        numbers = range(self.head + 1)
        self.blocks = [node.rpc("eth_getBlockByNumber", hex(number), True) for number in numbers]
        self.transactions = [tx for block in self.blocks for tx in block["transactions"]]
        self.receipts = {tx["hash"]: node.rpc("eth_getTransactionReceipt", tx["hash"]) for tx in self.transactions}
        self.logs = node.rpc("eth_getLogs", {"fromBlock": "0x0", "toBlock": hex(self.head)})
        self.times = {block["number"]: number(block["timestamp"]) for block in self.blocks}
        self.traces = [one for at in numbers[1:] for one in node.rpc("trace_block", hex(at))]

    def gas(self, tx: dict[str, Any]) -> int:
        return number(self.receipts[tx["hash"]]["gasUsed"])

    def fee(self, tx: dict[str, Any]) -> int:
        return self.gas(tx) * number(self.receipts[tx["hash"]]["effectiveGasPrice"])

    def balances(self, last: int) -> dict[str, int]:
        """Return the balances that result from the token transfers up to a block. The balance of the issuing account is
        negative.
        """
        found: dict[str, int] = defaultdict(int)
        for log in self.logs:
            if number(log["blockNumber"]) <= last:
                found["0x" + log["topics"][1][26:]] -= number(log["data"])
                found["0x" + log["topics"][2][26:]] += number(log["data"])
        return dict(found)


def number(text: str) -> int:
    return int(text, 16)


def counted(values: Any) -> list[tuple[Any, int]]:
    return sorted(Counter(values).items(), key=lambda one: (-one[1], one[0]))


def summed(pairs: Any) -> list[tuple[Any, int]]:
    found: dict[Any, int] = defaultdict(int)
    for key, value in pairs:
        found[key] += value
    return sorted(found.items())


HOLDERS = """
    select to_hex(account), sum(amount)::decimal(38) from (
        select to_address account, value_decimal amount from erc20_transfers where block_number <= {last}
        union all select from_address, -value_decimal from erc20_transfers where block_number <= {last}
    ) group by 1 order by 1"""

QUESTIONS: dict[str, tuple[str, Callable[[Rpc], Any]]] = {
    "top senders": (
        "select to_hex(from_address), count(*) n from transactions group by 1 order by n desc, 1",
        lambda rpc: counted(tx["from"] for tx in rpc.transactions),
    ),
    "top recipients": (
        "select to_hex(to_address), count(*) n from transactions where to_address is not null group by 1"
        " order by n desc, 1",
        lambda rpc: counted(tx["to"] for tx in rpc.transactions if tx["to"]),
    ),
    "wei by sender": (
        "select to_hex(from_address), sum(value_decimal)::decimal(38) from transactions group by 1 order by 1",
        lambda rpc: summed((tx["from"], number(tx["value"])) for tx in rpc.transactions),
    ),
    "daily volume": (
        "select timestamp // 86400, sum(value_decimal)::decimal(38) from transactions group by 1 order by 1",
        lambda rpc: summed((rpc.times[tx["blockNumber"]] // 86400, number(tx["value"])) for tx in rpc.transactions),
    ),
    "daily transactions": (
        "select timestamp // 86400, count(*) from transactions group by 1 order by 1",
        lambda rpc: summed((rpc.times[tx["blockNumber"]] // 86400, 1) for tx in rpc.transactions),
    ),
    "gas by contract": (
        "select to_hex(coalesce(to_address, contract_address)), sum(gas_used)::bigint from transactions"
        " group by 1 order by 1",
        lambda rpc: summed(
            (tx["to"] or rpc.receipts[tx["hash"]]["contractAddress"], rpc.gas(tx)) for tx in rpc.transactions
        ),
    ),
    "fees by sender": (
        "select to_hex(from_address), sum(gas_used::decimal(38) * effective_gas_price)::decimal(38)"
        " from transactions group by 1 order by 1",
        lambda rpc: summed((tx["from"], rpc.fee(tx)) for tx in rpc.transactions),
    ),
    "holders of a token at the head": (
        HOLDERS.format(last=1_000_000),
        lambda rpc: sorted(rpc.balances(rpc.head).items()),
    ),
    "holders at block 6": (HOLDERS.format(last=6), lambda rpc: sorted(rpc.balances(6).items())),
    "volume by token": (
        "select to_hex(erc20), sum(value_decimal)::decimal(38) from erc20_transfers group by 1 order by 1",
        lambda rpc: summed((log["address"], number(log["data"])) for log in rpc.logs),
    ),
    "largest token transfer": (
        "select max(value_decimal) from erc20_transfers",
        lambda rpc: [(max(number(log["data"]) for log in rpc.logs),)],
    ),
    "events by contract": (
        "select to_hex(address), count(*) n from logs group by 1 order by n desc, 1",
        lambda rpc: counted(log["address"] for log in rpc.logs),
    ),
    "events of one kind": (
        f"select count(*) from logs where topic0 = to_bytes('0x{TRANSFER.hex()}')",
        lambda rpc: [(sum(log["topics"][0] == "0x" + TRANSFER.hex() for log in rpc.logs),)],
    ),
    "transfers with their senders": (
        "select to_hex(t.from_address), count(*) from logs l join transactions t using (transaction_hash)"
        " group by 1 order by 1",
        lambda rpc: summed((rpc.receipts[log["transactionHash"]]["from"], 1) for log in rpc.logs),
    ),
    "failed transactions": (
        "select count(*) from transactions where not success",
        lambda rpc: [(sum(receipt["status"] == "0x0" for receipt in rpc.receipts.values()),)],
    ),
    "deployed contracts": (
        "select to_hex(contract_address) from transactions where contract_address is not null order by 1",
        lambda rpc: sorted((one["contractAddress"],) for one in rpc.receipts.values() if one["contractAddress"]),
    ),
    "fullest block": (
        "select block_number, gas_used from blocks order by gas_used desc, block_number limit 1",
        lambda rpc: [
            min(
                ((number(one["number"]), number(one["gasUsed"])) for one in rpc.blocks),
                key=lambda one: (-one[1], one[0]),
            )
        ],
    ),
    "seconds between blocks": (
        "select max(timestamp - before) from (select timestamp::bigint as timestamp,"
        " lag(timestamp::bigint) over (order by block_number) before from blocks where block_number > 0)",
        lambda rpc: [
            (
                max(
                    number(b["timestamp"]) - number(a["timestamp"])
                    for a, b in zip(rpc.blocks[1:], rpc.blocks[2:], strict=False)
                ),
            )
        ],
    ),
    "calls by type": (
        "select action_type, count(*) from traces group by 1 order by 1",
        lambda rpc: summed((trace["type"], 1) for trace in rpc.traces),
    ),
    "first transaction of each sender": (
        "select to_hex(from_address), min(block_number) from transactions group by 1 order by 1",
        lambda rpc: sorted({tx["from"]: number(tx["blockNumber"]) for tx in reversed(rpc.transactions)}.items()),
    ),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    data = tmp_path_factory.mktemp("questions") / "data"
    with NodeProcess(data, *MINING, "--rpc-http-api=ETH,NET,WEB3,DEBUG,TRACE") as running:
        for nonce in range(4):
            for key in SENDERS:
                to = bytes([nonce + 1]) * 20
                running.send(legacy_transaction(key, 3 * nonce, to=to, value=10**18 + nonce))
                code = token_transfer(to, 2**100 + nonce)
                running.send(legacy_transaction(key, 3 * nonce + 1, to=None, data=code, gas=200_000))
                # this init code reverts
                failing = legacy_transaction(key, 3 * nonce + 2, to=None, data=bytes.fromhex("5f5ffd"), gas=100_000)
                last = running.send(failing)
            running.receipt(last)
        assert running.stop() == 0
    with NodeProcess(data, "--rpc-http-api=ETH,NET,WEB3,DEBUG,TRACE") as running:
        # the node runs without mining, so it makes no blocks
        yield running


@pytest.fixture(scope="module")
def rpc(node: NodeProcess) -> Rpc:
    return Rpc(node)


@pytest.mark.parametrize("name", QUESTIONS)
def test_the_answer_is_that_of_json_rpc(node: NodeProcess, rpc: Rpc, name: str) -> None:
    query, expected = QUESTIONS[name]
    with open_chain(Path(node.data_path)) as chain:
        failures: list[OphionError] = []
        (table,) = run_queries(connect(chain, failures), query, failures)
    rows = [tuple(row.values()) for row in table.to_pylist()]
    found = [tuple(int(value) if not isinstance(value, str) else value for value in row) for row in rows]
    assert found == [tuple(row) for row in expected(rpc)]
    assert found
