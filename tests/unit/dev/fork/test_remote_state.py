"""Tests a fork of a node that gives arbitrary answers."""

from __future__ import annotations

import asyncio

from ophion.dev.fork.remote_state import Fork
from ophion.dev.fork.settings import ForkSettings
from ophion.errors import ForkSourceError
from ophion.native.crypto import keccak256
from ophion.runtime.blocking_json_rpc import Failure
from tests.unit.hostile_node import (
    ADDRESS,
    BLOCK,
    ESCAPE_LINE,
    HASH,
    ODD_BODIES,
    HostileNode,
    hostile_node,
    odd_variants,
)

OWNER = bytes.fromhex(ADDRESS[2:])
CODE = "0x6001"
PARTS = {
    "eth_chainId": "0x1",
    "eth_getBlockByNumber": BLOCK,
    "eth_getCode": CODE,
    "eth_createAccessList": {"accessList": [{"address": ADDRESS, "storageKeys": [HASH]}]},
    "eth_getTransactionCount": "0x1",
    "eth_getBalance": "0x1",
    "eth_getStorageAt": "0x1",
}
PROOF = {
    "balance": "0x1",
    "nonce": "0x1",
    "codeHash": "0x" + keccak256(bytes.fromhex(CODE[2:])).hex(),
    "storageProof": [{"key": HASH, "value": "0x1", "proof": []}],
}


def _read(node: HostileNode) -> None:
    """Fork the node and read an account, a slot and a block hash. A wrong answer is a `ForkSourceError`."""
    fork = None
    try:
        fork = Fork.open(ForkSettings(url=node.url, retries=0))
        fork.load([(OWNER, None, None), (OWNER, bytes(32), None), (None, None, 3)], {"to": ADDRESS, "input": "0x00"})
    except ForkSourceError as error:
        assert str(error).isprintable()
    finally:
        if fork is not None:
            fork.close()


def test_an_odd_answer_is_an_error_of_the_source() -> None:
    with hostile_node() as node:
        for answers in (PARTS, {**PARTS, "eth_getProof": PROOF}):
            node.answers = answers
            _read(node)
        for answers in odd_variants({**PARTS, "eth_getProof": PROOF}):
            node.answers = answers
            _read(node)


def test_another_body_is_an_error_of_the_source() -> None:
    with hostile_node() as node:
        for body in ODD_BODIES:
            node.body = body
            _read(node)
        node.raw = ESCAPE_LINE
        _read(node)


def test_parameters_that_cannot_be_sent_are_an_error() -> None:
    deep: dict[str, object] = {}
    for _ in range(300):
        deep = {"a": deep}
    with hostile_node() as node:
        node.answers = PARTS
        fork = Fork.open(ForkSettings(url=node.url, retries=0))
        answer = asyncio.run(fork.ask("debug_traceBlockByNumber", ["0x1", deep]))
        assert answer == Failure(-32602, "Invalid params", "they are nested too deeply")
        fork.close()
