"""`ophion migrate --compare`: compares the replies of the old and the new node, and reports by method."""

from __future__ import annotations

import random
from collections import Counter

from ophion.cli.progress import Progress
from ophion.cli.untrusted_text import escape_untrusted
from ophion.migration.comparison import Comparison, MethodResult
from ophion.runtime.blocking_json_rpc import JsonRpcClient
from ophion.runtime.clock import SystemEntropy


def compare_nodes(old: str, new: str, samples: int, seed: int | None, token: str | None) -> int:
    """Compare two nodes and print the report. Returns 1 if a reply differs. `token` is for the old node."""
    if seed is None:
        seed = int.from_bytes(SystemEntropy().token(4), "big")
    comparison = Comparison(JsonRpcClient(old, token), JsonRpcClient(new), random.Random(seed))
    progress = Progress("Answers", samples)
    is_equal = comparison.run(samples, progress.update)
    progress.clear()
    width = max(len(method) for method in comparison.methods)
    for method, result in sorted(comparison.methods.items()):
        _print(method.ljust(width), result)
    compared = sum(result.compared for result in comparison.methods.values())
    different = compared - sum(result.equal for result in comparison.methods.values())
    print(f"{compared:,} answers compared up to block {comparison.height}, {different:,} differ (--seed={seed})")
    return 0 if is_equal else 1


def _print(method: str, result: MethodResult) -> None:
    skipped = f", {result.skipped} skipped (the old node has no such state)" if result.skipped else ""
    failed = f" ({result.failed} refused by both)" if result.failed else ""
    print(f"{method}  {result.equal}/{result.compared} equal{failed}{skipped}")
    for difference in result.differences:
        print(f"    {escape_untrusted(difference.params)} {escape_untrusted(difference.place)}")
        print(f"        old: {escape_untrusted(difference.old)}")
        print(f"        new: {escape_untrusted(difference.new)}")
    for side, members in (("old", result.only_old), ("new", result.only_new)):
        if members:
            print(f"    members of the {side} node only: {escape_untrusted(_names(members))}")


def _names(members: Counter[str]) -> str:
    return ", ".join(sorted(members))
