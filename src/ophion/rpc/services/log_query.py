"""Filter objects of log queries (json-rpc.md 3.5).

`eth_getLogs`, `eth_newFilter` and the `logs` subscription share one decoder. The Rust extension matches public logs.
`LogQuery.matches` applies the same rule to private logs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.primitives.types import Address, BlockTag, Hash32
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.wire_types import WireType, decode_address, decode_block_number, decode_hash

_BYTES_OF_A_QUERY: Final = 512
_BYTES_OF_A_WORD: Final = 80

Topics: TypeAlias = tuple[tuple[Hash32, ...] | None, ...]
"""Accepted topics for each position; None means any topic. A log with fewer topics than positions does not match."""


class LogQuery(Struct, frozen=True):
    """Block range or hash, addresses and topics of a query."""

    from_block: BlockTag | int = BlockTag.LATEST
    to_block: BlockTag | int = BlockTag.LATEST
    block_hash: Hash32 | None = None
    addresses: tuple[Address, ...] = ()
    """Accepted addresses; empty for every address."""
    topics: Topics = ()

    @property
    def weight(self) -> int:
        """Return the memory that the query takes, in bytes."""
        words = len(self.addresses) + sum(len(position or ()) for position in self.topics)
        return _BYTES_OF_A_QUERY + _BYTES_OF_A_WORD * words

    def takes_block(self, number: int) -> bool:
        """Return whether a block with this number is at or below `toBlock`. `fromBlock` is not checked."""
        return not isinstance(self.to_block, int) or number <= self.to_block

    def is_passed(self, head: int) -> bool:
        """Return whether no future block can match, because `fromBlock` is `latest` and `toBlock` is an older block."""
        return self.from_block in (BlockTag.LATEST, BlockTag.PENDING) and not self.takes_block(head)

    def matches(self, address: Address, topics: Sequence[Hash32]) -> bool:
        """Return whether a log matches the addresses and topics. The block range is not checked."""
        if self.addresses and address not in self.addresses:
            return False
        if len(self.topics) > len(topics):
            return False
        return all(wanted is None or topic in wanted for wanted, topic in zip(self.topics, topics, strict=False))


def decode_log_query(value: object) -> LogQuery:
    """Decode the filter object of a filter or subscription. The object has no block hash; unknown keys are ignored."""
    if type(value) is not dict:
        raise invalid_params("filter: an object is expected")
    from_block, to_block = value.get("fromBlock"), value.get("toBlock")
    return LogQuery(
        from_block=BlockTag.LATEST if from_block is None else decode_block_number(from_block),
        to_block=BlockTag.LATEST if to_block is None else decode_block_number(to_block),
        addresses=decode_addresses(value.get("address")),
        topics=decode_topics(value.get("topics")),
    )


class ReadAhead(Struct, frozen=True):
    """A large filter object of a subscription, decoded off the event loop."""

    given: object
    query: LogQuery | RpcError


def read_ahead(value: Any) -> Any:
    """Decode the filter object of a subscription off the event loop. Errors are raised later, when the kind of
    subscription is known.
    """
    if type(value) is not dict or not ("address" in value or "topics" in value):
        return value
    try:
        return ReadAhead(value, decode_log_query(value))
    except RpcError as error:
        return ReadAhead(value, error)


def query_of(options: object) -> LogQuery:
    """Return the query of a `logs` subscription."""
    if type(options) is not ReadAhead:
        return decode_log_query({} if options is None else options)
    if isinstance(options.query, RpcError):
        raise options.query
    return options.query


def decode_ranged_or_hashed(value: object) -> LogQuery:
    """Decode the filter object of `eth_getLogs`: a range or a block hash, not both."""
    query = decode_log_query(value)
    assert isinstance(value, dict)
    block_hash = value.get("blockHash", value.get("blockhash"))
    if block_hash is None:
        return query
    if not {query.from_block, query.to_block} <= {BlockTag.LATEST, BlockTag.PENDING}:
        raise invalid_params("filter: blockHash cannot go together with fromBlock or toBlock")
    return replace(query, block_hash=decode_hash(block_hash))


def decode_addresses(value: Any) -> tuple[Address, ...]:
    """Decode one address, an array of addresses, or null."""
    if value is None:
        return ()
    if type(value) is list:
        return tuple(decode_address(member) for member in value)
    return (decode_address(value),)


def decode_topics(value: Any) -> Topics:
    """Decode topics by position. A string instead of an array is the topic of the first position."""
    if value is None:
        return ()
    if type(value) is str:
        return ((decode_hash(value),),)
    if type(value) is not list:
        raise invalid_params("topics: an array is expected")
    return tuple(_position(member) for member in value)


def _position(value: Any) -> tuple[Hash32, ...] | None:
    """Decode the accepted topics of one position. Null, an empty array, or an array with null accept any topic."""
    if value is None:
        return None
    if type(value) is not list:
        return (decode_hash(value),)
    if not value or None in value:
        for member in value:
            if member is not None:
                decode_hash(member)
        return None
    return tuple(decode_hash(member) for member in value)


_SCHEMA: Final = {
    "type": "object",
    "properties": {
        "fromBlock": {"type": "string", "description": "block number or tag, default latest"},
        "toBlock": {"type": "string", "description": "block number or tag, default latest"},
        "blockHash": {"type": "string", "description": "one block instead of a range"},
        "address": {"description": "one address or an array of alternatives"},
        "topics": {"type": "array", "description": "by position: a topic, null for any, or an array of alternatives"},
    },
}

LogQueryParam = Annotated[LogQuery, WireType("filter", "filter object", _SCHEMA, decode_log_query)]
LogSearchParam = Annotated[LogQuery, WireType("filter", "filter object", _SCHEMA, decode_ranged_or_hashed)]
