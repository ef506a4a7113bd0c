"""A minimal chain for engine tests: signed transactions, and blocks built and committed by the test."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ophion.native.crypto import address_of, keccak256, public_key, sign
from ophion.native.executor import BlockEnv, ChainRules, Execution, OpenBlock, State, genesis_state
from ophion.native.store import NewBlock, Store, open_store
from ophion.native.transactions import Body, Transaction, decode_transactions
from ophion.primitives import rlp
from ophion.primitives.header import Header

CHAIN_ID = 99
KEYS = [number.to_bytes(32, "big") for number in range(1, 6)]
ADDRESSES = [address_of(public_key(key)) for key in KEYS]
RICH = 10**24

COUNTER = bytes.fromhex("5f5460010180 5f55 5f52 60205fa0 00".replace(" ", ""))
"""Code that adds one to slot 0 and logs the new value without topics."""

SUICIDE = bytes.fromhex("33ff")
"""Code that sends its balance to the caller and destroys itself (before Cancun)."""


def signed(key: bytes, nonce: int, to: bytes | None, value: int = 0, data: bytes = b"", gas: int = 200_000) -> bytes:
    """Return a legacy transaction with replay protection."""
    fields: list[bytes | int] = [nonce, 10, gas, to or b"", value, data]
    digest = keccak256(rlp.encode([*fields, CHAIN_ID, 0, 0]))
    signature = sign(key, digest)
    r, s = (int.from_bytes(part, "big") for part in (signature[:32], signature[32:64]))
    return rlp.encode([*fields, CHAIN_ID * 2 + 35 + signature[64], r, s])


def decoded(raws: list[bytes]) -> list[Transaction]:
    """Decode transactions to the objects that the pool stores."""
    result = decode_transactions(raws)
    assert all(isinstance(one, Transaction) for one in result), result
    return [one for one in result if isinstance(one, Transaction)]


@dataclass(frozen=True)
class Built:
    """An executed block."""

    hash: bytes
    number: int
    header: bytes
    body: Body
    execution: Execution
    total_difficulty: int

    def new_block(self) -> NewBlock:
        return NewBlock(
            hash=self.hash,
            number=self.number,
            header=self.header,
            body=self.body,
            execution=self.execution,
            total_difficulty=self.total_difficulty,
        )


@dataclass
class World:
    """A store with a genesis and blocks."""

    path: Path
    fork: str = "shanghai"
    gas_limit: int = 30_000_000
    store: Store = field(init=False)
    genesis: Built = field(init=False)

    def __post_init__(self) -> None:
        self.store = open_store(self.path, durable=False)
        alloc = [(address, 0, RICH, b"", []) for address in ADDRESSES]
        alloc.append((b"\xcc" * 20, 1, 0, COUNTER, [((7).to_bytes(32, "big"), (70).to_bytes(32, "big"))]))
        alloc.append((b"\xdd" * 20, 1, 5, SUICIDE, [((1).to_bytes(32, "big"), (2).to_bytes(32, "big"))]))
        execution = genesis_state(self.store, alloc)
        body = Body.of([], [], None)
        self.genesis = self._sealed(b"\x00" * 32, 0, body, execution, 1)
        if self.store.head() is None:
            self.store.commit([self.genesis.new_block()], [], [self.genesis.hash])

    def _sealed(
        self, parent: bytes, number: int, body: Body, execution: Execution, total: int, salt: bytes = b""
    ) -> Built:
        header = Header(
            parent_hash=parent,
            ommers_hash=body.ommers_hash,
            coinbase=ADDRESSES[4],
            state_root=execution.state_root,
            transactions_root=body.transactions_root,
            receipts_root=execution.receipts_root,
            logs_bloom=execution.logs_bloom,
            difficulty=1,
            number=number,
            gas_limit=self.gas_limit,
            gas_used=execution.gas_used,
            timestamp=number,
            extra_data=salt,
            mix_hash=b"\x00" * 32,
            nonce=b"\x00" * 8,
            base_fee_per_gas=0,
        ).encode()
        return Built(keccak256(header), number, header, body, execution, total)

    def env(self, number: int, parent: bytes) -> BlockEnv:
        return BlockEnv(
            rules=ChainRules(chain_id=CHAIN_ID),
            fork=self.fork,
            number=number,
            timestamp=number,
            beneficiary=ADDRESSES[4],
            gas_limit=self.gas_limit,
            difficulty=1,
            mix_hash=b"\x00" * 32,
            base_fee=0,
            parent_hash=parent,
        )

    def block(self, parent: Built, raws: list[bytes], state: State | None = None, salt: bytes = b"") -> Built:
        """Make a block with these transactions, which must all fit."""
        env = self.env(parent.number + 1, parent.hash)
        block = OpenBlock(state or parent.execution.state, env, True)
        taken = block.take(decoded(raws), 5.0)
        assert taken.included == list(range(len(raws))), taken.skipped
        body, execution = block.seal(None, [])
        return self._sealed(parent.hash, parent.number + 1, body, execution, parent.total_difficulty + 1, salt)

    def extend(self, *blocks: Built) -> None:
        self.store.commit([block.new_block() for block in blocks], [], [block.hash for block in blocks])
