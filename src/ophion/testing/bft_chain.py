"""Makes chains of empty IBFT 2.0 or QBFT blocks. The engine prepares and seals the headers.

Nothing is executed, because an empty block does not change the state.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from ophion.chain.chain import Chain
from ophion.chainspec.consensus_parameters import BFT_MIX_HASH
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.engine import BlockPreferences, Engine
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Hash32

CHAIN_ID: Final = 2018
START: Final = 1_600_000_000
KEYS: Final = tuple(PrivateKey(bytes([number]) * 32) for number in range(31, 38))
"""Public test keys."""
FORKS: Final = ("berlin", "london")


class KnownHeaders:
    """The headers made so far, with the read methods that the engine calls."""

    def __init__(self, first: HashedHeader) -> None:
        self.by_hash = {first.hash: first}
        self.in_order = [first]

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        return self.by_hash.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        return self.in_order[number] if number < len(self.in_order) else None

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        found = self.by_hash.get(block_hash)
        return None if found is None else found.number + 1

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        return None

    def add(self, header: HashedHeader) -> None:
        self.by_hash[header.hash] = header
        self.in_order.append(header)


def bft_genesis_text(protocol: str, count: int) -> str:
    """Return a genesis file for `count` validators."""
    validators = KEYS[:count]
    variant = Ibft2() if protocol == "ibft2" else Qbft()
    addresses = tuple(sorted(key.address for key in validators))
    extra = variant.encode_extra(BftExtraData(bytes(32), addresses), ExtraForm.FULL)
    values = {
        "config": {
            "chainId": CHAIN_ID,
            **{f"{fork}Block": 0 for fork in FORKS},
            protocol: {"blockperiodseconds": 1, "epochlength": 30_000, "requesttimeoutseconds": 2},
        },
        "nonce": "0x0",
        "timestamp": hex(START),
        "difficulty": "0x1",
        "gasLimit": hex(30_000_000),
        "mixHash": "0x" + BFT_MIX_HASH.hex(),
        "extraData": "0x" + extra.hex(),
        "alloc": {key.address.hex(): {"balance": hex(10**24)} for key in validators},
    }
    return json.dumps(values, indent=2)


def sealed_blocks(
    protocol: str, count: int, blocks: int, sealers: int | None = None, start: int = START
) -> Iterator[tuple[HashedHeader, bytes]]:
    """Yield (header, RLP) of each block. The first block has timestamp `start`; blocks are one second apart.

    With fewer `sealers` than a quorum, the blocks are invalid.
    """
    keys = sorted(KEYS[:count], key=lambda key: key.address)
    genesis = parse_genesis(bft_genesis_text(protocol, count))
    engine = BftEngine(genesis.spec)
    headers = KnownHeaders(first_header(genesis, engine))
    body = Body.of([], [], None)
    state_root = headers.in_order[0].header.state_root
    for number in range(1, blocks + 1):
        preferences = BlockPreferences(start + number, keys[number % count].address)
        draft = replace(engine.prepare(headers.in_order[-1], preferences, headers), state_root=state_root)
        digest = engine.signing_hash(draft)
        wanted = quorum_of(count) if sealers is None else sealers
        seals = [keys[(number + offset) % count].sign(digest) for offset in range(wanted)]
        header = engine.hashed(engine.attach(draft, seals))
        headers.add(header)
        yield header, body.encode_block(header.header.encode())


def first_header(genesis: Genesis, engine: Engine) -> HashedHeader:
    """Return the genesis header with its state root."""
    with tempfile.TemporaryDirectory() as data:
        store = open_store(Path(data), durable=False)
        try:
            return Chain.open(store, genesis, engine).genesis
        finally:
            store.close()
