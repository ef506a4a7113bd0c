"""Tests chains made from scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.dev_network import dev_genesis
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.errors import CommandError
from ophion.native.store import open_store
from ophion.producer.block_script import BlockScript
from ophion.runtime.clock import SystemClock
from ophion.testing.signing import DEV_KEYS

A, B, _ = DEV_KEYS
WORK = (
    b'{"config":{"chainId":2018,"petersburgBlock":0,"ethash":{"fixeddifficulty":16}},"difficulty":"0x10",'
    b'"gasLimit":"0x1000000","alloc":{"627306090abab3a6e1400e9345bc60c78a8bef57":{"balance":"1000000000000000000"}}}'
)
CLIQUE = (
    b'{"config":{"chainId":2018,"petersburgBlock":0,"clique":{}},"difficulty":"0x1","gasLimit":"0x1000000",'
    b'"extraData":"0x' + b"00" * 32 + b"11" * 20 + b"00" * 65 + b'"}'
)


@contextmanager
def chain_of(path: Path, genesis: Genesis) -> Iterator[Chain]:
    store = open_store(path, durable=False)
    try:
        yield Chain.open(store, genesis, engine_for(genesis.spec))
    finally:
        store.close()


def script_on(chain: Chain) -> BlockScript:
    clock = SystemClock()
    return BlockScript(ImportCore(chain, clock), clock)


def described(*blocks: Any) -> bytes:
    return json.dumps({"blocks": blocks}).encode()


def transfer(**changes: str) -> dict[str, str]:
    members = {"gasLimit": "0x5208", "gasPrice": "0x7", "to": f"0x{A.address.hex()}", "value": "0x7"}
    return members | {"secretKey": B.secret().hex()} | changes


def test_what_a_description_leaves_out_is_filled_in(tmp_path: Path) -> None:
    with chain_of(tmp_path, dev_genesis()) as chain:
        before = chain.store.state(chain.head.header.state_root).balance(A.address)
        done = script_on(chain).run(described({"transactions": [transfer(), transfer()]}, {}, {"number": "0x3"}))
        assert (done.blocks, done.transactions, done.number) == (3, 2, 3)
        state = chain.store.state(chain.head.header.state_root)
        assert (state.balance(A.address) - before, state.nonce(B.address)) == (14, 2)


def test_coinbase_and_extra_data_are_those_of_the_description(tmp_path: Path) -> None:
    with chain_of(tmp_path, dev_genesis()) as chain:
        script_on(chain).run(described({"COINBASE": "0x" + "22" * 20, "extraData": "0x1234"}))
        assert (chain.head.header.coinbase, chain.head.header.extra_data) == (b"\x22" * 20, b"\x12\x34")


def test_work_is_done_where_the_network_asks_for_it(tmp_path: Path) -> None:
    with chain_of(tmp_path, parse_genesis(WORK)) as chain:
        script_on(chain).run(described({"transactions": [transfer()]}, {}))
        assert chain.head.number == 2
        assert chain.head.header.mix_hash != bytes(32)


def test_a_branch_has_its_own_parent(tmp_path: Path) -> None:
    with chain_of(tmp_path, dev_genesis()) as chain:
        genesis = f"0x{chain.genesis.hash.hex()}"
        side = {"parentHash": genesis, "extraData": "0x02"}
        script_on(chain).run(described({"extraData": "0x01"}, side))
        assert chain.head.number == 1
        script_on(chain).run(described({"number": "0x2"}))
        assert chain.head.number == 2


def test_a_contract_is_created_without_a_recipient(tmp_path: Path) -> None:
    with chain_of(tmp_path, dev_genesis()) as chain:
        creation = {"gasLimit": "0x186a0", "gasPrice": "0x7", "data": "0x600160005260206000f3"}
        script_on(chain).run(described({"transactions": [creation | {"secretKey": B.secret().hex()}]}))
        assert chain.head.header.gas_used > 53_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "Invalid block description: Expecting"),
        (b"[]", 'expected {"blocks": [...]}'),
        (b'{"blocks":5}', "blocks: expected an array of objects"),
        (described({"number": 5}), "blocks[0].number: expected hexadecimal text"),
        (described({"number": "x"}), "blocks[0].number: not a number"),
        (described({"number": "0x9"}), "Unable to locate block parent at 8"),
        (described({"number": "0x0"}), "Unable to locate block parent at -1"),
        (described({"parentHash": "0x" + "33" * 32}), "Unable to locate block parent at 0x3333"),
        (described({"extraData": "0x" + "00" * 33}), "blocks[0].extraData: more than 32 bytes"),
        (described({"transactions": [{}]}), "blocks[0].transactions[0].secretKey: not a private key"),
        (
            described({"transactions": [{"secretKey": "11" * 32}]}),
            "blocks[0].transactions[0].gasPrice: missing",
        ),
        (
            described({"transactions": [transfer(gasLimit="0x1")]}),
            "Unable to create block.  1 transaction(s) were found to be invalid; blocks[0].transactions[0]:",
        ),
    ],
    ids=[
        "no JSON", "no object", "no array", "a number", "no number", "beyond the head", "genesis", "unknown parent",
        "long extra data", "no key", "no price", "little gas",
    ],
)  # fmt: skip
def test_mistakes_are_reported_with_their_position(tmp_path: Path, text: bytes, message: str) -> None:
    with chain_of(tmp_path, dev_genesis()) as chain, pytest.raises(CommandError) as raised:
        script_on(chain).run(text)
    assert message in str(raised.value)


def test_networks_of_known_members_are_refused(tmp_path: Path) -> None:
    with (
        chain_of(tmp_path, parse_genesis(CLIQUE)) as chain,
        pytest.raises(CommandError, match="Unable to create block using current consensus engine: clique"),
    ):
        script_on(chain)
