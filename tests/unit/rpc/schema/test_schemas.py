"""Answers match their JSON schemas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from ophion.rpc.methods import all_methods
from ophion.rpc.schema import schemas
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.unit.rpc.interface import Interface

_TYPES = {"string": str, "array": list, "object": dict, "integer": int, "number": (int, float), "null": type(None)}


def faults(schema: Mapping[str, Any], value: Any, at: str = "$") -> list[str]:
    """Return where a value violates a schema. Supports the keywords in use, and reports unknown keys."""
    if "anyOf" in schema:
        return [] if any(not faults(one, value, at) for one in schema["anyOf"]) else [f"{at}: {value!r} fits nothing"]
    if "enum" in schema:
        return [] if value in schema["enum"] else [f"{at}: {value!r}"]
    kind = schema.get("type")
    if kind == "boolean":
        return [] if isinstance(value, bool) else [f"{at}: {value!r} is no boolean"]
    if kind is not None and not isinstance(value, _TYPES[kind]):
        return [f"{at}: {value!r} is no {kind}"]
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        return [f"{at}: {value!r} has another form"]
    if kind == "array":
        return [
            one for index, item in enumerate(value) for one in faults(schema.get("items", {}), item, f"{at}[{index}]")
        ]
    if kind == "object":
        return _object_faults(schema, value, at)
    return []


def _object_faults(schema: Mapping[str, Any], value: dict[str, Any], at: str) -> list[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    found = [f"{at}.{name} is missing" for name in schema.get("required", ()) if name not in value]
    for name, member in value.items():
        if name in properties:
            found += faults(properties[name], member, f"{at}.{name}")
        elif others is not None:
            found += faults(others, member, f"{at}.{name}")
        elif properties:
            found.append(f"{at}.{name} is not documented")
    return found


EXAMPLES = [(spec, example) for spec in all_methods().specs for example in spec.examples]


@pytest.mark.parametrize(("spec", "example"), EXAMPLES, ids=lambda value: getattr(value, "name", None))
def test_examples_fit_their_schema(spec: Any, example: Any) -> None:
    if example.result is None:
        assert spec.signature.nullable
    else:
        assert faults(spec.signature.result.schema, example.result) == []
    for parameter, value in zip(spec.signature.parameters, example.params, strict=False):
        assert parameter.wire.schema == {} or value is None or faults(parameter.wire.schema, value) == []


def test_objects_of_the_chain_fit_their_schema(dev: Interface) -> None:
    raws = [
        legacy_transaction(DEV_KEYS[1], 0),
        legacy_transaction(DEV_KEYS[1], 1, to=None, gas=100_000),
        fee_transaction(DEV_KEYS[1], 2),
    ]
    dev.run(dev.node.mine(*raws))
    dev.run(dev.node.send(legacy_transaction(DEV_KEYS[1], 3)))
    for block in ("latest", "pending", "earliest"):
        for full in (False, True):
            assert faults(schemas.BLOCK, dev.ask("eth_getBlockByNumber", block, full)) == []
    for receipt in dev.ask("eth_getBlockReceipts", "latest"):
        assert faults(schemas.RECEIPT, receipt) == []


def test_objects_of_the_sample_chain_fit_their_schema(sample: Interface) -> None:
    for log in sample.ask("eth_getLogs", {"fromBlock": "0x0", "toBlock": "latest"}):
        assert faults(schemas.LOG, log) == []
    for name in ("eth_getBlockByNumber", "eth_getBlockReceipts"):
        (spec,) = [spec for spec in all_methods().specs if spec.name == name]
        for number in range(33):
            assert faults(spec.signature.result.schema, sample.ask(name, hex(number))) == []
