"""The chains that growth.py measures. An interrupted build continues where it stopped."""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from ophion.chain.block_builder import BlockBuilder
from ophion.dev.empty_blocks import EmptyBlocks
from ophion.dev.engine import DevEngine
from ophion.native.crypto import PrivateKey
from ophion.native.store import Store, open_store
from ophion.node.datadir import DataDirectory
from ophion.runtime.thread_pools import Lanes
from ophion.testing.node_core import TestCore, open_core
from ophion.testing.signing import DEV_KEYS, legacy_transaction

GAS_PRICE: Final = 10**10
RARE_EVERY: Final = 1000
NEW_A_CALL: Final = 250
"""Number of accounts or slots that one call creates."""
MAX_NEW_A_BLOCK: Final = 500_000
CALL_GAS: Final = 16_000_000
LOG_GAS: Final = 1_000
FREQUENT, RARE = 0xF1, 0xA7
SENDERS: Final = [PrivateKey((0xACC0 + number).to_bytes(32, "big")) for number in range(16)]
RUN_BLOCKS: Final = 64
"""Number of blocks after which the blocks with calls and the empty blocks repeat. A section of the log index has as
many.
"""
STATE_CACHE: Final = 64 << 20
"""The default of --state-cache-size."""

LOOP: Final = "600035602035810190 5b {body} 600101 818110 6009 57 00"
"""EVM code that runs the body for consecutive numbers. The input has the first number and the count."""
EMIT: Final = LOOP.format(body="604035 6000 6000 a1")
"""EVM code that emits a log for each number. The third word of the input is the topic."""
PAY: Final = LOOP.format(body="6000808080 6001 85 6000 f1 50")
TOKEN: Final = (
    "36 6060 14 6020 57"
    "600035 80 54 602035 01 90 55 33 80 54 600101 90 55 60206000a0 00"
    "5b 600035602035810190 5b 8080 55 600101 818110 602a 57 00"
)
"""EVM code that adds an amount to the slot of a recipient, counts the sender's calls and emits a log.

With a third word of input, it fills consecutive slots instead. The input then has the first number and the count.
"""


def creation(runtime: str) -> bytes:
    code = bytes.fromhex(runtime.replace(" ", ""))
    return bytes.fromhex(f"60{len(code):02x}80600b6000396000f3") + code


def words(*numbers: int) -> bytes:
    return b"".join(number.to_bytes(32, "big") for number in numbers)


class Builder:
    """Makes blocks of one chain in this process."""

    def __init__(self, core: TestCore) -> None:
        self.core = core
        self._nonces: dict[PrivateKey, int] = {}

    def sign(self, key: PrivateKey, to: bytes | None, data: bytes = b"", value: int = 0, gas: int = 100_000) -> bytes:
        nonce = self._nonces.get(key)
        if nonce is None:
            nonce = self.core.queries.head_state.nonce(key.address)
        self._nonces[key] = nonce + 1
        return legacy_transaction(key, nonce, to=to, data=data, value=value, gas=gas, gas_price=GAS_PRICE)

    async def deploy(self, runtime: str) -> bytes:
        _, (tx_hash,) = await self.core.mine(self.sign(DEV_KEYS[0], None, creation(runtime), gas=1_000_000))
        position = self.core.queries.transaction_position(tx_hash)
        assert position is not None
        receipt = json.loads(self.core.chain.store.receipt_at_json(position[0], position[2], False) or b"")
        return bytes.fromhex(receipt["contractAddress"][2:])

    async def fund(self) -> None:
        """Give every sender enough ether for its gas."""
        await self.core.mine(*(self.sign(DEV_KEYS[1], key.address, value=4 * 10**21) for key in SENDERS))


class Growth(msgspec.Struct, frozen=True):
    """What a chain has. Blocks with calls follow the blocks that create accounts and slots."""

    accounts: int = 0
    """Number of accounts, and of storage slots."""
    blocks: int = 0
    calls: int = 4
    """Number of calls a block. In about every thousandth block, the first call has the rare topic."""
    logs: int = 1
    """Number of logs a call."""
    busy: int = 64
    """Number of blocks with calls in each 64 blocks. The others are empty."""

    @property
    def name(self) -> str:
        parts = [f"accounts-{self.accounts}"] if self.accounts else []
        if self.blocks:
            parts.append(f"blocks-{self.blocks}")
            parts += [f"logs-{self.calls}x{self.logs}"] if (self.calls, self.logs) != (4, 1) else []
            parts += [f"busy-{self.busy}"] if self.busy < RUN_BLOCKS else []
        return "-".join(parts)


class Notes:
    """What the builder has stored about a chain."""

    def __init__(self, place: Path) -> None:
        self._file = place / "notes.json"
        self.values: dict[str, Any] = json.loads(self._file.read_text()) if self._file.exists() else {}

    def store(self, **values: Any) -> None:
        self.values |= values
        partial = self._file.with_suffix(".part")
        partial.write_text(json.dumps(self.values))
        partial.replace(self._file)

    def spend(self, began: float) -> float:
        """Add the time since `began` to the time of the build. Returns the current time."""
        now = time.perf_counter()
        self.store(build_s=round(self.values.get("build_s", 0.0) + now - began, 1))
        return now


async def deploy_all(builder: Builder, notes: Notes) -> None:
    await builder.fund()
    emitter, payer, token = [await builder.deploy(code) for code in (EMIT, PAY, TOKEN)]
    notes.store(emitter=emitter.hex(), payer=payer.hex(), token=token.hex())


async def build_accounts(builder: Builder, growth: Growth, notes: Notes) -> None:
    core, count = builder.core, growth.accounts
    payer, token = bytes.fromhex(notes.values["payer"]), bytes.fromhex(notes.values["token"])
    new_a_block = min(MAX_NEW_A_BLOCK, max(10_000, count // 20))
    began = time.perf_counter()
    for first in range(notes.values.get("accounts", 0), count, new_a_block):
        end = min(first + new_a_block, count)
        raws = []
        for start in range(first, end, NEW_A_CALL):
            raws.append(builder.sign(SENDERS[0], payer, words((1 << 64) + start, NEW_A_CALL), NEW_A_CALL, CALL_GAS))
            raws.append(builder.sign(SENDERS[1], token, words(1 + start, NEW_A_CALL, 1), 0, CALL_GAS))
        await core.send(*raws)
        core.clock.advance(1)
        built_block = await core.core.assembler.assemble(600.0)
        await core.core.assembler.commit(built_block.header, built_block, core.clock.monotonic())
        assert core.queries.head_state.storage(token, words(end)) == words(end)
        notes.store(accounts=end, first_block=core.queries.head_number + 1)
        began = notes.spend(began)


async def build_blocks(builder: Builder, growth: Growth, notes: Notes) -> None:
    core, emitter = builder.core, bytes.fromhex(notes.values["emitter"])
    last = notes.values["first_block"] + growth.blocks - 1
    gas = 50_000 + LOG_GAS * growth.logs
    began = time.perf_counter()
    while (number := core.queries.head_number + 1) <= last:
        if number % RUN_BLOCKS >= growth.busy:
            await add_empty(core, min(RUN_BLOCKS - number % RUN_BLOCKS, last - number + 1))
            continue
        topics = [FREQUENT] * growth.calls
        if number % RARE_EVERY < RUN_BLOCKS and number % RUN_BLOCKS == 0:
            topics[0] = RARE
        # a call with the rare topic emits one log
        raws = [
            builder.sign(SENDERS[index], emitter, words(0, growth.logs if topic == FREQUENT else 1, topic), 0, gas)
            for index, topic in enumerate(topics)
        ]
        await core.send(*raws)
        core.clock.advance(1)
        assert core.core.assembler.produce_inline(10.0), number
        if number % RUN_BLOCKS == 0:
            began = notes.spend(began)
    notes.spend(began)


async def add_empty(core: TestCore, count: int) -> None:
    """Add empty blocks, which takes much less time than to build each of them."""
    core.clock.advance(count)
    preferences = core.core.assembler.preferences()
    engine = DevEngine(core.chain.spec, equal_timestamps=False, is_merged=False)
    blocks = EmptyBlocks(core.chain, BlockBuilder(core.chain, False), engine, preferences, 1, count)
    while blocks.left:
        await core.core.importer.run(blocks.add, blocks.bodies)


def build(place: Path, growth: Growth) -> dict[str, Any]:
    """Build a chain, or continue it. Returns the stored notes about the chain."""
    notes = Notes(place)
    if notes.values.get("is_complete"):
        return notes.values
    if "token" not in notes.values:
        shutil.rmtree(place, ignore_errors=True)
        base = place.parent / Growth(accounts=growth.accounts).name
        if growth.blocks and growth.accounts and Notes(base).values.get("is_complete"):
            place.mkdir()
            shutil.copytree(base / "database", place / "database", ignore=shutil.ignore_patterns("data.mdb"))
            with closing(open_store(base / "database")) as store:
                compact_copy(store, place / "database")
            notes.store(**Notes(base).values | {"is_complete": False})
        else:
            with DataDirectory.open(place) as opened:
                opened.store()

    async def work(core: TestCore) -> None:
        builder = Builder(core)
        if "token" not in notes.values:
            await deploy_all(builder, notes)
        await build_accounts(builder, growth, notes)
        if "first_block" not in notes.values or not growth.blocks:
            notes.store(first_block=core.queries.head_number + 1)
        await build_blocks(builder, growth, notes)

    with opened_core(place) as core:
        asyncio.run(work(core))
        if not growth.blocks:
            compact_copy(core.chain.store, place / "database")
    notes.store(is_complete=True)
    return notes.values


def compact_copy(store: Store, target: Path) -> None:
    """Copy a database without the many free pages that the large blocks of the builder leave."""
    partial = target / "data.part"
    with partial.open("wb") as file:
        store.copy_to(file.fileno())
    partial.replace(target / "data.mdb")


@contextmanager
def opened_core(place: Path, lanes: Lanes | None = None) -> Iterator[TestCore]:
    """Open a chain with the state cache of a node. Drops the transactions that an interrupted run left in the pool."""
    for journal in (place / "database").glob("local-transactions.journal*"):
        journal.unlink()
    with open_core(place / "database", lanes=lanes) as core:
        core.chain.store.set_state_cache(STATE_CACHE)
        yield core
