"""Measure how many transactions a second nodes sustain: python bench/sustained.py [ophion anvil geth ophion-instant]

    GETH=/path/to/geth ANVIL=/path/to/anvil python bench/sustained.py --connections 4 16 128 --kinds transfer token

Each round starts every node on an empty chain. wrk floods the node from 64 senders with one signed transaction per
request. The nodes alternate, so that a ratio compares runs of the same minute. There are three figures: transactions
per second in the blocks between the second and the last of the flood; processor time per transaction of all threads of
the node; the number of cores that node and client used together. Processor time counts until the last transaction is
mined. The script prints a JSON line for each run, then the medians of the rounds and, for `ophion`, the ratio to each
other node. Nodes make a block every second; `ophion-instant` makes blocks at once. Needs wrk. geth 1.13 is the last
version with Clique.

Half of the transfers and token transfers go to new accounts. --keep FOLDER stores the signed transactions for the next
run, because signing takes longer than a round.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from multiprocessing import Pool
from pathlib import Path
from statistics import median
from typing import Any, Final

from ophion.chainspec.dev_network import DEV_CHAIN_ID
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives import rlp
from ophion.testing.node_process import COMMAND, RpcFailure, environment, processor_s
from ophion.testing.signing import DEV_KEYS, legacy_transaction

SENDERS: Final = 64
STILL_S: Final = 3.0
"""Seconds without a block after which all transactions of a node count as mined."""
PRICE: Final = 100 * 10**9
FUNDS: Final = 10**20
GAS_LIMIT: Final = 300_000_000
KINDS: Final = ("transfer", "token")
SIGNER: Final = PrivateKey(b"\x77" * 32)
"""Public test key that signs the blocks of geth."""
KEYS: Final = tuple(PrivateKey((0xC0FFEE + number).to_bytes(32, "big")) for number in range(SENDERS))
DEPLOYER: Final = PrivateKey((0xD1CE).to_bytes(32, "big"))
# this code is transfer(address, uint256) without a balance check: it changes two slots, writes a log and returns true
RUNTIME: Final = (
    "3360005260406000208054602435900390556004356000526040600020805460243501905560243560005260043533"
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef60206000a3600160005260206000f3"
)
FORKS: Final = (
    *("homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople"),
    *("petersburg", "istanbul", "berlin", "london"),
)
LUA: Final = """local file = io.open("%s", "r")
local idle = '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}'
request = function()
  local line = file:read("*l")
  local body = line and '{"jsonrpc":"2.0","id":1,"method":"eth_sendRawTransaction","params":["0x' .. line .. '"]}'
  return wrk.format("POST", "/", {["Content-Type"] = "application/json"}, body or idle)
end
"""


def token_address() -> bytes:
    """Return the address of the deployer's first contract."""
    return keccak256(rlp.encode([DEPLOYER.address, b""]))[12:]


def signed(job: tuple[str, int, int]) -> list[str]:
    """Return lines with signed transactions of these nonces. The senders alternate."""
    kind, first, last = job
    lines, token = [], token_address()
    for nonce in range(first, last):
        for number, key in enumerate(KEYS):
            index = nonce * SENDERS + number
            target = (0x10000 + index).to_bytes(20, "big") if index % 2 else (0x10000 + nonce % 256).to_bytes(20, "big")
            if kind == "transfer":
                raw = legacy_transaction(key, nonce, to=target, value=1, gas_price=PRICE)
            else:
                data = bytes.fromhex("a9059cbb") + target.rjust(32, b"\0") + (7).to_bytes(32, "big")
                raw = legacy_transaction(key, nonce, to=token, gas=100_000, gas_price=PRICE, data=data)
            lines.append(raw.hex())
    return lines


def transactions(kind: str, most: int, folder: Path) -> Path:
    """Return the file of signed transactions. A missing file is created."""
    path = folder / f"{kind}-{most}"
    if not path.exists():
        nonces, step = most // SENDERS, 64
        jobs = [(kind, first, min(first + step, nonces)) for first in range(0, nonces, step)]
        with Pool() as pool, path.with_suffix(".part").open("w") as file:
            for lines in pool.imap(signed, jobs):
                file.writelines(line + "\n" for line in lines)
        path.with_suffix(".part").rename(path)
    return path


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Client:
    """A client that sends one request after the other."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)

    def ask(self, method: str, *params: object) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        try:
            self._connection.request("POST", "/", body, {"Content-Type": "application/json"})
            answer = json.loads(self._connection.getresponse().read())
        except OSError:
            self._connection.close()  # close the broken connection, so that the next request opens a new connection
            raise
        if "error" in answer:
            raise RpcFailure(answer["error"])
        return answer["result"]

    def height(self) -> int:
        return int(self.ask("eth_blockNumber"), 16)

    def size(self, number: int) -> int:
        """Return the number of transactions of a block."""
        return int(self.ask("eth_getBlockTransactionCountByNumber", hex(number)), 16)

    def send(self, raw: bytes) -> str:
        return str(self.ask("eth_sendRawTransaction", "0x" + raw.hex()))

    def send_funded(self, raw: bytes) -> str:
        """Send a transaction right after the block that funded its sender. Retries, because geth's pool sees the block
        late.
        """
        for _ in range(500):
            try:
                return self.send(raw)
            except RpcFailure as refused:
                if "insufficient funds" not in str(refused):
                    raise
            time.sleep(0.02)
        raise SystemExit("the funds of the deployer have not come")

    def wait_for(self, transaction: str) -> dict[str, Any]:
        for _ in range(1000):
            with suppress(RpcFailure):  # while geth builds its index, it returns an error instead of receipts
                receipt = self.ask("eth_getTransactionReceipt", transaction)
                if receipt is not None:
                    return dict(receipt)
            time.sleep(0.02)
        raise SystemExit(f"{transaction} is in no block")


def ophion(work: Path, port: int, *options: str) -> list[str]:
    return [
        *(*COMMAND, "dev", f"--data-path={work}/data", f"--rpc-http-port={port}", "--tx-pool-max-size=50000"),
        *(f"--rpc-ws-port={free_port()}", "--graphql-http-port=0", "--logging=WARN", *options),
    ]


def anvil(work: Path, port: int) -> list[str]:
    chain = ["--chain-id", str(DEV_CHAIN_ID), "--gas-limit", str(GAS_LIMIT)]
    return [os.environ.get("ANVIL", "anvil"), "--port", str(port), "--block-time", "1", "--silent", *chain]


def geth(work: Path, port: int) -> list[str]:
    config = {f"{fork}Block": 0 for fork in FORKS} | {"chainId": DEV_CHAIN_ID, "clique": {"period": 1, "epoch": 30000}}
    genesis = {
        "config": config,
        "difficulty": "0x1",
        "gasLimit": hex(GAS_LIMIT),
        "extraData": "0x" + "00" * 32 + SIGNER.address.hex() + "00" * 65,
        "alloc": {DEV_KEYS[1].address.hex(): {"balance": hex(10**27)}},
    }
    for name, text in {"genesis.json": json.dumps(genesis), "key": SIGNER.secret().hex(), "password": "x"}.items():
        (work / name).write_text(text)
    base = [os.environ.get("GETH", "geth"), "--datadir", str(work / "data")]
    password, signer = str(work / "password"), "0x" + SIGNER.address.hex()
    for command in (
        ["init", str(work / "genesis.json")],
        ["account", "import", "--lightkdf", "--password", password, str(work / "key")],
    ):
        subprocess.run([*base, *command], check=True, capture_output=True)
    limits = [f"--txpool.{name}=50000" for name in ("globalslots", "accountslots", "globalqueue", "accountqueue")]
    return [
        *(*base, "--networkid", str(DEV_CHAIN_ID), "--nodiscover", "--maxpeers=0", "--port=0", "--ipcdisable"),
        *("--mine", "--miner.etherbase", signer, "--unlock", signer, "--password", password, "--allow-insecure-unlock"),
        *("--http", "--http.port", str(port), "--authrpc.port", str(free_port()), f"--miner.gaslimit={GAS_LIMIT}"),
        *("--gcmode=archive", "--syncmode=full", *limits),
    ]


PEERS: Final[Mapping[str, Callable[[Path, int], list[str]]]] = {
    "ophion": lambda work, port: ophion(work, port, "--block-period=1"),
    "ophion-instant": ophion,
    "anvil": anvil,
    "geth": geth,
}


@contextmanager
def started(name: str, work: Path) -> Iterator[tuple[Client, int]]:
    """Start a node and wait until it answers. Yields its client and its process id."""
    port = free_port()
    command = PEERS[name](work, port)
    with (work / "log").open("w") as log:
        try:
            process = subprocess.Popen(
                command, cwd=work, env=environment(), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            raise SystemExit(f"{name} cannot be started: {error.strerror}: {command[0]}") from None
    try:
        client, deadline = Client(port), time.monotonic() + 60
        while True:
            try:
                client.height()
                break
            except OSError:
                if time.monotonic() > deadline or process.poll() is not None:
                    raise SystemExit(f"{name} does not answer: {(work / 'log').read_text()[-500:]}") from None
                time.sleep(0.05)
        yield client, process.pid
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def prepare(client: Client, name: str) -> None:
    """Fund the senders and deploy a token."""
    rich = DEV_KEYS[1]
    if name == "anvil":
        client.ask("anvil_setBalance", "0x" + rich.address.hex(), hex(10**27))
    for nonce, key in enumerate((*KEYS, DEPLOYER)):
        last = client.send(legacy_transaction(rich, nonce, to=key.address, value=FUNDS, gas_price=PRICE))
    client.wait_for(last)
    size = len(RUNTIME) // 2
    code = bytes.fromhex(f"60{size:02x}600c60003960{size:02x}6000f3{RUNTIME}")
    made = client.wait_for(
        client.send_funded(legacy_transaction(DEPLOYER, 0, to=None, gas=500_000, gas_price=PRICE, data=code))
    )
    assert bytes.fromhex(made["contractAddress"][2:]) == token_address(), made


def children_s() -> float:
    """Return the processor time of the clients that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def drained(client: Client) -> int:
    """Wait until all transactions are mined, and return the last block. The caller counts processor time up to this
    point.
    """
    height, until = client.height(), time.perf_counter() + STILL_S
    while time.perf_counter() < until:
        time.sleep(0.05)
        now = client.height()
        if now > height:
            height, until = now, time.perf_counter() + STILL_S
            if not client.size(now):
                break
    return height


def flood(client: Client, pid: int, file: Path, connections: int, seconds: int, work: Path) -> dict[str, object]:
    """Flood a node with transactions and return the measured figures."""
    (work / "load.lua").write_text(LUA % file)
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(work / "load.lua")]
    height, seen = client.height(), []
    first, before, mine, began = height + 1, processor_s(pid), children_s(), time.perf_counter()
    load = subprocess.Popen([*command, f"http://127.0.0.1:{client.port}/"], stdout=subprocess.PIPE, text=True)
    while load.poll() is None:
        now = client.height()
        if now > height:
            seen.append((time.perf_counter(), now))
            height = now
        time.sleep(0.01)
    lasted, loaded = time.perf_counter() - began, processor_s(pid) - before + children_s() - mine
    text = load.stdout.read() if load.stdout is not None else ""
    if len(seen) < 3:
        raise SystemExit(f"{len(seen)} blocks during the flood: {text}")
    last = drained(client)
    used = processor_s(pid) - before
    count = {number: client.size(number) for number in range(first, last + 1)}
    (began_at, begin), (ended_at, end) = seen[1], seen[-1]
    mined = sum(count[number] for number in range(begin + 1, end + 1))
    return {
        "tps": round(mined / (ended_at - began_at)),
        "cpu_us": round(used / max(1, sum(count.values())) * 1e6),
        "cores": round(loaded / lasted, 2),
        "largest": max(count.values()),
        "longest_gap_s": round(max(later[0] - before[0] for before, later in pairwise(seen)), 2),
    }


def measure(name: str, file: Path, connections: int, seconds: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="ophion-sustained-", ignore_cleanup_errors=True) as folder:
        work = Path(folder)
        with started(name, work) as (client, pid):
            prepare(client, name)
            return flood(client, pid, file, connections, seconds, work)


def report(runs: Mapping[str, Sequence[dict[str, Any]]]) -> dict[str, object]:
    """Return the medians of one row of the result, and the ratios of `ophion` to the other nodes."""
    found = {
        name: {figure: median(run[figure] for run in all_of) for figure in ("tps", "cpu_us", "cores")}
        for name, all_of in runs.items()
    }
    pairs = [(ours, other) for ours in runs for other in runs if "ophion" in ours and "ophion" not in other]
    return found | {
        f"{ours}/{other}": {key: round(found[ours][key] / found[other][key], 2) for key in ("tps", "cpu_us")}
        for ours, other in pairs
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", default=["ophion"], choices=[*PEERS, []], metavar="PEER")
    parser.add_argument("--kinds", nargs="+", default=["transfer"], choices=KINDS)
    parser.add_argument("--connections", nargs="+", type=int, default=[16])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=8)
    parser.add_argument("--most", type=int, default=100_000, help="transactions that are there to be sent")
    parser.add_argument("--keep", type=Path, help="where signed transactions are kept")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ophion-signed-") as folder:
        keep = chosen.keep or Path(folder)
        keep.mkdir(parents=True, exist_ok=True)
        for kind in chosen.kinds:
            file = transactions(kind, chosen.most, keep)
            for connections in chosen.connections:
                row = {"kind": kind, "connections": connections}
                runs: dict[str, list[dict[str, Any]]] = {name: [] for name in chosen.peers}
                for _ in range(chosen.rounds):
                    for name in chosen.peers:
                        run = measure(name, file, connections, chosen.seconds)
                        runs[name].append(run)
                        print(json.dumps({"peer": name, **row, **run}), flush=True)
                print(json.dumps({**row, "medians": report(runs)}), flush=True)


if __name__ == "__main__":
    main()
