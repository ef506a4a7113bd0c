"""Merkle Patricia proofs: building for tries of transactions and receipts, verification for every trie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ophion.errors import DecodeError, ProofError
from ophion.native.crypto import keccak256
from ophion.primitives import rlp
from ophion.primitives.types import EMPTY_TRIE_ROOT, Hash32

_HASH_BYTES: Final = 32
_BRANCH_ITEMS: Final = 17
_MAX_NODE_ITEMS: Final = 64
"""Limit of RLP items of one trie node. A branch with embedded short nodes has the most items."""
_ODD: Final = 0x10
_LEAF: Final = 0x20


def index_key(index: int) -> bytes:
    """Return the key of a transaction or receipt: the RLP of its position."""
    return rlp.encode_int(index)


def ordered_proof(values: Sequence[bytes], index: int) -> tuple[Hash32, list[bytes]]:
    """Return (root, proof nodes) of one value in the trie that maps RLP positions to values."""
    entries = sorted((_nibbles(index_key(position)), value) for position, value in enumerate(values))
    path: list[bytes] = []
    root = _node(entries, 0, _nibbles(index_key(index)), path)
    return keccak256(root), path[::-1]


def proven_value(root: Hash32, key: bytes, nodes: Sequence[bytes], what: str) -> bytes | None:
    """Return the value that a proof shows, or None if the proof shows absence. Raises `ProofError` for an invalid
    proof.
    """
    if root == EMPTY_TRIE_ROOT and not nodes:
        return None
    path, expected = _nibbles(key), root
    for position, node in enumerate(nodes):
        if keccak256(node) != expected:
            raise ProofError(f"{what}: node {position} of the proof does not have the hash 0x{expected.hex()}")
        try:
            item: rlp.Item = rlp.decode_list(node, _MAX_NODE_ITEMS)
        except DecodeError as error:
            raise ProofError(f"{what}: node {position} of the proof is {error}") from error
        found, path = _descend(item, path, what)
        if isinstance(found, list):
            (expected,) = found
            continue
        if position + 1 < len(nodes):
            raise ProofError(f"{what}: {len(nodes) - position - 1} nodes after the end of the proof")
        return found
    raise ProofError(f"{what}: the proof ends before the value")


def _descend(item: rlp.Item, path: bytes, what: str) -> tuple[bytes | list[bytes] | None, bytes]:
    """Follow `path` through a node and the nodes embedded in it.

    Returns a result and the remaining path. The result is the value, None for absence, or a list with the hash of the
    next node.
    """
    while True:
        if isinstance(item, list) and len(item) == _BRANCH_ITEMS:
            if not path:
                return _value(item[-1], what), path
            child, path = item[path[0]], path[1:]
        elif isinstance(item, list) and len(item) == 2 and isinstance(item[0], bytes) and item[0]:
            flags, part = item[0][0], _nibbles(item[0])
            part = part[1:] if flags & _ODD else part[2:]
            if flags & _LEAF:
                return (_value(item[1], what) if path == part else None), path
            if path[: len(part)] != part:
                return None, path
            child, path = item[1], path[len(part) :]
        else:
            raise ProofError(f"{what}: a node of the proof is neither a branch nor a leaf nor an extension")
        if isinstance(child, list):
            item = child
        elif not child:
            return None, path
        elif len(child) == _HASH_BYTES:
            return [child], path
        else:
            raise ProofError(f"{what}: a node of the proof names a child of {len(child)} bytes")


def _value(item: rlp.Item, what: str) -> bytes | None:
    if not isinstance(item, bytes):
        raise ProofError(f"{what}: a list where the proof should end with a value")
    return item or None


def _node(entries: Sequence[tuple[bytes, bytes]], depth: int, target: bytes | None, path: list[bytes]) -> bytes:
    """Return the encoded node of sorted entries, which share their first `depth` nibbles.

    Appends the nodes on the way to `target` to `path`, the root last. `target` is None if the node is not on this way.
    """
    first, value = entries[0]
    if len(entries) == 1:
        node = rlp.encode((_packed(first[depth:], True), value))
    else:
        last = entries[-1][0]
        shared = depth
        while first[shared] == last[shared]:  # no key is a prefix of another key, so the keys differ at some nibble
            shared += 1
        if shared > depth:
            below = _child(entries, shared, target, path)
            node = rlp.list_of((rlp.encode_bytes(_packed(first[depth:shared], False)), below))
        else:
            node = _branch(entries, depth, target, path)
    if target is not None and (depth == 0 or len(node) >= _HASH_BYTES):
        path.append(node)
    return node


def _branch(entries: Sequence[tuple[bytes, bytes]], depth: int, target: bytes | None, path: list[bytes]) -> bytes:
    children = [rlp.EMPTY_STRING] * _BRANCH_ITEMS
    start = 0
    for end in range(1, len(entries) + 1):
        nibble = entries[start][0][depth]
        if end < len(entries) and entries[end][0][depth] == nibble:
            continue
        on_path = target if target is not None and target[depth] == nibble else None
        children[nibble] = _child(entries[start:end], depth + 1, on_path, path)
        start = end
    return rlp.list_of(children)


def _child(entries: Sequence[tuple[bytes, bytes]], depth: int, target: bytes | None, path: list[bytes]) -> bytes:
    """Return the reference to a child: its hash, or its RLP if the RLP is shorter than a hash."""
    node = _node(entries, depth, target, path)
    return node if len(node) < _HASH_BYTES else rlp.encode_bytes(keccak256(node))


def _nibbles(key: bytes) -> bytes:
    return bytes(nibble for byte in key for nibble in (byte >> 4, byte & 15))


def _packed(nibbles: bytes, is_leaf: bool) -> bytes:
    """Return a part of a path in hex-prefix encoding."""
    flags = _LEAF if is_leaf else 0
    padded = bytes((flags >> 4 | 1,)) + nibbles if len(nibbles) % 2 else bytes((flags >> 4, 0)) + nibbles
    return bytes(padded[at] << 4 | padded[at + 1] for at in range(0, len(padded), 2))
