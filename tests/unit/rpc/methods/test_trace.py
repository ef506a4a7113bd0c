"""Tests flat traces, filters, and replays with their effects."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.endpoints.services import method_table
from ophion.rpc.schema.registry import HTTP
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.unit.rpc.contracts import deploying
from tests.unit.rpc.interface import Interface

SENDER = "0x" + DEV_KEYS[0].address.hex()
OTHER = "0x" + DEV_KEYS[1].address.hex()
NOWHERE = "0x" + "ab" * 32
STORING = bytes.fromhex("602a60075500")
DYING = bytes.fromhex("33ff")


def word(number: int) -> str:
    return f"0x{number:064x}"


def deploy_and_call(dev: Interface, runtime: bytes, value: int = 0) -> tuple[str, str]:
    """Deploy a contract and call it. Returns the contract and the hash of the call."""
    created = legacy_transaction(DEV_KEYS[0], 0, to=None, gas=200_000, data=deploying(runtime))
    _, (hash,) = dev.run(dev.node.mine(created))
    contract = dev.ask("eth_getTransactionReceipt", "0x" + hash.hex())["contractAddress"]
    to = bytes.fromhex(contract[2:])
    _, (called,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 1, to=to, gas=100_000, value=value)))
    return contract, "0x" + called.hex()


def test_a_block_lists_its_transactions_and_its_reward(sample: Interface) -> None:
    entries = sample.ask("trace_block", "0x1e")
    assert [entry["type"] for entry in entries] == ["call", "reward"]
    call, reward = entries
    assert call["blockNumber"] == reward["blockNumber"] == 30
    assert (call["transactionPosition"], reward["transactionPosition"]) == (0, None)
    assert reward["action"]["rewardType"] == "block"
    assert reward["action"]["value"] == hex(5 * 10**18)
    assert "result" in reward
    assert sample.ask("trace_block", "0x0") == []
    assert sample.ask("trace_block", "0x999") is None


def test_a_transaction_and_its_entries(dev: Interface) -> None:
    contract, hash = deploy_and_call(dev, DYING, value=5)
    entries = dev.ask("trace_transaction", hash)
    assert [(entry["type"], entry["traceAddress"], entry["subtraces"]) for entry in entries] == [
        ("call", [], 1),
        ("suicide", [0], 0),
    ]
    assert entries[1]["action"] == {"address": contract, "balance": "0x5", "refundAddress": SENDER}
    assert entries[1]["result"] is None
    assert dev.ask("trace_get", hash, ["0x0"]) == entries[1]
    assert dev.ask("trace_get", hash, []) == entries[0]
    assert dev.ask("trace_get", hash, ["0x5"]) is None
    assert dev.ask("trace_transaction", NOWHERE) == []
    assert dev.ask("trace_get", NOWHERE, ["0x0"]) is None


def test_a_creation_shows_its_code(dev: Interface) -> None:
    contract, _ = deploy_and_call(dev, STORING)
    created = dev.ask("trace_block", "0x1")[0]
    assert created["type"] == "create"
    assert created["action"]["creationMethod"] == "create"
    assert created["result"]["address"] == contract
    assert created["result"]["code"] == "0x" + STORING.hex()


def test_a_failed_frame_has_an_error_and_no_result(dev: Interface) -> None:
    to = "0x" + "c1" * 20
    answer = dev.ask("trace_call", {"from": SENDER, "to": None, "data": "0xfe", "gas": "0x186a0"}, ["trace"])
    failed = answer["trace"][0]
    assert failed["error"] == "Bad instruction"
    assert "result" not in failed
    plain = dev.ask("trace_call", {"from": SENDER, "to": to, "gas": "0x186a0"}, ["trace"])
    assert plain["trace"][0]["result"] == {"gasUsed": "0x0", "output": "0x"}
    assert plain["trace"][0]["action"]["gas"] == hex(100_000 - 21_000)
    assert (plain["vmTrace"], plain["stateDiff"]) == (None, None)
    assert "transactionHash" not in plain


def test_filters_by_address_and_number(sample: Interface) -> None:
    wide = {"fromBlock": "0x1", "toBlock": "0x20"}
    everything = sample.ask("trace_filter", wide)
    miner = "0x8888f1f195afa192cfee860698584c030f4c9db1"
    kinds = [entry["action"]["rewardType"] for entry in everything if entry["type"] == "reward"]
    assert (kinds.count("block"), kinds.count("uncle")) == (32, 2)
    rewards = sample.ask("trace_filter", {**wide, "toAddress": [miner]})
    assert {entry["type"] for entry in rewards} == {"reward"}
    sender = everything[0]["action"]["from"]
    sent = sample.ask("trace_filter", {**wide, "fromAddress": [sender]})
    assert {entry["action"]["from"] for entry in sent} == {sender}
    assert sample.ask("trace_filter", {**wide, "after": 2, "count": 3}) == everything[2:5]
    assert sample.ask("trace_filter", {}) == [entry for entry in everything if entry["blockNumber"] == 32]
    assert sample.ask("trace_filter", {**wide, "toBlock": "0x1000"}) == everything
    assert sample.ask("trace_filter", {"fromBlock": "0x21", "toBlock": "0x1000"}) == []
    assert sample.error("trace_filter", {"fromBlock": "0x2", "toBlock": "0x1"})[0] == -32602
    assert sample.error("trace_filter", 5)[0] == -32602


def test_a_filter_over_states_that_are_not_kept_is_no_empty_list(dev: Interface) -> None:
    for _ in range(5):
        dev.run(dev.node.seal())
    assert len(dev.ask("trace_filter", {"fromBlock": "0x1", "toBlock": "0x5"})) == 5
    dev.context.queries.chain.state_history = 3
    answer = dev.request("trace_filter", {"fromBlock": "0x1", "toBlock": "0x5"})
    assert answer["error"] == {
        "code": -32000, "message": "World state unavailable", "data": "states before block 2 are not kept",
    }  # fmt: skip
    assert len(dev.ask("trace_filter", {"fromBlock": "0x3", "toBlock": "0x5"})) == 3
    assert dev.ask("trace_filter", {"fromBlock": "0x0", "toBlock": "0x0"}) == []
    assert dev.ask("trace_filter", {"fromBlock": "0x63", "toBlock": "0x64"}) == []


def test_a_filter_of_too_many_blocks_is_refused(sample: Interface) -> None:
    context = replace(sample.context, limits=replace(sample.context.limits, max_trace_range=10))
    narrow = Dispatcher(method_table(context, ("trace",), HTTP), sample.loop)
    body = b'{"id":1,"method":"trace_filter","params":[{"fromBlock":"0x1","toBlock":"0x%x"}]}'
    assert "result" in sample.message(body % 11, narrow)
    assert sample.message(body % 12, narrow)["error"]["code"] == -32005


def test_a_replay_shows_what_changed(dev: Interface) -> None:
    contract, hash = deploy_and_call(dev, STORING)
    (replay,) = dev.ask("trace_replayBlockTransactions", "0x2", ["stateDiff", "vmTrace"])
    assert replay["transactionHash"] == hash
    assert replay["trace"] == []
    change = replay["stateDiff"][contract]
    assert (change["balance"], change["code"], change["nonce"]) == ("=", "=", "=")
    assert change["storage"] == {word(7): {"*": {"from": word(0), "to": word(42)}}}
    assert replay["stateDiff"][SENDER]["nonce"] == {"*": {"from": "0x1", "to": "0x2"}}
    assert dev.ask("trace_replayTransaction", hash, ["stateDiff", "vmTrace"]) == replay
    (creation,) = dev.ask("trace_replayBlockTransactions", "0x1", ["statediff"])
    assert creation["stateDiff"][contract]["code"] == {"+": "0x" + STORING.hex()}
    assert creation["stateDiff"][contract]["nonce"] == {"+": "0x1"}
    assert dev.ask("trace_replayBlockTransactions", "0x0", ["trace"]) == []
    assert dev.ask("trace_replayBlockTransactions", "0x99", ["trace"]) is None
    assert dev.ask("trace_replayTransaction", NOWHERE, ["trace"]) is None
    assert dev.error("trace_replayTransaction", hash, ["everything"])[0] == -32602


def test_instructions_with_their_effects(dev: Interface) -> None:
    _, hash = deploy_and_call(dev, STORING)
    machine: dict[str, Any] = dev.ask("trace_replayTransaction", hash, ["vmTrace"])["vmTrace"]
    assert machine["code"] == "0x" + STORING.hex()
    push, _, store, stop = machine["ops"]
    assert (push["pc"], push["cost"], push["ex"]["push"], push["sub"]) == (0, 3, ["0x2a"], None)
    assert store["ex"]["store"] == {"key": "0x7", "val": "0x2a"}
    assert store["cost"] == 22_100
    assert stop["ex"]["used"] == store["ex"]["used"]


def test_calls_are_nested_into_the_machine_trace(dev: Interface) -> None:
    """The machine trace contains the traces of inner calls. The contract calls the identity contract, then an empty
    account.
    """
    inner = "6000600060006000600073" + "c2" * 20 + "5af1"
    code = "602a600052" + "6020600060206000600060045af1" + inner + "00"
    init = deploying(bytes.fromhex(code))
    _, (hash,) = dev.run(dev.node.mine(legacy_transaction(DEV_KEYS[0], 0, to=None, gas=300_000, data=init)))
    contract = dev.ask("eth_getTransactionReceipt", "0x" + hash.hex())["contractAddress"]
    machine = dev.ask("trace_call", {"from": SENDER, "to": contract, "gas": "0x30000"}, ["vmTrace"])["vmTrace"]
    calls = [one for one in machine["ops"] if one["sub"] is not None]
    assert [one["sub"] for one in calls] == [{"code": "0x", "ops": []}] * 2
    assert calls[0]["ex"]["mem"] == {"data": word(42), "off": 0}
    assert calls[0]["ex"]["push"] == ["0x1"]
    assert calls[0]["cost"] == 100 + 18
    assert calls[1]["cost"] == 2600 + (calls[0]["ex"]["used"] - 6 * 3 - 2 - 2600) * 63 // 64 + 1


def test_many_calls_build_on_each_other(dev: Interface) -> None:
    call = {"from": SENDER, "to": OTHER, "value": "0x1", "gas": "0x5208"}
    first, second = dev.ask("trace_callMany", [[call, ["stateDiff"]], [call, ["stateDiff"]]], "latest")
    before, after = first["stateDiff"][SENDER]["nonce"]["*"], second["stateDiff"][SENDER]["nonce"]["*"]
    assert before["to"] == after["from"]
    assert dev.error("trace_callMany", [[call]], "latest")[0] == -32602


def test_slots_of_many_calls_cost_what_they_did_before_the_first(dev: Interface) -> None:
    """Three calls change a slot from 0 to 1, to 2, and to 0 again. SSTORE gas depends on the slot's value before the
    first call.
    """
    contract, _ = deploy_and_call(dev, bytes.fromhex("60003560005500"))
    calls = [
        [{"from": SENDER, "to": contract, "data": word(value), "gas": "0x186a0"}, ["trace", "vmTrace"]]
        for value in (1, 2, 0)
    ]
    answers = dev.ask("trace_callMany", calls, "latest")
    stores = [answer["vmTrace"]["ops"][3]["cost"] for answer in answers]
    assert stores == [2100 + 20_000, 2100 + 100, 2100 + 100]
    used = [int(answer["trace"][0]["result"]["gasUsed"], 16) for answer in answers]
    assert [used[0] - one for one in used] == [0, 19_900, 19_900]
    alone = dev.ask("trace_call", *calls[1], "latest")
    assert alone["vmTrace"]["ops"][3]["cost"] == 2100 + 20_000


def test_a_signed_transaction_is_traced_without_being_sent(dev: Interface) -> None:
    raw = legacy_transaction(DEV_KEYS[0], 0, to=DEV_KEYS[1].address, value=1)
    answer = dev.ask("trace_rawTransaction", "0x" + raw.hex(), ["trace"])
    assert answer["trace"][0]["action"]["to"] == OTHER
    assert dev.ask("txpool_status")["pending"] == "0x0"
    assert dev.error("trace_rawTransaction", "0x00", ["trace"])[0] == -32602


def test_mined_creations_say_how_they_were_made_and_calls_do_not(dev: Interface) -> None:
    """Mined creations have a `creationMethod`. A single CREATE2 gives all creations of the transaction the value
    "create2".
    """
    init = bytes.fromhex("60006000600060006000f55060016000f3")
    raw = legacy_transaction(DEV_KEYS[0], 0, to=None, gas=300_000, data=init)
    call = {"from": SENDER, "data": "0x" + init.hex(), "gas": "0x493e0"}
    asked = [
        dev.ask("trace_rawTransaction", "0x" + raw.hex(), ["trace"]),
        dev.ask("trace_call", call, ["trace"], "latest"),
        *dev.ask("trace_callMany", [[call, ["trace"]]], "latest"),
    ]
    for answer in asked:
        assert [entry["type"] for entry in answer["trace"]] == ["create", "create"]
        assert not any("creationMethod" in entry["action"] for entry in answer["trace"])
    _, (hash,) = dev.run(dev.node.mine(raw))
    name = "0x" + hash.hex()
    (replayed,) = dev.ask("trace_replayBlockTransactions", "0x1", ["trace"])
    creations = [entry for entry in dev.ask("trace_block", "0x1") if entry["type"] == "create"]
    for entries in (dev.ask("trace_transaction", name), creations, replayed["trace"]):
        assert [entry["action"]["creationMethod"] for entry in entries] == ["create2", "create2"]
