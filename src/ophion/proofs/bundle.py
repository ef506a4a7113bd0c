"""The JSON file of a proof, in one canonical form: compact, fixed key order, lower-case hexadecimal.

Each bundle has exactly one text. So a verifier refuses a file in which any byte has changed, even a space or the case
of a digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct

from ophion.errors import ProofError
from ophion.native.crypto import keccak256
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import ADDRESS_LENGTH, Address, Hash32

FORMAT: Final = "ophion-proof/1"
MAX_BUNDLE_BYTES: Final = 64 * 2**20
_MEMBERS: Final = (
    "format",
    "chainId",
    "consensus",
    "block",
    "votes",
    "header",
    "confirmations",
    "transaction",
    "accounts",
    "digest",
)
_HASH_BYTES: Final = 32
_DATA: Final = re.compile(r"0x(?:[0-9a-f]{2})*")
_QUANTITY: Final = re.compile(r"0x(?:0|[1-9a-f][0-9a-f]{0,63})")


class TransactionProof(Struct, frozen=True):
    """A transaction and its receipt, by their position in the block."""

    hash: Hash32
    index: int
    nodes: tuple[bytes, ...]
    """Proof of the transaction under the header's transactions root."""
    receipt_nodes: tuple[bytes, ...]
    """Proof of the receipt with its logs, under the header's receipts root."""


class SlotProof(Struct, frozen=True):
    """The key of a storage slot, and the Merkle proof of the slot's value."""

    key: Hash32
    nodes: tuple[bytes, ...]


class AccountProof(Struct, frozen=True):
    """An account in the state after the proven block, and some of its storage slots."""

    address: Address
    nodes: tuple[bytes, ...]
    slots: tuple[SlotProof, ...] = ()


class ProofBundle(Struct, frozen=True):
    """Everything that a verifier needs besides the genesis file."""

    chain_id: int
    consensus: str
    """Protocol of the block: ibft2, qbft or clique."""
    number: int
    hash: Hash32
    votes: tuple[bytes, ...]
    """RLP of headers whose votes changed the validators, in ascending order."""
    header: bytes
    """RLP of the block's header with its seals."""
    confirmations: tuple[bytes, ...] = ()
    """RLP of the next Clique headers, until more than half of the signers have signed. Proofs of BFT blocks have no
    confirmations.
    """
    transaction: TransactionProof | None = None
    accounts: tuple[AccountProof, ...] = ()
    digest: bytes = b""
    """Checksum in the file; empty for a new bundle. A proof of absence fits many keys, so only the checksum detects a
    changed key.
    """

    def as_object(self) -> dict[str, Any]:
        """Return the JSON object, with its keys in canonical order."""
        return {**self._content(), "digest": data(self.digest or self.computed_digest())}

    def computed_digest(self) -> Hash32:
        """Return the Keccak-256 hash of the canonical JSON text of the bundle without its digest."""
        return keccak256(_canonical(self._content()))

    def _content(self) -> dict[str, Any]:
        transaction = self.transaction
        return {
            "format": FORMAT,
            "chainId": quantity(self.chain_id),
            "consensus": self.consensus,
            "block": {"number": quantity(self.number), "hash": data(self.hash)},
            "votes": _listed(self.votes),
            "header": data(self.header),
            "confirmations": _listed(self.confirmations),
            "transaction": None
            if transaction is None
            else {
                "hash": data(transaction.hash),
                "index": quantity(transaction.index),
                "proof": _listed(transaction.nodes),
                "receiptProof": _listed(transaction.receipt_nodes),
            },
            "accounts": [
                {
                    "address": data(account.address),
                    "proof": _listed(account.nodes),
                    "slots": [{"key": data(slot.key), "proof": _listed(slot.nodes)} for slot in account.slots],
                }
                for account in self.accounts
            ],
        }

    def encode(self) -> bytes:
        """Return the canonical JSON text of the bundle."""
        return _canonical(self.as_object())

    @staticmethod
    def decode(text: bytes) -> ProofBundle:
        """Decode a file. Raises `ProofError` for any text that `encode` does not write."""
        if len(text) > MAX_BUNDLE_BYTES:
            raise ProofError(f"the file is larger than {MAX_BUNDLE_BYTES} bytes")
        try:
            value = json.loads(text.decode("ascii"))
        except (ValueError, RecursionError) as error:
            raise ProofError(f"the file is not JSON in ASCII: {error}") from error
        bundle = ProofBundle.from_object(value)
        if bundle.encode() != text:
            raise ProofError("the file is not in canonical form: compact JSON with the members in order")
        return bundle

    @staticmethod
    def from_object(value: object) -> ProofBundle:
        """Read the JSON object. Raises `ProofError` for missing, unknown and malformed keys."""
        form, chain_id, consensus, block, votes, header, confirmations, transaction, accounts, digest = _members(
            value, "the bundle", _MEMBERS
        )
        if form != FORMAT:
            raise ProofError(f"format: expected {FORMAT} but was {form!r}")
        if not isinstance(consensus, str) or not consensus.isalnum():
            raise ProofError("consensus: a name of letters and digits is expected")
        number, block_hash = _members(block, "block", ("number", "hash"))
        return ProofBundle(
            chain_id=_number(chain_id, "chainId"),
            consensus=consensus,
            number=_number(number, "block.number"),
            hash=_bytes(block_hash, "block.hash", _HASH_BYTES),
            votes=_blobs(votes, "votes"),
            header=_bytes(header, "header"),
            confirmations=_blobs(confirmations, "confirmations"),
            transaction=None if transaction is None else _transaction(transaction),
            accounts=tuple(_account(one, f"accounts[{at}]") for at, one in enumerate(_list(accounts, "accounts"))),
            digest=_bytes(digest, "digest", _HASH_BYTES),
        )


def _canonical(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _transaction(value: object) -> TransactionProof:
    what = "transaction"
    tx_hash, index, nodes, receipt = _members(value, what, ("hash", "index", "proof", "receiptProof"))
    return TransactionProof(
        _bytes(tx_hash, f"{what}.hash", _HASH_BYTES),
        _number(index, f"{what}.index"),
        _blobs(nodes, f"{what}.proof"),
        _blobs(receipt, f"{what}.receiptProof"),
    )


def _account(value: object, what: str) -> AccountProof:
    address, nodes, slots = _members(value, what, ("address", "proof", "slots"))
    return AccountProof(
        _bytes(address, f"{what}.address", ADDRESS_LENGTH),
        _blobs(nodes, f"{what}.proof"),
        tuple(_slot(slot, f"{what}.slots[{at}]") for at, slot in enumerate(_list(slots, f"{what}.slots"))),
    )


def _slot(value: object, what: str) -> SlotProof:
    key, nodes = _members(value, what, ("key", "proof"))
    return SlotProof(_bytes(key, f"{what}.key", _HASH_BYTES), _blobs(nodes, f"{what}.proof"))


def _members(value: object, what: str, names: tuple[str, ...]) -> list[Any]:
    if not isinstance(value, dict):
        raise ProofError(f"{what}: an object is expected")
    if set(value) != set(names):
        wrong = sorted({*value} ^ {*names})
        raise ProofError(f"{what}: expected the members {', '.join(names)}; missing or unknown: {', '.join(wrong)}")
    return [value[name] for name in names]


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise ProofError(f"{what}: a list is expected")
    return value


def _blobs(value: object, what: str) -> tuple[bytes, ...]:
    return tuple(_bytes(one, f"{what}[{at}]") for at, one in enumerate(_list(value, what)))


def _bytes(value: object, what: str, length: int | None = None) -> bytes:
    if not isinstance(value, str) or _DATA.fullmatch(value) is None:
        raise ProofError(f"{what}: 0x and lower-case hexadecimal digits are expected")
    found = bytes.fromhex(value[2:])
    if length is not None and len(found) != length:
        raise ProofError(f"{what}: {len(found)} bytes instead of {length}")
    return found


def _number(value: object, what: str) -> int:
    if not isinstance(value, str) or _QUANTITY.fullmatch(value) is None:
        raise ProofError(f"{what}: a number in hexadecimal without leading zeros is expected")
    return int(value, 16)


def _listed(values: Sequence[bytes]) -> list[str]:
    return [data(value) for value in values]
