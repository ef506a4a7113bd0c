"""Tests a node behind a URL that gives wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ophion.errors import OphionError, RpcError
from ophion.sdk.backend import CallSpec
from ophion.sdk.errors import ChainError
from ophion.sdk.remote_node import RemoteNode
from tests.unit.hostile_node import (
    ADDRESS,
    BLOCK,
    ESCAPE_LINE,
    HASH,
    ODD_ANSWERS,
    ODD_BODIES,
    HostileNode,
    hostile_node,
)

OWNER = bytes.fromhex(ADDRESS[2:])
CALLS: dict[str, Callable[[RemoteNode], Any]] = {
    "eth_chainId": RemoteNode.chain_id,
    "eth_blockNumber": RemoteNode.block_number,
    "eth_accounts": RemoteNode.accounts,
    "eth_getBalance": lambda node: node.balance(OWNER),
    "eth_getTransactionCount": lambda node: node.nonce(OWNER),
    "eth_getCode": lambda node: node.code(OWNER),
    "eth_getStorageAt": lambda node: node.storage(OWNER, bytes(32)),
    "eth_getBlockByNumber": RemoteNode.next_timestamp,
    "eth_getTransactionReceipt": lambda node: node.send(CallSpec(sender=OWNER, to=OWNER, data=b"", value=0)),
    "evm_snapshot": RemoteNode.snapshot,
}


@pytest.fixture
def hostile() -> Iterator[HostileNode]:
    with hostile_node() as node:
        node.answers = {"eth_chainId": "0x1"}
        yield node


@pytest.mark.parametrize("method", CALLS)
def test_an_odd_answer_is_an_error_of_the_chain(hostile: HostileNode, method: str) -> None:
    node = RemoteNode(hostile.url)
    for odd in ODD_ANSWERS:
        hostile.answers = {"eth_getBlockByNumber": BLOCK, "eth_sendTransaction": HASH, method: odd}
        try:
            CALLS[method](node)
        except ChainError as error:
            assert str(error).isprintable()


@pytest.mark.parametrize("body", ODD_BODIES)
def test_another_body_is_an_error_of_the_chain(hostile: HostileNode, body: bytes) -> None:
    node = RemoteNode(hostile.url)
    hostile.body = body
    with pytest.raises(OphionError) as found:
        node.block_number()
    assert str(found.value).isprintable()


def test_terminal_escapes_of_the_node_are_visible(hostile: HostileNode) -> None:
    node = RemoteNode(hostile.url)
    with pytest.raises(RpcError, match=r"\\x1b\[31munknown"):
        node.block_number()
    hostile.raw = ESCAPE_LINE
    with pytest.raises(ChainError, match=r"\\x1b\[31mno HTTP"):
        node.block_number()
