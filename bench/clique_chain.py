"""Make a chain for comparisons: blocks of one Clique signer with transfers, calls that write logs, and deployments.

    python bench/clique_chain.py FOLDER [--blocks 120] [--transactions 40]

Writes genesis.json and blocks.rlp, which both Ophion and geth up to 1.13 can import. The chain is made in process with
a manual clock, so a hundred blocks take some seconds. The same arguments give the same transactions.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from ophion.chain.export_file import export_blocks
from ophion.chainspec.genesis import parse_genesis
from ophion.native.crypto import PrivateKey, keccak256
from ophion.node.config import NodeConfig
from ophion.primitives import rlp
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import legacy_transaction
from ophion.testing.virtual_loop import run_virtually

CHAIN_ID: Final = 1337
SIGNER: Final = PrivateKey(bytes([7]) * 32)
SENDERS: Final = tuple(PrivateKey(bytes([n]) * 32) for n in range(11, 21))
FORKS: Final = (
    "homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul", "berlin",
    "london",
)  # fmt: skip
NOTING: Final = bytes.fromhex("60003533556000356000526020353360 2a60206000a300".replace(" ", ""))
"""A contract that stores the first word of its call data under the caller's address, and logs the word with three
topics.
"""
CREATION: Final = b"\x61" + len(NOTING).to_bytes(2, "big") + bytes.fromhex("80600c6000396000f3") + NOTING
GAS_PRICE: Final = 10**11


def genesis_text() -> str:
    """Return the genesis file, with the keys that both clients read."""
    values = {
        "config": {
            "chainId": CHAIN_ID,
            **{f"{fork}Block": 0 for fork in FORKS},
            "clique": {"period": 1, "epoch": 30_000, "blockperiodseconds": 1, "epochlength": 30_000},
        },
        "timestamp": hex(int(ManualClock().now())),
        "difficulty": "0x1",
        "gasLimit": hex(30_000_000),
        "extraData": "0x" + (bytes(32) + SIGNER.address + bytes(65)).hex(),
        "alloc": {key.address.hex(): {"balance": hex(10**24)} for key in SENDERS},
    }
    return json.dumps(values, indent=2)


def transactions() -> Iterator[bytes]:
    """Yield transactions without end. Of every 20 transactions, 11 are transfers, 8 are calls and 1 is a deployment.
    Senders alternate.
    """
    # the first deployment replaces this sender address by the address of the new contract
    contract = SENDERS[0].address
    for at in range(1 << 62):
        sender = SENDERS[at % len(SENDERS)]
        to: bytes | None
        match at % 20:
            case 0:
                to, data, gas, value = None, CREATION, 200_000, 0
            case kind if kind < 9:
                data = at.to_bytes(32, "big") + (at * 7).to_bytes(32, "big")
                to, gas, value = contract, 100_000, 0
            case _:
                to, data, gas, value = (at % 5000 + 1).to_bytes(20, "big"), b"", 21_000, at + 1
        nonce = at // len(SENDERS)
        if at == 0:
            contract = keccak256(rlp.encode([sender.address, rlp.scalar(nonce)]))[12:]
        yield legacy_transaction(
            sender, nonce, to=to, value=value, gas=gas, gas_price=GAS_PRICE, data=data, chain_id=CHAIN_ID
        )


def make_chain(folder: Path, blocks: int, count: int) -> None:
    """Write a chain of `blocks` blocks with `count` transactions each."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "genesis.json").write_text(genesis_text())
    clock, source = ManualClock(), transactions()

    async def story(node: TestCore) -> None:
        node.mining.start()
        sealing = asyncio.create_task(node.mining.run(lambda: None))
        await asyncio.sleep(0.5)  # half a period of delay makes transactions arrive half-way between two blocks
        for number in range(1, blocks + 1):
            await node.send(*(next(source) for _ in range(count)))
            await asyncio.sleep(1)
            made = (node.queries.head_number, node.queries.latest.body.transaction_count)
            if made != (number, count):
                raise SystemExit(f"made block {made[0]} with {made[1]} transactions instead of {number} with {count}")
        sealing.cancel()

    with tempfile.TemporaryDirectory() as data:
        genesis = parse_genesis(genesis_text())
        with open_core(Path(data), NodeConfig(), genesis, key=SIGNER, clock=clock) as node:
            run_virtually(story(node), clock)
            export_blocks(node.chain.store, folder / "blocks.rlp")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--blocks", type=int, default=120)
    parser.add_argument("--transactions", type=int, default=40, help="of each block")
    options = parser.parse_args()
    make_chain(options.folder, options.blocks, options.transactions)


if __name__ == "__main__":
    main()
