"""Compares every GraphQL field with the corresponding JSON-RPC key, over whole chains.

The fields come from the schema by introspection. A field without a corresponding key in this file fails the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from ophion.node.config import NodeConfig
from tests.conftest import DATA, shared_path
from tests.unit.graphql.client import Client, open_client
from tests.unit.rpc.interface import import_chain

Object = dict[str, Any]
Twin = Callable[[Object], Any]


def number(name: str) -> Twin:
    """Compare an integer that JSON-RPC writes in hex. If JSON-RPC omits the integer, the GraphQL field must be null."""
    return lambda twin: int(twin[name], 16) if twin.get(name) is not None else None


def same(name: str, missing: Any = None) -> Twin:
    """Compare values that both interfaces write as the same text."""
    return lambda twin: twin.get(name, missing)


def count(name: str) -> Twin:
    return lambda twin: len(twin[name])


def by_address(name: str) -> Twin:
    """Compare only the address of an account. Other fields compare the state of the account."""
    return lambda twin: None if twin.get(name) is None else {"address": twin[name]}


BLOCK: Mapping[str, Twin] = {
    "number": number("number"),
    "hash": same("hash"),
    "nonce": same("nonce"),
    "transactionsRoot": same("transactionsRoot"),
    "transactionCount": count("transactions"),
    "stateRoot": same("stateRoot"),
    "receiptsRoot": same("receiptsRoot"),
    "miner": by_address("miner"),
    "extraData": same("extraData"),
    "gasLimit": number("gasLimit"),
    "gasUsed": number("gasUsed"),
    "baseFeePerGas": same("baseFeePerGas"),
    "timestamp": same("timestamp"),
    "logsBloom": same("logsBloom"),
    "mixHash": same("mixHash"),
    "difficulty": same("difficulty"),
    "ommerCount": count("uncles"),
    "ommers": lambda twin: [{"hash": hash} for hash in twin["uncles"]],
    "ommerHash": same("sha3Uncles"),
    "withdrawalsRoot": same("withdrawalsRoot"),
    "withdrawals": lambda twin: (
        [{"index": int(one["index"], 16)} for one in twin["withdrawals"]] if "withdrawals" in twin else None
    ),
    "blobGasUsed": number("blobGasUsed"),
    "excessBlobGas": number("excessBlobGas"),
    "parent": lambda twin: None if twin["number"] == "0x0" else {"hash": twin["parentHash"]},
    "transactions": lambda twin: [{"hash": one["hash"]} for one in twin["transactions"]],
}
BLOCK_ELSEWHERE = {
    "totalDifficulty", "nextBaseFeePerGas", "raw", "rawHeader", "ommerAt", "transactionAt", "logs", "account", "call",
    "estimateGas",
}  # fmt: skip
"""Fields of a block that correspond to a separate method."""

TRANSACTION: Mapping[str, Twin] = {
    "hash": same("hash"),
    "nonce": number("nonce"),
    "index": number("transactionIndex"),
    "from": by_address("from"),
    "to": by_address("to"),
    "value": same("value"),
    "gasPrice": same("gasPrice"),
    "maxFeePerGas": same("maxFeePerGas"),
    "maxPriorityFeePerGas": same("maxPriorityFeePerGas"),
    "maxFeePerBlobGas": same("maxFeePerBlobGas"),
    "gas": number("gas"),
    "inputData": same("input"),
    "block": lambda twin: {"hash": twin["blockHash"]},
    "blobVersionedHashes": same("blobVersionedHashes"),
    "r": same("r"),
    "s": same("s"),
    "v": lambda twin: None if twin["type"] == "0x3" else twin["v"],
    "yParity": same("yParity"),
    "type": number("type"),
    "accessList": same("accessList", []),
}
RECEIPT: Mapping[str, Twin] = {
    "status": number("status"),
    "gasUsed": number("gasUsed"),
    "cumulativeGasUsed": number("cumulativeGasUsed"),
    "effectiveGasPrice": same("effectiveGasPrice"),
    "blobGasUsed": number("blobGasUsed"),
    "blobGasPrice": same("blobGasPrice"),
    "createdContract": by_address("contractAddress"),
    "revertReason": same("revertReason"),
    "logs": lambda twin: [{"index": int(log["logIndex"], 16)} for log in twin["logs"]],
}
TRANSACTION_ELSEWHERE = {"effectiveTip", "raw", "rawReceipt"}
LOG: Mapping[str, Twin] = {
    "index": number("logIndex"),
    "account": by_address("address"),
    "topics": same("topics"),
    "data": same("data"),
    "transaction": lambda twin: {"hash": twin["transactionHash"]},
}
WITHDRAWAL: Mapping[str, Twin] = {
    "index": number("index"),
    "validator": number("validatorIndex"),
    "address": same("address"),
    "amount": number("amount"),
}
SELECTIONS = {
    "miner": "miner{address}", "ommers": "ommers{hash}", "withdrawals": "withdrawals{index}", "parent": "parent{hash}",
    "transactions": "transactions{hash}", "from": "from{address}", "to": "to{address}", "block": "block{hash}",
    "accessList": "accessList{address storageKeys}", "createdContract": "createdContract{address}",
    "account": "account{address}", "transaction": "transaction{hash}",
}  # fmt: skip


def filled(text: str, **parts: object) -> str:
    """Return a document in which each `<part>` is replaced by its text."""
    for name, part in parts.items():
        text = text.replace(f"<{name}>", str(part))
    return text


def selection(twins: Mapping[str, Twin], **special: str) -> str:
    return " ".join(special.get(name) or SELECTIONS.get(name, name) for name in twins)


RECEIPT_SELECTION = selection(RECEIPT, logs="logs{index}")


@pytest.fixture(scope="module", params=["original", "standard"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    path = tmp_path_factory.mktemp(request.param)
    if request.param == "original":
        genesis = import_chain(path, DATA / "original-chain/genesis.json", DATA / "original-chain/test.blocks")
    else:
        folder = shared_path("fixtures", "rpc-standard")
        genesis = import_chain(path, folder / "genesis.json", folder / "chain.rlp")
    with ExitStack() as stack:
        yield stack.enter_context(open_client(path, genesis, NodeConfig()))


def blocks(client: Client) -> list[Object]:
    head = int(client.rpc.ask("eth_blockNumber"), 16)
    return [client.rpc.ask("eth_getBlockByNumber", hex(at), True) for at in range(head + 1)]


def assert_same(twins: Mapping[str, Twin], shown: Object, twin: Object) -> None:
    for name, wanted in twins.items():
        expected = wanted(twin)
        assert shown[name] == expected, name
        assert type(shown[name]) is type(expected), name


def test_every_field_has_its_twin(client: Client) -> None:
    found = client.ask("{__schema{types{name fields{name}}}}")["__schema"]["types"]
    fields = {one["name"]: {field["name"] for field in one["fields"]} for one in found if one["fields"]}
    assert fields["Block"] == set(BLOCK) | BLOCK_ELSEWHERE
    assert fields["Transaction"] == set(TRANSACTION) | set(RECEIPT) | TRANSACTION_ELSEWHERE
    assert fields["Log"] == set(LOG)
    assert fields["Withdrawal"] == set(WITHDRAWAL)
    assert fields["Account"] == {"address", "balance", "transactionCount", "code", "storage"}


def test_blocks(client: Client) -> None:
    chain = blocks(client)
    shown = client.ask(filled("{blocks(from:0){<fields>}}", fields=selection(BLOCK)))["blocks"]
    assert len(shown) == len(chain)
    for one, twin in zip(shown, chain, strict=True):
        assert_same(BLOCK, one, twin)
        for reference in (f"number:{one['number']}", f'number:"{one["number"]}"', f'hash:"{one["hash"]}"'):
            assert (
                client.ask(filled("{block(<which>){<fields>}}", which=reference, fields=selection(BLOCK)))["block"]
                == one
            )


def test_what_blocks_answer_in_other_methods(client: Client) -> None:
    text = "{blocks(from:0){hash number totalDifficulty baseFeePerGas nextBaseFeePerGas raw rawHeader}}"
    shown = client.ask(text)["blocks"]
    total = 0
    for at, one in enumerate(shown):
        total += int(client.ask(filled("{block(number:<at>){difficulty}}", at=at))["block"]["difficulty"], 16)
        assert one["totalDifficulty"] == hex(total)
        store, hash = client.rpc.context.queries.store, bytes.fromhex(one["hash"][2:])
        assert one["raw"] == "0x" + (store.block(hash) or b"").hex()
        assert one["rawHeader"] == "0x" + (store.header(hash) or b"").hex()
        if at + 1 < len(shown):
            assert one["nextBaseFeePerGas"] == shown[at + 1]["baseFeePerGas"]
    fee = client.rpc.context.queries.next_base_fee()
    assert shown[-1]["nextBaseFeePerGas"] == (None if fee is None else hex(fee))


def test_transactions_and_receipts(client: Client) -> None:
    text = selection(TRANSACTION) + " effectiveTip raw rawReceipt " + RECEIPT_SELECTION
    store = client.rpc.context.queries.store
    for block in blocks(client):
        document = filled('{block(hash:"<hash>"){transactions{<fields>}}}', hash=block["hash"], fields=text)
        shown = client.ask(document)["block"]["transactions"]
        hash, base_fee = bytes.fromhex(block["hash"][2:]), int(block.get("baseFeePerGas", "0x0"), 16)
        body, receipts = store.body(hash), store.raw_receipts(hash)
        assert body is not None
        assert receipts is not None
        for index, (one, twin) in enumerate(zip(shown, block["transactions"], strict=True)):
            receipt = client.rpc.ask("eth_getTransactionReceipt", twin["hash"])
            assert_same(TRANSACTION, one, twin)
            assert_same(RECEIPT, one, receipt)
            assert one["effectiveTip"] == hex(int(receipt["effectiveGasPrice"], 16) - base_fee)
            assert one["raw"] == "0x" + body.transactions[index].raw.hex()
            assert one["rawReceipt"] == "0x" + receipts[index].hex()
            by_hash = filled('{transaction(hash:"<hash>"){<fields>}}', hash=twin["hash"], fields=text)
            assert one == client.ask(by_hash)["transaction"]
            by_place = '{block(number:"<number>"){transactionAt(index:<at>){<fields>}}}'
            by_place = filled(by_place, number=block["number"], at=index, fields=text)
            assert one == client.ask(by_place)["block"]["transactionAt"]


def test_logs(client: Client) -> None:
    everything = client.rpc.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"})
    shown = client.ask(filled("{logs(filter:{fromBlock:0}){<fields>}}", fields=selection(LOG)))["logs"]
    assert len(shown) == len(everything) > 0
    for one, twin in zip(shown, everything, strict=True):
        assert_same(LOG, one, twin)
    document = "query($f:BlockFilterCriteria!,$h:Bytes32){block(hash:$h){logs(filter:$f){<fields>}}}"
    document = filled(document, fields=selection(LOG))
    for twin in everything[:: max(1, len(everything) // 30)]:
        filters = [
            {"addresses": [twin["address"]]},
            {"topics": [[topic] for topic in twin["topics"]]},
            {"topics": [[]] * len(twin["topics"]), "addresses": [twin["address"]]},
        ]
        for wanted in filters:
            topics = [one or None for one in wanted.get("topics", [])]
            criteria = {"blockHash": twin["blockHash"], "address": wanted.get("addresses"), "topics": topics}
            twins = client.rpc.ask("eth_getLogs", criteria)
            found = client.ask(document, {"f": wanted, "h": twin["blockHash"]})["block"]["logs"]
            assert len(found) == len(twins) > 0
            for one, other in zip(found, twins, strict=True):
                assert_same(LOG, one, other)


def test_withdrawals(client: Client) -> None:
    for block in blocks(client):
        document = '{block(hash:"<hash>"){withdrawals{<fields>}}}'
        document = filled(document, hash=block["hash"], fields=selection(WITHDRAWAL))
        shown = client.ask(document)["block"]["withdrawals"]
        for one, twin in zip(shown or [], block.get("withdrawals", []), strict=True):
            assert_same(WITHDRAWAL, one, twin)


def test_ommers(client: Client) -> None:
    text = selection({name: twin for name, twin in BLOCK.items() if name != "transactions"}) + " totalDifficulty"
    apart = {"transactions", "transactionCount", "ommerCount"}
    wanted = {name: one for name, one in BLOCK.items() if name not in apart}
    for block in blocks(client):
        for index in range(len(block["uncles"])):
            twin = client.rpc.ask("eth_getUncleByBlockHashAndIndex", block["hash"], hex(index))
            document = '{block(hash:"<hash>"){ommerAt(index:<at>){<fields>} ommers{<fields>}}}'
            shown = client.ask(filled(document, hash=block["hash"], at=index, fields=text))["block"]
            ommer = shown["ommerAt"]
            assert ommer == shown["ommers"][index]
            assert (ommer["ommerCount"], ommer["transactionCount"], ommer["totalDifficulty"]) == (None, 0, "0x0")
            assert_same(wanted, ommer, {**twin, "uncles": []})


def test_accounts_at_every_block(client: Client) -> None:
    chain = blocks(client)
    addresses = {block["miner"] for block in chain} | {"0x" + "00" * 20}
    for block in chain:
        for transaction in block["transactions"]:
            receipt = client.rpc.ask("eth_getTransactionReceipt", transaction["hash"])
            addresses |= {transaction["from"], transaction["to"] or receipt["contractAddress"]}
    text = """query($a:Address!,$n:Long){
        account(address:$a,blockNumber:$n){address balance transactionCount code storage(slot:"0x0")}
        block(number:$n){account(address:$a){balance}}
    }"""
    for block in chain[:: max(1, len(chain) // 12)] + chain[-1:]:
        at = block["number"]
        for address in sorted(addresses):
            shown = client.ask(text, {"a": address, "n": at})
            assert shown["account"] == {
                "address": address,
                "balance": client.rpc.ask("eth_getBalance", address, at),
                "transactionCount": int(client.rpc.ask("eth_getTransactionCount", address, at), 16),
                "code": client.rpc.ask("eth_getCode", address, at),
                "storage": client.rpc.ask("eth_getStorageAt", address, "0x0", at),
            }
            assert shown["block"]["account"]["balance"] == shown["account"]["balance"]


def test_calls_and_estimates(client: Client) -> None:
    text = """query($n:Long,$c:CallData!){
        block(number:$n){call(data:$c){data status gasUsed} estimateGas(data:$c)}
    }"""
    for block in blocks(client):
        for transaction in block["transactions"][:3]:
            call = {"from": transaction["from"], "to": transaction["to"], "data": transaction["input"]}
            status, answer = client.post(text, {"n": block["number"], "c": call})
            twin = client.rpc.request("eth_call", {**call, "gas": block["gasLimit"]}, block["number"])
            estimate = client.rpc.request("eth_estimateGas", call, block["number"])
            if "result" in estimate:
                assert status == 200
                shown = answer["data"]["block"]
                assert shown["estimateGas"] == int(estimate["result"], 16)
                assert shown["call"]["status"] == int("result" in twin)
                assert shown["call"]["data"] == twin.get("result", twin.get("error", {}).get("data", "0x"))
            else:
                code = estimate["error"]["code"]
                assert (status, answer["data"]) == (400, None)
                assert answer["errors"][0]["extensions"]["errorCode"] == code
                assert answer["errors"][0]["extensions"].get("data") == (
                    estimate["error"].get("data") if code == 3 else None
                )


def test_what_the_node_says_of_itself(client: Client) -> None:
    shown = client.ask("{gasPrice maxPriorityFeePerGas chainID protocolVersion syncing{currentBlock} block{number}}")
    rpc = client.rpc
    assert shown == {
        "gasPrice": rpc.ask("eth_gasPrice"),
        "maxPriorityFeePerGas": rpc.ask("eth_maxPriorityFeePerGas"),
        "chainID": rpc.ask("eth_chainId"),
        "protocolVersion": int(rpc.ask("eth_protocolVersion"), 16),
        "syncing": None,
        "block": {"number": int(rpc.ask("eth_blockNumber"), 16)},
    }
