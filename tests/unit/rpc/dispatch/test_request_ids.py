"""Ids of every kind, and how they come back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ophion.rpc.dispatch.dispatcher import Dispatcher
from tests.unit.rpc.envelopes import ask, error, request, run
from tests.unit.rpc.wire import Context


@pytest.mark.parametrize(
    "written", ["1", "-5", "0", '"a"', '"\\u00e9\\n"', "null", "1.5", "1e3", "123456789012345678901234567890", "1.0"]
)
def test_ids_of_every_type_come_back_as_they_were_written(written: str) -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        body = b'{"id":%b,"method":"eth_blockNumber","params":[]}' % written.encode()
        for sent, pattern in ((body, b'"id":%b,'), (b"[%b]" % body, b'"id":%b,')):
            reply = dispatch.handle(sent)
            assert isinstance(reply, bytes)
            returned = json.loads(reply)
            assert (returned[0] if isinstance(returned, list) else returned)["id"] == json.loads(written)
            if not written.startswith('"'):
                assert pattern % written.encode() in reply

    run(main)


@pytest.mark.parametrize("id", [True, {}, [1]])
def test_an_id_that_is_no_id_is_an_invalid_request(id: Any) -> None:
    assert ask(request("eth_blockNumber", id=id)) == (400, error(-32600, "Invalid Request", None))


@pytest.mark.parametrize("written", [b"1.5", b"1e3", b"123456789012345678901234567890"])
@pytest.mark.parametrize("levels", [10, 1000, 1022])
def test_an_unusual_id_needs_no_second_look_at_the_rest(written: bytes, levels: int) -> None:
    deep = b"[" * levels + b"]" * levels
    one = b'{"id":%b,"method":"eth_blockNumber","params":%b}' % (written, deep)

    async def main(dispatch: Dispatcher, context: Context) -> None:
        assert dispatch.handle(one) == b'{"jsonrpc":"2.0","id":%b,"result":"0x20"}' % written
        assert dispatch.handle(b"[%b]" % one) == b'[{"jsonrpc":"2.0","id":%b,"result":"0x20"}]' % written

    run(main)


def test_of_repeated_ids_the_last_counts_in_messages_of_any_length() -> None:
    for filler in (b"", b" " * 5000, b" " * 100_000):
        for ids, expected in ((b'"id":1.5,"id":2.5', 2.5), (b'"id":[],"\\u0069d":"a"', "a"), (b'"id":1,"id":2', 2)):
            body = b'{%b,%b"method":"eth_blockNumber","params":[]}' % (ids, filler)
            assert ask(body)[1]["id"] == expected
