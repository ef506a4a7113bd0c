"""Tests fork identifiers against the vectors of networking.md 7.6."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.peers.eth.fork_id import ForkId, ForkIds
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError

LARGEST = 2**64 - 1
MAINNET_GENESIS = bytes.fromhex("d4e56740f876aef8c010b86a40d5f56745a118d0906a34e69aec8c0db1cb8fa3")
MAINNET_BLOCKS = (
    1150000, 1920000, 2463000, 2675000, 4370000, 7280000, 9069000, 9200000, 12244000, 12965000, 13773000, 15050000,
)  # fmt: skip
MAINNET_TIMES = (1681338455, 1710338135, 1746612311, 1764798551, 1765290071, 1767747671)
MAINNET = ForkIds(MAINNET_GENESIS, 0, MAINNET_BLOCKS, MAINNET_TIMES)
MAINNET_BY_NUMBER = ForkIds(MAINNET_GENESIS, 0, MAINNET_BLOCKS, ())
RINKEBY = ForkIds(
    bytes.fromhex("6341fd3daf94b748c72ced5a5b26028f2474f5f00d824504e4fa37a75767e177"),
    1492009146,
    (1, 2, 3, 1035301, 3660663, 4321234, 5435345, 8290928, 8897988),
    (),
)
GOERLI = ForkIds(
    bytes.fromhex("bf7e331f7f7c1dd2e05159666b3bf8bc7a8a3a9eb1d518969eab529dd9b88c1a"),
    1548854791,
    (0, 1561651, 4460644, 5062605),
    (1678832736, 1705473120),
)
ALL_AT_ZERO = ForkIds(bytes(32), 0, (0, 0), (0,))
SYNTHETIC = ForkIds(bytes(32), 1000, (0, 5, 5, 10), (500, 1000, 2000, 3000))


def fork_id(digest: str, following: int) -> ForkId:
    return ForkId(bytes.fromhex(digest), following)


@pytest.mark.parametrize(
    ("chain", "number", "time", "digest", "following"),
    [
        (MAINNET, 0, 0, "fc64ec04", 1150000),
        (MAINNET, 1149999, 0, "fc64ec04", 1150000),
        (MAINNET, 1150000, 0, "97c2c34c", 1920000),
        (MAINNET, 1919999, 0, "97c2c34c", 1920000),
        (MAINNET, 1920000, 0, "91d1f948", 2463000),
        (MAINNET, 2463000, 0, "7a64da13", 2675000),
        (MAINNET, 2675000, 0, "3edd5b10", 4370000),
        (MAINNET, 4370000, 0, "a00bc324", 7280000),
        (MAINNET, 7280000, 0, "668db0af", 9069000),
        (MAINNET, 9069000, 0, "879d6e30", 9200000),
        (MAINNET, 9200000, 0, "e029e991", 12244000),
        (MAINNET, 12244000, 0, "0eb440f6", 12965000),
        (MAINNET, 12965000, 0, "b715077d", 13773000),
        (MAINNET, 13773000, 0, "20c327fc", 15050000),
        (MAINNET, 15050000, 0, "f0afd0e3", 1681338455),
        (MAINNET, 20000000, 1681338455, "dce96c2d", 1710338135),
        (MAINNET, 30000000, 1710338135, "9f3d2254", 1746612311),
        (MAINNET, 30000000, 1746612311, "c376cf8b", 1764798551),
        (RINKEBY, 0, 0, "3b8e0691", 1),
        (RINKEBY, 1, 0, "60949295", 2),
        (RINKEBY, 2, 0, "8bde40dd", 3),
        (RINKEBY, 3, 0, "cb3a64bb", 1035301),
        (RINKEBY, 1035300, 0, "cb3a64bb", 1035301),
        (RINKEBY, 1035301, 0, "8d748b57", 3660663),
        (RINKEBY, 3660663, 0, "e49cab14", 4321234),
        (RINKEBY, 4321234, 0, "afec6b27", 5435345),
        (RINKEBY, 5435345, 0, "cbdb8838", 8290928),
        (RINKEBY, 8290928, 0, "6910c8bd", 8897988),
        (RINKEBY, 8897988, 0, "8e29f2f3", 0),
        (GOERLI, 0, 0, "a3f5ab08", 1561651),
        (GOERLI, 1561651, 0, "c25efa5c", 4460644),
        (GOERLI, 4460644, 0, "757a1c47", 5062605),
        (GOERLI, 5062605, 0, "b8c6299d", 1678832736),
        (GOERLI, 6000000, 1678832736, "f9843abf", 1705473120),
        (ALL_AT_ZERO, 0, 0, "190a55ad", 0),
        (ALL_AT_ZERO, 99, 99, "190a55ad", 0),
        (SYNTHETIC, 0, 1000, "190a55ad", 5),
        (SYNTHETIC, 4, 1000, "190a55ad", 5),
        (SYNTHETIC, 5, 1000, "9986c93e", 10),
        (SYNTHETIC, 9, 1000, "9986c93e", 10),
        (SYNTHETIC, 10, 1500, "58ca1fc4", 2000),
        (SYNTHETIC, 10, 2000, "7bda8748", 3000),
        (SYNTHETIC, 10, 3000, "c902deaf", 0),
    ],
)
def test_identifier_of_a_head(chain: ForkIds, number: int, time: int, digest: str, following: int) -> None:
    assert chain.at(number, time) == fork_id(digest, following)


@pytest.mark.parametrize(
    ("number", "digest", "following", "is_ours"),
    [
        (15050000, "f0afd0e3", 0, True),
        (15050000, "f0afd0e3", LARGEST, True),
        (7279999, "a00bc324", 0, True),
        (7279999, "a00bc324", 7280000, True),
        (7279999, "a00bc324", LARGEST, True),
        (7280000, "a00bc324", 7280000, True),
        (7987396, "a00bc324", 7280000, True),
        (7987396, "3edd5b10", 4370000, True),
        (7279999, "668db0af", 0, True),
        (4369999, "a00bc324", 0, True),
        (7987396, "a00bc324", 0, False),
        (7987396, "5cddc0e1", 0, False),
        (7279999, "5cddc0e1", 0, False),
        (7987396, "afec6b27", 0, False),
        (88888888, "f0afd0e3", 88888888, False),
        (7279999, "a00bc324", 7279999, False),
    ],
)
def test_judging_by_number(number: int, digest: str, following: int, is_ours: bool) -> None:
    problem = MAINNET_BY_NUMBER.problem(fork_id(digest, following), number, 0)
    assert (problem is None) == is_ours, problem


@pytest.mark.parametrize(
    ("number", "time", "digest", "following", "is_ours"),
    [
        (15050000, 0, "f0afd0e3", 0, True),
        (15050000, 0, "f0afd0e3", 1681338455, True),
        (15050000, 0, "f0afd0e3", LARGEST, True),
        (20000000, 1681338455, "f0afd0e3", 1681338455, True),
        (20000000, 1681338455, "20c327fc", 15050000, True),
        (15050000, 0, "dce96c2d", 0, True),
        (20000000, 1681338455, "f0afd0e3", 0, False),
        (888888888, 1660000000, "f0afd0e3", 1660000000, False),
        (20000000, 1668000000, "dce96c2d", 1710338135, True),
        (21000000, 1710338135, "dce96c2d", 0, False),
        (20000000, 1681338455, "12345678", 0, False),
        (88888888, 8888888888, "07c9462e", 8888888888, False),
    ],
)
def test_judging_by_time(number: int, time: int, digest: str, following: int, is_ours: bool) -> None:
    problem = MAINNET.problem(fork_id(digest, following), number, time)
    assert (problem is None) == is_ours, problem


@pytest.mark.parametrize(
    ("digest", "following", "encoded"),
    [
        ("00000000", 0, "c6840000000080"),
        ("deadbeef", 0xBADDCAFE, "ca84deadbeef84baddcafe"),
        ("ffffffff", LARGEST, "ce84ffffffff88ffffffffffffffff"),
    ],
)
def test_encoding(digest: str, following: int, encoded: str) -> None:
    value = fork_id(digest, following)
    assert rlp.encode(value.items()).hex() == encoded
    assert ForkId.read(rlp.decode(bytes.fromhex(encoded))) == value


@pytest.mark.parametrize(
    "encoded", ["80", "c0", "c584deadbeef", "c58300000080", "c7840000000000", "cf840000000089" + "ff" * 9]
)
def test_what_is_no_identifier_is_refused(encoded: str) -> None:
    with pytest.raises(RlpError):
        ForkId.read(rlp.decode(bytes.fromhex(encoded)))


@given(own=st.integers(0, 40), other=st.integers(0, 40))
def test_nodes_of_one_network_accept_each_other_at_any_height(own: int, other: int) -> None:
    remote = SYNTHETIC.at(other, 100 * other)
    assert SYNTHETIC.problem(remote, own, 100 * own) is None
