"""Headers are written only if a quorum of the known validators has sealed them or a header after them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import ExtraForm
from ophion.consensus.engine import Vote
from ophion.consensus.engine_factory import engine_for
from ophion.errors import BlockNotDownloaded, InvalidBlock, UnknownParent
from ophion.native.crypto import PrivateKey
from ophion.native.exceptions import translated
from ophion.native.store import BlockHistory, open_store
from ophion.node.snap_sync.headers import HashOf, ReceivedHeaders
from ophion.primitives.header import HashedHeader, Header
from ophion.testing.bft_chain import KEYS
from ophion.testing.busy_chain import blocks_of, genesis_text

NOW = 2_000_000_000
STRANGERS = [PrivateKey(bytes([number]) * 32) for number in (201, 202, 203)]


class Source:
    """The headers of a chain."""

    def __init__(self, protocol: str, blocks: int) -> None:
        self.genesis = parse_genesis(genesis_text(protocol))
        self.engine = engine_for(self.genesis.spec)
        raws = blocks_of(genesis_text(protocol), blocks, 0, 1)
        self.headers = [decode_block(raw, self.engine).header for raw in raws]


@pytest.fixture(scope="module", params=["qbft", "ibft2", "clique"])
def source(request: pytest.FixtureRequest) -> Source:
    return Source(request.param, 300)


@pytest.fixture(scope="module", params=["qbft", "ibft2"])
def bft(request: pytest.FixtureRequest) -> Source:
    return Source(request.param, 40)


@contextmanager
def received(path: Path, source: Source, known_hash: HashOf | None = None) -> Iterator[tuple[Chain, ReceivedHeaders]]:
    store = open_store(path, durable=False)
    try:
        chain = Chain.open(store, source.genesis, engine_for(source.genesis.spec))
        yield chain, ReceivedHeaders(chain, known_hash)
    finally:
        store.close()


def relinked(source: Source, headers: list[HashedHeader], changed: Header) -> list[HashedHeader]:
    """Replace the first header by `changed`, and set the parent hashes of the others. Their seals stay."""
    found = [source.engine.hashed(changed)]
    for header in headers[1:]:
        found.append(source.engine.hashed(replace(header.header, parent_hash=found[-1].hash)))
    return found


def sealed(source: Source, header: Header, keys: list[PrivateKey]) -> Header:
    digest = source.engine.signing_hash(header)
    return source.engine.attach(header, [key.sign(digest) for key in keys])


def with_vote(source: Source, header: Header, vote: Vote | None, validators: tuple[bytes, ...] | None = None) -> Header:
    assert isinstance(source.engine, BftEngine)
    extra = replace(source.engine.validators.extra(header), vote=vote)
    if validators is not None:
        extra = replace(extra, validators=validators)
    encoded = source.engine.protocol(header.number).encode_extra(extra, ExtraForm.FULL)
    return replace(header, extra_data=encoded)


def test_headers_are_written_without_bodies(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (chain, headers):
        for start, end in ((0, 1), (1, 12), (12, 300)):
            headers.add(source.headers[start:end], NOW)
        assert chain.head.hash == source.headers[-1].hash
        assert chain.store.head() == (chain.genesis.hash, 0), "no later block has a state"
        expected = chain.genesis.header.difficulty + sum(one.header.difficulty for one in source.headers)
        assert chain.tip.total_difficulty == expected
        for header in source.headers:
            assert chain.canonical(header.number) == header
        assert chain.checkpoint(source.headers[255].hash) is not None
    with received(tmp_path, source) as (chain, headers):
        assert chain.head.number == 300, "a killed process continues"


def test_seals_of_each_batch_are_verified_once(tmp_path: Path, bft: Source) -> None:
    unsealed = [bft.engine.hashed(bft.engine.attach(one.header, [])) for one in bft.headers]
    assert [one.hash for one in unsealed] == [one.hash for one in bft.headers]
    with received(tmp_path, bft) as (chain, headers):
        headers.add([*unsealed[:9], bft.headers[9]], NOW)
        with pytest.raises(InvalidBlock, match=r"block number 20\b.*committed seals"):
            headers.add(unsealed[10:20], NOW)
        assert chain.head.number == 10


def test_a_clique_header_without_a_seal_is_refused(tmp_path: Path) -> None:
    source = Source("clique", 20)
    header = source.headers[4].header
    forged = relinked(source, source.headers[4:10], replace(header, extra_data=header.extra_data[:-65] + bytes(65)))
    with received(tmp_path, source) as (chain, headers):
        with pytest.raises(InvalidBlock, match="block number 5"):
            headers.add([*source.headers[:4], *forged], NOW)
        assert chain.head.number == 0


def test_a_forged_header_in_a_batch_is_refused(tmp_path: Path, source: Source) -> None:
    forged = replace(source.headers[5].header, state_root=bytes(32))
    batch = [*source.headers[:5], *relinked(source, source.headers[5:12], forged)]
    with received(tmp_path, source) as (chain, headers):
        with pytest.raises(InvalidBlock):
            headers.add(batch, NOW)
        with pytest.raises((UnknownParent, InvalidBlock)):
            headers.add([*source.headers[:5], source.engine.hashed(forged), *source.headers[6:12]], NOW)
        assert chain.store.canonical_hash(1) is None
        headers.add(source.headers[:12], NOW)
        assert chain.head.number == 12


@pytest.mark.parametrize("is_sealed_by_strangers", [False, True])
def test_forged_votes_do_not_change_the_validators(tmp_path: Path, bft: Source, is_sealed_by_strangers: bool) -> None:
    """The votes of three validators would add a stranger. The third header must have the seals of a quorum."""
    validators = tuple(sorted(key.address for key in KEYS[:4]))
    target = STRANGERS[0].address
    grown = tuple(sorted((*validators, target)))
    parent, batch = bft.headers[9], []
    for index, one in enumerate(bft.headers[10:16]):
        vote = Vote(target, True) if index < 3 else None
        header = with_vote(bft, one.header, vote, validators if index < 3 else grown)
        header = replace(header, parent_hash=parent.hash, coinbase=validators[index % 3])
        parent = bft.engine.hashed(sealed(bft, header, STRANGERS) if is_sealed_by_strangers else header)
        batch.append(parent)
    with received(tmp_path, bft) as (chain, headers):
        headers.add(bft.headers[:10], NOW)
        with pytest.raises(InvalidBlock, match=r"block number 13\b.*committed seal"):
            headers.add(batch, NOW)
        # the old validators have sealed the last vote, so it counts, and the next header is of the new validators
        honest = []
        parent = bft.headers[9]
        for header in batch:
            keys = KEYS[:4] if header.number != 16 else [*KEYS[:4], STRANGERS[0]]
            parent = bft.engine.hashed(sealed(bft, replace(header.header, parent_hash=parent.hash), list(keys)))
            honest.append(parent)
        headers.add(honest, NOW)
        assert chain.engine.members(chain.head, chain) == grown


def test_a_gap_is_refused(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (_, headers), pytest.raises(UnknownParent):
        headers.add(source.headers[3:5], NOW)


def test_headers_of_another_branch_replace_later_headers(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (chain, headers):
        headers.add(source.headers[:20], NOW)
        headers.add(source.headers[10:15], NOW)
        assert chain.head.number == 15
        assert chain.store.canonical_hash(15) == source.headers[14].hash
        assert chain.store.canonical_hash(16) is None
    with received(tmp_path, source) as (chain, headers):
        assert chain.head.number == 15
        headers.add(source.headers[15:30], NOW)
        assert chain.head.number == 30


def test_verified_headers_are_not_written(tmp_path: Path, source: Source) -> None:
    with received(tmp_path, source) as (chain, headers):
        headers.add(source.headers[:4], NOW)
        headers.verify(source.headers[4:12], NOW)
        with pytest.raises(UnknownParent):
            headers.verify(source.headers[5:12], NOW)
        assert chain.head.number == 4
        assert chain.store.canonical_hash(5) is None


def test_with_known_hashes_other_headers_are_refused(tmp_path: Path, source: Source) -> None:
    hashes = {header.number: header.hash for header in source.headers}
    hashes[200] = bytes(32)
    with received(tmp_path, source, hashes.get) as (chain, headers):
        headers.add(source.headers[:150], NOW)
        with pytest.raises(InvalidBlock, match="ancestor of the trusted block"):
            headers.add(source.headers[150:210], NOW)
        assert chain.head.number == 150


def test_a_read_of_a_body_names_the_block_that_is_not_downloaded(tmp_path: Path, bft: Source) -> None:

    with received(tmp_path, bft) as (chain, headers):
        headers.add(bft.headers, NOW)
        history = BlockHistory(chain.store)
        assert history.start is None
        history.begin(40)
        assert (history.start, chain.history_start) == (41, 41)
        with (
            pytest.raises(BlockNotDownloaded, match="block 7 has not been downloaded yet; .* from block 41"),
            translated(),
        ):
            chain.store.body(bft.headers[6].hash)
        assert chain.store.body(bytes(32)) is None
        assert chain.store.body(chain.genesis.hash) is not None
