"""What authentication and metrics cost a request: python bench/guard_cost.py

Drives the HTTP connection object in process, as rpc_transport.py does, and prints CPU microseconds per request: without
anything, with metrics, with a token, with both. The rounds of all four alternate, and the least of each counts, so what
else the machine does is left out. A request over a socket costs some ten microseconds more in the kernel, which makes
the shares printed here upper bounds.
"""

from __future__ import annotations

import asyncio
import time

from rpc_transport import BODIES, Context, Service, Sink, block_number, get_balance

from ophion.rpc.access import HostList, OriginList
from ophion.rpc.auth.gate import Gate
from ophion.rpc.auth.tokens import TokenIssuer
from ophion.rpc.dispatcher import Dispatcher, DispatchLimits
from ophion.rpc.http_connection import HttpConnection, HttpLimits, HttpPolicy, PlainHeads
from ophion.rpc.measured import RequestMetrics
from ophion.rpc.registry import HTTP, Bound, Registry
from ophion.runtime.clock import SystemClock
from ophion.runtime.metrics import MetricsRegistry

ROUNDS, COUNT = 15, 20_000


def connection(table: dict[str, Bound], loop: asyncio.AbstractEventLoop, issuer: TokenIssuer | None) -> HttpConnection:
    service = Service(Dispatcher(table, loop))
    gate = None
    if issuer is not None:
        service.plain = None
        gate = Gate(issuer, table, loop, DispatchLimits(), SystemClock())
    made = HttpConnection(
        HttpPolicy(
            service,
            HostList(["localhost"]),
            OriginList([]),
            HttpLimits(),
            PlainHeads(),
            lambda opened: True,
            lambda closed: None,
            gate,
        )
    )
    made.connection_made(Sink())
    return made


def main() -> None:
    loop = asyncio.new_event_loop()
    registry = Registry(getattr(one, "__rpc__") for one in (block_number, get_balance))  # noqa: B009
    plain = registry.bind(Context(), {"eth"}, HTTP)
    measured = RequestMetrics(MetricsRegistry()).measured(plain)
    issuer = TokenIssuer()
    token = issuer.issue("bench", ("eth:*", "net:*"), time.time())
    variants = {
        "nothing": (connection(plain, loop, None), ""),
        "metrics": (connection(measured, loop, None), ""),
        "token": (connection(plain, loop, issuer), f"Authorization: Bearer {token}\r\n"),
        "both": (connection(measured, loop, issuer), f"Authorization: Bearer {token}\r\n"),
    }
    for name, body in BODIES.items():
        best = dict.fromkeys(variants, float("inf"))
        for _ in range(ROUNDS):
            for label, (client, header) in variants.items():
                head = f"POST / HTTP/1.1\r\nHost: localhost\r\n{header}Content-Length: {len(body)}\r\n\r\n"
                request = head.encode() + body
                receive = client.data_received
                began = time.thread_time()
                for _ in range(COUNT):
                    receive(request)
                best[label] = min(best[label], (time.thread_time() - began) / COUNT * 1e6)
        base = best["nothing"]
        shown = "   ".join(f"{label} {took:5.2f} us ({took - base:+.2f})" for label, took in best.items())
        print(f"{name:16} {shown}")
    loop.close()


if __name__ == "__main__":
    main()
