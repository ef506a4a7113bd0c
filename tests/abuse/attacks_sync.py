"""Unknown peers that answer every request of a new node correctly, but as late and with as little as they may.

A follower downloads a chain from one honest node, with and without hostile peers. The hostile peers claim the heaviest
chain. They fetch each answer from the honest node, and send it just before the time limit of the request.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import tempfile
import time
from pathlib import Path

from ophion.peers.eth.messages import Code, encode_new_hashes
from ophion.primitives import rlp
from ophion.primitives.enode import Enode
from ophion.testing.busy_chain import make_chain
from ophion.testing.node_process import COMMAND, NodeProcess, environment
from tests.abuse.attacks_strangers import CAUGHT
from tests.abuse.raw_peer import ETH, RawPeer, joined
from tests.abuse.target import Target, Unanswered

BLOCKS = 5000
MIN_BLOCKS = 300
ATTACKERS = 12
LATE_S = 4.5
"""Seconds before a hostile peer answers. Requests time out after five seconds."""
SETTLE_S = 6.0
"""Seconds in which the hostile peers become usable, before the honest node connects."""
MAX_SLOWDOWN = 2.0
"""Maximum factor of a full run. A short download is over before all slow peers are found."""
LIMIT_S = 160.0
FAR_AHEAD = 2**60
MAX_ITEMS = 1024
ANSWERS = {
    ETH + Code.GET_BLOCK_HEADERS: ETH + Code.BLOCK_HEADERS,
    ETH + Code.GET_BLOCK_BODIES: ETH + Code.BLOCK_BODIES,
}
PEERS = (
    "--p2p-interface=127.0.0.1",
    "--p2p-port=0",
    "--discovery-enabled=false",
    "--durable-commits=false",
    "--rpc-http-api=ETH,NET,ADMIN",
)


async def slow_sync_peers(target: Target) -> None:
    """Attack a new node with 12 peers that answer its requests correctly, but late, half of them with one item each."""
    blocks = max(MIN_BLOCKS, int(BLOCKS * target.scale))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        await asyncio.to_thread(_import, folder, blocks)
        quiet_s = await _synchronised(folder, blocks, 0)
        attacked_s = await _synchronised(folder, blocks, ATTACKERS)
    print(
        f"slow sync peers: {blocks} blocks in {quiet_s:.1f} s, with {ATTACKERS} slow peers in {attacked_s:.1f} s",
        flush=True,
    )
    if target.scale >= 1 and attacked_s > MAX_SLOWDOWN * quiet_s:
        raise Unanswered(f"synchronisation took {attacked_s:.1f} s instead of {quiet_s:.1f} s")


def _import(folder: Path, blocks: int) -> None:
    """Make a chain and give it to the honest node."""
    chain = make_chain(folder / "chain", "qbft", blocks, 4 * blocks, 4 * blocks)
    command = [*COMMAND, "blocks", "import", f"--from={chain / 'blocks.rlp'}", *_genesis(folder)]
    subprocess.run([*command, f"--data-path={folder / 'honest'}"], env=environment(), check=True, capture_output=True)


def _genesis(folder: Path) -> list[str]:
    return [f"--genesis-file={folder / 'chain' / 'genesis.json'}"]


async def _synchronised(folder: Path, blocks: int, attackers: int) -> float:
    """Start the honest node and a new follower. Returns the seconds until the follower has the chain."""
    options = (*_genesis(folder), *PEERS)
    with (
        NodeProcess(folder / "honest", *options) as honest,
        NodeProcess(folder / f"follower{attackers}", *options) as follower,
    ):
        source, victim = (Enode.parse(node.rpc("net_enode")) for node in (honest, follower))
        tasks = [
            asyncio.create_task(_relay_late(source, victim, 1 + number % 2 * MAX_ITEMS)) for number in range(attackers)
        ]
        try:
            await asyncio.sleep(SETTLE_S if attackers else 0)
            # the honest node dials the follower, so it is an unknown peer there, too
            honest.rpc("admin_addPeer", follower.rpc("net_enode"))
            began = time.monotonic()
            while await asyncio.to_thread(lambda: follower.height) < blocks:
                if time.monotonic() > began + LIMIT_S:
                    raise Unanswered(f"the follower has {follower.height} of {blocks} blocks after {LIMIT_S:.0f} s")
                await asyncio.sleep(0.05)
            return time.monotonic() - began
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _relay_late(source: Enode, victim: Enode, max_items: int) -> None:
    """Answer the requests of the victim late, with what the honest node answers. Reconnects with a new key when the
    victim disconnects.
    """
    while True:
        with contextlib.suppress(*CAUGHT):
            async with joined(source) as honest, asyncio.TaskGroup() as tasks:
                waiting: dict[int, asyncio.Future[bytes]] = {}
                tasks.create_task(_read_answers(honest, waiting))
                assert honest.best is not None
                async with joined(victim, difficulty=FAR_AHEAD, best=honest.best) as peer:
                    await _serve(peer, honest, waiting, max_items, tasks)
                raise ConnectionError("disconnected")
        await asyncio.sleep(0.5)


async def _serve(
    peer: RawPeer,
    honest: RawPeer,
    waiting: dict[int, asyncio.Future[bytes]],
    max_items: int,
    tasks: asyncio.TaskGroup,
) -> None:
    await peer.send(ETH + Code.NEW_BLOCK_HASHES, encode_new_hashes([(bytes(32), 10**6)]))
    while (message := await peer.receive()) is not None:
        code, payload = message
        if code in ANSWERS:
            number, _ = rlp.split_list(payload, 2)
            waiting[rlp.decode_int(rlp.decode(number))] = answer = asyncio.get_running_loop().create_future()  # type: ignore[arg-type]
            await honest.send(code, payload)
            tasks.create_task(_answer(peer, ANSWERS[code], answer, max_items))


async def _read_answers(honest: RawPeer, waiting: dict[int, asyncio.Future[bytes]]) -> None:
    while (message := await honest.receive()) is not None:
        if message[0] in ANSWERS.values():
            number, _ = rlp.split_list(message[1], 2)
            found = waiting.pop(rlp.decode_int(rlp.decode(number)), None)  # type: ignore[arg-type]
            if found is not None:
                found.set_result(message[1])


async def _answer(peer: RawPeer, code: int, answer: asyncio.Future[bytes], max_items: int) -> None:
    end = asyncio.get_running_loop().time() + LATE_S
    number, body = rlp.split_list(await answer, 2)
    items = rlp.split_list(body, 2048)
    await asyncio.sleep(end - asyncio.get_running_loop().time())
    with contextlib.suppress(*CAUGHT):
        await peer.send(code, rlp.list_of([number, rlp.list_of(items[:max_items])]))


ATTACKS = (slow_sync_peers,)
