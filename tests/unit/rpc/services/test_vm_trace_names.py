"""Names of the instructions in a `vmTrace`."""

from __future__ import annotations

from typing import Any

import orjson

from ophion.rpc.services.vm_trace_names import with_names


def step(pc: int, sub: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"pc": pc, "cost": 3, "ex": None, "sub": sub}


def test_each_step_has_a_name() -> None:
    inner = {"code": "0x5f440c", "ops": [step(0), step(1), step(2)]}
    machine = {"code": "0x6001f1", "ops": [step(0), step(2, inner), step(3)]}
    (entry,) = orjson.loads(with_names(orjson.dumps([{"output": "0x", "vmTrace": machine}])))
    assert [one["op"] for one in entry["vmTrace"]["ops"]] == ["PUSH1", "CALL", "STOP"]
    sub = entry["vmTrace"]["ops"][1]["sub"]
    assert [one["op"] for one in sub["ops"]] == ["PUSH0", "DIFFICULTY", "Unknown opcode"]


def test_results_without_steps_stay() -> None:
    for result in (None, [], [{"vmTrace": None, "output": "0x"}], {"vmTrace": None}):
        assert orjson.loads(with_names(orjson.dumps(result))) == result
