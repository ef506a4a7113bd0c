"""Makes chains whose blocks create accounts and storage slots, for tests and benchmarks of synchronisation.

Transactions in each block call contracts of the genesis file: one pays new accounts, one stores numbers in new slots,
and one creates contracts that each have a storage of their own. IBFT 2.0 and QBFT have four validators, Clique has one
signer.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ophion.chain.block_builder import BlockBuilder
from ophion.chain.block_import import ImportCore
from ophion.chain.chain import Chain
from ophion.chainspec.genesis import parse_genesis
from ophion.consensus.bft.validator_set import quorum_of
from ophion.consensus.engine import BlockPreferences
from ophion.consensus.engine_factory import engine_for
from ophion.native.crypto import PrivateKey
from ophion.native.store import open_store
from ophion.native.transactions import Transaction, decode_transactions
from ophion.runtime.clock import SystemClock
from ophion.testing.bft_chain import KEYS, START, bft_genesis_text
from ophion.testing.clique_chain import SIGNER, clique_genesis_text
from ophion.testing.signing import DEV_KEYS, legacy_transaction

BLOCKS_A_COMMIT = 500
GAS_PRICE = 10**10
PAYER, STORER, CREATOR = (bytes([letter]) * 20 for letter in (0xAA, 0xBB, 0xCC))
LOOP = "600035602035810190 5b {body} 600101 818110 6009 57 00"
"""EVM code that runs the body for consecutive numbers. The input has the first number and the count."""
PAY = LOOP.format(body="6000808080 6001 85 6000 f1 50")
STORE = LOOP.format(body="8080 55")
CREATE = LOOP.format(
    # write init code to memory and run it with CREATE. The init code is PUSH32 number DUP1 SSTORE, and returns one zero
    # byte (STOP) as contract code.
    body=f"607f 6000 53 80 6001 52 7f 8055 6001 6000 f3 {bytes(25).hex()} 6021 52 6028 6000 6000 f0 50"
)
FIRST_ACCOUNT = 1 << 32


def genesis_text(protocol: str) -> str:
    """Return the genesis file with the contracts."""
    values = json.loads(clique_genesis_text() if protocol == "clique" else bft_genesis_text(protocol, 4))
    values["gasLimit"] = hex(300_000_000)
    values["alloc"][DEV_KEYS[0].address.hex()] = {"balance": hex(10**24)}
    for address, code in ((PAYER, PAY), (STORER, STORE), (CREATOR, CREATE)):
        values["alloc"][address.hex()] = {"balance": hex(10**24), "code": "0x" + code.replace(" ", "")}
    return json.dumps(values, indent=2)


def blocks_of(text: str, blocks: int, accounts: int, slots: int, contracts: int = 0) -> Iterator[bytes]:
    """Yield blocks that each create `accounts` accounts, `slots` slots and `contracts` contracts with one slot each."""
    genesis = parse_genesis(text)
    engine = engine_for(genesis.spec)
    calls = [(PAYER, FIRST_ACCOUNT, accounts, 40_000), (STORER, 0, slots, 25_000), (CREATOR, 0, contracts, 70_000)]
    keys = {key.address: key for key in (*KEYS, SIGNER)}
    with tempfile.TemporaryDirectory() as data:
        store = open_store(Path(data), durable=False)
        chain = Chain.open(store, genesis, engine)
        core, builder = ImportCore(chain, SystemClock()), BlockBuilder(chain, False)
        parent, state = chain.head, chain.state(chain.head.header)
        for number in range(1, blocks + 1):
            members = engine.members(parent, core)
            author = members[number % len(members)]
            draft = engine.prepare(parent, BlockPreferences(START + number, author), core)
            candidates = _transactions(genesis.spec.chain_id, number, [call for call in calls if call[2]])
            built = builder.fill(draft, state, candidates, 60.0, beneficiary=author)
            sealers = [author] if engine.name == "clique" else members[: quorum_of(len(members))]
            parent = engine.hashed(
                engine.attach(built.header, _seals(engine.signing_hash(built.header), sealers, keys))
            )
            core.stage(parent, built.body, built.execution)
            state = built.state
            yield built.body.encode_block(parent.header.encode())
            if number % BLOCKS_A_COMMIT == 0 or number == blocks:
                change = core.commit()
                assert change is not None
                chain.advance(change, {})
                state = chain.state(chain.head.header)
        store.close()


def _seals(digest: bytes, sealers: Sequence[bytes], keys: dict[bytes, PrivateKey]) -> list[bytes]:
    return [keys[sealer].sign(digest) for sealer in sealers]


def _transactions(chain_id: int, number: int, calls: list[tuple[bytes, int, int, int]]) -> list[Transaction]:
    """Return the transactions of one block. Each call is a tuple: contract, first number, count, gas per number."""
    raws = []
    for position, (to, first, count, gas) in enumerate(calls):
        raws.append(
            legacy_transaction(
                DEV_KEYS[0],
                len(calls) * (number - 1) + position,
                to=to,
                data=(first + number * count).to_bytes(32, "big") + count.to_bytes(32, "big"),
                gas=100_000 + gas * count,
                gas_price=GAS_PRICE,
                chain_id=chain_id,
            )
        )
    found = decode_transactions(raws)
    return [one for one in found if isinstance(one, Transaction)]


def make_chain(folder: Path, protocol: str, blocks: int, accounts: int, slots: int, contracts: int = 0) -> Path:
    """Write genesis.json and blocks.rlp, for `ophion blocks import`, to a new folder.

    `accounts`, `slots` and `contracts` are created evenly over all blocks.
    """
    folder.mkdir(parents=True)
    text = genesis_text(protocol)
    (folder / "genesis.json").write_text(text)
    with (folder / "blocks.rlp").open("wb") as file:
        for block in blocks_of(text, blocks, accounts // blocks, slots // blocks, contracts // blocks):
            file.write(block)
    return folder
