"""Tests when a Clique signer seals, what it includes, and when it leaves blocks to others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from ophion.chain.events import ChainBlock
from ophion.consensus.clique import ADD_NONCE, DROP_NONCE, CliqueEngine
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.native.crypto import PrivateKey
from ophion.primitives.header import HashedHeader
from ophion.primitives.types import ZERO_ADDRESS
from ophion.producer.clique_sealer import CliqueSealer
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore
from ophion.testing.signing import DEV_KEYS, fee_transaction
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, Steps, authority_genesis, connect, open_network, running, sealer_of

START = int(ManualClock().now())
GWEI = 10**9


def run_story(
    tmp_path: Path,
    story: Callable[[list[TestCore], ManualClock], Awaitable[Any]],
    nodes: int = 1,
    signers: int | None = None,
    alloc: dict[str, Any] | None = None,
    connects: bool = True,
    **parameters: Any,
) -> Any:
    """Run a scenario with nodes of the first signers."""
    clock = ManualClock()
    parameters.setdefault("blockperiodseconds", 5)
    genesis = authority_genesis("clique", [key.address for key in KEYS[: signers or nodes]], alloc, **parameters)
    with open_network(tmp_path, genesis, KEYS[:nodes], clock) as opened:
        if connects:
            connect(opened)
        return run_virtually(story(opened, clock), clock)  # type: ignore[arg-type]


def blocks(node: TestCore) -> list[HashedHeader]:
    """Return all blocks after genesis."""
    found = [node.chain.canonical(number) for number in range(1, node.queries.head_number + 1)]
    return [header for header in found if header is not None]


def transaction(nonce: int, sender: PrivateKey = DEV_KEYS[0], **fields: Any) -> bytes:
    return fee_transaction(sender, nonce, max_fee=100 * GWEI, tip=GWEI, **fields)


def test_c_01_a_lone_signer_makes_a_block_every_period_in_turn(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        seen: list[float] = []
        nodes[0].chain.events.listen(lambda event: seen.append(clock.now()))
        async with running(sealer_of(nodes[0])):
            await asyncio.sleep(26)
        assert [header.timestamp - START for header in blocks(nodes[0])] == [5, 10, 15, 20, 25]
        assert [at - START for at in seen] == [5, 10, 15, 20, 25]
        assert {header.header.difficulty for header in blocks(nodes[0])} == {2}
        assert {header.header.coinbase for header in blocks(nodes[0])} == {ZERO_ADDRESS}

    run_story(tmp_path, story)


def test_a_block_that_is_late_carries_the_time_of_its_making(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        clock.advance(100.7)
        async with running(sealer_of(nodes[0])):
            await asyncio.sleep(6)
        assert [header.timestamp - START for header in blocks(nodes[0])] == [100, 105]

    run_story(tmp_path, story)


def test_c_02_signers_take_turns_by_address_without_forks(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(46)
        engine = nodes[0].chain.engine
        made = blocks(nodes[0])
        assert len(made) == 9
        assert [engine.author(header) for header in made] == [KEYS[header.number % 3].address for header in made]
        assert {header.header.difficulty for header in made} == {2}
        assert {node.chain.head.hash for node in nodes} == {nodes[0].chain.head.hash}

    run_story(tmp_path, story, nodes=3)


def test_c_03_others_step_in_out_of_turn_within_the_random_delay(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        seen: list[float] = []
        nodes[0].chain.events.listen(lambda event: seen.append(clock.now()))
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(62)
        engine, made = nodes[0].chain.engine, blocks(nodes[0])
        assert len(made) == 12
        authors = [engine.author(header) for header in made]
        assert set(pairwise(authors)) == {
            (KEYS[0].address, KEYS[1].address),
            (KEYS[1].address, KEYS[0].address),
        }
        for header, author, at in zip(made, authors, seen, strict=True):
            is_in_turn = author == KEYS[header.number % 3].address
            assert header.header.difficulty == (2 if is_in_turn else 1)
            late_s = at - header.timestamp
            assert late_s == 0 if is_in_turn else 0 < late_s < 1

    run_story(tmp_path, story, nodes=2, signers=3)


def test_c_04_a_signer_alone_of_three_makes_one_block_and_halts(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        async with running(sealer_of(nodes[0])):
            await asyncio.sleep(60)
        assert len(blocks(nodes[0])) == 1

    run_story(tmp_path, story, nodes=1, signers=3)


def test_c_07_after_healing_the_lighter_half_reorganises_and_its_transactions_return_to_the_pool(
    tmp_path: Path,
) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        left, right = nodes[:2], nodes[2:]
        connect(left)
        connect(right)
        lost = (await left[0].send(transaction(0, DEV_KEYS[0])))[0]
        await left[1].send(transaction(0, DEV_KEYS[0]))
        sent_right = (await right[0].send(transaction(0, DEV_KEYS[1])))[0]
        await right[1].send(transaction(0, DEV_KEYS[1]))
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(60)
            ends = [half[0].chain.tip for half in (left, right)]
            assert [tip.header.number for tip in ends] == [2, 2], "two of four make two blocks and halt"
            assert all(node.chain.store.transaction_position(lost) for node in left)
            winner, loser = (left, right) if left[0].chain.engine.prefers(*ends, right[0].chain) else (right, left)
            returned = sent_right if loser is right else lost
            assert ends[0].header.hash != ends[1].header.hash
            for node in loser:
                for header in blocks(winner[0]):
                    body = winner[0].chain.store.body(header.hash)
                    assert body is not None
                    await node.core.importer.import_block(ChainBlock(header, body))
            assert [node.chain.head.hash for node in loser] == [winner[0].chain.head.hash] * 2
            assert all(node.pool.get(returned) is not None for node in loser)
            connect([*left, *right])
            await asyncio.sleep(60)
        heads = {node.chain.canonical(8).hash for node in nodes}  # type: ignore[union-attr]
        assert len(heads) == 1
        for node in nodes:
            if node.pool.get(returned) is None:
                assert node.chain.store.transaction_position(returned) is not None
        assert any(node.chain.store.transaction_position(returned) for node in nodes)

    run_story(tmp_path, story, nodes=4, connects=False)


def test_a_node_that_is_no_signer_waits_until_it_is_voted_in(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        signer = nodes[0]
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(11)
            proposals = signer.core.proposals
            assert proposals is not None
            proposals.propose(KEYS[1].address, True)
            await asyncio.sleep(30)
        made = blocks(signer)
        assert made[2].header.coinbase == KEYS[1].address
        assert made[2].header.nonce == ADD_NONCE
        # the node keeps the proposal, but does not vote again, because the candidate is a signer now
        assert all(header.header.coinbase == ZERO_ADDRESS for header in made[3:])
        authors = [signer.chain.engine.author(header) for header in made]
        assert set(authors[:3]) == {KEYS[0].address}
        assert set(authors[3:]) == {KEYS[0].address, KEYS[1].address}
        assert signer.chain.engine.members(signer.chain.head, signer.chain) == (KEYS[0].address, KEYS[1].address)

    run_story(tmp_path, story, nodes=2, signers=1)


def test_a_signer_that_votes_itself_out_stops(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        proposals = nodes[0].core.proposals
        assert proposals is not None
        proposals.propose(KEYS[0].address, False)
        async with running(sealer_of(nodes[0])):
            await asyncio.sleep(60)
        (only,) = blocks(nodes[0])
        assert (only.header.coinbase, only.header.nonce) == (KEYS[0].address, DROP_NONCE)

    run_story(tmp_path, story)


def test_c_14_votes_vanish_at_the_epoch_and_are_cast_again(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        proposals = nodes[0].core.proposals
        assert proposals is not None
        proposals.propose(KEYS[5].address, True)
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(51)
        made = blocks(nodes[0])
        engine = nodes[0].chain.engine
        votes = [header.number for header in made if header.header.coinbase == KEYS[5].address]
        epochs = [header.number for header in made if len(header.header.extra_data) > 97]
        assert epochs == [4, 8]
        own = [header.number for header in made if engine.author(header) == KEYS[0].address]
        assert votes == [min(n for n in own if first < n < last) for first, last in ((0, 4), (4, 8), (8, 99))]

    run_story(tmp_path, story, nodes=2, epochlength=4)


def test_c_21_no_block_without_transactions_where_the_network_wants_none(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        async with running(sealer_of(node)):
            await asyncio.sleep(30)
            assert node.queries.head_number == 0
            await node.send(transaction(0))
            await asyncio.sleep(1.5)
            assert node.queries.head_number == 1
            await node.send(transaction(1))
            await asyncio.sleep(2)
            assert node.queries.head_number == 1, "the period still holds"
            await asyncio.sleep(30)
        assert [header.timestamp - START for header in blocks(node)] == [30, 35]

    run_story(tmp_path, story, createemptyblocks=False)


def test_period_zero_seals_as_soon_as_there_are_transactions(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        async with running(sealer_of(node)):
            await asyncio.sleep(10)
            assert node.queries.head_number == 0
            await node.send(transaction(0))
            await asyncio.sleep(0.01)
            assert node.queries.head_number == 1
            await node.send(transaction(1), transaction(2))
            await asyncio.sleep(10)
        assert [header.timestamp - START for header in blocks(node)] == [10, 10]

    run_story(tmp_path, story, blockperiodseconds=None, period=0)


def test_c_24_fees_and_the_coinbase_instruction_go_to_the_signer(tmp_path: Path) -> None:
    contract = "cc" * 20
    # this contract stores COINBASE in slot 0
    alloc = {contract: {"balance": "0x0", "code": "0x4160005500"}}

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        await node.send(transaction(0, to=bytes.fromhex(contract), gas=100_000))
        async with running(sealer_of(node)):
            await asyncio.sleep(6)
        assert node.queries.head_state.storage(bytes.fromhex(contract), bytes(32))[-20:] == KEYS[0].address
        account = node.queries.head_state.account(KEYS[0].address)
        assert account is not None
        assert account[1] == blocks(node)[0].header.gas_used * GWEI

    run_story(tmp_path, story, alloc=alloc)


def test_a_signer_in_turn_finishes_its_block_beside_one_that_is_not(tmp_path: Path) -> None:
    """An out-of-turn block arrives while our in-turn block waits for its time.

    The out-of-turn block has a lower difficulty, so our block wins.
    """

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        ours, theirs = nodes[1], nodes[0]  # the second signer is in turn for block 1
        rival = sealer_of(theirs)
        assert isinstance(rival, CliqueSealer)
        theirs.core.assembler.clock = Ahead(clock, 2.0)  # type: ignore[assignment]
        rival._clock = theirs.core.assembler.clock
        rival._randomness = Soonest()  # type: ignore[assignment]
        async with running(sealer_of(ours), rival):
            await asyncio.sleep(4)
            assert ours.chain.engine.author(ours.chain.head) == KEYS[0].address
            await asyncio.sleep(2)
            assert ours.queries.head_number == 1
            assert ours.chain.engine.author(ours.chain.head) == KEYS[1].address
            assert theirs.chain.head.hash == ours.chain.head.hash

    run_story(tmp_path, story, nodes=2, signers=3)


class Ahead:
    """A clock that is ahead."""

    def __init__(self, clock: ManualClock, by_s: float) -> None:
        self._clock = clock
        self._by_s = by_s

    def now(self) -> float:
        return self._clock.now() + self._by_s

    def monotonic(self) -> float:
        return self._clock.monotonic()


class Soonest:
    def random(self) -> float:
        return 0.0


def test_blocks_stop_and_go_on_as_the_operator_says(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        service = asyncio.create_task(node.mining.run(lambda: None))
        node.mining.start()
        await asyncio.sleep(11)
        node.mining.stop()
        await asyncio.sleep(20)
        assert node.queries.head_number == 2
        node.mining.start()
        await asyncio.sleep(6)
        assert [header.timestamp - START for header in blocks(node)] == [5, 10, 31, 36]
        service.cancel()
        await asyncio.wait({service})

    run_story(tmp_path, story)


def test_what_cannot_be_built_does_not_keep_a_signer_from_its_blocks(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        node.core.mining.floor.min_gas_price = 0
        await node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=10**9, tip=0))
        async with running(sealer_of(node)):
            await asyncio.sleep(11)
        assert node.queries.head_number == 2

    run_story(tmp_path, story)


def test_a_clock_that_is_set_back_delays_blocks_and_breaks_nothing(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        build = node.core.assembler.assemble_on

        async def set_back(*arguments: Any) -> Any:
            built = await build(*arguments)
            if node.queries.head_number == 1 and clock.wall == START:
                clock.wall -= 60
            return built

        node.core.assembler.assemble_on = set_back  # type: ignore[method-assign]
        async with running(sealer_of(node)):
            await asyncio.sleep(30)
            assert node.queries.head_number == 1
            await asyncio.sleep(60)
        assert [header.timestamp - START for header in blocks(node)][:3] == [5, 10, 15]

    run_story(tmp_path, story)


def test_after_a_restart_signers_are_found_without_going_back_to_the_epoch_block(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        node = nodes[0]
        proposals = node.core.proposals
        assert proposals is not None
        proposals.propose(KEYS[5].address, True)
        async with running(*map(sealer_of, nodes)):
            await asyncio.sleep(5 * (CHECKPOINT_DISTANCE + 3) + 1)
        fresh = CliqueEngine(node.chain.spec)
        known = node.chain.engine
        assert isinstance(known, CliqueEngine)
        steps = Steps(node.chain)
        assert fresh.snapshot(node.chain.head, steps) == known.snapshot(node.chain.head, node.chain)
        assert known.snapshot(node.chain.head, node.chain).votes, "the one vote of two that are needed stands"
        assert steps.taken == 3

    run_story(tmp_path, story, nodes=2)


def test_a_clock_that_is_set_forward_makes_the_block_due(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        async with running(sealer_of(nodes[0])):
            await asyncio.sleep(5)
            clock.wall += 100
            await asyncio.sleep(1.1)
            assert nodes[0].queries.head_number == 1
            assert 104 <= nodes[0].chain.head.timestamp - START <= 107

    run_story(tmp_path, story, blockperiodseconds=60)


def test_nothing_is_signed_below_the_height_of_peers_for_three_periods(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        sealer = sealer_of(nodes[0])
        assert isinstance(sealer, CliqueSealer)
        sealer.guard.watch(lambda: [(KEYS[1].address, 9)])
        async with running(sealer):
            await asyncio.sleep(14.9)
            assert blocks(nodes[0]) == []
            await asyncio.sleep(5)
            assert len(blocks(nodes[0])) == 1

    run_story(tmp_path, story, signers=3)


def test_a_signer_signs_as_soon_as_a_signer_reports_its_own_height(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        sealer = sealer_of(nodes[0])
        assert isinstance(sealer, CliqueSealer)
        heights = {}
        sealer.guard.watch(heights.items)
        async with running(sealer):
            await asyncio.sleep(2)
            heights[KEYS[1].address] = 0
            await asyncio.sleep(4.9)
            assert len(blocks(nodes[0])) == 1

    run_story(tmp_path, story, signers=3)
