"""Tests calls, estimates and sent transactions over GraphQL."""

from __future__ import annotations

import json

from ophion.graphql.node_requests import replies_to
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.graphql.client import Client
from tests.unit.rpc.contracts import deploying

REVERTING = bytes.fromhex("6001600052602060 00fd".replace(" ", ""))
"""Code that reverts with the number one in 32 bytes."""


def deployed(client: Client, runtime: bytes) -> str:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=None, gas=300_000, data=deploying(runtime))
    client.rpc.run(client.rpc.node.mine(raw))
    address: str = client.ask("{block{transactionAt(index:0){createdContract{address}}}}")["block"]["transactionAt"][
        "createdContract"
    ]["address"]
    return address


def test_a_call_that_fails_says_so_in_its_status(dev: Client) -> None:
    call = {"to": deployed(dev, REVERTING)}
    shown = dev.ask(
        "query($c:CallData!){block{call(data:$c){status data gasUsed}} pending{call(data:$c){status}}}", {"c": call}
    )
    assert shown["block"]["call"]["status"] == 0
    assert shown["block"]["call"]["data"] == "0x" + "0" * 63 + "1"
    assert shown["block"]["call"]["gasUsed"] > 21_000
    assert shown["pending"]["call"] == {"status": 0}
    too_little = dev.ask("{block{call(data:{gas:5}){status data gasUsed}}}")["block"]["call"]
    assert too_little == {"status": 0, "data": "0x", "gasUsed": 0}


def test_an_estimate_that_fails_is_an_error_with_the_revert_data(dev: Client) -> None:
    call = {"to": deployed(dev, REVERTING)}
    status, answer = dev.post("query($c:CallData!){block{number estimateGas(data:$c)}}", {"c": call})
    assert (status, answer["data"]) == (400, None)
    (error,) = answer["errors"]
    assert error["path"] == ["block", "estimateGas"]
    assert error["extensions"]["errorCode"] == 3
    assert error["extensions"]["data"] == "0x" + "0" * 63 + "1"


def test_each_block_is_called_in_its_own_state(client: Client) -> None:
    call = {"to": "0x6295ee1b4f6dd65047762f924ecd367c17eabf8f", "data": "0x12a7b914"}
    document = "query($c:CallData!){blocks(from:7,to:9){number call(data:$c){data}}}"
    shown = client.ask(document, {"c": call})["blocks"]
    for one in shown:
        assert one["call"]["data"] == client.rpc.ask("eth_call", call, hex(one["number"]))


def test_transactions_are_sent_in_their_order(dev: Client) -> None:
    key = DEV_KEYS[0]
    raws = ["0x" + legacy_transaction(key, nonce, value=1).hex() for nonce in range(3)]
    names = "abc"
    text = (
        "mutation{"
        + " ".join(f"{name}:sendRawTransaction(data:{json.dumps(raw)})" for name, raw in zip(names, raws, strict=True))
        + "}"
    )
    shown = dev.ask(text)
    assert list(shown) == list(names)
    assert set(shown.values()) == {"0x" + one.transaction.hash.hex() for one in dev.rpc.context.pool.transactions()}


def test_what_the_pool_refuses_has_the_code_of_json_rpc(dev: Client) -> None:
    key = DEV_KEYS[0]
    dev.rpc.run(dev.rpc.node.mine(legacy_transaction(key, 0)))
    bad = [
        legacy_transaction(key, 0),
        legacy_transaction(key, 5, chain_id=77),
        legacy_transaction(key, 1, gas=100),
        b"",
        b"\x01\x02",
        legacy_transaction(key, 1, value=10**30),
    ]
    for raw in bad:
        text = "0x" + raw.hex()
        status, answer = dev.post("mutation($d:Bytes!){sendRawTransaction(data:$d)}", {"d": text})
        assert (status, answer["data"]) == (400, None)
        code, message = dev.rpc.error("eth_sendRawTransaction", text)
        assert answer["errors"][0]["extensions"] == {
            "errorCode": code, "errorMessage": message, "classification": "DataFetchingException",
        }  # fmt: skip
        assert answer["errors"][0]["message"] == f"Exception while fetching data (/sendRawTransaction) : {message}"


def test_nothing_asked_is_nothing_done(dev: Client) -> None:
    assert dev.rpc.run(replies_to(dev.rpc.context, [])) == []
