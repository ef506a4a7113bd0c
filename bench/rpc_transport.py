"""Measure the cost of a JSON-RPC request without the work of its method: python bench/rpc_transport.py

Calls the HTTP connection object in process, without sockets. Prints CPU microseconds per request for a known request
head, for a head that arrives before its body, for a head with a token that the service does not need, for a head that
is parsed, and for the dispatcher alone. With `--wrk` it also serves the same methods on a port. wrk (a Debian package)
then sends requests over 32 connections, as in ../shared/bench/side_by_side.py.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle

import uvloop

from ophion.primitives.types import BlockTag
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.schema.registry import HTTP, Registry, method
from ophion.rpc.schema.wire_types import AddressParam, BlockParam, Quantity
from ophion.rpc.transport.host_allowlist import HostList
from ophion.rpc.transport.http.connection import HttpConnection
from ophion.rpc.transport.http.fast_path import PlainHeads
from ophion.rpc.transport.http.messages import Request, Response
from ophion.rpc.transport.http.policy import HttpLimits, HttpPolicy, Result
from ophion.rpc.transport.origins import OriginList
from ophion.rpc.transport.replies import Reply
from ophion.rpc.transport.shared_resources import SharedResources
from ophion.runtime.fair_scheduler import FairScheduler

BODIES = {
    "eth_blockNumber": b'{"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}',
    "eth_getBalance": b'{"jsonrpc": "2.0", "id": 1, "method": "eth_getBalance", '
    b'"params": ["0xFE3B557E8Fb62b89F4916B721be55cEb828dBd73", "latest"]}',
}


class Context:
    """A method context with constant answers."""

    head = 0x4D2

    def provides(self, service: str) -> bool:
        return True


@method("eth_blockNumber")
def block_number(ctx: Context) -> Quantity:
    """Return a constant block number."""
    return ctx.head


@method("eth_getBalance")
def get_balance(ctx: Context, address: AddressParam, block: BlockParam = BlockTag.LATEST) -> Quantity:
    """Return a constant, after decoding two parameters."""
    return 10**20


class Service:
    """A JSON-RPC service with two methods."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self.plain: Callable[[bytes], Reply] | None = dispatcher.handle

    def respond(self, request: Request) -> Result:
        return Response(404)

    def close(self) -> None:
        """Do nothing."""


class Sink(asyncio.Transport):
    """A transport that discards all output."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def write(self, data: object) -> None:
        pass

    def writelines(self, list_of_data: object) -> None:
        pass

    def is_closing(self) -> bool:
        return False


def policy(dispatcher: Dispatcher) -> HttpPolicy:
    hosts, origins = HostList(["localhost", "127.0.0.1"]), OriginList([])
    scheduler = FairScheduler(turn_s=math.inf)  # time slices have no limit, because this benchmark runs no event loop
    return HttpPolicy(
        Service(dispatcher),
        hosts,
        origins,
        HttpLimits(),
        PlainHeads(),
        lambda opened: True,
        lambda closed: None,
        shared=SharedResources(scheduler=scheduler),
    )


def dispatcher(loop: asyncio.AbstractEventLoop) -> Dispatcher:
    registry = Registry(getattr(one, "__rpc__") for one in (block_number, get_balance))  # noqa: B009
    return Dispatcher(registry.bind(Context(), {"eth"}, HTTP), loop)


def microseconds(work: Callable[[], object], count: int = 50_000, rounds: int = 7) -> float:
    """Return the lowest CPU time of one call over some rounds. The lowest time excludes other load."""
    best = float("inf")
    for _ in range(rounds):
        began = time.thread_time()
        for _ in range(count):
            work()
        best = min(best, (time.thread_time() - began) / count)
    return best * 1e6


async def in_process() -> None:
    loop = asyncio.get_running_loop()
    dispatch = dispatcher(loop)
    shared = policy(dispatch)
    connection = HttpConnection(shared)
    connection.connection_made(Sink())
    for name, body in BODIES.items():
        head = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Number: %06d\r\nContent-Type: application/json\r\n"
        length = b"Content-Length: %d\r\n\r\n" % len(body)
        request = head % 0 + length + body
        others = cycle([head % number + length + body for number in range(1, 5000)])

        def parsed(others: Iterator[bytes] = others) -> None:
            # the 5,000 other HTTP request heads have evicted the head of this request from the cache
            connection.data_received(next(others))

        connection.data_received(request)
        known = microseconds(lambda request=request: connection.data_received(request))

        def split(first: bytes = head % 0 + length, second: bytes = body) -> None:
            connection.data_received(first)
            connection.data_received(second)

        split()
        in_two = microseconds(split, 20_000)
        token = b"Authorization: Bearer " + b"x" * 700 + b"\r\n"
        authorized = head % 0 + token + length + body
        connection.data_received(authorized)
        with_token = microseconds(lambda request=authorized: connection.data_received(request), 20_000)
        unknown = microseconds(parsed, 10_000)
        alone = microseconds(lambda body=body: dispatch.handle(body))
        print(
            f"{name:16} known head {known:5.2f} us   head and body apart {in_two:5.2f} us   "
            f"unused token {with_token:5.2f} us   parsed {unknown:5.2f} us   dispatcher alone {alone:5.2f} us"
        )


async def with_wrk(seconds: int) -> None:
    loop = asyncio.get_running_loop()
    shared = policy(dispatcher(loop))
    server = await loop.create_server(lambda: HttpConnection(shared), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for name, body in BODIES.items():
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(
                f'wrk.method="POST"\nwrk.headers["Content-Type"]="application/json"\nwrk.body=[==[{body.decode()}]==]\n'
            )
            script.flush()
            command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "-s", script.name, f"http://127.0.0.1:{port}/"]
            began = time.process_time()
            text = await loop.run_in_executor(None, lambda command=command: subprocess.check_output(command, text=True))
            used = time.process_time() - began
        count = next(int(line.split()[0]) for line in text.splitlines() if "requests in" in line)
        print(f"{name:16} {count / seconds:9,.0f} requests/s   {used / count * 1e6:5.2f} us CPU each, sockets included")
    server.close()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--wrk", action="store_true", help="also over sockets, with wrk")
    arguments.add_argument("--seconds", type=int, default=4)
    chosen = arguments.parse_args()
    asyncio.run(in_process())
    if chosen.wrk:
        uvloop.run(with_wrk(chosen.seconds))
