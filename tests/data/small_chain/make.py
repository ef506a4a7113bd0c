"""Makes the small Clique chain in this folder, and longer chains for tests that interrupt an import.

The bytes are the same each time: public test keys, deterministic signatures, fixed timestamps. The chain has both
header forms (London begins in block 8), epoch blocks, a vote that adds a third signer, transfers to new and old
accounts, a contract with storage and logs, and a failed transaction.

    python -m tests.data.small_chain.make        writes genesis.json and blocks.rlp again
"""

from __future__ import annotations

import json
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.clique import CliqueEngine
from ophion.consensus.engine import BlockPreferences, Vote
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.store import open_store
from ophion.native.transactions import Transaction, decode_transactions
from ophion.primitives.types import WEI_PER_GWEI
from ophion.runtime.clock import SystemClock
from ophion.testing.signing import DEV_KEYS, fee_transaction, legacy_transaction

HERE = Path(__file__).resolve().parent
GENESIS_FILE = HERE / "genesis.json"
BLOCKS_FILE = HERE / "blocks.rlp"
BLOCKS = 30
TRANSACTIONS_A_BLOCK = 3

_CHAIN_ID = 20_180
_LONDON = 8
_EPOCH = 10
_START = 1_700_000_000

# this code runs SSTORE(calldata[0:32], calldata[32:64]), then LOG1 of all calldata with the first word as topic
_KEEPER = bytes.fromhex("602035600035556000353660006000373660" + "00a100")
_DEPLOYMENT = bytes((0x60, len(_KEEPER), 0x80, 0x60, 0x0B, 0x60, 0x00, 0x39, 0x60, 0x00, 0xF3)) + _KEEPER


def genesis_document() -> dict[str, object]:
    """Return the genesis: two signers, and three public test keys with much ether."""
    signers = sorted(key.address for key in DEV_KEYS[:2])
    return {
        "config": {
            "chainId": _CHAIN_ID,
            "berlinBlock": 0,
            "londonBlock": _LONDON,
            "clique": {"blockperiodseconds": 1, "epochlength": _EPOCH},
        },
        "nonce": "0x0",
        "timestamp": hex(_START),
        "extraData": "0x" + (bytes(32) + b"".join(signers) + bytes(65)).hex(),
        "gasLimit": "0x1c9c380",
        "difficulty": "0x1",
        "alloc": {key.address.hex(): {"balance": str(10**24)} for key in DEV_KEYS},
    }


@dataclass(slots=True)
class _Author:
    """Yields the transactions of the chain in order."""

    nonces: dict[bytes, int]
    keeper: bytes

    def block(self, number: int, count: int) -> list[Transaction]:
        raws = [self._transaction(number, position) for position in range(count)]
        made = decode_transactions(raws)
        assert all(isinstance(one, Transaction) for one in made), made
        return [one for one in made if isinstance(one, Transaction)]

    def _transaction(self, number: int, position: int) -> bytes:
        key = DEV_KEYS[position % len(DEV_KEYS)]
        nonce = self.nonces[key.address]
        self.nonces[key.address] = nonce + 1
        word = (number * 1000 + position).to_bytes(32, "big")
        price = 2 * WEI_PER_GWEI
        if number == 1 and position == 0:
            return legacy_transaction(
                key, nonce, to=None, data=_DEPLOYMENT, gas=200_000, gas_price=price, chain_id=_CHAIN_ID
            )
        if number % 7 == 3 and position == 1:  # the gas does not cover the storage change, so this call fails
            return self._call(key, nonce, word, 25_000)
        if (number + position) % 3 == 0:
            return self._call(key, nonce, word, 100_000)
        to = keccak256(word)[:20] if (number + position) % 2 else keccak256(position.to_bytes(1, "big"))[:20]
        if number >= _LONDON and position % 2:
            return fee_transaction(key, nonce, to=to, value=number, max_fee=price, tip=1, chain_id=_CHAIN_ID)
        return legacy_transaction(key, nonce, to=to, value=number, gas_price=price, chain_id=_CHAIN_ID)

    def _call(self, key: PrivateKey, nonce: int, word: bytes, gas: int) -> bytes:
        data = keccak256(word)[:1].rjust(32, b"\0") + word
        return legacy_transaction(
            key, nonce, to=self.keeper, data=data, gas=gas, gas_price=2 * WEI_PER_GWEI, chain_id=_CHAIN_ID
        )


def make_chain(folder: Path, blocks: int = BLOCKS, transactions: int = TRANSACTIONS_A_BLOCK) -> tuple[Path, Path]:
    """Write a chain and its genesis into a folder. Returns the genesis file and the block file."""
    text = json.dumps(genesis_document(), indent=2) + "\n"
    genesis = parse_genesis(text)
    engine = CliqueEngine(genesis.spec)
    with tempfile.TemporaryDirectory() as scratch:
        store = open_store(Path(scratch), durable=False)
        chain = Chain.open(store, genesis, engine)
        pieces = [_genesis_block(chain)]
        core, builder = ImportCore(chain, SystemClock()), BlockBuilder(chain, keeps_revert_data=False)
        author = _Author(dict.fromkeys((key.address for key in DEV_KEYS), 0), _keeper_address())
        for number in range(1, blocks + 1):
            pieces.append(_add_block(chain, engine, core, builder, author.block(number, transactions)))
        store.close()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GENESIS_FILE.name).write_text(text)
    (folder / BLOCKS_FILE.name).write_bytes(b"".join(pieces))
    return folder / GENESIS_FILE.name, folder / BLOCKS_FILE.name


def _genesis_block(chain: Chain) -> bytes:
    raw = chain.store.block(chain.genesis.hash)
    assert raw is not None
    return raw


def _keeper_address() -> bytes:
    # the first transaction of the first account creates the contract, so hash the RLP list [account, nonce 0]
    return keccak256(b"\xd6\x94" + DEV_KEYS[0].address + b"\x80")[12:]


def _add_block(
    chain: Chain, engine: CliqueEngine, core: ImportCore, builder: BlockBuilder, candidates: list[Transaction]
) -> bytes:
    parent = chain.head
    number = parent.number + 1
    signer = _signer(chain, engine)
    newcomer = DEV_KEYS[2].address
    vote = Vote(newcomer, True) if 2 <= number <= 5 else None
    preferences = BlockPreferences(parent.timestamp + 1, signer.address, b"small chain".ljust(32, b"\0"), vote)
    draft = builder.draft(parent, preferences)
    state = chain.store.state(parent.header.state_root)
    built = builder.fill(draft, state, candidates, 60.0, signer.address)
    assert built.body.transaction_count == len(candidates), built.skipped
    sealed = engine.hashed(engine.attach(built.header, [signer.sign(engine.signing_hash(built.header))]))
    core.stage(sealed, built.body, built.execution)
    change = core.commit()
    assert change is not None
    chain.advance(change, {})
    return built.body.encode_block(sealed.header.encode())


def _signer(chain: Chain, engine: CliqueEngine) -> PrivateKey:
    """Return the in-turn signer; in every fifth block, return an out-of-turn signer."""
    number = chain.head.number + 1
    snapshot = engine.snapshot(chain.head, chain)
    able = sorted(
        (key for key in DEV_KEYS if snapshot.may_sign(key.address, number)),
        key=lambda key: snapshot.in_turn(number) != key.address,
    )
    return able[-1] if number % 5 == 0 else able[0]


if __name__ == "__main__":
    print(*make_chain(HERE), sep="\n", file=sys.stderr)
