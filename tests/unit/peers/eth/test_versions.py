"""Each eth version has its own Status message, and a node offers some of the versions."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import DecodeError
from ophion.peers.eth.fork_id import ForkId
from ophion.peers.eth.messages import Code, Status, TransactionHashes
from ophion.peers.eth.versions import ETH_66, ETH_68, ETH_69, VERSIONS, offered
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

ONES, TWOS = b"\x11" * 32, b"\x22" * 32
FORK_ID = ForkId(bytes.fromhex("190a55ad"), 0)


def test_status_of_68() -> None:
    encoded = bytes.fromhex("f850448205398203e9a0") + TWOS + b"\xa0" + ONES + bytes.fromhex("c684190a55ad80")
    status = Status(68, 1337, ONES, FORK_ID, TWOS, total_difficulty=1001)
    assert ETH_68.write_status(status) == encoded
    assert ETH_68.read_status(encoded) == status


def test_status_of_69() -> None:
    encoded = bytes.fromhex("f85145820539a0") + ONES + bytes.fromhex("c684190a55ad80808203e8a0") + TWOS
    status = Status(69, 1337, ONES, FORK_ID, TWOS, latest=1000)
    assert ETH_69.write_status(status) == encoded
    assert ETH_69.read_status(encoded) == status


def test_a_total_difficulty_above_100_bits_is_refused() -> None:
    for difficulty, fits in ((2**100 - 1, True), (2**100, False), (2 ** (8 << 10), False)):
        encoded = ETH_68.write_status(Status(68, 1, ONES, FORK_ID, TWOS, total_difficulty=difficulty))
        if fits:
            assert ETH_68.read_status(encoded).total_difficulty == difficulty
        else:
            with pytest.raises(RlpError, match="total difficulty"):
                ETH_68.read_status(encoded)


def test_a_network_id_may_be_long() -> None:
    encoded = ETH_68.write_status(Status(68, 2**250, ONES, FORK_ID, TWOS, total_difficulty=1))
    assert ETH_68.read_status(encoded).network_id == 2**250


def test_69_is_for_networks_whose_blocks_are_final() -> None:
    assert [version.number for version in offered(is_final=False)] == [66, 68]
    assert [version.number for version in offered(is_final=True)] == [66, 68, 69]


def test_numbers_of_codes_are_those_of_the_specification() -> None:
    assert {number: version.capability.length for number, version in VERSIONS.items()} == {66: 17, 68: 17, 69: 18}
    assert Code.BLOCK_RANGE_UPDATE not in ETH_68.codes
    assert Code.BLOCK_RANGE_UPDATE in ETH_69.codes
    assert Code.GET_NODE_DATA in ETH_66.codes
    assert Code.GET_NODE_DATA not in ETH_68.codes | ETH_69.codes
    assert ETH_69.capability.message_name(0x11) == "BlockRangeUpdate"
    assert ETH_68.capability.message_name(0x0B) == "0x0b"


items = st.recursive(st.binary(max_size=40), lambda inner: st.lists(inner, max_size=8), max_leaves=20)


@given(st.one_of(st.binary(max_size=200), items.map(rlp.encode)))
def test_no_bytes_break_the_decoders(data: bytes) -> None:
    for version in VERSIONS.values():
        with contextlib.suppress(DecodeError):
            version.read_status(data)


def test_before_68_transactions_are_announced_by_hash_alone() -> None:
    message = TransactionHashes(b"\x00\x02", [110, 180], [ONES, TWOS])
    assert ETH_66.write_hashes(message) == rlp.encode([ONES, TWOS])
    assert ETH_66.read_hashes(ETH_66.write_hashes(message)) == TransactionHashes(b"\0\0", [0, 0], [ONES, TWOS])
    assert ETH_68.read_hashes(ETH_68.write_hashes(message)) == message
