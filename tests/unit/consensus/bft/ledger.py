"""A chain of real BFT headers for tests, built, sealed and stored in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.ibft2_messages import Ibft2
from ophion.consensus.bft.qbft_messages import Qbft
from ophion.consensus.engine import BlockPreferences, Vote
from ophion.native.crypto import PrivateKey
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32
from tests.unit.consensus.bft.golden import BFT_MIX_HASH, K1, K2, K3, K4

KEYS = sorted((K1, K2, K3, K4), key=lambda key: key.address)
"""Keys in the order of addresses: k4, k2, k3, k1."""


def genesis_of(
    protocol: str, validators: Sequence[Address], options: dict[str, Any] | None = None, **config: Any
) -> Genesis:
    """Return a genesis file with these engine options."""
    variant = Ibft2() if protocol == "ibft2" else Qbft()
    extra = variant.encode_extra(BftExtraData(bytes(32), tuple(validators)), ExtraForm.FULL)
    document = {
        "config": {"chainId": 1337, "berlinBlock": 0, protocol: options or {"blockperiodseconds": 2}, **config},
        "nonce": "0x0",
        "timestamp": "0x0",
        "gasLimit": "0x47b760",
        "difficulty": "0x1",
        "mixHash": "0x" + BFT_MIX_HASH.hex(),
        "extraData": "0x" + extra.hex(),
        "alloc": {},
    }
    return parse_genesis(json.dumps(document))


class Ledger:
    """A canonical chain from genesis on. The engine reads this chain as a `HeaderReader`."""

    def __init__(self, genesis: Genesis) -> None:
        self.engine = BftEngine(genesis.spec)
        first = genesis.header(bytes(32))
        self.engine.check_genesis(first)
        self.headers = [self.engine.hashed(first)]
        self.side: dict[Hash32, HashedHeader] = {}
        self.checkpoints: dict[Hash32, bytes] = {}

    @property
    def head(self) -> HashedHeader:
        return self.headers[-1]

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        return next((header for header in self.headers if header.hash == block_hash), self.side.get(block_hash))

    def canonical(self, number: int) -> HashedHeader | None:
        return self.headers[number] if 0 <= number < len(self.headers) else None

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        header = self.header(block_hash)
        return None if header is None else header.number + 1

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        return ()

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        return self.checkpoints.get(block_hash)

    def draft(self, builder: PrivateKey, vote: Vote | None = None, at: int = 0, **changes: object) -> Header:
        """Return an unsealed header on the head."""
        preferences = BlockPreferences(timestamp=at, author=builder.address, vote=vote)
        header = self.engine.prepare(self.head, preferences, self)
        return replace(header, **changes)  # type: ignore[arg-type]

    def sealed(self, header: Header, keys: Sequence[PrivateKey] = KEYS) -> HashedHeader:
        digest = self.engine.signing_hash(header)
        return self.engine.hashed(self.engine.attach(header, [key.sign(digest) for key in keys]))

    def verify(self, header: HashedHeader, now: int | None = None) -> None:
        self.engine.verify(header, self.head, self, header.timestamp if now is None else now)

    def add(self, builder: PrivateKey, vote: Vote | None = None, keys: Sequence[PrivateKey] = KEYS) -> HashedHeader:
        """Build, seal, verify and append a block."""
        members = self.engine.members(self.head, self)
        header = self.sealed(self.draft(builder, vote), [key for key in keys if key.address in members])
        self.verify(header)
        self.headers.append(header)
        return header

    def validators(self) -> tuple[Address, ...]:
        """Return the validators of the next block."""
        return self.engine.members(self.head, self)
