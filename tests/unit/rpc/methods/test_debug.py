"""Tests storage and accounts by hash, raw encodings, bad blocks."""

from __future__ import annotations

from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.errors import InvalidBlock
from ophion.native.crypto import keccak256
from ophion.primitives.header import HashedHeader
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.interface import Interface

NOWHERE = "0x" + "ab" * 32


def test_an_account_within_a_block(dev: Interface) -> None:
    keys = DEV_KEYS[0], DEV_KEYS[1]
    fresh = bytes.fromhex("77" * 20)
    raws = [legacy_transaction(key, 0, to=fresh, value=5) for key in keys]
    dev.run(dev.node.mine(*raws))
    account = "0x" + fresh.hex()
    empty = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
    first = dev.ask("debug_accountAt", "latest", 0, account)
    assert first == {"balance": "0x5", "code": "0x", "codehash": empty, "nonce": "0x0"}
    assert dev.ask("debug_accountAt", "latest", 1, account)["balance"] == "0xa"
    assert dev.error("debug_accountAt", "latest", 2, account)[0] == -32602
    assert dev.error("debug_accountAt", "latest", 0, "0x" + "78" * 20) == (-32000, "Account not found")
    assert dev.error("debug_accountAt", NOWHERE, 0, account) == (-32000, "Block not found")


def test_storage_and_accounts_in_the_order_of_hashes(sample: Interface) -> None:
    contract = "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f"
    everything = sample.ask("debug_storageRangeAt", "latest", 0, contract, "0", 100)
    assert everything["complete"]
    one = sample.ask("debug_storageRangeAt", "latest", 0, contract, "0x0", 1)
    assert not one["complete"]
    rest = sample.ask("debug_storageRangeAt", "latest", 0, contract, one["nextKey"], 100)
    assert {**one["storage"], **rest["storage"]} == everything["storage"]
    assert sample.ask("debug_storageRangeAt", NOWHERE, 0, contract, "0", 1) == {"storage": {}, "complete": True}
    assert sample.error("debug_storageRangeAt", "latest", -1, contract, "0", 1)[0] == -32603
    assert sample.ask("debug_storageRangeAt", "latest", "0", contract, "0", "1") == one
    for wrong in ("0x0", "0x1", "", "-", "1 ", "٣", "1" * 40, 1.0, True, []):
        assert sample.error("debug_storageRangeAt", "latest", wrong, contract, "0", 1)[0] == -32602, wrong
        assert sample.error("debug_storageRangeAt", "latest", 0, contract, "0", wrong)[0] == -32602, wrong
    accounts = sample.ask("debug_accountRange", "latest", 0, "0", 100)
    assert contract in accounts["addressMap"].values()
    assert accounts["nextKey"] == "0x" + "00" * 32
    assert sample.ask("debug_accountRange", NOWHERE, 0, "0", 100) == {"addressMap": {}, "nextKey": None}


def test_raw_encodings_are_those_that_were_hashed(sample: Interface) -> None:
    block = sample.ask("eth_getBlockByNumber", "0x1")
    header = sample.ask("debug_getRawHeader", "0x1")
    assert sample.ask("web3_sha3", header) == block["hash"]
    assert header[2:] in sample.ask("debug_getRawBlock", block["hash"])
    assert len(sample.ask("debug_getRawReceipts", "0x1")) == len(block["transactions"])
    assert (
        sample.ask("web3_sha3", sample.ask("debug_getRawTransaction", block["transactions"][0]))
        == block["transactions"][0]
    )
    # an unknown block gives an error, as in current Besu
    for name in ("debug_getRawHeader", "debug_getRawBlock", "debug_getRawReceipts"):
        assert sample.error(name, NOWHERE) == sample.error(name, "0x99999") == (-32000, "Block not found")
    assert sample.ask("debug_getRawTransaction", NOWHERE) is None


def test_blocks_that_broke_a_rule_can_be_looked_at(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)
    dev.run(dev.node.mine(raw))
    good = bytes.fromhex(dev.ask("debug_getRawBlock", "latest")[2:])
    decoded = decode_block(good, dev.context.queries.engine)
    wrong = replace(decoded.header.header, gas_used=21001)
    bad = HashedHeader(wrong, keccak256(wrong.encode()))
    assert dev.context.bad_blocks is not None
    dev.context.bad_blocks.add(bad, decoded.body, InvalidBlock("gas used", 21000, 21001))
    (shown,) = dev.ask("debug_getBadBlocks")
    assert shown["hash"] == shown["block"]["hash"] == "0x" + bad.hash.hex()
    assert shown["block"]["gasUsed"] == hex(21001)
    (traced,) = dev.ask("debug_traceBadBlock", shown["hash"], {"tracer": "callTracer"})
    assert traced["result"]["gasUsed"] == "0x5208"
    assert dev.ask("debug_traceBlock", shown["rlp"]) == dev.ask("debug_traceBadBlock", shown["hash"])
    assert dev.error("debug_traceBadBlock", NOWHERE) == (-32000, "Block not found")


def test_transactions_are_sent_together_and_judged_apart(dev: Interface) -> None:
    good, late = (legacy_transaction(DEV_KEYS[0], nonce, value=1) for nonce in (0, 2**64 - 1))
    answer = dev.ask("debug_batchSendRawTransaction", "0x" + good.hex(), "0xzz", "0x00", "0x" + late.hex())
    assert answer[0] == {"index": 0, "success": True}
    assert [(one["index"], one["success"]) for one in answer[1:]] == [(1, False), (2, False), (3, False)]
    assert all(one["errorMessage"] for one in answer[1:])
    assert dev.ask("txpool_status")["pending"] == "0x1"
    assert dev.ask("debug_batchSendRawTransaction") == []
    assert dev.error("debug_batchSendRawTransaction", 5)[0] == -32602


def test_metrics_are_a_tree_that_is_empty_where_nothing_is_measured(dev: Interface) -> None:
    assert dev.ask("debug_metrics") == {}
