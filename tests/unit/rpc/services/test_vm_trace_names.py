"""Names of the instructions in a `vmTrace`."""

from __future__ import annotations

from typing import Any

import orjson

from ophion.rpc.services.vm_trace_names import with_names


def step(pc: int, sub: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"pc": pc, "cost": 3, "ex": None, "sub": sub}


def test_each_step_has_a_name() -> None:
    empty = {"code": "0x00", "ops": []}
    inner = {"ops": [step(0), step(1), step(2)], "code": "0x5f440c"}
    machine = {"ops": [step(0), step(2, inner), step(2, empty), step(3)], "code": "0x6001f1"}
    (entry,) = orjson.loads(with_names(orjson.dumps([{"output": "0x", "vmTrace": machine}])))
    assert [one["op"] for one in entry["vmTrace"]["ops"]] == ["PUSH1", "CALL", "CALL", "STOP"]
    sub = entry["vmTrace"]["ops"][1]["sub"]
    assert [one["op"] for one in sub["ops"]] == ["PUSH0", "DIFFICULTY", "Unknown opcode"]


def test_calls_may_nest_as_deep_as_in_the_evm() -> None:
    text = b"null"
    for _ in range(1024):
        text = b'{"ops":[{"cost":1,"pc":0,"ex":null,"sub":%b}],"code":"0x5b"}' % text
    text = b'{"output":"0x","stateDiff":null,"trace":[],"vmTrace":%b}' % text
    named = with_names(text)
    assert named.count(b'"pc":0,"op":"JUMPDEST"') == 1024
    assert named.replace(b',"op":"JUMPDEST"', b"") == text


def test_results_without_steps_stay() -> None:
    for result in (None, [], [{"vmTrace": None, "output": "0x"}], {"vmTrace": None}):
        assert orjson.loads(with_names(orjson.dumps(result))) == result
