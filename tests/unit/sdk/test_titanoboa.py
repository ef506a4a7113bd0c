"""Tests titanoboa on a chain without a socket."""

from __future__ import annotations

import pytest

from ophion import Chain

boa = pytest.importorskip("boa", reason="needs titanoboa")

SOURCE = """
# pragma version ^0.4.0
event Bumped:
    by: uint256

n: public(uint256)

@deploy
def __init__(start: uint256):
    self.n = start

@external
def bump(by: uint256) -> uint256:
    assert by < 10, "too much"
    self.n += by
    log Bumped(by=by)
    return self.n
"""


def test_a_vyper_contract() -> None:
    from ophion.sdk.titanoboa import boa_environment

    with Chain() as chain, boa.set_env(boa_environment(chain)):
        contract = boa.loads(SOURCE, 5)
        assert contract.n() == 5
        assert contract.bump(3) == 8
        assert contract.n() == 8
        assert chain.block_number == 2
        assert chain.contract(str(contract.address), ["function n() view returns (uint256)"]).n() == 8
        with boa.reverts("too much"):
            contract.bump(11)
        with boa.env.anchor():
            contract.bump(9)
            assert contract.n() == 17
        assert contract.n() == 8
