"""Rows of the dataset `validators`: the producer of a block, the authors of its seals, and its vote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ophion.chain.chain import Chain
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import Vote
from ophion.data.arrow import arrow_schema
from ophion.data.dataset_types import Column, Dataset
from ophion.data.optional_packages import require
from ophion.data.selection import Rows
from ophion.errors import CommandError, StorageError
from ophion.native.crypto import recover_addresses
from ophion.primitives.header import HashedHeader
from ophion.primitives.hexcodec import data as hex_text
from ophion.primitives.types import ZERO_ADDRESS, Address


class _Sealed(Struct, frozen=True):
    """One block with the producer, sealers and vote in its header."""

    header: HashedHeader
    validators: Sequence[Address]
    proposer: Address
    sealers: frozenset[Address | None]
    round: int | None
    vote: Vote | None


def validator_batch(
    chain: Chain, dataset: Dataset, columns: Sequence[Column], first: int, last: int, rows: Rows, hex: bool
) -> Any:
    """Return one record batch of blocks `first` to `last`. The genesis block has no producer, so it gives no rows."""
    pa = require("pyarrow")
    schema = arrow_schema(dataset, columns, hex)
    found = [row for block in _blocks(chain, max(first, 1), last) for row in _rows(block, rows, chain.spec.chain_id)]
    values = [[_shown(row[column.name], hex) for row in found] for column in columns]
    arrays = [pa.array(one, field.type) for one, field in zip(values, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _blocks(chain: Chain, first: int, last: int) -> Iterator[_Sealed]:
    headers = []
    for number in range(first, last + 1):
        header = chain.canonical(number)
        if header is None:
            raise StorageError(f"Block {number} is missing from the database; run `ophion storage check`.")
        headers.append(header)
    engine = chain.engine
    if isinstance(engine, BftEngine):
        return _bft_blocks(engine, headers)
    if isinstance(engine, CliqueEngine):
        return _clique_blocks(engine, chain, headers)
    raise CommandError(f"The dataset validators needs IBFT 2.0, QBFT or Clique; this network runs {engine.name}.")


def _bft_blocks(engine: BftEngine, headers: Sequence[HashedHeader]) -> Iterator[_Sealed]:
    extras = [engine.validators.extra(header.header) for header in headers]
    digests = [engine.signing_hash(header.header) for header in headers]
    pairs = [(digest, seal) for digest, extra in zip(digests, extras, strict=True) for seal in extra.seals]
    authors = iter(recover_addresses(pairs))
    for header, extra in zip(headers, extras, strict=True):
        sealers = frozenset(next(authors) for _ in extra.seals)
        # in contract mode the header lists no validators, so return only the validators that sealed the block
        listed = extra.validators or tuple(sorted(one for one in sealers if one is not None))
        yield _Sealed(header, listed, header.header.coinbase, sealers, extra.round, extra.vote)


def _clique_blocks(engine: CliqueEngine, chain: Chain, headers: Sequence[HashedHeader]) -> Iterator[_Sealed]:
    engine.look_ahead(headers)
    for header in headers:
        parent = chain.header(header.header.parent_hash)
        assert parent is not None, "a canonical block has a parent"
        signer, target = engine.author(header), header.header.coinbase
        vote = None if target == ZERO_ADDRESS else Vote(target, any(header.header.nonce))
        yield _Sealed(header, engine.members(parent, chain), signer, frozenset((signer,)), None, vote)


def _rows(block: _Sealed, rows: Rows, chain_id: int) -> Iterator[dict[str, Any]]:
    for address in block.validators:
        if rows.addresses and address not in rows.addresses:
            continue
        is_proposer = address == block.proposer
        vote = block.vote if is_proposer else None
        yield {
            "block_number": block.header.number,
            "block_hash": block.header.hash,
            "timestamp": block.header.timestamp if block.header.timestamp < 2**32 else None,
            "round": block.round,
            "address": address,
            "is_proposer": is_proposer,
            "has_sealed": address in block.sealers,
            "vote_address": None if vote is None else vote.target,
            "vote_adds": None if vote is None else vote.authorize,
            "n_validators": len(block.validators),
            "chain_id": chain_id,
        }


def _shown(value: Any, hex: bool) -> Any:
    return hex_text(value) if hex and isinstance(value, bytes) else value
