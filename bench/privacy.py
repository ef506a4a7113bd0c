"""Measure private token transfers between two nodes: python bench/privacy.py [--seconds 20]

Starts two nodes of this checkout as processes (one QBFT validator, one follower, period 1 s) and creates a private
token for both. wrk sends signed private transfers of many accounts, one per request. Prints one JSON line: markers
mined per second between the second and the last block of the flood, private transactions executed on each node, whether
both have the same private root, and processor time per transfer over both nodes.

--markers instead imports blocks of 500 markers for other participants and blocks of 500 plain transfers, alternately,
on a node with privacy. It prints the median milliseconds of an import of each kind, and until the private states are up
to date.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from ophion.chain.events import ChainBlock
from ophion.enclave.embedded import EmbeddedEnclave
from ophion.enclave.group_ids import legacy_id
from ophion.native.crypto import PrivateKey
from ophion.native.enclave import EnclaveKeyring
from ophion.native.privacy import sign_private_transaction
from ophion.node.privacy import build_privacy
from ophion.privacy.options import PrivacyConfig
from ophion.runtime.clock import SystemEntropy
from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.network import CHAIN_ID, TestNetwork
from ophion.testing.node_core import DEV_CONFIG, open_core
from ophion.testing.private_transactions import ENCLAVE_SECRETS, PrivateClient, text
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from ophion.testing.wait_for import wait_for

LUA = """local lines = {}
for line in io.lines("%s") do lines[#lines + 1] = line end
local next = 0
request = function()
  next = next + 1
  if next > #lines then next = #lines end
  local body = '{"jsonrpc":"2.0","id":1,"method":"eea_sendRawTransaction","params":["0x' .. lines[next] .. '"]}'
  return wrk.format("POST", "/", {["Content-Type"] = "application/json"}, body)
end
"""
# this code is transfer(address, uint256) without checks: it changes two storage slots and writes a log
RUNTIME = (
    "600435"
    "73ffffffffffffffffffffffffffffffffffffffff16"
    "80"
    "54"
    "602435"
    "01"
    "90"
    "55"  # here the code adds the amount to balance[to]
    "33"
    "54"
    "602435"
    "90"
    "03"
    "33"
    "55"  # here the code subtracts the amount from balance[caller]
    "602435600052"
    "600435"
    "33"
    "7fddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
    "60206000a3"
    "00"
)
SENDERS = 64
GAS = 100_000


def deploying(runtime: str) -> bytes:
    size = len(runtime) // 2
    return bytes.fromhex(f"60{size:02x}600c60003960{size:02x}6000f3{runtime}")


def transfer(amount: int, number: int) -> bytes:
    return bytes.fromhex("a9059cbb") + (number + 1).to_bytes(32, "big") + amount.to_bytes(32, "big")


def signed(client: PrivateClient, other: bytes, contract: str, most: int) -> list[str]:
    """Return signed transfers of many accounts, each account in the order of its nonces."""
    keys = [PrivateKey((0xFACE + number).to_bytes(32, "big")) for number in range(SENDERS)]
    lines = []
    for number in range(most):
        raw = sign_private_transaction(
            keys[number % SENDERS].secret(),
            nonce=number // SENDERS,
            gas_price=0,
            gas_limit=GAS,
            to=bytes.fromhex(contract[2:]),
            data=transfer(1, number % 1000),
            private_from=client.enclave_key,
            private_for=[other],
            chain_id=CHAIN_ID,
        )
        lines.append(raw.hex())
    return lines


def flood(seconds: int, most: int, connections: int) -> dict[str, object]:
    options = ("--privacy-enabled", "--tx-pool-max-size=65536", "--logging=WARN")
    with tempfile.TemporaryDirectory(prefix="ophion-privacy-") as folder:
        path = Path(folder)
        with TestNetwork(path, "qbft", validators=1, followers=1, options=options) as network:
            a, b = (PrivateClient(node, key, CHAIN_ID) for node, key in zip(network.nodes, DEV_KEYS, strict=False))
            wait_for(lambda: len(network.nodes[0].rpc("priv_status")["peers"]) >= 1, 60, "the other enclave")
            created = a.receipt(a.send(deploying(RUNTIME), private_for=(b.enclave_key,)))
            assert created["status"] == "0x1", created
            lines = signed(a, b.enclave_key, created["contractAddress"], most)
            (path / "lines").write_text("\n".join(lines))
            script = path / "send.lua"
            script.write_text(LUA % (path / "lines"))
            group = text(legacy_id([a.enclave_key, b.enclave_key]))
            before, first = network.processor_s(), network.height(0)
            url = f"http://127.0.0.1:{network.nodes[0].ports['json-rpc']}"
            asked = subprocess.run(
                ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(script), url],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
            sent = len(lines)
            time.sleep(3)
            last = network.height(0)
            counts = []
            for number in range(first + 1, last + 1):
                block = network.nodes[0].rpc("eth_getBlockByNumber", hex(number), False)
                counts.append((int(block["timestamp"], 16), len(block["transactions"])))
            full = [one for one in counts if one[1] > 0]
            middle = full[1:-1]
            rate = sum(count for _, count in middle) / max(1, middle[-1][0] - middle[0][0] + 1) if middle else 0.0
            wait_for(lambda: network.height(1) >= last, 60, "the follower")
            roots = {node.rpc("priv_debugGetStateRoot", group, hex(last)) for node in network.nodes}
            executed = [node.rpc("priv_status")["executed"] for node in network.nodes]
            total = sum(count for _, count in full)
            return {
                "markers per second": round(rate),
                "markers": total,
                "executed": executed,
                "one root": len(roots) == 1,
                "processor ms per transfer": round((network.processor_s() - before) * 1000 / max(1, total), 3),
                "wrk": [line.strip() for line in asked.splitlines() if "Requests/sec" in line or "Latency" in line],
                "prepared": sent,
            }


async def imports(folder: Path, blocks: int = 20) -> dict[str, object]:
    """Return the import times of blocks with markers and of blocks with plain transfers."""
    lanes, entropy = ThreadLanes(), SystemEntropy()
    found: dict[str, list[float]] = {"transfers": [], "markers": [], "markers, followed": []}
    config = replace(DEV_CONFIG, privacy=PrivacyConfig(enabled=True))
    with open_core(folder / "maker") as maker, open_core(folder / "node", config, lanes=lanes) as node:
        enclave = EmbeddedEnclave(node.chain.store, EnclaveKeyring(ENCLAVE_SECRETS[:1]), lanes, entropy)
        follower = build_privacy(config, node.core, enclave, lanes, entropy).executor
        tasks = [asyncio.create_task(one.run(lambda: None)) for one in (enclave, follower)]
        precompile, nonce = (126).to_bytes(20, "big"), 0
        for number in range(2 * blocks):
            kind = "markers" if number % 2 else "transfers"
            raws = []
            for _ in range(500):
                is_marker = kind == "markers"
                to, data = (precompile, entropy.token(32)) if is_marker else (entropy.token(20), b"")
                raws.append(legacy_transaction(DEV_KEYS[1], nonce, to=to, data=data, gas=30_000))
                nonce += 1
            await maker.mine(*raws)
            head = maker.chain.head
            body = maker.chain.store.body(head.hash)
            assert body is not None
            block = ChainBlock(head, body)
            began = time.perf_counter()
            await node.core.importer.import_block(block)
            found[kind].append(time.perf_counter() - began)
            assert await follower.reach_head(30)
            if kind == "markers":
                found["markers, followed"].append(time.perf_counter() - began)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    lanes.close()
    return {f"ms a block of 500 {kind}": round(median(times[2:]) * 1000, 2) for kind, times in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--most", type=int, default=60_000)
    parser.add_argument("--connections", type=int, default=256)
    parser.add_argument("--markers", action="store_true")
    chosen = parser.parse_args()
    if chosen.markers:
        with tempfile.TemporaryDirectory(prefix="ophion-privacy-") as folder:
            print(json.dumps(asyncio.run(imports(Path(folder)))))
        return
    print(json.dumps(flood(chosen.seconds, chosen.most, chosen.connections)))


if __name__ == "__main__":
    main()
