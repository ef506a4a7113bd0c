"""Tests ids of every kind in requests and answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.transport.replies import PendingReply
from tests.unit.rpc.envelopes import ask, error, request, run
from tests.unit.rpc.wire import Context


@pytest.mark.parametrize(
    "written", ["1", "-5", "0", '"a"', '"\\u00e9\\n"', "null", "1.5", "1e3", "123456789012345678901234567890", "1.0"]
)
def test_ids_of_every_type_are_returned_as_written(written: str) -> None:
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


@pytest.mark.parametrize("filler", [b"", b" " * 5000, b" " * 100_000], ids=["short", "long", "very long"])
@pytest.mark.parametrize("written", [b"1E400", b"-1e+400", b"1E999999999999", b"9" * 400, b"-" + b"9" * 3000])
def test_numbers_beyond_64_bits_are_returned_too(written: bytes, filler: bytes) -> None:
    """Ids beyond 64 bits are valid JSON, and the node accepts any id value (json-rpc.md 1.2)."""
    answer = b'{"jsonrpc":"2.0","id":%b,"result":"0x20"}' % written
    unknown = b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32601,' % written

    async def reply_to(dispatch: Dispatcher, body: bytes) -> bytes:
        reply = dispatch.handle(body)
        if isinstance(reply, PendingReply):
            settled = asyncio.get_running_loop().create_future()
            reply.deliver = settled.set_result
            reply = await settled
        return reply if isinstance(reply, bytes) else reply.join()

    async def main(dispatch: Dispatcher, context: Context) -> None:
        one = b'{"id":%b,%b"method":"eth_blockNumber","params":[]}' % (written, filler)
        assert await reply_to(dispatch, one) == answer
        plain = b'{"id":1,"method":"eth_blockNumber"}'
        assert await reply_to(dispatch, b"[%b,%b]" % (plain, one)) == (
            b'[{"jsonrpc":"2.0","id":1,"result":"0x20"},%b]' % answer
        )
        assert (await reply_to(dispatch, one.replace(b"eth_blockNumber", b"eth_none"))).startswith(unknown)

    run(main)


@pytest.mark.parametrize("written", ["1E", "01", "+1", "1E400x", "NaN", "Infinity", '"\\ud800"'])
def test_what_is_no_json_is_no_id(written: str) -> None:
    body = b'{"id":%b,"method":"eth_blockNumber","params":[]}' % written.encode()
    assert ask(body) == (400, error(-32700, "Parse error", None))
    assert ask(b"[%b]" % body) == (400, error(-32700, "Parse error", None))


def test_a_parameter_beyond_the_numbers_of_this_machine_is_refused() -> None:
    body = b'{"id":1,"method":"eth_blockNumber","params":[1E400]}'
    assert ask(body) == (400, error(-32700, "Parse error", None))
    assert ask(b'{"id":2,"method":"eth_blockNumber","params":[]}')[1]["result"] == "0x20"


@pytest.mark.parametrize("id", [True, {}, [1]])
def test_an_id_that_is_no_id_is_an_invalid_request(id: Any) -> None:
    assert ask(request("eth_blockNumber", id=id)) == (400, error(-32600, "Invalid Request", None))


@pytest.mark.parametrize("written", [b"1.5", b"1e3", b"123456789012345678901234567890"])
@pytest.mark.parametrize("levels", [10, 1000, 1022])
def test_a_rare_id_needs_no_second_parse_of_the_message(written: bytes, levels: int) -> None:
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
