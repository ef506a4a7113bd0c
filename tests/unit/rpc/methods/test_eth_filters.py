"""Tests logs, polling filters and subscriptions through their methods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP, WEBSOCKET
from ophion.runtime.thread_pools import InlineLanes, ThreadLane
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import LOGGING, deploying
from tests.unit.rpc.interface import Interface

ZERO = "0x" + "00" * 32
ONE = "0x" + f"{1:064x}"
CHANGES = b'{"id":1,"method":"eth_getFilterChanges","params":["%b"]}'


class Listener:
    """A connection that records notifications."""

    client = "127.0.0.1"

    def __init__(self) -> None:
        self.received: list[Any] = []

    def notify(self, message: bytes) -> None:
        self.received.append(json.loads(message))

    def close(self) -> None:
        self.received.append("closed")


@pytest.fixture
def contract(dev: Interface) -> str:
    """Deploy a contract in block 1 that logs at each call."""
    create = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=300_000, data=deploying(LOGGING))
    _, (created,) = dev.run(dev.node.mine(create))
    address: str = dev.ask("eth_getTransactionReceipt", "0x" + created.hex())["contractAddress"]
    return address


def log(dev: Interface, contract: str, nonce: int) -> Any:
    return legacy_transaction(DEV_KEYS[1], nonce, to=bytes.fromhex(contract[2:]), gas=100_000)


def test_logs_are_found_by_range_address_and_topics(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1), log(dev, contract, 2)))
    dev.run(dev.node.seal())
    everything = {"fromBlock": "0x0", "toBlock": "latest"}
    found = dev.ask("eth_getLogs", everything)
    assert [(one["blockNumber"], one["logIndex"], one["topics"]) for one in found] == [
        ("0x2", "0x0", [ZERO]),
        ("0x2", "0x1", [ONE]),
    ]
    assert {"removed": False, "address": contract, "data": "0x" + f"{42:064x}"}.items() <= found[0].items()
    assert "blockTimestamp" in found[0]
    assert dev.ask("eth_getLogs", {**everything, "address": contract}) == found
    assert dev.ask("eth_getLogs", {**everything, "address": ["0x" + "11" * 20, contract]}) == found
    assert dev.ask("eth_getLogs", {**everything, "address": "0x" + "11" * 20}) == []
    assert dev.ask("eth_getLogs", {**everything, "topics": [ONE]}) == found[1:]
    assert dev.ask("eth_getLogs", {**everything, "topics": [[ONE, ZERO]]}) == found
    assert dev.ask("eth_getLogs", {**everything, "topics": [None]}) == found
    assert dev.ask("eth_getLogs", {**everything, "topics": [None, None]}) == []
    assert dev.ask("eth_getLogs", {**everything, "topics": ONE}) == found[1:]
    assert dev.ask("eth_getLogs", {"blockHash": found[0]["blockHash"]}) == found


def test_ranges_that_name_nothing_give_nothing(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1)))
    dev.run(dev.node.seal())
    for query in (
        {},
        {"fromBlock": "latest"},
        {"fromBlock": "0x4", "toBlock": "latest"},
        {"fromBlock": "0x4"},
        {"fromBlock": "0x62", "toBlock": "0x63"},
        {"fromBlock": "-1", "toBlock": "latest"},
    ):
        assert dev.ask("eth_getLogs", query) == [], query
    assert len(dev.ask("eth_getLogs", {"fromBlock": "0x2", "toBlock": "0x2"})) == 1


def test_a_range_beyond_the_newest_block_ends_there(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1)))
    dev.run(dev.node.seal())
    query = {"fromBlock": "0x0", "toBlock": "0x63"}
    [found] = dev.ask("eth_getLogs", query)
    assert found["blockNumber"] == "0x2"
    assert dev.ask("eth_getFilterLogs", dev.ask("eth_newFilter", query)) == [found]


def test_backward_ranges_and_unknown_blocks_are_errors(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1)))
    for query in ({"fromBlock": "0x2", "toBlock": "0x1"}, {"toBlock": "0x1"}, {"fromBlock": "0x63", "toBlock": "0x62"}):
        assert dev.error("eth_getLogs", query) == (-32602, "Invalid params"), query
    for query in ({"fromBlock": "0x2", "toBlock": "0x1"}, {"fromBlock": "0x63", "toBlock": "0x62"}):
        assert dev.error("eth_getFilterLogs", dev.ask("eth_newFilter", query))[0] == -32602
    assert dev.error("eth_getLogs", {"blockHash": "0x" + "ab" * 32}) == (-32000, "Block not found")


@pytest.mark.parametrize("query", [{"toBlock": "0x2"}, {"fromBlock": "pending", "toBlock": "0x2"}])
def test_a_filter_that_the_chain_has_passed_has_no_logs_left(
    dev: Interface, contract: str, query: dict[str, str]
) -> None:
    found = dev.ask("eth_newFilter", query)
    dev.run(dev.node.mine(log(dev, contract, 1)))
    assert [one["blockNumber"] for one in dev.ask("eth_getFilterLogs", found)] == ["0x2"]
    dev.run(dev.node.mine(log(dev, contract, 2)))
    assert dev.ask("eth_getFilterLogs", found) == []
    assert [one["blockNumber"] for one in dev.ask("eth_getFilterChanges", found)] == ["0x2"]


def test_a_range_that_is_too_long_is_refused(sample: Interface) -> None:
    context = replace(sample.context, limits=replace(sample.context.limits, max_logs_range=10))
    narrow = Dispatcher(method_table(context, ("eth",), HTTP), sample.loop)
    body = b'{"id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x%x"}]}'
    assert "result" in sample.message(body % 10, narrow)
    assert sample.message(body % 11, narrow)["error"] == {
        "code": -32005, "message": "Requested range exceeds maximum RPC range limit",
    }  # fmt: skip


def test_a_log_filter_gives_new_logs_and_all_of_its_range(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1)))
    found = dev.ask("eth_newFilter", {"fromBlock": "0x0", "address": contract})
    assert dev.ask("eth_getFilterChanges", found) == []
    for nonce in (2, 3):
        dev.run(dev.node.mine(log(dev, contract, nonce)))
    dev.run(dev.node.seal())
    assert [one["blockNumber"] for one in dev.ask("eth_getFilterChanges", found)] == ["0x3", "0x4"]
    assert dev.ask("eth_getFilterChanges", found) == []
    assert [one["blockNumber"] for one in dev.ask("eth_getFilterLogs", found)] == ["0x2", "0x3", "0x4"]
    assert dev.ask("eth_uninstallFilter", found) is True
    assert dev.ask("eth_uninstallFilter", found) is False
    assert dev.error("eth_getFilterChanges", found) == (-32000, "Filter not found")
    assert dev.error("eth_getFilterLogs", found) == (-32000, "Logs filter not found")


def test_a_filter_takes_no_notice_of_a_block_hash(dev: Interface, contract: str) -> None:
    dev.run(dev.node.mine(log(dev, contract, 1)))
    found = dev.ask("eth_newFilter", {"blockHash": ZERO, "fromBlock": "0x0"})
    assert len(dev.ask("eth_getFilterLogs", found)) == 1


def test_block_and_pending_filters_give_hashes(dev: Interface) -> None:
    blocks, pending = dev.ask("eth_newBlockFilter"), dev.ask("eth_newPendingTransactionFilter")
    header, (sent,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[1], 0)))
    assert dev.ask("eth_getFilterChanges", blocks) == ["0x" + header.hash.hex()]
    assert dev.ask("eth_getFilterChanges", pending) == ["0x" + sent.hex()]
    assert dev.ask("eth_getFilterChanges", pending) == []
    assert dev.error("eth_getFilterLogs", blocks) == (-32000, "Logs filter not found")


def test_filters_need_a_filter(dev: Interface) -> None:
    assert dev.error("eth_newFilter")[0] == -32602
    assert dev.error("eth_newFilter", {"address": ["foo"]})[0] == -32602
    assert dev.error("eth_uninstallFilter")[0] == -32602
    assert dev.error("eth_getFilterChanges", 5)[0] == -32602


# --- subscriptions -------------------------------------------------------------------------------


def ask(dev: Interface, caller: Listener, name: str, *params: Any) -> Any:
    body = json.dumps({"id": 1, "method": name, "params": params}).encode()
    return dev.message(body, dev.dispatcher_for(WEBSOCKET, ("web3",)), caller)


def test_subscriptions_are_there_whichever_groups_are_on_and_not_over_http(dev: Interface) -> None:
    assert ask(dev, Listener(), "eth_subscribe", "newHeads")["result"] == "0x1"
    assert ask(dev, Listener(), "eth_blockNumber")["error"]["code"] == -32604
    assert dev.error("eth_subscribe", "newHeads") == (-32604, "Method not enabled")


KINDS = (
    "kind: one of newHeads, logs, newPendingTransactions, droppedPendingTransactions, transactionReceipts, syncing is "
    "expected"
)


@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ([], KINDS),
        (["nonsense"], KINDS),
        ([5], KINDS),
        ([["newHeads"]], KINDS),
        (["logs", {"address": "foo"}], "address: not hexadecimal, or half a byte"),
        (["newHeads", {"includeTransactions": "perhaps"}], "boolean: true or false is expected"),
        (["logs", 5], "filter: an object is expected"),
        (["logs", []], "filter: an object is expected"),
        (["logs", False], "filter: an object is expected"),
        (["logs", ""], "filter: an object is expected"),
    ],
)
def test_a_bad_subscription_is_an_invalid_request(dev: Interface, params: list[Any], detail: str) -> None:
    refused = {"code": -32600, "message": "Invalid Request", "data": detail}
    assert ask(dev, Listener(), "eth_subscribe", *params)["error"] == refused


def test_a_subscription_ends_with_its_own_connection_only(dev: Interface) -> None:
    mine, other = Listener(), Listener()
    found = ask(dev, mine, "eth_subscribe", "newHeads")["result"]
    assert ask(dev, other, "eth_unsubscribe", found)["error"] == {
        "code": -32000, "message": "Subscription not found",
    }  # fmt: skip
    assert ask(dev, mine, "eth_unsubscribe", found)["result"] is True
    assert ask(dev, mine, "eth_unsubscribe", found)["error"]["code"] == -32000
    for wrong in ("xyz", 5, None):
        assert ask(dev, mine, "eth_unsubscribe", wrong)["error"]["code"] == -32600


def test_logs_that_could_not_be_searched_for_are_there_the_next_time(dev: Interface, contract: str) -> None:
    found = dev.ask("eth_newFilter", {})
    for nonce in range(1, 21):
        # make 20 blocks, because a worker thread searches such a range and the event loop searches only shorter ranges
        dev.run(dev.node.mine(log(dev, contract, nonce)))
    lanes = InlineLanes()
    lanes.read = ThreadLane("read", 1, 0)  # type: ignore[assignment]
    full = Dispatcher(method_table(replace(dev.context, lanes=lanes), ("eth",), HTTP), dev.loop)
    assert dev.message(CHANGES % found.encode(), full)["error"]["code"] == -32005
    assert len(dev.ask("eth_getFilterChanges", found)) == 20
    assert dev.ask("eth_getFilterChanges", found) == []


def test_more_logs_than_an_answer_holds_come_in_portions(dev: Interface, contract: str) -> None:
    found = dev.ask("eth_newFilter", {})
    for nonce in (1, 2, 3):
        dev.run(dev.node.mine(log(dev, contract, nonce)))
    limits = replace(dev.context.limits, max_logs=2)
    narrow = Dispatcher(method_table(replace(dev.context, limits=limits), ("eth",), HTTP), dev.loop)
    answers = [dev.message(CHANGES % found.encode(), narrow)["result"] for _ in range(3)]
    portions = [[one["blockNumber"] for one in answer] for answer in answers]
    assert portions == [["0x2"], ["0x3", "0x4"], []]
