"""Measure the gateway: requests through the gateway against requests to the node, and idle sockets.

    python bench/gateway.py [--seconds=5] [--connections=64] [--sockets=5000]

Starts a development node and a gateway as in `ophion quickstart`, each as a process. `wrk` sends requests to both
alternately.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ophion.gateway.backends import BackendNetwork, BackendNode, ServiceAddress, ServiceKind
from ophion.testing.node_process import COMMAND, NodeProcess, environment, processor_s
from ophion.testing.ports import free_ports

REQUESTS = {
    "eth_blockNumber": '{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}',
    "eth_getBalance": (
        '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance",'
        '"params":["0xfe3b557e8fb62b89f4916b721be55ceb828dbd73","latest"]}'
    ),
}
HANDSHAKE = (
    b"GET %b HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
)


def rate(url: str, body: str, seconds: int, connections: int, folder: Path) -> float:
    """Return the requests per second that wrk reports."""
    script = folder / "post.lua"
    script.write_text(f"wrk.method = 'POST'\nwrk.body = [[{body}]]\nwrk.headers['Content-Type'] = 'application/json'\n")
    done = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(script), url], capture_output=True, text=True
    )
    if found := re.search(r"Non-2xx or 3xx responses: (\d+)", done.stdout):
        print(f"  {found[1]} answers were errors")
    match = re.search(r"Requests/sec:\s+([\d.]+)", done.stdout)
    assert match is not None, done.stdout + done.stderr
    return float(match[1])


def memory(pid: int) -> float:
    """Return the resident memory of a process in megabytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


async def idle_sockets(port: int, path: bytes, count: int) -> list[asyncio.StreamWriter]:
    """Open `count` WebSockets that send nothing."""
    found = []
    for _ in range(count):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(HANDSHAKE % path)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 ")
        found.append(writer)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--sockets", type=int, default=5000)
    chosen = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        options = ("--rpc-ws-port=0", "--graphql-http-port=0", "--page-http-enabled=false")
        many = "--rpc-ws-max-active-connections=8192"
        with NodeProcess(folder / "data", *options, many, command=("dev",)) as node:
            places = {
                ServiceKind.JSON_RPC: ServiceAddress("127.0.0.1", node.ports["json-rpc"]),
                ServiceKind.WEBSOCKET: ServiceAddress("127.0.0.1", node.ports["ws-rpc"]),
            }
            BackendNetwork("bench", None, (BackendNode("node", "rpc", places),)).write(folder / "site.json")
            (port,) = free_ports(1)
            proxy = subprocess.Popen(
                [*COMMAND, "quickstart", "proxy", f"--site={folder / 'site.json'}", f"--port={port}"],
                env=environment(),
                stdout=subprocess.DEVNULL,
            )
            try:
                _compare(chosen, node, proxy.pid, port, folder)
            finally:
                proxy.terminate()
                proxy.wait(10)


def _compare(chosen: argparse.Namespace, node: NodeProcess, proxy: int, port: int, folder: Path) -> None:
    _wait_for(port)
    print(f"proxy: {memory(proxy):.0f} MB at first")
    if shutil.which("wrk") is None:
        print("wrk is not installed: no rates", file=sys.stderr)
    else:
        for name, body in REQUESTS.items():
            for _ in range(2):
                direct = rate(
                    f"http://127.0.0.1:{node.ports['json-rpc']}/", body, chosen.seconds, chosen.connections, folder
                )
                before = processor_s(proxy)
                passed = rate(f"http://127.0.0.1:{port}/jsonrpc", body, chosen.seconds, chosen.connections, folder)
                cost = (processor_s(proxy) - before) / (passed * chosen.seconds) * 1e6
                print(
                    f"{name}: direct {direct:,.0f}/s, through the proxy {passed:,.0f}/s, ratio {passed / direct:.2f},"
                    f" {cost:.1f} microseconds each"
                )
    asyncio.run(_hold(chosen.sockets, node.pid, proxy, port))


async def _hold(count: int, node: int, proxy: int, port: int) -> None:
    before = memory(proxy), memory(node)
    began = time.perf_counter()
    sockets = await idle_sockets(port, b"/jsonws", count)
    took = time.perf_counter() - began
    await asyncio.sleep(1)
    used = processor_s(proxy)
    await asyncio.sleep(10)
    used = processor_s(proxy) - used
    print(
        f"{count} idle sockets ({took:.1f} s): proxy {before[0]:.0f} -> {memory(proxy):.0f} MB,"
        f" node {before[1]:.0f} -> {memory(node):.0f} MB, {used * 10:.1f} % of a core while they wait"
    )
    for one in sockets:
        one.close()


def _wait_for(port: int) -> None:
    for _ in range(500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.02)


if __name__ == "__main__":
    main()
