"""The snap/1 requests as typed values. Rust encodes the responses of this node, and verifies the responses of other
nodes.

GetAccountRange   [id, root, origin, limit, bytes]
GetStorageRanges  [id, root, [account ...], origin, limit, bytes]
GetByteCodes      [id, [hash ...], bytes]
GetTrieNodes      [id, root, [[path ...] ...], bytes]
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, TypeAlias

from msgspec import Struct

from ophion.peers.eth.field_decoding import MAX_ID_BYTES, block_hash, list_of_hashes, number, parts_of
from ophion.primitives import rlp
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import HASH_LENGTH, ZERO_HASH, Hash32

NAME: Final = "snap"
VERSION: Final = 1
KIB: Final = 1024
MAX_LOOKUPS: Final = 1024
"""Maximum number of accounts, codes or trie nodes in one response. Further requested items are ignored, as in geth."""
MAX_PATH_ITEMS: Final = 4 * MAX_LOOKUPS
"""Maximum number of path items in one request. Ignored items above `MAX_LOOKUPS` count too."""
MAX_PATH_BYTES: Final = 33
MAX_KEY: Final = b"\xff" * HASH_LENGTH


class Code(IntEnum):
    """Message codes, relative to the first code of the protocol."""

    GET_ACCOUNT_RANGE = 0x00
    ACCOUNT_RANGE = 0x01
    GET_STORAGE_RANGES = 0x02
    STORAGE_RANGES = 0x03
    GET_BYTE_CODES = 0x04
    BYTE_CODES = 0x05
    GET_TRIE_NODES = 0x06
    TRIE_NODES = 0x07

    @property
    def label(self) -> str:
        """The name in the specification, logs and metrics."""
        return "".join(word.capitalize() for word in self.name.split("_"))


MAX_BYTES: Final = {
    Code.GET_ACCOUNT_RANGE: KIB,
    Code.ACCOUNT_RANGE: KIB,
    Code.GET_STORAGE_RANGES: 128 * KIB,
    Code.STORAGE_RANGES: KIB,
    Code.GET_BYTE_CODES: 128 * KIB,
    Code.BYTE_CODES: KIB,
    Code.GET_TRIE_NODES: 256 * KIB,
    Code.TRIE_NODES: KIB,
}
"""Size limit of each message in bytes. The limits of responses are low, because a node with a chain requests none."""

MAX_RESPONSE_BYTES: Final = 4 * KIB * KIB
"""Size limit of each response while this node requests states. A response may exceed the requested size by the proofs
and the last item.
"""

ANSWERS: Final = {
    Code.GET_ACCOUNT_RANGE: Code.ACCOUNT_RANGE,
    Code.GET_STORAGE_RANGES: Code.STORAGE_RANGES,
    Code.GET_BYTE_CODES: Code.BYTE_CODES,
    Code.GET_TRIE_NODES: Code.TRIE_NODES,
}


class GetAccountRange(Struct, frozen=True):
    """Request for the accounts from `origin` up to the first account at or above `limit`."""

    request_id: int
    root: Hash32
    origin: Hash32
    limit: Hash32
    max_bytes: int


class GetStorageRanges(Struct, frozen=True):
    """Request for storage slots of accounts. Origin and limit apply to the first account."""

    request_id: int
    root: Hash32
    accounts: list[Hash32]
    origin: Hash32
    limit: Hash32
    max_bytes: int


class GetByteCodes(Struct, frozen=True):
    """Request for contract codes by hash."""

    request_id: int
    hashes: list[Hash32]
    max_bytes: int


class GetTrieNodes(Struct, frozen=True):
    """Request for trie nodes by path: one path in the state trie, or an account and paths in its storage trie."""

    request_id: int
    root: Hash32
    paths: list[list[bytes]]
    max_bytes: int


Request: TypeAlias = GetAccountRange | GetStorageRanges | GetByteCodes | GetTrieNodes


def encode_request(request: Request) -> bytes:
    """Encode a snap/1 request."""
    if isinstance(request, GetAccountRange):
        return rlp.encode([request.request_id, request.root, request.origin, request.limit, request.max_bytes])
    if isinstance(request, GetStorageRanges):
        return rlp.encode(
            [request.request_id, request.root, request.accounts, request.origin, request.limit, request.max_bytes]
        )
    if isinstance(request, GetByteCodes):
        return rlp.encode([request.request_id, request.hashes, request.max_bytes])
    return rlp.encode([request.request_id, request.root, request.paths, request.max_bytes])


def response_id(payload: bytes, code: Code) -> int:
    """Return the request id of a response, without decoding its other fields."""
    is_list, start, end = rlp.head(payload, 0)
    if not is_list or end != len(payload):
        raise RlpError(f"{code.label}: not a list", 0)
    return _id(payload[start : rlp.item_end(payload, start)], code)


def decode_request(code: Code, payload: bytes) -> Request:
    """Decode a request. Raises `DecodeError` if the request is malformed or has too many items."""
    if code is Code.GET_ACCOUNT_RANGE:
        encoded_id, root, origin, limit, size = parts_of(payload, 5, code.label)
        return GetAccountRange(
            _id(encoded_id, code), _hash(root, code), _hash(origin, code), _hash(limit, code), _size(size, code)
        )
    if code is Code.GET_STORAGE_RANGES:
        encoded_id, root, accounts, origin, limit, size = parts_of(payload, 6, code.label)
        return GetStorageRanges(
            _id(encoded_id, code),
            _hash(root, code),
            list_of_hashes(accounts, code.label)[:MAX_LOOKUPS],
            _key(origin, ZERO_HASH, code),
            _key(limit, MAX_KEY, code),
            _size(size, code),
        )
    if code is Code.GET_BYTE_CODES:
        encoded_id, hashes, size = parts_of(payload, 3, code.label)
        return GetByteCodes(_id(encoded_id, code), list_of_hashes(hashes, code.label)[:MAX_LOOKUPS], _size(size, code))
    encoded_id, root, paths, size = parts_of(payload, 4, code.label)
    return GetTrieNodes(_id(encoded_id, code), _hash(root, code), _paths(paths, code), _size(size, code))


def _id(encoded: bytes, code: Code) -> int:
    return number(rlp.decode(encoded, 0), 8 * MAX_ID_BYTES, f"{code.label}: request id")


def _size(encoded: bytes, code: Code) -> int:
    return number(rlp.decode(encoded, 0), 64, f"{code.label}: response bytes")


def _hash(encoded: bytes, code: Code) -> Hash32:
    return block_hash(rlp.decode(encoded, 0), code.label)


def _key(encoded: bytes, default: Hash32, code: Code) -> Hash32:
    """Decode a bound of the requested storage range. An empty string means `default`."""
    item = rlp.decode(encoded, 0)
    return default if item == b"" else block_hash(item, code.label)


def _paths(encoded: bytes, code: Code) -> list[list[bytes]]:
    items = rlp.decode(encoded, MAX_PATH_ITEMS)
    if not isinstance(items, list):
        raise RlpError(f"{code.label}: a list of paths is expected", 0)
    found: list[list[bytes]] = []
    lookups = 0
    for item in items:
        if not isinstance(item, list) or not item:
            raise RlpError(f"{code.label}: a list of paths is expected", 0)
        paths = [_path(path, code) for path in item]
        if len(paths) > 1 and len(paths[0]) != HASH_LENGTH:
            raise RlpError(f"{code.label}: the first path is not an account hash", 0)
        left = MAX_LOOKUPS - lookups
        if left <= 0:
            break
        lookups += max(1, len(paths) - 1)
        found.append(paths[: left + 1])
    return found


def _path(item: rlp.Item, code: Code) -> bytes:
    if not isinstance(item, bytes) or len(item) > MAX_PATH_BYTES:
        raise RlpError(f"{code.label}: a path has at most {MAX_PATH_BYTES} bytes", 0)
    return item
