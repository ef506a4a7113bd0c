"""What rules contracts are asked and how they answer (operations.md 11)."""

from __future__ import annotations

import ipaddress
from typing import Final

from ophion.native.transactions import Transaction
from ophion.primitives.enode import Enode
from ophion.primitives.types import Address

_TRANSACTION_ALLOWED: Final = bytes.fromhex("936421d5")
"""transactionAllowed(address,address,uint256,uint256,uint256,bytes)"""
_CONNECTION_ALLOWED: Final = bytes.fromhex("3620b1df")
"""connectionAllowed(bytes32,bytes32,bytes16,uint16,bytes32,bytes32,bytes16,uint16)"""
_NODE_ALLOWED: Final = bytes.fromhex("45a59e5b")
"""connectionAllowed(string,string,uint16), of the second interface"""

_ADD_ACCOUNT: Final = bytes.fromhex("e89b0e1e")
"""addAccount(address)"""
_REMOVE_ACCOUNT: Final = bytes.fromhex("c4740a95")
"""removeAccount(address)"""
_ADD_NODE: Final = bytes.fromhex("3600f60d")
"""addEnode(bytes32,bytes32,bytes16,uint16)"""
_REMOVE_NODE: Final = bytes.fromhex("aab2f5eb")
"""removeEnode(bytes32,bytes32,bytes16,uint16)"""

_YES: Final = (1).to_bytes(32, "big")
_NO: Final = bytes(32)
_CONNECTION_YES: Final = b"\xff" * 32
_CONNECTION_NO: Final = b"\x7f" + b"\xff" * 31
_FEE_MARKET_TYPE: Final = 2
_ANSWER_BYTES: Final = 32


class MalformedAnswer(Exception):
    """A contract answered something that is neither yes nor no."""


def transaction_question(transaction: Transaction) -> bytes:
    """May this transaction be in a block? A transaction that bids a fee instead of a price has the price 0."""
    price = transaction.max_fee_per_gas if transaction.type < _FEE_MARKET_TYPE else 0
    return sending_question(
        transaction.sender, transaction.to, transaction.value, price, transaction.gas_limit, transaction.input
    )


def sending_question(
    sender: Address, to: Address | None, value: int, gas_price: int, gas_limit: int, payload: bytes
) -> bytes:
    """As `transaction_question`, from its parts; a creation is sent to the zero address."""
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
    """May these two be connected? (first interface)"""
    return _CONNECTION_ALLOWED + _ends(source) + _ends(destination)


def node_question(enode: Enode) -> bytes:
    """May this node connect to others? (second interface)"""
    node_id, host = _bytes(enode.node_id.hex().encode()), _bytes(enode.ip.encode())
    offsets = _number(96) + _number(96 + len(node_id)) + _number(enode.tcp_port)
    return _NODE_ALLOWED + offsets + node_id + host


def read_account_change(call: bytes) -> tuple[bool, Address] | None:
    """What a call to account rules would change: (added, account); None for any other call."""
    selector, words = call[:4], call[4:]
    if len(words) != 32 or any(words[:12]):
        return None
    for is_added, known in ((True, _ADD_ACCOUNT), (False, _REMOVE_ACCOUNT)):
        if selector == known:
            return is_added, words[12:]
    return None


def read_node_change(call: bytes) -> tuple[bool, Enode] | None:
    """What a call to node rules of the first interface would change: (added, node); None for any other call."""
    selector, words = call[:4], call[4:]
    if len(words) != 128 or any(words[80:126]) or selector not in (_ADD_NODE, _REMOVE_NODE):
        return None
    address = ipaddress.IPv6Address(words[64:80])
    port = int.from_bytes(words[126:], "big")
    return selector == _ADD_NODE, Enode(words[:64], str(address.ipv4_mapped or address), port, port)


def read_yes_or_no(answer: bytes) -> bool:
    """The word 1 or 0."""
    if answer == _YES:
        return True
    if answer == _NO:
        return False
    raise MalformedAnswer(_shown(answer))


def read_connection(answer: bytes) -> bool:
    """The first interface says yes with all bits set and no with all but the first."""
    if answer == _CONNECTION_YES:
        return True
    if answer == _CONNECTION_NO:
        return False
    raise MalformedAnswer(_shown(answer))


def _shown(answer: bytes) -> str:
    if len(answer) != _ANSWER_BYTES:
        return f"{len(answer)} bytes instead of {_ANSWER_BYTES}"
    return f"0x{answer.hex()}, which is neither yes nor no"


def _ends(enode: Enode) -> bytes:
    return enode.node_id + packed_ip(enode.ip) + bytes(16) + _number(enode.tcp_port)


def packed_ip(ip: str) -> bytes:
    """An address in 16 bytes: IPv4 as ::ffff:a.b.c.d."""
    address = ipaddress.ip_address(ip)
    return address.packed if address.version == 6 else bytes(10) + b"\xff\xff" + address.packed


def _word(data: bytes) -> bytes:
    return data.rjust(32, b"\0")


def _number(value: int) -> bytes:
    return value.to_bytes(32, "big")


def _bytes(data: bytes) -> bytes:
    return _number(len(data)) + data + bytes(-len(data) % 32)
