"""Tests validators of IBFT 2.0 and QBFT networks: the state machine with a real chain, disk and importer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ophion.chain.block import decode_block
from ophion.chainspec.genesis import parse_genesis
from ophion.cli.rlp import ExtraDataType, extra_data
from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import ExtraForm
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.messages import (
    BftMessage,
    Commit,
    Prepare,
    PreparedRound,
    Proposal,
    RawMessage,
    RoundChange,
)
from ophion.consensus.bft.round_change import RoundChanges
from ophion.consensus.bft.status import Phase
from ophion.consensus.header_snapshots import CHECKPOINT_DISTANCE
from ophion.errors import DecodeError, InvalidHeader
from ophion.native.crypto import PrivateKey
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import Address
from ophion.producer.bft_driver import BftDriver
from ophion.producer.bft_tuning import BftTuning
from ophion.runtime.clock import ManualClock
from ophion.testing.node_core import TestCore
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from ophion.testing.virtual_loop import run_virtually
from tests.unit.producer.authority import KEYS, Steps, authority_genesis, open_network, running

START = int(ManualClock().now())
GWEI = 10**9
BOTH = pytest.mark.parametrize("engine", ["ibft2", "qbft"])


class Wire:
    """The gossip of one validator with the real encoding and a delay of some milliseconds."""

    def __init__(self, me: Address, drivers: dict[Address, BftDriver], delay_s: float = 0.005) -> None:
        self.sent: list[BftMessage] = []
        self.repeated: list[tuple[BftMessage, Address]] = []
        self.wanted: list[int] = []
        self.is_cut = False
        self._me = me
        self._drivers = drivers
        self._delay_s = delay_s

    def multicast(self, message: BftMessage, validators: Collection[Address]) -> None:
        self.sent.append(message)
        self._send(message, [address for address in validators if address != self._me])

    def send(self, message: BftMessage, to: Address) -> None:
        self.repeated.append((message, to))
        self._send(message, [to])

    def relay(self, message: BftMessage, exclude: Collection[Address | None]) -> None:
        self._send(message, [address for address in self._drivers if address not in exclude and address != self._me])

    def _send(self, message: BftMessage, targets: Iterable[Address]) -> None:
        for address in targets:
            if not self.is_cut and address in self._drivers:
                asyncio.get_running_loop().call_later(
                    self._delay_s, self._drivers[address].received, message.raw, self._me
                )

    def catch_up(self, peer: Address | None, height: int) -> None:
        self.wanted.append(height)

    def connected(self) -> Collection[Address]:
        return [address for address in self._drivers if address != self._me]

    def clients(self) -> Iterable[str]:
        return ["ophion/v1"]

    def client_of(self, address: Address) -> str | None:
        return "ophion/v1" if address in self.connected() else None


def driver_of(node: TestCore) -> BftDriver:
    assert node.core.bft is not None
    return node.core.bft


def wired(nodes: Sequence[TestCore], count: int | None = None) -> list[Wire]:
    """Connect the first `count` nodes with each other; by default, all nodes."""
    talking = {driver_of(node)._signer.address: driver_of(node) for node in nodes[:count]}
    wires = []
    for address, driver in talking.items():
        wires.append(Wire(address, talking))
        driver._gossip = wires[-1]
    return wires


def run_story(
    tmp_path: Path,
    engine: str,
    story: Callable[[list[TestCore], ManualClock], Awaitable[Any]],
    nodes: int = 1,
    validators: int | None = None,
    clock: ManualClock | None = None,
    alloc: dict[str, Any] | None = None,
    forks: dict[str, Any] | None = None,
    keys: Sequence[int] = range(7),
    members: Sequence[PrivateKey] | None = None,
    **parameters: Any,
) -> Any:
    """Run a scenario with nodes of the first validators. `keys` are their keys."""
    clock = clock or ManualClock()
    parameters = {"blockperiodseconds": 2, "requesttimeoutseconds": 4, **parameters}
    members = KEYS[: nodes if validators is None else validators] if members is None else members
    genesis = authority_genesis(engine, [key.address for key in members], alloc, forks, **parameters)
    with open_network(tmp_path, genesis, [KEYS[index] for index in keys[:nodes]], clock) as opened:
        return run_virtually(story(opened, clock), clock)  # type: ignore[arg-type]


def blocks(node: TestCore) -> list[HashedHeader]:
    found = [node.chain.canonical(number) for number in range(1, node.queries.head_number + 1)]
    return [header for header in found if header is not None]


def rounds(node: TestCore) -> list[int]:
    return [driver_of(node).engine.validators.extra(header.header).round for header in blocks(node)]


@BOTH
def test_i_01_a_lone_validator_makes_a_block_every_period(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        seen: list[float] = []
        node.chain.events.listen(lambda event: seen.append(clock.now()))
        await node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
        async with running(driver_of(node)):
            await asyncio.sleep(9)
        assert [at - START for at in seen] == [2, 4, 6, 8]
        assert [header.timestamp - START for header in blocks(node)] == [2, 4, 6, 8]
        assert rounds(node) == [0, 0, 0, 0]
        assert blocks(node)[0].header.gas_used == 21_000
        assert node.queries.head_state.balance(KEYS[0].address) == 21_000 * GWEI
        assert len(node.pool) == 0
        assert driver_of(node)._vote_store.is_blank, "a single validator stores no votes"

    run_story(tmp_path, engine, story)


@BOTH
def test_a_block_that_was_built_here_is_not_executed_again(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes

        def refuse(*anything: Any) -> Any:
            raise AssertionError("executed a second time")

        node.core.importer._core._execute = refuse  # type: ignore[method-assign]
        await node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
        async with running(driver_of(node)):
            await asyncio.sleep(5)
        assert node.queries.head_number == 2

    run_story(tmp_path, engine, story)


@BOTH
def test_i_02_four_validators_agree_in_round_0_and_take_turns(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        await nodes[0].send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(17)
        for node in nodes:
            assert node.queries.head_number == 8
            assert rounds(node) == [0] * 8
        assert {node.chain.head.hash for node in nodes} == {nodes[0].chain.head.hash}
        made = blocks(nodes[0])
        assert {header.header.coinbase for header in made} == {key.address for key in KEYS[:4]}
        for header in made:
            assert len(driver_of(nodes[0]).engine.validators.extra(header.header).seals) >= 3
        assert sum(header.header.gas_used for header in made) == 21_000

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_i_03_a_missing_proposer_costs_a_round(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(60)
            status = driver_of(nodes[0]).status()
        assert nodes[0].queries.head_number >= 10
        assert set(rounds(nodes[0])) == {0, 1}
        assert {node.chain.head.hash for node in nodes} == {nodes[0].chain.head.hash}
        assert status.disconnected == (KEYS[3].address,)

    run_story(tmp_path, engine, story, nodes=3, validators=4)


@BOTH
def test_i_04_without_a_quorum_nothing_happens_and_the_status_says_why(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes, 2)
        late = driver_of(nodes[2])
        async with running(driver_of(nodes[0]), driver_of(nodes[1])):
            await asyncio.sleep(100)
            status = driver_of(nodes[0]).status()
            assert nodes[0].queries.head_number == 0
            assert status.is_quorum_reachable is False
            assert "No quorum: 3 of 4 validators are needed and 2 are connected." in status.explanation[0]
            wired(nodes)
            async with running(late):
                await asyncio.sleep(130)
        assert nodes[0].queries.head_number >= 5
        assert nodes[2].chain.head.hash == nodes[0].chain.head.hash

    run_story(tmp_path, engine, story, nodes=3, validators=4)


@BOTH
def test_votes_are_on_disk_before_their_message_is_sent(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        checked = []

        for node, wire in zip(nodes, wires, strict=True):
            said = wire.multicast

            def multicast(
                message: BftMessage,
                validators: Collection[Address],
                node: TestCore = node,
                said: Callable[..., None] = said,
            ) -> None:
                durable_votes = driver_of(node)._vote_store.recall(driver_of(node)._protocol)
                assert durable_votes is not None
                assert (durable_votes.height, durable_votes.round) == (message.height, message.round)
                if isinstance(message, Commit):
                    assert durable_votes.prepared is not None
                    assert durable_votes.prepared.digest == message.digest
                checked.append(message)
                said(message, validators)

            wire.multicast = multicast  # type: ignore[method-assign]
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(5)
        assert nodes[0].queries.head_number == 2
        assert any(isinstance(message, Proposal) for message in checked)

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_i_07_a_restarted_validator_continues_after_its_stored_votes(tmp_path: Path, engine: str) -> None:
    clock = ManualClock()
    prepared: list[bytes] = []

    async def before(nodes: list[TestCore], clock: ManualClock) -> None:
        """Let all validators prepare block 1, but drop every commit."""
        for wire in wired(nodes):
            said = wire.multicast

            def multicast(
                message: BftMessage,
                validators: Collection[Address],
                wire: Wire = wire,
                said: Callable[..., None] = said,
            ) -> None:
                if isinstance(message, Commit):
                    wire.is_cut = True
                said(message, validators)

            wire.multicast = multicast  # type: ignore[method-assign]
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(3)
        assert [node.queries.head_number for node in nodes] == [0, 0, 0, 0]
        prepared.extend(driver_of(node)._machine._durable_votes.prepared.block.hash for node in nodes)  # type: ignore[union-attr]
        assert len(set(prepared)) == 1

    async def after(nodes: list[TestCore], clock: ManualClock) -> None:
        for node in nodes:
            durable_votes = driver_of(node)._machine._durable_votes
            assert durable_votes is not None
            assert durable_votes.prepared is not None
            assert durable_votes.resume_round == 1
        wired(nodes)
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(30)
        assert blocks(nodes[0])[0].hash == prepared[0], "the very block that somebody may have committed"
        assert rounds(nodes[0])[0] >= 1
        assert {node.chain.canonical(1).hash for node in nodes} == {prepared[0]}  # type: ignore[union-attr]

    run_story(tmp_path, engine, before, nodes=4, clock=clock)
    run_story(tmp_path, engine, after, nodes=4, clock=clock)


SPOILED: dict[str, Callable[[BftEngine, Header], Header]] = {
    "wrong parent": lambda engine, header: replace(header, parent_hash=b"\1" * 32),
    "bad state root": lambda engine, header: replace(header, state_root=b"\1" * 32),
    "wrong validator list": lambda engine, header: replace(
        header,
        extra_data=engine.protocol(1).encode_extra(
            replace(engine.validators.extra(header), validators=(KEYS[0].address,)), ExtraForm.FULL
        ),
    ),
    "timestamp five seconds ahead": lambda engine, header: replace(header, timestamp=header.timestamp + 5),
}


@BOTH
@pytest.mark.parametrize("fault", list(SPOILED))
def test_i_11_a_bad_proposal_gets_no_prepare_and_a_round_change_follows(
    tmp_path: Path, engine: str, fault: str
) -> None:
    """The proposer of round 0 is Byzantine: its block has one fault, and its signatures are valid."""

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        liar, honest = driver_of(nodes[0]), nodes[1:]
        built = await nodes[0].core.assembler.assemble_on(
            nodes[0].chain.head, nodes[0].core.assembler.preferences(START + 2), 1.0
        )
        spoiled = SPOILED[fault](liar.engine, built.header)
        block = liar.engine.candidate(built.body.encode_block(spoiled.encode()))
        proposal = KeyMessageFactory(liar._protocol, KEYS[0]).proposal(1, 0, block, None)
        async with running(*map(driver_of, honest)):
            await asyncio.sleep(2.1)
            for node in honest:
                driver_of(node).received(proposal.raw, KEYS[0].address)
            await asyncio.sleep(1)
            said = [message for wire in wires[1:] for message in wire.sent]
            assert said == [], "nobody prepares it, and nobody gives up the round before its time"
            notes = [note for node in honest for note in driver_of(node).status().notes]
            assert len(notes) == 3
            assert all("refused" in note for note in notes)
            await asyncio.sleep(4)
        first = [message for wire in wires[1:] for message in wire.sent if message.round == 1]
        assert sum(isinstance(message, RoundChange) for message in first) == 3
        assert rounds(nodes[1])[0] == 1
        assert blocks(nodes[1])[0].header.coinbase == KEYS[1].address

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
@pytest.mark.parametrize("since", [0, 3], ids=["from the start", "after a transition"])
def test_i_18_a_time_out_that_does_not_exceed_the_period_is_warned_about_once(
    tmp_path: Path, engine: str, since: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        async with running(driver_of(nodes[0])):
            await asyncio.sleep(60)
        assert nodes[0].queries.head_number > 3

    period = 2 if since else 6
    forks = {"transitions": {engine: [{"block": since, "blockperiodseconds": 6}]}} if since else None
    run_story(tmp_path, engine, story, forks=forks, blockperiodseconds=period, requesttimeoutseconds=6)
    warned = [record.getMessage() for record in caplog.records if "does not exceed" in record.getMessage()]
    # QBFT gives no warning, because its round timeout starts when the block is due
    assert len(warned) == (1 if engine == "ibft2" else 0)


@BOTH
def test_validators_are_voted_in_and_join_at_the_next_height(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        first, second = nodes
        first.chain.events.listen(
            lambda event: asyncio.ensure_future(follow(second, event.blocks)) and None  # type: ignore[func-returns-value]
        )
        proposals = driver_of(first).proposals
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(3)
            assert driver_of(second).status().phase is Phase.FOLLOWING
            proposals.propose(KEYS[1].address, True)
            await asyncio.sleep(12)
        engine_ = driver_of(first).engine
        assert engine_.members(first.chain.head, first.chain) == (KEYS[0].address, KEYS[1].address)
        assert KEYS[1].address in {header.header.coinbase for header in blocks(first)}
        assert first.chain.head.hash == second.chain.head.hash

    run_story(tmp_path, engine, story, nodes=2, validators=1)


async def follow(node: TestCore, added: Sequence[Any]) -> None:
    for block in added:
        if node.chain.header(block.header.hash) is None:
            await node.core.importer.import_block(block)


@BOTH
def test_consensus_stops_and_rejoins_as_the_operator_says(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        service = asyncio.create_task(node.mining.run(lambda: None))
        node.mining.start()
        await asyncio.sleep(5)
        node.mining.stop()
        await asyncio.sleep(20)
        assert node.queries.head_number == 2
        assert driver_of(node).status().phase is Phase.STOPPED
        node.mining.start()
        await asyncio.sleep(1)
        assert [header.timestamp - START for header in blocks(node)] == [2, 4, 25]
        service.cancel()
        await asyncio.wait({service})

    run_story(tmp_path, engine, story)


def test_q_08_empty_blocks_come_at_their_own_longer_period(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        async with running(driver_of(node)):
            await asyncio.sleep(21)
            assert [header.timestamp - START for header in blocks(node)] == [10, 20]
            await node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
            await asyncio.sleep(3)
        assert node.queries.head_number == 3
        assert node.chain.head.timestamp - START <= 23

    run_story(tmp_path, "qbft", story, xemptyblockperiodseconds=10, requesttimeoutseconds=20)


def test_q_06_a_contract_names_the_validators(tmp_path: Path) -> None:
    contract = "cc" * 20
    # this contract returns the address in slot 0 as a list (address[])
    code = "0x6020600052600160205260005460405260606000f3"
    slot = {"0x00": "0x" + KEYS[0].address.hex()}
    alloc = {contract: {"balance": "0x0", "code": code, "storage": slot}}

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        driver_of(node).proposals.propose(KEYS[1].address, True)
        async with running(driver_of(node)):
            await asyncio.sleep(5)
        assert node.queries.head_number == 2
        extra = driver_of(node).engine.validators.extra(node.chain.head.header)
        assert (extra.validators, extra.vote) == ((), None)
        assert driver_of(node).engine.members(node.chain.head, node.chain) == (KEYS[0].address,)

    run_story(tmp_path, "qbft", story, alloc=alloc, validatorcontractaddress="0x" + contract, nodes=1, validators=0)


def test_q_06_a_validator_that_a_transaction_adds_takes_part_from_the_next_block_on(tmp_path: Path) -> None:
    contract = bytes([0xCC]) * 20
    # given 32 bytes, this contract stores them in slot 1. Without input, it returns slots 0 and 1 as address[], slot 1
    # only if set.
    code = (
        "0x36602014602d57602060005260015415156001018060205260005460405260015460605260051b6040016000f35b60003560015500"
    )
    accounts = {contract.hex(): {"balance": "0x0", "code": code, "storage": {"0x0": word(KEYS[0])}}}

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        first, second = nodes
        first.chain.events.listen(
            lambda event: asyncio.ensure_future(follow(second, event.blocks)) and None  # type: ignore[func-returns-value]
        )
        addition = bytes(12) + KEYS[1].address
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(4.5)  # wait until the second node has seen a block that was made while it is online
            assert first.queries.head_number == 2
            await first.send(
                fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI, to=contract, gas=100_000, data=addition)
            )
            await asyncio.sleep(2)
            assert first.queries.head_number == 3
            quorum = driver_of(first).status().quorum, driver_of(first).status().validators
            assert quorum == (2, (KEYS[0].address, KEYS[1].address)), "from the block after the transaction on"
            await asyncio.sleep(8)
        engine = driver_of(first).engine
        made = blocks(first)
        assert len(made) == 7
        assert [header.header.coinbase for header in made] == [KEYS[n].address for n in (0, 0, 0, 1, 0, 1, 0)]
        for header in made:
            extra = engine.validators.extra(header.header)
            assert (extra.validators, extra.vote) == ((), None)
            assert len(extra.seals) == (1 if header.number <= 3 else 2)
        assert any(isinstance(message, Proposal) for message in wires[1].sent)

    run_story(
        tmp_path, "qbft", story, alloc=accounts, nodes=2, validators=0, validatorcontractaddress="0x" + contract.hex()
    )


def word(key: PrivateKey) -> str:
    return "0x" + key.address.hex().rjust(64, "0")


def test_consensus_pauses_when_the_contract_names_no_validator(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        async with running(driver_of(node)):
            await asyncio.sleep(5)
            status = driver_of(node).status()
        assert node.queries.head_number == 0
        assert "validators of block 1 cannot be found out" in status.explanation[0]

    run_story(tmp_path, "qbft", story, validatorcontractaddress="0x" + "cc" * 20, nodes=1, validators=0)


def test_a_contract_that_does_not_answer_is_asked_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes

        def busy(header: HashedHeader, contract: Address) -> Sequence[Address]:
            if clock.now() < START + 12:
                raise InvalidHeader("validators of the contract", "no answer in time")
            return (KEYS[0].address,)

        driver_of(node).engine.validators.contract_reader = busy
        async with running(driver_of(node)):
            await asyncio.sleep(11)
            assert node.queries.head_number == 0
            assert driver_of(node).status().phase is Phase.STOPPED
            await asyncio.sleep(10)
        assert node.queries.head_number >= 3

    run_story(tmp_path, "qbft", story, validatorcontractaddress="0x" + "cc" * 20, nodes=1, validators=0)
    assert caplog.text.count("consensus paused height=0") == 1


def test_the_reward_and_the_fees_go_where_the_network_says(tmp_path: Path) -> None:
    beneficiary = bytes([7]) * 20

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        await node.send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
        async with running(driver_of(node)):
            await asyncio.sleep(3)
        assert node.queries.head_state.balance(beneficiary) == 21_000 * GWEI + 5000
        assert node.queries.head_state.balance(KEYS[0].address) == 0

    run_story(tmp_path, "ibft2", story, blockreward="5000", miningbeneficiary="0x" + beneficiary.hex())


@BOTH
def test_what_is_no_message_is_an_error_of_the_peer(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        driver = driver_of(nodes[0])
        junk = RawMessage(driver._protocol.signed_parts().style.codes[0], b"\xc0")
        driver.received(junk, None)  # the driver has not started, so it ignores the message
        async with running(driver):
            await asyncio.sleep(1)
            with pytest.raises(DecodeError):
                driver.received(junk, None)

    run_story(tmp_path, engine, story)


@BOTH
def test_messages_of_later_heights_are_a_reason_to_catch_up(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        async with running(*map(driver_of, nodes[:3])):
            await asyncio.sleep(4.5)
            async with running(driver_of(nodes[3])):
                await asyncio.sleep(4)
        assert max(wires[3].wanted) >= 2
        assert nodes[3].queries.head_number == 0

    run_story(tmp_path, engine, story, nodes=4)


def test_q_09_a_network_moves_from_ibft2_to_qbft(tmp_path: Path) -> None:
    extra = extra_data([KEYS[0].address], ExtraDataType.IBFT_EXTRA_DATA).hex()
    genesis = parse_genesis(
        '{"config":{"chainId":7,"londonBlock":0,"ibft2":{"blockperiodseconds":2,"requesttimeoutseconds":4},'
        '"qbft":{"startblock":3,"blockperiodseconds":1,"requesttimeoutseconds":4}},'
        f'"timestamp":"{hex(START)}","difficulty":"0x1","gasLimit":"0x1c9c380","extraData":"0x{extra}"}}'
    )
    clock = ManualClock()

    profiles: list[WireProfile] = []

    async def story() -> None:
        driver = driver_of(node)

        class BesuPeers(Wire):
            """Peers that report the client Besu 26.2 once the driver knows the validators."""

            def clients(self) -> Iterable[str]:
                return ["besu/v26.2.0/linux-x86_64/openjdk-java-25"] if driver.validators else []

        driver._gossip = BesuPeers(KEYS[0].address, {})
        node.chain.events.listen(lambda event: profiles.append(driver._factory.profile))
        async with running(driver):
            await asyncio.sleep(7.5)
        assert [header.timestamp - START for header in blocks(node)] == [2, 4, 5, 6, 7]
        assert driver._protocol.name == "qbft"
        assert profiles[1:] == [WireProfile.BAL] * 4

    with open_network(tmp_path, genesis, KEYS[:1], clock) as (node,):
        run_virtually(story(), clock)


@BOTH
def test_periods_below_a_second_are_kept(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        seen: list[float] = []
        node.chain.events.listen(lambda event: seen.append(round(clock.now() - START, 3)))
        async with running(driver_of(node)):
            await asyncio.sleep(1.1)
        assert seen == [0.25, 0.5, 0.75, 1.0]

    run_story(tmp_path, engine, story, xblockperiodmilliseconds=250)


@BOTH
def test_four_validators_keep_a_period_of_200_milliseconds(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        seen: list[float] = []
        nodes[0].chain.events.listen(lambda event: seen.append(clock.now() - START))
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(10)
        # 46 blocks in 10 seconds show that a period begins when the proposal arrives, not when its block is imported
        assert len(seen) >= 46
        assert set(rounds(nodes[0])) == {0}
        timestamps = [header.timestamp for header in blocks(nodes[0])]
        assert timestamps == sorted(timestamps)
        assert all(stamp <= START + at for stamp, at in zip(timestamps, seen, strict=True))

    run_story(tmp_path, engine, story, nodes=4, blockperiodmilliseconds=200, requesttimeoutseconds=1)


def test_idle_validators_do_not_change_rounds_during_a_long_empty_block_period(tmp_path: Path) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(62)
            assert [header.timestamp - START for header in blocks(nodes[0])] == [30, 60]
            raw = fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI)
            for node in nodes:
                await node.send(raw)
            await asyncio.sleep(0.3)
        assert nodes[0].chain.head.header.gas_used == 21_000
        assert rounds(nodes[0]) == [0, 0, 0]

    settings = {"blockperiodmilliseconds": 200, "emptyblockperiodseconds": 30, "requesttimeoutseconds": 1}
    run_story(tmp_path, "qbft", story, nodes=4, **settings)


@BOTH
def test_validators_agree_on_blocks_of_the_latest_forks(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        await nodes[0].send(fee_transaction(DEV_KEYS[0], 0, max_fee=100 * GWEI, tip=GWEI))
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(13)
        assert {node.queries.head_number for node in nodes} == {6}
        assert rounds(nodes[0]) == [0] * 6
        header = nodes[0].chain.head.header
        assert header.parent_beacon_block_root == bytes(32)
        assert header.requests_hash is not None
        assert header.requests_hash.hex().startswith("e3b0c442")

    forks = {"shanghaiTime": 0, "cancunTime": 0, "pragueTime": START + 5, "osakaTime": START + 9}
    run_story(tmp_path, engine, story, nodes=4, forks=forks)


@BOTH
def test_after_a_restart_validators_are_found_without_going_back_to_the_epoch_block(
    tmp_path: Path, engine: str
) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        async with running(driver_of(node)):
            await asyncio.sleep(2 * (CHECKPOINT_DISTANCE + 3) + 1)
        fresh = BftEngine(node.chain.spec)
        steps = Steps(node.chain)
        assert fresh.members(node.chain.head, steps) == (KEYS[0].address,)
        assert steps.taken == 3

    run_story(tmp_path, engine, story)


@BOTH
def test_a_clock_that_is_set_back_does_not_keep_validators_in_a_round(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes, 3)
        async with running(*map(driver_of, nodes[:3])):
            await asyncio.sleep(2.5)
            clock.wall -= 600
            await asyncio.sleep(12)
            status = driver_of(nodes[0]).status()
            assert status.round is not None
            assert status.round >= 1, "time-outs are lengths of time, not times"
            await asyncio.sleep(700)
        assert nodes[0].queries.head_number >= 5, "the chain goes on when the clock is where it was"

    # the first proposer of this scenario is offline
    run_story(tmp_path, engine, story, nodes=4, keys=(1, 2, 3, 0))


@BOTH
def test_a_clock_that_is_set_forward_makes_the_block_due(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        (node,) = nodes
        async with running(driver_of(node)):
            await asyncio.sleep(5)
            clock.wall += 100
            await asyncio.sleep(1.1)
            assert node.queries.head_number == 1
            assert 104 <= node.chain.head.timestamp - START <= 107

    run_story(tmp_path, engine, story, blockperiodseconds=60, requesttimeoutseconds=120)


@BOTH
def test_blocks_of_rounds_that_came_to_nothing_are_let_go(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        for node, wire in zip(nodes, wires, strict=True):
            driver_of(node)._tuning = BftTuning(max_timeout_s=2.0)
            said = wire.multicast

            def multicast(message: BftMessage, to: Collection[Address], said: Callable[..., None] = said) -> None:
                if not isinstance(message, Prepare) or clock.now() > START + 100:
                    said(message, to)

            wire.multicast = multicast  # type: ignore[method-assign]
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(99)
            assert nodes[0].queries.head_number == 0
            status = driver_of(nodes[0]).status()
            assert status.round is not None
            assert status.round > 30
            assert max(len(driver_of(node)._blocks.executed) for node in nodes) == 8
            await asyncio.sleep(10)
        assert min(node.queries.head_number for node in nodes) > 2

    run_story(tmp_path, engine, story, nodes=4, requesttimeoutseconds=2, blockperiodseconds=1)


@BOTH
def test_a_known_block_with_another_body_is_not_taken_for_known(tmp_path: Path, engine: str) -> None:
    """A Byzantine validator proposes a prepared block again, with the same hash but an additional transaction. The
    proposal gets no vote.
    """

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes)
        driver = driver_of(nodes[2])
        protocol = driver._protocol
        assembler = nodes[0].core.assembler
        built = await assembler.assemble_on(nodes[0].chain.head, assembler.preferences(START + 2), 1.0)
        block = driver.engine.candidate(built.body.encode_block(built.header.encode()))
        factories = [KeyMessageFactory(protocol, key) for key in KEYS[:4]]
        first = factories[0].proposal(1, 0, block, None)
        others = (1, 3) if engine == "ibft2" else (0, 1, 3)
        prepares = tuple(factories[index].prepare(1, 0, block.digest) for index in others)
        proof = PreparedRound(0, block, prepares, first.signed)
        changes = RoundChanges()
        for index in (0, 1, 3):
            changes.add(factories[index].round_change(1, 1, proof))
        again = factories[0].with_round(block, 1)
        header = rlp.split_list(again.encoded, 1024)[0]
        poison = rlp.list_of([header, rlp.list_of([legacy_transaction(DEV_KEYS[0], 0)]), rlp.EMPTY_LIST])
        poisoned = protocol.candidate(poison)
        assert (poisoned.hash, poisoned.digest) == (block.hash, again.digest)
        async with running(driver):
            await asyncio.sleep(2.1)
            driver.received(first.raw, KEYS[0].address)
            await asyncio.sleep(0.1)
            assert [type(message) for message in wires[2].sent] == [Prepare]
            driver.received(factories[1].proposal(1, 1, poisoned, changes.certificate(1)).raw, KEYS[1].address)
            await asyncio.sleep(0.1)
            assert [type(message) for message in wires[2].sent] == [Prepare], "no vote for what cannot be executed"
            assert "body of another block" in driver.status().notes[-1]

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_i_24_transitions_take_effect_at_their_blocks(tmp_path: Path, engine: str) -> None:
    """Transitions change the validators at blocks 1 and 5, and later the block period, the reward and the
    beneficiary.
    """
    friend = bytes([9]) * 20
    listed = ["0x" + key.address.hex() for key in KEYS[:2]]
    transitions = [
        {"block": 1, "validators": listed[:1]},
        {"block": 3, "blockperiodseconds": 5, "blockreward": "0x64"},
        {"block": 4, "miningbeneficiary": "0x" + friend.hex()},
        {"block": 5, "validators": listed, "blockperiodseconds": 1},
    ]

    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        first, second = nodes
        first.chain.events.listen(
            lambda event: asyncio.ensure_future(follow(second, event.blocks)) and None  # type: ignore[func-returns-value]
        )
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(18.5)
        made = blocks(first)
        assert [header.timestamp - START for header in made] == [2, 4, 9, 14, 15, 16, 17, 18]
        assert [len(driver_of(first).engine.validators.extra(header.header).validators) for header in made] == (
            [1] * 4 + [2] * 4
        )
        assert {header.header.coinbase for header in made[:4]} == {KEYS[0].address}
        assert {header.header.coinbase for header in made[4:]} == {KEYS[0].address, KEYS[1].address}
        state = first.queries.head_state
        assert (state.balance(KEYS[0].address), state.balance(friend)) == (100, 5 * 100)
        assert second.chain.head.hash == first.chain.head.hash

    # genesis lists an offline validator, but the transition at block 1 replaces it
    forks = {"transitions": {engine: transitions}}
    run_story(tmp_path, engine, story, nodes=2, forks=forks, members=KEYS[6:], requesttimeoutseconds=10)


# --- starts, stops and lost disks ---------------------------------------------------------------


@BOTH
def test_the_round_of_an_offline_proposer_costs_next_to_nothing(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes, 3)
        drivers = [driver_of(node) for node in nodes[:3]]
        seen: list[float] = []
        nodes[0].chain.events.listen(lambda event: seen.append(clock.now() - START))
        async with running(*drivers):
            await asyncio.sleep(0.5)
            for driver in drivers:
                driver.disconnected(KEYS[3].address)
            await asyncio.sleep(25)
        assert [round(at) for at in seen] == list(range(2, 25, 2)), "four times it was the turn of the missing one"
        assert max(rounds(nodes[0])) == 1

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_a_new_connection_gets_the_messages_of_this_round(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes, 1)
        driver = driver_of(nodes[0])
        async with running(driver):
            await asyncio.sleep(20)
            driver.connected(KEYS[1].address)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        (message, to) = wires[0].repeated[-1]
        assert to == KEYS[1].address
        assert isinstance(message, RoundChange)
        assert message.round > 0

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_a_validator_without_memory_only_follows_until_a_block_was_made_since(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires = wired(nodes, 3)
        late = nodes[3]
        async with running(*map(driver_of, nodes[:3])):
            await asyncio.sleep(9)
            # the fourth validator starts with an empty disk and gets the chain from the other validators
            wires += wired(nodes)
            for header in blocks(nodes[0]):
                raw = nodes[0].chain.store.block(header.hash)
                assert raw is not None
                await follow(late, [decode_block(raw, driver_of(late).engine)])
            async with running(driver_of(late)):
                await asyncio.sleep(0.5)
                assert driver_of(late).status().phase is Phase.LOST_STATE
                nodes[0].chain.events.listen(
                    lambda event: asyncio.ensure_future(follow(late, event.blocks)) and None  # type: ignore[func-returns-value]
                )
                await asyncio.sleep(20)
                assert driver_of(late).status().phase is not Phase.LOST_STATE
        assert any(isinstance(message, Prepare | Commit) for message in wires[-1].sent)
        first = wires[-1].sent[0]
        assert blocks(late)[first.height - 2].timestamp > START + 11, "its parent was made after the fourth came back"
        assert rounds(late)[-3:] == [0, 0, 0]

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_messages_that_cannot_be_read_are_counted(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        driver = driver_of(nodes[0])
        async with running(driver):
            await asyncio.sleep(1)
            for _ in range(3):
                with pytest.raises(DecodeError):
                    driver.received(RawMessage(0, b"\xc0"), None)
            assert driver.counts.malformed == 3

    run_story(tmp_path, engine, story, nodes=1)


@BOTH
def test_unknown_peers_fill_only_a_part_of_the_queue(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        driver, key = driver_of(nodes[0]), PrivateKey(b"\x55" * 32)  # this key is a public test key
        unknown, validator = KeyMessageFactory(driver._protocol, key), KeyMessageFactory(driver._protocol, KEYS[1])
        async with running(driver):
            await asyncio.sleep(1)
            for number in range(40):
                driver.received(unknown.prepare(2, 0, number.to_bytes(32, "big")).raw, key.address)
            assert driver.counts.dropped == 30
            for number in range(40):
                driver.received(validator.prepare(2, 0, number.to_bytes(32, "big")).raw, KEYS[1].address)
            assert driver.counts.dropped == 40, "30 messages of the validator were accepted"

    run_story(tmp_path, engine, story, nodes=2, messagequeuelimit=40)


@BOTH
def test_a_large_message_that_cannot_be_read_is_counted_later(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        driver, blamed = driver_of(nodes[0]), list[bytes | None]()
        driver.inbox.malformed = blamed.append
        async with running(driver):
            await asyncio.sleep(1)
            driver.received(RawMessage(0, bytes(100_000)), KEYS[1].address)
            driver.received(RawMessage(0, b"\xc0"), KEYS[1].address)
            await asyncio.sleep(1)
            assert driver.counts.malformed == 2
            assert blamed == [KEYS[1].address] * 2

    run_story(tmp_path, engine, story, nodes=1)


@BOTH
def test_nothing_is_signed_below_the_height_of_peers_for_one_timeout(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires, driver = wired(nodes), driver_of(nodes[0])
        driver.guard.watch(lambda: [(KEYS[1].address, 7)])
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(3.9)
            assert driver.status().phase is Phase.WAITING_FOR_BLOCKS
            assert not wires[0].sent
            await asyncio.sleep(0.2)
            assert driver.status().phase is not Phase.WAITING_FOR_BLOCKS

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_nothing_is_signed_while_validators_connect(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wires, driver = wired(nodes), driver_of(nodes[0])
        connecting = [KEYS[1].address]
        driver.guard.watch(lambda: (), connecting=lambda: connecting)
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(12)
            assert driver.status().phase is Phase.WAITING_FOR_BLOCKS
            assert not wires[0].sent
            connecting.clear()
            await asyncio.sleep(4.2)
            assert driver.status().phase is not Phase.WAITING_FOR_BLOCKS

    run_story(tmp_path, engine, story, nodes=4)


@BOTH
def test_a_validator_begins_as_soon_as_a_quorum_reports_its_own_height(tmp_path: Path, engine: str) -> None:
    async def story(nodes: list[TestCore], clock: ManualClock) -> None:
        wired(nodes)
        driver = driver_of(nodes[0])
        heights: dict[Address, int] = {}
        driver.guard.watch(heights.items)
        async with running(*map(driver_of, nodes)):
            await asyncio.sleep(0.5)
            assert driver.status().phase is Phase.WAITING_FOR_BLOCKS
            heights |= {key.address: 0 for key in KEYS[1:3]}
            await asyncio.sleep(0.2)
            assert driver.status().phase is not Phase.WAITING_FOR_BLOCKS

    run_story(tmp_path, engine, story, nodes=4)
