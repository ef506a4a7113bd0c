"""Wire format shared by both protocols: signed parts, prepares, commits, blocks in messages.

A signed part is `[payload, signature]`. Received payloads are stored and repeated byte for byte, because the signature
covers the received bytes and other clients may encode a payload differently (consensus.md 0.6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from ophion.consensus.bft.client_profiles import WireProfile
from ophion.consensus.bft.extra_data import BftExtraData, ExtraDataCodec, ExtraForm
from ophion.consensus.bft.messages import Commit, MessageKind, Prepare, ProposedBlock, RawMessage
from ophion.consensus.bft.signatures import DigestSigner, message_author
from ophion.errors import DecodeError
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.transactions import Body, decode_block
from ophion.primitives import rlp
from ophion.primitives.header import Header
from ophion.primitives.rlp import TooManyItems
from ophion.primitives.types import HASH_LENGTH, SIGNATURE_LENGTH, Address, Hash32

MAX_SIGNATURES: Final = 20_000
"""Maximum number of signatures per message, for any network size. Recovering them takes about a second of one core."""

MAX_BLOCK_ITEMS: Final = 4
"""Maximum number of items in a block: header, transactions, ommers and, after Shanghai, withdrawals."""

_PLACE: Final = "consensus message"


# --- headers and blocks -------------------------------------------------------------------------


def header_digest(codec: ExtraDataCodec, header: Header, extra: BftExtraData, form: ExtraForm) -> Hash32:
    """Return the Keccak hash of a header, with `extra` encoded in `form` as its extra data."""
    return keccak256(rlp.list_of(header.encoded_fields(codec.encode_extra(extra, form))))


def candidate_of(codec: ExtraDataCodec, block: bytes) -> ProposedBlock:
    """Decode a block in a message. Only the header of the block is decoded."""
    parts = rlp.split_list(block, MAX_BLOCK_ITEMS)
    if len(parts) < 3:
        raise DecodeError(f"block of {len(parts)} items instead of 3 or 4", _PLACE)
    header = Header.decode(parts[0])
    extra = codec.decode_extra(header.extra_data)
    return ProposedBlock(
        header.number,
        extra.round,
        header.coinbase,
        header_digest(codec, header, extra, ExtraForm.FOR_SEAL),
        header_digest(codec, header, extra, ExtraForm.FOR_HASH),
        block,
    )


class WrongBody(DecodeError):
    """Raised when the body of a block does not match its header."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, _PLACE)


def check_body(block: bytes) -> None:
    """Raise `WrongBody` unless the body of an encoded block matches its header.

    Digest and hash cover only the header. Without this check, later rounds would repeat a prepared block with a wrong
    body, and every validator would reject it on execution.
    """
    try:
        encoded, body = decode_block(block)
    except NativeError as error:
        raise WrongBody(str(error)) from error
    check_roots(Header.decode(encoded), body)


def check_roots(header: Header, body: Body) -> None:
    """Raise `WrongBody` unless transactions, ommers and withdrawals match the header."""
    expected = header.transactions_root, header.ommers_hash, header.withdrawals_root
    if expected != (body.transactions_root, body.ommers_hash, body.withdrawals_root):
        raise WrongBody("the body of the block is another one")


def candidate_in_round(codec: ExtraDataCodec, block: ProposedBlock, round_number: int) -> ProposedBlock:
    """Return the same block with another round in its extra data and without seals."""
    parts = rlp.split_list(block.encoded, MAX_BLOCK_ITEMS)
    header = Header.decode(parts[0])
    extra = replace(codec.decode_extra(header.extra_data), round=round_number, seals=())
    header = replace(header, extra_data=codec.encode_extra(extra, ExtraForm.FULL))
    digest = header_digest(codec, header, extra, ExtraForm.FOR_SEAL)
    encoded = rlp.list_of([header.encode(), *parts[1:]])
    return ProposedBlock(block.height, round_number, block.builder, digest, block.hash, encoded)


# --- signed parts -------------------------------------------------------------------------------


class WireStyle(Struct, frozen=True):
    """Encoding details that all messages of a protocol share."""

    codes: tuple[int, int, int, int]
    """Message codes, indexed by `MessageKind`."""
    write_height: Callable[[int], bytes]
    write_round: Callable[[int], bytes]
    read_height: Callable[[bytes], int]
    read_round: Callable[[bytes], int]
    signed_bytes: Callable[[int, bytes], bytes]
    """Returns the bytes to hash and sign, from (code, payload)."""
    absent: bytes
    """Encoding of a missing certificate or block."""

    def kind(self, code: int) -> MessageKind:
        """Return the message kind of a code. Raises `DecodeError` if the protocol does not use the code."""
        try:
            return MessageKind(self.codes.index(code))
        except ValueError:
            raise DecodeError(f"unknown code 0x{code:02x}", _PLACE) from None


class SignedPart(Struct, frozen=True):
    """A signed part whose height and round are decoded. The other fields are still encoded."""

    height: int
    round: int
    fields: list[bytes]
    author: Address
    encoded: bytes


class SignedParts:
    """Reads and writes signed parts of one protocol, and counts the signatures of one message."""

    __slots__ = ("_budget", "style")

    def __init__(self, style: WireStyle, most_signatures: int = MAX_SIGNATURES) -> None:
        self.style = style
        self._budget = most_signatures

    def write(
        self, kind: MessageKind, height: int, round_number: int, fields: Sequence[bytes], signer: DigestSigner
    ) -> bytes:
        """Sign and encode the signed part of a message. Returns the RLP of `[payload, signature]`."""
        style = self.style
        payload = rlp.list_of([style.write_height(height), style.write_round(round_number), *fields])
        signature = signer.sign(keccak256(style.signed_bytes(style.codes[kind], payload)))
        return rlp.list_of([payload, rlp.encode_bytes(signature)])

    def read(self, kind: MessageKind, encoded: bytes, *counts: int) -> SignedPart:
        """Decode a signed part. The number of fields after height and round must be one of `counts`."""
        if self._budget == 0:
            raise DecodeError("too many signatures", _PLACE)
        self._budget -= 1
        payload, signature_item = exactly(rlp.split_list(encoded, 2), 2, "signed part")
        signature = plain_bytes(signature_item, SIGNATURE_LENGTH, "signature")
        style = self.style
        fields = rlp.split_list(payload, 2 + max(counts))
        if len(fields) - 2 not in counts:
            raise DecodeError(f"{kind.name.lower()} payload of {len(fields)} items", _PLACE)
        author = message_author(keccak256(style.signed_bytes(style.codes[kind], payload)), signature)
        if author is None:
            raise DecodeError(f"signature of a {kind.name.lower()} is not acceptable", _PLACE)
        return SignedPart(style.read_height(fields[0]), style.read_round(fields[1]), fields[2:], author, encoded)

    def prepare(self, encoded: bytes, fingerprint: bytes = b"") -> Prepare:
        """Decode a prepare, as a message of its own or as part of a certificate."""
        part = self.read(MessageKind.PREPARE, encoded, 1)
        digest = plain_bytes(part.fields[0], HASH_LENGTH, "digest")
        raw = RawMessage(self.style.codes[MessageKind.PREPARE], encoded)
        return Prepare(part.height, part.round, digest, part.author, fingerprint, raw)

    def split(self, encoded: bytes) -> list[bytes]:
        """Split a list of signed parts. Raises `DecodeError` if the message would exceed its limit of signatures."""
        try:
            return rlp.split_list(encoded, self._budget)
        except TooManyItems as error:
            raise DecodeError("too many signatures", _PLACE) from error

    def prepares(self, encoded: bytes) -> tuple[Prepare, ...]:
        """Decode a list of prepares."""
        return tuple(self.prepare(item) for item in self.split(encoded))

    def commit(self, encoded: bytes, fingerprint: bytes) -> Commit:
        part = self.read(MessageKind.COMMIT, encoded, 2)
        digest = plain_bytes(part.fields[0], HASH_LENGTH, "digest")
        seal = plain_bytes(part.fields[1], SIGNATURE_LENGTH, "commit seal")
        raw = RawMessage(self.style.codes[MessageKind.COMMIT], encoded)
        return Commit(part.height, part.round, digest, seal, part.author, fingerprint, raw)

    def write_prepare(self, height: int, round_number: int, digest: Hash32, signer: DigestSigner) -> Prepare:
        data = self.write(MessageKind.PREPARE, height, round_number, [rlp.encode_bytes(digest)], signer)
        raw = RawMessage(self.style.codes[MessageKind.PREPARE], data)
        return Prepare(height, round_number, digest, signer.address, keccak256(data), raw)

    def write_commit(
        self, height: int, round_number: int, digest: Hash32, seal_hash: Hash32, signer: DigestSigner
    ) -> Commit:
        seal = signer.sign(seal_hash)
        fields = [rlp.encode_bytes(digest), rlp.encode_bytes(seal)]
        data = self.write(MessageKind.COMMIT, height, round_number, fields, signer)
        raw = RawMessage(self.style.codes[MessageKind.COMMIT], data)
        return Commit(height, round_number, digest, seal, signer.address, keccak256(data), raw)


def exactly(items: list[bytes], count: int, what: str) -> list[bytes]:
    """Return the items if their number is `count`, else raise `DecodeError`."""
    if len(items) != count:
        raise DecodeError(f"{what} of {len(items)} items instead of {count}", _PLACE)
    return items


def one_of(items: list[bytes], counts: tuple[int, int], what: str) -> list[bytes]:
    """Return the items. Raises `DecodeError` if `counts` does not contain the number of items. Each count belongs to
    one wire profile (`client_profiles`).
    """
    if len(items) not in counts:
        raise DecodeError(f"{what} of {len(items)} items instead of {counts[0]} or {counts[1]}", _PLACE)
    return items


def plain_bytes(encoded: bytes, size: int, what: str) -> bytes:
    """Decode a byte string of an exact size."""
    value = rlp.decode(encoded, max_items=0)
    if not isinstance(value, bytes) or len(value) != size:
        raise DecodeError(f"{what} is not {size} bytes", _PLACE)
    return value


def scalar_below(encoded: bytes, limit: int, what: str) -> int:
    """Decode a canonical number below a limit."""
    value = rlp.decode_int(rlp.decode(encoded, max_items=0))
    if value >= limit:
        raise DecodeError(f"{what} is too large", _PLACE)
    return value


def access_list_slot(profile: WireProfile) -> tuple[bytes, ...]:
    """Return the items of the block access list slot: one empty item, or no item if the profile has no slot."""
    return (rlp.EMPTY_STRING,) if profile is WireProfile.BAL else ()
