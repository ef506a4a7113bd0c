"""Measure the write of blocks on a growing chain: python bench/block_commit.py [--at 10 50 100 200 300 500]

Commits blocks of 4,000 token transfers, each to a new holder, in this process, in a directory that is removed at the
end. Prints a JSON line for each given block: processor microseconds of the write per transfer, pages written to the
database per transfer, and microseconds per slot to list slots with their preimages. Each is the median of the
`--around` blocks up to that block, because the machine disturbs single blocks. The last line has the ratio of the last
block to the first.

With `--fill N`, the chain begins with N slots from a few large blocks, as if N / 4,000 blocks were there. These blocks
have few transactions and logs, so the tables of transactions and logs stay small. With `--keep DIRECTORY`, the chain
stays there, and the next run continues it: `--at` then counts from its first block on. A fill can be interrupted.

With `--known`, the recipients are random holders of the fill instead, so the state does not grow.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from growth import Usage
from growth_chains import (
    CALL_GAS,
    MAX_NEW_A_BLOCK,
    NEW_A_CALL,
    SENDERS,
    TOKEN,
    Builder,
    Notes,
    opened_core,
    words,
)

from ophion.runtime.thread_pools import ThreadLanes
from ophion.testing.node_core import TestCore

TRANSFERS: Final = 4_000
LOOKUPS: Final = 200


class Chain:
    """A chain with one token contract. Holders have consecutive numbers."""

    def __init__(self, core: TestCore, notes: Notes) -> None:
        self.core = core
        self.builder = Builder(core)
        self.notes = notes
        self.token = bytes.fromhex(notes.values.get("token", ""))
        self.holders = int(notes.values.get("holders", 0))

    async def deploy(self) -> None:
        if not self.token:
            await self.builder.fund()
            self.token = await self.builder.deploy(TOKEN)
            self.notes.store(token=self.token.hex())

    async def fill(self, slots: int) -> None:
        while self.holders < slots:
            end = min(self.holders + MAX_NEW_A_BLOCK, slots)
            calls = [
                self.builder.sign(SENDERS[0], self.token, words(1 + first, NEW_A_CALL, 1), 0, CALL_GAS)
                for first in range(self.holders, end, NEW_A_CALL)
            ]
            await self._write(calls, end)

    async def add_block(self, known: random.Random | None) -> dict[str, float]:
        """Add a block of transfers to new holders or, with `known`, to random holders. Returns what its write took per
        transfer.
        """
        first = self.holders + 1
        recipients = range(first, first + TRANSFERS) if known is None else known.choices(range(1, first), k=TRANSFERS)
        return await self._write(
            [
                self.builder.sign(SENDERS[index % len(SENDERS)], self.token, words(recipient, 1))
                for index, recipient in enumerate(recipients)
            ],
            self.holders if known else self.holders + TRANSFERS,
        )

    async def _write(self, transactions: list[bytes], holders: int) -> dict[str, float]:
        await self.core.send(*transactions)
        self.core.clock.advance(1)
        assembler = self.core.core.assembler
        built_block = await assembler.assemble(600.0)
        assert built_block.body.transaction_count == len(transactions)
        before = Usage()
        await assembler.commit(built_block.header, built_block, self.core.clock.monotonic())
        usage = Usage().since(before, "write", len(transactions))
        self.holders = holders
        self.notes.store(holders=holders)
        return usage

    def lookup_us(self) -> float:
        """Return the microseconds per slot to list slots with their preimages."""
        state = self.core.queries.head_state
        taken = []
        for part in range(16):
            began = time.perf_counter()
            rows, _ = state.storage_range(self.token, bytes([16 * part]).ljust(32, b"\0"), LOOKUPS)
            taken.append((time.perf_counter() - began) / len(rows) * 1e6)
            assert all(slot is not None for _, slot, _ in rows)
        return statistics.median(taken)


async def measure(core: TestCore, notes: Notes, chosen: argparse.Namespace) -> None:
    chain = Chain(core, notes)
    await chain.deploy()
    await chain.fill(chosen.fill)
    known = random.Random(37) if chosen.known else None
    found: list[dict[str, float]] = []
    rows: list[dict[str, Any]] = []
    for number in range(1, max(chosen.at) + 1):
        found.append(await chain.add_block(known))
        if number not in chosen.at:
            continue
        recent = found[-chosen.around :]
        row = {key: round(statistics.median(one[key] for one in recent), 2) for key in ("write_cpu_us", "write_pages")}
        row["worst_cpu_us"] = round(max(one["write_cpu_us"] for one in recent), 2)
        rows.append({"block": number, "slots": chain.holders, **row, "lookup_us": round(chain.lookup_us(), 2)})
        print(json.dumps(rows[-1]), flush=True)
    print(json.dumps({"ratio": round(rows[-1]["write_cpu_us"] / rows[0]["write_cpu_us"], 2)}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--at", type=int, nargs="+", default=[10, 50, 100, 200, 300, 500])
    parser.add_argument("--around", type=int, default=8)
    parser.add_argument("--fill", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--known", action="store_true", help="transfers to holders of the fill")
    chosen = parser.parse_args()
    lanes = ThreadLanes()
    with tempfile.TemporaryDirectory() as temporary:
        place = chosen.keep or Path(temporary)
        (place / "database").mkdir(parents=True, exist_ok=True)
        with opened_core(place, lanes) as core:
            asyncio.run(measure(core, Notes(place), chosen))
    lanes.close()


if __name__ == "__main__":
    main()
