"""Measure what inbound connections without permission cost a node whose node rules are in a contract.

    python bench/inbound_flood.py [--rate 1000] [--seconds 10] [--keys each|same] [--static]

A validator runs as a process; only permitted nodes may connect to it. Another process dials it at the given rate, with
a new key each time or always the same key. Each attempt does the handshake and sends Hello until it is disconnected.
The processor time of the dialling process is not counted. Meanwhile a permitted node with the same IP address tries to
connect. The validator does not know this node in advance, unless --static is given.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import uvloop

from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.permissions.contract_genesis import NODE_INGRESS, node_contracts
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.testing.network import network_genesis
from ophion.testing.node_process import NodeProcess, processor_s
from ophion.testing.ports import free_ports
from ophion.testing.signing import DEV_KEYS

HELLO = 0


class Caller(asyncio.Protocol):
    """One connection attempt to the validator."""

    def __init__(self, key: PrivateKey, handshake: wire.Handshake, ends: Counter[str]) -> None:
        self._key = key
        self._handshake = handshake
        self._ends = ends
        self._said = b""
        self._has_greeted = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.write(self._handshake.auth)

    def data_received(self, data: bytes) -> None:
        self._said += data
        size = 2 + int.from_bytes(self._said[:2], "big")
        if not self._has_greeted and len(self._said) >= size:
            self._has_greeted = True
            session = self._handshake.finish(self._said[:size])
            hello = rlp.encode([5, b"caller", [[b"eth", 68]], 30303, self._key.public_key])
            self._transport.write(session.seal([(HELLO, hello)]))
        elif self._has_greeted:
            self._transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._ends["after Hello" if self._has_greeted else "at the door"] += 1


async def flood(enode: Enode, rate: int, seconds: float, has_one_key: bool) -> None:
    """Dial at a steady rate. All keys are made before the start."""
    loop, ends = asyncio.get_running_loop(), Counter[str]()
    calls = []
    only = PrivateKey(os.urandom(32))
    for _ in range(int(rate * seconds)):
        key = only if has_one_key else PrivateKey(os.urandom(32))
        entropy = os.urandom(wire.HANDSHAKE_ENTROPY)
        calls.append((key, wire.Handshake.initiate(key.secret(), enode.node_id, entropy)))
    print("ready", flush=True)
    sys.stdin.readline()
    began, attempts = loop.time(), []
    for number, (key, handshake) in enumerate(calls):
        due = began + number / rate
        if due > loop.time():
            await asyncio.sleep(due - loop.time())
        caller = Caller(key, handshake, ends)
        attempts.append(loop.create_task(loop.create_connection(lambda one=caller: one, enode.ip, enode.tcp_port)))  # type: ignore[misc]
    took = loop.time() - began
    print("all have called", flush=True)
    await asyncio.gather(*attempts, return_exceptions=True)
    print(json.dumps({"seconds": took, "ends": ends}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rate", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--keys", choices=("each", "same"), default="each")
    parser.add_argument("--static", action="store_true", dest="is_static", help="the permitted node is known")
    parser.add_argument("--flood", type=Enode.parse, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.flood is not None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(flood(chosen.flood, chosen.rate, chosen.seconds, chosen.keys == "same"))
        return
    guard, guest = (PrivateKey(bytes([number]) * 32) for number in (1, 2))
    ports = free_ports(2)
    nodes = [Enode(key.public_key, "127.0.0.1", port, port) for key, port in zip((guard, guest), ports, strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        genesis = network_genesis("qbft", [guard.address])
        genesis["alloc"] |= {
            address.hex(): account for address, account in node_contracts([DEV_KEYS[0].address], nodes, 1).items()
        }
        (path / "genesis.json").write_text(json.dumps(genesis))
        rules = (
            "--permissions-nodes-contract-enabled",
            f"--permissions-nodes-contract-address=0x{NODE_INGRESS.hex()}",
        )
        made = []
        for name, key, port, extra in (("guard", guard, ports[0], rules), ("guest", guest, ports[1], ())):
            (path / f"{name}.key").write_text(key.secret().hex())
            made.append(
                NodeProcess(
                    path / name,
                    f"--genesis-file={path}/genesis.json",
                    f"--node-private-key-file={path}/{name}.key",
                    "--p2p-interface=127.0.0.1",
                    f"--p2p-port={port}",
                    "--discovery-enabled=false",
                    "--rpc-http-api=ETH,NET,ADMIN,DEBUG",
                    *extra,
                )
            )
        (path / "guest").mkdir()
        (path / "guest" / "static-nodes.json").write_text(json.dumps([nodes[0].url]))
        if chosen.is_static:
            (path / "guard").mkdir()
            (path / "guard" / "static-nodes.json").write_text(json.dumps([nodes[1].url]))
        with made[0] as node:
            words = [f"--flood={nodes[0].url}", f"--rate={chosen.rate}", f"--seconds={chosen.seconds}"]
            client = subprocess.Popen(
                [sys.executable, __file__, *words, f"--keys={chosen.keys}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            assert client.stdin is not None
            assert client.stdout is not None
            client.stdout.readline()
            idle, start = processor_s(node.pid), time.monotonic()
            time.sleep(2)
            idle = (processor_s(node.pid) - idle) / (time.monotonic() - start)
            before, start = processor_s(node.pid), time.monotonic()
            client.stdin.write("go\n")
            client.stdin.flush()
            time.sleep(min(1.0, chosen.seconds / 4))
            used: list[float] = []

            def watch() -> None:
                assert client.stdout is not None
                client.stdout.readline()
                used.append((processor_s(node.pid) - before) / (time.monotonic() - start))

            watching = threading.Thread(target=watch)
            watching.start()
            with made[1]:
                waited = time.monotonic()
                while int(node.rpc("net_peerCount"), 16) == 0 and time.monotonic() < start + chosen.seconds + 5:
                    time.sleep(0.05)
                waited = time.monotonic() - waited
                is_in = int(node.rpc("net_peerCount"), 16) == 1
                watching.join()
                result = json.loads(client.stdout.readline())
            client.wait(10)
        rate = chosen.rate * chosen.seconds / result["seconds"]
        print(f"{rate:.0f} attempts a second, keys: {chosen.keys}; they ended {result['ends']}")
        share = used[0] - idle
        print(f"{share:.1%} of a core above {idle:.1%} without them; {share / rate * 1e6:.0f} microseconds each")
        print(f"a permitted node behind the same address: {f'in after {waited:.1f} s' if is_in else 'NOT let in'}")


if __name__ == "__main__":
    main()
