"""Valid input of every kind, which the fuzz targets mutate."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from ophion.consensus.bft.message_factory import BftProtocol, KeyMessageFactory
from ophion.consensus.bft.messages import PreparedRound
from ophion.native.executor import genesis_state
from ophion.native.store import open_store
from ophion.primitives import rlp
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction
from tests.conftest import DATA
from tests.data.small_chain.make import BLOCKS_FILE, GENESIS_FILE
from tests.unit.consensus.bft.golden import K2, K3, K4, message_block

GENESIS = GENESIS_FILE.read_bytes()
EXTRA_DATA = {
    "ibft": rlp.encode([bytes(32), [key.address for key in DEV_KEYS], b"", bytes(4), []]),
    "qbft": rlp.encode([bytes(32), [key.address for key in DEV_KEYS], [], 0, []]),
}


@cache
def blocks() -> tuple[bytes, ...]:
    """Return the blocks of the small chain, genesis first."""
    return split_blocks(BLOCKS_FILE.read_bytes())


def split_blocks(content: bytes) -> tuple[bytes, ...]:
    """Return the RLP of each block in a file."""
    found = []
    start = 0
    while start < len(content):
        end = rlp.item_end(content, start)
        found.append(content[start:end])
        start = end
    return tuple(found)


@cache
def headers() -> tuple[bytes, ...]:
    """Return three headers of the small chain, with and without a base fee, and one header with every field of
    the last fork.
    """
    plain = [rlp.split_list(block, 1024)[0] for block in (blocks()[1], blocks()[10], blocks()[-1])]
    fields = rlp.split_list(plain[-1], 1024)
    late = [*fields, b"\xa0" + bytes(32), b"\x80", b"\x80", b"\xa0" + bytes(32), b"\xa0" + bytes(32)]
    return (*plain, rlp.list_of(late))


@cache
def transactions() -> tuple[bytes, ...]:
    """Return signed transactions of common types, and typed transactions with meaningless signatures."""
    key = DEV_KEYS[0]
    target, slot = b"\x11" * 20, b"\x22" * 32
    access: rlp.Encodable = [[target, [slot, slot]]]
    return (
        legacy_transaction(key, 0),
        legacy_transaction(key, 5, to=None, data=b"\x60\x00" * 40, gas=100_000, chain_id=None),
        fee_transaction(key, 1, value=10**18, data=bytes(70)),
        b"\x01" + rlp.encode([2018, 1, 1, 21_000, target, 0, b"", access, 1, 7, 7]),
        b"\x03" + rlp.encode([2018, 1, 1, 1, 21_000, target, 0, b"", access, 1, [b"\x01" + bytes(31)], 1, 7, 7]),
        b"\x04" + rlp.encode([2018, 1, 1, 1, 99_000, target, 0, b"", [], [[2018, target, 1, 1, 7, 7]], 1, 7, 7]),
    )


@cache
def proof() -> tuple[bytes, bytes, tuple[bytes, ...]]:
    """Return (root, key, nodes): the proof of one account among a few hundred."""
    accounts: list[tuple[bytes, int, int, bytes, list[tuple[bytes, bytes]]]] = [
        (number.to_bytes(20, "big"), number, number * 10**9, b"", []) for number in range(1, 300)
    ]
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder), durable=False)
        state = genesis_state(store, accounts).state
        address = accounts[77][0]
        nodes = tuple(state.proof(address, [])[0])
        store.close()
    return state.root, address, nodes


@cache
def vectors(kind: str) -> tuple[bytes, ...]:
    """Return the public vector files of one kind that are in the repository."""
    return tuple(path.read_bytes() for path in sorted((DATA / "vectors" / kind).glob("*.json")))


def bft_messages(protocol: BftProtocol) -> list[bytes]:
    """Return one message of each kind, including a round change and a proposal with justification."""
    scribes = [KeyMessageFactory(protocol, key) for key in (K4, K2, K3)]
    block = message_block(protocol)
    prepares = tuple(scribe.prepare(1, 0, block.digest) for scribe in scribes)
    proposal = scribes[0].proposal(1, 0, block, None)
    change = scribes[1].round_change(1, 1, PreparedRound(0, block, prepares, proposal.signed))
    commit = scribes[0].commit(1, 0, block.digest, block.hash)
    return [proposal.raw.data, prepares[0].raw.data, commit.raw.data, change.raw.data]
