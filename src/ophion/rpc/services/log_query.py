"""Filter objects: which logs a client wants (json-rpc.md 3.5).

One decoder serves `eth_getLogs`, `eth_newFilter` and the `logs` subscription, so a filter means the same wherever it is
used. Matching itself happens in the extension; `matches` is the same rule for private logs, which are in Python.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from ophion.errors import RpcError
from ophion.primitives.types import Address, BlockTag, Hash32
from ophion.rpc.errors import invalid_params
from ophion.rpc.schema.wire_types import Wire, decode_address, decode_block_number, decode_hash

_BYTES_OF_A_QUERY: Final = 512
_BYTES_OF_A_WORD: Final = 80

Topics: TypeAlias = tuple[tuple[Hash32, ...] | None, ...]
"""By position: alternatives, or None for any topic. A log with fewer topics than positions never matches."""


class LogQuery(Struct, frozen=True):
    """Which blocks, which contracts, which topics."""

    from_block: BlockTag | int = BlockTag.LATEST
    to_block: BlockTag | int = BlockTag.LATEST
    block_hash: Hash32 | None = None
    addresses: tuple[Address, ...] = ()
    """Any of these; empty for every address."""
    topics: Topics = ()

    @property
    def weight(self) -> int:
        """Bytes that it takes to keep this."""
        words = len(self.addresses) + sum(len(position or ()) for position in self.topics)
        return _BYTES_OF_A_QUERY + _BYTES_OF_A_WORD * words

    def takes_block(self, number: int) -> bool:
        """Whether a block arriving from now on can be of interest: `toBlock` ends it, `fromBlock` plays no part."""
        return not isinstance(self.to_block, int) or number <= self.to_block

    def is_passed(self, head: int) -> bool:
        """Whether the chain has left the range behind: it began at the newest block and ended at an older one."""
        return self.from_block in (BlockTag.LATEST, BlockTag.PENDING) and not self.takes_block(head)

    def matches(self, address: Address, topics: Sequence[Hash32]) -> bool:
        """Whether a log with these is wanted, wherever it stands."""
        if self.addresses and address not in self.addresses:
            return False
        if len(self.topics) > len(topics):
            return False
        return all(wanted is None or topic in wanted for wanted, topic in zip(self.topics, topics, strict=False))


def decode_log_query(value: object) -> LogQuery:
    """A filter object as filters and subscriptions read it: no block hash, and unknown members are ignored."""
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
    """Options of a subscription that are a wide filter object, read where parameters are: beside the loop."""

    given: object
    query: LogQuery | RpcError


def read_ahead(value: Any) -> Any:
    """Options of a subscription. What is wrong with them is said where it is known which kind is wanted."""
    if type(value) is not dict or not ("address" in value or "topics" in value):
        return value
    try:
        return ReadAhead(value, decode_log_query(value))
    except RpcError as error:
        return ReadAhead(value, error)


def query_of(options: object) -> LogQuery:
    """The filter object of a subscription to logs."""
    if type(options) is not ReadAhead:
        return decode_log_query({} if options is None else options)
    if isinstance(options.query, RpcError):
        raise options.query
    return options.query


def decode_ranged_or_hashed(value: object) -> LogQuery:
    """As `eth_getLogs` reads it: a block hash in place of a range, never beside one that says something."""
    query = decode_log_query(value)
    assert isinstance(value, dict)
    block_hash = value.get("blockHash", value.get("blockhash"))
    if block_hash is None:
        return query
    if not {query.from_block, query.to_block} <= {BlockTag.LATEST, BlockTag.PENDING}:
        raise invalid_params("filter: blockHash cannot go together with fromBlock or toBlock")
    return replace(query, block_hash=decode_hash(block_hash))


def decode_addresses(value: Any) -> tuple[Address, ...]:
    """One address, an array of them, or nothing."""
    if value is None:
        return ()
    if type(value) is list:
        return tuple(decode_address(member) for member in value)
    return (decode_address(value),)


def decode_topics(value: Any) -> Topics:
    """Topics by position; a bare string stands for the first position."""
    if value is None:
        return ()
    if type(value) is str:
        return ((decode_hash(value),),)
    if type(value) is not list:
        raise invalid_params("topics: an array is expected")
    return tuple(_position(member) for member in value)


def _position(value: Any) -> tuple[Hash32, ...] | None:
    """Alternatives for one position; null, an empty array, and an array with null in it mean any topic."""
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

LogQueryParam = Annotated[LogQuery, Wire("filter", "filter object", _SCHEMA, decode_log_query)]
LogSearchParam = Annotated[LogQuery, Wire("filter", "filter object", _SCHEMA, decode_ranged_or_hashed)]
