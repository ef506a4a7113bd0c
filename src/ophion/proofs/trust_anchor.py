"""What the auditor trusts: the genesis file of a network, or a later block of that network."""

from __future__ import annotations

import json
from typing import Any

from msgspec import Struct

from ophion.chainspec.genesis import parse_genesis
from ophion.chainspec.spec import ChainSpec
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.bft.extra_data import BftExtraData
from ophion.consensus.clique import SEAL, VANITY, CliqueEngine
from ophion.consensus.engine_factory import engine_for
from ophion.errors import DecodeError, ProofError
from ophion.primitives.hexcodec import parse_data_lenient, parse_number
from ophion.primitives.types import ADDRESS_LENGTH, Address, Hash32


class TrustAnchor(Struct, frozen=True):
    """A block that the auditor trusts, and the rules of its network."""

    spec: ChainSpec
    engine: BftEngine | CliqueEngine
    number: int
    validators: tuple[Address, ...]
    """Validators after the trusted block."""
    hash: Hash32 | None = None
    """Hash of the trusted block; None for a genesis file."""


def read_trust(genesis: bytes, checkpoint: bytes | None = None) -> TrustAnchor:
    """Read a genesis file, and a checkpoint if there is one.

    A checkpoint is a JSON object with the keys `number`, `hash` and `validators`. The checkpoint must be an epoch
    block, after which no votes are open, unless it is the proven block itself.
    """
    parsed = parse_genesis(genesis)
    engine = engine_for(parsed.spec)
    if isinstance(engine, BftEngine):
        validators = _listed(engine.protocol(0).decode_extra(parsed.extra_data))
    elif isinstance(engine, CliqueEngine):
        listed = parsed.extra_data[VANITY:-SEAL]
        validators = tuple(sorted(listed[at : at + ADDRESS_LENGTH] for at in range(0, len(listed), ADDRESS_LENGTH)))
    else:
        raise ProofError(f"The trusted network runs {engine.name}, whose blocks have no validators' seals.")
    trust = TrustAnchor(parsed.spec, engine, 0, validators)
    return trust if checkpoint is None else _at(trust, checkpoint)


def _listed(extra: BftExtraData) -> tuple[Address, ...]:
    return tuple(sorted(set(extra.validators)))


def _at(trust: TrustAnchor, checkpoint: bytes) -> TrustAnchor:
    try:
        values: dict[str, Any] = json.loads(checkpoint)
        number = parse_number(str(values["number"]))
        block_hash = parse_data_lenient(str(values["hash"]), 32)
        validators = tuple(sorted(parse_data_lenient(str(one), ADDRESS_LENGTH) for one in values["validators"]))
    except (ValueError, KeyError, TypeError, DecodeError) as error:
        raise ProofError(f"The checkpoint is not an object with number, hash and validators: {error}") from error
    return TrustAnchor(trust.spec, trust.engine, number, validators, block_hash)
