"""Measure what authentication and metrics cost per request: python bench/guard_cost.py [--turns N] [--wrk]

Four services run in this process: plain, with metrics, with a token, with both. Each has 32 connections over loopback.
In each round, all clients of one service write their requests before the clock starts. Then the event loop reads,
answers and writes, and the CPU time of the round is recorded. The services alternate in random order, so that other
load affects all of them equally. The median of some thousand rounds is stable to a percent even on a busy machine.

With `--wrk`, wrk (a Debian package) then measures four real nodes: requests per second, and CPU microseconds of the
node's event loop per request. These rows are only reliable on an idle machine.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import re
import socket
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from random import Random

import uvloop
from rpc_transport import BODIES, Context, Service, block_number, get_balance

from ophion.metrics.requests import RequestMetrics
from ophion.rpc.auth.authenticator import Authenticator
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.dispatch.limits import DispatchLimits
from ophion.rpc.schema.registry import HTTP, BoundMethod, Registry
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy
from ophion.rpc.transport.origins import OriginList
from ophion.runtime.clock import SystemClock
from ophion.runtime.metrics_registry import MetricsRegistry
from ophion.testing.node_process import COMMAND, NodeProcess, environment

CONNECTIONS = 32
HEAD = "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{}Content-Length: {}\r\n\r\n"

# --- in this process -----------------------------------------------------------------------------


class Clients:
    """One measured service and its client connections."""

    def __init__(self, table: Mapping[str, BoundMethod], issuer: TokenIssuer | None) -> None:
        self._table = table
        self._issuer = issuer
        self._sockets: list[socket.socket] = []
        self._header = ""

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        service, authenticator = Service(Dispatcher(self._table, loop)), None
        if self._issuer is not None:
            service.plain = None
            authenticator = Authenticator(self._issuer, self._table, loop, DispatchLimits(), SystemClock())
            self._header = f"Authorization: Bearer {self._issuer.issue('bench', ('eth:*', 'net:*'), time.time())}\r\n"
        hosts, origins = HostList(["localhost"]), OriginList([])
        policy = HttpPolicy(
            service, hosts, origins, HttpLimits(), PlainHeads(), lambda opened: True, lambda closed: None, authenticator
        )
        server = await loop.create_server(lambda: HttpConnection(policy), "127.0.0.1", 0)
        for _ in range(CONNECTIONS):
            client = socket.create_connection(server.sockets[0].getsockname())
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.setblocking(False)
            self._sockets.append(client)
        await asyncio.sleep(0.1)

    async def turn(self, body: bytes) -> float | None:
        """Run one round. Returns CPU microseconds per request, or None if the answers needed more than one loop
        step.
        """
        request = HEAD.format(self._header, len(body)).encode() + body
        for client in self._sockets:
            client.send(request)
        began = time.thread_time_ns()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        took = time.thread_time_ns() - began
        answers = [await self._answer(client) for client in self._sockets]
        return took / CONNECTIONS / 1e3 if all(answers) else None

    async def _answer(self, client: socket.socket) -> bool:
        """Return whether the answer has already arrived."""
        is_there = True
        while True:
            try:
                assert client.recv(4096).startswith(b"HTTP/1.1 200")
                return is_there
            except BlockingIOError:
                is_there = False
                await asyncio.sleep(0)


async def in_process(turns: int) -> None:
    registry = Registry(getattr(one, "__rpc__") for one in (block_number, get_balance))  # noqa: B009
    plain = registry.bind(Context(), {"eth"}, HTTP)
    measured = RequestMetrics(MetricsRegistry()).measured(plain)
    issuer = TokenIssuer()
    services = {
        "nothing": Clients(plain, None),
        "metrics": Clients(measured, None),
        "token": Clients(plain, issuer),
        "both": Clients(measured, issuer),
    }
    for clients in services.values():
        await clients.connect()
    order, random = list(services), Random(1)
    for method, body in BODIES.items():
        taken: dict[str, list[float]] = {label: [] for label in services}
        for _ in range(turns):
            random.shuffle(order)
            for label in order:
                took = await services[label].turn(body)
                if took is not None:
                    taken[label].append(took)
        base = statistics.median(taken["nothing"])
        for label, times in taken.items():
            middle = statistics.median(times)
            print(f"{method:16} {label:8} {middle:6.2f} us CPU per request ({middle / base - 1:+6.1%})")


# --- real nodes ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """Result of one run of wrk."""

    rate: float
    """Requests per second."""
    cpu_us: float
    """CPU time of the node's event loop per request, in microseconds."""


def users_file(folder: Path) -> Path:
    """Write a credentials file with the user `bench`, who may call every method. The password is the user name."""
    hashed = subprocess.check_output([*COMMAND, "password", "hash", "--password=bench"], env=environment(), text=True)
    path = folder / "users.toml"
    path.write_text(f'[Users.bench]\npassword = "{hashed.strip()}"\npermissions = ["*:*"]\n')
    return path


def login(port: int) -> str:
    """Log in and return a header line for wrk with a token that is valid for five minutes."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/login", json.dumps({"username": "bench", "password": "bench"}))
    token = json.loads(connection.getresponse().read())["token"]
    connection.close()
    return f'wrk.headers["Authorization"]="Bearer {token}"\n'


def cpu_seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def with_wrk(node: NodeProcess, body: bytes, has_token: bool, seconds: int) -> Figure:
    port = node.ports["json-rpc"]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f'wrk.method="POST"\nwrk.headers["Content-Type"]="application/json"\nwrk.body=[==[{body.decode()}]==]\n'
        )
        script.write(login(port) if has_token else "")
        script.flush()
        before = cpu_seconds(node.pid)
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script.name, f"http://127.0.0.1:{port}/"]
        text = subprocess.check_output(command, text=True)
        used = cpu_seconds(node.pid) - before
    assert "Non-2xx" not in text, text
    found = re.search(r"(\d+) requests in ([\d.]+)s", text)
    assert found is not None, text
    count = int(found[1])
    return Figure(count / float(found[2]), used / count * 1e6)


def nodes(rounds: int, seconds: int) -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        metrics = ("--metrics-enabled", "--metrics-port=0")
        token = (
            "--rpc-http-authentication-enabled",
            f"--rpc-http-authentication-credentials-file={users_file(folder)}",
        )
        options = {"nothing": (), "metrics": metrics, "token": token, "both": (*metrics, *token)}
        running = {
            label: stack.enter_context(NodeProcess(folder / label, "--network=dev", *chosen))
            for label, chosen in options.items()
        }
        for method, body in BODIES.items():
            figures: dict[str, list[Figure]] = {label: [] for label in options}
            for _ in range(rounds):
                for label, node in running.items():
                    figures[label].append(with_wrk(node, body, token[0] in options[label], seconds))
            for label, runs in figures.items():
                rate = statistics.median(one.rate for one in runs)
                cost = statistics.median(one.cpu_us for one in runs)
                print(f"{method:16} {label:8} {rate:9,.0f} requests/s   {cost:6.2f} us CPU per request")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--wrk", action="store_true", help="real nodes too, asked by wrk")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=2)
    arguments = parser.parse_args()
    uvloop.run(in_process(arguments.turns))
    if arguments.wrk:
        nodes(arguments.rounds, arguments.seconds)
