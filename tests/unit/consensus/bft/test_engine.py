"""Tests header rules of IBFT 2.0 and QBFT, on real headers of other clients and of Ophion (scenarios I-11,
I-25, I-17).
"""

from __future__ import annotations

import json
import random

import pytest
from msgspec.structs import replace

from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import BftExtraData, ExtraForm
from ophion.consensus.bft.message_factory import KeyMessageFactory
from ophion.consensus.bft.signatures import seal_author
from ophion.consensus.engine import Finality, Tip, Vote
from ophion.consensus.validator_votes import LocalProposals
from ophion.errors import GenesisError, InvalidBlock, InvalidHeader, OphionError
from ophion.native.crypto import keccak256
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.testing.bft_chain import bft_genesis_text, sealed_blocks
from tests.unit.consensus.bft.golden import K1, K2, K3, K4, bft_header, unhex
from tests.unit.consensus.bft.ledger import KEYS, Ledger, genesis_of

PROTOCOLS = ("ibft2", "qbft")
both = pytest.mark.parametrize("protocol", PROTOCOLS)
ADDRESSES = tuple(key.address for key in KEYS)


def ledger(protocol: str, **config: object) -> Ledger:
    return Ledger(genesis_of(protocol, ADDRESSES, **config))


# --- real headers (consensus.md 7.2) ------------------------------------------------------------

REAL = {
    "ibft2": {
        "number": 5618555,
        "parent_hash": "fbdbd8d2d0ac5f14bd5fa90e547fe6f1d15019c724f8e7b60972d381cd5d9cf8",
        "coinbase": "c9577e7945db22e38fc060909f2278c7746b0f9b",
        "state_root": "5017cfa3b0247e35197215ae8d610265ffebc8edca8ea66d6567eb0adecda867",
        "gas_limit": 0x1FFFFFFFFFFFFF,
        "timestamp": 0x62BD0E1A,
        "round": 0,
        "validators": [
            "319fa8f1bc4e53410e92d10d918659b16540e60a",
            "5a573efb304d04c1224cd012313e827eca5dce5d",
            "a9c831c5a268031176ebf5f3de5051e8cba0dbfe",
            "c9577e7945db22e38fc060909f2278c7746b0f9b",
        ],
        "seals": [
            "a6946f2d16f68338cbcbd8b117374ab421128ce422467088456bceba9d70c341"
            "06128e6d4564659cf6776c08a4186063c0a05f7cffd695c10cf26a6f301b67f800",
            "2b782100c18c35102dc0a37ece1a152544f04ad7dc1868d18a9570f744ace608"
            "70f822f53d35e89a2ea9709ccbf1f4a25ee5003944faa845d02dde0a41d5704601",
            "d53caebd6c8a82456e85c2806a9e08381f959a31fb94a77e58f00e38ad97b2e0"
            "355b8519ab2122662cbe022f2a4ef7ff16adc0b2d5dcd123181ec79705116db300",
        ],
        "digest": "a7c543629c29799067753838e739a05add15592fde3ea9533f13d8103cfc50b9",
        "committers": ["319f", "c957", "5a57"],
        "hash": "f28064673c3cdf745d7025987c284ecdc89ef735ec67884f99122c21c71ccd76",
    },
    "qbft": {
        "number": 7528,
        "parent_hash": "0af93e70b1c6d3974a88a42eb70bb61adbd523bfac0c83027ba4637c52746a0f",
        "coinbase": "ee3353e587cfa91625a1adaef308a726de3803d3",
        "state_root": "166ed98eea93ab2b6f6b1a425526994adc2d675bf9a0d77d600ed1e02d8f77df",
        "gas_limit": 0x47B760,
        "timestamp": 0x6640618B,
        "round": 1,
        "validators": [
            "647bfdd19655e51e69d35454ff3a92f8828e6302",
            "a5c8416b9d13417b45b45ada76408f39d1e504ef",
            "b92e91f4dcc9d28503be521afa2a8fbf3c1acf60",
            "ee3353e587cfa91625a1adaef308a726de3803d3",
        ],
        "seals": [
            "bc7633fd65570f610a595086e9a34e5bf6aacfb67b8f8cd01852e6b285147f04"
            "6a50577b49378b86723ac9b456ef59ef7ab57cda7139d807f10f58e8cb10c67600",
            "ad1defc2b0b4a48158cff24778bb5ba4d9f373c171022ab0a42e37bdb0d40257"
            "18434d303a8d94df56ef9ad5219be9f27b2f67179a7fb82d3323dde29546f9f701",
            "e233d3670dd97c715f72b440eeb1ccb1e22c8c23f6ab470c46c99c2d0ee6509f"
            "0341a42e0e4569782557e93c3815e8ca4294043595f69a90f73f135de8ecf41e00",
        ],
        "digest": "75ea184f58cd3f0ef89032a069df01f07ec524ef3a85cf6d3e424d62130c0a32",
        "committers": ["647b", "ee33", "a5c8"],
        "hash": "502568a07cc2303558ed8eea495d61255946a14c46be5ead61cdc737bdeaaf42",
    },
}


class RealChain:
    """Two headers: an epoch block that lists the validators, then a real header of another client."""

    def __init__(self, protocol: str) -> None:
        real = REAL[protocol]
        options = {"blockperiodseconds": 1, "epochlength": int(real["number"]) - 1}
        self.engine = BftEngine(genesis_of(protocol, ADDRESSES, options).spec)
        variant = self.engine.protocol(1)
        self.validators = tuple(unhex(address) for address in real["validators"])
        seals = tuple(unhex(seal) for seal in real["seals"])
        extra = BftExtraData(bytes(32), self.validators, None, int(real["round"]), seals)
        self.header = bft_header(
            number=real["number"],
            parent_hash=unhex(str(real["parent_hash"])),
            coinbase=unhex(str(real["coinbase"])),
            state_root=unhex(str(real["state_root"])),
            gas_limit=real["gas_limit"],
            timestamp=real["timestamp"],
            extra_data=variant.encode_extra(extra, ExtraForm.FULL),
        )
        before = replace(
            self.header,
            number=self.header.number - 1,
            timestamp=self.header.timestamp - 5,
            extra_data=variant.encode_extra(BftExtraData(bytes(32), self.validators), ExtraForm.FULL),
        )
        self.parent = HashedHeader(before, self.header.parent_hash)

    def header_of(self, _hash: bytes) -> None:
        return None

    def verify(self, header: Header) -> None:
        chain = Ledger(genesis_of("ibft2", ADDRESSES))
        self.engine.verify(self.engine.hashed(header), self.parent, chain, self.header.timestamp)


@both
def test_golden_7_2_real_headers_hash_to_their_published_hashes_and_verify(protocol: str) -> None:
    real, chain = REAL[protocol], RealChain(protocol)
    assert chain.engine.hashed(chain.header).hash.hex() == real["hash"]
    digest = chain.engine.signing_hash(chain.header)
    assert digest.hex() == real["digest"]
    authors = [seal_author(digest, unhex(seal)) for seal in real["seals"]]
    assert [author.hex()[:4] for author in authors if author is not None] == real["committers"]
    chain.verify(chain.header)


@both
def test_golden_7_2_a_change_of_any_byte_of_a_real_header_is_refused(protocol: str) -> None:
    chain = RealChain(protocol)
    encoded = chain.header.encode()
    for position in range(len(encoded)):
        changed = bytearray(encoded)
        changed[position] ^= 0x01
        with pytest.raises(OphionError):
            chain.verify(Header.decode(bytes(changed)))


# --- rules --------------------------------------------------------------------------------------


@both
def test_a_chain_of_own_blocks_verifies(protocol: str) -> None:
    chain = ledger(protocol)
    for number in range(1, 6):
        header = chain.add(KEYS[(number - 1) % 4])
        assert header.number == number
        assert header.timestamp == 2 * number
    assert chain.engine.finality is Finality.IMMEDIATE
    assert chain.engine.name == protocol


BAD = {
    "parent hash": {"parent_hash": bytes(32)},
    "number": {"number": 7},
    "gas used": {"gas_used": 0x47B761},
    "gas limit": {"gas_limit": 0x47B760 * 2},
    "timestamp": {"timestamp": 1},
    "mix hash": {"mix_hash": bytes(32)},
    "ommers hash": {"ommers_hash": bytes(32)},
    "difficulty": {"difficulty": 2},
    "coinbase": {"coinbase": bytes(20)},
    "base fee per gas": {"base_fee_per_gas": 7},
}


@both
@pytest.mark.parametrize("rule", list(BAD))
def test_i_11_each_rule_of_a_proposal_is_enforced(protocol: str, rule: str) -> None:
    chain = ledger(protocol)
    header = chain.draft(KEYS[0], **BAD[rule])
    with pytest.raises(InvalidHeader) as caught:
        chain.engine.verify_proposal(chain.engine.hashed(header), chain.head, chain, 2)
    assert caught.value.rule == rule


@both
def test_i_17_a_timestamp_more_than_a_second_ahead_may_be_fine_later(protocol: str) -> None:
    chain = ledger(protocol)
    header = chain.engine.hashed(chain.draft(KEYS[0], at=100))
    chain.engine.verify_proposal(header, chain.head, chain, 99)
    with pytest.raises(InvalidHeader) as caught:
        chain.engine.verify_proposal(header, chain.head, chain, 98)
    assert caught.value.transient


def test_only_ibft2_looks_at_the_nonce() -> None:
    odd = b"\0" * 7 + b"\1"
    chain = ledger("qbft")
    chain.engine.verify_proposal(chain.engine.hashed(chain.draft(KEYS[0], nonce=odd)), chain.head, chain, 2)
    chain = ledger("ibft2")
    with pytest.raises(InvalidHeader):
        chain.engine.verify_proposal(chain.engine.hashed(chain.draft(KEYS[0], nonce=odd)), chain.head, chain, 2)


@both
@pytest.mark.parametrize("listed", [ADDRESSES[:3], (*ADDRESSES, bytes(20)), ADDRESSES[::-1], ()])
def test_i_11_another_list_of_validators_is_refused(protocol: str, listed: tuple[bytes, ...]) -> None:
    chain = ledger(protocol)
    extra = chain.engine.protocol(1).encode_extra(BftExtraData(bytes(32), listed), ExtraForm.FULL)
    header = chain.engine.hashed(chain.draft(KEYS[0], extra_data=extra))
    with pytest.raises(InvalidHeader) as caught:
        chain.engine.verify_proposal(header, chain.head, chain, 2)
    assert caught.value.rule == "validators"


@both
def test_malformed_extra_data_is_an_invalid_header(protocol: str) -> None:
    chain = ledger(protocol)
    for data in (b"", b"\xc0", bytes(97)):
        with pytest.raises(InvalidHeader):
            chain.engine.hashed(chain.draft(KEYS[0], extra_data=data))


@both
def test_i_25_any_quorum_of_seals_gives_the_same_hash_and_everything_else_is_refused(protocol: str) -> None:
    chain = ledger(protocol)
    draft = chain.draft(KEYS[0])
    accepted = [chain.sealed(draft, keys) for keys in (KEYS[:3], KEYS[1:], KEYS, KEYS[::-1], (K1, K2, K4))]
    for header in accepted:
        chain.verify(header)
    assert len({header.hash for header in accepted}) == 1
    assert len({keccak256(header.header.encode()) for header in accepted}) == len(accepted)
    outsider_key = type(K1)((99).to_bytes(32, "big"))
    for keys in ((), KEYS[:2], (K1, K2, K2), (K1, K2, outsider_key), (K1, K2, K3, outsider_key), (K1, K2, K3, K3)):
        with pytest.raises(InvalidHeader):
            chain.verify(chain.sealed(draft, keys))


@both
def test_seals_of_another_round_do_not_count(protocol: str) -> None:
    chain = ledger(protocol)
    draft = chain.draft(KEYS[0])
    extra = chain.engine.validators.extra(draft)
    later = replace(draft, extra_data=chain.engine.protocol(1).encode_extra(replace(extra, round=1), ExtraForm.FULL))
    digest = chain.engine.signing_hash(draft)
    assert chain.engine.signing_hash(later) != digest
    moved = chain.engine.hashed(chain.engine.attach(later, [key.sign(digest) for key in KEYS]))
    assert moved.hash == chain.engine.hashed(draft).hash
    with pytest.raises(InvalidHeader):
        chain.verify(moved)
    chain.verify(chain.sealed(later))


@both
def test_the_hash_of_genesis_is_that_of_its_bytes(protocol: str) -> None:
    chain = ledger(protocol)
    assert chain.head.hash == keccak256(chain.head.header.encode())


@both
def test_a_wrong_genesis_is_one_clear_error(protocol: str) -> None:
    engine = BftEngine(genesis_of(protocol, ADDRESSES).spec)
    variant = engine.protocol(0)
    for extra_data, why in (
        (b"", "not the extra data"),
        (bytes(97), "not the extra data"),
        (variant.encode_extra(BftExtraData(bytes(32), ()), ExtraForm.FULL), "at least one validator"),
        (variant.encode_extra(BftExtraData(bytes(32), ADDRESSES[:1] * 2), ExtraForm.FULL), "listed twice"),
    ):
        with pytest.raises(GenesisError, match=why):
            engine.check_genesis(bft_header(number=0, extra_data=extra_data))


@both
def test_x_01_random_capitals_give_the_same_genesis_hash(protocol: str) -> None:
    rng = random.Random(7)
    text = json.dumps(
        {
            "config": {"chainId": 5, "berlinBlock": 0, protocol: {"blockperiodseconds": 3, "epochlength": 77}},
            "gasLimit": "0x47b760",
            "difficulty": "0x1",
            "extraData": "0x" + ledger(protocol).head.header.extra_data.hex(),
        }
    )
    hashes = set()
    for _ in range(10):
        shuffled = "".join(rng.choice((char.upper(), char)) if char not in "x" else char for char in text)
        genesis = parse_genesis(shuffled)
        engine = BftEngine(genesis.spec)
        assert engine.schedule.settings(1, 0).period_s == 3
        hashes.add(engine.hashed(genesis.header(bytes(32))).hash)
    assert len(hashes) == 1


@both
def test_x_02_the_gas_limit_doubles_and_the_base_fee_starts_with_london(protocol: str) -> None:
    chain = ledger(protocol, londonBlock=3)
    for number in range(1, 5):
        header = chain.add(KEYS[number - 1]).header
        assert header.gas_limit == 0x47B760 * (2 if number >= 3 else 1)
    third, fourth = chain.headers[3].header, chain.headers[4].header
    assert third.base_fee_per_gas == 10**9
    assert fourth.base_fee_per_gas == 10**9 - 10**9 // 8


@both
def test_fields_of_later_forks_are_written_and_checked(protocol: str) -> None:
    chain = ledger(protocol, londonBlock=0, shanghaiTime=0, cancunTime=0, pragueTime=4)
    first, second = chain.add(KEYS[0]).header, chain.add(KEYS[1]).header
    assert first.withdrawals_root is not None
    assert first.parent_beacon_block_root == bytes(32)
    assert first.requests_hash is None
    assert second.requests_hash is not None
    assert second.requests_hash.hex().startswith("e3b0c442")


@both
def test_there_are_no_ommers(protocol: str) -> None:
    chain = ledger(protocol)
    chain.engine.verify_ommers(chain.head, [], chain)
    with pytest.raises(InvalidBlock):
        chain.engine.verify_ommers(chain.head, [chain.head.header], chain)


@both
def test_fork_choice_only_goes_forward(protocol: str) -> None:
    chain = ledger(protocol)
    first = chain.add(KEYS[0])
    second = chain.add(KEYS[1])
    rival = chain.engine.hashed(replace(first.header, state_root=b"\1" * 32))
    longer = chain.engine.hashed(replace(second.header, parent_hash=rival.hash))
    chain.side = {rival.hash: rival, longer.hash: longer}

    def tip(header: HashedHeader) -> Tip:
        return Tip(header, header.number + 1)

    assert chain.engine.prefers(tip(first), tip(chain.headers[0]), chain)
    assert chain.engine.prefers(tip(second), tip(chain.headers[0]), chain)
    assert not chain.engine.prefers(tip(first), tip(second), chain)
    assert not chain.engine.prefers(tip(rival), tip(first), chain)
    assert not chain.engine.prefers(tip(longer), tip(first), chain)


# --- rewards, candidates, the machine's view ----------------------------------------------------


@both
def test_reward_and_beneficiary_come_from_the_genesis_file(protocol: str) -> None:
    plain = ledger(protocol)
    header = plain.add(KEYS[0])
    assert plain.engine.author(header) == plain.engine.beneficiary(header) == KEYS[0].address
    assert plain.engine.rewards(header, ()) == []
    friend = bytes(19) + b"\x09"
    options = {"blockreward": "0x10", "miningbeneficiary": "0x" + friend.hex()}
    paid = Ledger(genesis_of(protocol, ADDRESSES, options))
    header = paid.add(KEYS[0])
    assert paid.engine.author(header) == KEYS[0].address
    assert paid.engine.rewards(header, ()) == [(friend, 16)]


@both
def test_a_built_block_becomes_a_proposal_of_any_round_without_changing_its_hash(protocol: str) -> None:
    chain = ledger(protocol)
    header = chain.draft(KEYS[0])
    block = rlp.list_of([header.encode(), rlp.EMPTY_LIST, rlp.EMPTY_LIST])
    first, third = chain.engine.candidate(block), chain.engine.candidate(block, 2)
    assert first.hash == third.hash == chain.engine.hashed(header).hash
    assert (first.round, third.round, first.height) == (0, 2, 1)
    assert first.digest == chain.engine.signing_hash(header)
    proposal = KeyMessageFactory(chain.engine.protocol(1), KEYS[0]).proposal(1, 0, first, None)
    assert chain.engine.protocol(1).decode(proposal.raw).author == KEYS[0].address


@both
def test_the_machine_gets_validators_and_timing_of_the_next_block(protocol: str) -> None:
    options = {"blockperiodseconds": 5, "requesttimeoutseconds": 10, "xemptyblockperiodseconds": 12}
    chain = Ledger(genesis_of(protocol, ADDRESSES, options))
    event = chain.engine.new_head(chain.head, chain, max_timeout_s=30.0)
    assert event.validators == ADDRESSES
    assert event.head.hash == chain.head.hash
    assert event.timing.period_s == 5.0
    assert [event.timing.timeout(number) for number in range(3)] == [10.0, 20.0, 30.0]
    assert event.timing.empty_period_s == (12.0 if protocol == "qbft" else 0.0)


def test_limits_follow_the_protocol_of_the_block() -> None:
    qbft = {"startblock": 5, "futuremessageslimit": 3}
    engine = BftEngine(genesis_of("ibft2", ADDRESSES, {"futuremessageslimit": 9}, qbft=qbft).spec)
    assert [engine.limits(number).future_messages for number in (1, 4, 5)] == [9, 9, 3]


def test_limits_take_the_published_spelling() -> None:
    limits = BftEngine(genesis_of("ibft2", ADDRESSES, {"duplicateMesageLimit": 7}).spec).limits(1)
    assert limits.duplicates == 7
    assert limits.future_messages == 1000


@both
def test_the_vote_of_the_next_block_is_a_useful_one(protocol: str) -> None:
    chain = ledger(protocol)
    proposals = LocalProposals()
    proposals.propose(KEYS[1].address, True)
    assert chain.engine.next_vote(chain.head, KEYS[0].address, proposals, chain) is None
    proposals.propose(KEYS[1].address, False)
    vote = chain.engine.next_vote(chain.head, KEYS[0].address, proposals, chain)
    assert vote == Vote(KEYS[1].address, False)
    chain.add(KEYS[0], vote)
    assert chain.engine.next_vote(chain.head, KEYS[0].address, proposals, chain) is None


@both
def test_looking_ahead_changes_no_verdict(protocol: str) -> None:
    good = [header for header, _ in sealed_blocks(protocol, 4, 5)]
    bad = [header for header, _ in sealed_blocks(protocol, 4, 5, sealers=2)]
    genesis = parse_genesis(bft_genesis_text(protocol, 4))
    for looks_ahead in (False, True):
        chain = Ledger(genesis)
        # the ledger computes no state root, so its genesis hash is wrong: use the parent hash of the first block
        chain.headers[0] = HashedHeader(chain.headers[0].header, good[0].parent_hash)
        if looks_ahead:
            chain.engine.look_ahead([*good, *bad])
        for header, twin in zip(good, bad, strict=True):
            assert header.hash == twin.hash
            with pytest.raises(InvalidHeader, match="committed seals"):
                chain.engine.verify(twin, chain.head, chain, 2**33)
            chain.engine.verify(header, chain.head, chain, 2**33)
            chain.headers.append(header)


def test_looking_ahead_passes_over_what_is_malformed() -> None:
    chain = ledger("ibft2")
    header = HashedHeader(chain.draft(KEYS[0], extra_data=b"\x01"), b"\x01" * 32)
    chain.engine.look_ahead([header])


@both
def test_a_block_that_waits_for_its_time_is_sealed(protocol: str) -> None:
    """The node holds an early block until its timestamp only if the block is sealed. Otherwise an attacker could make
    the node hold blocks that no validator sealed.
    """
    chain = ledger(protocol)
    draft = chain.draft(KEYS[0], at=10_000)
    for keys, is_transient in ((KEYS, True), ((), False)):
        with pytest.raises(InvalidHeader) as caught:
            chain.verify(chain.sealed(draft, keys), now=9_000)
        assert caught.value.transient is is_transient


@both
def test_more_seals_than_validators_are_not_looked_at(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = ledger(protocol)
    header = chain.sealed(chain.draft(KEYS[0]), [*KEYS, *KEYS])

    def looked_at(digest: bytes, seal: bytes) -> bytes:
        raise AssertionError("recovered")

    monkeypatch.setattr(chain.engine, "_recover_seal", looked_at)
    with pytest.raises(InvalidHeader, match="committed seals.*at most 4"):
        chain.verify(header)


@both
def test_what_is_recovered_ahead_is_bounded(protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ophion.consensus.bft.engine._MAX_SEALS_AHEAD", 4)
    chain = ledger(protocol)
    headers = [chain.sealed(chain.draft(KEYS[0], at=10_000 + number)) for number in range(3)]
    chain.engine.look_ahead(headers)
    assert len(chain.engine._sealers) == 1
    for header in headers:
        chain.verify(header)
