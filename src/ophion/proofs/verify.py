"""Verifies a proof bundle against a trusted genesis file or checkpoint. Needs no node."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from ophion.consensus.bft.engine import BftEngine
from ophion.errors import DecodeError, InvalidHeader, ProofError
from ophion.native.crypto import keccak256
from ophion.native.exceptions import NativeError
from ophion.native.transactions import Transaction, decode_transactions
from ophion.primitives import rlp
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, Address, Hash32
from ophion.proofs.bundle import AccountProof, ProofBundle, TransactionProof
from ophion.proofs.header_verification import SealVerifier, decode_header, seal_verifier
from ophion.proofs.merkle import index_key, proven_value
from ophion.proofs.trust_anchor import TrustAnchor

_MAX_RECEIPT_ITEMS: Final = 1_000_000
_LEGACY_LIST: Final = 0xC0


class ProvenLog(Struct, frozen=True):
    """A log of the proven receipt."""

    address: Address
    topics: tuple[Hash32, ...]
    data: bytes


class ProvenTransaction(Struct, frozen=True):
    """A transaction with its receipt."""

    index: int
    transaction: Transaction
    status: bytes
    """Status of the receipt: 1 or empty. Before Byzantium, the state root."""
    cumulative_gas_used: int
    logs: tuple[ProvenLog, ...]


class ProvenAccount(Struct, frozen=True):
    """An account in the state after the proven block. A missing account has zero values."""

    address: Address
    exists: bool
    nonce: int
    balance: int
    storage_root: Hash32
    code_hash: Hash32
    slots: tuple[tuple[Hash32, int], ...]


class VerifiedProof(Struct, frozen=True):
    """What a verified bundle proves about a block."""

    number: int
    hash: Hash32
    timestamp: int
    validators: int
    """Number of validators of the block. 0 if the block is the trusted checkpoint, whose seals are not checked."""
    sealers: tuple[Address, ...]
    """Validators that sealed the block. Under Clique: signers of the block and of its confirmations."""
    transaction: ProvenTransaction | None
    accounts: tuple[ProvenAccount, ...]

    def as_object(self) -> dict[str, Any]:
        """Return the statement as JSON; the standalone verifiers print the same object."""
        found = self.transaction
        return {
            "block": {
                "number": quantity(self.number),
                "hash": data(self.hash),
                "timestamp": quantity(self.timestamp),
            },
            "validators": quantity(self.validators),
            "sealers": [data(sealer) for sealer in self.sealers],
            "transaction": None if found is None else _transaction_object(found),
            "accounts": [_account_object(account) for account in self.accounts],
        }


def verify_bundle(bundle: ProofBundle, trust: TrustAnchor) -> VerifiedProof:
    """Return the statement that the bundle proves. Raises `ProofError`, which names the invalid part."""
    if bundle.chain_id != trust.spec.chain_id:
        raise ProofError(f"chainId: {bundle.chain_id} instead of {trust.spec.chain_id}")
    header = decode_header(bundle.header, "header")
    if header.number != bundle.number:
        raise ProofError(f"block.number: {bundle.number}, but the header has the number {header.number}")
    name = trust.engine.protocol(header.number).name if isinstance(trust.engine, BftEngine) else "clique"
    if bundle.consensus != name:
        raise ProofError(f"consensus: expected {name} but was {bundle.consensus!r}")
    try:
        hashed, validators, sealers = _verified_header(bundle, header, trust)
    except (DecodeError, InvalidHeader, NativeError) as error:
        raise ProofError(f"header: {error}") from error
    proven = VerifiedProof(
        number=header.number,
        hash=hashed.hash,
        timestamp=header.timestamp,
        validators=validators,
        sealers=sealers,
        transaction=None
        if bundle.transaction is None
        else _transaction(bundle.transaction, header, trust.spec.chain_id),
        accounts=tuple(_account(account, header.state_root) for account in bundle.accounts),
    )
    if bundle.digest and bundle.digest != bundle.computed_digest():
        raise ProofError("digest: the file has changed since its export; an address or a slot may be another one")
    return proven


def _verified_header(
    bundle: ProofBundle, header: Header, trust: TrustAnchor
) -> tuple[HashedHeader, int, tuple[Address, ...]]:
    """Return the header with its hash, the number of validators, and the authors of its seals."""
    hashed = trust.engine.hashed(header)
    if hashed.hash != bundle.hash:
        raise ProofError(f"block.hash: {data(bundle.hash)}, but the header has the hash {data(hashed.hash)}")
    seals = seal_verifier(trust)
    is_checkpoint = trust.hash == hashed.hash
    if trust.number and not is_checkpoint and not seals.restarts_at(trust.number):
        raise ProofError(f"The checkpoint must be an epoch block or the proven block, but is block {trust.number}.")
    for position, raw in enumerate(bundle.votes):
        vote = decode_header(raw, f"votes[{position}]")
        if vote.number >= header.number:
            raise ProofError(f"votes[{position}]: header {vote.number} is not before the block")
        if vote.number > trust.number and not is_checkpoint:
            seals.accept(vote)
    if is_checkpoint:
        if bundle.votes or bundle.confirmations:
            raise ProofError("votes: a block that the checkpoint names needs none; export the proof with --checkpoint")
        return hashed, 0, ()
    count = len(seals.validators)
    _, sealers = seals.accept(header)
    if isinstance(trust.engine, BftEngine):
        if bundle.confirmations:
            raise ProofError("confirmations: a sealed block of IBFT 2.0 and QBFT has none")
        return hashed, count, sealers
    return hashed, count, _confirmed(bundle, seals, hashed, count, sealers)


def _confirmed(
    bundle: ProofBundle, seals: SealVerifier, block: HashedHeader, count: int, sealers: tuple[Address, ...]
) -> tuple[Address, ...]:
    """Return the distinct signers of a Clique block and its confirmations. More than half must have signed."""
    parent = block
    for position, raw in enumerate(bundle.confirmations):
        header = decode_header(raw, f"confirmations[{position}]")
        if header.number != parent.number + 1 or header.parent_hash != parent.hash:
            raise ProofError(f"confirmations[{position}]: the header does not follow block {parent.number}")
        if len(sealers) > count // 2:
            raise ProofError(f"confirmations[{position}]: more confirmations than needed")
        parent, (signer,) = seals.accept(header)
        sealers = sealers if signer in sealers else (*sealers, signer)
    if len(sealers) <= count // 2:
        raise ProofError(f"confirmations: {len(sealers)} of {count} signers confirm the block; more than half must")
    return sealers


def _transaction(proof: TransactionProof, header: Header, chain_id: int) -> ProvenTransaction:
    key = index_key(proof.index)
    raw = proven_value(header.transactions_root, key, proof.nodes, "transaction.proof")
    receipt = proven_value(header.receipts_root, key, proof.receipt_nodes, "transaction.receiptProof")
    if raw is None or receipt is None:
        raise ProofError(f"transaction.index: the block has no transaction {proof.index}")
    if keccak256(raw) != proof.hash:
        raise ProofError(f"transaction.hash: the proven transaction has the hash 0x{keccak256(raw).hex()}")
    (found,) = decode_transactions([raw])
    if isinstance(found, str):
        raise ProofError(f"transaction: the proven transaction is malformed: {found}")
    if found.chain_id not in (None, chain_id):
        raise ProofError(f"transaction: signed for the chain {found.chain_id} instead of {chain_id}")
    try:
        items = rlp.decode_list(receipt if receipt[0] >= _LEGACY_LIST else receipt[1:], _MAX_RECEIPT_ITEMS)
        status, used, _, logs = items
        gas, proven_logs = rlp.decode_int(used), tuple(_log(log) for log in logs)
    except (DecodeError, ValueError) as error:
        raise ProofError(f"transaction: the proven receipt is malformed: {error}") from error
    return ProvenTransaction(proof.index, found, _string(status), gas, proven_logs)


def _log(item: rlp.Item | int) -> ProvenLog:
    if not isinstance(item, list) or len(item) != 3:
        raise DecodeError("a log has not three members")
    address, topics, content = item
    return ProvenLog(_string(address), tuple(_string(topic) for topic in topics), _string(content))


def _string(item: rlp.Item | int) -> bytes:
    if not isinstance(item, bytes):
        raise DecodeError("a list where bytes are expected")
    return item


def _account(proof: AccountProof, state_root: Hash32) -> ProvenAccount:
    what = f"account {data(proof.address)}"
    value = proven_value(state_root, keccak256(proof.address), proof.nodes, what)
    nonce, balance, storage_root, code_hash = 0, 0, EMPTY_TRIE_ROOT, EMPTY_CODE_HASH
    if value is not None:
        try:
            first, second, root, code = rlp.decode_list(value)
            nonce, balance = rlp.decode_int(first), rlp.decode_int(second)
            storage_root, code_hash = _string(root), _string(code)
        except (DecodeError, ValueError) as error:
            raise ProofError(f"{what}: the proven account is malformed: {error}") from error
    slots = []
    for slot in proof.slots:
        where = f"{what}, slot {data(slot.key)}"
        stored = proven_value(storage_root, keccak256(slot.key), slot.nodes, where)
        try:
            slots.append((slot.key, 0 if stored is None else rlp.decode_int(rlp.decode(stored))))
        except DecodeError as error:
            raise ProofError(f"{where}: the proven value is malformed: {error}") from error
    return ProvenAccount(proof.address, value is not None, nonce, balance, storage_root, code_hash, tuple(slots))


def _transaction_object(found: ProvenTransaction) -> dict[str, Any]:
    transaction = found.transaction
    return {
        "hash": data(transaction.hash),
        "index": quantity(found.index),
        "from": data(transaction.sender),
        "to": None if transaction.to is None else data(transaction.to),
        "value": quantity(transaction.value),
        "input": data(transaction.input),
        "status": data(found.status),
        "cumulativeGasUsed": quantity(found.cumulative_gas_used),
        "logs": [
            {"address": data(log.address), "topics": [data(topic) for topic in log.topics], "data": data(log.data)}
            for log in found.logs
        ],
    }


def _account_object(account: ProvenAccount) -> dict[str, Any]:
    return {
        "address": data(account.address),
        "exists": account.exists,
        "nonce": quantity(account.nonce),
        "balance": quantity(account.balance),
        "storageRoot": data(account.storage_root),
        "codeHash": data(account.code_hash),
        "slots": [{"key": data(key), "value": quantity(value)} for key, value in account.slots],
    }
