"""Compares private transactions of the old and the new node: receipts, code of contracts and nonces, by group."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from msgspec import Struct, field

from ophion.enclave.encoding import base64_text, read_key
from ophion.enclave.group_ids import legacy_id
from ophion.errors import CommandError
from ophion.migration.comparison import Difference, MethodResult, find_difference
from ophion.runtime.blocking_json_rpc import Call, Failure, JsonRpcClient

_BATCH_CALLS: Final = 50
_MAX_SHOWN: Final = 5


class GroupResult(Struct):
    """Result of comparing the replies about one group."""

    receipts: int = 0
    contracts: set[str] = field(default_factory=set)
    accounts: set[str] = field(default_factory=set)
    compared: int = 0
    equal: int = 0
    differences: list[tuple[str, Difference]] = field(default_factory=list)
    """The first few differences, each with its method."""


class PrivateComparison:
    """Requests the private transaction of every marker transaction on the chain from both nodes, and compares the
    replies.
    """

    def __init__(self, old: JsonRpcClient, new: JsonRpcClient) -> None:
        self._old = old
        self._new = new
        self.groups: dict[str, GroupResult] = {}
        """Results by group id in base64."""
        self.markers = 0
        self.foreign = 0
        """Number of marker transactions whose private transactions involve neither of the two nodes."""

    def run(self, on_progress: Callable[[int, int], None] | None = None) -> bool:
        """Compare all marker transactions. Returns whether all replies agree. Raises `CommandError` if a node does not
        reply.
        """
        head = min(int(str(client.call("eth_blockNumber")), 16) for client in (self._old, self._new))
        pending: list[str] = []
        for number, found in self._markers(head):
            pending += found
            if len(pending) >= _BATCH_CALLS:
                self._receipts(pending)
                pending = []
            if on_progress is not None:
                on_progress(number, head)
        self._receipts(pending)
        self._states()
        return all(result.equal == result.compared for result in self.groups.values())

    def _markers(self, head: int) -> Iterator[tuple[int, list[str]]]:
        """Yield, for several blocks at a time, the number of the last block and the hashes of all marker transactions.
        Counts the markers.
        """
        precompile = str(self._new.call("priv_getPrivacyPrecompileAddress")).lower()
        for start in range(0, head + 1, _BATCH_CALLS):
            numbers = range(start, min(start + _BATCH_CALLS, head + 1))
            hashes: list[str] = []
            for block in self._new.batch([("eth_getBlockByNumber", [hex(number), True]) for number in numbers]):
                if not isinstance(block, dict):
                    raise CommandError(f"The node at {self._new.address} does not return its blocks.")
                hashes += [one["hash"] for one in block["transactions"] if (one["to"] or "").lower() == precompile]
            self.markers += len(hashes)
            yield numbers[-1], hashes

    def _receipts(self, hashes: list[str]) -> None:
        if not hashes:
            return
        calls: list[Call] = [("priv_getTransactionReceipt", [marker]) for marker in hashes]
        for call, old, new in zip(calls, self._old.batch(calls), self._new.batch(calls), strict=True):
            shown = old if isinstance(old, dict) else new
            if not isinstance(shown, dict):
                self.foreign += 1
                continue
            group = self.groups.setdefault(_group_id(shown), GroupResult())
            group.receipts += 1
            group.accounts.add(shown["from"])
            if shown.get("contractAddress"):
                group.contracts.add(shown["contractAddress"])
            self._compare(group, call, old, new)

    def _states(self) -> None:
        for group_id, group in self.groups.items():
            calls: list[Call] = [("priv_getCode", [group_id, address, "latest"]) for address in sorted(group.contracts)]
            calls += [("priv_getTransactionCount", [account, group_id]) for account in sorted(group.accounts)]
            for start in range(0, len(calls), _BATCH_CALLS):
                part = calls[start : start + _BATCH_CALLS]
                for call, old, new in zip(part, self._old.batch(part), self._new.batch(part), strict=True):
                    self._compare(group, call, old, new)

    def _compare(self, group: GroupResult, call: Call, old: Any, new: Any) -> None:
        group.compared += 1
        # an error response proves nothing about private state, even if both nodes return an error
        is_refused = isinstance(old, Failure) or isinstance(new, Failure)
        found = ("", str(old), str(new)) if is_refused else find_difference(old, new, "", MethodResult())
        if found is None:
            group.equal += 1
        elif len(group.differences) < _MAX_SHOWN:
            group.differences.append((call[0], Difference(list(call[1]), *found)))


def _group_id(receipt: dict[str, Any]) -> str:
    """Return the group id in a receipt, or the id of the legacy group of its sender and recipients."""
    named = receipt.get("privacyGroupId")
    if isinstance(named, str):
        return named
    try:
        keys = [read_key(key) for key in (receipt["privateFrom"], *(receipt.get("privateFor") or ()))]
    except (KeyError, TypeError, ValueError):
        raise CommandError("A private receipt names no group, no sender or an invalid key.") from None
    return base64_text(legacy_id(list(dict.fromkeys(keys))))
