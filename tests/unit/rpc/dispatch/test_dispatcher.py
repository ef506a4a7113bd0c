"""Tests envelopes, notifications, failures and waiting requests."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.errors import RpcError
from ophion.rpc.dispatch.dispatcher import Dispatcher
from ophion.rpc.schema.registry import BoundMethod
from ophion.rpc.transport.replies import Answer, PendingReply
from tests.unit.rpc.envelopes import ask, error, request, run
from tests.unit.rpc.wire import Context


def test_a_request_is_answered_with_its_id_and_result() -> None:
    assert ask(request("eth_blockNumber", id=7)) == (200, {"jsonrpc": "2.0", "id": 7, "result": "0x20"})


def test_members_of_an_answer_have_the_standard_order() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_blockNumber"}')
        assert reply == b'{"jsonrpc":"2.0","id":1,"result":"0x20"}'

    run(main)


@pytest.mark.parametrize("body", [b"", b"{", b"5", b'"x"', b"null", b"\xff", b"[1,", b"[" * 5000])
def test_what_is_not_json_or_a_scalar_is_a_parse_error(body: bytes) -> None:
    assert ask(body) == (400, error(-32700, "Parse error", None))


@pytest.mark.parametrize(
    "message", [{"id": 3}, {"id": 3, "method": 5}, {"id": 3, "method": "eth_blockNumber", "params": {"a": 1}}]
)
def test_envelope_faults_are_invalid_requests_with_their_id(message: dict[str, Any]) -> None:
    assert ask(message) == (400, error(-32600, "Invalid Request", 3))


def test_a_notification_is_not_executed_and_has_an_empty_answer() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        assert dispatch.handle(b'{"method":"eth_blockNumber","params":[]}') == b""
        assert context.executed == []

    run(main)


def test_an_id_of_null_is_executed() -> None:
    assert ask(request("eth_blockNumber", id=None)) == (200, {"jsonrpc": "2.0", "id": None, "result": "0x20"})


@pytest.mark.parametrize("params", [None, [], [None], ["surplus", 1]])
def test_absent_null_and_surplus_params_do_no_harm(params: Any) -> None:
    assert ask({"id": 1, "method": "eth_blockNumber", "params": params})[1]["result"] == "0x20"


def test_an_unknown_method_and_one_that_is_off_differ() -> None:
    assert ask(request("eth_nonsense")) == (200, error(-32601, "Method not found"))
    assert ask(request("admin_peers")) == (200, error(-32604, "Method not enabled"))
    assert ask(request("clique_propose")) == (200, error(-32604, "Method not enabled"))
    assert ask(request("eth_tell", "x")) == (200, error(-32604, "Method not enabled"))


def test_method_names_are_case_sensitive() -> None:
    assert ask(request("ETH_BLOCKNUMBER"))[1]["error"]["code"] == -32601


def test_bad_params_say_where_in_data() -> None:
    status, answer = ask(request("eth_getBalance", "0xzz"))
    assert (status, answer["error"]["code"], answer["error"]["message"]) == (200, -32602, "Invalid params")
    assert "address" in answer["error"]["data"]
    assert "missing" in ask(request("eth_getBalance"))[1]["error"]["data"]


def test_surplus_params_are_refused_where_the_count_is_exact() -> None:
    assert ask(request("web3_sha3", "a", "b"))[1]["error"]["code"] == -32602


def test_null_stands_for_the_default_of_a_parameter() -> None:
    assert ask(request("eth_getBalance", "0x1", None))[1]["result"] == "0x1"
    assert ask(request("eth_getBalance", "0x1", "earliest"))[1]["result"] is None


def test_method_errors_can_have_status_400_as_in_pantheon() -> None:
    assert ask(request("eth_nonsense"), error_status=400) == (400, error(-32601, "Method not found"))
    assert ask(request("eth_blockNumber"), error_status=400)[0] == 200
    assert ask([request("eth_nonsense")], error_status=400)[0] == 200


def test_a_bug_is_an_internal_error_and_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    assert ask(request("eth_fail")) == (200, error(-32603, "Internal error"))
    assert "eth_fail" in caplog.text


def test_a_panic_of_the_extension_is_an_internal_error_too(caplog: pytest.LogCaptureFixture) -> None:
    assert ask(request("eth_panic")) == (200, error(-32603, "Internal error"))
    assert ask([request("eth_panic")])[1] == [error(-32603, "Internal error")]
    assert "index out of bounds" in caplog.text


def test_a_panic_after_a_wait_is_answered() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_panicLater","params":[]}')
        assert isinstance(reply, PendingReply)
        answers: list[Any] = []
        reply.deliver = answers.append
        for _ in range(20):
            await asyncio.sleep(0)
        assert [json.loads(answer) for answer in answers] == [error(-32603, "Internal error")]

    run(main)


@pytest.mark.parametrize("filler", [5_000, 80_000])
@pytest.mark.parametrize(
    "members",
    [
        b'"method":"eth_getBalance","params":[1e999]',
        b'"method":"eth_getBalance","params":["\\ud800"]',
        b'"method":"\\ud800","params":[]',
    ],
)
def test_what_an_outline_takes_for_json_and_the_parser_does_not_is_a_parse_error(members: bytes, filler: int) -> None:
    body = b'{"id":1,%b,"filler":"%b"}' % (members, b"x" * filler)
    assert ask(body) == (400, error(-32700, "Parse error", None))
    if b"1e999" in members:  # a batch refuses lone surrogates as a whole, so test only the large number in a batch
        assert ask(b"[" + body + b"," + body + b"]") == (200, [error(-32700, "Parse error", None)] * 2)


class Large:
    """A decoded request."""


@pytest.mark.parametrize("waits", [False, True])
def test_nothing_of_a_request_that_failed_is_kept_until_garbage_is_collected(waits: bool) -> None:
    """The node frees request data without garbage collection, although the error refers to frames that hold request
    data.
    """
    references: list[weakref.ref[Large]] = []

    def fail(large: Large) -> None:
        try:
            raise ValueError("a first error, which the second one has on its mind")
        except ValueError as error:
            raise RpcError(-32000, "refused") from error

    async def job() -> None:
        large = Large()
        references.append(weakref.ref(large))
        if waits:
            await asyncio.get_running_loop().run_in_executor(None, fail, large)
        fail(large)

    def invoke(params: Sequence[Any], caller: Any) -> Any:
        return job()

    async def main() -> None:
        loop = asyncio.get_running_loop()
        dispatch = Dispatcher({"eth_fail": BoundMethod(invoke, bytes, True, "eth_fail")}, loop)
        reply: Any = dispatch.handle(b'{"id":1,"method":"eth_fail","params":[]}')
        if isinstance(reply, PendingReply):
            answered: asyncio.Future[Any] = loop.create_future()
            reply.deliver = answered.set_result
            reply = await answered
        assert b"refused" in reply
        await asyncio.sleep(0)

    gc.disable()
    try:
        asyncio.run(main())
        assert references[0]() is None
    finally:
        gc.enable()


def test_a_large_result_is_not_copied_into_its_envelope() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_large","params":[]}')
        assert isinstance(reply, Answer)
        assert len(reply.parts) == 3
        assert len(json.loads(reply.join())["result"]) == 200_000

    run(main)


def test_a_coroutine_that_does_not_wait_is_finished_at_once() -> None:
    assert ask(request("eth_getCode", "0x1"))[1]["result"] == "0x" + "00" * 19 + "01"


def test_a_coroutine_that_waits_is_answered_later() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_wait","params":[]}')
        assert isinstance(reply, PendingReply)
        answers: list[Any] = []
        reply.deliver = answers.append
        assert context.gate is not None
        context.gate.set_result(4)
        for _ in range(20):
            await asyncio.sleep(0)
        assert answers == [b'{"jsonrpc":"2.0","id":1,"result":"0x5"}']

    run(main)


def test_an_abandoned_wait_is_cancelled_and_not_answered() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_wait","params":[]}')
        assert isinstance(reply, PendingReply)
        answers: list[Any] = []
        reply.deliver = answers.append
        await asyncio.sleep(0)
        reply.abandon()
        for _ in range(3):
            await asyncio.sleep(0)
        assert context.gate is not None
        assert context.gate.cancelled()
        assert answers == []

    run(main)


@given(st.binary(max_size=60))
def test_no_body_makes_the_dispatcher_fail(body: bytes) -> None:
    status, _ = ask(body)
    assert status in (200, 400)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.sampled_from(["eth_getBalance", "eth_blockNumber", "web3_sha3", "x"]) | _JSON, _JSON)
def test_no_envelope_makes_the_dispatcher_fail(id: Any, name: Any, params: Any) -> None:
    status, answer = ask({"id": id, "method": name, "params": params})
    assert status in (200, 400)
    assert answer is None or "error" in answer or "result" in answer
    assert answer is None or answer.get("error", {}).get("code") != -32603


def test_a_transaction_that_is_sent_takes_the_same_way_as_any_request() -> None:
    sent = []

    async def send(values: Sequence[Any], caller: Any) -> str:
        sent.append(bytes(values[0]))
        if not values[0]:
            raise RpcError(-32000, "there is nothing in it")
        await asyncio.sleep(0)
        return "0x01"

    def decode(params: Sequence[Any]) -> Sequence[Any]:
        return [bytes.fromhex(params[0][2:])]

    bound = BoundMethod(
        lambda params, caller: send(decode(params), caller),
        lambda value: json.dumps(value).encode(),
        True,
        "eth_sendRawTransaction",
        decode,
        send,
    )

    async def answer(dispatch: Dispatcher, body: str) -> bytes:
        reply = dispatch.handle(body.encode())
        if isinstance(reply, PendingReply):
            found: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            reply.deliver = found.set_result
            reply = await found
        assert isinstance(reply, bytes)
        return reply

    async def main() -> None:
        dispatch = Dispatcher({"eth_sendRawTransaction": bound}, asyncio.get_running_loop())
        nobody = Dispatcher({}, asyncio.get_running_loop())
        off = Dispatcher({"eth_sendRawTransaction": BoundMethod(_off, bytes, False, "")}, asyncio.get_running_loop())
        usual = '{"jsonrpc":"2.0","id":3,"method":"eth_sendRawTransaction","params":["0x%s"]}'
        unusual = usual.replace("Raw", "\\u0052aw")
        for raw in ("02ff", ""):
            for one in (dispatch, nobody, off):
                assert await answer(one, usual % raw) == await answer(one, unusual % raw)
        assert await answer(dispatch, usual % "02ff") == b'{"jsonrpc":"2.0","id":3,"result":"0x01"}'
        assert b"Method not found" in await answer(nobody, usual % "02ff")
        assert b"switched off" in await answer(off, usual % "02ff")

    asyncio.run(main())
    assert sent == [b"\x02\xff", b"\x02\xff", b"", b"", b"\x02\xff"]


def _off(params: Sequence[Any], caller: Any) -> Any:
    raise RpcError(-32604, "switched off")
