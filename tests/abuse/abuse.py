"""Everything hostile that a client can do to a node, and whether honest clients notice: make abuse

    python -m tests.abuse.abuse [--only=NAME ...] [--scale=1] [--rest=10]
    python -m tests.abuse.abuse --http=127.0.0.1:8545 --ws=127.0.0.1:8546 --pid=PID

Starts nodes of its own, with default options, and runs each attack against them; or attacks a running node, of which it
knows only what it is told. Beside each attack an honest client (watch.py) asks for the block number all the time. One
row for each: how long the honest client had to wait at the 99th percentile and at worst, the most memory the node held,
and what it held some seconds later. Exits with 1 when a row is beyond its limits, when something was not answered or
cut off as it should be, or when a node has left a traceback. Milliseconds mean something on an idle machine only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import bcrypt

from ophion.testing.process import MINING, NodeProcess
from tests.abuse import attacks_bodies, attacks_connections, attacks_requests, attacks_tokens, attacks_websocket
from tests.abuse.target import (
    Target,
    Unanswered,
    allow_many_sockets,
    answer,
    call,
    frame,
    make_blocks,
    opened,
    post,
    request,
    send,
    websocket,
)
from tests.abuse.watch import Seen, Watcher, memory_mb

P99_S = 0.1
WORST_S = 1.0
PEAK_MB = 512
REST_SHARE = 1.2
ATTACK_LIMIT_S = 120.0
REST_S = 10.0
HOST = "127.0.0.1"
SECRET = b"a shared secret of the abuse tests"

Attack = Callable[[Target], Awaitable[None]]
ATTACKS: tuple[Attack, ...] = (
    *attacks_connections.ATTACKS,
    *attacks_bodies.ATTACKS,
    *attacks_websocket.ATTACKS,
    *attacks_requests.ATTACKS,
    *attacks_tokens.ATTACKS,
)

OPTIONS = (
    *MINING,
    "--rpc-http-api=ETH,NET,WEB3,TRACE",
    "--rpc-ws-enabled",
    "--rpc-ws-port=0",
    "--graphql-http-enabled",
    "--graphql-http-port=0",
    "--metrics-enabled",
    "--metrics-port=0",
    "--durable-commits=false",
)


@dataclass
class Row:
    """What one attack did."""

    name: str
    took_s: float
    seen: Seen
    idle_mb: float
    rest_mb: float
    failures: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        seen = self.seen
        return (
            f"{self.name:20} {self.took_s:6.1f} s   honest {seen.requests:5} asked {seen.lost:3} lost"
            f"  p99 {seen.p99_s * 1000:5.0f} ms  worst {seen.worst_s * 1000:5.0f} ms"
            f" (node at work {seen.busy_p99_s * 1000:4.0f}, {seen.busy_worst_s * 1000:4.0f})"
            f"   memory peak {seen.peak_mb:6.0f} MB  then {self.rest_mb:5.0f} MB (before {self.idle_mb:4.0f})"
            f"   {'; '.join(self.failures) or 'ok'}"
        )


@dataclass
class Limits:
    """What a row may show; tests, on busy machines, leave the times out."""

    p99_s: float = P99_S
    worst_s: float = WORST_S
    peak_mb: float = PEAK_MB
    rest_share: float = REST_SHARE

    def broken_by(self, row: Row) -> Iterator[str]:
        if row.seen.p99_s > self.p99_s:
            yield "honest clients wait"
        if row.seen.worst_s > self.worst_s:
            yield "an honest client waits too long"
        if row.seen.lost:
            yield "honest requests without an answer"
        if row.seen.peak_mb > self.peak_mb:
            yield "too much memory"
        if row.rest_mb > row.idle_mb * self.rest_share:
            yield "memory is kept"


async def attacked(attack: Attack, target: Target, watcher: Watcher, pid: int | None, rest_s: float) -> Row:
    """One attack, from quiet to quiet."""
    idle = memory_mb(pid)
    watcher.report()
    began, failures = time.perf_counter(), []
    try:
        async with asyncio.timeout(ATTACK_LIMIT_S):
            await attack(target)
    except (Unanswered, OSError, TimeoutError) as error:
        failures.append(f"{type(error).__name__}: {error}")
    took, seen = time.perf_counter() - began, watcher.report()
    await asyncio.sleep(rest_s)
    return Row(attack.__name__, took, seen, idle, memory_mb(pid), failures)


async def used(target: Target) -> None:
    """A while of ordinary use: at rest is a node that has been used, and not one that has just been started."""
    await make_blocks(target, 3)
    names = ("eth_chainId", "eth_gasPrice", "net_version", "web3_clientVersion", "eth_syncing", "eth_accounts")
    usual = [call(name) for name in names]
    usual += [call("eth_getBlockByNumber", "latest", full) for full in (False, True)]
    anybody = "0x" + "11" * 20
    usual += [
        call("eth_call", {"to": anybody, "data": "0x"}, "latest"),
        call("eth_simulateV1", {"blockStateCalls": [{"calls": [{"to": anybody}] * 100}]}, "latest"),
        call("eth_getProof", anybody, ["0x0"], "latest"),
        call("eth_getLogs", {"fromBlock": "earliest", "address": anybody}),
        call("eth_newFilter", {"topics": [["0x" + "11" * 32] * 100]}),
        call("eth_newBlockFilter"),
        call("eth_pendingTransactions"),
    ]
    batch = b"[" + b",".join(usual * 10) + b"]"
    for _ in range(5):
        for body in (*usual, batch):
            await post(target.http, body)
        async with websocket(target) as (reader, writer):
            await send(writer, frame(batch))
            await asyncio.wait_for(reader.read(2), ATTACK_LIMIT_S)
    if target.graphql is not None:
        async with opened(target.graphql) as (reader, writer):
            await send(writer, request(b'{"query":"{block{number hash}}"}').replace(b"POST / ", b"POST /graphql "))
            await answer(reader)
    if target.guarded is not None:
        honest = attacks_tokens.token(target, time.time() + 60)
        for body in (*usual, batch):
            await post(target.guarded, body, honest)
    await asyncio.sleep(REST_S)


async def run(
    target: Target, pid: int | None, names: list[str], rest_s: float, limits: Limits, guarded: int | None = None
) -> list[str]:
    """Every attack in turn; the failures. `guarded` is the process of the node that asks for tokens."""
    allow_many_sockets()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # what becomes of the sockets of an attacker is no news
    failures: list[str] = []
    with contextlib.ExitStack() as watchers:
        watcher = watchers.enter_context(contextlib.closing(Watcher(target.http, pid)))
        beside = (watcher, pid)
        if target.guarded is not None:
            honest = attacks_tokens.token(target, time.time() + 86_400)
            beside = (watchers.enter_context(contextlib.closing(Watcher(target.guarded, guarded, honest))), guarded)
        await (used(target) if rest_s else asyncio.sleep(1))
        for attack in ATTACKS:
            if names and attack.__name__ not in names:
                continue
            # each attack is watched on the node that it is made on
            seen_by, of = beside if attack in attacks_tokens.ATTACKS else (watcher, pid)
            row = await attacked(attack, target, seen_by, of, rest_s)
            row.failures += limits.broken_by(row)
            print(row, flush=True)
            failures += [f"{row.name}: {failure}" for failure in row.failures]
    return failures


@contextlib.contextmanager
def nodes(folder: Path, *options: str) -> Iterator[tuple[NodeProcess, NodeProcess]]:
    """An open node with everything on, and one that asks for tokens."""
    secret, users = folder / "secret", folder / "users.toml"
    secret.write_bytes(SECRET)
    hashed = bcrypt.hashpw(attacks_tokens.PASSWORD.encode(), bcrypt.gensalt(10)).decode()
    users.write_text(f'[Users.{attacks_tokens.USER}]\npassword = "{hashed}"\npermissions = ["*:*"]\n')
    asking = (
        "--network=dev",
        "--rpc-http-authentication-enabled",
        f"--rpc-http-authentication-jwt-public-key-file={secret}",
        "--rpc-http-authentication-jwt-algorithm=HS256",
        "--rpc-ws-enabled",
        "--rpc-ws-port=0",
        "--rpc-ws-authentication-enabled",
        f"--rpc-ws-authentication-credentials-file={users}",
    )
    with NodeProcess(folder / "open", *OPTIONS, *options) as one, NodeProcess(folder / "guarded", *asking) as other:
        yield one, other


def target_of(node: NodeProcess, guarded: NodeProcess, scale: float) -> Target:
    ports = {name: (HOST, port) for name, port in node.ports.items()}
    return Target(
        ports["json-rpc"],
        ports["ws-rpc"],
        ports["graphql-http"],
        ports["metrics"],
        (HOST, guarded.ports["json-rpc"]),
        SECRET,
        (HOST, guarded.ports["ws-rpc"]),
        scale,
    )


def place(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or HOST, int(port)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--http", type=place, help="attack a running node instead")
    parser.add_argument("--ws", type=place, default=(HOST, 8546))
    parser.add_argument("--pid", type=int)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rest", type=float, default=REST_S, help="seconds after which memory is looked at again")
    parser.add_argument("--only", action="append", default=[])
    chosen = parser.parse_args()
    if chosen.http is not None:
        target = Target(chosen.http, chosen.ws, scale=chosen.scale)
        return 1 if asyncio.run(run(target, chosen.pid, chosen.only, chosen.rest, Limits())) else 0
    with tempfile.TemporaryDirectory() as name, nodes(Path(name)) as (node, guarded):
        target = target_of(node, guarded, chosen.scale)
        failures = asyncio.run(run(target, node.pid, chosen.only, chosen.rest, Limits(), guarded.pid))
        for one in (node, guarded):
            log = one.output()
            at = log.find("Traceback")
            if at >= 0 or not one.is_running:
                told = log[-3000:] if at < 0 else log[max(0, at - 1000) : at + 4000]
                failures.append(f"the node has not got over it:\n{told}")
                print(failures[-1])
    print(f"{len(failures)} of the promises broken" if failures else "all promises kept")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
