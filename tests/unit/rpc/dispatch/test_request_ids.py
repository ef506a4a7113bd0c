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


def test_deep_nesting_with_an_unusual_id_is_an_invalid_request() -> None:
    deep = b"[" * 1000 + b"]" * 1000
    assert ask(b'{"id":1.5,"method":"eth_blockNumber","params":%b}' % deep)[1]["error"]["code"] in (-32600, -32700)
    answer = ask(b'[{"id":1.5,"method":"eth_blockNumber","params":%b}]' % deep[1:-1])[1]
    assert "error" in (answer[0] if isinstance(answer, list) else answer)
