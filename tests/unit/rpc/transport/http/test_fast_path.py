"""Tests which request heads are stored, and that both paths give the same answers."""

from __future__ import annotations

import pytest

from ophion.rpc.transport.http.fast_path import PlainHeads
from tests.unit.rpc.transport.http.test_connection import BLOCK_NUMBER, Client, post, run
from tests.unit.rpc.wire import Context


def message(number: int, body: bytes = b"{}") -> bytes:
    return b"POST / HTTP/1.1\r\nX: %d\r\n\r\n" % number + body


def test_a_head_is_learned_with_the_size_of_its_body() -> None:
    heads = PlainHeads()
    heads.learn(message(1), 2)
    assert heads.sizes == {message(1, b""): 2}


def test_more_or_less_than_one_message_teaches_nothing() -> None:
    heads = PlainHeads()
    heads.learn(message(1) + message(2), 2)
    heads.learn(message(1, b"{"), 2)
    assert heads.sizes == {}


def test_long_heads_are_not_kept_and_many_are_forgotten() -> None:
    heads = PlainHeads(max_heads=3, max_head_bytes=30)
    heads.learn(message(10**20), 2)
    assert heads.sizes == {}
    for number in range(3):
        heads.learn(message(number), 2)
    assert len(heads.sizes) == 3
    heads.learn(message(3), 2)
    assert heads.sizes == {message(3, b""): 2}


def test_who_asks_for_gzip_is_remembered_and_forgotten_with_the_rest() -> None:
    heads = PlainHeads(max_heads=1)
    heads.learn(message(1), 2, accepts_gzip=True)
    assert heads.with_gzip == {message(1, b"")}
    heads.learn(message(2), 2)
    assert heads.with_gzip == set()


@pytest.mark.parametrize("is_together", [False, True])
def test_both_paths_give_the_same_bytes(is_together: bool) -> None:
    """Compares the output of the fast path with the output of a table without request heads. Such a table disables the
    fast path.
    """
    requests = [
        post(),
        post(),
        post(BLOCK_NUMBER.replace(b'"id":1', b'"id":2')),
        post(b"x" * len(BLOCK_NUMBER)),
        post(b"[" + BLOCK_NUMBER + b"]", b"Accept-Encoding: gzip"),
        post(b"[" + BLOCK_NUMBER + b"]", b"Accept-Encoding: gzip"),
        post(BLOCK_NUMBER, b"Origin: http://evil"),
        post(),
        post(b'{"jsonrpc":"2.0","method":"eth_blockNumber"}'),
        post(b'{"jsonrpc":"2.0","method":"eth_blockNumber"}'),
        post(BLOCK_NUMBER, version=b"1.0"),
    ]
    found: list[bytes] = []

    async def story(client: Client, context: Context) -> None:
        messages = [b"".join(requests)] if is_together else requests
        found.append(b"".join([await client.sent(message) for message in messages]))

    for heads in (PlainHeads(), PlainHeads(max_head_bytes=0)):
        run(story, heads=heads)
    assert found[0] == found[1]
    assert found[0].count(b"HTTP/1.1") == len(requests)
