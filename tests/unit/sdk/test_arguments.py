"""Tests that wrong arguments of `Chain` and its contracts raise one error that names the argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion import Chain, ChainError
from ophion.errors import AbiError
from ophion.sdk import arguments
from ophion.sdk.contract import Contract
from ophion.sdk.errors import ArgumentError, OutputError, UnknownName
from ophion.testing.invariants import check_invariants
from tests.unit.sdk.contracts import TOKEN

NUMBERS = ["5", -1, 2**256, 1.5, 1e18, b"\1", [], {}, True]
ADDRESSES = [5, "xyz", "0x12", b"\1", [], object, "0x" + "zz" * 20, 1.5, True]

Use = Callable[[Any, Any], object]


@pytest.fixture(scope="module")
def chain() -> Iterator[Chain]:
    with Chain() as made:
        yield made


@pytest.fixture(scope="module")
def token(chain: Chain) -> Contract:
    return chain.deploy(TOKEN, "Coin", 1000)


def _assigned(target: object, name: str, value: object) -> None:
    setattr(target, name, value)


def _setter(name: str) -> Use:
    return lambda token, wrong: _assigned(token.chain, name, wrong)


@pytest.mark.parametrize("wrong", NUMBERS, ids=repr)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("value", lambda token, wrong: token.chain.accounts[0].transfer(token.chain.accounts[1], wrong)),
        ("value", lambda token, wrong: token.chain.call(token, value=wrong)),
        ("value", lambda token, wrong: token.transfer(token.chain.accounts[1], 1, value=wrong)),
        ("value", lambda token, wrong: token.totalSupply(value=wrong)),
        ("value", lambda token, wrong: token.transfer.estimate_gas(token.chain.accounts[1], 1, value=wrong)),
        ("value", lambda token, wrong: token.chain.deploy(TOKEN, "Coin", 1, value=wrong)),
        ("gas", lambda token, wrong: token.transfer(token.chain.accounts[1], 1, gas=wrong)),
        ("gas", lambda token, wrong: token.totalSupply(gas=wrong)),
        ("nonce", lambda token, wrong: token.transfer(token.chain.accounts[1], 1, nonce=wrong)),
        ("argument value", lambda token, wrong: token.transfer(token.chain.accounts[1], wrong)),
        ("wei", lambda token, wrong: token.chain.set_balance(token, wrong)),
        ("nonce", lambda token, wrong: token.chain.set_nonce(token, wrong)),
        ("count", lambda token, wrong: token.chain.mine(wrong)),
        ("interval", lambda token, wrong: token.chain.mine(2, wrong)),
        ("saved", lambda token, wrong: token.chain.restore(wrong)),
        ("time", _setter("time")),
        ("block", lambda token, wrong: token.chain.at(wrong)),
        ("block", lambda token, wrong: token.chain.balance(token, wrong)),
        ("block", lambda token, wrong: token.totalSupply(block=wrong)),
        ("number", lambda token, wrong: token.chain.block(wrong)),
        ("from_block", lambda token, wrong: token.events("Transfer", wrong)),
        ("chain_id", lambda _, wrong: Chain(chain_id=wrong)),
        ("accounts", lambda _, wrong: Chain(accounts=wrong)),
        ("timestamp", lambda _, wrong: Chain(timestamp=wrong)),
        ("block_interval", lambda _, wrong: Chain(block_interval=wrong)),
        ("base_fee", lambda _, wrong: Chain(base_fee=wrong)),
        ("gas_limit", lambda _, wrong: Chain(gas_limit=wrong)),
    ],
)
def test_a_wrong_number_is_named(token: Contract, name: str, use: Use, wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        use(token, wrong)


@pytest.mark.parametrize("wrong", ADDRESSES, ids=str)
@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("to", lambda token, wrong: token.chain.send(wrong)),
        ("sender", lambda token, wrong: token.totalSupply(sender=wrong)),
        ("sender", lambda token, wrong: token.transfer(token, 1, sender=wrong)),
        ("argument to", lambda token, wrong: token.transfer(wrong, 1)),
        ("account", lambda token, wrong: token.chain.balance(wrong)),
        ("account", lambda token, wrong: token.chain.set_code(wrong, b"")),
        ("address", lambda token, wrong: token.chain.contract(wrong, [])),
        ("address", lambda token, wrong: token.chain.impersonate(wrong)),
        ("default_account", _setter("default_account")),
        ("contract", lambda token, wrong: token.chain.attach(wrong)),
        ("transaction", lambda token, wrong: token.chain.transaction(wrong)),
        ("transaction", lambda token, wrong: token.chain.trace(wrong)),
        ("transaction", lambda token, wrong: token.chain.replay(wrong)),
    ],
)
def test_a_wrong_address_is_named(token: Contract, name: str, use: Use, wrong: Any) -> None:
    with pytest.raises(ArgumentError, match=name):
        use(token, wrong)


@pytest.mark.parametrize("wrong", [None, 5, "xyz", "0x1", 1.5, [1]], ids=repr)
def test_data_that_is_not_bytes_is_refused(chain: Chain, wrong: Any) -> None:
    bob = chain.accounts[1]
    for use in (lambda: chain.send(bob, wrong), lambda: chain.call(bob, wrong), lambda: chain.set_code(bob, wrong)):
        with pytest.raises(ArgumentError, match="is not bytes or hexadecimal text"):
            use()


@pytest.mark.parametrize("wrong", [None, "1", -1, 2**256, b"\0" * 33, 1.5, True], ids=repr)
def test_a_wrong_slot_is_named(chain: Chain, wrong: Any) -> None:
    bob = chain.accounts[1]
    with pytest.raises(ArgumentError, match="slot"):
        chain.storage(bob, wrong)
    with pytest.raises(ArgumentError, match="value"):
        chain.set_storage(bob, 1, wrong)


def test_arguments_of_a_function(token: Contract) -> None:
    bob = token.chain.accounts[1]
    with pytest.raises(
        ArgumentError, match=r"Token\.transfer\(address,uint256\): 2 arguments are expected, not 1: \(addr"
    ):
        token.transfer(bob)
    with pytest.raises(ArgumentError, match="2 arguments are expected, not 3"):
        token.transfer(bob, 1, 2)
    with pytest.raises(ArgumentError, match=r"unknown: amount; missing: value\. Arguments: \(address to, uint256 va"):
        token.transfer(bob, amount=1)
    with pytest.raises(ArgumentError, match="2 arguments are expected, not 4"):
        token.transfer(bob, 1, 2, value_=3)
    with pytest.raises(ArgumentError, match="it has no block"):
        token.transfer(bob, 1, block=1)
    with pytest.raises(ArgumentError, match=r"Token\.constructor"):
        token.chain.deploy(TOKEN)
    with pytest.raises(TypeError):
        token.transfer(bob)


def test_unknown_names(token: Contract) -> None:
    with pytest.raises(UnknownName, match="has no function 'missing'. Functions: "):
        token.missing()
    with pytest.raises(UnknownName, match="there is no function 'missing'"):
        _ = token["missing"]
    with pytest.raises(ArgumentError, match="the name or the signature"):
        _ = token[5]
    with pytest.raises(UnknownName, match="has no event 'Missing'. Events: Approval, Transfer"):
        token.events("Missing")
    event = token.events("Transfer")[0]
    for use in (lambda: event.missing, lambda: event["missing"]):
        with pytest.raises(UnknownName, match="has no argument 'missing'. Arguments: from, to, value"):
            use()
    assert not hasattr(token, "missing")
    assert not hasattr(event, "missing")


def test_an_abi_that_is_not_one(chain: Chain, token: Contract) -> None:
    for wrong in (
        None,
        5,
        "f(uint256)",
        [5],
        [None],
        {"abi": []},
        ["f"],
        ["f(uint257)"],
        ["f(" + "(" * 500 + ")" * 501],
    ):
        with pytest.raises(ArgumentError, match="^abi: "):
            chain.contract(token, wrong)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="Pass the member 'abi'"):
        chain.contract(token, {"abi": []})  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(AbiError, match="the parameters of an ABI"):
        chain.contract(token, [{"type": "function", "name": "f", "inputs": 5}]).f()


def test_an_abi_of_another_contract(chain: Chain, token: Contract) -> None:
    wrong = chain.contract(token, ["function totalSupply() view returns (string)"])
    with pytest.raises(OutputError, match=r"totalSupply\(\): the result does not fit the ABI"):
        wrong.totalSupply()


def test_a_transaction_to_an_address_without_code_is_not_sent(chain: Chain, token: Contract) -> None:
    before = chain.block_number
    with pytest.raises(OutputError, match="there is no contract at"):
        chain.contract("0x" + "11" * 20, token.abi).transfer(token, 1)
    assert chain.block_number == before
    with chain.paused_mining():
        made = chain.deploy(TOKEN, "Coin", 1)
        chain.contract(made, token.abi).transfer(token, 0)


def test_wrong_arguments_of_a_chain(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"path": 5},
        {"path": "a\0b"},
        {"genesis": 5},
        {"hardfork": 5},
        {"mnemonic": 5},
        {"fork": 5},
        {"balance": "5"},
        {"balance": float("nan")},
        {"fork": "http://127.0.0.1:1", "block": "5"},
    ]
    for one in wrong:
        with pytest.raises(ArgumentError, match=list(one)[-1]):
            Chain(**one)
    with pytest.raises(ArgumentError, match="url"):
        Chain.connect(5)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="path"):
        Chain.read(5)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="at"):
        Chain.read(tmp_path, at=-1)


def test_parameters_without_a_form_in_json(chain: Chain) -> None:
    recursive: list[Any] = []
    recursive.append(recursive)
    for wrong in (object(), recursive, "\ud800", {1: 2}):
        with pytest.raises(ArgumentError, match="cannot be written as JSON"):
            chain.rpc("eth_call", wrong)
    with pytest.raises(ArgumentError, match="method"):
        chain.rpc(5)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(ArgumentError, match="logs"):
        chain.decode_logs([5])  # type: ignore[list-item]  # wrong on purpose
    with pytest.raises(ArgumentError, match="port"):
        chain.serve(port=-1)


def test_a_transaction_that_does_not_exist(chain: Chain) -> None:
    for use in (chain.trace, chain.replay, chain.transaction):
        with pytest.raises(ChainError, match="There is no"):
            use("0x" + "00" * 32)


def test_integers_of_other_types_are_taken(chain: Chain) -> None:
    class Number:
        def __index__(self) -> int:
            return 7

    bob = chain.accounts[1]
    before = bob.balance
    chain.accounts[0].transfer(bob, Number())  # type: ignore[arg-type]  # as numbers of NumPy
    assert bob.balance == before + 7


def test_a_closed_chain_says_so_everywhere() -> None:
    chain = Chain()
    token = chain.deploy(TOKEN, "Coin", 5)
    branch = chain.fork_at()
    chain.close()
    uses: list[Callable[[], object]] = [
        token.totalSupply,
        lambda: token.transfer(token, 1),
        lambda: _assigned(chain, "time", 5),
        lambda: chain.paused_mining().__enter__(),
        lambda: chain.set_code(token, b""),
        lambda: chain.at(0),
        lambda: branch.balance(token),
        lambda: branch.send(token),
    ]
    for use in uses:
        with pytest.raises(ChainError, match="is closed"):
            use()


def test_arguments_of_a_search_for_broken_invariants(chain: Chain, token: Contract) -> None:
    def search(**changed: Any) -> None:
        given: dict[str, Any] = {"targets": [token], "invariants": {"all": lambda: True}, "runs": 1, "depth": 1}
        check_invariants(chain, **(given | changed))

    search()
    wrong = {"runs": "1", "depth": None, "seed": -1, "targets": [5], "invariants": {"all": 5}, "functions": ["missing"]}
    for name, value in wrong.items():
        with pytest.raises(ArgumentError, match=name):
            search(**{name: value})


@given(st.one_of(st.integers(), st.floats(), st.text(), st.binary(), st.none(), st.lists(st.integers())))
def test_any_value_is_taken_or_refused_with_one_error(value: object) -> None:
    checks: list[Callable[[str, Any], object]] = [
        arguments.wei,
        arguments.address,
        arguments.byte_string,
        arguments.word,
        arguments.file_path,
        arguments.ether,
        arguments.mapping,
        lambda _, one: arguments.block(one),
        lambda _, one: arguments.transaction_hash(one),
    ]
    for check in checks:
        try:
            check("name", value)
        except ArgumentError as error:
            assert "\n" not in str(error)
            assert len(str(error)) < 250
