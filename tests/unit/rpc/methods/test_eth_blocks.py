"""Tests blocks, uncles, transactions in blocks, receipts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.node.access_options import AccessConfig
from ophion.rpc.schema import render
from ophion.rpc.services.context import RpcLimits
from ophion.rpc.transport.replies import PendingReply
from ophion.testing.node_core import DEV_CONFIG
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import REVERTING, deploying
from tests.unit.rpc.interface import Interface, open_interface

NOWHERE = "0x" + "ab" * 32


def test_a_block_comes_with_hashes_or_with_transactions(sample: Interface) -> None:
    short = sample.ask("eth_getBlockByNumber", "0x1")
    full = sample.ask("eth_getBlockByNumber", "1", True)
    assert [transaction["hash"] for transaction in full["transactions"]] == short["transactions"]
    assert sample.ask("eth_getBlockByHash", short["hash"], False) == short
    assert sample.ask("eth_getBlockByHash", short["hash"], "true") == full
    assert list(short)[:4] == ["number", "hash", "mixHash", "parentHash"]
    assert sample.ask("eth_getBlockByNumber", "latest")["number"] == "0x20"
    assert sample.ask("eth_getBlockByNumber", "earliest")["number"] == "0x0"


def test_what_is_not_there_is_null(sample: Interface) -> None:
    for name, *params in (
        ("eth_getBlockByNumber", "0x99", False),
        ("eth_getBlockByNumber", "-1", False),
        ("eth_getBlockByHash", NOWHERE, False),
        ("eth_getBlockTransactionCountByNumber", "0x99"),
        ("eth_getBlockTransactionCountByHash", NOWHERE),
        ("eth_getUncleCountByBlockNumber", "0x99"),
        ("eth_getUncleCountByBlockHash", NOWHERE),
        ("eth_getUncleByBlockNumberAndIndex", "0x1", "0x0"),
        ("eth_getUncleByBlockHashAndIndex", NOWHERE, "0x0"),
        ("eth_getTransactionByBlockNumberAndIndex", "0x99", "0x0"),
        ("eth_getTransactionByBlockNumberAndIndex", "earliest", "0x0"),
        ("eth_getTransactionByBlockHashAndIndex", NOWHERE, "0x0"),
        ("eth_getTransactionByHash", NOWHERE),
        ("eth_getTransactionReceipt", NOWHERE),
        ("eth_getBlockReceipts", NOWHERE),
        ("eth_getBlockReceipts", "0x99"),
        ("eth_getTransactionBySenderAndNonce", "0xa94f5374fce5edbc8e2a8697c15331677e6ebf0b", "0x99"),
    ):
        assert sample.ask(name, *params) is None, name


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("eth_getBlockByHash", ["0x1", False]),
        ("eth_getBlockByHash", []),
        ("eth_getBlockByNumber", [NOWHERE, False]),
        ("eth_getBlockByNumber", ["0x1", "maybe"]),
        ("eth_getTransactionByHash", ["0x0"]),
        ("eth_getTransactionByHash", [NOWHERE, False]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x1", "0x80000000"]),
        ("eth_getTransactionByBlockNumberAndIndex", ["0x1"]),
        ("eth_getTransactionByBlockHashAndIndex", [NOWHERE, "-1"]),
    ],
)
def test_bad_parameters_are_refused(sample: Interface, name: str, params: list[object]) -> None:
    assert sample.error(name, *params) == (-32602, "Invalid params")


def test_every_way_to_a_transaction_gives_the_same(sample: Interface) -> None:
    block = sample.ask("eth_getBlockByNumber", "0x1e", True)
    (transaction,) = block["transactions"]
    assert sample.ask("eth_getTransactionByHash", transaction["hash"]) == transaction
    assert sample.ask("eth_getTransactionByBlockNumberAndIndex", "0x1e", 0) == transaction
    assert sample.ask("eth_getTransactionByBlockHashAndIndex", block["hash"], "0") == transaction
    by_nonce = sample.ask("eth_getTransactionBySenderAndNonce", transaction["from"], transaction["nonce"])
    assert by_nonce == transaction
    (receipt,) = sample.ask("eth_getBlockReceipts", block["hash"])
    assert sample.ask("eth_getTransactionReceipt", transaction["hash"]) == receipt
    assert sample.ask("eth_getBlockReceipts", {"blockNumber": "0x1e"}) == [receipt]


def test_the_pending_block_is_real(dev: Interface) -> None:
    empty = dev.ask("eth_getBlockByNumber", "pending", True)
    assert (empty["number"], empty["hash"], empty["nonce"], empty["transactions"]) == ("0x1", None, None, [])
    (sent,) = dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 0, value=1)))
    filled = dev.ask("eth_getBlockByNumber", "pending", True)
    assert [transaction["hash"] for transaction in filled["transactions"]] == ["0x" + sent.hex()]
    assert filled["transactions"][0]["blockHash"] is None
    assert filled["gasUsed"] == "0x5208"
    assert dev.ask("eth_getBlockByNumber", "pending", False)["transactions"] == ["0x" + sent.hex()]
    assert dev.ask("eth_getBlockTransactionCountByNumber", "pending") == "0x1"
    assert dev.ask("eth_getTransactionByBlockNumberAndIndex", "pending", "0x0") == filled["transactions"][0]
    assert dev.ask("eth_getTransactionByBlockNumberAndIndex", "pending", "0x1") is None
    assert dev.ask("eth_getBlockReceipts", "pending") is None
    assert dev.ask("eth_blockNumber") == "0x0"
    dev.run(dev.node.seal(0.0))
    mined = dev.ask("eth_getBlockByNumber", "latest", True)
    assert set(mined) == set(filled)
    assert {name for name in mined if mined[name] != filled[name]} == {"hash", "nonce", "transactions"}


def test_a_pooled_transaction_has_no_block_and_no_receipt(dev: Interface) -> None:
    (sent,) = dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 0)))
    name = "0x" + sent.hex()
    pending = dev.ask("eth_getTransactionByHash", name)
    assert [pending[member] for member in ("blockHash", "blockNumber", "transactionIndex")] == [None] * 3
    assert dev.ask("eth_getTransactionBySenderAndNonce", pending["from"], "0x0") == pending
    assert dev.ask("eth_getTransactionReceipt", name) is None
    dev.run(dev.node.seal())
    assert dev.ask("eth_getTransactionByHash", name)["blockNumber"] == "0x1"
    assert dev.ask("eth_getTransactionReceipt", name)["status"] == "0x1"


def test_an_uncle_is_a_block_without_transactions(dev: Interface) -> None:
    header = dev.node.queries.head.header
    shown = render.uncle(header, dev.node.queries.head_hash, 5)
    assert b'"uncles":[],"transactions":[]' in shown
    assert b'"totalDifficulty":"0x5"' in shown


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_revert_reason_is_shown_where_it_is_asked_for(tmp_path: Path, is_kept: bool) -> None:
    config = replace(DEV_CONFIG, access=AccessConfig(revert_reason_enabled=is_kept))
    create = legacy_transaction(DEV_KEYS[1], 0, to=None, gas=300_000, data=deploying(REVERTING))
    with open_interface(tmp_path, config=config, limits=RpcLimits(shows_revert_reason=is_kept)) as node:
        _, (created,) = node.run(node.node.mine(create))
        contract = bytes.fromhex(node.ask("eth_getTransactionReceipt", "0x" + created.hex())["contractAddress"][2:])
        _, (failed,) = node.run(node.node.mine(legacy_transaction(DEV_KEYS[1], 1, to=contract, gas=100_000)))
        receipt = node.ask("eth_getTransactionReceipt", "0x" + failed.hex())
        assert receipt["status"] == "0x0"
        assert receipt.get("revertReason", "")[:10] == ("0x08c379a0" if is_kept else "")


def test_where_blocks_come_at_once_a_receipt_is_waited_for(dev: Interface) -> None:
    async def story() -> None:
        mining = asyncio.create_task(dev.node.mining.run(lambda: None))
        dev.node.mining.start()
        (sent,) = await dev.node.send(legacy_transaction(DEV_KEYS[1], 0))
        reply = dev.dispatcher.handle(
            b'{"id":1,"method":"eth_getTransactionReceipt","params":["0x%b"]}' % sent.hex().encode()
        )
        if isinstance(reply, PendingReply):
            answer = asyncio.get_running_loop().create_future()
            reply.deliver = answer.set_result
            reply = await asyncio.wait_for(answer, 10)
        assert b'"status":"0x1"' in (reply if isinstance(reply, bytes) else reply.join())
        mining.cancel()
        await asyncio.gather(mining, return_exceptions=True)

    dev.run(story())
