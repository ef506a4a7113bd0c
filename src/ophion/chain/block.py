"""Decodes the RLP of a block into a hashed header and a body."""

from __future__ import annotations

from ophion.chain.events import ChainBlock
from ophion.consensus.engine import Engine
from ophion.errors import DecodeError
from ophion.native import transactions
from ophion.native.exceptions import NativeError
from ophion.native.transactions import Body
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.rlp import RlpError
from ophion.primitives.types import EMPTY_OMMERS_HASH, EMPTY_TRIE_ROOT


def decode_block(raw: bytes, engine: Engine, start: int = 0, end: int | None = None) -> ChainBlock:
    """Decode one block; `DecodeError` names the position of the problem. Senders are not recovered yet.

    `start` and `end` delimit the block within `raw`. The bytes of the block are not copied, because a block may be
    megabytes long.
    """
    try:
        header, body = transactions.decode_block(raw, start, end)
    except NativeError as error:
        raise DecodeError(str(error)) from error
    return ChainBlock(engine.hashed(Header.decode(header)), body)


def peek_header(raw: bytes, engine: Engine, start: int = 0, end: int | None = None) -> HashedHeader:
    """Decode only the header, to check whether the block is known. `start` and `end` delimit the block within `raw`."""
    is_list, start, list_end = rlp.head(raw, start)
    if not is_list or list_end != (len(raw) if end is None else end):
        raise RlpError("not the RLP list of one block", 0)
    stop = rlp.item_end(raw, start)
    if stop > list_end:
        raise RlpError("the header reaches beyond its block", start)
    return engine.hashed(Header.decode(raw[start:stop]))


def empty_body(header: Header) -> Body | None:
    """Return an empty body if the header shows no transactions, ommers or withdrawals; otherwise None."""
    if header.transactions_root != EMPTY_TRIE_ROOT or header.ommers_hash != EMPTY_OMMERS_HASH:
        return None
    if header.withdrawals_root is None:
        return Body.of([], [], None)
    return Body.of([], [], []) if header.withdrawals_root == EMPTY_TRIE_ROOT else None


def encode_block(block: ChainBlock) -> bytes:
    """Encode a block as RLP."""
    return block.body.encode_block(block.header.header.encode())


def ommers_of(body: Body) -> tuple[Header, ...]:
    """Decode the ommers of a body."""
    return tuple(Header.decode(ommer) for ommer in body.ommers)
