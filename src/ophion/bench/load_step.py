"""One step of a benchmark: a transaction rate for some seconds, and its results."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson
from msgspec import Struct, field

from ophion.bench.sender_accounts import Senders, SignedTransaction
from ophion.errors import CommandError
from ophion.runtime.clock import Clock
from ophion.runtime.json_rpc_client import JsonRpcConnection, JsonRpcEndpoint

_LOOK_S: Final = 0.02
_KNOWN: Final = ("known transaction", "already known")
"""Error texts for a transaction that the node already has. Such a transaction counts as accepted."""


class LoadShape(Struct, frozen=True):
    """Number of transactions per request, and number of connections."""

    batch: int
    """Number of transactions per request."""
    connections: int

    def __str__(self) -> str:
        requests = "single requests" if self.batch == 1 else f"batches of {self.batch}"
        return f"{requests} on {self.connections} connections"


class LoadStep(Struct):
    """Parameters and results of one load step."""

    rate: float
    """Scheduled transactions per second."""
    seconds: float
    shape: LoadShape
    sent: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    """Number of refused transactions by error text."""
    mined_s: list[float] = field(default_factory=list)
    """Seconds from the scheduled time of a transaction until its block was seen, in sending order."""
    answer_s: list[float] = field(default_factory=list)
    """Seconds from sending a request to its response, one value per request."""
    late_s: float = 0.0
    """Seconds by which the benchmark program was behind its schedule at the end."""
    drained_s: float | None = None
    """Seconds from the last send until all transactions were mined; None if some transactions were never mined."""
    blocks: list[Block] = field(default_factory=list)

    @property
    def mined(self) -> int:
        return len(self.mined_s)


class Block(Struct, frozen=True):
    """A block produced during the load step."""

    seen_s: float
    transactions: int
    gas_used: int
    gas_limit: int


class LoadGenerator:
    """Sends transactions to a node and watches when they are mined."""

    def __init__(self, endpoint: JsonRpcEndpoint, senders: Senders, clock: Clock) -> None:
        self._endpoint = endpoint
        self._senders = senders
        self._clock = clock
        self._lines: list[JsonRpcConnection] = []

    async def run(self, rate: float, seconds: float, shape: LoadShape, drain_s: float) -> LoadStep:
        """Run one load step, and wait up to `drain_s` seconds until all transactions are mined."""
        step = LoadStep(rate, seconds, shape)
        batches = max(1, round(rate * seconds / shape.batch))
        signed = self._senders.sign(batches * shape.batch)
        while len(self._lines) <= shape.connections:
            self._lines.append(await self._endpoint.connect())
        watch = BlockWatch(self._lines[0], self._clock, {one.hash: 0.0 for one in signed})
        await watch.begin()
        watching = asyncio.create_task(watch.run())
        refusals: dict[str, str] = {}
        try:
            await self._send(step, signed, batches, watch, refusals)
            ended = self._clock.monotonic()
            while watch.is_waiting(refusals) and self._clock.monotonic() - ended < drain_s:
                if watching.done():
                    break
                await asyncio.sleep(_LOOK_S)
            if not watch.missing:
                step.drained_s = max(0.0, watch.last_s - ended)
        except BaseException:
            watching.cancel()
            raise
        # end the task with a flag: a cancelled task would close the connection that the next step uses
        watch.is_over = True
        await watching
        step.mined_s = [watch.mined[one.hash] - watch.due[one.hash] for one in signed if one.hash in watch.mined]
        step.blocks = watch.blocks
        # do not count the refusal of a mined transaction: an earlier load step had already sent this transaction
        step.refused = Counter(words for hash, words in refusals.items() if hash not in watch.mined)
        if watch.is_waiting(refusals):
            self._senders.move_on()
        if watch.missing:
            await self._senders.sync_nonces(self._lines[0])
        return step

    async def close(self) -> None:
        """Close all connections."""
        for line in self._lines:
            await line.close()
        self._lines.clear()

    async def _send(
        self,
        step: LoadStep,
        signed: Sequence[SignedTransaction],
        batches: int,
        watch: BlockWatch,
        refusals: dict[str, str],
    ) -> None:
        size, began = step.shape.batch, self._clock.monotonic()
        pause = step.shape.batch / step.rate
        numbers = iter(range(batches))

        async def work(line: JsonRpcConnection) -> None:
            for number in numbers:
                due = began + number * pause
                ahead = due - self._clock.monotonic()
                if ahead > 0:
                    await asyncio.sleep(ahead)
                part = signed[number * size : (number + 1) * size]
                for one in part:
                    watch.due[one.hash] = due
                step.late_s = max(0.0, self._clock.monotonic() - due)
                await self._post(step, line, part, refusals)

        try:
            async with asyncio.TaskGroup() as group:
                for line in self._lines[1 : step.shape.connections + 1]:
                    group.create_task(work(line))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _post(
        self, step: LoadStep, line: JsonRpcConnection, part: Sequence[SignedTransaction], refusals: dict[str, str]
    ) -> None:
        began = self._clock.monotonic()
        requests = [
            b'{"jsonrpc":"2.0","id":%d,"method":"eth_sendRawTransaction","params":[%b]}' % (number, one.text)
            for number, one in enumerate(part)
        ]
        answers = await line.post(requests[0] if len(requests) == 1 else b"[%b]" % b",".join(requests))
        step.answer_s.append(self._clock.monotonic() - began)
        step.sent += len(part)
        if not isinstance(answers, list):
            answers = [answers] * len(part)
        for one, answer in zip(part, answers, strict=False):
            words = _refusal(answer)
            if words is not None:
                refusals[one.hash] = words


def _refusal(answer: Any) -> str | None:
    if isinstance(answer, dict) and "result" in answer:
        return None
    error = answer.get("error") if isinstance(answer, dict) else None
    words = str(error.get("message") if isinstance(error, dict) else orjson.dumps(answer)[:200].decode())
    return None if words.lower().startswith(_KNOWN) else words


class BlockWatch:
    """Watches new blocks for the transactions of a load step."""

    def __init__(self, line: JsonRpcConnection, clock: Clock, due: dict[str, float]) -> None:
        self.due = due
        self.mined: dict[str, float] = {}
        self.blocks: list[Block] = []
        self.last_s = 0.0
        self.is_over = False
        self._line = line
        self._clock = clock
        self._next = 0

    @property
    def missing(self) -> int:
        """Number of transactions that no block contains yet."""
        return len(self.due) - len(self.mined)

    def is_waiting(self, refusals: Mapping[str, str]) -> bool:
        """Whether some accepted transactions are not mined yet. `refusals` maps refused transactions to error texts."""
        return self.missing > sum(hash not in self.mined for hash in refusals)

    async def begin(self) -> None:
        """Start to watch: the next block is the first whose transactions are recorded."""
        self._next = int(await self._line.call("eth_blockNumber"), 16) + 1

    async def run(self) -> None:
        """Watch new blocks until the load step ends."""
        while not self.is_over:
            head = int(await self._line.call("eth_blockNumber"), 16)
            seen = self._clock.monotonic()
            for number in range(self._next, head + 1):
                await self._look(number, seen)
            self._next = max(self._next, head + 1)
            await asyncio.sleep(_LOOK_S)

    async def _look(self, number: int, seen: float) -> None:
        block = await self._line.call("eth_getBlockByNumber", hex(number), False)
        if not isinstance(block, dict):
            raise CommandError(f"The node has no block {number}, though its head is higher")
        hashes = block["transactions"]
        self.blocks.append(Block(seen, len(hashes), int(block["gasUsed"], 16), int(block["gasLimit"], 16)))
        for hash in hashes:
            if hash in self.due and hash not in self.mined:
                self.mined[hash] = self.last_s = seen
