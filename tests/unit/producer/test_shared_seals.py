"""Nodes share the key of a Clique signer: each parent gets one seal, and partners seal the blocks of stopped nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from ophion.chainspec.consensus_parameters import CliqueParameters
from ophion.consensus.bft.vote_record import VoteRecord, replacement
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.validator_votes import LocalProposals
from ophion.native.crypto import PrivateKey
from ophion.primitives.types import Address
from ophion.producer.clique_sealer import CliqueSealer
from ophion.producer.shared_seals import MAX_SHARED_BLOCK_BYTES, SealClaim, SharedSeals
from ophion.producer.shared_vote_store import VotesUnavailable
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, authority_genesis, connect, open_network, running


class Store:
    """The records and blocks of all signers."""

    def __init__(self) -> None:
        self.records: dict[Address, VoteRecord] = {}
        self.blocks: dict[Address, bytes] = {}
        self.is_away = False


class SealStore:
    """The store as one node sees it."""

    def __init__(self, store: Store, signer: Address) -> None:
        self.store = store
        self.dies_after_claim = False
        self._signer = signer

    async def promise(self, wanted: VoteRecord, block: bytes | None = None) -> VoteRecord | None:
        await asyncio.sleep(0.002)
        if self.store.is_away:
            raise VotesUnavailable("switched off")
        stored = self.store.records.get(self._signer)
        record = replacement(stored, wanted)
        if record is None:
            return stored
        if record != stored:
            self.store.records[self._signer], self.store.blocks[self._signer] = record, block or b""
        if self.dies_after_claim:
            await asyncio.Event().wait()
        return None

    async def block(self) -> bytes | None:
        return self.store.blocks.get(self._signer) or None

    def close(self) -> None:
        """Do nothing."""


class _Signer:
    """A key that records its signatures."""

    def __init__(self, key: PrivateKey, signed: list[tuple[Address, bytes]]) -> None:
        self.address = key.address
        self._key = key
        self._signed = signed

    def sign(self, digest: bytes) -> bytes:
        self._signed.append((self.address, digest))
        return self._key.sign(digest)


class Machine:
    """One node that shares the key of a signer."""

    def __init__(self, node: TestCore, index: int, key: int, store: Store, signed: list[tuple[Address, bytes]]) -> None:
        engine = node.chain.engine
        assert isinstance(engine, CliqueEngine)
        self.node = node
        self.seals = SealStore(store, KEYS[key].address)
        # give each node its own extra data, so that blocks of two nodes differ
        node.core.assembler.settings.extra_data = index.to_bytes(32)
        parameters = node.chain.spec.clique or CliqueParameters()
        self.sealer = CliqueSealer(
            node.core.assembler,
            engine,
            parameters,
            _Signer(KEYS[key], signed),
            LocalProposals(),
            Random(index),
            shared_seals=SharedSeals(self.seals),
        )

    @property
    def height(self) -> int:
        return self.node.queries.head_number


def _story(
    tmp_path: Path,
    story: Callable[[list[Machine], Store, list[tuple[Address, bytes]]], Awaitable[Any]],
    keys: Sequence[int],
) -> None:
    clock = ManualClock()
    members = [KEYS[key].address for key in sorted(set(keys))]
    genesis = authority_genesis("clique", members, blockperiodseconds=2)
    with open_network(tmp_path, genesis, [KEYS[key] for key in keys], clock) as nodes:

        async def main() -> None:
            store, signed = Store(), []
            machines = [Machine(node, index, keys[index], store, signed) for index, node in enumerate(nodes)]
            connect(nodes)
            await story(machines, store, signed)

        run_virtually(main(), clock)


def test_two_nodes_of_a_lone_signer_make_one_chain(tmp_path: Path) -> None:
    async def story(machines: list[Machine], store: Store, signed: list[tuple[Address, bytes]]) -> None:
        first, second = machines
        async with running(second.sealer):
            async with running(first.sealer):
                await asyncio.sleep(9)
            assert first.height == second.height == 4
            assert len(signed) == 4, "one seal per block"
            await asyncio.sleep(10)
            assert second.height == 9, "the partner goes on without a missed block"
        assert len({digest for _, digest in signed}) == second.height

    _story(tmp_path, story, (0, 0))


def test_the_block_of_a_node_that_stopped_after_its_claim_is_sealed_by_its_partner(tmp_path: Path) -> None:
    async def story(machines: list[Machine], store: Store, signed: list[tuple[Address, bytes]]) -> None:
        first, second = machines
        first.seals.dies_after_claim = True
        async with running(first.sealer):
            await asyncio.sleep(3)
        claimed = store.records[KEYS[0].address].vote
        assert (first.height, signed) == (0, [])
        async with running(second.sealer):
            await asyncio.sleep(12)
        assert second.height >= 3
        assert signed[0] == (KEYS[0].address, claimed)

    _story(tmp_path, story, (0, 0))


def test_four_nodes_of_two_signers_without_the_store_for_a_while(tmp_path: Path) -> None:
    async def story(machines: list[Machine], store: Store, signed: list[tuple[Address, bytes]]) -> None:
        async with running(*(machine.sealer for machine in machines)):
            await asyncio.sleep(11)
            before = machines[0].height
            assert before >= 4
            store.is_away = True
            await asyncio.sleep(1)
            count = len(signed)
            await asyncio.sleep(20)
            assert len(signed) == count
            assert any(machine.sealer.vote_store_problem == "switched off" for machine in machines)
            store.is_away = False
            await asyncio.sleep(12)
        assert machines[0].height > before + 3
        assert all(machine.sealer.vote_store_problem is None for machine in machines)
        heads = {machine.node.chain.canonical(machines[0].height - 1).hash for machine in machines}  # type: ignore[union-attr]
        assert len(heads) == 1

    _story(tmp_path, story, (0, 0, 1, 1))


def test_large_blocks_are_claimed_but_not_stored() -> None:
    async def story() -> None:
        store = Store()
        seals = SharedSeals(SealStore(store, b"a" * 20))
        assert (await seals.claim(5, b"\1" * 32, bytes(MAX_SHARED_BLOCK_BYTES + 1))).claim is SealClaim.OURS
        assert await seals.claimed_block() is None
        answer = await seals.claim(5, b"\2" * 32, b"block")
        assert (answer.claim, answer.digest) == (SealClaim.PARTNER, b"\1" * 32)
        assert (await seals.claim(4, b"\2" * 32, b"block")).claim is SealClaim.BEHIND
        assert (await seals.claim(6, b"\2" * 32, b"block")).claim is SealClaim.OURS
        assert await seals.claimed_block() == b"block"
        seals.close()

    asyncio.run(story())
