"""The fast path of BFT headers agrees with the rules of the engine."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from ophion.consensus.bft.engine import BftEngine
from ophion.errors import CheckpointError, ProofError
from ophion.native.store import open_store
from ophion.node.checkpoint import header_chain
from ophion.node.checkpoint.header_chain import StoredHeaders, outline_of, verify_headers
from ophion.primitives.types import Hash32
from tests.unit.node.checkpoint.backups import BLOCKS, backup_of

NOW = 2_000_000_000


@pytest.mark.parametrize("protocol", ["qbft", "ibft2"])
def test_hashes_and_votes_are_those_of_the_engine(tmp_path: Path, protocol: str) -> None:
    backup, genesis = backup_of(tmp_path, protocol)
    engine = BftEngine(genesis.spec)
    votes = 0
    with closing(open_store(backup / "database", read_only=True, create=False)) as store:
        headers = StoredHeaders(store, engine)
        parent = headers.canonical(0)
        for number in range(1, BLOCKS + 1):
            header = headers.canonical(number)
            assert header is not None
            assert parent is not None
            block_hash, raw = headers.raw(number)
            extra = engine.validators.extra(header.header)
            outline = outline_of(raw, number, parent.hash, protocol == "qbft")
            assert (outline.hash, outline.digest) == (block_hash, engine.signing_hash(header.header))
            assert (outline.validators, outline.seals) == (extra.validators, extra.seals)
            assert outline.has_vote == (extra.vote is not None)
            votes += outline.has_vote
            with pytest.raises(ProofError, match="does not follow"):
                outline_of(raw, number, bytes(32), protocol == "qbft")
            parent = header
    assert votes == 3


@pytest.mark.parametrize("protocol", ["qbft", "ibft2", "clique"])
def test_both_ways_accept_the_same_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, protocol: str) -> None:
    backup, genesis = backup_of(tmp_path, protocol)
    from ophion.chain.chain import genesis_header
    from ophion.consensus.engine_factory import engine_for

    def refuse(*args: object) -> Hash32:
        raise ProofError("not this way")

    found = []
    for is_fast in (True, False):
        if not is_fast:
            monkeypatch.setattr(header_chain, "_verify_votes", refuse)
        engine = engine_for(genesis.spec)
        with closing(open_store(backup / "database", read_only=True, create=False)) as store:
            first = genesis_header(store, genesis, engine)
            headers = StoredHeaders(store, engine)
            found.append(
                verify_headers(headers, genesis.spec, engine, first, BLOCKS, True, NOW, lambda step, done, total: None)
            )
            with pytest.raises(CheckpointError, match=f"header {BLOCKS + 1} is missing"):
                verify_headers(
                    headers, genesis.spec, engine, first, BLOCKS + 1, True, NOW, lambda step, done, total: None
                )
    assert found[0] == found[1]
