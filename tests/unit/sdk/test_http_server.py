"""`chain.serve` and `Chain.connect` give the same chain through a socket."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from ophion import Chain, ChainError, Reverted
from ophion.sdk.errors import TransactionRefused
from tests.unit.sdk.contracts import TOKEN


@pytest.fixture
def pair() -> Iterator[tuple[Chain, Chain]]:
    with Chain() as chain, chain.serve() as server, Chain.connect(server.url) as other:
        yield chain, other


def test_both_see_the_same_chain(pair: tuple[Chain, Chain]) -> None:
    chain, other = pair
    token = other.deploy(TOKEN, "Coin", 1000)
    assert chain.contract(token.address, token.abi).totalSupply() == 1000
    bob = chain.accounts[1]
    receipt = token.transfer(bob, 5)
    assert receipt.events.one("Transfer").value == 5
    assert receipt.trace().function == "transfer"
    chain.contract(token.address, token.abi).transfer(bob, 6)
    assert token.balanceOf(bob) == 11
    with pytest.raises(Reverted) as caught:
        token.transfer(bob, 5000)
    assert caught.value.name == "InsufficientBalance"
    with pytest.raises(Reverted, match="division by zero"):
        token.divide(1, 0)


def test_cheat_codes_work_through_the_socket(pair: tuple[Chain, Chain]) -> None:
    chain, other = pair
    with other.snapshot():
        other.mine(5)
        assert chain.block_number == 5
    assert other.block_number == 0
    account = "0x" + "55" * 20
    with pytest.raises(TransactionRefused):
        other.send(other.accounts[0], sender=account)
    other.set_balance(account, 10**18)
    assert other.impersonate(account).transfer(other.accounts[0], 5).succeeded
    other.set_storage(account, 1, 7)
    assert chain.storage(account, 1) == (7).to_bytes(32, "big")
    other.time += 1000
    other.mine()
    assert chain.block()["timestamp"] == other.block()["timestamp"]


def test_a_chain_works_on_after_its_server() -> None:
    with Chain() as chain:
        server = chain.serve()
        chain.mine()
        server.close()
        server.close()
        chain.mine()
        assert chain.block_number == 2
        with pytest.raises(ChainError, match="does not answer"):
            Chain.connect(server.url)


def test_a_taken_port_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, Chain() as chain:
        with pytest.raises(ChainError, match="cannot be served"):
            chain.serve(port=taken.getsockname()[1])
        chain.mine()


def test_connect_checks_the_url() -> None:
    with pytest.raises(ChainError, match="not a URL of a node"):
        Chain.connect("localhost:8545")
