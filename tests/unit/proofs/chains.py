"""Generated chains whose validators change by votes: headers only, sealed by public test keys."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chain.import_file import BlockFileImport
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import BlockPreferences, Vote
from ophion.consensus.engine_factory import engine_for
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.native.transactions import Body
from ophion.primitives.header import HashedHeader
from ophion.runtime.clock import SystemClock
from ophion.testing.bft_chain import KEYS, START, KnownHeaders, bft_genesis_text, first_header
from ophion.testing.clique_chain import clique_genesis_text

BY_ADDRESS = {key.address: key for key in KEYS}
EPOCH = 12


def genesis_text(protocol: str, count: int, **config: Any) -> str:
    """Return a genesis with `count` validators and an epoch of 12 blocks."""
    if protocol == "clique":
        values = json.loads(clique_genesis_text())
        signers = sorted(key.address for key in KEYS[:count])
        values["extraData"] = "0x" + (bytes(32) + b"".join(signers) + bytes(65)).hex()
        values["config"]["clique"] |= {"epoch": EPOCH, "epochlength": EPOCH}
    else:
        values = json.loads(bft_genesis_text(protocol, count))
        values["config"][protocol]["epochlength"] = EPOCH
    values["config"] |= config
    return json.dumps(values)


def voted_blocks(text: str, blocks: int, votes: dict[int, Vote]) -> Iterator[bytes]:
    """Yield sealed blocks. `votes` maps block numbers to the vote of the block's producer."""
    genesis = parse_genesis(text)
    engine = engine_for(genesis.spec)
    assert isinstance(engine, BftEngine | CliqueEngine)
    headers = KnownHeaders(first_header(genesis, engine))
    body = Body.of([], [], None)
    authors: list[bytes] = []
    for number in range(1, blocks + 1):
        parent = headers.in_order[-1]
        members = engine.members(parent, headers)
        recent = authors[-(len(members) // 2) :]
        # a Clique signer must wait until enough other signers have signed
        author = next(one for one in (*members[number % len(members) :], *members) if one not in recent)
        authors.append(author)
        preferences = BlockPreferences(START + 100 + number, author, vote=votes.get(number))
        draft = replace(engine.prepare(parent, preferences, headers), state_root=headers.in_order[0].header.state_root)
        header = _sealed(engine, draft, members, author)
        headers.add(header)
        yield body.encode_block(header.header.encode())


def _sealed(engine: BftEngine | CliqueEngine, draft: Any, members: Sequence[bytes], author: bytes) -> HashedHeader:
    digest = engine.signing_hash(draft)
    keys: list[PrivateKey] = [BY_ADDRESS[author]]
    if isinstance(engine, BftEngine):
        keys = [BY_ADDRESS[member] for member in members[: quorum_of(len(members))]]
    return engine.hashed(engine.attach(draft, [key.sign(digest) for key in keys]))


@contextmanager
def imported(path: Path, text: str, blocks: int, votes: dict[int, Vote]) -> Iterator[Chain]:
    """Import a generated chain with full checks and yield it."""
    file = path / "blocks.rlp"
    file.write_bytes(b"".join(voted_blocks(text, blocks, votes)))
    genesis = parse_genesis(text)
    store = open_store(path, durable=False)
    try:
        chain = Chain.open(store, genesis, engine_for(genesis.spec))
        clock = SystemClock()
        BlockFileImport(ImportCore(chain, clock), clock).run([file])
        assert chain.head.number == blocks
        yield chain
    finally:
        store.close()
