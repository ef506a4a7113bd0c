"""Runs every attack that a client or an unknown peer can make against a node, and measures whether honest clients
notice: make abuse

    python -m tests.abuse.abuse [NAME ...] [--scale=1] [--rest=10]
    python -m tests.abuse.abuse [NAME ...] --http=127.0.0.1:8545 --ws=127.0.0.1:8546 --pid=PID

Without addresses it starts nodes with default options and attacks them. With addresses it attacks a running node. A
NAME is an attack or a kind of target (open, tokens, tls, gateway, peers, peers-qbft, qbft, ibft2, clique, private,
shared); `--list` shows all names.
During each attack an honest client (watch.py) requests the block number all the time. The table has one row per attack:
the latency of the honest client (99th percentile and maximum) and its causes; the peak memory of the node, and its
memory ten seconds after the attack; and what the attackers delivered. Attackers run with low priority (attacker.py).

The last lines list the attacks that exceeded a limit. The exit code is 1 when a row exceeds its limits, when an attack
was neither answered nor cut off as expected, or when a node stopped or logged a traceback. Milliseconds are only
meaningful on an idle machine. A full run takes a quarter of an hour.
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

from tests.abuse import (
    attacks_bodies,
    attacks_connections,
    attacks_eclipse,
    attacks_peers,
    attacks_permissions,
    attacks_private,
    attacks_requests,
    attacks_strangers,
    attacks_sync,
    attacks_tls,
    attacks_tokens,
    attacks_validators,
    attacks_websocket,
)
from tests.abuse.attacker import Delivered, attacking, delivered
from tests.abuse.scenes import (
    CLIQUE,
    GATEWAY,
    IBFT2,
    OPEN,
    PEERS,
    PEERS_QBFT,
    PRIVATE,
    QBFT,
    SCENES,
    SHARED,
    TLS,
    TOKENS,
    Scene,
    watched,
)
from tests.abuse.target import (
    Place,
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
from tests.abuse.watch import Seen, memory_mb

P99_S = 0.1
WORST_S = 1.0
PEAK_MB = 512
REST_SHARE = 1.2
BACK_SHARE = 1.03
"""Memory below this multiple of the idle memory counts as released, so that waiting can end early."""
ATTACK_LIMIT_S = 180.0
REST_S = 10.0
MIN_REST_S = 1.0
MIN_ATTACK_S = 3.0
"""Minimum duration of an attack in seconds. A shorter attack is repeated, because a hundred requests give no
percentile.
"""
LOOK_S = 0.25
USUAL_CLIENTS, USUAL_BLOCKS = 20, 20
"""Number of clients and blocks that a node has handled before its idle memory is measured."""


@dataclass(frozen=True)
class Attack:
    """One attack, which gives one row of the result table."""

    scene: str
    run: Callable[[Target], Awaitable[None]]

    @property
    def name(self) -> str:
        name = self.run.__name__
        if self.scene == PRIVATE:
            return f"{self.scene}-{name}"
        return name if self.scene in (OPEN, TOKENS, SHARED) else f"{self.scene}.{name}"

    def is_one_of(self, names: list[str]) -> bool:
        return not names or self.name in names or self.scene in names


THROUGH_A_GATEWAY = (
    attacks_connections.silent_subscribers,
    attacks_connections.pipelined_upgrades,
    attacks_connections.new_connections,
    attacks_websocket.many_pings,
    attacks_websocket.half_messages,
    attacks_connections.unread_answers,
    attacks_connections.wide_heads,
    attacks_bodies.half_bodies,
)
TABLE = {
    OPEN: (
        *attacks_connections.ATTACKS,
        *attacks_bodies.ATTACKS,
        *attacks_websocket.ATTACKS,
        *attacks_requests.ATTACKS,
    ),
    TOKENS: attacks_tokens.ATTACKS,
    TLS: attacks_tls.ATTACKS,
    GATEWAY: THROUGH_A_GATEWAY,
    PEERS: (
        *attacks_peers.ATTACKS,
        *attacks_validators.ATTACKS,
        *attacks_eclipse.ATTACKS,
        *attacks_permissions.ATTACKS,
        *attacks_sync.ATTACKS,
    ),
    PEERS_QBFT: attacks_peers.QBFT_ATTACKS,
    QBFT: (attacks_strangers.strangers,),
    IBFT2: (attacks_strangers.strangers,),
    CLIQUE: attacks_strangers.ATTACKS,
    PRIVATE: attacks_private.ATTACKS,
    SHARED: (attacks_private.tenants,),
}
ATTACKS = tuple(Attack(scene, run) for scene, runs in TABLE.items() for run in runs)


@dataclass
class Row:
    """Figures of one attack."""

    name: str
    took_s: float
    seen: Seen
    idle_mb: float
    rest_mb: float
    rested_s: float
    failures: list[str] = field(default_factory=list)
    delivered: Delivered = field(default_factory=Delivered)

    def __str__(self) -> str:
        seen = self.seen
        return (
            f"{self.name:25} {self.took_s:6.1f} s   honest {seen.requests:5} asked {seen.lost:3} lost"
            f"  p99 {seen.p99_s * 1000:5.0f} ms  worst {seen.worst_s * 1000:5.0f} ms"
            f" (at work {seen.busy_p99_s * 1000:4.0f}, {seen.busy_worst_s * 1000:4.0f},"
            f" no processor {seen.ready_p99_s * 1000:4.0f}, {seen.ready_worst_s * 1000:4.0f})"
            f"   memory peak {seen.peak_mb:4.0f} MB  then {self.rest_mb:4.0f} after {self.rested_s:4.1f} s"
            f" (before {self.idle_mb:4.0f})   sent {self.delivered.sent_bytes / 1e6:7.1f} MB over"
            f" {self.delivered.connections:6}   {'; '.join(self.failures) or 'ok'}"
        )


@dataclass
class Limits:
    """Limits of the figures of one attack. The test suite sets no time limits, because test machines are busy."""

    p99_s: float = P99_S
    worst_s: float = WORST_S
    peak_mb: float = PEAK_MB
    rest_share: float = REST_SHARE

    def broken_by(self, row: Row) -> Iterator[str]:
        if row.seen.p99_s > self.p99_s:
            yield f"honest clients wait ({row.seen.p99_s * 1000:.0f} ms)"
        if row.seen.worst_s > self.worst_s:
            yield f"an honest client waits too long ({row.seen.worst_s * 1000:.0f} ms)"
        if row.seen.lost:
            yield f"{row.seen.lost} honest requests without an answer"
        if row.seen.peak_mb > self.peak_mb:
            yield f"too much memory ({row.seen.peak_mb:.0f} MB)"
        if row.rest_mb > row.idle_mb * self.rest_share:
            yield f"memory is kept ({row.rest_mb:.0f} MB, {row.idle_mb:.0f} before)"


async def attacked(attack: Attack, scene: Scene, rest_s: float) -> Row:
    """Run one attack and measure the node before, during and after it."""
    idle = memory_mb(scene.pid)
    scene.watcher.report()
    delivered.take()
    began, failures = time.perf_counter(), []

    async def attempts() -> None:
        async with asyncio.timeout(ATTACK_LIMIT_S):
            await attack.run(scene.target)
            while rest_s and time.perf_counter() < began + MIN_ATTACK_S:
                await attack.run(scene.target)

    try:
        await attacking(attempts)
    except (Unanswered, OSError, TimeoutError) as error:
        failures.append(f"{type(error).__name__}: {error}")
    took, seen = time.perf_counter() - began, scene.watcher.report()
    rested_s = await rested(scene.pid, idle, rest_s)
    return Row(attack.name, took, seen, idle, memory_mb(scene.pid), rested_s, failures, delivered.take())


async def rested(pid: int | None, idle_mb: float, most_s: float) -> float:
    """Wait until the memory is released, but at most `most_s` seconds. Returns the seconds waited."""
    began = time.perf_counter()
    while (gone_s := time.perf_counter() - began) < most_s:
        await asyncio.sleep(LOOK_S)
        if gone_s > MIN_REST_S and memory_mb(pid) <= idle_mb * BACK_SHARE:
            break
    return time.perf_counter() - began


async def used(target: Target) -> None:
    """Send ordinary requests before idle memory is measured, because a node that was never used needs less memory."""
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
    honest = attacks_tokens.token(target, time.time() + 60) if target.secret else b""

    async def client() -> None:
        for body in (*usual, batch):
            await post(target.http, body, honest)
        if not target.secret:
            async with websocket(target) as (reader, writer):
                await send(writer, frame(call("eth_subscribe", "newHeads")) + frame(batch))
                await asyncio.wait_for(reader.read(1 << 16), ATTACK_LIMIT_S)

    if not target.secret:
        await make_blocks(target, USUAL_BLOCKS)
    for _ in range(5):
        await asyncio.gather(*(client() for _ in range(USUAL_CLIENTS)))
    if target.graphql is not None:
        async with opened(target.graphql) as (reader, writer):
            await send(writer, request(b'{"query":"{block{number hash}}"}', path=b"/graphql"))
            await answer(reader)
    await asyncio.sleep(REST_S)


class Stage:
    """The running targets. A target starts with its first attack, and again after an attack that it did not survive."""

    def __init__(self, folder: Path, scale: float, *options: str) -> None:
        self._folder = folder
        self._scale = scale
        self._options = options
        self._open: dict[str, tuple[Scene, contextlib.ExitStack]] = {}
        self._opened = 0

    async def scene(self, name: str, is_used: bool) -> Scene:
        if name not in self._open:
            self._opened += 1
            folder = self._folder / f"{self._opened} {name}"
            folder.mkdir()
            stack = contextlib.ExitStack()
            scene = stack.enter_context(SCENES[name](folder, self._scale, *self._options))
            self._open[name] = (scene, stack)
            await (used(scene.target) if is_used else asyncio.sleep(1))
        return self._open[name][0]

    def leave(self, name: str) -> None:
        if name in self._open:
            self._open.pop(name)[1].close()

    def close(self) -> None:
        for name in tuple(self._open):
            self.leave(name)


async def run(stage: Stage, names: list[str], rest_s: float, limits: Limits) -> list[Row]:
    """Run the attacks in order and return their rows. A target stays open only while attacks on this target remain."""
    prepare()
    rows = []
    wanted = [attack for attack in ATTACKS if attack.is_one_of(names)]
    for number, attack in enumerate(wanted):
        scene = await stage.scene(attack.scene, rest_s > 0)
        rows.append(await row_of(attack, scene, rest_s, limits))
        is_last = number + 1 == len(wanted) or wanted[number + 1].scene != attack.scene
        if rest_s and (is_last or not all(process.is_running for process in scene.processes)):
            stage.leave(attack.scene)
    return rows


def prepare() -> None:
    allow_many_sockets()
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # hide errors on the sockets of an attacker


async def row_of(attack: Attack, scene: Scene, rest_s: float, limits: Limits) -> Row:
    row = await attacked(attack, scene, rest_s)
    row.failures += limits.broken_by(row)
    if trouble := scene.trouble():
        row.failures.append(trouble)
    print(row, flush=True)
    return row


async def run_on(scene: Scene, names: list[str], rest_s: float) -> list[Row]:
    """Run the attacks that work on any node, against a running node."""
    prepare()
    await asyncio.sleep(1)
    wanted = [attack for attack in ATTACKS if attack.scene == OPEN and attack.is_one_of(names)]
    return [await row_of(attack, scene, rest_s, Limits()) for attack in wanted]


def verdict(rows: list[Row], took_s: float) -> int:
    """Print the attacks that exceeded a limit, and return the exit code."""
    broken = [row for row in rows if row.failures]
    print(f"{len(rows)} attacks in {took_s / 60:.1f} minutes: ", end="")
    print(f"{len(broken)} EXCEEDED A LIMIT" if broken else "no limit exceeded")
    for row in broken:
        for failure in row.failures:
            print(f"  {row.name}: {failure}")
    return 1 if broken or not rows else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="an attack, or what is attacked; all unless given")
    parser.add_argument("--list", action="store_true", help="show the attacks")
    parser.add_argument("--http", type=Place.parse, help="attack a running node instead")
    parser.add_argument("--ws", type=Place.parse, default=Place("127.0.0.1", 8546))
    parser.add_argument("--pid", type=int)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rest", type=float, default=REST_S, help="seconds after which memory must be back")
    chosen = parser.parse_args()
    known = {attack.name for attack in ATTACKS} | SCENES.keys()
    if unknown := [name for name in chosen.names if name not in known]:
        parser.error(f"there is no {unknown[0]}: --list shows what there is")
    if chosen.list:
        for attack in ATTACKS:
            print(f"{attack.scene:8} {attack.name:28} {attack.run.__doc__}")
        return 0
    began = time.monotonic()
    if chosen.http is not None:
        with watched(Target(chosen.http, chosen.ws, scale=chosen.scale), chosen.pid) as scene:
            rows = asyncio.run(run_on(scene, chosen.names, chosen.rest))
    else:
        with (
            tempfile.TemporaryDirectory() as name,
            contextlib.closing(Stage(Path(name), chosen.scale)) as stage,
        ):
            rows = asyncio.run(run(stage, chosen.names, chosen.rest, Limits()))
    return verdict(rows, time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
