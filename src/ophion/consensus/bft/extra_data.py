"""The extra data of a BFT header: its content, and its RLP encoding by IBFT 2.0 and by QBFT.

A header is hashed in three forms (consensus.md 2.3). The full form is the header as sent. The form without seals is the
form that validators agree on and seal. The form without seals and round gives the block hash, which is therefore the
same in every round.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from enum import Enum
from functools import lru_cache
from typing import ClassVar, Final

from msgspec import Struct

from ophion.consensus.engine import Vote
from ophion.errors import DecodeError
from ophion.primitives import rlp
from ophion.primitives.types import ADDRESS_LENGTH, SIGNATURE_LENGTH, Address, Signature

VANITY_LENGTH: Final = 32
ADD_MARK: Final = b"\xff"
_IBFT2_DROP_MARK: Final = b"\x00"
_IBFT2_ROUND_BYTES: Final = 4
_QBFT_ROUND_LIMIT: Final = 2**32
_MAX_OTHER_ITEMS: Final = 16
"""Maximum number of items other than addresses and seals, including items that later clients may append."""
_PLACE: Final = "extra data"


class ExtraForm(Enum):
    """Form of the extra data: the parts that are encoded."""

    FULL = "full"
    FOR_SEAL = "digest"
    """Extra data without seals. Validators agree on the header with this extra data and seal it."""
    FOR_HASH = "hash"
    """Extra data without seals and round. The hash of the header with this extra data is the block hash."""


class BftExtraData(Struct, frozen=True):
    """The extra data of a BFT header, decoded."""

    vanity: bytes
    """32 bytes that the proposer may choose."""
    validators: tuple[Address, ...]
    """Validators of this block; empty in contract mode (consensus.md 3.6)."""
    vote: Vote | None = None
    round: int = 0
    seals: tuple[Signature, ...] = ()


@lru_cache(maxsize=64)
def encode_validators(validators: tuple[Address, ...]) -> bytes:
    """Encode the list of validators. The result is cached, because thousands of headers share one list."""
    return rlp.encode(validators)


def own_vanity(configured: bytes) -> bytes:
    """Return the vanity of own blocks: the configured extra data, padded with zeros on the left or cut to 32 bytes."""
    return configured.rjust(VANITY_LENGTH, b"\0")[:VANITY_LENGTH]


def split_items(data: bytes, wanted: int, exactly: bool) -> list[rlp.Item]:
    """Return the items of an extra data list. Raises if the list has fewer than `wanted` items or, with `exactly`,
    more.
    """
    items = rlp.decode_list(data, max_items=_MAX_OTHER_ITEMS + len(data) // ADDRESS_LENGTH)
    if len(items) < wanted or (exactly and len(items) > wanted):
        raise DecodeError(f"{len(items)} items instead of {wanted}", _PLACE)
    return items


def read_vanity(item: rlp.Item) -> bytes:
    if not isinstance(item, bytes) or len(item) != VANITY_LENGTH:
        raise DecodeError(f"vanity is not {VANITY_LENGTH} bytes", _PLACE)
    return item


def read_validators(item: rlp.Item) -> tuple[Address, ...]:
    return _strings(item, ADDRESS_LENGTH, "validator")


def read_seals(item: rlp.Item) -> tuple[Signature, ...]:
    return _strings(item, SIGNATURE_LENGTH, "seal")


def read_vote(item: list[rlp.Item], drop_marks: tuple[bytes, ...]) -> Vote:
    """Decode a vote in extra data: `[address, direction]`."""
    if len(item) != 2:
        raise DecodeError(f"vote of {len(item)} items instead of 2", _PLACE)
    target, direction = item
    if not isinstance(target, bytes) or len(target) != ADDRESS_LENGTH:
        raise DecodeError(f"target of the vote is not {ADDRESS_LENGTH} bytes", _PLACE)
    if direction == ADD_MARK:
        return Vote(target, True)
    if direction in drop_marks:
        return Vote(target, False)
    raise DecodeError("direction of the vote is neither add nor drop", _PLACE)


class ExtraDataCodec(ABC):
    """Encodes and decodes the extra data of a protocol."""

    allows_more_extra: ClassVar[bool]
    """Whether the decoder ignores items after the fifth item of the extra data. Otherwise such items are an error."""

    def decode_extra(self, data: bytes) -> BftExtraData:
        """Decode extra data in its full form. Raises `DecodeError` for the forms without seals or round."""
        items = split_items(data, 5, exactly=not self.allows_more_extra)
        vanity, validators, vote, round_item, seals = items[:5]
        return BftExtraData(
            read_vanity(vanity),
            read_validators(validators),
            self._read_vote(vote),
            self._read_extra_round(round_item),
            read_seals(seals),
        )

    @abstractmethod
    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes: ...

    @abstractmethod
    def _read_vote(self, item: rlp.Item) -> Vote | None: ...

    @abstractmethod
    def _read_extra_round(self, item: rlp.Item) -> int: ...


class Ibft2ExtraData(ExtraDataCodec):
    """The extra data of IBFT 2.0 (consensus.md 2.3)."""

    allows_more_extra = False

    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes:
        """Encode extra data in one of its forms. A part that the form omits has no item, so the list has 3, 4 or 5
        items.
        """
        vote, drop = extra.vote, _IBFT2_DROP_MARK
        items = [
            rlp.encode_bytes(extra.vanity),
            encode_validators(extra.validators),
            rlp.EMPTY_STRING if vote is None else rlp.encode((vote.target, ADD_MARK if vote.authorize else drop)),
        ]
        if form is not ExtraForm.FOR_HASH:
            items.append(b"\x84" + extra.round.to_bytes(_IBFT2_ROUND_BYTES, "big"))
        if form is ExtraForm.FULL:
            items.append(rlp.encode(extra.seals))
        return rlp.list_of(items)

    def _read_vote(self, item: rlp.Item) -> Vote | None:
        if isinstance(item, list):
            return read_vote(item, (_IBFT2_DROP_MARK,))
        if item:
            raise DecodeError("vote is neither absent nor a list", _PLACE)
        return None

    def _read_extra_round(self, item: rlp.Item) -> int:
        if not isinstance(item, bytes) or len(item) != _IBFT2_ROUND_BYTES:
            raise DecodeError(f"round is not {_IBFT2_ROUND_BYTES} bytes", _PLACE)
        return int.from_bytes(item, "big")


class QbftExtraData(ExtraDataCodec):
    """The extra data of QBFT (consensus.md 3)."""

    allows_more_extra = True

    def encode_extra(self, extra: BftExtraData, form: ExtraForm) -> bytes:
        """Encode extra data in one of its forms. Every form has five items; omitted parts are zero or an empty list."""
        vote = extra.vote
        return rlp.list_of(
            (
                rlp.encode_bytes(extra.vanity),
                encode_validators(extra.validators),
                rlp.EMPTY_LIST if vote is None else rlp.encode((vote.target, ADD_MARK if vote.authorize else b"")),
                rlp.EMPTY_STRING if form is ExtraForm.FOR_HASH else rlp.encode_int(extra.round),
                rlp.encode(extra.seals) if form is ExtraForm.FULL else rlp.EMPTY_LIST,
            )
        )

    def _read_vote(self, item: rlp.Item) -> Vote | None:
        """Decode a vote. A vote to remove a validator has the direction byte 80 or 00."""
        if not isinstance(item, list):
            raise DecodeError("vote is not a list", _PLACE)
        return read_vote(item, (b"", b"\x00")) if item else None

    def _read_extra_round(self, item: rlp.Item) -> int:
        round_number = rlp.decode_int(item)
        if round_number >= _QBFT_ROUND_LIMIT:
            raise DecodeError("round is too large", _PLACE)
        return round_number


def _strings(item: rlp.Item, size: int, what: str) -> tuple[bytes, ...]:
    if not isinstance(item, list):
        raise DecodeError(f"{what}s are not a list", _PLACE)
    found = []
    for entry in item:
        if not isinstance(entry, bytes) or len(entry) != size:
            raise DecodeError(f"a {what} is not {size} bytes", _PLACE)
        found.append(entry)
    return tuple(found)
