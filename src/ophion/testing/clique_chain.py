"""Makes chains of empty Clique blocks with one signer: headers only, nothing is executed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import BlockPreferences
from ophion.native.crypto import PrivateKey
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.testing.bft_chain import KnownHeaders, first_header
from ophion.testing.signing import DEV_KEYS

CHAIN_ID: Final = 1337
START: Final = 1_600_000_000
SIGNER: Final = PrivateKey(bytes([7]) * 32)
"""A public test key."""
FORKS: Final = (
    "homestead", "eip150", "eip155", "eip158", "byzantium", "constantinople", "petersburg", "istanbul", "berlin",
    "london",
)  # fmt: skip


def clique_genesis_text(forks: Sequence[str] = FORKS) -> str:
    """Return a genesis file that both Ophion and geth accept."""
    values = {
        "config": {
            "chainId": CHAIN_ID,
            **{f"{fork}Block": 0 for fork in forks},
            "clique": {"period": 1, "epoch": 30_000, "blockperiodseconds": 1, "epochlength": 30_000},
        },
        "timestamp": hex(START),
        "difficulty": "0x1",
        "gasLimit": hex(30_000_000),
        "extraData": "0x" + (bytes(32) + SIGNER.address + bytes(65)).hex(),
        "alloc": {key.address.hex(): {"balance": hex(10**24)} for key in DEV_KEYS},
    }
    return json.dumps(values, indent=2)


def signed_blocks(blocks: int) -> Iterator[tuple[HashedHeader, bytes]]:
    """Yield (header, RLP) of each block, one second apart."""
    genesis = parse_genesis(clique_genesis_text())
    engine = CliqueEngine(genesis.spec)
    headers = KnownHeaders(first_header(genesis, engine))
    body = Body.of([], [], None)
    state_root = headers.in_order[0].header.state_root
    for number in range(1, blocks + 1):
        draft = engine.prepare(headers.in_order[-1], BlockPreferences(START + number, SIGNER.address), headers)
        draft = replace(draft, state_root=state_root)
        header = engine.hashed(engine.attach(draft, [SIGNER.sign(engine.signing_hash(draft))]))
        headers.add(header)
        yield header, body.encode_block(header.header.encode())
