"""Unknown nodes that break no rule: they reconnect all the time with new keys and from many addresses, or repeat data
that the node has.

Each connection costs the node key agreements, signatures and a Status. No address and no node id appears often enough
to be throttled by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections import Counter
from collections.abc import Coroutine, Sequence
from typing import Any

from ophion.peers.eth.messages import Code, encode_new_block, encode_new_hashes
from ophion.primitives import rlp
from ophion.testing.signing import DEV_KEYS, legacy_transaction
from tests.abuse import peer_target
from tests.abuse.attacks_strangers import CAUGHT, _head_of
from tests.abuse.peer_target import head, longest_gap, served
from tests.abuse.raw_peer import ETH, dialled, greeted, joined
from tests.abuse.target import Unanswered

SECONDS = 15.0
ADDRESSES = 240
JOINING, HALF_OPEN = 6, 60
"""Number of attackers that join and leave, and that begin a handshake."""
REPEATING = 6
TRANSACTIONS_PER_MESSAGE = 200
MAX_GAP_S = 2


async def reconnects(target: peer_target.Target) -> None:
    """Attack from 240 addresses with new node ids that connect and leave again, at full speed, and with handshakes that
    do not continue.
    """
    counts = Counter[str]()
    attackers = [_join_and_leave(target, number, counts) for number in range(JOINING)]
    attackers += [_begin(target, number, counts) for number in range(HALF_OPEN)]
    await _measured(target, "reconnects", attackers, counts)


async def known_data(target: peer_target.Target) -> None:
    """Attack with six peers that send valid blocks, hashes and transactions that the node has, as fast as it reads."""
    counts = Counter[str]()
    await _measured(target, "known data", [_repeat(target, counts) for _ in range(REPEATING)], counts)


async def _measured(
    target: peer_target.Target, what: str, attackers: Sequence[Coroutine[Any, Any, None]], counts: Counter[str]
) -> None:
    """Attack for some seconds, while honest peers connect. Raises an error if none is served, or if blocks stop."""
    seconds = max(3.0, SECONDS * target.scale)
    first, waits = await head(target), list[float]()
    tasks = [asyncio.create_task(attacker) for attacker in attackers]
    try:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            await asyncio.sleep(0.5)
            with contextlib.suppress(*CAUGHT):
                waits.append(await served(target))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    gap = await longest_gap(target, first)
    rates = ", ".join(f"{count / seconds:.0f} {name} a second" for name, count in counts.items())
    print(
        f"{what}: {rates}; {len(waits)} honest peers served, the slowest in {max(waits, default=0):.2f} s,"
        f" longest gap of blocks {gap} s",
        flush=True,
    )
    if target.scale < 1:
        return
    if not waits:
        raise Unanswered("no honest peer was served")
    if gap > MAX_GAP_S:
        raise Unanswered(f"no block for {gap} s")


def _address(number: int) -> str:
    return f"127.0.{2 + number % 3}.{1 + number % (ADDRESSES // 3)}"


async def _join_and_leave(target: peer_target.Target, number: int, counts: Counter[str]) -> None:
    while True:
        number += JOINING
        with contextlib.suppress(*CAUGHT):
            async with asyncio.timeout(10), greeted(target.enode, ip=_address(number)) as peer:
                await peer.join()
                counts["connections"] += 1


async def _begin(target: peer_target.Target, number: int, counts: Counter[str]) -> None:
    while True:
        number += HALF_OPEN
        with contextlib.suppress(*CAUGHT):
            async with asyncio.timeout(10), dialled(target.enode, _address(number)) as (_, writer):
                writer.write(b"\x01\xb3" + os.urandom(number % 400))
                counts["half connections"] += 1
                await asyncio.sleep(0.05)


async def _repeat(target: peer_target.Target, counts: Counter[str]) -> None:
    transactions = rlp.list_of([legacy_transaction(DEV_KEYS[0], nonce) for nonce in range(TRANSACTIONS_PER_MESSAGE)])
    while True:
        with contextlib.suppress(*CAUGHT):
            async with asyncio.timeout(10), joined(target.enode) as peer:
                header = await _head_of(peer)
                hash = peer.best
                assert hash is not None
                number = rlp.decode_int(rlp.decode_list(header)[8])
                block = encode_new_block(rlp.list_of([header, rlp.EMPTY_LIST, rlp.EMPTY_LIST]), number + 1)
                hashes = encode_new_hashes([(hash, number)] * 200)
                while True:
                    await peer.send(ETH + Code.NEW_BLOCK, block)
                    await peer.send(ETH + Code.NEW_BLOCK_HASHES, hashes)
                    await peer.send(ETH + Code.TRANSACTIONS, transactions)
                    counts["messages"] += 3


ATTACKS = (reconnects, known_data)
