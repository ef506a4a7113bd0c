"""Attacks of unknown peers on a network of validators: whether blocks continue, and whether the network recovers.

Each attack prints the longest gap between two blocks during the attack, and the seconds from its end to the next block.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import cache
from itertools import pairwise

from ophion.native import wire
from ophion.peers.eth.messages import Code, encode_new_block, encode_new_hashes
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from tests.abuse.attacks_messages import ETH_CODES, said, sharing
from tests.abuse.message_shapes import eth_messages, snap_requests
from tests.abuse.raw_peer import ETH, RawPeer, joined
from tests.abuse.target import Target, Unanswered, ask

ATTACK_S = 60.0
ONE_S = 4.0
"""Seconds for which one unknown peer runs one attack."""
LOOK_S = 0.1
MIN_TIMED_SCALE = 0.1
"""Minimum scale at which times are checked. The test suite runs at a smaller scale."""
RECOVERY_LIMIT_S = 5.0
HASHES_PER_S = 200
MAX_SHAPE_BYTES = 512 * 1024
NOISE = os.urandom(4 * 1024 * 1024)
CAUGHT = (OSError, EOFError, TimeoutError, wire.WireError, asyncio.IncompleteReadError)


async def strangers(target: Target) -> None:
    """Attack with 20 unknown peers that run all attacks in turn for 60 s."""
    await endured(target, 20, _everything)


async def announcements(target: Target) -> None:
    """Attack with two unknown peers per validator that announce 200 block hashes a second and deliver no block."""
    await endured(target, 2 * len(target.enodes), _announcing)


async def endured(target: Target, count: int, one: Callable[[Enode, int], Awaitable[None]]) -> None:
    """Attack all validators at once. Raises an error if blocks stop, or do not continue after the attack."""
    seconds = max(10.0, ATTACK_S * target.scale)
    before = await _height(target)
    async with attacked(target.enodes, count, one):
        await asyncio.sleep(seconds)
    during = await _height(target) - before
    began = time.monotonic()
    last = await _height(target)
    async with asyncio.timeout(60):
        while await _height(target) < last + 2:  # noqa: ASYNC110  # the node gives no event
            await asyncio.sleep(LOOK_S)
    recovery_s = time.monotonic() - began
    gap_s = await _longest_gap(target, before)
    print(
        f"{target.network}: {count} unknown peers for {seconds:.0f} s: {during} blocks, longest gap {gap_s} s,"
        f" two more blocks {recovery_s:.1f} s after they left",
        flush=True,
    )
    if target.scale < MIN_TIMED_SCALE:
        return
    if gap_s > target.max_gap_s:
        raise Unanswered(f"no block for {gap_s} s")
    if recovery_s > RECOVERY_LIMIT_S:
        raise Unanswered(f"two blocks took {recovery_s:.1f} s after the attack")


@asynccontextmanager
async def attacked(
    enodes: Sequence[Enode], count: int, one: Callable[[Enode, int], Awaitable[None]] | None = None
) -> AsyncIterator[None]:
    """Let unknown peers attack these nodes during the context, by default with all attacks in turn."""
    pending = {
        asyncio.create_task(_again_and_again(enodes[number % len(enodes)], number, one or _everything))
        for number in range(count)
    }
    try:
        yield
    finally:
        while pending:
            # cancel repeatedly, because a timeout at the same moment may absorb a cancellation
            for attacker in pending:
                attacker.cancel()
            _, pending = await asyncio.wait(pending, timeout=1)


async def _height(target: Target) -> int:
    answer = await ask(target, "eth_blockNumber")
    return int(answer["result"], 16)


async def _longest_gap(target: Target, since: int) -> int:
    """Return the longest gap between blocks, computed from their timestamps. This process is too busy to measure the
    gap.
    """
    times = []
    for number in range(since, await _height(target) + 1):
        block = await ask(target, "eth_getBlockByNumber", hex(number), False)
        times.append(int(block["result"]["timestamp"], 16))
    return max((later - earlier for earlier, later in pairwise(times)), default=0)


async def _again_and_again(enode: Enode, number: int, one: Callable[[Enode, int], Awaitable[None]]) -> None:
    while True:
        with contextlib.suppress(*CAUGHT):
            async with asyncio.timeout(2 * ONE_S):
                await one(enode, number)
        await asyncio.sleep(0.1)
        number += 1


async def _everything(enode: Enode, number: int) -> None:
    await EVERYTHING[number % len(EVERYTHING)](enode, number)


async def _announcing(enode: Enode, number: int) -> None:
    async with joined(enode) as peer:
        height = await _height_of(peer)
        async with asyncio.TaskGroup() as tasks:
            reading = tasks.create_task(_read(peer))
            end = time.monotonic() + ONE_S
            while time.monotonic() < end:
                count = HASHES_PER_S // 10
                hashes = [(os.urandom(32), height + 1 + random.randrange(8)) for _ in range(count)]
                await peer.send(ETH + Code.NEW_BLOCK_HASHES, encode_new_hashes(hashes))
                await asyncio.sleep(0.1)
            reading.cancel()


@cache
def _shapes_once() -> list[tuple[str, int, bytes]]:
    """Return a payload of every kind and shape. Each payload has at most half a megabyte, because 20 attackers share
    one process.
    """
    return list(eth_messages(MAX_SHAPE_BYTES))


async def _shapes(enode: Enode, number: int) -> None:
    for _, code, payload in random.sample(_shapes_once(), 4):
        await said(enode, code, payload)


async def _half_messages(enode: Enode, number: int) -> None:
    async with joined(enode) as peer:
        frame = peer.session.seal([(ETH + Code.BLOCK_BODIES, NOISE)])
        peer.writer.write(frame[:-1])
        await peer.writer.drain()
        await asyncio.sleep(ONE_S)


async def _transactions(enode: Enode, number: int) -> None:
    async with joined(enode) as peer:
        end = time.monotonic() + ONE_S
        while time.monotonic() < end:
            raws = [
                rlp.encode([1, 1, 21000, bytes(20), 1, b"", 28, os.urandom(32), os.urandom(32)]) for _ in range(200)
            ]
            await peer.send(ETH + Code.TRANSACTIONS, rlp.list_of(raws))
            hashes = rlp.list_of([rlp.encode_bytes(os.urandom(32)) for _ in range(1000)])
            sizes = rlp.list_of([rlp.encode_int(100)] * 1000)
            payload = rlp.list_of([rlp.encode_bytes(bytes(1000)), sizes, hashes])
            await peer.send(ETH + Code.NEW_POOLED_TRANSACTION_HASHES, payload)


async def _requests(enode: Enode, number: int) -> None:
    async with joined(enode) as peer:
        for request_id in range(2000):
            await peer.send(ETH + Code.GET_BLOCK_HEADERS, rlp.encode([request_id, [0, 1024, 0, 0]]))


async def _made_up_blocks(enode: Enode, number: int) -> None:
    async with joined(enode) as peer:
        header = await _head_of(peer)
        fields = rlp.decode_list(header)
        body = rlp.list_of([b"\x01" * 1_000_000])
        for step in range(40):
            fields[8] = rlp.scalar(rlp.decode_int(fields[8]) + 1)
            fields[13] = os.urandom(32)
            block = rlp.list_of([rlp.encode(fields), body, rlp.EMPTY_LIST])
            await peer.send(ETH + Code.NEW_BLOCK, encode_new_block(block, 10**9 + step))


async def _votes(enode: Enode, number: int) -> None:
    name = (b"IBF", 1) if number % 2 else (b"istanbul", 100)
    async with sharing(enode, (name, (b"eth", 68))) as peer:
        for step in range(200):
            code = step % 4 if number % 2 else 0x12 + step % 4
            await peer.send(ETH + code, rlp.list_of([b"\x01" * 900]))
            await asyncio.sleep(0.01)


async def _state_requests(enode: Enode, number: int) -> None:
    """Ask for parts of states with the largest requests of snap/1, and without reading the responses."""
    async with sharing(enode, ((b"eth", 68), (b"snap", 1))) as peer:
        status = await peer.expect(ETH)
        await peer.send(ETH, status)
        head = rlp.decode_list(status)[3]
        await peer.send(ETH + Code.GET_BLOCK_HEADERS, rlp.encode([8, [head, 1, 0, 0]]))
        headers = rlp.decode_list(await peer.expect(ETH + Code.BLOCK_HEADERS))[1]
        root = headers[0][3]  # type: ignore[index]
        assert isinstance(root, bytes)
        requests = list(snap_requests(root))
        for step in range(200):
            code, payload = requests[step % len(requests)]
            await peer.send(ETH + ETH_CODES[68] + code, payload)
            await asyncio.sleep(0.02)


async def _reports(enode: Enode, number: int) -> None:
    """Report changing connections, as fast as the node reads, and reconnect."""
    for _ in range(4):
        async with sharing(enode, ((b"eth", 68), (b"vid", 2))) as peer:
            await peer.send(ETH, await peer.expect(ETH))
            for step in range(300):
                links = [os.urandom(20) for _ in range(1000 if step % 2 else 1)]
                await peer.send(ETH + ETH_CODES[68] + 1, rlp.encode(links))


async def _knocking(enode: Enode, number: int) -> None:
    for _ in range(10):
        with contextlib.suppress(*CAUGHT):
            async with joined(enode):
                pass


EVERYTHING = (
    _announcing,
    _shapes,
    _half_messages,
    _transactions,
    _requests,
    _made_up_blocks,
    _votes,
    _state_requests,
    _reports,
    _knocking,
)


async def _head_of(peer: RawPeer) -> bytes:
    assert peer.best is not None
    await peer.send(ETH + Code.GET_BLOCK_HEADERS, rlp.encode([8, [peer.best, 1, 0, 0]]))
    while True:
        answer = rlp.decode_list(await peer.expect(ETH + Code.BLOCK_HEADERS))
        if answer[0] == b"\x08":
            headers = answer[1]
            if not headers:
                raise ConnectionError("no header")
            return rlp.encode(headers[0])


async def _height_of(peer: RawPeer) -> int:
    return rlp.decode_int(rlp.decode_list(await _head_of(peer))[8])


async def _read(peer: RawPeer) -> None:
    while await peer.receive() is not None:
        pass


ATTACKS = (strangers, announcements)
