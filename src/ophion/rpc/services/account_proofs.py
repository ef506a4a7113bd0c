"""Merkle proofs of an account and its storage slots (EIP-1186), as JSON text.

Proofs of thousands of slots are rendered in batches, because Python objects take several times the memory of the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import orjson

from ophion.chain.queries import BlockView
from ophion.errors import MissingStateError
from ophion.native.executor import State
from ophion.primitives.hexcodec import data, quantity
from ophion.primitives.types import EMPTY_CODE_HASH, EMPTY_TRIE_ROOT, Address, Hash32
from ophion.rpc.errors import RESPONSE_TOO_LARGE, STATE_UNAVAILABLE

MAX_INLINE_SLOTS: Final = 16
"""Maximum number of slots to prove on the event loop. Proofs of more slots are built in a worker thread."""
_PORTION: Final = 256

NamedSlots: TypeAlias = Sequence[tuple[str, Hash32]]
"""Storage slots to prove, each with the key that the response shows."""


def proof(view: BlockView, address: Address, slots: NamedSlots, max_bytes: int) -> bytes:
    """Return a proof at a block. For a missing account, the proof shows the absence and has no storage proofs."""
    try:
        state = view.state
    except MissingStateError as error:
        raise STATE_UNAVAILABLE(error.message) from None
    account = state.account(address)
    if account is None:
        slots = ()
    nonce, balance, code_hash, storage_root = account or (0, 0, EMPTY_CODE_HASH, EMPTY_TRIE_ROOT)
    account_proof, _ = state.proof(address, [])
    head = {
        "address": data(address),
        "accountProof": [data(node) for node in account_proof],
        "balance": quantity(balance),
        "codeHash": data(code_hash),
        "nonce": quantity(nonce),
        "storageHash": data(storage_root),
    }
    portions, size = [], 0
    for start in range(0, len(slots), _PORTION):
        portions.append(_portion(state, address, slots[start : start + _PORTION]))
        size += len(portions[-1])
        if size > max_bytes:
            raise RESPONSE_TOO_LARGE()
    return b'%b,"storageProof":[%b]}' % (orjson.dumps(head)[:-1], b",".join(portions))


def _portion(state: State, address: Address, slots: NamedSlots) -> bytes:
    """Return the storage proofs of these slots as JSON list entries, in the given order."""
    _, proofs = state.proof(address, [slot for _, slot in slots])
    entries = [
        {"key": name, "value": quantity(int.from_bytes(value, "big")), "proof": [data(node) for node in nodes]}
        for (name, _), (value, nodes) in zip(slots, proofs, strict=True)
    ]
    return orjson.dumps(entries)[1:-1]
