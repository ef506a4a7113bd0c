"""A chain with every kind of transaction, and 300 requests about it, for comparisons with other clients."""

from __future__ import annotations

import http.client
import json
from pathlib import Path
from typing import Any

from ophion.native.crypto import PrivateKey
from ophion.testing.clique_chain import FORKS, SIGNER, clique_genesis_text
from ophion.testing.node_process import NodeProcess
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.integration.command import ophion

CHAIN_ID = 1337
NOBODY = "0x" + "11" * 20
UNKNOWN = "0x" + "ab" * 32
TOPIC = "0x" + "22" * 32
BLOCKS = 10
POOR = "0x" + legacy_transaction(PrivateKey(b"\x77" * 32), 0, value=1, gas_price=10**10, chain_id=CHAIN_ID).hex()
Requests = dict[str, tuple[str, list[Any]]]

# this contract stores, logs and returns the first word of the call data, and reverts if the word is zero
_RUNTIME = (
    bytes.fromhex("600035801560505780600055600052")
    + b"\x7f"
    + bytes([0x22]) * 32
    + bytes.fromhex("60206000a160206000f3")
)
_RUNTIME = _RUNTIME.ljust(0x50, b"\x00") + bytes.fromhex("5b60006000fd")
_INIT = bytes([0x60, len(_RUNTIME), 0x60, 0x0B, 0x60, 0, 0x39, 0x60, len(_RUNTIME), 0x60, 0, 0xF3])
_INIT = _INIT.replace(bytes([0x60, 0x0B]), bytes([0x60, len(_INIT)]))


class SharedChain:
    """Genesis file and exported blocks of a Clique chain. A chain without London has no fees."""

    def __init__(self, path: Path, has_london: bool = True) -> None:
        self.genesis, self.blocks, self.data = path / "genesis.json", path / "blocks.rlp", path / "maker"
        self.genesis.write_text(
            clique_genesis_text(FORKS if has_london else [fork for fork in FORKS if fork != "london"])
        )
        self.data.mkdir()
        (self.data / "key").write_text(SIGNER.secret().hex())
        self.contract, self.hashes, self._has_london = "", list[str](), has_london
        with NodeProcess(self.data, f"--genesis-file={self.genesis}", "--min-gas-price=0") as node:
            self._fill(node)
        ophion("blocks", "export", f"--data-path={self.data}", f"--to={self.blocks}").succeeded()

    def _fill(self, node: NodeProcess) -> None:
        alice, bob = DEV_KEYS[:2]
        price = {"gas_price": 10**10 if self._has_london else 0, "chain_id": CHAIN_ID}
        fees = {"max_fee": 10**10, "tip": 10**9, "chain_id": CHAIN_ID}
        made = node.send(legacy_transaction(alice, 0, to=None, gas=200_000, data=_INIT + _RUNTIME, **price))
        self.contract = node.receipt(made)["contractAddress"]
        to = bytes.fromhex(self.contract[2:])
        self.hashes.append(made)
        for number in range(1, 8):
            word = (number % 4).to_bytes(32, "big")
            sent = [
                node.send(legacy_transaction(alice, number, value=number, **price)),
                node.send(
                    fee_transaction(bob, number - 1, to=to, gas=100_000, data=word, **fees)
                    if self._has_london
                    else legacy_transaction(bob, number - 1, to=to, gas=100_000, data=word, **price)
                ),
            ]
            self.hashes += sent
            for one in sent:
                node.receipt(one)


def requests_about(chain: SharedChain) -> Requests:
    """Return the requests to compare, by name."""
    found: Requests = {}
    numbers = [hex(number) for number in range(BLOCKS)]
    alice, bob = ("0x" + key.address.hex() for key in DEV_KEYS[:2])
    for number in numbers:
        found[f"block {number}"] = ("eth_getBlockByNumber", [number, False])
        found[f"block {number} in full"] = ("eth_getBlockByNumber", [number, True])
        found[f"transactions in block {number}"] = ("eth_getBlockTransactionCountByNumber", [number])
        found[f"uncles in block {number}"] = ("eth_getUncleCountByBlockNumber", [number])
        found[f"first transaction of block {number}"] = ("eth_getTransactionByBlockNumberAndIndex", [number, "0x0"])
        found[f"receipts of block {number}"] = ("eth_getBlockReceipts", [number])
        found[f"uncle of block {number}"] = ("eth_getUncleByBlockNumberAndIndex", [number, "0x0"])
        found[f"logs of block {number}"] = ("eth_getLogs", [{"fromBlock": number, "toBlock": number}])
        for who, address in (("sender", alice), ("caller", bob), ("contract", chain.contract), ("nobody", NOBODY)):
            found[f"balance of {who} at {number}"] = ("eth_getBalance", [address, number])
            found[f"nonce of {who} at {number}"] = ("eth_getTransactionCount", [address, number])
        found[f"code at {number}"] = ("eth_getCode", [chain.contract, number])
        found[f"storage at {number}"] = ("eth_getStorageAt", [chain.contract, "0x0", number])
        found[f"call at {number}"] = ("eth_call", [{"to": chain.contract, "data": "0x" + "33" * 32}, number])
        found[f"fee history to {number}"] = ("eth_feeHistory", ["0x2", number, [10, 50]])
    for at, one in enumerate(chain.hashes):
        found[f"transaction {at}"] = ("eth_getTransactionByHash", [one])
        found[f"receipt {at}"] = ("eth_getTransactionReceipt", [one])
    call = {"from": alice, "to": chain.contract}
    for name, data in (
        ("zero", "0x" + "00" * 32),
        ("one", "0x" + "00" * 31 + "01"),
        ("empty", "0x"),
        ("short", "0x01"),
    ):
        found[f"call with {name}"] = ("eth_call", [{**call, "data": data}, "latest"])
        found[f"estimate with {name}"] = ("eth_estimateGas", [{**call, "data": data}])
        found[f"access list with {name}"] = ("eth_createAccessList", [{**call, "data": data}, "latest"])
    for name, filter_ in {
        "of the contract": {"address": chain.contract},
        "of two addresses": {"address": [chain.contract, NOBODY]},
        "of the topic": {"topics": [TOPIC]},
        "of either topic": {"topics": [[TOPIC, UNKNOWN]]},
        "of an unknown topic": {"topics": [UNKNOWN]},
        "of two topics": {"topics": [TOPIC, TOPIC]},
        "of any topic": {"topics": [None]},
    }.items():
        found[f"logs {name}"] = ("eth_getLogs", [{"fromBlock": "0x0", "toBlock": "latest", **filter_}])
    for at in ("0x0", "latest"):
        found[f"proof at {at}"] = ("eth_getProof", [chain.contract, ["0x0", "0x1"], at])
        found[f"proof of nobody at {at}"] = ("eth_getProof", [NOBODY, [], at])
    return {**found, **FIXED}


FIXED: Requests = {
    "chain id": ("eth_chainId", []),
    "network id": ("net_version", []),
    "listening": ("net_listening", []),
    "peers": ("net_peerCount", []),
    "block number": ("eth_blockNumber", []),
    "syncing": ("eth_syncing", []),
    "accounts": ("eth_accounts", []),
    "earliest block": ("eth_getBlockByNumber", ["earliest", False]),
    "safe block": ("eth_getBlockByNumber", ["safe", False]),
    "finalized block": ("eth_getBlockByNumber", ["finalized", False]),
    "balance without block": ("eth_getBalance", [NOBODY]),
    "balance of a short address": ("eth_getBalance", ["0x11", "latest"]),
    "balance at an unknown block": ("eth_getBalance", [NOBODY, "0xffffff"]),
    "balance at an unknown hash": ("eth_getBalance", [NOBODY, {"blockHash": UNKNOWN}]),
    "storage with a long position": ("eth_getStorageAt", [NOBODY, "0x" + "00" * 32, "latest"]),
    "unknown block by number": ("eth_getBlockByNumber", ["0xffffff", False]),
    "unknown block by hash": ("eth_getBlockByHash", [UNKNOWN, False]),
    "block with a bad number": ("eth_getBlockByNumber", ["0xzz", False]),
    "block number with leading zeros": ("eth_getBlockByNumber", ["0x00", False]),
    "block without detail": ("eth_getBlockByNumber", ["0x1"]),
    "transaction count of an unknown block": ("eth_getBlockTransactionCountByHash", [UNKNOWN]),
    "uncle count of an unknown block": ("eth_getUncleCountByBlockHash", [UNKNOWN]),
    "transaction by index of an unknown block": ("eth_getTransactionByBlockHashAndIndex", [UNKNOWN, "0x0"]),
    "unknown transaction": ("eth_getTransactionByHash", [UNKNOWN]),
    "unknown receipt": ("eth_getTransactionReceipt", [UNKNOWN]),
    "receipts of an unknown block": ("eth_getBlockReceipts", ["0xffffff"]),
    "logs of an unknown hash": ("eth_getLogs", [{"blockHash": UNKNOWN}]),
    "logs from the end to the start": ("eth_getLogs", [{"fromBlock": "0x2", "toBlock": "0x1"}]),
    "changes of an unknown filter": ("eth_getFilterChanges", ["0x1"]),
    "logs of an unknown filter": ("eth_getFilterLogs", ["0x1"]),
    "uninstall an unknown filter": ("eth_uninstallFilter", ["0x1"]),
    "call of nobody": ("eth_call", [{"to": NOBODY}, "latest"]),
    "call with too much value": ("eth_call", [{"from": NOBODY, "to": NOBODY, "value": "0x1"}, "latest"]),
    "estimate with too much value": ("eth_estimateGas", [{"from": NOBODY, "to": NOBODY, "value": "0x1"}]),
    "call with an invalid opcode": ("eth_call", [{"data": "0xfe"}, "latest"]),
    "call that reverts": ("eth_call", [{"data": "0x60006000fd"}, "latest"]),
    "call with too little gas": ("eth_call", [{"to": NOBODY, "gas": "0x1"}, "latest"]),
    "raw transaction that is empty": ("eth_sendRawTransaction", ["0x"]),
    "raw transaction that is no RLP": ("eth_sendRawTransaction", ["0x00"]),
    "raw transaction of a poor account": ("eth_sendRawTransaction", [POOR]),
    "unknown method": ("eth_nothing", []),
    "unknown group": ("nothing_at_all", []),
    "too few parameters": ("eth_getBalance", []),
    "too many parameters": ("eth_chainId", [1]),
    "hash": ("web3_sha3", ["0x68656c6c6f"]),
    "hash of no hexadecimal": ("web3_sha3", ["hello"]),
    "fee history of no blocks": ("eth_feeHistory", ["0x0", "latest", []]),
}


def ask(port: int, method: str, params: list[Any]) -> str:
    """Return the result, or the code and text of the error."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    connection.request("POST", "/", body, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    error = answer.get("error")
    return json.dumps(answer.get("result"), sort_keys=True) if error is None else f"{error['code']} {error['message']}"


def differences(requests: Requests, partner: int, ours: int) -> dict[str, tuple[str, str]]:
    """Return the answers of the partner and of this node that are not equal, by request."""
    answers = {name: (ask(partner, *request), ask(ours, *request)) for name, request in requests.items()}
    return {name: pair for name, pair in answers.items() if pair[0] != pair[1]}
