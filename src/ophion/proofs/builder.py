"""Builds proof bundles from the database of a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from ophion.chain.chain import Chain
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import Engine
from ophion.errors import ProofError, StorageError
from ophion.native.exceptions import translated
from ophion.primitives.header import HashedHeader, Header
from ophion.primitives.types import EMPTY_TRIE_ROOT, Address, Hash32
from ophion.proofs.bundle import AccountProof, ProofBundle, SlotProof, TransactionProof
from ophion.proofs.merkle import ordered_proof
from ophion.proofs.vote_headers import canonical, vote_headers, votes_of

MAX_SLOTS: Final = 1024
"""Limit of accounts and storage slots in one bundle."""

WantedAccounts: TypeAlias = Mapping[Address, Sequence[Hash32]]
"""Accounts to prove, with their storage slots."""


def transaction_bundle(
    chain: Chain,
    tx_hash: Hash32,
    accounts: WantedAccounts,
    is_checkpoint: bool,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ProofBundle:
    """Return a proof of a mined transaction, its receipt, and the state of accounts after the transaction's block."""
    position = chain.store.transaction_position(tx_hash)
    if position is None or position[1] > chain.head.number:
        raise ProofError(f"The transaction 0x{tx_hash.hex()} is not in a block of this node.")
    block_hash, number, index = position
    with translated():
        body, receipts = chain.store.body(block_hash), chain.store.raw_receipts(block_hash)
    if body is None or receipts is None:
        raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
    header = canonical(chain, number)
    root, nodes = ordered_proof([transaction.raw for transaction in body.transactions], index)
    receipts_root, receipt_nodes = ordered_proof(receipts, index)
    if (root, receipts_root) != (header.header.transactions_root, header.header.receipts_root):
        raise StorageError(f"The body of block {number} does not match its header; run `ophion storage check`.")
    transaction = TransactionProof(tx_hash, index, tuple(nodes), tuple(receipt_nodes))
    return _bundle(chain, header, transaction, accounts, is_checkpoint, is_stopped)


def account_bundle(
    chain: Chain,
    number: int,
    accounts: WantedAccounts,
    is_checkpoint: bool,
    is_stopped: Callable[[], bool] = lambda: False,
) -> ProofBundle:
    """Return a proof of accounts after a block."""
    header = chain.canonical(number) if 0 < number <= chain.head.number else None
    if header is None:
        raise ProofError(f"Block {number} cannot be proven: the node has the blocks 1 to {chain.head.number}.")
    return _bundle(chain, header, None, accounts, is_checkpoint, is_stopped)


def _bundle(
    chain: Chain,
    header: HashedHeader,
    transaction: TransactionProof | None,
    accounts: WantedAccounts,
    is_checkpoint: bool,
    is_stopped: Callable[[], bool],
) -> ProofBundle:
    votes_of(chain)  # `votes_of` raises an error for a consensus protocol without validators
    if sum(1 + len(slots) for slots in accounts.values()) > MAX_SLOTS:
        raise ProofError(f"A proof has at most {MAX_SLOTS} accounts and slots.")
    engine = chain.engine
    return ProofBundle(
        chain_id=chain.spec.chain_id,
        consensus=_protocol(engine, header.number),
        number=header.number,
        hash=header.hash,
        votes=()
        if is_checkpoint
        else tuple(_encoded(engine, vote) for vote in vote_headers(chain, header, is_stopped)),
        header=_encoded(engine, header.header),
        confirmations=() if is_checkpoint else tuple(one.encode() for one in _confirmations(chain, header)),
        transaction=transaction,
        accounts=tuple(_account(chain, header.header, address, slots) for address, slots in accounts.items()),
    )


def _protocol(engine: Engine, number: int) -> str:
    return engine.protocol(number).name if isinstance(engine, BftEngine) else engine.name


def _encoded(engine: Engine, header: Header) -> bytes:
    """Return the RLP of a header. BFT extra data in variants of other clients is converted to the common form."""
    if isinstance(engine, BftEngine):
        header = engine.attach(header, engine.validators.extra(header).seals)
    return header.encode()


def _confirmations(chain: Chain, block: HashedHeader) -> list[Header]:
    """Return the Clique headers after a block until more than half of the signers have signed. Raises `ProofError`."""
    engine = chain.engine
    if not isinstance(engine, CliqueEngine):
        return []
    signers = votes_of(chain).validators(block)
    confirmed = {engine.author(block)}
    found: list[Header] = []
    while len(confirmed) <= len(signers) // 2:
        header = chain.canonical(block.number + len(found) + 1)
        if header is None:
            raise ProofError(
                f"Block {block.number} has {len(found)} confirmations, which more than half of the {len(signers)}"
                " signers must give. Try again after the next blocks."
            )
        found.append(header.header)
        confirmed.add(engine.author(header))
    return found


def _account(chain: Chain, header: Header, address: Address, slots: Sequence[Hash32]) -> AccountProof:
    with translated():
        state = chain.state(header)
        account = state.account(address)
        nodes, proofs = state.proof(address, list(slots))
    has_storage = account is not None and account[3] != EMPTY_TRIE_ROOT
    return AccountProof(
        address,
        tuple(nodes),
        tuple(
            SlotProof(slot, tuple(proof[1]) if has_storage else ()) for slot, proof in zip(slots, proofs, strict=True)
        ),
    )
