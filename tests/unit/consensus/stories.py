"""Chains of headers for engine tests, in memory; signers are named by letters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import BlockPreferences, Engine, Vote
from ophion.native.crypto import PrivateKey, keccak256
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address, Hash32

FAR = 2**62
"""A time after the timestamps of all headers."""


def genesis(config: dict[str, Any], **members: Any) -> Genesis:
    """Return a genesis with this config."""
    return parse_genesis(json.dumps({"config": config, "difficulty": "0x1", "gasLimit": "0x1000000", **members}))


class MemoryChain:
    """The headers of all branches, with the read methods that an engine calls."""

    def __init__(self, engine: Engine, first: Genesis) -> None:
        self.engine = engine
        self.genesis = engine.hashed(first.header(bytes(32)))
        self.headers: dict[Hash32, HashedHeader] = {self.genesis.hash: self.genesis}
        self.ommers_of: dict[Hash32, Sequence[Header]] = {}
        self.checkpoints: dict[Hash32, bytes] = {}
        self.head = self.genesis

    def header(self, block_hash: Hash32) -> HashedHeader | None:
        return self.headers.get(block_hash)

    def canonical(self, number: int) -> HashedHeader | None:
        cursor: HashedHeader | None = self.head
        while cursor is not None and cursor.number > number:
            cursor = self.headers.get(cursor.parent_hash)
        return cursor

    def total_difficulty(self, block_hash: Hash32) -> int | None:
        total, cursor = 0, self.headers.get(block_hash)
        if cursor is None:
            return None
        while cursor is not None:
            total += cursor.header.difficulty
            cursor = self.headers.get(cursor.parent_hash)
        return total

    def ommers(self, block_hash: Hash32) -> Sequence[Header]:
        return self.ommers_of.get(block_hash, ())

    def checkpoint(self, block_hash: Hash32) -> bytes | None:
        return self.checkpoints.get(block_hash)

    def add(self, header: HashedHeader, ommers: Sequence[Header] = ()) -> HashedHeader:
        """Store a header as the new head, without verification."""
        self.headers[header.hash] = header
        self.ommers_of[header.hash] = ommers
        self.head = header
        return header

    def extend(self, header: HashedHeader) -> HashedHeader:
        """Verify a header against its parent and store it."""
        self.engine.verify(header, self.headers[header.parent_hash], self, FAR)
        return self.add(header)


def key_of(letter: str) -> PrivateKey:
    """Return the key of a signer."""
    return PrivateKey(keccak256(b"signer " + letter.encode()))


def address_of(letter: str) -> Address:
    """Return the address of a signer."""
    return key_of(letter).address


class CliqueStory:
    """A Clique chain written in tokens. `A` is a block by A, `A+B` has a vote for B, `A-B` has a vote against B, and
    `A*` is an epoch block.
    """

    def __init__(self, signers: str, epoch: int = 30_000, config: dict[str, Any] | None = None) -> None:
        listed = "".join(address_of(letter).hex() for letter in signers)
        first = genesis(
            {"clique": {"blockperiodseconds": 1, "epochlength": epoch}, **(config or {})},
            extraData="0x" + "00" * 32 + listed + "00" * 65,
        )
        self.spec = first.spec
        self.engine = CliqueEngine(first.spec)
        self.chain = MemoryChain(self.engine, first)

    def play(self, tokens: str) -> None:
        """Make, verify and store one block for each token."""
        for token in tokens.split():
            self.chain.extend(self.sealed(token))

    def sealed(self, token: str, parent: HashedHeader | None = None, **changes: Any) -> HashedHeader:
        """Return the block of a token. Header fields can be changed before the block is signed."""
        author, vote = token[0], None
        if token[1:] and token[1] in "+-":
            vote = Vote(address_of(token[2]), token[1] == "+")
        draft = self.engine.prepare(
            parent or self.chain.head, BlockPreferences(timestamp=0, author=address_of(author), vote=vote), self.chain
        )
        if vote is not None:
            # the engine omits votes without effect, but some tests need them in the header
            draft = replace(draft, coinbase=vote.target, nonce=(b"\xff" if vote.authorize else b"\x00") * 8)
        return self.signed(replace(draft, **changes), author)

    def signed(self, header: Header, author: str) -> HashedHeader:
        """Return the header with the author's seal."""
        seal = key_of(author).sign(self.engine.signing_hash(header))
        return self.engine.hashed(self.engine.attach(header, [seal]))

    def signers(self, letters: str = "ABCDEFGH") -> str:
        """Return the letters of the signers after the head."""
        members = self.engine.members(self.chain.head, self.chain)
        return "".join(letter for letter in letters if address_of(letter) in members)
