"""Calls to rules contracts, and their replies (operations.md 11)."""

from __future__ import annotations

import ipaddress
from typing import Final

from ophion.native.transactions import Transaction
from ophion.primitives.enode import Enode, EnodeError
from ophion.primitives.types import Address

_TRANSACTION_ALLOWED: Final = bytes.fromhex("936421d5")
"""Selector of transactionAllowed(address,address,uint256,uint256,uint256,bytes)"""
_CONNECTION_ALLOWED: Final = bytes.fromhex("3620b1df")
"""Selector of connectionAllowed(bytes32,bytes32,bytes16,uint16,bytes32,bytes32,bytes16,uint16)"""
_NODE_ALLOWED: Final = bytes.fromhex("45a59e5b")
"""Selector of connectionAllowed(string,string,uint16), in interface version 2 of the node rules"""

_ADD_ACCOUNT: Final = bytes.fromhex("e89b0e1e")
"""Selector of addAccount(address)"""
_REMOVE_ACCOUNT: Final = bytes.fromhex("c4740a95")
"""Selector of removeAccount(address)"""
_ADD_NODE: Final = bytes.fromhex("3600f60d")
"""Selector of addEnode(bytes32,bytes32,bytes16,uint16)"""
_REMOVE_NODE: Final = bytes.fromhex("aab2f5eb")
"""Selector of removeEnode(bytes32,bytes32,bytes16,uint16)"""
_ADD_NAMED: Final = bytes.fromhex("39d6dd01")
"""Selector of addEnode(string,string,uint16), in interface version 2 of the node rules"""
_REMOVE_NAMED: Final = bytes.fromhex("28a4a078")
"""Selector of removeEnode(string,string,uint16), in interface version 2 of the node rules"""
_MANY_ACCOUNTS: Final = bytes.fromhex("ac71abde")
"""Selector of addAccounts(address[])"""
_LONGEST_TEXT: Final = 256

RULES: Final = b"rules".ljust(32, b"\0")
ADMIN: Final = b"administration".ljust(32, b"\0")
"""`RULES` and `ADMIN`: names under which an ingress contract stores the addresses of the rules and admin contracts."""

_YES: Final = (1).to_bytes(32, "big")
_NO: Final = bytes(32)
_CONNECTION_YES: Final = b"\xff" * 32
_CONNECTION_NO: Final = b"\x7f" + b"\xff" * 31
_FEE_MARKET_TYPE: Final = 2
_ANSWER_BYTES: Final = 32


class MalformedAnswer(Exception):
    """Raised when the reply of a contract is neither yes nor no."""


def transaction_question(transaction: Transaction, account: Address) -> bytes:
    """Encode the contract call that asks whether an account may send the transaction, as sender or as authority
    (EIP-7702).

    The gas price is 0 for a transaction of the fee market (type 2 and later).
    """
    price = transaction.max_fee_per_gas if transaction.type < _FEE_MARKET_TYPE else 0
    return sending_question(account, transaction.to, transaction.value, price, transaction.gas_limit, transaction.input)


def sending_question(
    sender: Address, to: Address | None, value: int, gas_price: int, gas_limit: int, payload: bytes
) -> bytes:
    """Encode a call of `transactionAllowed` from the fields of a transaction. For a contract creation, the target
    is the zero address.
    """
    parts = (
        _TRANSACTION_ALLOWED,
        _word(sender),
        _word(to or b""),
        _number(value),
        _number(gas_price),
        _number(gas_limit),
        _number(192),
        _bytes(payload),
    )
    return b"".join(parts)


def connection_question(source: Enode, destination: Enode) -> bytes:
    """Encode the contract call that asks whether two nodes may connect, for interface version 1 of the node rules."""
    return _CONNECTION_ALLOWED + packed_node(source) + packed_node(destination)


def node_question(enode: Enode, host: str | None = None) -> bytes:
    """Encode the contract call that asks whether a node may connect to other nodes, for interface version 2 of the node
    rules.

    The call names the node by `host`, or by its IP address without `host`.
    """
    return _NODE_ALLOWED + _named_node(enode, host or enode.ip)


def packed_node(enode: Enode) -> bytes:
    """Encode a node for interface version 1 of the node rules: (bytes32,bytes32,bytes16,uint16)."""
    return enode.node_id + packed_ip(enode.ip) + bytes(16) + _number(enode.tcp_port)


def named_node(enode: Enode) -> bytes:
    """Encode a node for interface version 2 of the node rules: (string,string,uint16). A host name stays a name."""
    return _named_node(enode, enode.host or enode.ip)


def _named_node(enode: Enode, host_text: str) -> bytes:
    node_id, host = _bytes(enode.node_id.hex().encode()), _bytes(host_text.encode())
    return _number(96) + _number(96 + len(node_id)) + _number(enode.tcp_port) + node_id + host


def read_packed_node(words: bytes) -> Enode | None:
    """Decode a node that `packed_node` has encoded. Returns None for other input."""
    if len(words) != 128 or any(words[80:126]):
        return None
    address = ipaddress.IPv6Address(words[64:80])
    port = int.from_bytes(words[126:], "big")
    return Enode(words[:64], str(address.ipv4_mapped or address), port, port)


def read_named_node(words: bytes, head: int = 0) -> tuple[str, str, int] | None:
    """Decode id, host and port, starting at the word `head`. Returns None for other input."""
    node_id, host = _text(words, head), _text(words, head + 32)
    port = int.from_bytes(words[head + 64 : head + 96], "big")
    if node_id is None or host is None or len(words) < head + 96 or port > 0xFFFF:
        return None
    return node_id, host, port


def read_account_changes(call: bytes) -> tuple[bool, list[Address]] | None:
    """Decode a call to the account rules contract as (added, accounts). Returns None for another call."""
    selector, words = call[:4], call[4:]
    if selector == _MANY_ACCOUNTS:
        count = int.from_bytes(words[32:64], "big")
        if words[:32] != _number(32) or len(words) != 64 + 32 * count:
            return None
        words = words[64:]
    elif selector not in (_ADD_ACCOUNT, _REMOVE_ACCOUNT) or len(words) != 32:
        return None
    accounts = [words[at : at + 32] for at in range(0, len(words), 32)]
    if any(any(account[:12]) for account in accounts):
        return None
    return selector != _REMOVE_ACCOUNT, [account[12:] for account in accounts]


def read_node_change(call: bytes) -> tuple[bool, Enode] | None:
    """Decode a call to a node rules contract, of either interface version, as (added, node). Returns None for other
    calls.
    """
    selector, words = call[:4], call[4:]
    if selector in (_ADD_NODE, _REMOVE_NODE):
        node = read_packed_node(words)
    elif selector in (_ADD_NAMED, _REMOVE_NAMED):
        node = _enode(read_named_node(words))
    else:
        return None
    return None if node is None else (selector in (_ADD_NODE, _ADD_NAMED), node)


def named_url(name: tuple[str, str, int]) -> str:
    """Return a node from interface version 2 of the node rules as an enode URL. Does not validate node id and host."""
    node_id, host, port = name
    return f"enode://{node_id}@{f'[{host}]' if ':' in host else host}:{port}"


def _enode(name: tuple[str, str, int] | None) -> Enode | None:
    """Convert (id, host, port) to an enode. Returns None if the host is not an IP address."""
    try:
        return None if name is None else Enode.parse(named_url(name))
    except EnodeError:
        return None


def _text(words: bytes, head: int) -> str | None:
    offset = int.from_bytes(words[head : head + 32], "big")
    size = int.from_bytes(words[offset : offset + 32], "big") if offset < len(words) else _LONGEST_TEXT + 1
    text = words[offset + 32 : offset + 32 + size] if size <= _LONGEST_TEXT else b""
    if size > _LONGEST_TEXT or len(text) < size:
        return None
    return text.decode(errors="replace")


def read_yes_or_no(answer: bytes) -> bool:
    """Decode a reply of one word: 1 means yes, 0 means no."""
    if answer == _YES:
        return True
    if answer == _NO:
        return False
    raise MalformedAnswer(_shown(answer))


def read_connection(answer: bytes) -> bool:
    """Decode a reply of a node rules contract with interface version 1. All bits set means yes; all bits but the first
    means no.
    """
    if answer == _CONNECTION_YES:
        return True
    if answer == _CONNECTION_NO:
        return False
    raise MalformedAnswer(_shown(answer))


def _shown(answer: bytes) -> str:
    if len(answer) != _ANSWER_BYTES:
        return f"{len(answer)} bytes instead of {_ANSWER_BYTES}"
    return f"0x{answer.hex()}, which is neither yes nor no"


def packed_ip(ip: str) -> bytes:
    """Encode an IP address in 16 bytes: IPv4 as ::ffff:a.b.c.d."""
    address = ipaddress.ip_address(ip)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def _word(data: bytes) -> bytes:
    return data.rjust(32, b"\0")


def _number(value: int) -> bytes:
    return value.to_bytes(32, "big")


def _bytes(data: bytes) -> bytes:
    return _number(len(data)) + data + bytes(-len(data) % 32)
