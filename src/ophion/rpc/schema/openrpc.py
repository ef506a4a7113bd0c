"""The registry as an OpenRPC document (`rpc.discover`) and as the pages of docs/rpc.

Names, parameters, schemas, descriptions and examples all come from the `MethodSpec`s. The pages in the repository are
generated; a test fails if they are out of date.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import orjson

from ophion.rpc.schema.registry import REQUIRED, WEBSOCKET, Example, MethodSpec, Parameter, Registry, group_names
from ophion.rpc.schema.wire_types import WireType

_SPECIFICATION: Final = "1.3.2"
_GROUPS: Final[Mapping[str, str]] = {
    "admin": "administration of the node",
    "anvil": "cheat codes of development nodes, with the names of Anvil",
    "clique": "signers and votes on networks with Clique",
    "debug": "traces, raw data and state by hash",
    "eea": "private transactions",
    "erigon": "headers, as block explorers ask for them",
    "eth": "chain, state, transactions, logs",
    "evm": "cheat codes that all development nodes have",
    "hardhat": "cheat codes of development nodes, with the names of Hardhat",
    "ibft": "validators and votes on networks with IBFT 2.0",
    "miner": "block production",
    "net": "peers and network",
    "ots": "methods of the block explorer Otterscan",
    "parity": "pending transactions, as block explorers ask for them",
    "perm": "local permissions",
    "plugins": "plugins of Besu, of which there are none",
    "priv": "privacy groups",
    "privx": "privacy groups with members in a contract",
    "personal": "methods of wallets, on nodes that sign",
    "qbft": "validators and votes on networks with QBFT",
    "rpc": "the interface itself",
    "sql": "queries over the tables of the chain",
    "trace": "traces of calls",
    "txpool": "pending transactions",
    "web3": "the client version",
}


def document(specs: Iterable[MethodSpec], version: str, compat: str | None = None) -> bytes:
    """Return the OpenRPC document of these methods; `compat` is the compatibility profile in use."""
    profile = {} if compat is None else {"x-compat": compat}
    return orjson.dumps(
        {
            "openrpc": _SPECIFICATION,
            "info": {"title": "Ophion JSON-RPC", "version": version, "license": {"name": "Apache-2.0"}, **profile},
            "methods": [_method(spec) for spec in specs],
        }
    )


def _method(spec: MethodSpec) -> dict[str, Any]:
    signature = spec.signature
    result = signature.result
    schema = {"anyOf": [result.schema, {"type": "null"}]} if signature.nullable else result.schema
    described: dict[str, Any] = {
        "name": spec.name,
        "summary": spec.summary,
        "tags": [{"name": spec.group}],
        "paramStructure": "by-position",
        "params": [_content(parameter) for parameter in signature.parameters],
        "result": {"name": result.name, "description": result.description, "schema": schema},
    }
    if spec.description:
        described["description"] = spec.description
    if spec.aliases:
        described["x-aliases"] = list(spec.aliases)
    if spec.examples:
        described["examples"] = [_pairing(spec, number, one) for number, one in enumerate(spec.examples, 1)]
    return described


def _content(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "description": parameter.wire.description,
        "required": parameter.default is REQUIRED,
        "schema": parameter.wire.schema,
    }


def _pairing(spec: MethodSpec, number: int, example: Example) -> dict[str, Any]:
    named = zip(spec.signature.parameters, example.params, strict=False)
    return {
        "name": f"{spec.name} {number}",
        "params": [{"name": parameter.name, "value": value} for parameter, value in named],
        "result": {"name": spec.signature.result.name, "value": example.result},
    }


# --- pages ---------------------------------------------------------------------------------------


def pages(registry: Registry) -> dict[str, str]:
    """Return Markdown by file name: an index of all methods, and a page for each group."""
    groups = group_names(registry.specs)
    written = {"README.md": _index(groups)}
    for group, specs in groups.items():
        written[f"{group}.md"] = _page(group, specs)
    return written


def _index(groups: Mapping[str, Sequence[MethodSpec]]) -> str:
    lines = [
        "# JSON-RPC methods",
        "",
        "`make docs` generates these pages from `src/ophion/rpc/methods`. `rpc.discover` returns them as an OpenRPC",
        "document. Only eth, net and web3 are enabled by default; enable other groups with",
        "`--rpc-http-api` or `--rpc-ws-api`.",
    ]
    for group, specs in groups.items():
        lines += ["", f"## {group}: {_GROUPS[group]}", "", "| Method | |", "| --- | --- |"]
        lines += [f"| [`{spec.name}`]({group}.md#{_anchor(spec.name)}) | {spec.summary} |" for spec in specs]
    return "\n".join(lines) + "\n"


def table(registry: Registry, folder: str) -> str:
    """Return a Markdown table of the groups, with links to their pages in `folder`."""
    rows = ["| Group | Methods | |", "| --- | --- | --- |"]
    for group, specs in group_names(registry.specs).items():
        rows.append(f"| [{group}]({folder}/{group}.md) | {len(specs)} | {_GROUPS[group]} |")
    return "\n".join(rows) + "\n"


def _page(group: str, specs: Sequence[MethodSpec]) -> str:
    lines = [f"# {group}: {_GROUPS[group]}", "", "[All methods](README.md)"]
    for spec in specs:
        lines += ["", f"## {spec.name}", "", spec.summary]
        if spec.description:
            lines += ["", spec.description]
        if spec.aliases:
            lines += ["", "Aliases: " + ", ".join(f"`{alias}`" for alias in spec.aliases) + "."]
        if spec.transports == {WEBSOCKET}:
            lines += ["", "WebSocket only; enabled regardless of groups."]
        if "clique" in spec.needs:
            lines += ["", "On networks with Clique only."]
        lines += [
            "",
            *_parameters(spec.signature.parameters),
            "",
            f"Result: {_result(spec.signature.result, spec.signature.nullable)}",
        ]
        for example in spec.examples:
            lines += ["", "```json", *_exchange(spec.name, example), "```"]
    return "\n".join(lines) + "\n"


def _parameters(parameters: Sequence[Parameter]) -> list[str]:
    if not parameters:
        return ["No parameters."]
    lines = ["| Parameter | | |", "| --- | --- | --- |"]
    for parameter in parameters:
        if parameter.is_repeated:
            need = "any number"
        else:
            need = "required" if parameter.default is REQUIRED else _default(parameter.default)
        lines.append(f"| `{parameter.name}` | {parameter.wire.description} | {need} |")
    return lines


def _default(value: Any) -> str:
    shown = getattr(value, "value", value)
    if shown is None:
        return "optional"
    return f"default `{json.dumps(shown)}`" if isinstance(shown, bool) else f"default `{shown}`"


def _result(wire: WireType, nullable: bool) -> str:
    names = list(wire.schema.get("properties", {}))
    text = f"{wire.description}{' or null' if nullable else ''}"
    return f"{text} (`{'`, `'.join(names)}`)" if names else text


def _exchange(name: str, example: Example) -> list[str]:
    request = {"jsonrpc": "2.0", "id": 1, "method": name, "params": list(example.params)}
    answer = {"jsonrpc": "2.0", "id": 1, "result": example.result}
    return [json.dumps(request), json.dumps(answer)]


def _anchor(name: str) -> str:
    return name.lower().replace(".", "")
