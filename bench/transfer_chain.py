"""The chain of transfers that tables.py exports. An interrupted build continues where it stopped.

Half of the transactions transfer wei, half transfer a token, between 1,000 accounts. The network has one QBFT validator
and free gas, so `lateness.py` continues the chain with a node.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import Genesis, parse_genesis
from ophion.consensus.bft.engine import BftEngine
from ophion.consensus.engine import BlockPreferences
from ophion.native.crypto import PrivateKey, keccak256
from ophion.native.store import open_store
from ophion.native.transactions import Transaction, decode_transactions
from ophion.node.datadir import DataDirectory
from ophion.primitives import rlp
from ophion.runtime.clock import SystemClock
from ophion.testing.network import CHAIN_ID, member_key, network_genesis

ACCOUNTS: Final = 1000
BLOCK: Final = 250
BLOCKS_A_COMMIT: Final = 40
START: Final = 1_700_000_000
STATE_CACHE: Final = 64 << 20
SECRETS: Final = [0xACC0 + number for number in range(16)]
SENDERS: Final = [PrivateKey(secret.to_bytes(32, "big")) for secret in SECRETS]
ORDER: Final = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""Order of secp256k1."""
R: Final = 0x79BE667EF9DCBBAC55A06295CE870B07029BFCDB2DCE28D959F2815B16F81798
"""First half of every signature: the x coordinate of the generator, whose y coordinate is even."""
EVENT: Final = keccak256(b"Transfer(address,address,uint256)").hex()
TOKEN_ADDRESS: Final = bytes([0xEE]) * 20
TOKEN: Final = f"602035600052 600035 33 7f{EVENT} 60206000a3 600035 54 602035 01 600035 55 00"
"""EVM code that transfers the amount in the second word to the account in the first word. It logs the transfer and adds
the amount to the account's slot.
"""


def genesis_text() -> str:
    """Return the genesis file with the token and the balances of the senders."""
    values = network_genesis("qbft", [member_key(0).address])
    values["alloc"][TOKEN_ADDRESS.hex()] = {"balance": "0x0", "code": "0x" + TOKEN.replace(" ", "")}
    for key in SENDERS:
        values["alloc"][key.address.hex()] = {"balance": hex(10**30)}
    return json.dumps(values, indent=2)


def data_path(place: Path) -> Path:
    """Return the data path of the node that has the chain."""
    return place / "node0"


def build(place: Path, count: int) -> None:
    """Build or continue a chain of at least `count` transfers in `place`, with its file `genesis.json`."""
    place.mkdir(parents=True, exist_ok=True)
    text = genesis_text()
    (place / "genesis.json").write_text(text)
    with DataDirectory.open(data_path(place)) as opened:
        opened.store()
    store = open_store(data_path(place) / "database", durable=False)
    store.set_state_cache(STATE_CACHE)
    try:
        genesis = parse_genesis(text)
        engine = BftEngine(genesis.spec)
        chain = Chain.open(store, genesis, engine)
        began, before = time.perf_counter(), chain.head.number
        for number in add_blocks(chain, engine, genesis, count // BLOCK):
            rate = (number - before) * BLOCK / (time.perf_counter() - began)
            print(json.dumps({"block": number, "transactions": number * BLOCK, "per_s": round(rate)}), flush=True)
    finally:
        store.close()


def add_blocks(chain: Chain, engine: BftEngine, genesis: Genesis, last: int) -> Iterator[int]:
    """Add blocks up to `last`. Yields the number of the head after each write to the database."""
    accounts = [keccak256(number.to_bytes(4, "big"))[:20] for number in range(ACCOUNTS)]
    core, builder = ImportCore(chain, SystemClock()), BlockBuilder(chain, False)
    author = member_key(0)
    parent, state = chain.head, chain.state(chain.head.header)
    for number in range(parent.number + 1, last + 1):
        draft = engine.prepare(parent, BlockPreferences(START + number, author.address), core)
        built = builder.fill(draft, state, transfers(number, accounts), 60.0, beneficiary=author.address)
        assert built.body.transaction_count == BLOCK, built.skipped
        seal = author.sign(engine.signing_hash(built.header))
        parent = engine.hashed(engine.attach(built.header, [seal]))
        core.stage(parent, built.body, built.execution)
        state = built.state
        if number % BLOCKS_A_COMMIT == 0 or number == last:
            change = core.commit()
            assert change is not None
            chain.advance(change, {})
            state = chain.state(chain.head.header)
            yield number


def transfers(number: int, accounts: Sequence[bytes]) -> list[Transaction]:
    """Return the transactions of one block. The first block has number 1."""
    raws = []
    for index in range((number - 1) * BLOCK, number * BLOCK):
        secret, nonce, to = SECRETS[index % len(SECRETS)], index // len(SECRETS), accounts[index * 7919 % ACCOUNTS]
        if index % 2:
            raw = signed(secret, [nonce, 0, 21_000, to, index, b""])
        else:
            data = to.rjust(32, b"\0") + index.to_bytes(32, "big")
            raw = signed(secret, [nonce, 0, 100_000, TOKEN_ADDRESS, 0, data])
        raws.append(raw)
    return [one for one in decode_transactions(raws) if isinstance(one, Transaction)]


def signed(secret: int, fields: list[rlp.Encodable]) -> bytes:
    """Sign a legacy transaction. Every signature has the ECDSA nonce 1, which is fast and reveals the key."""
    digest = keccak256(rlp.encode([*fields, CHAIN_ID, 0, 0]))
    s, parity = (int.from_bytes(digest, "big") + R * secret) % ORDER, 0
    if s > ORDER // 2:
        s, parity = ORDER - s, 1
    return rlp.encode([*fields, 35 + 2 * CHAIN_ID + parity, R, s])
