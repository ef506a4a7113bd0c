"""Compares replies of the old and the new node to random calls about blocks, transactions, logs and states."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct, field

from ophion.errors import CommandError
from ophion.runtime.blocking_json_rpc import Call, Failure, JsonRpcClient

_BATCH_CALLS: Final = 50
_LEARNED_BLOCKS: Final = 200
_MAX_LOG_RANGE: Final = 20
_MAX_SHOWN: Final = 5
_STORAGE_SLOTS: Final = 8
_STATE_METHODS: Final = frozenset(
    ("eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_getTransactionCount", "eth_call")
)


class Difference(Struct, frozen=True):
    """One call with different replies of the two nodes."""

    params: list[Any]
    place: str
    """JSON path of the first key whose value differs."""
    old: str
    new: str


class MethodResult(Struct):
    """Result of comparing the replies of one method."""

    compared: int = 0
    equal: int = 0
    failed: int = 0
    """Number of calls that both nodes refuse. These calls count as equal, because texts and codes of errors differ
    between clients.
    """
    skipped: int = 0
    """Number of calls about states that the old node no longer has."""
    differences: list[Difference] = field(default_factory=list)
    """The first few differences between the replies of both nodes."""
    only_old: Counter[str] = field(default_factory=Counter)
    """JSON keys that only the old node sends. They do not count as differences."""
    only_new: Counter[str] = field(default_factory=Counter)


class Comparison:
    """Makes random calls to two nodes about blocks up to the lower head, and compares the replies."""

    def __init__(self, old: JsonRpcClient, new: JsonRpcClient, draw: random.Random) -> None:
        self._old = old
        self._new = new
        self._draw = draw
        self.methods: dict[str, MethodResult] = {}
        self._hashes: list[str] = []
        self._transactions: list[dict[str, Any]] = []
        self._addresses: list[str] = []
        self._states: dict[str, bool] = {}
        self.height = 0

    def run(self, count: int, on_progress: Callable[[int], None] | None = None) -> bool:
        """Compare the replies to `count` calls. Returns whether all are equal. Raises `CommandError` if a node does not
        reply.
        """
        self._learn()
        done = attempts = 0
        while done < count and attempts < 4 * count:
            calls = [self._call() for _ in range(min(_BATCH_CALLS, count - done))]
            attempts += len(calls)
            for call, old, new in zip(calls, self._old.batch(calls), self._new.batch(calls), strict=True):
                done += self._compare(call, old, new)
            if on_progress is not None:
                on_progress(done)
        if not done:
            raise CommandError("No answers could be compared: the old node refuses all calls.")
        return all(result.equal == result.compared for result in self.methods.values())

    def _learn(self) -> None:
        """Check that the chain ids are equal, and read random blocks of the old node. Transactions and accounts of
        these blocks become arguments of later calls.
        """
        heads = [int(str(client.call("eth_blockNumber")), 16) for client in (self._old, self._new)]
        self.height = min(heads)
        if self._old.call("eth_chainId") != self._new.call("eth_chainId"):
            raise CommandError("The nodes have different chain ids: they are not of one network.")
        numbers = sorted({0, self.height, *(self._number() for _ in range(_LEARNED_BLOCKS))})
        addresses: dict[str, None] = {}
        for start in range(0, len(numbers), _BATCH_CALLS):
            part = numbers[start : start + _BATCH_CALLS]
            for block in self._old.batch([("eth_getBlockByNumber", [hex(number), True]) for number in part]):
                if not isinstance(block, dict):
                    raise CommandError(f"The node at {self._old.address} does not return its blocks.")
                self._hashes.append(block["hash"])
                self._transactions.extend(block["transactions"])
                addresses[block["miner"]] = None
        for transaction in self._transactions:
            addresses.update(dict.fromkeys(filter(None, (transaction["from"], transaction.get("to")))))
            if transaction.get("creates"):
                addresses[transaction["creates"]] = None
        self._addresses = list(addresses)

    def _number(self) -> int:
        return self._draw.randint(0, self.height)

    def _call(self) -> Call:
        draw = self._draw
        kinds: list[Callable[[], Call]] = [self._block, self._state, self._logs]
        if self._transactions:
            kinds += [self._transaction, self._transaction, self._replay]
        return draw.choice(kinds)()

    def _block(self) -> Call:
        if self._draw.random() < 0.5:
            return "eth_getBlockByHash", [self._draw.choice(self._hashes), self._draw.random() < 0.5]
        return "eth_getBlockByNumber", [hex(self._number()), self._draw.random() < 0.5]

    def _transaction(self) -> Call:
        chosen = self._draw.choice(self._transactions)
        method = self._draw.choice(("eth_getTransactionReceipt", "eth_getTransactionByHash"))
        return method, [chosen["hash"]]

    def _state(self) -> Call:
        address, number = self._draw.choice(self._addresses), hex(self._number())
        method = self._draw.choice(("eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_getTransactionCount"))
        if method == "eth_getStorageAt":
            return method, [address, hex(self._draw.randrange(_STORAGE_SLOTS)), number]
        return method, [address, number]

    def _logs(self) -> Call:
        first = self._number()
        last = min(self.height, first + self._draw.randrange(_MAX_LOG_RANGE))
        return "eth_getLogs", [{"fromBlock": hex(first), "toBlock": hex(last)}]

    def _replay(self) -> Call:
        """Return an eth_call with the input of a random transaction, at a random block."""
        chosen = self._draw.choice(self._transactions)
        call = {"from": chosen["from"], "data": chosen["input"]} | ({"to": chosen["to"]} if chosen.get("to") else {})
        return "eth_call", [call, hex(self._number())]

    def _has_state(self, number: str) -> bool:
        """Whether the old node has the state of a block. If so, a missing state is not the cause of a failed call."""
        if number not in self._states:
            balance = self._old.batch([("eth_getBalance", [f"0x{bytes(20).hex()}", number])])[0]
            self._states[number] = not isinstance(balance, Failure)
        return self._states[number]

    def _compare(self, call: Call, old: Any, new: Any) -> int:
        """Record one pair of replies. Returns 1, or 0 if the old node lacks the state and nothing was compared."""
        method, params = call
        result = self.methods.setdefault(method, MethodResult())
        if isinstance(old, Failure) and method in _STATE_METHODS and not self._has_state(params[-1]):
            result.skipped += 1
            return 0
        result.compared += 1
        if isinstance(old, Failure) and isinstance(new, Failure):
            result.failed += 1
            result.equal += 1
            return 1
        found = find_difference(old, new, "", result)
        if found is None:
            result.equal += 1
        elif len(result.differences) < _MAX_SHOWN:
            result.differences.append(Difference(list(params), *found))
        return 1


def find_difference(old: Any, new: Any, place: str, result: MethodResult) -> tuple[str, str, str] | None:
    """Return the JSON path and both values of the first difference; None if the values are equal. Letter case of hex
    digits is ignored. JSON keys that only one node sends are counted in `result`, but are no difference.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        result.only_old.update(name for name in old.keys() - new.keys() if old[name] is not None)
        result.only_new.update(name for name in new.keys() - old.keys() if new[name] is not None)
        for name in sorted(old.keys() & new.keys()):
            found = find_difference(old[name], new[name], f"{place}.{name}", result)
            if found is not None:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            return f"{place} length", str(len(old)), str(len(new))
        for index, pair in enumerate(zip(old, new, strict=True)):
            found = find_difference(*pair, f"{place}[{index}]", result)
            if found is not None:
                return found
        return None
    if isinstance(old, str) and isinstance(new, str) and old.lower() == new.lower():
        return None
    return None if old == new and type(old) is type(new) else (place, _shown(old), _shown(new))


def _shown(value: Any) -> str:
    text = f"error {value.code} {value.message}" if isinstance(value, Failure) else str(value)
    return text if len(text) <= 100 else f"{text[:97]}..."
