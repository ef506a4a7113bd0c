"""Tests answers of fields: rules of graphql.md 5 that have no JSON-RPC equivalent."""

from __future__ import annotations

from typing import Any

import pytest

from ophion.graphql.limits import GraphqlLimits
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.unit.graphql.client import Client
from tests.unit.rpc.contracts import deploying

RICH = "0x" + DEV_KEYS[1].address.hex()
ABSENT = "0xdeadbeefdeadbeefdeadbeefdeadbeefdeadbeef"
HEAD = "0x71d59849ddd98543bdfbe8548f5eed559b07b8aaf196369f39134500eab68e53"
INVALID = {"errorCode": -32602, "errorMessage": "Invalid params", "classification": "DataFetchingException"}


def extensions(client: Client, document: str, variables: Any = None) -> dict[str, Any]:
    found: dict[str, Any] = client.error(document, variables)["extensions"]
    return found


@pytest.mark.parametrize(
    "document",
    [
        '{block(number:3,hash:"' + HEAD + '"){number}}',
        "{blocks(from:30,to:28){number}}",
        "{blocks(from:33){number}}",
        '{account(address:"' + ABSENT + '",blockNumber:33){balance}}',
        "{block{miner(block:99){balance}}}",
        "{logs(filter:{fromBlock:5,toBlock:4}){index}}",
    ],
)
def test_conflicts_and_bad_ranges_are_invalid_params_and_null_the_data(client: Client, document: str) -> None:
    status, answer = client.post(document)
    assert status == 400
    assert list(answer) == ["errors", "data"]
    assert answer["data"] is None
    assert answer["errors"][0]["extensions"] == INVALID


def test_blocks_leave_out_what_is_above_the_head(client: Client) -> None:
    assert client.ask("{blocks(from:31,to:99){number}}") == {"blocks": [{"number": 31}, {"number": 32}]}
    assert client.ask("{blocks(from:40,to:99){number}}") == {"blocks": []}
    assert client.ask("{blocks(from:32){number}}") == {"blocks": [{"number": 32}]}


def test_absent_accounts_have_zero_values(client: Client) -> None:
    fields = 'address balance transactionCount code storage(slot:"0x1")'
    zero = {"address": ABSENT, "balance": "0x0", "transactionCount": 0, "code": "0x", "storage": "0x" + "0" * 64}
    assert client.ask('{account(address:"' + ABSENT + '"){' + fields + "}}") == {"account": zero}
    shown = client.ask("{block(number:0){miner{" + fields + "} parent{hash}}}")["block"]
    assert shown == {"miner": {**zero, "address": "0x8888f1f195afa192cfee860698584c030f4c9db1"}, "parent": None}


def test_positions_beyond_the_end_are_null(client: Client) -> None:
    shown = client.ask("""{block(number:30){
        a:transactionAt(index:1){hash} b:transactionAt(index:-1){hash}
        c:ommerAt(index:0){hash} d:ommerAt(index:-5){hash}
    }}""")
    assert shown == {"block": dict.fromkeys("abcd")}


def test_transactions_that_do_not_exist_are_null(client: Client) -> None:
    assert client.ask('{transaction(hash:"' + HEAD + '"){hash}}') == {"transaction": None}


def test_accounts_at_another_block(client: Client) -> None:
    shown = client.ask("{block(number:32){early:miner(block:1){balance} late:miner{balance}}}")["block"]
    assert int(shown["early"]["balance"], 16) < int(shown["late"]["balance"], 16)


def test_an_error_in_a_nullable_field_stays_there(client: Client) -> None:
    document = "{block(number:30){number transactionAt(index:0){hash from(block:99){address}}}}"
    status, answer = client.post(document)
    assert status == 400
    assert answer["data"] == {"block": {"number": 30, "transactionAt": None}}
    (error,) = answer["errors"]
    assert error["path"] == ["block", "transactionAt", "from"]
    assert error["message"] == "Exception while fetching data (/block/transactionAt/from) : Invalid params"


def test_errors_in_lists_name_the_position(client: Client) -> None:
    status, answer = client.post("{blocks(from:29,to:31){transactions{from(block:99){address}}}}")
    assert status == 400
    assert answer["errors"][0]["path"] == ["blocks", 0, "transactions", 0, "from"]
    assert answer["errors"][0]["message"].startswith(
        "Exception while fetching data (/blocks[0]/transactions[0]/from) :"
    )
    assert answer["data"]["blocks"][0] == {"transactions": None}


def test_log_filters(client: Client) -> None:
    def count(criteria: str) -> int:
        return len(client.ask("{block(number:23){logs(filter:{" + criteria + "}){index}}}")["block"]["logs"])

    everything = count("")
    assert everything > 0
    assert count("addresses:[],topics:[]") == everything
    assert count("addresses:null,topics:null") == everything
    assert count("topics:[[]]") == everything
    assert count("topics:[[],[],[],[],[]]") == 0, "a log must have as many topics as positions"
    assert count('addresses:["' + ABSENT + '"]') == 0


def test_the_pool_is_pending(dev: Client) -> None:
    key, to = DEV_KEYS[0], bytes.fromhex("11" * 20)
    raws = [legacy_transaction(key, 0, to=to, value=5), fee_transaction(key, 1, to=to, value=6)]
    hashes = ["0x" + hash.hex() for hash in dev.rpc.run(dev.rpc.node.send(*raws))]
    fields = """hash nonce gas value index block{hash} status gasUsed cumulativeGasUsed createdContract{address}
        logs{index} effectiveGasPrice rawReceipt from{address transactionCount} to{balance}"""
    shown = dev.ask("{pending{transactionCount transactions{" + fields + "}}}")["pending"]
    assert shown["transactionCount"] == 2
    for at, one in enumerate(sorted(shown["transactions"], key=lambda one: one["nonce"])):
        assert one == {
            "hash": hashes[at], "nonce": at, "gas": 21000, "value": hex(5 + at), "index": None, "block": None,
            "status": None, "gasUsed": None, "cumulativeGasUsed": None, "createdContract": None, "logs": None,
            "effectiveGasPrice": None, "rawReceipt": "0x", "to": {"balance": "0x0"},
            "from": {"address": "0x" + key.address.hex(), "transactionCount": 0},
        }  # fmt: skip
    named = dev.ask('{transaction(hash:"' + hashes[0] + '"){hash nonce block{hash}}}')["transaction"]
    assert named == {"hash": hashes[0], "nonce": 0, "block": None}
    dev.rpc.run(dev.rpc.node.seal())
    assert dev.ask("{pending{transactionCount transactions{hash}}}") == {
        "pending": {"transactionCount": 0, "transactions": []}
    }
    mined = dev.ask('{transaction(hash:"' + hashes[0] + '"){index status block{number}}}')["transaction"]
    assert mined == {"index": 0, "status": 1, "block": {"number": 1}}


def test_a_created_contract_is_shown(dev: Client) -> None:
    code = bytes.fromhex("60016002")
    raw = legacy_transaction(DEV_KEYS[0], 0, to=None, gas=200_000, data=deploying(code))
    _, hashes = dev.rpc.run(dev.rpc.node.mine(raw))
    shown = dev.ask(
        '{transaction(hash:"0x' + hashes[0].hex() + '"){to{address} createdContract{code transactionCount}}}'
    )
    assert shown == {"transaction": {"to": None, "createdContract": {"code": "0x" + code.hex(), "transactionCount": 1}}}


def test_an_answer_belongs_to_one_head(dev: Client) -> None:
    """A block that is stored but not announced yet does not appear."""
    queries = dev.rpc.context.queries
    before = queries.head
    dev.rpc.run(dev.rpc.node.seal())
    after = queries.head
    queries._set_head(before)
    shown = dev.ask("{block{number} blocks(from:0){number}}")
    assert shown == {"block": {"number": 0}, "blocks": [{"number": 0}]}
    assert dev.errors('{block(hash:"0x' + after.hash.hex() + '"){number}}')[0]["message"].endswith("was not found")
    assert dev.errors("{block(number:1){number}}")[0]["message"].endswith("Block number 1 was not found")
    queries._set_head(after)
    assert dev.ask("{block{number}}") == {"block": {"number": 1}}


def test_integers_are_hex_text_if_the_node_is_configured_so(client: Client) -> None:
    document = """{
        protocolVersion chainID
        block(number:30){
            number gasUsed timestamp transactionCount ommerCount estimateGas(data:{})
            transactions{nonce index status gas gasUsed cumulativeGasUsed type logs{index} from{transactionCount}}
        }
        pending{transactionCount}
    }"""
    decimal, shown = client.ask(document), Client(client.rpc, GraphqlLimits(hex_integers=True)).ask(document)
    assert shown["protocolVersion"] == decimal["protocolVersion"], "later versions have no such field"

    def hexed(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: one if name == "protocolVersion" else hexed(one) for name, one in value.items()}
        if isinstance(value, list):
            return [hexed(one) for one in value]
        return hex(value) if isinstance(value, int) else value

    assert shown == hexed(decimal)


def test_a_pruned_state_is_missing_even_before_the_sweep(dev: Client) -> None:
    for _ in range(4):
        dev.rpc.run(dev.rpc.node.seal())
    account = f'account(address: "{RICH}"'
    balance = dev.ask(f"{{ {account}, blockNumber: 1) {{ balance }} }}")
    assert balance == {"account": {"balance": dev.rpc.ask("eth_getBalance", RICH, "0x1")}}
    dev.rpc.context.queries.chain.state_history = 2
    assert dev.rpc.ask("eth_getBalance", RICH, "0x1") is None
    for query in (f"{account}, blockNumber: 1) {{ balance }}", f"block(number: 1) {{ {account}) {{ code }} }}"):
        refused = dev.error(f"{{ {query} }}")
        assert refused["extensions"]["errorCode"] == -32008
    for number in (0, 2, 4):
        dev.ask(f"{{ {account}, blockNumber: {number}) {{ balance }} }}")
    dev.ask(f"{{ block(number: 1) {{ {account}) {{ address }} }} }}")
