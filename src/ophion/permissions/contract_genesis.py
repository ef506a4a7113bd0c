"""The permission contracts in a genesis file, with code and storage as after their deployment.

The sources in `contracts/` define the storage layout. A test deploys the sources and compares the storage.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib import resources
from typing import Any, Final

from ophion.native.crypto import keccak256
from ophion.permissions.contract_abi import ADMIN, RULES, named_node, packed_ip
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

ADMINISTRATION: Final = bytes.fromhex("7777".rjust(40, "0"))
ACCOUNT_INGRESS: Final = bytes.fromhex("8888".rjust(40, "0"))
"""Conventional address of the account ingress contract."""
ACCOUNT_RULES: Final = bytes.fromhex("8889".rjust(40, "0"))
NODE_INGRESS: Final = bytes.fromhex("9999".rjust(40, "0"))
NODE_RULES: Final = bytes.fromhex("999a".rjust(40, "0"))

_VERSION: Final = 1_000_000

Storage = dict[int, int]


def code(name: str, form: str = "runtime") -> bytes:
    """Return the compiled contract: `runtime` code of an account, or `creation` code for deployment."""
    content = resources.files("ophion.permissions").joinpath("contracts/compiled.json").read_text()
    return bytes.fromhex(json.loads(content)["contracts"][name][form][2:])


def account_contracts(admins: Sequence[Address], permitted: Sequence[Address]) -> dict[Address, dict[str, Any]]:
    """Return the ingress and the rules contract for accounts.

    The rules permit the administrators, who otherwise could not change the rules.
    """
    accounts = list(dict.fromkeys([*admins, *permitted]))
    return {
        ADMINISTRATION: _account("Administration", _set_of_addresses(admins, 0)),
        ACCOUNT_INGRESS: _account("AccountIngress", _ingress(ACCOUNT_RULES)),
        ACCOUNT_RULES: _account("AccountRules", {0: _number(ACCOUNT_INGRESS)} | _set_of_addresses(accounts, 1)),
    }


def node_contracts(
    admins: Sequence[Address], permitted: Sequence[Enode], version: int = 1
) -> dict[Address, dict[str, Any]]:
    """Return the ingress and the rules contract for nodes. The rules contract has interface version 1 or 2."""
    name, members = ("NodeRules", _set_of_nodes) if version == 1 else ("NodeRulesByName", _set_of_names)
    return {
        ADMINISTRATION: _account("Administration", _set_of_addresses(admins, 0)),
        NODE_INGRESS: _account("NodeIngress", _ingress(NODE_RULES)),
        NODE_RULES: _account(name, {0: _number(NODE_INGRESS)} | members(permitted, 1)),
    }


def _account(name: str, storage: Storage) -> dict[str, Any]:
    return {
        "balance": "0x0",
        "code": "0x" + code(name).hex(),
        "storage": {f"0x{slot:064x}": f"0x{value:064x}" for slot, value in sorted(storage.items()) if value},
    }


def _ingress(rules: Address) -> Storage:
    registry = {_in_mapping(RULES, 2): _number(rules), _in_mapping(ADMIN, 2): _number(ADMINISTRATION)}
    names = _array(3)
    return {0: _number(RULES), 1: _number(ADMIN), 3: 2, names: _number(RULES), names + 1: _number(ADMIN)} | {
        4: _VERSION,
        **registry,
    }


def _set_of_addresses(members: Sequence[Address], slot: int) -> Storage:
    """Return the storage of an address set: an array at `slot`, and the position of each address in a mapping at `slot
    + 1`.
    """
    storage: Storage = {slot: len(members)}
    for position, member in enumerate(members):
        storage[_array(slot) + position] = _number(member)
        storage[_in_mapping(member, slot + 1)] = position + 1
    return storage


def _set_of_nodes(members: Sequence[Enode], slot: int) -> Storage:
    storage: Storage = {slot: len(members)}
    for position, enode in enumerate(members):
        at = _array(slot) + 3 * position
        high, low, ip = enode.node_id[:32], enode.node_id[32:], packed_ip(enode.ip)
        storage[at], storage[at + 1] = _number(high), _number(low)
        # port and address share one storage word, with the address in the lower half
        storage[at + 2] = enode.tcp_port << 128 | _number(ip)
        key = keccak256(high + low + ip.ljust(32, b"\0") + enode.tcp_port.to_bytes(32, "big"))
        storage[_in_mapping(key, slot + 1)] = position + 1
    return storage


def _set_of_names(members: Sequence[Enode], slot: int) -> Storage:
    storage: Storage = {slot: len(members)}
    for position, enode in enumerate(members):
        at = _array(slot) + 3 * position
        storage |= _text(enode.node_id.hex(), at) | _text(enode.host or enode.ip, at + 1)
        storage[at + 2] = enode.tcp_port
        storage[_in_mapping(keccak256(named_node(enode)), slot + 1)] = position + 1
    return storage


def _text(text: str, slot: int) -> Storage:
    """Return the storage of a string. A short string shares a word with its length; a long string has words of its
    own.
    """
    data = text.encode()
    if len(data) < 32:
        return {slot: _number(data.ljust(32, b"\0")) | 2 * len(data)}
    words = (data[at : at + 32].ljust(32, b"\0") for at in range(0, len(data), 32))
    return {slot: 2 * len(data) + 1} | {_array(slot) + at: _number(word) for at, word in enumerate(words)}


def _array(slot: int) -> int:
    return _number(keccak256(slot.to_bytes(32, "big")))


def _in_mapping(key: bytes, slot: int) -> int:
    return _number(keccak256(key.rjust(32, b"\0") + slot.to_bytes(32, "big")))


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big")
