"""Heads that were seen before."""

from __future__ import annotations

from ophion.rpc.transport.http.policy import PlainHeads


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
    heads = PlainHeads(most=3, longest=30)
    heads.learn(message(10**20), 2)
    assert heads.sizes == {}
    for number in range(3):
        heads.learn(message(number), 2)
    assert len(heads.sizes) == 3
    heads.learn(message(3), 2)
    assert heads.sizes == {message(3, b""): 2}


def test_who_asks_for_gzip_is_remembered_and_forgotten_with_the_rest() -> None:
    heads = PlainHeads(most=1)
    heads.learn(message(1), 2, takes_gzip=True)
    assert heads.with_gzip == {message(1, b"")}
    heads.learn(message(2), 2)
    assert heads.with_gzip == set()
