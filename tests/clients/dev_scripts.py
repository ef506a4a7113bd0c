"""Scripts that run against any development node with cheat codes. Each script returns its observations.

The scripts use only JSON-RPC. Values that differ from run to run (hashes, the current time) are left out or made
relative.
"""

from __future__ import annotations

import itertools
import json
import random
import urllib.request
from collections.abc import Callable, Sequence
from typing import Any

FIRST = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
SECOND = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
OTHER = "0x00000000000000000000000000000000000000aa"
WHALE = "0x00000000000000000000000000000000000000bb"
CODE = "0x42600052446020526000546040524360605260806000f3"
"""Code that returns timestamp, prevRandao, slot 0 and block number."""
TOKEN = "0x" + (
    # balanceOf(a) reads a mapping at slot 3, and allowance(o, s) reads a mapping of mappings at slot 4; other calls
    # revert
    "60003560e01c806370a0823114601d5763dd62ed3e14603757600080fd5b"
    "600435600052600360205260406000205460005260206000f35b"
    "600435600052600460205260406000206020526024356000526040600020546000526020"
    "6000f3"
)


class Node:
    """A JSON-RPC client of one node."""

    def __init__(self, url: str) -> None:
        self.url = url

    def answer(self, method: str, *params: Any) -> dict[str, Any]:
        """Send a request; return the whole answer."""
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            answer: dict[str, Any] = json.loads(response.read())
        return answer

    def ask(self, method: str, *params: Any) -> Any:
        """Send a request; return its result. An error fails the test."""
        answer = self.answer(method, *params)
        assert "error" not in answer, (method, params, answer)
        return answer["result"]

    def error(self, method: str, *params: Any) -> int:
        """Send a request that must fail; return the error code."""
        answer = self.answer(method, *params)
        assert "error" in answer, (method, params, answer)
        code: int = answer["error"]["code"]
        return code

    def code(self, method: str, *params: Any) -> Any:
        """Send a request; return its result, or the code of its error."""
        answer = self.answer(method, *params)
        return answer["error"]["code"] if "error" in answer else answer["result"]

    def outcome(self, method: str, *params: Any) -> Any:
        """Send a request; return its result, or code and text of its error."""
        answer = self.answer(method, *params)
        error = answer.get("error")
        return answer["result"] if error is None else (error["code"], error["message"])

    def batch(self, calls: Sequence[tuple[str, list[Any]]]) -> list[dict[str, Any]]:
        """Send requests in one batch; return the answers."""
        requests = [
            {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            for number, (method, params) in enumerate(calls)
        ]
        request = urllib.request.Request(self.url, json.dumps(requests).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=120) as response:
            answers: list[dict[str, Any]] = json.loads(response.read())
        return answers

    def number(self) -> int:
        return int(self.ask("eth_blockNumber"), 16)

    def block(self, number: str = "latest") -> dict[str, Any]:
        block: dict[str, Any] = self.ask("eth_getBlockByNumber", number, False)
        return block

    def time(self, number: str = "latest") -> int:
        return int(self.block(number)["timestamp"], 16)

    def balance(self, address: str) -> int:
        return int(self.ask("eth_getBalance", address, "latest"), 16)

    def send(self, sender: str, to: str, value: int = 1, **more: Any) -> str:
        transaction = {"from": sender, "to": to, "value": hex(value), **more}
        hash: str = self.ask("eth_sendTransaction", transaction)
        return hash

    def receipt(self, hash: str) -> dict[str, Any] | None:
        receipt: dict[str, Any] | None = self.ask("eth_getTransactionReceipt", hash)
        return receipt

    def mined(self, hash: str) -> dict[str, Any]:
        """Wait for a receipt, because some nodes answer before the block is made."""
        for _ in range(500):
            receipt = self.receipt(hash)
            if receipt is not None:
                return receipt
        raise AssertionError("the transaction was not mined")


Script = Callable[[Node], Any]
SCRIPTS: dict[str, Script] = {}


def script(function: Script) -> Script:
    SCRIPTS[function.__name__] = function
    return function


def _word(value: int) -> str:
    return f"0x{value:064x}"


@script
def defaults(node: Node) -> Any:
    genesis = node.block("0x0")
    members = ("gasLimit", "baseFeePerGas", "extraData", "mixHash", "nonce", "withdrawalsRoot", "number", "gasUsed")
    version: str = node.ask("web3_clientVersion")
    return [
        node.ask("eth_chainId"),
        node.ask("net_version"),
        node.ask("net_listening"),
        node.ask("eth_accounts"),
        [node.balance(account) for account in node.ask("eth_accounts")],
        version.startswith("anvil/v1.7.1"),
        {name: genesis[name] for name in members},
        node.ask("eth_getCode", "0x4e59b44847b379578588920cA78FbF26c0B4956C", "latest"),
        node.ask("eth_gasPrice"),
        node.ask("eth_maxPriorityFeePerGas"),
        node.ask("eth_coinbase"),
        node.ask("debug_traceBlockByNumber", "0x0"),
    ]


@script
def snapshot_and_revert(node: Node) -> Any:
    seen: list[Any] = [node.ask("evm_snapshot")]
    node.mined(node.send(FIRST, OTHER, 10**18))
    seen += [node.number(), node.balance(OTHER), node.ask("evm_snapshot")]
    node.ask("anvil_setBalance", OTHER, "0x5")
    node.ask("anvil_mine", "0x3")
    seen += [node.number(), node.balance(OTHER)]
    seen += [node.ask("evm_revert", "0x1"), node.number(), node.balance(OTHER)]
    seen += [node.ask("evm_revert", "0x1"), node.ask("evm_revert", "0x0"), node.number(), node.balance(OTHER)]
    seen += [node.ask("evm_revert", "0x0"), node.ask("evm_snapshot")]
    seen += [node.ask("eth_getTransactionCount", FIRST, "latest")]
    node.mined(node.send(FIRST, OTHER, 7))
    return [*seen, node.number(), node.balance(OTHER)]


@script
def mining(node: Node) -> Any:
    seen: list[Any] = [node.ask("anvil_getAutomine"), node.ask("evm_mine"), node.number()]
    before = node.time()
    seen += [node.ask("anvil_mine", "0x5", "0xa"), node.number()]
    times = [node.time(hex(number)) for number in range(2, 7)]
    seen += [[later - earlier for earlier, later in itertools.pairwise(times)], times[0] - before >= 10]
    seen += [node.ask("hardhat_mine", "0x2"), node.number(), node.ask("anvil_mine"), node.number()]
    seen += [
        node.ask("evm_mine", {"blocks": 3, "timestamp": None}),
        node.number(),
        node.ask("anvil_mine", "0x0"),
        node.number(),
    ]
    detailed = node.ask("evm_mine_detailed", {"blocks": 2, "timestamp": None})
    return [*seen, [block["number"] for block in detailed]]


@script
def automine_off(node: Node) -> Any:
    seen: list[Any] = [node.ask("evm_setAutomine", False), node.ask("anvil_getAutomine")]
    first, second = node.send(FIRST, OTHER), node.send(FIRST, OTHER)
    seen += [node.number(), node.receipt(first), node.ask("txpool_status")]
    seen += [
        node.ask("eth_getTransactionCount", FIRST, "pending"),
        node.ask("eth_getTransactionCount", FIRST, "latest"),
    ]
    node.ask("evm_mine")
    receipt = node.mined(second)
    seen += [node.number(), receipt["status"], receipt["transactionIndex"], node.balance(OTHER)]
    third = node.send(FIRST, OTHER)
    seen += [node.ask("anvil_dropTransaction", third) == third, node.ask("txpool_status")]
    node.send(FIRST, OTHER)
    node.send(SECOND, OTHER)
    seen += [node.ask("anvil_removePoolTransactions", FIRST), node.ask("txpool_status")]
    seen += [node.ask("anvil_dropAllTransactions"), node.ask("txpool_status")]
    waiting = node.send(FIRST, OTHER)
    seen += [node.ask("evm_setAutomine", True), node.ask("anvil_getAutomine")]
    node.ask("evm_mine")
    return [*seen, node.mined(waiting)["status"]]


@script
def time_travel(node: Node) -> Any:
    start = node.time()
    seen: list[Any] = [node.ask("evm_increaseTime", 1000)]
    node.ask("evm_mine")
    seen.append(1000 <= node.time() - start < 1060)
    target = start + 50_000
    seen.append(node.ask("evm_setNextBlockTimestamp", target))
    node.ask("evm_mine")
    seen.append(node.time() - target)
    node.ask("evm_mine")
    seen.append(0 <= node.time() - target < 60)
    seen.append(node.error("evm_setNextBlockTimestamp", start))
    seen.append(node.ask("anvil_setBlockTimestampInterval", 7))
    node.ask("anvil_mine", "0x3")
    last = node.number()
    seen.append([node.time(hex(last)) - node.time(hex(last - 1)), node.time(hex(last - 1)) - node.time(hex(last - 2))])
    seen += [node.ask("anvil_removeBlockTimestampInterval"), node.ask("anvil_removeBlockTimestampInterval")]
    node.ask("evm_mine", target + 5000)
    seen.append(node.time() - target)
    node.ask("evm_mine", {"timestamp": target + 6000})
    seen.append(node.time() - target)
    node.ask("anvil_setTime", target + 90_000)
    node.ask("evm_mine")
    return [*seen, 0 <= node.time() - target - 90_000 < 60]


@script
def turning_the_clock_back(node: Node) -> Any:
    """Tests set the clock back to the present after they have moved it. Block times then differ: Anvil's go back."""
    start = node.time()
    seen: list[Any] = [node.ask("anvil_setTime", start + 100_000) > 99_000]
    node.ask("evm_mine")
    seen += [node.ask("evm_setTime", start), node.ask("evm_mine"), node.number(), node.ask("anvil_setTime", 0)]
    seen.append(node.mined(node.send(FIRST, OTHER))["status"])
    seen.append(node.ask("evm_setTime", start + 200_000) // 1000 >= 100)
    node.ask("evm_mine")
    return [*seen, 0 <= node.time() - start - 200_000 < 60]


@script
def state_edits(node: Node) -> Any:
    seen: list[Any] = [node.ask("anvil_setBalance", OTHER, hex(12345)), node.balance(OTHER)]
    seen += [node.ask("hardhat_setBalance", OTHER, "0x10"), node.balance(OTHER)]
    seen += [node.ask("anvil_addBalance", OTHER, "0x10"), node.balance(OTHER)]
    seen += [node.ask("anvil_setNonce", OTHER, "0x20"), node.ask("eth_getTransactionCount", OTHER, "latest")]
    seen += [node.ask("evm_setAccountNonce", OTHER, "0x21"), node.ask("eth_getTransactionCount", OTHER, "latest")]
    seen += [node.ask("anvil_setCode", OTHER, CODE), node.ask("eth_getCode", OTHER, "latest")]
    seen += [
        node.ask("anvil_setStorageAt", OTHER, "0x0", _word(77)),
        node.ask("eth_getStorageAt", OTHER, "0x0", "latest"),
    ]
    answer = node.ask("eth_call", {"to": OTHER}, "latest")
    seen.append(int(answer[130:194], 16))
    node.ask("evm_mine")
    seen += [node.balance(OTHER), int(node.ask("eth_call", {"to": OTHER}, "latest")[130:194], 16)]
    node.mined(node.send(FIRST, WHALE, 5))
    seen += [node.balance(OTHER), node.balance(WHALE), node.ask("eth_getStorageAt", OTHER, "0x0", "latest")]
    seen += [node.ask("tenderly_setBalance", OTHER, "0x9"), node.balance(OTHER)]
    return seen


@script
def sending_without_gas_and_sender(node: Node) -> Any:
    seen: list[Any] = []
    for transaction in (
        {"to": OTHER, "value": "0x1"},
        {"from": FIRST, "data": "0xfe"},
        {"from": FIRST, "data": "0x60006000fd"},
    ):
        receipt = node.mined(node.ask("eth_sendTransaction", transaction))
        seen += [receipt["status"], receipt["from"]]
    seen.append("error" in node.answer("eth_sendTransaction", {"from": FIRST, "to": OTHER, "value": hex(10**30)}))
    return seen


@script
def impersonation(node: Node) -> Any:
    transaction = {"from": WHALE, "to": OTHER, "value": "0x1"}
    seen: list[Any] = ["error" in node.answer("eth_sendTransaction", transaction)]
    node.ask("anvil_setBalance", WHALE, hex(10**20))
    seen.append(node.ask("anvil_impersonateAccount", WHALE))
    receipt = node.mined(node.ask("eth_sendTransaction", transaction))
    seen += [receipt["status"], receipt["from"], receipt["gasUsed"], node.balance(OTHER)]
    seen.append(WHALE in node.ask("eth_accounts"))
    mined = node.ask("eth_getTransactionByHash", receipt["transactionHash"])
    seen += [mined["from"], mined["nonce"], mined["to"]]
    # an account with code can be impersonated too
    node.ask("anvil_setCode", WHALE, CODE)
    seen.append(node.mined(node.ask("eth_sendTransaction", transaction))["status"])
    seen.append(node.ask("anvil_stopImpersonatingAccount", WHALE))
    seen.append("error" in node.answer("eth_sendTransaction", transaction))
    seen.append(node.ask("anvil_autoImpersonateAccount", True))
    seen.append(node.mined(node.ask("eth_sendTransaction", transaction))["status"])
    seen.append(node.ask("anvil_autoImpersonateAccount", False))
    seen.append("error" in node.answer("eth_sendTransaction", transaction))
    return seen


@script
def next_block(node: Node) -> Any:
    seen: list[Any] = [node.ask("anvil_setNextBlockBaseFeePerGas", hex(3 * 10**9))]
    node.ask("evm_mine")
    seen.append(node.block()["baseFeePerGas"])
    node.ask("evm_mine")
    seen.append(node.block()["baseFeePerGas"])
    seen.append(node.ask("anvil_setCoinbase", OTHER))
    node.ask("evm_mine")
    seen.append(node.block()["miner"])
    seen.append(node.ask("evm_setBlockGasLimit", hex(20_000_000)))
    node.ask("evm_mine")
    seen.append(node.block()["gasLimit"])
    randoms = {node.block(hex(number))["mixHash"] for number in range(1, node.number() + 1)}
    seen.append(len(randoms) == node.number())
    seen.append(node.ask("anvil_setChainId", 777))
    return [*seen, node.ask("eth_chainId"), node.ask("net_version")]


@script
def tokens(node: Node) -> Any:
    node.ask("anvil_setCode", OTHER, TOKEN)
    balance_of = "0x70a08231" + FIRST[2:].rjust(64, "0")
    allowance = "0xdd62ed3e" + FIRST[2:].rjust(64, "0") + SECOND[2:].rjust(64, "0")
    seen: list[Any] = [node.ask("anvil_dealERC20", FIRST, OTHER, hex(1000))]
    seen.append(int(node.ask("eth_call", {"to": OTHER, "data": balance_of}, "latest"), 16))
    seen.append(node.ask("anvil_setERC20Allowance", FIRST, SECOND, OTHER, hex(55)))
    seen.append(int(node.ask("eth_call", {"to": OTHER, "data": allowance}, "latest"), 16))
    return [*seen, "error" in node.answer("anvil_dealERC20", FIRST, SECOND, hex(1))]


@script
def going_back(node: Node) -> Any:
    node.ask("anvil_mine", "0xa")
    node.mined(node.send(FIRST, OTHER, 5))
    fifth = node.block("0x5")["hash"]
    seen: list[Any] = [node.number(), node.ask("anvil_rollback", 3), node.number(), node.balance(OTHER)]
    seen.append(node.error("anvil_rollback", 100))
    seen.append(node.ask("anvil_reorg", 5, []))
    seen += [node.number(), node.block("0x5")["hash"] == fifth, node.block("0x3")["number"]]
    seen += [node.ask("anvil_reset"), node.number(), node.balance(FIRST)]
    return seen


@script
def dump_and_load(node: Node) -> Any:
    node.ask("anvil_setBalance", OTHER, hex(12345))
    node.ask("anvil_setCode", OTHER, CODE)
    node.ask("anvil_setStorageAt", OTHER, "0x5", _word(6))
    node.ask("anvil_mine", "0x3")
    dump = node.ask("anvil_dumpState")
    node.ask("anvil_reset")
    seen: list[Any] = [node.balance(OTHER), node.ask("anvil_loadState", dump), node.balance(OTHER), node.number()]
    seen += [node.ask("eth_getCode", OTHER, "latest"), node.ask("eth_getStorageAt", OTHER, "0x5", "latest")]
    return [*seen, dump[:6]]


@script
def large_gas(node: Node) -> Any:
    limit = node.block()["gasLimit"]
    seen = [node.mined(node.send(FIRST, OTHER, 1, gas=limit))["status"]]
    seen.append(node.mined(node.send(FIRST, OTHER, 1, gas=hex(30_000_000)))["status"])
    # a loop that counts down from its argument, with 26 gas for each turn
    node.ask("anvil_setCode", OTHER, "0x6000355b60019003806003570000")
    call = {"from": FIRST, "to": OTHER, "data": _word(900_000)}
    seen.append(23_000_000 < int(node.ask("eth_estimateGas", call), 16) < 24_000_000)
    return [*seen, node.mined(node.ask("eth_sendTransaction", call))["gasUsed"]]


@script
def wrong_use(node: Node) -> Any:
    return [
        node.error("anvil_setBalance", OTHER),
        node.error("anvil_setBalance", "nonsense", "0x1"),
        node.error("evm_revert"),
        node.ask("evm_revert", "0xffff"),
        node.error("anvil_setMinGasPrice", "0x1"),
        node.ask("anvil_setRpcUrl", "http://127.0.0.1:1"),
        node.ask("anvil_dropTransaction", _word(1)),
        node.error("anvil_noSuchMethod"),
    ]


@script
def unusual_addresses_and_blocks(node: Node) -> Any:
    """Addresses of every length and blocks of every kind, in the methods that take them."""
    node.send(FIRST, OTHER, 5)
    node.ask("anvil_mine", "0x46")
    hash = node.block("0x1")["hash"]
    seen: list[Any] = []
    for address in (OTHER, OTHER[2:], OTHER.upper().replace("0X", "0x"), "0x12", "0x123", "0x", "", OTHER + "00"):
        seen += [
            node.outcome("eth_getBalance", address, "latest"),
            node.outcome("eth_getStorageAt", address, "0x0", "latest"),
            node.outcome("eth_call", {"to": address}, "latest"),
            node.outcome("eth_call", {"to": OTHER, "accessList": [{"address": address, "storageKeys": []}]}),
        ]
    for address in ("0x", "0x12"):
        seen += [
            node.outcome("eth_sendTransaction", {"from": FIRST, "to": address}),
            node.outcome("eth_estimateGas", {"from": FIRST, "to": address}),
            node.outcome("anvil_setBalance", address, "0x1"),
        ]
    objects: tuple[Any, ...] = (
        {"blockNumber": "0x1"},
        {"blockHash": hash},
        {"blockHash": hash, "requireCanonical": True},
        {"blockHash": _word(7)},
        {"blockNumber": "0x64"},
    )
    for block in ("latest", "earliest", "pending", "safe", "finalized", "0x0", "0x1", "0x0001", "0x64", None, *objects):
        seen += [
            node.outcome("eth_getBalance", OTHER, block),
            node.outcome("eth_getTransactionCount", FIRST, block),
            node.outcome("eth_getCode", OTHER, block),
            node.outcome("eth_getStorageAt", OTHER, "0x1", block),
            node.outcome("eth_call", {"to": OTHER}, block),
        ]
    for tag in ("latest", "earliest", "safe", "finalized", "0x1", "0x64"):
        found = node.ask("eth_getBlockByNumber", tag, False)
        seen.append(None if found is None else found["number"])
    return seen


@script
def unusual_calls(node: Node) -> Any:
    """State and block overrides, simulations and wrong types."""
    contract = node.mined(node.ask("eth_sendTransaction", {"from": FIRST, "data": "0x60015f5560055ff3"}))
    at = contract["contractAddress"]
    slot, value = "0x" + "00" * 32, "0x" + "00" * 31 + "09"
    code = "0x5f545f5260205ff3"
    seen: list[Any] = [
        node.outcome("eth_call", {"to": at}, "latest", {at: {"code": code}}),
        node.outcome("eth_call", {"to": at}, "latest", {at: {"code": code, "state": {slot: value}}}),
        node.outcome("eth_call", {"to": at}, "latest", {at: {"code": code, "stateDiff": {slot: value}}}),
        node.outcome("eth_call", {"to": at}, "latest", {}),
        node.outcome("eth_call", {"to": at}, "latest", None),
        node.code("eth_call", {"to": at}, "latest", {at: {"code": code, "state": {}, "stateDiff": {}}}),
        node.code("eth_call", {"to": at}, "latest", 5),
        node.code("eth_call", 5),
        node.code("eth_call"),
    ]
    for overrides in ({}, {"number": "0x5"}, {"baseFee": "0x9"}):
        seen.append(node.outcome("eth_call", {"data": "0x485f5260205ff3"}, "0x0", {}, overrides))
    for more in ([], ["latest"], ["pending"], ["0x0"]):
        seen.append(node.outcome("eth_call", {"data": "0x485f5260205ff3"}, *more))
    for price in ("gasPrice", "maxFeePerGas"):
        seen.append(node.outcome("eth_call", {"from": FIRST, "data": "0x3a5f5260205ff3", price: "0x1"}, "latest"))
        seen.append(node.outcome("eth_call", {"from": FIRST, "data": "0x485f5260205ff3", price: "0x1"}, "latest"))
    numbers = ("number", "0x64"), ("time", "0x5"), ("gasLimit", "0x100000"), ("coinbase", FIRST), ("random", value)
    for name, changed in numbers:
        read = {"number": "43", "time": "42", "gasLimit": "45", "coinbase": "41", "random": "44"}[name]
        seen.append(node.outcome("eth_call", {"data": f"0x{read}5f5260205ff3"}, "latest", {}, {name: changed}))
    for calls in (
        [{"from": FIRST, "to": OTHER, "value": "0x1"}],
        [{"from": FIRST, "to": at}, {"from": FIRST, "to": OTHER, "value": "0x2"}],
        [],
    ):
        blocks = node.ask("eth_simulateV1", {"blockStateCalls": [{"calls": calls}]}, "latest")
        seen.append(
            [[(call["status"], call["gasUsed"], call["returnData"]) for call in one["calls"]] for one in blocks]
        )
    return seen


@script
def steps_of_a_transaction(node: Node) -> Any:
    """The instructions of a vmTrace, with their names, as cryo reads them."""
    node.ask("anvil_setCode", OTHER, "0x60015f5500")
    node.ask("anvil_setCode", WHALE, "0x5f5f5f5f5f60aa5af100")
    receipt = node.mined(node.ask("eth_sendTransaction", {"from": FIRST, "to": WHALE, "gas": "0x30000"}))
    (replay,) = node.ask("trace_replayBlockTransactions", receipt["blockNumber"], ["vmTrace"])
    steps = replay["vmTrace"]["ops"]
    called = next(step["sub"] for step in steps if step["sub"] is not None)
    return [[(step["pc"], step["op"]) for step in ops] for ops in (steps, called["ops"])]


@script
def filters(node: Node) -> Any:
    """Ranges of logs, the life of filters, and a batch of mixed requests."""
    log = "0x5f355f525f3560205fa100"
    init = f"0x{len(log) // 2 - 1:02x}"
    create = f"0x60{init[2:]}600a5f3960{init[2:]}5ff3{log[2:]}"
    at = node.mined(node.ask("eth_sendTransaction", {"from": FIRST, "data": create}))["contractAddress"]
    every, blocks = node.ask("eth_newFilter", {"address": at}), node.ask("eth_newBlockFilter")
    pending = node.ask("eth_newPendingTransactionFilter")
    for number in (1, 2, 3):
        node.mined(node.ask("eth_sendTransaction", {"from": FIRST, "to": at, "data": _word(number), "gas": "0x20000"}))

    def count(*params: Any) -> Any:
        answer = node.answer("eth_getLogs", *params)
        return len(answer["result"]) if "result" in answer else answer["error"]["code"]

    seen: list[Any] = [
        count({"fromBlock": "0x0"}),
        count({"fromBlock": "0x0", "toBlock": "0x2"}),
        count({"fromBlock": "earliest", "toBlock": "latest", "address": [at, OTHER]}),
        count({"fromBlock": "0x0", "address": []}),
        count({"fromBlock": "0x0", "topics": [_word(2)]}),
        count({"fromBlock": "0x0", "topics": [[_word(1), _word(2)]]}),
        count({"fromBlock": "0x0", "topics": [None]}),
        count({"blockHash": node.block()["hash"]}),
        count({"blockHash": _word(9)}),
        count({"blockHash": node.block()["hash"], "fromBlock": "0x0"}),
        count({"fromBlock": "pending"}),
        count(),
        count(5),
        len(node.ask("eth_getFilterChanges", every)),
        len(node.ask("eth_getFilterChanges", every)),
        len(node.ask("eth_getFilterLogs", every)),
        len(node.ask("eth_getFilterChanges", blocks)),
        len(node.ask("eth_getFilterChanges", pending)),
        node.ask("eth_uninstallFilter", every),
        node.ask("eth_uninstallFilter", every),
    ]
    batch = [("eth_chainId", []), ("eth_noSuch", []), ("eth_getBalance", [OTHER, "latest"]), ("eth_call", [5])]
    for answer in node.batch(batch):
        seen.append((answer["id"], answer.get("result"), answer.get("error", {}).get("code")))
    return seen


@script
def random_operations(node: Node) -> Any:
    """300 operations in a random order that the seed fixes: transactions, blocks, edits, time and rules."""
    chance = random.Random(33)
    accounts, places = [FIRST, SECOND], [OTHER, WHALE]
    node.ask("anvil_setCode", OTHER, CODE)
    node.ask("anvil_setBalance", WHALE, hex(10**20))
    seen: list[Any] = []

    def send() -> None:
        values = (0, 1, 10**18, 10**23)
        sent = {
            "from": chance.choice(accounts),
            "to": chance.choice(accounts + places),
            "value": hex(chance.choice(values)),
        }
        sent["gas"] = hex(chance.choice((20_999, 21_000, 60_000, 40_000_000)))
        answer = node.answer("eth_sendTransaction", sent)
        receipt = node.mined(answer["result"]) if "result" in answer else {}
        seen.append([receipt.get(name) for name in ("status", "gasUsed", "blockNumber", "effectiveGasPrice")])

    def create() -> None:
        code = chance.choice(("0x60015f5560055ff3", "0x5f5ffd", "0xfe"))
        receipt = node.mined(node.ask("eth_sendTransaction", {"from": FIRST, "data": code, "gas": "0x30000"}))
        seen.append([receipt[name] for name in ("status", "gasUsed", "contractAddress")])

    def impersonate() -> None:
        node.ask("anvil_impersonateAccount", WHALE)
        seen.append(node.mined(node.send(WHALE, SECOND, 5))["gasUsed"])
        node.ask("anvil_stopImpersonatingAccount", WHALE)

    def move_time() -> None:
        node.ask("evm_setNextBlockTimestamp", node.time() + chance.choice((1000, 5000)))
        before = node.time()
        node.ask("anvil_mine", "0x1")
        seen.append(node.time() - before)

    def edit() -> None:
        node.ask("anvil_setBalance", chance.choice((FIRST, SECOND)), hex(chance.choice((10**18, 10**22, 10**24))))
        node.ask("anvil_setStorageAt", OTHER, hex(chance.randrange(3)), _word(chance.randrange(9)))
        node.ask("anvil_setBlockGasLimit", hex(chance.choice((30_000_000, 20_000_000))))
        node.ask("anvil_setCoinbase", chance.choice(places))

    def look() -> None:
        block = node.block()
        seen.append([block[name] for name in ("number", "gasUsed", "gasLimit", "baseFeePerGas", "miner")])
        seen.append(
            [(node.balance(one), node.ask("eth_getTransactionCount", one, "latest")) for one in accounts + places]
        )
        seen.append([node.ask("eth_getStorageAt", OTHER, hex(slot), "latest") for slot in range(3)])
        seen.append(node.ask("txpool_status"))

    kinds = (send, send, send, create, impersonate, move_time, edit, look, lambda: node.ask("anvil_mine", "0x2"))
    for _ in range(300):
        chance.choice(kinds)()
    return seen
