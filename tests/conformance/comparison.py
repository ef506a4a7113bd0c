"""Compares answers with public cases (../shared/fixtures/README.md). JSON values must be equal, hex may have any case,
and errors are compared by code.
"""

from __future__ import annotations

import re
from typing import Any

_VALUE_NAME = re.compile("0x[0-9a-fA-F]{40}|[0-9]+")

ADDED_MEMBERS = frozenset(
    {
        "type", "chainId", "effectiveGasPrice", "mixHash", "blockTimestamp", "yParity", "accessList", "maxFeePerGas",
        "maxPriorityFeePerGas", "baseFeePerGas", "withdrawals", "withdrawalsRoot", "blobGasUsed", "excessBlobGas",
        "parentBeaconBlockRoot", "requestsHash",
    }
)  # fmt: skip
"""JSON keys that json-rpc.md 7.2 adds to the objects of Pantheon 1.2."""


def differences(expected: Any, got: Any, lenient: bool = False, at: str = "$") -> list[str]:
    """Return where two JSON values differ. With `lenient`, additional keys are accepted."""
    if isinstance(expected, dict) and isinstance(got, dict):
        found = [f"{at}.{name} is missing" for name in expected if name not in got]
        extra = set(got) - set(expected) - (ADDED_MEMBERS if lenient else set())
        found += [f"{at}.{name} is not expected" for name in sorted(extra)]
        for name in expected:
            if name in got:
                found += differences(expected[name], got[name], lenient, f"{at}.{name}")
        return found
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return [f"{at} has {len(got)} entries instead of {len(expected)}"]
        pairs = enumerate(zip(expected, got, strict=True))
        return [one for index, (a, b) in pairs for one in differences(a, b, lenient, f"{at}[{index}]")]
    if isinstance(expected, str) and isinstance(got, str) and expected[:2] == "0x":
        return [] if expected.lower() == got.lower() else [f"{at} is {got} instead of {expected}"]
    is_same = expected == got and isinstance(expected, bool) == isinstance(got, bool)
    return [] if is_same else [f"{at} is {got!r} instead of {expected!r}"]


def answer_differences(expected: dict[str, Any], got: dict[str, Any], lenient: bool = False) -> list[str]:
    """Compare whole answers: results by value, errors by code, and the data of errors if both answers have data."""
    if "error" in expected:
        if "error" not in got:
            return [f"a result instead of error {expected['error']}"]
        found = differences(expected["error"]["code"], got["error"]["code"], at="$.error.code")
        if "data" in expected["error"]:
            found += differences(expected["error"]["data"], got["error"].get("data"), at="$.error.data")
        return found
    if "error" in got:
        return [f"error {got['error']} instead of a result"]
    return differences(expected["result"], got["result"], lenient, "$.result")


def shape_differences(expected: Any, got: Any, at: str = "$") -> list[str]:
    """Compare types and names of JSON keys, not values, for cases whose answer is only an example.

    Member names that are values themselves (addresses, nonces) may differ. The objects under these names must have the
    same shape.
    """
    if isinstance(expected, dict) and isinstance(got, dict):
        if expected and all(_VALUE_NAME.fullmatch(name) for name in expected):
            example = next(iter(expected.values()))
            pairs = [(name, expected.get(name, example), value) for name, value in got.items()]
            return [one for name, shown, value in pairs for one in shape_differences(shown, value, f"{at}.{name}")]
        return [f"{at}.{name} is missing" for name in expected if name not in got] + [
            one
            for name in expected
            if name in got
            for one in shape_differences(expected[name], got[name], f"{at}.{name}")
        ]
    return [] if _kind(expected) == _kind(got) else [f"{at} is {got!r}, of another kind than {expected!r}"]


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else type(value).__name__
