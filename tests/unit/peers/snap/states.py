"""A database whose state has many accounts, and one contract with code and many slots."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.engine_factory import engine_for
from ophion.native.crypto import keccak256
from ophion.native.store import open_store
from ophion.primitives import rlp

ACCOUNTS = 300
SLOTS = 200
CONTRACT = bytes([0xCC]) * 20
OTHER_CONTRACT = bytes([0xDD]) * 20
CODE = bytes.fromhex("600160005500")


def addresses() -> list[bytes]:
    """Return the addresses of the accounts without code."""
    return [number.to_bytes(20, "big") for number in range(1, ACCOUNTS + 1)]


def slots() -> dict[bytes, int]:
    """Return the slots of `CONTRACT` by hashed key."""
    return {keccak256(number.to_bytes(32, "big")): number * number for number in range(1, SLOTS + 1)}


@contextmanager
def opened(path: Path) -> Iterator[Chain]:
    """Write the genesis state and open it."""
    storage = {f"0x{number:064x}": hex(number * number) for number in range(1, SLOTS + 1)}
    code = "0x" + CODE.hex()
    values = {
        "config": {"chainId": 5, "ethash": {"fixeddifficulty": 1}},
        "difficulty": "0x1",
        "gasLimit": "0x1000000",
        "alloc": {
            **{address.hex(): {"balance": hex(7 + position)} for position, address in enumerate(addresses())},
            CONTRACT.hex(): {"balance": "0x1", "code": code, "storage": storage},
            OTHER_CONTRACT.hex(): {"balance": "0x2", "code": code, "storage": {"0x01": "0x05"}},
        },
    }
    genesis = parse_genesis(json.dumps(values))
    store = open_store(path, durable=False)
    try:
        yield Chain.open(store, genesis, engine_for(genesis.spec))
    finally:
        store.close()


def full_account(slim: rlp.Item) -> bytes:
    """Return the full account from its slim form in a response."""
    assert isinstance(slim, list)
    nonce, balance, root, code_hash = slim
    empty_root, empty_code = keccak256(rlp.encode(b"")), keccak256(b"")
    return rlp.encode([nonce, balance, root or empty_root, code_hash or empty_code])
