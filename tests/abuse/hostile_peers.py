"""Runs every attack that a peer can make against a node, and checks whether blocks and honest peers notice.

    python -m tests.abuse.hostile_peers --enode=enode://…@127.0.0.1:30303 --http=127.0.0.1:8545 [--pid=PID] [--scale=1]
        [--period=1] [--only=NAME ...]

Runs each attack against a running node that makes a block each `period` seconds. The node must disconnect the attacker.
During and after each attack, an honest peer connects and requests a header. The median of three attempts must be below
a second. Blocks must continue at their pace, and the node's memory must not grow. Otherwise the exit code is 1. The
test suite uses `--scale=0.01`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import sys
import time
from collections.abc import Awaitable, Callable

from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.native import wire
from ophion.native.crypto import PrivateKey
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.testing.signing import legacy_transaction
from tests.abuse.attacker import delivered
from tests.abuse.peer_target import (
    Target,
    expect,
    head,
    in_turns,
    is_ready,
    longest_gap,
    peer_is_cut_off,
    probe,
    raise_file_limit,
    served,
)
from tests.abuse.raw_peer import (
    ETH,
    HELLO,
    PATIENCE_S,
    dialled,
    greeted,
    hello,
    is_closed,
    joined,
    new_key,
    shaken,
    whole,
)
from tests.abuse.target import Place, Unanswered

MEMORY_LIMIT_MB = 200
LATE_LIMIT_S = 1
"""Maximum seconds by which a block may be later than its period; timestamps are whole seconds."""
BREATH_S = 0.05
READY_LIMIT_S = 30.0
"""Maximum time for which a node may believe a peer's announcement of blocks that never arrive."""

STATUS, NEW_HASHES, TRANSACTIONS, GET_HEADERS, HEADERS, GET_BODIES, BODIES, NEW_BLOCK = range(ETH, ETH + 8)
NEW_POOLED, GET_POOLED, POOLED = range(ETH + 8, ETH + 11)
RECEIPTS = ETH + 16
IBF_CODES = 4
"""Message ids of IBF/1, which precede the ids of eth when both protocols are shared."""
FAR_AHEAD = 2**60
"""A total difficulty that makes the node request headers."""


# --- attacks -------------------------------------------------------------------------------------


async def wrong_handshakes(target: Target) -> None:
    """Attack with 2,000 connections that send no handshake, or send nothing after the handshake."""
    other = PrivateKey(os.urandom(32))
    foreign = wire.Handshake.initiate(os.urandom(32), other.public_key, os.urandom(wire.HANDSHAKE_ENTROPY)).auth
    openings = (
        os.urandom(307),
        b"\x01\x33" + os.urandom(307),
        b"\xff\xff" + os.urandom(3000),
        b"\x00\x00",
        b"\x01\xb3\x04" + bytes(434),
        foreign,
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20,
    )

    async def one(number: int) -> None:
        async with dialled(target.enode) as (reader, writer):
            writer.write(openings[number % len(openings)])
            expect(await is_closed(reader), "still open")

    await in_turns(target.count(2000, 28), one)


async def wrong_hellos(target: Target) -> None:
    """Attack with correct handshakes, followed by invalid messages."""

    async def one(number: int) -> None:
        async with shaken(target.enode) as peer:
            own = hello(peer.key)
            unknown_key = PrivateKey(os.urandom(32))
            match number % 9:
                case 0:
                    peer.writer.write(os.urandom(600))
                case 1:
                    await peer.send(HELLO, hello(unknown_key))
                case 2:
                    await peer.send(HELLO, hello(peer.key, capabilities=[[b"abc", 1]]))
                case 3:
                    await peer.send(HELLO, hello(peer.key, name=bytes(2 * 2**20)))
                case 4:
                    await peer.send(STATUS, own)
                case 5:
                    await peer.send(HELLO, own[:-1])
                case 6:
                    await peer.send(HELLO, rlp.encode([5, b"", [[b"eth", 68]], 0, bytes(64)]))
                case 7:
                    await peer.send(HELLO, b"")
                case 8:
                    await peer.send(HELLO, rlp.encode([5, b"", [[b"eth", 68]] * 300, 0, peer.key.public_key]))
            expect(await peer_is_cut_off(peer), "still open")

    await in_turns(target.count(900, 18), one)


async def wrong_statuses(target: Target) -> None:
    """Attack with peers of other chains, and invalid Status messages."""

    async def one(number: int) -> None:
        async with greeted(target.enode) as peer:
            match number % 7:
                case 0:
                    await peer.join(network=999_999)
                case 1:
                    await peer.join(genesis=os.urandom(32))
                case 2:
                    await peer.join(fork=[b"abcd", 0])
                case 3:
                    await peer.join(difficulty=b"\x01" + bytes(2 * 2**20))
                case 4:
                    await peer.send(STATUS, b"\xc0")
                case 5:
                    await peer.send(GET_HEADERS, rlp.encode([1, [0, 1, 0, 0]]))
                case 6:
                    await peer.join()
                    await peer.send(STATUS, b"\xc0")
            expect(await peer_is_cut_off(peer), f"still open ({number % 7})")

    await in_turns(target.count(700, 14), one)


async def half_open(target: Target) -> None:
    """Attack with 2,000 connections that begin a handshake and do not continue."""
    async with contextlib.AsyncExitStack() as held:
        readers = []
        for number in range(target.count(2000, 60)):
            try:
                reader, writer = await held.enter_async_context(dialled(target.enode))
            except ConnectionError:
                continue  # the node may also refuse the connection, which counts like a disconnect
            writer.write(b"\x01\xb3" + os.urandom(number % 400))
            readers.append(reader)
        await probe(target, "while handshakes are half open")
        await asyncio.gather(*map(is_closed, readers))


async def large_frames(target: Target) -> None:
    """Attack with frames of nearly 16 MiB, some in place of Hello."""
    noise = os.urandom(2**24 - 1000)

    async def one(number: int) -> None:
        code = (HELLO, NEW_BLOCK, TRANSACTIONS, STATUS, 0x60)[number % 5]
        async with (shaken if code == HELLO else joined)(target.enode) as peer:
            with contextlib.suppress(ConnectionError):
                await peer.send(code, noise)
            expect(await peer_is_cut_off(peer), f"still open after 16 MiB of {code:#x}")

    await in_turns(target.count(50, 5), one, width=5)


async def dripping_frames(target: Target) -> None:
    """Attack with frames of 16 MiB that arrive a few bytes at a time."""

    async def one(_: int) -> None:
        async with joined(target.enode) as peer:
            frame = peer.session.seal([(TRANSACTIONS, os.urandom(2**20 * 9))])
            dripping = asyncio.create_task(drip(peer.writer, frame))
            try:
                expect(await peer_is_cut_off(peer), "still open")
            finally:
                dripping.cancel()

    await in_turns(target.count(20, 3), one)


async def drip(writer: asyncio.StreamWriter, frame: bytes) -> None:
    """Send just enough bytes to keep the connection alive."""
    with contextlib.suppress(ConnectionError):
        for start in range(0, len(frame), 100):
            writer.write(frame[start : start + 100])
            await writer.drain()
            await asyncio.sleep(0.2)


async def endless_zeros(target: Target) -> None:
    """Attack with messages that decompress to zeros only."""
    # the node drops messages just below the size limit unread, and disconnects the peer after some hundred such
    # messages
    for size in (2**24 - 1, 2**20, 10 * 2**20)[: 2 if target.scale < 1 else 3]:
        async with joined(target.enode) as peer:
            with contextlib.suppress(ConnectionError):
                for _ in range(1000):
                    await peer.send(TRANSACTIONS, bytes(size))
            expect(await peer_is_cut_off(peer), f"still open after zeros of {size} bytes")


async def announced_transactions(target: Target) -> None:
    """Attack with a million hashes of transactions that do not exist."""
    async with joined(target.enode) as peer:
        reading = asyncio.create_task(peer_is_cut_off(peer))
        try:
            with contextlib.suppress(ConnectionError):
                for _ in range(target.count(1_000_000, 50_000) // 4096):
                    count = 4096
                    hashes = [os.urandom(32) for _ in range(count)]
                    await peer.send(NEW_POOLED, rlp.encode([b"\x02" * count, [150] * count, hashes]))
            await probe(target, "after a million announcements")
            expect(await reading, "still open")
        finally:
            reading.cancel()


async def announced_blocks(target: Target) -> None:
    """Attack with a million hashes of blocks that do not exist."""
    last = await head(target)
    async with joined(target.enode) as peer:
        reading = asyncio.create_task(peer_is_cut_off(peer))
        try:
            with contextlib.suppress(ConnectionError):
                for number in range(target.count(1_000_000, 20_000) // 1000):
                    pairs: list[rlp.Encodable] = [[os.urandom(32), last + 1 + number % 5] for _ in range(1000)]
                    await peer.send(NEW_HASHES, rlp.encode(pairs))
            await probe(target, "after a million announcements")
            expect(await reading, "still open")
        finally:
            reading.cancel()


async def worthless_transactions(target: Target) -> None:
    """Attack with thousands of transactions that can never be included, and some invalid transactions."""
    for make in (
        lambda: [legacy_transaction(PrivateKey(os.urandom(32)), 10**6 + nonce) for nonce in range(20)],
        lambda: [b"\x02" + os.urandom(120) for _ in range(100)],
        lambda: [rlp.encode([0, 1, 21_000, bytes(20), 0, b"", 27, 0, 0])] * 100,
    ):
        async with joined(target.enode) as peer:
            reading = asyncio.create_task(peer_is_cut_off(peer))
            with contextlib.suppress(ConnectionError):
                for _ in range(target.count(500, 10)):
                    await peer.send(TRANSACTIONS, wire.join_transactions(make()))
                    await asyncio.sleep(0)
            await probe(target, "during worthless transactions")
            reading.cancel()


def false_header(number: int) -> list[rlp.Encodable]:
    """Return a header that belongs to no chain."""
    empty = b"\x00" * 32
    return [
        os.urandom(32), bytes.fromhex("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347"), bytes(20),
        empty, empty, empty, bytes(256), 1, number, 30_000_000, 0, 1_700_000_000 + number, bytes(97), empty, bytes(8),
    ]  # fmt: skip


async def headers_that_never_link(target: Target) -> None:
    """Attack with a peer that claims the best chain, but whose headers do not connect."""
    async with joined(target.enode, difficulty=FAR_AHEAD, best=os.urandom(32)) as peer:
        for _ in range(target.count(1000, 200)):
            message = await peer.receive()
            if message is None:
                return
            code, payload = message
            if code != GET_HEADERS:
                continue
            request, query = rlp.decode_list(payload)
            start, limit = query[0], rlp.decode_int(query[1])
            first = rlp.decode_int(start) if len(start) < 32 else 10_000_000
            headers: list[rlp.Encodable] = [false_header(first + place) for place in range(min(limit, 200))]
            await peer.send(HEADERS, rlp.encode([request, headers]))
        expect(False, "still asked after 200 answers")


async def no_answers(target: Target) -> None:
    """Attack with a peer that claims the best chain and never answers."""
    async with joined(target.enode, difficulty=FAR_AHEAD, best=os.urandom(32)) as peer:
        expect(await peer_is_cut_off(peer), "still open")


async def wrong_answers(target: Target) -> None:
    """Attack with responses that answer no request."""
    codes = (HEADERS, BODIES, POOLED, RECEIPTS, ETH + 0x0B, ETH + 0x40)

    async def one(number: int) -> None:
        code = codes[number % len(codes)]
        async with joined(target.enode) as peer:
            await peer.send(code, rlp.encode([12345, []]))
            expect(await peer_is_cut_off(peer), f"still open after a message {code:#x}")

    await in_turns(target.count(300, 12), one)


async def unread_answers(target: Target) -> None:
    """Attack with requests for all kinds of data. The attacker does not read the answers."""

    async def one(_: int) -> None:
        async with joined(target.enode) as peer:
            peer.writer.transport.pause_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(ConnectionError, TimeoutError):
                async with asyncio.timeout(40):
                    for number in range(target.count(200_000, 5000)):
                        await peer.send(GET_HEADERS, rlp.encode([number, [0, 1024, 0, 0]]))

    attackers = asyncio.gather(*(one(number) for number in range(4)))
    await asyncio.sleep(1)
    await probe(target, "while nobody reads answers")
    await attackers


async def connection_flood(target: Target) -> None:
    """Attack with 20,000 connections from some addresses at full speed, each closed after a moment."""

    async def one(number: int) -> None:
        ours = (f"127.0.0.{2 + number % 9}", 0)
        async with asyncio.timeout(PATIENCE_S):
            _, writer = await asyncio.open_connection(target.enode.ip, target.enode.tcp_port, local_addr=ours)
        try:
            writer.write(b"\x01\xb3" + os.urandom(number % 400))
            await asyncio.sleep(BREATH_S)
        finally:
            delivered.note(writer)
            writer.transport.abort()

    flood = asyncio.create_task(in_turns(target.count(20_000, 400), one, width=200))
    await asyncio.sleep(0.2)
    while not flood.done():
        await probe(target, "while the door is flooded")
    await flood


async def false_heights(target: Target) -> None:
    """Attack as a peer that announces blocks far ahead, without end. The readiness of the node must not change."""
    async with joined(target.enode) as peer:
        reading = asyncio.create_task(peer_is_cut_off(peer))
        try:
            began = refused_at = time.monotonic()
            with contextlib.suppress(ConnectionError):
                while time.monotonic() < began + 2 * READY_LIMIT_S:
                    await peer.send(NEW_HASHES, rlp.encode([[os.urandom(32), 10**12]]))
                    await asyncio.sleep(0.5)
                    if not await is_ready(target):
                        refused_at = time.monotonic()
                    elif time.monotonic() > refused_at + 10:
                        break
            took = refused_at - began
            expect(took < READY_LIMIT_S, f"a false height made the node not ready for {took:.0f} s")
        finally:
            reading.cancel()


async def noise_of_validators(target: Target) -> None:
    """Attack with consensus messages: noise, and correctly signed messages of a non-validator."""
    key = new_key()
    scribe, last = KeyMessageFactory(Ibft2(), key), await head(target)
    async with shaken(target.enode, key) as peer:
        await peer.send(HELLO, hello(key, capabilities=[[b"IBF", 1], [b"eth", 68]]))
        await peer.expect(HELLO)
        peer.session.is_compressed = True
        peer.session.max_message = 2**24 - 1
        peer.waiting.extend(whole(peer.session.feed(b"")))
        status = await peer.expect(ETH + IBF_CODES)
        await peer.send(ETH + IBF_CODES, status)
        reading = asyncio.create_task(peer_is_cut_off(peer))
        try:
            with contextlib.suppress(ConnectionError):
                for number in range(target.count(20_000, 400)):
                    height = last + 1 + (number % 7) * 10 ** (number % 11)
                    signed = (
                        scribe.prepare(height, number % 5, os.urandom(32)),
                        scribe.commit(height, number % 5, os.urandom(32), os.urandom(32)),
                        scribe.round_change(height, 1 + number % 1000, None),
                    )[number % 3]
                    await peer.send(ETH + signed.raw.code, signed.raw.data)
                    await peer.send(ETH + number % IBF_CODES, os.urandom(number % 2000))
                    if number % 1000 == 0:
                        await peer.send(ETH, bytes(2**20 * 9))
            await probe(target, "during noise of validators")
        finally:
            reading.cancel()


async def packet_flood(target: Target) -> None:
    """Attack with datagrams: noise, and pings of nodes that do not exist."""
    if not target.enode.udp_port:
        return
    place = (target.enode.ip, target.enode.udp_port)
    keys = [os.urandom(32) for _ in range(50)]
    endpoint: list[rlp.Encodable] = [socket.inet_aton("127.0.0.1"), 30303, 30303]
    ping = rlp.encode([4, endpoint, endpoint, int(time.time()) + 60])
    packets = [wire.seal_packet(key, 1, ping) for key in keys]
    packets += [wire.seal_packet(key, 3, rlp.encode([os.urandom(64), int(time.time()) + 60])) for key in keys]
    packets += [os.urandom(size) for size in (10, 98, 200, 1280, 1400)]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.bind(("127.0.0.1", 0))
        for number in range(target.count(100_000, 3000)):
            sender.sendto(packets[number % len(packets)], place)
            if number % 50 == 0:
                await asyncio.sleep(0)
    await probe(target, "during a flood of packets")


ATTACKS: tuple[Callable[[Target], Awaitable[None]], ...] = (
    wrong_handshakes,
    wrong_hellos,
    wrong_statuses,
    half_open,
    large_frames,
    dripping_frames,
    endless_zeros,
    announced_transactions,
    announced_blocks,
    worthless_transactions,
    headers_that_never_link,
    no_answers,
    wrong_answers,
    unread_answers,
    connection_flood,
    false_heights,
    noise_of_validators,
    packet_flood,
)


# --- running -------------------------------------------------------------------------------------


async def run(target: Target, names: list[str]) -> list[str]:
    """Run every attack in turn and return the failures."""
    raise_file_limit()
    await served(target)
    before = target.memory_mb()
    for attack in ATTACKS:
        name = attack.__name__
        if names and name not in names:
            continue
        found, target.failures, target.served = target.failures, [], []
        began, first = time.perf_counter(), await head(target)
        try:
            await attack(target)
        except* (Unanswered, OSError, EOFError, TimeoutError) as group:
            target.failures += [f"{type(error).__name__}: {error}" for error in flat(group)]
        await probe(target, "afterwards")
        memory_growth_mb = target.memory_mb() - before
        if memory_growth_mb > MEMORY_LIMIT_MB:
            target.failures.append(f"memory grew by {memory_growth_mb:.0f} MB")
        gap = await longest_gap(target, first)
        if gap > target.period_s + LATE_LIMIT_S:
            target.failures.append(f"a block was {gap - target.period_s} s late")
        verdict = "; ".join(target.failures[:5]) or "ok"
        slowest = max(target.served, default=float("nan"))
        took = time.perf_counter() - began
        figures = (
            f"{took:6.1f} s   memory {memory_growth_mb:+6.0f} MB   served in {slowest:5.2f} s   longest gap {gap} s"
        )
        print(f"{name:24} {figures}   {verdict}", flush=True)
        target.failures = found + [f"{name}: {failure}" for failure in target.failures]
    return target.failures


def flat(group: BaseExceptionGroup[Exception]) -> list[BaseException]:
    """Return the errors inside nested groups as a flat list."""
    members: list[BaseException] = []
    for error in group.exceptions:
        members += flat(error) if isinstance(error, BaseExceptionGroup) else [error]
    return members


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--enode", type=Enode.parse, required=True)
    parser.add_argument("--http", type=Place.parse, default=Place("127.0.0.1", 8545))
    parser.add_argument("--pid", type=int)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--period", type=int, default=1)
    parser.add_argument("--only", action="append", default=[])
    chosen = parser.parse_args()
    target = Target(chosen.enode, chosen.http, chosen.pid, chosen.scale, chosen.period)
    return 1 if asyncio.run(run(target, chosen.only)) else 0


if __name__ == "__main__":
    sys.exit(main())
