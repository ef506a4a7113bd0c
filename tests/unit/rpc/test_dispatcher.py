"""Envelopes, batches, notifications, waits."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ophion.rpc.dispatcher import Answer, Dispatcher, Pending, Reply
from tests.unit.rpc.wire import Context, dispatcher


def run(test: Callable[[Dispatcher, Context], Awaitable[Any]], **limits: Any) -> Any:
    async def main() -> Any:
        context = Context()
        return await test(dispatcher(context, asyncio.get_running_loop(), **limits), context)

    return asyncio.run(main())


def ask(body: bytes | dict[str, Any] | list[Any], **limits: Any) -> tuple[int, Any]:
    """Status and parsed body of a message whose answer does not wait."""

    async def main(dispatch: Dispatcher, context: Context) -> tuple[int, Any]:
        return read(dispatch.handle(body if isinstance(body, bytes) else json.dumps(body).encode()))

    result: tuple[int, Any] = run(main, **limits)
    return result


def read(reply: Reply) -> tuple[int, Any]:
    assert not isinstance(reply, Pending)
    text = reply if isinstance(reply, bytes) else reply.join()
    return (200 if isinstance(reply, bytes) else reply.status), (json.loads(text) if text else None)


def request(name: str, *params: Any, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": name, "params": list(params)}


def error(code: int, message: str, id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}


def test_a_request_is_answered_with_its_id_and_result() -> None:
    assert ask(request("eth_blockNumber", id=7)) == (200, {"jsonrpc": "2.0", "id": 7, "result": "0x20"})


def test_members_of_an_answer_come_in_the_usual_order() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_blockNumber"}')
        assert reply == b'{"jsonrpc":"2.0","id":1,"result":"0x20"}'

    run(main)


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


def test_method_errors_can_have_status_400_as_the_original_had() -> None:
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
        assert isinstance(reply, Pending)
        answers: list[Any] = []
        reply.deliver = answers.append
        for _ in range(20):
            await asyncio.sleep(0)
        assert [json.loads(answer) for answer in answers] == [error(-32603, "Internal error")]

    run(main)


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
        assert isinstance(reply, Pending)
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
        assert isinstance(reply, Pending)
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


def test_a_wait_that_takes_too_long_is_given_up_with_408() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(b'{"id":1,"method":"eth_wait","params":[]}')
        assert isinstance(reply, Pending)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        status, text = read(await asyncio.wait_for(answer, 5))
        assert (status, text) == (408, error(-32603, "Timeout expired", None))

    run(main, timeout_s=0.01)


def test_nothing_is_kept_of_a_wait_that_is_over() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        single, batch = json.dumps(request("eth_wait")).encode(), json.dumps([request("eth_wait")]).encode()
        for body in (single, batch):
            answered, given_up = dispatch.handle(body), dispatch.handle(body)
            assert isinstance(answered, Pending)
            assert isinstance(given_up, Pending)
            assert len(dispatch._waiting) == 2
            given_up.abandon()
            assert len(dispatch._waiting) == 1
            answered.resolve(b"")
            assert len(dispatch._waiting) == 0

    run(main)


# --- batches -------------------------------------------------------------------------------------


def test_a_batch_is_answered_in_order_whatever_its_members_are() -> None:
    status, answers = ask([request("eth_blockNumber", id="1"), 5, request("eth_nonsense", id=2), []])
    assert status == 200
    assert [answer["id"] for answer in answers] == ["1", None, 2, None]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32600, -32601, -32600]


def test_an_empty_batch_is_an_invalid_request() -> None:
    assert ask([]) == (400, error(-32600, "Invalid Request", None))


def test_notifications_are_left_out_of_a_batch() -> None:
    assert ask([{"method": "eth_blockNumber"}]) == (200, [])
    assert len(ask([{"method": "eth_blockNumber"}, request("eth_blockNumber")])[1]) == 1


def test_an_oversized_batch_is_refused_as_a_whole() -> None:
    batch = [request("eth_blockNumber")] * 3
    assert ask(batch, max_batch=2) == (200, error(-32005, "Number of requests exceeds max batch size", None))
    assert len(ask(batch, max_batch=3)[1]) == 3


def test_a_batch_waits_for_its_slowest_member_and_keeps_its_order() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        body = json.dumps([request("eth_wait", id=1), request("eth_blockNumber", id=2)]).encode()
        reply = dispatch.handle(body)
        assert isinstance(reply, Pending)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        assert context.gate is not None
        context.gate.set_result(1)
        _, answers = read(await answer)
        assert [one["id"] for one in answers] == [1, 2]

    run(main)


def test_a_batch_of_many_waits_runs_some_at_a_time_and_finishes() -> None:
    async def main(dispatch: Dispatcher, context: Context) -> None:
        reply = dispatch.handle(json.dumps([request("eth_wait", id=n) for n in range(40)]).encode())
        assert isinstance(reply, Pending)
        answer = asyncio.get_running_loop().create_future()
        reply.deliver = answer.set_result
        while not answer.done():
            for task in asyncio.all_tasks():
                waiter = getattr(task, "_fut_waiter", None)
                if waiter is not None and not waiter.done() and waiter is not answer:
                    waiter.set_result(1)
            await asyncio.sleep(0)
        assert [one["result"] for one in read(answer.result())[1]] == ["0x2"] * 40

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


# --- how much an answer may hold -----------------------------------------------------------------


def test_a_batch_stops_where_its_answer_would_be_too_large() -> None:
    calls = [request("eth_blockNumber", id=number) for number in range(6)]
    status, answers = ask([*calls, {"method": "eth_blockNumber"}], max_response_bytes=100)
    assert status == 200
    assert [answer["id"] for answer in answers] == list(range(6))
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, -32005, -32005, -32005, -32005]


def test_deep_nesting_with_an_unusual_id_is_an_invalid_request() -> None:
    deep = b"[" * 1000 + b"]" * 1000
    assert ask(b'{"id":1.5,"method":"eth_blockNumber","params":%b}' % deep)[1]["error"]["code"] in (-32600, -32700)
    answer = ask(b'[{"id":1.5,"method":"eth_blockNumber","params":%b}]' % deep[1:-1])[1]
    assert "error" in (answer[0] if isinstance(answer, list) else answer)
