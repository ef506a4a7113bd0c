"""`Backlog`: groups whose private transactions run apart from the private executor.

The private executor follows the chain and executes small transactions at once. A group moves to the backlog when a
transaction has a high gas limit, when the sender has used up its time budget, or when all new groups together have used
up their budget. The backlog has its own worker threads and first runs the groups of the sender that has used the least
time. Established and new groups have a thread each, so new groups of an unknown sender do not delay established groups.
The order inside a group never changes, so all members reach the same state.

A transaction above `--privacy-max-transaction-gas` is never skipped, because the group's state would then differ
between members. Instead, the group is suspended before this transaction. Payloads in the backlog are recorded as late
(late_payloads.py), so a killed node executes them after its restart.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from ophion.enclave.encoding import base64_text
from ophion.native.privacy import PrivateBatch, private_gas_limit
from ophion.primitives.header import HashedHeader
from ophion.privacy.payloads import Payload
from ophion.runtime.clock import Clock

if TYPE_CHECKING:
    from ophion.privacy.execution_events import ExecutedTransaction

log = logging.getLogger(__name__)

MAX_WALK_GAS: Final = 5_000_000
"""Maximum gas limit of the transactions of one group in one block, added up, that run outside the backlog. This much
gas took 0.65 s on a busy machine.
"""
SENDER_BUDGET_S: Final = 1.0
"""Execution seconds that a sender may use outside the backlog. Used time halves every `HALF_LIFE_S`."""
NEW_GROUPS_BUDGET_S: Final = 0.5
"""Execution seconds that all new groups together may use per step along the chain. A group is new until it is
established.
"""
HALF_LIFE_S: Final = 60.0
ESTABLISHED_BLOCKS: Final = 256
"""A group counts as established this number of blocks after its first transaction."""
_MAX_SENDERS: Final = 65_536


class TimeBudget:
    """Execution time by sender, with exponential decay."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._used: dict[bytes, tuple[float, float]] = {}
        """Used seconds and the time of the last update, by sender."""

    def used_s(self, sender: bytes) -> float:
        """Seconds that a sender has used recently."""
        used, at = self._used.get(sender, (0.0, 0.0))
        return 0.0 if not used else float(used * 0.5 ** ((self._clock.monotonic() - at) / HALF_LIFE_S))

    def charge(self, payloads: Iterable[Payload], elapsed_s: float) -> None:
        """Divide the execution time of payloads among their senders in proportion to gas limits."""
        costs = [(payload[4], max(1, gas_of(payload))) for payload in payloads]
        total = sum(cost for _, cost in costs)
        for sender, cost in costs:
            self._used[sender] = (self.used_s(sender) + elapsed_s * cost / total, self._clock.monotonic())
        if len(self._used) > _MAX_SENDERS:
            self._used = {sender: used for sender, used in self._used.items() if self.used_s(sender) > 0.01}


class BehindGroup:
    """A privacy group whose execution is behind the chain, so that the backlog executes it."""

    def __init__(self, sender: bytes, first: int, is_established: bool) -> None:
        self.sender = sender
        """Sender of the payload that moved the group to the backlog. This sender is charged for the execution time."""
        self.first = first
        """Number of the next block to execute for this group."""
        self.is_established = is_established
        self.blocks: set[int] = set()
        """Blocks with payloads of this group in the backlog."""
        self.keys: set[bytes] = set()
        """Keys of the payloads of this group in the backlog."""
        self.is_suspended = False
        self.batch: PrivateBatch | None = None
        """Batch of the current block; `todo` has the remaining payloads of the block."""
        self.block: HashedHeader | None = None
        self.todo: list[Payload] = []
        self.executed: list[ExecutedTransaction] = []
        self.done = asyncio.Event()


class Backlog:
    """Private groups whose execution is behind the chain, and the order in which the groups run."""

    def __init__(self, clock: Clock, max_gas: int) -> None:
        self.max_gas = max_gas
        self.budget = TimeBudget(clock)
        self.groups: dict[bytes, BehindGroup] = {}
        self._wakes: tuple[asyncio.Event, asyncio.Event] = (asyncio.Event(), asyncio.Event())
        self._new_groups_s = 0.0
        self._group_of: dict[bytes, bytes] = {}
        """Group of each payload, by payload key."""

    def wake(self) -> None:
        """Wake the two executors, one for established and one for new groups."""
        for event in self._wakes:
            event.set()

    def event(self, is_established: bool) -> asyncio.Event:
        """Return the event that is set when groups of this kind (established or new) may have work."""
        return self._wakes[is_established]

    def begin_step(self) -> None:
        """Reset the budget of new groups for the next step along the chain."""
        self._new_groups_s = 0.0

    def charge_walk(self, payloads: Iterable[Payload], elapsed_s: float, is_established: bool) -> None:
        """Charge the senders, and for new groups also the shared budget, for the time that payloads took outside the
        backlog.
        """
        self.budget.charge(payloads, elapsed_s)
        if not is_established:
            self._new_groups_s += elapsed_s

    def needs_backlog(self, payloads: list[Payload], is_established: bool) -> bool:
        """Whether the payloads of one group in one block run in the backlog: the backlog already has the group, their
        gas limits are too high, or a time budget is used up.
        """
        return (
            payloads[0][3] in self.groups
            or sum(map(gas_of, payloads)) > MAX_WALK_GAS
            or max(map(gas_of, payloads)) > self.max_gas
            or any(self.budget.used_s(payload[4]) > SENDER_BUDGET_S for payload in payloads)
            or (not is_established and self._new_groups_s > NEW_GROUPS_BUDGET_S)
        )

    def put(self, number: int, payloads: list[Payload], is_established: bool) -> None:
        """Put the payloads of one group in one block into the backlog."""
        group, sender = payloads[0][3], payloads[0][4]
        behind = self.groups.get(group)
        if behind is None:
            behind = self.groups[group] = BehindGroup(sender, number, is_established)
        for payload in payloads:
            self.add(group, number, payload[2])

    def add(self, group: bytes, number: int, payload_key: bytes) -> None:
        """Add a payload to a group of the backlog."""
        behind = self.groups[group]
        behind.blocks.add(number)
        behind.keys.add(payload_key)
        self._group_of[payload_key] = group
        if number < behind.first or (behind.todo and behind.block is not None and number <= behind.block.number):
            behind.first = min(number, behind.first)
            behind.batch, behind.todo, behind.executed = None, [], []
        self.wake()

    def next(self, reached: int, is_established: bool) -> tuple[bytes, BehindGroup] | None:
        """Return the group of this kind (established or new) to run next, or None. Ignores work in blocks after
        `reached`.
        """
        ready = [
            (group, behind)
            for group, behind in self.groups.items()
            if behind.is_established is is_established
            and not behind.is_suspended
            and (behind.todo or not behind.blocks or min(behind.blocks) <= reached)
        ]
        return min(ready, key=lambda one: self.budget.used_s(one[1].sender), default=None)

    def slice(self, behind: BehindGroup) -> list[Payload]:
        """Return the payloads to run next in the current block: one, or more within `MAX_WALK_GAS`. A payload above the
        gas limit ends the slice, and suspends the group if it is the first payload.
        """
        selected: list[Payload] = []
        gas = 0
        for payload in behind.todo:
            gas += gas_of(payload)
            if gas_of(payload) > self.max_gas:
                if not selected:
                    self._suspend(payload, behind)
                break
            if selected and gas > MAX_WALK_GAS:
                break
            selected.append(payload)
        return selected

    def _suspend(self, payload: Payload, behind: BehindGroup) -> None:
        behind.is_suspended = True
        behind.done.set()
        log.warning(
            "private group suspended: gas limit of a transaction is too high group=%s sender=%s gas=%d limit=%d."
            " To resume, start the node with a higher --privacy-max-transaction-gas",
            base64_text(payload[3]),
            base64_text(payload[4]),
            gas_of(payload),
            self.max_gas,
        )

    def finish(self, group: bytes) -> None:
        """Remove a group that has reached the block of the private executor."""
        behind = self.groups.pop(group)
        for key in behind.keys:
            self._group_of.pop(key, None)
        behind.done.set()

    def rewind(self, number: int) -> None:
        """After a reorganisation, let groups continue at block `number` + 1 at the latest, and discard their unfinished
        batches.
        """
        for behind in self.groups.values():
            behind.first = min(behind.first, number + 1)
            behind.batch, behind.todo, behind.executed = None, [], []

    def group_of(self, payload_key: bytes) -> bytes | None:
        """Return the group of a payload that waits in the backlog, or None."""
        return self._group_of.get(payload_key)

    async def wait(self, group: bytes, limit_s: float) -> None:
        """Wait until a group is up to date or suspended, for at most `limit_s` seconds."""
        behind = self.groups.get(group)
        if behind is not None and not behind.is_suspended:
            waiting = asyncio.ensure_future(behind.done.wait())
            await asyncio.wait({waiting}, timeout=limit_s)
            waiting.cancel()


def gas_of(payload: Payload) -> int:
    """Return the gas limit of the transaction in a payload, or 0 if the transaction cannot be decoded."""
    return private_gas_limit(payload[5]) or 0


def by_group(payloads: Iterable[Payload]) -> dict[bytes, list[Payload]]:
    """Group the payloads of a block, keeping their order."""
    found: dict[bytes, list[Payload]] = {}
    for payload in payloads:
        found.setdefault(payload[3], []).append(payload)
    return found
