"""Sends mutated JSON-RPC requests: every method, with nearly correct parameters."""

from __future__ import annotations

import json
from functools import cache
from random import Random
from typing import Any

from ophion.rpc.methods import all_methods
from ophion.rpc.schema.registry import MethodSpec
from ophion.testing.signing import DEV_KEYS
from tests.abuse.target import Target, post
from tests.fuzz.finding import Finding, check_answer
from tests.fuzz.http_bytes import edited
from tests.fuzz.mutate import ODD_VALUES

ACCOUNTS = ["0x" + key.address.hex() for key in DEV_KEYS]
TEXTS = (
    *ACCOUNTS,
    "0x",
    "0x0",
    "0x1",
    "0x5208",
    "0xffffffffffffffff",
    "0x" + "00" * 32,
    "0x" + "11" * 32,
    "0x5b600056",
    "0x6080604052" * 30,
    "0x60006000fd",
    "0x604260005260206000f3",
    "latest",
    "earliest",
    "pending",
    "finalized",
    "callTracer",
    "prestateTracer",
    "4byteTracer",
    "muxTracer",
    "trace",
    "stateDiff",
    "newHeads",
    "logs",
    "{step: function() {}}",
)
NAMED = {
    "^0x{40}": ("from", "to", "address", "feeRecipient", "fromAddress", "toAddress"),
    "^0x[1-9a-f]": ("gas", "gasPrice", "value", "nonce", "maxFeePerGas", "number", "time", "balance", "gasLimit"),
    "^0x": ("data", "input", "code"),
}
"""Sample texts for JSON keys whose schema only says that the value is text."""
PATTERNS = {name: pattern for pattern, names in NAMED.items() for name in names}
BLINDING = ("admin_changeLogLevel",)
"""Methods that would stop a node from logging errors."""
STATUSES = (200, 400, 401, 408, 413, 503)
LARGE = 40


@cache
def methods() -> tuple[MethodSpec, ...]:
    return tuple(spec for spec in all_methods().specs if spec.name not in BLINDING)


def value(schema: Any, random: Random, depth: int = 0) -> Any:
    """Return a value of this schema, or sometimes another value."""
    if depth > 6 or random.randrange(14) == 0:
        return random.choice(ODD_VALUES)
    if "enum" in schema:
        return random.choice(schema["enum"])
    if "anyOf" in schema:
        return value(random.choice(schema["anyOf"]), random, depth)
    match schema.get("type"):
        case "string":
            return text(schema.get("pattern", ""), random)
        case "boolean":
            return random.choice((True, False))
        case "integer" | "number":
            return random.choice((0, 1, 2, 100, -1, 1.5, 2**63, 2**256))
        case "array":
            items = schema.get("items", {})
            count = random.choice((0, 1, 2, 3, 30))
            return [value(items, random, depth + 1) for _ in range(count)]
        case "object":
            found: dict[str, Any] = {
                name: value({"pattern": PATTERNS.get(name, "")} | of, random, depth + 1)
                for name, of in schema.get("properties", {}).items()
                if random.randrange(3) == 0
            }
            others = schema.get("additionalProperties")
            if isinstance(others, dict):
                found |= {random.choice(ACCOUNTS): value(others, random, depth + 1) for _ in range(random.randrange(3))}
            return found
    return random.choice((*TEXTS, *ODD_VALUES))


def text(pattern: str, random: Random) -> Any:
    if "{40}" in pattern:
        return random.choice((random.choice(ACCOUNTS), "0x" + random.randbytes(20).hex()))
    if "{64}" in pattern:
        return "0x" + random.choice((bytes(32), random.randbytes(32))).hex()
    if "[1-9a-f]" in pattern:
        return hex(random.choice((0, 1, 2, 21_000, 10**18, 2**63, 2**64 - 1, 2**255)))
    return random.choice((random.choice(TEXTS), "0x" + random.randbytes(random.choice((1, 4, 32, 200))).hex()))


def request(random: Random) -> dict[str, Any]:
    spec = random.choice(methods())
    if spec.examples and random.randrange(3) == 0:
        params: Any = list(random.choice(spec.examples).params)
        if params and random.randrange(2):
            params[random.randrange(len(params))] = random.choice(ODD_VALUES)
    else:
        params = [value(one.wire.schema, random) for one in spec.signature.parameters]
        del params[random.randrange(len(params) + 1) + random.randrange(2) :]
    found: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": random.randrange(99),
        "method": random.choice(spec.names),
        "params": params,
    }
    for _ in range(random.choice((0, 0, 0, 1))):
        found[random.choice(("jsonrpc", "id", "method", "params", "x"))] = random.choice(ODD_VALUES)
    return found


def body(random: Random) -> bytes:
    """Return a request, a batch, or a nearly correct request or batch."""
    kind = random.randrange(16)
    if kind == 0:
        found = json.dumps([request(random) for _ in range(random.choice((0, 1, 3, LARGE)))]).encode()
    elif kind == 1:
        found = json.dumps([random.choice(ODD_VALUES) for _ in range(random.choice((1, LARGE)))]).encode()
    elif kind == 2:
        one = json.dumps(request(random))
        found = one.replace('"params"', '"params":[],"params"').encode()
    elif kind == 3:
        # make the body so long that the node scans its structure before parsing it
        one = json.dumps(request(random) | {"filler": random.choice(("x", "é", "\\", "\ud800")) * 5000})
        found = one.replace('"id": ', '"id": ' + random.choice(("1.5e", "-", "0", "1e999", ""))).encode()
    elif kind == 4:
        depth = random.choice((10, 1000, 1100, 20_000))
        found = (
            b'{"id":1,"method":"eth_call","params":' + b"[" * depth + b"]" * random.choice((depth, depth - 1)) + b"}"
        )
    else:
        found = json.dumps(request(random)).encode()
    return edited(found, random) if random.randrange(5) == 0 else found


async def case(target: Target, random: Random) -> bytes:
    """Send one body over HTTP. The node must answer, and not with an internal error."""
    sent = body(random)
    status, answer = await post(target.http, sent)
    check_answer(answer, sent)
    if status not in STATUSES:
        raise Finding(f"status {status}: {answer[:300]!r}", sent)
    return sent
